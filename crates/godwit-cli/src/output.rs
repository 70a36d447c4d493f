//! What only a program knows of its output: whether a person watches.

use std::io::IsTerminal;

pub(crate) use godwit_text::{
    Style, date, duration, instant_now, parse_http_date, printable, printable_bytes, shell_word, size,
    unix_now,
};

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
