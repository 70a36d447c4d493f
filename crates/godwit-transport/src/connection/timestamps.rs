//! TIMESTAMP frames (draft-huitema-quic-ts, with the numbers that MsQuic uses): each end tells the other what its clock
//! says, so that the delay of one direction can be told from that of the other.
//!
//! A frame goes in front of every ACK frame of 1-RTT packets, if the peer would like that. The clock of this end begins
//! when the peer's transport parameters are known: nobody learns for how long the process or the machine has been up.
//!
//! The clocks of two machines differ by an amount that nobody can measure. As an estimate, the fastest round trip is taken to
//! have been as long on the way there as on the way back, and what the clocks differ by then holds until there is a faster one:
//! whatever a later packet takes longer on its way there is delay of that direction. Clocks that drift apart make
//! that worse with time; a faster round trip makes it good.
//!
//! Invariants: nothing is sent or kept unless both ends have said so in their transport parameters, and a frame that was not
//! asked for is a PROTOCOL_VIOLATION; a timestamp counts only for ACK frames behind it in its own packet.

use crate::WireError;
use crate::part::{NoToken, Part};
use crate::path::PathId;
use godwit_base::Time;
use godwit_wire::TransportErrorCode;
use godwit_wire::codec::VARINT_MAX;
use godwit_wire::transport_parameters::Timestamps;
use std::time::Duration;

/// What the ends tell one another of their clocks.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    /// None unless something was negotiated: most connections have nothing to keep.
    negotiated: Option<Box<Negotiated>>,
}

/// How long packets take from this end to the peer, so far as that can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OneWayDelay {
    /// Of the newest packet that was acknowledged with a timestamp.
    pub(crate) latest: Duration,
    /// The mean of late: each new one counts for an eighth.
    pub(crate) smoothed: Duration,
}

#[derive(Debug)]
struct Negotiated {
    what: Timestamps,
    /// What the clock that the peer is told begins with.
    began: Time,
    /// The number of the newest packet with a timestamp, and what it said, in microseconds.
    heard: Option<(u64, i64)>,
    estimate: Option<Estimate>,
}

/// All in microseconds.
#[derive(Debug, Clone, Copy)]
struct Estimate {
    /// By what the peer's clock is taken to be ahead of our own.
    ahead: i64,
    /// The round trip from which that follows: the fastest.
    fastest: i64,
    latest: i64,
    smoothed: i64,
    path: PathId,
}

impl Clocks {
    /// The peer's transport parameters have come; `enabled` says whether this end has offered everything or nothing.
    pub(super) fn on_peer_parameters(&mut self, now: Time, enabled: bool, peer: Timestamps) {
        let what = Timestamps { send: enabled && peer.receive, receive: enabled && peer.send };
        self.negotiated = (what != Timestamps::default())
            .then(|| Box::new(Negotiated { what, began: now, heard: None, estimate: None }));
    }

    /// What was negotiated.
    pub(crate) fn negotiated(&self) -> Timestamps {
        self.negotiated.as_deref().map_or_else(Timestamps::default, |it| it.what)
    }

    /// What an ACK frame of a 1-RTT packet that leaves at `now` is to be preceded by, in microseconds.
    #[inline]
    pub(super) fn stamp(&self, now: Time) -> Option<u64> {
        let negotiated = self.negotiated.as_deref().filter(|it| it.what.send)?;
        Some((micros(now.saturating_since(negotiated.began)) as u64).min(VARINT_MAX))
    }

    /// A TIMESTAMP frame in the packet with this number.
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION if it was not negotiated.
    pub(super) fn on_timestamp(&mut self, packet: u64, micros: u64) -> Result<(), WireError> {
        let Some(negotiated) = self.negotiated.as_deref_mut().filter(|it| it.what.receive) else {
            let reason = "TIMESTAMP that was not negotiated";
            return Err(WireError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason));
        };
        negotiated.heard = Some((packet, i64::try_from(micros).unwrap_or(i64::MAX)));
        Ok(())
    }

    /// An ACK frame in the packet with this number gave a sample of the round-trip time, of which `ack_delay` was the peer's.
    /// `path` is the one in use.
    #[inline]
    pub(super) fn on_rtt_sample(
        &mut self,
        now: Time,
        packet: u64,
        path: PathId,
        rtt: Duration,
        ack_delay: Duration,
    ) {
        let Some(negotiated) = self.negotiated.as_deref_mut() else { return };
        let Some((_, theirs)) = negotiated.heard.filter(|(number, _)| *number == packet) else { return };
        negotiated.on_exchange(path, Exchange::new(now, theirs, rtt, ack_delay));
    }

    /// What was found on this path, if anything was.
    pub(crate) fn one_way_delay(&self, path: PathId) -> Option<OneWayDelay> {
        let estimate = self.negotiated.as_deref()?.estimate.filter(|it| it.path == path)?;
        let [latest, smoothed] =
            [estimate.latest, estimate.smoothed].map(|it| Duration::from_micros(it.max(0) as u64));
        Some(OneWayDelay { latest, smoothed })
    }
}

/// A packet and the answer to it, in microseconds.
struct Exchange {
    /// When the packet left, by our clock.
    sent: i64,
    /// When it came, by the peer's.
    received: i64,
    /// How long both ways took.
    rtt: i64,
}

impl Exchange {
    fn new(now: Time, theirs: i64, rtt: Duration, ack_delay: Duration) -> Self {
        // As with the round-trip time: a delay longer than all of it cannot be true.
        let delay = if ack_delay <= rtt { ack_delay } else { Duration::ZERO };
        Exchange {
            sent: i64::try_from((now - rtt).as_micros()).unwrap_or(i64::MAX),
            received: theirs.saturating_sub(micros(delay)),
            rtt: micros(rtt.saturating_sub(delay)),
        }
    }
}

impl Negotiated {
    fn on_exchange(&mut self, path: PathId, exchange: Exchange) {
        let apart = exchange.received.saturating_sub(exchange.sent);
        let known = self.estimate.filter(|known| exchange.rtt >= known.fastest);
        self.estimate = Some(match known {
            Some(known) => {
                let latest = apart.saturating_sub(known.ahead).max(0);
                let smoothed = if known.path == path { weighed(known.smoothed, latest) } else { latest };
                Estimate { latest, smoothed, path, ..known }
            }
            None => {
                let half = exchange.rtt / 2;
                let ahead = apart.saturating_sub(half);
                Estimate { ahead, fastest: exchange.rtt, latest: half, smoothed: half, path }
            }
        });
    }
}

/// The mean so far, and a new value that counts for an eighth.
const fn weighed(mean: i64, new: i64) -> i64 {
    mean.saturating_add(new.saturating_sub(mean) / 8)
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

impl Part for Clocks {
    type Token = NoToken;
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "tests")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOTH: Timestamps = Timestamps { receive: true, send: true };
    const PATH: PathId = PathId(0);

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn clocks(peer: Timestamps) -> Clocks {
        let mut clocks = Clocks::default();
        clocks.on_peer_parameters(at(1000), true, peer);
        clocks
    }

    /// A packet that takes so many milliseconds to a peer whose clock shows so much less, waits there and is answered.
    fn exchange(clocks: &mut Clocks, number: u64, (there, wait, back): (u64, u64, u64), behind: u64) {
        let sent = 100_000 + 1000 * number;
        let theirs = (sent + there + wait - behind) * 1000;
        clocks.on_timestamp(number, theirs).unwrap();
        let rtt = Duration::from_millis(there + wait + back);
        let now = at(sent + there + wait + back);
        clocks.on_rtt_sample(now, number, PATH, rtt, Duration::from_millis(wait));
    }

    fn millis(clocks: &Clocks) -> Option<(u128, u128)> {
        clocks.one_way_delay(PATH).map(|it| (it.latest.as_millis(), it.smoothed.as_millis()))
    }

    #[test]
    fn each_direction_is_negotiated_by_itself() {
        for (receive, send) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut clocks = clocks(Timestamps { receive, send });
            assert_eq!(clocks.negotiated(), Timestamps { receive: send, send: receive });
            assert_eq!(clocks.stamp(at(1003)), receive.then_some(3000));
            assert_eq!(clocks.on_timestamp(1, 2).is_ok(), send);
        }
        let mut clocks = Clocks::default();
        clocks.on_peer_parameters(at(1000), false, BOTH);
        assert_eq!(clocks.negotiated(), Timestamps::default(), "what was not offered is not there");
        assert!(clocks.stamp(at(1003)).is_none() && clocks.on_timestamp(1, 2).is_err());
    }

    #[test]
    fn what_one_direction_takes_longer_is_told_from_the_other() {
        let mut clocks = clocks(BOTH);
        assert_eq!(millis(&clocks), None);
        exchange(&mut clocks, 1, (20, 3, 20), 90_000);
        assert_eq!(millis(&clocks), Some((20, 20)));
        exchange(&mut clocks, 2, (28, 0, 20), 90_000);
        assert_eq!(millis(&clocks), Some((28, 21)));
        exchange(&mut clocks, 3, (20, 7, 300), 90_000);
        assert_eq!(millis(&clocks), Some((20, 20)), "the way back is not of interest");
        exchange(&mut clocks, 4, (5, 0, 5), 90_000);
        assert_eq!(millis(&clocks), Some((5, 5)), "a faster round trip");
    }

    #[test]
    fn a_timestamp_counts_in_its_own_packet_only() {
        let mut clocks = clocks(BOTH);
        clocks.on_timestamp(1, 5).unwrap();
        clocks.on_rtt_sample(at(3000), 2, PATH, Duration::from_millis(5), Duration::ZERO);
        assert_eq!(millis(&clocks), None);
    }

    #[test]
    fn another_path_begins_anew() {
        let mut clocks = clocks(BOTH);
        exchange(&mut clocks, 1, (20, 0, 20), 0);
        assert_eq!(clocks.one_way_delay(PathId(1)), None);
        clocks.on_timestamp(2, 200_070_000).unwrap();
        let (now, rtt) = (at(200_100), Duration::from_millis(100));
        clocks.on_rtt_sample(now, 2, PathId(1), rtt, Duration::ZERO);
        let delay = Duration::from_millis(70);
        assert_eq!(clocks.one_way_delay(PathId(1)), Some(OneWayDelay { latest: delay, smoothed: delay }));
    }

    proptest! {
        #[test]
        fn no_clock_is_too_strange(stamps in prop::collection::vec((0..=VARINT_MAX, any::<u64>(), any::<u32>(), any::<u64>()), 1..9)) {
            let mut clocks = clocks(BOTH);
            for (stamp, now, rtt, delay) in stamps {
                let (rtt, delay) = (Duration::from_micros(rtt.into()), Duration::from_micros(delay));
                clocks.on_timestamp(1, stamp).unwrap();
                clocks.on_rtt_sample(Time::from_nanos(now), 1, PATH, rtt, delay);
                let told = clocks.one_way_delay(PATH).unwrap();
                prop_assert!(told.latest.as_micros() <= i64::MAX as u128);
            }
        }
    }
}
