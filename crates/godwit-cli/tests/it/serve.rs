//! `godwit serve` as its users see it: files over HTTP/1.1 and HTTP/2, the banner, the log, the end.

use std::process::Stdio;
use std::sync::Arc;

use crate::serve_support::{H1, H2, Server, godwit, site};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn files_come_with_their_types_over_both_protocols() {
    let folder = site();
    let server = Server::start(&[folder.path().to_str().unwrap()]);
    for alpn in [H1, H2] {
        for (path, content_type, length) in [
            ("/", "text/html; charset=utf-8", 33),
            ("/index.html", "text/html; charset=utf-8", 33),
            ("/docs/", "text/html; charset=utf-8", 34),
            ("/style.css", "text/css; charset=utf-8", 18),
            ("/data.bin", "application/octet-stream", 10_000),
            ("/caf%C3%A9%20menu.txt", "text/plain; charset=utf-8", 5),
        ] {
            let answer = server.get(alpn, path).await;
            assert_eq!(answer.status, StatusCode::OK, "{alpn} {path}");
            assert_eq!(answer.header("content-type"), content_type, "{alpn} {path}");
            assert_eq!(answer.body.len(), length, "{alpn} {path}");
            assert_eq!(answer.header("content-length"), length.to_string(), "{alpn} {path}");
            assert_eq!(answer.header("server"), "godwit");
            assert!(answer.header("date").ends_with("GMT"));
            assert!(answer.header("etag").starts_with('"'), "{alpn} {path}");
            assert!(answer.header("last-modified").ends_with("GMT"));

            let head = server.ask(alpn, "HEAD", path, &[]).await;
            assert_eq!((head.status, head.body.len()), (StatusCode::OK, 0), "{alpn} HEAD {path}");
            for name in ["content-length", "content-type", "etag"] {
                assert_eq!(head.header(name), answer.header(name), "{alpn} HEAD {path}");
            }
        }
    }
}

#[tokio::test]
async fn ranges_are_cut_out() {
    let folder = site();
    std::fs::write(folder.path().join("empty.txt"), "").unwrap();
    let server = Server::start(&[folder.path().to_str().unwrap()]);
    let whole = server.get(H2, "/data.bin").await;
    assert_eq!(whole.header("accept-ranges"), "bytes");
    for alpn in [H1, H2] {
        for (range, expected) in
            [("bytes=0-9", 0..10), ("bytes=9990-", 9990..10_000), ("bytes=-5", 9995..10_000)]
        {
            let answer = server.ask(alpn, "GET", "/data.bin", &[("range", range)]).await;
            assert_eq!(answer.status, StatusCode::PARTIAL_CONTENT, "{range}");
            assert_eq!(answer.body, whole.body.slice(expected.clone()), "{range}");
            let content_range = format!("bytes {}-{}/10000", expected.start, expected.end - 1);
            assert_eq!(answer.header("content-range"), content_range);
            assert_eq!(answer.header("etag"), whole.header("etag"));
        }
        let answer = server.ask(alpn, "GET", "/data.bin", &[("range", "bytes=10000-")]).await;
        assert_eq!(answer.status, StatusCode::RANGE_NOT_SATISFIABLE);
        for (path, range, length) in [("/data.bin", "bytes=0-9,20-29", 10_000), ("/empty.txt", "bytes=0-", 0)]
        {
            let answer = server.ask(alpn, "GET", path, &[("range", range)]).await;
            assert_eq!((answer.status, answer.body.len()), (StatusCode::OK, length), "{path} {range}");
        }
        let same = [("range", "bytes=0-9"), ("if-range", whole.header("etag"))];
        assert_eq!(server.ask(alpn, "GET", "/data.bin", &same).await.status, StatusCode::PARTIAL_CONTENT);
        let other = [("range", "bytes=0-9"), ("if-range", "\"other\"")];
        let answer = server.ask(alpn, "GET", "/data.bin", &other).await;
        assert_eq!((answer.status, answer.body.len()), (StatusCode::OK, 10_000));
    }
}

#[tokio::test]
async fn what_the_client_has_is_not_sent_again() {
    let folder = site();
    let server = Server::start(&[folder.path().to_str().unwrap()]);
    for alpn in [H1, H2] {
        let first = server.get(alpn, "/style.css").await;
        let tag = first.header("etag").to_owned();
        let ask = |name, value: &str| {
            let (server, value) = (&server, value.to_owned());
            async move { server.ask(alpn, "GET", "/style.css", &[(name, &value)]).await }
        };
        let answer = ask("if-none-match", &tag).await;
        assert_eq!((answer.status, answer.body.len()), (StatusCode::NOT_MODIFIED, 0));
        assert_eq!(answer.header("etag"), tag);
        assert_eq!(ask("if-none-match", "\"other\"").await.status, StatusCode::OK);
        let date = first.header("last-modified");
        assert_eq!(ask("if-modified-since", date).await.status, StatusCode::NOT_MODIFIED);
        assert_eq!(ask("if-match", "\"other\"").await.status, StatusCode::PRECONDITION_FAILED);

        // Another length, so another version even where clocks are coarse.
        std::fs::write(folder.path().join("style.css"), format!("body {{ margin: {tag} }}")).unwrap();
        let changed = ask("if-none-match", &tag).await;
        assert_eq!(changed.status, StatusCode::OK);
        assert_ne!(changed.header("etag"), tag);
        std::fs::write(folder.path().join("style.css"), "body { margin: 0 }").unwrap();
    }
}

#[tokio::test]
async fn nothing_outside_the_folder_is_served() {
    let folder = site();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("passwords"), "secret").unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
    std::os::unix::fs::symlink("style.css", folder.path().join("inside.css")).unwrap();
    let server = Server::start(&[folder.path().to_str().unwrap()]);
    let name = outside.path().file_name().unwrap().to_str().unwrap();
    for alpn in [H1, H2] {
        for path in [
            &format!("/../{name}/passwords"),
            &format!("/%2e%2e/{name}/passwords"),
            &format!("/docs/%2e%2E/../{name}/passwords"),
            &format!("/..%2f{name}%2fpasswords"),
            &format!("/docs/..%5c..%5c{name}/passwords"),
            &format!("/{}/passwords", outside.path().display()),
            "/link/passwords",
            "/link/",
            "/link",
            "/.secret",
            "/%2esecret",
            "/data.bin%00.html",
            "/bare/",
            "/nothing",
            "/data.bin/",
        ] {
            let answer = server.get(alpn, path).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{alpn} {path}");
            assert!(!answer.body.windows(6).any(|part| part == b"secret"), "{alpn} {path}");
            assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
        }
        assert_eq!(server.get(alpn, "/inside.css").await.status, StatusCode::OK);
        let redirect = server.get(alpn, "/docs?a=b").await;
        assert_eq!(redirect.status, StatusCode::TEMPORARY_REDIRECT);
        assert_eq!(redirect.header("location"), "/docs/?a=b");
        assert_eq!(server.ask(alpn, "POST", "/", &[]).await.status, StatusCode::METHOD_NOT_ALLOWED);
    }
    std::fs::write(folder.path().join("404.html"), "own page").unwrap();
    let answer = server.get(H2, "/nothing").await;
    assert_eq!((answer.status, &answer.body[..]), (StatusCode::NOT_FOUND, &b"own page"[..]));
}

#[tokio::test]
async fn without_a_folder_the_example_site_is_served() {
    let server = Server::start(&[]);
    assert!(server.banner[0].contains("example site"), "{:?}", server.banner);
    assert!(server.banner.len() < 12);
    for alpn in [H1, H2] {
        let page = server.get(alpn, "/").await;
        assert_eq!(page.status, StatusCode::OK);
        assert!(std::str::from_utf8(&page.body).unwrap().contains("app.js"));
        let tag = page.header("etag").to_owned();
        let again = server.ask(alpn, "GET", "/index.html", &[("if-none-match", &tag)]).await;
        assert_eq!(again.status, StatusCode::NOT_MODIFIED);
        assert_eq!(server.get(alpn, "/images/godwit.svg").await.header("content-type"), "image/svg+xml");
        assert_eq!(server.get(alpn, "/../Cargo.toml").await.status, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn the_certificate_is_kept_between_starts() {
    let mut first = Server::start(&[]);
    let authority = std::fs::read(first.authority()).unwrap();
    first.signal("TERM");
    assert!(first.wait().success());
    let data = Arc::clone(&first.data);
    let second = Server::spawn(godwit(data.path(), &["serve", "--listen", "127.0.0.1:0"]), data);
    assert_eq!(std::fs::read(second.authority()).unwrap(), authority);
    assert_eq!(second.get(H2, "/").await.status, StatusCode::OK);
}

#[tokio::test]
async fn each_request_has_a_line_and_none_when_quiet() {
    let folder = site();
    let path = folder.path().to_str().unwrap();
    let server = Server::start(&[path]);
    server.ask(H2, "GET", "/data.bin?x=1", &[("range", "bytes=0-9")]).await;
    let line = server.next_line();
    assert!(line.starts_with("GET /data.bin?x=1 206 10 h2 ") && line.ends_with('s'), "{line}");
    server.ask(H1, "HEAD", "/nothing", &[]).await;
    let line = server.next_line();
    assert!(line.starts_with("HEAD /nothing 404 0 http/1.1 "), "{line}");

    let mut quiet = Server::start(&["--quiet", path]);
    assert_eq!(quiet.get(H2, "/").await.status, StatusCode::OK);
    quiet.signal("TERM");
    assert!(quiet.wait().success());
    assert_eq!(quiet.rest(), [""; 0]);
}

/// 256 MiB pass through a server that never holds more than a small part of them.
#[tokio::test]
async fn large_files_pass_through_in_pieces() {
    const LENGTH: u64 = 256 << 20;
    let folder = tempfile::tempdir().unwrap();
    std::fs::File::create(folder.path().join("large")).unwrap().set_len(LENGTH).unwrap();
    let server = Server::start(&[folder.path().to_str().unwrap()]);
    for alpn in [H1, H2] {
        let uri = format!("https://localhost:{}/large", server.port);
        let uri = if alpn == H2 { uri } else { "/large".to_owned() };
        let request = Request::get(uri).header("host", "localhost").body(Empty::new()).unwrap();
        let mut body = server.send(alpn, request).await.into_body();
        let mut received = 0;
        while let Some(frame) = body.frame().await {
            received += frame.unwrap().data_ref().map_or(0, bytes::Bytes::len) as u64;
        }
        assert_eq!(received, LENGTH, "{alpn}");
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes < 96 << 10, "the server's memory peaked at {kilobytes} kB");
}

#[tokio::test]
async fn plain_http_is_told_where_it_is() {
    let server = Server::start(&[]);
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", server.port)).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("https"), "{answer:?}");
}

#[tokio::test]
async fn both_signals_end_it_with_success() {
    for name in ["INT", "TERM"] {
        let mut server = Server::start(&[]);
        assert_eq!(server.get(H2, "/").await.status, StatusCode::OK);
        // Connections without a request do not hold it up.
        let idle = (server.connect(H1).await, server.connect(H2).await);
        server.signal(name);
        assert_eq!(server.wait().code(), Some(0), "{name}");
        drop(idle);
    }
}

#[tokio::test]
async fn a_request_in_progress_is_finished_and_no_other_taken() {
    const LENGTH: usize = 32 << 20;
    let folder = tempfile::tempdir().unwrap();
    std::fs::File::create(folder.path().join("large")).unwrap().set_len(LENGTH as u64).unwrap();
    for alpn in [H1, H2] {
        let mut server = Server::start(&[folder.path().to_str().unwrap()]);
        let uri = format!("https://localhost:{}/large", server.port);
        let uri = if alpn == H2 { uri } else { "/large".to_owned() };
        let request = Request::get(uri).header("host", "localhost").body(Empty::new()).unwrap();
        let mut body = server.send(alpn, request).await.into_body();
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap().len();
        server.signal("INT");
        while server.try_connect(alpn).await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let rest = body.collect().await.unwrap().to_bytes().len();
        assert_eq!(first + rest, LENGTH, "{alpn}");
        assert_eq!(server.wait().code(), Some(0), "{alpn}");
    }
}

#[tokio::test]
async fn a_second_signal_does_not_wait() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::File::create(folder.path().join("large")).unwrap().set_len(1 << 30).unwrap();
    let mut server = Server::start(&[folder.path().to_str().unwrap()]);
    let request = Request::get("/large").header("host", "localhost").body(Empty::new()).unwrap();
    let mut body = server.send(H1, request).await.into_body();
    body.frame().await.unwrap().unwrap();
    server.signal("INT");
    while server.try_connect(H1).await.is_ok() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    server.signal("INT");
    assert_eq!(server.wait().code(), Some(3));
}

#[tokio::test]
async fn open_starts_a_browser_that_trusts_the_server() {
    use std::os::unix::fs::PermissionsExt;
    let data = Arc::new(tempfile::tempdir().unwrap());
    let browser = data.path().join("chromium");
    // It says what it was given, and then stays.
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > {0}/draft\nmv {0}/draft {0}/arguments\nexec sleep 600\n",
        data.path().display()
    );
    std::fs::write(&browser, script).unwrap();
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", data.path().display(), std::env::var("PATH").unwrap());
    let mut command = godwit(data.path(), &["serve", "--listen", "127.0.0.1:0", "--open"]);
    command.env("PATH", path).stderr(Stdio::inherit());
    let mut server = Server::spawn(command, Arc::clone(&data));
    let written = data.path().join("arguments");
    while !written.exists() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let arguments = std::fs::read_to_string(written).unwrap();
    let has = |wanted: &str| arguments.lines().any(|line| line == wanted);
    assert!(has(&format!("--origin-to-force-quic-on=127.0.0.1:{}", server.port)), "{arguments}");
    assert!(has(&format!("https://127.0.0.1:{}/", server.port)), "{arguments}");
    assert!(has("--no-first-run"), "{arguments}");
    let pin = arguments.lines().find_map(|line| line.strip_prefix("--ignore-certificate-errors-spki-list="));
    assert_eq!(pin.map(str::len), Some(44), "{arguments}");
    let profile = arguments.lines().find_map(|line| line.strip_prefix("--user-data-dir=")).unwrap();
    assert!(std::path::Path::new(profile).is_dir());
    server.signal("INT");
    assert_eq!(server.wait().code(), Some(0));
    assert!(!std::path::Path::new(profile).exists(), "the profile is gone with the browser");
}
