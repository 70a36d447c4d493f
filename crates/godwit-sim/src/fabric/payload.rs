//! The bytes of a packet under way: only the first few and the tag, if there are nothing but zeros between.
//!
//! Bulk data of simulations is zeros. What is not kept need not be copied, and a hundred thousand packets under way take
//! little memory: in place, for packets wait in order of arrival, and memory that is read in order is read fast. Of a
//! protected packet all is kept.

/// Bytes kept in any case: as many as headers mostly take.
const HEAD: usize = 48;
/// So many at the end as well.
const TAIL: usize = 16;
/// What is between is compared with it, piece by piece.
static ZEROS: [u8; 1536] = [0; 1536];

/// See the module.
#[derive(Debug)]
pub(crate) enum Payload {
    /// The two ends of so many bytes, with zeros between.
    Ends(usize, [u8; HEAD], [u8; TAIL]),
    /// The first so many of these: most acknowledgements are no longer.
    Short(u8, [u8; HEAD + TAIL]),
    /// All of them.
    All(Vec<u8>),
}

impl Payload {
    /// Keeps these bytes; in `buffer`, if they are many.
    pub(crate) fn new(bytes: &[u8], buffer: impl FnOnce() -> Vec<u8>) -> Self {
        if let Some((head, rest)) = bytes.split_first_chunk()
            && let Some((middle, tail)) = rest.split_last_chunk()
        {
            if is_zero(middle) {
                return Payload::Ends(bytes.len(), *head, *tail);
            }
        } else {
            let mut short = [0; HEAD + TAIL];
            for (to, from) in short.iter_mut().zip(bytes) {
                *to = *from;
            }
            return Payload::Short(bytes.len() as u8, short);
        }
        let mut all = buffer();
        all.clear();
        all.extend_from_slice(bytes);
        Payload::All(all)
    }

    /// Their number, zeros included.
    pub(crate) const fn len(&self) -> usize {
        match self {
            Payload::Ends(len, ..) => *len,
            Payload::Short(len, _) => *len as usize,
            Payload::All(bytes) => bytes.len(),
        }
    }

    /// Writes them into `room`, which is as long as they are.
    pub(crate) fn copy_to(&self, room: &mut [u8]) {
        match self {
            Payload::All(bytes) => room.copy_from_slice(bytes),
            Payload::Short(_, bytes) => {
                for (to, from) in room.iter_mut().zip(bytes) {
                    *to = *from;
                }
            }
            Payload::Ends(_, head, tail) => {
                if let Some((room_for_head, rest)) = room.split_first_chunk_mut()
                    && let Some((middle, room_for_tail)) = rest.split_last_chunk_mut()
                {
                    (*room_for_head, *room_for_tail) = (*head, *tail);
                    middle.fill(0);
                }
            }
        }
    }

    /// Lets `change` work on all of them. It may change their number.
    pub(crate) fn change<R>(&mut self, change: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let mut all = vec![0; self.len()];
        self.copy_to(&mut all);
        let result = change(&mut all);
        *self = Payload::All(all);
        result
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
        const ENDS: usize = HEAD + TAIL;
        for len in [0, 1, HEAD, ENDS - 1, ENDS, ENDS + 1, ENDS + ZEROS.len(), 2 * (ENDS + ZEROS.len())] {
            for used in [0, 1, HEAD, HEAD + 1, len / 2, len.saturating_sub(TAIL), len] {
                let mut bytes = vec![0; len];
                bytes[..used.min(len)].fill(7);
                let tail = len.saturating_sub(TAIL);
                bytes[tail..].fill(8);
                let mut payload = Payload::new(&bytes, || vec![3; 5]);
                let zeros = len >= ENDS && bytes[HEAD..tail].iter().all(|byte| *byte == 0);
                let in_place = match payload {
                    Payload::Ends(..) => zeros,
                    Payload::Short(..) => len < ENDS,
                    Payload::All(_) => !zeros && len >= ENDS,
                };
                assert!(in_place, "{len} {used}");
                assert_eq!(copied(&payload), bytes);
                payload.change(|all| assert_eq!(*all, bytes));
                assert_eq!(copied(&payload), bytes);
            }
        }
    }

    #[test]
    fn all_of_it_can_be_changed() {
        for len in [30, 200] {
            let mut payload = Payload::new(&vec![0; len], Vec::new);
            assert!(payload.change(|bytes| std::mem::replace(&mut bytes[20], 4) == 0));
            assert_eq!((copied(&payload)[20], payload.len()), (4, len));
            payload.change(|bytes| bytes.truncate(1));
            assert_eq!(copied(&payload), [0]);
        }
    }
}
