//! How fast the link sends what waits in its queue: at one rate, at rates that change at given times, or at the
//! opportunities of a trace.

use crate::{IpVersion, Opportunities, Rate};
use godwit_base::Time;
use std::sync::Arc;
use std::time::Duration;

/// Bytes on the wire's account that one opportunity delivers: an IP packet of 1500 bytes.
const OPPORTUNITY: u64 = 1500 + IpVersion::ETHERNET_OVERHEAD as u64;
/// Billionths of a bit in a byte.
const PER_BYTE: u128 = 8_000_000_000;

/// Sends packets one after the other.
#[derive(Debug, Clone)]
pub(crate) enum Service {
    Rates(Rates),
    Trace(Trace),
}

/// From when to when a packet is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) begins: Time,
    pub(crate) ends: Time,
}

/// Rates that hold from given times on.
#[derive(Debug, Clone)]
pub(crate) struct Rates {
    rate: Rate,
    /// Those to come, the next one last.
    steps: Vec<(Time, Rate)>,
    busy_until: Time,
    /// What is left of the last packet at `busy_until`, in billionths of a bit: less than a nanosecond's worth, without
    /// which the rate would be a little off for every packet.
    remainder: u128,
}

/// A trace of opportunities, and the one that the next packet goes with.
#[derive(Debug, Clone)]
pub(crate) struct Trace {
    opportunities: Arc<Opportunities>,
    number: u64,
    /// What is left of that one.
    bytes: u64,
}

impl Service {
    pub(crate) fn at_rates(rate: Rate, mut steps: Vec<(Time, Rate)>) -> Self {
        steps.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        Service::Rates(Rates { rate, steps, busy_until: Time::ZERO, remainder: 0 })
    }

    pub(crate) fn by_trace(opportunities: Arc<Opportunities>) -> Self {
        Service::Trace(Trace { opportunities, number: 0, bytes: OPPORTUNITY })
    }

    /// When a packet that enters now begins to be sent.
    pub(crate) fn begins(&mut self, now: Time) -> Time {
        match self {
            Service::Rates(rates) => rates.busy_until.max(now),
            Service::Trace(trace) => trace.begins(now),
        }
    }

    /// Sends a packet of `bytes` that enters now.
    pub(crate) fn serve(&mut self, now: Time, bytes: u64) -> Slot {
        match self {
            Service::Rates(rates) => rates.serve(now, bytes),
            Service::Trace(trace) => trace.serve(now, bytes),
        }
    }

    /// When everything that has entered will have been sent.
    pub(crate) fn busy_until(&mut self, now: Time) -> Time {
        match self {
            Service::Rates(rates) => rates.busy_until,
            Service::Trace(trace) => trace.begins(now),
        }
    }

    /// How long about a packet of `bytes` takes at present.
    pub(crate) fn takes(&self, bytes: u64) -> Duration {
        let time = self.packet_time().as_nanos() * u128::from(bytes) / u128::from(OPPORTUNITY);
        Duration::from_nanos(u64::try_from(time).unwrap_or(u64::MAX))
    }

    /// How long about a full packet takes at present.
    pub(crate) fn packet_time(&self) -> Duration {
        let rate = match self {
            Service::Rates(rates) => rates.rate.as_bits_per_second(),
            Service::Trace(_) => return Duration::from_millis(1),
        };
        Duration::from_nanos(OPPORTUNITY * 8_000_000_000 / rate)
    }
}

impl Rates {
    fn serve(&mut self, now: Time, bytes: u64) -> Slot {
        if self.busy_until < now {
            self.busy_until = now;
            self.remainder = 0;
        }
        let begins = self.busy_until;
        let mut work = u128::from(bytes) * PER_BYTE + self.remainder;
        // What is done at each rate before the next one holds.
        while let Some((until, next)) = self.steps.last().copied() {
            let rate = u128::from(self.rate.as_bits_per_second());
            let done = until.saturating_since(self.busy_until).as_nanos() * rate;
            if done > work {
                break;
            }
            work -= done;
            self.busy_until = self.busy_until.max(until);
            self.rate = next;
            self.steps.pop();
        }
        let rate = self.rate.as_bits_per_second();
        let nanos = match u64::try_from(work) {
            // So it is for every packet, and a division of 64 bits is much quicker.
            Ok(work) => {
                self.remainder = u128::from(work % rate);
                work / rate
            }
            Err(_) => {
                self.remainder = work % u128::from(rate);
                u64::try_from(work / u128::from(rate)).unwrap_or(u64::MAX)
            }
        };
        self.busy_until += Duration::from_nanos(nanos);
        Slot { begins, ends: self.busy_until }
    }
}

impl Trace {
    fn begins(&mut self, now: Time) -> Time {
        if self.bytes == 0 {
            self.next();
        }
        if self.opportunities.time_of(self.number) < now {
            // Those that passed while nothing waited are lost, with what was left of the last one.
            self.number = self.opportunities.first_from(now);
            self.bytes = OPPORTUNITY;
        }
        self.opportunities.time_of(self.number)
    }

    fn serve(&mut self, now: Time, bytes: u64) -> Slot {
        let begins = self.begins(now);
        let mut left = bytes;
        while left > self.bytes {
            left -= self.bytes;
            self.next();
        }
        self.bytes -= left;
        Slot { begins, ends: self.opportunities.time_of(self.number) }
    }

    const fn next(&mut self) {
        self.number += 1;
        self.bytes = OPPORTUNITY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_rate_that_changes_amid_a_packet_holds_for_the_rest_of_it() {
        // 1000 bytes take a millisecond at 8 Mbit/s.
        let steps =
            vec![(ms(10), Rate::megabits(8)), (ms(2), Rate::megabits(4)), (ms(4), Rate::megabits(16))];
        let mut service = Service::at_rates(Rate::megabits(8), steps);
        let ends: Vec<_> = (0..5).map(|_| service.serve(Time::ZERO, 1_500).ends).collect();
        // 1.5 ms; then 0.5 ms at 8 and 2 ms at 4 Mbit/s; from then on 0.75 ms each at 16.
        assert_eq!(ends, [1_500, 4_000, 4_750, 5_500, 6_250].map(|us| Time::from_nanos(us * 1_000)));
        // A step in a silence holds as well.
        assert_eq!(service.serve(ms(20), 1_000), Slot { begins: ms(20), ends: ms(21) });
    }

    #[test]
    fn a_step_at_every_packet_loses_no_time() {
        let steps: Vec<_> =
            (1..=3_000).map(|at| (ms(at), Rate::megabits(if at % 2 == 1 { 3 } else { 7 }))).collect();
        let mut service = Service::at_rates(Rate::megabits(7), steps);
        // 7 and 3 Mbit/s by turns are 5: 625 bytes a millisecond. Packets of 613 bytes.
        let end = (0..2_000).map(|_| service.serve(Time::ZERO, 613).ends).last().unwrap();
        let expected = 2_000.0 * 613.0 / 625.0;
        let ends = end.as_nanos() as f64 / 1e6;
        assert!((ends - expected).abs() < 0.5, "{ends} ms and not {expected}");
    }

    #[test]
    fn opportunities_carry_full_packets_or_several_small_ones() {
        let trace = Arc::new(Opportunities::new(vec![1, 5, 5, 10]).unwrap());
        let mut service = Service::by_trace(trace);
        let full: Vec<_> = (0..4).map(|_| service.serve(Time::ZERO, OPPORTUNITY).ends).collect();
        assert_eq!(full, [1, 5, 5, 10].map(ms));
        // Two halves go at one opportunity, and a large packet takes two.
        let sizes = [OPPORTUNITY / 2, OPPORTUNITY / 2, 2 * OPPORTUNITY];
        let ends = sizes.map(|size| service.serve(Time::ZERO, size).ends);
        assert_eq!(ends, [11, 11, 15].map(ms));
        // What passed unused is gone.
        assert_eq!(service.serve(ms(16), 10).ends, ms(20));
        assert_eq!(service.serve(ms(100), 10), Slot { begins: ms(101), ends: ms(101) });
    }
}
