//! Memory of streams that are gone, for those that come: most need no more than the one before.

use super::Stream;
use super::sending::{Outstanding, Unsent};
use bytes::Bytes;
use std::collections::VecDeque;

/// Streams whose memory is kept, at most.
const MOST: usize = 128;

/// Of streams that had more than so many of something at once, it is not kept.
const LARGEST: usize = 16;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct SpareMemory(Vec<Memory>);

/// What a stream needs for what it has several of. There is nothing in it.
#[derive(Debug)]
struct Memory {
    unsent: VecDeque<Unsent>,
    outstanding: VecDeque<Outstanding>,
    held: VecDeque<Bytes>,
}

impl SpareMemory {
    /// A stream comes, which has nothing yet.
    pub(crate) fn give_to(&mut self, stream: &mut Stream) {
        let Some(Memory { unsent, outstanding, held }) = self.0.pop() else { return };
        (stream.sending.queue, stream.sending.outstanding) = (unsent, outstanding);
        stream.receiving.use_memory(held);
    }

    /// A stream is gone.
    pub(crate) fn take_from(&mut self, stream: Stream) {
        let Stream { sending, receiving, .. } = stream;
        let (mut unsent, mut outstanding) = (sending.queue, sending.outstanding);
        let mut held = receiving.into_memory();
        unsent.clear();
        outstanding.clear();
        held.clear();
        let largest = unsent.capacity().max(outstanding.capacity()).max(held.capacity());
        if self.0.len() < MOST && largest <= LARGEST {
            self.0.push(Memory { unsent, outstanding, held });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use godwit_base::Slab;
    use godwit_transport::Direction;

    #[test]
    fn the_next_stream_has_the_memory_of_the_last_and_nothing_of_what_was_in_it() {
        let stream =
            || Stream::local(Slab::new().insert(()), Direction::Bidirectional, None, Context::new(std::ptr::null_mut()));
        let mut spare = SpareMemory::default();
        let mut first = stream();
        for _ in 0..3 {
            first.sending.queue.push_back(Unsent { bytes: Bytes::new(), may_be_early: false });
        }
        spare.take_from(first);
        let mut second = stream();
        spare.give_to(&mut second);
        assert!(second.sending.queue.is_empty());
        assert!(second.sending.queue.capacity() >= 3);
        second.sending.queue.reserve(LARGEST + 1);
        spare.take_from(second);
        assert!(spare.0.is_empty(), "it is larger than most need");
    }
}
