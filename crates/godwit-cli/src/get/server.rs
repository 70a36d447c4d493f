//! One server: its connections are made when the first URL needs them, and shared.
//!
//! Where the protocol is left open, TCP and QUIC are raced as [`super::memory`] advises, and later requests move to
//! HTTP/3 as soon as a connection for it is there.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use godwit::http3::Client;
use godwit::{Connection, EarlyDataStatus};
use http::HeaderValue;
use hyper::client::conn::http2;
use tokio::sync::{Mutex, MutexGuard};

use super::auto::{Attempt, HeadStart, Winner, contest};
use super::connect::{Allowed, Connected, Fault, FaultKind, Found, Network, Reached, Speaks};
use super::memory::{Alternative, Approach};
use super::plan::Versions;
use super::problem::Problem;
use super::session::{Pool, Session};
use super::target::Origin;
use super::upload::Upload;
use crate::output::{duration, http_date, unix_now};

/// A server and the connections to it.
pub(super) struct Server {
    pub(super) origin: Origin,
    versions: Versions,
    link: Mutex<Link>,
}

#[derive(Default)]
struct Link {
    /// It cannot be reached: nobody waits for that a second time.
    failed: Option<Problem>,
    found: Option<Found>,
    http3: Option<Client>,
    /// Where HTTP/3 is, if not where the URL says.
    alternative: Option<Alternative>,
    http2: Option<http2::SendRequest<Upload>>,
    http1: Option<Arc<Pool>>,
    /// QUIC in the background.
    rising: Option<Attempt>,
    /// The round-trip time, from the TCP handshake.
    rtt: Option<Duration>,
    /// TCP's first packet was lost.
    difficult: bool,
    why: Arc<str>,
}

/// A share in a connection.
pub(super) struct Share {
    pub(super) session: Session,
    /// What connecting took, for the URL that caused it: DNS and handshake.
    pub(super) fresh: Option<(Duration, Duration)>,
    /// Why it is this protocol.
    pub(super) why: Arc<str>,
}

impl Server {
    pub(super) fn new(origin: Origin, versions: Versions) -> Server {
        Server { origin, versions, link: Mutex::default() }
    }

    /// A connection, made now if there is none that takes requests. Others wait for it meanwhile.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub(super) async fn session(&self, network: &Arc<Network>) -> Result<Share, Problem> {
        let mut link = self.link.lock().await;
        if let Some(problem) = &link.failed {
            return Err(problem.clone());
        }
        self.settle(network, &mut link).await;
        self.begin_rising(network, &mut link);
        if let Some(session) = link.shared() {
            return Ok(Share { session, fresh: None, why: Arc::clone(&link.why) });
        }
        if let Some(pool) = link.http1.clone() {
            return self.further(network, pool, link).await;
        }
        match self.connect(network, &mut link).await {
            Ok(share) => Ok(share),
            Err(problem) => {
                link.failed = Some(problem.clone());
                Err(problem)
            }
        }
    }

    /// HTTP/3 did not do although there was a connection: it is left alone for a while.
    pub(super) async fn distrust_http3(&self, network: &Network) {
        let mut link = self.link.lock().await;
        if self.versions == Versions::Auto && link.http3.take().is_some() {
            network.memory().on_failure(&self.origin, 2, unix_now());
        }
    }

    /// A response had `Alt-Svc` headers: what they say holds from the next request on.
    pub(super) async fn on_alt_svc(&self, network: &Network, values: Vec<HeaderValue>) {
        if self.versions != Versions::Auto || !self.origin.secure || values.is_empty() {
            return;
        }
        let link = self.link.lock().await;
        let Some(found) = &link.found else { return };
        let mut memory = network.memory();
        memory.on_headers(&self.origin, &found.place, values.iter().map(HeaderValue::as_bytes), unix_now());
        if let Some(rtt) = link.rtt {
            memory.on_rtt(&self.origin, &found.place, rtt);
        }
    }

    /// Nothing more is asked: what an attempt under way has shown so far is remembered.
    pub(super) async fn conclude(&self, network: &Arc<Network>) {
        let mut link = self.link.lock().await;
        self.settle(network, &mut link).await;
        let (Some(rising), Some(found)) = (link.rising.take(), &link.found) else { return };
        let now = unix_now();
        if rising.evidence.is_heard() {
            network.memory().on_heard(&self.origin, &found.place, now);
        } else if let Some(flights) = rising.unanswered(link.rtt.unwrap_or_default())
            && !link.difficult
        {
            network.memory().on_silence(&self.origin, &found.place, flights, now);
        }
    }

    /// Makes the first connection.
    async fn connect(&self, network: &Arc<Network>, link: &mut Link) -> Result<Share, Problem> {
        let found = match link.found.clone() {
            Some(found) => Found { dns: Duration::ZERO, ..found },
            None => network.find(&self.origin, &self.origin.host, self.origin.port).await?,
        };
        link.found = Some(found.clone());
        let handshake = match self.versions {
            Versions::Http3 => {
                let connected =
                    network.http3(&self.origin, &found.addresses, &Arc::default()).await.map_err(problem)?;
                link.why = how_asked(&connected.link.connection()).into();
                link.http3 = Some(connected.link);
                connected.handshake
            }
            Versions::Http2 | Versions::Http1 => {
                let allowed = if self.versions == Versions::Http2 { Allowed::Http2 } else { Allowed::Http1 };
                let connected =
                    network.tcp(&self.origin, &found.addresses, allowed).await.map_err(problem)?;
                link.why = "as asked".into();
                return Ok(link.on_tcp(connected, found.dns).await);
            }
            Versions::Auto => match self.connect_auto(network, link, &found).await? {
                Ok(handshake) => handshake,
                Err(connected) => return Ok(link.on_tcp(connected, found.dns).await),
            },
        };
        let why = Arc::clone(&link.why);
        let fresh = Some((found.dns, handshake));
        let session = link
            .shared()
            .ok_or_else(|| Problem::of_origin("the server closed the connection at once; try again"))?;
        Ok(Share { session, fresh, why })
    }

    /// Chooses between TCP and QUIC. `Ok` if it is QUIC, with what the handshake took.
    async fn connect_auto(
        &self,
        network: &Arc<Network>,
        link: &mut Link,
        found: &Found,
    ) -> Result<Result<Duration, Connected<Reached>>, Problem> {
        let approach = match self.origin.secure {
            true => network.memory().approach(&self.origin, &found.place, unix_now()),
            false => Approach::Unknown,
        };
        let mut why = String::new();
        let (alternative, head_start) = match approach {
            Approach::Ahead(alternative, rtt) => {
                why.push_str("the server has offered HTTP/3");
                (alternative, HeadStart::after(rtt))
            }
            Approach::Together(alternative, since) => {
                let _ = write!(why, "UDP was silent on {}, so QUIC and TCP began together", http_date(since));
                (alternative, HeadStart::NONE)
            }
            Approach::Unknown | Approach::Blocked(..) => {
                link.why = why_tcp(&self.origin, &approach).into();
                let connected = network.tcp(&self.origin, &found.addresses, Allowed::Either).await;
                return connected.map(Err).map_err(problem);
            }
        };
        let mut attempt = Attempt::begin(network, &self.origin, alternative, &found.addresses);
        let evidence = Arc::clone(&attempt.evidence);
        let tcp = network.tcp(&self.origin, &found.addresses, Allowed::Either);
        let raced = {
            let mut quic = Box::pin(attempt.ended());
            contest(&mut quic, tcp, head_start, || evidence.is_heard()).await
        };
        match raced {
            Ok(Winner::Quic(connected, besides)) => {
                let _ = match besides {
                    None => write!(why, ", QUIC answered in {}", duration(connected.handshake)),
                    Some(besides) => write!(
                        why,
                        ", QUIC was there in {}, before TCP, begun {} ago",
                        duration(connected.handshake),
                        duration(besides)
                    ),
                };
                link.why = why.into();
                let handshake = connected.handshake;
                self.on_http3(network, link, connected, attempt.alternative.clone());
                Ok(Ok(handshake))
            }
            Ok(Winner::Tcp(connected, began, fault)) => {
                let _ = match &fault {
                    Some(fault) => write!(why, ", but it failed: {}", fault.problem),
                    None => {
                        let answer =
                            if evidence.is_heard() { "had not finished" } else { "had not answered" };
                        let (after, began) = (duration(attempt.elapsed()), duration(began));
                        write!(why, ", but QUIC {answer} in {after}, and TCP, begun after {began}, was there")
                    }
                };
                link.why = why.into();
                link.difficult = connected.link.was_difficult;
                match fault {
                    Some(fault) => self.on_fault(network, link, &fault),
                    None => link.rising = Some(attempt),
                }
                Ok(Err(connected))
            }
            Err((_, tcp)) => Err(tcp.problem),
        }
    }

    /// Another connection for HTTP/1.1, or one that has become free.
    async fn further(
        &self,
        network: &Arc<Network>,
        pool: Arc<Pool>,
        link: MutexGuard<'_, Link>,
    ) -> Result<Share, Problem> {
        let (why, found) = (Arc::clone(&link.why), link.found.clone());
        drop(link);
        let turn = match pool.turn().await.reuse() {
            Ok(lease) => return Ok(Share { session: Session::Http1(lease), fresh: None, why }),
            Err(turn) => turn,
        };
        let found = match found {
            Some(found) => found,
            None => network.find(&self.origin, &self.origin.host, self.origin.port).await?,
        };
        let connected = network.tcp(&self.origin, &found.addresses, Allowed::Http1).await.map_err(problem)?;
        let fresh = Some((Duration::ZERO, connected.handshake));
        match connected.link.speaks {
            Speaks::Http1(sender) => Ok(Share { session: Session::Http1(turn.with(sender)), fresh, why }),
            Speaks::Http2(sender) => Ok(Share { session: Session::Http2(sender), fresh, why }),
        }
    }

    /// Begins to connect to HTTP/3 in the background, if that is worth a try.
    fn begin_rising(&self, network: &Arc<Network>, link: &mut Link) {
        let idle = link.rising.is_none() && link.http3.as_ref().is_none_or(Client::is_closed);
        let on_tcp = link.http2.is_some() || link.http1.is_some();
        if self.versions != Versions::Auto || !self.origin.secure || !idle || !on_tcp {
            return;
        }
        let Some(found) = &link.found else { return };
        let approach = network.memory().approach(&self.origin, &found.place, unix_now());
        if let Approach::Ahead(alternative, _) | Approach::Together(alternative, _) = approach {
            link.rising = Some(Attempt::begin(network, &self.origin, alternative, &found.addresses));
        }
    }

    /// Takes over what an attempt in the background has come to.
    async fn settle(&self, network: &Arc<Network>, link: &mut Link) {
        let Some(mut rising) = link.rising.take_if(|rising| rising.is_finished()) else { return };
        match rising.ended().await {
            Ok(connected) => {
                link.why =
                    format!("QUIC, begun in the background, was there in {}", duration(connected.handshake))
                        .into();
                self.on_http3(network, link, connected, rising.alternative.clone());
            }
            Err(fault) => self.on_fault(network, link, &fault),
        }
    }

    fn on_http3(
        &self,
        network: &Network,
        link: &mut Link,
        connected: Connected<Client>,
        alternative: Alternative,
    ) {
        if let Some(found) = &link.found {
            let rtt = connected.link.connection().rtt();
            let mut memory = network.memory();
            memory.on_heard(&self.origin, &found.place, unix_now());
            memory.on_rtt(&self.origin, &found.place, rtt);
        }
        link.http3 = Some(connected.link);
        link.alternative = Some(alternative);
    }

    fn on_fault(&self, network: &Network, link: &Link, fault: &Fault) {
        tracing::debug!(origin = %self.origin, problem = %fault.problem, "QUIC failed");
        let Some(found) = &link.found else { return };
        match fault.kind {
            FaultKind::Silent if link.difficult => {}
            FaultKind::Silent => network.memory().on_silence(&self.origin, &found.place, 2, unix_now()),
            FaultKind::Server => network.memory().on_failure(&self.origin, 2, unix_now()),
            FaultKind::Here => {}
        }
    }
}

impl Link {
    /// A connection that takes many requests at a time, the best one.
    fn shared(&mut self) -> Option<Session> {
        self.http3.take_if(|client| client.is_closed());
        self.http2.take_if(|sender| sender.is_closed());
        if let Some(client) = &self.http3 {
            let alt_used = self.alternative.as_ref().and_then(|alternative| {
                HeaderValue::try_from(format!("{}:{}", bracketed(&alternative.host), alternative.port)).ok()
            });
            return Some(Session::Http3 { client: client.clone(), alt_used });
        }
        self.http2.clone().map(Session::Http2)
    }

    async fn on_tcp(&mut self, connected: Connected<Reached>, dns: Duration) -> Share {
        let Connected { link: reached, handshake } = connected;
        self.rtt = Some(reached.rtt);
        let session = match reached.speaks {
            Speaks::Http2(sender) => {
                self.http2 = Some(sender.clone());
                Session::Http2(sender)
            }
            Speaks::Http1(sender) => {
                let pool = self.http1.get_or_insert_with(Pool::new);
                Session::Http1(pool.turn().await.with(sender))
            }
        };
        Share { session, fresh: Some((dns, handshake)), why: Arc::clone(&self.why) }
    }
}

/// Why a connection is as it is that was asked for.
fn how_asked(connection: &Connection) -> &'static str {
    match (connection.early_data_status(), connection.is_resumed()) {
        (EarlyDataStatus::Offered, _) => "as asked, with a session from before, and at once",
        (_, true) => "as asked, with a session from before",
        _ => "as asked",
    }
}

fn problem(fault: Fault) -> Problem {
    fault.problem
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

fn why_tcp(origin: &Origin, approach: &Approach) -> String {
    match approach {
        Approach::Blocked(since, probe) => {
            format!(
                "UDP has been silent on this network since {}, and is tried again after {}",
                http_date(*since),
                http_date(*probe)
            )
        }
        _ if !origin.secure => "http:// is not encrypted, HTTP/3 always is".to_owned(),
        _ => "the server is not known to offer HTTP/3".to_owned(),
    }
}
