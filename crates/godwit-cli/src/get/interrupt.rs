//! Ctrl-C: unfinished files are removed, the servers are told, and the program ends. It ends within a second in
//! any case, and at once with a second Ctrl-C: the thread that listens is none that may be busy writing.

use std::time::Duration;

use godwit_client::download::remove_unfinished;
use tokio::sync::oneshot;

use crate::error::{Failure, plain};

/// How long the orderly way may take.
const GRACE: Duration = Duration::from_secs(1);

/// Starts to listen. What is returned is ready when the program shall end.
pub(super) fn listen() -> Result<oneshot::Receiver<()>, Failure> {
    let failed = |error| Failure::new(format!("cannot listen for Ctrl-C: {}", plain(&error)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let (sender, receiver) = oneshot::channel();
    let mut signals = {
        let _inside = runtime.enter();
        Signals::install().map_err(failed)?
    };
    let listener = move || {
        runtime.block_on(async {
            signals.next().await;
            let _ = sender.send(());
            tokio::select! {
                () = signals.next() => {}
                () = tokio::time::sleep(GRACE) => {}
            }
        });
        remove_unfinished();
        std::process::exit(1);
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(listener).map_err(failed)?;
    Ok(receiver)
}

#[cfg(unix)]
struct Signals([tokio::signal::unix::Signal; 3]);

#[cfg(unix)]
impl Signals {
    fn install() -> std::io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals([
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ]))
    }

    async fn next(&mut self) {
        let Signals([interrupt, terminate, hangup]) = self;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn install() -> std::io::Result<Signals> {
        Ok(Signals)
    }

    async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}
