//! Colours and weight of text as a plain record. Whether a stream takes them, its program knows.

use std::borrow::Cow;

/// What stands before and after text that stands out: escape sequences of a terminal, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Style {
    /// Before what is important.
    pub bold: &'static str,
    /// Before what is not.
    pub dim: &'static str,
    /// Before what is wrong.
    pub red: &'static str,
    /// Before what is as it should be.
    pub green: &'static str,
    /// Before what deserves a look.
    pub yellow: &'static str,
    /// Behind each of them.
    pub reset: &'static str,
}

impl Style {
    /// Text alone.
    pub const PLAIN: Style = Style { bold: "", dim: "", red: "", green: "", yellow: "", reset: "" };
    /// The colours of terminals (ECMA-48).
    pub const COLOURED: Style = Style {
        bold: "\x1b[1m",
        dim: "\x1b[2m",
        red: "\x1b[31m",
        green: "\x1b[32m",
        yellow: "\x1b[33m",
        reset: "\x1b[0m",
    };

    /// Whether it adds anything.
    #[must_use]
    pub fn is_coloured(self) -> bool {
        self != Style::PLAIN
    }

    /// `text` in bold letters.
    #[must_use]
    pub fn bold(self, text: &str) -> Cow<'_, str> {
        self.paint(self.bold, text)
    }

    /// `text` in faint letters.
    #[must_use]
    pub fn dim(self, text: &str) -> Cow<'_, str> {
        self.paint(self.dim, text)
    }

    /// `text` in red.
    #[must_use]
    pub fn red(self, text: &str) -> Cow<'_, str> {
        self.paint(self.red, text)
    }

    /// `text` in green.
    #[must_use]
    pub fn green(self, text: &str) -> Cow<'_, str> {
        self.paint(self.green, text)
    }

    /// `text` in yellow.
    #[must_use]
    pub fn yellow(self, text: &str) -> Cow<'_, str> {
        self.paint(self.yellow, text)
    }

    fn paint<'a>(self, before: &'static str, text: &'a str) -> Cow<'a, str> {
        match before {
            "" => Cow::Borrowed(text),
            _ => Cow::Owned(format!("{before}{text}{}", self.reset)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_style_adds_nothing() {
        assert_eq!(Style::PLAIN.red("x"), "x");
        assert_eq!(Style::COLOURED.red("x"), "\x1b[31mx\x1b[0m");
        assert!(Style::COLOURED.is_coloured() && !Style::PLAIN.is_coloured());
    }
}
