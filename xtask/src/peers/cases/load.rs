//! `godwit serve --proxy` under load: what it does to the process, and whether anything is lost when an upstream dies,
//! certificates are exchanged, or the server is told to end. With `GODWIT_BARS` in full size.

use super::{Case, READY, Stage, port_in};
use crate::peers::install::Peer;
use crate::peers::process::Process;
use crate::shell;
use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

/// Every kind of load, over the three protocols at once.
pub(super) fn cases() -> Vec<Case> {
    let case = |name: &str, run: fn(&mut Stage<'_>) -> Result<String, String>| {
        let mut case = Case::new(format!("load: {name}"), Peer::Aioquic, run);
        case.needs.push(Peer::Chromium);
        case
    };
    vec![
        case("many requests leave nothing behind", |stage| {
            let count = if stage.bench.bars { "1000000" } else { "30000" };
            with_upstream(stage, &["requests", "--count", count])
        }),
        case("slow readers get everything", |stage| {
            let words: &[&str] = match stage.bench.bars {
                true => &["slow", "--count", "2000", "--size", "1048576", "--speed", "10000"],
                false => &["slow", "--count", "60", "--size", "200000", "--speed", "50000"],
            };
            with_upstream(stage, words)
        }),
        case("an upstream dies and comes back", restart),
        case("certificates are exchanged", swap),
        case("the end loses nothing", |stage| with_upstream(stage, &["end"])),
    ]
}

fn with_upstream(stage: &mut Stage<'_>, words: &[&str]) -> Result<String, String> {
    let mut upstream = Peer::Chromium.script("upstream.mjs");
    let mut behind = stage.start("upstream", upstream.args(["--listen", "127.0.0.1:0"]))?;
    let port = behind.wait_for(READY, port_in)?;
    let target = format!("http://localhost:{port}");
    let (proxy, port) = stage.serve(&mut stage.godwit(&["serve", "--quiet", "--proxy", &target]))?;
    load(stage, &proxy, port, stage.authority().into(), words)
}

fn restart(stage: &mut Stage<'_>) -> Result<String, String> {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = free.map_err(|error| format!("no free port: {error}"))?.port();
    let (address, target) = (format!("127.0.0.1:{port}"), format!("http://localhost:{port}"));
    let (proxy, port) = stage.serve(&mut stage.godwit(&["serve", "--quiet", "--proxy", &target]))?;
    let script = Peer::Chromium.script("upstream.mjs");
    let words: Vec<_> = script.get_args().map(|word| word.to_string_lossy()).collect();
    let upstream = format!("node {} --listen {address}", words.join(" "));
    let count = if stage.bench.bars { "5" } else { "1" };
    load(
        stage,
        &proxy,
        port,
        stage.authority().into(),
        &["restart", "--count", count, "--upstream", &upstream],
    )
}

/// The certificates are made by the peer of quinn, each with an authority of its own: both are trusted.
fn swap(stage: &mut Stage<'_>) -> Result<String, String> {
    let folder = stage.logs.join("pairs");
    let write = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(write)?;
    let mut authorities = String::new();
    for number in 0..2 {
        let made = folder.join(format!("made-{number}"));
        shell::output(Peer::Quinn.command().arg("make-certs").arg(&made))?;
        for (from, to) in [("leaf.pem", "pem"), ("leaf.key", "key")] {
            fs::copy(made.join(from), folder.join(format!("{number}.{to}"))).map_err(write)?;
        }
        authorities += &fs::read_to_string(made.join("ca.pem")).map_err(write)?;
    }
    let place = |name: &str| folder.join(name);
    fs::write(place("both.pem"), authorities).map_err(write)?;
    fs::copy(place("0.pem"), place("live.pem")).map_err(write)?;
    fs::copy(place("0.key"), place("live.key")).map_err(write)?;
    let mut upstream = Peer::Chromium.script("upstream.mjs");
    let mut behind = stage.start("upstream", upstream.args(["--listen", "127.0.0.1:0"]))?;
    let target = format!("http://localhost:{}", behind.wait_for(READY, port_in)?);
    let mut serve =
        stage.godwit(&["serve", "--quiet", "--proxy", &target, "--listen", "127.0.0.1:0", "--cert"]);
    serve.arg(place("live.pem")).arg("--key").arg(place("live.key"));
    let mut proxy = stage.start("server", &serve)?;
    let port = proxy.wait_for(READY, port_in)?;
    let text = |name: &str| place(name).display().to_string();
    let (pairs, live, key) = (folder.display().to_string(), text("live.pem"), text("live.key"));
    // The server looks every two seconds.
    let count = if stage.bench.bars { "100" } else { "4" };
    let words =
        ["swap", "--pairs", &pairs, "--cert", &live, "--key", &key, "--count", count, "--pause", "2.2"];
    load(stage, &proxy, port, place("both.pem"), &words)
}

fn load(
    stage: &mut Stage<'_>,
    proxy: &Process,
    port: u16,
    authority: PathBuf,
    words: &[&str],
) -> Result<String, String> {
    let mut command: Command = Peer::Aioquic.script("proxy_load.py");
    command.args(words).args([
        "--url",
        &format!("https://localhost:{port}"),
        "--pid",
        &proxy.id().to_string(),
    ]);
    let output = stage.run(command.arg("--ca").arg(authority))?;
    let figures: Vec<_> = output.lines().filter(|line| *line != "ok").collect();
    Ok(figures.iter().rev().take(2).rev().copied().collect::<Vec<_>>().join("; "))
}
