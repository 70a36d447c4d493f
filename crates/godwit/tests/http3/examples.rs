//! The examples, as the programs that they are.

use crate::programs::{Identity, Server, example, output_of};
use std::process::Command;

#[test]
fn a_page_is_fetched() {
    let identity = Identity::write();
    let mut server = Command::new(example("http3_server"));
    let server = Server::start(server.args([&identity.certificate, &identity.key]).arg("127.0.0.1:0"));
    let mut client = Command::new(example("http3_client"));
    let output = output_of(client.arg(&identity.certificate).args([&server.addr, "/some/page"]));
    assert_eq!(output, "200 OK\nYou asked for /some/page.\n");
}

#[test]
fn a_server_of_sessions_has_ordinary_answers_too() {
    let identity = Identity::write();
    let mut server = Command::new(example("webtransport_echo"));
    let server = Server::start(server.args([&identity.certificate, &identity.key]).arg("127.0.0.1:0"));
    let mut client = Command::new(example("http3_client"));
    let output = output_of(client.arg(&identity.certificate).args([&server.addr, "/echo"]));
    assert_eq!(output, "404 Not Found\nno session at /echo\n");
}

#[test]
fn a_page_is_fetched_from_another_server() {
    use std::io::{Read, Write};
    let identity = Identity::write();
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
    let server =
        Server::start(server.args([&identity.certificate, &identity.key]).args(["127.0.0.1:0", &url]));
    for (path, expected) in [("/some/page", "200 OK\nfrom behind\n"), ("/healthz", "200 OK\nok\n")] {
        let mut client = Command::new(example("http3_client"));
        assert_eq!(output_of(client.arg(&identity.certificate).args([&server.addr, path])), expected);
    }
}
