//! HTTP/0.9 over QUIC: one `GET /path` per bidirectional stream, answered with the bare file.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use godwit::{Connection, RecvStream, SendStream};

use super::files;

/// The application protocol's name.
pub(super) const ALPN: &[u8] = b"hq-interop";

const CHUNK: usize = 64 << 10;
const LONGEST_REQUEST: usize = 4096;
/// The stream code for a file that is not there.
const NOT_FOUND: u32 = 404;

type Anything<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Answers everything on a connection, until it is over.
pub(super) async fn answer_all(connection: Connection, root: Arc<Path>) {
    while let Ok((send, recv)) = connection.accept_bi().await {
        let root = Arc::clone(&root);
        tokio::spawn(async move {
            if let Err(error) = answer(send, recv, &root).await {
                tracing::debug!(%error, "a request failed");
            }
        });
    }
}

async fn answer(mut send: SendStream, mut recv: RecvStream, root: &Path) -> Anything<()> {
    let request = String::from_utf8(recv.read_to_end(LONGEST_REQUEST).await?)?;
    let path = request.trim_end().strip_prefix("GET ").ok_or("not a GET request")?;
    let Some(mut file) = files::open(root, path) else {
        send.reset(NOT_FOUND);
        return Ok(());
    };
    loop {
        let mut chunk = Vec::with_capacity(CHUNK);
        // Files on a disk do not keep one waiting long.
        if Read::by_ref(&mut file).take(CHUNK as u64).read_to_end(&mut chunk)? == 0 {
            return Ok(send.finish()?);
        }
        send.write_chunk(Bytes::from(chunk)).await?;
    }
}

/// Asks for a file on a stream of its own.
pub(super) async fn ask(send: &mut SendStream, path: &str) -> Anything<()> {
    send.write_all(format!("GET {path}\r\n").as_bytes()).await?;
    Ok(send.finish()?)
}

/// Keeps the answer.
pub(super) async fn keep(recv: &mut RecvStream, file: &mut File) -> Anything<()> {
    while let Some(data) = recv.read_chunk(usize::MAX).await? {
        file.write_all(&data)?;
    }
    Ok(file.flush()?)
}
