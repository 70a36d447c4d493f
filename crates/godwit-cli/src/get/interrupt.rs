//! Ctrl-C: unfinished files are removed, the servers are told, and the program ends. It ends within a second in
//! any case, and at once with a second Ctrl-C: the thread that listens is none that may be busy writing.

use std::time::Duration;

use godwit_client::download::remove_unfinished;
use tokio::sync::oneshot;

use crate::error::{Failure, plain};
use crate::output;
use crate::signals::Signals;

/// How long the orderly way may take.
const GRACE: Duration = Duration::from_secs(1);

/// Starts to listen. What is returned is ready when the program shall end.
pub(super) fn listen() -> Result<oneshot::Receiver<()>, Failure> {
    let failed = |error| Failure::new(format!("cannot listen for Ctrl-C: {}", plain(&error)));
    let runtime = output::runtime()?;
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
