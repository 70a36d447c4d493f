//! The TLS handshake in CRYPTO frames (RFC 9001 sections 4 and 8), on rustls.
//!
//! [`Handshake`] puts received CRYPTO data in order, hands it to TLS, and keeps what TLS answers until it is
//! acknowledged. Keys come out as they become available. It knows no packets: the caller says of which level
//! a frame is.
//!
//! Invariants: data is read at one level at a time, and never at one that is lower than the level TLS is at;
//! what waits is capped per level; after [`Handshake::on_confirmed`] a server holds no TLS state, and neither does an idle
//! client that has got session tickets, nor one that has got [`ENOUGH_TICKETS`] or has no use for them, unless it wants
//! them all.

mod bytes;
mod messages;
mod send_buffer;
#[cfg(test)]
pub(crate) mod tests;
mod tickets;

use crate::packet::PacketBuilder;
use crate::part::Part;
use crate::resumption::ServerMemory;
use crate::{ConnectError, WireError};
pub use bytes::HandshakeBytes;
use godwit_tls::keys::{self, EarlyKeys, LevelKeys, OneRtt, Ratchet, Schedule};
use godwit_tls::resumption::NewSession;
use godwit_tls::secret_tap::{self, Pair, Secret, tapped_client};
use godwit_tls::{Assembler, ExportError, Exporter, alert, client_hello, without_records};
use godwit_wire::{Side, TransportErrorCode};
use messages::Messages;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::quic::{ClientConnection, Connection, KeyChange, ServerConnection};
use rustls::{CipherSuite, HandshakeKind, NamedGroup};
use send_buffer::SendBuffer;
use std::fmt;
use std::sync::Arc;

/// CRYPTO data of Initial packets that waits at most: anyone can send it.
const INITIAL_LIMIT: usize = 16 << 10;

/// CRYPTO data of other packets that waits at most.
const LIMIT: usize = 64 << 10;

/// Session tickets of a connection that a client waits for. Those who give more than one give two, and who gets more may
/// do without them.
const ENOUGH_TICKETS: u8 = 2;

/// An encryption level (RFC 9001 section 2.1), in the order in which the handshake passes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Level {
    /// Initial packets.
    Initial,
    /// 0-RTT packets; they carry no CRYPTO frames.
    ZeroRtt,
    /// Handshake packets.
    Handshake,
    /// 1-RTT packets.
    OneRtt,
}

/// CRYPTO data in a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CryptoToken {
    /// Its encryption level.
    pub(crate) level: Level,
    /// Offset of the first byte.
    pub(crate) offset: u64,
    /// Number of bytes.
    pub(crate) len: u32,
}

/// Keys that have become available.
#[derive(Debug)]
pub(crate) enum NewKeys {
    /// For 0-RTT packets: at a client that offers them from the start, at a server that accepts them.
    ZeroRtt(Box<EarlyKeys>),
    /// For [`Level::Handshake`].
    Handshake(Box<LevelKeys>),
    /// For [`Level::OneRtt`].
    OneRtt(Box<OneRtt>),
}

/// What the handshake has agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HandshakeData {
    /// The application protocol, if any was negotiated.
    pub(crate) alpn: Option<Vec<u8>>,
    /// At a server: the name the client asked for.
    pub(crate) server_name: Option<String>,
    /// The peer's certificates, its own first; empty if it sent none.
    pub(crate) peer_certificates: Vec<CertificateDer<'static>>,
    /// The cipher suite.
    pub(crate) cipher_suite: Option<CipherSuite>,
    /// The group of the key exchange.
    pub(crate) group: Option<NamedGroup>,
    /// Whether a former session was resumed.
    pub(crate) resumed: bool,
    /// What key material for the application follows from.
    exporter: Option<Exporter>,
}

/// The TLS driver of one connection.
pub(crate) struct Handshake {
    /// `None` once it has nothing more to do.
    tls: Option<Box<Connection>>,
    side: Side,
    confirmed: bool,
    /// At a client: what the server has said since the handshake.
    messages: Messages,
    /// Session tickets that a client waits for.
    enough_tickets: u8,
    /// The level whose data TLS reads now.
    reading: Level,
    /// The level at which TLS writes now.
    writing: Level,
    /// Until the level's keys are discarded, as the next.
    initial: Option<Box<Stream>>,
    handshake: Option<Box<Stream>>,
    /// While there is anything in it, or TLS reads it.
    one_rtt: Option<Box<Stream>>,
    /// What is not in it.
    beside: Beside,
    /// Of the levels whose keys are discarded.
    gone: Gone,
    early_keys: Option<Box<EarlyKeys>>,
    handshake_keys: Option<Box<LevelKeys>>,
    one_rtt_keys: Option<Box<OneRtt>>,
    data: Option<Box<HandshakeData>>,
    failure: Option<Box<rustls::Error>>,
    /// Until the handshake is complete: the exporter secret.
    exporter: Option<Secret>,
    version: Version,
    /// At a client: who is told what comes after the handshake, before TLS.
    memory: Option<Arc<ServerMemory>>,
}

/// The version whose keys are wanted.
#[derive(Debug, Clone, Copy)]
struct Version {
    number: u32,
    /// It is not the one that TLS was begun with.
    moved: bool,
}

/// Bytes of a CRYPTO stream that were read and sent, and need not be known any more.
#[derive(Debug, Clone, Copy, Default)]
struct Over {
    read: u64,
    sent: u64,
}

/// The same of levels whose keys are discarded, in little room: Initial packets have no more than fits.
#[derive(Debug, Clone, Copy, Default)]
struct Gone {
    initial: [u16; 2],
    handshake: [u32; 2],
}

impl Gone {
    fn note(&mut self, level: Level, Over { read, sent }: Over) {
        match level {
            Level::Initial => {
                self.initial = [read, sent].map(|bytes| u16::try_from(bytes).unwrap_or(u16::MAX));
            }
            Level::Handshake => {
                self.handshake = [read, sent].map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
            }
            Level::ZeroRtt | Level::OneRtt => {}
        }
    }

    fn initial(self) -> Over {
        let [read, sent] = self.initial.map(u64::from);
        Over { read, sent }
    }

    fn handshake(self) -> Over {
        let [read, sent] = self.handshake.map(u64::from);
        Over { read, sent }
    }
}

/// What is not in the CRYPTO stream of 1-RTT packets.
#[derive(Default)]
struct Beside {
    /// When there is no stream any more.
    over: Over,
    /// At a server that sends no tickets by itself: what TLS has written after the handshake.
    withheld: Option<Vec<u8>>,
}

/// The CRYPTO stream of one level.
#[derive(Debug)]
struct Stream {
    received: Assembler,
    to_send: SendBuffer,
}

impl Stream {
    const fn new() -> Self {
        Self::after(Over { read: 0, sent: 0 })
    }

    /// So much of it is over.
    const fn after(over: Over) -> Self {
        Stream { received: Assembler::beginning_at(over.read), to_send: SendBuffer::beginning_at(over.sent) }
    }

    /// How much of it was read and sent.
    fn bytes(&self) -> Over {
        Over { read: self.received.end(), sent: self.to_send.sent() }
    }

    /// Where TLS writes.
    fn tail(&mut self) -> &mut Vec<u8> {
        self.to_send.tail()
    }
}

impl Handshake {
    /// A client's handshake with `server_name`. `parameters` are its encoded transport parameters. The
    /// ClientHello waits to be sent.
    pub(crate) fn client(
        config: rustls::ClientConfig,
        version: u32,
        server_name: &str,
        parameters: Vec<u8>,
    ) -> Result<Self, ConnectError> {
        let name = ServerName::try_from(server_name)
            .map_err(|_| ConnectError::InvalidServerName(server_name.to_owned()))?
            .to_owned();
        let (config, quic) = (Arc::new(tapped_client(config)), tls_version(version)?);
        let tls = without_records(|| ClientConnection::new(config, quic, name, parameters))
            .map_err(|error| ConnectError::Tls(error.to_string()))?;
        Ok(Self::new(Connection::Client(tls), version))
    }

    /// A server's handshake. `config` is [`tapped`], `parameters` are its encoded transport parameters.
    pub(crate) fn server(
        config: Arc<rustls::ServerConfig>,
        version: u32,
        parameters: Vec<u8>,
    ) -> Result<Self, ConnectError> {
        let tls = ServerConnection::new(config, tls_version(version)?, parameters)
            .map_err(|error| ConnectError::Tls(error.to_string()))?;
        Ok(Self::new(Connection::Server(tls), version))
    }

    fn new(tls: Connection, version: u32) -> Self {
        let side = match tls {
            Connection::Client(_) => Side::Client,
            Connection::Server(_) => Side::Server,
        };
        let mut handshake = Handshake {
            tls: Some(Box::new(tls)),
            side,
            confirmed: false,
            messages: Messages::default(),
            enough_tickets: ENOUGH_TICKETS,
            reading: Level::Initial,
            writing: Level::Initial,
            initial: Some(Box::new(Stream::new())),
            handshake: Some(Box::new(Stream::new())),
            one_rtt: None,
            beside: Beside::default(),
            gone: Gone::default(),
            early_keys: None,
            handshake_keys: None,
            one_rtt_keys: None,
            data: None,
            failure: None,
            exporter: None,
            version: Version { number: version, moved: false },
            memory: None,
        };
        handshake.collect();
        handshake.collect_early();
        handshake
    }

    /// At a client: tickets are read with the help of `memory`.
    pub(crate) fn set_memory(&mut self, memory: Option<Arc<ServerMemory>>) {
        self.memory = memory;
    }

    /// At a client that has read nothing yet: the keys from now on are those of another version. False if that
    /// is not possible.
    pub(crate) fn move_to(&mut self, version: u32) -> bool {
        let possible = self.side == Side::Client && self.writing == Level::Initial;
        if possible {
            self.version = Version { number: version, moved: true };
        }
        possible
    }

    /// A CRYPTO frame in a packet of `level`. Afterwards ask for [`Handshake::next_keys`] and whether there
    /// is something to send.
    ///
    /// Fails with the TLS alert as a CRYPTO_ERROR, with CRYPTO_BUFFER_EXCEEDED, or with PROTOCOL_VIOLATION
    /// for data at the wrong level (RFC 9001 section 4.1.3).
    pub(crate) fn on_crypto(&mut self, level: Level, offset: u64, data: &[u8]) -> Result<(), WireError> {
        let limit = if level == Level::Initial { INITIAL_LIMIT } else { LIMIT };
        let reading = self.reading;
        if level == Level::ZeroRtt {
            return Err(violation("CRYPTO data in a 0-RTT packet"));
        }
        if level == Level::OneRtt {
            one_rtt(&mut self.one_rtt, self.beside.over);
        }
        let Some(stream) = self.stream(level) else { return Ok(()) };
        if level < reading {
            let end = offset.saturating_add(data.len() as u64);
            let known = end <= stream.received.end();
            return if known { Ok(()) } else { Err(violation("new CRYPTO data at a level that is over")) };
        }
        stream.received.insert(offset, data, limit)?;
        while self.read_some()? {}
        Ok(())
    }

    /// True if there is CRYPTO data of `level` to send or to send again.
    #[inline]
    pub(crate) fn has_crypto(&self, level: Level) -> bool {
        match level {
            Level::Initial => self.initial.as_ref().is_some_and(|stream| stream.to_send.wants_to_send()),
            Level::ZeroRtt => false,
            Level::Handshake => self.handshake.as_ref().is_some_and(|stream| stream.to_send.wants_to_send()),
            Level::OneRtt => self.one_rtt.as_ref().is_some_and(|stream| stream.to_send.wants_to_send()),
        }
    }

    /// True if all of our Handshake messages are still to be sent, and are no more than `most` bytes.
    pub(crate) fn is_unsent_within(&self, most: u64) -> bool {
        self.handshake.as_ref().is_some_and(|stream| stream.to_send.is_unsent_within(most))
    }

    /// Bytes of CRYPTO data of the handshake sent for the first time. It falls when the keys of a level go.
    #[inline]
    pub(crate) fn bytes_sent(&self) -> u64 {
        let streams = [self.initial.as_deref(), self.handshake.as_deref()];
        streams.into_iter().flatten().map(|stream| stream.to_send.sent()).fold(0, u64::saturating_add)
    }

    /// Writes CRYPTO frames of `level` until there is nothing to send or no room.
    pub(crate) fn write_crypto<T: From<CryptoToken>>(
        &mut self,
        level: Level,
        packet: &mut PacketBuilder<'_, T>,
    ) {
        if let Some(stream) = self.stream(level) {
            stream.to_send.write(level, packet);
        }
    }

    /// Keys that have become available since the last call, lower levels first.
    pub(crate) fn next_keys(&mut self) -> Option<NewKeys> {
        let early = self.early_keys.take().map(NewKeys::ZeroRtt);
        let handshake = || self.handshake_keys.take().map(NewKeys::Handshake);
        early.or_else(handshake).or_else(|| self.one_rtt_keys.take().map(NewKeys::OneRtt))
    }

    /// True if TLS is done: the peer's Finished has been read and ours written (RFC 9001 section 4.1.1).
    pub(crate) fn is_complete(&self) -> bool {
        self.data.is_some()
    }

    /// What was agreed on, once the handshake is complete.
    pub(crate) fn data(&self) -> Option<&HandshakeData> {
        self.data.as_deref()
    }

    /// The application protocol: at a server from when the ClientHello has been read, at a client, which may trust the
    /// answer only then, from when the handshake is complete.
    pub(crate) fn alpn(&self) -> Option<&[u8]> {
        match &self.data {
            Some(data) => data.alpn.as_deref(),
            None => self.server_tls()?.alpn_protocol(),
        }
    }

    /// At a server: the name that the client asked for, from when the ClientHello has been read.
    pub(crate) fn server_name(&self) -> Option<&str> {
        match &self.data {
            Some(data) => data.server_name.as_deref(),
            None => self.server_tls()?.server_name(),
        }
    }

    fn server_tls(&self) -> Option<&rustls::quic::ServerConnection> {
        match self.tls.as_deref() {
            Some(Connection::Server(tls)) => Some(tls),
            _ => None,
        }
    }

    /// The peer's encoded transport parameters: at a server from when the client's first flight has been
    /// read (they are authentic only when the handshake is complete), at a client from when the handshake is
    /// complete; until [`Handshake::on_confirmed`].
    pub(crate) fn peer_parameters(&self) -> Option<&[u8]> {
        let tls = self.tls.as_ref()?;
        // Before, a client that resumes a session would be told those of the earlier connection.
        let early = matches!(**tls, Connection::Client(_)) && !self.is_complete();
        if early { None } else { tls.quic_transport_parameters() }
    }

    /// At a client that offers 0-RTT, until the handshake is complete: the server's encoded transport parameters
    /// from the connection that gave the session.
    pub(crate) fn remembered_parameters(&self) -> Option<&[u8]> {
        match self.tls.as_deref()? {
            Connection::Client(tls) if !self.is_complete() => tls.quic_transport_parameters(),
            _ => None,
        }
    }

    /// At a client whose handshake is complete: whether the server accepted 0-RTT.
    pub(crate) fn is_early_data_accepted(&self) -> bool {
        matches!(self.tls.as_deref(), Some(Connection::Client(tls)) if tls.is_early_data_accepted())
    }

    /// True if the server has asked for another ClientHello, which ends 0-RTT (RFC 9001 section 4.6.2).
    pub(crate) fn is_hello_retried(&self) -> bool {
        let kind = self.tls.as_deref().and_then(|tls| tls.handshake_kind());
        kind == Some(HandshakeKind::FullWithHelloRetryRequest)
    }

    /// True if TLS has read the client's first flight: whether 0-RTT is accepted is decided.
    pub(crate) fn has_read_first_flight(&self) -> bool {
        self.reading > Level::Initial
    }

    /// What TLS says about the failure that [`Handshake::on_crypto`] reported.
    pub(crate) fn failure(&self) -> Option<&rustls::Error> {
        self.failure.as_deref()
    }

    /// Key material for the application, bound to this handshake (RFC 8446 section 7.5).
    pub(crate) fn export_keying_material(
        &self,
        label: &[u8],
        context: &[u8],
        output: &mut [u8],
    ) -> Result<(), ExportError> {
        let exporter = self.data.as_ref().and_then(|data| data.exporter.as_ref());
        exporter.ok_or(ExportError::NotConnected)?.export(label, context, output)
    }

    /// Bytes of the handshake's messages so far.
    pub(crate) fn bytes(&self) -> HandshakeBytes {
        let of = |stream: &Option<Box<Stream>>, gone: Over| stream.as_ref().map_or(gone, |it| it.bytes());
        let initial = of(&self.initial, self.gone.initial());
        let handshake = of(&self.handshake, self.gone.handshake());
        HandshakeBytes {
            initial_sent: initial.sent,
            initial_received: initial.read,
            handshake_sent: handshake.sent,
            handshake_received: handshake.read,
        }
    }

    /// The keys of `level` are discarded: nothing more is sent or kept there.
    pub(crate) fn discard(&mut self, level: Level) {
        if let Some(bytes) = self.stream(level).map(|stream| stream.bytes()) {
            self.gone.note(level, bytes);
        }
        match level {
            Level::Initial => self.initial = None,
            Level::Handshake => self.handshake = None,
            Level::ZeroRtt | Level::OneRtt => {}
        }
    }

    /// At a client: session tickets serve nothing, so that TLS need not wait for them.
    pub(crate) fn without_tickets(&mut self) {
        self.enough_tickets = 0;
    }

    /// The handshake is confirmed. A server lets go of its TLS state: its session tickets are written by
    /// then, and clients have nothing more to say. A client keeps it for a while, to read session tickets.
    pub(crate) fn on_confirmed(&mut self) {
        self.confirmed = true;
        self.let_go_of_tls(self.enough_tickets);
    }

    /// TLS goes if it has nothing more to do; at a client, if it has read so many session tickets, and nothing of another.
    fn let_go_of_tls(&mut self, tickets: u8) {
        let read_all = self.messages.tickets() >= tickets && self.messages.is_between();
        if self.confirmed && (self.side == Side::Server || read_all) {
            self.tls = None;
        }
    }

    /// Feeds TLS what can be read at the present level. Returns true if there may be more to read, at the
    /// next level.
    fn read_some(&mut self) -> Result<bool, WireError> {
        let level = self.reading;
        let stream = match level {
            Level::Initial => self.initial.as_deref_mut(),
            Level::Handshake => self.handshake.as_deref_mut(),
            Level::ZeroRtt | Level::OneRtt => self.one_rtt.as_deref_mut(),
        };
        let Some(stream) = stream else { return Ok(false) };
        let data = stream.received.contiguous();
        if data.is_empty() {
            return Ok(false);
        }
        let Some(tls) = self.tls.as_deref_mut() else {
            if self.side == Side::Server {
                return Err(WireError::new(alert::UNEXPECTED_MESSAGE, "a TLS message after the handshake"));
            }
            self.messages.follow(data)?;
            let len = data.len();
            stream.received.consume(len);
            return Ok(false);
        };
        if level == Level::Initial && matches!(tls, Connection::Server(_)) {
            // TLS gets a ClientHello as a whole, when it is known to be one of QUIC's (RFC 9001 section 8.2).
            match client_hello::has_transport_parameters(data, self.version.number) {
                None => return Ok(false),
                Some(true) => {}
                Some(false) => {
                    return Err(WireError::new(alert::MISSING_EXTENSION, "no transport parameters"));
                }
            }
        }
        if level == Level::OneRtt && self.side == Side::Client {
            self.messages.follow(data)?;
        }
        let mut read = || secret_tap::listening(|| without_records(|| tls.read_hs(data)));
        let read = match (&self.memory, &self.data) {
            (Some(memory), Some(agreed)) => memory.reading(data, &agreed.peer_certificates, read),
            _ => read(),
        };
        self.exporter = secret_tap::take_exporter().or(self.exporter.take());
        if let Err(failure) = read {
            let error = alert::from_tls(tls, &failure);
            self.failure = Some(Box::new(failure));
            secret_tap::forget();
            return Err(error);
        }
        let len = data.len();
        stream.received.consume(len);
        self.collect();
        self.let_go_of_tls(self.enough_tickets);
        let next = self.next_level();
        if level == Level::Initial
            && next > level
            && matches!(self.tls.as_deref(), Some(Connection::Server(_)))
        {
            self.collect_early();
        }
        if next == level {
            return Ok(false);
        }
        let left = self.stream(level).is_some_and(|stream| !stream.received.is_empty());
        if left {
            return Err(violation("CRYPTO data is left behind at a level that is over"));
        }
        self.reading = next;
        Ok(true)
    }

    /// Takes from TLS what it has to send, and new keys.
    fn collect(&mut self) {
        let Some(tls) = self.tls.as_deref_mut() else { return };
        loop {
            let stream = match (self.writing, &mut self.beside.withheld) {
                (Level::Initial, _) => self.initial.as_deref_mut().map(Stream::tail),
                (Level::Handshake, _) => self.handshake.as_deref_mut().map(Stream::tail),
                (Level::ZeroRtt | Level::OneRtt, Some(withheld)) => Some(withheld),
                (Level::ZeroRtt | Level::OneRtt, None) => {
                    Some(one_rtt(&mut self.one_rtt, self.beside.over).tail())
                }
            };
            let Some(tail) = stream else { return };
            let before = tail.len();
            let Version { number: version, moved } = self.version;
            let derived = Derive { side: self.side, version, moved };
            let suite = tls.negotiated_cipher_suite();
            match keys::from_tls(suite, || tls.write_hs(tail).map(|change| derived.taken(change, tls))) {
                Some(NewKeys::Handshake(keys)) => {
                    self.handshake_keys = Some(keys);
                    self.writing = Level::Handshake;
                }
                Some(NewKeys::OneRtt(keys)) => {
                    self.one_rtt_keys = Some(keys);
                    self.writing = Level::OneRtt;
                }
                Some(NewKeys::ZeroRtt(_)) => {}
                None if tail.len() == before => break,
                None => {}
            }
        }
        secret_tap::forget();
        if self.data.is_none() && !tls.is_handshaking() {
            self.data = Some(Box::new(agreed(tls, self.exporter.take())));
        }
    }

    /// Takes the keys of 0-RTT packets from TLS, if there are any: a client's at the start, a server's once it has
    /// accepted.
    fn collect_early(&mut self) {
        if let Some(tls) = self.tls.as_deref() {
            let sealing = matches!(tls, Connection::Client(_));
            let suite = tls.negotiated_cipher_suite();
            let keys =
                keys::from_tls(suite, || tls.zero_rtt_keys().map(|keys| EarlyKeys::new(keys, sealing)));
            self.early_keys = keys.map(Box::new);
        }
    }

    /// The level at which TLS reads next.
    fn next_level(&self) -> Level {
        if self.data.is_some() {
            Level::OneRtt
        } else if self.writing > Level::Initial {
            Level::Handshake
        } else {
            Level::Initial
        }
    }

    fn stream(&mut self, level: Level) -> Option<&mut Stream> {
        match level {
            Level::Initial => self.initial.as_deref_mut(),
            Level::ZeroRtt => None,
            Level::Handshake => self.handshake.as_deref_mut(),
            Level::OneRtt => self.one_rtt.as_deref_mut(),
        }
    }
}

/// The CRYPTO stream of 1-RTT packets, of which so much is over if there is nothing of it now.
fn one_rtt(stream: &mut Option<Box<Stream>>, over: Over) -> &mut Stream {
    stream.get_or_insert_with(|| Box::new(Stream::after(over)))
}

impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handshake")
            .field("reading", &self.reading)
            .field("writing", &self.writing)
            .field("data", &self.data)
            .finish_non_exhaustive()
    }
}

/// How keys are had of TLS, or of its secrets.
struct Derive {
    side: Side,
    version: u32,
    /// TLS has keys of another version.
    moved: bool,
}

impl Derive {
    fn taken(&self, change: KeyChange, tls: &Connection) -> NewKeys {
        let suite = tls.negotiated_cipher_suite().map(|suite| suite.suite());
        let schedule = suite.and_then(|suite| Schedule::new(suite, self.version));
        let moved = schedule.filter(|_| self.moved);
        match change {
            KeyChange::Handshake { keys } => {
                let secrets = secret_tap::take_handshake().map(|pair| self.by_end(pair));
                let derived = moved.zip(secrets).map(|(schedule, (local, remote))| {
                    schedule.level_keys(local.as_bytes(), remote.as_bytes())
                });
                NewKeys::Handshake(Box::new(derived.unwrap_or_else(|| LevelKeys::new(keys))))
            }
            KeyChange::OneRtt { keys, next } => {
                let secrets = secret_tap::take_one_rtt().map(|pair| self.by_end(pair));
                NewKeys::OneRtt(Box::new(match (moved, schedule.zip(secrets)) {
                    (Some(_), Some((schedule, (local, remote)))) => {
                        let keys = schedule.level_keys(local.as_bytes(), remote.as_bytes());
                        OneRtt::derived(keys, Ratchet::new(schedule, local, remote))
                    }
                    (_, ratchet) => {
                        let ratchet =
                            ratchet.map(|(schedule, (local, remote))| Ratchet::new(schedule, local, remote));
                        OneRtt::new(keys, next, ratchet)
                    }
                }))
            }
        }
    }

    /// This end's secret and the peer's.
    fn by_end(&self, (client, server): Pair) -> Pair {
        if self.side == Side::Client { (client, server) } else { (server, client) }
    }
}

fn agreed(tls: &Connection, secret: Option<Secret>) -> HandshakeData {
    let server_name = match tls {
        Connection::Client(_) => None,
        Connection::Server(tls) => tls.server_name().map(str::to_owned),
    };
    let cipher_suite = tls.negotiated_cipher_suite().map(|suite| suite.suite());
    HandshakeData {
        alpn: tls.alpn_protocol().map(<[u8]>::to_vec),
        server_name,
        peer_certificates: tls.peer_certificates().unwrap_or_default().to_vec(),
        cipher_suite,
        group: tls.negotiated_key_exchange_group().map(|group| group.name()),
        exporter: cipher_suite.zip(secret).map(|(suite, secret)| Exporter::new(suite, secret)),
        resumed: tls.handshake_kind() == Some(HandshakeKind::Resumed),
    }
}

fn tls_version(version: u32) -> Result<rustls::quic::Version, ConnectError> {
    keys::tls_version(version)
        .ok_or_else(|| ConnectError::Tls(format!("QUIC version {version:#010x} is not spoken")))
}

#[track_caller]
fn violation(reason: &'static str) -> WireError {
    WireError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason)
}

/// The CRYPTO frames of the 1-RTT level; those of the levels before it go into packets of their own.
impl Part for Handshake {
    type Token = CryptoToken;

    #[inline]
    fn wants_to_send(&self) -> bool {
        self.has_crypto(Level::OneRtt)
    }

    fn write_frames<T: From<CryptoToken>>(&mut self, packet: &mut PacketBuilder<'_, T>) {
        self.write_crypto(Level::OneRtt, packet);
    }

    fn on_acked(&mut self, CryptoToken { level, offset, len }: CryptoToken) {
        if let Some(stream) = self.stream(level) {
            stream.to_send.on_acked(offset, len);
        }
    }

    fn repeat(&mut self, CryptoToken { level, offset, len }: CryptoToken) {
        if let Some(stream) = self.stream(level) {
            stream.to_send.on_lost(offset, len);
        }
    }

    /// Gives back memory that is not in use.
    fn release_memory(&mut self) {
        self.let_go_of_tls(self.enough_when_idle());
        let over = |stream: &&Stream| stream.to_send.is_acked() && stream.received.is_empty();
        if let Some(stream) = self.one_rtt.as_deref().filter(over)
            && self.tls.is_none()
        {
            self.beside.over = stream.bytes();
            self.one_rtt = None;
        }
    }
}
