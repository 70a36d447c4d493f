//! The interop runner's cases for QUIC: what is fetched, over what network, and how often a handshake is due.

use super::relay::Scenario;
use crate::peers::install::Peer;
use godwit_link::Translation;
use std::time::Duration;

/// Bytes of the names of the files of `zerortt`.
pub(super) const EARLY_NAMES: usize = 40 * 250;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// One row of the matrix.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) name: &'static str,
    /// What the ends are told, where it is not the name.
    client: Option<&'static str>,
    server: Option<&'static str>,
    /// Sizes of the files.
    pub(super) files: Vec<usize>,
    /// Letters in the name of a file.
    pub(super) name_len: usize,
    pub(super) scenario: Scenario,
    pub(super) handshakes: usize,
    pub(super) limit: Duration,
}

impl Case {
    fn new(name: &'static str, files: impl Into<Vec<usize>>) -> Case {
        Case {
            name,
            client: None,
            server: None,
            files: files.into(),
            name_len: 12,
            scenario: Scenario::simple(),
            handshakes: 1,
            limit: Duration::from_secs(60),
        }
    }

    fn told(self, testcase: &'static str) -> Case {
        Case { client: Some(testcase), server: Some(testcase), ..self }
    }

    fn over(self, scenario: Scenario) -> Case {
        Case { scenario, ..self }
    }

    fn many(self) -> Case {
        Case { handshakes: 50, limit: Duration::from_secs(300), ..self.told("multiconnect") }
    }

    /// `TESTCASE` for an end.
    pub(super) fn testcase(&self, client: bool) -> &'static str {
        (if client { self.client } else { self.server }).unwrap_or(self.name)
    }

    /// Whether the server's certificate has a long chain.
    pub(super) fn long_chain(&self) -> bool {
        self.name == "amplificationlimit"
    }

    /// Whether everything is on IPv6.
    pub(super) fn ipv6(&self) -> bool {
        self.name == "ipv6"
    }

    /// Whether the server has a preferred address beside its first one.
    pub(super) fn preferred(&self) -> bool {
        self.name == "connectionmigration"
    }
}

/// All of them, in the order of the runner.
pub(super) fn all() -> Vec<Case> {
    let simple = Scenario::simple;
    vec![
        Case::new("handshake", [KIB]),
        Case::new("transfer", [2 * MIB, 3 * MIB, 5 * MIB]),
        Case::new("longrtt", [KIB]).told("handshake").over(simple().delay(Duration::from_millis(750))),
        Case::new("chacha20", [3 * MIB]),
        Case::new("multiplexing", [32; 1999]).told("transfer"),
        Case::new("retry", [10 * KIB]),
        Case { handshakes: 2, ..Case::new("resumption", [5 * KIB, 10 * KIB]) },
        Case { handshakes: 2, name_len: 250, ..Case::new("zerortt", [32; 40]) },
        Case::new("http3", [5 * KIB, 10 * KIB, 500 * KIB]),
        Case::new("blackhole", [10 * MIB]).told("transfer").over(simple().blackhole(5, 2)),
        Case { server: Some("transfer"), ..Case::new("keyupdate", [3 * MIB]) },
        Case::new("ecn", [100 * KIB]),
        Case::new("amplificationlimit", [5 * KIB])
            .told("transfer")
            .over(simple().losing(&[2, 3, 4, 5, 6, 7])),
        Case::new("handshakeloss", [KIB; 50]).over(simple().loss(30.0)).many(),
        Case::new("transferloss", [2 * MIB]).told("transfer").over(simple().loss(2.0)),
        Case::new("handshakecorruption", [KIB; 50]).over(simple().corruption(30.0)).many(),
        Case::new("transfercorruption", [2 * MIB]).told("transfer").over(simple().corruption(2.0)),
        Case::new("ipv6", [5 * KIB, 10 * KIB]).told("transfer"),
        Case::new("v2", [KIB]),
        Case::new("rebind-port", [10 * MIB]).told("transfer").over(simple().rebinding(Translation::Port)),
        Case::new("rebind-addr", [10 * MIB]).told("transfer").over(simple().rebinding(Translation::Address)),
        Case { client: Some("transfer"), ..Case::new("connectionmigration", [2 * MIB]) },
    ]
}

/// A cell of the matrix.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) case: Case,
    pub(super) peer: Peer,
    /// Whether Godwit is the client.
    pub(super) client: bool,
    /// How often it was played before: the network's dice fall otherwise each time.
    pub(super) turn: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_22_cases_with_names_of_their_own() {
        let names: std::collections::BTreeSet<_> = all().iter().map(|case| case.name).collect();
        assert_eq!((all().len(), names.len()), (22, 22));
    }

    #[test]
    fn the_ends_are_told_what_the_runner_tells_them() {
        let told = |name: &str| {
            let case = all().into_iter().find(|case| case.name == name).unwrap();
            (case.testcase(true), case.testcase(false))
        };
        assert_eq!(told("handshake"), ("handshake", "handshake"));
        assert_eq!(told("keyupdate"), ("keyupdate", "transfer"));
        assert_eq!(told("connectionmigration"), ("transfer", "connectionmigration"));
        assert_eq!(told("handshakecorruption"), ("multiconnect", "multiconnect"));
    }
}
