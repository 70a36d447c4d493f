//! Whether QUIC is worth a try, from what happened before: evidence, not one time-out.
//!
//! A first silence, while TCP found its way at once, only means that nobody waits for QUIC any more: it is tried at
//! the same time as TCP, and still wins where it works. After a second one it is tried in the background only, more
//! and more rarely. One answer over UDP ends all of that.

use serde::{Deserialize, Serialize};

/// When QUIC is tried again in the background, in seconds after the last silence.
const BACK_OFF: [i64; 4] = [30, 2 * 60, 10 * 60, 3600];
/// Silences from which on a path counts as blocked.
const BLOCKED: u32 = 2;
/// How long an answer over UDP speaks for a network, in seconds.
const FRESH: i64 = 3600;

/// What is known of a network, or of one server's UDP port. Times are seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct UdpHistory {
    /// When something last came back over UDP; 0: never.
    heard: i64,
    /// Attempts since then to which nothing came back although TCP had no difficulty.
    silences: u32,
    /// When the first of them was.
    pub(super) since: i64,
    /// When the last of them was.
    latest: i64,
    /// Whose silence was the last one: one server that is silent does not make a network blocked.
    whose: String,
}

/// How to treat QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum UdpState {
    /// TCP can wait a little.
    Works,
    /// Both at once.
    Doubtful,
    /// Not now.
    Blocked,
}

impl UdpHistory {
    pub(super) fn state(&self, now: i64) -> UdpState {
        match self.silences {
            0 => UdpState::Works,
            silences if silences < BLOCKED || now >= self.next_probe() || now < self.latest => {
                UdpState::Doubtful
            }
            _ => UdpState::Blocked,
        }
    }

    /// When QUIC is tried next, where it is blocked.
    pub(super) fn next_probe(&self) -> i64 {
        let step = usize::try_from(self.silences.saturating_sub(BLOCKED)).unwrap_or(usize::MAX);
        let pause = BACK_OFF.get(step).or(BACK_OFF.last()).copied().unwrap_or_default();
        self.latest.saturating_add(pause)
    }

    /// Something came back.
    pub(super) fn on_heard(&mut self, now: i64) {
        *self = UdpHistory { heard: now, ..UdpHistory::default() };
    }

    /// Nothing came back to `weight` flights of packets sent to `whom`.
    pub(super) fn on_silence(&mut self, now: i64, whom: &str, weight: u32, shared: bool) {
        if shared && self.heard > 0 && now >= self.heard && now.saturating_sub(self.heard) < FRESH {
            // Others are heard on this network: it is the server.
            return;
        }
        if self.silences == 0 {
            self.since = now;
        }
        self.latest = now;
        if shared && self.silences > 0 && self.whose == whom {
            return;
        }
        self.silences = self.silences.saturating_add(if shared { 1 } else { weight });
        whom.clone_into(&mut self.whose);
    }

    /// When anything was last learnt.
    pub(super) fn last_change(&self) -> i64 {
        self.heard.max(self.latest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubt_comes_before_blocking_and_probes_get_rarer() {
        let mut udp = UdpHistory::default();
        assert_eq!(udp.state(1000), UdpState::Works);
        udp.on_silence(1000, "a", 1, false);
        assert_eq!(udp.state(1000), UdpState::Doubtful);
        let mut now = 1000;
        for pause in [30, 120, 600, 3600, 3600, 3600] {
            udp.on_silence(now, "a", 1, false);
            assert_eq!(udp.state(now + pause - 1), UdpState::Blocked, "{pause}");
            assert_eq!(udp.state(now + pause), UdpState::Doubtful, "{pause}");
            now += pause;
        }
        assert_eq!(udp.since, 1000);
        udp.on_heard(now);
        assert_eq!(udp.state(now), UdpState::Works);
    }

    #[test]
    fn one_silent_server_does_not_block_a_network() {
        let mut network = UdpHistory::default();
        for now in 0..5 {
            network.on_silence(10_000 + now, "a", 2, true);
        }
        assert_eq!(network.state(10_010), UdpState::Doubtful);
        network.on_silence(10_010, "b", 1, true);
        assert_eq!(network.state(10_011), UdpState::Blocked);

        network.on_heard(20_000);
        network.on_silence(20_001, "a", 1, true);
        assert_eq!(network.state(20_002), UdpState::Works, "another server was heard a second ago");
        network.on_silence(20_000 + FRESH, "a", 1, true);
        assert_eq!(network.state(20_000 + FRESH), UdpState::Doubtful);
    }

    #[test]
    fn a_clock_that_was_set_back_blocks_nothing() {
        let mut udp = UdpHistory::default();
        udp.on_silence(1_000_000, "a", 5, false);
        assert_eq!(udp.state(1_000_001), UdpState::Blocked);
        assert_eq!(udp.state(500), UdpState::Doubtful);
    }
}
