//! What the commands print: colours when a person watches, plain text otherwise, and numbers people can read.

mod time;

use std::borrow::Cow;
use std::io::IsTerminal;
use std::time::Duration;

pub(crate) use time::{date, http_date, instant_now, parse_http_date, unix_now};

/// Whether a stream takes colours: a terminal that is not dumb, and `NO_COLOR` unset or empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    coloured: bool,
}

impl Style {
    pub(crate) const PLAIN: Style = Style { coloured: false };

    pub(crate) fn of_stdout() -> Style {
        Style::of(std::io::stdout().is_terminal())
    }

    pub(crate) fn of_stderr() -> Style {
        Style::of(std::io::stderr().is_terminal())
    }

    fn of(terminal: bool) -> Style {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Style { coloured: terminal && !dumb && !set("NO_COLOR") }
    }

    pub(crate) fn is_coloured(self) -> bool {
        self.coloured
    }

    pub(crate) fn bold(self, text: &str) -> Cow<'_, str> {
        self.paint("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> Cow<'_, str> {
        self.paint("2", text)
    }

    pub(crate) fn red(self, text: &str) -> Cow<'_, str> {
        self.paint("31", text)
    }

    pub(crate) fn green(self, text: &str) -> Cow<'_, str> {
        self.paint("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> Cow<'_, str> {
        self.paint("33", text)
    }

    fn paint<'a>(self, code: &str, text: &'a str) -> Cow<'a, str> {
        if self.coloured { Cow::Owned(format!("\x1b[{code}m{text}\x1b[0m")) } else { Cow::Borrowed(text) }
    }
}

/// A size in binary units, with three digits at most: `0 B`, `208 KiB`, `7 MiB`, `1.5 GiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = UNITS[0];
    for next in &UNITS[1..] {
        if value < 1000.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if value >= 99.95 || (value - value.round()).abs() < 0.05 {
        format!("{value:.0} {unit}")
    } else {
        format!("{value:.1} {unit}")
    }
}

/// A duration as people write it: `0.31ms`, `12ms`, `4.1s`.
pub(crate) fn duration(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    match seconds {
        s if s < 0.009_95 => format!("{:.2}ms", s * 1e3),
        s if s < 0.999_5 => format!("{:.0}ms", s * 1e3),
        s => format!("{s:.1}s"),
    }
}

/// `text` as one word of a POSIX shell.
pub(crate) fn shell_word(text: &str) -> Cow<'_, str> {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,[]".contains(c);
    if !text.is_empty() && text.chars().all(safe) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
    }
}

/// `text` without what would move, colour or hide things on a terminal: control characters, and those that turn the
/// direction of writing or cannot be seen, are shown by their numbers (`\u{202e}`). Texts of people who write
/// without Latin letters stay as they are.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    let unfit = |c: char| c.is_control() || is_invisible(c);
    if !text.contains(unfit) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            c if unfit(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// The same of bytes that should be text: others are shown as `\x9b`.
pub(crate) fn printable_bytes(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        shown.push_str(&printable(chunk.valid()));
        shown.extend(chunk.invalid().escape_ascii().map(char::from));
    }
    shown
}

/// Characters that change how their neighbours look, and have no look of their own.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_printed_moves_the_cursor_or_turns_the_line() {
        for same in ["", "a b", "it's \"x\\y\"", "bücher.example", "हिन्दी", "a\u{301}"] {
            assert!(matches!(printable(same), Cow::Borrowed(text) if text == same), "{same}");
        }
        assert_eq!(printable("a\x1b[31mb\nc\u{9b}"), r"a\u{1b}[31mb\u{a}c\u{9b}");
        assert_eq!(printable("exe\u{202e}fdp.x"), r"exe\u{202e}fdp.x");
        assert_eq!(printable_bytes(b"a\x9b2J\xff\xc3\xbc\x1b"), "a\\x9b2J\\xffü\\u{1b}");
    }

    #[test]
    fn sizes_are_short() {
        let cases = [
            (0, "0 B"),
            (999, "999 B"),
            (212_992, "208 KiB"),
            (1536, "1.5 KiB"),
            (7_340_032, "7 MiB"),
            (1_610_612_736, "1.5 GiB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn durations_are_short() {
        let cases = [(310, "0.31ms"), (12_400, "12ms"), (999_600, "1.0s"), (4_120_000, "4.1s")];
        for (micros, text) in cases {
            assert_eq!(duration(Duration::from_micros(micros)), text);
        }
    }

    #[test]
    fn words_are_quoted_only_when_needed() {
        assert_eq!(shell_word("/tmp/a-b_c.pem"), "/tmp/a-b_c.pem");
        assert_eq!(shell_word("/tmp/my files/it's"), r"'/tmp/my files/it'\''s'");
        assert_eq!(shell_word(""), "''");
    }

    #[test]
    fn plain_style_adds_nothing() {
        assert_eq!(Style::PLAIN.red("x"), "x");
        assert_eq!(Style { coloured: true }.red("x"), "\x1b[31mx\x1b[0m");
    }
}
