//! A worker that has no thread: it works when the application polls it.
//!
//! The thread that polls is the worker's own as long as that takes. Between two polls it may close handles: what these have still
//! to hear is told then and there, for nobody else would.

use super::delivery::{deliver, deliver_all};
use super::gate::Gate;
use super::polled::Polled;
use super::pool::Worker;
use super::state::TurnOf;

/// What is answered to who has nothing to wait for.
const WITHOUT_END: u32 = u32::MAX;

/// What is answered while another thread polls the same worker: to try again soon, in milliseconds.
const BUSY: u32 = 1;

impl Worker {
    /// Does what there is to do, and says for how many milliseconds may be waited before the next time.
    pub(super) fn poll(&self) -> u32 {
        let Some(polled) = self.polled.get() else { return WITHOUT_END };
        let Some(mut driver) = polled.idle() else { return BUSY };
        let Some(driver) = driver.as_mut() else { return WITHOUT_END };
        polled.take_over();
        match self.as_current(|| driver.poll(&mut || deliver(self))) {
            // What is due within a millisecond is not due at once.
            Ok(wait) => wait.map_or(WITHOUT_END, |wait| {
                u32::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(WITHOUT_END)
            }),
            Err(why) => {
                // Whoever waits for something of this worker would wait for ever.
                eprintln!("godwit: a worker that is polled has ended, and the program with it: {why}");
                std::process::abort();
            }
        }
    }

    /// Whether what is to be told on its thread can be told now, on this one.
    pub(crate) fn tells_here(&self) -> bool {
        self.is_current() || self.polled.get().is_some_and(|polled| polled.idle_here().is_some())
    }

    /// What a closed handle has still to hear is told before this returns. Who waits for another thread to do that waits at the
    /// gate, if there is one to wait at.
    pub(crate) fn tell_rest(&self, whose: TurnOf, gate: Option<&Gate>) {
        if self.is_current() {
            // A callback of another worker's may be under way on top of one of this one's.
            self.as_current(|| deliver_all(self, whose));
        } else if let Some(_idle) = self.polled.get().and_then(Polled::idle_here) {
            self.as_current(|| deliver_all(self, whose));
            // No callback is under way.
            self.visit(|_, state| state.departed.clear());
        } else if let Some(gate) = gate {
            gate.wait();
        }
    }
}
