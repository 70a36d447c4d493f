//! Network namespaces of one's own, for experiments with links that exist nowhere else.
//!
//! The calling thread leaves its namespaces for good, and threads that it starts afterwards are in the new ones; other
//! threads stay where they are. A namespace vanishes with the last thread in it.

use crate::user;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

/// User and group of the process, by which it is to be known inside of a user namespace as well.
#[derive(Debug)]
#[must_use = "a process without numbers of its own owns none of its files"]
pub struct Identity {
    user: u32,
    group: u32,
}

/// A network namespace, kept alive by a descriptor: it has no name, and is gone when the last process that has such a
/// descriptor or runs in it is.
#[derive(Debug)]
pub struct Network(File);

impl Network {
    /// That of the calling thread.
    ///
    /// # Errors
    /// If the process has too many descriptors, or there is no `/proc`.
    pub fn current() -> io::Result<Network> {
        File::open("/proc/thread-self/ns/net").map(Network)
    }

    /// Moves the calling thread there.
    ///
    /// # Errors
    /// Without the privilege (`CAP_SYS_ADMIN`).
    pub fn enter(&self) -> io::Result<()> {
        // SAFETY: no memory is handed over, and the descriptor is owned, hence open.
        let rc = unsafe { libc::setns(self.0.as_raw_fd(), libc::CLONE_NEWNET) };
        if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// The number under which other processes find it, in `/proc/PID/fd`.
impl AsRawFd for Network {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Moves the calling thread into a new network namespace.
///
/// # Errors
/// Without the privilege (`CAP_SYS_ADMIN`).
pub fn enter_network() -> io::Result<()> {
    unshare(libc::CLONE_NEWNET)
}

/// Moves the calling thread, which must be the only one, into a new user namespace, in which an ordinary user may have
/// network namespaces, and into one of those. [`Identity::keep`] is to be called next.
///
/// # Errors
/// If the system does not permit user namespaces, or the process has several threads.
pub fn enter_user_and_network() -> io::Result<Identity> {
    let identity = Identity { user: user::id(), group: user::group() };
    unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET)?;
    Ok(identity)
}

impl Identity {
    /// Lets user and group have the same numbers inside as outside.
    ///
    /// # Errors
    /// If the system does not permit it.
    pub fn keep(self) -> io::Result<()> {
        let Identity { user, group } = self;
        std::fs::write("/proc/self/setgroups", "deny")?;
        std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
        std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
    }
}

fn unshare(namespaces: libc::c_int) -> io::Result<()> {
    // SAFETY: no memory is handed over. What the thread shares with others (memory, descriptors) it goes on sharing, for
    // only flags of namespaces are passed.
    let rc = unsafe { libc::unshare(namespaces) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::cannot_be_tested;

    #[test]
    fn a_thread_has_a_network_of_its_own_where_that_is_permitted() {
        let network = || std::fs::read_link("/proc/thread-self/ns/net").unwrap();
        let ours = network();
        std::thread::spawn(move || match enter_network() {
            Ok(()) => {
                let new = (Network::current().unwrap(), network());
                assert_ne!(new.1, ours);
                enter_network().unwrap();
                assert_ne!(network(), new.1);
                new.0.enter().unwrap();
                assert_eq!(network(), new.1);
            }
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
                cannot_be_tested(error);
            }
        })
        .join()
        .unwrap();
    }
}
