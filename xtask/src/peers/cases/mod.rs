//! The cases: who talks to whom about what.

mod acme;
mod behind;
mod chromium;
mod fetching;
mod grpc;
mod http3;
mod load;
mod msquic;
mod perf;
mod proxy;
mod webtransport;

use super::install::Peer;
use super::material::Material;
use super::process::{Ended, Process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The peers that are programs with the common command line.
const PROGRAMS: [Peer; 3] = [Peer::QuicGo, Peer::Aioquic, Peer::Quinn];
/// How long a server may take until it listens: interpreters on a busy machine take their time.
const READY: Duration = Duration::from_secs(30);

/// What every case is given.
pub(crate) struct Bench {
    /// Our program.
    pub(crate) godwit: PathBuf,
    /// Our example that has the common command line for `hq`.
    pub(crate) hq: PathBuf,
    /// Our example of a WebTransport server.
    pub(crate) webtransport: PathBuf,
    pub(crate) browser: PathBuf,
    pub(crate) material: Material,
    /// Size of the large file for a slow peer, in MiB.
    pub(crate) large_slow: u64,
    /// Size of the large file for the others, in MiB.
    pub(crate) large_fast: u64,
    /// Whether everything is in full size.
    pub(crate) bars: bool,
    /// What a client may take.
    pub(crate) limit: Duration,
    /// Where everything is written.
    pub(crate) folder: PathBuf,
}

type Run = Box<dyn Fn(&Bench, &str) -> Result<String, String> + Send + Sync>;

/// One test. `run` is given the case's name and returns a remark.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) needs: Vec<Peer>,
    pub(crate) run: Run,
}

impl Case {
    fn new(
        name: impl Into<String>,
        peer: Peer,
        run: impl Fn(&mut Stage<'_>) -> Result<String, String> + Send + Sync + 'static,
    ) -> Self {
        let run = move |bench: &Bench, name: &str| {
            let mut stage = Stage::new(bench, name)?;
            let outcome = run(&mut stage);
            // What was received is as large as what was served: only the logs stay.
            let _ = fs::remove_dir_all(&stage.received);
            outcome
        };
        Self { name: name.into(), needs: vec![peer], run: Box::new(run) }
    }
}

/// Every case, the longest first so that the ends are even.
pub(crate) fn all() -> Vec<Case> {
    let all = [
        acme::cases(),
        http3::cases(),
        proxy::cases(),
        grpc::cases(),
        load::cases(),
        behind::cases(),
        chromium::cases(),
        webtransport::cases(),
        fetching::hq_cases(),
        perf::cases(),
        msquic::cases(),
    ];
    all.into_iter().flatten().collect()
}

/// Where one case plays: its folder, and the programs that it starts.
struct Stage<'a> {
    bench: &'a Bench,
    logs: PathBuf,
    received: PathBuf,
    started: usize,
}

impl<'a> Stage<'a> {
    fn new(bench: &'a Bench, name: &str) -> Result<Self, String> {
        let logs = bench.folder.join("cases").join(name.replace(' ', "-"));
        let received = logs.join("received");
        fs::create_dir_all(&received).map_err(|error| format!("{}: {error}", received.display()))?;
        Ok(Self { bench, logs, received, started: 0 })
    }

    /// Starts a server, adding address and certificate to its arguments, and returns it with its port.
    fn serve(&mut self, command: &mut Command) -> Result<(Process, u16), String> {
        let material = &self.bench.material;
        command.args(["--listen", "127.0.0.1:0"]);
        command.arg("--cert").arg(&material.chain).arg("--key").arg(&material.key);
        let mut server = self.start("server", command)?;
        let port = server.wait_for(READY, port_in)?;
        Ok((server, port))
    }

    /// Runs a client to its end, which may be a failure.
    fn attempt(&mut self, command: &Command) -> Result<Ended, String> {
        let limit = self.bench.limit;
        self.start("client", command)?.finish(limit)
    }

    /// Runs a client that must succeed, and returns what it printed.
    fn run(&mut self, command: &Command) -> Result<String, String> {
        let ended = self.attempt(command)?;
        if ended.status.success() { Ok(ended.output) } else { Err(ended.story) }
    }

    fn start(&mut self, role: &str, command: &Command) -> Result<Process, String> {
        self.started += 1;
        Process::start(command, &self.logs, &format!("{}-{role}", self.started))
    }

    /// A new name for something received.
    fn place(&self, name: &str) -> PathBuf {
        self.received.join(name)
    }

    /// Our program. It keeps its own files within the case.
    fn godwit(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.bench.godwit);
        command.args(words).env("XDG_DATA_HOME", &self.logs).env("NO_COLOR", "1");
        command
    }

    fn authority(&self) -> &'a Path {
        &self.bench.material.authority
    }
}

/// The port in `127.0.0.1:PORT`, followed by anything but a digit.
fn port_in(text: &str) -> Option<u16> {
    let (_, rest) = text.split_once("127.0.0.1:")?;
    let (digits, _) = rest.split_once(|character: char| !character.is_ascii_digit())?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_found_once_they_are_whole() {
        assert_eq!(port_in("listening 127.0.0.1:4433\n"), Some(4433));
        assert_eq!(port_in("listening 127.0.0.1:44"), None);
        assert_eq!(port_in("x\n  address  https://127.0.0.1:61234/\n"), Some(61234));
        assert_eq!(port_in("listening [::1]:4433\n"), None);
    }

    #[test]
    fn cases_have_names_of_their_own() {
        let mut names: Vec<_> = all().into_iter().map(|case| case.name).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
