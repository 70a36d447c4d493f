//! `godwit serve` under floods, each from a process of its own, with an honest client in a third.
//!
//! The server has core 0; the honest client and the flood share core 1, and the flood gives way. What counts: the
//! server's peak of memory while the flood lasts, honest handshakes (none may fail), their median beside that of quiet
//! times, and an honest download's share of its rate in quiet times.

use crate::shell::{self, cargo};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Floods and how often a second each does what it does; 0 is as often as it goes.
const FLOODS: [(&str, u32); 28] = [
    ("initials", 2000),
    ("partial-hellos", 2000),
    ("early-data", 100),
    ("half-open", 2000),
    ("short-packets", 20_000),
    ("unknown-versions", 20_000),
    ("garbage", 20_000),
    ("churn", 400),
    ("abandoned-requests", 4000),
    ("streams", 4000),
    ("settings", 4000),
    ("unknown-frames", 4000),
    ("empty-data", 4000),
    ("priorities", 4000),
    ("slow-readers", 0),
    ("slow-writers", 0),
    ("idle", 500),
    ("pings", 4000),
    ("path-challenges", 4000),
    ("new-connection-ids", 4000),
    ("retired-connection-ids", 4000),
    ("crypto", 4000),
    ("acknowledgements", 4000),
    ("single-bytes", 4000),
    ("empty-frames", 4000),
    ("windows", 4000),
    ("resets", 4000),
    ("blocked", 4000),
];

const SECONDS: &str = "20";

/// How much memory a flood may cost the server at its peak, in KiB.
const MOST_MEMORY: u64 = 64 * 1024;

/// A program that ends with the value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What an honest client has of a server.
struct Honest {
    handshakes: u64,
    failed: u64,
    why: String,
    p50: f64,
    p99: f64,
    mbit: f64,
}

/// Floods a server with each, and demands that the bars hold.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    shell::run(cargo().args(["build", "--quiet", "--release", "--package", "godwit-cli"]))?;
    shell::run(cargo().args([
        "build",
        "--quiet",
        "--release",
        "--package",
        "godwit-lab",
        "--example",
        "flood",
    ]))?;
    let programs = shell::programs_of("release")?;
    let folder = std::env::temp_dir().join(format!("godwit-flood-{}", std::process::id()));
    let made = site(&folder);
    let result = made.and_then(|()| flood_all(&programs, &folder, words));
    let _ = std::fs::remove_dir_all(&folder);
    result
}

/// A site with a small file and a big one.
fn site(folder: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    std::fs::write(folder.join("small"), "small\n").map_err(failed)?;
    std::fs::write(folder.join("big"), vec![b'x'; 64 << 20]).map_err(failed)
}

fn flood_all(programs: &Path, folder: &Path, words: &[&str]) -> Result<(), String> {
    println!(
        "| flood | done | memory before, at its peak (MiB) | handshakes | failed | P50, P99 (ms) | Mbit/s |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut short = Vec::new();
    for (kind, rate) in FLOODS {
        if !words.is_empty() && !words.iter().any(|word| kind.contains(word)) {
            continue;
        }
        // A server of its own, and its own quiet time, as machines are never the same twice.
        let (server, address) = serve(programs, folder)?;
        let quiet = honest(programs, &address, "5")?;
        let before = memory(&server, "VmRSS:")?;
        forget_peak(&server)?;
        let flood = start_flood(programs, kind, &address, rate)?;
        std::thread::sleep(Duration::from_secs(1));
        let flooded = honest(programs, &address, "18")?;
        let peak = memory(&server, "VmHWM:")?;
        let done = count(flood)?;
        let Honest { handshakes, failed, p50, p99, mbit, .. } = &flooded;
        println!(
            "| {kind} | {done} | {} → {} | {handshakes} | {failed} | {:.2} → {p50:.2}, {p99:.1} | {:.0} → {mbit:.0} |",
            before / 1024,
            peak / 1024,
            quiet.p50,
            quiet.mbit
        );
        short.extend(shortfalls(kind, &quiet, &flooded, peak.saturating_sub(before)));
    }
    if short.is_empty() { Ok(()) } else { Err(short.join("\n")) }
}

fn shortfalls(kind: &str, quiet: &Honest, flooded: &Honest, grown: u64) -> Vec<String> {
    let mut short = Vec::new();
    if grown > MOST_MEMORY {
        short.push(format!("{kind}: the server's memory grew by {} MiB", grown / 1024));
    }
    if flooded.failed > 0 || flooded.handshakes == 0 {
        short.push(format!("{kind}: {} honest visits failed: {}", flooded.failed, flooded.why));
    }
    if flooded.p50 > quiet.p50 * 3.0 {
        short.push(format!(
            "{kind}: half of the handshakes took {:.1} ms, in quiet times {:.1}",
            flooded.p50, quiet.p50
        ));
    }
    if flooded.mbit < quiet.mbit / 2.0 {
        short.push(format!(
            "{kind}: a download had {:.0} Mbit/s, in quiet times {:.0}",
            flooded.mbit, quiet.mbit
        ));
    }
    short
}

/// Starts the server on core 0, and tells its address once it answers.
fn serve(programs: &Path, folder: &Path) -> Result<(Running, String), String> {
    let port = std::net::UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let address = port.map_err(|error| error.to_string())?.to_string();
    let mut command = Command::new("taskset");
    command.args(["-c", "0"]).arg(programs.join("godwit")).arg("serve").arg(folder);
    command.args(["--listen", &address]).stdout(Stdio::null()).stderr(Stdio::null());
    let server = Running(command.spawn().map_err(|error| format!("taskset: {error}"))?);
    for _ in 0..100 {
        if std::net::TcpStream::connect(&address).is_ok() {
            return Ok((server, address));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Err(format!("godwit serve does not listen on {address}"))
}

fn honest(programs: &Path, address: &str, seconds: &str) -> Result<Honest, String> {
    let mut command = generator(programs, &["-n", "0"]);
    let text = shell::output(command.args(["honest", address, "--seconds", seconds]))?;
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

fn start_flood(programs: &Path, kind: &str, address: &str, rate: u32) -> Result<Child, String> {
    let mut command = generator(programs, &["-n", "10"]);
    command.args([kind, address, "--seconds", SECONDS, "--rate", &rate.to_string()]);
    command.stdout(Stdio::piped()).spawn().map_err(|error| format!("nice: {error}"))
}

/// How often a flood did what it does.
fn count(flood: Child) -> Result<u64, String> {
    let output = flood.wait_with_output().map_err(|error| error.to_string())?;
    let json: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("a flood ended: {error}"))?;
    json.get("count").and_then(Value::as_u64).ok_or_else(|| format!("no count in {json}"))
}

fn generator(programs: &Path, nice: &[&str]) -> Command {
    let mut command = Command::new("nice");
    command.args(nice).args(["taskset", "-c", "1"]).arg(PathBuf::from(programs).join("examples/flood"));
    command
}

/// A line of the server's status, in KiB.
fn memory(server: &Running, name: &str) -> Result<u64, String> {
    let file = format!("/proc/{}/status", server.0.id());
    let text =
        std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}; the server has ended"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| format!("{file} has no {name}: the server has ended"))
}

/// The kernel keeps the peak of what comes from here on.
fn forget_peak(server: &Running) -> Result<(), String> {
    let file = format!("/proc/{}/clear_refs", server.0.id());
    std::fs::write(&file, "5").map_err(|error| format!("{file}: {error}"))
}
