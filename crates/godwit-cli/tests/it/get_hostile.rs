//! `godwit get` from servers, and in folders, that mean no good.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;

use crate::get_support::{Run, entries, get};

/// Answers one connection after the other with what `answer` writes after a request's head; for HTTP/2 it is called
/// at once.
struct Raw {
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

impl Raw {
    fn start(connections: usize, waits: bool, answer: impl Fn(TcpStream) + Send + 'static) -> Raw {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            for _ in 0..connections {
                let (stream, _) = listener.accept().unwrap();
                if waits {
                    let mut head = BufReader::new(stream.try_clone().unwrap()).lines();
                    while head.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                }
                answer(stream);
            }
        });
        Raw { address, thread: Some(thread) }
    }

    /// Sends this text to everybody.
    fn text(connections: usize, text: &'static str) -> Raw {
        Raw::start(connections, true, move |mut stream| {
            let _ = stream.write_all(text.as_bytes());
        })
    }

    fn url(&self) -> String {
        format!("http://{}/x", self.address)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take()
            && !std::thread::panicking()
        {
            thread.join().unwrap();
        }
    }
}

const PART: &str =
    "HTTP/1.1 206 Partial Content\r\ncontent-range: bytes 0-4/10\r\ncontent-length: 5\r\n\r\nhello";

#[test]
fn a_part_that_nobody_asked_for_is_not_the_whole() {
    let server = Raw::text(3, PART);
    let folder = tempfile::tempdir().unwrap();
    let refusal = "expected all of it, but the server sent a part (bytes 0-4/10)";
    for options in [&["-o", "x"][..], &[]] {
        let run = Run::of(get().current_dir(&folder).args(["--http1.1", &server.url()]).args(options));
        assert!(run.expect_failure(1, &[refusal]).stdout.is_empty());
        assert!(entries(folder.path()).is_empty());
    }
    // Who asks for a part gets it.
    let range = ["-H", "Range: bytes=0-4"];
    let run = Run::of(get().args(["--http1.1", &server.url()]).args(range)).expect_success();
    assert_eq!(run.text(), "hello");
}

#[test]
fn endless_informational_responses_come_to_an_end() {
    let endless =
        |piece: &'static [u8]| move |mut stream: TcpStream| while stream.write_all(piece).is_ok() {};
    let words = "more than 100 informational (1xx) responses";
    for piece in [&b"HTTP/1.1 103 Early Hints\r\n\r\n"[..], b"HTTP/1.1 100 Continue\r\n\r\n"] {
        let server = Raw::start(1, true, endless(piece));
        Run::of(get().args(["--http1.1", &server.url()])).expect_failure(1, &[words]);
    }
    let server = Raw::start(1, false, move |mut stream| {
        let mut preface = [0; 24];
        stream.read_exact(&mut preface).unwrap();
        stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).unwrap();
        // The client's settings come before its request.
        let mut reader = stream.try_clone().unwrap();
        let reading = std::thread::spawn(move || drop(reader.read_to_end(&mut Vec::new())));
        std::thread::sleep(std::time::Duration::from_millis(300));
        // `:status` is the 8th entry of the static table (RFC 7541 appendix A), here with a value of its own.
        endless(b"\0\0\x05\x01\x04\0\0\0\x01\x08\x03103")(stream);
        reading.join().unwrap();
    });
    Run::of(get().args(["--http2", &server.url()])).expect_failure(1, &[words]);
}

#[test]
fn some_informational_responses_are_no_harm() {
    let mut text = "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n".repeat(100);
    text.push_str("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    let server = Raw::text(1, text.leak());
    let run = Run::of(get().args(["--http1.1", &server.url()])).expect_success();
    assert_eq!(run.text(), "ok");
}

#[test]
fn what_comes_is_shown_without_commanding_the_terminal() {
    let run = Run::of(get().arg("https://exe\u{202e}fdp.example/"));
    run.expect_failure(2, &[r"exe\u{202e}fdp.example"]);
    let run = Run::of(get().args(["--cacert", "/no/\x1b[31m\u{9b}", "https://127.0.0.1/"]));
    run.expect_failure(1, &[r"/no/\u{1b}[31m\u{9b}"]);
    let server =
        Raw::text(1, "HTTP/1.1 302 Found\r\nlocation: http://a\u{202e}b/\r\ncontent-length: 0\r\n\r\n");
    let run = Run::of(get().args(["--http1.1", "-L", &server.url()]));
    assert!(!run.stderr.contains('\u{202e}'), "{}", run.stderr);
    run.expect_failure(1, &[r"\u{202e}"]);
}

#[cfg(unix)]
#[test]
fn links_in_place_of_parts_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let precious = folder.path().join("precious");
    fs::write(&precious, "as it was").unwrap();
    std::os::unix::fs::symlink("precious", folder.path().join(".x.godwit.part")).unwrap();
    let run = Run::of(get().current_dir(&folder).args(["-C", "-o", "x", "http://127.0.0.1:9/x"]));
    run.expect_failure(1, &[".x.godwit.part cannot be continued (it is a link); remove it"]);
    assert_eq!(fs::read_to_string(&precious).unwrap(), "as it was");
}

#[test]
fn a_continued_download_tells_what_it_expects() {
    const HEAD: &str = "HTTP/1.1 200 OK\r\netag: \"a\"\r\ncontent-length: 10\r\n\r\nhello";
    const REST: &str = "HTTP/1.1 206 Partial Content\r\netag: \"a\"\r\ncontent-range: bytes 5-9/*\r\n\
                        content-length: 5\r\n\r\n wo";
    let folder = tempfile::tempdir().unwrap();
    let turn = std::sync::atomic::AtomicUsize::new(0);
    let server = Raw::start(2, true, move |mut stream| {
        let turn = turn.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        stream.write_all([HEAD, REST][turn].as_bytes()).unwrap();
    });
    let run = || Run::of(get().current_dir(&folder).args(["--http1.1", "-C", "-o", "x", &server.url()]));
    run().expect_failure(1, &["broken off after 5 of 10 bytes"]);
    run().expect_failure(1, &["broken off after 8 of 10 bytes"]);
    let note = fs::read_to_string(folder.path().join(".x.godwit.note")).unwrap();
    assert!(note.contains("\"length\":10"), "{note}");
}
