//! Descriptors that are waited for together, under one descriptor: for who shows them to somebody else's event loop.
//!
//! The set's own descriptor can be read as long as one of those in it is ready, and can be [put](add_to) into another set, or into
//! an event loop's.

use rustix::event::epoll;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A set of descriptors of which one may be ready to be read, or have an error.
#[derive(Debug)]
pub struct ReadinessSet(OwnedFd);

impl ReadinessSet {
    /// An empty set.
    ///
    /// # Errors
    /// If there are no more descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Self(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    /// Has a descriptor waited for. It is to be [removed](Self::remove) before it is closed.
    ///
    /// # Errors
    /// If there is no memory, it is in the set, or is nothing that can be waited for.
    pub fn add(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        add_to(self.0.as_fd(), descriptor, 0)
    }

    /// Has a descriptor waited for no more. Whether it was in the set does not matter.
    pub fn remove(&self, descriptor: BorrowedFd<'_>) {
        let _ = epoll::delete(&self.0, descriptor);
    }
}

impl AsFd for ReadinessSet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Has `descriptor` waited for in `queue`, an instance of epoll: its events have this number as their data.
///
/// # Errors
/// If `queue` is none, `descriptor` is in it, or there is no memory.
pub fn add_to(queue: BorrowedFd<'_>, descriptor: BorrowedFd<'_>, data: u64) -> io::Result<()> {
    Ok(epoll::add(queue, descriptor, epoll::EventData::new_u64(data), epoll::EventFlags::IN)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readiness::{Interest, wait_for};
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    fn is_ready(set: &ReadinessSet) -> bool {
        let mut ready = Vec::new();
        let interest = Interest { descriptor: set.as_fd(), writable: false };
        wait_for([interest], Some(Duration::ZERO), &mut ready).unwrap();
        ready[0].readable
    }

    #[test]
    fn a_set_is_ready_as_long_as_one_of_its_own_is() {
        let (mut one, other) = UnixStream::pair().unwrap();
        let (inner, outer) = (ReadinessSet::new().unwrap(), ReadinessSet::new().unwrap());
        inner.add(other.as_fd()).unwrap();
        add_to(outer.as_fd(), inner.as_fd(), 7).unwrap();
        assert!(!is_ready(&outer));
        one.write_all(b"x").unwrap();
        assert!(is_ready(&outer) && is_ready(&outer));
        inner.remove(other.as_fd());
        assert!(!is_ready(&outer));
    }

    #[test]
    fn what_is_no_queue_is_refused() {
        let (one, other) = UnixStream::pair().unwrap();
        assert!(add_to(one.as_fd(), other.as_fd(), 0).is_err());
    }
}
