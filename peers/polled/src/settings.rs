//! The settings of both ends.

use anyhow::Result;
use godwit::{
    ClientConfig, CongestionAlgorithm, EndpointBuilder, ServerConfig, SocketConfig, TransportConfig,
};
use peer_perf::{ALPN, CONNECTION_WINDOW, Cipher, IDLE, MTU, SOCKET_BUFFER, STREAM_WINDOW, STREAMS, Serve};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use rustls::{CipherSuite, NamedGroup};
use std::sync::Arc;

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout = IDLE;
    transport.initial_stream_window = STREAM_WINDOW.into();
    transport.max_stream_window = STREAM_WINDOW.into();
    transport.initial_connection_window = CONNECTION_WINDOW.into();
    transport.max_connection_window = CONNECTION_WINDOW.into();
    transport.max_bidi_streams = STREAMS.into();
    transport.max_mtu = MTU;
    transport.congestion = CongestionAlgorithm::Cubic.into();
    transport
}

/// X25519, and AES-256-GCM alone where that is wanted.
fn provider(cipher: Cipher) -> Arc<CryptoProvider> {
    let mut provider = godwit::crypto_provider();
    let chosen = Arc::make_mut(&mut provider);
    chosen.kx_groups.retain(|group| group.name() == NamedGroup::X25519);
    if cipher == Cipher::Aes256 {
        chosen.cipher_suites.retain(|suite| suite.suite() == CipherSuite::TLS13_AES_256_GCM_SHA384);
    }
    provider
}

pub fn endpoint() -> EndpointBuilder {
    let mut socket = SocketConfig::default();
    socket.recv_buffer = SOCKET_BUFFER;
    socket.send_buffer = SOCKET_BUFFER;
    EndpointBuilder::new().socket(socket)
}

pub fn server(options: &Serve) -> Result<ServerConfig> {
    let chain = CertificateDer::pem_file_iter(&options.cert)?.collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_file(&options.key)?;
    let builder = rustls::ServerConfig::builder_with_provider(provider(options.cipher));
    let builder = builder.with_protocol_versions(&[&TLS13])?.with_no_client_auth();
    let mut tls = builder.with_single_cert(chain, key)?;
    tls.send_tls13_tickets = 0;
    tls.alpn_protocols = vec![ALPN.into()];
    Ok(ServerConfig::from_rustls(tls).transport(transport()).build()?)
}

/// It trusts every certificate, like the programs beside it.
pub fn client() -> Result<ClientConfig> {
    let builder = ClientConfig::danger_accept_any_certificate().alpn([ALPN]).resumption(false);
    Ok(builder.transport(transport()).build()?)
}
