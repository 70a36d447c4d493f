//! The report as one page that needs nothing else: no network, no fonts, no scripts. It follows the reader's light or
//! dark theme and is legible on a phone.

use std::fmt::Write;
use std::sync::atomic::Ordering;

use godwit_report::page::{self as html, Card, END_SECTION, escaped};

use super::chart;
use super::samples::{Distribution, Figures, PERMILLES, Protocol, Row, Verdict};
use super::setting::Setting;
use super::site::page_in_words;
use super::table::{in_words, remarks, telling, time};

pub(super) fn page(setting: &Setting, figures: &Figures) -> String {
    let mut out = String::with_capacity(64 << 10);
    let _ = html::begin(&mut out, "HTTP/2 and HTTP/3 on a bad link");
    let rows = figures.rows();
    head(&mut out, setting, &rows[0]);
    cards(&mut out, &rows);
    let [small, first, _, page] = &rows;
    section(
        &mut out,
        "Small requests",
        "Answers of 1 to 10 kB, from the fastest to the slowest. Lower is better; both axes are stretched towards the \
         slowest.",
        small,
    );
    let about = "From the beginning of the connection to the last byte of the first answer.";
    section(&mut out, "First request of a visit", about, first);
    let about = format!("The page and then what is on it, all at once: {}.", page_in_words(setting.objects));
    section(&mut out, "The whole page", &about, page);
    figures_table(&mut out, &rows);
    notes(&mut out, setting, figures);
    out.push_str(html::END);
    out
}

fn head(out: &mut String, setting: &Setting, small: &Row<'_>) {
    let (class, headline) = match telling(small) {
        Some(permille) => {
            let who = match permille {
                500 => "the typical small request".to_owned(),
                _ => format!("the slowest {} % of small requests", trimmed_share(permille)),
            };
            (class(small, permille), format!("For {who}, {} on this link.", in_words(small, permille)))
        }
        None => ("open", "Too few requests to compare.".to_owned()),
    };
    let _ = writeln!(
        out,
        "<header><p class=\"over\">HTTP/2 and HTTP/3 on the same link: {}</p><h1 class=\"{class}\">{headline}</h1>\
         <p class=\"small\">{} visitors at a time over each, for {} s. {}</p></header>",
        escaped(&setting.conditions.in_words()),
        setting.visitors,
        setting.seconds,
        escaped(&setting.tcp_in_words()),
    );
}

fn trimmed_share(permille: u32) -> String {
    super::preset::trimmed(f64::from(1000 - permille) / 10.0)
}

/// `-27 %`, and no sign where that is zero.
fn percent(change: f64) -> String {
    match change.round() {
        0.0 => "0 %".to_owned(),
        rounded => format!("{rounded:+.0} %"),
    }
}

/// The style of what is said of a percentile.
fn class(row: &Row<'_>, permille: u32) -> &'static str {
    match row.verdict(permille) {
        Verdict::Faster => "good",
        Verdict::Slower => "bad",
        Verdict::Open => "open",
    }
}

/// The differences that matter most, large.
fn cards(out: &mut String, rows: &[Row<'_>; 4]) {
    let [small, first, _, page] = rows;
    let slowest = telling(small).unwrap_or(500);
    let title = format!("Small requests, P{}", super::preset::trimmed(f64::from(slowest) / 10.0));
    let mut cards = Vec::new();
    for (title, row, permille) in [
        (title.as_str(), small, slowest),
        ("First request of a visit, P50", first, 500),
        ("The whole page, P50", page, 500),
    ] {
        let Some(change) = row.change(permille) else { continue };
        let times = [row.h2, row.h3].map(|side| time(side.permille(permille)));
        let word = match row.verdict(permille) {
            Verdict::Faster => "HTTP/3 is faster",
            Verdict::Slower => "HTTP/3 is slower",
            Verdict::Open => "may be chance",
        };
        cards.push((class(row, permille), title, percent(change), word, times));
    }
    let _ = html::cards(
        out,
        cards.iter().map(|(class, title, change, word, [h2, h3])| Card {
            class,
            title,
            change,
            word,
            from_to: [h2, h3],
        }),
    );
}

fn section(out: &mut String, title: &str, about: &str, row: &Row<'_>) {
    let _ = html::section(out, title, about).and_then(|()| html::legend(out, ["HTTP/2", "HTTP/3"]));
    chart::curves(out, row);
    out.push_str(END_SECTION);
}

fn figures_table(out: &mut String, rows: &[Row<'_>; 4]) {
    out.push_str(
        "<section><h2>Figures</h2><p class=\"small\">In brackets the number of samples. A percentile stands here only if \
         ten samples or more lie beyond it.</p><div class=\"scroll\"><table><thead><tr><th></th>",
    );
    for permille in PERMILLES {
        let _ = write!(out, "<th>P{}</th>", permille / 10);
    }
    out.push_str("</tr></thead><tbody>");
    for row in rows {
        let _ = write!(out, "<tr class=\"group\"><th>{}</th>", row.name.trim());
        out.push_str(&"<td></td>".repeat(PERMILLES.len()));
        out.push_str("</tr>");
        for (key, name, side) in [("a", "HTTP/2", row.h2), ("b", "HTTP/3", row.h3)] {
            let _ = write!(
                out,
                "<tr class=\"d\"><th><span class=\"key {key}\"></span>{name} ({})</th>",
                side.count()
            );
            cells(out, side);
        }
        out.push_str("<tr class=\"d\"><th>change</th>");
        for permille in PERMILLES {
            let _ = match row.change(permille) {
                Some(change) => {
                    write!(out, "<td class=\"{}\">{}</td>", class(row, permille), percent(change))
                }
                None => write!(out, "<td>-</td>"),
            };
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
    out.push_str(END_SECTION);
}

fn cells(out: &mut String, side: &Distribution) {
    for permille in PERMILLES {
        let _ = write!(out, "<td>{}</td>", time(side.permille(permille)));
    }
    out.push_str("</tr>");
}

/// What was done, what is modelled, and what went wrong.
fn notes(out: &mut String, setting: &Setting, figures: &Figures) {
    out.push_str("<section><h2>How this was measured</h2><ul class=\"notes\">");
    for remark in remarks(figures, setting) {
        let _ = write!(out, "<li class=\"warning\">{}</li>", escaped(&remark));
    }
    let packets = setting.counters.packets.load(Ordering::Relaxed);
    let visits = |protocol| figures.of(protocol).visits;
    for note in [
        format!("The link: {}. The figures are {}.", setting.conditions.in_words(), setting.preset.source()),
        setting.tcp_in_words(),
        "A visit opens a connection with a full TLS handshake, makes six small requests one after the other, loads the \
         page, makes three more small requests, and goes. Nobody returns: no sessions are resumed."
            .to_owned(),
        "Both protocols have the same server, certificate, files, order of requests and number of visitors. Each visit \
         has a link of its own, and its twin over the other protocol has one of the same chances."
            .to_owned(),
        format!(
            "{} visits over HTTP/2 and {} over HTTP/3 were completed; {packets} packets were sent, of which {:.1} % were \
             lost, on average of all links.",
            visits(Protocol::H2),
            visits(Protocol::H3),
            setting.lost_share() * 100.0
        ),
        "A difference has a colour where it is 3 % or more and the 95 % intervals of both percentiles do not touch."
            .to_owned(),
        "Requests that failed or were not answered at the end count with the time they had waited.".to_owned(),
        "Server, link and visitors share this machine. The times of a link with less than about 10 ms are therefore \
         those of the machine as well."
            .to_owned(),
    ] {
        let _ = write!(out, "<li>{}</li>", escaped(&note));
    }
    out.push_str("</ul>");
    out.push_str(END_SECTION);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::samples::{Kind, Recorder};
    use crate::demo::setting::tests::setting;

    #[test]
    fn the_page_stands_alone_and_says_whose_tcp_it_was() {
        let recorder = Recorder::default();
        for _ in 0..40 {
            for protocol in Protocol::BOTH {
                for kind in [Kind::First, Kind::Later, Kind::Page] {
                    recorder.begin(protocol, kind).done();
                }
            }
        }
        recorder.begin(Protocol::H3, Kind::Later).failed("<reset> & gone");
        let page = page(&setting(), &recorder.figures());
        assert!(page.contains("TCP: this kernel&#39;s own (cubic)"), "{page}");
        assert!(page.contains("&lt;reset&gt; &amp; gone"));
        for outside in ["http://", "https://", "<script", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}
