//! One run: a case, who is the peer, and which end is Godwit's.

use super::case::{Case, Run};
use super::check::{self, Evidence};
use super::gaps::{self, Gap, Sign};
use super::qlog::Told;
use super::relay::Witness;
use super::trace::Trace;
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

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    /// The peer lacks the case: what showed that, and what the peer's source says.
    Lacking {
        seen: String,
        source: &'static str,
    },
    /// It passed although the peer is said to lack the case.
    Surprising(&'static str),
    Failed(String),
}

/// What came of the two programs, before it is judged.
enum Outcome {
    Passed,
    /// The peer refused the case, and said this.
    Refused(String),
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
        let mut place = format!("{}-{end}", self.case.name);
        if self.turn > 0 {
            place.push_str(&format!("-{}", self.turn + 1));
        }
        let folder = stage.folder.join(self.peer.name()).join(place);
        let verdict = Scene::new(self, stage, &folder).and_then(|scene| scene.play());
        // The files are large, and only the logs tell something.
        for files in ["www", "downloads"] {
            let _ = fs::remove_dir_all(folder.join(files));
        }
        let why = verdict.as_ref().err().map_or("", String::as_str);
        judge(gaps::find(self, why), verdict)
    }
}

/// A peer is excused only by what is on record, and only if it failed in that way.
fn judge(gap: Option<&'static Gap>, outcome: Result<Outcome, String>) -> Verdict {
    match (outcome, gap) {
        (Ok(Outcome::Passed), None) => Verdict::Passed,
        (Ok(Outcome::Passed), Some(Gap { sign: Sign::Sometimes(_), .. })) => Verdict::Passed,
        (Ok(Outcome::Passed), Some(gap)) => Verdict::Surprising(gap.source),
        (Ok(Outcome::Refused(seen)), Some(Gap { sign: Sign::Refuses, source, .. })) => {
            Verdict::Lacking { seen, source }
        }
        (Ok(Outcome::Refused(said)), _) => {
            Verdict::Failed(format!("the peer refused, which is not on record: {said}"))
        }
        (Err(why), Some(Gap { sign: Sign::Fails(words) | Sign::Sometimes(words), source, .. }))
            if why.contains(words) =>
        {
            let seen = why.lines().find(|line| line.contains(words)).unwrap_or_default();
            Verdict::Lacking { seen: seen.trim().to_owned(), source }
        }
        (Err(why), _) => Verdict::Failed(why),
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

    fn play(&self) -> Result<Outcome, String> {
        let case = &self.run.case;
        let ip: IpAddr = if case.ipv6() { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() };
        let bound = godwit_relay::udp::bound(ip, if case.preferred() { 2 } else { 1 })?;
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
            Err(why) if why.contains("exit status: 127") => return self.refused(false, &why),
            Err(why) => return Err(why),
        };
        let witness = Witness { trace: Trace::default(), fronts: fronts.len() };
        let relay = bound.run(targets, case.scenario.options(self.run.turn as u64 + 1), witness);
        let mut client = self.program(true);
        client.env("REQUESTS", self.urls(fronts.first().copied()));
        let ended = Process::start(&client, self.folder, "client")?.finish(case.limit);
        let (witness, failed) = relay.finish().ok_or("the relay panicked")?;
        if let Some(why) = failed {
            eprintln!("xtask: relay: {why}");
        }
        let trace = witness.trace;
        drop(server);
        let outcome = match ended {
            _ if trace.flooded => Err(format!("an end sent more than {} datagrams", Trace::MOST)),
            Ok(ended) if ended.status.code() == Some(UNSUPPORTED) => self.refused(true, &ended.story),
            Ok(ended) if ended.status.success() => self.check(&trace).map(|()| Outcome::Passed),
            Ok(ended) => Err(ended.story),
            Err(why) => Err(why),
        };
        outcome.map_err(|why| {
            let _ = fs::write(self.folder.join("relay.log"), trace.listing());
            self.explain(why, &trace)
        })
    }

    /// Adds what the peer did that it must not, as far as that can be seen from outside.
    fn explain(&self, mut why: String, trace: &Trace) -> String {
        let told = self.told().unwrap_or_default();
        for said in trace.unanswered(self.run.client).into_iter().chain(told.not_repeated) {
            why.push_str("\n  ");
            why.push_str(&said);
        }
        why
    }

    /// What Godwit's traces tell.
    fn told(&self) -> Result<Told, String> {
        Told::read(&self.folder.join(if self.run.client { "qlog-client" } else { "qlog-server" }))
    }

    /// Whether the files have arrived, and everything has gone as it should.
    fn check(&self, trace: &Trace) -> Result<(), String> {
        self.compare()?;
        let end = if self.run.client { "client" } else { "server" };
        let told = self.told()?;
        let output = fs::read_to_string(self.folder.join(format!("{end}.out"))).unwrap_or_default();
        let evidence = Evidence { trace, told: &told, client: self.run.client, output: &output };
        check::check(&self.run.case, &evidence)
    }

    /// An end has refused the case. Godwit has no excuse for that.
    fn refused(&self, client: bool, story: &str) -> Result<Outcome, String> {
        if client == self.run.client {
            return Err(format!("Godwit lacks the case\n{story}"));
        }
        Ok(Outcome::Refused(story.lines().last().unwrap_or_default().trim().to_owned()))
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
        command.env("RUST_BACKTRACE", "0").env("ROLE", end).env("TESTCASE", self.run.case.testcase(client));
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
    use super::super::case;
    use super::*;
    use crate::peers::install::Peer;

    #[test]
    fn nothing_is_excused_but_what_is_on_record() {
        let gap = |name: &str, client| {
            let case = case::all().into_iter().find(|case| case.name == name).unwrap();
            gaps::find(&Run { case, peer: Peer::S2n, client, turn: 0 }, "")
        };
        let (refuses, stays) = (gap("v2", true), gap("connectionmigration", false));
        assert!(refuses.is_some() && stays.is_some());
        let refused = || Ok(Outcome::Refused("unsupported".to_owned()));
        let failed = |why: &str| Err(why.to_owned());
        assert_eq!(judge(None, Ok(Outcome::Passed)), Verdict::Passed);
        assert!(matches!(judge(refuses, Ok(Outcome::Passed)), Verdict::Surprising(_)));
        assert!(matches!(judge(refuses, refused()), Verdict::Lacking { .. }));
        assert!(matches!(judge(refuses, failed(gaps::STAYED)), Verdict::Failed(_)));
        assert!(matches!(judge(stays, refused()), Verdict::Failed(_)));
        assert!(matches!(judge(stays, failed(gaps::STAYED)), Verdict::Lacking { .. }));
        assert!(matches!(judge(stays, failed("it broke")), Verdict::Failed(_)));
        let case = case::all().into_iter().find(|case| case.name == "handshakeloss").unwrap();
        let at_times = gaps::find(&Run { case, peer: Peer::Quinn, client: true, turn: 0 }, "");
        assert!(at_times.is_some());
        assert_eq!(judge(at_times, Ok(Outcome::Passed)), Verdict::Passed);
        assert!(matches!(
            judge(at_times, failed("  late\n  the peer was silent: 2")),
            Verdict::Lacking { .. }
        ));
        assert!(matches!(judge(at_times, failed("it broke")), Verdict::Failed(_)));
        assert!(matches!(judge(at_times, refused()), Verdict::Failed(_)));
        assert!(matches!(judge(None, refused()), Verdict::Failed(_)));
    }

    #[test]
    fn addresses_are_found_once_all_are_there() {
        assert_eq!(addresses("listening 127.0.0.1:44", 1), None);
        assert_eq!(addresses("listening 127.0.0.1:44\n", 2), None);
        let text = "hello\nlistening 127.0.0.1:44\nlistening [::1]:45\n";
        let expected = ["127.0.0.1:44", "[::1]:45"].map(|address| address.parse().unwrap());
        assert_eq!(addresses(text, 2), Some(expected.to_vec()));
    }
}
