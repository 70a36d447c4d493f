#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic,
    reason = "tests"
)]

use std::io::Write;

use super::*;
use proptest::prelude::*;

fn line(ms: usize, pad: usize) -> String {
    format!(
        r#"{{"time":"2026-11-21T05:00:00Z","protocol":"h2","status":200,"path":"{}","last_byte_ms":{ms}}}"#,
        "x".repeat(pad)
    )
}

fn whole(text: &[u8]) -> (Summary, Tally) {
    let mut summary = Summary::new(Metric::ALL);
    let tally = Lines::new().read_all(text, &mut summary, &|_| {}).unwrap();
    (summary, tally)
}

fn file_of(folder: &tempfile::TempDir, name: &str, bytes: &[u8]) -> Source {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    Source::File(path)
}

fn read_files(sources: &[Source]) -> Result<Outcome, ReadError> {
    read(sources, Metric::ALL, 2, &|_| {})
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn logs_of_all_kinds_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let log = |ms| format!("{}\n{}\n", line(ms, 0), line(ms + 1, 3));
    let (sketched, _) = whole(log(30).as_bytes());
    let sources = [
        file_of(&folder, "access.log", log(10).as_bytes()),
        file_of(&folder, "access.log.1.gz", &gzip(log(20).as_bytes())),
        file_of(&folder, "a.sketch", &sketched.encode()),
        file_of(&folder, "empty.log", b""),
    ];
    let outcome = read_files(&sources).unwrap();
    let all = [log(10), log(20), log(30)].concat();
    assert_eq!(outcome.summary.encode(), whole(all.as_bytes()).0.encode());
    assert_eq!(outcome.broken, None);
}

#[test]
fn large_files_are_cut_without_losing_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for number in 0..1200 {
        text.push_str(&line(number, 20_000 + number * 41));
        text.push('\n');
    }
    assert!(text.len() as u64 > RANGE);
    text.push_str("nonsense\n");
    let outcome = read_files(&[file_of(&folder, "access.log", text.as_bytes())]).unwrap();
    assert_eq!(outcome.summary.encode(), whole(text.as_bytes()).0.encode());
    assert_eq!(outcome.summary.lines, 1201);
    assert_eq!(outcome.broken.unwrap().line, 1201);
}

#[test]
fn overlong_and_half_lines_do_no_harm() {
    let text = format!("{}\n{}\n{}\n{{\"time\":\"20", line(1, 0), "y".repeat(3 * (1 << 20)), line(2, 0));
    let (summary, tally) = whole(text.as_bytes());
    assert_eq!(tally, Tally { lines: 3, broken: 1, first_broken: Some(2) });
    assert_eq!((summary.lines, summary.broken), (3, 1));
}

#[test]
fn foreign_files_are_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let combined = b"192.0.2.7 - - [21/Nov/2026:23:21:41 +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"curl\"\n";
    let cases: [(&str, &[u8], &str); 3] = [
        ("combined.log", combined, "format = \"json\""),
        ("other.txt", b"hello\nworld\n", "--access-log FILE"),
        ("broken.sketch", b"GODWITSK\x01abcdefghi", "write it again"),
    ];
    for (name, bytes, remedy) in cases {
        let error = read_files(&[file_of(&folder, name, bytes)]).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(remedy), "{error}");
    }
    let missing = Source::File(folder.path().join("missing.log"));
    assert!(matches!(read_files(&[missing]).unwrap_err().problem, Problem::Io(_)));
    let good = file_of(&folder, "good.log", line(1, 0).as_bytes());
    let error = read_files(&[good.clone(), good]).unwrap_err();
    assert!(matches!(error.problem, Problem::Twice));
}

proptest! {
    #[test]
    fn every_cut_into_ranges_gives_every_line_once(
        pads in prop::collection::vec(0_usize..40, 1..20),
        cuts in prop::collection::vec(0.0..1.0_f64, 0..5),
        last_end in any::<bool>(),
    ) {
        let lines: Vec<_> = pads.iter().enumerate().map(|(number, &pad)| line(number, pad)).collect();
        let text = lines.join("\n") + if last_end { "\n" } else { "" };
        let mut bounds: Vec<_> = cuts.iter().map(|cut| (cut * text.len() as f64) as u64).collect();
        bounds.extend([0, text.len() as u64]);
        bounds.sort_unstable();
        bounds.dedup();
        let mut summary = Summary::new(Metric::ALL);
        let mut lines = Lines::new();
        for pair in bounds.windows(2) {
            let input = &text.as_bytes()[pair[0].saturating_sub(1) as usize..];
            lines.read_range(input, pair[0], pair[1], &mut summary, &|_| {}).unwrap();
        }
        prop_assert_eq!(summary.lines, pads.len() as u64);
        prop_assert_eq!(summary.encode(), whole(text.as_bytes()).0.encode());
    }
}
