//! `godwit get`, when UDP dies in the middle of a file.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::get_support::{Run, Settings, TestServer, contents, entries, sha256};

/// A relay for one client that lets so many bytes of the server pass, and then nothing at all in either direction. It lives
/// until the test's process ends.
struct Relay {
    address: SocketAddr,
    left: Arc<AtomicUsize>,
}

impl Relay {
    fn bound() -> (Relay, UdpSocket) {
        let front = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        (Relay { address: front.local_addr().unwrap(), left: Arc::default() }, front)
    }

    fn run(&self, front: UdpSocket, server: SocketAddr, dies_after: usize) {
        self.left.store(dies_after, Ordering::SeqCst);
        let left = Arc::clone(&self.left);
        let back = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        back.connect(server).unwrap();
        front.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        back.set_nonblocking(true).unwrap();
        std::thread::spawn(move || {
            let (mut client, mut data) = (None, [0; 2048]);
            loop {
                if let Ok((length, from)) = front.recv_from(&mut data) {
                    client = Some(from);
                    if left.load(Ordering::SeqCst) > 0 {
                        let _ = back.send(&data[..length]);
                    }
                }
                while let (Some(client), Ok(length)) = (client, back.recv(&mut data)) {
                    let before = left.load(Ordering::SeqCst);
                    if before > 0 {
                        left.store(before.saturating_sub(length), Ordering::SeqCst);
                        let _ = front.send_to(&data[..length], client);
                    }
                }
            }
        });
    }

    fn is_dead(&self) -> bool {
        self.left.load(Ordering::SeqCst) == 0
    }
}

#[test]
fn a_file_goes_on_over_tcp_and_is_right() {
    const LENGTH: usize = 2_000_000;
    let (relay, front) = Relay::bound();
    let server = TestServer::with(Settings {
        alt_svc_at: Some(format!(":{}", relay.address.port())),
        ..Settings::all()
    });
    relay.run(front, server.address, LENGTH / 2);
    let folder = tempfile::tempdir().unwrap();
    let before = ["/bytes/9", "/until-quic"].map(str::to_owned);
    let before = before.into_iter().chain((0..30).map(|number| format!("/file/{number}")));
    let urls = before.chain([format!("/tagged/{LENGTH}")]).map(|path| server.url(&path));
    let mut get = server.get_auto();
    let run = Run::of(get.args(["-v", "--parallel", "1", "--output-dir"]).arg(folder.path()).args(urls));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(relay.is_dead());
    assert_eq!(entries(folder.path()).len(), 33);
    let file = std::fs::read(folder.path().join(LENGTH.to_string())).unwrap();
    assert_eq!(sha256(&file), sha256(&contents(LENGTH)));
    let told: Vec<_> =
        run.stderr.lines().filter(|line| line.contains("/tagged/") && line.contains("HTTP/")).collect();
    let [first, second, ..] = told[..] else { panic!("{}", run.stderr) };
    assert!(first.contains("HTTP/3"), "{first}");
    assert!(second.contains("HTTP/2 again, as nothing comes over UDP any more"), "{second}");
    let ranges = server.seen.ranges.lock().unwrap().clone();
    let [range] = &ranges[..] else { panic!("{ranges:?}") };
    assert!(range.starts_with("bytes=") && range != "bytes=0-", "{range}");

    // The next run knows.
    let run = Run::of(server.get_auto().args(["-v", &server.url("/bytes/9")]));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("HTTP/2: HTTP/3 of this server has not worked since "), "{}", run.stderr);
}
