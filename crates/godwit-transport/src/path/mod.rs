//! Network paths of a connection (RFC 9000 sections 8 and 9).
//!
//! A path is a local socket, a local address and a remote address. What depends on the network in
//! between belongs to the path: round-trip time, congestion state, path MTU, and how much may be
//! sent to an address that has not been validated. [`PathSet`] holds the active path and a few others;
//! it follows a client whose address changed and returns to the old address if the new one does not
//! answer.

mod challenge;
mod credit;
mod set;

pub use set::{Arrival, PathEvent, PathSet, ProbeWritten};

use challenge::{Challenge, Responses};
use credit::Credit;
use godwit_base::SocketId;
use godwit_recovery::PathRecovery;
use std::net::{IpAddr, SocketAddr};

/// The size to which datagrams with PATH_CHALLENGE or PATH_RESPONSE are expanded (RFC 9000 section
/// 8.2.1), in bytes.
pub const PROBE_SIZE: usize = 1200;

/// What an ACK frame of one range takes with the longest header and a tag, in bytes: smaller datagrams are not
/// begun.
const LEAST_DATAGRAM: usize = 120;

/// Which path of a connection; numbers are never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u32);

/// The addresses of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathKey {
    /// The local socket.
    pub socket: SocketId,
    /// The local address, if known; else the kernel chooses.
    pub local: Option<IpAddr>,
    /// The peer's address.
    pub remote: SocketAddr,
}

impl PathKey {
    /// True if both name the same path. A local address that is not known matches any.
    pub fn matches(&self, other: &PathKey) -> bool {
        let local = match (self.local, other.local) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => true,
        };
        self.socket == other.socket && self.remote == other.remote && local
    }

    /// True if the peer's addresses are the same but for the port: most likely a NAT that forgot its
    /// mapping, with the same network behind it (RFC 9000 section 9.4).
    pub fn same_host(&self, other: &PathKey) -> bool {
        self.remote.ip() == other.remote.ip()
    }
}

/// One path.
#[derive(Debug)]
pub struct Path {
    id: PathId,
    key: PathKey,
    /// Round-trip time, congestion control, pacing and path MTU.
    pub recovery: PathRecovery,
    /// The most datagrams that may leave in one run; lowered when the network card refuses.
    pub max_segments: usize,
    credit: Credit,
    challenge: Option<Challenge>,
    responses: Responses,
    /// A challenge to it went unanswered while there was no better path.
    suspect: bool,
}

impl Path {
    fn new(id: PathId, key: PathKey, recovery: PathRecovery, credit: Credit) -> Self {
        Path {
            id,
            key,
            recovery,
            max_segments: godwit_base::SendBatch::MAX_SEGMENTS,
            credit,
            challenge: None,
            responses: Responses::default(),
            suspect: false,
        }
    }

    /// Its number.
    pub const fn id(&self) -> PathId {
        self.id
    }

    /// Its addresses.
    pub const fn key(&self) -> &PathKey {
        &self.key
    }

    /// True if the peer has proved that it receives at this address (RFC 9000 section 8).
    pub const fn is_validated(&self) -> bool {
        self.credit.is_validated()
    }

    /// True if a datagram of `bytes` may be sent: always if the address is validated, and else up to
    /// three times what came from it (RFC 9000 section 8.1).
    pub const fn can_send(&self, bytes: usize) -> bool {
        self.credit.remaining() >= bytes as u64
    }

    /// True if a datagram may be sent that is large enough for an acknowledgement at any level. A few bytes of
    /// credit are as good as none: whoever waits for them to be used waits for nothing.
    pub const fn can_send_anything(&self) -> bool {
        self.can_send(LEAST_DATAGRAM)
    }

    /// Bytes that may be sent before more must come in; `u64::MAX` if the address is validated.
    pub const fn send_credit(&self) -> u64 {
        self.credit.remaining()
    }

    /// A datagram of `bytes` was sent.
    pub fn on_sent(&mut self, bytes: usize) {
        self.credit.on_sent(bytes);
    }

    /// True if a PATH_CHALLENGE or a PATH_RESPONSE is to be sent on it.
    pub fn wants_probe(&self) -> bool {
        !self.responses.is_empty() || self.challenge.as_ref().is_some_and(Challenge::is_due)
    }
}
