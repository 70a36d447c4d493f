//! Printing: a line for each finding as soon as its section is done, or everything as JSON at the end.

use std::io::Write;

use super::finding::{Finding, Findings, Level};
use crate::output::Style;

pub(super) struct Report {
    json: bool,
    style: Style,
    sections: Vec<Findings>,
}

impl Report {
    pub(super) fn new(json: bool) -> Report {
        Report { json, style: Style::of_stdout(), sections: Vec::new() }
    }

    /// Takes the findings about one thing.
    pub(super) fn section(&mut self, findings: Findings) {
        if !self.json {
            let text = section(&findings, self.style);
            let _ = std::io::stdout().lock().write_all(text.as_bytes());
        }
        self.sections.push(findings);
    }

    /// Ends the report. True if nothing is broken.
    pub(super) fn finish(self) -> bool {
        let of = |level| self.all().filter(|finding| finding.level == level).count();
        let (broken, warnings) = (of(Level::Broken), of(Level::Warning));
        let mut out = std::io::stdout().lock();
        if self.json {
            let value = serde_json::json!({
                "healthy": broken == 0, "broken": broken, "warnings": warnings, "sections": self.sections,
            });
            let _ = writeln!(out, "{value:#}");
        } else {
            let _ = writeln!(out, "{}", verdict(broken, warnings));
        }
        broken == 0
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

/// What a server says goes to a terminal, which must not take it for commands.
fn printable(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { '\u{fffd}' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finding_is_a_line_with_its_remedy_below() {
        let mut findings = Findings::new("this machine");
        findings.good("sockets", "fine");
        findings.warn("buffers", "small\x1b[31m", "make them larger");
        let text = section(&findings, Style::PLAIN);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "this machine");
        assert!(lines[1].starts_with("  ok    sockets") && lines[1].ends_with("fine"), "{text}");
        assert!(lines[2].contains("warn  buffers") && lines[2].ends_with("small\u{fffd}[31m"), "{text}");
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
