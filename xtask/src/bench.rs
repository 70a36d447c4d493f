//! `godwit perf` beside quinn, in one interleaved run: Godwit, quinn, Godwit, quinn … for each scenario.
//!
//! Both servers run on core 0 and both clients on core 1, one thread of work each. What counts are the medians
//! and, on a machine that does other things as well, the spread beside them.

use crate::peers::install;
use crate::shell::{self, cargo};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Runs of each scenario and program.
const ROUNDS: usize = 5;

/// A scenario: its name, its unit, and what the two clients are told.
struct Scenario {
    name: &'static str,
    unit: &'static str,
    godwit: &'static [&'static str],
    quinn: &'static [&'static str],
}

const SCENARIOS: [Scenario; 5] = [
    Scenario { name: "download", unit: "Mbit/s", godwit: &["--download", "2s"], quinn: &["--download", "2"] },
    Scenario { name: "upload", unit: "Mbit/s", godwit: &["--upload", "2s"], quinn: &["--upload", "2"] },
    Scenario {
        name: "requests, 1 stream",
        unit: "1/s",
        godwit: &["--rps", "--streams", "1", "--duration", "2s"],
        quinn: &["--rps", "--streams", "1", "--duration", "2"],
    },
    Scenario {
        name: "requests, 100 streams",
        unit: "1/s",
        godwit: &["--rps", "--streams", "100", "--duration", "2s"],
        quinn: &["--rps", "--streams", "100", "--duration", "2"],
    },
    Scenario {
        name: "handshakes, 8 at a time",
        unit: "1/s",
        godwit: &["--hps", "--concurrency", "8", "--duration", "2s"],
        quinn: &["--hps", "--streams", "8", "--duration", "2"],
    },
];

/// A server that ends with the value.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Measures every scenario and prints a table in Markdown.
pub(crate) fn run() -> Result<(), String> {
    shell::run(cargo().args(["build", "--quiet", "--profile", "dist"]))?;
    let godwit = shell::target_dir()?.join("dist/godwit");
    let quinn = install::build_quinn_for_figures()?;
    let folder = std::env::temp_dir().join(format!("godwit-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    shell::output(Command::new(&quinn).arg("make-certs").arg(&folder))?;
    let result = measure(&godwit, &quinn, &folder);
    let _ = std::fs::remove_dir_all(&folder);
    result
}

fn measure(godwit: &Path, quinn: &Path, folder: &Path) -> Result<(), String> {
    let (ours, our_server) = serve(godwit, &["perf", "server"], folder)?;
    let (theirs, their_server) = serve(quinn, &["perf-server"], folder)?;
    println!("| | Godwit | quinn 0.11.12 | |\n|---|---|---|---|");
    for scenario in &SCENARIOS {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for round in 1..=ROUNDS {
            eprintln!("xtask: {} {round}/{ROUNDS}", scenario.name);
            left.push(client(godwit, &["perf", "client", &ours], scenario.godwit)?);
            right.push(client(quinn, &["perf-client", &theirs], scenario.quinn)?);
        }
        let (left, right) = (Spread::of(left), Spread::of(right));
        let ratio = left.median / right.median;
        println!("| {}, {} | {left} | {right} | {ratio:.2} |", scenario.name, scenario.unit);
    }
    drop((our_server, their_server));
    Ok(())
}

/// Starts a server on core 0 and waits for the line that tells its address.
fn serve(program: &Path, words: &[&str], folder: &Path) -> Result<(String, Server), String> {
    let file = |name: &str| PathBuf::from(folder).join(name);
    let mut command = on_core("0", program);
    command.args(words).args(["--listen", "127.0.0.1:0", "--cert"]).arg(file("leaf.pem"));
    command.arg("--key").arg(file("leaf.key")).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
    let mut line = String::new();
    let out = child.stdout.take().ok_or("no output")?;
    let server = Server(child);
    BufReader::new(out).read_line(&mut line).map_err(|error| error.to_string())?;
    let address = line.split_whitespace().find(|word| word.starts_with("127.0.0.1:"));
    let address =
        address.ok_or_else(|| format!("{} did not say where it listens: {line:?}", program.display()))?;
    Ok((address.trim_end_matches([',', ';']).to_owned(), server))
}

/// Runs a client on core 1 and takes the rate out of its JSON.
fn client(program: &Path, words: &[&str], scenario: &[&str]) -> Result<f64, String> {
    let mut command = on_core("1", program);
    let text = shell::output(command.args(words).args(scenario).args(["--insecure", "--json"]))?;
    let json: Value = serde_json::from_str(&text).map_err(|error| format!("{text:?}: {error}"))?;
    let at = |path: &str| json.pointer(path).and_then(Value::as_f64);
    let rate = at("/bits_per_second").map(|bits| bits / 1e6);
    let rate = rate.or_else(|| at("/requests_per_second")).or_else(|| at("/handshakes_per_second"));
    let rate = rate.or_else(|| at("/requests/per_second")).or_else(|| at("/handshakes/per_second"));
    rate.or_else(|| at("/mbit_per_second")).ok_or_else(|| format!("no rate in {text:?}"))
}

fn on_core(core: &str, program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", core]).arg(program);
    command
}

/// Median and extremes of some runs.
struct Spread {
    least: f64,
    median: f64,
    most: f64,
}

impl Spread {
    fn of(mut runs: Vec<f64>) -> Self {
        runs.sort_by(f64::total_cmp);
        let at = |at: usize| runs.get(at).copied().unwrap_or(f64::NAN);
        Spread { least: at(0), median: at(runs.len() / 2), most: at(runs.len().saturating_sub(1)) }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "**{:.0}** ({:.0}–{:.0})", self.median, self.least, self.most)
    }
}
