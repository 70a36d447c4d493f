//! Servers that are flooded: `godwit serve`, and programs of other stacks that serve the same folder over HTTP/3. Each
//! has core 0.

use crate::peers::install::Peer;
use crate::peers::process::Process;
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// How long a server may take until it listens.
const READY: Duration = Duration::from_secs(30);

/// Whose server it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Server {
    Godwit,
    Peer(Peer),
}

pub(super) const ALL: [Server; 5] = [
    Server::Godwit,
    Server::Peer(Peer::Quinn),
    Server::Peer(Peer::QuicGo),
    Server::Peer(Peer::Caddy),
    Server::Peer(Peer::Aioquic),
];

/// Programs and files that servers need.
pub(super) struct Stage {
    pub(super) godwit: PathBuf,
    /// quinn's program, where it was built.
    pub(super) quinn: PathBuf,
    /// With the site, certificates, and what servers print.
    pub(super) folder: PathBuf,
}

/// A server that listens. Dropped, it ends.
pub(super) struct Running {
    process: Process,
    pub(super) address: String,
}

impl Running {
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Ends it without waiting for its connections to end.
    pub(super) fn kill(self) {
        self.process.kill();
    }
}

impl Server {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Server::Godwit => "Godwit",
            Server::Peer(peer) => peer.name(),
        }
    }

    pub(super) fn find(name: &str) -> Result<Server, String> {
        let found = ALL.into_iter().find(|server| server.name().eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let names: Vec<_> = ALL.iter().map(|server| server.name()).collect();
            format!("there is no server {name:?}; there are {}", names.join(", "))
        })
    }

    /// Starts it, and waits until it listens.
    pub(super) fn start(self, stage: &Stage) -> Result<Running, String> {
        let free = std::net::UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let address = free.map_err(|error| format!("no free port: {error}"))?;
        let command = self.command(stage, &address.to_string())?;
        let mut on_core = Command::new("taskset");
        on_core.args(["-c", "0"]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            on_core.env(name, value.unwrap_or_default());
        }
        let mut process = Process::start(&on_core, &stage.folder, self.name())?;
        match self {
            Server::Godwit | Server::Peer(Peer::Caddy) => {
                let start = Instant::now();
                while TcpStream::connect(address).is_err() {
                    if start.elapsed() > READY {
                        return Err(format!("{} does not listen on {address}", self.name()));
                    }
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
            Server::Peer(_) => {
                process.wait_for(READY, |text| text.contains("listening").then_some(()))?;
            }
        }
        Ok(Running { process, address: address.to_string() })
    }

    fn command(self, stage: &Stage, address: &str) -> Result<Command, String> {
        let (site, folder) = (stage.folder.join("site"), &stage.folder);
        let command = match self {
            Server::Godwit => {
                let mut command = Command::new(&stage.godwit);
                command.arg("serve").arg(site).args(["--listen", address]);
                command
            }
            Server::Peer(Peer::Caddy) => {
                let mut command = Peer::Caddy.command();
                let file = folder.join("Caddyfile");
                fs::write(&file, caddyfile(folder, address)?)
                    .map_err(|error| format!("{}: {error}", file.display()))?;
                command.args(["run", "--adapter", "caddyfile", "--config"]).arg(file);
                command.env("HOME", folder).env("XDG_DATA_HOME", folder).env("GOMAXPROCS", "1");
                command
            }
            Server::Peer(peer) => {
                let mut command =
                    if peer == Peer::Quinn { Command::new(&stage.quinn) } else { peer.command() };
                command.args(["h3-server", "--listen", address, "--root"]).arg(site);
                command.arg("--cert").arg(folder.join("certificates/leaf.pem"));
                command.arg("--key").arg(folder.join("certificates/leaf.key")).env("GOMAXPROCS", "1");
                command
            }
        };
        Ok(command)
    }
}

fn caddyfile(folder: &Path, address: &str) -> Result<String, String> {
    let port = address.rsplit(':').next().ok_or("an address without a port")?;
    let folder = folder.display();
    Ok(format!(
        "{{\n\tadmin off\n\tauto_https disable_redirects\n\tskip_install_trust\n\tservers {{\n\t\tprotocols h1 h2 h3\n\t}}\n}}\n\
         https://localhost:{port} {{\n\tbind 127.0.0.1\n\ttls {folder}/certificates/leaf.pem {folder}/certificates/leaf.key\n\
         \troot * {folder}/site\n\tfile_server\n}}\n"
    ))
}
