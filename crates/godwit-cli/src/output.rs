//! What only a program does: it prints, knows whether a person watches, and hears when somebody wants it to end.

use std::io::{IsTerminal, Write};

pub(crate) use godwit_text::{Style, duration, instant_now, printable, shell_word, size};

use crate::error::{Failure, plain};

/// Colours for standard output, if it takes them.
pub(crate) fn stdout_style() -> Style {
    style(std::io::stdout().is_terminal())
}

/// The same of standard error.
pub(crate) fn stderr_style() -> Style {
    style(std::io::stderr().is_terminal())
}

/// A terminal that is not dumb takes colours, unless `NO_COLOR` is set.
fn style(terminal: bool) -> Style {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if terminal && !dumb && !set("NO_COLOR") { Style::COLOURED } else { Style::PLAIN }
}

/// Writes to the standard output, at once.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_or(text, "cannot write to the standard output")
}

/// The same, and how it is said that it cannot be.
pub(crate) fn print_or(text: &str, problem: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|error| Failure::new(format!("{problem}: {}", plain(&error))))
}

/// The same where a reader may have closed the pipe because it has seen enough: false then.
pub(crate) fn print_while_read(text: &[u8]) -> Result<bool, Failure> {
    match std::io::stdout().lock().write_all(text) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::new(format!("cannot write to the standard output: {}", plain(&error)))),
    }
}

/// A runtime on this thread.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::new(format!("no runtime: {}", plain(&error))))
}

/// Ctrl-C or, on Unix, a request to end. From the call on, within a runtime, they no longer end the program by
/// themselves.
pub(crate) fn interrupted() -> impl Future<Output = ()> {
    #[cfg(unix)]
    let signals = {
        use tokio::signal::unix::{SignalKind, signal};
        signal(SignalKind::interrupt()).and_then(|first| Ok((first, signal(SignalKind::terminate())?)))
    };
    async move {
        #[cfg(unix)]
        if let Ok((mut interrupted, mut terminated)) = signals {
            tokio::select! {
                _ = interrupted.recv() => {}
                _ = terminated.recv() => {}
            }
            return;
        }
        let _ = tokio::signal::ctrl_c().await;
    }
}
