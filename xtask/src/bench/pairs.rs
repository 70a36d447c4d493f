//! Who is measured with whom, and in which order.

use super::options::Options;
use super::programs::{Carrier, Program};
use super::scenarios::Scenario;

/// A client and the server that it is measured with.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    /// As tables have it: of two, the client first.
    pub(super) name: String,
    pub(super) client: Program,
    pub(super) server: Program,
}

impl Pair {
    fn alone(program: &Program) -> Self {
        Self { name: program.name.clone(), client: program.clone(), server: program.clone() }
    }

    fn crossed(client: &Program, server: &Program) -> Self {
        let name = format!("{} to {}", client.name, server.name);
        Self { name, client: client.clone(), server: server.clone() }
    }

    /// Whether it stands for Godwit where programs are compared.
    pub(super) fn is_ours(&self) -> bool {
        self.client.ours && self.server.ours
    }

    /// Whether it is another QUIC stack, alone.
    pub(super) fn is_peer(&self) -> bool {
        let quic = self.client.carrier == Carrier::Quic && self.server.carrier == Carrier::Quic;
        quic && !self.client.ours && !self.server.ours
    }
}

/// Who takes part in a scenario.
pub(super) fn of(scenario: &Scenario, programs: &[Program], options: &Options) -> Vec<Pair> {
    let wanted = |program: &&Program| options.takes_program(&program.name) && program.takes(scenario.work);
    let mut wanted = programs.iter().filter(wanted);
    if !scenario.crossed {
        return wanted.map(Pair::alone).collect();
    }
    let Some(godwit) = wanted.clone().find(|program| program.name == "godwit") else { return Vec::new() };
    let others = wanted.by_ref().filter(|program| !program.ours && program.carrier == Carrier::Quic);
    others.flat_map(|other| [Pair::crossed(godwit, other), Pair::crossed(other, godwit)]).collect()
}

/// The order of a round: each begins with another one.
pub(super) fn rotated(count: usize, round: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |place| (place + round) % count)
}

#[cfg(test)]
mod tests {
    use super::super::about::About;
    use super::super::{programs, scenarios};
    use super::*;
    use std::path::Path;

    #[test]
    fn each_round_goes_round_all_and_begins_with_another() {
        let round = |round| rotated(3, round).collect::<Vec<_>>();
        assert_eq!([round(0), round(1), round(2), round(3)], [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]]);
        assert_eq!(rotated(0, 2).count(), 0);
    }

    #[test]
    fn with_godwit_at_one_end_every_other_stack_is_at_the_other() {
        let programs = programs::all(Path::new("."), &About::default());
        let options = Options::read(&["--only", "quinn,tcp"]).unwrap();
        let names = |scenario: &str| {
            let scenario = scenarios::ALL.iter().find(|known| known.name == scenario).unwrap();
            of(scenario, &programs, &options).into_iter().map(|pair| pair.name).collect::<Vec<_>>()
        };
        let (quinn, tcp) = ("quinn of unknown version", "TCP, TLS by rustls of unknown version");
        assert_eq!(names("download"), ["godwit", "godwit, checked", "godwit, polled", quinn, tcp]);
        assert_eq!(names("requests, 1 stream"), ["godwit", "godwit, spinning", "godwit, polled", quinn, tcp]);
        assert_eq!(names("upload, crossed"), [format!("godwit to {quinn}"), format!("{quinn} to godwit")]);
    }
}
