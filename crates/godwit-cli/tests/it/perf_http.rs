//! `godwit perf http` against `godwit serve`, and against servers with habits of their own.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use crate::serve_support::Server;

fn perf(options: &str) -> Output {
    let command = ["perf", "http"];
    Command::new(env!("CARGO_BIN_EXE_godwit"))
        .args(command)
        .args(options.split_whitespace())
        .output()
        .unwrap()
}

fn measure(options: &str) -> Value {
    let output = perf(&format!("{options} --json"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn site() -> (tempfile::TempDir, Server) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("page.txt"), "x".repeat(1234)).unwrap();
    let server = Server::start(&[folder.path().to_str().unwrap()]);
    (folder, server)
}

#[test]
fn every_version_is_measured_in_a_closed_loop() {
    let (_folder, server) = site();
    let url = format!("https://127.0.0.1:{}/page.txt", server.port);
    let authority = server.authority();
    for (version, name, at_once) in [
        ("--h1", "HTTP/1.1", "--connections 4"),
        ("--h2", "HTTP/2", "--connections 2 --streams 20"),
        ("--h3", "HTTP/3", "--connections 2 --streams 20"),
        ("", "HTTP/3", ""),
    ] {
        let options = format!("{version} {at_once} --cacert {}", authority.display());
        let report = measure(&format!("{url} {options} --duration 300ms --cpu-of {}", server.process.id()));
        assert_eq!(report["scenario"], name);
        let count = report["requests"]["count"].as_u64().unwrap();
        assert!(count > 0, "{report}");
        assert_eq!(report["http"]["statuses"]["200"], count, "{report}");
        assert_eq!((&report["http"]["failed"], &report["http"]["reconnected"]), (&0.into(), &0.into()));
        assert_eq!(report["requests"]["response_bytes"], 1234);
        assert_eq!(report["bytes"], count * 1234);
        assert!(report["latency_us"]["p99.99"].as_f64() >= report["latency_us"]["p50"].as_f64());
        assert!(report["server_cpu"]["us_each"].as_f64().unwrap() > 0.0, "{report}");
    }
    let text = String::from_utf8(perf(&format!("{url} --duration 100ms")).stdout).unwrap();
    for row in ["HTTP/3", "with status 200", "P99.9", "cpu (this end)"] {
        assert!(text.contains(row), "{text}");
    }
}

#[test]
fn by_the_clock_as_many_are_made_as_were_planned() {
    let (_folder, server) = site();
    let url = format!("https://127.0.0.1:{}/page.txt", server.port);
    for version in ["--h1 --connections 3", "--h2 --streams 5", "--h3 --streams 5"] {
        let report = measure(&format!("{url} {version} --rate 200 --duration 500ms"));
        assert_eq!(report["requests"]["count"], 100, "{report}");
        assert_eq!((&report["http"]["unanswered"], &report["http"]["rate"]), (&0.into(), &200.0.into()));
        // Of the time in which they were due.
        assert_eq!((&report["seconds"], &report["requests"]["per_second"]), (&0.5.into(), &200.0.into()));
    }
}

#[test]
fn requests_have_the_method_fields_and_content_that_are_asked_for() {
    let (_folder, server) = site();
    let url = format!("https://127.0.0.1:{}", server.port);
    for version in ["--h1", "--h2", "--h3"] {
        let posted = measure(&format!("{url}/page.txt {version} -X POST --content 5000 --duration 100ms"));
        assert!(posted["http"]["statuses"]["405"].as_u64() > Some(0), "{posted}");
        let conditional = measure(&format!("{url}/page.txt {version} -H if-none-match:* --duration 100ms"));
        assert!(conditional["http"]["statuses"]["304"].as_u64() > Some(0), "{conditional}");
        let missing = measure(&format!("{url}/none {version} --duration 100ms"));
        assert!(missing["http"]["statuses"]["404"].as_u64() > Some(0), "{missing}");
    }
}

/// Answers one request after the other on a connection, and ends it after so many. Counts the connections.
fn short_lived(requests: usize, last: &'static str) -> (u16, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, count) = (listener.local_addr().unwrap().port(), Arc::new(AtomicU64::new(0)));
    let connections = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            connections.fetch_add(1, Ordering::Relaxed);
            std::thread::spawn(move || serve_few(stream, requests, last));
        }
    });
    (port, count)
}

fn serve_few(mut stream: TcpStream, requests: usize, last: &str) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    for number in 1..=requests {
        // The head ends with an empty line.
        while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
        let answer = if number == requests { last } else { "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok" };
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

#[test]
fn a_connection_that_the_server_ends_is_made_anew() {
    let closing = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok";
    let (port, connections) = short_lived(3, closing);
    let report = measure(&format!("http://127.0.0.1:{port}/ --h1 --rate 100 --duration 300ms"));
    assert_eq!(
        (&report["requests"]["count"], &report["http"]["failed"]),
        (&30.into(), &0.into()),
        "{report}"
    );
    let reconnected = report["http"]["reconnected"].as_u64().unwrap();
    assert!(reconnected >= 9, "{report}");
    assert!(connections.load(Ordering::Relaxed) > reconnected, "the first is none of them");
}

#[test]
fn what_is_broken_off_is_counted_and_said() {
    let (port, _) = short_lived(2, "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nnot all");
    let report = measure(&format!("http://127.0.0.1:{port}/ --h1 --rate 100 --duration 200ms"));
    assert_eq!(
        (&report["requests"]["count"], &report["http"]["failed"]),
        (&10.into(), &10.into()),
        "{report}"
    );
    assert!(!report["http"]["first_failure"].as_str().unwrap().is_empty(), "{report}");
}

#[test]
fn what_cannot_be_measured_is_said_in_one_line() {
    let (_folder, server) = site();
    let url = format!("https://127.0.0.1:{}/", server.port);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (options, said) in [
        (format!("https://{closed}/ --h2"), "refused"),
        (format!("http://{closed}/ --h3"), "always encrypted"),
        (format!("{url} --h1 --streams 2"), "--connections"),
        (format!("{url} --rate 0"), "0.001"),
        (format!("{url} --rate 1e-320"), "0.001"),
        (format!("{url} --connections 10000 --streams 10000"), "at most 1000000"),
        (format!("{url} --h2 -H nothing"), "NAME: VALUE"),
        (format!("{url} --h2 --cacert /no/such/file"), "/no/such/file"),
        (format!("{url} --h2 --cpu-of 4194304999"), "4194304999"),
        ("ftp://host/".to_owned(), "https://"),
    ] {
        let output = perf(&format!("{options} --duration 100ms"));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{options}");
        assert!(stderr.contains(said), "{options}: {stderr}");
        assert!(!stderr.contains("panicked"), "{options}: {stderr}");
    }
}
