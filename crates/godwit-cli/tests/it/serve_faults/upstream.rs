//! An upstream and the server that knows its name go, and come back.

use super::{PATIENT, Watched, site};
use crate::alone::is_alone;
use crate::serve_support::H1;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsConnector;

/// Names are asked for at 127.0.0.1, and whoever does not answer is not waited for.
const NAMES: &str = "mount -t tmpfs none /mnt && echo 127.0.0.1 localhost > /mnt/hosts \
    && printf 'nameserver 127.0.0.1\\noptions timeout:1 attempts:1\\n' > /mnt/resolv \
    && echo 'hosts: files dns' > /mnt/switch && mount --bind /mnt/hosts /etc/hosts \
    && mount --bind /mnt/resolv /etc/resolv.conf && mount --bind /mnt/switch /etc/nsswitch.conf";
const NAME: &str = "up.test";
const CROWD: u64 = 60;

/// Something that runs until it is ended, and counts.
struct Task(JoinHandle<()>, Arc<AtomicU64>);

impl Task {
    /// Nothing is left of it afterwards.
    async fn end(self) {
        self.0.abort();
        let _ = self.0.await;
    }

    fn count(&self) -> u64 {
        self.1.load(Ordering::Relaxed)
    }
}

/// Answers every request, and ends with all of its connections. Counts connections.
fn upstream(address: SocketAddr) -> Task {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(address).unwrap();
    let listener: TcpListener = socket.listen(1024).unwrap();
    let count = Arc::<AtomicU64>::default();
    let counted = Arc::clone(&count);
    let serving = tokio::spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
            let service = service_fn(|_: Request<Incoming>| async {
                Ok::<_, std::convert::Infallible>(Response::new(Full::new(Bytes::from_static(b"whole"))))
            });
            let builder = hyper::server::conn::http1::Builder::new();
            connections.spawn(builder.serve_connection(TokioIo::new(stream), service));
        }
    });
    Task(serving, count)
}

/// Knows one name, which has an IPv4 address and no other (RFC 1035 section 4). Counts questions.
async fn name_server() -> Task {
    let socket = UdpSocket::bind("127.0.0.1:53").await.unwrap();
    let count = Arc::<AtomicU64>::default();
    let counted = Arc::clone(&count);
    let serving = tokio::spawn(async move {
        let mut question = [0; 512];
        loop {
            let Ok((length, from)) = socket.recv_from(&mut question).await else { continue };
            counted.fetch_add(1, Ordering::Relaxed);
            // The header, the name by labels, type and class; what comes after is of no interest.
            let name = question[12..length].iter().position(|byte| *byte == 0).unwrap();
            let end = 12 + name + 5;
            let mut answer = question[..end].to_vec();
            let is_a = question[end - 4..end - 2] == [0, 1];
            answer[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, u8::from(is_a), 0, 0, 0, 0]);
            if is_a {
                answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1]);
            }
            let _ = socket.send_to(&answer, from).await;
        }
    });
    Task(serving, count)
}

/// Many ask at the same time; true if all were answered by the upstream, false if none was.
async fn crowd(watched: &Watched) -> bool {
    let (tls, port) = (watched.server.tls(H1), watched.server.port);
    let mut asking = JoinSet::new();
    for _ in 0..CROWD {
        let tls = TlsConnector::from(Arc::clone(&tls));
        asking.spawn(async move {
            let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let mut stream = tls.connect("localhost".try_into().unwrap(), stream).await.unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer).await;
            answer
        });
    }
    let answers = asking.join_all().await;
    let answered = answers.iter().filter(|answer| answer.ends_with("\r\n\r\nwhole")).count();
    let told = answers.iter().filter(|answer| answer.starts_with("HTTP/1.1 502 ")).count();
    assert!([(answers.len(), 0), (0, answers.len())].contains(&(answered, told)), "{answers:?}");
    answered > 0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upstream_and_name_server_go_and_come_back() {
    if !is_alone("serve_faults::upstream::upstream_and_name_server_go_and_come_back", NAMES) {
        return;
    }
    let names = name_server().await;
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let up = upstream(free);
    let config = format!(
        "listen = \"127.0.0.1:0\"\n{PATIENT}[[site]]\nhosts = \"*\"\n[[site.route]]\n\
         proxy = \"http://{NAME}:{}\"\n",
        free.port()
    );
    let mut watched = Watched::start("", site(1), &config);
    assert!(crowd(&watched).await);

    // The upstream goes, and those who ask are told; when it comes back they are answered, by no more connections than
    // there are requests.
    up.end().await;
    assert!(!crowd(&watched).await && !crowd(&watched).await);
    let up = upstream(free);
    assert!(crowd(&watched).await && up.count() <= CROWD, "{} connections", up.count());

    // Nobody knows its name any more: connections that there are stay in use, and new ones cannot be made.
    let asked = names.count();
    names.end().await;
    up.end().await;
    let up = upstream(free);
    assert!(!crowd(&watched).await && !crowd(&watched).await);
    assert_eq!(up.count(), 0);
    let names = name_server().await;
    assert!(crowd(&watched).await && up.count() <= CROWD, "{} connections", up.count());
    // A question for each kind of address by the configuration's check and each request, and no storm of them.
    let questions = (asked, names.count());
    assert!(questions.0 <= 2 * (4 * CROWD + 1) && questions.1 <= 2 * CROWD, "{questions:?}");
    assert!(watched.server.process.try_wait().unwrap().is_none());
}
