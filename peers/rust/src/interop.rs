//! The interop runner's contract: the environment says what to do, and 127 is the status for what is not supported.

use crate::endpoint::bind;
use crate::trust_all::TrustAll;
use crate::{files, h3_roles, hq_roles};
use anyhow::{Context, Result, bail};
use clap::Args;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, Connection, Endpoint, EndpointConfig, IdleTimeout, ServerConfig, TokioRuntime,
    TransportConfig, VarInt,
};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::quic::Suite;
use rustls::{CipherSuite, KeyLogFile, version};
use std::fs::File;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

const ALPN: &[u8] = b"hq-interop";
const UNSUPPORTED: i32 = 127;

#[derive(Args)]
pub struct Options {
    /// The folder to serve
    #[arg(long, default_value = "/www")]
    www: PathBuf,
    /// The folder for what is fetched
    #[arg(long, default_value = "/downloads")]
    downloads: PathBuf,
    /// The folder with cert.pem and priv.key
    #[arg(long, default_value = "/certs")]
    certs: PathBuf,
    #[arg(long, default_value = "[::]:443")]
    listen: SocketAddr,
    /// There is one socket for all addresses
    #[arg(long)]
    also_listen: Option<SocketAddr>,
    /// The preferred address to tell clients
    #[arg(long)]
    preferred_v4: Option<SocketAddrV4>,
}

pub async fn run(options: Options) -> Result<()> {
    let testcase = std::env::var("TESTCASE").unwrap_or_default();
    let server = std::env::var("ROLE").is_ok_and(|role| role == "server");
    match testcase.as_str() {
        "handshake" | "transfer" | "retry" | "resumption" | "zerortt" | "multiconnect" | "http3"
        | "keyupdate" | "chacha20" | "ecn" => {}
        "connectionmigration" if server => {}
        _ => {
            eprintln!("peer: unsupported test case {testcase}");
            std::process::exit(UNSUPPORTED);
        }
    }
    if server { serve(&options, &testcase).await } else { fetch(&options, &testcase).await }
}

fn provider(testcase: &str) -> Arc<CryptoProvider> {
    let mut provider = aws_lc_rs::default_provider();
    if testcase == "chacha20" {
        provider.cipher_suites.retain(|suite| suite.suite() == CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
    }
    Arc::new(provider)
}

/// What Initial packets are protected with, whatever is offered for the rest.
fn initial() -> Result<Suite> {
    let suites = aws_lc_rs::default_provider().cipher_suites;
    let suite = suites.iter().find(|suite| suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256);
    suite.and_then(|suite| suite.tls13()?.quic_suite()).context("no suite for Initial packets")
}

fn alpn(testcase: &str) -> Vec<Vec<u8>> {
    vec![if testcase == "http3" { b"h3".to_vec() } else { ALPN.to_vec() }]
}

fn transport(testcase: &str) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    if testcase == "zerortt" {
        // All requests in the first flight, and little after it.
        transport.mtu_discovery_config(None);
        let mut congestion = quinn::congestion::CubicConfig::default();
        congestion.initial_window(1 << 15);
        transport.congestion_controller_factory(Arc::new(congestion));
    }
    transport.max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(60_000))));
    Arc::new(transport)
}

async fn serve(options: &Options, testcase: &str) -> Result<()> {
    let chain: Vec<_> =
        CertificateDer::pem_file_iter(options.certs.join("cert.pem"))?.collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_file(options.certs.join("priv.key"))?;
    let mut tls = rustls::ServerConfig::builder_with_provider(provider(testcase))
        .with_protocol_versions(&[&version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    tls.alpn_protocols = alpn(testcase);
    tls.key_log = Arc::new(KeyLogFile::new());
    if testcase == "zerortt" {
        tls.max_early_data_size = u32::MAX;
    }
    let mut config =
        ServerConfig::with_crypto(Arc::new(QuicServerConfig::with_initial(Arc::new(tls), initial()?)?));
    config.transport_config(transport(testcase));
    config.preferred_address_v4(options.preferred_v4);
    let endpoint = Endpoint::new(
        EndpointConfig::default(),
        Some(config),
        bind(options.listen)?,
        Arc::new(TokioRuntime),
    )?;
    println!("listening {}", endpoint.local_addr()?);
    if options.also_listen.is_some() {
        println!("listening {}", endpoint.local_addr()?);
    }
    if testcase == "http3" {
        return h3_roles::serve_on(endpoint, options.www.clone()).await;
    }
    while let Some(incoming) = endpoint.accept().await {
        if testcase == "retry" && !incoming.remote_address_validated() {
            incoming.retry()?;
            continue;
        }
        let root: Arc<std::path::Path> = options.www.clone().into();
        tokio::spawn(async move {
            let connection = match incoming.accept().map(quinn::Connecting::into_0rtt) {
                Ok(Ok((connection, _))) => connection,
                Ok(Err(connecting)) => match connecting.await {
                    Ok(connection) => connection,
                    Err(error) => return eprintln!("connection: {error}"),
                },
                Err(error) => return eprintln!("connection: {error}"),
            };
            while let Ok((send, receive)) = connection.accept_bi().await {
                let root = root.clone();
                tokio::spawn(async move {
                    if let Err(error) = hq_roles::answer(send, receive, &root).await {
                        eprintln!("request: {error:#}");
                    }
                });
            }
        });
    }
    Ok(())
}

async fn fetch(options: &Options, testcase: &str) -> Result<()> {
    let requests = std::env::var("REQUESTS")?;
    let urls: Vec<http::Uri> = requests.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let mut tls = rustls::ClientConfig::builder_with_provider(provider(testcase))
        .with_protocol_versions(&[&version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(TrustAll::new()))
        .with_no_client_auth();
    tls.alpn_protocols = alpn(testcase);
    tls.key_log = Arc::new(KeyLogFile::new());
    tls.enable_early_data = testcase == "zerortt";
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::with_initial(Arc::new(tls), initial()?)?));
    config.transport_config(transport(testcase));
    let first = urls.first().context("no URL")?;
    let host = first.host().context("a URL without a host")?.trim_matches(['[', ']']).to_owned();
    let ip = if host == "localhost" { Ipv4Addr::LOCALHOST.into() } else { host.parse::<IpAddr>()? };
    let remote = SocketAddr::new(ip, first.port_u16().unwrap_or(443));
    let any: IpAddr = if ip.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let mut endpoint = Endpoint::new(
        EndpointConfig::default(),
        None,
        bind(SocketAddr::new(any, 0))?,
        Arc::new(TokioRuntime),
    )?;
    endpoint.set_default_client_config(config);
    match testcase {
        "multiconnect" => {
            for url in &urls {
                let connection = endpoint.connect(remote, &host)?.await?;
                all(options, connection, std::slice::from_ref(url)).await?;
            }
        }
        "resumption" | "zerortt" => {
            all(options, endpoint.connect(remote, &host)?.await?, &urls[..1]).await?;
            let connecting = endpoint.connect(remote, &host)?;
            let connection = match testcase {
                "zerortt" => match connecting.into_0rtt() {
                    Ok((connection, _)) => connection,
                    Err(_) => bail!("0-RTT is not possible"),
                },
                _ => connecting.await?,
            };
            all(options, connection, &urls[1..]).await?;
        }
        "http3" => {
            let connection = endpoint.connect(remote, &host)?.await?;
            h3_roles::keep_all(connection, &urls, &options.downloads).await?;
        }
        _ => {
            let connection = endpoint.connect(remote, &host)?.await?;
            let keys = connection.clone();
            if testcase == "keyupdate" {
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    keys.force_key_update();
                });
            }
            all(options, connection, &urls).await?;
        }
    }
    let _ = tokio::time::timeout(Duration::from_secs(3), endpoint.wait_idle()).await;
    Ok(())
}

/// Fetches everything at the same time, and closes the connection.
async fn all(options: &Options, connection: Connection, urls: &[http::Uri]) -> Result<()> {
    let mut requests = JoinSet::new();
    for url in urls {
        let (connection, path) = (connection.clone(), url.path().to_owned());
        let mut file = File::create(options.downloads.join(files::name(&path)))?;
        requests.spawn(async move {
            let (mut send, mut receive) = connection.open_bi().await?;
            send.write_all(format!("GET {path}\r\n").as_bytes()).await?;
            send.finish()?;
            while let Some(chunk) = receive.read_chunk(usize::MAX, true).await? {
                file.write_all(&chunk.bytes)?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = requests.join_next().await {
        ended??;
    }
    connection.close(VarInt::from_u32(0), b"");
    Ok(())
}
