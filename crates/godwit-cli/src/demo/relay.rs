//! A relay on a thread of its own, so that what the visitors do does not delay packets.

use std::io;
use std::thread::JoinHandle;

use tokio::sync::{mpsc, oneshot};

use crate::error::{Failure, plain};

/// A visit over UDP from this client port is over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended(pub(super) u16);

/// A running relay, stopped when dropped.
#[derive(Debug)]
pub(super) struct Relay {
    pub(super) ended: mpsc::UnboundedSender<Ended>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Runs what `make` makes, within a runtime on a new thread.
    pub(super) fn start<M, F>(make: M) -> Result<Relay, Failure>
    where
        M: FnOnce(mpsc::UnboundedReceiver<Ended>) -> F + Send + 'static,
        F: Future<Output = io::Result<()>>,
    {
        let failed = |error: io::Error| Failure::new(format!("cannot start the relay: {}", plain(&error)));
        let (ended, receiver) = mpsc::unbounded_channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let body = move || {
            runtime.block_on(async {
                tokio::select! {
                    outcome = async { make(receiver).await } => if let Err(error) = outcome {
                        tracing::error!(%error, "the relay has failed");
                    },
                    _ = stopped => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("relay".to_owned()).spawn(body).map_err(failed)?;
        Ok(Relay { ended, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
