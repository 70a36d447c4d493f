//! The signals that a server heeds: SIGINT and SIGTERM end it, SIGHUP has it read its configuration again, SIGUSR1
//! open its log again, SIGUSR2 hand over to a new process. Elsewhere there is Ctrl-C.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::FrontError;

/// What a signal asks the server to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// By this signal.
    End(&'static str),
    /// The terminal is gone, or the configuration has changed.
    Reload,
    /// The log's file has been moved away.
    Reopen,
    /// A new process is to take over.
    HandOver,
}

/// The signals of this process that are about the server.
#[derive(Debug)]
pub struct Signals {
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    terminate: Signal,
    #[cfg(unix)]
    hang_up: Signal,
    #[cfg(unix)]
    first_user: Signal,
    #[cfg(unix)]
    second_user: Signal,
}

impl Signals {
    /// From here on the signals no longer end the program by themselves. In a tokio runtime with its I/O.
    ///
    /// # Errors
    /// If the system does not let the process listen for them.
    pub fn install() -> Result<Signals, FrontError> {
        Signals::try_install().map_err(|error| {
            FrontError::new(format!("cannot listen for Ctrl-C: {}", godwit_text::plain_error(&error)))
        })
    }

    #[cfg(unix)]
    fn try_install() -> io::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            first_user: signal(SignalKind::user_defined1())?,
            second_user: signal(SignalKind::user_defined2())?,
        })
    }

    #[cfg(unix)]
    pub(crate) async fn next(&mut self) -> Command {
        tokio::select! {
            _ = self.interrupt.recv() => Command::End("SIGINT"),
            _ = self.terminate.recv() => Command::End("SIGTERM"),
            _ = self.hang_up.recv() => Command::Reload,
            _ = self.first_user.recv() => Command::Reopen,
            _ = self.second_user.recv() => Command::HandOver,
        }
    }

    #[cfg(not(unix))]
    fn try_install() -> io::Result<Signals> {
        Ok(Signals {})
    }

    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) -> Command {
        let _ = tokio::signal::ctrl_c().await;
        Command::End("Ctrl-C")
    }
}
