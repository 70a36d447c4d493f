//! `godwit serve` replaced by a new process on SIGUSR2, under load and with successors that fail.
#![cfg(target_os = "linux")]

mod first_process;
mod killed;

use std::cell::Cell;
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::serve_support::{H1, H2, Server, godwit, lines_of, run};
use bytes::Bytes;
use godwit::http3::{ALPN, Client};
use godwit::{ClientConfig, Endpoint, TransportConfig};
use http::Request;
use http_body::Body;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Nobody's patience ends here, however busy the machine is.
const TOP: &str = "listen = [\"127.0.0.1:0\", \"127.0.0.2:0\"]\nmetrics = \"127.0.0.1:0\"\ndrain = \"1d\"\n\
    access_log = { file = \"access.log\" }\n";
const LIMITS: &str = "[limits]\nsend_timeout = \"1h\"\nminimum_rate = \"none\"\nidle_timeout = \"1h\"\n\
    header_timeout = \"1h\"\n";

/// The server in all its generations: they share a folder, and the pipe into which they speak.
struct Service {
    server: Rc<Server>,
    lines: mpsc::UnboundedReceiver<String>,
    /// Those that have served, and the one that does.
    processes: Vec<u32>,
}

impl Service {
    /// `program`: what to start in place of the program itself; a name in the service's folder.
    fn start(text: &str, prepare: impl FnOnce(&Path) -> Option<PathBuf>) -> Service {
        let data = Arc::new(tempfile::tempdir().unwrap());
        std::fs::write(data.path().join("godwit.toml"), text).unwrap();
        let arguments = ["serve", "--quiet", "--config", "godwit.toml"];
        let mut command = match prepare(data.path()) {
            None => godwit(data.path(), &arguments),
            Some(program) => {
                let mut command = Command::new(program);
                command.args(arguments).env("XDG_DATA_HOME", data.path()).stdin(Stdio::null());
                command
            }
        };
        command.current_dir(data.path()).stderr(Stdio::piped());
        let mut server = Server::spawn(command, data);
        let lines = lines_of(server.process.stderr.take().unwrap());
        let processes = vec![server.process.id()];
        Service { server: Rc::new(server), lines, processes }
    }

    fn folder(&self) -> &Path {
        self.server.data.path()
    }

    fn configure(&self, text: &str) {
        std::fs::write(self.folder().join("godwit.toml"), text).unwrap();
    }

    fn signal(&self, name: &str) {
        let process = self.processes.last().unwrap().to_string();
        assert!(Command::new("kill").args(["-s", name, &process]).status().unwrap().success());
    }

    /// The next line in which there is `words`.
    async fn says(&mut self, words: &str) -> String {
        loop {
            let line = self.lines.recv().await.unwrap_or_else(|| panic!("ended before saying {words}"));
            if line.contains(words) {
                return line;
            }
        }
    }

    async fn hand_over(&mut self) {
        self.signal("USR2");
        let line = self.says("taken over").await;
        let process = line.strip_prefix("godwit: process ").and_then(|rest| rest.split(' ').next());
        self.processes
            .push(process.and_then(|process| process.parse().ok()).unwrap_or_else(|| panic!("{line}")));
    }

    /// What it refuses with, when asked to hand over.
    async fn fails_to_hand_over(&mut self) -> String {
        self.signal("USR2");
        self.says("this one goes on").await
    }

    /// Waits until no generation but the last is left.
    async fn elders_end(&self) {
        let (_, elders) = self.processes.split_last().unwrap();
        for process in elders {
            ended(*process).await;
        }
    }

    /// Ends the last generation, and sees to it that nothing is left of any.
    async fn end(mut self) {
        self.signal("TERM");
        while self.lines.recv().await.is_some() {}
        for process in &self.processes {
            ended(*process).await;
        }
        let server = Rc::get_mut(&mut self.server).expect("nobody uses it any more");
        assert_eq!(server.wait().code(), Some(0));
        self.processes.clear();
    }

    fn get(&self, protocol: &str) -> String {
        let authority = self.server.authority();
        let url = format!("https://127.0.0.1:{}/", self.server.port);
        let arguments = ["get", protocol, "--cacert", authority.to_str().unwrap(), &url];
        let output = run(self.folder(), &arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn serves(&self, body: &str) {
        for protocol in ["--http1.1", "--http2", "--http3"] {
            assert_eq!(self.get(protocol), body, "{protocol}");
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        for process in &self.processes {
            let _ = Command::new("kill").args(["-s", "KILL", &process.to_string()]).status();
        }
    }
}

/// One whose parent is gone may wait to be cleared away, but has no program any more.
async fn ended(process: u32) {
    while !std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn responding(body: &str) -> String {
    format!("[[site]]\nhosts = [\"*\"]\n[[site.route]]\nrespond = {{ body = \"{body}\" }}\n")
}

/// What clients do until the end, and what became of it, by protocol.
#[derive(Debug, Default)]
struct Load {
    answered: [Cell<u64>; 3],
    downloads: [Cell<u64>; 3],
    failed: Cell<u64>,
    hand_overs: Cell<u64>,
    over: Cell<bool>,
}

fn add(count: &Cell<u64>) {
    count.set(count.get() + 1);
}

impl Load {
    fn failed(&self, what: &str, why: impl std::fmt::Debug) {
        eprintln!("FAILED: {what}: {why:?}");
        add(&self.failed);
    }

    /// Reads a body to its end. A large one is left half read until the server has been exchanged three times.
    async fn read<B: Body<Data = Bytes> + Unpin>(&self, protocol: usize, mut body: B) -> bool
    where
        B::Error: std::fmt::Debug,
    {
        let (mut read, began) = (0, self.hand_overs.get());
        let mut waited = false;
        loop {
            match body.frame().await {
                None => break,
                Some(Err(error)) => {
                    self.failed(&format!("body of protocol {protocol} at {read}"), error);
                    return false;
                }
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    let right = data.iter().zip(read..).all(|(byte, at)| *byte == byte_at(at));
                    assert!(right, "protocol {protocol}, after {read}");
                    read += data.len();
                }
            }
            while read >= SMALL * 2 && !waited && !self.over.get() && self.hand_overs.get() < began + 3 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            waited |= read >= SMALL * 2;
        }
        match read {
            SMALL => add(&self.answered[protocol]),
            LARGE => add(&self.downloads[protocol]),
            _ => self.failed("length", read),
        }
        true
    }
}

const SMALL: usize = 10_000;
/// More than the buffers on the way hold.
const LARGE: usize = 48 << 20;

fn byte_at(at: usize) -> u8 {
    (at.wrapping_mul(0x9e37_79b9) >> 13) as u8
}

fn get(path: &str) -> Request<Empty<Bytes>> {
    let uri = format!("https://localhost{path}");
    Request::builder().uri(uri).body(Empty::new()).unwrap()
}

async fn over_http1(server: Rc<Server>, load: Rc<Load>, path: &str) {
    while !load.over.get() {
        let stream = match server.try_connect(H1).await {
            Ok(stream) => stream,
            Err(error) => return load.failed("HTTP/1.1 handshake", error),
        };
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        for earlier in 0..7 {
            if load.over.get() || sender.ready().await.is_err() {
                break;
            }
            let request =
                Request::builder().uri(path).header("host", "localhost").body(Empty::<Bytes>::new());
            match sender.send_request(request.unwrap()).await {
                Ok(response) => drop(load.read(0, response.into_body()).await),
                // It was still in this program.
                Err(error) if error.is_canceled() => {}
                // A connection that rests may be closed while a request is on its way, which is then sent again over another
                // (RFC 9112 section 9.3.1). HTTP/1.1 has no better way to end one.
                Err(error) if earlier > 0 && error.is_incomplete_message() => break,
                Err(error) => load.failed("HTTP/1.1 request", error),
            }
        }
    }
}

/// Whether an HTTP/2 error says that the request was not processed.
fn is_unprocessed(error: &hyper::Error) -> bool {
    let text = format!("{error:?}");
    error.is_canceled() || text.contains("NO_ERROR") || text.contains("REFUSED_STREAM")
}

async fn over_http2(server: Rc<Server>, load: Rc<Load>, path: &str) {
    while !load.over.get() {
        let stream = match server.try_connect(H2).await {
            Ok(stream) => stream,
            Err(error) => return load.failed("HTTP/2 handshake", error),
        };
        let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (mut sender, connection) = handshake.await.unwrap();
        tokio::spawn(connection);
        for _ in 0..100 {
            if load.over.get() || sender.ready().await.is_err() {
                break;
            }
            match sender.send_request(get(path)).await {
                Ok(response) => drop(load.read(1, response.into_body()).await),
                Err(error) if is_unprocessed(&error) => {}
                Err(error) => load.failed("HTTP/2 request", error),
            }
        }
    }
}

async fn over_http3(server: Rc<Server>, load: Rc<Load>, path: &str) {
    let roots = std::fs::read(server.authority()).unwrap();
    let mut transport = TransportConfig::default();
    transport.keep_alive = Some(Duration::from_secs(5));
    transport.handshake_timeout = Duration::from_secs(300);
    let config = ClientConfig::with_roots_pem(&roots).alpn([ALPN]).transport(transport).build().unwrap();
    let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], server.port));
    while !load.over.get() {
        let client = match Client::connect(&endpoint, &config, address, "localhost").await {
            Ok(client) => client,
            Err(error) => return load.failed("HTTP/3 handshake", error),
        };
        for _ in 0..100 {
            if load.over.get() {
                break;
            }
            match client.send(get(path)).await {
                Ok(response) => {
                    if !load.read(2, response.into_body()).await {
                        return;
                    }
                }
                // A connection that is closed without error lets nothing through that came after.
                Err(error)
                    if error.is_retryable() || error.code().is_some_and(|code| code.value() == 0x100) =>
                {
                    break;
                }
                Err(error) => return load.failed("HTTP/3 request", error),
            }
        }
    }
}

#[tokio::test]
async fn twenty_hand_overs_under_load_lose_nothing() {
    tokio::task::LocalSet::new().run_until(load_and_hand_over(20, &[1])).await;
}

#[tokio::test]
async fn hand_overs_between_any_numbers_of_shards_lose_nothing() {
    tokio::task::LocalSet::new().run_until(load_and_hand_over(6, &[2, 2, 1, 3])).await;
}

/// `shards`: how many each generation has, again and again.
async fn load_and_hand_over(hand_overs: usize, shards: &[u8]) {
    let configuration = |generation: usize| {
        let shards = shards[generation % shards.len()];
        let site = "[[site]]\nhosts = [\"*\"]\n[[site.route]]\nfiles = \"www\"\n";
        format!("{TOP}shards = {shards}\n{LIMITS}{site}")
    };
    let mut service = Service::start(&configuration(0), |folder| {
        std::fs::create_dir(folder.join("www")).unwrap();
        let bytes: Vec<u8> = (0..LARGE).map(byte_at).collect();
        std::fs::write(folder.join("www/small.bin"), &bytes[..SMALL]).unwrap();
        std::fs::write(folder.join("www/large.bin"), &bytes).unwrap();
        None
    });
    let server = &service.server;
    let load = Rc::new(Load::default());
    let mut clients = JoinSet::new();
    for path in ["/small.bin", "/small.bin", "/large.bin", "/large.bin"] {
        clients.spawn_local(over_http1(Rc::clone(server), Rc::clone(&load), path));
        clients.spawn_local(over_http2(Rc::clone(server), Rc::clone(&load), path));
        clients.spawn_local(over_http3(Rc::clone(server), Rc::clone(&load), path));
    }
    let answered = |load: &Load| load.answered.each_ref().map(Cell::get);
    for generation in 0..hand_overs {
        // Every protocol has its turn between two of them.
        let before = answered(&load);
        while load.failed.get() == 0 && before.iter().zip(answered(&load)).any(|(one, other)| other < one + 5)
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        service.configure(&configuration(generation + 1));
        service.hand_over().await;
        add(&load.hand_overs);
    }
    let before = answered(&load);
    while load.failed.get() == 0 && before.iter().zip(answered(&load)).any(|(one, other)| other < one + 5) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    load.over.set(true);
    while let Some(outcome) = clients.join_next().await {
        outcome.unwrap();
    }
    println!("{load:?}");
    assert_eq!(load.failed.get(), 0, "{load:?}");
    assert!(load.downloads.iter().all(|count| count.get() >= 2), "{load:?}");
    service.elders_end().await;
    let data = Arc::clone(&service.server.data);
    service.end().await;
    // Each generation has written its part of the log.
    let log = std::fs::read_to_string(data.path().join("access.log")).unwrap();
    let requests = load.answered.iter().chain(&load.downloads).map(Cell::get).sum::<u64>();
    assert!(log.lines().count() as u64 >= requests, "{} lines for {requests} requests", log.lines().count());
    assert!(log.lines().all(|line| line.starts_with('{') && line.ends_with('}')));
}

#[tokio::test]
async fn a_successor_that_fails_changes_nothing() {
    let mut service = Service::start(&format!("{TOP}{LIMITS}{}", responding("one")), |folder| {
        let program = folder.join("program");
        symlink(env!("CARGO_BIN_EXE_godwit"), &program).unwrap();
        Some(program)
    });
    let config = format!("{TOP}{LIMITS}{}", responding("two"));

    service.configure(&format!("{TOP}shards = 0\n{LIMITS}{}", responding("two")));
    let line = service.fails_to_hand_over().await;
    assert!(line.contains("gave up: ") && line.contains("`shards`"), "{line}");
    service.serves("one");

    let certificate = "[[certificate]]\ncert = \"missing.pem\"\nkey = \"missing.key\"\n";
    service.configure(&format!("{config}{certificate}"));
    let line = service.fails_to_hand_over().await;
    assert!(line.contains("missing.pem"), "{line}");

    // The program itself is exchanged, for something that does not serve.
    service.configure(&config);
    let program = service.folder().join("program");
    let replace = |script: &str| {
        let _ = std::fs::remove_file(&program);
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    replace("#!/bin/sh\nexit 3\n");
    let line = service.fails_to_hand_over().await;
    assert!(line.contains("exit status: 3"), "{line}");
    std::fs::remove_file(&program).unwrap();
    let line = service.fails_to_hand_over().await;
    assert!(line.contains("program: ") && line.contains("no such file"), "{line}");
    service.serves("one");

    symlink(env!("CARGO_BIN_EXE_godwit"), &program).unwrap();
    service.hand_over().await;
    service.serves("two");
    service.elders_end().await;
    service.end().await;
}

#[tokio::test]
async fn a_second_wish_is_refused_and_the_end_takes_the_successor_along() {
    let mut service = Service::start(&format!("{TOP}{LIMITS}{}", responding("one")), |folder| {
        let program = folder.join("program");
        symlink(env!("CARGO_BIN_EXE_godwit"), &program).unwrap();
        Some(program)
    });
    let program = service.folder().join("program");
    std::fs::remove_file(&program).unwrap();
    std::fs::write(&program, "#!/bin/sh\necho $$ > id.new\nmv id.new id\nexec sleep 1000\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    service.signal("USR2");
    let id = service.folder().join("id");
    while !id.exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let successor = std::fs::read_to_string(id).unwrap().trim().parse().unwrap();
    service.signal("USR2");
    service.says("being started already").await;
    service.serves("one");
    service.processes.push(successor);
    let first = service.processes.remove(0);
    service.processes.push(first);
    service.end().await;
}

#[tokio::test]
async fn those_who_wait_to_be_accepted_are_the_successors() {
    let site = "[[site]]\nhosts = [\"*\"]\n[[site.route]]\npath = \"/large.bin\"\nfiles = \"www\"\n\
        [[site.route]]\nrespond = { body = \"one\" }\n";
    let limits = LIMITS.replace("[limits]", "[limits]\nconnections = 1");
    // Each listener keeps room for one.
    let top = TOP.replace(", \"127.0.0.2:0\"", "");
    let mut service = Service::start(&format!("{top}{limits}{site}"), |folder| {
        std::fs::create_dir(folder.join("www")).unwrap();
        std::fs::write(folder.join("www/large.bin"), vec![7; LARGE]).unwrap();
        None
    });
    // This one keeps everybody else out.
    let mut first = service.server.connect(H1).await;
    first.write_all(b"GET /large.bin HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut piece = vec![0; 100_000];
    first.read_exact(&mut piece).await.unwrap();
    let mut waiting = JoinSet::new();
    for _ in 0..20 {
        let stream = TcpStream::connect(("127.0.0.1", service.server.port)).await.unwrap();
        let tls = tokio_rustls::TlsConnector::from(service.server.tls(H1));
        waiting.spawn(async move {
            let mut stream = tls.connect("localhost".try_into().unwrap(), stream).await.unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer).await;
            assert!(answer.ends_with(b"one"), "{}", String::from_utf8_lossy(&answer));
        });
    }
    service.hand_over().await;
    while let Some(outcome) = waiting.join_next().await {
        outcome.unwrap();
    }
    let mut rest = Vec::new();
    let _ = first.read_to_end(&mut rest).await;
    assert!(piece.len() + rest.len() > LARGE);
    service.elders_end().await;
    service.end().await;
}

#[tokio::test]
async fn sessions_are_resumed_at_the_successor_and_addresses_may_change() {
    let config = |second: &str| {
        let top = TOP.replace("127.0.0.2", second);
        format!("{top}{LIMITS}{}", responding(second))
    };
    let mut service = Service::start(&config("127.0.0.2"), |_| None);
    let tls = service.server.tls(H1);
    let visit = async |server: &Server| {
        let mut stream = server.connect_with(Arc::clone(&tls)).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        (stream.get_ref().1.handshake_kind(), answer)
    };
    let (kind, _) = visit(&service.server).await;
    assert_eq!(kind, Some(rustls::HandshakeKind::Full));
    service.configure(&config("127.0.0.3"));
    service.hand_over().await;
    let (kind, answer) = visit(&service.server).await;
    assert_eq!(kind, Some(rustls::HandshakeKind::Resumed));
    assert!(answer.ends_with("127.0.0.3"), "{answer}");
    service.elders_end().await;
    service.hand_over().await;
    assert_eq!(visit(&service.server).await.0, Some(rustls::HandshakeKind::Resumed));
    service.elders_end().await;
    service.end().await;
}
