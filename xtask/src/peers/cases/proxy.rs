//! `godwit serve --proxy` in front of a Python and of a Node server, asked for everything by curl, aioquic, Go and
//! Chromium over each of the three protocols.

use super::{Case, READY, Stage, port_in};
use crate::peers::install::Peer;
use std::process::Command;

/// Who answers behind the proxy.
#[derive(Clone, Copy)]
enum Upstream {
    Node,
    Python,
}

/// Who asks.
#[derive(Clone, Copy)]
enum Client {
    Aioquic,
    Chromium,
    Curl,
    Go,
}

impl Upstream {
    const fn name(self) -> &'static str {
        match self {
            Upstream::Node => "Node",
            Upstream::Python => "Python",
        }
    }

    /// The peer that it is installed with.
    const fn peer(self) -> Peer {
        match self {
            Upstream::Node => Peer::Chromium,
            Upstream::Python => Peer::Aioquic,
        }
    }

    fn command(self) -> Command {
        let script = match self {
            Upstream::Node => "upstream.mjs",
            Upstream::Python => "upstream.py",
        };
        let mut command = self.peer().script(script);
        command.args(["--listen", "127.0.0.1:0"]);
        command
    }
}

impl Client {
    const fn name(self) -> &'static str {
        match self {
            Client::Aioquic => "aioquic",
            Client::Chromium => "Chromium",
            Client::Curl => "curl",
            Client::Go => "Go",
        }
    }

    /// The peer that it is installed with.
    const fn peer(self) -> Peer {
        match self {
            Client::Aioquic | Client::Curl => Peer::Aioquic,
            Client::Chromium => Peer::Chromium,
            Client::Go => Peer::QuicGo,
        }
    }

    const fn protocols(self) -> &'static [&'static str] {
        match self {
            Client::Aioquic => &["h3"],
            Client::Chromium | Client::Curl | Client::Go => &["h1", "h2", "h3"],
        }
    }

    fn command(self, stage: &Stage<'_>, protocol: &str) -> Command {
        let material = &stage.bench.material;
        let mut command = match self {
            Client::Aioquic => self.peer().script("proxy_aioquic.py"),
            Client::Curl => self.peer().script("proxy_curl.py"),
            Client::Chromium => self.peer().script("proxy.mjs"),
            Client::Go => self.peer().command(),
        };
        match self {
            Client::Aioquic => &mut command,
            Client::Curl => command.args(["--protocol", protocol]),
            Client::Chromium => {
                command.args([protocol, "--pin", &material.pin]).arg("--browser").arg(&stage.bench.browser)
            }
            Client::Go => command.args(["proxy-client", "--protocol", protocol]),
        };
        if !matches!(self, Client::Chromium) {
            command.arg("--ca").arg(&material.authority);
        }
        command
    }
}

/// Every client by every protocol it speaks, in front of either upstream.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for upstream in [Upstream::Node, Upstream::Python] {
        for client in [Client::Chromium, Client::Curl, Client::Go, Client::Aioquic] {
            for protocol in client.protocols() {
                let name = format!("proxy: {} {protocol} to {}", client.name(), upstream.name());
                let run = move |stage: &mut Stage<'_>| ask(stage, upstream, client, protocol);
                let mut case = Case::new(name, client.peer(), run);
                case.needs.push(upstream.peer());
                cases.push(case);
            }
        }
    }
    cases
}

fn ask(stage: &mut Stage<'_>, upstream: Upstream, client: Client, protocol: &str) -> Result<String, String> {
    let mut behind = stage.start("upstream", &upstream.command())?;
    let port = behind.wait_for(READY, port_in)?;
    let target = format!("http://localhost:{port}");
    let (_proxy, port) = stage.serve(&mut stage.godwit(&["serve", "--quiet", "--proxy", &target]))?;
    let size = client_size(stage, client).to_string();
    let mut command = client.command(stage, protocol);
    command.args(["--url", &format!("https://localhost:{port}"), "--size", &size]);
    let ended = stage.attempt(&command)?;
    let failed: Vec<_> = ended.output.lines().filter(|line| line.starts_with("FAILED ")).collect();
    if ended.status.success() && failed.is_empty() {
        return Ok(format!("{} checks", ended.output.lines().filter(|line| line.starts_with("ok ")).count()));
    }
    Err(if failed.is_empty() { ended.story } else { failed.join("\n") })
}

/// The length of large bodies, in bytes.
fn client_size(stage: &Stage<'_>, client: Client) -> u64 {
    let mib = match client {
        Client::Aioquic => stage.bench.large_slow,
        Client::Chromium | Client::Curl | Client::Go => stage.bench.large_fast,
    };
    mib << 20
}
