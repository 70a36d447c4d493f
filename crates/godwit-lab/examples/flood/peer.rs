//! Floods of those who went through a handshake, from as many addresses as they like.

use crate::frames::Before;
use crate::rate::Rate;
use crate::{Task, frames, heard, http, sent};
use godwit::congestion::{Acked, CongestionController};
use godwit::rustls::ClientConfig as TlsConfig;
use godwit::rustls::crypto::CryptoProvider;
use godwit::{
    ClientConfig, CongestionControl, Connection, Endpoint, RecvStream, SendStream, Time, TransportConfig,
};
use godwit_sim::tampering;
use godwit_tls::danger::AcceptAnyCertificate;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const OWN: [&str; 12] = [
    "churn",
    "migrations",
    "abandoned-requests",
    "streams",
    "settings",
    "large-settings",
    "unknown-frames",
    "empty-data",
    "priorities",
    "slow-readers",
    "slow-writers",
    "idle",
];

/// Connections at a time that a flood uses, where it does not say so itself.
const CONNECTIONS: u32 = 8;

pub(crate) type Failure = Box<dyn std::error::Error>;

pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    OWN.into_iter().chain(frames::KINDS.iter().map(|kind| kind.name))
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
    let lies = frames::KINDS.iter().find(|lies| lies.name == kind);
    let flood = Arc::new(Flood { kind, lies, config, count: AtomicU64::new(0) });
    // Frames are numbered, for one connection at a time.
    let connections = if lies.is_none() { CONNECTIONS } else { 1 };
    let count = task.count.map(|count| count.div_ceil(connections.into()));
    let each = Task { rate: task.rate.div_ceil(connections), count, ..task };
    let peers: Vec<_> = (0..connections)
        .map(|_| {
            let flood = Arc::clone(&flood);
            tokio::task::spawn_local(async move { flood.again_and_again(each).await })
        })
        .collect();
    for peer in peers {
        peer.await?;
    }
    Ok(if lies.is_some() { frames::changed() } else { flood.count.load(Ordering::Relaxed) })
}

/// Connections that do nothing, as many as the rate and the count bring about; says how many live at the end.
async fn idle(task: Task, config: &ClientConfig) -> Result<u64, Failure> {
    let count = task.count.map(|count| count.div_ceil(CONNECTIONS.into()));
    let each = Task { rate: task.rate.div_ceil(CONNECTIONS), count, ..task };
    let peers: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let config = config.clone();
            tokio::task::spawn_local(
                async move { hold(each, &config).await.map_err(|error| error.to_string()) },
            )
        })
        .collect();
    let mut held = 0;
    for peer in peers {
        held += peer.await??;
    }
    Ok(held)
}

/// A part of them.
async fn hold(task: Task, config: &ClientConfig) -> Result<u64, Failure> {
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
    while !rate.is_over() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    held.iter().for_each(|(_, connection)| sent(connection.stats().datagrams_sent));
    Ok(held.iter().filter(|(_, connection)| connection.close_reason().is_none()).count() as u64)
}

struct Flood {
    kind: &'static str,
    /// What packets say, if that is what the flood is about.
    lies: Option<&'static frames::Kind>,
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
        let done = self.with(&endpoint, &connection, rate).await;
        sent(connection.stats().datagrams_sent);
        if let Some(why) = connection.close_reason() {
            crate::closed(&why);
        }
        done
    }

    async fn with(
        &self,
        endpoint: &Endpoint,
        connection: &Connection,
        rate: &mut Rate,
    ) -> Result<(), Failure> {
        if self.kind == "churn" {
            self.counted();
            rate.turn().await;
            return Ok(());
        }
        let mut control = connection.open_uni().await?;
        if self.kind == "large-settings" {
            let (begun, more) = http::large_settings();
            control.write_all(&begun).await?;
            return self.repeat(&mut control, rate, |_| more.clone()).await;
        }
        control.write_all(&http::control()).await?;
        if let Some(kind) = self.lies {
            return self.lie(kind, connection, rate).await;
        }
        match self.kind {
            "abandoned-requests" => self.abandoned(connection, rate, true).await,
            "streams" => self.abandoned(connection, rate, false).await,
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
            "slow-readers" => self.slow(connection, rate, &http::request("GET", "/big"), true).await,
            "slow-writers" => self.slow(connection, rate, &http::request("GET", "/small"), false).await,
            _ => self.migrations(endpoint, connection, rate).await,
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

    /// A new address each time, all of them to be validated (RFC 9000, section 9.3).
    async fn migrations(
        &self,
        endpoint: &Endpoint,
        connection: &Connection,
        rate: &mut Rate,
    ) -> Result<(), Failure> {
        let (mut send, _recv) = connection.open_bi().await?;
        send.write_all(&http::endless_request()).await?;
        while rate.turn().await {
            endpoint.rebind(address()?.into())?;
            tokio::time::timeout(Duration::from_secs(1), send.write_all(b"\x01")).await??;
            self.counted();
        }
        Ok(())
    }

    /// Packets whose payload is something else than this library would say.
    async fn lie(
        &self,
        kind: &frames::Kind,
        connection: &Connection,
        rate: &mut Rate,
    ) -> Result<(), Failure> {
        let (mut send, mut recv) = connection.open_bi().await?;
        if kind.before != Before::Settings {
            send.write_all(&http::request("GET", "/big")).await?;
            send.finish()?;
            let much = if kind.before == Before::Download { 4 << 20 } else { 1 };
            read(&mut recv, much).await?;
            tokio::task::spawn_local(async move { read(&mut recv, u64::MAX).await.map_err(drop) });
        }
        // Those that frames may name, and behind them those whose bytes are changed on their way.
        let mut streams = open_all(connection).await;
        let mut carriers = streams.split_off(streams.len().min(frames::FREE as usize));
        // What was said honestly so far is to arrive.
        tokio::time::sleep(Duration::from_millis(20)).await;
        frames::lie();
        // Servers that hear a request after all stop it. The others know nothing of these bytes and give no more room for
        // them. Then it is time for another stream, and at last for another connection.
        let mut said = http::endless_request();
        while let Some((send, _)) = carriers.last_mut() {
            if !rate.turn().await {
                break;
            }
            said.resize(1100, 0);
            let written = tokio::time::timeout(Duration::from_millis(20), send.write_all(&said)).await;
            if !matches!(written, Ok(Ok(()))) {
                if let Some(why) = connection.close_reason() {
                    return Err(why.into());
                }
                streams.extend(carriers.pop());
                said = http::endless_request();
            } else {
                said.clear();
            }
        }
        Ok(())
    }
}

/// As many streams as the server permits, up to 98 of each direction; nothing is said on them.
async fn open_all(connection: &Connection) -> Vec<(SendStream, Option<RecvStream>)> {
    let mut streams = Vec::new();
    let patience = Duration::from_millis(5);
    while let Ok(Ok((send, recv))) = tokio::time::timeout(patience, connection.open_bi()).await {
        streams.push((send, Some(recv)));
        if streams.len() == 98 {
            break;
        }
    }
    streams
}

/// Reads and forgets so many bytes, or until the end.
async fn read(recv: &mut RecvStream, mut bytes: u64) -> Result<(), Failure> {
    while bytes > 0 {
        let next = tokio::time::timeout(Duration::from_secs(2), recv.read_chunk(1 << 16)).await;
        let Some(chunk) = next?? else { return Ok(()) };
        bytes = bytes.saturating_sub(chunk.len() as u64);
    }
    Ok(())
}

/// Settings of a client that takes any certificate, and that lies if the flood is one of frames.
fn config(kind: &str) -> Result<ClientConfig, Failure> {
    let mut provider = godwit::crypto_provider();
    let mut transport = TransportConfig::default();
    if kind == "idle" {
        transport.keep_alive = Some(Duration::from_secs(10));
    }
    if let Some(kind) = frames::KINDS.iter().find(|lies| lies.name == kind) {
        if kind.before == Before::Trickle {
            transport.initial_stream_window = frames::LITTLE_ROOM;
            transport.initial_connection_window = frames::LITTLE_ROOM;
        }
        // Who floods waits for nobody's acknowledgements.
        transport.congestion = CongestionControl::custom(|_| NoControl);
        transport.initial_rtt = Duration::from_millis(1);
        let change: tampering::Change =
            Arc::new(move |header, payload| frames::change(kind, header, payload));
        let heard: tampering::Heard = Arc::new(heard::note);
        provider = Arc::new(tampering::listening(&provider, &change, &heard));
    }
    Ok(ClientConfig::from_rustls(any_certificate(provider, b"h3")?).transport(transport).build()?)
}

/// TLS settings of a client that takes any certificate.
pub(crate) fn any_certificate(provider: Arc<CryptoProvider>, alpn: &[u8]) -> Result<TlsConfig, Failure> {
    let mut tls = TlsConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&godwit::rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AcceptAnyCertificate::new(provider)))
        .with_no_client_auth();
    tls.alpn_protocols = vec![alpn.to_vec()];
    tls.resumption = godwit::rustls::client::Resumption::disabled();
    Ok(tls)
}

/// A window that is always open.
#[derive(Debug)]
struct NoControl;

impl CongestionController for NoControl {
    fn on_ack(&mut self, _: &Acked<'_>) {}
    fn on_congestion(&mut self, _: Time) {}
    fn on_persistent_congestion(&mut self) {}
    fn on_mtu_changed(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        1 << 40
    }
}

/// An endpoint somewhere in 127/8.
fn source() -> Result<Endpoint, Failure> {
    Ok(Endpoint::client(address()?.into())?)
}

/// An address in 127/8, but not where honest clients are, and any port.
pub(crate) fn address() -> Result<(Ipv4Addr, u16), Failure> {
    let mut number = [0; 3];
    godwit_tls::fill_random(&mut number).map_err(|_| "no randomness")?;
    Ok((Ipv4Addr::new(127, number[0] | 1, number[1], number[2].clamp(1, 254)), 0))
}
