//! What a link is like. Plain values: the default is a perfect link, and each field adds one imperfection.

use crate::{
    Aggregation, CoDel, Damage, DualPi2, Loss, NatConfig, Opportunities, Policer, Probability, Rate, Red,
};
use godwit_base::Time;
use std::sync::Arc;
use std::time::Duration;

/// The Internet Protocol that carries a datagram: it decides how many bytes of header count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum IpVersion {
    /// 20 bytes of IP and 8 of UDP header.
    #[default]
    V4,
    /// 40 bytes of IP and 8 of UDP header.
    V6,
}

impl IpVersion {
    /// Preamble, header, checksum and gap of an Ethernet frame: time on the wire that belongs to a packet.
    pub const ETHERNET_OVERHEAD: usize = 38;

    /// The size of the IP packet that carries a UDP payload of `len` bytes.
    pub const fn ip_len(self, len: usize) -> usize {
        let headers = match self {
            IpVersion::V4 => 28,
            IpVersion::V6 => 48,
        };
        len.saturating_add(headers)
    }

    /// The bytes that a UDP payload of `len` bytes occupies on the wire.
    pub const fn wire_len(self, len: usize) -> usize {
        self.ip_len(len).saturating_add(Self::ETHERNET_OVERHEAD)
    }
}

impl From<std::net::IpAddr> for IpVersion {
    fn from(address: std::net::IpAddr) -> Self {
        if address.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 }
    }
}

/// How much waits in front of the link before newcomers are dropped. The packet being sent counts, and
/// an empty queue takes any packet. Bytes are those of [`IpVersion::wire_len`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum QueueLimit {
    /// Nothing is ever dropped.
    #[default]
    Unlimited,
    /// So many packets.
    Packets(usize),
    /// So many bytes.
    Bytes(u64),
}

/// Whether and how a queue is kept short, beside its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Aqm {
    /// It is not: packets are dropped when it is full.
    #[default]
    None,
    /// By how long packets have waited.
    CoDel(CoDel),
    /// By its length on average.
    Red(Red),
    /// By a queue of its own for those who keep theirs short.
    DualPi2(DualPi2),
}

/// A delay that varies from packet to packet, evenly from zero to a maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Jitter {
    /// The delay is constant.
    #[default]
    None,
    /// No packet overtakes another: one that is held up holds up those behind it.
    InOrder(Duration),
    /// Packets overtake each other.
    Unordered(Duration),
}

impl Jitter {
    /// The most that is added to the delay.
    pub const fn most(self) -> Duration {
        match self {
            Jitter::None => Duration::ZERO,
            Jitter::InOrder(most) | Jitter::Unordered(most) => most,
        }
    }
}

/// Now and then a packet is held back while those behind it pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reorder {
    /// How often.
    pub probability: Probability,
    /// By how much.
    pub extra: Duration,
}

/// Now and then a packet arrives twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Duplicate {
    /// How often.
    pub probability: Probability,
    /// How long after the first the second copy arrives.
    pub after: Duration,
}

/// Now and then a packet arrives damaged (with the UDP checksum none the wiser).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Corrupt {
    /// How often.
    pub probability: Probability,
    /// How badly.
    pub damage: Damage,
}

/// A time in which nothing passes: what leaves the queue in it is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Outage {
    /// Its first instant.
    pub from: Time,
    /// The first instant after it.
    pub until: Time,
}

/// What a link does to the ECN codepoints that senders set, before packets come to its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum EcnHandling {
    /// They pass.
    #[default]
    Pass,
    /// They are erased.
    Bleach,
    /// Packets that have one are dropped.
    Drop,
    /// ECT(0) becomes ECT(1).
    Remark,
    /// They become "congestion experienced".
    Congest,
}

/// One direction of a link. The default is perfect: no loss, no delay, no limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LinkConfig {
    /// Random loss in front of the queue.
    pub loss: Loss,
    /// What is dropped for exceeding a rate, in front of the queue.
    pub policer: Option<Policer>,
    /// How much the queue holds; it fills only if there is a rate or a trace.
    pub queue: QueueLimit,
    /// What else keeps it short.
    pub aqm: Aqm,
    /// Packets that find more than this in the queue are marked with ECN's "congestion experienced".
    pub mark_above: QueueLimit,
    /// What becomes of ECN codepoints on the way in.
    pub ecn: EcnHandling,
    /// The rate of serialisation; `None` is infinite.
    pub rate: Option<Rate>,
    /// Rates that hold instead from given times on, in any order; they matter if there is a rate at first.
    pub rate_steps: Vec<(Time, Rate)>,
    /// When packets can be delivered; takes the place of the rate.
    pub trace: Option<Arc<Opportunities>>,
    /// Bursts in which packets leave.
    pub aggregation: Option<Aggregation>,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// Delays that hold instead from given times on, in any order, for packets that leave the queue then.
    pub delay_steps: Vec<(Time, Duration)>,
    /// Variation of the delay.
    pub jitter: Jitter,
    /// Packets held back.
    pub reorder: Option<Reorder>,
    /// Packets that arrive twice.
    pub duplicate: Option<Duplicate>,
    /// Packets that arrive damaged.
    pub corrupt: Option<Corrupt>,
    /// The largest IP packet that passes, in bytes with its IP and UDP headers; `None` is any.
    pub mtu: Option<usize>,
    /// Times in which nothing passes; in any order, overlapping or not.
    pub outages: Vec<Outage>,
}

impl LinkConfig {
    /// A link of this rate and one-way delay with a queue of so many bytes and nothing else wrong.
    pub fn limited(rate: Rate, delay: Duration, queue_bytes: u64) -> Self {
        LinkConfig { rate: Some(rate), delay, queue: QueueLimit::Bytes(queue_bytes), ..LinkConfig::default() }
    }

    /// A link that only delays.
    pub fn delayed(delay: Duration) -> Self {
        LinkConfig { delay, ..LinkConfig::default() }
    }
}

/// Both directions of a client's access link.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DuplexConfig {
    /// From the client to the server.
    pub up: LinkConfig,
    /// From the server to the client.
    pub down: LinkConfig,
    /// The address translation at the client's end.
    pub nat: NatConfig,
}

impl DuplexConfig {
    /// The same in both directions, without address translation.
    pub fn symmetric(link: LinkConfig) -> Self {
        DuplexConfig { up: link.clone(), down: link, nat: NatConfig::default() }
    }
}
