//! Who visits the site: for each protocol the same number of people, each making one visit after another.
//!
//! A visit opens a connection, makes six small requests one after the other, loads a page and then the files on it, all
//! at once, makes three more small requests, and goes. Sessions are not resumed: everybody comes for the first time.
//! The same visit over the other protocol comes from the same client port, and so over a link with the same random
//! choices.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use godwit::http3::{self, ErrorCode};
use godwit::{ClientConfig, Endpoint, TransportConfig};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::net::TcpSocket;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use super::preset::Conditions;
use super::samples::{Figures, Kind, Protocol, Recorder};
use super::setting::Setting;
use super::site::{self, NAME};
use crate::Error;
use godwit::crypto_provider;
use godwit_text::instant_now;

/// Client ports: below those that systems give out by themselves.
const PORTS: std::ops::Range<u16> = 10_000..32_000;
/// Requests per second that all visitors of a protocol make, about: more would measure the machine.
const PACE: f64 = 400.0;
/// Requests in a visit besides those for what is on the page, and about how many round trips it takes without loss.
const REQUESTS: f64 = 10.0;
const ROUND_TRIPS: f64 = 16.0;
const FEWEST: u16 = 4;
const MOST: u16 = 100;
/// A handshake that takes longer has failed.
const HANDSHAKE: Duration = Duration::from_secs(30);
/// What is under way at the end may take so long.
const AFTERWARDS: Duration = Duration::from_secs(12);

/// How many visit at the same time over each protocol.
pub(super) fn number_of_visitors(conditions: &Conditions, objects: u16) -> u16 {
    let visit = conditions.rtt.as_secs_f64() * ROUND_TRIPS;
    (PACE * visit / (REQUESTS + f64::from(objects))).round().clamp(f64::from(FEWEST), f64::from(MOST)) as u16
}

/// Where and how the site is visited, by everybody.
#[derive(Clone)]
pub struct Visitors {
    target: SocketAddr,
    local: IpAddr,
    count: u16,
    /// Files on the page.
    objects: u16,
    recorder: Recorder,
    tls: TlsConnector,
    quic: ClientConfig,
    until: Instant,
}

impl Visitors {
    pub(super) fn new(
        certificate: &CertificateDer<'static>,
        (local, target): (IpAddr, SocketAddr),
        setting: &Setting,
    ) -> Result<Visitors, Error> {
        let failed =
            |error: &dyn std::fmt::Display| Error::new(format!("cannot prepare the visitors: {error}"));
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate.clone()).map_err(|error| failed(&error))?;
        let mut tls = rustls::ClientConfig::builder_with_provider(crypto_provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(&error))?
            .with_root_certificates(roots.clone())
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"h2".to_vec()];
        tls.resumption = rustls::client::Resumption::disabled();
        let mut transport = TransportConfig::default();
        transport.handshake_timeout = HANDSHAKE;
        let quic = ClientConfig::with_roots(roots).alpn([http3::ALPN]).resumption(false).transport(transport);
        Ok(Visitors {
            target,
            local,
            count: setting.visitors,
            objects: setting.objects,
            recorder: Recorder::default(),
            tls: TlsConnector::from(Arc::new(tls)),
            quic: quic.build().map_err(|error| failed(&error))?,
            until: instant_now() + Duration::from_secs(setting.seconds),
        })
    }

    /// Visits until the time is over, and waits a while for what is then under way.
    pub async fn run(&self) {
        let mut people = JoinSet::new();
        for number in 0..self.count {
            for protocol in Protocol::BOTH {
                let visitors = self.clone();
                people.spawn(async move { visitors.visitor(protocol, number).await });
            }
        }
        let end = self.until + AFTERWARDS;
        let _ =
            tokio::time::timeout_at(end.into(), async { while people.join_next().await.is_some() {} }).await;
        people.shutdown().await;
    }

    /// What has been measured so far.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.recorder.figures()
    }

    fn is_over(&self) -> bool {
        instant_now() >= self.until
    }

    /// One person, who visits again and again.
    async fn visitor(&self, protocol: Protocol, number: u16) {
        // They do not all come at once.
        let left = self.until.saturating_duration_since(instant_now());
        tokio::time::sleep(left.min(Duration::from_secs(2)) * u32::from(number) / u32::from(self.count))
            .await;
        let share = (PORTS.end - PORTS.start) / self.count.max(1);
        for visit in (0..share).cycle() {
            if self.is_over() {
                return;
            }
            let port = PORTS.start + number * share + visit;
            match self.visit(protocol, port).await {
                Ok(()) => self.recorder.on_visit(protocol),
                // Somebody else has the port: the next one will do.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    /// One visit. Failures have been taken down, but for ports that cannot be had.
    async fn visit(&self, protocol: Protocol, port: u16) -> io::Result<()> {
        let socket = self.socket(protocol, port)?;
        let first = self.recorder.begin(protocol, Kind::First);
        let opened = match socket {
            Socket::H2(socket) => self.open_h2(socket).await,
            Socket::H3(endpoint) => self.open_h3(endpoint).await,
        };
        let answered = match opened {
            Ok(session) => session.get(&site::api(0)).await.map(|()| session),
            Err(problem) => Err(problem),
        };
        let session = match answered {
            Ok(session) => session,
            Err(problem) => {
                first.failed(&problem);
                return Err(io::Error::other(problem));
            }
        };
        first.done();
        let outcome = self.stay(protocol, usize::from(port), &session).await;
        session.close();
        outcome
    }

    /// What a visitor does after the first request.
    async fn stay(&self, protocol: Protocol, number: usize, session: &Session) -> io::Result<()> {
        self.requests(protocol, session, number + 1..number + 6).await?;
        if self.is_over() {
            return Ok(());
        }
        let page = self.recorder.begin(protocol, Kind::Page);
        let loaded = async {
            session.get(site::PAGE_PATH).await?;
            all(site::objects(self.objects).map(|path| async move { session.get(&path).await }).collect())
                .await
        };
        match loaded.await {
            Ok(()) => page.done(),
            Err(problem) => {
                page.failed(&problem);
                return Err(io::Error::other(problem));
            }
        }
        self.requests(protocol, session, number + 6..number + 9).await
    }

    /// Small requests, one after the other, until the time is over.
    async fn requests(
        &self,
        protocol: Protocol,
        session: &Session,
        numbers: std::ops::Range<usize>,
    ) -> io::Result<()> {
        for number in numbers {
            if self.is_over() {
                return Ok(());
            }
            self.request(protocol, session, &site::api(number)).await?;
        }
        Ok(())
    }

    async fn request(&self, protocol: Protocol, session: &Session, path: &str) -> io::Result<()> {
        let running = self.recorder.begin(protocol, Kind::Later);
        match session.get(path).await {
            Ok(()) => {
                running.done();
                Ok(())
            }
            Err(problem) => {
                running.failed(&problem);
                Err(io::Error::other(problem))
            }
        }
    }

    fn socket(&self, protocol: Protocol, port: u16) -> io::Result<Socket> {
        let local = SocketAddr::new(self.local, port);
        match protocol {
            Protocol::H2 => {
                let socket = TcpSocket::new_v4()?;
                // A visit long ago may have left the port in TIME-WAIT.
                socket.set_reuseaddr(true)?;
                socket.bind(local)?;
                Ok(Socket::H2(socket))
            }
            Protocol::H3 => Endpoint::client(local).map(Socket::H3),
        }
    }

    async fn open_h2(&self, socket: TcpSocket) -> Result<Session, String> {
        let opened = async {
            let stream = socket.connect(self.target).await?;
            stream.set_nodelay(true)?;
            let name = ServerName::try_from(NAME).map_err(io::Error::other)?;
            let stream = self.tls.connect(name, stream).await?;
            let builder = http2::Builder::new(TokioExecutor::new());
            let (sender, connection) =
                builder.handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
            tokio::spawn(connection);
            Ok::<_, io::Error>(Session::H2(sender))
        };
        match tokio::time::timeout(HANDSHAKE, opened).await {
            Ok(outcome) => outcome.map_err(|error| error.to_string()),
            Err(_) => Err("no connection in 30 s".to_owned()),
        }
    }

    async fn open_h3(&self, endpoint: Endpoint) -> Result<Session, String> {
        let client = http3::Client::connect(&endpoint, &self.quic, self.target, NAME).await;
        client.map(|client| Session::H3(client, endpoint)).map_err(|error| error.to_string())
    }
}

/// Waits for all of them, at the same time, and tells of a failure.
async fn all<F: Future<Output = Result<(), String>>>(futures: Vec<F>) -> Result<(), String> {
    let mut pending: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut outcome = Ok(());
    poll_fn(move |cx| {
        pending.retain_mut(|future| match future.as_mut().poll(cx) {
            Poll::Pending => true,
            Poll::Ready(done) => {
                outcome = std::mem::replace(&mut outcome, Ok(())).and(done);
                false
            }
        });
        if pending.is_empty() { Poll::Ready(std::mem::replace(&mut outcome, Ok(()))) } else { Poll::Pending }
    })
    .await
}

/// What a visit begins with: a port of its own.
enum Socket {
    H2(TcpSocket),
    H3(Endpoint),
}

/// An open connection.
enum Session {
    H2(SendRequest<Empty<Bytes>>),
    H3(http3::Client, Endpoint),
}

impl Session {
    /// Asks for a path and reads the answer to its end.
    async fn get(&self, path: &str) -> Result<(), String> {
        let uri = format!("https://{NAME}{path}");
        let request = Request::get(uri).body(Empty::<Bytes>::new()).map_err(|error| error.to_string())?;
        let status = match self {
            Session::H2(sender) => {
                let mut sender = sender.clone();
                sender.ready().await.map_err(|error| error.to_string())?;
                let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
                let status = response.status();
                response.into_body().collect().await.map_err(|error| error.to_string())?;
                status
            }
            Session::H3(client, _) => {
                let response = client.send(request).await.map_err(|error| error.to_string())?;
                let status = response.status();
                response.into_body().collect().await.map_err(|error| error.to_string())?;
                status
            }
        };
        if status == StatusCode::OK { Ok(()) } else { Err(format!("{path}: status {}", status.as_u16())) }
    }

    fn close(self) {
        if let Session::H3(client, endpoint) = self {
            client.close();
            endpoint.close(ErrorCode::H3_NO_ERROR, b"");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::preset::Preset;

    #[test]
    fn their_number_suits_the_link() {
        let of = |preset: Preset| number_of_visitors(&preset.conditions(), site::FEW_OBJECTS);
        assert_eq!(of(Preset::Mobile), MOST);
        assert_eq!(of(Preset::Wifi), 6);
        assert_eq!(of(Preset::Satellite), MOST);
        assert_eq!(number_of_visitors(&Preset::Wifi.conditions(), 500), FEWEST);
    }

    #[tokio::test]
    async fn all_waits_for_all_and_tells_of_a_failure() {
        let wait = |millis: u64, good: bool| async move {
            tokio::time::sleep(Duration::from_millis(millis)).await;
            if good { Ok(()) } else { Err("no".to_owned()) }
        };
        assert!(all(vec![wait(2, true), wait(0, true)]).await.is_ok());
        assert!(all(vec![wait(0, false), wait(2, true)]).await.is_err());
    }
}
