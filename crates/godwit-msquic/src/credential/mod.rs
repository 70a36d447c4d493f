//! Credentials: everything of a configuration that concerns TLS.
//!
//! [`Credential::load`] reads what the program has given (in [`load`]), opens keys and certificates ([`pem_files`],
//! [`pkcs12`], [`encrypted`], [`ecb`], [`identity`]), and makes TLS settings of them: which cipher suites ([`suites`]), whom to trust
//! ([`roots`]), how the peer is judged ([`validation`], [`verifiers`]), and with what tickets sessions are resumed
//! ([`ticket`], [`ticket_keys`]). [`peer`] and [`portable`] are what the application is told of the peer's certificates,
//! [`handshake_info`] what was agreed upon, [`secrets`] the secrets of a connection, [`failure`] why it came to nothing.
//!
//! A credential does not change once it is loaded, but for the keys of tickets. Settings that come of one credential share
//! verifier, certificate and ticket keys, so that sessions can be resumed among them.
//!
//! Credentials without [`CredentialFlags::CLIENT`] are those of a server. A client may be started with them: it shows their
//! certificate to who asks for it, and judges no server unless clients are asked for certificates. The other way does not work.
//!
//! What differs from MsQuic on Linux, whose TLS is OpenSSL: certificates are always indicated in portable form, the name
//! of the server is verified, all ticket keys open tickets, and keys and PKCS #12 are also read that are protected by scrypt
//! or RC2, or authenticated by nothing.

mod ecb;
mod encrypted;
mod failure;
mod handshake_info;
mod identity;
mod load;
mod peer;
mod pem_files;
mod pkcs12;
mod portable;
mod roots;
mod secrets;
mod suites;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod ticket;
mod ticket_keys;
mod validation;
mod verifiers;
mod x509;

pub(crate) use failure::status_of_tls_failure;
pub(crate) use handshake_info::handshake_info;
pub(crate) use peer::PeerCertificate;
pub(crate) use secrets::SecretsWriter;
pub(crate) use ticket::{EarlyId, ServerTicket};

use crate::abi::{CredentialConfig, CredentialFlags, Status, TicketKeyConfig};
use godwit_tls::resumption::PortableVerifier;
use godwit_tls::verified::RememberingVerifier;
use identity::NoCertificate;
use load::{Request, Source};
use roots::Roots;
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{ResolvesClientCert, Resumption};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::sign::SingleCertAndKey;
use rustls::version::TLS13;
use rustls::{ClientConfig, ServerConfig};
use std::sync::Arc;
use ticket_keys::TicketKeys;
use validation::{Of, Validator, status_to_tell};
use verifiers::PeerVerifier;

/// Loaded credentials.
#[derive(Debug)]
pub(crate) struct Credential {
    flags: CredentialFlags,
    provider: Arc<CryptoProvider>,
    /// The certificate, which a server must have.
    identity: Option<Arc<SingleCertAndKey>>,
    /// The same as a client has it, which may have none. Sessions are resumed only with the very same.
    client_identity: Arc<dyn ResolvesClientCert>,
    validator: Arc<Validator>,
    /// What verifies servers.
    servers: Arc<PortableVerifier>,
    /// Keys of tickets (servers).
    tickets: Option<Arc<TicketKeys>>,
}

/// Who the peer is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Peer<'a> {
    /// A server, which is to have this name or address, if there is one.
    Server(Option<&'a str>),
    /// A client.
    Client,
}

/// Tickets that TLS makes for each connection of a server that resumes sessions: so many it can give out.
const TICKETS: usize = 4;

impl Credential {
    /// Loads credentials, within the call: whoever loads them later calls this later.
    ///
    /// # Errors
    /// The status of MsQuic on Linux: [`Status::INVALID_PARAMETER`] if something is missing or cannot be together,
    /// [`Status::NOT_SUPPORTED`] for what only Windows has, and [`Status::TLS_ERROR`] if files, keys, certificates or
    /// passwords do not fit.
    ///
    /// # Safety
    /// The pointers that the type and the flags call for must be null or lead to what they are declared to lead to. They
    /// are not kept.
    pub(crate) unsafe fn load(config: &CredentialConfig) -> Result<Self, Status> {
        // SAFETY: the caller's promise.
        Self::new(unsafe { Request::read(config) }?)
    }

    fn new(request: Request) -> Result<Self, Status> {
        let Request { flags, source, suites, authorities } = request;
        let provider = suites::provider(suites);
        let identity = match source {
            Source::Nothing => None,
            source => Some(identity::load(&source, &provider).ok_or(Status::TLS_ERROR)?),
        };
        let roots = match authorities {
            Some(file) => Roots::with_file(&file).ok_or(Status::TLS_ERROR)?,
            None => Roots::of_the_system(),
        };
        let tickets = match flags.contains(CredentialFlags::CLIENT) {
            true => None,
            false => Some(Arc::new(TicketKeys::new(provider.clone(), scope(flags, roots.added()))?)),
        };
        let validator = Arc::new(Validator::new(roots, provider.clone()));
        let servers = PortableVerifier::new(server_verifier(verifier_of_servers(flags, &validator)));
        let identity = identity.map(|identity| Arc::new(SingleCertAndKey::from(identity)));
        let client_identity: Arc<dyn ResolvesClientCert> = match &identity {
            Some(identity) => identity.clone(),
            None => Arc::new(NoCertificate),
        };
        Ok(Credential {
            flags,
            identity,
            client_identity,
            provider,
            validator,
            servers: Arc::new(servers),
            tickets,
        })
    }

    /// Whether they are a client's.
    pub(crate) fn is_client(&self) -> bool {
        self.has(CredentialFlags::CLIENT)
    }

    /// Whether connections are to have the event of the peer's certificate.
    pub(crate) fn indicates_certificates(&self) -> bool {
        self.has(CredentialFlags::INDICATE_CERTIFICATE_RECEIVED)
    }

    /// A client's TLS settings, which offer these protocols. Sessions are left to the transport; with
    /// [`Credential::server_verifier`] as its verifier it can write tickets down. A server's credentials will do, too.
    ///
    /// # Errors
    /// [`Status::TLS_ERROR`] if the cipher suites do not allow TLS 1.3.
    pub(crate) fn client_tls(&self, alpn: &[Vec<u8>], early_data: bool) -> Result<Arc<ClientConfig>, Status> {
        if self.judges() && judges_servers(self.flags) {
            self.validator.get_ready();
        }
        let mut tls = ClientConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&TLS13])
            .map_err(|_| Status::TLS_ERROR)?
            .dangerous()
            .with_custom_certificate_verifier(self.servers.clone())
            .with_client_cert_resolver(self.client_identity.clone());
        tls.alpn_protocols = alpn.to_vec();
        tls.enable_early_data = early_data;
        tls.resumption = Resumption::disabled();
        Ok(Arc::new(tls))
    }

    /// What verifies servers, in the form with which tickets can be written down and read back.
    pub(crate) fn server_verifier(&self) -> &Arc<PortableVerifier> {
        &self.servers
    }

    /// A server's TLS settings, which choose one of these protocols, the preferred first. If it `resumes` sessions, it makes
    /// tickets for them; where sessions are kept is said for each connection.
    ///
    /// # Errors
    /// [`Status::INVALID_PARAMETER`] if these are a client's credentials, [`Status::TLS_ERROR`] if the cipher suites do not
    /// allow TLS 1.3.
    pub(crate) fn server_tls(&self, alpn: &[Vec<u8>], resumes: bool) -> Result<Arc<ServerConfig>, Status> {
        let Some(identity) = self.identity.as_ref().filter(|_| self.tickets.is_some()) else {
            return Err(Status::INVALID_PARAMETER);
        };
        let builder = ServerConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&TLS13])
            .map_err(|_| Status::TLS_ERROR)?;
        let builder = if self.has(CredentialFlags::REQUIRE_CLIENT_AUTHENTICATION) {
            if self.judges() {
                self.validator.get_ready();
            }
            builder.with_client_cert_verifier(Arc::new(peer_verifier(self.flags, &self.validator)))
        } else {
            builder.with_no_client_auth()
        };
        let mut tls = builder.with_cert_resolver(identity.clone());
        tls.alpn_protocols = alpn.to_vec();
        tls.ignore_client_order = true;
        tls.session_storage = Arc::new(NoServerSessionStorage {});
        tls.send_tls13_tickets = if resumes { TICKETS } else { 0 };
        Ok(Arc::new(tls))
    }

    /// Changes the keys of tickets, at most sixteen; also of settings that were made before.
    ///
    /// # Errors
    /// [`Status::NOT_SUPPORTED`] if these are a client's credentials, [`Status::INVALID_PARAMETER`] if there are no keys.
    pub(crate) fn set_ticket_keys(&self, keys: &[TicketKeyConfig]) -> Result<(), Status> {
        self.tickets.as_ref().ok_or(Status::NOT_SUPPORTED)?.set(keys)
    }

    /// What the application is told of the certificates that the peer has shown, its own first: they may be none, if it is
    /// a client.
    pub(crate) fn peer_certificate(
        &self,
        chain: &[CertificateDer<'_>],
        peer: Peer<'_>,
        now: UnixTime,
    ) -> PeerCertificate {
        PeerCertificate::new(chain, self.deferred_status(chain, peer, now))
    }

    fn deferred_status(&self, chain: &[CertificateDer<'_>], peer: Peer<'_>, now: UnixTime) -> Status {
        let defers = self.has(CredentialFlags::DEFER_CERTIFICATE_VALIDATION);
        let requires = self.has(CredentialFlags::REQUIRE_CLIENT_AUTHENTICATION);
        if self.has(CredentialFlags::NO_CERTIFICATE_VALIDATION) {
            return Status::SUCCESS;
        }
        let Some((own, others)) = chain.split_first() else {
            return if defers || requires { Status::CERT_NO_CERT } else { Status::SUCCESS };
        };
        if !defers {
            return Status::SUCCESS;
        }
        let result = match peer {
            Peer::Server(name) => match name.map(ServerName::try_from).transpose() {
                Ok(name) => self.validator.validate(own, others, Of::Server(name.as_ref()), now),
                // For what is no name no certificate is good.
                Err(_) => return Status::TLS_ERROR,
            },
            Peer::Client => self.validator.validate(own, others, Of::Client, now),
        };
        result.map_or_else(|error| status_to_tell(&error, own), |()| Status::SUCCESS)
    }

    /// Whether certificates are judged here, now or later.
    fn judges(&self) -> bool {
        !self.has(CredentialFlags::NO_CERTIFICATE_VALIDATION)
    }

    fn has(&self, flag: CredentialFlags) -> bool {
        self.flags.contains(flag)
    }
}

/// Whether servers are judged at all: with a server's credentials, only where it asks its peers for certificates.
fn judges_servers(flags: CredentialFlags) -> bool {
    flags.contains(CredentialFlags::CLIENT) || flags.contains(CredentialFlags::REQUIRE_CLIENT_AUTHENTICATION)
}

fn verifier_of_servers(flags: CredentialFlags, validator: &Arc<Validator>) -> PeerVerifier {
    let verifier = peer_verifier(flags, validator);
    PeerVerifier { decides: verifier.decides && judges_servers(flags), ..verifier }
}

fn peer_verifier(flags: CredentialFlags, validator: &Arc<Validator>) -> PeerVerifier {
    let not_now = [CredentialFlags::NO_CERTIFICATE_VALIDATION, CredentialFlags::DEFER_CERTIFICATE_VALIDATION];
    let decides = !not_now.into_iter().any(|flag| flags.contains(flag));
    PeerVerifier { validator: validator.clone(), decides }
}

/// Verifies servers; those that were accepted a moment ago are not judged anew.
fn server_verifier(verifier: PeerVerifier) -> Arc<dyn ServerCertVerifier> {
    let decides = verifier.decides;
    let verifier = Arc::new(verifier);
    if decides { Arc::new(RememberingVerifier::remembering(verifier)) } else { verifier }
}

/// What is asked of clients, in bytes that are the same in every process.
fn scope(flags: CredentialFlags, added: &rustls::RootCertStore) -> Vec<u8> {
    let asked = [
        CredentialFlags::REQUIRE_CLIENT_AUTHENTICATION,
        CredentialFlags::NO_CERTIFICATE_VALIDATION,
        CredentialFlags::DEFER_CERTIFICATE_VALIDATION,
    ];
    let mut scope: Vec<u8> = asked.into_iter().map(|flag| u8::from(flags.contains(flag))).collect();
    for root in &added.roots {
        for part in [&*root.subject, &*root.subject_public_key_info] {
            scope.extend_from_slice(&(part.len() as u64).to_be_bytes());
            scope.extend_from_slice(part);
        }
    }
    scope
}
