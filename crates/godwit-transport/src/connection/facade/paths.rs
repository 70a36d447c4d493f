//! Where the two ends are, and how this one moves.

use super::Connection;
use crate::connection::MigrateError;
use crate::path::PathInfo;
use godwit_base::{SocketId, Time};
use std::net::{IpAddr, SocketAddr};

impl Connection {
    /// The peer's present address.
    pub fn remote(&self) -> SocketAddr {
        self.machine.paths.active().key().remote
    }

    /// Whether the peer has shown that it receives at its present address (RFC 9000 sections 8.1 and 8.2).
    pub fn is_peer_validated(&self) -> bool {
        self.machine.paths.active().is_validated()
    }

    /// Whether a client has shown during this connection that it receives at its present address: it came back from a
    /// Retry, sent a packet that is protected with Handshake keys (RFC 9000 section 8.1) or answered a PATH_CHALLENGE
    /// (section 8.2). Unlike [`Connection::is_peer_validated`] this is not true for an address token of an earlier
    /// connection alone, which somebody else may have recorded.
    pub fn has_peer_answered(&self) -> bool {
        self.machine.paths.active().has_answered()
    }

    /// The local address, if the datapath told it.
    pub fn local(&self) -> Option<IpAddr> {
        self.machine.paths.active().key().local
    }

    /// Every path there is, the active one first.
    pub fn paths(&self) -> impl Iterator<Item = PathInfo> {
        self.machine.paths.iter()
    }

    /// True if any path of the connection uses the socket.
    pub fn uses_socket(&self, socket: SocketId) -> bool {
        self.machine.paths.uses(socket) && !self.is_drained()
    }

    /// Sends to another connection id of the peer's from now on, on the path in use, and retires the one before, so that
    /// who watches both cannot tell by it that they are of one connection. False, and nothing happens, if the peer has
    /// given none to spare, has not confirmed earlier retirements, or uses none at all; the handshake must be complete.
    pub fn rotate_cid(&mut self, now: Time) -> bool {
        self.machine.rotate_cid(now)
    }

    /// Moves the connection to another socket, or another local address of the same one: the path from there is
    /// validated first, as soon as the handshake is confirmed, and the connection switches to it when the peer
    /// has answered. `local` of `None` leaves the address to the system. A later call takes the place of an
    /// earlier one. [`crate::Event::Path`] tells how it goes.
    ///
    /// # Errors
    /// If it can never be done, see [`MigrateError`].
    pub fn migrate(
        &mut self,
        now: Time,
        socket: SocketId,
        local: Option<IpAddr>,
    ) -> Result<(), MigrateError> {
        self.machine.migrate(now, socket, local)
    }
}
