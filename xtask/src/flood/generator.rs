//! The programs that talk to the server, both from the example `flood`: those who flood it, and an honest client.
//! They share core 1, and the flood gives way.

use crate::shell;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What an honest client has of a server.
pub(super) struct Honest {
    pub(super) handshakes: u64,
    pub(super) failed: u64,
    /// Why the first that failed did.
    pub(super) why: String,
    /// Milliseconds.
    pub(super) p50: f64,
    pub(super) p99: f64,
    /// Of a download that goes on.
    pub(super) mbit: f64,
}

/// A flood that goes on. Dropped, it ends.
pub(super) struct Flood(Option<Child>);

/// What a flood did.
#[derive(Debug, Clone, Copy)]
pub(super) struct Done {
    /// How often it did what it does.
    pub(super) count: u64,
    pub(super) datagrams: u64,
}

/// Visits a server for so many seconds.
pub(super) fn honest(program: &Path, address: &str, seconds: u64) -> Result<Honest, String> {
    let mut command = generator(program, 0);
    let text = shell::output(command.args(["honest", address, "--seconds", &seconds.to_string()]))?;
    let json: Value = serde_json::from_str(&text).map_err(|error| format!("{text:?}: {error}"))?;
    let number = |name: &str| json.get(name).and_then(Value::as_f64).unwrap_or(f64::NAN);
    let whole = |name: &str| json.get(name).and_then(Value::as_u64).unwrap_or(0);
    Ok(Honest {
        handshakes: whole("handshakes"),
        failed: whole("failed"),
        why: json.get("why").and_then(Value::as_str).unwrap_or("none was done").to_owned(),
        p50: number("p50_ms"),
        p99: number("p99_ms"),
        mbit: number("mbit_per_second"),
    })
}

/// Starts a flood with these words for the program.
pub(super) fn flood(program: &Path, words: &[&str]) -> Result<Flood, String> {
    let mut command = generator(program, 10);
    let child = command.args(words).stdout(Stdio::piped()).spawn();
    child.map(|child| Flood(Some(child))).map_err(|error| format!("nice: {error}"))
}

impl Flood {
    /// Waits until it ends.
    pub(super) fn finish(mut self) -> Result<Done, String> {
        let child = self.0.take().ok_or("the flood was waited for")?;
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        let json: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("the flood ended with {}: {error}", output.status))?;
        let whole =
            |name: &str| json.get(name).and_then(Value::as_u64).ok_or_else(|| format!("no {name} in {json}"));
        Ok(Done { count: whole("count")?, datagrams: whole("datagrams")? })
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn generator(program: &Path, nice: u32) -> Command {
    let mut command = Command::new("nice");
    command.args(["-n", &nice.to_string(), "taskset", "-c", "1"]).arg(PathBuf::from(program));
    command
}
