//! Network namespaces of one's own, for experiments with links that exist nowhere else.
//!
//! The calling thread leaves its namespaces for good, and threads that it starts afterwards are in the new ones; other
//! threads stay where they are. A namespace vanishes with the last thread in it.

use crate::user;
use std::io;

/// User and group of the process, by which it is to be known inside of a user namespace as well.
#[derive(Debug)]
#[must_use = "a process without numbers of its own owns none of its files"]
pub struct Identity {
    user: u32,
    group: u32,
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

    #[test]
    fn a_thread_has_a_network_of_its_own_where_that_is_permitted() {
        let network = || std::fs::read_link("/proc/thread-self/ns/net").unwrap();
        let ours = network();
        std::thread::spawn(move || match enter_network() {
            Ok(()) => assert_ne!(network(), ours),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
        })
        .join()
        .unwrap();
    }
}
