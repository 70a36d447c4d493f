//! System calls, counted in a run of its own, for counting slows the programs down.

use super::figures::Kind;
use super::options::Options;
use super::outcome;
use super::pairs::Pair;
use super::process::{GRACE, Server};
use super::scenarios::Work;
use crate::patience;
use crate::peers::install::find_program;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Counts calls of a process and its threads; the file for them comes next.
const COUNTING: [&str; 5] = ["-c", "-f", "-U", "calls,name", "-o"];

/// What `strace` is given to attach to a server.
const ATTACHING: Duration = Duration::from_millis(300);
/// How long it may take to detach and write down what it has counted.
const DETACHING: Duration = Duration::from_secs(10);

/// A server that is watched; the watching ends with the value.
struct Watch(Child);

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-INT", &self.0.id().to_string()]).status();
        let _ = patience::end(&mut self.0, DETACHING);
    }
}

/// Calls for each megabyte, request or handshake at both ends; nothing where that cannot be counted.
pub(super) fn run(server: &Server, pair: &Pair, work: Work, options: &Options) -> Option<Vec<(Kind, f64)>> {
    find_program("strace")?;
    let file = |end: &str| std::env::temp_dir().join(format!("godwit-bench-{}-{end}", std::process::id()));
    let (ours, theirs) = (file("client"), file("server"));
    let counted = count(server, pair, work, options, &ours, &theirs);
    for file in [ours, theirs] {
        let _ = std::fs::remove_file(file);
    }
    counted
}

fn count(
    server: &Server,
    pair: &Pair,
    work: Work,
    options: &Options,
    client_file: &Path,
    server_file: &Path,
) -> Option<Vec<(Kind, f64)>> {
    let mut watch = Command::new("strace");
    watch.args(COUNTING).arg(server_file).stdout(Stdio::null()).stderr(Stdio::null());
    let watch = Watch(watch.args(["-p", &server.id().to_string()]).spawn().ok()?);
    std::thread::sleep(ATTACHING);
    let limit = options.seconds.ceil() as u64 + GRACE;
    let mut client = patience::within(limit);
    client.arg("strace").args(COUNTING).arg(client_file).args(["taskset", "-c", "1"]).arg(&pair.client.file);
    let output = client.args(pair.client.measure(&server.address, work, options)).output().ok()?;
    drop(watch);
    if let Some(124 | 137) = output.status.code() {
        eprintln!(
            "xtask: {}: its client did not end within {limit} s while its calls were counted",
            pair.name
        );
        return None;
    }
    let outcome = outcome::parse(&String::from_utf8_lossy(&output.stdout)).ok()?;
    let amount = if outcome.is_bulk { outcome.amount * 1e3 } else { outcome.amount };
    let calls = |file: &Path| Some(total(&std::fs::read_to_string(file).ok()?)? / amount);
    Some(vec![(Kind::ServerCalls, calls(server_file)?), (Kind::ClientCalls, calls(client_file)?)])
}

/// The sum at the end of what `strace` prints.
fn total(text: &str) -> Option<f64> {
    let line = text.lines().rfind(|line| line.split_whitespace().last() == Some("total"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_stands_at_the_end() {
        let text = "    calls syscall\n--------- ----------------\n      120 sendmsg\n       30 read\n--------- ----------------\n      150 total\n";
        assert_eq!(total(text), Some(150.0));
        assert_eq!(total(""), None);
    }
}
