//! Shares of key exchanges that are made before they are needed.
//!
//! Who waits for the other end of a handshake has time to make the secret of the next one: [`make_key_share_ready`] does, once
//! for each group that the thread has used. The next handshake takes it in place of making one while the peer waits.
//!
//! Invariants: a share is used once. One at the most is ready for each group and thread, only while that thread lives, and only
//! in the process that has made it: a process that is forked off makes its own. It is overwritten as rustls overwrites its own.

use rustls::crypto::{ActiveKeyExchange, CompletedKeyExchange, SupportedKxGroup};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, ProtocolVersion};
use std::cell::RefCell;

/// A group of rustls whose next share may be ready.
#[derive(Debug)]
pub(super) struct ReadyGroup(&'static dyn SupportedKxGroup);

/// What is kept of a group that was used.
struct Used {
    group: &'static dyn SupportedKxGroup,
    process: u32,
    next: Option<Box<dyn ActiveKeyExchange>>,
}

thread_local! {
    /// As many as there are groups that have shares ready.
    static USED: RefCell<Vec<Used>> = const { RefCell::new(Vec::new()) };
}

impl ReadyGroup {
    /// The same group, for the groups for which that pays: those that are used by default.
    pub(super) fn over(group: &'static dyn SupportedKxGroup) -> &'static dyn SupportedKxGroup {
        match group.name() {
            NamedGroup::X25519 | NamedGroup::X25519MLKEM768 => Box::leak(Box::new(ReadyGroup(group))),
            _ => group,
        }
    }

    /// Takes the share that is ready, and notes that the group is used.
    fn take(&self) -> Option<Box<dyn ActiveKeyExchange>> {
        let process = std::process::id();
        let take = |used: &RefCell<Vec<Used>>| {
            let mut used = used.borrow_mut();
            match used.iter_mut().find(|used| used.group.name() == self.0.name()) {
                Some(used) => {
                    let ready = used.next.take().filter(|_| used.process == process);
                    used.process = process;
                    ready
                }
                None => {
                    used.push(Used { group: self.0, process, next: None });
                    None
                }
            }
        };
        USED.try_with(take).ok().flatten()
    }
}

/// Makes the share of a key exchange ready for the next handshake of this thread, if the thread has used one that was: for who has
/// nothing else to do. It takes some tens of microseconds, once for each handshake. False if there was nothing to make.
pub fn make_key_share_ready() -> bool {
    let wanted = |used: &RefCell<Vec<Used>>| {
        used.borrow().iter().find(|used| used.next.is_none()).map(|used| used.group)
    };
    let Some(group) = USED.try_with(wanted).ok().flatten() else { return false };
    // What cannot be made now is made when it is needed, or fails then.
    let Ok(share) = group.start() else { return false };
    let put = |used: &RefCell<Vec<Used>>| {
        let mut used = used.borrow_mut();
        if let Some(used) = used.iter_mut().find(|used| used.group.name() == group.name()) {
            (used.process, used.next) = (std::process::id(), Some(share));
        }
    };
    USED.try_with(put).is_ok()
}

impl SupportedKxGroup for ReadyGroup {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        match self.take() {
            Some(share) => Ok(share),
            None => self.0.start(),
        }
    }

    /// What a server does. For X25519 that is a share of its own and then what the client's gives with it; a hybrid cannot
    /// begin before it has the client's.
    fn start_and_complete(&self, peer_pub_key: &[u8]) -> Result<CompletedKeyExchange, Error> {
        if self.0.name() != NamedGroup::X25519 {
            return self.0.start_and_complete(peer_pub_key);
        }
        let share = self.start()?;
        let (group, pub_key) = (share.group(), share.pub_key().to_vec());
        Ok(CompletedKeyExchange { group, pub_key, secret: share.complete(peer_pub_key)? })
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        self.0.ffdhe_group()
    }

    fn name(&self) -> NamedGroup {
        self.0.name()
    }

    fn fips(&self) -> bool {
        self.0.fips()
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        self.0.usable_for_version(version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn groups() -> Vec<&'static dyn SupportedKxGroup> {
        let provider = crate::provider();
        let ready = [NamedGroup::X25519, NamedGroup::X25519MLKEM768];
        provider.kx_groups.iter().copied().filter(|group| ready.contains(&group.name())).collect()
    }

    fn next(group: &dyn SupportedKxGroup) -> Option<Vec<u8>> {
        let is = |used: &&Used| used.group.name() == group.name();
        USED.with_borrow(|used| used.iter().find(is)?.next.as_ref().map(|share| share.pub_key().to_vec()))
    }

    #[test]
    fn a_share_that_is_ready_is_used_once() {
        for group in groups() {
            let _ = make_key_share_ready();
            assert_eq!(next(group), None, "nobody has used the group");
            let first = group.start().unwrap().pub_key().to_vec();
            let _ = make_key_share_ready();
            let ready = next(group).unwrap();
            let _ = make_key_share_ready();
            assert_eq!(next(group).as_ref(), Some(&ready), "one is enough");
            assert_eq!(group.start().unwrap().pub_key(), ready);
            assert_eq!(next(group), None);
            let third = group.start().unwrap().pub_key().to_vec();
            assert!(first != ready && third != ready && third != first);
        }
    }

    #[test]
    fn a_share_of_another_process_is_not_used() {
        for group in groups() {
            group.start().unwrap();
            let _ = make_key_share_ready();
            let ready = next(group).unwrap();
            USED.with_borrow_mut(|used| used.iter_mut().for_each(|used| used.process ^= 1));
            assert_ne!(group.start().unwrap().pub_key(), ready);
            let _ = make_key_share_ready();
            assert_ne!(next(group).unwrap(), ready);
        }
    }

    #[test]
    fn a_share_stays_on_its_thread() {
        for group in groups() {
            group.start().unwrap();
            let _ = make_key_share_ready();
            let ready = next(group).unwrap();
            let other = std::thread::spawn(move || group.start().unwrap().pub_key().to_vec()).join().unwrap();
            assert_ne!(other, ready);
            assert_eq!(next(group), Some(ready));
        }
    }

    #[test]
    fn both_ends_agree_whether_or_not_their_shares_were_ready() {
        for group in groups() {
            for _ in 0..3 {
                let client = group.start().unwrap();
                let _ = make_key_share_ready();
                let server = group.start_and_complete(client.pub_key()).unwrap();
                let secret = client.complete(&server.pub_key).unwrap();
                assert_eq!(secret.secret_bytes(), server.secret.secret_bytes());
                assert_eq!(server.group, group.name());
                let _ = make_key_share_ready();
            }
        }
    }

    #[test]
    fn the_provider_has_the_groups_that_rustls_has() {
        let names = |provider: &rustls::crypto::CryptoProvider| {
            let mut names: Vec<_> = provider.kx_groups.iter().map(|group| u16::from(group.name())).collect();
            names.sort_unstable();
            names
        };
        assert_eq!(names(&Arc::unwrap_or_clone(crate::provider())), names(&crate::rustls_provider()));
    }
}
