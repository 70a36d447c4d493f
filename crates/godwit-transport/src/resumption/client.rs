//! One connection's view of the session store, for TLS and for the transport.

use super::{Remembered, Resumption, SessionKey, SessionStore, SessionTicket};
use bytes::Bytes;
use godwit_recovery::PathRecovery;
use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A first estimate from memory is not below this: what a server needs for a handshake is not part of the
/// round-trip time.
const LEAST_INITIAL_RTT: Duration = Duration::from_millis(25);

/// What is kept for the server of one connection. Shared with TLS, which asks for tickets and gives them.
#[derive(Debug)]
pub(crate) struct ServerMemory {
    store: Arc<dyn SessionStore>,
    /// 0-RTT is offered if a ticket permits it.
    early: bool,
    /// The version changes when the server chooses another compatible one.
    key: Mutex<SessionKey>,
}

impl ServerMemory {
    /// None if nothing is to be remembered.
    pub(crate) fn new(
        resumption: &Resumption,
        tls: &rustls::ClientConfig,
        version: u32,
        server_name: &str,
    ) -> Option<Arc<Self>> {
        let store = resumption.store.clone()?;
        let (server_name, alpn) = (server_name.to_owned(), tls.alpn_protocols.clone());
        let key = SessionKey { server_name, alpn, version, network: resumption.network };
        Some(Arc::new(ServerMemory { store, early: tls.enable_early_data, key: Mutex::new(key) }))
    }

    /// The TLS settings with this memory as their session storage.
    pub(crate) fn tls(self: &Arc<Self>, tls: &rustls::ClientConfig) -> Arc<rustls::ClientConfig> {
        let mut tls = tls.clone();
        tls.resumption = rustls::client::Resumption::store(self.clone());
        Arc::new(tls)
    }

    /// The connection goes on in another version: what comes from now on belongs to that.
    pub(crate) fn set_version(&self, version: u32) {
        self.key.lock().unwrap_or_else(PoisonError::into_inner).version = version;
    }

    pub(crate) fn put_token(&self, token: Bytes) {
        self.store.put_token(&self.key(), token);
    }

    pub(crate) fn take_token(&self) -> Option<Bytes> {
        self.store.take_token(&self.key())
    }

    pub(crate) fn remembered(&self) -> Option<Remembered> {
        self.store.remembered(&self.key())
    }

    pub(crate) fn put_application_data(&self, data: &Bytes) {
        self.store.remember(&self.key(), &mut |remembered| remembered.application = data.clone());
    }

    /// Keeps what the path has shown, once it has shown anything.
    pub(crate) fn put_path(&self, path: &PathRecovery) {
        if path.stats().bytes_acked == 0 {
            return;
        }
        self.store.remember(&self.key(), &mut |remembered| {
            remembered.rtt = path.rtt().smoothed();
            remembered.window = path.window();
        });
    }

    /// With what estimate of the round-trip time to begin, instead of `default`.
    pub(crate) fn initial_rtt(&self, default: Duration) -> Duration {
        let known = self.remembered().map(|remembered| remembered.rtt).filter(|rtt| !rtt.is_zero());
        known.map_or(default, |rtt| rtt.max(LEAST_INITIAL_RTT))
    }

    fn key(&self) -> SessionKey {
        self.key.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ClientSessionStore for ServerMemory {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.store.put_group(&self.key(), group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.store.group(&self.key())
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {
        // QUIC has no TLS 1.2.
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.store.put_ticket(&self.key(), SessionTicket(ticket));
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.store.take_ticket(&self.key(), self.early).map(|ticket| ticket.0)
    }
}
