#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use std::io::Write;

use super::lines::Lines;
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

/// A pipe with a name into which somebody writes `bytes`.
#[cfg(unix)]
fn pipe_of(folder: &tempfile::TempDir, name: &str, bytes: Vec<u8>) -> Source {
    let path = folder.path().join(name);
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let writer = path.clone();
    std::thread::spawn(move || std::fs::write(writer, bytes).unwrap());
    Source::File(path)
}

#[cfg(unix)]
#[test]
fn pipes_bring_what_files_bring() {
    let folder = tempfile::tempdir().unwrap();
    let log = |ms| format!("{}\n{}\n", line(ms, 0), line(ms + 1, 100_000));
    let (sketched, _) = whole(log(30).as_bytes());
    let sources = [
        pipe_of(&folder, "plain", log(10).into_bytes()),
        pipe_of(&folder, "gzip", gzip(log(20).as_bytes())),
        pipe_of(&folder, "sketch", sketched.encode()),
        pipe_of(&folder, "empty", Vec::new()),
    ];
    let outcome = read_files(&sources).unwrap();
    let all = [log(10), log(20), log(30)].concat();
    assert_eq!(outcome.summary.encode(), whole(all.as_bytes()).0.encode());
    let only = read_files(&[pipe_of(&folder, "sketch.gz", gzip(&sketched.encode()))]).unwrap();
    assert_eq!(only.summary.encode(), sketched.encode());
    let broken = pipe_of(&folder, "broken", format!("{}\nx\n", line(1, 0)).into_bytes());
    assert_eq!(read_files(&[broken]).unwrap().broken.unwrap().line, 2);
}

#[cfg(unix)]
#[test]
fn a_file_under_two_names_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let Source::File(log) = file_of(&folder, "access.log", line(1, 0).as_bytes()) else { panic!() };
    let (hard, soft) = (folder.path().join("hard.log"), folder.path().join("soft.log"));
    std::fs::hard_link(&log, &hard).unwrap();
    std::os::unix::fs::symlink(&log, &soft).unwrap();
    for other in [hard, soft] {
        let error = read_files(&[Source::File(log.clone()), Source::File(other)]).unwrap_err();
        assert!(matches!(error.problem, Problem::Twice), "{error}");
    }
    let copy = file_of(&folder, "copy.log", line(1, 0).as_bytes());
    assert_eq!(read_files(&[Source::File(log), copy]).unwrap().summary.lines, 2);
}

#[test]
fn compressed_logs_that_are_cut_off_say_how_far_they_came() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for number in 0_u64..20_000 {
        let noise = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        text.push_str(&line(number as usize, 0).replace("\"path\":\"", &format!("\"path\":\"{noise:x}")));
        text.push('\n');
    }
    let whole = gzip(text.as_bytes());
    let cut = file_of(&folder, "cut.gz", &whole[..whole.len() / 2]);
    let error = read_files(&[cut]).unwrap_err();
    let Problem::Compressed { cut_off: true, lines } = error.problem else { panic!("{error}") };
    assert!((5_000..15_000).contains(&lines), "{lines}");
    let said = error.to_string();
    assert!(said.contains(&format!("after {lines} lines")) && said.contains("gzip -dc"), "{said}");
    let mut damaged = whole;
    let middle = damaged.len() / 2;
    damaged[middle..middle + 100].fill(0);
    let error = read_files(&[file_of(&folder, "damaged.gz", &damaged)]).unwrap_err();
    assert!(matches!(error.problem, Problem::Compressed { .. }), "{error}");
    let start = file_of(&folder, "start.gz", &damaged[..5]);
    assert!(matches!(read_files(&[start]).unwrap_err().problem, Problem::Compressed { lines: 0, .. }));
}

#[test]
fn names_of_files_do_nothing_to_a_terminal() {
    let name = "a\u{1b}[2J\n\u{202e}b\u{9b}ü.log";
    let said = Source::File(name.into()).to_string();
    assert_eq!(said, "a\\u{1b}[2J\\n\\u{202e}b\\u{9b}ü.log");
}
