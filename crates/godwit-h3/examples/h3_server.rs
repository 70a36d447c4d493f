//! A server on the `h3` crate: serves a folder, or says OK to everything if there is none.
//!
//! `h3_server CERTIFICATE.pem KEY.pem ADDRESS:PORT [FOLDER]`; it ends with the process.

use bytes::{Bytes, BytesMut};
use godwit_h3::godwit::{Endpoint, ServerConfig};
use h3::server::RequestResolver;
use http::{Response, StatusCode};
use std::error::Error;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use tokio::fs::File;
use tokio::io::AsyncReadExt;

type Failure = Box<dyn Error + Send + Sync>;
type Resolver = RequestResolver<godwit_h3::Connection, Bytes>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (chain, key, address, folder) = match arguments.as_slice() {
        [chain, key, address] => (chain, key, address, None),
        [chain, key, address, folder] => (chain, key, address, Some(PathBuf::from(folder))),
        _ => return Err("usage: h3_server CERTIFICATE.pem KEY.pem ADDRESS:PORT [FOLDER]".into()),
    };
    let config = ServerConfig::from_pem_files(chain, key).alpn(["h3"]).build()?;
    let endpoint = Endpoint::server(config, address.parse()?)?;
    println!("listening on {}", endpoint.local_addr()?);
    let folder = Arc::new(folder);
    while let Some(incoming) = endpoint.accept().await {
        let folder = folder.clone();
        tokio::spawn(async move {
            let remote = incoming.remote_address();
            let served = match incoming.await {
                Ok(connection) => serve(connection, folder).await,
                Err(error) => Err(error.into()),
            };
            if let Err(error) = served {
                eprintln!("{remote}: {error}");
            }
        });
    }
    Ok(())
}

async fn serve(
    connection: godwit_h3::godwit::Connection,
    folder: Arc<Option<PathBuf>>,
) -> Result<(), Failure> {
    let mut connection = h3::server::Connection::new(godwit_h3::Connection::new(connection)).await?;
    loop {
        let resolver = match connection.accept().await {
            Ok(Some(resolver)) => resolver,
            Ok(None) => return Ok(()),
            Err(error) if error.is_h3_no_error() => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let folder = folder.clone();
        tokio::spawn(async move {
            if let Err(error) = answer(resolver, folder.as_deref()).await {
                eprintln!("a request: {error}");
            }
        });
    }
}

async fn answer(resolver: Resolver, folder: Option<&Path>) -> Result<(), Failure> {
    let (request, mut stream) = resolver.resolve_request().await?;
    // What is dropped before its end is stopped, which the client may take for an error.
    while stream.recv_data().await?.is_some() {}
    let file = match folder {
        Some(folder) => find(folder, request.uri().path()).await,
        None => None,
    };
    let status = if folder.is_none() || file.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
    stream.send_response(Response::builder().status(status).body(())?).await?;
    if let Some(mut file) = file {
        let mut buffer = BytesMut::with_capacity(64 << 10);
        while file.read_buf(&mut buffer).await? > 0 {
            stream.send_data(buffer.split().freeze()).await?;
            buffer.reserve(64 << 10);
        }
    }
    Ok(stream.finish().await?)
}

/// A file in the folder; nothing leads out of it.
async fn find(folder: &Path, path: &str) -> Option<File> {
    let path = Path::new(path.strip_prefix('/')?);
    let inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    let place = folder.join(path);
    if inside && place.is_file() { File::open(place).await.ok() } else { None }
}
