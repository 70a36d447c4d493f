//! One connection's view of the session store, for TLS and for the transport.

use super::{Found, Network};
use crate::ClientConfig;
use bytes::Bytes;
use godwit_recovery::{PathRecovery, SavedState};
use godwit_tls::resumption::{Remembered, SessionKey, SessionStore, SessionTicket, TicketForm, TicketReader};
use godwit_wire::version::is_known;
use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::{CertificateDer, ServerName};
use std::sync::{Arc, Mutex, PoisonError};

/// What is kept for the server of one connection. Shared with TLS, which asks for tickets and gives them.
#[derive(Debug)]
pub(crate) struct ServerMemory {
    store: Arc<dyn SessionStore>,
    /// 0-RTT is offered if a ticket permits it.
    early: bool,
    /// If the store is persistent and tickets can be kept in it.
    ticket_reader: Option<TicketReader>,
    /// The version changes when the server chooses another compatible one.
    key: Mutex<SessionKey>,
}

impl ServerMemory {
    /// None if nothing is to be remembered.
    ///
    /// The version to begin with is the configured one, unless there are tickets for another of those that are
    /// `spoken` only. A server that moves its clients leaves tickets of the version it moved them to, which are for
    /// that one alone (RFC 9369 section 5).
    pub(crate) fn new(config: &ClientConfig, spoken: &[u32], server_name: &str) -> Option<Arc<Self>> {
        let ClientConfig { tls, resumption, version: configured, .. } = config;
        let store = resumption.store.clone()?;
        let verifier = resumption.verifier.as_ref().filter(|_| store.is_persistent());
        let ticket_reader = verifier.and_then(|verifier| TicketReader::new(verifier, tls));
        let early = tls.enable_early_data;
        let (server_name, alpn) = (server_name.to_owned(), tls.alpn_protocols.clone());
        let mut key = SessionKey::new(server_name, alpn, *configured);
        key.network = resumption.network;
        let others = spoken.iter().copied().filter(|version| is_known(*version));
        let of_ticket = [*configured].into_iter().chain(others).find(|version| {
            key.version = *version;
            store.has_ticket(&key)
        });
        key.version = of_ticket.unwrap_or(*configured);
        Some(Arc::new(ServerMemory { store, early, ticket_reader, key: Mutex::new(key) }))
    }

    /// The version to begin with, or to which the connection has moved.
    pub(crate) fn version(&self) -> u32 {
        self.key.lock().unwrap_or_else(PoisonError::into_inner).version
    }

    /// The TLS settings with this memory as their session storage.
    pub(crate) fn tls(self: &Arc<Self>, tls: &rustls::ClientConfig) -> rustls::ClientConfig {
        let mut tls = tls.clone();
        tls.resumption = rustls::client::Resumption::store(self.clone());
        tls
    }

    /// The connection goes on in another version: what comes from now on belongs to that.
    pub(crate) fn set_version(&self, version: u32) {
        self.key.lock().unwrap_or_else(PoisonError::into_inner).version = version;
    }

    /// Has TLS `read` this data, which may be a ticket of the owner of `chain`.
    pub(crate) fn reading<R>(
        &self,
        data: &[u8],
        chain: &[CertificateDer<'static>],
        read: impl FnOnce() -> R,
    ) -> R {
        match &self.ticket_reader {
            Some(ticket_reader) => ticket_reader.reading(data, chain, read),
            None => read(),
        }
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

    /// Keeps what the path has shown.
    pub(crate) fn put_path(&self, path: &PathRecovery, found: Found) {
        self.store.remember(&self.key(), &mut |remembered| {
            let state = path.export();
            let Network { rtt, loss, variation } = found.after(known(remembered));
            (remembered.rtt, remembered.loss, remembered.variation) = (rtt, loss, variation);
            (remembered.window, remembered.rate) = (state.window, state.rate);
        });
    }

    /// What the congestion controller of an earlier connection has left.
    pub(crate) fn saved(&self) -> Option<SavedState> {
        let Remembered { rtt, window, rate, .. } = self.remembered()?;
        let mut saved = SavedState::default();
        (saved.rtt, saved.window, saved.rate) = (rtt, window, rate);
        (!rtt.is_zero()).then_some(saved)
    }

    /// What is known of the network in between.
    pub(crate) fn network(&self) -> Network {
        self.remembered().as_ref().map(known).unwrap_or_default()
    }

    fn key(&self) -> SessionKey {
        self.key.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn known(remembered: &Remembered) -> Network {
    Network { rtt: remembered.rtt, loss: remembered.loss, variation: remembered.variation }
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
        let form = match &self.ticket_reader {
            Some(ticket_reader) => ticket_reader.describe(&ticket).map(TicketForm::Portable),
            None if self.store.is_persistent() => None,
            None => Some(TicketForm::Live(ticket)),
        };
        if let Some(form) = form {
            self.store.put_ticket(&self.key(), SessionTicket { form });
        }
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        // Without a reader of tickets, one from a persistent store would only be spoilt.
        let of_use = self.ticket_reader.is_some() || !self.store.is_persistent();
        let ticket = of_use.then(|| self.store.take_ticket(&self.key(), self.early)).flatten()?;
        match ticket.form {
            TicketForm::Live(value) => Some(value),
            TicketForm::Portable(ticket) => self.ticket_reader.as_ref()?.import(&ticket, name),
        }
    }
}
