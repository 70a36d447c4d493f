//! Why `godwit serve` answered 502 in an upstream's place: in the access log, on the terminal and for whoever watches.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc::channel;

use crate::serve_support::{H1, Server, godwit};
use serde_json::Value;

/// Where nobody listens.
fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// A server that takes in a little and closes each connection without a word.
fn closing() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 4096]);
        }
    });
    address
}

/// A server that answers everything with a line of plain HTTP.
fn plain() -> SocketAddr {
    use std::io::Write as _;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
    });
    address
}

#[tokio::test]
async fn a_502_has_its_reason_in_the_access_log_and_in_a_notice() {
    let data = Arc::new(tempfile::tempdir().unwrap());
    let (file, log) = (data.path().join("godwit.toml"), data.path().join("access.log"));
    let upstreams = [
        ("/refused", format!("http://{}", nobody()), "connection_refused"),
        ("/closed", format!("http://{}", closing()), "closed_before_response"),
        ("/plain", format!("https://{}", plain()), "not_tls"),
    ];
    let mut text = format!(
        "listen = \"127.0.0.1:0\"\n[access_log]\nfile = \"{}\"\nformat = \"json\"\n[[site]]\nhosts = \"*\"\n",
        log.display()
    );
    for (path, url, _) in &upstreams {
        text += &format!("[[site.route]]\npath = \"{path}\"\nproxy = \"{url}\"\n");
    }
    std::fs::write(&file, text).unwrap();
    let mut command = godwit(data.path(), &["serve", "--config", file.to_str().unwrap()]);
    command.stderr(Stdio::piped());
    let mut server = Server::spawn(command, data);
    let (sender, said) = channel();
    let stderr = BufReader::new(server.process.stderr.take().unwrap());
    std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    for (path, _, _) in &upstreams {
        // The second time nobody is told of it again.
        for _ in 0..2 {
            assert_eq!(server.get(H1, path).await.status, 502, "{path}");
        }
    }
    server.signal("TERM");
    assert!(server.wait().success());
    let lines = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said: Vec<String> = said.iter().collect();
    for (path, url, reason) in &upstreams {
        let of_path: Vec<_> = lines.iter().filter(|line| line["path"] == *path).collect();
        assert_eq!(of_path.len(), 2);
        for line in of_path {
            assert_eq!(line["outcome"], "upstream_failed", "{line}");
            assert_eq!(line["reason"], *reason, "{line}");
        }
        let address = url.split("://").nth(1).unwrap();
        let of_path: Vec<_> = said.iter().filter(|line| line.contains(address)).collect();
        assert_eq!(of_path.len(), 1, "{said:#?}");
        assert!(of_path[0].starts_with("godwit: warning: "), "{}", of_path[0]);
        assert!(of_path[0].contains(reason), "{}", of_path[0]);
    }
}

#[tokio::test]
async fn a_502_has_its_reason_on_the_terminal() {
    let server = Server::start(&["--proxy", &format!("http://{}", nobody())]);
    assert_eq!(server.get(H1, "/").await.status, 502);
    let line = server.next_line();
    assert!(line.starts_with("GET / 502 ") && line.contains(" connection_refused"), "{line}");
}
