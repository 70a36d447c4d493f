//! s2n-quic as a peer for the interop runner's cases, and to measure against; `peers/README.md` describes its command
//! line.
//!
//! There is no HTTP/3 for it in the registry, with rustls it does not resume sessions, and it has no 0-RTT and no
//! setting for key updates, preferred addresses or version 2.

mod perf;
#[path = "../../rust/src/trust_all.rs"]
mod trust_all;

use anyhow::{Context, Result};
use peer_perf::{Measure, Serve};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{CipherSuite, KeyLogFile, version};
use s2n_quic::client::Connect;
use s2n_quic::connection::Handle;
use s2n_quic::provider::tls::rustls::{Client as ClientTls, Server as ServerTls};
use s2n_quic::provider::{endpoint_limits, limits};
use s2n_quic::stream::BidirectionalStream;
use s2n_quic::{Client, Server};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use trust_all::TrustAll;

const ALPN: &[u8] = b"hq-interop";
const UNSUPPORTED: i32 = 127;
const CASES: [&str; 6] = ["handshake", "transfer", "retry", "multiconnect", "chacha20", "ecn"];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some("perf-server") => perf::serve(&Serve::parse(words)?).await,
        Some("perf-client") => Ok(perf::measure(&Measure::parse(words)?).await?.print()),
        _ => interop().await,
    }
}

async fn interop() -> Result<()> {
    let (mut flags, mut arguments) = (BTreeMap::new(), std::env::args().skip(2));
    while let (Some(name), Some(value)) = (arguments.next(), arguments.next()) {
        flags.insert(name, value);
    }
    let flag = |name: &str, default: &str| flags.get(name).cloned().unwrap_or(default.to_owned());
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let case = variable("TESTCASE");
    if !CASES.contains(&case.as_str()) {
        eprintln!("peer: unsupported test case {case}");
        std::process::exit(UNSUPPORTED);
    }
    if variable("ROLE") == "server" {
        let certs = PathBuf::from(flag("--certs", "/certs"));
        let listen = flag("--listen", "[::]:443").parse()?;
        serve(&case, &certs, PathBuf::from(flag("--www", "/www")), listen).await
    } else {
        let urls = variable("REQUESTS");
        fetch(&case, urls.split_whitespace(), PathBuf::from(flag("--downloads", "/downloads"))).await
    }
}

fn provider(case: &str) -> Arc<CryptoProvider> {
    let mut provider = aws_lc_rs::default_provider();
    if case == "chacha20" {
        provider.cipher_suites.retain(|suite| suite.suite() == CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
    }
    Arc::new(provider)
}

/// Ten seconds, the default, are too short for a handshake where a third of all packets is lost.
fn patient() -> Result<limits::Limits> {
    let limits = limits::Limits::new().with_max_handshake_duration(Duration::from_secs(120))?;
    Ok(limits.with_max_idle_timeout(Duration::from_secs(60))?)
}

async fn serve(case: &str, certs: &Path, root: PathBuf, listen: SocketAddr) -> Result<()> {
    let chain = CertificateDer::pem_file_iter(certs.join("cert.pem"))?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(certs.join("priv.key"))?;
    let mut tls = rustls::ServerConfig::builder_with_provider(provider(case))
        .with_protocol_versions(&[&version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls.key_log = Arc::new(KeyLogFile::new());
    let limit = if case == "retry" { 0 } else { usize::MAX };
    let limits = endpoint_limits::Default::builder().with_inflight_handshake_limit(limit)?.build()?;
    let mut server = Server::builder()
        .with_tls(ServerTls::from(tls))?
        .with_endpoint_limits(limits)?
        .with_limits(patient()?)?
        .with_io(listen)?
        .start()?;
    println!("listening {}", server.local_addr()?);
    let root: Arc<Path> = root.into();
    while let Some(mut connection) = server.accept().await {
        let root = root.clone();
        tokio::spawn(async move {
            while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await {
                let root = root.clone();
                tokio::spawn(async move {
                    if let Err(error) = answer(stream, &root).await {
                        eprintln!("request: {error:#}");
                    }
                });
            }
        });
    }
    Ok(())
}

async fn answer(mut stream: BidirectionalStream, root: &Path) -> Result<()> {
    let mut request = String::new();
    (&mut stream).take(4096).read_to_string(&mut request).await?;
    let path = request.trim_end().strip_prefix("GET /").context("not a request")?;
    let plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    anyhow::ensure!(plain, "not a file");
    let mut file = tokio::fs::File::open(root.join(path)).await?;
    tokio::io::copy(&mut file, &mut stream).await?;
    Ok(stream.close().await?)
}

async fn fetch(case: &str, urls: impl Iterator<Item = &str>, folder: PathBuf) -> Result<()> {
    let mut tls = rustls::ClientConfig::builder_with_provider(provider(case))
        .with_protocol_versions(&[&version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(TrustAll::new()))
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls.key_log = Arc::new(KeyLogFile::new());
    let (mut host, mut paths) = (String::new(), Vec::new());
    for url in urls {
        let rest = url.strip_prefix("https://").context("only https:// URLs")?;
        let (authority, path) = rest.split_once('/').context("a URL without a path")?;
        (host, _) = (authority.to_owned(), paths.push(path.to_owned()));
    }
    let (name, port) = host.rsplit_once(':').context("a URL without a port")?;
    let name = name.trim_matches(['[', ']']);
    let ip: IpAddr = if name == "localhost" { "127.0.0.1" } else { name }.parse()?;
    let local = if ip.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let mut client =
        Client::builder().with_tls(ClientTls::from(tls))?.with_limits(patient()?)?.with_io(local)?.start()?;
    let connect = Connect::new(SocketAddr::new(ip, port.parse()?)).with_server_name(name);
    let groups: Vec<&[String]> = match case {
        "multiconnect" => paths.chunks(1).collect(),
        _ => vec![&paths],
    };
    for group in groups {
        let connection = client.connect(connect.clone()).await?;
        all(connection.handle(), group, &folder).await?;
        connection.close(0_u32.into());
    }
    Ok(client.wait_idle().await?)
}

/// Fetches everything at the same time.
async fn all(connection: Handle, paths: &[String], folder: &Path) -> Result<()> {
    let mut requests = JoinSet::new();
    for path in paths.iter().cloned() {
        let (mut connection, place) = (connection.clone(), folder.join(&path));
        requests.spawn(async move {
            let mut stream = connection.open_bidirectional_stream().await?;
            stream.write_all(format!("GET /{path}\r\n").as_bytes()).await?;
            stream.finish()?;
            let mut file = tokio::fs::File::create(place).await?;
            tokio::io::copy(&mut stream, &mut file).await?;
            anyhow::Ok(file.flush().await?)
        });
    }
    while let Some(ended) = requests.join_next().await {
        ended??;
    }
    Ok(())
}
