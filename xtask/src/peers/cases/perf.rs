//! The "perf" protocol in both roles: here only that it works, and how fast about.

use super::{Case, PROGRAMS, Stage};
use crate::peers::install::Peer;
use serde_json::Value;
use std::process::Command;

/// Every case, in both roles.
pub(super) fn cases() -> Vec<Case> {
    let of = |peer: Peer| {
        [
            Case::new(format!("perf: {} with godwit's server", peer.name()), peer, move |stage| {
                let (_server, port) = stage.serve(&mut stage.godwit(&["perf", "server"]))?;
                theirs(stage, peer, port)
            }),
            Case::new(format!("perf: godwit with {}'s server", peer.name()), peer, move |stage| {
                let (_server, port) = stage.serve(peer.command().arg("perf-server"))?;
                ours(stage, port)
            }),
        ]
    };
    PROGRAMS.into_iter().flat_map(of).collect()
}

fn theirs(stage: &mut Stage<'_>, peer: Peer, port: u16) -> Result<String, String> {
    let mut measure = |words: &[&str]| {
        let mut client = peer.command();
        client.arg("perf-client").arg(format!("127.0.0.1:{port}")).args(words).arg("--json");
        measure(stage, client.arg("--ca"))
    };
    let download = number(&measure(&["--download", "1"])?, "/bits_per_second")? / 1e6;
    let upload = number(&measure(&["--upload", "1"])?, "/bits_per_second")? / 1e6;
    let requests = &measure(&["--rps", "--streams", "10", "--duration", "1"])?;
    Ok(remark(download, upload, number(requests, "/requests_per_second")?))
}

fn ours(stage: &mut Stage<'_>, port: u16) -> Result<String, String> {
    let mut measure = |words: &[&str]| {
        let mut client = stage.godwit(&["perf", "client", &format!("127.0.0.1:{port}")]);
        client.args(words).arg("--json");
        measure(stage, client.arg("--cacert"))
    };
    let download = number(&measure(&["--download", "1s"])?, "/mbit_per_second")?;
    let upload = number(&measure(&["--upload", "1s"])?, "/mbit_per_second")?;
    let requests = &measure(&["--rps", "1s", "--streams", "10"])?;
    Ok(remark(download, upload, number(requests, "/requests/per_second")?))
}

/// Runs a client, whose command wants the authority's file as its last word.
fn measure(stage: &mut Stage<'_>, client: &mut Command) -> Result<Value, String> {
    let text = stage.run(client.arg(stage.authority()))?;
    serde_json::from_str(text.trim()).map_err(|error| format!("{error} in {text:?}"))
}

/// A figure of the result, which must be above zero.
fn number(result: &Value, place: &str) -> Result<f64, String> {
    let number = result.pointer(place).and_then(Value::as_f64).filter(|number| *number > 0.0);
    number.ok_or_else(|| format!("{place} is not above zero in {result}"))
}

fn remark(download: f64, upload: f64, requests: f64) -> String {
    format!("down {download:.0} Mbit/s, up {upload:.0} Mbit/s, {requests:.0} requests/s")
}
