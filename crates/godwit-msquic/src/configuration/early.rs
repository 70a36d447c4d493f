//! Tickets that are good for 0-RTT, and the first flights that have made use of them.
//!
//! A client may come back with the same ticket more than once, as with MsQuic. But whoever records its first flight can send
//! it again, with the 0-RTT packets in it. So each ClientHello that asks for 0-RTT is good for it once (RFC 8446 section 8.2): it is
//! recorded by its random, which the client's proof of the session covers. It is recorded for as long as TLS might take
//! it for fresh (section 8.3). Where so many have come that there is no room to record another, no 0-RTT is taken. That proof is
//! looked at later: who has seen a ticket can fill the record with ClientHellos that prove nothing, and keep others from 0-RTT.
//!
//! A ticket is known here from when it is given out, with what the client may send before it hears anything (RFC 9000
//! section 7.4.1): a server that permits less today takes no 0-RTT. What is not known resumes a session without 0-RTT, as
//! what another process has given out, which does not know the flights that came here.

use crate::credential::EarlyId;
use godwit_base::Time;
use godwit_transport::TransportConfig;
use godwit_transport::tls::fill_random;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Tickets that are known at once, for each configuration. When there are more, the oldest are forgotten.
const MOST_TICKETS: usize = 16_384;

/// ClientHellos recorded in one period.
const MOST_FLIGHTS: usize = 65_536;

/// Twice what the ages of a ticket at client and server may differ by for TLS to take a ClientHello for fresh (a minute), and
/// a little more: from the first time that it is fresh to the last.
const PERIOD: Duration = Duration::from_secs(130);

/// The random of a ClientHello (RFC 8446 section 4.1.2).
pub(crate) type Random = [u8; 32];

/// The tickets of a configuration that are good for 0-RTT.
#[derive(Debug, Default)]
pub(crate) struct EarlyTickets(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    tickets: HashMap<EarlyId, Limits>,
    /// Those, in the order in which they were given out.
    order: VecDeque<EarlyId>,
    flights: Flights,
}

/// The ClientHellos that have come: in this period, and in the one before.
#[derive(Debug, Default)]
struct Flights {
    current: HashSet<Random>,
    last: HashSet<Random>,
    /// When this period is over.
    until: Time,
}

/// What a client may make use of in 0-RTT packets.
type Limits = [u64; 6];

impl EarlyTickets {
    /// Knows a ticket from now on, for clients that keep to these limits. `None` if there are no random numbers.
    pub(crate) fn give(&self, limits: &TransportConfig) -> Option<EarlyId> {
        let mut id = EarlyId::default();
        fill_random(&mut id).ok()?;
        let mut known = self.known();
        if known.order.len() >= MOST_TICKETS
            && let Some(oldest) = known.order.pop_front()
        {
            known.tickets.remove(&oldest);
        }
        known.order.push_back(id);
        known.tickets.insert(id, limits_of(limits));
        Some(id)
    }

    /// Whether a ClientHello with this random is good for 0-RTT with a ticket, under these limits. It is not from now on.
    pub(crate) fn permits(&self, id: &EarlyId, limits: &TransportConfig, random: Random, now: Time) -> bool {
        let mut known = self.known();
        let Some(before) = known.tickets.get(id) else { return false };
        let keeps_to_limits = before.iter().zip(limits_of(limits)).all(|(before, now)| *before <= now);
        keeps_to_limits && known.flights.record(random, now)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flights {
    /// Whether this is the first time, and there is room to know it.
    fn record(&mut self, random: Random, now: Time) -> bool {
        if now >= self.until {
            let current = std::mem::take(&mut self.current);
            // Where nothing has come for longer, neither is of this time any more.
            let is_recent = now < self.until + PERIOD;
            self.last = if is_recent { current } else { HashSet::new() };
            self.until = now + PERIOD;
        }
        self.current.len() < MOST_FLIGHTS && !self.last.contains(&random) && self.current.insert(random)
    }
}

fn limits_of(config: &TransportConfig) -> Limits {
    [
        config.initial_connection_window,
        config.initial_stream_window,
        config.max_bidi_streams,
        config.max_uni_streams,
        config.datagrams.max_frame_size,
        config.active_cid_limit,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::ZERO;

    #[test]
    fn a_ticket_is_good_in_one_place_and_for_each_client_hello_once() {
        let (tickets, others, limits) =
            (EarlyTickets::default(), EarlyTickets::default(), TransportConfig::default());
        let [one, two] = [(); 2].map(|()| tickets.give(&limits).unwrap());
        assert_ne!(one, two);
        assert!(!others.permits(&one, &limits, [1; 32], NOW));
        assert!(tickets.permits(&one, &limits, [1; 32], NOW));
        assert!(tickets.permits(&one, &limits, [2; 32], NOW), "the client has come back");
        for id in [one, two] {
            assert!(!tickets.permits(&id, &limits, [1; 32], NOW), "somebody has sent it again");
        }
    }

    #[test]
    fn lower_limits_than_before_rule_it_out() {
        let (tickets, mut limits) = (EarlyTickets::default(), TransportConfig::default());
        for (random, (change, good)) in (0..).zip([(1, true), (0, true), (-1, false)]) {
            let id = tickets.give(&limits).unwrap();
            limits.max_bidi_streams = limits.max_bidi_streams.saturating_add_signed(change);
            assert_eq!(tickets.permits(&id, &limits, [random; 32], NOW), good, "{change}");
        }
    }

    #[test]
    fn the_oldest_tickets_are_forgotten() {
        let (tickets, limits) = (EarlyTickets::default(), TransportConfig::default());
        let first = tickets.give(&limits).unwrap();
        let mut last = first;
        for _ in 0..MOST_TICKETS {
            last = tickets.give(&limits).unwrap();
        }
        assert!(!tickets.permits(&first, &limits, [1; 32], NOW));
        assert!(tickets.permits(&last, &limits, [1; 32], NOW));
        assert_eq!(tickets.known().tickets.len(), MOST_TICKETS);
    }

    #[test]
    fn flights_are_known_as_long_as_they_are_fresh() {
        let mut flights = Flights::default();
        let mut now = NOW;
        assert!(flights.record([0; 32], now));
        for random in 1..6 {
            now += PERIOD.mul_f32(0.99);
            assert!(flights.record([random; 32], now));
            assert!(!flights.record([random - 1; 32], now), "{random}");
        }
        now += PERIOD * 2;
        assert!(flights.record([5; 32], now), "it is not fresh any more, as TLS says");
    }

    #[test]
    fn what_cannot_be_recorded_is_refused() {
        let mut flights = Flights::default();
        for number in 0..u32::try_from(MOST_FLIGHTS).unwrap() {
            let mut random = [0; 32];
            random[..4].copy_from_slice(&number.to_be_bytes());
            assert!(flights.record(random, NOW));
        }
        assert!(!flights.record([0xff; 32], NOW));
        assert!(flights.record([0xff; 32], NOW + PERIOD));
    }
}
