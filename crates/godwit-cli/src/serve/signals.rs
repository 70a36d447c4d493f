//! The signals that the server heeds: SIGINT and SIGTERM end it, SIGHUP has it read its configuration again, SIGUSR1
//! open its log again. Elsewhere there is Ctrl-C.

use std::io;

use crate::error::{Failure, plain};

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What somebody wants of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    End,
    /// The terminal is gone, or the configuration has changed.
    Reload,
    /// The log's file has been moved away.
    Reopen,
}

#[derive(Debug)]
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    terminate: Signal,
    #[cfg(unix)]
    hang_up: Signal,
    #[cfg(unix)]
    user: Signal,
}

impl Signals {
    /// From here on the signals no longer end the program by themselves.
    pub(crate) fn install() -> Result<Signals, Failure> {
        Signals::try_install()
            .map_err(|error| Failure::new(format!("cannot listen for Ctrl-C: {}", plain(&error))))
    }

    #[cfg(unix)]
    fn try_install() -> io::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            user: signal(SignalKind::user_defined1())?,
        })
    }

    #[cfg(unix)]
    pub(super) async fn next(&mut self) -> Wish {
        tokio::select! {
            _ = self.interrupt.recv() => Wish::End,
            _ = self.terminate.recv() => Wish::End,
            _ = self.hang_up.recv() => Wish::Reload,
            _ = self.user.recv() => Wish::Reopen,
        }
    }

    #[cfg(not(unix))]
    fn try_install() -> io::Result<Signals> {
        Ok(Signals {})
    }

    #[cfg(not(unix))]
    pub(super) async fn next(&mut self) -> Wish {
        let _ = tokio::signal::ctrl_c().await;
        Wish::End
    }

    /// Waits for somebody to end the server.
    pub(crate) async fn end(&mut self) {
        while self.next().await != Wish::End {}
    }
}
