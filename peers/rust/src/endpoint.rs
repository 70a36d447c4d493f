//! quinn endpoints as all the roles use them.

use crate::Trust;
use crate::trust_all::TrustAll;
use anyhow::{Context, Result, bail};
use peer_perf::{CONNECTION_WINDOW, Cipher, IDLE, SOCKET_BUFFER, STREAM_WINDOW, STREAMS, Serve};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, Connection, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig, VarInt,
};
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs::cipher_suite;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::quic::Suite;
use rustls::{CipherSuite, RootCertStore, version};
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

/// A server's endpoint. Says on the standard output where it listens.
pub fn server(options: &Serve, alpn: &str) -> Result<Endpoint> {
    let chain: Vec<_> = CertificateDer::pem_file_iter(&options.cert)?.collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_file(&options.key)?;
    let mut tls = rustls::ServerConfig::builder_with_provider(provider(options.cipher))
        .with_protocol_versions(&[&version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    tls.alpn_protocols = vec![alpn.into()];
    if alpn == peer_perf::ALPN {
        tls.send_tls13_tickets = 0;
    }
    let mut config =
        ServerConfig::with_crypto(Arc::new(QuicServerConfig::with_initial(tls.into(), initial()?)?));
    config.transport_config(transport());
    let socket = bind(options.listen)?;
    let endpoint = Endpoint::new(EndpointConfig::default(), Some(config), socket, Arc::new(TokioRuntime))?;
    println!("listening {}", endpoint.local_addr()?);
    Ok(endpoint)
}

/// A client's endpoint and how it connects.
pub fn client(trust: &Trust, alpn: &str, remote: SocketAddr) -> Result<(Endpoint, ClientConfig)> {
    let builder = rustls::ClientConfig::builder_with_provider(provider(Cipher::Aes128))
        .with_protocol_versions(&[&version::TLS13])?;
    let mut tls = if trust.insecure {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(TrustAll::new())).with_no_client_auth()
    } else {
        let Some(ca) = &trust.ca else { bail!("--ca FILE or --insecure is wanted") };
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(ca).with_context(|| format!("{}", ca.display()))?)?;
        builder.with_root_certificates(roots).with_no_client_auth()
    };
    tls.alpn_protocols = vec![alpn.into()];
    tls.resumption = Resumption::disabled();
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(transport());
    let local: IpAddr =
        if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = bind(SocketAddr::new(local, 0))?;
    let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, Arc::new(TokioRuntime))?;
    Ok((endpoint, config))
}

/// One connection to the host and port of a URL.
pub async fn connect(trust: &Trust, alpn: &str, url: &http::Uri) -> Result<(Endpoint, Connection)> {
    let (remote, name) = address(url)?;
    let (endpoint, config) = client(trust, alpn, remote)?;
    let connection = endpoint.connect_with(config, remote, &name)?.await?;
    Ok((endpoint, connection))
}

/// Only addresses and `localhost`, which is 127.0.0.1: the peers never leave the loopback.
fn address(url: &http::Uri) -> Result<(SocketAddr, String)> {
    let host = url.host().context("a URL without a host")?.trim_matches(['[', ']']);
    let port = url.port_u16().unwrap_or(443);
    let ip = if host == "localhost" { Ipv4Addr::LOCALHOST.into() } else { host.parse::<IpAddr>()? };
    Ok((SocketAddr::new(ip, port), host.to_owned()))
}

pub fn bind(address: SocketAddr) -> Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_recv_buffer_size(SOCKET_BUFFER)?;
    socket.set_send_buffer_size(SOCKET_BUFFER)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// quinn's defaults but for windows, stream count and idle timeout.
fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport
        .stream_receive_window(STREAM_WINDOW.into())
        .receive_window(CONNECTION_WINDOW.into())
        .send_window(CONNECTION_WINDOW.into())
        .max_concurrent_bidi_streams(VarInt::from_u32(STREAMS))
        .max_idle_timeout(Some(VarInt::from_u32(IDLE.as_millis() as u32).into()));
    Arc::new(transport)
}

/// What protects Initial packets, whatever protects the others.
fn initial() -> Result<Suite> {
    let suite = cipher_suite::TLS13_AES_128_GCM_SHA256.tls13().and_then(|suite| suite.quic_suite());
    suite.context("no cipher for Initial packets")
}

/// AES-128 first, or AES-256 alone, and X25519: what every peer is measured with.
fn provider(cipher: Cipher) -> Arc<CryptoProvider> {
    let mut provider = aws_lc_rs::default_provider();
    match cipher {
        Cipher::Aes128 => {
            let rank = |suite: CipherSuite| suite != CipherSuite::TLS13_AES_128_GCM_SHA256;
            provider.cipher_suites.sort_by_key(|suite| rank(suite.suite()));
        }
        Cipher::Aes256 => {
            provider.cipher_suites.retain(|suite| suite.suite() == CipherSuite::TLS13_AES_256_GCM_SHA384);
        }
    }
    provider.kx_groups = vec![aws_lc_rs::kx_group::X25519, aws_lc_rs::kx_group::SECP256R1];
    Arc::new(provider)
}
