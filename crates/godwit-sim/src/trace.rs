//! What went over the wires: a hash of every packet, to prove that a run repeats, and a log to read.

use crate::names::HostId;
use godwit_base::{Ecn, Time};
use godwit_link::{DropReason, Outcome};
use std::fmt;
use std::net::SocketAddr;

/// A running hash over the time, the direction and the bytes of every packet sent, and perhaps a log.
#[derive(Debug, Clone)]
pub struct Trace {
    hash: u64,
    packets: u64,
    bytes: u64,
    without_payloads: bool,
    log: Vec<LogEntry>,
    log_limit: usize,
}

/// One packet, as it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEntry {
    /// When it was sent.
    pub at: Time,
    /// By whom.
    pub from: HostId,
    /// To whom.
    pub to: HostId,
    /// The address it was sent to.
    pub remote: SocketAddr,
    /// Bytes of UDP payload.
    pub len: usize,
    /// The first byte of the payload.
    pub first_byte: u8,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It arrives at this time, or the first of its copies does.
    Arrives(Time),
    /// The link dropped it.
    Dropped(DropReason),
    /// A filter took it out.
    Filtered,
    /// There is nobody at its destination.
    Unroutable,
}

impl From<Outcome> for Fate {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Delivered { first, .. } => Fate::Arrives(first.at),
            Outcome::Dropped(reason) => Fate::Dropped(reason),
        }
    }
}

impl Default for Trace {
    fn default() -> Self {
        Trace {
            hash: 0x9e37_79b9_7f4a_7c15,
            packets: 0,
            bytes: 0,
            without_payloads: false,
            log: Vec::new(),
            log_limit: 0,
        }
    }
}

impl Trace {
    /// Keeps the first `limit` packets in the log from now on.
    pub fn keep_log(&mut self, limit: usize) {
        self.log_limit = limit;
    }

    /// Leaves what packets hold out of the hash from now on, but for how much that is: the same then with keys and
    /// without, and quicker.
    pub const fn leave_out_payloads(&mut self) {
        self.without_payloads = true;
    }

    /// The hash over everything sent so far.
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// Packets sent so far.
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Bytes of UDP payload sent so far.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The packets that were kept.
    pub fn log(&self) -> &[LogEntry] {
        &self.log
    }

    pub(crate) fn on_packet(&mut self, at: Time, from: HostId, to: Option<HostId>, ecn: Ecn, payload: &[u8]) {
        self.packets += 1;
        self.bytes += payload.len() as u64;
        let to = to.map_or(u32::MAX, |host| host.0);
        self.mix(at.as_nanos());
        self.mix(u64::from(from.0) << 32 | u64::from(to));
        self.mix((payload.len() as u64) << 8 | u64::from(ecn.bits()));
        if self.without_payloads {
            return;
        }
        let (words, rest) = payload.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        self.mix(u64::from_le_bytes(last));
    }

    /// Whether the log wants another packet.
    pub(crate) const fn is_logging(&self) -> bool {
        self.log.len() < self.log_limit
    }

    pub(crate) fn on_fate(&mut self, entry: LogEntry) {
        if self.log.len() < self.log_limit {
            self.log.push(entry);
        }
    }

    /// Every step is invertible, so a difference of one bit is never lost again by itself.
    fn mix(&mut self, word: u64) {
        self.hash = (self.hash ^ word).wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(29);
    }
}

impl fmt::Display for LogEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.first_byte {
            byte if byte & 0x80 == 0 => "short",
            _ => "long",
        };
        let micros = self.at.as_micros();
        write!(f, "{:>6}.{:06} ", micros / 1_000_000, micros % 1_000_000)?;
        write!(f, "{} > {} ({}) {kind:5} {:5} bytes ", self.from.0, self.to.0, self.remote, self.len)?;
        match self.fate {
            Fate::Arrives(at) => write!(f, "+{:?}", at - self.at),
            Fate::Dropped(reason) => write!(f, "dropped: {reason:?}"),
            Fate::Filtered => f.write_str("filtered"),
            Fate::Unroutable => f.write_str("unroutable"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(packets: &[(u64, u32, &[u8])]) -> u64 {
        let mut trace = Trace::default();
        for (at, from, payload) in packets {
            trace.on_packet(Time::from_nanos(*at), HostId(*from), Some(HostId(9)), Ecn::NotEct, payload);
        }
        trace.hash()
    }

    #[test]
    fn everything_counts() {
        let base = hash(&[(1, 0, b"hello world"), (2, 1, b"ok")]);
        assert_eq!(base, hash(&[(1, 0, b"hello world"), (2, 1, b"ok")]));
        assert_ne!(base, hash(&[(1, 0, b"hello worle"), (2, 1, b"ok")]));
        assert_ne!(base, hash(&[(1, 0, b"hello world"), (3, 1, b"ok")]));
        assert_ne!(base, hash(&[(1, 1, b"hello world"), (2, 1, b"ok")]));
        assert_ne!(base, hash(&[(2, 1, b"ok"), (1, 0, b"hello world")]));
        assert_ne!(base, hash(&[(1, 0, b"hello world")]));
        assert_ne!(hash(&[(1, 0, b"")]), hash(&[(1, 0, b"\0")]));
    }
}
