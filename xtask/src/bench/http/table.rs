//! One table for each work, in Markdown; the servers stand in it in the order of the programs.

use super::super::figures::{Kind, Results, Row, Spread};
use super::super::table::shown;
use std::fmt::Write as _;

const COLUMNS: [(Kind, &str); 4] = [
    (Kind::Rate, "requests/s"),
    (Kind::P50, "P50, us"),
    (Kind::P99, "P99, us"),
    (Kind::ServerCpu, "server cpu, us"),
];

/// Everything.
pub(super) fn report(conditions: &str, missing: &[String], results: &[Results]) -> String {
    let mut text = format!("{conditions}\n");
    for line in missing {
        let _ = write!(text, "\n{line}\n");
    }
    for results in results {
        let _ = write!(text, "\n### {}\n\n", results.scenario.name);
        table(&mut text, &results.rows);
    }
    text
}

fn table(text: &mut String, rows: &[Row]) {
    let heads = COLUMNS.map(|(_, head)| head).join(" | ");
    let _ = writeln!(text, "| | {heads} | to nginx by HTTP/2 |\n|---|---|---|---|---|---|");
    let nginx = rows.iter().find(|row| row.name.starts_with("nginx") && row.name.ends_with("HTTP/2"));
    for row in rows {
        let cell = |spread: Option<Spread>| match spread {
            Some(spread) => shown(spread),
            None if row.failure.is_some() => "failed".to_owned(),
            None => String::new(),
        };
        let cells = COLUMNS.map(|(kind, _)| cell(row.spread(kind))).join(" | ");
        let ratio = nginx.and_then(|nginx| ratio(row, nginx)).map_or(String::new(), shown);
        let name = if row.ours { format!("**{}**", row.name) } else { row.name.clone() };
        let _ = writeln!(text, "| {name} | {cells} | {ratio} |");
    }
    for (row, why) in rows.iter().filter_map(|row| Some((row, row.failure.as_ref()?))) {
        let _ = writeln!(text, "\n{} failed: {why}", row.name);
    }
}

/// How much processor time a server takes for each that nginx takes, in the same round.
fn ratio(row: &Row, nginx: &Row) -> Option<Spread> {
    let runs = |row: &Row| {
        let figure = row.figures.iter().find(|figure| figure.kind == Kind::ServerCpu)?;
        Some(figure.runs.clone()).filter(|_| row.failure.is_none())
    };
    let ratios: Vec<f64> = runs(row)?.iter().zip(runs(nginx)?).map(|(this, nginx)| this / nginx).collect();
    (!ratios.is_empty()).then(|| Spread::of(&ratios))
}

#[cfg(test)]
mod tests {
    use super::super::super::figures::tests::row;
    use super::super::work;
    use super::*;

    fn rows() -> Vec<Row> {
        vec![
            row("godwit", &[20.0, 30.0, 40.0], &[2.0, 3.0, 20.0]),
            row("nginx 1, HTTP/1.1", &[20.0, 30.0, 40.0], &[1.0, 1.0, 1.0]),
            row("nginx 1, HTTP/2", &[20.0, 30.0, 40.0], &[4.0, 4.0, 8.0]),
        ]
    }

    #[test]
    fn the_ratio_is_of_the_same_round() {
        let rows = rows();
        assert_eq!(ratio(&rows[0], &rows[2]), Some(Spread { least: 0.5, median: 0.75, most: 2.5 }));
        assert_eq!(ratio(&rows[2], &rows[2]), Some(Spread { least: 1.0, median: 1.0, most: 1.0 }));
    }

    #[test]
    fn without_nginx_there_is_no_ratio() {
        let mut rows = rows();
        rows[2].failure = Some("why".into());
        assert_eq!(ratio(&rows[0], &rows[2]), None);
        let results = [Results { scenario: work::CLOSED.scenario(), rows }];
        let text = report("conditions", &["Caddy is not there".to_owned()], &results);
        assert!(
            text.starts_with("conditions\n\nCaddy is not there\n\n### file of 100 B\n\n| | requests/s |")
        );
        assert!(text.contains("\n| **godwit** | 30.0 (20.0–40.0) |  |  | 3.00 (2.00–20.0) |  |\n"), "{text}");
        assert!(text.contains("\n| nginx 1, HTTP/2 | failed | failed | failed | failed |  |\n"), "{text}");
        assert!(text.ends_with("\nnginx 1, HTTP/2 failed: why\n"));
    }
}
