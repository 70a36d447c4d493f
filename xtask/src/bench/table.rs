//! Tables in Markdown: first Godwit beside the best of the other QUIC stacks, figure by figure, so that nothing that
//! it loses is hidden; then everything by scenario.

use super::figures::{Kind, Results, Row, Spread};
use super::options::Options;
use super::scenarios::Work;
use std::fmt::Write as _;

/// What is compared in the first table.
const COMPARED: [Kind; 10] = [
    Kind::Rate,
    Kind::ServerCpu,
    Kind::ClientCpu,
    Kind::P50,
    Kind::P99,
    Kind::P999,
    Kind::ServerMemory,
    Kind::ClientMemory,
    Kind::ServerCalls,
    Kind::ClientCalls,
];

/// Everything.
pub(super) fn report(results: &[Results], options: &Options) -> String {
    let mut text = format!("{}\n", options.conditions());
    compare(&mut text, results);
    for results in results.iter().filter(|results| !results.rows.is_empty()) {
        let _ = write!(text, "\n### {}\n\n", results.scenario.name);
        table(&mut text, results);
        for row in &results.rows {
            if let Some(why) = &row.failure {
                let _ = writeln!(text, "\n{} failed: {why}", row.name);
            }
        }
    }
    text
}

/// Godwit beside the best of the others.
fn compare(text: &mut String, results: &[Results]) {
    let mut lines = Vec::new();
    for results in results {
        let Some(godwit) = results.rows.iter().find(|row| row.name == "godwit") else { continue };
        for kind in COMPARED {
            let (Some(ours), Some((peer, theirs))) = (godwit.spread(kind), results.best_peer(kind)) else {
                continue;
            };
            let (name, figure, unit) = (results.scenario.name, kind.name(), kind.unit(results.scenario.work));
            let (ours_shown, theirs_shown) = (shown(ours), shown(theirs));
            let (ratio, verdict) = (kind.ratio(ours.median, theirs.median), verdict(kind, ours, theirs));
            lines.push(format!(
                "| {name} | {figure}, {unit} | {ours_shown} | {theirs_shown} | {} | {ratio:.2} | {verdict} |",
                peer.name
            ));
        }
    }
    if lines.is_empty() {
        return;
    }
    text.push_str("\n### Godwit and the best of the other QUIC stacks, figure by figure\n\n");
    text.push_str(
        "Medians with their spread. A ratio above 1 is in Godwit's favour, also where less is better.\n\n",
    );
    text.push_str(
        "| scenario | figure | Godwit | best other | which | ratio | |\n|---|---|---|---|---|---|---|\n",
    );
    for line in lines {
        text.push_str(&line);
        text.push('\n');
    }
}

/// Whether Godwit is better, and whether all runs say so.
fn verdict(kind: Kind, ours: Spread, theirs: Spread) -> &'static str {
    let apart = ours.least > theirs.most || ours.most < theirs.least || ours == theirs;
    match (kind.ratio(ours.median, theirs.median) >= 1.0, apart) {
        (true, true) => "",
        (true, false) => "spreads overlap",
        (false, true) => "**loses**",
        (false, false) => "**loses**, spreads overlap",
    }
}

/// The programs of a scenario, the best first, and the failed last.
fn table(text: &mut String, results: &Results) {
    let work = results.scenario.work;
    let kinds: Vec<Kind> = COMPARED
        .into_iter()
        .filter(|kind| results.rows.iter().any(|row| row.spread(*kind).is_some()))
        .collect();
    let Some(leading) = kinds.first().copied() else { return };
    let heads: Vec<String> =
        kinds.iter().map(|kind| format!("{}, {}", kind.name(), kind.unit(work))).collect();
    let best = results.best_peer(leading).map(|(_, spread)| spread.median);
    let (last, line) = if best.is_some() { (" to the best other QUIC |", "---|") } else { ("", "") };
    let _ = writeln!(text, "| | {} |{last}", heads.join(" | "));
    let _ = writeln!(text, "|---|{}{line}", "---|".repeat(kinds.len()));
    let mut rows: Vec<&Row> = results.rows.iter().collect();
    let rank = |row: &Row| {
        let median = row.spread(leading).map(|spread| spread.median);
        median.map_or(f64::INFINITY, |median| if leading.more_is_better() { -median } else { median })
    };
    rows.sort_by(|one, other| rank(one).total_cmp(&rank(other)));
    for row in rows {
        let cells: Vec<String> = kinds
            .iter()
            .map(|kind| match row.spread(*kind) {
                Some(spread) => shown(spread),
                None if row.failure.is_some() => "failed".to_owned(),
                None => String::new(),
            })
            .collect();
        let ratio = row.spread(leading).zip(best).map(|(ours, best)| leading.ratio(ours.median, best));
        let ratio = ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"));
        let ratio = if best.is_some() { format!(" {ratio} |") } else { String::new() };
        let name = if row.ours { format!("**{}**", row.name) } else { row.name.clone() };
        let _ = writeln!(text, "| {name} | {} |{ratio}", cells.join(" | "));
    }
    if work == Work::Idle {
        text.push_str("\nWithout what the kernel holds, which for TCP is most of it.\n");
    }
}

/// A median, and its spread if there is one.
pub(super) fn shown(spread: Spread) -> String {
    let Spread { least, median, most } = spread;
    let number = |value: f64| match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    };
    if least == most {
        number(median)
    } else {
        format!("{} ({}–{})", number(median), number(least), number(most))
    }
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::row;
    use super::super::scenarios;
    use super::*;

    fn results() -> Results {
        let rows = vec![
            row("quinn", &[50.0, 40.0, 60.0], &[1.5, 1.5, 1.5]),
            row("godwit", &[80.0, 70.0, 90.0], &[3.0, 3.0, 3.0]),
            row("TCP", &[200.0, 200.0, 200.0], &[0.25, 0.25, 0.25]),
        ];
        Results { scenario: scenarios::ALL[0], rows }
    }

    #[test]
    fn what_is_lost_is_said() {
        let mut text = String::new();
        compare(&mut text, &[results()]);
        let line = |line: &str| assert!(text.lines().any(|known| known == line), "{line}\n{text}");
        line("| download | rate, Mbit/s | 80.0 (70.0–90.0) | 50.0 (40.0–60.0) | quinn | 1.60 |  |");
        line("| download | server cpu, s/GB | 3.00 | 1.50 | quinn | 0.50 | **loses** |");
    }

    #[test]
    fn spreads_that_overlap_decide_nothing() {
        let spread = |least, median, most| Spread { least, median, most };
        assert_eq!(verdict(Kind::Rate, spread(1.0, 3.0, 5.0), spread(1.0, 2.0, 3.0)), "spreads overlap");
        assert_eq!(
            verdict(Kind::P50, spread(1.0, 3.0, 5.0), spread(1.0, 2.0, 3.0)),
            "**loses**, spreads overlap"
        );
        assert_eq!(verdict(Kind::P50, spread(1.0, 1.0, 1.0), spread(2.0, 2.0, 2.0)), "");
    }

    #[test]
    fn the_best_stand_first_and_those_that_failed_last_with_the_reason() {
        let mut results = results();
        results.rows.insert(0, row("quiche", &[], &[]));
        results.rows[0].figures.clear();
        results.rows[0].failure = Some("it fell over".into());
        let text = report(&[results], &Options::default());
        let rows: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("### download")).collect();
        assert_eq!(rows[2], "| | rate, Mbit/s | server cpu, s/GB | to the best other QUIC |");
        assert_eq!(rows[4], "| TCP | 200 | 0.250 | 4.00 |");
        assert_eq!(rows[5], "| **godwit** | 80.0 (70.0–90.0) | 3.00 | 1.60 |");
        assert_eq!(rows[7], "| quiche | failed | failed |  |");
        assert!(text.contains("\nquiche failed: it fell over\n"));
    }
}
