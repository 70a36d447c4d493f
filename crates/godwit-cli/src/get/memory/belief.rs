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

/// What is believed of a network, or of one server's UDP port. Times are seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Belief {
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
pub(super) enum Stance {
    /// TCP can wait a little.
    Trust,
    /// Both at once.
    Doubt,
    /// Not now.
    Blocked,
}

impl Belief {
    pub(super) fn stance(&self, now: i64) -> Stance {
        match self.silences {
            0 => Stance::Trust,
            silences if silences < BLOCKED || now >= self.next_probe() || now < self.latest => Stance::Doubt,
            _ => Stance::Blocked,
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
        *self = Belief { heard: now, ..Belief::default() };
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
        let mut belief = Belief::default();
        assert_eq!(belief.stance(1000), Stance::Trust);
        belief.on_silence(1000, "a", 1, false);
        assert_eq!(belief.stance(1000), Stance::Doubt);
        let mut now = 1000;
        for pause in [30, 120, 600, 3600, 3600, 3600] {
            belief.on_silence(now, "a", 1, false);
            assert_eq!(belief.stance(now + pause - 1), Stance::Blocked, "{pause}");
            assert_eq!(belief.stance(now + pause), Stance::Doubt, "{pause}");
            now += pause;
        }
        assert_eq!(belief.since, 1000);
        belief.on_heard(now);
        assert_eq!(belief.stance(now), Stance::Trust);
    }

    #[test]
    fn one_silent_server_does_not_block_a_network() {
        let mut network = Belief::default();
        for now in 0..5 {
            network.on_silence(10_000 + now, "a", 2, true);
        }
        assert_eq!(network.stance(10_010), Stance::Doubt);
        network.on_silence(10_010, "b", 1, true);
        assert_eq!(network.stance(10_011), Stance::Blocked);

        network.on_heard(20_000);
        network.on_silence(20_001, "a", 1, true);
        assert_eq!(network.stance(20_002), Stance::Trust, "another server was heard a second ago");
        network.on_silence(20_000 + FRESH, "a", 1, true);
        assert_eq!(network.stance(20_000 + FRESH), Stance::Doubt);
    }

    #[test]
    fn a_clock_that_was_set_back_blocks_nothing() {
        let mut belief = Belief::default();
        belief.on_silence(1_000_000, "a", 5, false);
        assert_eq!(belief.stance(1_000_001), Stance::Blocked);
        assert_eq!(belief.stance(500), Stance::Doubt);
    }
}
