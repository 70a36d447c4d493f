//! `godwit get` when something is wrong: one line that says what, and an exit code.

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;

use crate::get_support::{Run, Settings, TestServer, entries, get};

#[test]
fn wrong_usage_ends_with_code_2() {
    let cases: &[(&[&str], &str)] = &[
        (&["http://a.example/", "--http3"], "godwit: http://a.example/: HTTP/3 is always encrypted"),
        (&["https://a.example/", "--http2", "--http3"], "exclude each other"),
        (&["a.example"], "write https://a.example"),
        (&["https://user:pw@a.example/"], "is not sent; give it with -H 'Authorization: …'"),
        (&["https://a.example:x/"], "expected HOST:PORT"),
        (&["https://a.example/", "https://b.example/"], "give -O"),
        (&["https://a.example/", "-H", "no colon"], "expected 'NAME: VALUE'"),
    ];
    for (arguments, part) in cases {
        Run::of(get().args(*arguments)).expect_failure(2, &[part]);
    }
    for arguments in
        [&[][..], &["https://a.example/", "-4", "-6"], &["https://a.example/", "--parallel", "0"]]
    {
        assert_eq!(Run::of(get().args(arguments)).code, Some(2), "{arguments:?}");
    }
}

#[test]
fn a_memory_that_is_something_else_names_its_option() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x");
    fs::write(&file, "garbage").unwrap();
    for path in [folder.path(), &file] {
        let path = path.to_str().unwrap();
        Run::of(get().args(["--alt-svc", path, "https://127.0.0.1:1/"]))
            .expect_failure(1, &["memory of servers", path, "; --alt-svc takes a file that godwit wrote"]);
    }
}

#[test]
fn a_status_of_400_or_more_is_a_failure() {
    let server = TestServer::start();
    let folder = tempfile::tempdir().unwrap();
    for (status, words) in
        [(404, "404 Not Found"), (400, "400 Bad Request"), (503, "503 Service Unavailable")]
    {
        let url = server.url(&format!("/status/{status}"));
        let parts = [format!("godwit: {url}: "), format!("the server answered {words}")];
        let parts = parts.each_ref().map(String::as_str);
        Run::of(server.get().current_dir(&folder).args(["-O", &url])).expect_failure(1, &parts);
        assert!(entries(folder.path()).is_empty());
        // Where somebody reads along, the page says more.
        let run = Run::of(server.get().arg(&url)).expect_failure(1, &parts);
        assert_eq!(run.text(), format!("page of {status}\n"));
    }
}

#[test]
fn one_failure_does_not_keep_the_others() {
    let server = TestServer::start();
    let folder = tempfile::tempdir().unwrap();
    let urls = ["/bytes/10", "/status/404", "/bytes/20"].map(|path| server.url(path));
    let run = Run::of(server.get().arg("--output-dir").arg(folder.path()).args(&urls));
    assert_eq!(run.code, Some(1));
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{}", run.stderr);
    assert!(lines[0].contains("/status/404: the server answered 404"), "{}", lines[0]);
    assert_eq!(lines[1], "godwit: 1 of 3 URLs failed");
    assert_eq!(entries(folder.path()), ["10", "20"]);
}

#[test]
fn a_redirect_is_no_file() {
    let server = TestServer::start();
    let folder = tempfile::tempdir().unwrap();
    let url = server.url("/status/301");
    let part = "the server answered 301 Moved Permanently; fetch /elsewhere instead";
    Run::of(server.get().current_dir(&folder).args(["-O", &url])).expect_failure(1, &[part]);
    assert!(entries(folder.path()).is_empty());
    let run = Run::of(server.get().arg(&url)).expect_failure(0, &[part]);
    assert_eq!(run.text(), "page of 301\n");
    Run::of(server.get().args(["-q", &url])).expect_success();
}

#[test]
fn a_body_that_breaks_off_leaves_no_file() {
    let server = TestServer::start();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kept");
    fs::write(&path, "as it was").unwrap();
    // A reset may overtake what was sent before it: how far it came is left open.
    for path_of_url in ["/broken", "/short"] {
        let run = Run::of(server.get().arg("-o").arg(&path).arg(server.url(path_of_url)));
        run.expect_failure(1, &[&format!("{path_of_url}: "), "H3_"]);
        assert_eq!(entries(folder.path()), ["kept"]);
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "as it was");
}

#[test]
fn a_connection_cut_without_a_farewell_is_explained() {
    let server = TestServer::with(Settings::all());
    let folder = tempfile::tempdir().unwrap();
    let run = Run::of(server.get_by("--http1.1").current_dir(&folder).args(["-O", &server.url("/broken")]));
    run.expect_failure(
        1,
        &[
            "broken off after ",
            " of 200000 bytes: the server closed the connection before its answer was complete",
        ],
    );
}

#[test]
fn time_limits_hold() {
    let server = TestServer::start();
    let folder = tempfile::tempdir().unwrap();
    let run =
        Run::of(server.get().current_dir(&folder).args(["-O", "--max-time", "0.5", &server.url("/stuck")]));
    run.expect_failure(1, &["/stuck: not finished in 0.5 s; give it more time with --max-time"]);
    assert!(entries(folder.path()).is_empty());
}

#[test]
fn unreachable_servers_are_told_apart() {
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = silent.local_addr().unwrap().port();
    let run =
        Run::of(get().args(["--http3", "--connect-timeout", "0.5", &format!("https://127.0.0.1:{port}/")]));
    run.expect_failure(
        1,
        &["no answer over UDP in 0.5 s", "is QUIC blocked, or does the server speak HTTP/3 at all?"],
    );

    drop(silent);
    let url = format!("https://127.0.0.1:{port}/");
    let run = Run::of(get().args(["--http3", &url]));
    run.expect_failure(1, &["connection refused: nobody listens on UDP port", &port.to_string()]);
    let run = Run::of(get().arg(&url));
    run.expect_failure(1, &["connection refused: nobody listens on TCP port", "--http3 tries QUIC alone"]);

    let run = Run::of(get().arg("https://nobody.invalid/x"));
    run.expect_failure(1, &["godwit: https://nobody.invalid/x: ", "nobody.invalid", "DNS"]);

    let run = Run::of(get().args(["-6", "https://127.0.0.1/"]));
    run.expect_failure(1, &["127.0.0.1 has no IPv6 address; leave out -6"]);
}

#[test]
fn an_unreachable_server_is_told_once() {
    let closed = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let urls: Vec<String> = (0..50).map(|n| format!("https://{closed}/{n}")).collect();
    let run = Run::of(get().arg("--http3").arg("--output-dir").arg(folder.path()).args(&urls));
    assert_eq!(run.code, Some(1));
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{}", run.stderr);
    assert!(lines[0].contains("connection refused"), "{}", lines[0]);
    assert_eq!(lines[1], format!("godwit: https://{closed}: 49 more URLs failed for the same reason"));
    assert_eq!(lines[2], "godwit: 50 of 50 URLs failed");
    assert!(entries(folder.path()).is_empty());
}

#[test]
fn certificates_that_do_not_do_are_explained() {
    let server = TestServer::start();
    let run = Run::of(get().args(["--http3", &server.url("/bytes/1")]));
    run.expect_failure(1, &["is from \"CN=Authority of the tests\", which is not trusted", "--cacert FILE"]);

    let server = TestServer::with(Settings { names: &["a.example"], ..Settings::default() });
    let run = Run::of(server.get().arg(server.url("/bytes/1")));
    run.expect_failure(1, &["is for a.example, not for 127.0.0.1"]);

    let server = TestServer::with(Settings { expired: true, ..Settings::default() });
    let run = Run::of(server.get().arg(server.url("/bytes/1")));
    run.expect_failure(1, &["expired on 2020-09-13; its operator has to renew it"]);

    let missing = Run::of(get().args(["--cacert", "/no/such.pem", "https://127.0.0.1/"]));
    missing.expect_failure(1, &["/no/such.pem: no such file or directory"]);
}

#[test]
fn the_authority_of_this_machine_is_pointed_to() {
    let server = TestServer::start();
    let data = tempfile::tempdir().unwrap();
    fs::create_dir(data.path().join("godwit")).unwrap();
    let file = data.path().join("godwit/ca.pem");
    fs::copy(&server.authority, &file).unwrap();
    let run = Run::of(get().env("XDG_DATA_HOME", data.path()).args(["--http3", &server.url("/bytes/1")]));
    if cfg!(target_os = "linux") {
        run.expect_failure(1, &[&format!("add --cacert {}", file.display())]);
    }
}

#[test]
fn the_authority_of_this_machine_is_not_pointed_to_where_it_is_of_no_help() {
    // Its certificate is of another authority, whose own the server does not send: so it looks where a chain is incomplete.
    let server = TestServer::start();
    let data = tempfile::tempdir().unwrap();
    fs::create_dir(data.path().join("godwit")).unwrap();
    let other = rcgen::generate_simple_self_signed(["another authority".to_owned()]).unwrap();
    fs::write(data.path().join("godwit/ca.pem"), other.cert.pem()).unwrap();
    let run = Run::of(get().env("XDG_DATA_HOME", data.path()).args(["--http3", &server.url("/bytes/1")]));
    assert!(!run.stderr.contains("ca.pem"), "{}", run.stderr);
    run.expect_failure(
        1,
        &["--cacert FILE; if it is not known because it is one in between, the server has to send"],
    );
}

#[test]
fn a_server_without_http3_is_noticed() {
    let server = TestServer::with(Settings { alpn: b"other", ..Settings::default() });
    let run = Run::of(server.get().arg(server.url("/")));
    run.expect_failure(1, &["answers QUIC on port", "does not speak HTTP/3 there (expected ALPN h3)"]);
}

#[test]
fn places_that_cannot_be_written_are_named() {
    let server = TestServer::start();
    let url = server.url("/bytes/100000");
    if Path::new("/dev/full").exists() {
        let run = Run::of(server.get().args(["-o", "/dev/full", &url]));
        run.expect_failure(1, &[&url, "no room left for /dev/full after 0 B"]);
        assert!(Path::new("/dev/full").exists());
    }
    let folder = tempfile::tempdir().unwrap();
    let run = Run::of(server.get().current_dir(&folder).args(["--output-dir", "missing", &url]));
    run.expect_failure(1, &["the folder missing does not exist; make it with `mkdir -p missing`"]);
    let run = Run::of(server.get().current_dir(&folder).args(["-o", "missing/x", &url]));
    run.expect_failure(1, &["the folder missing does not exist"]);
    let run = Run::of(server.get().current_dir(&folder).args(["-o", ".", &url]));
    run.expect_failure(1, &["is a directory"]);
    let run = Run::of(server.get().args(["-d", "@/no/such", &server.url("/echo")]));
    run.expect_failure(1, &["cannot read /no/such: no such file or directory"]);
    assert!(entries(folder.path()).is_empty());
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let server = TestServer::start();
    let mut child = server.get().arg(server.url("/bytes/10000000")).spawn().unwrap();
    drop(child.stdout.take());
    Run::from(child.wait_with_output().unwrap())
        .expect_failure(1, &["the standard output was closed by the program that reads it"]);
}
