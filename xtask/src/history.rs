//! A file of `perf/history`: what `cargo xtask bench --json FILE` has measured of a commit, with what that commit has
//! checked in of instruction counts and of the use of emulated networks, which are the same on every machine.

use crate::shell;
use godwit_report::dashboard::{NetworkTable, history::Measurement};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How often a commit may be measured.
const MOST_FILES: usize = 1000;

/// Reads the words after the command.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let ["--bench", bench] = words else {
        return Err("expected --bench FILE, the file that cargo xtask bench --json has written".to_owned());
    };
    let text = std::fs::read_to_string(bench).map_err(|error| format!("{bench}: {error}"))?;
    let measurement = Measurement::parse(text.as_bytes()).map_err(|problem| format!("{bench} {problem}"))?;
    let gate = file_of(&measurement.commit, "xtask/gate-baseline.json")?;
    let tables = tables_of(&measurement.commit)?;
    let text = whole(&text, &gate, &tables)?;
    let file = write(&folder(), &measurement, &text)?;
    println!("{}", file.display());
    Ok(())
}

fn folder() -> PathBuf {
    shell::root().join("perf/history")
}

/// A file as a commit has it.
fn file_of(commit: &str, path: &str) -> Result<String, String> {
    let mut command = Command::new("git");
    shell::output(command.current_dir(shell::root()).args(["show", &format!("{commit}:{path}")]))
}

/// The tables of emulated networks as a commit has them.
fn tables_of(commit: &str) -> Result<Vec<NetworkTable>, String> {
    let mut command = Command::new("git");
    command.current_dir(shell::root()).args(["ls-tree", "--name-only", commit, "xtask/"]);
    let names = shell::output(&mut command)?;
    let table =
        |path: &str| {
            let name = path.strip_prefix("xtask/wan-")?.strip_suffix(".csv")?;
            let text = file_of(commit, path);
            Some(text.and_then(|text| {
                NetworkTable::parse(name, &text).map_err(|problem| format!("{path} {problem}"))
            }))
        };
    names.lines().filter_map(table).collect()
}

/// What was measured, with what is checked in.
fn whole(bench: &str, gate: &str, tables: &[NetworkTable]) -> Result<String, String> {
    let json =
        |text: &str| serde_json::from_str::<Map<String, Value>>(text).map_err(|error| error.to_string());
    let mut whole = json(bench)?;
    whole.insert("gate".to_owned(), Value::Object(json(gate)?));
    let usage: Vec<_> = tables.iter().flat_map(NetworkTable::usage).collect();
    whole.insert("wan".to_owned(), serde_json::to_value(usage).map_err(|error| error.to_string())?);
    let text = lines(&whole);
    Measurement::parse(text.as_bytes()).map_err(|problem| format!("what would be written {problem}"))?;
    Ok(text)
}

/// JSON with a line for each entry, so that people can read it and it stays small.
fn lines(whole: &Map<String, Value>) -> String {
    let list = |name: &String, values: &Vec<Value>| {
        let values: Vec<String> = values.iter().map(|value| format!("  {value}")).collect();
        format!("{}: [\n{}\n]", Value::from(name.as_str()), values.join(",\n"))
    };
    let entries = whole.iter().map(|(name, value)| match value {
        Value::Array(values) if !values.is_empty() => list(name, values),
        value => format!("{}: {value}", Value::from(name.as_str())),
    });
    format!("{{\n{}\n}}\n", entries.collect::<Vec<_>>().join(",\n"))
}

/// Writes it under a name that none has yet: the commit's time, so that names are in the order of commits, and its first
/// digits.
fn write(folder: &Path, measurement: &Measurement, text: &str) -> Result<PathBuf, String> {
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let time: String = measurement.time.chars().take(19).filter(|c| !matches!(c, '-' | ':')).collect();
    let stem = format!("{time}Z-{}", measurement.short());
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    for number in 1..=MOST_FILES {
        let more = if number == 1 { String::new() } else { format!("-{number}") };
        let path = folder.join(format!("{stem}{more}.json"));
        match std::fs::read_to_string(&path) {
            Ok(known) if known == text => return Err(format!("{} holds just this already", path.display())),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return std::fs::write(&path, text)
                    .map(|()| path.clone())
                    .map_err(|error| failed(&path, error));
            }
            Err(error) => return Err(failed(&path, error)),
        }
    }
    Err(format!("{} was measured {MOST_FILES} times already", measurement.short()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use godwit_report::dashboard::History;

    const BENCH: &str = r#"{"schema":1,"commit":"0123456789abcdef0123456789abcdef01234567","title":"Send less",
        "time":"2026-11-01T08:09:10Z","measured":"2026-11-01T09:00:00Z",
        "machine":{"cpu":"Example CPU","cores":2,"kernel":"6.18"},"conditions":"loopback",
        "figures":[{"scenario":"download","figure":"rate","unit":"Mbit/s","better":"more","program":"godwit",
        "ours":true,"runs":[9,10,11],"median":10,"least":9,"most":11}]}"#;
    const GATE: &str = r#"{"handshake":{"instructions":130724.0,"allocations":356.0}}"#;
    const TABLE: &str =
        "NetMbps,RttMs,QueueRatio,Loss,Reorder,DelayMs,Usage\n5,5,1,0,0,0,92.1\n100,50,0.2,1000,0,5,50\n";

    #[test]
    fn a_file_holds_all_and_is_written_once() {
        let tables = [NetworkTable::parse("baseline", TABLE).unwrap()];
        let text = whole(BENCH, GATE, &tables).unwrap();
        let measurement = Measurement::parse(text.as_bytes()).unwrap();
        assert_eq!(measurement.gate["handshake"].instructions, 130_724.0);
        assert_eq!(measurement.wan, tables[0].usage());
        assert_eq!(measurement.figures[0].runs, [9.0, 10.0, 11.0]);
        let folder = std::env::temp_dir().join(format!("godwit-history-{}", std::process::id()));
        let first = write(&folder, &measurement, &text).unwrap();
        let again = write(&folder, &measurement, &text).unwrap_err();
        let other = write(&folder, &measurement, &text.replace("loopback", "a cable")).unwrap();
        let history = History::read(&folder).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(first, folder.join("20261101T080910Z-01234567.json"));
        assert!(again.contains("holds just this already"), "{again}");
        assert_eq!(other, folder.join("20261101T080910Z-01234567-2.json"));
        assert_eq!(history.files().len(), 2);
    }

    #[test]
    fn what_the_dashboard_would_refuse_is_not_written() {
        let error = whole(BENCH, r#"{"handshake":{"instructions":-1,"allocations":0}}"#, &[]).unwrap_err();
        assert!(error.contains("gate is not between"), "{error}");
        assert!(whole(&BENCH.replace(":1,", ":2,"), GATE, &[]).unwrap_err().contains("schema"));
        assert!(run(&[]).unwrap_err().contains("--bench FILE"));
    }

    #[test]
    fn every_file_that_is_checked_in_can_be_shown() {
        let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
        if files.filter(|path| path.extension().is_some_and(|end| end == "json")).count() > 0 {
            History::read(&folder()).unwrap();
        }
        NetworkTable::read_all(&shell::root().join("xtask")).unwrap();
    }
}
