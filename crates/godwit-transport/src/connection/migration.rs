//! Moving a connection by this end's will (RFC 9000 sections 9.2, 9.5 and 9.6), and what is told of paths.
//!
//! Only clients move, only once the handshake is confirmed, and never to a path without a connection id of its
//! own: a move that was requested too early waits. The new path is validated while data goes on along the old
//! one; the switch follows the peer's answer, and if none comes, nothing has changed.

use super::{Machine, stats};
use crate::Event;
use crate::path::{PathId, PathKey, PathState, PathUpdate};
use godwit_base::{SocketId, Time};
use godwit_wire::transport_parameters::PreferredAddress;
use godwit_wire::{ConnectionId, Side};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// A path on which so many probe timeouts in a row brought nothing back is taken for dead.
const DEAD_AFTER: u32 = 2;

/// What is wanted of paths.
#[derive(Debug)]
pub(super) struct Migration {
    /// The number for the next path's recovery state.
    next_recovery_id: u16,
    /// Where the application wants this end to be.
    requested: Option<(SocketId, Option<IpAddr>)>,
    /// Where the server would rather be reached.
    preferred: Option<SocketAddr>,
    /// The id of ours to which the peer's newest packet on the active path went.
    peer_sends_to: ConnectionId,
    /// The active path goes on with the id of the one before, for want of another.
    pub(super) shares_id: bool,
    /// The peer's address of the handshake, if it does not support that the client leaves it.
    pinned_to: Option<Box<SocketAddr>>,
    /// The path that was last told to be active.
    pub(super) announced_active: PathId,
    /// The path that was last told to be active and validated.
    announced_validated: PathId,
}

impl Migration {
    pub(super) const fn new() -> Self {
        Migration {
            next_recovery_id: 0,
            requested: None,
            preferred: None,
            peer_sends_to: ConnectionId::EMPTY,
            shares_id: false,
            pinned_to: None,
            announced_active: PathId(0),
            announced_validated: PathId(0),
        }
    }

    /// A number that tells the packets of one path from those of others.
    pub(super) fn next_recovery_id(&mut self) -> u16 {
        self.next_recovery_id = self.next_recovery_id.wrapping_add(1);
        self.next_recovery_id
    }

    /// The peer's newest packet on the active path went to this id of ours.
    #[inline]
    pub(super) const fn on_newest(&mut self, cid: ConnectionId) {
        self.peer_sends_to = cid;
    }

    /// The peer said where it may be reached: whether the path of the handshake may be left, and for what.
    pub(super) fn on_peer_parameters(
        &mut self,
        handshake: SocketAddr,
        disabled: bool,
        preferred: Option<PreferredAddress>,
    ) {
        self.pinned_to = disabled.then(|| Box::new(handshake));
        // The other family may be out of this socket's reach.
        self.preferred = preferred.and_then(|preferred| match handshake {
            SocketAddr::V4(_) => preferred.ipv4.map(SocketAddr::V4),
            SocketAddr::V6(_) => preferred.ipv6.map(SocketAddr::V6),
        });
    }

    /// Whether the peer supports that packets come from another address to `remote`.
    fn is_allowed_to(&self, remote: SocketAddr) -> bool {
        self.pinned_to.as_deref() != Some(&remote)
    }
}

/// Why a connection does not move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MigrateError {
    /// Only clients move (RFC 9000 section 9).
    NotClient,
    /// The connection is over.
    Closed,
    /// The server does not support it: it said so (disable_active_migration), or its packets carry no
    /// connection id by which it could know them from another address.
    Unsupported,
    /// The endpoint has no socket with the address.
    NoSocket,
}

impl fmt::Display for MigrateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MigrateError::NotClient => "only clients change their address",
            MigrateError::Closed => "the connection is over",
            MigrateError::Unsupported => "the server does not support that clients change their address",
            MigrateError::NoSocket => "the endpoint has no socket with this address",
        })
    }
}

impl std::error::Error for MigrateError {}

impl Machine {
    /// See [`crate::Connection::migrate`].
    pub(crate) fn migrate(
        &mut self,
        now: Time,
        socket: SocketId,
        local: Option<IpAddr>,
    ) -> Result<(), MigrateError> {
        if self.side == Side::Server {
            return Err(MigrateError::NotClient);
        }
        if !self.lifecycle.is_open() {
            return Err(MigrateError::Closed);
        }
        let anonymous = self.negotiation.has_peer_parameters() && self.parts.remote_cids.active().is_empty();
        let remote = self.migration.preferred.unwrap_or(self.paths.active().key().remote);
        if anonymous || !self.migration.is_allowed_to(remote) {
            return Err(MigrateError::Unsupported);
        }
        self.migration.requested = Some((socket, local));
        self.pursue_move(now);
        Ok(())
    }

    /// Begins to validate the path that is wanted, if there is one and it is time.
    pub(super) fn pursue_move(&mut self, now: Time) {
        let Migration { requested, preferred, .. } = self.migration;
        if (requested.is_none() && preferred.is_none()) || !self.lifecycle.is_confirmed() {
            return;
        }
        let active = *self.paths.active().key();
        let (socket, local) = requested.unwrap_or((active.socket, active.local));
        let remote = preferred.unwrap_or(active.remote);
        let key = PathKey { socket, local, remote };
        let possible = self.migration.is_allowed_to(remote) && !self.parts.remote_cids.active().is_empty();
        if !possible || self.paths.is_at(&key) {
            (self.migration.requested, self.migration.preferred) = (None, None);
            self.paths.move_when_validated(None);
            return;
        }
        let known = self.paths.find(&key);
        if known.is_some_and(|known| self.paths.is_move_under_way(known)) {
            self.migration.requested = None;
            return;
        }
        if !self.parts.remote_cids.can_assign(known) {
            // Another NEW_CONNECTION_ID frame will bring it here again.
            return;
        }
        self.migration.requested = None;
        let pto = self.pto();
        let recovery = self.fresh_recovery(now, &key);
        let Some(id) = self.paths.probe(now, key, pto, |_| recovery) else { return };
        self.paths.move_when_validated(Some(id));
        self.parts.remote_cids.assign(id);
        self.announce_path_state(id, PathState::Probing);
        self.follow_paths(now);
    }

    /// At a server: whether it may send to where a packet came from that went to `cid`. Not if the client has moved by
    /// its own will and left us no id to use there (RFC 9000 section 9.5). If it goes on with its own id, the network
    /// may have given it another address, and ours may be used further. So may it if nothing comes back from where the
    /// client was: else it would never be told which ids to replace, and the connection would be lost.
    pub(super) fn can_follow(&self, path: PathId, cid: &ConnectionId) -> bool {
        self.parts.remote_cids.active().is_empty()
            || self.parts.remote_cids.can_assign(Some(path))
            || self.migration.peer_sends_to == *cid
            || self.paths.active().recovery.pto_count() >= DEAD_AFTER
    }

    /// The peer has given ids: a path that had to go on with one of another path gets its own.
    pub(super) fn on_new_ids(&mut self) {
        if self.migration.shares_id && self.parts.remote_cids.rotate() {
            self.migration.shares_id = false;
        }
    }

    /// See [`crate::Connection::rotate_cid`].
    pub(crate) fn rotate_cid(&mut self, now: Time) -> bool {
        let possible = self.lifecycle.is_open() && !self.lifecycle.is_handshaking();
        if !possible || !self.parts.remote_cids.rotate() {
            return false;
        }
        self.observe_time(now);
        self.migration.shares_id = false;
        stats::increment(&mut self.stats.irregular_mut().cid_updates);
        self.announce_reset_tokens();
        true
    }

    /// A path came to nothing. If it led to the server's preferred address, the old one has to do, also for what
    /// the application wants.
    pub(super) fn on_path_abandoned(&mut self, now: Time, id: PathId, key: PathKey) {
        self.parts.remote_cids.release(id);
        self.events.push_path(PathUpdate { id, key, state: PathState::Abandoned });
        self.events.push_endpoint(super::boundary::EndpointEvent::PathLeft);
        if self.migration.preferred != Some(key.remote) {
            return;
        }
        self.migration.preferred = None;
        let active = *self.paths.active().key();
        if active.remote != key.remote && active.socket != key.socket && self.migration.requested.is_none() {
            self.migration.requested = Some((key.socket, None));
            self.pursue_move(now);
        }
    }

    /// The application hears of a path.
    pub(super) fn announce_path_state(&mut self, id: PathId, state: PathState) {
        if state == PathState::Probing {
            self.observe_probing(id);
        }
        if let Some(info) = self.paths.iter().find(|info| info.id == id) {
            self.events.push_path(PathUpdate { id, key: info.key, state });
        }
    }

    /// The application hears that the connection has moved, once for each path: when that is validated.
    pub(super) fn announce_move(&mut self) {
        let active = self.paths.active();
        if active.is_validated()
            && !active.is_challenged()
            && active.id() != self.migration.announced_validated
        {
            self.migration.announced_validated = active.id();
            if self.migration.preferred == Some(active.key().remote) {
                self.migration.preferred = None;
            }
            self.events.push(Event::PathChanged);
        }
    }
}
