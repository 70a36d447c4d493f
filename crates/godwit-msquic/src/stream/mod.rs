//! Streams, as the application holds them.
//!
//! A stream begins as a handle only; it has an id from when it is started, and is known to the transport from when the peer
//! permits it. It is over when both directions are, and everything lent for sending has been given back: that is told last.
//! The handle stays until it is closed.

mod copied;
mod kept;
mod lent;
mod own_memory;
mod receive;
mod receiving;
mod send;
mod sending;
mod shutdown;
mod spare;
mod start;

pub(crate) use lent::{GivenBack, Loan};
pub(crate) use receiving::{Receiving, Shown};
pub(crate) use sending::{Request, Sending};
pub(crate) use spare::SpareMemory;

use crate::abi::{StreamCallbackHandler, StreamStartFlags};
use crate::context::Context;
use crate::worker::Gate;
use godwit_base::slab::Key;
use godwit_transport::{Direction, StreamId};
use std::sync::Arc;

/// A stream.
pub(crate) struct Stream {
    /// The connection that it belongs to.
    pub(crate) connection: Key,
    /// Its number among those of the connection.
    pub(crate) number: u64,
    pub(crate) direction: Direction,
    /// This end has opened it.
    pub(crate) is_local: bool,
    pub(crate) handler: StreamCallbackHandler,
    pub(crate) context: Context,
    /// The application knows of it. One that the peer began, and that it has not been told of, is nobody's.
    pub(crate) is_owned: bool,
    /// From when it is started.
    pub(crate) id: Option<StreamId>,
    pub(crate) start: Start,
    pub(crate) start_flags: StreamStartFlags,
    pub(crate) sending: Sending,
    pub(crate) receiving: Receiving,
    /// The application is being told that the peer has begun it.
    pub(crate) is_being_shown: bool,
    /// That it is over has been told, or will be next.
    pub(crate) is_complete: bool,
    /// It is over as soon as everything lent has been given back, whether it has begun or not.
    pub(crate) ends_at_once: bool,
    /// The handle is closed: nothing is told but what is in the queue already.
    pub(crate) is_closed: bool,
    /// Who waits until all of that has been told.
    pub(crate) closing: Option<Arc<Gate>>,
    /// It counts against the peer's limit until then.
    pub(crate) holds_place: bool,
    pub(crate) priority: u16,
    /// Up to where the peer gets what was sent, although the stream is reset.
    pub(crate) reliable_offset: Option<u64>,
    /// With what the peer is to be told that directions were given up, once the transport knows the stream.
    pub(crate) abort_codes: AbortCodes,
}

/// Application error codes that the peer has not been told yet.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AbortCodes {
    pub(crate) send: Option<u64>,
    /// What was made reliable is to arrive although sending is given up.
    pub(crate) leaves_part: bool,
    pub(crate) receive: Option<u64>,
}

impl AbortCodes {
    /// There is nothing to tell.
    pub(crate) const fn is_empty(&self) -> bool {
        self.send.is_none() && self.receive.is_none()
    }
}

/// How far a stream has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// It is a handle only.
    No,
    /// It has an id, and the peer does not permit it yet.
    Blocked,
    /// The transport knows it.
    Open,
}

impl Stream {
    /// The priority of streams that are not given another.
    pub(crate) const DEFAULT_PRIORITY: u16 = 0x7fff;

    /// A stream that this end may start.
    pub(crate) fn local(
        connection: Key,
        direction: Direction,
        handler: StreamCallbackHandler,
        context: Context,
    ) -> Self {
        Stream {
            connection,
            number: 0,
            direction,
            is_local: true,
            handler,
            context,
            is_owned: true,
            id: None,
            start: Start::No,
            start_flags: StreamStartFlags::NONE,
            sending: Sending::new(true),
            receiving: Receiving::new(direction == Direction::Bidirectional),
            is_being_shown: false,
            is_complete: false,
            ends_at_once: false,
            is_closed: false,
            closing: None,
            holds_place: false,
            priority: Self::DEFAULT_PRIORITY,
            reliable_offset: None,
            abort_codes: AbortCodes::default(),
        }
    }

    /// A stream that the peer has begun.
    pub(crate) fn of_peer(connection: Key, id: StreamId) -> Self {
        let direction = id.direction();
        Stream {
            is_local: false,
            is_owned: false,
            id: Some(id),
            start: Start::Open,
            sending: Sending::new(direction == Direction::Bidirectional),
            receiving: Receiving::new(true),
            ..Self::local(connection, direction, None, Context::NONE)
        }
    }

    /// The transport's name for it, if it knows it.
    pub(crate) fn open_id(&self) -> Option<StreamId> {
        self.id.filter(|_| self.start == Start::Open)
    }
}
