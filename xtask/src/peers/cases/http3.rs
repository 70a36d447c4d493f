//! HTTP/3: `godwit serve` for the clients of the peers, and `godwit get` from their servers.

use super::fetching::{self, small};
use super::{Case, PROGRAMS, Stage};
use crate::peers::install::Peer;
use crate::peers::material::SMALL_FILES;
use std::fs;
use std::process::Command;
use std::time::Instant;

const MIB: u64 = 1 << 20;
const RANGE: &str = "bytes=100-199";
const RANGE_LENGTH: u64 = 100;

/// Who fetches.
#[derive(Clone, Copy)]
enum Client {
    Godwit,
    Peer(Peer),
}

impl Client {
    /// Files that are there, all on one connection; everything must arrive as it was served.
    fn files(self, stage: &mut Stage<'_>, port: u16, paths: &[String]) -> Result<u64, String> {
        let peer = match self {
            Client::Peer(peer) => peer,
            Client::Godwit => return get_files(stage, port, paths),
        };
        fetching::whole(stage, peer.command().arg("h3-client"), port, paths)
    }

    fn not_found(self, stage: &mut Stage<'_>, port: u16) -> Result<(), String> {
        match self {
            Client::Godwit => {
                let mut get = get(stage, port, &["/no-such-file".to_owned()]);
                let ended = stage.attempt(get.arg("--include"))?;
                let told = ended.output.contains("404") && ended.status.code() == Some(1);
                told.then_some(()).ok_or(ended.story)
            }
            Client::Peer(peer) => {
                let line = one_line(stage, peer, &[], port, "/no-such-file")?;
                expect("the status of a file that is not there", &line.status, "404")
            }
        }
    }

    fn head(self, stage: &mut Stage<'_>, port: u16) -> Result<(), String> {
        let (length, path) = (MIB.to_string(), "/1.bin");
        match self {
            Client::Godwit => {
                let head = stage.run(get(stage, port, &[path.to_owned()]).arg("--head"))?.to_lowercase();
                let told = head.contains("200") && head.contains(&format!("content-length: {length}"));
                told.then_some(()).ok_or(format!("the answer to HEAD is\n{head}"))
            }
            Client::Peer(peer) => {
                let line = one_line(stage, peer, &["--method", "HEAD"], port, path)?;
                expect("the status of HEAD", &line.status, "200")?;
                expect("the length that HEAD declares", &line.declared, &length)?;
                expect("the size of the body of HEAD", &line.size.to_string(), "0")
            }
        }
    }

    fn range(self, stage: &mut Stage<'_>, port: u16) -> Result<(), String> {
        let path = "/1.bin";
        match self {
            Client::Godwit => {
                let place = stage.place("range");
                let header = format!("range: {RANGE}");
                stage.run(
                    get(stage, port, &[path.to_owned()])
                        .args(["--header", &header])
                        .arg("--output")
                        .arg(&place),
                )?;
                let received = fs::read(&place).map_err(|error| format!("{}: {error}", place.display()))?;
                let served = stage.bench.material.site.join("1.bin");
                let served = fs::read(&served).map_err(|error| format!("{}: {error}", served.display()))?;
                let same = received.as_slice() == &served[100..200];
                same.then_some(())
                    .ok_or(format!("{} bytes of a range are not the right ones", received.len()))
            }
            Client::Peer(peer) => {
                let line = one_line(stage, peer, &["--range", RANGE], port, path)?;
                expect("the status of a range", &line.status, "206")?;
                expect("the size of a range", &line.size.to_string(), &RANGE_LENGTH.to_string())
            }
        }
    }
}

/// Every case, in both directions.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for peer in PROGRAMS {
        for ours_serves in [true, false] {
            let from = if ours_serves {
                format!("{} from godwit", peer.name())
            } else {
                format!("godwit from {}", peer.name())
            };
            let slow = peer == Peer::Aioquic;
            let case =
                move |what: &str, run: fn(&mut Stage<'_>, Client, u16, bool) -> Result<String, String>| {
                    Case::new(format!("h3: {from}: {what}"), peer, move |stage| {
                        let (mut server, client) = if ours_serves {
                            let mut serve = stage.godwit(&["serve", "--quiet"]);
                            serve.arg(&stage.bench.material.site);
                            (serve, Client::Peer(peer))
                        } else {
                            let mut serve = peer.command();
                            serve.arg("h3-server").arg("--root").arg(&stage.bench.material.site);
                            (serve, Client::Godwit)
                        };
                        let (_server, port) = stage.serve(&mut server)?;
                        run(stage, client, port, slow)
                    })
                };
            cases.extend([case("large file", large), case("many files", many), case("requests", requests)]);
        }
    }
    cases
}

/// Each kind of request and answer once.
fn requests(stage: &mut Stage<'_>, client: Client, port: u16, _slow: bool) -> Result<String, String> {
    let paths = ["/", "/style.css", "/1.bin"].map(str::to_owned);
    client.files(stage, port, &paths)?;
    client.not_found(stage, port)?;
    client.head(stage, port)?;
    client.range(stage, port)?;
    Ok("page, 1 MiB, 404, HEAD, range".to_owned())
}

fn many(stage: &mut Stage<'_>, client: Client, port: u16, slow: bool) -> Result<String, String> {
    let count = if slow { SMALL_FILES / 10 } else { SMALL_FILES };
    client.files(stage, port, &small(count))?;
    Ok(format!("{count} files of 10,000 bytes"))
}

fn large(stage: &mut Stage<'_>, client: Client, port: u16, slow: bool) -> Result<String, String> {
    let size = if slow { stage.bench.large_slow } else { stage.bench.large_fast };
    let start = Instant::now();
    let bytes = client.files(stage, port, &[format!("/{size}.bin")])?;
    let rate = bytes as f64 * 8e-6 / start.elapsed().as_secs_f64();
    Ok(format!("{size} MiB, {rate:.0} Mbit/s with start and hash"))
}

fn get(stage: &Stage<'_>, port: u16, paths: &[String]) -> Command {
    let mut get = stage.godwit(&["get", "--http3", "--ipv4", "--quiet", "--cacert"]);
    get.arg(stage.authority());
    get.args(paths.iter().map(|path| format!("https://localhost:{port}{path}")));
    get
}

/// The page by itself, as its URL has no name for a file; everything else by one command.
fn get_files(stage: &mut Stage<'_>, port: u16, paths: &[String]) -> Result<u64, String> {
    let (pages, files): (Vec<_>, Vec<_>) = paths.iter().cloned().partition(|path| path.ends_with('/'));
    let mut bytes = 0;
    let mut check = |stage: &Stage<'_>, path: &str, place: &str| {
        let place = stage.place(place);
        stage.bench.material.compare(path, &place)?;
        bytes += fs::metadata(&place).map(|metadata| metadata.len()).unwrap_or_default();
        Ok::<_, String>(())
    };
    for page in pages {
        let place = stage.place("page");
        stage.run(get(stage, port, std::slice::from_ref(&page)).arg("--output").arg(place))?;
        check(stage, &page, "page")?;
    }
    let folder = stage.received.clone();
    stage.run(get(stage, port, &files).arg("--output-dir").arg(folder))?;
    for file in &files {
        check(stage, file, file.rsplit('/').next().unwrap_or_default())?;
    }
    Ok(bytes)
}

fn one_line(
    stage: &mut Stage<'_>,
    peer: Peer,
    options: &[&str],
    port: u16,
    path: &str,
) -> Result<fetching::Line, String> {
    let mut client = peer.command();
    let lines = fetching::lines(stage, client.arg("h3-client").args(options), port, &[path.to_owned()])?;
    lines.into_iter().next().ok_or_else(|| "the client printed nothing".to_owned())
}

fn expect(what: &str, found: &str, wanted: &str) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("{what} is {found}, not {wanted}")) }
}
