#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use crate::analysis::Settings;
use crate::input::{BrokenLine, Source};
use crate::{Metric, Summary};

fn report() -> Report {
    let mut summary = Summary::new(&[Metric::LastMile]);
    for number in 0..20_000_u32 {
        let (protocol, ms) = if number % 2 == 0 { ("h2", 90) } else { ("h3", 60) };
        let line = format!(
            r#"{{"time":"2026-11-21T0{}:00:00Z","family":4,"protocol":"{protocol}","status":200,"user":"{:x}","request":{},"response_bytes":{},"delivered_ms":{}}}"#,
            number % 10 / 5,
            number / 2 % 999,
            1 + number / 4 % 2,
            number / 2 % 3 * 5000,
            ms + number / 2 % 50,
        );
        assert!(summary.add_line(line.as_bytes()));
    }
    summary.add_line(b"<broken>");
    let broken = BrokenLine { source: Source::File("<script>alert(1)</script>.log".into()), line: 7 };
    Report::new(&summary, Some(&broken), &Settings::default()).unwrap()
}

#[test]
fn the_page_needs_nothing_else_and_trusts_nobody() {
    let report = report();
    let page = page(&report);
    for forbidden in ["http://", "https://", "<script", "url(", "@import", "src=", "NaN", "inf"] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;.log:7"));
    assert!(page.contains(&escaped(&report.headline)));
}

#[test]
fn every_element_is_closed() {
    let page = page(&report());
    let elements = [
        "main", "section", "table", "tr", "td", "th", "svg", "text", "ul", "li", "p", "div", "h1", "h2",
        "h3", "span", "details",
    ];
    for element in elements {
        let opened =
            page.matches(&format!("<{element}>")).count() + page.matches(&format!("<{element} ")).count();
        assert_eq!(opened, page.matches(&format!("</{element}>")).count(), "{element}");
        assert!(opened > 0, "{element}");
    }
}

#[test]
fn a_report_of_nothing_is_a_page_too() {
    let report = Report::new(&Summary::new(&[Metric::LastMile]), None, &Settings::default()).unwrap();
    assert!(page(&report).contains("nothing to compare"));
    let text = crate::terminal::render(&report, false);
    assert!(text.contains("nothing to compare"), "{text}");
}

#[test]
fn the_terminal_shows_the_same_within_its_columns() {
    let report = report();
    let plain = crate::terminal::render(&report, false);
    assert!(!plain.contains('\x1b'));
    for line in plain.lines() {
        assert!(line.chars().count() <= crate::terminal::COLUMNS, "{line:?}");
        assert_eq!(line, line.trim_end());
    }
    for text in [
        "Like for like",
        "First requests on a connection",
        "Later requests",
        "By response size",
        "faster",
        "P99.99",
    ] {
        assert!(plain.contains(text), "{text} in\n{plain}");
    }
    let coloured = crate::terminal::render(&report, true);
    assert!(coloured.contains("\x1b[32m"));
}
