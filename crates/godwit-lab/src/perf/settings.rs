//! The transport, TLS and socket settings of both ends.

use super::options::{Identity, ServerOptions, Tuning};
use super::protocol::ALPN;
use crate::Error;
use godwit::{ClientConfig, Endpoint, EndpointBuilder, ServerConfig, SocketConfig, TransportConfig};
use rustls::pki_types::PrivateKeyDer;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Bytes asked for as a socket's buffer, in each direction.
const SOCKET_BUFFER: usize = 4 << 20;

/// Streams the peer may have open at once, in each direction.
const STREAMS: u64 = 10_000;

/// The settings that a server and a client share.
fn transport(tuning: Tuning) -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout = Duration::from_secs(30);
    transport.initial_stream_window = 16 << 20;
    transport.max_stream_window = 16 << 20;
    transport.initial_connection_window = 32 << 20;
    transport.max_connection_window = 32 << 20;
    transport.max_bidi_streams = STREAMS;
    transport.max_uni_streams = STREAMS;
    transport.max_mtu = tuning.mtu;
    transport.keep_alive = tuning.keep_alive;
    transport.congestion = tuning.congestion.into();
    transport
}

/// An endpoint's settings, but for its address.
pub(super) fn endpoint(tuning: Tuning) -> EndpointBuilder {
    let mut socket = SocketConfig::default();
    socket.recv_buffer = SOCKET_BUFFER;
    socket.send_buffer = SOCKET_BUFFER;
    socket.backend = tuning.datapath;
    socket.departure_times = tuning.departure_times;
    Endpoint::builder().socket(socket).spin(tuning.spin)
}

/// A server's settings, with the certificate given or one made up now.
pub(super) fn server(options: ServerOptions) -> Result<ServerConfig, Error> {
    let (chain, key) = match options.identity {
        Some(identity) => identity,
        None => made_up_certificate()?,
    };
    let unusable = |error: rustls::Error| Error::new(format!("the certificate cannot be used: {error}"));
    let mut tls = rustls::ServerConfig::builder_with_provider(godwit::crypto_provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(unusable)?;
    // Full handshakes only: nobody will resume, so there is nothing to hand out.
    tls.send_tls13_tickets = 0;
    tls.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    let config = ServerConfig::from_rustls(tls).alpn([ALPN]).key_log(Arc::new(rustls::KeyLogFile::new()));
    config.transport(transport(options.tuning)).build().map_err(|error| Error::new(error.to_string()))
}

/// A client's settings, for a protocol over QUIC. It believes certificates that go back to one in the file, or any.
pub(super) fn client(
    authority: Option<&Path>,
    protocol: &'static [u8],
    tuning: Tuning,
) -> Result<ClientConfig, Error> {
    let config = match authority {
        Some(file) => ClientConfig::with_roots_file(file),
        None => ClientConfig::danger_accept_any_certificate(),
    };
    let config = config.alpn([protocol]).resumption(false).key_log(Arc::new(rustls::KeyLogFile::new()));
    config.transport(transport(tuning)).build().map_err(|error| Error::new(error.to_string()))
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
