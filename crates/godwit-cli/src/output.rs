//! What only a program does: it prints, knows whether a person watches, and hears when somebody wants it to end.

use std::io::{IsTerminal, Write};
use std::path::Path;

pub(crate) use godwit_text::{Style, instant_now, printable, shell_word, size};

use crate::error::{Failure, plain};
use crate::signals::Signals;

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

/// Makes sure, before there is anything to write, that it can be written to a file. None is there afterwards that was not
/// before: whoever ends the program early finds no empty one.
pub(crate) fn check_writable(file: impl AsRef<Path>) -> Result<(), Failure> {
    let file = file.as_ref();
    let is_new = file.try_exists().is_ok_and(|exists| !exists);
    let opened = std::fs::OpenOptions::new().create(true).append(true).open(file);
    let checked = opened.and_then(|_| if is_new { std::fs::remove_file(file) } else { Ok(()) });
    checked.map_err(|error| unwritable(file, &error))
}

/// Writes a file.
pub(crate) fn write(file: &Path, bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
    std::fs::write(file, bytes).map_err(|error| unwritable(file, &error))
}

fn unwritable(file: &Path, error: &std::io::Error) -> Failure {
    Failure::file("cannot write", file, plain(error), "give a file in a folder that exists")
}

/// A runtime on this thread.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::new(format!("no runtime: {}", plain(&error))))
}

/// Somebody wants the program to end. From the call on, within a runtime, they no longer can without it.
pub(crate) fn interrupted() -> impl Future<Output = ()> {
    let signals = Signals::install();
    async move {
        match signals {
            Ok(mut signals) => signals.next().await,
            // They still can.
            Err(_) => std::future::pending().await,
        }
    }
}
