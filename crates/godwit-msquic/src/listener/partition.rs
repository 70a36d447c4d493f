//! Listeners in a partition: all of their connections are at one worker, and they are told everything on its thread.

use super::Listener;
use crate::abi::ListenerEvent;
use crate::worker::{Worker, pool};
use std::sync::Arc;

impl Listener {
    /// The worker whose thread is to tell it something, if that is not this one.
    pub(super) fn teller(&self) -> Option<&'static Worker> {
        let number = u8::try_from(self.partition()?).ok()?;
        pool()?.worker(number).filter(|worker| !worker.tells_here())
    }

    /// Tells it what has to do with no connection, if it is still started then.
    pub(crate) fn call_in_partition(
        self: &Arc<Self>,
        event: impl FnOnce() -> ListenerEvent + Send + 'static,
    ) {
        let told = Arc::clone(self);
        let tell = move || {
            told.call(&mut event());
        };
        match self.teller() {
            Some(worker) => worker.visit(|_, inside| inside.errands.push(Box::new(tell))),
            None => tell(),
        }
    }
}
