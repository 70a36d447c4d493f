//! The "perf" protocol.

use crate::trust_all::TrustAll;
use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use peer_perf::{
    ALPN, CONNECTION_WINDOW, Cipher, IDLE, Measure, Outcome, Requests, SOCKET_BUFFER, STREAM_WINDOW, STREAMS,
    Serve, Timings, Work, idle, next_chunk,
};
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{CipherSuite, version};
use s2n_quic::client::Connect;
use s2n_quic::connection::Handle;
use s2n_quic::provider::tls::rustls::{Client as ClientTls, Server as ServerTls};
use s2n_quic::provider::{congestion_controller, endpoint_limits, io, limits};
use s2n_quic::stream::{BidirectionalStream, ReceiveStream, SendStream};
use s2n_quic::{Client, Connection, Server};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Bytes that a connection takes before they are acknowledged, as Godwit's does.
const SEND_BUFFER: u32 = 8 << 20;
/// Pieces taken in one go at most.
const PIECES: usize = 64;
/// Of a packet, with the headers of IP and UDP.
const PACKET: u16 = 1500;

fn provider(cipher: Cipher) -> Arc<CryptoProvider> {
    let mut provider = aws_lc_rs::default_provider();
    let first = match cipher {
        Cipher::Aes128 => CipherSuite::TLS13_AES_128_GCM_SHA256,
        Cipher::Aes256 => CipherSuite::TLS13_AES_256_GCM_SHA384,
    };
    provider.cipher_suites.sort_by_key(|suite| suite.suite() != first);
    if cipher == Cipher::Aes256 {
        provider.cipher_suites.truncate(1);
    }
    provider.kx_groups = vec![aws_lc_rs::kx_group::X25519];
    Arc::new(provider)
}

fn windows() -> Result<limits::Limits> {
    Ok(limits::Limits::new()
        .with_data_window(CONNECTION_WINDOW.into())?
        .with_bidirectional_local_data_window(STREAM_WINDOW.into())?
        .with_bidirectional_remote_data_window(STREAM_WINDOW.into())?
        .with_max_open_local_bidirectional_streams(STREAMS.into())?
        .with_max_open_remote_bidirectional_streams(STREAMS.into())?
        .with_max_send_buffer_size(SEND_BUFFER)?
        .with_max_idle_timeout(IDLE)?)
}

fn socket(address: SocketAddr) -> Result<io::tokio::Provider> {
    let builder = io::tokio::Builder::default().with_receive_address(address)?;
    let builder = builder.with_send_buffer_size(SOCKET_BUFFER)?.with_recv_buffer_size(SOCKET_BUFFER)?;
    Ok(builder.with_max_mtu(PACKET)?.build()?)
}

pub async fn serve(options: &Serve) -> Result<()> {
    let chain = CertificateDer::pem_file_iter(&options.cert)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(&options.key)?;
    let mut tls = rustls::ServerConfig::builder_with_provider(provider(options.cipher))
        .with_protocol_versions(&[&version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    tls.alpn_protocols = vec![ALPN.into()];
    tls.send_tls13_tickets = 0;
    let all = endpoint_limits::Default::builder().with_inflight_handshake_limit(usize::MAX)?.build()?;
    let mut server = Server::builder()
        .with_tls(ServerTls::from(tls))?
        .with_endpoint_limits(all)?
        .with_limits(windows()?)?
        .with_congestion_controller(congestion_controller::Cubic::default())?
        .with_io(socket(options.listen)?)?
        .start()?;
    println!("listening {}", server.local_addr()?);
    while let Some(mut connection) = server.accept().await {
        tokio::spawn(async move {
            while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await {
                // A client that has measured enough stops its streams: an error here is the normal end of a run.
                tokio::spawn(async move { answer(stream).await.ok() });
            }
        });
    }
    Ok(())
}

async fn answer(stream: BidirectionalStream) -> Result<()> {
    let (mut receive, mut send) = stream.split();
    let (mut head, mut have) = ([0; 8], 0);
    read(&mut receive, |piece| {
        let taken = piece.len().min(head.len() - have);
        head[have..have + taken].copy_from_slice(&piece[..taken]);
        have += taken;
        true
    })
    .await?;
    ensure!(have == head.len(), "a stream of less than eight bytes");
    let mut left = u64::from_be_bytes(head);
    while left > 0 {
        let chunk = next_chunk(left);
        left -= chunk.len() as u64;
        send.send(Bytes::from_static(chunk)).await?;
    }
    Ok(send.finish()?)
}

/// Reads to the end, or until it was enough.
async fn read(stream: &mut ReceiveStream, mut take: impl FnMut(&Bytes) -> bool) -> Result<()> {
    let mut pieces = [const { Bytes::new() }; PIECES];
    loop {
        let (count, open) = stream.receive_vectored(&mut pieces).await?;
        let mut goes_on = true;
        for piece in &mut pieces[..count] {
            goes_on = take(&std::mem::take(piece));
        }
        if !open || !goes_on {
            return Ok(());
        }
    }
}

pub async fn measure(options: &Measure) -> Result<Outcome> {
    let mut tls = rustls::ClientConfig::builder_with_provider(provider(Cipher::Aes128))
        .with_protocol_versions(&[&version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(TrustAll::new()))
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.into()];
    tls.resumption = Resumption::disabled();
    let client = Client::builder()
        .with_tls(ClientTls::from(tls))?
        .with_limits(windows()?)?
        .with_congestion_controller(congestion_controller::Cubic::default())?
        .with_io(socket(([127, 0, 0, 1], 0).into())?)?
        .start()?;
    let target = Target { client, connect: Connect::new(options.remote).with_server_name("localhost") };
    match options.work {
        Work::Handshakes { at_once, time } => return handshakes(target, at_once, time).await,
        Work::Idle(connections) => return stay(&target, connections).await,
        _ => {}
    }
    let connection = target.connect().await?;
    let outcome = match options.work {
        Work::Download(time) => download(connection.handle(), time).await?,
        Work::Upload(time) => upload(connection.handle(), time).await?,
        Work::Requests(wanted) => requests(connection.handle(), wanted).await?,
        _ => Outcome::Nothing,
    };
    connection.close(0_u32.into());
    // What closes it leaves.
    let _ = tokio::time::timeout(Duration::from_millis(50), target.client.clone().wait_idle()).await;
    Ok(outcome)
}

#[derive(Clone)]
struct Target {
    client: Client,
    connect: Connect,
}

impl Target {
    async fn connect(&self) -> Result<Connection> {
        Ok(self.client.connect(self.connect.clone()).await?)
    }
}

async fn download(mut connection: Handle, time: Duration) -> Result<Outcome> {
    let start = Instant::now();
    let (mut receive, mut send) = connection.open_bidirectional_stream().await?.split();
    send.send(Bytes::from_static(&[0xff; 8])).await?;
    send.finish()?;
    let mut bytes = 0;
    read(&mut receive, |piece| {
        bytes += piece.len() as u64;
        start.elapsed() < time
    })
    .await?;
    let took = start.elapsed();
    ensure!(took >= time, "the server ended the download");
    receive.stop_sending(0_u32.into())?;
    Ok(Outcome::download(bytes, took))
}

async fn upload(mut connection: Handle, time: Duration) -> Result<Outcome> {
    let start = Instant::now();
    let (mut receive, mut send) = connection.open_bidirectional_stream().await?.split();
    send.send(Bytes::from_static(&[0; 8])).await?;
    let mut bytes = 0;
    while start.elapsed() < time {
        let chunk = next_chunk(u64::MAX);
        bytes += chunk.len() as u64;
        send.send(Bytes::from_static(chunk)).await?;
    }
    send.finish()?;
    while receive.receive().await?.is_some() {}
    Ok(Outcome::upload(bytes, start.elapsed()))
}

type Shared = Arc<Mutex<Timings>>;

fn goes_on(timings: &Shared) -> bool {
    timings.lock().unwrap_or_else(PoisonError::into_inner).goes_on()
}

fn record(timings: &Shared, start: Instant) {
    timings.lock().unwrap_or_else(PoisonError::into_inner).record(start);
}

async fn all(mut tasks: JoinSet<Result<()>>, timings: Shared) -> Result<Timings> {
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    let timings = Arc::into_inner(timings).context("a task goes on")?;
    Ok(timings.into_inner().unwrap_or_else(PoisonError::into_inner))
}

async fn requests(connection: Handle, wanted: Requests) -> Result<Outcome> {
    let message = Bytes::from(wanted.message());
    let timings = Shared::new(Mutex::new(Timings::begin(wanted.time)));
    let mut tasks = JoinSet::new();
    for _ in 0..wanted.streams {
        let (mut connection, message, timings) = (connection.clone(), message.clone(), timings.clone());
        tasks.spawn(async move {
            while goes_on(&timings) {
                let start = Instant::now();
                let (receive, send) = connection.open_bidirectional_stream().await?.split();
                request(receive, send, message.clone(), wanted.response).await?;
                record(&timings, start);
            }
            Ok(())
        });
    }
    Ok(Outcome::requests(all(tasks, timings).await?))
}

async fn request(
    mut receive: ReceiveStream,
    mut send: SendStream,
    message: Bytes,
    response: u64,
) -> Result<()> {
    send.send(message).await?;
    send.finish()?;
    let mut bytes = 0;
    read(&mut receive, |piece| {
        bytes += piece.len() as u64;
        true
    })
    .await?;
    ensure!(bytes == response, "{bytes} bytes came, {response} were asked for");
    Ok(())
}

async fn handshakes(target: Target, at_once: usize, time: Duration) -> Result<Outcome> {
    let timings = Shared::new(Mutex::new(Timings::begin(time)));
    let mut tasks = JoinSet::new();
    for _ in 0..at_once {
        let (target, timings) = (target.clone(), timings.clone());
        tasks.spawn(async move {
            while goes_on(&timings) {
                let start = Instant::now();
                let connection = target.connect().await?;
                record(&timings, start);
                connection.close(0_u32.into());
            }
            Ok(())
        });
    }
    Ok(Outcome::handshakes(all(tasks, timings).await?))
}

async fn stay(target: &Target, wanted: usize) -> Result<Outcome> {
    let mut connections = Vec::with_capacity(wanted);
    for _ in 0..wanted {
        connections.push(target.connect().await?);
    }
    idle::opened(connections.len());
    tokio::task::spawn_blocking(idle::until_released).await?;
    for connection in &mut connections {
        connection.ping().context("a connection is gone")?;
    }
    Ok(Outcome::Nothing)
}
