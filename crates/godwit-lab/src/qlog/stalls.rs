//! Stalls: times in which no stream data moved in either direction, and what was waited for.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Shorter ones are not worth a word; neither are those shorter than twice the round-trip time.
const SHORTEST: Duration = Duration::from_millis(20);
/// The longest stalls are told one by one.
const TOLD: usize = 10;
/// Streams that are followed at a time; the rest is not.
const STREAMS: usize = 10_000;

/// What was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    /// The handshake.
    Handshake,
    /// The peer's permission to send more.
    FlowControl,
    /// Room in the congestion window.
    Congestion,
    /// Acknowledgements or data of the peer.
    Peer,
    /// This end's application.
    Application,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Handshake => "handshake",
            Reason::FlowControl => "flow control",
            Reason::Congestion => "congestion",
            Reason::Peer => "peer",
            Reason::Application => "application",
        })
    }
}

/// One stall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stall {
    pub(super) from: Duration,
    pub(super) lasted: Duration,
    pub(super) reason: Reason,
}

/// The sending side when a stall begins.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sending {
    pub(super) in_flight: u64,
    pub(super) window: u64,
    /// The size of a full packet.
    pub(super) packet: u64,
    pub(super) connected: bool,
    /// Milliseconds.
    pub(super) rtt: f64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Stream {
    we_ended: bool,
    they_ended: bool,
}

/// What stalls there were.
#[derive(Debug, Default)]
pub(super) struct Stalls {
    /// When stream data moved last.
    moved: Duration,
    /// Flow control held us back, and nothing has been permitted since.
    blocked: bool,
    streams: BTreeMap<u64, Stream>,
    longest: Vec<Stall>,
    totals: BTreeMap<Reason, (u64, Duration)>,
}

impl Stalls {
    /// Stream data is sent or received now. What was before is judged by how the sending side stood then.
    pub(super) fn on_data(&mut self, now: Duration, sending: &Sending) {
        let lasted = now.saturating_sub(self.moved);
        let rtt = Duration::from_secs_f64(sending.rtt.clamp(0.0, 1e6) / 1e3);
        if lasted > SHORTEST.max(rtt * 2) {
            let reason = self.reason(sending);
            let total = self.totals.entry(reason).or_default();
            *total = (total.0 + 1, total.1 + lasted);
            self.longest.push(Stall { from: self.moved, lasted, reason });
            self.longest.sort_by_key(|stall| std::cmp::Reverse(stall.lasted));
            self.longest.truncate(TOLD);
        }
        self.moved = now;
    }

    fn reason(&self, sending: &Sending) -> Reason {
        let waits_for_peer = self.streams.values().any(|stream| stream.we_ended && !stream.they_ended);
        if !sending.connected {
            Reason::Handshake
        } else if self.blocked {
            Reason::FlowControl
        } else if sending.in_flight + sending.packet > sending.window && sending.in_flight > 0 {
            Reason::Congestion
        } else if sending.in_flight > 0 || waits_for_peer {
            Reason::Peer
        } else {
            Reason::Application
        }
    }

    pub(super) fn on_blocked(&mut self) {
        self.blocked = true;
    }

    pub(super) fn on_permitted(&mut self) {
        self.blocked = false;
    }

    /// A stream was used, and perhaps ended, by this end or by the peer.
    pub(super) fn on_stream(&mut self, id: u64, ours: bool, end: bool) {
        if !self.streams.contains_key(&id) && self.streams.len() >= STREAMS {
            return;
        }
        let stream = self.streams.entry(id).or_default();
        stream.we_ended |= ours && end;
        stream.they_ended |= !ours && end;
        if stream.we_ended && stream.they_ended {
            self.streams.remove(&id);
        }
    }

    /// The longest ones, in order of time.
    pub(super) fn longest(&self) -> Vec<Stall> {
        let mut longest = self.longest.clone();
        longest.sort_by_key(|stall| stall.from);
        longest
    }

    /// Number and duration of all, by reason.
    pub(super) fn totals(&self) -> impl Iterator<Item = (Reason, u64, Duration)> {
        self.totals.iter().map(|(reason, (count, lasted))| (*reason, *count, *lasted))
    }
}
