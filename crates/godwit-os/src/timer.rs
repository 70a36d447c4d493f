//! A timer that wakes within microseconds, where an event loop's own knows only milliseconds.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// A one-shot kernel timer on the monotonic clock. Its descriptor is readable once it has gone off.
#[derive(Debug)]
pub struct Timer {
    fd: OwnedFd,
}

impl Timer {
    /// A timer that is not armed.
    ///
    /// # Errors
    /// If the process has too many descriptors.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no memory is handed over.
        let fd =
            unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was opened just now and belongs to nobody else.
        Ok(Timer { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Lets the timer go off after `delay`, and not when it was to go off before.
    ///
    /// # Errors
    /// None that a correct kernel gives.
    pub fn arm(&self, delay: Duration) -> io::Result<()> {
        // A value of zero would disarm it.
        let delay = delay.max(Duration::from_nanos(1));
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let value = libc::timespec {
            tv_sec: libc::time_t::try_from(delay.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: delay.subsec_nanos() as _,
        };
        let setting = libc::itimerspec { it_interval: zero, it_value: value };
        // SAFETY: the kernel reads one `itimerspec`, borrowed here, and writes nothing, for the old value is
        // not asked for.
        let rc = unsafe {
            libc::timerfd_settime(self.fd.as_raw_fd(), 0, &raw const setting, std::ptr::null_mut())
        };
        if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Whether the timer has gone off since it was armed or asked last. Takes readability away.
    pub fn take_expired(&self) -> bool {
        let mut times = 0u64;
        // SAFETY: the kernel writes at most the eight bytes of `times`.
        let read = unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut times).cast(), 8) };
        read == 8 && times > 0
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_off_once() {
        let timer = Timer::new().unwrap();
        assert!(!timer.take_expired());
        timer.arm(Duration::ZERO).unwrap();
        while !timer.take_expired() {
            std::thread::yield_now();
        }
        assert!(!timer.take_expired());
        timer.arm(Duration::from_secs(3600)).unwrap();
        assert!(!timer.take_expired());
    }
}
