//! The `msquic` crate, unchanged, on our library for its interface: with itself, and by HTTP/0.9 with other stacks in both
//! roles.

use super::fetching::{small, whole};
use super::{Case, PROGRAMS};
use crate::peers::install::Peer;

/// Every case.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = vec![Case::new("msquic: both ends in one process", Peer::Msquic, |stage| {
        let material = &stage.bench.material;
        let mut both = Peer::Msquic.command();
        both.arg("together").arg("--cert").arg(&material.chain).arg("--key").arg(&material.key);
        let printed = stage.run(both.arg("--ca").arg(&material.authority))?;
        Ok(printed.trim().replace('\n', ", "))
    })];
    for peer in PROGRAMS {
        cases.push(case(format!("msquic: {} from it", peer.name()), Peer::Msquic, peer));
        cases.push(case(format!("msquic: it from {}", peer.name()), peer, Peer::Msquic));
    }
    cases
}

fn case(name: String, server: Peer, client: Peer) -> Case {
    let mut case = Case::new(name, server, move |stage| {
        let mut serve = server.command();
        serve.arg("hq-server").arg("--root").arg(&stage.bench.material.site);
        let (_server, port) = stage.serve(&mut serve)?;
        let mut paths = vec!["/1.bin".to_owned(), "/index.html".to_owned()];
        paths.extend(small(200));
        let bytes = whole(stage, client.command().arg("hq-client"), port, &paths)?;
        Ok(format!("{} files, {bytes} bytes", paths.len()))
    });
    case.needs.push(client);
    case
}
