//! How many received bytes may be lent to the application at a time: what makes the other side wait when the application
//! does.
//!
//! A piece counts as [`LEAST`] bytes at least, since the event that brings it needs about as many; otherwise a peer that
//! sends single bytes would have hundreds of them kept for each.

use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What a piece counts as at least, in bytes: an event, what it lends, and the allocations of both.
pub(crate) const LEAST: u32 = 512;

/// Pieces up to this many bytes are copied, so that they do not keep the packet that brought them.
const COPIED: usize = 1024;

/// Room for received bytes of one exchange, stream or connection.
pub(crate) struct Intake {
    room: Arc<Semaphore>,
    limit: u32,
}

impl Intake {
    /// Room for so many bytes; for `usual` if that is zero.
    pub(crate) fn new(limit: u64, usual: u32) -> Intake {
        let limit = if limit == 0 { usual } else { u32::try_from(limit).unwrap_or(u32::MAX) };
        let limit = limit.min(u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX));
        Intake { room: Arc::new(Semaphore::new(limit as usize)), limit }
    }

    /// Waits until there is room for a piece, and takes it until what is returned is dropped. What is larger than all of the
    /// room takes all of it.
    pub(crate) async fn admit(&self, piece: &mut Bytes) -> Option<OwnedSemaphorePermit> {
        if piece.len() <= COPIED {
            *piece = Bytes::copy_from_slice(piece);
        }
        let room = u32::try_from(piece.len()).unwrap_or(u32::MAX).max(LEAST).min(self.limit);
        // It is never closed.
        Arc::clone(&self.room).acquire_many_owned(room).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn try_admit(intake: &Intake, piece: &mut Bytes) -> Option<OwnedSemaphorePermit> {
        match pin!(intake.admit(piece)).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(permit) => permit,
            Poll::Pending => None,
        }
    }

    #[test]
    fn small_pieces_count_as_what_they_cost() {
        let intake = Intake::new(u64::from(LEAST) * 3, 1);
        let packet = Bytes::from(vec![7; 1200]);
        let mut kept = Vec::new();
        for _ in 0..3 {
            let mut piece = packet.slice(..1);
            kept.push(try_admit(&intake, &mut piece).expect("there is room"));
            assert_eq!(*piece, [7]);
        }
        assert!(try_admit(&intake, &mut packet.slice(..1)).is_none());
        assert!(packet.is_unique(), "no piece keeps the packet");
        kept.pop();
        assert!(try_admit(&intake, &mut packet.slice(..600)).is_none(), "600 bytes count as 600");
        assert!(try_admit(&intake, &mut packet.slice(..LEAST as usize)).is_some());
    }

    #[test]
    fn what_is_larger_than_the_room_takes_all_of_it() {
        let intake = Intake::new(100, 1);
        let whole = try_admit(&intake, &mut Bytes::from(vec![1; 5000]));
        assert!(whole.is_some() && try_admit(&intake, &mut Bytes::from_static(b"x")).is_none());
        drop(whole);
        assert!(try_admit(&intake, &mut Bytes::from_static(b"x")).is_some());
    }

    #[test]
    fn an_event_with_a_piece_needs_no_more_than_it_counts_as() {
        let both = size_of::<crate::event::Event>() + size_of::<crate::lease::Lent>();
        assert!(both <= LEAST as usize, "{both} bytes");
    }
}
