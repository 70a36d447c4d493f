//! `godwit serve` where the machine fails it: no descriptors, no memory, no room on the disk, no link, no upstream, no name
//! server. What it serves it goes on serving, it says once what is wrong, and when that is over so is its trouble, without a
//! restart.
#![cfg(target_os = "linux")]

mod descriptors;
mod disk;
mod link;
mod memory;
mod upstream;

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crate::serve_support::{Server, lines_of};
use bytes::Bytes;
use godwit::http3::{ALPN, Client};
use godwit::{ClientConfig, Endpoint, TransportConfig};
use http::Request;
use http_body_util::Empty;
use tempfile::TempDir;
use tokio::sync::mpsc;

/// A server, and what it says of itself.
struct Watched {
    server: Server,
    lines: mpsc::UnboundedReceiver<String>,
}

impl Watched {
    /// Serves by this configuration, which it finds in its folder, within limits that a shell sets.
    fn start(limits: &str, folder: TempDir, configuration: &str) -> Watched {
        Watched::start_under(&["env"], limits, folder, configuration)
    }

    /// The same by another program, which starts that shell.
    fn start_under(program: &[&str], limits: &str, folder: TempDir, configuration: &str) -> Watched {
        std::fs::write(folder.path().join("godwit.toml"), configuration).unwrap();
        let mut command = Command::new(program[0]);
        command.args(&program[1..]);
        command.args(["sh", "-c", &format!("{limits} exec \"$0\" serve --quiet --config godwit.toml")]);
        command.arg(env!("CARGO_BIN_EXE_godwit")).current_dir(folder.path()).stdin(Stdio::null());
        command.env("XDG_DATA_HOME", folder.path()).env_remove("RUST_LOG").stderr(Stdio::piped());
        let mut server = Server::spawn(command, Arc::new(folder));
        let lines = lines_of(server.process.stderr.take().unwrap());
        Watched { server, lines }
    }

    /// The next line in which there is `words`.
    async fn says(&mut self, words: &str) -> String {
        loop {
            let line = self.lines.recv().await.unwrap_or_else(|| panic!("ended before saying {words}"));
            if line.contains(words) {
                return line;
            }
        }
    }

    /// What it has said since somebody listened.
    fn said(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.lines.try_recv().ok()).collect()
    }

    /// A client with a connection.
    async fn client(&self, endpoint: &Endpoint) -> Client {
        let address = SocketAddr::from(([127, 0, 0, 1], self.server.port));
        Client::connect(endpoint, &self.config(), address, "localhost").await.unwrap()
    }

    fn config(&self) -> ClientConfig {
        let mut transport = TransportConfig::default();
        transport.max_idle_timeout = Duration::from_secs(600);
        transport.handshake_timeout = Duration::from_secs(300);
        // The server keeps as much as clients permit, and they permit more the longer round trips are: not here, however
        // busy the machine is.
        transport.max_stream_window = 256 << 10;
        let roots = std::fs::read(self.server.authority()).unwrap();
        ClientConfig::with_roots_pem(&roots).alpn([ALPN]).transport(transport).build().unwrap()
    }

    fn request(&self, path: &str) -> Request<Empty<Bytes>> {
        let uri = format!("https://localhost:{}{path}", self.server.port);
        Request::get(uri).body(Empty::new()).unwrap()
    }
}

fn endpoint() -> Endpoint {
    endpoint_at("127.0.0.1")
}

fn endpoint_at(address: &str) -> Endpoint {
    Endpoint::client(SocketAddr::new(address.parse().unwrap(), 0)).unwrap()
}

/// A folder with `www/big` in it, of so many bytes, and a little page.
fn site(big: u64) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("www")).unwrap();
    std::fs::write(folder.path().join("www/index.html"), "a page").unwrap();
    std::fs::File::create(folder.path().join("www/big")).unwrap().set_len(big).unwrap();
    folder
}

/// Nobody's patience ends here, however busy the machine is.
const PATIENT: &str = "[limits]\nsend_timeout = \"1h\"\nminimum_rate = \"none\"\nidle_timeout = \"1h\"\n\
    header_timeout = \"1h\"\n";

/// Each has descriptors and a stack of its own: so much is left on every machine.
const SHARDS: &str = "shards = 2\n";
