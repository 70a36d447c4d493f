//! The measuring itself.

use super::about::About;
use super::figures::{self, Figure, Results, Row};
use super::options::Options;
use super::pairs::{self, Pair};
use super::process::{self, Server};
use super::scenarios::{self, Scenario, Work};
use super::{idle, outcome, programs, syscalls};
use std::path::Path;

/// Measures every scenario that is wanted.
pub(super) fn all(folder: &Path, about: &About, options: &Options) -> Result<Vec<Results>, String> {
    let (there, missing): (Vec<_>, Vec<_>) =
        programs::all(folder, about).into_iter().partition(|program| program.file.is_file());
    for program in missing.iter().filter(|program| options.takes_program(&program.name)) {
        eprintln!("xtask: {}: {} is not there, and is left out", program.name, program.file.display());
    }
    let wanted = scenarios::ALL.iter().filter(|scenario| options.takes_scenario(scenario.name));
    let wanted = wanted.filter(|scenario| options.cross || !scenario.crossed);
    let results: Vec<_> =
        wanted.map(|scenario| one(scenario, pairs::of(scenario, &there, options), folder, options)).collect();
    if results.is_empty() { Err("no scenario has such a name".to_owned()) } else { Ok(results) }
}

/// A pair in a scenario.
struct Track {
    pair: Pair,
    figures: Vec<Figure>,
    /// The server, if the scenario has one for all rounds, or why the pair is out.
    state: Result<Option<Server>, String>,
}

fn one(scenario: &Scenario, pairs: Vec<Pair>, folder: &Path, options: &Options) -> Results {
    let idle = scenario.work == Work::Idle;
    let serve = |pair: &Pair| {
        // What is idle starts its own.
        let start = || Server::start(&pair.server.file, &pair.server.serve(folder, options));
        (!idle).then(start).transpose()
    };
    let mut tracks: Vec<Track> =
        pairs.into_iter().map(|pair| Track { state: serve(&pair), pair, figures: Vec::new() }).collect();
    // What connections hold does not depend on what else the machine does.
    for round in 0..if idle { 1 } else { options.rounds } {
        eprintln!("xtask: {} {}/{}", scenario.name, round + 1, options.rounds);
        for place in pairs::rotated(tracks.len(), round) {
            let Some(Track { pair, figures, state }) = tracks.get_mut(place) else { continue };
            let Ok(server) = state else { continue };
            let run = match server {
                Some(server) => run(server, pair, scenario.work, options),
                None => idle::run(pair, folder, options),
            };
            match run {
                Ok(run) => figures::add(figures, run),
                Err(why) => {
                    eprintln!("xtask: {}: {} has failed: {why}", scenario.name, pair.name);
                    *state = Err(why);
                }
            }
        }
    }
    for track in tracks.iter_mut().filter(|_| options.syscalls) {
        let Ok(Some(server)) = &track.state else { continue };
        if let Some(run) = syscalls::run(server, &track.pair, scenario.work, options) {
            figures::add(&mut track.figures, run);
        }
    }
    Results { scenario: *scenario, rows: tracks.into_iter().map(Track::row).collect() }
}

impl Track {
    fn row(self) -> Row {
        let (ours, peer) = (self.pair.is_ours(), self.pair.is_peer());
        Row { name: self.pair.name, ours, peer, figures: self.figures, failure: self.state.err() }
    }
}

fn run(
    server: &Server,
    pair: &Pair,
    work: Work,
    options: &Options,
) -> Result<Vec<(figures::Kind, f64)>, String> {
    let words = pair.client.measure(&server.address, work, options);
    let ran = process::client(server, &pair.client.file, &words, options.seconds)?;
    let outcome = outcome::parse(&ran.text)?;
    Ok(figures::of_run(&outcome, ran.server, ran.client))
}
