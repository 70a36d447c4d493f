//! A unidirectional stream of ours, which is opened when it first has something to carry (RFC 9114 section 6.2).

use crate::frame;
use crate::transport::{StreamError, Transport};
use bytes::{Bytes, BytesMut};
use godwit_wire::{Direction, StreamId};

/// The stream, and what it has not been able to carry yet.
#[derive(Debug)]
pub(super) struct Outlet {
    id: Option<StreamId>,
    /// What the transport has been offered and has not taken. It is not copied, however often it is offered.
    refused: Bytes,
    /// What is to follow.
    pending: BytesMut,
}

impl Outlet {
    /// A stream of this type, of which nothing has been sent.
    pub(super) fn new(stream_type: u64) -> Self {
        let mut pending = BytesMut::new();
        frame::put_varint(stream_type, &mut pending);
        Outlet { id: None, refused: Bytes::new(), pending }
    }

    /// The stream's id, once it is open.
    pub(super) fn id(&self) -> Option<StreamId> {
        self.id
    }

    /// True if this is the stream's id.
    pub(super) fn is(&self, id: StreamId) -> bool {
        self.id == Some(id)
    }

    /// Bytes that wait, beside the type of a stream that is not open.
    pub(super) fn held(&self) -> usize {
        let waits = self.refused.len().saturating_add(self.pending.len());
        waits.saturating_sub(usize::from(self.id.is_none()))
    }

    /// True if nothing waits, or only the type of a stream that has nothing to carry.
    pub(super) fn is_idle(&self) -> bool {
        self.held() == 0
    }

    /// What follows on all that was said before, to be added to.
    pub(super) fn pending(&mut self) -> &mut BytesMut {
        &mut self.pending
    }

    /// Opens the stream if need be and offers what waits. True if nothing is left.
    pub(super) fn flush(&mut self, io: &mut dyn Transport) -> Result<bool, StreamError> {
        if self.is_idle() {
            return Ok(true);
        }
        if self.id.is_none() {
            self.id = io.open(Direction::Unidirectional);
        }
        let Some(id) = self.id else { return Ok(false) };
        if !self.refused.is_empty() {
            io.write(id, &mut self.refused)?;
        }
        if self.refused.is_empty() && !self.pending.is_empty() {
            self.refused = self.pending.split().freeze();
            io.write(id, &mut self.refused)?;
        }
        Ok(self.held() == 0)
    }
}
