//! The cases of the QUIC interop runner, played here: Godwit and each peer, in both roles, through a relay that does
//! what the runner's network does.
//!
//! - [`case`]: the 22 cases; [`check`]: what must have happened, beside the files having arrived.
//! - [`relay`]: the network; [`trace`]: what passed it; [`qlog`]: what Godwit says of itself.
//! - [`mod@run`]: one case with one peer in one role; [`matrix`]: all of them in a table; [`gaps`]: what peers lack.
//!
//! Programs are told what to do as the runner tells them, by environment variables; folders and addresses are flags,
//! for here is no container. `peers/README.md` describes the peers' side.

mod case;
mod check;
mod gaps;
mod matrix;
mod qlog;
mod relay;
mod run;
mod trace;

use crate::peers;
use crate::peers::install::{Installed, Peer};
use crate::shell;
use case::Run;
use run::{Stage, Verdict};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Peers with a program for these cases.
const PEERS: [Peer; 5] = [Peer::QuicGo, Peer::Aioquic, Peer::Quinn, Peer::S2n, Peer::Quiche];
/// Runs at a time: they wait more than they compute.
const PARALLEL: usize = 8;
/// What continuous integration has time for: one peer, and cases done within seconds.
const QUICK: [&str; 8] =
    ["handshake", "chacha20", "retry", "resumption", "http3", "keyupdate", "amplificationlimit", "ipv6"];

/// What is to be run.
#[derive(Debug, Default)]
struct Choice {
    peers: Vec<String>,
    cases: Vec<String>,
    /// Godwit's role.
    role: Option<String>,
    parallel: Option<usize>,
    /// How often each is played.
    times: Option<usize>,
}

impl Choice {
    fn parse(words: &[&str]) -> Result<Choice, String> {
        let mut choice = Choice::default();
        let mut words = words.iter();
        while let Some(flag) = words.next() {
            let value = words.next().ok_or_else(|| format!("{flag} wants a value"))?;
            let list = || value.split(',').map(str::to_owned);
            match *flag {
                "--peer" => choice.peers.extend(list()),
                "--case" => choice.cases.extend(list()),
                "--role" if ["client", "server"].contains(value) => choice.role = Some((*value).to_owned()),
                "--parallel" => choice.parallel = Some(number(flag, value)?),
                "--times" => choice.times = Some(number(flag, value)?),
                _ => return Err(format!("interop does not know {flag} {value}")),
            }
        }
        Ok(choice)
    }

    fn runs(&self) -> Result<Vec<Run>, String> {
        let cases = case::all();
        if let Some(unknown) = self.cases.iter().find(|name| cases.iter().all(|case| case.name != **name)) {
            return Err(format!("there is no case {unknown}"));
        }
        if let Some(unknown) = self.peers.iter().find(|name| PEERS.iter().all(|peer| peer.name() != **name)) {
            return Err(format!("there is no peer {unknown}"));
        }
        let mut runs = Vec::new();
        for case in cases {
            for peer in PEERS {
                for client in [true, false] {
                    let role = if client { "client" } else { "server" };
                    let wanted = (self.peers.is_empty() || self.peers.iter().any(|name| name == peer.name()))
                        && (self.cases.is_empty() || self.cases.iter().any(|name| name == case.name))
                        && self.role.as_ref().is_none_or(|wanted| wanted == role);
                    let turns = if wanted { self.times.unwrap_or(1) } else { 0 };
                    runs.extend((0..turns).map(|turn| Run { case: case.clone(), peer, client, turn }));
                }
            }
        }
        Ok(runs)
    }
}

/// At least 1.
fn number(flag: &str, value: &str) -> Result<usize, String> {
    let number = value.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("{flag} wants a number, not {value}"))
}

/// Plays what the words of the command line say, and prints the matrix.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    play(&Choice::parse(words)?)
}

/// The part for continuous integration.
pub(crate) fn quick() -> Result<(), String> {
    play(&Choice {
        peers: vec![Peer::Quinn.name().to_owned()],
        cases: QUICK.map(str::to_owned).to_vec(),
        ..Choice::default()
    })
}

fn play(choice: &Choice) -> Result<(), String> {
    let runs = choice.runs()?;
    // quinn's program also makes the certificates.
    let wanted = |peer: &Peer| *peer == Peer::Quinn || runs.iter().any(|run| run.peer == *peer);
    let installed = Installed::prepare_only(&PEERS.into_iter().filter(wanted).collect::<Vec<_>>());
    installed.verdict()?;
    let (runs, missing): (Vec<_>, Vec<_>) =
        runs.into_iter().partition(|run| installed.why_missing(run.peer).is_none());
    if runs.is_empty() {
        return Err("none of the peers is installed".to_owned());
    }
    let stage = stage(&shell::root().join("out/interop"))?;
    let verdicts = play_all(&stage, &runs, choice.parallel.unwrap_or(PARALLEL));
    let cells: Vec<_> = runs.iter().zip(verdicts).collect();
    print!("{}", matrix::table(&cells));
    for peer in PEERS.iter().filter(|peer| missing.iter().any(|run| run.peer == **peer)) {
        println!("skipped: {}: {}", peer.name(), installed.why_missing(*peer).unwrap_or_default());
    }
    let wrong = |verdict: &Verdict| matches!(verdict, Verdict::Failed(_) | Verdict::Surprising(_));
    let failed = cells.iter().filter(|(_, verdict)| wrong(verdict)).count();
    if failed == 0 {
        return Ok(());
    }
    Err(format!("{failed} of {} runs failed; logs are in {}", cells.len(), stage.folder.display()))
}

fn stage(folder: &Path) -> Result<Stage, String> {
    let built = peers::build_programs()?;
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let stage = Stage {
        godwit: built.join("godwit"),
        certificates: folder.join("certificates"),
        long_chain: folder.join("long-chain"),
        folder: folder.to_owned(),
    };
    for (place, chain) in [(&stage.certificates, "1"), (&stage.long_chain, "9")] {
        shell::output(Peer::Quinn.command().arg("make-chain").arg(place).args(["--length", chain]))?;
    }
    Ok(stage)
}

fn play_all(stage: &Stage, runs: &[Run], parallel: usize) -> Vec<Verdict> {
    let next = AtomicUsize::new(0);
    let verdicts: Mutex<Vec<Option<Verdict>>> = Mutex::new(vec![None; runs.len()]);
    std::thread::scope(|scope| {
        for _ in 0..parallel.min(runs.len()) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(run) = runs.get(number) else { break };
                    let verdict = run.play(stage);
                    eprintln!("xtask: {}", matrix::line(run, &verdict));
                    if let Ok(mut verdicts) = verdicts.lock() {
                        verdicts[number] = Some(verdict);
                    }
                }
            });
        }
    });
    let verdicts = verdicts.into_inner().unwrap_or_default().into_iter();
    verdicts.map(|verdict| verdict.unwrap_or(Verdict::Failed("it was not played".to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_choose() {
        let count =
            |words: &[&str]| Choice::parse(words).and_then(|choice| choice.runs()).map(|runs| runs.len());
        assert_eq!(count(&[]), Ok(22 * PEERS.len() * 2));
        assert_eq!(count(&["--peer", "quinn", "--case", "handshake,retry"]), Ok(4));
        assert_eq!(count(&["--role", "client", "--case", "ipv6"]), Ok(PEERS.len()));
        assert_eq!(count(&["--peer", "quinn", "--case", "handshake", "--times", "10"]), Ok(20));
        assert!(count(&["--times", "0"]).is_err());
        assert!(count(&["--case", "nonsense"]).is_err());
        assert!(count(&["--role"]).is_err());
        assert!(count(&["--role", "relay"]).is_err());
    }

    #[test]
    fn continuous_integration_has_small_cases() {
        for name in QUICK {
            let case = case::all().into_iter().find(|case| case.name == name).unwrap();
            assert!(case.files.iter().sum::<usize>() <= 3 << 20 && case.handshakes <= 2, "{name}");
        }
    }
}
