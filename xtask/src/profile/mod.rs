//! Where a server's time goes: a scenario of `godwit perf`, the server on core 0 and the client on core 1, as a flame graph.
//!
//! Stacks come from Linux `perf`, which samples; where there is none, from callgrind, which counts instructions of a server
//! that is fifty times slower by it, so that what waits for the clock is seen too often.

mod flame;
mod stacks;

use crate::patience::{self, Silence};
use crate::shell::{self, cargo};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long is measured, and how long sampled: the client takes its time to connect.
const MEASURED: &str = "8s";
const SAMPLED: &str = "5";
/// How long a server may take to start or to end, and a client to measure: callgrind makes all of it slow.
const PATIENCE: Duration = Duration::from_secs(120);
/// Callers that callgrind tells apart.
const CALLERS: &str = "--separate-callers=24";

/// A scenario: its name, the server, and what the client is told before the server's address and after it.
struct Scenario {
    name: &'static str,
    server: Server,
    client: &'static [&'static str],
}

/// Which server it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Server {
    /// `godwit perf server`.
    Perf,
    /// `godwit serve`, of a folder with one small file.
    Sites,
}

const SCENARIOS: [Scenario; 7] = [
    Scenario { name: "download", server: Server::Perf, client: &["--download"] },
    Scenario { name: "upload", server: Server::Perf, client: &["--upload"] },
    Scenario { name: "rps", server: Server::Perf, client: &["--rps", "--streams", "100"] },
    Scenario { name: "hps", server: Server::Perf, client: &["--hps"] },
    Scenario { name: "http-h1", server: Server::Sites, client: &["--h1", "--connections", "10"] },
    Scenario { name: "http-h2", server: Server::Sites, client: &["--h2", "--streams", "10"] },
    Scenario { name: "http-h3", server: Server::Sites, client: &["--h3", "--streams", "10"] },
];

/// What takes the stacks down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Perf,
    Callgrind,
}

/// Runs a scenario, and says where the flame graph is.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let names: Vec<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
    let unknown = || format!("expected one of {}, got {:?}", names.join(", "), words.join(" "));
    let [name] = words else { return Err(unknown()) };
    let scenario = SCENARIOS.iter().find(|scenario| scenario.name == *name).ok_or_else(unknown)?;
    let tool = available(works("perf", &["--version"]), works("valgrind", &["--version"]))?;
    let godwit = build()?;
    let folder = shell::target_dir()?.join("profile");
    let stacks = record(scenario, tool, &godwit, &folder.join("run"))?;
    if stacks.is_empty() {
        return Err(format!("{tool:?} has seen nothing of the server on {name}"));
    }
    let title = format!("godwit, {name}: the server, by {tool:?}");
    let file = folder.join(format!("{name}.svg"));
    write(&file, &flame::graph(&title, &stacks))?;
    println!("{}", file.display());
    Ok(())
}

fn works(program: &str, words: &[&str]) -> bool {
    Command::new(program).args(words).output().is_ok_and(|output| output.status.success())
}

fn available(perf: bool, valgrind: bool) -> Result<Tool, String> {
    match (perf, valgrind) {
        (true, _) => Ok(Tool::Perf),
        (false, true) => Ok(Tool::Callgrind),
        (false, false) => {
            Err("neither perf nor valgrind is installed; Debian has them as linux-perf and valgrind".into())
        }
    }
}

/// As packages hold it, but with what leads from a function to its caller. It has a folder of its own, for everything is built
/// otherwise.
fn build() -> Result<PathBuf, String> {
    let folder = shell::target_dir()?.join("profile");
    let mut build = cargo();
    build.args(["build", "--quiet", "--profile", "dist", "-p", "godwit-cli", "--target-dir"]).arg(&folder);
    build.args(["--config", "profile.dist.debug = \"line-tables-only\""]);
    build.env("RUSTFLAGS", "-Cforce-frame-pointers=yes");
    shell::run(&mut build)?;
    Ok(folder.join("dist/godwit"))
}

/// A program that ends with the value.
struct Running(Child);

impl Running {
    /// Asks it to end, as Ctrl-C does, and waits until it has.
    fn finish(mut self) -> Result<(), String> {
        shell::output(Command::new("kill").args(["-INT", &self.0.id().to_string()]))?;
        patience::end(&mut self.0, PATIENCE).map(drop).map_err(|why| format!("the server {why}"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn record(scenario: &Scenario, tool: Tool, godwit: &Path, folder: &Path) -> Result<stacks::Stacks, String> {
    let site = folder.join("site");
    std::fs::create_dir_all(&site).map_err(|error| format!("{}: {error}", site.display()))?;
    write(&site.join("page.html"), &"0123456789".repeat(10))?;
    let out = folder.join("recorded");
    let (address, server) = serve(scenario.server, tool, godwit, &site, &out)?;
    let client = measure(scenario, godwit, &address)?;
    if tool == Tool::Perf {
        let mut perf = Command::new("perf");
        perf.args(["record", "--quiet", "-F", "999", "-g", "-p", &server.0.id().to_string(), "-o"]).arg(&out);
        shell::output(perf.args(["--", "sleep", SAMPLED]))?;
    }
    let told = client.0.id();
    wait(client).map_err(|why| format!("the client (process {told}) {why}"))?;
    server.finish()?;
    match tool {
        Tool::Perf => {
            let mut perf = Command::new("perf");
            perf.args(["script", "-F", "ip,sym", "-i"]).arg(&out);
            Ok(stacks::of_perf(&shell::output(&mut perf)?))
        }
        Tool::Callgrind => {
            let text =
                std::fs::read_to_string(&out).map_err(|error| format!("{}: {error}", out.display()))?;
            Ok(stacks::of_callgrind(&text))
        }
    }
}

fn wait(mut client: Running) -> Result<(), String> {
    let status = patience::end(&mut client.0, PATIENCE)?;
    if status.success() { Ok(()) } else { Err(format!("ended with {status}")) }
}

/// Starts the server on core 0 and waits for the line that tells its address.
fn serve(
    server: Server,
    tool: Tool,
    godwit: &Path,
    site: &Path,
    out: &Path,
) -> Result<(String, Running), String> {
    let mut command = Command::new("taskset");
    command.args(["-c", "0"]);
    if tool == Tool::Callgrind {
        command.args(["valgrind", "--quiet", "--tool=callgrind", CALLERS]);
        command.arg(format!("--callgrind-out-file={}", out.display()));
    }
    command.arg(godwit);
    match server {
        Server::Perf => command.args(["perf", "server"]),
        Server::Sites => command.args(["serve", "--quiet"]).arg(site),
    };
    command.args(["--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
    let child = command.spawn().map_err(|error| format!("cannot start taskset: {error}"))?;
    let mut server = Running(child);
    let said = server.0.stdout.take().ok_or("no output")?;
    match patience::line(said, PATIENCE, address) {
        Ok(address) => Ok((address, server)),
        Err(Silence::Ended) => Err("the server did not say where it listens".into()),
        Err(Silence::TooLong) => {
            Err(format!("the server has not said within {} s where it listens", PATIENCE.as_secs()))
        }
    }
}

/// The address on loopback that a line tells.
fn address(line: &str) -> Option<String> {
    let at = line.find("127.0.0.1:")?;
    let rest = line.get(at..)?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.' && letter != ':');
    rest.get(..end.unwrap_or(rest.len())).map(str::to_owned)
}

/// Starts the client on core 1.
fn measure(scenario: &Scenario, godwit: &Path, address: &str) -> Result<Running, String> {
    let mut command = Command::new("taskset");
    command.args(["-c", "1"]).arg(godwit).arg("perf");
    match scenario.server {
        Server::Perf => command.args(["client", address]),
        Server::Sites => command.args(["http", &format!("https://{address}/page.html")]),
    };
    command.args(scenario.client).args(["--duration", MEASURED, "--insecure", "--json"]);
    let child = command.stdout(Stdio::null()).spawn();
    child.map(Running).map_err(|error| format!("cannot start taskset: {error}"))
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perf_comes_first_and_one_of_both_is_needed() {
        assert_eq!(available(true, true), Ok(Tool::Perf));
        assert_eq!(available(false, true), Ok(Tool::Callgrind));
        assert!(available(false, false).unwrap_err().contains("linux-perf"));
    }

    #[test]
    fn servers_say_where_they_listen() {
        assert_eq!(address("listening on 127.0.0.1:4433").as_deref(), Some("127.0.0.1:4433"));
        assert_eq!(address("  https://127.0.0.1:5/ (HTTP/3)").as_deref(), Some("127.0.0.1:5"));
        assert_eq!(address("godwit serves x"), None);
    }

    #[test]
    fn scenarios_are_known_by_their_names() {
        let problem = run(&["sideways"]).unwrap_err();
        assert!(problem.contains("download") && problem.contains("http-h3"), "{problem}");
        assert!(run(&[]).is_err());
    }
}
