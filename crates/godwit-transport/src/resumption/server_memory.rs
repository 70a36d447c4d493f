//! One connection's view of the session store, for TLS and for the transport.
//!
//! What a client begins with is recalled before it begins ([`Recalled`]), where a store may take its time; from then on the
//! store is told of news alone, but for connections that begin anew in another version.

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
    /// What the store has given before the connection began; `None` if that was for another version.
    held: Mutex<Option<Held>>,
}

/// What was recalled of a server.
#[derive(Debug, Default)]
struct Held {
    ticket: Option<SessionTicket>,
    token: Option<Bytes>,
    remembered: Option<Remembered>,
    group: Option<NamedGroup>,
}

/// What the store of sessions has of a server, for one connection to it. To recall it may take the time that the store
/// takes; what follows, up to the connection's end, does not.
#[derive(Debug)]
pub struct Recalled(pub(crate) Option<Arc<ServerMemory>>);

impl Recalled {
    /// For [`Endpoint::connect_recalled`](crate::Endpoint::connect_recalled), with the same settings and name. `spoken`: the
    /// versions that the endpoint speaks.
    pub fn of(config: &ClientConfig, spoken: &[u32], server_name: &str) -> Recalled {
        Recalled(ServerMemory::new(config, spoken, server_name).inspect(|memory| memory.recall()))
    }
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
        let (key, held) = (Mutex::new(key), Mutex::default());
        Some(Arc::new(ServerMemory { store, early, ticket_reader, key, held }))
    }

    /// Takes from the store what the connection will begin with.
    fn recall(&self) {
        let key = self.key();
        let held = Held {
            ticket: self.take_stored_ticket(&key),
            token: self.store.take_token(&key),
            remembered: self.store.remembered(&key),
            group: self.store.group(&key),
        };
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
    }

    /// Of what was recalled, if anything was.
    fn of_held<R>(&self, take: impl FnOnce(&mut Held) -> R) -> Option<R> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(take)
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
        let mut key = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        if key.version != version {
            key.version = version;
            *self.held.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
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
        self.of_held(|held| held.token.take()).unwrap_or_else(|| self.store.take_token(&self.key()))
    }

    pub(crate) fn remembered(&self) -> Option<Remembered> {
        self.of_held(|held| held.remembered.clone()).unwrap_or_else(|| self.store.remembered(&self.key()))
    }

    pub(crate) fn put_application_data(&self, data: &Bytes) {
        self.remember(&mut |remembered| remembered.application = data.clone());
    }

    /// Keeps what the path has shown.
    pub(crate) fn put_path(&self, path: &PathRecovery, found: Found) {
        self.remember(&mut |remembered| {
            let state = path.export();
            let Network { rtt, loss, variation } = found.after(known(remembered));
            (remembered.rtt, remembered.loss, remembered.variation) = (rtt, loss, variation);
            (remembered.window, remembered.rate) = (state.window, state.rate);
        });
    }

    /// Changes what is remembered, in the store and here.
    fn remember(&self, change: &mut dyn FnMut(&mut Remembered)) {
        self.store.remember(&self.key(), change);
        self.of_held(|held| change(held.remembered.get_or_insert_default()));
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

    /// Without a reader of tickets, one from a persistent store would only be spoilt.
    fn take_stored_ticket(&self, key: &SessionKey) -> Option<SessionTicket> {
        let is_of_use = self.ticket_reader.is_some() || !self.store.is_persistent();
        is_of_use.then(|| self.store.take_ticket(key, self.early)).flatten()
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
        self.of_held(|held| held.group = Some(group));
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.of_held(|held| held.group).unwrap_or_else(|| self.store.group(&self.key()))
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
        let held = self.of_held(|held| held.ticket.take());
        let ticket = held.unwrap_or_else(|| self.take_stored_ticket(&self.key()))?;
        match ticket.form {
            TicketForm::Live(value) => Some(value),
            TicketForm::Portable(ticket) => self.ticket_reader.as_ref()?.import(&ticket, name),
        }
    }
}
