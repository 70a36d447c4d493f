//! `godwit get --proxy`.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use crate::get_support::{Run, Settings, TestServer, contents};

/// A proxy for HTTPS, for as long as the test runs. What it is asked for comes out of the channel, all headers of one
/// request in one piece.
fn proxy() -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, asked) = channel();
    thread::spawn(move || {
        for client in listener.incoming() {
            let sender = sender.clone();
            thread::spawn(move || tunnel(client.unwrap(), &sender));
        }
    });
    (address, asked)
}

fn tunnel(mut client: TcpStream, asked: &Sender<String>) -> io::Result<()> {
    let mut from_client = BufReader::new(client.try_clone()?);
    let mut request = String::new();
    while from_client.read_line(&mut request)? > 2 {}
    let _ = asked.send(request.clone());
    let Ok(server) = TcpStream::connect(request.split(' ').nth(1).unwrap()) else {
        return client.write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n");
    };
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
    let (mut to_server, mut from_server) = (server.try_clone()?, server);
    thread::spawn(move || {
        let _ = io::copy(&mut from_client, &mut to_server);
        to_server.shutdown(Shutdown::Write)
    });
    io::copy(&mut from_server, &mut client)?;
    client.shutdown(Shutdown::Write)
}

#[test]
fn all_requests_go_through_one_tunnel() {
    let server = TestServer::with(Settings::all());
    let (proxy, asked) = proxy();
    let folder = tempfile::tempdir().unwrap();
    let mut command = server.get_auto();
    command.args(["-v", "--proxy", &format!("http://somebody:secret@{proxy}"), "--output-dir"]);
    command.arg(folder.path()).args(["/bytes/70000", "/bytes/5"].map(|path| server.url(path)));
    let run = Run::of(&mut command);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    for (name, length) in [("70000", 70_000), ("5", 5)] {
        assert_eq!(std::fs::read(folder.path().join(name)).unwrap(), contents(length));
    }
    assert!(run.stderr.contains("HTTP/2: HTTP/3 does not go through a proxy"), "{}", run.stderr);
    let request = asked.try_recv().unwrap();
    assert!(request.starts_with(&format!("CONNECT {} HTTP/1.1\r\n", server.address)), "{request}");
    assert!(
        request.to_lowercase().contains("\r\nproxy-authorization: basic c29tzwjvzhk6c2vjcmv0\r\n"),
        "{request}"
    );
    assert!(asked.try_recv().is_err(), "there was one tunnel");
    assert_eq!(server.connections(), 0, "and nothing over QUIC");
}

#[test]
fn the_environment_names_a_proxy_where_that_is_asked_for() {
    let server = TestServer::with(Settings::all());
    let (proxy, asked) = proxy();
    let url = server.url("/bytes/5");
    let through = |option: &[&str]| {
        let mut command = server.get_auto();
        command.env("HTTPS_PROXY", proxy.to_string()).args(option).arg(&url);
        Run::of(&mut command).expect_success();
        asked.try_recv().is_ok()
    };
    assert!(through(&["--env-proxy"]) && !through(&[]));
}

#[test]
fn a_proxy_that_does_not_do_is_named() {
    let (proxy, _asked) = proxy();
    let get = |proxy: &str, url: &str| {
        let mut command = crate::get_support::get();
        Run::of(command.args(["--no-alt-svc", "--proxy", proxy, url]))
    };
    let named = proxy.to_string();
    get(&named, "https://127.0.0.1:1/")
        .expect_failure(1, &[&named, "it makes no tunnel to 127.0.0.1:1", "502"]);
    get("127.0.0.1:1", "https://127.0.0.1:2/")
        .expect_failure(1, &["through the proxy 127.0.0.1:1", "refused"]);
}

#[test]
fn a_bad_proxy_is_wrong_usage() {
    let get = |arguments: &[&str], variable: Option<&str>| {
        let mut command = crate::get_support::get();
        command.args(["--no-alt-svc", "https://127.0.0.1:2/"]).args(arguments);
        command.envs(variable.map(|value| ("https_proxy", value)));
        Run::of(&mut command)
    };
    for url in ["socks5://x:1", "", "http://", "http://a b", "http://x:0"] {
        get(&["--proxy", url], None).expect_failure(2, &["godwit: --proxy: expected http://HOST:PORT"]);
    }
    for url in ["http://user:se/cret@x:1", "http://user:cret", "user:se://cret@x:1", "http://user:se@x:cret"]
    {
        let of_option = get(&["--proxy", url], None);
        let of_variable = get(&["--env-proxy"], Some(url));
        for run in [of_option, of_variable] {
            assert!(!run.stderr.contains("cret"), "{url}: {}", run.stderr);
            run.expect_failure(2, &["expected http://"]);
        }
    }
    get(&["--env-proxy"], Some("socks5://x:1"))
        .expect_failure(2, &["https_proxy in the environment: expected http://HOST:PORT, got socks5://"]);
}

#[cfg(unix)]
#[test]
fn a_proxy_that_is_no_text_is_not_passed_by() {
    use std::os::unix::ffi::OsStrExt;
    let server = TestServer::with(Settings::all());
    let mut command = server.get_auto();
    command.env("HTTPS_PROXY", std::ffi::OsStr::from_bytes(b"http://user:\xff@127.0.0.1:1"));
    Run::of(command.arg("--env-proxy").arg(server.url("/bytes/5"))).expect_failure(
        2,
        &["HTTPS_PROXY in the environment: expected http://HOST:PORT, got bytes that are no text"],
    );
}
