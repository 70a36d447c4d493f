//! Whether HTTP/3 works at a port: by the server's own probes, and by what becomes of clients' handshakes.
//!
//! - Nothing is said before the first probe has passed.
//! - A failed probe withdraws the advertisement; it takes [`PASSES`] that pass in a row to bring it back.
//! - If of at least [`FEWEST`] handshakes of the last one to two [`WINDOW`]s less than half were finished, it is
//!   withdrawn as well, for [`FIRST_BREAK`], and each time that happens again for twice as long, up to
//!   [`LONGEST_BREAK`]. It comes back earlier if four in five are finished again: clients remember for long what
//!   they were told, so there are attempts even then.
//!
//! Time is how long the program has run; it is given.

use std::time::Duration;

const PASSES: u32 = 2;
const FEWEST: u32 = 20;
const WINDOW: Duration = Duration::from_secs(60);
const FIRST_BREAK: Duration = Duration::from_secs(300);
const LONGEST_BREAK: Duration = Duration::from_secs(3600);

/// What is to be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing: it is not known whether it works, and nobody was told that it does.
    Unproved = 0,
    /// That there is HTTP/3.
    Open = 1,
    /// That there no longer is.
    Withdrawn = 2,
}

impl State {
    /// The one of that number.
    pub(super) fn of(number: u8) -> State {
        match number {
            1 => State::Open,
            2 => State::Withdrawn,
            _ => State::Unproved,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Health {
    /// It has worked once.
    proved: bool,
    reachable: bool,
    /// Probes that passed since the last that failed.
    passes: u32,
    window: Window,
    /// Clients' handshakes fail: nothing before this.
    broken_until: Option<Duration>,
    breaks: u32,
}

/// The handshakes of this and the last minute.
#[derive(Debug, Default)]
struct Window {
    begun: Duration,
    this: Count,
    last: Count,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    finished: u32,
    failed: u32,
}

impl Window {
    fn add(&mut self, now: Duration, finished: bool) {
        let age = now.saturating_sub(self.begun);
        if age >= WINDOW {
            self.last = if age < WINDOW * 2 { self.this } else { Count::default() };
            self.this = Count::default();
            self.begun = now;
        }
        let count = if finished { &mut self.this.finished } else { &mut self.this.failed };
        *count = count.saturating_add(1);
    }

    /// Finished ones and all, if there are enough to judge by.
    fn judge(&self) -> Option<(u32, u32)> {
        let finished = self.this.finished.saturating_add(self.last.finished);
        let all = finished.saturating_add(self.this.failed).saturating_add(self.last.failed);
        (all >= FEWEST).then_some((finished, all))
    }
}

impl Health {
    pub(super) fn on_probe(&mut self, _now: Duration, passed: bool) {
        self.passes = if passed { self.passes.saturating_add(1) } else { 0 };
        self.reachable = passed && (self.reachable || !self.proved || self.passes >= PASSES);
        self.proved |= passed;
    }

    /// A client's handshake was finished, or was not.
    pub(super) fn on_handshake(&mut self, now: Duration, finished: bool) {
        self.window.add(now, finished);
        let Some((finished, all)) = self.window.judge() else { return };
        let broken = self.is_broken(now);
        if !broken && finished.saturating_mul(2) < all {
            let wait = FIRST_BREAK.saturating_mul(1 << self.breaks.min(8)).min(LONGEST_BREAK);
            self.broken_until = Some(now.saturating_add(wait));
            self.breaks = self.breaks.saturating_add(1);
            self.window = Window { begun: now, ..Window::default() };
        } else if finished.saturating_mul(5) >= all.saturating_mul(4) {
            self.broken_until = None;
            if !broken {
                self.breaks = 0;
            }
        }
    }

    pub(super) fn state(&self, now: Duration) -> State {
        match (self.proved, self.reachable && !self.is_broken(now)) {
            (_, true) => State::Open,
            (true, false) => State::Withdrawn,
            (false, false) => State::Unproved,
        }
    }

    /// Whether the probes pass.
    pub(super) fn is_reachable(&self) -> bool {
        self.reachable
    }

    fn is_broken(&self, now: Duration) -> bool {
        self.broken_until.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn proved() -> Health {
        let mut health = Health::default();
        health.on_probe(at(0), true);
        health
    }

    fn handshakes(health: &mut Health, now: u64, finished: u32, failed: u32) {
        (0..finished).for_each(|_| health.on_handshake(at(now), true));
        (0..failed).for_each(|_| health.on_handshake(at(now), false));
    }

    #[test]
    fn the_first_probe_that_passes_opens() {
        let mut health = Health::default();
        assert_eq!(health.state(at(0)), State::Unproved);
        health.on_probe(at(1), false);
        assert_eq!(health.state(at(1)), State::Unproved, "nobody was told anything that could be taken back");
        health.on_probe(at(2), true);
        assert_eq!(health.state(at(2)), State::Open);
    }

    #[test]
    fn a_probe_that_fails_withdraws_until_two_have_passed() {
        let mut health = proved();
        health.on_probe(at(30), false);
        assert_eq!(health.state(at(30)), State::Withdrawn);
        health.on_probe(at(60), true);
        assert_eq!(health.state(at(60)), State::Withdrawn);
        health.on_probe(at(90), true);
        assert_eq!(health.state(at(90)), State::Open);
    }

    #[test]
    fn handshakes_that_fail_withdraw() {
        let mut health = proved();
        handshakes(&mut health, 10, 0, 19);
        assert_eq!(health.state(at(10)), State::Open, "too few to judge by");
        handshakes(&mut health, 10, 0, 1);
        assert_eq!(health.state(at(10)), State::Withdrawn);
        health.on_probe(at(30), true);
        health.on_probe(at(60), true);
        assert_eq!(health.state(at(60)), State::Withdrawn, "probes say nothing about clients' networks");
        assert_eq!(health.state(at(310)), State::Open, "another try");
        handshakes(&mut health, 400, 0, 20);
        assert_eq!(health.state(at(400 + 599)), State::Withdrawn, "for twice as long");
        assert_eq!(health.state(at(400 + 600)), State::Open);
    }

    #[test]
    fn half_is_enough_and_four_fifths_bring_it_back() {
        let mut health = proved();
        handshakes(&mut health, 10, 20, 20);
        assert_eq!(health.state(at(10)), State::Open);
        handshakes(&mut health, 11, 0, 1);
        assert_eq!(health.state(at(11)), State::Withdrawn);
        handshakes(&mut health, 20, 15, 5);
        assert_eq!(health.state(at(20)), State::Withdrawn, "not enough to bring it back");
        handshakes(&mut health, 21, 5, 0);
        assert_eq!(health.state(at(21)), State::Open, "20 of 25");
    }

    #[test]
    fn old_handshakes_are_forgotten() {
        let mut health = proved();
        handshakes(&mut health, 10, 0, 19);
        handshakes(&mut health, 200, 0, 19);
        assert_eq!(health.state(at(200)), State::Open);
        handshakes(&mut health, 261, 0, 1);
        assert_eq!(health.state(at(261)), State::Withdrawn, "the last minute counts with this one");
    }
}
