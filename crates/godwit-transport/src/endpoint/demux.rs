//! Which connection a datagram belongs to (RFC 9000 section 5.2).
//!
//! Three maps: ids we issued, ids that clients chose for their first packets, and reset tokens. Clients
//! and peers choose keys of the latter two, so the hash is keyed with a secret (SipHash 1-3): nobody can
//! make collisions. Nothing ever iterates over a map, so the same inputs give the same outputs.

use super::discards::Discards;
use super::table::Table;
use super::{ConnKey, IncomingKey};
use crate::keyed_hash::KeyedHash;
use godwit_wire::{ConnectionId, ResetToken};
use std::net::SocketAddr;

/// Who gets a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// A connection.
    Connection(ConnKey),
    /// A handshake that is yet to be accepted.
    Incoming(IncomingKey),
}

/// The maps. Their sizes are bounded by the number of connections and incoming handshakes.
#[derive(Debug)]
pub(super) struct Demux {
    issued: Table<ConnectionId, ConnKey, KeyedHash>,
    initial: Table<ConnectionId, Target, KeyedHash>,
    resets: Table<(SocketAddr, [u8; 16]), ConnKey, KeyedHash>,
    /// What is for nobody.
    pub(super) discards: Discards,
}

impl Demux {
    pub(super) fn new(hash: KeyedHash) -> Self {
        Demux {
            issued: Table::with_hasher(hash),
            initial: Table::with_hasher(hash),
            resets: Table::with_hasher(hash),
            discards: Discards::default(),
        }
    }

    /// Whose packet has the destination connection id `dcid`. Only long headers carry ids that clients
    /// chose.
    #[inline]
    pub(super) fn find(&self, dcid: &ConnectionId, long_header: bool) -> Option<Target> {
        match self.issued.get(dcid) {
            Some(key) => Some(Target::Connection(*key)),
            None if long_header => self.initial.get(dcid).copied(),
            None => None,
        }
    }

    /// True if an id is used already, by whomever.
    pub(super) fn is_taken(&self, cid: &ConnectionId) -> bool {
        self.find(cid, true).is_some()
    }

    pub(super) fn insert_issued(&mut self, cid: ConnectionId, key: ConnKey) {
        self.issued.insert(cid, key);
    }

    pub(super) fn remove_issued(&mut self, cid: &ConnectionId) {
        self.issued.remove(cid);
    }

    pub(super) fn insert_initial(&mut self, dcid: ConnectionId, target: Target) {
        self.initial.insert(dcid, target);
    }

    /// How many ids lead to handshakes that are not accepted yet, or were chosen by clients.
    #[cfg(test)]
    pub(super) fn initial_len(&self) -> usize {
        self.initial.len()
    }

    /// Removes the id that a client chose, if it still leads to `target`.
    pub(super) fn remove_initial(&mut self, dcid: &ConnectionId, target: Target) {
        if self.initial.get(dcid) == Some(&target) {
            self.initial.remove(dcid);
        }
    }

    /// The connection that a datagram from `remote` with `token` at its end resets (RFC 9000 section
    /// 10.3.1). How long this takes tells nothing of the tokens, for their hash is keyed.
    pub(super) fn find_reset(&self, remote: SocketAddr, token: [u8; 16]) -> Option<ConnKey> {
        self.resets.get(&(remote, token)).copied()
    }

    pub(super) fn insert_reset(&mut self, remote: SocketAddr, token: ResetToken, key: ConnKey) {
        self.resets.insert((remote, token.0), key);
    }

    pub(super) fn remove_reset(&mut self, remote: SocketAddr, token: ResetToken, key: ConnKey) {
        if self.resets.get(&(remote, token.0)) == Some(&key) {
            self.resets.remove(&(remote, token.0));
        }
    }
}
