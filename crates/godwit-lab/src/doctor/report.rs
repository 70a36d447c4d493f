//! Findings as text and as JSON.

use godwit_text::{Style, printable};
use serde::Serialize;

use super::finding::{Finding, Findings, Level};

/// Everything that was found.
#[derive(Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Diagnosis {
    /// In the order in which it was looked for.
    pub sections: Vec<Findings>,
}

impl Diagnosis {
    /// Whether nothing is broken; warnings do not count.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.count(Level::Broken) == 0
    }

    /// In a line.
    #[must_use]
    pub fn verdict(&self) -> String {
        verdict(self.count(Level::Broken), self.count(Level::Warning))
    }

    /// As one object of JSON.
    #[must_use]
    pub fn json(&self) -> String {
        let (broken, warnings) = (self.count(Level::Broken), self.count(Level::Warning));
        let value = serde_json::json!({
            "healthy": broken == 0, "broken": broken, "warnings": warnings, "sections": self.sections,
        });
        format!("{value:#}")
    }

    fn count(&self, level: Level) -> usize {
        let all = self.sections.iter().flat_map(|section| &section.findings);
        all.filter(|finding| finding.level == level).count()
    }
}

impl Findings {
    /// A line for each finding, and one for its remedy.
    #[must_use]
    pub fn text(&self, style: Style) -> String {
        section(self, style)
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
