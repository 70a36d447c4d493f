//! Programs with the common command line as clients, and the cases in which both sides have it: HTTP/0.9.

use super::{Case, PROGRAMS, Stage};
use crate::peers::install::Peer;
use std::process::Command;

/// What a client with the common command line says of one answer.
pub(super) struct Line {
    pub(super) status: String,
    pub(super) size: u64,
    hash: String,
    pub(super) declared: String,
    path: String,
}

impl Line {
    fn parse(line: &str) -> Result<Self, String> {
        let words: Vec<_> = line.split(' ').collect();
        let [status, size, hash, declared, path] = words.as_slice() else {
            return Err(format!("the client printed {line:?}"));
        };
        Ok(Self {
            status: (*status).to_owned(),
            size: size.parse().map_err(|_| format!("the client printed {line:?}"))?,
            hash: (*hash).to_owned(),
            declared: (*declared).to_owned(),
            path: (*path).to_owned(),
        })
    }
}

/// Fetches paths with a client of the common command line, whose command is complete but for the URLs.
pub(super) fn lines(
    stage: &mut Stage<'_>,
    client: &mut Command,
    port: u16,
    paths: &[String],
) -> Result<Vec<Line>, String> {
    client.arg("--ca").arg(stage.authority());
    client.args(paths.iter().map(|path| format!("https://localhost:{port}{path}")));
    let lines = stage.run(client)?.lines().map(Line::parse).collect::<Result<Vec<_>, _>>()?;
    if lines.iter().map(|line| &line.path).eq(paths) {
        return Ok(lines);
    }
    Err(format!("{} URLs were asked for, the client tells of {}", paths.len(), lines.len()))
}

/// The same for files that are there: their hashes must be right. Returns the number of bytes.
pub(super) fn whole(
    stage: &mut Stage<'_>,
    client: &mut Command,
    port: u16,
    paths: &[String],
) -> Result<u64, String> {
    let mut bytes = 0;
    for line in lines(stage, client, port, paths)? {
        let hash = stage.bench.material.hash(&line.path)?;
        if !["200", "-"].contains(&line.status.as_str()) || line.hash != hash {
            return Err(format!(
                "{}: status {}, {} bytes with wrong hash",
                line.path, line.status, line.size
            ));
        }
        bytes += line.size;
    }
    Ok(bytes)
}

/// The paths of the first small files.
pub(super) fn small(count: u64) -> Vec<String> {
    (0..count).map(|index| format!("/small/{index}")).collect()
}

/// HTTP/0.9 in both roles.
pub(super) fn hq_cases() -> Vec<Case> {
    let case = |name: String, peer: Peer, ours_serves: bool| {
        Case::new(name, peer, move |stage| {
            let ours = Command::new(&stage.bench.hq);
            let (mut server, mut client) =
                if ours_serves { (ours, peer.command()) } else { (peer.command(), ours) };
            let (_server, port) =
                stage.serve(server.arg("hq-server").arg("--root").arg(&stage.bench.material.site))?;
            let mut paths = vec!["/1.bin".to_owned(), "/index.html".to_owned()];
            paths.extend(small(50));
            let bytes = whole(stage, client.arg("hq-client"), port, &paths)?;
            Ok(format!("{} files, {bytes} bytes", paths.len()))
        })
    };
    let of = |peer: Peer| {
        [
            case(format!("hq: {} from godwit", peer.name()), peer, true),
            case(format!("hq: godwit from {}", peer.name()), peer, false),
        ]
    };
    PROGRAMS.into_iter().flat_map(of).collect()
}
