//! What is known of a client's attempt to connect while it is under way.
//!
//! Whoever races QUIC against TCP, or one address against another, wants to know before the end whether there is hope:
//! has anything left, has anything come back, how far is it. Nothing here changes what the connection does: what is
//! said by packets that nobody has authenticated (Retry and Version Negotiation, RFC 9000 sections 6 and 17.2.5) and by
//! ICMP (section 14.2.1) is worth no more than that.

use super::Machine;
use crate::Event;
use crate::path::PathKey;
use std::io::ErrorKind;
use std::time::Duration;

/// How far an attempt has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[non_exhaustive]
pub enum Progress {
    /// Nothing has been sent.
    #[default]
    Begun,
    /// The first packets have been sent.
    Sent,
    /// Something has come back from the server's address, but nothing that proves who sent it.
    Heard,
    /// The server has answered: one of its packets was authenticated with the Initial keys.
    Answered,
    /// Keys for the rest of the handshake are known; the server's certificate is on its way or being checked.
    Secured,
    /// The handshake is complete.
    Complete,
    /// The handshake is confirmed (RFC 9001 section 4.1.2).
    Confirmed,
}

/// What is known of an attempt to connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Evidence {
    /// How far it has come.
    pub progress: Progress,
    /// UDP datagrams sent.
    pub datagrams_sent: u64,
    /// UDP datagrams that came from the server's address for this attempt, those included that could not be opened.
    pub datagrams_received: u64,
    /// Their bytes.
    pub bytes_received: u64,
    /// Probe timeouts: how often it was tried again.
    pub probes: u64,
    /// The server has asked for proof of the client's address (Retry).
    pub retry: bool,
    /// Version Negotiation has come.
    pub version_negotiation: bool,
    /// The round-trip time, once one was measured.
    pub rtt: Option<Duration>,
    /// What the network has said of packets that did not arrive (ICMP), last, where the system tells. It proves
    /// nothing: anybody who knows the addresses can say so.
    pub unreachable: Option<ErrorKind>,
    /// How often it has said so.
    pub unreachable_reports: u32,
}

impl Evidence {
    /// Whether this says more than `known` does, counters apart.
    pub fn is_news(&self, known: &Evidence) -> bool {
        let essence = |of: &Evidence| {
            (of.progress, of.retry, of.version_negotiation, of.rtt.is_some(), of.unreachable_reports)
        };
        essence(self) != essence(known)
    }
}

/// What no other component keeps of it.
#[derive(Debug, Default)]
pub(super) struct Attempt {
    version_negotiation: bool,
    unreachable: Option<ErrorKind>,
    unreachable_reports: u32,
    /// What was told last, if somebody wants to be told.
    told: Option<Box<Evidence>>,
}

impl Attempt {
    /// Somebody wants to be told, and knows this much.
    pub(super) fn watch(&mut self, known: &Evidence) {
        self.told = Some(Box::new(*known));
    }

    /// A Version Negotiation packet has come that may be the server's.
    pub(super) fn on_version_negotiation(&mut self) {
        self.version_negotiation = true;
    }
}

impl Machine {
    /// See [`crate::Connection::evidence`].
    pub(crate) fn evidence(&self) -> Evidence {
        let (attempt, rtt) = (&self.negotiation.attempt, self.paths.active().recovery.rtt());
        Evidence {
            progress: self.progress(),
            datagrams_sent: self.stats.datagrams_sent,
            datagrams_received: self.stats.datagrams_received,
            bytes_received: self.stats.bytes_received,
            probes: self.stats.ptos,
            retry: self.negotiation.was_retried(),
            version_negotiation: attempt.version_negotiation,
            rtt: rtt.first_sample_at().map(|_| rtt.smoothed()),
            unreachable: attempt.unreachable,
            unreachable_reports: attempt.unreachable_reports,
        }
    }

    /// The path that carries the connection.
    pub(crate) const fn path_key(&self) -> &PathKey {
        self.paths.active().key()
    }

    /// Whether a client's packets are, or were at first, addressed with this connection id.
    pub(crate) fn calls_peer(&self, dcid: &[u8]) -> bool {
        [self.parts.remote_cids.active(), &self.negotiation.original_dcid]
            .iter()
            .any(|id| id.as_bytes() == dcid)
    }

    /// The network says that packets to the peer do not arrive. Heeded only while a client's handshake is under way.
    pub(crate) fn on_unreachable(&mut self, kind: ErrorKind) -> bool {
        let heeded = self.side == crate::Side::Client && self.lifecycle.is_handshaking();
        if heeded {
            let attempt = &mut self.negotiation.attempt;
            attempt.unreachable = Some(kind);
            attempt.unreachable_reports = attempt.unreachable_reports.saturating_add(1);
        }
        heeded
    }

    /// The event, if it is due.
    pub(super) fn news_of_attempt(&mut self) -> Option<Event> {
        self.negotiation.attempt.told.as_ref()?;
        let evidence = self.evidence();
        let told = self.negotiation.attempt.told.as_mut().filter(|told| evidence.is_news(told))?;
        **told = evidence;
        Some(Event::EvidenceChanged)
    }

    fn progress(&self) -> Progress {
        if self.lifecycle.is_confirmed() {
            Progress::Confirmed
        } else if self.parts.handshake.is_complete() {
            Progress::Complete
        } else if self.spaces.handshake.is_some() {
            Progress::Secured
        } else if self.negotiation.has_heard_server() {
            Progress::Answered
        } else if self.stats.datagrams_received > 0 {
            Progress::Heard
        } else if self.stats.datagrams_sent > 0 {
            Progress::Sent
        } else {
            Progress::Begun
        }
    }
}
