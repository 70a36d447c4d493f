//! The answering side.

use super::next_chunk;
use crate::endpoint;
use anyhow::{Context, Result};
use peer_perf::{ALPN, Serve};
use quinn::{Connection, RecvStream, SendStream};

pub async fn run(options: &Serve) -> Result<()> {
    let endpoint = endpoint::server(options, ALPN)?;
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            match incoming.await {
                Ok(connection) => answer_all(connection).await,
                Err(error) => eprintln!("connection: {error}"),
            }
        });
    }
    Ok(())
}

async fn answer_all(connection: Connection) {
    while let Ok((send, receive)) = connection.accept_bi().await {
        // A client that has measured enough stops its streams: an error here is the normal end of a run.
        tokio::spawn(async move { answer(send, receive).await.ok() });
    }
}

async fn answer(mut send: SendStream, mut receive: RecvStream) -> Result<()> {
    let mut head = [0; 8];
    let mut have = 0;
    while let Some(chunk) = receive.read_chunk(usize::MAX, true).await? {
        let taken = chunk.bytes.len().min(head.len() - have);
        head[have..have + taken].copy_from_slice(&chunk.bytes[..taken]);
        have += taken;
    }
    (have == head.len()).then_some(()).context("a stream of less than eight bytes")?;
    let mut left = u64::from_be_bytes(head);
    while left > 0 {
        let chunk = next_chunk(left);
        left -= chunk.len() as u64;
        send.write_chunk(chunk).await?;
    }
    Ok(send.finish()?)
}
