//! Settings: built once, validated once, then shared and never changed.

use crate::cid::{Cibir, CidIdentifier, ServerId};
use crate::datagrams::DatagramConfig;
use crate::memory_limit::MemoryLimit;
use crate::observe::ObserverFactory;
use crate::reserve::WindowReserve;
use crate::tail::TailPolicy;
use crate::used_tokens::UsedTokens;
use godwit_base::SendBatch;
use godwit_recovery::Laboratory;
use godwit_recovery::congestion::CongestionControl;
use godwit_tls::resumption::Resumption;
use godwit_tls::secret_tap::tapped;
use godwit_tls::secrets::ServerSecrets;
use rustls::server::{ProducesTickets, StoresServerSessions};
use std::net::{SocketAddrV4, SocketAddrV6};
use std::sync::Arc;
use std::time::Duration;

/// Settings of a connection's transport: plain values with defaults, changed by assignment.
/// [`TransportConfig::validate`] says what does not fit together.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TransportConfig {
    /// Idle timeout offered to the peer (RFC 9000 section 10.1); zero is none. Default 30 s.
    pub max_idle_timeout: Duration,
    /// The handshake must complete in this time. Default 10 s.
    pub handshake_timeout: Duration,
    /// The application is asked about the peer's certificate when the handshake is complete, and has this long to
    /// approve: until then no stream can be used. It offers no 0-RTT. Default none: what TLS has verified is enough.
    pub approval: Option<Duration>,
    /// Whether a client's Finished message, and its certificate, wait for [the approval](Self::approval): the server does
    /// not learn before that the handshake is complete, and its time for the handshake goes on. Default false.
    pub approval_before_finished: bool,
    /// A PING is sent after this much silence, 10 ms at least. Default none.
    pub keep_alive: Option<Duration>,
    /// Bytes the peer may send on one stream at the start. Default 64 KiB; grows with the
    /// bandwidth-delay product to at most [`TransportConfig::max_stream_window`].
    pub initial_stream_window: u64,
    /// The most the stream window grows to: beyond 16 MiB only while the connection window has grown
    /// with it, of which it is five sixths then. Default 160 MiB.
    pub max_stream_window: u64,
    /// Bytes the peer may send on the whole connection at the start. Default 1 MiB.
    pub initial_connection_window: u64,
    /// The most the connection window grows to: beyond 32 MiB only while the peer uses it up within a
    /// round trip, and as far as [`EndpointConfig::window_reserve`] has some left. One that begins with
    /// more than 32 MiB does not count there. Default 192 MiB.
    pub max_connection_window: u64,
    /// Bidirectional streams the peer may have open at once. Default 100.
    pub max_bidi_streams: u64,
    /// Unidirectional streams the peer may have open at once. Default 100.
    pub max_uni_streams: u64,
    /// Bytes a sender keeps per connection, at most, before `write` is refused. What it really keeps is
    /// four times the congestion window, but not less than 128 KiB, and beyond 8 MiB only as far as
    /// [`EndpointConfig::window_reserve`] has some left. Default 192 MiB.
    pub send_buffer: u64,
    /// The delay we may put before an acknowledgement (RFC 9000 section 18.2). Default 25 ms.
    pub max_ack_delay: Duration,
    /// Whether the peer may ask for fewer acknowledgements, and is asked for fewer where the window is large, if it
    /// can be (draft-ietf-quic-ack-frequency). Default true.
    pub ack_frequency: bool,
    /// Whether the ends tell one another their time with every acknowledgement, in microseconds, if the peer will too
    /// (draft-huitema-quic-ts): then [`ConnectionStats::one_way_delay`](crate::ConnectionStats::one_way_delay) is known. The clock that the
    /// peer is told begins with the connection. Default false.
    pub timestamps: bool,
    /// First round-trip time estimate (RFC 9002 section 6.2.2). Default 333 ms.
    pub initial_rtt: Duration,
    /// How small exchanges are kept from waiting where packets are lost.
    pub tail: TailPolicy,
    /// UDP payload size assumed to pass every path, in bytes: from 1200 to [`TransportConfig::ANY_MTU`]. Default 1200.
    pub initial_mtu: u16,
    /// Largest UDP payload the path-MTU search tries over IPv4, in bytes; over IPv6 it is 20 bytes less. Default
    /// 1472, which fits an Ethernet frame; not above `initial_mtu` is no search. [`TransportConfig::ANY_MTU`], the most
    /// there may be, permits jumbo frames and what a loopback interface carries. Neither what the local system sends on the route nor what
    /// the peer accepts is ever exceeded.
    pub max_mtu: u16,
    /// Congestion control: an algorithm that is here, or the program's own. Default CUBIC.
    pub congestion: CongestionControl,
    /// Whether packets are marked with ECT(0), or as the congestion controller wants it, on paths that prove to carry
    /// it, and "congestion experienced" is answered like a loss (RFC 9000 section 13.4). The peer's marks are reported
    /// in any case. Default true.
    pub ecn: bool,
    /// Connection ids the peer may give us beside the first (active_connection_id_limit). Default 4.
    pub active_cid_limit: u64,
    /// After so long without anything sent, what comes next goes to another connection id of the peer's, if it has given one
    /// to spare: who watches cannot tell by the id that what is said before and after is of one connection. Default none.
    pub fresh_cid_after: Option<Duration>,
    /// How many frames that serve nothing (pings, resets, windows raised by a few bytes, what is known already) the peer
    /// may send at once before the connection is closed, beyond those that its data and acknowledgements pay for; a
    /// thirty-second part of that comes back with each second. 2^32 - 1 and more are no limit. Default 8192.
    pub max_useless_frames: u64,
    /// Datagrams (RFC 9221).
    pub datagrams: DatagramConfig,
    /// Whether the peer may give the QUIC bit of its packets any value (RFC 9287). Our own packets have any
    /// if the peer permits it. Default true.
    pub grease_quic_bit: bool,
    /// Whether the peer may reset streams so that a part of what it has sent still arrives (RESET_STREAM_AT,
    /// draft-ietf-quic-reliable-stream-reset). Default true.
    pub reset_stream_at: bool,
    /// An identifier in the connection ids of both ends, by which servers with one port are told apart. Default: none, whatever
    /// the peer says.
    pub cibir: Cibir,
    /// Whether observers on the path may measure the round-trip time by the spin bit (RFC 9000 section 17.4).
    /// Even then it is off on one of sixteen paths. Default false.
    pub spin_bit: bool,
    /// Changes of address (RFC 9000 section 9).
    pub migration: MigrationConfig,
    /// Packets sealed with one key before it is updated by itself; none is the AEAD's limit only.
    pub key_update_after: Option<u64>,
    /// **Sends everything behind the handshake as plaintext, if the peer asks for the same.** Whoever sees the packets reads
    /// streams, datagrams and connection ids, and whoever can send any changes what is said, moves the connection to
    /// another address or ends it: there is neither encryption nor authentication, of headers or of payloads. It is there to
    /// measure what encryption costs, between machines on a network that is trusted, and with peers that do the same (MsQuic's
    /// `DISABLE_1RTT_ENCRYPTION`); no standard knows it.
    ///
    /// The handshake and 0-RTT packets are protected as ever, and what both ends have said of this is believed only when the
    /// handshake has proved that nobody altered it. If one end does not ask for it, all is encrypted:
    /// [`Connection::is_unencrypted`](crate::Connection::is_unencrypted) tells. It is never remembered from one connection
    /// for the next. Default false.
    pub danger_without_encryption: bool,
    /// Mechanisms of QUIC that are taken away, for measurements in the laboratory only. Default none.
    pub laboratory: Laboratory,
}

impl Default for TransportConfig {
    fn default() -> Self {
        TransportConfig {
            max_idle_timeout: Duration::from_secs(30),
            handshake_timeout: Duration::from_secs(10),
            approval: None,
            approval_before_finished: false,
            keep_alive: None,
            initial_stream_window: 64 << 10,
            max_stream_window: 160 << 20,
            initial_connection_window: 1 << 20,
            max_connection_window: 192 << 20,
            max_bidi_streams: 100,
            max_uni_streams: 100,
            send_buffer: 192 << 20,
            max_ack_delay: Duration::from_millis(25),
            ack_frequency: true,
            timestamps: false,
            initial_rtt: Duration::from_millis(333),
            tail: TailPolicy::default(),
            initial_mtu: 1200,
            max_mtu: 1472,
            congestion: CongestionControl::default(),
            ecn: true,
            active_cid_limit: 4,
            fresh_cid_after: None,
            max_useless_frames: 8192,
            datagrams: DatagramConfig::default(),
            grease_quic_bit: true,
            reset_stream_at: true,
            cibir: Cibir::Ignored,
            spin_bit: false,
            migration: MigrationConfig::default(),
            key_update_after: None,
            danger_without_encryption: false,
            laboratory: Laboratory::default(),
        }
    }
}

impl TransportConfig {
    /// A [`TransportConfig::max_mtu`] that leaves it to the interfaces: the most a UDP datagram can carry over IPv4.
    pub const ANY_MTU: u16 = 65_507;

    /// Says in one sentence what cannot work, if anything.
    pub fn validate(&self) -> Result<(), &'static str> {
        const VARINT_MAX: u64 = godwit_wire::codec::VARINT_MAX;
        if self.initial_mtu < 1200 {
            return Err("initial_mtu must be at least 1200 bytes (RFC 9000 section 14)");
        }
        // Nor has a batch of datagrams room for more in one.
        const { assert!(TransportConfig::ANY_MTU as usize <= SendBatch::MAX_RUN) };
        if self.initial_mtu > Self::ANY_MTU {
            return Err(
                "initial_mtu must be at most 65,507 bytes, which is what a UDP datagram carries over IPv4",
            );
        }
        if self.max_mtu > Self::ANY_MTU {
            return Err(
                "max_mtu must be at most 65,507 bytes, which is what a UDP datagram carries over IPv4",
            );
        }
        if self.active_cid_limit < 2 {
            return Err("active_cid_limit must be at least 2 (RFC 9000 section 18.2)");
        }
        if self.max_bidi_streams > 1 << 60 || self.max_uni_streams > 1 << 60 {
            return Err("a stream limit must be at most 2^60 (RFC 9000 section 4.6)");
        }
        if self.max_ack_delay >= Duration::from_millis(1 << 14) {
            return Err("max_ack_delay must be below 2^14 ms (RFC 9000 section 18.2)");
        }
        if self.max_stream_window > VARINT_MAX || self.max_connection_window > VARINT_MAX {
            return Err("a window must be below 2^62 bytes");
        }
        if self.datagrams.max_frame_size > VARINT_MAX {
            return Err("max_frame_size of datagrams must be below 2^62 bytes");
        }
        if self.initial_stream_window > self.max_stream_window
            || self.initial_connection_window > self.max_connection_window
        {
            return Err("an initial window must not exceed its maximum");
        }
        if self.laboratory.most_ack_ranges == 0 {
            return Err("an ACK frame has at least one range (RFC 9000 section 19.3)");
        }
        Ok(())
    }
}

/// Settings of changes of address (RFC 9000 section 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrationConfig {
    /// Whether a server lets clients change their address by their own will; what a NAT does is followed all the
    /// same (RFC 9000 section 9). Default true.
    pub allowed: bool,
    /// Whether a client moves to the address that the server prefers, if it is of the family of the one that it
    /// has (RFC 9000 section 9.6). Default true.
    pub follow_preferred_address: bool,
    /// Addresses at which a server asks its clients to continue once the handshake is confirmed (RFC 9000 section
    /// 9.6), for IPv4 and for IPv6. Its endpoint must receive there, too. Default none.
    pub preferred_address: (Option<SocketAddrV4>, Option<SocketAddrV6>),
}

impl Default for MigrationConfig {
    fn default() -> Self {
        MigrationConfig { allowed: true, follow_preferred_address: true, preferred_address: (None, None) }
    }
}

/// What a client needs to begin a connection.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClientConfig {
    /// TLS settings: roots, ALPN, client certificate. Must allow TLS 1.3.
    pub tls: Arc<rustls::ClientConfig>,
    /// Transport settings.
    pub transport: Arc<TransportConfig>,
    /// The version of the first flight: 1, [`godwit_wire::version::V2`]'s number, or a reserved one, which makes a server tell
    /// those it speaks. A client with tickets of another
    /// version that its endpoint speaks, and none of this one, begins with that.
    pub version: u32,
    /// The versions that are offered, the preferred first (RFC 9368): what a server may choose, and what is begun with again
    /// if it does not know the first. Empty: those of the endpoint. Default empty.
    pub versions: Vec<u32>,
    /// Where connections leave what later ones can use: tickets, tokens, round-trip times. 0-RTT is offered if
    /// the TLS settings enable early data.
    pub resumption: Resumption,
    /// Whether session tickets are of use. Without, a connection that is made lets go of its TLS state at once, and does not
    /// read those that come. Default true.
    pub tickets: bool,
    /// Whether TLS state stays as long as the connection, so that no ticket is missed that the server gives out late.
    /// Otherwise it stays until there are two, or one and nothing happens. Default false.
    pub late_tickets: bool,
}

impl ClientConfig {
    /// These settings, beginning with version 1 and remembering nothing.
    pub fn new(tls: Arc<rustls::ClientConfig>, transport: Arc<TransportConfig>) -> Self {
        let (version, resumption) = (godwit_wire::version::V1, Resumption::default());
        let versions = Vec::new();
        ClientConfig { tls, transport, version, versions, resumption, tickets: true, late_tickets: false }
    }
}

impl ClientConfig {
    /// The versions that it offers at an endpoint that speaks these.
    pub(crate) fn offered<'a>(&'a self, spoken: &'a [u32]) -> &'a [u32] {
        if self.versions.is_empty() { spoken } else { &self.versions }
    }
}

/// What a server needs to accept connections.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerConfig {
    /// TLS settings with a tap for the secrets that the transport needs: the same for all connections.
    pub(crate) tls: Arc<rustls::ServerConfig>,
    /// Transport settings.
    pub transport: Arc<TransportConfig>,
    /// Whether clients without a valid token are answered with a Retry. Default false.
    pub retry: bool,
    /// If 0-RTT is accepted: tickets that other processes open, given out beside those that are good for 0-RTT
    /// here. Default none.
    pub tickets: Option<Arc<dyn ProducesTickets>>,
    /// Whether the tickets that TLS makes when the handshake is complete are withheld, for
    /// [`Connection::next_withheld_ticket`](crate::Connection::next_withheld_ticket). Default false.
    pub withhold_tickets: bool,
}

impl ServerConfig {
    /// These settings, without Retry. Those of TLS (certificates, ALPN) must allow TLS 1.3. 0-RTT is accepted if their
    /// `max_early_data_size` is not 0, and their sessions are kept in [`godwit_tls::resumption::EarlySessions`].
    pub fn new(tls: Arc<rustls::ServerConfig>, transport: Arc<TransportConfig>) -> Self {
        ServerConfig { tls: tapped(&tls), transport, retry: false, tickets: None, withhold_tickets: false }
    }

    /// These settings with sessions kept elsewhere, such as in a store for one connection. 0-RTT is accepted if `early`: the
    /// store must give every session away once only then, and none whose client may use more than the transport settings
    /// permit (RFC 9000 section 7.4.1).
    #[must_use]
    pub fn with_sessions(&self, sessions: Arc<dyn StoresServerSessions>, early: bool) -> Self {
        let mut tls = rustls::ServerConfig::clone(&self.tls);
        tls.session_storage = sessions;
        // All that QUIC permits there (RFC 9001 section 4.6.1).
        tls.max_early_data_size = if early { u32::MAX } else { 0 };
        ServerConfig { tls: Arc::new(tls), ..self.clone() }
    }
}

/// Settings of an endpoint, common to all its connections.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EndpointConfig {
    /// Keys for tokens, stateless resets and connection ids.
    pub secrets: Arc<ServerSecrets>,
    /// Which shard of the process this endpoint is; it goes into the connection ids. Below 256.
    pub shard: u8,
    /// The generation of the process, for reloads; it goes into the connection ids.
    pub generation: u8,
    /// Length of the connection ids we issue, 8 to 20 bytes; 14 at least with a [`EndpointConfig::server_id`]. Default 8.
    pub cid_len: usize,
    /// The server's number that its connection ids show, Retry packets' included, for load balancers in front of it (as in
    /// draft-ietf-quic-load-balancers). Those of clients have random bytes there. Default none.
    pub server_id: Option<ServerId>,
    /// An identifier ([`Cibir`]) in connection ids that are given out before it is known which settings hold for the client: in
    /// Retry packets, and to clients that say hello in several datagrams. Default none.
    pub cid_identifier: Option<CidIdentifier>,
    /// Connections held at most. When more than half are held, a client's network (/24 of IPv4, /48 of IPv6) may have as
    /// many as are left for others, but at least 16, and a /16 or /32 three times as many, but at least 32. Default
    /// 1,000,000.
    pub max_connections: usize,
    /// Incoming handshakes held at most before they are accepted or refused. Default 1024.
    pub max_incoming: usize,
    /// Connections held at most that were accepted and have not finished their handshake; a quarter of them from one
    /// network (/24 of IPv4, /48 of IPv6), half from one /16 or /32. Default 1536.
    pub max_handshakes: usize,
    /// Beyond so many of them clients have to prove their address first, by a Retry (RFC 9000 section 8.1.2). Default 512.
    pub handshakes_before_retry: usize,
    /// Whether clients may connect although there are no settings for all of them
    /// ([`Endpoint::set_server_config`](crate::Endpoint::set_server_config)): each is accepted with settings of its own, or
    /// refused. Default false.
    pub accepts_each: bool,
    /// Versions spoken, in order of preference.
    pub versions: Vec<u32>,
    /// The version to which a server moves clients that began with another and offer it (compatible version
    /// negotiation, RFC 9368 section 2.3). Default none: clients get the version they begin with.
    pub upgrade_to: Option<u32>,
    /// What windows and send buffers take that grow beyond what each connection has for itself; endpoints of one program
    /// may share it. Default 320 MiB, not shared.
    pub window_reserve: WindowReserve,
    /// What connections may hold for their peers together; endpoints of one program may share it. It is counted in units of
    /// 16 KiB, and of each connection what is beyond its last whole unit does not count. Default 1 GiB, not shared.
    pub memory_limit: MemoryLimit,
    /// Which address tokens clients have shown; endpoints with the same secrets should share it. Default none, not shared.
    pub used_tokens: UsedTokens,
    /// Who watches connections. Default nobody.
    pub observe: ObserverFactory,
}

impl EndpointConfig {
    /// The defaults, with these secrets: shard 0, ids of 8 bytes, versions 1 and 2.
    pub fn new(secrets: Arc<ServerSecrets>) -> Self {
        EndpointConfig {
            secrets,
            shard: 0,
            generation: 0,
            cid_len: 8,
            server_id: None,
            cid_identifier: None,
            max_connections: 1_000_000,
            max_incoming: 1024,
            max_handshakes: 1536,
            handshakes_before_retry: 512,
            accepts_each: false,
            versions: vec![godwit_wire::version::V1, godwit_wire::version::V2],
            upgrade_to: None,
            window_reserve: WindowReserve::default(),
            memory_limit: MemoryLimit::default(),
            used_tokens: UsedTokens::default(),
            observe: ObserverFactory::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_are_as_large_as_udp_carries_at_most() {
        let problem = |initial_mtu, max_mtu| {
            TransportConfig { initial_mtu, max_mtu, ..TransportConfig::default() }.validate().err()
        };
        for good in [(1200, 1472), (1200, 0), (65_507, 65_507), (1452, 1452)] {
            assert_eq!(problem(good.0, good.1), None, "{good:?}");
        }
        for (initial_mtu, max_mtu, name) in [
            (1199, 1472, "initial_mtu must be at least 1200"),
            (65_508, 1472, "initial_mtu must be at most 65,507"),
            (u16::MAX, u16::MAX, "initial_mtu must be at most 65,507"),
            (1200, 65_508, "max_mtu must be at most 65,507"),
        ] {
            assert!(problem(initial_mtu, max_mtu).is_some_and(|it| it.starts_with(name)), "{name}");
        }
    }
}
