//! The signals that end the server: SIGINT and SIGTERM, elsewhere Ctrl-C.

use std::io;

use crate::error::{Failure, plain};

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

#[derive(Debug)]
pub(super) struct Signals {
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    terminate: Signal,
}

impl Signals {
    /// From here on the signals no longer end the program by themselves.
    pub(super) fn install() -> Result<Signals, Failure> {
        Signals::try_install()
            .map_err(|error| Failure::new(format!("cannot listen for Ctrl-C: {}", plain(&error))))
    }

    #[cfg(unix)]
    fn try_install() -> io::Result<Signals> {
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Signals { interrupt, terminate: signal(SignalKind::terminate())? })
    }

    #[cfg(unix)]
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    #[cfg(not(unix))]
    fn try_install() -> io::Result<Signals> {
        Ok(Signals {})
    }

    #[cfg(not(unix))]
    pub(super) async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}
