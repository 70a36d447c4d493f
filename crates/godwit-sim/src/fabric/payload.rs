//! The bytes of a packet under way: only the first few and the tag, if there are nothing but zeros between.
//!
//! Bulk data of simulations is zeros. What is not kept need not be copied, and a hundred thousand packets under way take
//! little memory. Of a protected packet all is kept.

/// Bytes kept in any case: as many as headers and acknowledgements mostly take.
const HEAD: usize = 96;
/// So many at the end as well.
const TAIL: usize = 16;
/// What is between is compared with it, piece by piece.
static ZEROS: [u8; 1536] = [0; 1536];

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Payload {
    kept: Vec<u8>,
    len: usize,
}

impl Payload {
    /// Takes these bytes in place of those before.
    pub(crate) fn set(&mut self, bytes: &[u8]) {
        self.len = bytes.len();
        self.kept.clear();
        if let Some((head, rest)) = bytes.split_at_checked(HEAD)
            && let Some((middle, tail)) = rest.split_last_chunk::<TAIL>()
            && is_zero(middle)
        {
            self.kept.extend_from_slice(head);
            self.kept.extend_from_slice(tail);
        } else {
            self.kept.extend_from_slice(bytes);
        }
    }

    /// Their number, zeros included.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Writes them into `room`, which is as long as they are.
    pub(crate) fn copy_to(&self, room: &mut [u8]) {
        if self.kept.len() == self.len {
            return room.copy_from_slice(&self.kept);
        }
        let (kept_head, kept_tail) = self.kept.split_at(HEAD);
        let (head, rest) = room.split_at_mut(HEAD);
        let (middle, tail) = rest.split_at_mut(rest.len() - TAIL);
        head.copy_from_slice(kept_head);
        middle.fill(0);
        tail.copy_from_slice(kept_tail);
    }

    /// Lets `change` work on all of them. It may change their number.
    pub(crate) fn change<R>(&mut self, change: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        if self.kept.len() < self.len {
            let tail = self.kept.split_off(HEAD);
            self.kept.resize(self.len - TAIL, 0);
            self.kept.extend_from_slice(&tail);
        }
        let result = change(&mut self.kept);
        self.len = self.kept.len();
        result
    }
}

impl Clone for Payload {
    fn clone(&self) -> Self {
        Payload { kept: self.kept.clone(), len: self.len }
    }

    fn clone_from(&mut self, other: &Self) {
        self.kept.clone_from(&other.kept);
        self.len = other.len;
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    // The end first: that of a protected packet is its tag.
    bytes.rchunks(ZEROS.len()).all(|piece| ZEROS.starts_with(piece))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(payload: &Payload) -> Vec<u8> {
        let mut room = vec![9; payload.len()];
        payload.copy_to(&mut room);
        room
    }

    #[test]
    fn what_goes_in_comes_out() {
        let mut payload = Payload::default();
        const ENDS: usize = HEAD + TAIL;
        for len in [0, 1, HEAD, ENDS - 1, ENDS, ENDS + 1, ENDS + ZEROS.len(), 2 * (ENDS + ZEROS.len())] {
            for used in [0, 1, HEAD, HEAD + 1, len / 2, len.saturating_sub(TAIL), len] {
                let mut bytes = vec![0; len];
                bytes[..used.min(len)].fill(7);
                let tail = len.saturating_sub(TAIL);
                bytes[tail..].fill(8);
                payload.set(&bytes);
                let kept = if used > HEAD { len } else { len.min(ENDS) };
                assert_eq!((payload.kept.len(), copied(&payload)), (kept, bytes.clone()), "{len} {used}");
                payload.change(|all| assert_eq!(*all, bytes));
                assert_eq!(copied(&payload), bytes);
            }
        }
    }

    #[test]
    fn all_of_it_can_be_changed() {
        let mut payload = Payload::default();
        payload.set(&[1, 2, 0, 0]);
        assert!(payload.change(|bytes| std::mem::replace(&mut bytes[3], 4) == 0));
        assert_eq!(copied(&payload), [1, 2, 0, 4]);
        payload.change(|bytes| bytes.truncate(1));
        let mut copy = Payload::default();
        copy.clone_from(&payload);
        assert_eq!((copied(&copy), copied(&payload.clone())), (vec![1], vec![1]));
    }
}
