//! Waiting, on a thread of the application's, until what a connection was asked for before has been done: all that it had to hear
//! was told, and what it had to send was sent.
//!
//! What is asked for is done at once, but for this.

use super::gate::Opening;

/// Those of whose connections everything has been told.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// What came behind that is to be sent yet.
    to_send: Vec<Opening>,
    /// The worker sends now.
    sending: Vec<Opening>,
    /// What has been delivered last was so behind what the turn has sent. A turn delivers twice, before it sends and afterwards.
    is_second: bool,
}

impl Waiting {
    pub(super) fn add(&mut self, opening: Opening) {
        self.to_send.push(opening);
    }

    /// Nothing is left to tell, or others are to have their turn. True if somebody waits on.
    pub(super) fn on_delivered(&mut self) -> bool {
        if self.is_second {
            self.sending.clear();
        } else {
            self.sending.append(&mut self.to_send);
        }
        self.is_second = !self.is_second;
        !self.to_send.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::super::news::ConnectionNews;
    use super::*;
    use std::sync::Arc;

    #[test]
    fn who_waits_passes_when_the_turn_is_over_that_has_sent() {
        for second in [false, true] {
            let (gate, opening) = Opening::new();
            let is_waited_for = || Arc::strong_count(&gate) > 1;
            let mut waiting = Waiting::default();
            if second {
                assert!(!waiting.on_delivered());
            }
            waiting.add(opening);
            if second {
                assert!(waiting.on_delivered() && is_waited_for());
            }
            assert!(!waiting.on_delivered() && is_waited_for());
            assert!(!waiting.on_delivered() && !is_waited_for());
            gate.wait();
        }
    }

    #[test]
    fn who_waits_for_what_is_gone_passes() {
        let (gate, opening) = Opening::new();
        drop(ConnectionNews::CaughtUp(opening));
        gate.wait();
    }
}
