//! `godwit report` as people run it: logs in, tables, pages and sketches out.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

fn report(folder: &Path, arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_godwit");
    Command::new(program).arg("report").args(arguments).current_dir(folder).output().unwrap()
}

fn good(folder: &Path, arguments: &[&str]) -> String {
    let output = report(folder, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Requests from `first` on: HTTP/3's take 60 to 109 ms, HTTP/2's 90 to 139 ms.
fn log(first: u32, number: u32) -> String {
    let mut log = String::new();
    for number in first..first + number {
        let (protocol, least) = if number.is_multiple_of(2) { ("h2", 90) } else { ("h3", 60) };
        let (user, request, ms) = (number / 2 % 997, 1 + number / 2 % 3, least + number / 2 % 50);
        writeln!(
            log,
            r#"{{"time":"2026-11-21T05:00:00.000Z","client":"192.0.2.7","family":4,"protocol":"{protocol}","status":200,"user":"{user:016x}","request":{request},"response_bytes":900,"first_byte_ms":1,"delivered_ms":{}.5,"upstream_ms":0.5,"outcome":"ok"}}"#,
            ms
        )
        .unwrap();
    }
    log
}

#[test]
fn a_table_a_page_and_json_say_the_same() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("access.log"), log(0, 20_000)).unwrap();
    let table = good(folder.path(), &["access.log", "--html", "report.html"]);
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    let json: serde_json::Value =
        serde_json::from_str(&good(folder.path(), &["access.log", "--json"])).unwrap();
    assert_eq!(json["verdict"], "lower");
    let headline = json["headline"].as_str().unwrap();
    assert!(page.contains(headline), "{headline}");
    assert!(table.replace('\n', " ").contains(headline), "{table}");
    let p50 = |side: &str| json["comparisons"][0][side]["points"][0]["ms"].as_f64().unwrap();
    assert!((p50("control") / 114.0 - 1.0).abs() < 0.01, "{}", p50("control"));
    assert!((p50("http3") / 84.0 - 1.0).abs() < 0.01, "{}", p50("http3"));
}

#[test]
fn sketches_of_ten_parts_are_the_sketch_of_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let mut sketches = Vec::new();
    for part in 0..10 {
        std::fs::write(folder.path().join("part.log"), log(part * 2000, 2000)).unwrap();
        let name = format!("{part}.sketch");
        good(folder.path(), &["part.log", "--sketch", &name]);
        sketches.push(name);
    }
    std::fs::write(folder.path().join("whole.log"), log(0, 20_000)).unwrap();
    let whole = good(folder.path(), &["whole.log", "--sketch", "whole.sketch"]);
    let mut arguments: Vec<&str> = sketches.iter().rev().map(String::as_str).collect();
    arguments.extend(["--sketch", "merged.sketch"]);
    assert_eq!(good(folder.path(), &arguments), whole);
    let bytes = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(bytes("merged.sketch"), bytes("whole.sketch"));
    let other = good(folder.path(), &["whole.sketch", "--metric", "first-byte"]);
    assert_eq!(other, good(folder.path(), &["whole.log", "--metric", "first-byte"]));
}

#[test]
fn mistakes_end_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let combined = "192.0.2.7 - - [21/Nov/2026:23:21:41 +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"curl\"\n";
    std::fs::write(folder.path().join("combined.log"), combined).unwrap();
    std::fs::write(folder.path().join("access.log"), log(0, 10)).unwrap();
    let cases: [(&[&str], i32, &str); 6] = [
        (&["missing.log"], 1, "missing.log"),
        (&["combined.log"], 1, "format = \"json\""),
        (&["access.log", "--html", "access.log"], 1, "another name"),
        (&["access.log", "access.log"], 1, "twice"),
        (&["access.log", "--metric", "mood"], 2, "last-mile"),
        (&[], 2, "FILE"),
    ];
    for (arguments, code, text) in cases {
        let output = report(folder.path(), arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
        assert!(errors.contains(text), "{arguments:?}: {errors}");
    }
    assert!(std::fs::read_to_string(folder.path().join("access.log")).unwrap().starts_with("{\"time"));
}

#[test]
fn broken_lines_are_counted_and_the_first_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("access.log"), log(0, 200) + "half a li\n" + &log(200, 200)).unwrap();
    let table = good(folder.path(), &["access.log"]);
    assert!(table.contains("access.log:201"), "{table}");
}

#[test]
fn pipes_and_the_standard_input_are_as_good_as_files() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("access.log"), log(0, 2000)).unwrap();
    std::fs::write(folder.path().join("more.log"), log(2000, 2000)).unwrap();
    let whole = good(folder.path(), &["access.log", "more.log", "--sketch", "all.sketch"]);
    let compressed =
        Command::new("gzip").args(["-k", "more.log"]).current_dir(folder.path()).status().unwrap();
    assert!(compressed.success());
    for command in [
        "cat access.log more.log | $GODWIT report -",
        "$GODWIT report <(cat access.log) <(cat more.log.gz)",
        "cat all.sketch | $GODWIT report -",
        "$GODWIT report <(gzip -c all.sketch)",
        "$GODWIT report access.log - < more.log.gz",
    ] {
        let output = shell(folder.path(), command);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {errors}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), whole, "{command}");
    }
    for command in ["$GODWIT report access.log - < access.log", "ln access.log b.log; $GODWIT report *.log"] {
        let output = shell(folder.path(), command);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains("given twice"), "{command}: {errors}");
    }
}

fn shell(folder: &Path, command: &str) -> Output {
    let mut bash = Command::new("bash");
    bash.args(["-c", command]).env("GODWIT", env!("CARGO_BIN_EXE_godwit")).current_dir(folder);
    bash.output().unwrap()
}
