//! The verdicts as a table, and why what is not there is not there.

use super::run::{Run, Verdict};
use std::fmt::Write;

/// One run in a line.
pub(super) fn line(run: &Run, verdict: &Verdict) -> String {
    match verdict {
        Verdict::Passed => format!("ok       {}", run.name()),
        Verdict::Unsupported(who) => format!("lacking  {}: not supported by {who}", run.name()),
        Verdict::Failed(why) => format!("FAILED   {}\n{why}", run.name()),
    }
}

/// Cases down, peers across; then the reasons.
pub(super) fn table(cells: &[(&Run, Verdict)]) -> String {
    let mut columns: Vec<(&str, bool)> = Vec::new();
    let mut rows: Vec<&str> = Vec::new();
    for (run, _) in cells {
        let column = (run.peer.name(), run.client);
        if !columns.contains(&column) {
            columns.push(column);
        }
        if !rows.contains(&run.case.name) {
            rows.push(run.case.name);
        }
    }
    let mut out = String::from("godwit is               ");
    for (_, client) in &columns {
        let _ = write!(out, " {:>10}", if *client { "client" } else { "server" });
    }
    out.push_str("\nwith                    ");
    for (peer, _) in &columns {
        let _ = write!(out, " {peer:>10}");
    }
    for row in rows {
        let _ = write!(out, "\n{row:<24}");
        for column in &columns {
            let cell = cells
                .iter()
                .find(|(run, _)| run.case.name == row && (run.peer.name(), run.client) == *column);
            let word = match cell {
                Some((_, Verdict::Passed)) => "ok",
                Some((_, Verdict::Unsupported(who))) if who.starts_with("godwit") => "(ours)",
                Some((_, Verdict::Unsupported(_))) => "(peer)",
                Some((_, Verdict::Failed(_))) => "FAILED",
                None => "",
            };
            let _ = write!(out, " {word:>10}");
        }
    }
    let count = |wanted: fn(&Verdict) -> bool| cells.iter().filter(|(_, verdict)| wanted(verdict)).count();
    let passed = count(|verdict| *verdict == Verdict::Passed);
    let lacking = count(|verdict| matches!(verdict, Verdict::Unsupported(_)));
    let _ = writeln!(
        out,
        "\n\n{passed} passed, {} failed, {lacking} not supported",
        cells.len() - passed - lacking
    );
    for (run, verdict) in cells {
        if let Verdict::Failed(_) = verdict {
            let _ = writeln!(out, "\n{}", line(run, verdict));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::case;
    use super::*;
    use crate::peers::install::Peer;

    #[test]
    fn every_verdict_has_its_word() {
        let run = |index: usize, client| Run { case: case::all().remove(index), peer: Peer::Quinn, client };
        let runs = [run(0, true), run(0, false), run(1, true)];
        let verdicts = [
            Verdict::Passed,
            Verdict::Unsupported("quinn as client".to_owned()),
            Verdict::Failed("it broke".to_owned()),
        ];
        let cells: Vec<_> = runs.iter().zip(verdicts).collect();
        let table = table(&cells);
        let words: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[2], ["handshake", "ok", "(peer)"]);
        assert_eq!(words[3], ["transfer", "FAILED"]);
        assert!(table.contains("1 passed, 1 failed, 1 not supported"), "{table}");
        assert!(table.ends_with("FAILED   transfer: godwit from quinn\nit broke\n"), "{table}");
    }
}
