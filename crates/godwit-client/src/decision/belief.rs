//! What is thought of UDP on a network, or of one server's UDP: the odds that it is blocked, from evidence.
//!
//! Each piece of evidence moves the odds by how much likelier it is where UDP is blocked than where it works (Bayes' rule, in
//! logarithms, so that evidence adds up). That something came back over UDP all but proves that it works. That nothing came
//! back to a flight of packets, although TCP had no difficulty at that time, happens one time in ten where UDP works, and
//! more often on a network on which TCP has difficulties now and then. And however often one server is silent, it may be the
//! server: a network becomes blocked only by the silence of two.
//!
//! At even odds nobody tries QUIC any more, except in the background, more and more rarely. In between QUIC and TCP are tried
//! at the same time: QUIC wins where it works, and costs nothing where it does not. What is known fades.
//!
//! That a connection dies in the midst of its life is a matter of its own: where handshakes pass and the rest does not, every
//! handshake would seem to prove that all is well. It is forgotten when a connection has carried a good deal.

use serde::{Deserialize, Serialize};

/// When QUIC is tried again in the background, in seconds after the last silence.
const BACK_OFF: [i64; 4] = [30, 2 * 60, 10 * 60, 3600];
/// Silences from which on the pauses grow.
const BLOCKED: u32 = 2;

/// The logarithm of odds, in thousandths.
type Odds = i32;

/// Of networks of which nothing is known about 3 % block UDP.
const PRIOR: Odds = -3500;
/// Something came back.
const HEARD: Odds = -6000;
/// As sure as one can be of the contrary.
const SURE: Odds = 6000;
/// From here on, a chance of 15 %, TCP does not wait for QUIC.
const DOUBT: Odds = -1700;
/// A flight is lost one time in ten where all is well.
const FLIGHT: Odds = 2300;
/// The same where TCP always has difficulties: one time in two.
const FLIGHT_IN_TROUBLE: Odds = 690;
/// What one server's silence can say of its network: one server in ten has no HTTP/3 where it offers it.
const ONE_SERVER: Odds = 2300;
/// In this time, in seconds, half of what is known for UDP fades.
const FADES: i64 = 3600;
/// The same of what is known against it: probes end that sooner where it is wrong.
const FADES_AGAINST: i64 = 24 * 3600;
/// Share of connections over TCP that have difficulties, in thousandths: how far one moves it.
const WEIGHT_OF_ONE: i32 = 8;

/// What is known of a network, or of one server's UDP port. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub(crate) struct Belief {
    /// When something last came back over UDP; 0: never.
    heard: i64,
    /// Attempts since then to which nothing came back although TCP had no difficulty.
    silences: u32,
    /// When the first of them was.
    pub(crate) since: i64,
    /// When the last of them was.
    latest: i64,
    /// Whose silence was the last one.
    whose: String,
    /// The odds that UDP is blocked, when anything was last learnt.
    odds: Odds,
    /// How many connections over TCP have difficulties of late, in thousandths.
    trouble: i32,
    /// Connections that died in the midst of their life, since one has carried a good deal.
    deaths: u32,
    /// When the last of them did.
    died: i64,
    /// The lowest round-trip time of late to anywhere, in microseconds.
    rtt: Option<u64>,
}

/// The same as it stands in a file, which may be one of a version that knew less.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Stored {
    heard: i64,
    silences: u32,
    since: i64,
    latest: i64,
    whose: String,
    odds: Option<Odds>,
    trouble: i32,
    deaths: u32,
    died: i64,
    rtt: Option<u64>,
}

impl From<Stored> for Belief {
    fn from(stored: Stored) -> Belief {
        let Stored { heard, silences, since, latest, whose, odds, trouble, deaths, died, rtt } = stored;
        let told = i32::try_from(silences).unwrap_or(i32::MAX).saturating_mul(FLIGHT);
        let odds = odds.unwrap_or(match (silences, heard) {
            (0, 0) => PRIOR,
            (0, _) => HEARD,
            _ => PRIOR.saturating_add(told),
        });
        let (odds, trouble) = (odds.clamp(HEARD, SURE), trouble.clamp(0, 1000));
        Belief { heard, silences, since, latest, whose, odds, trouble, deaths, died, rtt }
    }
}

impl Default for Belief {
    fn default() -> Belief {
        Stored::default().into()
    }
}

/// How to treat QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum UdpState {
    /// TCP can wait a little.
    Works,
    /// Both at once.
    Doubtful,
    /// Not now.
    Blocked,
}

impl Belief {
    pub(crate) fn state(&self, now: i64) -> UdpState {
        let odds = self.odds_now(now);
        let blocked = odds >= 0 || self.deaths > 0;
        match blocked {
            false if odds < DOUBT => UdpState::Works,
            true if now < self.next_probe() && now >= self.latest.max(self.died) => UdpState::Blocked,
            _ => UdpState::Doubtful,
        }
    }

    /// When QUIC is tried next, where it is blocked.
    pub(crate) fn next_probe(&self) -> i64 {
        let pause = |step: u32| {
            let step = usize::try_from(step).unwrap_or(usize::MAX);
            BACK_OFF.get(step).or(BACK_OFF.last()).copied().unwrap_or_default()
        };
        let silent = (self.silences > 0).then(|| {
            let pause = pause(self.silences.saturating_sub(BLOCKED));
            self.latest.saturating_add(pause)
        });
        let dead = self.deaths.checked_sub(1).map(|step| self.died.saturating_add(pause(step)));
        silent.max(dead).unwrap_or_default()
    }

    /// The odds, faded since anything was last learnt.
    fn odds_now(&self, now: i64) -> Odds {
        let age = now.saturating_sub(self.heard.max(self.latest)).max(0);
        let fades = if self.odds < PRIOR { FADES } else { FADES_AGAINST };
        let halvings = u32::try_from(age / fades).unwrap_or(u32::MAX);
        // Between two halvings it fades evenly, which is close enough.
        let from = (self.odds - PRIOR).checked_shr(halvings).unwrap_or(0);
        let part = i64::from(from / 2).saturating_mul(age % fades) / fades;
        PRIOR + from - i32::try_from(part).unwrap_or_default()
    }

    /// Something came back.
    pub(crate) fn on_heard(&mut self, now: i64) {
        let Belief { trouble, deaths, died, rtt, .. } = *self;
        let since = if deaths > 0 { self.since } else { 0 };
        *self = Belief { heard: now, since, odds: HEARD, trouble, deaths, died, rtt, ..Belief::default() };
    }

    /// Nothing came back to so many flights of packets to `whom`, while TCP had no difficulty. `shared`: this is about a
    /// network, not about that server.
    pub(crate) fn on_silence(&mut self, now: i64, whom: &str, flights: u32, shared: bool) {
        let odds = self.odds_now(now);
        if self.silences == 0 {
            self.since = now;
        }
        let again = shared && self.silences > 0 && self.whose == whom;
        let flight = FLIGHT - (FLIGHT - FLIGHT_IN_TROUBLE) * self.trouble / 1000;
        let told = flight.saturating_mul(i32::try_from(flights).unwrap_or(i32::MAX));
        let told = match (again, shared) {
            (true, _) => 0,
            (false, true) => told.min(ONE_SERVER),
            (false, false) => told,
        };
        self.odds = odds.saturating_add(told).min(SURE);
        self.latest = now;
        if !again {
            self.silences = self.silences.saturating_add(if shared { 1 } else { flights });
            whom.clone_into(&mut self.whose);
        }
    }

    /// A connection over TCP was made, with or without difficulties.
    pub(crate) fn on_tcp(&mut self, difficult: bool) {
        let one = if difficult { 1000 } else { 0 };
        self.trouble += (one - self.trouble) / WEIGHT_OF_ONE;
    }

    /// A connection died in the midst of its life.
    pub(crate) fn on_death(&mut self, now: i64) {
        if self.silences == 0 && self.deaths == 0 {
            self.since = now;
        }
        self.deaths = self.deaths.saturating_add(1);
        self.died = now;
    }

    /// A connection has carried a good deal. Whether that is news.
    pub(crate) fn on_proven(&mut self) -> bool {
        std::mem::take(&mut self.deaths) > 0
    }

    /// A round-trip time was measured. The figure follows slowly if paths become longer.
    pub(crate) fn on_rtt(&mut self, micros: u64) {
        self.rtt = Some(slow_minimum(self.rtt, micros));
    }

    /// The lowest round-trip time of late to anywhere, in microseconds.
    pub(crate) fn rtt(&self) -> Option<u64> {
        self.rtt
    }

    /// When anything was last learnt.
    pub(crate) fn last_change(&self) -> i64 {
        self.heard.max(self.latest).max(self.died)
    }
}

/// The lowest of the figures so far; it follows, slowly, if they become higher.
pub(crate) fn slow_minimum(known: Option<u64>, now: u64) -> u64 {
    known.map_or(now, |known| known.saturating_add(known / 4 + 1000).min(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubt_comes_before_blocking_and_probes_get_rarer() {
        let mut udp = Belief::default();
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
        let mut network = Belief::default();
        for now in 0..5 {
            network.on_silence(10_000 + now, "a", 2, true);
        }
        assert_eq!(network.state(10_010), UdpState::Doubtful);
        network.on_silence(10_010, "b", 1, true);
        assert_eq!(network.state(10_011), UdpState::Blocked);
    }

    #[test]
    fn where_others_are_heard_it_takes_more() {
        let mut network = Belief::default();
        network.on_heard(20_000);
        network.on_silence(20_001, "a", 1, true);
        assert_eq!(network.state(20_002), UdpState::Works, "another server was heard a second ago");
        network.on_silence(20_003, "b", 1, true);
        assert_eq!(network.state(20_003), UdpState::Doubtful);
        network.on_silence(20_004, "c", 1, true);
        assert_eq!(network.state(20_004), UdpState::Blocked, "it may have come to be blocked since");
        // The same a day later.
        let mut network = Belief::default();
        network.on_heard(20_000);
        network.on_silence(20_000 + 24 * 3600, "a", 1, true);
        assert_eq!(network.state(20_000 + 24 * 3600), UdpState::Doubtful);
    }

    #[test]
    fn silence_says_less_where_tcp_has_difficulties_too() {
        let mut network = Belief::default();
        for _ in 0..30 {
            network.on_tcp(true);
        }
        for (now, whom) in [(1000, "a"), (1001, "b")] {
            network.on_silence(now, whom, 1, true);
        }
        assert_eq!(network.state(1002), UdpState::Works);
        for _ in 0..60 {
            network.on_tcp(false);
        }
        network.on_silence(1003, "c", 1, true);
        assert_ne!(network.state(1004), UdpState::Works);
    }

    #[test]
    fn who_has_nothing_new_to_say_is_forgotten() {
        let mut network = Belief::default();
        network.on_silence(1000, "a", 1, true);
        network.on_silence(1001, "b", 1, true);
        assert_eq!(network.state(1002), UdpState::Blocked);
        assert_eq!(network.state(1000 + 2 * 24 * 3600), UdpState::Works);
    }

    #[test]
    fn handshakes_do_not_excuse_deaths() {
        let mut server = Belief::default();
        server.on_heard(1000);
        let mut now = 1000;
        for pause in [30, 120, 600] {
            server.on_death(now);
            assert_eq!(server.state(now + pause - 1), UdpState::Blocked, "{pause}");
            now += pause;
            server.on_heard(now);
            assert_eq!(server.state(now), UdpState::Doubtful);
        }
        assert!(server.on_proven() && !server.on_proven());
        assert_eq!(server.state(now), UdpState::Works);
    }

    #[test]
    fn a_clock_that_was_set_back_blocks_nothing() {
        let mut udp = Belief::default();
        udp.on_silence(1_000_000, "a", 5, false);
        assert_eq!(udp.state(1_000_001), UdpState::Blocked);
        assert_eq!(udp.state(500), UdpState::Doubtful);
    }

    #[test]
    fn what_earlier_versions_wrote_is_read() {
        let read = |text: &str| serde_json::from_str::<Belief>(text).unwrap();
        let silent = r#"{"heard":0,"silences":2,"since":900,"latest":1000,"whose":"b"}"#;
        assert_eq!(read(silent).state(1001), UdpState::Blocked);
        assert_eq!(read(&silent.replace(":2", ":1")).state(1001), UdpState::Doubtful);
        let heard = r#"{"heard":1000,"silences":0,"since":0,"latest":0,"whose":""}"#;
        let mut heard = read(heard);
        heard.on_silence(1001, "a", 1, true);
        assert_eq!(heard.state(1001), UdpState::Works);
        assert_eq!(read("{}"), Belief::default());
        let now: Belief = serde_json::from_str(&serde_json::to_string(&heard).unwrap()).unwrap();
        assert_eq!(now, heard);
        // Whatever the file says.
        let odd =
            read(r#"{"odds":2147483647,"trouble":-7,"deaths":4294967295,"heard":-9223372036854775808}"#);
        let _ = (odd.state(i64::MAX), odd.state(i64::MIN), odd.next_probe());
    }
}
