//! Waiting for descriptors, for who has no event loop.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// A descriptor to wait for.
#[derive(Debug, Clone, Copy)]
pub struct Interest<'a> {
    /// The descriptor.
    pub descriptor: BorrowedFd<'a>,
    /// Whether it is enough that it can be written. That it can be read, or has an error, always is.
    pub writable: bool,
}

/// Waits until one of the descriptors is ready, for at most `time`, or without end. A signal ends it early. True if one has
/// an error, which may stay, and end each wait, until somebody takes it.
///
/// # Errors
/// If there is no memory for so many.
pub fn wait_for<'a>(
    interests: impl IntoIterator<Item = Interest<'a>>,
    time: Option<Duration>,
) -> io::Result<bool> {
    let descriptor = |interest: Interest<'_>| libc::pollfd {
        fd: interest.descriptor.as_raw_fd(),
        events: if interest.writable { libc::POLLIN | libc::POLLOUT } else { libc::POLLIN },
        revents: 0,
    };
    let mut descriptors: Vec<_> = interests.into_iter().map(descriptor).collect();
    if poll(&mut descriptors, time) >= 0 {
        return Ok(descriptors.iter().any(|descriptor| descriptor.revents & libc::POLLERR != 0));
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        error => Err(error),
    }
}

#[cfg(target_os = "linux")]
fn poll(descriptors: &mut [libc::pollfd], time: Option<Duration>) -> libc::c_int {
    let time = time.map(|time| libc::timespec {
        // Beyond what every system can tell lies "never": decades are far enough.
        tv_sec: time.as_secs().min(i32::MAX as u64) as _,
        tv_nsec: time.subsec_nanos() as _,
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let count = descriptors.len() as libc::nfds_t;
    // SAFETY: the kernel writes into `count` structures, which are borrowed exclusively, and reads the time, which lives
    // until the call returns; without a set of signals it changes none.
    unsafe { libc::ppoll(descriptors.as_mut_ptr(), count, time, std::ptr::null()) }
}

/// To a millisecond, rather later than early.
#[cfg(not(target_os = "linux"))]
fn poll(descriptors: &mut [libc::pollfd], time: Option<Duration>) -> libc::c_int {
    let millis =
        |time: Duration| libc::c_int::try_from(time.as_micros().div_ceil(1000)).unwrap_or(libc::c_int::MAX);
    let count = descriptors.len() as libc::nfds_t;
    // SAFETY: the kernel writes into `count` structures, which are borrowed exclusively.
    unsafe { libc::poll(descriptors.as_mut_ptr(), count, time.map_or(-1, millis)) }
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
        let reading = Interest { descriptor: other.as_fd(), writable: false };
        assert!(!wait_for([reading], Some(Duration::from_millis(1))).unwrap());
        assert!(!wait_for([Interest { writable: true, ..reading }], None).unwrap());
        one.write_all(b"x").unwrap();
        assert!(!wait_for([reading], None).unwrap());
    }
}
