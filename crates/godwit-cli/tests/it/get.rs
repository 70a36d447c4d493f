//! `godwit get --http3`: what it fetches, sends and writes.

use std::fs;

use crate::get_support::{Background, Run, Settings, TestServer, contents, entries, sha256};

#[test]
fn a_body_goes_to_the_standard_output() {
    let server = TestServer::start();
    for length in [0, 1, 1200, 65_536, 10_000_000] {
        for kind in ["bytes", "chunked"] {
            let run = Run::of(server.get().arg(server.url(&format!("/{kind}/{length}")))).expect_success();
            assert_eq!(run.stdout.len(), length);
            assert_eq!(sha256(&run.stdout), sha256(&contents(length)), "{kind} {length}");
        }
    }
}

#[test]
fn files_are_named_as_asked() {
    let server = TestServer::start();
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();

    Run::of(server.get().current_dir(&folder).args(["-o", "named", &server.url("/bytes/70000")]))
        .expect_success();
    assert_eq!(fs::read(folder.path().join("named")).unwrap(), contents(70_000));

    let urls =
        ["/bytes/5", "/chunked/5", "/chunked/6?x=/../y", "/%2e%2e%2f/bytes/7"].map(|path| server.url(path));
    let run = Run::of(server.get().current_dir(&folder).arg("-O").args(&urls[..3])).expect_success();
    assert!(run.stdout.is_empty());
    assert_eq!(entries(folder.path()), ["5", "5.1", "6", "inner", "named"]);
    assert_eq!(fs::read(folder.path().join("5.1")).unwrap(), contents(5));

    Run::of(server.get().current_dir(&folder).args(["--output-dir", "inner"]).args(&urls[..1]))
        .expect_success();
    assert_eq!(entries(&inner), ["5"]);
}

#[test]
fn a_thousand_files_come_over_one_connection() {
    let server = TestServer::start();
    let folder = tempfile::tempdir().unwrap();
    let list: String = (0..1000).map(|n| server.url(&format!("/file/{n}")) + "\n").collect();
    let run = Run::with_input(
        server.get().args(["--url-file", "-", "--output-dir"]).arg(folder.path()),
        list.as_bytes(),
    );
    run.expect_success();
    assert_eq!(entries(folder.path()).len(), 1000);
    for n in 0..1000 {
        let text = fs::read_to_string(folder.path().join(n.to_string())).unwrap();
        assert_eq!(text, format!("file {n}\n"));
    }
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_server_that_shuts_connections_down_is_connected_to_again() {
    let server = TestServer::with(Settings { requests_per_connection: 5, ..Settings::default() });
    let folder = tempfile::tempdir().unwrap();
    let urls = (0..23).map(|n| server.url(&format!("/file/{n}")));
    let run = Run::of(server.get().args(["--parallel", "3", "--output-dir"]).arg(folder.path()).args(urls));
    run.expect_success();
    assert_eq!(entries(folder.path()).len(), 23);
    assert!(server.connections() > 1);
}

#[test]
fn data_is_sent_from_a_string_a_file_and_the_standard_input() {
    let server = TestServer::start();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let data = contents(3_000_001);
    fs::write(&path, &data).unwrap();
    let url = server.url("/echo");
    let summary = |data: &[u8]| format!("{} {}", data.len(), sha256(data));

    let run = Run::of(server.get().args([&url, "-d", "a=b&c", "-H", "X-Test: one"])).expect_success();
    let (head, body) = run.text().split_once('\n').unwrap();
    assert_eq!(body.trim_end(), summary(b"a=b&c"));
    assert!(head.starts_with(&format!("POST {url} x-test=one")), "{head}");
    assert!(head.ends_with("content-type=application/x-www-form-urlencoded content-length=5"), "{head}");

    let run = Run::of(server.get().args([&url, "-X", "PUT", "-d"]).arg(format!("@{}", path.display())))
        .expect_success();
    let (head, body) = run.text().split_once('\n').unwrap();
    assert_eq!(body.trim_end(), summary(&data));
    assert!(head.starts_with("PUT "), "{head}");
    assert!(head.ends_with("content-type=application/octet-stream content-length=3000001"), "{head}");

    let run = Run::with_input(server.get().args([&url, "-d", "@-", "-H", "Content-Type: text/x"]), &data);
    let run = run.expect_success();
    let (head, body) = run.text().split_once('\n').unwrap();
    assert_eq!(body.trim_end(), summary(&data));
    assert!(head.ends_with("content-type=text/x content-length=-"), "{head}");

    let run = Run::of(server.get().args([&url, "-d", ""])).expect_success();
    assert!(run.text().ends_with(&format!("content-length=0\n{}\n", summary(b""))), "{}", run.text());
}

#[test]
fn a_host_header_becomes_the_authority() {
    let server = TestServer::start();
    let run =
        Run::of(server.get().args([&server.url("/echo"), "-H", "Host: other.example"])).expect_success();
    assert!(run.text().starts_with("GET https://other.example/echo "), "{}", run.text());
}

#[test]
fn heads_are_printed_on_demand() {
    let server = TestServer::start();
    let run = Run::of(server.get().args(["-i", &server.url("/bytes/3")])).expect_success();
    let end = run.stdout.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    assert!(run.stdout.starts_with(b"HTTP/3 200\r\n"));
    assert!(String::from_utf8_lossy(&run.stdout[..end]).contains("\r\ncontent-length: 3"));
    assert_eq!(run.stdout[end + 4..], contents(3));

    let run = Run::of(server.get().args(["-I", &server.url("/bytes/3")])).expect_success();
    assert!(run.text().starts_with("HTTP/3 200\r\n") && run.text().ends_with("\r\n\r\n"), "{}", run.text());
}

#[test]
fn timings_are_told() {
    let server = TestServer::start();
    let folder = tempfile::tempdir().unwrap();
    let urls = [server.url("/bytes/1000"), server.url("/bytes/2000")];
    let run = Run::of(
        server.get().args(["--timing", "--parallel", "1", "--output-dir"]).arg(folder.path()).args(&urls),
    );
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{}", run.stderr);
    for part in ["dns ", "handshake ", "first byte ", "total ", "1 KiB"] {
        assert!(lines[0].contains(part), "{}", lines[0]);
    }
    assert!(lines[1].contains("/bytes/2000: no new connection, first byte "), "{}", lines[1]);
}

#[test]
fn the_second_address_is_tried_when_the_first_does_not_answer() {
    let server = TestServer::start();
    let url = format!("https://localhost:{}/bytes/9", server.address.port());
    assert_eq!(Run::of(server.get().arg(&url)).expect_success().stdout, contents(9));
    assert_eq!(Run::of(server.get().args(["-4", &url])).expect_success().stdout, contents(9));
}

#[test]
fn insecure_skips_the_check() {
    let server = TestServer::start();
    let run = Run::of(crate::get_support::get().args(["--http3", "--insecure", &server.url("/bytes/9")]))
        .expect_success();
    assert_eq!(run.stdout, contents(9));
}

#[cfg(unix)]
#[test]
fn an_interrupted_transfer_leaves_no_file() {
    let server = TestServer::start();
    let folder = tempfile::tempdir().unwrap();
    let running = Background::start(server.get().current_dir(&folder).args(["-O", &server.url("/stuck")]));
    while entries(folder.path()).is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let names = entries(folder.path());
    assert!(names.len() == 1 && names[0].starts_with(".stuck.godwit-"), "{names:?}");
    // Until the request has come the program may not be listening for signals yet.
    while server.connections() == 0 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    running.interrupt();
    running.finish().expect_failure(1, &["interrupted"]);
    assert!(entries(folder.path()).is_empty());
}

#[cfg(unix)]
#[test]
fn what_has_come_is_seen_before_the_end() {
    use std::io::Read;
    let server = TestServer::start();
    let mut running = Background::start(server.get().arg(server.url("/stuck")));
    let mut seen = vec![0; 100_000];
    running.0.as_mut().unwrap().stdout.as_mut().unwrap().read_exact(&mut seen).unwrap();
    assert_eq!(sha256(&seen), sha256(&contents(100_000)));
    running.interrupt();
    running.finish().expect_failure(1, &["interrupted"]);
}
