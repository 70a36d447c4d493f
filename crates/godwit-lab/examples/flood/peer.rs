//! Floods of those who went through a handshake, from as many addresses as they like.

use crate::rate::Rate;
use crate::{Task, frames, http};
use godwit::rustls::ClientConfig as TlsConfig;
use godwit::{ClientConfig, Connection, Endpoint, SendStream};
use godwit_sim::tampering;
use godwit_tls::danger::AcceptAnyCertificate;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

const OWN: [&str; 10] = [
    "churn",
    "abandoned-requests",
    "streams",
    "settings",
    "unknown-frames",
    "empty-data",
    "priorities",
    "slow-readers",
    "slow-writers",
    "idle",
];

/// Connections at a time that a flood uses, where it does not say so itself.
const CONNECTIONS: u32 = 8;

type Failure = Box<dyn std::error::Error>;

pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    OWN.into_iter().chain(frames::KINDS.iter().map(|(name, _)| *name))
}

/// How often a flood did what it does; none for a name that is none.
pub(crate) fn run(kind: &str, task: Task) -> Option<Result<u64, String>> {
    let kind = names().find(|name| *name == kind)?;
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Some(Err(error.to_string())),
    };
    let local = tokio::task::LocalSet::new();
    Some(runtime.block_on(local.run_until(flood(kind, task))).map_err(|error| error.to_string()))
}

async fn flood(kind: &'static str, task: Task) -> Result<u64, Failure> {
    let config = config(kind)?;
    if kind == "idle" {
        return idle(task, &config).await;
    }
    let flood = Arc::new(Flood { kind, config, count: AtomicU64::new(0) });
    // Frames are numbered, for one connection at a time.
    let connections = if OWN.contains(&kind) { CONNECTIONS } else { 1 };
    let each = Task { rate: task.rate / connections, ..task };
    let peers: Vec<_> = (0..connections)
        .map(|_| {
            let flood = Arc::clone(&flood);
            tokio::task::spawn_local(async move { flood.again_and_again(each).await })
        })
        .collect();
    for peer in peers {
        peer.await?;
    }
    Ok(flood.count.load(Ordering::Relaxed))
}

/// Connections that do nothing, as many as the rate brings about.
async fn idle(task: Task, config: &ClientConfig) -> Result<u64, Failure> {
    let mut held = Vec::new();
    let mut rate = Rate::new(task);
    let (mut endpoint, mut used) = (source()?, 0);
    while rate.turn().await {
        // As many of one address as a server that has a limit takes.
        if used >= 200 {
            (endpoint, used) = (source()?, 0);
        }
        used += 1;
        let connecting = endpoint.connect(config, task.server, "localhost")?;
        match tokio::time::timeout(Duration::from_secs(2), connecting).await {
            Ok(Ok(connection)) => held.push((endpoint.clone(), connection)),
            _ => used = usize::MAX,
        }
    }
    Ok(held.iter().filter(|(_, connection)| connection.close_reason().is_none()).count() as u64)
}

struct Flood {
    kind: &'static str,
    config: ClientConfig,
    count: AtomicU64,
}

impl Flood {
    fn counted(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Whoever is thrown out comes back from somewhere else.
    async fn again_and_again(&self, task: Task) {
        let mut rate = Rate::new(task);
        while !rate.is_over() {
            if self.once(task, &mut rate).await.is_err() && rate.turn().await {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }

    async fn once(&self, task: Task, rate: &mut Rate) -> Result<(), Failure> {
        frames::restart();
        let endpoint = source()?;
        let connecting = endpoint.connect(&self.config, task.server, "localhost")?;
        let connection = tokio::time::timeout(Duration::from_secs(2), connecting).await??;
        if self.kind == "churn" {
            self.counted();
            rate.turn().await;
            return Ok(());
        }
        let mut control = connection.open_uni().await?;
        control.write_all(&http::control()).await?;
        match self.kind {
            "abandoned-requests" => self.abandoned(&connection, rate, true).await,
            "streams" => self.abandoned(&connection, rate, false).await,
            "settings" => self.repeat(&mut control, rate, |_| http::control().split_off(1)).await,
            "unknown-frames" => {
                self.repeat(&mut control, rate, |first| http::many(http::grease, first)).await
            }
            "priorities" => self.repeat(&mut control, rate, |first| http::many(http::priority, first)).await,
            "empty-data" => {
                let (mut send, _recv) = connection.open_bi().await?;
                send.write_all(&http::request("POST", "/small")).await?;
                self.repeat(&mut send, rate, |first| http::many(http::empty_data, first)).await
            }
            "slow-readers" => self.slow(&connection, rate, &http::request("GET", "/big"), true).await,
            "slow-writers" => self.slow(&connection, rate, &http::request("GET", "/small"), false).await,
            _ => self.lie(&connection, rate).await,
        }
    }

    /// Requests, or streams with nothing on them, that are given up at once (CVE-2023-44487).
    async fn abandoned(&self, connection: &Connection, rate: &mut Rate, said: bool) -> Result<(), Failure> {
        while rate.turn().await {
            let opened = tokio::time::timeout(Duration::from_secs(1), connection.open_bi());
            let (mut send, recv) = opened.await??;
            if said {
                send.write_all(&http::request("GET", "/small")).await?;
            } else {
                send.write_all(b"\x01").await?;
            }
            // Dropped, they are reset and stopped.
            drop((send, recv));
            self.counted();
        }
        Ok(())
    }

    async fn repeat(
        &self,
        send: &mut SendStream,
        rate: &mut Rate,
        more: impl Fn(u64) -> Vec<u8>,
    ) -> Result<(), Failure> {
        let mut first = 0;
        while rate.turn().await {
            tokio::time::timeout(Duration::from_secs(1), send.write_all(&more(first))).await??;
            first += 1000;
            self.counted();
        }
        Ok(())
    }

    /// Requests of which nothing is read, or that come a byte at a time.
    async fn slow(
        &self,
        connection: &Connection,
        rate: &mut Rate,
        request: &[u8],
        whole: bool,
    ) -> Result<(), Failure> {
        let (now, later) = request.split_at(if whole { request.len() } else { 1 });
        let mut streams = Vec::new();
        while let Ok(opened) = tokio::time::timeout(Duration::from_millis(200), connection.open_bi()).await {
            let (mut send, recv) = opened?;
            send.write_all(now).await?;
            if whole {
                send.finish()?;
            }
            streams.push((send, recv));
            self.counted();
        }
        for byte in later {
            if rate.is_over() || connection.close_reason().is_some() {
                break;
            }
            for (send, _) in &mut streams {
                let _ = send.write_all(&[*byte]).await;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        while !rate.is_over() && connection.close_reason().is_none() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    /// Packets whose payload is something else than this library would say.
    async fn lie(&self, connection: &Connection, rate: &mut Rate) -> Result<(), Failure> {
        let (mut send, _recv) = connection.open_bi().await?;
        while rate.turn().await {
            // The peer knows nothing of these bytes and gives no more room for them: then it is time for another
            // connection.
            tokio::time::timeout(Duration::from_millis(200), send.write_all(&[0; 1100])).await??;
            self.counted();
        }
        Ok(())
    }
}

/// One packet in ten is not changed, so that connections live.
static PACKETS: AtomicU8 = AtomicU8::new(0);

/// Settings of a client that takes any certificate, and that lies if the flood is one of frames.
fn config(kind: &str) -> Result<ClientConfig, Failure> {
    let mut provider = godwit::crypto_provider();
    if let Some((_, write)) = frames::KINDS.iter().find(|(name, _)| *name == kind) {
        let change: tampering::Change = Arc::new(|header, payload| {
            let short = header.first().is_some_and(|first| first & 0x80 == 0);
            if short && !PACKETS.fetch_add(1, Ordering::Relaxed).is_multiple_of(10) {
                frames::fill(*write, payload);
            }
        });
        provider = Arc::new(tampering::provider(&provider, &change));
    }
    let mut tls = TlsConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&godwit::rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AcceptAnyCertificate::new(provider)))
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    tls.resumption = godwit::rustls::client::Resumption::disabled();
    Ok(ClientConfig::from_rustls(tls).build()?)
}

/// An endpoint somewhere in 127/8, but not where honest clients are.
fn source() -> Result<Endpoint, Failure> {
    let mut number = [0; 3];
    godwit_tls::fill_random(&mut number).map_err(|_| "no randomness")?;
    let address = Ipv4Addr::new(127, number[0] | 1, number[1], number[2].clamp(1, 254));
    Ok(Endpoint::client((address, 0).into())?)
}
