//! What masks are made with one by one, in memory that goes from key to key.
//!
//! A handshake makes four keys at each end for a few packets. What the library of cryptography computes with is large, and
//! lies outside of the key; the memory is left to the next one of the same thread, without the key.

use crate::crypto::aead::quic::HeaderProtectionKey;
use std::cell::RefCell;

/// Pieces of memory kept by a thread at most, of half a kilobyte each.
const KEPT: usize = 64;

type Room = Box<Option<HeaderProtectionKey>>;

thread_local! {
    static ROOMS: RefCell<Vec<Room>> = const { RefCell::new(Vec::new()) };
}

/// See the module.
pub(super) struct Single(Option<Room>);

impl Single {
    /// `None` protects nothing.
    pub(super) fn new(key: Option<HeaderProtectionKey>) -> Self {
        let Some(key) = key else { return Single(None) };
        let kept = ROOMS.try_with(|rooms| rooms.try_borrow_mut().ok()?.pop());
        Single(Some(match kept.ok().flatten() {
            Some(mut room) => {
                *room = Some(key);
                room
            }
            None => Box::new(Some(key)),
        }))
    }

    #[inline]
    pub(super) fn key(&self) -> Option<&HeaderProtectionKey> {
        self.0.as_deref()?.as_ref()
    }
}

impl Drop for Single {
    fn drop(&mut self) {
        let Some(mut room) = self.0.take() else { return };
        // AWS-LC wipes it; ring leaves it, as it does in memory that is given back.
        *room = None;
        // The memory of a thread that ends is not kept.
        let _ = ROOMS.try_with(|rooms| {
            let mut rooms = rooms.try_borrow_mut().ok()?;
            (rooms.len() < KEPT).then(|| rooms.push(room))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::aead::quic::AES_128;

    fn kept() -> usize {
        ROOMS.with_borrow(Vec::len)
    }

    fn single() -> Single {
        Single::new(HeaderProtectionKey::new(&AES_128, &[7; 16]).ok())
    }

    #[test]
    fn memory_goes_to_the_next_key_without_the_last_one_and_not_too_much_is_kept() {
        let before = kept();
        let first = single();
        let at = std::ptr::from_ref(first.key().unwrap());
        drop(first);
        assert_eq!(kept(), before + 1);
        assert!(ROOMS.with_borrow(|rooms| rooms.iter().all(|room| room.is_none())));
        assert_eq!(std::ptr::from_ref(single().key().unwrap()), at);
        let many: Vec<Single> = (0..2 * KEPT).map(|_| single()).collect();
        assert_eq!(kept(), 0);
        drop(many);
        assert_eq!(kept(), KEPT);
        assert!(Single::new(None).key().is_none());
    }
}
