//! The measuring itself: every server in turn, in each round beginning with another one.

use super::super::figures::{self, Figure, Kind, Results, Row};
use super::super::options::Options;
use super::super::pairs::rotated;
use super::super::process::{self, Server};
use super::configuration::Content;
use super::material::Material;
use super::programs::{self, Program, Programs, Software};
use super::work::{self, Answer, SMALL, Work};
use super::{load, outcome};
use std::path::Path;

/// Which part of its rate in the closed loop a server has by the clock.
const SHARE: f64 = 1.0 / 3.0;

/// Measures everything that is wanted.
pub(super) fn all(folder: &Path, programs: &Programs, options: &Options) -> Result<Vec<Results>, String> {
    let material = Material::make(folder)?;
    let generator = folder.join("godwit");
    let upstream =
        programs.nginx.as_ref().map(|nginx| programs::upstream(nginx, &material, SMALL)).transpose()?;
    let mut results: Vec<Results> = Vec::new();
    for work in work::ALL.iter().filter(|work| options.takes_scenario(work.name)) {
        let content = match (work.answer, &upstream) {
            (Answer::File(_), _) => Content::Files,
            (Answer::PassedOn, Some(upstream)) => Content::From(&upstream.address),
            (Answer::PassedOn, None) => continue,
        };
        let there = programs.there.iter().filter(|program| program.takes(content));
        let tracks = there.map(|program| Track::start(program, work, &material, content, &results)).collect();
        results.push(one(work, tracks, &generator, options));
    }
    if results.is_empty() { Err("no scenario has such a name".to_owned()) } else { Ok(results) }
}

/// A server under a load.
struct Track<'a> {
    program: &'a Program,
    rate: Option<f64>,
    figures: Vec<Figure>,
    /// The server, or why it is out.
    state: Result<Server, String>,
}

impl<'a> Track<'a> {
    fn start(
        program: &'a Program,
        work: &Work,
        material: &Material,
        content: Content<'_>,
        before: &[Results],
    ) -> Self {
        let rate = work.by_the_clock.then(|| rate(before, &program.name));
        let state = match rate {
            Some(None) => Err("its rate in the closed loop was not measured".to_owned()),
            _ => program.start(material, content),
        };
        Self { program, rate: rate.flatten(), figures: Vec::new(), state }
    }

    fn row(self) -> Row {
        Row {
            name: self.program.name.clone(),
            ours: self.program.software == Software::Godwit,
            peer: false,
            figures: self.figures,
            failure: self.state.err(),
        }
    }
}

/// The rate of a server by the clock.
fn rate(before: &[Results], name: &str) -> Option<f64> {
    let results = before.iter().find(|results| results.scenario.name == work::CLOSED.name)?;
    let row = results.rows.iter().find(|row| row.name == name)?;
    Some(row.spread(Kind::Rate)?.median * SHARE)
}

fn one(work: &Work, mut tracks: Vec<Track<'_>>, generator: &Path, options: &Options) -> Results {
    for round in 0..options.rounds {
        eprintln!("xtask: {} {}/{}", work.name, round + 1, options.rounds);
        for place in rotated(tracks.len(), round) {
            let Some(track) = tracks.get_mut(place) else { continue };
            let Ok(server) = &track.state else { continue };
            match run(server, track.program, work, track.rate, generator, options) {
                Ok(run) => figures::add(&mut track.figures, run),
                Err(why) => {
                    eprintln!("xtask: {}: {} has failed: {why}", work.name, track.program.name);
                    track.state = Err(why);
                }
            }
        }
    }
    Results { scenario: work.scenario(), rows: tracks.into_iter().map(Track::row).collect() }
}

fn run(
    server: &Server,
    program: &Program,
    work: &Work,
    rate: Option<f64>,
    generator: &Path,
    options: &Options,
) -> Result<Vec<(Kind, f64)>, String> {
    let bytes = work.answer.bytes();
    let path = program.path(bytes);
    let words = load::words(
        program.version,
        &server.address,
        work,
        path.as_deref(),
        rate,
        server.id(),
        options.seconds,
    );
    let ran = process::client(server, generator, &words, options.seconds)?;
    outcome::parse(&ran.text, bytes)
}

#[cfg(test)]
mod tests {
    use super::super::super::figures::tests::row;
    use super::*;

    #[test]
    fn by_the_clock_each_has_a_third_of_its_own_rate() {
        let rows = vec![row("godwit", &[300.0, 900.0, 600.0], &[1.0]), row("nginx", &[90.0], &[1.0])];
        let results = [Results { scenario: work::CLOSED.scenario(), rows }];
        assert_eq!(rate(&results, "godwit"), Some(200.0));
        assert_eq!(rate(&results, "nginx"), Some(30.0));
        assert_eq!(rate(&results, "hyper"), None);
        assert_eq!(rate(&[], "godwit"), None);
    }
}
