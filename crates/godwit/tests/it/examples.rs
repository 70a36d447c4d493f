//! The examples, as the programs that they are.

use crate::support::CERTIFICATE;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A program that does not outlive its test.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Cargo builds examples beside the tests.
pub(crate) fn example(name: &str) -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    let path = path.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(path.exists(), "{} is missing: cargo build -p godwit --examples", path.display());
    path
}

fn greeting_on(addr: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
    std::fs::write(&certificate, &CERTIFICATE.0).unwrap();
    std::fs::write(&key, &CERTIFICATE.1).unwrap();
    let mut server = Command::new(example("hello_server"));
    server.args([&certificate, &key]).arg(addr).stdout(Stdio::piped());
    let mut server = Guard(server.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let addr = line.trim().strip_prefix("listening on ").unwrap().to_owned();
    let mut client = Command::new(example("hello_client"));
    let output = client.arg(&certificate).args([&addr, "Ferdinand"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), "hello, Ferdinand");
}

#[test]
fn a_greeting_over_ipv4() {
    greeting_on("127.0.0.1:0");
}

#[test]
fn a_greeting_over_ipv6() {
    if std::net::UdpSocket::bind("[::1]:0").is_ok() {
        greeting_on("[::1]:0");
    }
}

/// A server and a client without any runtime, in two processes. `wait` after the answer: both end by themselves.
#[cfg(target_os = "linux")]
#[test]
fn thousands_of_streams_on_an_epoll_loop() {
    const STREAMS: usize = 5000;
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
    std::fs::write(&certificate, &CERTIFICATE.0).unwrap();
    std::fs::write(&key, &CERTIFICATE.1).unwrap();
    let mut server = Command::new(example("epoll_echo"));
    server.arg("serve").args([&certificate, &key]).args(["127.0.0.1:0", "1"]).stdout(Stdio::piped());
    let mut server = Guard(server.spawn().unwrap());
    let mut lines = BufReader::new(server.0.stdout.take().unwrap()).lines();
    let addr = lines.next().unwrap().unwrap().strip_prefix("listening on ").unwrap().to_owned();
    let mut client = Command::new(example("epoll_echo"));
    let output = client.arg("ask").arg(&certificate).args([&addr, &STREAMS.to_string()]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), format!("{STREAMS} messages came back"));
    assert_eq!(lines.next().unwrap().unwrap(), format!("{STREAMS} streams echoed"));
    assert!(server.0.wait().unwrap().success());
}

#[test]
fn programs_without_arguments_say_how_they_are_called() {
    for name in ["hello_server", "hello_client", "reload"] {
        let output = Command::new(example(name)).output().unwrap();
        assert!(!output.status.success());
        assert!(String::from_utf8_lossy(&output.stderr).contains("usage: "));
    }
}
