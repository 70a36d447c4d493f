//! HTTP/3 through the crates h3 and h3-quinn.

use crate::fetch::Answer;
use crate::{Fetch, endpoint, files};
use anyhow::Result;
use bytes::{Buf, Bytes, BytesMut};
use h3::server::RequestResolver;
use http::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, RANGE};
use http::{Method, Request, Response, StatusCode};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::AsyncReadExt;
use tokio::sync::Semaphore;

const CHUNK: usize = 64 << 10;

pub async fn serve(options: peer_perf::Serve, root: PathBuf) -> Result<()> {
    serve_on(endpoint::server(&options, "h3")?, root).await
}

/// Serves a folder on an endpoint.
pub async fn serve_on(endpoint: quinn::Endpoint, root: PathBuf) -> Result<()> {
    let root: Arc<Path> = root.into();
    while let Some(incoming) = endpoint.accept().await {
        let root = root.clone();
        tokio::spawn(async move {
            if let Err(error) = serve_connection(incoming, root).await {
                eprintln!("connection: {error:#}");
            }
        });
    }
    Ok(())
}

async fn serve_connection(incoming: quinn::Incoming, root: Arc<Path>) -> Result<()> {
    let connection = h3_quinn::Connection::new(incoming.await?);
    let mut connection = h3::server::Connection::<_, Bytes>::new(connection).await?;
    loop {
        let resolver = match connection.accept().await {
            Ok(Some(resolver)) => resolver,
            Ok(None) => return Ok(()),
            Err(error) if error.is_h3_no_error() => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let root = root.clone();
        tokio::spawn(async move {
            if let Err(error) = answer(resolver, &root).await {
                eprintln!("request: {error:#}");
            }
        });
    }
}

async fn answer(resolver: RequestResolver<h3_quinn::Connection, Bytes>, root: &Path) -> Result<()> {
    let (request, mut stream) = resolver.resolve_request().await?;
    let range = request.headers().get(RANGE).and_then(|value| value.to_str().ok());
    let Some(mut part) = files::open(root, request.uri().path(), range).await? else {
        let body = Bytes::from_static(b"not found\n");
        let response = Response::builder().status(StatusCode::NOT_FOUND).header(CONTENT_LENGTH, body.len());
        stream.send_response(response.body(())?).await?;
        if request.method() != Method::HEAD {
            stream.send_data(body).await?;
        }
        return Ok(stream.finish().await?);
    };
    let mut response = Response::builder().header(CONTENT_LENGTH, part.length).header(ACCEPT_RANGES, "bytes");
    if let Some((first, last, size)) = part.range {
        let range = format!("bytes {first}-{last}/{size}");
        response = response.status(StatusCode::PARTIAL_CONTENT).header(CONTENT_RANGE, range);
    }
    stream.send_response(response.body(())?).await?;
    if request.method() != Method::HEAD {
        let mut left = part.length;
        while left > 0 {
            let mut chunk = BytesMut::with_capacity(CHUNK);
            let read = (&mut part.file).take(left).read_buf(&mut chunk).await?;
            anyhow::ensure!(read > 0, "the file became shorter");
            left -= read as u64;
            stream.send_data(chunk.freeze()).await?;
        }
    }
    Ok(stream.finish().await?)
}

pub async fn fetch(options: Fetch) -> Result<()> {
    let options = Arc::new(options);
    let (endpoint, connection) = endpoint::connect(&options.trust, "h3", &options.urls[0]).await?;
    let (mut driver, sender) = h3::client::new(h3_quinn::Connection::new(connection)).await?;
    let driver = tokio::spawn(async move { std::future::poll_fn(|cx| driver.poll_close(cx)).await });
    let permits = Arc::new(Semaphore::new(options.parallel));
    let mut tasks = Vec::new();
    for url in options.urls.clone() {
        let (options, permits, sender) = (options.clone(), permits.clone(), sender.clone());
        tasks.push(tokio::spawn(async move {
            let _permit = permits.acquire_owned().await?;
            one(&options, url, sender).await
        }));
    }
    for task in tasks {
        println!("{}", task.await??);
    }
    drop(sender);
    let end = driver.await?;
    anyhow::ensure!(end.is_h3_no_error(), "the connection ended with {end}");
    endpoint.wait_idle().await;
    Ok(())
}

type Sender = h3::client::SendRequest<h3_quinn::OpenStreams, Bytes>;

async fn one(options: &Fetch, url: http::Uri, mut sender: Sender) -> Result<String> {
    let mut answer = Answer::new(&url, options.out.as_deref())?;
    let mut request = Request::builder().method(options.method.as_str()).uri(url);
    if let Some(range) = &options.range {
        request = request.header(RANGE, range);
    }
    let mut stream = sender.send_request(request.body(())?).await?;
    stream.finish().await?;
    let response = stream.recv_response().await?;
    answer.status = Some(response.status().as_u16());
    let declared = response.headers().get(CONTENT_LENGTH);
    answer.declared = declared.and_then(|value| value.to_str().ok()).map(str::to_owned);
    while let Some(mut data) = stream.recv_data().await? {
        while data.has_remaining() {
            let length = data.chunk().len();
            answer.add(data.chunk())?;
            data.advance(length);
        }
    }
    Ok(answer.line())
}

/// Fetches everything over one connection, at the same time, into a folder.
pub async fn keep_all(connection: quinn::Connection, urls: &[http::Uri], folder: &Path) -> Result<()> {
    let (mut driver, sender) = h3::client::new(h3_quinn::Connection::new(connection)).await?;
    let driver = tokio::spawn(async move { std::future::poll_fn(|cx| driver.poll_close(cx)).await });
    let mut tasks = tokio::task::JoinSet::new();
    for url in urls.to_owned() {
        let (mut sender, mut answer) = (sender.clone(), Answer::new(&url, Some(folder))?);
        tasks.spawn(async move {
            let mut stream = sender.send_request(Request::get(url).body(())?).await?;
            stream.finish().await?;
            let status = stream.recv_response().await?.status();
            anyhow::ensure!(status.is_success(), "status {status}");
            while let Some(mut data) = stream.recv_data().await? {
                while data.has_remaining() {
                    let length = data.chunk().len();
                    answer.add(data.chunk())?;
                    data.advance(length);
                }
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    drop(sender);
    let end = driver.await?;
    anyhow::ensure!(end.is_h3_no_error(), "the connection ended with {end}");
    Ok(())
}
