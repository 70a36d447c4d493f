//! The heads of HTTP/2 frames in a stream of bytes, however they are cut (RFC 9113 section 4.1).

/// Bytes of what a client sends before its first frame (RFC 9113 section 3.4).
pub(super) const PREFACE: usize = 24;
/// Bytes of a head.
pub(super) const HEAD: usize = 9;

/// What the head of a frame says, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: u8,
    pub(super) flags: u8,
    /// Bytes of the payload.
    pub(super) length: u64,
}

/// How far the bytes of one direction have come.
#[derive(Debug)]
pub(super) struct Heads {
    /// Bytes to pass over: of the preface or a payload.
    skip: usize,
    head: [u8; HEAD],
    /// Bytes of the head that are there.
    filled: usize,
}

impl Heads {
    /// Of what a client sends: its preface is first.
    pub(super) fn of_client() -> Heads {
        Heads { skip: PREFACE, ..Heads::of_server() }
    }

    /// Of what a server sends.
    pub(super) fn of_server() -> Heads {
        Heads { skip: 0, head: [0; HEAD], filled: 0 }
    }

    /// The next head that ends in `bytes`, of which what comes after it is left. `None`: all are taken.
    pub(super) fn next(&mut self, bytes: &mut &[u8]) -> Option<Head> {
        let skipped = self.skip.min(bytes.len());
        self.skip = self.skip.saturating_sub(skipped);
        *bytes = bytes.get(skipped..).unwrap_or_default();
        while let Some((first, rest)) = bytes.split_first() {
            *bytes = rest;
            if let Some(place) = self.head.get_mut(self.filled) {
                *place = *first;
            }
            self.filled = self.filled.saturating_add(1);
            if self.filled == HEAD {
                self.filled = 0;
                return Some(self.ended());
            }
        }
        None
    }

    fn ended(&mut self) -> Head {
        let [high, middle, low, kind, flags, ..] = self.head;
        let length = u32::from_be_bytes([0, high, middle, low]);
        self.skip = usize::try_from(length).unwrap_or(usize::MAX);
        Head { kind, flags, length: length.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_found_however_they_are_cut() {
        let frames = [&[0, 0, 3, 0, 1, 0, 0, 0, 1, 7, 7, 7][..], &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat();
        let expected =
            [Head { kind: 0, flags: 1, length: 3 }, Head { kind: 4, flags: 0, length: 0 }].repeat(10);
        for (preface, heads) in [(0, Heads::of_server as fn() -> Heads), (PREFACE, Heads::of_client)] {
            let sent = [vec![1; preface], frames.repeat(10)].concat();
            for size in 1..sent.len() {
                let (mut heads, mut found) = (heads(), Vec::new());
                for mut piece in sent.chunks(size) {
                    found.extend(std::iter::from_fn(|| heads.next(&mut piece)));
                }
                assert_eq!(found, expected, "in pieces of {size} bytes");
            }
        }
    }
}
