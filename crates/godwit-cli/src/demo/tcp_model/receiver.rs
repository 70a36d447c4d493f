//! What arrives, put in order.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Buf, Bytes};

/// The receiving half of one end.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    next: u64,
    /// What came early, by its first byte; pieces may overlap.
    early: BTreeMap<u64, Bytes>,
    ready: VecDeque<Bytes>,
}

impl Receiver {
    /// The first byte that has not come.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The ranges held above that, in order and apart.
    pub(super) fn held(&self) -> Vec<(u64, u64)> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for (start, data) in &self.early {
            let end = start + data.len() as u64;
            match ranges.last_mut() {
                Some(last) if last.1 >= *start => last.1 = last.1.max(end),
                _ => ranges.push((*start, end)),
            }
        }
        ranges
    }

    pub(super) fn on_data(&mut self, start: u64, data: Bytes) {
        if start + data.len() as u64 > self.next {
            self.early.insert(start, data);
        }
        while let Some(first) = self.early.first_entry().filter(|first| *first.key() <= self.next) {
            let (start, mut data) = first.remove_entry();
            let known = usize::try_from(self.next - start).unwrap_or(usize::MAX);
            if known < data.len() {
                data.advance(known);
                self.next += data.len() as u64;
                self.ready.push_back(data);
            }
        }
    }

    pub(super) fn read(&mut self) -> Option<Bytes> {
        self.ready.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_in_order_and_once() {
        let mut receiver = Receiver::default();
        let piece = |text: &'static str| Bytes::from_static(text.as_bytes());
        receiver.on_data(6, piece("gh"));
        receiver.on_data(2, piece("cd"));
        receiver.on_data(3, piece("de"));
        assert_eq!((receiver.next(), receiver.held()), (0, vec![(2, 5), (6, 8)]));
        assert_eq!(receiver.read(), None);
        receiver.on_data(0, piece("ab"));
        receiver.on_data(0, piece("ab"));
        assert_eq!((receiver.next(), receiver.held()), (5, vec![(6, 8)]));
        receiver.on_data(5, piece("f"));
        let text: Vec<u8> = std::iter::from_fn(|| receiver.read()).flatten().collect();
        assert_eq!((text.as_slice(), receiver.next()), (&b"abcdefgh"[..], 8));
    }
}
