//! `godwit get` with HTTP/1.1, HTTP/2, and the choice between them and HTTP/3.

use std::fs;

use crate::get_support::{Run, Settings, Tcp, TestServer, Udp, contents, entries, sha256};

/// The lines of `--verbose`, without the program's name.
fn told(run: &Run) -> Vec<&str> {
    run.stderr.lines().map(|line| line.strip_prefix("godwit: ").unwrap()).collect()
}

#[track_caller]
fn expect_told(run: &Run, part: &str) {
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(told(run).iter().any(|line| line.contains(part)), "expected {part:?} in {}", run.stderr);
}

#[test]
fn every_protocol_carries_bodies_both_ways() {
    let server = TestServer::with(Settings::all());
    let data = contents(3_000_001);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    fs::write(&path, &data).unwrap();
    for (option, first_line) in
        [("--http1.1", "HTTP/1.1 200 OK\r\n"), ("--http2", "HTTP/2 200\r\n"), ("--http3", "HTTP/3 200\r\n")]
    {
        let get = || server.get_by(option);
        for target in ["/bytes/0", "/bytes/70000", "/chunked/1000000"] {
            let length = target.rsplit('/').next().unwrap().parse().unwrap();
            let run = Run::of(get().arg(server.url(target))).expect_success();
            assert_eq!(sha256(&run.stdout), sha256(&contents(length)), "{option} {target}");
        }
        let run = Run::of(get().args(["-I", &server.url("/bytes/3")])).expect_success();
        assert!(run.text().starts_with(first_line), "{}", run.text());
        let file = format!("@{}", path.display());
        for run in [
            Run::of(get().args([&server.url("/echo"), "-d", &file])),
            Run::with_input(get().args([&server.url("/echo"), "-d", "@-"]), &data),
        ] {
            let run = run.expect_success();
            assert!(run.text().starts_with("POST "), "{option}: {}", run.text());
            assert!(
                run.text().ends_with(&format!("\n3000001 {}\n", sha256(&data))),
                "{option}: {}",
                run.text()
            );
        }
        let run = Run::of(get().args(["-H", "Host: other.example", &server.url("/echo")])).expect_success();
        let echoed = if option == "--http1.1" { "GET /echo " } else { "GET https://other.example/echo " };
        assert!(run.text().starts_with(echoed), "{}", run.text());
        let status = Run::of(get().arg(server.url("/status/404")));
        assert_eq!((status.code, status.text()), (Some(1), "page of 404\n"));
    }
}

#[test]
fn without_encryption_there_is_http1_and_on_demand_http2() {
    let server = TestServer::with(Settings { tcp: Tcp::Plain, udp: Udp::Closed, ..Settings::default() });
    let url = format!("http://{}/bytes/70000", server.address);
    for (option, name) in [("--auto", "HTTP/1.1"), ("--http1.1", "HTTP/1.1"), ("--http2", "HTTP/2")] {
        let run = Run::of(server.get_by(option).args(["--no-alt-svc", "-v", &url]));
        expect_told(&run, name);
        assert_eq!(run.stdout, contents(70_000));
    }
    let run = Run::of(server.get_by("--auto").arg(server.url("/")));
    run.expect_failure(1, &["does not speak TLS on port", "http://"]);
}

#[test]
fn connections_over_tcp_are_shared_too() {
    for (option, most) in [("--http2", 1), ("--http1.1", 6)] {
        let server = TestServer::with(Settings::all());
        let folder = tempfile::tempdir().unwrap();
        let urls = (0..300).map(|number| server.url(&format!("/file/{number}")));
        let run = Run::of(server.get_by(option).arg("--output-dir").arg(folder.path()).args(urls));
        run.expect_success();
        assert_eq!(entries(folder.path()).len(), 300);
        assert!(server.seen.tcp() <= most, "{option}: {} connections", server.seen.tcp());
    }
}

#[test]
fn errors_over_tcp_are_explained() {
    let server = TestServer::with(Settings { tcp: Tcp::Http1, ..Settings::default() });
    let url = server.url("/bytes/1");
    let run = Run::of(server.get_by("--http2").arg(&url));
    run.expect_failure(1, &["HTTP/2"]);
    assert_eq!(Run::of(server.get_by("--auto").arg(&url)).expect_success().stdout, contents(1));
    let run = Run::of(crate::get_support::get().arg(&url));
    run.expect_failure(1, &["is from \"CN=Authority of the tests\", which is not trusted", "--cacert FILE"]);
    assert_eq!(Run::of(crate::get_support::get().args(["-k", &url])).expect_success().stdout, contents(1));
    let plain = format!("http://{}/bytes/1", server.address);
    let run = Run::of(crate::get_support::get().arg(&plain));
    run.expect_failure(1, &[&plain]);

    let server = TestServer::with(Settings { names: &["a.example"], ..Settings::all() });
    let run = Run::of(server.get_by("--http2").arg(server.url("/bytes/1")));
    run.expect_failure(1, &["is for a.example, not for 127.0.0.1"]);

    let server = TestServer::with(Settings::all());
    let folder = tempfile::tempdir().unwrap();
    for option in ["--http2", "--http1.1"] {
        for path in ["/broken", "/short", "/cut"] {
            let run = Run::of(server.get_by(option).current_dir(&folder).args(["-O", &server.url(path)]));
            let said = run.stderr.replace(&server.url(path), "");
            // What a library says to programmers is no help.
            assert!(!said.contains("://"), "{option} {path}: {said}");
            run.expect_failure(1, &[path, ": "]);
            assert!(entries(folder.path()).is_empty(), "{option} {path}");
        }
    }
    let run = Run::of(crate::get_support::get().args(["--alt-svc", "/etc/passwd", &server.url("/")]));
    run.expect_failure(1, &["memory of servers /etc/passwd: it is something else"]);
}

#[test]
fn what_a_server_offers_is_used_by_the_next_run() {
    let server = TestServer::with(Settings::all());
    let url = server.url("/bytes/9");
    let first = Run::of(server.get_auto().args(["-v", &url]));
    expect_told(&first, "HTTP/2: the server is not known to offer HTTP/3");
    assert_eq!((first.stdout, server.seen.tcp(), server.connections()), (contents(9).to_vec(), 1, 0));

    let second = Run::of(server.get_auto().args(["-v", &url]));
    expect_told(&second, "HTTP/3: the server has offered HTTP/3, QUIC ");
    assert_eq!((second.stdout, server.connections()), (contents(9).to_vec(), 1));

    let other = Run::of(server.get_by("--auto").args(["--no-alt-svc", "-v", &url]));
    expect_told(&other, "HTTP/2: ");
}

#[test]
fn requests_move_to_http3_within_a_run() {
    let server = TestServer::with(Settings::all());
    let folder = tempfile::tempdir().unwrap();
    let files = (0..30).map(|number| server.url(&format!("/file/{number}")));
    let run = Run::of(
        server
            .get_auto()
            .args(["-v", "--parallel", "1", "--output-dir"])
            .arg(folder.path())
            .args([server.url("/bytes/1"), server.url("/until-quic")])
            .args(files),
    );
    expect_told(&run, "/bytes/1: HTTP/2: ");
    expect_told(&run, "/until-quic: HTTP/2, on a connection that was there");
    // It was made in the background, and is another than that.
    expect_told(&run, ": HTTP/3: QUIC, begun in the background, was there in ");
    expect_told(&run, "/file/29: HTTP/3, on a connection that was there");
    assert_eq!((server.seen.tcp(), server.seen.quic(), entries(folder.path()).len()), (1, 1, 32));
}

#[test]
fn silence_over_udp_is_waited_for_once_and_remembered() {
    let server = TestServer::with(Settings { udp: Udp::Silent, ..Settings::all() });
    let wait = server.url("/wait/200");
    let run = || {
        let run = Run::of(server.get_auto().args(["-v", &wait]));
        assert_eq!((run.code, run.text()), (Some(0), "waited\n"), "{}", run.stderr);
        run
    };
    expect_told(&run(), "HTTP/2: the server is not known to offer HTTP/3");
    assert_eq!(server.datagrams(), 0);

    // QUIC goes first, and TCP does not wait for its end: that would take ten seconds.
    expect_told(&run(), "HTTP/2: the server has offered HTTP/3, but QUIC had not answered in ");
    assert!(server.datagrams() > 0);

    // Both at once.
    let third = run();
    expect_told(&third, "QUIC and TCP began together, but QUIC had not answered in ");
    expect_told(&third, "TCP, begun after 0.00ms, was there");
    assert!(server.datagrams() > 0);

    // Not at all, for a while.
    expect_told(&run(), "HTTP/2: UDP has been silent on this network since ");
    assert_eq!((server.datagrams(), server.seen.tcp()), (0, 4));

    // That while is over.
    let memory = fs::read_to_string(server.memory()).unwrap();
    let mut memory: serde_json::Value = serde_json::from_str(&memory).unwrap();
    for kind in ["origins", "places"] {
        for entry in memory[kind].as_object_mut().unwrap().values_mut() {
            let belief = if kind == "origins" { &mut entry["belief"] } else { entry };
            belief["latest"] = (belief["latest"].as_i64().unwrap() - 31).into();
        }
    }
    fs::write(server.memory(), memory.to_string()).unwrap();
    expect_told(&run(), "QUIC and TCP began together");
    assert!(server.datagrams() > 0);
}

#[test]
fn a_certificate_that_does_not_do_is_not_called_silence() {
    // Where HTTP/3 is said to be there is a server whose certificate is of another authority.
    let other = TestServer::start();
    let alt_svc_at = Some(format!(":{}", other.address.port()));
    let server = TestServer::with(Settings { alt_svc_at, udp: Udp::Closed, ..Settings::all() });
    let url = server.url("/wait/200");
    let run = || Run::of(server.get_auto().args(["-v", &url]));
    expect_told(&run(), "HTTP/2: the server is not known to offer HTTP/3");
    // However soon QUIC comes to its end beside TCP.
    loop {
        let run = run();
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(!run.stderr.contains("silent"), "{}", run.stderr);
        if run.stderr.contains("HTTP/2: HTTP/3 of this server has not worked since ") {
            break;
        }
    }
}

#[test]
fn a_server_whose_udp_port_is_closed_is_reached_over_tcp() {
    let server = TestServer::with(Settings { udp: Udp::Closed, ..Settings::all() });
    for _ in 0..3 {
        let run = Run::of(server.get_auto().arg(server.url("/bytes/9"))).expect_success();
        assert_eq!(run.stdout, contents(9));
    }
    assert_eq!(server.seen.tcp(), 3);
}

#[test]
fn redirects_are_followed_on_demand() {
    let server = TestServer::with(Settings::all());
    for option in ["--http1.1", "--http2", "--http3"] {
        let run = Run::of(server.get_by(option).args(["-L", &server.url("/redirect/3")])).expect_success();
        assert_eq!(run.text(), "file 0\n");
    }
    let run = Run::of(server.get().args(["-L", "--max-redirs", "2", &server.url("/redirect/2")]));
    run.expect_failure(1, &["redirected more than 2 times"]);
    let run = Run::of(server.get().args(["-L", &server.url("/to?http://127.0.0.1:1/")]));
    run.expect_failure(1, &["not encrypted"]);
    let run = Run::of(server.get().args(["-L", &server.url("/to?mailto:x")]));
    run.expect_failure(1, &["redirects to mailto:x, which cannot be fetched"]);

    let folder = tempfile::tempdir().unwrap();
    let run = Run::of(server.get().current_dir(&folder).args(["-L", "-O", &server.url("/redirect/1")]));
    run.expect_success();
    assert_eq!(fs::read_to_string(folder.path().join("1")).unwrap(), "file 0\n");
}

#[test]
fn redirects_keep_secrets_and_change_methods() {
    let server = TestServer::with(Settings::all());
    let run = |status: u16| {
        let url = server.url(&format!("/away/{status}"));
        let secret = ["-H", "Authorization: secret", "-H", "X-Test: kept"];
        Run::of(server.get_by("--http2").args(["-L", "-d", "a=b", &url]).args(secret)).expect_success()
    };
    for (status, head) in [(302, "GET https://localhost:"), (307, "POST https://localhost:")] {
        let run = run(status);
        assert!(run.text().starts_with(head), "{}", run.text());
        assert!(run.text().contains(" x-test=kept authorization=- "), "{}", run.text());
        let body = if status == 307 { "\n3 " } else { "content-type=- content-length=-\n0 " };
        assert!(run.text().contains(body), "{}", run.text());
    }
}

#[test]
fn what_was_broken_off_is_continued() {
    for option in ["--http1.1", "--http2", "--http3"] {
        let server = TestServer::with(Settings::all());
        let folder = tempfile::tempdir().unwrap();
        let get = |path: &str| {
            Run::of(server.get_by(option).current_dir(&folder).args([
                "-C",
                "-q",
                "-o",
                "x",
                &server.url(path),
            ]))
        };
        get("/flaky/400000").expect_failure(1, &["/flaky/400000"]);
        assert_eq!(entries(folder.path()), [".x.godwit.note", ".x.godwit.part"]);
        let got = fs::metadata(folder.path().join(".x.godwit.part")).unwrap().len();
        assert!(got > 0 && got <= 200_000, "{got}");
        get("/flaky/400000").expect_success();
        assert_eq!(fs::read(folder.path().join("x")).unwrap(), contents(400_000));
        assert_eq!(entries(folder.path()), ["x"]);
        assert_eq!(*server.seen.ranges.lock().unwrap(), [format!("bytes={got}-")]);
        // Nothing is missing.
        get("/flaky/400000").expect_success();
        assert_eq!(server.seen.ranges.lock().unwrap().last().unwrap(), "bytes=400000-");
        assert_eq!(fs::read(folder.path().join("x")).unwrap(), contents(400_000));
    }
}

#[test]
fn what_has_changed_is_fetched_anew() {
    let server = TestServer::with(Settings::all());
    let folder = tempfile::tempdir().unwrap();
    let get = |url: &str| {
        Run::of(server.get_by("--http2").current_dir(&folder).args(["-C", "-q", "-o", "x", &server.url(url)]))
    };
    // Its tag changes with each request for a range.
    get("/vanished/400000").expect_failure(1, &[]);
    get("/vanished/400000").expect_success();
    assert_eq!(fs::read(folder.path().join("x")).unwrap(), contents(400_000));
    assert_eq!(entries(folder.path()), ["x"]);
    // A server without ranges, or without tags, is no obstacle.
    get("/bytes/5000").expect_success();
    assert_eq!(fs::read(folder.path().join("x")).unwrap(), contents(5000));
}

#[test]
fn repeating_gives_percentiles_by_protocol() {
    let server = TestServer::with(Settings::all());
    let run = Run::of(server.get_by("--http3").args([
        "--http2",
        "--http1.1",
        "--repeat",
        "20",
        "--fresh",
        &server.url("/bytes/100"),
    ]));
    let run = run.expect_success();
    let text = run.text();
    assert!(text.starts_with("  ") && text.lines().next().unwrap().contains("P50"), "{text}");
    for name in ["HTTP/1.1", "HTTP/2", "HTTP/3"] {
        for what in ["connect", "first byte", "total"] {
            let line = text.lines().find(|line| line.starts_with(&format!("{name}, {what} ")));
            let words: Vec<&str> =
                line.unwrap_or_else(|| panic!("{name} {what}: {text}")).split_whitespace().collect();
            assert!(words.contains(&"20"), "{text}");
        }
    }
    assert_eq!((server.seen.tcp(), server.seen.quic()), (40, 20));

    let run = Run::of(server.get_by("--http2").args(["--repeat", "7", &server.url("/status/404")]));
    assert_eq!(run.code, Some(1));
    assert!(run.text().contains("HTTP/2, failed"), "{}", run.text());
    assert_eq!(run.stderr.lines().count(), 6, "{}", run.stderr);
    assert_eq!(server.seen.tcp(), 41);
}
