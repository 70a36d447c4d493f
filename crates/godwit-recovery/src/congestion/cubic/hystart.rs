//! HyStart++ (RFC 9406): leaves slow start when the RTT begins to rise, before the queue overflows.
//!
//! ```text
//! Standard --RTT rises--> Conservative --5 rounds--> Done
//!     ^                       |
//!     +------RTT falls--------+
//! ```
//! A round ends when a packet sent after its beginning is acknowledged. There is no limit on growth per
//! acknowledgement (`L` is infinite), because packets are paced (section 4.3).

use crate::congestion::Acked;
use godwit_base::Time;
use std::time::Duration;

const MIN_RTT_THRESHOLD: Duration = Duration::from_millis(4);
const MAX_RTT_THRESHOLD: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u32 = 8;
/// Samples in a round before it is judged.
const SAMPLES: u32 = 8;
/// Growth in conservative slow start is divided by this.
pub(super) const CSS_GROWTH_DIVISOR: u64 = 4;
/// Rounds of conservative slow start before it ends.
const CSS_ROUNDS: u32 = 5;

/// How fast the window may grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Slow start.
    Standard,
    /// Conservative slow start: a quarter of the growth.
    Conservative,
    /// Slow start is over.
    Done,
}

/// Conservative slow start, and what it was entered with.
#[derive(Debug, Clone, Copy)]
struct Conservative {
    baseline: Duration,
    rounds_left: u32,
}

/// RTT samples of the current and the last round.
#[derive(Debug, Clone)]
pub(super) struct HyStart {
    round_start: Option<Time>,
    last_round_min: Option<Duration>,
    round_min: Option<Duration>,
    samples: u32,
    conservative: Option<Conservative>,
}

impl HyStart {
    pub(super) fn new() -> Self {
        HyStart { round_start: None, last_round_min: None, round_min: None, samples: 0, conservative: None }
    }

    /// Takes in an acknowledgement and says how to go on.
    pub(super) fn on_ack(&mut self, acked: &Acked<'_>) -> Phase {
        let start = *self.round_start.get_or_insert(acked.now);
        if acked.largest_sent_at >= start && acked.now > start {
            self.begin_round(acked.now);
            if let Some(css) = &mut self.conservative {
                css.rounds_left = css.rounds_left.saturating_sub(1);
                if css.rounds_left == 0 {
                    return Phase::Done;
                }
            }
        }
        if let Some(sample) = acked.rtt_sample {
            self.round_min = Some(self.round_min.map_or(sample, |min| min.min(sample)));
            self.samples = self.samples.saturating_add(1);
            self.judge();
        }
        if self.conservative.is_some() { Phase::Conservative } else { Phase::Standard }
    }

    fn begin_round(&mut self, now: Time) {
        self.round_start = Some(now);
        self.last_round_min = self.round_min.or(self.last_round_min);
        self.round_min = None;
        self.samples = 0;
    }

    fn judge(&mut self) {
        let (Some(min), true) = (self.round_min, self.samples >= SAMPLES) else { return };
        match (self.conservative, self.last_round_min) {
            (Some(css), _) if min < css.baseline => self.conservative = None,
            (None, Some(last)) => {
                let eighth = last.checked_div(MIN_RTT_DIVISOR).unwrap_or_default();
                let rise = eighth.clamp(MIN_RTT_THRESHOLD, MAX_RTT_THRESHOLD);
                if min >= last.saturating_add(rise) {
                    self.conservative = Some(Conservative { baseline: min, rounds_left: CSS_ROUNDS });
                }
            }
            _ => {}
        }
    }
}
