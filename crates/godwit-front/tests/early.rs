//! Requests in the first packets of clients that come back (0-RTT), and first flights that somebody has recorded and sends
//! again.

#[allow(dead_code, reason = "TCP is not asked here")]
mod support;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use godwit::http3::{ALPN, Client};
use godwit::{ClientConfig, Endpoint};
use godwit_front::settings::{EarlyData, Handler, LogTarget, PathPattern, Settings, Site, SiteTls};
use godwit_front::{BoxBody, RouteService, Running, Server};
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Full};
use support::{certificate, request};
use tokio::net::UdpSocket;
use tokio::sync::watch;

/// What a service was asked for: method and path, and whether that was early.
type Asked = Arc<Mutex<Vec<String>>>;

/// A route's path, and what it says of early data.
type OfRoute = (&'static str, Option<EarlyData>);

/// A server whose service notes what it is asked for, and says so, at these paths.
async fn serve(folder: &Path, early_data: EarlyData, routes: &[OfRoute]) -> (Running, Asked) {
    let (chain, key) = match folder.join("chain.pem").exists() {
        true => (folder.join("chain.pem"), folder.join("key.pem")),
        false => certificate(folder),
    };
    let asked = Asked::default();
    let notes = Arc::clone(&asked);
    let service = tower::service_fn(move |request: Request<BoxBody>| {
        let early = request.extensions().get::<godwit_body::EarlyData>();
        let early = early.is_some_and(godwit_body::EarlyData::may_be_replay);
        let line = format!("{} {} {early}", request.method(), request.uri().path());
        notes.lock().unwrap().push(line.clone());
        async move { Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(line)))) }
    });
    let mut site = Site::catch_all(Handler::Service(RouteService::new(service)));
    site.tls = SiteTls::Files;
    let pattern = site.routes[0].clone();
    for (path, early_data) in routes {
        let mut route = pattern.clone();
        (route.path, route.early_data) = (PathPattern::Exact((*path).to_owned()), *early_data);
        site.routes.push(route);
    }
    let mut settings = Settings::default();
    settings.access_log.target = LogTarget::None;
    settings.early_data = early_data;
    settings.sites = vec![site];
    let server = Server::builder().settings(settings).listen("127.0.0.1:0".parse().unwrap());
    (server.certificate(chain, key).bind().unwrap().start().await.unwrap(), asked)
}

/// Somebody who may come back.
struct Visitor {
    endpoint: Endpoint,
    config: ClientConfig,
}

impl Visitor {
    fn new() -> Visitor {
        let config = ClientConfig::danger_accept_any_certificate().alpn([ALPN]).early_data(true);
        let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        Visitor { endpoint, config: config.build().unwrap() }
    }

    /// A visit that takes its time.
    async fn come(&self, address: SocketAddr) -> Client {
        let connection = self.endpoint.connect(&self.config, address, "a.test").unwrap().await.unwrap();
        Client::on_connection(connection, "a.test", Default::default()).unwrap()
    }

    /// Another one, with requests in the first packets; `None` if none may be sent so early.
    fn come_back(&self, address: SocketAddr) -> Option<Client> {
        let connecting = self.endpoint.connect(&self.config, address, "a.test").unwrap();
        Some(Client::on_connection(connecting.into_early().ok()?, "a.test", Default::default()).unwrap())
    }

    async fn leave(&self, client: Client) {
        client.close();
        drop(client);
        self.endpoint.wait_idle().await;
    }
}

async fn ask(client: &Client, method: &str, path: &str) -> String {
    let response = client.send(request(method, path, true, Empty::<Bytes>::new())).await.unwrap();
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

#[tokio::test]
async fn what_changes_something_waits_and_each_route_has_its_own_mind() {
    use EarlyData::{All, Off, Safe};
    let folder = tempfile::tempdir().unwrap();
    // What all routes do, what some do, and what is answered early.
    let cases: [(EarlyData, &[OfRoute], &[&str]); 4] = [
        (Off, &[], &[]),
        (Safe, &[], &["GET /"]),
        (All, &[], &["GET /", "POST /"]),
        (
            Off,
            &[("/never", None), ("/safe", Some(Safe)), ("/all", Some(All))],
            &["GET /safe", "GET /all", "POST /all"],
        ),
    ];
    for (early_data, routes, expected) in cases {
        let (running, asked) = serve(folder.path(), early_data, routes).await;
        let address = running.addresses()[0];
        let visitor = Visitor::new();
        let client = visitor.come(address).await;
        // When it is answered, the tickets have come.
        assert_eq!(ask(&client, "POST", "/").await, "POST / false");
        assert_eq!(ask(&client, "GET", "/").await, "GET / false");
        asked.lock().unwrap().clear();
        let wire = Wire::new(address).await;
        let client = visitor.come_back(wire.address());
        assert_eq!(client.is_none(), expected.is_empty(), "{early_data:?}");
        let Some(client) = client else { continue };
        let mut asking = tokio::task::JoinSet::new();
        let paths = routes.iter().map(|(path, _)| *path).chain(["/"]);
        let mut wanted = Vec::new();
        for (method, path) in paths.flat_map(|path| [("GET", path), ("POST", path)]) {
            let what = format!("{method} {path}");
            wanted.push(format!("{what} {}", expected.contains(&what.as_str())));
            let (client, path) = (client.clone(), path.to_owned());
            asking.spawn(async move { ask(&client, method, &path).await });
        }
        let early = until_asked(&asked, expected.len()).await;
        assert!(early.iter().all(|line| line.ends_with(" true")), "{early:?}");
        wire.release();
        let mut answers = asking.join_all().await;
        answers.sort();
        wanted.sort();
        assert_eq!(answers, wanted, "{early_data:?}");
        assert_eq!(ask(&client, "POST", "/").await, "POST / false");
        assert_eq!(asked.lock().unwrap().len(), answers.len() + 1, "each is done once");
    }
}

/// What the service was asked for, once that are as many.
async fn until_asked(asked: &Asked, count: usize) -> Vec<String> {
    loop {
        let lines = asked.lock().unwrap().clone();
        if lines.len() >= count {
            return lines;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Somebody on the way, who sees all datagrams of a client, and holds back the server's until they are released: so long
/// no handshake is complete.
struct Wire {
    socket: Arc<UdpSocket>,
    held: Arc<watch::Sender<bool>>,
    /// From the client, in their order.
    seen: Arc<Mutex<Vec<Vec<u8>>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Wire {
    /// Before the server.
    async fn new(server: SocketAddr) -> Wire {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let seen = Arc::<Mutex<Vec<Vec<u8>>>>::default();
        let (held, holding) = watch::channel(true);
        let task = tokio::spawn(pass(Arc::clone(&socket), server, Arc::clone(&seen), holding));
        Wire { socket, held: Arc::new(held), seen, task }
    }

    fn release(&self) {
        self.held.send_replace(false);
    }

    fn address(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }

    fn seen(&self) -> Vec<Vec<u8>> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(
    socket: Arc<UdpSocket>,
    server: SocketAddr,
    seen: Arc<Mutex<Vec<Vec<u8>>>>,
    mut held: watch::Receiver<bool>,
) {
    let behind = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let (mut there, mut back) = ([0; 65536], [0; 65536]);
    let (mut client, mut waiting) = (None, Vec::new());
    loop {
        tokio::select! {
            Ok((length, from)) = socket.recv_from(&mut there) => {
                client = Some(from);
                seen.lock().unwrap().push(there[..length].to_vec());
                behind.send_to(&there[..length], server).await.unwrap();
            }
            Ok((length, _)) = behind.recv_from(&mut back) => waiting.push(back[..length].to_vec()),
            Ok(()) = held.changed() => {}
        }
        if !*held.borrow() {
            for datagram in waiting.drain(..) {
                socket.send_to(&datagram, client.unwrap()).await.unwrap();
            }
        }
    }
}

/// Sends all that again, in the same order and from elsewhere, until the server begins a handshake with whoever sends it.
async fn replay(datagrams: &[Vec<u8>], server: SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut answer = [0; 65536];
    loop {
        for datagram in datagrams {
            socket.send_to(datagram, server).await.unwrap();
        }
        // As long as the server remembers the visit it keeps silent, or says that it is over.
        let answered = tokio::time::timeout(Duration::from_millis(20), socket.recv(&mut answer)).await;
        if let Ok(Ok(length)) = answered
            && length >= 1200
            && answer[0] & 0xf0 == INITIAL
        {
            return;
        }
    }
}

/// The first bits of an Initial packet (RFC 9000 section 17.2.2).
const INITIAL: u8 = 0xc0;

/// A client that has been there before, so that the next time it brings requests in its first packets.
async fn known_visitor(address: SocketAddr) -> Visitor {
    let visitor = Visitor::new();
    let client = visitor.come(address).await;
    assert_eq!(ask(&client, "GET", "/first").await, "GET /first false");
    assert_eq!(ask(&client, "GET", "/first").await, "GET /first false");
    visitor.leave(client).await;
    visitor
}

/// When this is answered, everything that came before has been looked at: there is one shard with one socket.
async fn sweep(address: SocketAddr) {
    let visitor = Visitor::new();
    let client = visitor.come(address).await;
    assert_eq!(ask(&client, "GET", "/swept").await, "GET /swept false");
    visitor.leave(client).await;
}

/// How often the service was asked for this since.
fn count(asked: &Asked, line: &str) -> usize {
    asked.lock().unwrap().iter().filter(|asked| asked.starts_with(line)).count()
}

#[tokio::test]
async fn a_first_flight_that_is_sent_again_does_nothing_again() {
    let folder = tempfile::tempdir().unwrap();
    let (running, asked) = serve(folder.path(), EarlyData::All, &[]).await;
    let address = running.addresses()[0];
    let visitor = known_visitor(address).await;
    let wire = Wire::new(address).await;
    let client = visitor.come_back(wire.address()).unwrap();
    asked.lock().unwrap().clear();
    let done = async {
        until_asked(&asked, 2).await;
        wire.release();
    };
    let (get, post, ()) = tokio::join!(ask(&client, "GET", "/read"), ask(&client, "POST", "/change"), done);
    assert_eq!((get, post), ("GET /read true".to_owned(), "POST /change true".to_owned()));
    visitor.leave(client).await;
    let flight = wire.seen();
    drop(wire);
    // To the process that has taken it, twice.
    for _ in 0..2 {
        replay(&flight, address).await;
        sweep(address).await;
        assert_eq!((count(&asked, "GET /read"), count(&asked, "POST /change")), (1, 1));
    }
    // To another one, as after a restart or behind the same name.
    let (next, asked) = serve(folder.path(), EarlyData::All, &[]).await;
    replay(&flight, next.addresses()[0]).await;
    sweep(next.addresses()[0]).await;
    assert_eq!((count(&asked, "GET /read"), count(&asked, "POST /change")), (0, 0));
}

/// The client itself has not reached the server, so that its session is good for whoever is first.
#[tokio::test]
async fn of_a_first_flight_that_a_stranger_brings_only_what_is_safe_and_permitted_is_done_and_once() {
    let folder = tempfile::tempdir().unwrap();
    let routes = [("/read", Some(EarlyData::Safe)), ("/change", Some(EarlyData::Safe)), ("/never", None)];
    let (running, asked) = serve(folder.path(), EarlyData::Off, &routes).await;
    let address = running.addresses()[0];
    let visitor = known_visitor(address).await;
    // Nobody is there.
    let nobody = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let wire = Wire::new(nobody.local_addr().unwrap()).await;
    let client = visitor.come_back(wire.address()).unwrap();
    let asking = async {
        tokio::join!(
            ask(&client, "GET", "/read"),
            ask(&client, "POST", "/change"),
            ask(&client, "GET", "/never")
        )
    };
    // It sends again and again what is not acknowledged.
    let enough = async {
        while wire.seen().len() < 8 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        _ = asking => panic!("nobody can have answered"),
        () = enough => {}
    }
    let flight = wire.seen();
    drop(wire);
    replay(&flight, address).await;
    while count(&asked, "GET /read true") == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    replay(&flight, address).await;
    sweep(address).await;
    assert_eq!(count(&asked, "GET /read"), 1);
    assert_eq!((count(&asked, "POST /change"), count(&asked, "GET /never")), (0, 0));
}
