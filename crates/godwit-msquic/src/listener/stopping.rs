//! Listeners that stop, and are closed: that is told once, when no callback is under way any more.
//!
//! Where all of a listener's connections are at one worker, that worker's thread tells it, as it tells of them; who closes the
//! listener on another thread waits. A thread that polls the worker tells it then and there, for nobody else would.

use super::{Listener, Phase, State, bindings};
use crate::abi::{ListenerEvent, StopComplete};
use std::sync::{Arc, PoisonError};
use std::thread::ThreadId;

impl Listener {
    /// Ends listening. When no callback is under way any more, that is told.
    pub(crate) fn stop(self: &Arc<Self>) {
        let mut state = self.state();
        if !matches!(state.phase, Phase::Started) {
            return;
        }
        state.phase = Phase::Stopping;
        // Until it has left its address, nobody may tell that it has stopped: it could be started again meanwhile.
        let thread = std::thread::current().id();
        state.calls.push(thread);
        drop(state);
        bindings::remove(self);
        self.end_call(thread);
    }

    /// A callback has returned on this thread, or what counts as one.
    pub(super) fn end_call(self: &Arc<Self>, thread: ThreadId) {
        let mut state = self.state();
        if let Some(at) = state.calls.iter().position(|call| *call == thread) {
            state.calls.swap_remove(at);
        }
        drop(state);
        // Who closes it in another callback waits for this one.
        self.changed.notify_all();
        self.tell_stopped(&[]);
    }

    /// The application closes it: it is stopped, and that was told, when this returns, unless that is being told on this thread.
    /// In another of its callbacks it is told within that one, for what belongs to the listener may be gone when it returns.
    pub(crate) fn close(self: &Arc<Self>) {
        self.state().is_closed = true;
        self.stop();
        let thread = std::thread::current().id();
        let in_callback = self.state().calls.contains(&thread);
        let but_on = if in_callback { &[thread][..] } else { &[] };
        let is_left = self.teller().is_some();
        let is_busy = |state: &mut State| match state.phase {
            Phase::Stopped | Phase::Started => false,
            Phase::Stopping => state.is_called_elsewhere(but_on),
            Phase::LeftToWorker => is_left,
            Phase::Telling(teller) => teller != thread,
        };
        // What could be left to the worker only now is waited for as well.
        for _ in 0..2 {
            let waited = self.changed.wait_while(self.state(), is_busy);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            self.tell_stopped(but_on);
        }
    }

    /// Tells that it has stopped, or has it told, if it is to and no call is under way but on these threads.
    pub(super) fn tell_stopped(self: &Arc<Self>, but_on: &[ThreadId]) {
        // Who closes it in one of its callbacks is told within that.
        let teller = self.teller().filter(|_| but_on.is_empty());
        let mut state = self.state();
        if !matches!(state.phase, Phase::Stopping | Phase::LeftToWorker) || state.is_called_elsewhere(but_on)
        {
            return;
        }
        if let Some(worker) = teller {
            if matches!(state.phase, Phase::Stopping) {
                state.phase = Phase::LeftToWorker;
                drop(state);
                let stopped = Arc::clone(self);
                worker.visit(|_, inside| inside.errands.push(Box::new(move || stopped.tell_stopped(&[]))));
            }
            return;
        }
        state.phase = Phase::Telling(std::thread::current().id());
        let (whom, is_closed) = ((state.handler, state.context), state.is_closed);
        drop(state);
        let event = StopComplete::default().with_app_close_in_progress(is_closed);
        self.invoke(whom, &mut ListenerEvent::stop_complete(event));
        self.state().phase = Phase::Stopped;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use crate::registration::Registration;

    #[test]
    fn nobody_tells_that_it_has_stopped_before_it_has_left_its_address() {
        let listener = Arc::new(Listener::new(Registration::open(None), None, Context::NONE));
        listener.state().phase = Phase::Started;
        std::thread::scope(|scope| {
            let all = bindings::hold();
            let stopping = scope.spawn(|| listener.stop());
            while matches!(listener.state().phase, Phase::Started) {
                std::thread::yield_now();
            }
            // A callback ends meanwhile.
            listener.tell_stopped(&[]);
            assert!(matches!(listener.state().phase, Phase::Stopping));
            drop(all);
            stopping.join().unwrap();
        });
        assert!(matches!(listener.state().phase, Phase::Stopped));
    }
}
