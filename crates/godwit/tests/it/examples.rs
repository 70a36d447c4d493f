//! The examples, as the programs that they are.

use crate::programs::{Identity, Server, example, output_of};
use std::process::Command;

fn greeting_on(addr: &str) {
    let identity = Identity::write();
    let mut server = Command::new(example("hello_server"));
    let server = Server::start(server.args([&identity.certificate, &identity.key]).arg(addr));
    let mut client = Command::new(example("hello_client"));
    let output = output_of(client.arg(&identity.certificate).args([&server.addr, "Ferdinand"]));
    assert_eq!(output.trim(), "hello, Ferdinand");
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
    let identity = Identity::write();
    let mut server = Command::new(example("epoll_echo"));
    server.arg("serve").args([&identity.certificate, &identity.key]).args(["127.0.0.1:0", "1"]);
    let mut server = Server::start(&mut server);
    let mut client = Command::new(example("epoll_echo"));
    client.arg("ask").arg(&identity.certificate).args([&server.addr, &STREAMS.to_string()]);
    assert_eq!(output_of(&mut client).trim(), format!("{STREAMS} messages came back"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut server.output, &mut line).unwrap();
    assert_eq!(line.trim_end(), format!("{STREAMS} streams echoed"));
    assert!(server.process.0.wait().unwrap().success());
}

#[test]
fn programs_without_arguments_say_how_they_are_called() {
    for name in ["hello_server", "hello_client", "reload"] {
        let output = Command::new(example(name)).output().unwrap();
        assert!(!output.status.success());
        assert!(String::from_utf8_lossy(&output.stderr).contains("usage: "));
    }
}
