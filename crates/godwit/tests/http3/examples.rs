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
fn example(name: &str) -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    let path = path.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(path.exists(), "{} is missing: cargo build -p godwit --examples", path.display());
    path
}

#[test]
fn a_page_is_fetched() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
    std::fs::write(&certificate, &CERTIFICATE.0).unwrap();
    std::fs::write(&key, &CERTIFICATE.1).unwrap();
    let mut server = Command::new(example("http3_server"));
    server.args([&certificate, &key]).arg("127.0.0.1:0").stdout(Stdio::piped());
    let mut server = Guard(server.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let addr = line.trim().strip_prefix("listening on ").unwrap().to_owned();
    let mut client = Command::new(example("http3_client"));
    let output = client.arg(&certificate).args([&addr, "/some/page"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "200 OK\nYou asked for /some/page.\n");
}

#[test]
fn a_page_is_fetched_from_another_server() {
    use std::io::{Read, Write};
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
    std::fs::write(&certificate, &CERTIFICATE.0).unwrap();
    std::fs::write(&key, &CERTIFICATE.1).unwrap();
    let upstream = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", upstream.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = upstream.accept().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        assert!(head.starts_with(b"GET /some/page HTTP/1.1\r\n"));
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\nfrom behind\n").unwrap();
    });
    let mut server = Command::new(example("reverse_proxy"));
    server.args([&certificate, &key]).args(["127.0.0.1:0", &url]).stdout(Stdio::piped());
    let mut server = Guard(server.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let addr = line.trim().strip_prefix("listening on ").unwrap().to_owned();
    for (path, expected) in [("/some/page", "200 OK\nfrom behind\n"), ("/healthz", "200 OK\nok\n")] {
        let output = Command::new(example("http3_client")).arg(&certificate).args([&addr, path]).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    }
}
