//! Network paths of a connection (RFC 9000 sections 8 and 9).
//!
//! A path is a local socket, a local address and a remote address. What depends on the network in
//! between belongs to the path: round-trip time, congestion state, path MTU, and how much may be
//! sent to an address that has not been validated. [`PathSet`] holds the active path and a few others;
//! it follows a client whose address changed and returns to the old address if the new one does not
//! answer.

mod challenge;
mod credit;
mod id;
mod set;
mod told;

pub use id::PathId;
pub(crate) use set::{Arrival, PathEvent, PathSet};
pub(crate) use told::{Fate, Told};

use challenge::{Challenge, Responses};
use credit::Credit;
use godwit_base::{SocketId, Time};
use godwit_recovery::PathRecovery;
use godwit_wire::constants::MIN_DATAGRAM;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// What an ACK frame of one range takes with the longest header and a tag, in bytes: smaller datagrams are not
/// begun.
const LEAST_DATAGRAM: usize = 120;

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
}

/// How a path stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PathState {
    /// It is being validated (RFC 9000 section 8.2), and does not carry the connection.
    Probing,
    /// The peer answers on it.
    Validated,
    /// It carries the connection from now on.
    Active,
    /// It did not answer, or was left some time ago: nothing more is sent or expected on it.
    Abandoned,
}

/// News of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct PathUpdate {
    /// Which path.
    pub id: PathId,
    /// Its addresses.
    pub key: PathKey,
    /// What it has become.
    pub state: PathState,
}

/// A path as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathInfo {
    /// Its number.
    pub id: PathId,
    /// Its addresses; the local one as last seen, where the datapath tells it.
    pub key: PathKey,
    /// Whether it carries the connection.
    pub active: bool,
    /// Whether the peer is known to receive at its address.
    pub validated: bool,
    /// Smoothed round-trip time, the initial guess before the first sample.
    pub rtt: Duration,
    /// The lowest round-trip time of late.
    pub min_rtt: Duration,
    /// Congestion window in bytes.
    pub window: u64,
    /// Bytes in flight.
    pub bytes_in_flight: u64,
    /// UDP payload size that passes it, in bytes.
    pub mtu: u16,
    /// Packets sent on it.
    pub packets_sent: u64,
    /// Packets declared lost on it.
    pub packets_lost: u64,
}

/// One path.
#[derive(Debug)]
pub(crate) struct Path {
    id: PathId,
    key: PathKey,
    /// Round-trip time, congestion control, pacing and path MTU.
    pub recovery: PathRecovery,
    /// What connections that follow were told of that.
    pub told: Told,
    credit: Credit,
    /// The peer has answered from here, see [`Path::has_answered`].
    answered: bool,
    /// Boxed: hardly any path is being challenged, and connections are many.
    challenge: Option<Box<Challenge>>,
    responses: Responses,
    /// A challenge to it went unanswered while there was no better path.
    suspect: bool,
    /// The connection is to move here as soon as it is validated.
    wanted: bool,
    /// The local address at which its first datagram came in.
    seen_local: Option<IpAddr>,
    /// While it is not active: when anything last happened on it.
    last_used: Time,
}

impl Path {
    fn new(id: PathId, key: PathKey, recovery: PathRecovery, credit: Credit) -> Self {
        Path {
            id,
            key,
            recovery,
            told: Told::default(),
            credit,
            answered: false,
            challenge: None,
            responses: Responses::default(),
            suspect: false,
            wanted: false,
            seen_local: None,
            last_used: Time::ZERO,
        }
    }

    /// The local address, chosen or seen.
    fn local(&self) -> Option<IpAddr> {
        self.key.local.or(self.seen_local)
    }

    /// True if the addresses of both ends are the same but for the ports: most likely a NAT that forgot its
    /// mapping, or another socket of the same host, with the same network in between (RFC 9000 section 9.4).
    fn same_network(&self, other: &Path) -> bool {
        let here = match (self.local(), other.local()) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => self.key.socket == other.key.socket,
        };
        here && self.key.remote.ip() == other.key.remote.ip()
    }

    /// How it stands.
    fn info(&self, active: bool) -> PathInfo {
        let (rtt, stats) = (self.recovery.rtt(), self.recovery.stats());
        PathInfo {
            id: self.id,
            key: PathKey { local: self.local(), ..self.key },
            active,
            validated: self.is_validated(),
            rtt: rtt.smoothed(),
            min_rtt: rtt.min(),
            window: self.recovery.window(),
            bytes_in_flight: self.recovery.bytes_in_flight(),
            mtu: self.recovery.mtu(),
            packets_sent: stats.packets_sent,
            packets_lost: stats.packets_lost,
        }
    }

    /// Its number.
    pub(crate) const fn id(&self) -> PathId {
        self.id
    }

    /// Its addresses.
    pub(crate) const fn key(&self) -> &PathKey {
        &self.key
    }

    /// True if the peer has proved that it receives at this address (RFC 9000 section 8).
    pub(crate) const fn is_validated(&self) -> bool {
        self.credit.is_validated()
    }

    /// True if the peer itself has shown during this connection that it receives at this address. A token of an earlier
    /// connection, which validates the address too, may have been recorded by somebody else.
    pub(crate) const fn has_answered(&self) -> bool {
        self.answered
    }

    /// The peer has shown that it receives at this address.
    const fn on_answered(&mut self) {
        (self.credit, self.answered) = (Credit::Validated, true);
    }

    /// True if a datagram of `bytes` may be sent: always if the address is validated, and else up to
    /// three times what came from it (RFC 9000 section 8.1).
    pub(crate) const fn can_send(&self, bytes: usize) -> bool {
        self.credit.remaining() >= bytes as u64
    }

    /// True if a datagram may be sent that is large enough for an acknowledgement at any level. A few bytes of
    /// credit are as good as none: whoever waits for them to be used waits for nothing.
    pub(crate) const fn can_send_anything(&self) -> bool {
        self.can_send(LEAST_DATAGRAM)
    }

    /// Bytes that may be sent before more must come in; `u64::MAX` if the address is validated.
    pub(crate) const fn send_credit(&self) -> u64 {
        self.credit.remaining()
    }

    /// A datagram of `bytes` was sent.
    pub(crate) fn on_sent(&mut self, bytes: usize) {
        self.credit.on_sent(bytes);
    }

    /// True while the peer's answer to a PATH_CHALLENGE is awaited.
    pub(crate) const fn is_challenged(&self) -> bool {
        self.challenge.is_some()
    }

    /// True if a PATH_CHALLENGE or a PATH_RESPONSE is to be sent on it.
    pub(crate) fn wants_probe(&self) -> bool {
        !self.responses.is_empty() || self.wants_challenge()
    }

    fn wants_challenge(&self) -> bool {
        self.challenge.as_deref().is_some_and(Challenge::is_due)
    }

    /// The same of the active path, where answers have to wait for the window like all that elicits acknowledgements: each
    /// fills a datagram, however small those are that ask. Our own challenges do not wait: the state of the path may be
    /// what keeps the window shut.
    #[inline]
    pub(crate) fn may_probe(&self) -> bool {
        self.wants_challenge() || (!self.responses.is_empty() && self.recovery.can_send(MIN_DATAGRAM))
    }
}
