//! `godwit wan` as people run it: what makes no sense is refused in a line before anything is done.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use std::path::Path;
use std::process::{Command, Output};

fn command(folder: &Path, words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_godwit"));
    command.arg("wan").args(words.split_whitespace()).current_dir(folder);
    command
}

fn wan(folder: &Path, words: &str) -> Output {
    command(folder, words).output().unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

/// Refused with this code, and a first line in which this is said; nothing is printed, no file is left.
fn refused(words: &str, code: i32, said: &str) {
    let folder = tempfile::tempdir().unwrap();
    let output = wan(folder.path(), words);
    let errors = errors(&output);
    assert_eq!(output.status.code(), Some(code), "{words}: {errors}");
    assert!(errors.lines().next().is_some_and(|line| line.contains(said)), "{words}: {errors}");
    assert!(output.stdout.is_empty() && !errors.contains("panicked"), "{words}: {errors}");
    assert!(is_empty(folder.path()), "{words} left a file");
}

#[test]
fn numbers_that_cannot_be_are_refused() {
    for (words, said) in [
        ("--seeds 0", "0 is not in 1..=1000"),
        ("--seeds 1001", "1001 is not in 1..=1000"),
        ("--seed -1", "-1"),
        (
            "--seed 18446744073709551615 --seeds 2 --csv a.csv",
            "there are no 2 seeds from 18446744073709551615 on",
        ),
        ("--shard 0/3", "for example 1/4"),
        ("--shard 4/3", "for example 1/4"),
        ("--matrix smoke --shard 61/61 --csv a.csv", "no network of smoke is in that shard"),
        ("--cc vegas", "expected one of newreno, cubic"),
        ("--cc cubic,cubic --csv a.csv", "--cc names cubic twice"),
        ("--matrix all", "there is no such matrix"),
        ("--profile uber", "there is no such profile"),
        ("--profile uber-a --requests 0", "0 is not in 1..="),
        ("--profile uber-a --requests 4000000000", "4000000000 is not in 1..="),
        ("--profile uber-a --kinds lukewarm", "expected first, cold"),
    ] {
        refused(words, 2, said);
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    for words in [
        "--fairness --profile uber-a",
        "--fairness --csv a.csv",
        "--fairness --baseline a.csv",
        "--fairness --full",
        "--profile uber-a --matrix smoke",
        "--profile uber-a --seeds 2",
        "--profile uber-a --download",
        "--profile uber-a --rows",
        "--requests-beside --profile uber-a",
        "--requests-beside --baseline a.csv",
        "attribute --profile uber-a --csv a.csv",
        "mechanisms --profile uber-a --baseline a.csv",
    ] {
        refused(words, 2, "cannot be used with");
    }
    for words in
        ["attribute", "--requests 10", "--kinds cold", "run --rate 5 --delay 5", "run --rate 5 --reorder 1%"]
    {
        refused(words, 2, "the following required arguments were not provided");
    }
    refused("mechanisms --profile uber-a --kinds cold,warm", 2, "only one of --kinds");
    refused("run --rate 5 --qlog a --svg a", 2, "--qlog and --svg name the same file");
}

#[test]
fn files_that_cannot_be_used_are_known_before_anything_is_done() {
    for (words, said) in [
        ("--csv no/a.csv", "cannot write no/a.csv: "),
        ("--cc default,cubic --csv no/a.csv", "cannot write no/a.default.csv: "),
        ("--baseline no.csv --csv a.csv", "cannot compare with no.csv: "),
        ("--profile uber-a --baseline no.csv", "cannot compare with no.csv: "),
        ("--profile uber-a --csv no/a.csv", "cannot write no/a.csv: "),
        ("run --rate 5 --svg no/a.svg", "cannot write no/a.svg: "),
        ("run --rate 5 --qlog no/a.sqlog", "cannot write no/a.sqlog: "),
    ] {
        refused(words, 1, said);
    }
}

#[test]
fn links_that_cannot_be_are_refused() {
    for rate in ["0", "-1", "NaN", "inf", "1e30", "100001", "ten"] {
        refused(&format!("run --rate={rate}"), 2, "expected Mbit/s up to 100000");
    }
    for rtt in ["-1", "NaN", "1e9", "inf"] {
        refused(&format!("run --rate 5 --rtt={rtt}"), 2, "expected milliseconds from 0 to 100000");
    }
    for queue in ["0", "-1", "4294967296", "x"] {
        refused(&format!("run --rate 5 --queue={queue}"), 2, "--queue <PACKETS>");
    }
    // A bare number might be percent, or a share of one.
    for loss in ["0.1", "1", "101%", "-1%", "NaN%", "1/0", "2/1", "1/NaN"] {
        refused(&format!("run --rate 5 --loss={loss}"), 2, "such as 1/10000 or 3.5%");
    }
    refused("run --rate 5 --seconds 0", 2, "0 is not in 1..=3600");
}

#[test]
fn a_baseline_says_what_is_worse() {
    let folder = tempfile::tempdir().unwrap();
    let networks = "--matrix smoke --shard 2/30";
    assert!(wan(folder.path(), &format!("{networks} --csv a.csv")).status.success());
    let compare = format!("{networks} --baseline a.csv");
    let same = wan(folder.path(), &compare);
    assert!(same.status.success(), "{}", errors(&same));
    // Whoever was to use more than all of a link.
    let file = folder.path().join("a.csv");
    let text = std::fs::read_to_string(&file).unwrap();
    let better = text.lines().enumerate().map(|(number, line)| {
        let mut fields: Vec<&str> = line.split(',').collect();
        if number > 0 {
            fields[8] = "150";
        }
        fields.join(",")
    });
    std::fs::write(&file, better.collect::<Vec<_>>().join("\n")).unwrap();
    let worse = wan(folder.path(), &compare);
    let printed = String::from_utf8_lossy(&worse.stdout);
    assert!(worse.status.code() == Some(1) && printed.contains("WORSE: the mean has fallen"), "{printed}");
    // Each controller has a file of its own.
    let many = wan(folder.path(), &format!("{compare} --cc default,cubic"));
    assert!(errors(&many).contains("cannot compare with a.default.csv"), "{}", errors(&many));
}

#[cfg(unix)]
#[test]
fn who_ends_it_early_finds_no_empty_file() {
    for words in ["--csv a.csv", "run --rate 1000 --rtt 100 --seconds 3600 --svg a.svg"] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = command(folder.path(), words).spawn().unwrap();
        // On a slow machine this is before anything is done, and shows nothing; it never fails for that.
        std::thread::sleep(std::time::Duration::from_millis(300));
        // Not -INT, which who starts tests in the background may have switched off.
        assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
        assert!(!child.wait().unwrap().success());
        assert!(is_empty(folder.path()), "{words}");
    }
}
