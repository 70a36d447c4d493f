//! Losses: how they were noticed, whether the packets arrived after all, and what probably became of those that did
//! not.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use serde_json::Value;

/// Lost packets that a late acknowledgement can still be matched with.
const REMEMBERED: usize = 4096;
/// The round-trip time has risen by this factor, and by this much, when a queue is likely to be full.
const QUEUE_FACTOR: f64 = 1.25;
const QUEUE_RISE_MS: f64 = 4.0;

/// What probably became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    /// It was too large, as probes of the path's MTU may be.
    Probe,
    /// It was acknowledged later: it had been overtaken, or the acknowledgement was late.
    Late,
    /// A queue was full: the round-trip time had risen.
    Queue,
    /// No acknowledgement of anything came for a long time.
    Silence,
    /// The round-trip time was as low as ever: the line, or a queue too short to be seen.
    Line,
}

/// The causes in the order of [`Losses::counts`].
const CAUSES: [Cause; 5] = [Cause::Probe, Cause::Late, Cause::Queue, Cause::Silence, Cause::Line];

/// The count of a cause.
fn of(counts: &mut [u64; 5], cause: Cause) -> &mut u64 {
    let [probe, late, queue, silence, line] = counts;
    match cause {
        Cause::Probe => probe,
        Cause::Late => late,
        Cause::Queue => queue,
        Cause::Silence => silence,
        Cause::Line => line,
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cause::Probe => "probes of the path's MTU (no sign of congestion)",
            Cause::Late => "acknowledged after all: reordered, or acknowledged late",
            Cause::Queue => "a full queue: the round-trip time had risen",
            Cause::Silence => "after a silence in which nothing was acknowledged",
            Cause::Line => "the line, or a short queue: the round-trip time was low",
        })
    }
}

/// The path at the time of a loss.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Path {
    /// Milliseconds.
    pub(super) latest_rtt: f64,
    pub(super) min_rtt: f64,
    /// Since the last acknowledgement of anything.
    pub(super) silence: Duration,
}

/// Everything lost so far.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// Packets by cause, in the order of the causes.
    counts: [u64; 5],
    /// Packets by what gave them away, as the trace says it.
    pub(super) reordering: u64,
    pub(super) time: u64,
    pub(super) other: u64,
    /// 1-RTT packets lost, with what was thought of them.
    recent: VecDeque<(u64, Cause)>,
    /// The first and the last loss of each episode: losses within a round trip belong together.
    pub(super) episodes: u64,
    last: Option<Duration>,
}

impl Losses {
    pub(super) fn on_lost(&mut self, time: Duration, data: &Value, path: Path) {
        match data["trigger"].as_str() {
            Some("reordering_threshold") => self.reordering += 1,
            Some("time_threshold") => self.time += 1,
            _ => self.other += 1,
        }
        let rtt = Duration::from_secs_f64(path.latest_rtt.clamp(0.0, 1e6) / 1e3);
        if data["is_mtu_probe_packet"] == true {
            return self.count(Cause::Probe, data);
        }
        if self.last.is_none_or(|last| time.saturating_sub(last) > rtt) {
            self.episodes += 1;
        }
        self.last = Some(time);
        let risen = path.latest_rtt - path.min_rtt;
        let cause = if path.silence > rtt * 3 && path.silence > Duration::from_millis(100) {
            Cause::Silence
        } else if path.latest_rtt > path.min_rtt * QUEUE_FACTOR && risen > QUEUE_RISE_MS {
            Cause::Queue
        } else {
            Cause::Line
        };
        self.count(cause, data);
    }

    fn count(&mut self, cause: Cause, data: &Value) {
        *of(&mut self.counts, cause) += 1;
        let kind = data.pointer("/header/packet_type").and_then(Value::as_str);
        let number = data.pointer("/header/packet_number").and_then(Value::as_u64);
        if let (Some(number), Some("1RTT")) = (number, kind) {
            if self.recent.len() == REMEMBERED {
                self.recent.pop_front();
            }
            self.recent.push_back((number, cause));
        }
    }

    /// Packets of the 1-RTT space were acknowledged: those among them that were thought lost were not.
    pub(super) fn on_acked(&mut self, first: u64, last: u64) {
        let counts = &mut self.counts;
        self.recent.retain(|(number, cause)| {
            let alive = (first..=last).contains(number);
            if alive {
                *of(counts, *cause) -= 1;
                *of(counts, Cause::Late) += 1;
            }
            !alive
        });
    }

    pub(super) fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The causes that there were.
    pub(super) fn causes(&self) -> impl Iterator<Item = (Cause, u64)> {
        CAUSES.into_iter().zip(self.counts).filter(|(_, count)| *count > 0)
    }

    /// Whether late acknowledgements are worth looking for.
    pub(super) fn is_waiting(&self) -> bool {
        !self.recent.is_empty()
    }
}
