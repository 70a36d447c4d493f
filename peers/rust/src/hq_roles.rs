//! HTTP/0.9 over QUIC: one `GET /path` per bidirectional stream, answered with the bare file.

use crate::fetch::Answer;
use crate::{Fetch, endpoint, files};
use anyhow::{Result, bail};
use bytes::BytesMut;
use quinn::{Connection, RecvStream, SendStream, VarInt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::AsyncReadExt;
use tokio::sync::Semaphore;

const ALPN: &str = "hq-interop";
const CHUNK: usize = 64 << 10;
const LONGEST_REQUEST: usize = 4096;

pub async fn serve(options: peer_perf::Serve, root: PathBuf) -> Result<()> {
    let endpoint = endpoint::server(&options, ALPN)?;
    let root: Arc<Path> = root.into();
    while let Some(incoming) = endpoint.accept().await {
        let root = root.clone();
        tokio::spawn(async move {
            let connection = match incoming.await {
                Ok(connection) => connection,
                Err(error) => return eprintln!("connection: {error}"),
            };
            while let Ok((send, receive)) = connection.accept_bi().await {
                let root = root.clone();
                tokio::spawn(async move {
                    if let Err(error) = answer(send, receive, &root).await {
                        eprintln!("request: {error:#}");
                    }
                });
            }
        });
    }
    Ok(())
}

pub async fn answer(mut send: SendStream, mut receive: RecvStream, root: &Path) -> Result<()> {
    let request = receive.read_to_end(LONGEST_REQUEST).await?;
    let request = str::from_utf8(&request)?.trim_end();
    let Some(path) = request.strip_prefix("GET ") else { bail!("not a request: {request:?}") };
    let Some(mut part) = files::open(root, path, None).await? else {
        return Ok(send.reset(VarInt::from_u32(404))?);
    };
    loop {
        let mut chunk = BytesMut::with_capacity(CHUNK);
        if part.file.read_buf(&mut chunk).await? == 0 {
            return Ok(send.finish()?);
        }
        send.write_chunk(chunk.freeze()).await?;
    }
}

pub async fn fetch(options: Fetch) -> Result<()> {
    let options = Arc::new(options);
    let (endpoint, connection) = endpoint::connect(&options.trust, ALPN, &options.urls[0]).await?;
    let permits = Arc::new(Semaphore::new(options.parallel));
    let mut tasks = Vec::new();
    for url in options.urls.clone() {
        let (options, permits, connection) = (options.clone(), permits.clone(), connection.clone());
        tasks.push(tokio::spawn(async move {
            let _permit = permits.acquire_owned().await?;
            one(&options, url, connection).await
        }));
    }
    for task in tasks {
        println!("{}", task.await??);
    }
    connection.close(VarInt::from_u32(0), b"");
    endpoint.wait_idle().await;
    Ok(())
}

async fn one(options: &Fetch, url: http::Uri, connection: Connection) -> Result<String> {
    let mut answer = Answer::new(&url, options.out.as_deref())?;
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(format!("GET {}\r\n", url.path()).as_bytes()).await?;
    send.finish()?;
    while let Some(chunk) = receive.read_chunk(usize::MAX, true).await? {
        answer.add(&chunk.bytes)?;
    }
    Ok(answer.line())
}
