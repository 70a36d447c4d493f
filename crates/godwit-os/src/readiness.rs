//! Waiting for descriptors, for who has no event loop.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// A descriptor to wait for.
#[derive(Debug, Clone, Copy)]
pub struct Interest<'a> {
    /// The descriptor.
    pub descriptor: BorrowedFd<'a>,
    /// Whether it is enough that it can be written. That it can be read, or has an error, always is.
    pub writable: bool,
}

/// What a descriptor is ready for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ready {
    /// There is something to read.
    pub readable: bool,
    /// There is room to write, if that was asked.
    pub writable: bool,
    /// There is an error, which may stay, and end each wait, until somebody takes it.
    pub error: bool,
}

/// Waits until one of the descriptors is ready, for at most `time`, or without end. A signal ends it early. `ready` holds
/// what each of them is ready for afterwards, in the same order.
///
/// # Errors
/// If there is no memory for so many.
pub fn wait_for<'a>(
    interests: impl IntoIterator<Item = Interest<'a>>,
    time: Option<Duration>,
    ready: &mut Vec<Ready>,
) -> io::Result<()> {
    let wanted = |writable| if writable { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
    let descriptor = |it: Interest<'a>| PollFd::from_borrowed_fd(it.descriptor, wanted(it.writable));
    let mut descriptors: Vec<_> = interests.into_iter().map(descriptor).collect();
    let time = time.map(|time| Timespec {
        // Beyond what every system can tell lies "never": decades are far enough.
        tv_sec: time.as_secs().min(i32::MAX as u64).cast_signed(),
        tv_nsec: time.subsec_nanos().into(),
    });
    ready.clear();
    match poll(&mut descriptors, time.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    ready.extend(descriptors.iter().map(|descriptor| {
        let events = descriptor.revents();
        Ready {
            readable: events.contains(PollFlags::IN),
            writable: events.contains(PollFlags::OUT),
            error: events.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL),
        }
    }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn waiting_ends_when_there_is_something_or_the_time_is_over() {
        let (mut one, other) = UnixStream::pair().unwrap();
        let mut ready = Vec::new();
        let reading = Interest { descriptor: other.as_fd(), writable: false };
        wait_for([reading], Some(Duration::from_millis(1)), &mut ready).unwrap();
        assert_eq!(ready, [Ready::default()]);
        wait_for([Interest { writable: true, ..reading }, reading], None, &mut ready).unwrap();
        assert_eq!(ready, [Ready { writable: true, ..Ready::default() }, Ready::default()]);
        one.write_all(b"x").unwrap();
        wait_for([reading], None, &mut ready).unwrap();
        assert_eq!(ready, [Ready { readable: true, ..Ready::default() }]);
    }
}
