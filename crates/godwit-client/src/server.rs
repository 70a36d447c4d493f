//! One server: its connections are made when the first URL needs them, and shared.
//!
//! Where the protocol is left open, TCP and QUIC are raced as [`crate::memory`] advises, and later requests move to
//! HTTP/3 as soon as a connection for it is there.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as SyncMutex, MutexGuard as SyncGuard, PoisonError};
use std::time::{Duration, Instant};

use godwit::http3::Client;
use godwit::{Connection, EarlyDataStatus};
use godwit_text::{duration, http_date, instant_now, unix_now};
use http::HeaderValue;
use hyper::client::conn::http2;
use tokio::sync::{Mutex, MutexGuard};

use crate::body::RequestBody;
use crate::connect::Blame;
use crate::connect::tcp::{Offer, Sender, TcpFacts, TcpLink};
use crate::decision::head_start::HeadStart;
use crate::decision::lesson::{Lesson, Sight, Tcp, learn};
use crate::error::{Error, ErrorKind};
use crate::memory::{Approach, Http3Place, NetworkId};
use crate::names::Said;
use crate::network::{ConnectFailure, Connected, Found, Network};
use crate::proxy::Proxy;
use crate::race::{Attempt, Winner, contest};
use crate::session::{Forwarder, Pool, Session};
use crate::target::Origin;
use crate::usage::{InUse, Usage};
use crate::vigil::Vigil;

/// Which versions of HTTP may be spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Versions {
    /// HTTP/3 where the server has offered it and UDP works, HTTP/2 or HTTP/1.1 otherwise.
    #[default]
    Auto,
    /// HTTP/1.1 alone.
    Http1,
    /// HTTP/2 alone.
    Http2,
    /// HTTP/3 alone.
    Http3,
    /// HTTP/2 or HTTP/1.1, as the server prefers: nothing goes over UDP.
    Tcp,
}

/// A server and the connections to it.
pub(crate) struct Server {
    origin: Origin,
    versions: Versions,
    /// Held while a connection is made.
    connections: Mutex<Connections>,
    /// Never held for long: who distrusts HTTP/3 does not wait for a connection.
    http3: SyncMutex<Option<Http3>>,
    /// Never held for long: responses that are there do not wait for a connection.
    way: SyncMutex<Way>,
    usage: Arc<Usage>,
    /// A task closes the connections when they have not been needed for long.
    is_watched: AtomicBool,
}

/// What is known of the way to the server.
#[derive(Default)]
struct Way {
    /// The network that it was last looked up on.
    network: Option<NetworkId>,
    /// The round-trip time, from the TCP handshake.
    rtt: Option<Duration>,
}

/// Which connection for HTTP/3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Http3Number {
    id: u64,
    /// Each family of addresses has an endpoint with numbers of its own.
    is_ipv6: bool,
}

/// A connection for HTTP/3.
struct Http3 {
    number: Http3Number,
    /// `None` once it takes no more requests. Those that are under way may still fail.
    client: Option<Client>,
    /// Where it goes, if not where the URL says.
    alternative: Option<Http3Place>,
    reason: Arc<str>,
    /// No request has gone out on it.
    is_new: bool,
    vigil: Arc<Vigil>,
    /// Of the other origins that were asked for: whether this server is theirs too.
    judged: BTreeMap<Origin, bool>,
}

#[derive(Default)]
struct Connections {
    /// It could not be reached, then: who asked before that does not wait for it a second time.
    failed: Option<(Error, Instant)>,
    found: Option<Found>,
    http2: Option<Http2>,
    /// With why it is HTTP/1.1.
    http1: Option<(Arc<Pool>, Arc<str>)>,
    /// QUIC in the background.
    background: Option<Attempt>,
    /// Whether TCP had difficulties when it was connected last.
    tcp: Option<bool>,
}

/// A connection for HTTP/2.
struct Http2 {
    sender: http2::SendRequest<RequestBody>,
    facts: Arc<TcpFacts>,
    reason: Arc<str>,
}

/// A share in a connection.
pub(crate) struct Share {
    pub(crate) session: Session,
    /// What connecting took, for the URL that caused it: DNS and handshake.
    pub(crate) fresh: Option<(Duration, Duration)>,
    /// Why it is this protocol: of this connection, whatever others there are.
    pub(crate) reason: Arc<str>,
    /// No request has gone out on it.
    pub(crate) is_new: bool,
}

impl Server {
    pub(crate) fn new(origin: Origin, versions: Versions) -> Server {
        Server {
            origin,
            versions,
            connections: Mutex::default(),
            http3: SyncMutex::default(),
            way: SyncMutex::default(),
            usage: Usage::new(),
            is_watched: AtomicBool::new(false),
        }
    }

    fn http3(&self) -> SyncGuard<'_, Option<Http3>> {
        self.http3.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn way(&self) -> SyncGuard<'_, Way> {
        self.way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection, made now if there is none that takes requests, and what says that it is needed. Others wait for it
    /// meanwhile.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub(crate) async fn session(self: &Arc<Self>, network: &Arc<Network>) -> Result<(Share, InUse), Error> {
        let in_use = self.usage.begin();
        let share = self.share(network).await?;
        self.watch(network);
        Ok((share, in_use))
    }

    /// Whose it is.
    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// A share in the connection for HTTP/3 that there is, for a request to another server, if this one says that it is
    /// that one, too (ORIGIN, RFC 9412), and shows it by its certificate.
    pub(crate) fn session_for(&self, other: &Origin, network: &Network) -> Option<(Share, InUse)> {
        let mut http3 = self.http3();
        let http3 = http3.as_mut()?;
        let client = http3.client.as_ref().filter(|client| !client.is_closed())?;
        // Ahead of the handshake it is not known who says so.
        let connection = Some(client.connection()).filter(|connection| !is_early(connection))?;
        if !client.origins()?.contains(&other.to_string()) {
            return None;
        }
        // What a server says has bounds, and with it this.
        let judged = http3.judged.entry(other.clone()).or_insert_with(|| network.is_also(&connection, other));
        if !*judged {
            return None;
        }
        let mut share = http3.share()?;
        if let Session::Http3 { alt_used, .. } = &mut share.session {
            *alt_used = None;
        }
        share.reason = format!("the server of {} answers for it too, as it says", self.origin).into();
        Some((share, self.usage.begin()))
    }

    /// It has said so and does not answer for that server after all (421).
    pub(crate) fn is_not(&self, other: &Origin) {
        if let Some(http3) = self.http3().as_mut() {
            http3.judged.insert(other.clone(), false);
        }
    }

    /// The same over TCP, as nothing comes over UDP any more.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub(crate) async fn session_over_tcp(
        self: &Arc<Self>,
        network: &Arc<Network>,
    ) -> Result<(Share, InUse), Error> {
        let in_use = self.usage.begin();
        let mut connections = self.connections.lock().await;
        connections.http2.take_if(|http2| http2.sender.is_closed());
        if let Some(http2) = &connections.http2 {
            return Ok((http2.share(), in_use));
        }
        if let Some((pool, reason)) = connections.http1.clone() {
            return Ok((self.further(network, pool, reason, connections).await?, in_use));
        }
        let found = match connections.found.clone().filter(Found::is_fresh) {
            Some(found) => Found { dns: Duration::ZERO, ..found },
            None => network.find_origin(&self.origin).await?,
        };
        let connected = network.tcp(&self.origin, &found.tcp, Offer::Either).await.map_err(in_words)?;
        let dns = found.dns;
        connections.found = Some(found);
        let reason = "nothing came over UDP any more".into();
        let share = self.on_tcp(network, &mut connections, connected, dns, reason).await;
        drop(connections);
        self.watch(network);
        Ok((share, in_use))
    }

    async fn share(&self, network: &Arc<Network>) -> Result<Share, Error> {
        let asked = instant_now();
        let mut connections = self.connections.lock().await;
        if let Some((error, failed)) = &connections.failed
            && asked <= *failed + network.failures_hold()
        {
            return Err(error.clone());
        }
        self.take_background(network, &mut connections).await;
        self.begin_in_background(network, &mut connections);
        if let Some(share) = self.shared(&mut connections) {
            return Ok(share);
        }
        if let Some((pool, reason)) = connections.http1.clone() {
            return self.further(network, pool, reason, connections).await;
        }
        match self.connect(network, &mut connections).await {
            Ok(share) => Ok(share),
            Err(error) => {
                connections.failed = Some((error.clone(), instant_now()));
                Err(error)
            }
        }
    }

    /// Has the connections closed when they have not been needed for long.
    fn watch(self: &Arc<Self>, network: &Arc<Network>) {
        if self.is_watched.swap(true, Ordering::Relaxed) {
            return;
        }
        let (server, network, limit) =
            (Arc::downgrade(self), Arc::downgrade(network), network.idle_timeout());
        tokio::spawn(async move {
            let mut pause = limit;
            loop {
                tokio::time::sleep(pause).await;
                let (Some(server), Some(network)) = (server.upgrade(), network.upgrade()) else { return };
                match server.close_idle(&network, limit).await {
                    Some(again) => pause = again,
                    None => return,
                }
            }
        });
    }

    /// Closes the connections if they have not been needed for so long; otherwise says when to look again.
    async fn close_idle(&self, network: &Arc<Network>, limit: Duration) -> Option<Duration> {
        let mut connections = self.connections.lock().await;
        match self.usage.idle() {
            None => Some(limit),
            Some(idle) if idle < limit => Some(limit - idle),
            Some(_) => {
                self.take_background(network, &mut connections).await;
                *self.http3() = None;
                (connections.http2, connections.http1) = (None, None);
                if connections.background.is_some() {
                    return Some(limit);
                }
                // Those who find it so look after what they make.
                self.is_watched.store(false, Ordering::Relaxed);
                None
            }
        }
    }

    /// Whether HTTP/3 comes into question besides others.
    fn may_race(&self, network: &Network) -> bool {
        self.versions == Versions::Auto && self.origin.secure && network.proxy(&self.origin).is_none()
    }

    /// How it should be reached, by what it has offered and what DNS says of it.
    fn approach(&self, network: &Network, here: &NetworkId) -> Approach {
        let said = network.names().known(&self.origin);
        let record = said.as_ref().and_then(|said| said.http3()).map(|service| Http3Place {
            host: service.target.clone().unwrap_or_else(|| self.origin.host.clone()),
            port: service.port.unwrap_or(self.origin.port),
            by_record: true,
        });
        let (mut memory, now) = (network.memory(), unix_now());
        let approach = memory.approach_by(&self.origin, here, record, now);
        if let Approach::Ahead(place, _) | Approach::Together(place, _) = &approach
            && place.by_record
        {
            memory.on_record(&self.origin, here, place, now);
        }
        approach
    }

    /// HTTP/3 did not do although there was this connection: it is left alone for a while.
    pub(crate) fn distrust_http3(&self, network: &Network, connection: Http3Number) {
        // Of several requests that fail on one connection the first says so, and another connection is not meant.
        let is_it = |http3: &mut Http3| http3.number == connection;
        if self.versions == Versions::Auto && self.http3().take_if(is_it).is_some() {
            network.memory().on_death(&self.origin, unix_now());
        }
    }

    /// A response has come on a connection that went ahead of its handshake: now something has been heard.
    pub(crate) fn on_answered(&self, network: &Network, connection: &Connection) {
        let way = self.way();
        if let Some(here) = way.network.as_ref().filter(|_| self.versions == Versions::Auto) {
            let mut memory = network.memory();
            memory.on_heard(&self.origin, here, unix_now());
            memory.on_rtt(&self.origin, here, connection.rtt());
        }
    }

    /// A response had `Alt-Svc` headers: what they say holds from the next request on.
    pub(crate) fn on_alt_svc(&self, network: &Network, values: &[HeaderValue]) {
        if !self.may_race(network) || values.is_empty() {
            return;
        }
        let way = self.way();
        let Some(here) = &way.network else { return };
        let mut memory = network.memory();
        memory.on_headers(&self.origin, here, values.iter().map(HeaderValue::as_bytes), unix_now());
        if let Some(rtt) = way.rtt {
            memory.on_rtt(&self.origin, here, rtt);
        }
    }

    /// Whether nobody would miss it: it has no connection, and is making none.
    pub(crate) fn is_idle(&self) -> bool {
        self.connections.try_lock().is_ok_and(|connections| {
            !self.http3().as_ref().is_some_and(Http3::is_open)
                && connections.http2.as_ref().is_none_or(|http2| http2.sender.is_closed())
                && connections.background.is_none()
                && connections.http1.as_ref().is_none_or(|(pool, _)| pool.is_unused())
        })
    }

    /// Nothing more is asked: what an attempt under way has shown so far is remembered.
    pub(crate) async fn conclude(&self, network: &Arc<Network>) {
        let mut connections = self.connections.lock().await;
        self.take_background(network, &mut connections).await;
        let (Some(background), Some(found)) = (connections.background.take(), &connections.found) else {
            return;
        };
        let sight = background.sight(self.way().rtt.unwrap_or_default());
        self.remember(network, &found.network, learn(&sight, connections.tcp_met()));
    }

    /// Remembers what an attempt has taught.
    fn remember(&self, network: &Network, here: &NetworkId, lesson: Lesson) {
        let now = unix_now();
        let mut memory = network.memory();
        match lesson {
            Lesson::Heard => memory.on_heard(&self.origin, here, now),
            Lesson::Silent(flights) => memory.on_silence(&self.origin, here, flights, now),
            Lesson::Server => memory.on_failure(&self.origin, 2, now),
            Lesson::Nothing => {}
        }
    }

    /// Makes the first connection.
    async fn connect(&self, network: &Arc<Network>, connections: &mut Connections) -> Result<Share, Error> {
        let found = match connections.found.clone().filter(Found::is_fresh) {
            Some(found) => Found { dns: Duration::ZERO, ..found },
            None => network.find_origin(&self.origin).await?,
        };
        self.way().network = Some(found.network.clone());
        connections.found = Some(found.clone());
        let handshake = match self.versions {
            Versions::Http3 if network.proxy(&self.origin).is_some() => {
                let text = "HTTP/3 does not go through a proxy; allow other versions, or leave out the proxy";
                return Err(Error::of_origin(ErrorKind::Connect, text));
            }
            Versions::Http3 => {
                let places = network.names().http3_places(&self.origin, &found.addresses).await;
                let connected =
                    network.http3(&self.origin, &places, &Arc::default(), None).await.map_err(in_words)?;
                let reason = how_asked(&connected.link.connection());
                let vigil = Vigil::new(network, None, None);
                *self.http3() = Some(Http3::new(connected.link, None, reason.into(), vigil));
                connected.handshake
            }
            Versions::Http1 | Versions::Http2 | Versions::Tcp => {
                let offer = match self.versions {
                    Versions::Http1 => Offer::Http1,
                    Versions::Http2 => Offer::Http2,
                    _ => Offer::Either,
                };
                let connected = network.tcp(&self.origin, &found.tcp, offer).await.map_err(in_words)?;
                return Ok(self.on_tcp(network, connections, connected, found.dns, "as asked".into()).await);
            }
            Versions::Auto => match self.connect_auto(network, connections, &found).await? {
                Ok(handshake) => handshake,
                Err((connected, reason)) => {
                    return Ok(self.on_tcp(network, connections, connected, found.dns, reason).await);
                }
            },
        };
        let share = self.shared(connections).ok_or_else(|| {
            Error::of_origin(ErrorKind::Connect, "the server closed the connection at once; try again")
        })?;
        Ok(Share { fresh: Some((found.dns, handshake)), ..share })
    }

    /// Chooses between TCP and QUIC. `Ok` if it is QUIC, with what the handshake took; otherwise with why it is not.
    async fn connect_auto(
        &self,
        network: &Arc<Network>,
        connections: &mut Connections,
        found: &Found,
    ) -> Result<Result<Duration, (Connected<TcpLink>, Arc<str>)>, Error> {
        let approach = match self.may_race(network) {
            true => self.approach(network, &found.network),
            false => Approach::Unknown,
        };
        let mut why = String::new();
        let (alternative, head_start, rtt) = match approach {
            Approach::Ahead(alternative, rtt) => {
                why.push_str(who_offers(&alternative));
                (alternative, HeadStart::after(rtt), rtt)
            }
            Approach::Together(alternative, doubt) => {
                let _ = write!(why, "{doubt}, so QUIC and TCP began together");
                (alternative, HeadStart::NONE, None)
            }
            Approach::Unknown | Approach::Blocked(..) => {
                let reason =
                    why_tcp(&self.origin, &approach, network.proxy(&self.origin), found.said.as_deref());
                let reason = reason.into();
                let connected = network.tcp(&self.origin, &found.tcp, Offer::Either).await;
                return connected.map(|connected| Err((connected, reason))).map_err(in_words);
            }
        };
        let mut attempt = Attempt::begin(network, &self.origin, alternative, &found.addresses, rtt);
        let evidence = Arc::clone(&attempt.evidence);
        let tcp = network.tcp(&self.origin, &found.tcp, Offer::Either);
        let raced = {
            let mut quic = Box::pin(attempt.ended());
            contest(&mut quic, tcp, head_start, evidence.follow()).await
        };
        match raced {
            Ok(Winner::Quic(connected, besides)) => {
                let _ = match besides {
                    _ if is_early(&connected.link.connection()) => write!(why, ", {AT_ONCE}"),
                    None => write!(why, ", QUIC answered in {}", duration(connected.handshake)),
                    Some(besides) => write!(
                        why,
                        ", QUIC was there in {}, before TCP, begun {} ago",
                        duration(connected.handshake),
                        duration(besides)
                    ),
                };
                let handshake = connected.handshake;
                self.on_http3(network, connections, connected, attempt.alternative.clone(), why.into());
                Ok(Ok(handshake))
            }
            Ok(Winner::Tcp(connected, began, failure)) => {
                let _ = match &failure {
                    Some(failure) => write!(why, ", but it failed: {}", failure.error),
                    None => {
                        let answer =
                            if evidence.is_heard() { "had not finished" } else { "had not answered" };
                        let (after, began) = (duration(attempt.elapsed()), duration(began));
                        write!(why, ", but QUIC {answer} in {after}, and TCP, begun after {began}, was there")
                    }
                };
                connections.tcp = Some(connected.link.was_difficult);
                match failure {
                    Some(failure) => {
                        self.on_failure(network, connections, &failure, attempt.evidence.sight())
                    }
                    None => connections.background = Some(attempt),
                }
                Ok(Err((connected, why.into())))
            }
            Err((_, tcp)) => Err(tcp.error),
        }
    }

    /// Another connection for HTTP/1.1, or one that has become free.
    async fn further(
        &self,
        network: &Arc<Network>,
        pool: Arc<Pool>,
        reason: Arc<str>,
        connections: MutexGuard<'_, Connections>,
    ) -> Result<Share, Error> {
        let found = connections.found.clone();
        drop(connections);
        let turn = match pool.turn().await.reuse() {
            Ok(lease) => {
                return Ok(Share {
                    session: Session::Http1(lease, self.forwarder(network)),
                    fresh: None,
                    reason,
                    is_new: false,
                });
            }
            Err(turn) => turn,
        };
        let found = match found.filter(Found::is_fresh) {
            Some(found) => found,
            None => network.find_origin(&self.origin).await?,
        };
        let connected = network.tcp(&self.origin, &found.tcp, Offer::Http1).await.map_err(in_words)?;
        let fresh = Some((Duration::ZERO, connected.handshake));
        let TcpLink { sender, facts, .. } = connected.link;
        let session = match sender {
            Sender::Http1(sender) => Session::Http1(turn.with(sender, facts), self.forwarder(network)),
            Sender::Http2(sender) => Session::Http2(sender, facts),
        };
        Ok(Share { session, fresh, reason, is_new: true })
    }

    /// The proxy, if it is to be asked for whole URLs.
    fn forwarder(&self, network: &Network) -> Option<Forwarder> {
        let proxy = network.proxy(&self.origin).filter(|_| !self.origin.secure)?;
        Some(Forwarder { origin: self.origin.clone(), authorization: proxy.authorization.clone() })
    }

    /// Begins to connect to HTTP/3 in the background, if that is worth a try.
    fn begin_in_background(&self, network: &Arc<Network>, connections: &mut Connections) {
        // One on which nothing comes is of use to nobody, and may stay so when no request is under way to hear of it.
        let is_of_use = |http3: &Http3| http3.is_open() && !http3.vigil.is_suspect();
        let idle = connections.background.is_none() && !self.http3().as_ref().is_some_and(is_of_use);
        let on_tcp = connections.http2.is_some() || connections.http1.is_some();
        if !self.may_race(network) || !idle || !on_tcp {
            return;
        }
        let Some(found) = &connections.found else { return };
        let approach = self.approach(network, &found.network);
        let (alternative, rtt) = match approach {
            Approach::Ahead(alternative, rtt) => (alternative, rtt),
            Approach::Together(alternative, _) => (alternative, None),
            _ => return,
        };
        connections.background =
            Some(Attempt::begin(network, &self.origin, alternative, &found.addresses, rtt));
    }

    /// Takes over what an attempt in the background has come to.
    async fn take_background(&self, network: &Arc<Network>, connections: &mut Connections) {
        let Some(mut background) = connections.background.take_if(|background| background.is_finished())
        else {
            return;
        };
        match background.ended().await {
            Ok(connected) => {
                let what = match is_early(&connected.link.connection()) {
                    true => AT_ONCE.to_owned(),
                    false => format!("was there in {}", duration(connected.handshake)),
                };
                let reason = format!("QUIC, begun in the background, {what}").into();
                self.on_http3(network, connections, connected, background.alternative.clone(), reason);
            }
            Err(failure) => self.on_failure(network, connections, &failure, background.evidence.sight()),
        }
    }

    async fn on_tcp(
        &self,
        network: &Network,
        connections: &mut Connections,
        connected: Connected<TcpLink>,
        dns: Duration,
        reason: Arc<str>,
    ) -> Share {
        let Connected { link: TcpLink { sender, facts, was_difficult }, handshake } = connected;
        connections.tcp = Some(was_difficult);
        self.way().rtt = Some(facts.rtt);
        if let Some(found) = &connections.found {
            network.memory().on_tcp(&found.network, was_difficult);
        }
        let session = match sender {
            Sender::Http2(sender) => {
                let (shared, facts_too) = (sender.clone(), Arc::clone(&facts));
                let reason = Arc::clone(&reason);
                connections.http2 = Some(Http2 { sender: shared, facts: facts_too, reason });
                Session::Http2(sender, facts)
            }
            Sender::Http1(sender) => {
                let pool = || (Pool::new(network.idle_timeout()), Arc::clone(&reason));
                let (pool, _) = connections.http1.get_or_insert_with(pool);
                Session::Http1(pool.turn().await.with(sender, facts), self.forwarder(network))
            }
        };
        Share { session, fresh: Some((dns, handshake)), reason, is_new: true }
    }

    /// How long the first answer may take on a connection that goes ahead of its handshake.
    fn patience(&self, network: &Network, connection: &Connection) -> Option<Duration> {
        let found = self.way().network.clone().filter(|_| is_early(connection))?;
        let approach = self.approach(network, &found);
        let Approach::Ahead(_, rtt) = approach else { return Some(Duration::ZERO) };
        Some(HeadStart::after(rtt).silent)
    }

    fn on_http3(
        &self,
        network: &Arc<Network>,
        connections: &mut Connections,
        connected: Connected<Client>,
        alternative: Http3Place,
        reason: Arc<str>,
    ) {
        // Ahead of the handshake nothing has been heard yet, and the round-trip time is a guess.
        if let Some(found) = &connections.found
            && !is_early(&connected.link.connection())
        {
            let rtt = connected.link.connection().rtt();
            let mut memory = network.memory();
            memory.on_heard(&self.origin, &found.network, unix_now());
            memory.on_rtt(&self.origin, &found.network, rtt);
        }
        let first = self.patience(network, &connected.link.connection());
        let vigil = Vigil::new(network, Some(self.origin.clone()), first);
        *self.http3() = Some(Http3::new(connected.link, Some(alternative), reason, vigil));
    }

    /// A connection that takes many requests at a time, the best one.
    fn shared(&self, connections: &mut Connections) -> Option<Share> {
        let http3 = self.http3().as_mut().and_then(Http3::share);
        connections.http2.take_if(|http2| http2.sender.is_closed());
        http3.or_else(|| connections.http2.as_ref().map(Http2::share))
    }

    fn on_failure(
        &self,
        network: &Network,
        connections: &Connections,
        failure: &ConnectFailure,
        sight: Sight,
    ) {
        tracing::debug!(origin = %self.origin, error = %failure.error, "QUIC failed");
        let Some(found) = &connections.found else { return };
        let lesson = match failure.blame {
            // It was waited for until the end.
            Blame::Silence if !sight.heard => {
                learn(&Sight { flights: sight.flights.max(2), ..sight }, connections.tcp_met())
            }
            // Whoever answers and does not finish has no usable HTTP/3.
            Blame::Silence | Blame::Server => Lesson::Server,
            Blame::Here => Lesson::Nothing,
        };
        self.remember(network, &found.network, lesson);
    }
}

impl Connections {
    /// What TCP met.
    fn tcp_met(&self) -> Tcp {
        match self.tcp {
            None => Tcp::Unconnected,
            Some(true) => Tcp::Difficult,
            Some(false) => Tcp::Easy,
        }
    }
}

impl Http3 {
    fn new(client: Client, alternative: Option<Http3Place>, reason: Arc<str>, vigil: Arc<Vigil>) -> Http3 {
        let number = Http3Number::of(&client.connection());
        Http3 {
            number,
            client: Some(client),
            alternative,
            reason,
            is_new: true,
            vigil,
            judged: BTreeMap::new(),
        }
    }

    fn is_open(&self) -> bool {
        self.client.as_ref().is_some_and(|client| !client.is_closed())
    }

    /// A share in it, if it takes requests.
    fn share(&mut self) -> Option<Share> {
        self.client.take_if(|client| client.is_closed());
        // Nothing new goes where nothing comes back.
        let client = self.client.clone().filter(|_| !self.vigil.is_suspect())?;
        // What DNS says of a server is no alternative to it (RFC 9460 section 1.2).
        let alternative = self.alternative.as_ref().filter(|alternative| !alternative.by_record);
        let alt_used = alternative.and_then(|alternative| {
            HeaderValue::try_from(format!("{}:{}", bracketed(&alternative.host), alternative.port)).ok()
        });
        let is_new = std::mem::take(&mut self.is_new);
        let session = Session::Http3 { client, alt_used, vigil: Arc::clone(&self.vigil) };
        Some(Share { session, fresh: None, reason: Arc::clone(&self.reason), is_new })
    }
}

impl Http2 {
    fn share(&self) -> Share {
        let session = Session::Http2(self.sender.clone(), Arc::clone(&self.facts));
        Share { session, fresh: None, reason: Arc::clone(&self.reason), is_new: false }
    }
}

impl Http3Number {
    pub(crate) fn of(connection: &Connection) -> Http3Number {
        Http3Number { id: connection.id(), is_ipv6: connection.remote_address().is_ipv6() }
    }
}

/// Of a connection that goes ahead of its handshake: nobody has answered.
const AT_ONCE: &str = "offering a session from before, and the request at once";

/// Whether what is sent now goes ahead of the handshake: the server may refuse it.
pub(crate) fn is_early(connection: &Connection) -> bool {
    connection.early_data_status() == EarlyDataStatus::Offered
}

/// Why a connection is as it is that was asked for.
fn how_asked(connection: &Connection) -> String {
    match (is_early(connection), connection.is_resumed()) {
        (true, _) => format!("as asked, {AT_ONCE}"),
        (_, true) => "as asked, with a session from before".to_owned(),
        _ => "as asked".to_owned(),
    }
}

fn in_words(failure: ConnectFailure) -> Error {
    failure.error
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

fn who_offers(place: &Http3Place) -> &'static str {
    match place.by_record {
        true => "the server's HTTPS record offers HTTP/3",
        false => "the server has offered HTTP/3",
    }
}

fn why_tcp(origin: &Origin, approach: &Approach, proxy: Option<&Proxy>, said: Option<&Said>) -> String {
    match approach {
        _ if proxy.is_some() => "HTTP/3 does not go through a proxy".to_owned(),
        Approach::Blocked(doubt, probe) => {
            format!("{doubt}, and is tried again after {}", http_date(*probe))
        }
        _ if !origin.secure => "http:// is not encrypted, HTTP/3 always is".to_owned(),
        _ => match said {
            Some(said) => format!("the server is not known to offer HTTP/3: {said}"),
            None => "the server is not known to offer HTTP/3".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;
    use crate::names::Names;
    use crate::network::NetworkOptions;
    use crate::proxy::Proxies;
    use crate::trust::Trust;

    fn origin() -> Origin {
        Origin { secure: true, host: "a.test".to_owned(), port: 443 }
    }

    fn network() -> Network {
        Network::new(NetworkOptions {
            trust: Trust::Anybody,
            connect_timeout: Duration::ZERO,
            memory: Memory::forgetful(),
            sessions: None,
            early_data: false,
            failures_hold: Duration::ZERO,
            idle_timeout: Duration::ZERO,
            proxies: Proxies::default(),
            names: Names::default(),
            resolution_delay: Duration::ZERO,
            encrypted_client_hello: false,
        })
    }

    #[tokio::test]
    async fn what_a_response_offers_is_noted_while_a_connection_is_made() {
        let (origin, network) = (origin(), network());
        let server = Server::new(origin.clone(), Versions::Auto);
        let here = NetworkId::towards("127.0.0.1:443".parse().unwrap());
        server.way().network = Some(here.clone());
        let _connecting = server.connections.lock().await;
        server.on_alt_svc(&network, &[HeaderValue::from_static("h3=\":443\"")]);
        let approach = network.memory().approach(&origin, &here, unix_now());
        assert!(matches!(approach, Approach::Ahead(..)));
    }

    #[tokio::test]
    async fn http3_is_distrusted_while_a_connection_is_made() {
        let (origin, network) = (origin(), network());
        let (server, network) = (Server::new(origin.clone(), Versions::Auto), Arc::new(network));
        let here = NetworkId::towards("127.0.0.1:443".parse().unwrap());
        server.way().network = Some(here.clone());
        server.on_alt_svc(&network, &[HeaderValue::from_static("h3=\":443\"")]);
        let is_trusted = || {
            let approach = network.memory().approach(&origin, &here, unix_now());
            matches!(approach, Approach::Ahead(..))
        };
        let number = |id| Http3Number { id, is_ipv6: false };
        *server.http3() = Some(Http3 {
            number: number(2),
            client: None,
            alternative: None,
            reason: "".into(),
            is_new: false,
            vigil: Vigil::new(&network, None, None),
            judged: BTreeMap::new(),
        });
        let _connecting = server.connections.lock().await;
        server.distrust_http3(&network, number(1));
        assert!(is_trusted(), "the connection is another by now");
        server.distrust_http3(&network, number(2));
        assert!(!is_trusted() && server.http3().is_none());
    }
}
