//! A connection and what the endpoint has to remember for it.

use super::demux::{Demux, Target};
use super::source::Source;
use super::{ConnKey, IncomingKey};
use crate::Connection;
use godwit_base::timer_queue::SlotKey;
use godwit_wire::{ConnectionId, ResetToken};
use std::net::SocketAddr;

/// One connection. It is boxed so that the slab stays small when connections have come and gone.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    pub(super) connection: Box<Connection>,
    /// The ids that lead to it; as many as the connection has issued.
    pub(super) cids: Vec<ConnectionId>,
    /// The id that the client chose for its first packets.
    pub(super) initial_dcid: Option<ConnectionId>,
    /// The newest of the peer's reset tokens, the oldest of them first.
    resets: Vec<(SocketAddr, ResetToken)>,
    /// Where the peer is that began the connection, or for which something is held.
    pub(super) source: Option<Source>,
    /// What it holds for the peer, as far as that counts.
    pub(super) held: u32,
    /// What it may hold since there is not enough for its network, in the same units; 0 if there is.
    pub(super) most_held: u32,
    /// It counts as half-open.
    pub(super) half_open: bool,
    /// It is in the queue of those that have something to send.
    pub(super) ready: bool,
    /// It has got datagrams of the present batch.
    pub(super) touched: bool,
    /// It is in the queue of those that may have events.
    pub(super) eventful: bool,
    /// It is among those whose timers are to be set.
    pub(super) untimed: bool,
    /// It is over: to be removed once its last event has been fetched.
    pub(super) drained: bool,
}

impl ConnectionSlot {
    /// A peer's reset tokens known at once: as many as ids of the peer may be in use.
    const MAX_RESETS: usize = 8;

    pub(super) fn new(
        connection: Connection,
        source: Option<Source>,
        initial_dcid: Option<ConnectionId>,
    ) -> Self {
        ConnectionSlot {
            connection: Box::new(connection),
            cids: Vec::new(),
            initial_dcid,
            resets: Vec::new(),
            source,
            held: 0,
            most_held: 0,
            half_open: false,
            ready: false,
            touched: false,
            eventful: false,
            untimed: false,
            drained: false,
        }
    }

    /// A datagram from `remote` that ends with `token` resets the connection from now on.
    pub(super) fn add_reset(
        &mut self,
        key: ConnKey,
        demux: &mut Demux,
        remote: SocketAddr,
        token: ResetToken,
    ) {
        if self.resets.contains(&(remote, token)) {
            return;
        }
        if self.resets.len() >= Self::MAX_RESETS {
            let (remote, token) = self.resets.remove(0);
            demux.remove_reset(remote, token, key);
        }
        // There are one or two of most peers.
        self.resets.reserve_exact(1);
        self.resets.push((remote, token));
        demux.insert_reset(remote, token, key);
    }

    /// No datagram resets the connection any more.
    pub(super) fn forget_resets(&mut self, key: ConnKey, demux: &mut Demux) {
        for (remote, token) in self.resets.drain(..) {
            demux.remove_reset(remote, token, key);
        }
    }

    /// Nothing that arrives is this connection's any more.
    pub(super) fn detach(&mut self, key: ConnKey, demux: &mut Demux) {
        for cid in self.cids.drain(..) {
            demux.remove_issued(&cid);
        }
        if let Some(dcid) = self.initial_dcid.take() {
            demux.remove_initial(&dcid, Target::Connection(key));
        }
        self.forget_resets(key, demux);
    }
}

impl SlotKey for ConnKey {
    fn slot(self) -> u32 {
        self.0.slot()
    }
}

impl SlotKey for IncomingKey {
    fn slot(self) -> u32 {
        self.0.slot()
    }
}
