//! TLS of both ends, the same over QUIC and over TCP.

use super::breakdown::timed_provider;
use super::options::{Identity, ServerOptions, Tuning};
use super::protocol::ALPN;
use crate::Error;
use godwit::resumption::SessionTickets;
use godwit_text::plain_error as plain;
use godwit_tls::danger::AcceptAnyCertificate;
use godwit_tls::secrets::ServerSecrets;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use rustls::{CipherSuite, KeyLogFile, RootCertStore};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The cryptography, with the cipher suite alone that was chosen, if one was, and with the groups.
fn provider(tuning: Tuning) -> Arc<CryptoProvider> {
    let mut provider = godwit::crypto_provider();
    let chosen = Arc::make_mut(&mut provider);
    if let Some(cipher) = tuning.cipher {
        chosen.cipher_suites.retain(|suite| suite.suite() == cipher.suite());
    }
    tuning.key_exchange.restrict(chosen);
    provider
}

/// A server's settings, with the certificate given or one made up now. Handshakes are full unless `options.tickets`
/// has tickets handed out.
pub(super) fn server(options: &mut ServerOptions) -> Result<rustls::ServerConfig, Error> {
    let (chain, key) = match options.identity.take() {
        Some(identity) => identity,
        None => made_up_certificate()?,
    };
    let unusable = |error: rustls::Error| Error::new(format!("the certificate cannot be used: {error}"));
    let mut tls = rustls::ServerConfig::builder_with_provider(provider(options.tuning))
        .with_protocol_versions(&[&TLS13])
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(unusable)?;
    if !options.tickets {
        tls.send_tls13_tickets = 0;
    }
    tls.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls.key_log = Arc::new(KeyLogFile::new());
    Ok(tls)
}

/// Session tickets whose keys live as long as this process.
pub(super) fn tickets() -> Result<Arc<SessionTickets>, Error> {
    let provider = godwit::crypto_provider();
    let mut bytes = [0; 64];
    let filled = provider.secure_random.fill(&mut bytes);
    filled.map_err(|_| Error::new("the system gives no random numbers"))?;
    Ok(Arc::new(SessionTickets::new(&ServerSecrets::from_bytes(&bytes), &provider)))
}

/// A client's settings, for a protocol. It believes certificates that go back to one in the file, or any.
pub(super) fn client(
    authority: Option<&Path>,
    protocol: &[u8],
    tuning: Tuning,
) -> Result<rustls::ClientConfig, Error> {
    let mut provider = provider(tuning);
    if tuning.breakdown {
        provider = timed_provider(&provider);
    }
    let builder = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_protocol_versions(&[&TLS13]);
    let builder = builder.map_err(|error| Error::new(format!("TLS cannot be used: {error}")))?;
    let builder = match authority {
        Some(file) => builder.with_root_certificates(roots(file)?),
        None => {
            let any = Arc::new(AcceptAnyCertificate::new(provider));
            builder.dangerous().with_custom_certificate_verifier(any)
        }
    };
    let mut tls = builder.with_no_client_auth();
    tls.resumption = rustls::client::Resumption::disabled();
    tls.alpn_protocols = vec![protocol.to_vec()];
    tls.key_log = Arc::new(KeyLogFile::new());
    Ok(tls)
}

/// The authorities in a file.
fn roots(file: &Path) -> Result<RootCertStore, Error> {
    let unusable = |why: &dyn fmt::Display| {
        Error::file("the authority", file, why, "give a file of certificates in PEM")
    };
    let pem = godwit_text::read_file(file).map_err(|error| unusable(&plain(&error)))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| unusable(&error))?;
        roots.add(certificate).map_err(|error| unusable(&error))?;
    }
    if roots.is_empty() {
        return Err(unusable(&"there is no certificate in it"));
    }
    Ok(roots)
}

/// The name of a cipher suite of TLS 1.3 in its standard (RFC 8446 appendix B.4).
pub(super) fn name(suite: CipherSuite) -> String {
    suite.as_str().map_or_else(|| format!("{suite:?}"), |name| name.replace("TLS13_", "TLS_"))
}

/// An ECDSA P-256 certificate that lives as long as this process.
fn made_up_certificate() -> Result<Identity, Error> {
    let failed = |error: rcgen::Error| Error::new(format!("cannot make a certificate: {error}"));
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(failed)?;
    let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let certificate =
        rcgen::CertificateParams::new(names).and_then(|params| params.self_signed(&key)).map_err(failed)?;
    let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(Error::new)?;
    Ok((vec![certificate.der().clone()], key))
}
