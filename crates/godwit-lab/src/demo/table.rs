//! The figures as text: a table that is drawn again in place on a terminal, and what they mean in words.

use std::fmt::Write;
use std::time::Duration;

use super::samples::{Distribution, Figures, PERMILLES, Protocol, Row, SAME, Verdict};
use super::setting::Setting;
use godwit_text::Style;

/// What is demonstrated, before anything is measured.
pub(super) fn heading(setting: &Setting, style: Style) -> String {
    format!(
        "{} The same site over HTTP/2 and HTTP/3, {} visitors each at a time.\nPage: {}.\nLink: {}.\n{}\n\n",
        style.bold("godwit demo."),
        setting.visitors,
        super::site::page_in_words(setting.objects),
        setting.conditions.in_words(),
        setting.tcp_in_words(),
    )
}

/// Times by kind and percentile, 78 columns wide.
pub(super) fn table(figures: &Figures, style: Style) -> String {
    let mut text = String::new();
    let heads: String =
        PERMILLES.iter().map(|permille| format!("   {:^15}", format!("P{}", permille / 10))).collect();
    let _ = writeln!(text, "{:17}{heads}", "");
    let names = format!("   {:>7} {:>7}", "HTTP/2", "HTTP/3").repeat(PERMILLES.len());
    let _ = writeln!(text, "{:17}{names}", "");
    for row in figures.rows() {
        let _ = write!(text, "{:17}", row.name);
        for permille in PERMILLES {
            let cell = |distribution: &Distribution| format!("{:>7}", time(distribution.permille(permille)));
            let (h2, h3) = (cell(row.h2), cell(row.h3));
            let _ = match row.verdict(permille) {
                Verdict::Faster => write!(text, "   {h2} {}", style.green(&h3)),
                Verdict::Slower => write!(text, "   {} {h3}", style.green(&h2)),
                Verdict::Open => write!(text, "   {h2} {h3}"),
            };
        }
        text.push('\n');
    }
    let count = |protocol| {
        let measured = figures.of(protocol);
        let (small, pages) = (measured.all.count(), measured.page.count());
        format!("{} {small} small requests, {pages} pages", protocol.name())
    };
    let counts = format!("measured: {}; {}", count(Protocol::H2), count(Protocol::H3));
    let _ = writeln!(text, "{}", style.dim(&counts));
    text
}

/// One line for where there is no terminal to draw on.
pub(super) fn progress(figures: &Figures, seconds: u64) -> String {
    let of = |protocol| {
        let all = &figures.of(protocol).all;
        let told: Vec<String> = PERMILLES.iter().map(|permille| time(all.permille(*permille))).collect();
        format!("{} {} ({} requests)", protocol.name(), told.join("/"), all.count())
    };
    format!("{seconds:3} s  P50/P95/P99: {}, {}\n", of(Protocol::H2), of(Protocol::H3))
}

/// What came out, in sentences: the tail, the connection's beginning, and what has to be known beside it.
pub(super) fn conclusion(figures: &Figures, setting: &Setting) -> Vec<String> {
    let rows = figures.rows();
    let [small, first, _, page] = &rows;
    let mut lines = Vec::new();
    if let Some(permille) = telling(small) {
        let who = match permille {
            500 => "Half of all small requests are".to_owned(),
            _ => format!("{} % of all small requests are", f64::from(permille) / 10.0),
        };
        lines.push(format!(
            "{who} answered within {}: {}.",
            both(small, permille),
            in_words(small, permille)
        ));
    } else {
        lines.push("Too few requests to compare; give it more time with --seconds.".to_owned());
    }
    if first.change(500).is_some() {
        let (times, words) = (both(first, 500), in_words(first, 500));
        lines.push(format!("The first one, connection included, typically takes {times}: {words}."));
    }
    if page.change(500).is_some() {
        lines.push(format!("A page typically takes {}: {}.", both(page, 500), in_words(page, 500)));
    }
    lines.extend(remarks(figures, setting));
    lines
}

/// The highest percentile at which both may be compared.
pub(super) fn telling(row: &Row<'_>) -> Option<u32> {
    PERMILLES.into_iter().rev().find(|permille| row.change(*permille).is_some())
}

/// `1.2s over HTTP/3 and 2.4s over HTTP/2`.
fn both(row: &Row<'_>, permille: u32) -> String {
    let (h2, h3) = (time(row.h2.permille(permille)), time(row.h3.permille(permille)));
    format!("{h3} over HTTP/3 and {h2} over HTTP/2")
}

/// What went wrong, if anything did.
pub(super) fn remarks(figures: &Figures, setting: &Setting) -> Vec<String> {
    let mut lines = Vec::new();
    for protocol in Protocol::BOTH {
        let measured = figures.of(protocol);
        let name = protocol.name();
        if measured.failed.count > 0 {
            let (count, example) = (measured.failed.count, &measured.failed.example);
            lines.push(format!(
                "{count} requests over {name} failed (the first: {example}); they count with their wait."
            ));
        }
        if measured.unfinished > 0 {
            let count = measured.unfinished;
            lines.push(format!(
                "{count} requests over {name} were unanswered at the end; they count with their wait."
            ));
        }
    }
    let late = setting.late_share();
    if late > 0.01 {
        lines.push(format!(
            "This machine was busy: {:.0} % of the packets left the link more than 5 ms late. Run it again when it is \
             idle.",
            late * 100.0
        ));
    }
    lines
}

/// `HTTP/3 takes 23 % less time`.
pub(super) fn in_words(row: &Row<'_>, permille: u32) -> String {
    let change = row.change(permille).unwrap_or_default();
    match row.verdict(permille) {
        Verdict::Faster => format!("HTTP/3 takes {:.0} % less time", -change),
        Verdict::Slower => format!("HTTP/3 takes {change:.0} % more time"),
        Verdict::Open if change.abs() < SAME => "no difference to speak of".to_owned(),
        Verdict::Open => "the difference may be chance".to_owned(),
    }
}

/// Three digits at most, or a dash.
pub(super) fn time(time: Option<Duration>) -> String {
    let Some(time) = time else { return "-".to_owned() };
    match time.as_secs_f64() * 1e3 {
        ms if ms < 9.95 => format!("{ms:.1}ms"),
        ms if ms < 999.5 => format!("{ms:.0}ms"),
        ms if ms < 9_995.0 => format!("{:.2}s", ms / 1e3),
        ms => format!("{:.1}s", ms / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::samples::{Kind, Recorder};
    use crate::demo::setting::tests::setting;

    #[test]
    fn times_are_short() {
        let ms = |ms: f64| time(Some(Duration::from_secs_f64(ms / 1e3)));
        assert_eq!([ms(1.26), ms(350.2), ms(1_234.0), ms(12_340.0)], ["1.3ms", "350ms", "1.23s", "12.3s"]);
        assert_eq!(time(None), "-");
    }

    #[test]
    fn the_table_fits_a_terminal_and_tells_only_what_it_knows() {
        let recorder = Recorder::default();
        for _ in 0..30 {
            for protocol in Protocol::BOTH {
                recorder.begin(protocol, Kind::Later).done();
            }
        }
        let figures = recorder.figures();
        let text = table(&figures, Style::PLAIN);
        assert!(text.lines().all(|line| line.chars().count() <= 78), "{text}");
        let later = text.lines().find(|line| line.contains("later")).unwrap();
        assert!(later.contains("ms") && later.ends_with('-'), "{later}");
        let words = conclusion(&figures, &setting());
        assert!(words[0].starts_with("Half of all small requests"), "{words:?}");
    }

    #[test]
    fn a_slower_http3_is_called_slower() {
        let of = |factor: u32| Distribution::new((1..=5000).map(|number| number * factor).collect());
        let words = |h2: u32, h3: u32| in_words(&Row { key: "", name: "", h2: &of(h2), h3: &of(h3) }, 990);
        assert_eq!(words(100, 112), "HTTP/3 takes 12 % more time");
        assert_eq!(words(100, 60), "HTTP/3 takes 40 % less time");
        assert_eq!(words(100, 101), "no difference to speak of");
    }
}
