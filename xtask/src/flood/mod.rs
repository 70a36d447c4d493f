//! Servers under floods, each from a process of its own, with an honest client in a third.
//!
//! The server has core 0; the honest client and the flood share core 1, and the flood gives way. What counts: the
//! server's peak of memory while the flood lasts, honest handshakes (none may fail), their median beside that of quiet
//! times, and an honest download's share of its rate in quiet times. Those are the bars, see [`verdict::BARS`]. Of
//! several servers, which all get the same, Godwit's decides how the command ends.

mod generator;
mod kinds;
mod memory;
mod server;
mod verdict;

use crate::peers::install::{self, Installed, Peer};
use crate::shell::{self, cargo};
use kinds::{KINDS, Kind};
use memory::Watch;
use server::{Server, Stage};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use verdict::{Seen, Verdicts};

/// The folder that servers serve has a file to visit, and one to download.
const BIG: usize = 64 << 20;

/// What is asked for.
struct Options<'a> {
    /// How long each flood lasts, in seconds, 3 at least.
    seconds: u64,
    /// How often at most it does what it does.
    count: Option<u64>,
    servers: Vec<Server>,
    /// Floods whose names contain one of them; all, if there is none.
    words: Vec<&'a str>,
}

impl<'a> Options<'a> {
    fn read(words: &[&'a str]) -> Result<Self, String> {
        let mut options =
            Options { seconds: 20, count: None, servers: vec![Server::Godwit], words: Vec::new() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            let number =
                |text: &str| text.parse().map_err(|_| format!("{word} needs a number, and got {text:?}"));
            match *word {
                "--seconds" => options.seconds = number(value()?)?,
                "--count" => options.count = Some(number(value()?)?),
                "--server" => {
                    options.servers = value()?.split(',').map(Server::find).collect::<Result<_, _>>()?;
                }
                option if option.starts_with('-') => return Err(format!("flood knows no option {option}")),
                name => options.words.push(name),
            }
        }
        if options.seconds < 3 {
            return Err("a flood takes 3 seconds at least: --seconds 3".to_owned());
        }
        Ok(options)
    }

    fn kinds(&self) -> Result<Vec<&'static Kind>, String> {
        let wanted =
            |kind: &&Kind| self.words.is_empty() || self.words.iter().any(|word| kind.name.contains(word));
        let kinds: Vec<_> = KINDS.iter().filter(wanted).collect();
        if kinds.is_empty() {
            let names: Vec<_> = KINDS.iter().map(|kind| kind.name).collect();
            return Err(format!("no flood is called so; there are {}", names.join(", ")));
        }
        Ok(kinds)
    }
}

/// Floods servers with each, and demands that Godwit's holds the bars.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let options = Options::read(words)?;
    let kinds = options.kinds()?;
    let folder = std::env::temp_dir().join(format!("godwit-flood-{}", std::process::id()));
    let result = prepare(&options, &folder).and_then(|(stage, generator)| {
        let mut all: Vec<Verdicts> = options.servers.iter().map(|_| Verdicts::default()).collect();
        heading(&options.servers);
        for kind in kinds {
            flood_all(kind, &options, &stage, &generator, &mut all)?;
        }
        conclude(&options.servers, &all)
    });
    let _ = std::fs::remove_dir_all(&folder);
    result
}

/// Builds programs, and makes a site and certificates.
fn prepare(options: &Options<'_>, folder: &Path) -> Result<(Stage, PathBuf), String> {
    let alone = options.servers == [Server::Godwit];
    // Beside others it is what packages hold: the others are not built for tests either.
    let profile = if alone { "release" } else { "dist" };
    shell::run(cargo().args(["build", "--quiet", "--profile", profile, "--package", "godwit-cli"]))?;
    let example = ["--package", "godwit-lab", "--example", "flood"];
    shell::run(cargo().args(["build", "--quiet", "--release"]).args(example))?;
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(folder.join("site")).map_err(failed)?;
    std::fs::write(folder.join("site/small"), "small\n").map_err(failed)?;
    std::fs::write(folder.join("site/big"), vec![b'x'; BIG]).map_err(failed)?;
    let mut quinn = PathBuf::new();
    if !alone {
        // It makes the certificates of the others too.
        quinn = install::build_for_figures("rust")?;
        shell::output(Command::new(&quinn).arg("make-certs").arg(folder.join("certificates")))?;
        let peers = options.servers.iter().filter_map(|server| match server {
            Server::Peer(peer) if *peer != Peer::Quinn => Some(*peer),
            _ => None,
        });
        let peers: Vec<Peer> = peers.collect();
        let installed = Installed::prepare_only(&peers);
        if let Some((peer, why)) = peers.iter().find_map(|peer| Some((peer, installed.why_missing(*peer)?))) {
            return Err(format!("{} cannot be had: {why}", peer.name()));
        }
    }
    let stage =
        Stage { godwit: shell::programs_of(profile)?.join("godwit"), quinn, folder: folder.to_owned() };
    Ok((stage, shell::programs_of("release")?.join("examples/flood")))
}

/// One flood at each server, one after the other, as a row.
fn flood_all(
    kind: &Kind,
    options: &Options<'_>,
    stage: &Stage,
    generator: &Path,
    verdicts: &mut [Verdicts],
) -> Result<(), String> {
    let mut cells = Vec::new();
    for (server, verdicts) in options.servers.iter().zip(verdicts) {
        // A server of its own, and its own quiet time, as machines are never the same twice.
        let running = server.start(stage)?;
        let seen = flood(kind, options, &running, generator);
        running.kill();
        verdicts.add(kind.name, &seen);
        cells.push(match seen {
            Ok(seen) if options.servers.len() == 1 => seen.row(kind.name),
            Ok(seen) => seen.cell(),
            Err(why) if options.servers.len() == 1 => {
                format!("| {} | | | | | | | **not held**: {why} |", kind.name)
            }
            Err(why) => format!("**{why}**"),
        });
    }
    match cells.as_slice() {
        [row] => println!("{row}"),
        cells => println!("| {} | {} |", kind.name, cells.join(" | ")),
    }
    Ok(())
}

fn flood(
    kind: &Kind,
    options: &Options<'_>,
    server: &server::Running,
    program: &Path,
) -> Result<Seen, String> {
    let quiet = generator::honest(program, &server.address, (options.seconds / 4).max(2))?;
    let watch = Watch::start(server.id())?;
    let seconds = options.seconds * kind.times;
    let (lasting, rate) = (seconds.to_string(), kind.rate.to_string());
    let mut words = vec![kind.name, &server.address, "--seconds", &lasting, "--rate", &rate];
    let count = options.count.or(kind.count).map(|count| count.to_string());
    words.extend(count.iter().flat_map(|count| ["--count", count]));
    let flood = generator::flood(program, &words)?;
    std::thread::sleep(Duration::from_secs(1));
    let flooded = generator::honest(program, &server.address, seconds - 2)?;
    let done = flood.finish()?;
    Ok(Seen { done, memory: watch.finish()?, quiet, flooded })
}

fn heading(servers: &[Server]) {
    if servers.len() == 1 {
        println!(
            "| flood | done | datagrams | memory before → at its peak, MiB | honest visits that failed | \
             handshake, ms: P50 quiet → flooded, P99 | download, Mbit/s | bars |\n|---|---|---|---|---|---|---|---|"
        );
        return;
    }
    println!(
        "Memory at its peak over that before, honest visits that failed, P50 of honest handshakes as a multiple"
    );
    println!("of that in quiet times, and what remains of a download's rate; bold is what misses its bar.\n");
    let names: Vec<_> = servers.iter().map(|server| server.name()).collect();
    println!("| flood | {} |\n|---|{}", names.join(" | "), "---|".repeat(names.len()));
}

/// Says what held, and ends with an error if a bar was missed by Godwit's, or by the only server that there is.
fn conclude(servers: &[Server], all: &[Verdicts]) -> Result<(), String> {
    if all.len() > 1 {
        let held: Vec<_> =
            all.iter().map(|verdicts| format!("{} of {}", verdicts.held(), verdicts.floods())).collect();
        println!("| all bars held | {} |", held.join(" | "));
    }
    let mut missed = Vec::new();
    for (server, verdicts) in servers.iter().zip(all) {
        println!("\n{}:\n{}", server.name(), verdicts.lines().join("\n"));
        let decides = *server == Server::Godwit || servers.len() == 1;
        if decides && verdicts.held() < verdicts.floods() {
            let but = verdicts.floods() - verdicts.held();
            missed.push(format!("{} missed a bar in {but} of {} floods", server.name(), verdicts.floods()));
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(missed.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_stand_anywhere() {
        let options =
            Options::read(&["gaps", "--seconds", "5", "--server", "godwit,quic-go", "--count", "7", "idle"])
                .expect("options");
        assert_eq!((options.seconds, options.count), (5, Some(7)));
        assert_eq!(options.servers, [Server::Godwit, Server::Peer(Peer::QuicGo)]);
        let names: Vec<_> = options.kinds().expect("some").iter().map(|kind| kind.name).collect();
        assert_eq!(names, ["idle", "gaps"]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for words in
            [&["--seconds", "2"][..], &["--seconds"], &["--server", "x"], &["--what"], &["--count", "x"]]
        {
            assert!(Options::read(words).is_err(), "{words:?}");
        }
        assert!(Options::read(&["nonsense"]).is_ok_and(|options| options.kinds().is_err()));
    }
}
