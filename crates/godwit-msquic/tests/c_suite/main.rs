//! A suite in C against the library for MsQuic's interface, from outside: it is compiled here, given certificates and run.
//!
//! The library is `GODWIT_MSQUIC_LIBRARY`, or `libmsquic.so` in the folder of the profile that this test was built with.
//! `GODWIT_SUITE_SANITIZE` (such as `address,undefined`) compiles the suite with sanitizers, `GODWIT_SUITE_FILTER` has
//! the words that a case's name must have, and `GODWIT_SUITE_JOBS` says how many run at once.
#![cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]

mod certificates;
mod program;

use program::{Program, library};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

fn from_environment(name: &str, otherwise: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| otherwise.to_owned())
}

#[test]
fn every_case_of_the_suite_passes() {
    let library = library().unwrap_or_else(|why| panic!("{why}"));
    let folder = tempfile::tempdir().unwrap();
    let Some(suite) = Program::Suite.compile(folder.path()) else { return };
    certificates::make(folder.path());
    let output = Command::new(suite)
        .arg("--library")
        .arg(library)
        .arg("--certs")
        .arg(folder.path())
        .args(["--jobs", &from_environment("GODWIT_SUITE_JOBS", "4")])
        .args(["--filter", &from_environment("GODWIT_SUITE_FILTER", "")])
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    eprintln!("{}", printed.lines().last().unwrap_or_default());
    let is_not_built = |name: &str| NOT_BUILT.iter().any(|of| name.starts_with(of));
    let unexpected = failures(&printed, |name| !is_not_built(name));
    assert!(unexpected.is_empty() && complaint.is_empty(), "{unexpected}{complaint}");
    // What is built is to be taken out of the list.
    let built: Vec<_> = names(&printed, "ok ").filter(|name| is_not_built(name)).collect();
    assert!(built.is_empty(), "these pass now: {built:?}");
    assert!(names(&printed, "ok ").count() > 0, "{printed}");
}

/// What the library does not have yet.
const NOT_BUILT: &[&str] = &[];

/// The names of cases whose lines begin like this.
fn names<'a>(printed: &'a str, begin: &'a str) -> impl Iterator<Item = &'a str> {
    printed.lines().filter_map(move |line| line.strip_prefix(begin)?.split_once(" - ")).map(|(_, name)| name)
}

/// Some seconds of calls that make no sense: nothing crashes, hangs, comes twice or is forgotten. `GODWIT_SUITE_SEED`
/// repeats what a seed decides, `GODWIT_SUITE_SECONDS` says for how long.
#[test]
fn calls_at_random_do_no_harm() {
    let output = call_at_random(&["--no-stale"]);
    assert!(output.status.success(), "{}", describe(&output));
}

/// With closed handles as well, a library may end the program in an orderly way; what is checked holds until then.
#[test]
fn calls_at_random_with_closed_handles_do_no_harm() {
    let output = call_at_random(&[]);
    let complaint = String::from_utf8_lossy(&output.stderr);
    let orderly = output.status.signal() == Some(ABORTED) && complaint.is_empty();
    assert!(output.status.success() || orderly, "{}", describe(&output));
}

/// SIGABRT.
const ABORTED: i32 = 6;

fn call_at_random(options: &[&str]) -> Output {
    let library = library().unwrap_or_else(|why| panic!("{why}"));
    let folder = tempfile::tempdir().unwrap();
    let random = Program::Random.compile(folder.path()).expect("a C compiler");
    certificates::make(folder.path());
    let mut command = Command::new(&random);
    command.arg("--library").arg(&library).arg("--certs").arg(folder.path());
    command.args(["--seconds", &from_environment("GODWIT_SUITE_SECONDS", "3")]).args(options);
    if let Ok(seed) = std::env::var("GODWIT_SUITE_SEED") {
        command.args(["--seed", &seed]);
    }
    command.output().unwrap()
}

fn describe(output: &Output) -> String {
    let (printed, complaint) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{}\n{printed}{complaint}", output.status)
}

/// The lines of the cases that failed, with what they printed.
fn failures(printed: &str, counts: impl Fn(&str) -> bool) -> String {
    let mut lines = String::new();
    let mut failed = false;
    for line in printed.lines() {
        if !line.starts_with(' ') {
            failed = names(line, "not ok ").any(&counts);
        }
        if failed {
            lines.push_str(line);
            lines.push('\n');
        }
    }
    lines
}

/// The names of cases are what one filters by: no two are the same, and there are as many as were promised.
#[test]
fn every_case_has_a_name_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let Some(suite) = Program::Suite.compile(folder.path()) else { return };
    let output = Command::new(suite).arg("--list").output().unwrap();
    assert!(output.status.success());
    let printed = String::from_utf8(output.stdout).unwrap();
    let mut names: Vec<&str> = printed.lines().collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "two cases have one name");
    assert!(count >= 600, "the suite has {count} cases");
}
