//! The verdicts as a table, and why what is not there is not there.

use super::case::Run;
use super::run::Verdict;
use std::fmt::Write;

/// One run in a line.
pub(super) fn line(run: &Run, verdict: &Verdict) -> String {
    match verdict {
        Verdict::Passed => format!("ok       {}", run.name()),
        Verdict::Lacking { seen, .. } => format!("lacking  {}: {seen}", run.name()),
        Verdict::Surprising(source) => {
            format!("PASSED   {}\nalthough the peer is said to lack it: {source}", run.name())
        }
        Verdict::Failed(why) => format!("FAILED   {}\n{why}", run.name()),
    }
}

/// What a cell says of what came of playing it, be it once or several times.
fn word(verdicts: &[&Verdict]) -> String {
    let once = match verdicts.first() {
        None => "",
        Some(Verdict::Passed) => "ok",
        Some(Verdict::Lacking { .. }) => "(peer)",
        Some(Verdict::Surprising(_)) => "PASSED",
        Some(Verdict::Failed(_)) => "FAILED",
    };
    let lacking = verdicts.iter().all(|verdict| matches!(verdict, Verdict::Lacking { .. }));
    if verdicts.len() < 2 || lacking {
        return once.to_owned();
    }
    let good = verdicts.iter().filter(|verdict| **verdict == &Verdict::Passed).count();
    format!("{good}/{}", verdicts.len())
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
                .filter(|(run, _)| run.case.name == row && (run.peer.name(), run.client) == *column);
            let _ = write!(out, " {:>10}", word(&cell.map(|(_, verdict)| verdict).collect::<Vec<_>>()));
        }
    }
    let count = |wanted: fn(&Verdict) -> bool| cells.iter().filter(|(_, verdict)| wanted(verdict)).count();
    let passed = count(|verdict| *verdict == Verdict::Passed);
    let lacking = count(|verdict| matches!(verdict, Verdict::Lacking { .. }));
    let failed = count(|verdict| matches!(verdict, Verdict::Failed(_)));
    let _ = write!(out, "\n\n{passed} passed, {failed} failed, {lacking} that the peer lacks");
    match cells.len() - passed - lacking - failed {
        0 => out.push('\n'),
        surprising => drop(writeln!(out, ", {surprising} that the peer is said to lack")),
    }
    for (run, verdict) in cells {
        if let Verdict::Lacking { seen, source } = verdict
            && run.turn == 0
        {
            let role = if run.client { "server" } else { "client" };
            let _ = writeln!(out, "  {} as {role}, {}: {seen}\n    {source}", run.peer.name(), run.case.name);
        }
    }
    for (run, verdict) in cells {
        if let Verdict::Failed(_) | Verdict::Surprising(_) = verdict {
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
        let run = |index: usize, client| {
            let case = case::all().remove(index);
            Run { case, peer: Peer::Quinn, client, turn: 0 }
        };
        let runs = [run(0, true), run(0, false), run(1, true), run(1, false)];
        let verdicts = [
            Verdict::Passed,
            Verdict::Lacking { seen: "no such case".to_owned(), source: "quinn/lib.rs:1: nothing" },
            Verdict::Failed("it broke".to_owned()),
            Verdict::Surprising("quinn/lib.rs:2: nothing either"),
        ];
        let cells: Vec<_> = runs.iter().zip(verdicts).collect();
        let table = table(&cells);
        let words: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[2], ["handshake", "ok", "(peer)"]);
        assert_eq!(words[3], ["transfer", "FAILED", "PASSED"]);
        let counts = "1 passed, 1 failed, 1 that the peer lacks, 1 that the peer is said to lack\n";
        assert!(table.contains(counts), "{table}");
        assert!(
            table.contains("quinn as client, handshake: no such case\n    quinn/lib.rs:1: nothing\n"),
            "{table}"
        );
        assert!(table.contains("FAILED   transfer: godwit from quinn\nit broke\n"), "{table}");
        assert!(table.ends_with("said to lack it: quinn/lib.rs:2: nothing either\n"), "{table}");
    }

    #[test]
    fn what_was_played_often_is_counted() {
        let (passed, failed) = (Verdict::Passed, Verdict::Failed("it broke".to_owned()));
        let lacking = Verdict::Lacking { seen: "no such case".to_owned(), source: "" };
        assert_eq!(word(&[&failed]), "FAILED");
        assert_eq!(word(&[&passed, &failed, &passed]), "2/3");
        assert_eq!(word(&[&passed, &passed]), "2/2");
        assert_eq!(word(&[&lacking, &lacking]), "(peer)");
        assert_eq!(word(&[&lacking, &failed]), "0/2");
    }
}
