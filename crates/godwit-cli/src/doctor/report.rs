//! Printing: a line for each finding as soon as its section is done, or everything as JSON at the end.

use std::io::{self, Write};

use super::finding::{Finding, Findings, Level};
use crate::output::{Style, printable};

pub(super) struct Report {
    json: bool,
    style: Style,
    sections: Vec<Findings>,
    /// Why a section could not be printed.
    unprinted: Option<io::Error>,
}

impl Report {
    pub(super) fn new(json: bool) -> Report {
        Report { json, style: crate::output::stdout_style(), sections: Vec::new(), unprinted: None }
    }

    /// Takes the findings about one thing.
    pub(super) fn section(&mut self, findings: Findings) {
        if !self.json {
            let text = section(&findings, self.style);
            let printed = io::stdout().lock().write_all(text.as_bytes());
            self.unprinted = self.unprinted.take().or(printed.err());
        }
        self.sections.push(findings);
    }

    /// Ends the report. True if nothing is broken.
    ///
    /// # Errors
    /// If a part of it could not be printed.
    pub(super) fn finish(mut self) -> io::Result<bool> {
        if let Some(error) = self.unprinted.take() {
            return Err(error);
        }
        let of = |level| self.all().filter(|finding| finding.level == level).count();
        let (broken, warnings) = (of(Level::Broken), of(Level::Warning));
        let mut out = io::stdout().lock();
        if self.json {
            let value = serde_json::json!({
                "healthy": broken == 0, "broken": broken, "warnings": warnings, "sections": self.sections,
            });
            writeln!(out, "{value:#}")?;
        } else {
            writeln!(out, "{}", verdict(broken, warnings))?;
        }
        Ok(broken == 0)
    }

    fn all(&self) -> impl Iterator<Item = &Finding> {
        self.sections.iter().flat_map(|section| &section.findings)
    }
}

fn verdict(broken: usize, warnings: usize) -> String {
    let count = |number: usize, one: &str, more: &str| match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {more}"),
    };
    match (broken, warnings) {
        (0, 0) => "all is well".to_owned(),
        (0, _) => format!("it works; {} could be better", count(warnings, "thing", "things")),
        (_, 0) => format!("{} broken", count(broken, "thing is", "things are")),
        _ => {
            let broken = count(broken, "thing is", "things are");
            format!("{broken} broken, {} could be better", count(warnings, "other", "others"))
        }
    }
}

fn section(findings: &Findings, style: Style) -> String {
    let mut text = format!("{}\n", style.bold(&findings.about));
    for Finding { level, topic, text: seen, remedy } in &findings.findings {
        let mark = match level {
            Level::Good => style.green("ok  "),
            Level::Warning => style.yellow("warn"),
            Level::Broken => style.red("FAIL"),
        };
        text += &format!("  {mark}  {topic:<16}  {}\n", printable(seen));
        if let Some(remedy) = remedy {
            text += &format!("  {:<4}  {:<16}  {} {}\n", "", "", style.dim("→"), printable(remedy));
        }
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finding_is_a_line_with_its_remedy_below() {
        let mut findings = Findings::new("this machine");
        findings.good("sockets", "fine");
        findings.warn("buffers", "small\x1b[31m\u{202e}", "make them larger");
        let text = section(&findings, Style::PLAIN);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "this machine");
        assert!(lines[1].starts_with("  ok    sockets") && lines[1].ends_with("fine"), "{text}");
        assert!(
            lines[2].contains("warn  buffers") && lines[2].ends_with(r"small\u{1b}[31m\u{202e}"),
            "{text}"
        );
        assert!(lines[3].trim_start().starts_with("→ make them larger"), "{text}");
    }

    #[test]
    fn the_verdict_counts() {
        assert_eq!(verdict(0, 0), "all is well");
        assert_eq!(verdict(0, 1), "it works; 1 thing could be better");
        assert_eq!(verdict(1, 0), "1 thing is broken");
        assert_eq!(verdict(2, 1), "2 things are broken, 1 other could be better");
    }
}
