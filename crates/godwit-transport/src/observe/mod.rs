//! Watching a connection: what can be seen, who sees it, and at what price.
//!
//! [`TransportEvent`] declares what happens on a connection, once for all consumers; [`crate::qlog`] is one
//! of them. An [`Observer`] says at the start which kinds of events it wants. Of the others nothing is
//! computed: an event is built only after its bit in the mask has been found set, so that a connection
//! without an observer pays one load and one branch where an event could have been.
//!
//! Observers only watch: nothing that they do changes what is sent or when.

mod events;
mod frames;
mod values;

pub(crate) use events::stream_type;
pub use events::{TransportEvent, TransportEventKind};
pub use frames::FrameList;
pub use values::{
    Alpn, Changes, Cid, CloseTrigger, CongestionState, ConnectionState, DropTrigger, EcnName, ErrorName,
    Initiator, KeyName, KeyTrigger, LossTrigger, MigrationState, PacketHeader, PacketName, Parameters,
    RawInfo, Recovery, Stream, StreamSide, StreamState, TextBytes, TupleEndpoint, Version, Versions,
};

use godwit_base::event::Mask;
use godwit_base::{Time, WallTime};
use godwit_wire::{ConnectionId, Side};
use std::fmt;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A set of kinds of [`TransportEvent`].
pub type TransportMask = Mask<TransportEventKind>;

/// What watches one connection.
pub trait Observer {
    /// The kinds of events that it wants to be told. They stay the same.
    fn mask(&self) -> TransportMask;

    /// Something happened. `now` never falls.
    fn on_event(&mut self, now: Time, event: &TransportEvent<'_>);
}

/// Two that watch the same connection. Each is told what it asked for.
struct Both {
    first: Box<dyn Observer + Send>,
    second: Box<dyn Observer + Send>,
}

impl Observer for Both {
    fn mask(&self) -> TransportMask {
        self.first.mask().union(self.second.mask())
    }

    fn on_event(&mut self, now: Time, event: &TransportEvent<'_>) {
        for observer in [&mut self.first, &mut self.second] {
            if observer.mask().intersects(event.kind().mask()) {
                observer.on_event(now, event);
            }
        }
    }
}

/// What is known of a connection when it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObserverInfo {
    /// Which end is watched.
    pub side: Side,
    /// The Destination Connection ID of the client's very first packet: the name of the connection at both
    /// ends.
    pub original_dcid: ConnectionId,
    /// The peer's address.
    pub remote: SocketAddr,
    /// The time of day, if the endpoint has been told it already.
    pub wall: Option<WallTime>,
}

type Make = dyn Fn(&ObserverInfo) -> Option<Box<dyn Observer + Send>> + Send + Sync;

/// Decides for each new connection whether it is watched, and by whom. By default none is.
#[derive(Clone, Default)]
pub struct ObserverFactory {
    make: Option<Arc<Make>>,
}

impl ObserverFactory {
    /// Asks `make` for every connection that begins, at either end.
    pub fn new(
        make: impl Fn(&ObserverInfo) -> Option<Box<dyn Observer + Send>> + Send + Sync + 'static,
    ) -> Self {
        ObserverFactory { make: Some(Arc::new(make)) }
    }

    /// Asks these and `other`: a connection may have an observer of each.
    #[must_use]
    pub fn and(self, other: ObserverFactory) -> Self {
        if !self.is_set() || !other.is_set() {
            return if self.is_set() { self } else { other };
        }
        ObserverFactory::new(move |info| match (self.observer(info), other.observer(info)) {
            (Some(first), Some(second)) => Some(Box::new(Both { first, second })),
            (first, second) => first.or(second),
        })
    }

    /// True if connections may be watched.
    pub const fn is_set(&self) -> bool {
        self.make.is_some()
    }

    /// True if both ask the same, or nobody.
    #[must_use]
    pub fn is_same_as(&self, other: &ObserverFactory) -> bool {
        match (&self.make, &other.make) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }

    /// The observer of a connection, if it gets one.
    pub fn observer(&self, info: &ObserverInfo) -> Option<Box<dyn Observer + Send>> {
        let make = self.make.as_ref()?;
        without_panic(|| make(info))?
    }
}

/// Calls what the application has installed. `None` if that panicked: it is to cost no connection, and those beside it even
/// less. The process's panic hook has told of it.
pub(crate) fn without_panic<T>(call: impl FnOnce() -> T) -> Option<T> {
    // Nothing of ours is left half done: observers only look.
    catch_unwind(AssertUnwindSafe(call)).map_err(std::mem::forget).ok()
}

impl fmt::Debug for ObserverFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObserverFactory").field("is_set", &self.is_set()).finish()
    }
}
