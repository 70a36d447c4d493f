//! HTTP/0.9 over QUIC (ALPN `hq-interop`), with which QUIC implementations test each other without HTTP/3:
//! one `GET /path` on each bidirectional stream, answered with the bare file.
//!
//!     hq_interop hq-server --listen ADDRESS:PORT --cert PEM --key PEM --root DIR
//!     hq_interop hq-client --ca PEM URL...
//!
//! The server says `listening ADDRESS:PORT`. The client fetches every URL on one connection and prints
//! `- SIZE SHA256 - PATH` for each. Hosts are addresses or `localhost`, which is 127.0.0.1.

use bytes::Bytes;
use godwit::{ClientConfig, Connection, Endpoint, RecvStream, SendStream, ServerConfig};
use godwit_tls::Sha256;
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Semaphore;

type Anything<T> = Result<T, Box<dyn Error + Send + Sync>>;

const ALPN: &str = "hq-interop";
const CHUNK: usize = 64 << 10;
const LONGEST_REQUEST: usize = 4096;
/// The stream code for a file that does not exist.
const NOT_FOUND: u32 = 404;
/// Requests under way at a time.
const PARALLEL: usize = 100;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Anything<()> {
    let mut arguments = std::env::args().skip(1);
    let role = arguments.next().unwrap_or_default();
    let (mut options, mut urls) = (BTreeMap::new(), Vec::new());
    while let Some(argument) = arguments.next() {
        match argument.strip_prefix("--") {
            Some(name) => drop(options.insert(name.to_owned(), arguments.next().unwrap_or_default())),
            None => urls.push(argument),
        }
    }
    let option = |name: &str| options.get(name).cloned().ok_or(format!("--{name} is wanted"));
    match role.as_str() {
        "hq-server" => {
            let config =
                ServerConfig::from_pem_files(option("cert")?, option("key")?).alpn([ALPN]).build()?;
            serve(config, option("listen")?.parse()?, PathBuf::from(option("root")?).into()).await
        }
        "hq-client" => fetch(ClientConfig::with_roots_file(option("ca")?).alpn([ALPN]).build()?, urls).await,
        _ => Err("usage: hq_interop hq-server|hq-client OPTIONS".into()),
    }
}

async fn serve(config: ServerConfig, address: SocketAddr, root: Arc<Path>) -> Anything<()> {
    let endpoint = Endpoint::server(config, address)?;
    println!("listening {}", endpoint.local_addr()?);
    while let Some(incoming) = endpoint.accept().await {
        let root = root.clone();
        tokio::spawn(async move {
            match incoming.await {
                Ok(connection) => answer_all(connection, root).await,
                Err(error) => eprintln!("handshake: {error}"),
            }
        });
    }
    Ok(())
}

async fn answer_all(connection: Connection, root: Arc<Path>) {
    loop {
        let (send, recv) = match connection.accept_bi().await {
            Ok(streams) => streams,
            Err(error) => return eprintln!("connection: {error}"),
        };
        let root = root.clone();
        tokio::spawn(async move {
            if let Err(error) = answer(send, recv, &root).await {
                eprintln!("request: {error}");
            }
        });
    }
}

async fn answer(mut send: SendStream, mut recv: RecvStream, root: &Path) -> Anything<()> {
    let request = String::from_utf8(recv.read_to_end(LONGEST_REQUEST).await?)?;
    let path = request.trim_end().strip_prefix("GET ").ok_or("not a GET request")?;
    let Some(mut file) = open(root, path) else {
        send.reset(NOT_FOUND);
        return Ok(());
    };
    let mut buffer = vec![0; CHUNK];
    loop {
        let len = file.read(&mut buffer)?;
        if len == 0 {
            return Ok(send.finish()?);
        }
        send.write_chunk(Bytes::copy_from_slice(&buffer[..len])).await?;
    }
}

/// The file that a path means, `index.html` for a folder; none outside of `root`.
fn open(root: &Path, path: &str) -> Option<File> {
    let relative = Path::new(path.trim_start_matches('/'));
    let inside = relative.components().all(|part| matches!(part, Component::Normal(_)));
    let path = root.join(relative);
    let path = if path.is_dir() { path.join("index.html") } else { path };
    inside.then(|| File::open(path).ok()).flatten()
}

async fn fetch(config: ClientConfig, urls: Vec<String>) -> Anything<()> {
    let (server, name, _) = parts(urls.first().ok_or("at least one URL is wanted")?)?;
    let any: IpAddr =
        if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let endpoint = Endpoint::client(SocketAddr::new(any, 0))?;
    let connection = endpoint.connect(&config, server, &name)?.await?;
    let permits = Arc::new(Semaphore::new(PARALLEL));
    let requests: Vec<_> = urls
        .into_iter()
        .map(|url| {
            let (connection, permits) = (connection.clone(), permits.clone());
            tokio::spawn(async move {
                let _permit = permits.acquire_owned().await?;
                request(connection, &parts(&url)?.2).await
            })
        })
        .collect();
    for request in requests {
        println!("{}", request.await??);
    }
    connection.close(0, b"");
    endpoint.wait_idle().await;
    Ok(())
}

async fn request(connection: Connection, path: &str) -> Anything<String> {
    let (mut send, mut recv) = connection.open_bi().await?;
    send.write_all(format!("GET {path}\r\n").as_bytes()).await?;
    send.finish()?;
    let (mut size, mut hash) = (0, Sha256::new());
    while let Some(data) = recv.read_chunk(usize::MAX).await? {
        size += data.len();
        hash.update(&data);
    }
    let hash: String = hash.finish().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("- {size} {hash} - {path}"))
}

/// Address, host and path of `https://HOST:PORT/PATH`.
fn parts(url: &str) -> Anything<(SocketAddr, String, String)> {
    let rest = url.strip_prefix("https://").ok_or("only https:// URLs")?;
    let (authority, path) = rest.split_once('/').ok_or("a URL without a path")?;
    let (host, port) = authority.rsplit_once(':').ok_or("a URL without a port")?;
    let host = host.trim_matches(['[', ']']);
    let address = if host == "localhost" { Ipv4Addr::LOCALHOST.into() } else { host.parse()? };
    Ok((SocketAddr::new(address, port.parse()?), host.to_owned(), format!("/{path}")))
}
