//! TLS over TCP with next to nothing on it: sixteen bytes say how many are asked for and how many follow, the latter
//! `u64::MAX` for as many as there are before the end.

use crate::kernel;
use crate::repeat::{Place, repeat};
use crate::tls::{Server, Target};
use anyhow::{Result, bail, ensure};
use peer_perf::{ALPN, CHUNK, Measure, Outcome, Serve, Work, ZEROS, idle, next_chunk};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::spawn_local;
use tokio_rustls::client::TlsStream;

pub async fn serve(options: &Serve) -> Result<()> {
    let tls = Server::new(options, ALPN)?;
    let listener = kernel::listen(options.listen)?;
    loop {
        let (stream, tls) = (kernel::accept(&listener).await?, tls.clone());
        // Whoever has measured enough goes away.
        spawn_local(async move { answer_all(tls.accept(stream).await?).await });
    }
}

async fn answer_all(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> Result<()> {
    let mut buffer = Vec::new();
    loop {
        let mut head = [0; 16];
        stream.read_exact(&mut head).await?;
        buffer.resize(CHUNK, 0);
        let (wanted, follows) = head.split_at(8);
        let (wanted, follows) =
            (u64::from_be_bytes(wanted.try_into()?), u64::from_be_bytes(follows.try_into()?));
        skip(&mut stream, &mut buffer, follows, |_| true).await?;
        send(&mut stream, wanted).await?;
        if follows == u64::MAX {
            // The other end has ended: this is the word that everything is here.
            stream.shutdown().await?;
            return Ok(());
        }
    }
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), mut left: u64) -> Result<()> {
    while left > 0 {
        let chunk = next_chunk(left);
        stream.write_all(chunk).await?;
        left -= chunk.len() as u64;
    }
    Ok(stream.flush().await?)
}

/// Reads so many bytes, or to the end, or until it is enough.
async fn skip(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut [u8],
    mut left: u64,
    mut goes_on: impl FnMut(u64) -> bool,
) -> Result<()> {
    while left > 0 {
        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let len = stream.read(&mut buffer[..most]).await? as u64;
        match (len, left) {
            (0, u64::MAX) => return Ok(()),
            (0, _) => bail!("the other end ended too early"),
            _ => {}
        }
        left -= if left == u64::MAX { 0 } else { len };
        if !goes_on(len) {
            return Ok(());
        }
    }
    Ok(())
}

fn head(wanted: u64, follows: u64) -> Vec<u8> {
    [wanted.to_be_bytes(), follows.to_be_bytes()].concat()
}

pub async fn measure(options: &Measure) -> Result<Outcome> {
    let target = Target::new(options.remote, ALPN)?;
    match options.work {
        Work::Download(time) => download(target.connect().await?, time).await,
        Work::Upload(time) => upload(target.connect().await?, time).await,
        Work::Requests(wanted) => {
            let mut places = Vec::new();
            for _ in 0..wanted.streams {
                let mut message = head(wanted.response, wanted.request as u64);
                message.resize(message.len() + wanted.request, 0);
                let (stream, buffer) = (target.connect().await?, vec![0; CHUNK]);
                places.push(Requests { stream, message, response: wanted.response, buffer });
            }
            Ok(Outcome::requests(repeat(places, wanted.time).await?))
        }
        Work::Handshakes { at_once, time } => {
            let places = (0..at_once).map(|_| Handshakes(target.clone())).collect();
            Ok(Outcome::handshakes(repeat(places, time).await?))
        }
        Work::Idle(wanted) => {
            let mut connections = Vec::with_capacity(wanted);
            for _ in 0..wanted {
                connections.push(target.connect().await?);
            }
            idle::opened(connections.len());
            tokio::task::spawn_blocking(idle::until_released).await?;
            Ok(Outcome::Nothing)
        }
    }
}

async fn download(mut stream: TlsStream<TcpStream>, time: Duration) -> Result<Outcome> {
    let start = Instant::now();
    stream.write_all(&head(u64::MAX, 0)).await?;
    stream.flush().await?;
    let (mut bytes, mut buffer) = (0, vec![0; CHUNK]);
    skip(&mut stream, &mut buffer, u64::MAX, |len| {
        bytes += len;
        start.elapsed() < time
    })
    .await?;
    let took = start.elapsed();
    ensure!(took >= time, "the server ended the download");
    Ok(Outcome::download(bytes, took))
}

async fn upload(mut stream: TlsStream<TcpStream>, time: Duration) -> Result<Outcome> {
    let start = Instant::now();
    stream.write_all(&head(0, u64::MAX)).await?;
    let mut bytes = 0;
    while start.elapsed() < time {
        stream.write_all(&ZEROS).await?;
        bytes += ZEROS.len() as u64;
    }
    stream.shutdown().await?;
    stream.read_to_end(&mut Vec::new()).await?;
    Ok(Outcome::upload(bytes, start.elapsed()))
}

struct Requests {
    stream: TlsStream<TcpStream>,
    message: Vec<u8>,
    response: u64,
    buffer: Vec<u8>,
}

impl Place for Requests {
    async fn once(&mut self) -> Result<()> {
        self.stream.write_all(&self.message).await?;
        self.stream.flush().await?;
        skip(&mut self.stream, &mut self.buffer, self.response, |_| true).await
    }
}

struct Handshakes(Target);

impl Place for Handshakes {
    async fn once(&mut self) -> Result<()> {
        let stream = self.0.connect().await?;
        kernel::reset(stream.get_ref().0);
        Ok(())
    }
}
