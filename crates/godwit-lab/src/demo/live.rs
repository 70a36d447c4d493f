//! The table while it changes, on a terminal.

use godwit_text::Style;

use super::samples::Figures;
use super::table;

/// A table that is drawn over the one before.
#[derive(Debug)]
pub struct LiveTable {
    style: Style,
    /// What was drawn last.
    lines: usize,
}

impl LiveTable {
    /// Of which nothing is drawn yet.
    #[must_use]
    pub fn new(style: Style) -> LiveTable {
        LiveTable { style, lines: 0 }
    }

    /// What to write to the terminal after so many seconds, with a line that says how many are left.
    pub fn draw_at(&mut self, figures: &Figures, passed: u64, seconds: u64) -> String {
        let note = match seconds.checked_sub(passed) {
            Some(left) if left > 0 => format!("{left} s to go; Ctrl-C ends it"),
            _ => "waiting for what is under way".to_owned(),
        };
        self.draw(figures, &note)
    }

    /// What to write to the terminal, with a line below the table unless `note` is empty.
    pub fn draw(&mut self, figures: &Figures, note: &str) -> String {
        let mut text = String::new();
        if self.lines > 0 {
            text = format!("\x1b[{}A\x1b[J", self.lines);
        }
        let mut body = table::table(figures, self.style);
        if !note.is_empty() {
            body += &format!("{}\n", self.style.dim(note));
        }
        self.lines = body.lines().count();
        text.push_str(&body);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::samples::Recorder;

    #[test]
    fn a_table_is_drawn_over_the_one_before() {
        let (mut live, figures) = (LiveTable::new(Style::PLAIN), Recorder::default().figures());
        let first = live.draw(&figures, "a note");
        assert!(!first.contains('\x1b') && first.ends_with("a note\n"), "{first:?}");
        let lines = first.lines().count();
        assert!(live.draw_at(&figures, 3, 5).ends_with("2 s to go; Ctrl-C ends it\n"));
        assert!(live.draw_at(&figures, 5, 5).ends_with("waiting for what is under way\n"));
        assert_eq!(live.draw(&figures, ""), format!("\x1b[{lines}A\x1b[J{}", figures.table(Style::PLAIN)));
        assert!(live.draw(&figures, "").starts_with(&format!("\x1b[{}A", lines - 1)));
    }
}
