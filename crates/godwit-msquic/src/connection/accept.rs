//! Connections of servers: a client's handshake is shown to the listener that it is for, and goes on once the application has
//! given it a configuration.

use super::resumption::OfferedSession;
use super::{Connection, End, INTERNAL_ERROR};
use crate::abi::{Address, PerformanceCounter, Status};
use crate::configuration::Configuration;
use crate::counters;
use crate::listener::{self, Asked, Listener, NoListener};
use crate::worker::State;
use bytes::Bytes;
use godwit_base::slab::Key;
use godwit_engine::ShardCx;
use godwit_transport::{AcceptError, IncomingKey, TransportErrorCode};
use std::sync::Arc;

/// What a listener is shown of a client.
pub(crate) struct Offer {
    pub(crate) listener: Arc<Listener>,
    pub(crate) connection: Key,
    pub(crate) version: u32,
    pub(crate) local: Address,
    pub(crate) remote: Address,
    pub(crate) client_hello: Bytes,
    pub(crate) alpn_list: Bytes,
    pub(crate) alpn: Bytes,
    pub(crate) server_name: Box<str>,
}

/// TLS's alert of that name as the transport's code (RFC 8446 section 6, RFC 9001 section 4.8).
const NO_APPLICATION_PROTOCOL: TransportErrorCode = TransportErrorCode(0x178);

impl State {
    /// Makes a connection of a client's handshake, to be shown to a listener. `None` if there is none for it, and the client
    /// was told so.
    pub(crate) fn offer(&mut self, cx: &mut ShardCx<'_>, key: IncomingKey) -> Option<Offer> {
        let incoming = cx.endpoint().incoming(key)?;
        let bound = cx.local_addr(incoming.path().socket)?;
        let mut local = bound;
        if let Some(ip) = incoming.path().local {
            local.set_ip(ip);
        }
        let asked = Asked { socket: incoming.path().socket, alpn: incoming.alpn().collect() };
        let (listener, alpn) = match listener::choose(&asked) {
            Ok(chosen) => chosen,
            Err(NoListener::Gone) => {
                cx.endpoint_mut().refuse(key);
                return None;
            }
            Err(NoListener::Protocol) => {
                counters::count(PerformanceCounter::CONN_NO_ALPN);
                // As TLS would say it (RFC 9001 section 8.1), which is not begun for nobody.
                cx.endpoint_mut().refuse_with(key, NO_APPLICATION_PROTOCOL, "no protocol in common");
                return None;
            }
        };
        let alpn_list = incoming.alpn_list();
        let client_hello = incoming.client_hello().unwrap_or_default();
        let server_name: Box<str> = incoming.server_name().unwrap_or_default().into();
        let (version, remote) = (incoming.version(), incoming.remote());
        if self.connections.len() >= crate::handle::MOST {
            cx.endpoint_mut().refuse(key);
            return None;
        }
        let mut connection = Connection::new(Arc::clone(listener.registration()), true);
        connection.parameters.set_cibir_of_listener(listener.cibir());
        connection.incoming = Some(key);
        connection.is_started = true;
        connection.alpn.clone_from(&alpn);
        connection.local = Some(local);
        connection.remote = Some(remote);
        connection.server_name = Some(server_name.clone());
        let connection = self.connections.insert(connection);
        self.incoming.insert(key, connection);
        Some(Offer {
            listener,
            connection,
            version,
            local: local.into(),
            remote: remote.into(),
            client_hello: client_hello.into(),
            alpn_list: alpn_list.into(),
            alpn,
            server_name,
        })
    }

    /// The listener has been shown the client, and has returned `status`.
    pub(crate) fn on_offered(&mut self, cx: &mut ShardCx<'_>, offer: &Offer, status: Status) {
        let key = offer.connection;
        let Some(connection) = self.connections.get_mut(key) else { return };
        if status.failed() || connection.handler.is_none() && connection.closing.is_none() {
            offer.listener.on_rejected();
            connection.is_owned = false;
            self.end(cx, key, &End::Silent { code: 0 });
            // It may have ended in the callback already.
            self.forget_connection(key);
        } else {
            offer.listener.on_accepted();
        }
    }

    /// Ends connections whose clients have given up, or waited too long, before the application has said with what they are
    /// to be served.
    pub(crate) fn end_expired(&mut self, cx: &mut ShardCx<'_>) {
        while let Some(incoming) = cx.endpoint_mut().next_gone_incoming() {
            let Some(key) = self.incoming.remove(&incoming.key) else { continue };
            if let Some(connection) = self.connections.get_mut(key) {
                connection.incoming = None;
            }
            let end = match incoming.closed_with {
                Some(code) => End::PeerTransport { code: code.0, reason: Bytes::new() },
                None => End::Transport { status: Status::CONNECTION_IDLE, code: INTERNAL_ERROR },
            };
            self.end(cx, key, &end);
        }
    }

    /// The application gives a server's connection what it is to be served with.
    ///
    /// If the client has offered none of the configuration's protocols, the connection ends.
    ///
    /// # Errors
    /// If it has a configuration already.
    pub(crate) fn set_configuration(
        &mut self,
        cx: &mut ShardCx<'_>,
        key: Key,
        configuration: Arc<Configuration>,
    ) -> Result<(), Status> {
        let connection = self.connections.get_mut(key).ok_or(Status::INVALID_PARAMETER)?;
        if connection.configuration.is_some() {
            return Err(Status::INVALID_STATE);
        }
        connection.configuration = Some(Arc::clone(&configuration));
        let incoming = connection.incoming.and_then(|incoming| cx.endpoint().incoming(incoming));
        if let Some(incoming) = incoming {
            // It is the configuration's word that counts, whatever the listener was for.
            let Some(alpn) = configuration.choose(&incoming.alpn().collect::<Vec<_>>()) else {
                let code = NO_APPLICATION_PROTOCOL.0;
                self.end(cx, key, &End::Transport { status: Status::of_transport_error(code), code });
                return Ok(());
            };
            connection.alpn = alpn;
        }
        if !self.offer_session(cx, key) {
            self.accept(cx, key, None);
        }
        Ok(())
    }

    /// A client's handshake goes on, in which this session is resumed, or none.
    pub(super) fn accept(&mut self, cx: &mut ShardCx<'_>, key: Key, resumed: Option<OfferedSession>) {
        let incoming = self.connections.get_mut(key).and_then(|connection| connection.incoming.take());
        let Some(incoming) = incoming else { return };
        self.incoming.remove(&incoming);
        let now = cx.now();
        let outcome = self.server_config(key, resumed, now).and_then(|config| {
            cx.endpoint_mut().accept(now, incoming, Some(config)).map_err(|error| match error {
                AcceptError::Gone => Status::CONNECTION_TIMEOUT,
                AcceptError::TooManyConnections => Status::OUT_OF_MEMORY,
                _ => Status::TLS_ERROR,
            })
        });
        match outcome {
            Ok(conn) => {
                if let Some(connection) = self.connections.get_mut(key) {
                    connection.key = Some(conn);
                }
                self.set_place(conn, key);
                self.on_begun(cx, key);
            }
            Err(status) => self.end(cx, key, &End::Transport { status, code: INTERNAL_ERROR }),
        }
    }
}
