//! Every example of the documentation is run: configurations are checked by the program, commands by a shell.
//!
//! The examples say what people write: `/etc/godwit`, port 8080. Here these become a folder of this test's own and
//! ports that are free, by replacing the text; nothing else is changed.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rcgen::{CertificateParams, KeyPair};

/// The pages whose examples are run.
const PAGES: [&str; 4] = ["configuration", "in-front-of-your-site", "operation", "report"];

/// A world in which the examples are true.
struct World {
    folder: tempfile::TempDir,
    upstream: u16,
    listen: u16,
}

impl World {
    fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        for part in ["etc", "www", "log", "home"] {
            fs::create_dir(path.join(part)).unwrap();
        }
        fs::write(path.join("www/index.html"), "<!doctype html><title>docs</title>\n").unwrap();
        let key = KeyPair::generate().unwrap();
        let names = ["example.com", "*.example.com"].map(str::to_owned);
        let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
        fs::write(path.join("etc/fullchain.pem"), certificate.pem()).unwrap();
        fs::write(path.join("etc/privkey.pem"), key.serialize_pem()).unwrap();
        let upstream = upstream();
        World { folder, upstream, listen: free_port() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn translate(&self, text: &str) -> String {
        let folder = |name: &str| self.path(name).display().to_string();
        text.replace("/etc/godwit", &folder("etc"))
            .replace("/var/log/godwit", &folder("log"))
            .replace("/srv/www", &folder("www"))
            .replace("127.0.0.1:8080", &format!("127.0.0.1:{}", self.upstream))
            .replace(":4433", &format!(":{}", self.listen))
    }

    fn program(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_godwit"));
        self.surround(&mut command);
        command
    }

    /// Runs the lines of an example as a person would type them, and stops at the first that fails.
    fn shell(&self, lines: &str) -> Output {
        let program = Path::new(env!("CARGO_BIN_EXE_godwit")).parent().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("bash");
        command.args(["-eu", "-c", &self.translate(lines)]).current_dir(self.folder.path());
        command.env("PATH", format!("{}:{path}", program.display()));
        self.surround(&mut command);
        command.output().unwrap()
    }

    fn surround(&self, command: &mut Command) {
        command.env("HOME", self.path("home")).env("XDG_DATA_HOME", self.path("home")).env("NO_COLOR", "1");
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A site that speaks HTTP/1.1, for as long as the test runs.
fn upstream() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 8192]);
            let _ =
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello");
        }
    });
    port
}

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name).with_extension("md");
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The fenced blocks of a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let opening = format!("```{language}\n");
    text.split(&opening).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn every_configuration_is_right() {
    let world = World::new();
    let mut seen = 0;
    for name in PAGES {
        for (index, block) in blocks(&page(name), "toml").iter().enumerate() {
            let file = world.path("etc/example.toml");
            fs::write(&file, world.translate(block)).unwrap();
            let output =
                world.program().arg("serve").arg("--config").arg(&file).arg("--check").output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "block {index} of {name}:\n{text}");
            seen += 1;
        }
    }
    assert!(seen >= 4, "{seen} configurations");
}

#[test]
fn every_command_works() {
    let world = World::new();
    let first = blocks(&page("in-front-of-your-site"), "toml").remove(0);
    fs::write(world.path("etc/godwit.toml"), world.translate(&first)).unwrap();
    for name in ["access.log", "access.log.1"] {
        fs::write(world.path(name), access_log()).unwrap();
    }
    let mut seen = 0;
    for name in PAGES {
        for block in blocks(&page(name), "sh") {
            let output = world.shell(&wait_for_servers(&block));
            let text = String::from_utf8_lossy(&output.stderr);
            // The machine that tests may well have small buffers: the doctor says so by its exit code.
            let doctor = block.trim() == "godwit doctor" && output.status.code() == Some(1);
            assert!(output.status.success() || doctor, "{name}:\n{block}\n{text}");
            seen += 1;
        }
    }
    assert!(seen >= 5, "{seen} commands");
    assert_eq!(fs::read_to_string(world.path("page")).unwrap(), "hello");
    assert!(world.path("report.html").exists() && world.path("monday.sketch").exists());
}

/// A person waits for the banner before typing on.
fn wait_for_servers(block: &str) -> String {
    let wait = "for i in $(seq 300); do grep -qs https banner && break; sleep 0.1; done";
    block.replace(" &\n", &format!(" >banner 2>&1 &\n{wait}\n"))
}

fn access_log() -> String {
    let mut log = String::new();
    for number in 0..2000 {
        let (protocol, request) = if number % 2 == 0 { ("h2", 1) } else { ("h3", 2) };
        let last_mile = 20 + number % 97;
        log += &format!(
            "{{\"time\":\"2026-11-21T10:00:00.000Z\",\"client\":\"192.0.2.{}\",\"family\":4,\
             \"host\":\"example.com\",\"method\":\"GET\",\"path\":\"/\",\"protocol\":\"{protocol}\",\"status\":200,\
             \"connection\":{number},\"request\":{request},\"tls\":\"full\",\"rtt_ms\":20,\"lost\":0,\
             \"retransmitted\":0,\"request_bytes\":0,\"response_bytes\":1000,\"first_byte_ms\":1,\
             \"last_byte_ms\":1.5,\"delivered_ms\":{last_mile},\"last_mile_ms\":{last_mile},\"outcome\":\"ok\"}}\n",
            number % 200,
        );
    }
    log
}
