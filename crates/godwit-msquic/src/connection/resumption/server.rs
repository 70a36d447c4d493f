//! Tickets that a server gives out, and clients that come back with them.

use super::TicketSource;
use super::offered::{Offered, OfferedSession};
use super::sessions::ConnectionSessions;
use crate::abi::{ServerResumptionLevel, Setting, Status};
use crate::configuration::Random;
use crate::connection::Connection;
use crate::credential::ServerTicket;
use crate::worker::{ConnectionNews, State};
use bytes::Bytes;
use godwit_base::Time;
use godwit_base::slab::Key;
use godwit_engine::ShardCx;
use godwit_transport::ServerConfig;
use godwit_transport::tls::client_hello::offered_tickets;
use godwit_transport::tls::resumption::NewSession;
use std::sync::Arc;

impl Connection {
    fn resumption_level(&self) -> ServerResumptionLevel {
        let level = self.setting(Setting::ServerResumptionLevel);
        ServerResumptionLevel(u8::try_from(level).unwrap_or_default())
    }

    pub(crate) fn resumes(&self) -> bool {
        self.resumption_level() != ServerResumptionLevel::NO_RESUME
    }

    /// Whether tickets may be good for 0-RTT: not where the application wants to judge who it is before anything is done.
    fn permits_early(&self) -> bool {
        let credential = self.configuration.as_ref().and_then(|configuration| configuration.credential());
        self.resumption_level() == ServerResumptionLevel::RESUME_AND_ZERO_RTT
            && credential.is_some_and(|credential| !credential.indicates_certificates())
    }
}

impl State {
    /// Has the application decide about the session that a client offers to resume. False if there is none: the connection
    /// may be accepted.
    pub(in crate::connection) fn offer_session(&mut self, cx: &ShardCx<'_>, key: Key) -> bool {
        let Some(session) = self.offered_session(cx, key) else { return false };
        let Some(connection) = self.connections.get_mut(key) else { return false };
        let data = Bytes::copy_from_slice(&session.ticket.data);
        connection.resumption.is_attempted = true;
        connection.resumption.offered = Some(Offered { session, is_put_off: false, answer: None });
        self.tell_connection(key, ConnectionNews::Resumed { data });
        true
    }

    /// The first of those that a client offers that was sealed here, or at a server with the same keys, and is good.
    fn offered_session(&self, cx: &ShardCx<'_>, key: Key) -> Option<OfferedSession> {
        let connection = self.connections.get(key).filter(|connection| connection.resumes())?;
        let credential = connection.configuration.as_ref()?.credential()?;
        let incoming = cx.endpoint().incoming(connection.incoming?)?;
        let (hello, name) = (incoming.client_hello()?, incoming.server_name().unwrap_or_default());
        let now = unix_seconds(cx);
        let random = random_of(&hello)?;
        offered_tickets(&hello).into_iter().find_map(|sealed| {
            let ticket = credential.open_ticket(sealed)?;
            let is_good = ticket.is_good(now) && *ticket.server_name == *name;
            is_good.then(|| OfferedSession { sealed: sealed.to_vec(), ticket, random })
        })
    }

    /// The callback that was told of the session has returned `status`.
    pub(crate) fn on_resumed_told(&mut self, cx: &mut ShardCx<'_>, key: Key, status: Status) {
        let offered = self.connections.get_mut(key).and_then(|it| it.resumption.offered.as_mut());
        let Some(offered) = offered else { return };
        if status != Status::PENDING {
            self.decide(cx, key, status.succeeded());
        } else if let Some(answer) = offered.answer {
            self.decide(cx, key, answer);
        } else {
            offered.is_put_off = true;
        }
    }

    /// The application says whether a session may be resumed, which it has put off. While nothing is to be decided, it may
    /// say what it wants.
    ///
    /// # Errors
    /// [`Status::INVALID_PARAMETER`] at a client, [`Status::INVALID_STATE`] if the session is resumed, or the handshake is
    /// complete.
    pub(crate) fn complete_ticket_validation(
        &mut self,
        cx: &mut ShardCx<'_>,
        key: Key,
        is_good: bool,
    ) -> Result<(), Status> {
        let connection = self.connections.get_mut(key).filter(|connection| connection.is_server);
        let connection = connection.ok_or(Status::INVALID_PARAMETER)?;
        if connection.is_connected || connection.resumption.is_accepted {
            return Err(Status::INVALID_STATE);
        }
        match &mut connection.resumption.offered {
            Some(offered) if offered.is_put_off => self.decide(cx, key, is_good),
            Some(offered) => offered.answer = Some(is_good),
            None => {}
        }
        Ok(())
    }

    fn decide(&mut self, cx: &mut ShardCx<'_>, key: Key, is_good: bool) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let offered = connection.resumption.offered.take();
        self.accept(cx, key, offered.map(|offered| offered.session).filter(|_| is_good));
    }

    /// What a connection is accepted with, that resumes this session, or none.
    ///
    /// # Errors
    /// As [`Configuration::server`](crate::configuration::Configuration::server) has them.
    pub(in crate::connection) fn server_config(
        &mut self,
        key: Key,
        resumed: Option<OfferedSession>,
        now: Time,
    ) -> Result<Arc<ServerConfig>, Status> {
        let connection = self.connections.get_mut(key).ok_or(Status::INVALID_STATE)?;
        let configuration = connection.configuration.clone().ok_or(Status::INVALID_STATE)?;
        let config = configuration.server(&connection.own(), &connection.alpn)?;
        if !connection.resumes() {
            return Ok(config);
        }
        let early = resumed.as_ref().filter(|_| connection.permits_early()).is_some_and(|it| {
            let permits = |id| configuration.early_tickets().permits(&id, &config.transport, it.random, now);
            it.ticket.early.is_some_and(permits)
        });
        connection.resumption.is_accepted = resumed.is_some();
        let resumable = resumed.map(|resumed| (resumed.sealed, resumed.ticket.session));
        let sessions = Arc::new(ConnectionSessions::new(resumable));
        let transport = Arc::clone(&config.transport);
        connection.resumption.source = Some(TicketSource { sessions: Arc::clone(&sessions), transport });
        Ok(Arc::new(config.with_sessions(sessions, early)))
    }

    /// Sends the client a ticket with this data in it. If it `is_last`, there will be no other.
    ///
    /// # Errors
    /// [`Status::INVALID_PARAMETER`] at a client; [`Status::INVALID_STATE`] if sessions are not resumed, the handshake is not
    /// complete, the connection is closed, or the last ticket was sent; [`Status::OUT_OF_MEMORY`] if TLS has made no more of
    /// them, or it would be too long.
    pub(crate) fn send_resumption_ticket(
        &mut self,
        cx: &mut ShardCx<'_>,
        key: Key,
        data: &[u8],
        is_last: bool,
    ) -> Result<(), Status> {
        let connection = self.connections.get_mut(key).filter(|connection| connection.is_server);
        let connection = connection.ok_or(Status::INVALID_PARAMETER)?;
        let open = connection.key.filter(|_| connection.is_connected && connection.is_open());
        let (conn, source) = open.zip(connection.resumption.source.as_ref()).ok_or(Status::INVALID_STATE)?;
        let configuration = connection.configuration.as_ref().ok_or(Status::INVALID_STATE)?;
        let credential = configuration.credential().ok_or(Status::INVALID_STATE)?;
        let made = cx.endpoint_mut().with(conn, |transport| transport.next_withheld_ticket()).flatten();
        let made = made.ok_or(Status::OUT_OF_MEMORY)?;
        let session = source.sessions.take_made(&made.ticket).ok_or(Status::INTERNAL_ERROR)?;
        let early = connection.permits_early();
        let early = early.then(|| configuration.early_tickets().give(&source.transport)).flatten();
        let ticket = ServerTicket {
            issued: unix_seconds(cx),
            early,
            server_name: connection.server_name.clone().unwrap_or_default(),
            session: session.to_vec(),
            data: data.to_vec(),
        };
        let sealed = credential.seal_ticket(&ticket).ok_or(Status::OUT_OF_MEMORY)?;
        let message = NewSession { lifetime: ServerTicket::LIFETIME, ticket: sealed, ..made };
        let sent = cx.endpoint_mut().with(conn, |transport| transport.send_ticket(&message, early.is_some()));
        if sent != Some(true) {
            return Err(Status::OUT_OF_MEMORY);
        }
        if is_last {
            connection.resumption.source = None;
        }
        Ok(())
    }

    /// Whether the peer has begun a stream with 0-RTT packets, which somebody may have recorded and sent again.
    pub(crate) fn is_early(&self, cx: &ShardCx<'_>, stream: Key) -> bool {
        let Some((stream, id)) = self.streams.get(stream).and_then(|stream| Some((stream, stream.id?)))
        else {
            return false;
        };
        let conn = self.connections.get(stream.connection).and_then(|connection| connection.key);
        let transport = conn.and_then(|conn| cx.endpoint().connection(conn));
        transport.is_some_and(|transport| transport.is_early(id))
    }
}

/// The random of a whole ClientHello, with its header: behind the type, the length and the version.
fn random_of(hello: &[u8]) -> Option<Random> {
    hello.get(6..)?.first_chunk().copied()
}

fn unix_seconds(cx: &ShardCx<'_>) -> u64 {
    cx.wall().as_unix_micros() / 1_000_000
}
