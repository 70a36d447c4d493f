//! One run: a case, who is the peer, and which end is Godwit's.

use super::case::Case;
use super::check::{self, Evidence};
use super::qlog::Told;
use super::relay;
use crate::peers::install::Peer;
use crate::peers::process::Process;
use godwit_base::{Rng, SeededRng};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// By which a program says that it does not support a case.
const UNSUPPORTED: i32 = 127;
/// How long a server may take until it listens.
const READY: Duration = Duration::from_secs(30);

/// What all runs share.
pub(super) struct Stage {
    pub(super) godwit: PathBuf,
    /// Folders with `cert.pem` and `priv.key`; the chain of one is long.
    pub(super) certificates: PathBuf,
    pub(super) long_chain: PathBuf,
    pub(super) folder: PathBuf,
}

/// A cell of the matrix.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) case: Case,
    pub(super) peer: Peer,
    /// Whether Godwit is the client.
    pub(super) client: bool,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    /// The one that is named lacks the case, and says why.
    Unsupported(String),
    Failed(String),
}

impl Run {
    /// As it is called in messages.
    pub(super) fn name(&self) -> String {
        let (case, peer) = (self.case.name, self.peer.name());
        if self.client {
            format!("{case}: godwit from {peer}")
        } else {
            format!("{case}: {peer} from godwit")
        }
    }

    /// Plays it.
    pub(super) fn play(&self, stage: &Stage) -> Verdict {
        let end = if self.client { "client" } else { "server" };
        let folder = stage.folder.join(self.peer.name()).join(format!("{}-{end}", self.case.name));
        let verdict = Scene::new(self, stage, &folder).and_then(|scene| scene.play());
        // The files are large, and only the logs tell something.
        for files in ["www", "downloads"] {
            let _ = fs::remove_dir_all(folder.join(files));
        }
        verdict.unwrap_or_else(Verdict::Failed)
    }
}

/// Where a run takes place.
struct Scene<'a> {
    run: &'a Run,
    stage: &'a Stage,
    folder: &'a Path,
    names: Vec<String>,
}

impl<'a> Scene<'a> {
    fn new(run: &'a Run, stage: &'a Stage, folder: &'a Path) -> Result<Self, String> {
        let _ = fs::remove_dir_all(folder);
        for part in ["www", "downloads", "qlog-client", "qlog-server"] {
            let path = folder.join(part);
            fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let names = make_files(&folder.join("www"), &run.case)?;
        Ok(Scene { run, stage, folder, names })
    }

    fn play(&self) -> Result<Verdict, String> {
        let case = &self.run.case;
        let ip: IpAddr = if case.ipv6() { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() };
        let bound = relay::bound(ip, if case.preferred() { 2 } else { 1 })?;
        let fronts = bound.addresses();
        let listen = format!("{}", SocketAddr::new(ip, 0));
        let mut server = self.program(false);
        server.args(["--listen", &listen]);
        if let Some(preferred) = fronts.get(1) {
            server.args(["--also-listen", &listen, "--preferred-v4", &preferred.to_string()]);
        }
        let mut server = Process::start(&server, self.folder, "server")?;
        let wanted = fronts.len();
        let targets = match server.wait_for(READY, |text| addresses(text, wanted)) {
            Ok(targets) => targets,
            Err(why) if why.contains("exit status: 127") => {
                return Ok(Verdict::Unsupported(format!("{} as server", self.name(false))));
            }
            Err(why) => return Err(why),
        };
        let relay = bound.run(targets, &case.scenario, 1);
        let mut client = self.program(true);
        client.env("REQUESTS", self.urls(fronts.first().copied()));
        let ended = Process::start(&client, self.folder, "client")?.finish(case.limit);
        let trace = relay.finish();
        drop(server);
        let ended = ended?;
        if ended.status.code() == Some(UNSUPPORTED) {
            return Ok(Verdict::Unsupported(format!("{} as client", self.name(true))));
        }
        if !ended.status.success() {
            return Err(ended.story);
        }
        self.compare()?;
        let end = if self.run.client { "client" } else { "server" };
        let told = Told::read(&self.folder.join(format!("qlog-{end}")))?;
        let output = fs::read_to_string(self.folder.join(format!("{end}.out"))).unwrap_or_default();
        let evidence = Evidence { trace: &trace, told: &told, client: self.run.client, output: &output };
        check::check(case, &evidence).map(|()| Verdict::Passed)
    }

    fn name(&self, client: bool) -> &'static str {
        if client == self.run.client { "godwit" } else { self.run.peer.name() }
    }

    /// One of the two programs, told what the runner would tell it.
    fn program(&self, client: bool) -> Command {
        let mut command = match client == self.run.client {
            true => Command::new(&self.stage.godwit),
            false => self.run.peer.command(),
        };
        let end = if client { "client" } else { "server" };
        let certificates =
            if self.run.case.long_chain() { &self.stage.long_chain } else { &self.stage.certificates };
        command.arg("interop");
        command.arg("--www").arg(self.folder.join("www"));
        command.arg("--downloads").arg(self.folder.join("downloads"));
        command.arg("--certs").arg(certificates);
        command.env("ROLE", end).env("TESTCASE", self.run.case.testcase(client));
        command.env("QLOGDIR", self.folder.join(format!("qlog-{end}")));
        command.env("SSLKEYLOGFILE", self.folder.join(format!("keys-{end}.log")));
        command
    }

    fn urls(&self, front: Option<SocketAddr>) -> String {
        let authority = match front {
            Some(SocketAddr::V4(address)) => format!("localhost:{}", address.port()),
            Some(address) => address.to_string(),
            None => String::new(),
        };
        let urls = self.names.iter().map(|name| format!("https://{authority}/{name}"));
        urls.collect::<Vec<_>>().join(" ")
    }

    fn compare(&self) -> Result<(), String> {
        for name in &self.names {
            let read = |part: &str| fs::read(self.folder.join(part).join(name));
            let received = read("downloads").map_err(|error| format!("{name} was not received: {error}"))?;
            if received != read("www").map_err(|error| format!("{name}: {error}"))? {
                return Err(format!("{name} is not what was served"));
            }
        }
        Ok(())
    }
}

/// The addresses in lines such as `listening 127.0.0.1:4433`, once there are as many as wanted.
fn addresses(text: &str, wanted: usize) -> Option<Vec<SocketAddr>> {
    let whole = &text[..text.rfind('\n')? + 1];
    let found = whole.lines().filter_map(|line| line.strip_prefix("listening ")?.trim().parse().ok());
    let found: Vec<_> = found.collect();
    (found.len() >= wanted).then_some(found)
}

/// Random files with random names.
fn make_files(folder: &Path, case: &Case) -> Result<Vec<String>, String> {
    let mut rng = SeededRng::new(case.files.len() as u64);
    let mut names = Vec::new();
    for size in &case.files {
        let name: String = (0..case.name_len).map(|_| char::from(b'a' + rng.below(26) as u8)).collect();
        let mut content = vec![0; *size];
        rng.fill(&mut content);
        let path = folder.join(&name);
        fs::write(&path, content).map_err(|error| format!("{}: {error}", path.display()))?;
        names.push(name);
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_once_all_are_there() {
        assert_eq!(addresses("listening 127.0.0.1:44", 1), None);
        assert_eq!(addresses("listening 127.0.0.1:44\n", 2), None);
        let text = "hello\nlistening 127.0.0.1:44\nlistening [::1]:45\n";
        let expected = ["127.0.0.1:44", "[::1]:45"].map(|address| address.parse().unwrap());
        assert_eq!(addresses(text, 2), Some(expected.to_vec()));
    }
}
