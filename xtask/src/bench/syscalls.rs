//! System calls, counted in a run of its own, for counting slows the programs down.

use super::figures::Kind;
use super::options::Options;
use super::outcome;
use super::pairs::Pair;
use super::process::Server;
use super::scenarios::Work;
use crate::peers::install::find_program;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// What `strace` is given to attach to a server.
const ATTACHING: Duration = Duration::from_millis(300);

/// A server that is watched; the watching ends with the value.
struct Watch(Child);

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-INT", &self.0.id().to_string()]).status();
        let _ = self.0.wait();
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
    let strace = |file: &PathBuf| {
        let mut strace = Command::new("strace");
        strace
            .args(["-c", "-f", "-U", "calls,name", "-o"])
            .arg(file)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        strace
    };
    let mut watch = strace(&server_file.to_owned());
    let watch = Watch(watch.args(["-p", &server.id().to_string()]).spawn().ok()?);
    std::thread::sleep(ATTACHING);
    let mut client = strace(&client_file.to_owned());
    client.args(["taskset", "-c", "1"]).arg(&pair.client.file);
    let output = client.args(pair.client.measure(&server.address, work, options)).output().ok()?;
    drop(watch);
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
