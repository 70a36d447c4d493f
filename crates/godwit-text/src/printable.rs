//! Strings that came from strangers, as they may stand on a terminal.

use std::borrow::Cow;

/// `text` without what would move, colour or hide things on a terminal: control characters, and those that turn the
/// direction of writing or cannot be seen, are shown by their numbers (`\u{202e}`). Texts of people who write
/// without Latin letters stay as they are.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
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
#[must_use]
pub fn printable_bytes(bytes: &[u8]) -> String {
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
}
