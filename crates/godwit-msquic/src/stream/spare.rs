//! Memory of streams that are gone, for those that come: most need no more than the one before.

use super::Stream;

/// Streams whose memory is kept, at most.
const MOST: usize = 128;

/// Of streams that had more than so many of something at once, it is not kept.
const LARGEST: usize = 16;

/// See the module.
#[derive(Default)]
#[expect(clippy::vec_box, reason = "streams stay where they are, which are large, and so does their memory")]
pub(crate) struct SpareMemory(Vec<Box<Stream>>);

impl SpareMemory {
    /// A place for a stream that nothing has happened on.
    pub(crate) fn place(&mut self, stream: Stream) -> Box<Stream> {
        let Some(mut place) = self.0.pop() else { return Box::new(stream) };
        let unsent = std::mem::take(&mut place.sending.queue);
        let outstanding = std::mem::take(&mut place.sending.outstanding);
        let held = std::mem::take(&mut place.receiving.held);
        *place = stream;
        (place.sending.queue, place.sending.outstanding) = (unsent, outstanding);
        place.receiving.held = held;
        place
    }

    /// A stream is gone, and lets go of everything.
    pub(crate) fn keep(&mut self, mut stream: Box<Stream>) {
        stream.sending.queue.clear();
        stream.sending.outstanding.clear();
        stream.receiving.clear();
        let largest = stream.sending.queue.capacity().max(stream.sending.outstanding.capacity());
        let largest = largest.max(stream.receiving.held.capacity());
        if self.0.len() < MOST && largest <= LARGEST {
            self.0.push(stream);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sending::Unsent;
    use super::*;
    use crate::context::Context;
    use bytes::Bytes;
    use godwit_base::Slab;
    use godwit_transport::Direction;

    #[test]
    fn the_next_stream_has_the_memory_of_the_last_and_nothing_of_what_was_in_it() {
        let stream = || Stream::local(Slab::new().insert(()), Direction::Bidirectional, None, Context::NONE);
        let mut spare = SpareMemory::default();
        let mut first = spare.place(stream());
        for _ in 0..3 {
            first.sending.queue.push_back(Unsent {
                bytes: Bytes::new(),
                may_be_early: false,
                is_copied: false,
            });
        }
        first.is_closed = true;
        spare.keep(first);
        let mut second = spare.place(stream());
        assert!(!second.is_closed && second.sending.queue.is_empty());
        assert!(second.sending.queue.capacity() >= 3);
        second.sending.queue.reserve(LARGEST + 1);
        spare.keep(second);
        assert!(spare.0.is_empty(), "it is larger than most need");
    }
}
