//! `godwit demo` from its beginning to its end, on a good link, so that it is over soon.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

fn demo(arguments: &[&str], temporary: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_godwit"));
    command.arg("demo").args(arguments).env("TMPDIR", temporary).env("XDG_DATA_HOME", temporary);
    command.env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

fn run(arguments: &[&str], temporary: &Path) -> Output {
    demo(arguments, temporary).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs it where it can be run. Elsewhere the error says what is missing and how to get it, and there is nothing else to
/// test.
fn run_where_permitted(arguments: &[&str], temporary: &Path) -> Option<Output> {
    let output = run(arguments, temporary);
    if output.status.success() {
        return Some(output);
    }
    check_refusal(&output);
    crate::alone::cannot_be_tested(text(&output.stderr));
    None
}

fn check_refusal(output: &Output) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let needs = "godwit: the demonstration needs network namespaces and /dev/net/tun";
    assert!(said.starts_with(needs) && said.contains("run it as root"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn it_runs_over_the_kernels_tcp_where_that_is_permitted() {
    let temporary = tempfile::tempdir().unwrap();
    let arguments = ["--preset", "good", "--seconds", "3", "--files", "12", "--json"];
    let Some(output) = run_where_permitted(&arguments, temporary.path()) else { return };
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["tcp"], "kernel");
    assert_eq!(result["files_on_page"], 12);
    for protocol in ["h2", "h3"] {
        assert_eq!(result[protocol]["failed"], 0, "{result:#}");
        // A small request takes one round trip, a connection two over QUIC and three over TCP with its first one.
        let rtt = 30.0;
        let median = |kind: &str| result["latency_ms"][kind][protocol]["p50"].as_f64().unwrap_or(rtt * 4.0);
        assert!(median("later") >= rtt, "{result:#}");
        let round_trips = if protocol == "h2" { 3.0 } else { 2.0 };
        assert!(median("first") >= rtt * round_trips, "{result:#}");
    }
    let left: Vec<_> = std::fs::read_dir(temporary.path()).unwrap().collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

/// With one descriptor to spare nobody gets a TUN device, not even root.
#[cfg(target_os = "linux")]
#[test]
fn without_what_it_needs_it_says_so_in_one_line() {
    let temporary = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 4 && exec \"$0\" demo --seconds 1", env!("CARGO_BIN_EXE_godwit")]);
    command.env("TMPDIR", temporary.path()).env_remove("RUST_LOG").stdin(Stdio::null());
    check_refusal(&command.output().unwrap());
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
}

/// Starts it and waits for its heading, which comes when everything runs.
#[cfg(unix)]
fn begin_where_permitted(temporary: &Path) -> Option<std::process::Child> {
    let mut command = demo(&["--preset", "good"], temporary);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut printed = [0; 64];
    if std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut printed).is_ok() {
        return Some(child);
    }
    check_refusal(&child.wait_with_output().unwrap());
    None
}

#[test]
fn a_report_is_written_and_the_tcp_is_named() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("report.html");
    let arguments = ["--preset", "good", "--seconds", "2", "--html", file.to_str().unwrap()];
    let Some(output) = run_where_permitted(&arguments, temporary.path()) else { return };
    let printed = text(&output.stdout);
    assert!(printed.contains("TCP: this kernel's own ("), "{printed}");
    assert!(printed.contains("small requests") && printed.contains("Report: "), "{printed}");
    let page = std::fs::read_to_string(&file).unwrap();
    assert!(page.contains("TCP: this kernel") && page.ends_with("</html>\n"), "{page}");
}

#[test]
fn what_cannot_work_is_said_before_anything_is_done() {
    let temporary = tempfile::tempdir().unwrap();
    let output = run(&["--html", "/nonexistent/report.html"], temporary.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("cannot write"), "{}", text(&output.stderr));
    for wrong in
        [["--rtt", "0"], ["--loss", "101"], ["--rate", "0"], ["--preset", "moon"], ["--seconds", "0"]]
    {
        assert_eq!(run(&wrong, temporary.path()).status.code(), Some(2), "{wrong:?}");
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_it_and_leaves_nothing_behind() {
    let temporary = tempfile::tempdir().unwrap();
    let Some(mut child) = begin_where_permitted(temporary.path()) else { return };
    let files = || std::fs::read_dir(temporary.path()).unwrap().count();
    assert_eq!(files(), 1);
    std::thread::sleep(Duration::from_millis(300));
    assert!(Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(files(), 0);
}

/// The processes that this one has started, and what is left of them when it has ended.
#[cfg(target_os = "linux")]
fn children(parent: u32) -> Vec<String> {
    let processes =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    let is_child = |process: &String| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // PID (NAME) STATE PARENT
        let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        rest.split(' ').nth(1) == Some(parent.to_string().as_str())
    };
    processes.filter(is_child).collect()
}

#[cfg(target_os = "linux")]
fn is_running(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[cfg(target_os = "linux")]
#[test]
fn the_server_does_not_outlive_it() {
    let temporary = tempfile::tempdir().unwrap();
    let Some(mut child) = begin_where_permitted(temporary.path()) else { return };
    let servers = children(child.id());
    assert_eq!(servers.len(), 1, "{servers:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    // Far longer than it takes.
    let gone = (0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        !is_running(&servers[0])
    });
    assert!(gone, "process {} is still there", servers[0]);
}
