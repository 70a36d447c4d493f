//! The second step of accepting: the application has seen who wants what, and decides.

use super::incoming::{GoneIncoming, Incoming};
use super::receive::REFUSED;
use super::{ConnKey, Endpoint, IncomingKey};
use crate::address_token::NewToken;
use crate::cid::Shown;
use crate::config::ServerConfig;
use crate::connection::boundary::ServerArgs;
use crate::{ConnectError, Connection};
use bytes::Bytes;
use godwit_base::Time;
use godwit_recovery::SavedState;
use godwit_wire::TransportErrorCode;
use godwit_wire::transport_parameters::PreferredAddress;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// Why an incoming handshake could not be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcceptError {
    /// It is no more: it has been decided already, or has expired.
    Gone,
    /// Neither the call nor the endpoint has a server configuration.
    NoConfig,
    /// The endpoint holds as many connections as it may, or the client's network more than its share of them, or too many
    /// of that network have not finished their handshakes. The client was refused, or comes again.
    TooManyConnections,
    /// The configuration cannot be used. The client was refused.
    Config(ConnectError),
}

impl fmt::Display for AcceptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AcceptError::Gone => f.write_str("the incoming handshake is gone"),
            AcceptError::NoConfig => f.write_str("the endpoint has no server configuration"),
            AcceptError::TooManyConnections => f.write_str("the endpoint is at its limit of connections"),
            AcceptError::Config(error) => write!(f, "the server configuration cannot be used: {error}"),
        }
    }
}

impl std::error::Error for AcceptError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            AcceptError::Config(error) => Some(error),
            _ => None,
        }
    }
}

/// More than this is not carried on from visit to visit: no jump is as wide.
const MOST_CARRIED_ON: u64 = 16 << 20;

/// What a client has brought along, for a visit after this one: a short one finds nothing out, and must not make it
/// forgotten, but it becomes doubtful.
fn older(saved: SavedState) -> SavedState {
    let mut older = saved;
    older.window = older.window.min(MOST_CARRIED_ON) / 2;
    older
}

impl Endpoint {
    /// The next incoming handshake on which to decide, with [`Endpoint::accept`], [`Endpoint::retry`],
    /// [`Endpoint::refuse`] or [`Endpoint::ignore`]. The decision may be made later, within ten seconds.
    pub fn next_incoming(&mut self) -> Option<IncomingKey> {
        self.incoming.next_ready()
    }

    /// Has incoming handshakes noted that wait no more, whoever ended them, for [`Endpoint::next_gone_incoming`].
    pub fn watch_incoming(&mut self) {
        self.queues.gone.get_or_insert_default();
    }

    /// The next incoming handshake that waits no more: it was decided, has expired, or its client has given up. `None` where
    /// they are not [watched](Endpoint::watch_incoming).
    pub fn next_gone_incoming(&mut self) -> Option<GoneIncoming> {
        self.queues.gone.as_mut()?.pop_front()
    }

    /// What is known of an incoming handshake; `None` once it is decided or expired.
    pub fn incoming(&self, key: IncomingKey) -> Option<&Incoming> {
        self.incoming.get(key)
    }

    /// Makes a connection of an incoming handshake, with `config` or else with the endpoint's own.
    ///
    /// # Errors
    /// See [`AcceptError`]. The handshake is over then, unless the error is [`AcceptError::NoConfig`].
    pub fn accept(
        &mut self,
        now: Time,
        key: IncomingKey,
        config: Option<Arc<ServerConfig>>,
    ) -> Result<ConnKey, AcceptError> {
        let config = config.or_else(|| self.server.clone()).ok_or(AcceptError::NoConfig)?;
        let source = self.incoming.get(key).ok_or(AcceptError::Gone)?.first.source;
        if !self.has_place_for(source) {
            self.end_incoming(key, Some(REFUSED));
            return Err(AcceptError::TooManyConnections);
        }
        if !self.has_room_for_half_open(now, source) {
            self.turn_away(key);
            return Err(AcceptError::TooManyConnections);
        }
        let mut incoming = self.incoming.remove(key).ok_or(AcceptError::Gone)?;
        let first = incoming.first;
        self.forget_incoming(key, &incoming);
        let answered = incoming.answered();
        let identifier = config.transport.cibir.identifier();
        let shown = Shown { identifier, ..self.shown_at(first.path.local) };
        let local_cid = answered.local_cid.unwrap_or_else(|| self.fresh_cid(&shown));
        let preferred = self.preferred_address(&config, &shown);
        let version = incoming.choose_version(self.config.upgrade_to);
        let args = ServerArgs {
            config,
            version,
            initial_keys: incoming.take_keys(version),
            original_version: first.version,
            path: first.path,
            local_cid,
            reset_token: self.config.secrets.reset_token(&local_cid),
            client_dcid: first.client_dcid,
            original_dcid: first.original_dcid,
            retry_scid: first.retry_scid,
            peer_scid: first.peer_scid,
            validated: first.validated,
            network: self.networks.find(first.path.remote.ip()),
            saved: first.saved,
            new_token: self.new_token(incoming.remote().ip(), first.saved.map(older)),
            versions: &self.config.versions,
            preferred,
        };
        let mut connection = Connection::server(now, args, &mut *self.rng).map_err(|error| {
            self.send_close(&first, &answered, REFUSED);
            AcceptError::Config(error)
        })?;
        connection.share_windows(&self.config.window_reserve);
        connection.machine.start_observing(now, self.clock.wall, &self.config);
        let conn = self.insert(connection, local_cid, Some(source), Some(first.client_dcid));
        self.on_half_open(now, conn, source);
        if let Some(slot) = self.slots.get_mut(conn.0) {
            if let Some(preferred) = preferred {
                slot.cids.push(preferred.cid);
                self.demux.insert_issued(preferred.cid, conn);
            }
            if let Some(begun) = incoming.take_begun() {
                slot.connection.machine.continue_initials(now, &begun);
            }
            for (ecn, mut datagram) in incoming.datagrams {
                slot.connection.machine.receive(now, first.path, ecn, &mut datagram);
            }
            slot.connection.machine.on_batch_end(now);
        }
        self.touch(conn);
        self.queues.push_first_flight(conn);
        Ok(conn)
    }

    /// Asks the client to prove its address first: it comes again as a new incoming handshake, validated.
    /// False, and nothing happens, if the handshake is gone or [cannot be retried](Incoming::may_retry): it is validated
    /// already, or parts of its ClientHello came at different times, so that the client had to be answered.
    pub fn retry(&mut self, key: IncomingKey) -> bool {
        let Some(first) = self.incoming.get(key).filter(|it| it.may_retry()).map(|it| it.first) else {
            return false;
        };
        self.end_incoming(key, None);
        self.send_retry(&first);
        true
    }

    /// Tells the client that it is not welcome (CONNECTION_REFUSED). False if the handshake is gone.
    pub fn refuse(&mut self, key: IncomingKey) -> bool {
        self.end_incoming(key, Some(REFUSED))
    }

    /// Tells the client why it is not welcome, with this code and reason (RFC 9000 section 20.1). False if the handshake is
    /// gone.
    pub fn refuse_with(&mut self, key: IncomingKey, code: TransportErrorCode, reason: &'static str) -> bool {
        self.end_incoming(key, Some((code, reason)))
    }

    /// Forgets an incoming handshake without a word. False if it is gone.
    pub fn ignore(&mut self, key: IncomingKey) -> bool {
        self.end_incoming(key, None)
    }

    /// Where the client is asked to go, with an id for there.
    fn preferred_address(&mut self, config: &ServerConfig, shown: &Shown) -> Option<PreferredAddress> {
        let (ipv4, ipv6) = config.transport.migration.preferred_address;
        ipv4.map(|_| ()).or(ipv6.map(|_| ()))?;
        let cid = self.fresh_cid(shown);
        Some(PreferredAddress { ipv4, ipv6, cid, reset_token: self.config.secrets.reset_token(&cid) })
    }

    /// A token with which the client can prove its address the next time.
    pub(super) fn new_token(&mut self, address: IpAddr, path: Option<SavedState>) -> Option<Bytes> {
        let token = NewToken { address, issued: self.clock.wall, path };
        let sealed = token.seal(&self.config.secrets, &mut *self.rng)?;
        Some(Bytes::copy_from_slice(&sealed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_is_carried_on_to_another_visit_becomes_half_and_is_no_more_than_8_mib() {
        for (window, carried_on) in
            [(0, 0), (1000, 500), (16 << 20, 8 << 20), ((16 << 20) + 2, 8 << 20), (u64::MAX, 8 << 20)]
        {
            let mut saved = SavedState::default();
            (saved.rtt, saved.window, saved.rate) = (Duration::from_millis(30), window, 1_000_000);
            let older = older(saved);
            assert_eq!(older.window, carried_on);
            assert_eq!((older.rtt, older.rate), (saved.rtt, saved.rate), "no less likely than before");
        }
    }
}
