//! `godwit doctor` with a site that answers over each protocol, or not.

use std::process::Command;

use crate::get_support::{Settings, Tcp, TestServer, Udp};

/// What is found on the way to a server of such a kind.
fn found(settings: Settings) -> String {
    let server = TestServer::with(settings);
    found_at(&server, &[&server])
}

/// The same where these servers' certificates are trusted.
fn found_at(server: &TestServer, trusted: &[&TestServer]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_godwit"));
    command.arg("doctor").arg(server.url("/bytes/5"));
    for server in trusted {
        command.arg("--cacert").arg(&server.authority);
    }
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
        ("ok", "certificate", "for localhost, 127.0.0.1; its key's SHA-256 is "),
        ("ok", "chain", "1 certificate, "),
        ("ok", "Alt-Svc", ", for 30 d"),
        ("ok", "QUIC", ": QUIC version 1, handshake in "),
        ("ok", "MTU", " bytes in a datagram"),
    ];
    expect(&text, &lines);
    assert!(!text.contains("not the one that TCP shows") && !text.contains("over HTTP/3, "), "{text}");
}

#[test]
fn what_does_not_work_is_told_apart() {
    let closed = found(Settings { udp: Udp::Closed, ..Settings::all() });
    expect(&closed, &[("FAIL", "QUIC", "refused: the machine says that nobody listens on UDP port")]);
    assert!(!closed.contains("not one datagram"), "{closed}");
    let silent = found(Settings { udp: Udp::Silent, ..Settings::all() });
    expect(&silent, &[("FAIL", "QUIC", "not one datagram came back")]);
    let other = found(Settings { alpn: b"hq-interop", tcp: Tcp::Http1, ..Settings::default() });
    let lines = [
        ("ok", "TCP", "HTTP/1.1, status 200 OK"),
        ("warn", "Alt-Svc", "not sent"),
        ("FAIL", "QUIC", "somebody answers, but "),
    ];
    expect(&other, &lines);
    let alone = found(Settings::default());
    expect(&alone, &[("FAIL", "TCP", "connection refused"), ("ok", "QUIC", ", handshake in ")]);
}

#[test]
fn a_port_for_plain_http_is_seen() {
    let plain = found(Settings { tcp: Tcp::Plain, ..Settings::default() });
    let lines =
        [("FAIL", "TCP", "the server does not speak TLS on port"), ("→", "", "give the port for https")];
    expect(&plain, &lines);
    assert!(!plain.contains("firewall"), "{plain}");
}

#[test]
fn another_server_that_is_advertised_is_asked() {
    let other = TestServer::start();
    let place = format!("localhost:{}", other.address.port());
    let settings = Settings { alt_svc_at: Some(place.clone()), udp: Udp::Closed, ..Settings::all() };
    let server = TestServer::with(settings);
    let text = found_at(&server, &[&server, &other]);
    let lines = [
        ("ok", "Alt-Svc", &*format!("h3 at another server, {place}, for 30 d")),
        ("HTTP/3 at localhost", "", "where Alt-Svc sends clients"),
        ("ok", "QUIC", ", handshake in "),
    ];
    expect(&text, &lines);
    assert_eq!(
        text.matches("valid for 127.0.0.1, issued by").count(),
        2,
        "each has a certificate of its own: {text}"
    );
    assert!(!text.contains("not the one that TCP shows") && !text.contains("FAIL"), "{text}");
    // It speaks for others only if it can prove that it may.
    let text = found_at(&server, &[&server]);
    expect(&text, &[("FAIL", "trust", "in whose name it was issued, has not signed it")]);
    drop(other);
    let text = found_at(&server, &[&server]);
    expect(&text, &[("FAIL", "QUIC", "refused: "), ("→", "", "leave localhost out of Alt-Svc")]);
}
