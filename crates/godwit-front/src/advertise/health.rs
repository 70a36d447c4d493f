//! Whether HTTP/3 works at a port at all: by the server's own probes.
//!
//! - Nothing is said before the first probe has passed.
//! - A failed probe withdraws the advertisement; it takes [`PASSES`] that pass in a row to bring it back.
//!
//! What becomes of clients' handshakes withdraws nothing from everybody: anybody can begin some in others' names. It
//! counts for the clients' own networks ([`super::networks`]).

const PASSES: u32 = 2;

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
}

impl Health {
    pub(super) fn on_probe(&mut self, passed: bool) {
        self.passes = if passed { self.passes.saturating_add(1) } else { 0 };
        self.reachable = passed && (self.reachable || !self.proved || self.passes >= PASSES);
        self.proved |= passed;
    }

    pub(super) fn state(&self) -> State {
        match (self.proved, self.reachable) {
            (_, true) => State::Open,
            (true, false) => State::Withdrawn,
            (false, false) => State::Unproved,
        }
    }

    /// Whether the probes pass.
    pub(super) fn is_reachable(&self) -> bool {
        self.reachable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_probe_that_passes_opens() {
        let mut health = Health::default();
        assert_eq!(health.state(), State::Unproved);
        health.on_probe(false);
        assert_eq!(health.state(), State::Unproved, "nobody was told anything that could be taken back");
        health.on_probe(true);
        assert_eq!(health.state(), State::Open);
    }

    #[test]
    fn a_probe_that_fails_withdraws_until_two_have_passed() {
        let mut health = Health::default();
        health.on_probe(true);
        health.on_probe(false);
        assert_eq!(health.state(), State::Withdrawn);
        health.on_probe(true);
        assert_eq!(health.state(), State::Withdrawn);
        health.on_probe(true);
        assert_eq!(health.state(), State::Open);
    }
}
