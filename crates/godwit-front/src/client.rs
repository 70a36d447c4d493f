//! Who a request comes from: the connection it came on, whatever the protocol.
//!
//! There is one [`Client`] for each connection, and [`Client::of`] finds it in the extensions of every request: the TCP listener
//! puts it there in an `Arc`, over HTTP/3 it is attached to the connection. Nothing above them knows more of the transport than
//! this. It keeps no connection open.
//!
//! - [`abandoned::Abandoned`] is what an HTTP/2 client has given up.
//! - [`tcp::Metered`] is a TCP stream that can be asked how it fares and what the peer has acknowledged.
//! - [`undelivered`] is what waits until a response has been delivered.

pub(crate) mod abandoned;
pub(crate) mod delivery;
pub(crate) mod tcp;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use godwit::http3::{ConnectionInfo, ConnectionWatch};
use godwit_base::RefillingBudget;
use godwit_report::record::Protocol;
use http::Extensions;

use super::interim::Interim;
use super::metrics::{Metrics, OpenConnection};
use abandoned::Abandoned;
use tcp::Meter;

/// The number of the next connection: TCP and QUIC, on all ports, count together.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The client's end of a connection.
#[derive(Debug)]
pub(crate) struct Client {
    facts: Facts,
    number: u64,
    transport: Transport,
    requests: AtomicU64,
    too_slow: AtomicBool,
    /// Of HTTP/2 connections.
    abandoned: Option<Abandoned>,
    /// Of HTTP/1.1 connections.
    interim: Option<Interim>,
    _open: OpenConnection,
}

/// What is known of a connection from its handshake.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// The client's address.
    pub(crate) remote: SocketAddr,
    /// The address and port that it came to.
    pub(crate) local: SocketAddr,
    /// HTTP/1.0 counts as 1.1 here.
    pub(crate) protocol: Protocol,
    /// Whether the handshake resumed a session; `None` without TLS.
    pub(crate) tls_resumed: Option<bool>,
}

/// The client of a connection over HTTP/3, as it is attached there.
#[derive(Debug)]
struct Attached(Arc<Client>);

#[derive(Debug)]
enum Transport {
    Quic(ConnectionWatch),
    Tcp(Arc<Meter>),
}

/// How a connection fares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Path {
    /// Smoothed round-trip time.
    pub(crate) rtt: Duration,
    /// Packets or segments sent by this server that were lost so far, as far as is known.
    pub(crate) lost: u64,
    /// Packets or segments sent again so far, needlessly or not. QUIC counts the bytes of stream data, here in
    /// packets of full size.
    pub(crate) retransmitted: u64,
}

impl Client {
    /// A client that has come by TCP. `may_abandon`: requests that it may give up, over HTTP/2.
    pub(crate) fn tcp(
        facts: Facts,
        meter: &Arc<Meter>,
        metrics: &Arc<Metrics>,
        may_abandon: RefillingBudget,
    ) -> Arc<Client> {
        let abandoned = (facts.protocol == Protocol::H2).then(|| Abandoned::new(may_abandon));
        let interim = (facts.protocol == Protocol::Http11).then(Interim::default);
        Arc::new(Client {
            abandoned,
            interim,
            ..Client::new(facts, Transport::Tcp(Arc::clone(meter)), metrics)
        })
    }

    /// Makes the client of a connection over HTTP/3, with the first request that came on it to the port of `listener`, and
    /// attaches it for all of them.
    pub(crate) fn attach(info: &ConnectionInfo, listener: SocketAddr, metrics: &Arc<Metrics>) {
        if info.attached::<Attached>().is_some() {
            return;
        }
        let new = || {
            let facts = Facts {
                remote: info.remote(),
                local: SocketAddr::new(info.local().unwrap_or(listener.ip()), listener.port()),
                protocol: Protocol::H3,
                tls_resumed: Some(info.is_resumed()),
            };
            Attached(Arc::new(Client::new(facts, Transport::Quic(info.watch()), metrics)))
        };
        drop(info.attachment(new));
    }

    /// The client that a request is from.
    pub(crate) fn of(extensions: &Extensions) -> Option<&Arc<Client>> {
        let quic = || Some(&extensions.get::<ConnectionInfo>()?.attached::<Attached>()?.0);
        extensions.get::<Arc<Client>>().or_else(quic)
    }

    fn new(facts: Facts, transport: Transport, metrics: &Arc<Metrics>) -> Client {
        let mut facts = facts;
        facts.remote.set_ip(facts.remote.ip().to_canonical());
        facts.local.set_ip(facts.local.ip().to_canonical());
        Client {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            transport,
            requests: AtomicU64::new(0),
            too_slow: AtomicBool::new(false),
            abandoned: None,
            interim: None,
            _open: metrics.connection_opened(facts.protocol),
            facts,
        }
    }

    /// The client's address at its first request; an IPv4 address is one, however it reached the socket.
    pub(crate) fn remote(&self) -> SocketAddr {
        self.facts.remote
    }

    /// The address and port that it came to.
    pub(crate) fn local(&self) -> SocketAddr {
        self.facts.local
    }

    /// Whether the handshake resumed a session; `None` without TLS.
    pub(crate) fn tls_resumed(&self) -> Option<bool> {
        self.facts.tls_resumed
    }

    /// The connection's number, which no other of this process has.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Counts a request, and says which one on the connection it is, from 1.
    pub(crate) fn next_request(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// How the connection fares; `None` once it is over, or where the system does not tell.
    pub(crate) fn path(&self) -> Option<Path> {
        match &self.transport {
            Transport::Quic(watch) => {
                let stats = watch.stats()?;
                Some(Path {
                    rtt: stats.rtt,
                    lost: stats.packets_lost.saturating_sub(stats.spurious_losses),
                    retransmitted: stats.stream_bytes_retransmitted.div_ceil(u64::from(stats.mtu.max(1200))),
                })
            }
            Transport::Tcp(meter) => {
                let info = meter.info()?;
                Some(Path {
                    rtt: info.rtt,
                    lost: u64::from(info.retransmitted.saturating_sub(info.needless)),
                    retransmitted: u64::from(info.retransmitted),
                })
            }
        }
    }

    /// A request is over: answered, or given up by the client.
    pub(crate) fn request_over(&self, given_up: bool) {
        if let Some(abandoned) = &self.abandoned {
            abandoned.on_over(given_up);
        }
    }

    /// Ready once the client has given up more requests than it may, if HTTP/3 does not look after that itself.
    pub(crate) async fn abandons_too_much(&self) {
        match &self.abandoned {
            Some(abandoned) => abandoned.too_many().await,
            None => std::future::pending().await,
        }
    }

    /// The TCP connection's meter, if it is one.
    pub(crate) fn meter(&self) -> Option<&Arc<Meter>> {
        match &self.transport {
            Transport::Tcp(meter) => Some(meter),
            Transport::Quic(_) => None,
        }
    }

    /// Where informational responses over HTTP/1.1 go.
    pub(crate) fn interim(&self) -> Option<&Interim> {
        self.interim.as_ref()
    }

    /// Notes that the connection is to be given up because the client takes or sends too little.
    pub(crate) fn set_too_slow(&self) {
        self.too_slow.store(true, Ordering::Relaxed);
    }

    /// Whether [`Client::set_too_slow`] was called.
    pub(crate) fn is_too_slow(&self) -> bool {
        self.too_slow.load(Ordering::Relaxed)
    }
}

/// The address from which a request came: clients over HTTP/3 may change theirs from one to the next.
pub(crate) fn remote_of(extensions: &Extensions) -> Option<SocketAddr> {
    let mut remote = match extensions.get::<ConnectionInfo>() {
        Some(info) => info.remote(),
        None => Client::of(extensions)?.remote(),
    };
    remote.set_ip(remote.ip().to_canonical());
    Some(remote)
}
