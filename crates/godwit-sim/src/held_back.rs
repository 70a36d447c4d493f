//! Where a host's system comes in: timers that go off late, and packets that it holds back until they may leave.

use godwit_base::{SendMeta, Time};
use std::collections::BTreeMap;
use std::time::Duration;

/// Packets with the times at which they leave; those of one time leave in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct HeldBack {
    packets: BTreeMap<(Time, u64), (SendMeta, Vec<u8>)>,
    number: u64,
}

impl HeldBack {
    /// A packet that leaves at `at`.
    pub(crate) fn push(&mut self, at: Time, meta: SendMeta, datagram: &[u8]) {
        self.packets.insert((at, self.number), (meta, datagram.to_vec()));
        self.number += 1;
    }

    /// When the next one leaves.
    pub(crate) fn next(&self) -> Option<Time> {
        self.packets.first_key_value().map(|((at, _), _)| *at)
    }

    /// One that leaves by `now`.
    pub(crate) fn pop(&mut self, now: Time) -> Option<(SendMeta, Vec<u8>)> {
        self.next().filter(|at| *at <= now)?;
        self.packets.pop_first().map(|(_, packet)| packet)
    }
}

/// When a timer set to `at` goes off on a system whose timers do so at multiples of `tick` only.
pub(crate) fn at_tick(at: Time, tick: Duration) -> Time {
    let tick = u64::try_from(tick.as_nanos()).unwrap_or(u64::MAX);
    at.as_nanos().checked_next_multiple_of(tick).map_or(at, Time::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_go_off_at_ticks_and_never_early() {
        let at = |micros| Time::ZERO + Duration::from_micros(micros);
        let late = |micros| at_tick(at(micros), Duration::from_millis(1));
        assert_eq!((late(0), late(1), late(1000), late(1001)), (at(0), at(1000), at(1000), at(2000)));
        assert_eq!(at_tick(at(7), Duration::ZERO), at(7));
        assert_eq!(at_tick(Time::MAX, Duration::from_millis(1)), Time::MAX);
    }
}
