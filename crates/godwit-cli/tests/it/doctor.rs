//! `godwit doctor` with a site that answers over each protocol, or not.

use std::process::Command;

use crate::get_support::{Settings, Tcp, TestServer, Udp};

/// What is found on the way to a server of such a kind.
fn found(settings: Settings) -> String {
    let server = TestServer::with(settings);
    let mut command = Command::new(env!("CARGO_BIN_EXE_godwit"));
    command.arg("doctor").arg(server.url("/bytes/5")).arg("--cacert").arg(&server.authority);
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    // This machine may have faults of its own.
    let way = text.find(" over TCP\n").unwrap_or_else(|| panic!("{text}"));
    text[way..].to_owned()
}

#[track_caller]
fn expect(text: &str, lines: &[(&str, &str, &str)]) {
    for (mark, topic, part) in lines {
        let line = text.lines().find(|line| line.contains(part)).unwrap_or_default().trim_start();
        let line = line.strip_prefix(mark).map(str::trim_start).unwrap_or_default();
        assert!(line.starts_with(topic), "expected {mark} {topic} … {part}: {text}");
    }
}

#[test]
fn what_works_is_seen() {
    let text = found(Settings::all());
    let lines = [
        ("ok", "TCP", ": TLS 1.3, HTTP/2.0, status 200 OK, connected in "),
        ("ok", "Alt-Svc", "h3 at :"),
        ("ok", "QUIC", ": handshake in "),
        ("ok", "MTU", " bytes in a datagram"),
    ];
    expect(&text, &lines);
    assert!(!text.contains("not the one that TCP shows") && !text.contains("over HTTP/3, "), "{text}");
}

#[test]
fn what_does_not_work_is_told_apart() {
    let closed = found(Settings { udp: Udp::Closed, ..Settings::all() });
    expect(&closed, &[("FAIL", "QUIC", "not one datagram came back")]);
    let other = found(Settings { alpn: b"hq-interop", tcp: Tcp::Http1, ..Settings::default() });
    let lines = [
        ("ok", "TCP", "HTTP/1.1, status 200 OK"),
        ("warn", "Alt-Svc", "not sent"),
        ("FAIL", "QUIC", "somebody answers, but "),
    ];
    expect(&other, &lines);
    let alone = found(Settings::default());
    expect(&alone, &[("FAIL", "TCP", "connection refused"), ("ok", "QUIC", ": handshake in ")]);
}
