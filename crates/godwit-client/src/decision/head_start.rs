//! How long TCP waits for QUIC: no longer than QUIC needs where UDP works, so that it costs little where it does not.

use std::time::Duration;

/// The head start where nothing is known of the round-trip time.
const UNKNOWN: Duration = Duration::from_millis(50);
/// The shortest head start: even a server next door has to compute.
pub(crate) const SHORTEST: Duration = Duration::from_millis(20);
/// What a head start may last beyond the round-trip time.
const BEYOND: Duration = Duration::from_millis(40);
/// From the first sign of life on, a handshake may take this much longer before TCP is begun, where nothing is
/// known of the round-trip time, or it is short.
const LIVELY: Duration = Duration::from_millis(300);

/// How long TCP waits for QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeadStart {
    /// As long as nothing has come back.
    pub(crate) silent: Duration,
    /// Besides, if something has.
    pub(crate) lively: Duration,
    /// When TCP is there and QUIC, of which something was heard, is not: how long it may still take. `None`: as long as a round
    /// trip over TCP took.
    pub(crate) hold: Option<Duration>,
}

impl HeadStart {
    pub(crate) const NONE: HeadStart =
        HeadStart { silent: Duration::ZERO, lively: Duration::ZERO, hold: None };

    /// The first answer over QUIC comes after one round trip.
    pub(crate) fn after(rtt: Option<Duration>) -> HeadStart {
        let Some(rtt) = rtt else { return HeadStart { silent: UNKNOWN, lively: LIVELY, hold: None } };
        let usual = rtt + rtt / 4 + BEYOND / 4;
        let silent = usual.clamp(SHORTEST, rtt + BEYOND);
        HeadStart { silent, lively: LIVELY.max(rtt * 2), hold: Some(rtt) }
    }
}

/// The first estimate of the round-trip time for QUIC, where a figure is known: a first packet is sent again after three times
/// the estimate (RFC 9002 section 6.2.2), which shall be one and a half round trips, before TCP, begun meanwhile, is there.
pub(crate) fn first_estimate(rtt: Option<Duration>) -> Option<Duration> {
    rtt.map(|rtt| (rtt / 2).max(SHORTEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_start_follows_the_round_trip_time() {
        const MS: fn(u64) -> Duration = Duration::from_millis;
        let silent = |rtt| HeadStart::after(Some(MS(rtt))).silent;
        assert_eq!((silent(0), silent(4), silent(100), silent(1000)), (MS(20), MS(20), MS(135), MS(1040)));
    }
}
