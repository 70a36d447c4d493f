//! The handshake in memory at whose end TLS is given a ticket.

use super::super::new_session::NewSession;
use super::PortableTicket;
use super::verifier::{InsideGuard, PortableVerifier};
use crate::provider::{self, ticket_secret};
use rustls::client::{
    ClientSessionStore, ResolvesClientCert, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::quic::{ClientConnection, ServerConnection, Version};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::{CertifiedKey, Signer, SigningKey};
use rustls::time_provider::TimeProvider;
use rustls::version::TLS13;
use rustls::{ClientConfig, Error, NamedGroup, ServerConfig, SignatureAlgorithm, SignatureScheme};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Flights of each end until a handshake is over, at most.
const MAX_FLIGHTS: usize = 4;

/// `ticket` as TLS has it, for connections with this verifier and this identity.
pub(super) fn import(
    ticket: &PortableTicket,
    verifier: &Arc<PortableVerifier>,
    identity: &Arc<dyn ResolvesClientCert>,
    name: ServerName<'static>,
    now: UnixTime,
) -> Option<Tls13ClientSessionValue> {
    let provider = provider(ticket)?;
    let (_inside, seal) = InsideGuard::new(provider.secure_random, now)?;
    let got = Arc::new(Got::default());
    let client = client_config(ticket, verifier, identity, &provider, got.clone())?;
    let server = server_config(ticket, provider, seal)?;
    let mut client = ClientConnection::new(client, Version::V1, name, Vec::new()).ok()?;
    let mut server = ServerConnection::new(server, Version::V1, ticket.parameters.clone()).ok()?;
    shake_hands(&mut client, &mut server)?;
    let PortableTicket { lifetime, age_add, .. } = *ticket;
    // With a secret of its own, the nonce means nothing.
    let session = NewSession { lifetime, age_add, nonce: vec![0], ticket: ticket.ticket.clone() };
    let message = session.to_message(ticket.early)?;
    ticket_secret::giving(&ticket.secret, || client.read_hs(&message)).ok()?;
    got.0.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// With the ticket's suite alone, and no more of a key exchange than there must be.
fn provider(ticket: &PortableTicket) -> Option<Arc<CryptoProvider>> {
    let mut provider = provider::provider().as_ref().clone();
    provider.cipher_suites.retain(|suite| suite.suite() == ticket.suite && suite.tls13().is_some());
    provider.kx_groups.retain(|group| group.name() == NamedGroup::X25519);
    let suite = provider.cipher_suites.first()?;
    let whole = suite.tls13()?.common.hash_provider.output_len() == ticket.secret.len();
    whole.then(|| Arc::new(provider))
}

fn client_config(
    ticket: &PortableTicket,
    verifier: &Arc<PortableVerifier>,
    identity: &Arc<dyn ResolvesClientCert>,
    provider: &Arc<CryptoProvider>,
    got: Arc<Got>,
) -> Option<Arc<ClientConfig>> {
    let mut config = ClientConfig::builder_with_details(provider.clone(), Arc::new(Then(ticket.issued)))
        .with_protocol_versions(&[&TLS13])
        .ok()?
        .dangerous()
        .with_custom_certificate_verifier(verifier.clone())
        .with_no_client_auth();
    config.client_auth_cert_resolver = identity.clone();
    config.resumption = Resumption::store(got);
    config.cert_decompressors.clear();
    Some(Arc::new(config))
}

fn server_config(
    ticket: &PortableTicket,
    provider: Arc<CryptoProvider>,
    seal: [u8; 32],
) -> Option<Arc<ServerConfig>> {
    let shown = Arc::new(CertifiedKey::new(ticket.chain.clone(), Arc::new(Seal(seal))));
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .ok()?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Shown(shown)));
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.cert_compressors.clear();
    Some(Arc::new(config))
}

fn shake_hands(client: &mut ClientConnection, server: &mut ServerConnection) -> Option<()> {
    for _ in 0..MAX_FLIGHTS {
        let mut flight = Vec::new();
        while client.write_hs(&mut flight).is_some() {}
        if !client.is_handshaking() {
            return Some(());
        }
        server.read_hs(&flight).ok()?;
        // What comes after a change of keys is another reading.
        loop {
            let mut part = Vec::new();
            let change = server.write_hs(&mut part);
            if !part.is_empty() {
                client.read_hs(&part).ok()?;
            } else if change.is_none() {
                break;
            }
        }
    }
    None
}

/// The ticket on its way out.
#[derive(Debug, Default)]
struct Got(Mutex<Option<Tls13ClientSessionValue>>);

impl ClientSessionStore for Got {
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        None
    }
}

/// When the ticket was issued: TLS reckons its age from the time at which it gets it.
#[derive(Debug)]
struct Then(u64);

impl TimeProvider for Then {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(self.0)))
    }
}

/// The certificates that were kept.
#[derive(Debug)]
struct Shown(Arc<CertifiedKey>);

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

/// The secret by which [`PortableVerifier`] knows this handshake, in place of a signature.
#[derive(Clone)]
struct Seal([u8; 32]);

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal(..)")
    }
}

impl SigningKey for Seal {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        Some(Box::new(Sealing(self.clone(), *offered.first()?)))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ED25519
    }
}

#[derive(Debug)]
struct Sealing(Seal, SignatureScheme);

impl Signer for Sealing {
    fn sign(&self, _: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(self.0.0.to_vec())
    }

    fn scheme(&self) -> SignatureScheme {
        self.1
    }
}
