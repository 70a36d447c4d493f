//! The measuring side.

use super::{ALPN, next_chunk};
use crate::{Trust, endpoint};
use anyhow::{Context, Result, bail};
use bytes::{BufMut, Bytes, BytesMut};
use clap::Args;
use hdrhistogram::Histogram;
use quinn::{ClientConfig, Connection, Endpoint, VarInt};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;

#[derive(Args)]
pub struct Options {
    remote: SocketAddr,
    #[command(flatten)]
    trust: Trust,
    /// Receive for so many seconds
    #[arg(long, value_name = "SECONDS")]
    download: Option<f64>,
    /// Send for so many seconds
    #[arg(long, value_name = "SECONDS")]
    upload: Option<f64>,
    /// Requests per second
    #[arg(long)]
    rps: bool,
    /// Handshakes per second
    #[arg(long)]
    hps: bool,
    /// Bytes of a request after its first eight
    #[arg(long, default_value_t = 512)]
    request: usize,
    /// Bytes of a response
    #[arg(long, default_value_t = 8192)]
    response: u64,
    /// Requests, or handshakes, under way at a time
    #[arg(long, default_value_t = 1)]
    streams: usize,
    /// How long --rps and --hps run, seconds
    #[arg(long, default_value_t = 2.0)]
    duration: f64,
    /// One line of JSON in place of text
    #[arg(long)]
    json: bool,
}

pub async fn run(options: Options) -> Result<()> {
    let (endpoint, config) = endpoint::client(&options.trust, ALPN, options.remote)?;
    let tasks = LocalSet::new();
    let mut result = tasks.run_until(measure(&options, &endpoint, config)).await?;
    result["cpu_seconds"] = json!(cpu_seconds());
    if options.json {
        println!("{result}");
    } else {
        println!("{result:#}");
    }
    endpoint.wait_idle().await;
    Ok(())
}

async fn measure(options: &Options, endpoint: &Endpoint, config: ClientConfig) -> Result<Value> {
    if options.hps {
        return handshakes(options, endpoint, config).await;
    }
    let connection = endpoint.connect_with(config, options.remote, "localhost")?.await?;
    let result = match (options.download, options.upload, options.rps) {
        (Some(seconds), None, false) => download(&connection, Duration::from_secs_f64(seconds)).await?,
        (None, Some(seconds), false) => upload(&connection, Duration::from_secs_f64(seconds)).await?,
        (None, None, true) => requests(options, &connection).await?,
        _ => bail!("one of --download, --upload, --rps and --hps is wanted"),
    };
    connection.close(VarInt::from_u32(0), b"");
    Ok(result)
}

async fn download(connection: &Connection, time: Duration) -> Result<Value> {
    let start = Instant::now();
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&u64::MAX.to_be_bytes()).await?;
    send.finish()?;
    let mut bytes = 0;
    while start.elapsed() < time {
        let chunk = receive.read_chunk(usize::MAX, true).await?.context("the server ended the download")?;
        bytes += chunk.bytes.len() as u64;
    }
    let took = start.elapsed();
    receive.stop(VarInt::from_u32(0))?;
    Ok(throughput("download", bytes, took))
}

/// Up to the server's word that it has everything.
async fn upload(connection: &Connection, time: Duration) -> Result<Value> {
    let start = Instant::now();
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&0_u64.to_be_bytes()).await?;
    let mut bytes = 0;
    while start.elapsed() < time {
        let chunk = next_chunk(u64::MAX);
        bytes += chunk.len() as u64;
        send.write_chunk(chunk).await?;
    }
    send.finish()?;
    receive.read_to_end(0).await?;
    Ok(throughput("upload", bytes, start.elapsed()))
}

/// What the tasks of a run share.
struct Run {
    until: Instant,
    done: Cell<u64>,
    latencies: RefCell<Histogram<u64>>,
}

impl Run {
    fn new(options: &Options) -> Result<Rc<Self>> {
        let latencies = Histogram::new_with_bounds(1, 60_000_000_000, 3)?;
        let until = Instant::now() + Duration::from_secs_f64(options.duration);
        Ok(Rc::new(Self { until, done: Cell::new(0), latencies: RefCell::new(latencies) }))
    }

    fn goes_on(&self) -> bool {
        Instant::now() < self.until
    }

    fn record(&self, start: Instant) {
        self.done.set(self.done.get() + 1);
        self.latencies.borrow_mut().saturating_record(start.elapsed().as_nanos() as u64);
    }

    fn result(&self, test: &str, noun: &str, took: Duration) -> Value {
        let latencies = self.latencies.borrow();
        let at = |quantile: f64| latencies.value_at_quantile(quantile) as f64 / 1e3;
        json!({
            "test": test,
            noun: self.done.get(),
            "seconds": took.as_secs_f64(),
            (format!("{noun}_per_second")): self.done.get() as f64 / took.as_secs_f64(),
            "latency_us": {
                "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "p99_9": at(0.999), "p99_99": at(0.9999),
                "max": latencies.max() as f64 / 1e3,
            },
        })
    }
}

async fn requests(options: &Options, connection: &Connection) -> Result<Value> {
    let mut message = BytesMut::with_capacity(8 + options.request);
    message.put_u64(options.response);
    message.put_bytes(0, options.request);
    let message = message.freeze();
    let (start, run) = (Instant::now(), Run::new(options)?);
    let workers: Vec<_> = (0..options.streams)
        .map(|_| {
            let (run, connection, message) = (run.clone(), connection.clone(), message.clone());
            let response = options.response;
            tokio::task::spawn_local(async move {
                while run.goes_on() {
                    let start = Instant::now();
                    request(&connection, message.clone(), response).await?;
                    run.record(start);
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for worker in workers {
        worker.await??;
    }
    Ok(run.result("rps", "requests", start.elapsed()))
}

async fn request(connection: &Connection, message: Bytes, response: u64) -> Result<()> {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_chunk(message).await?;
    send.finish()?;
    let mut bytes = 0;
    while let Some(chunk) = receive.read_chunk(usize::MAX, true).await? {
        bytes += chunk.bytes.len() as u64;
    }
    anyhow::ensure!(bytes == response, "{bytes} bytes came, {response} were asked for");
    Ok(())
}

async fn handshakes(options: &Options, endpoint: &Endpoint, config: ClientConfig) -> Result<Value> {
    let (start, run) = (Instant::now(), Run::new(options)?);
    let workers: Vec<_> = (0..options.streams)
        .map(|_| {
            let (run, endpoint, config, remote) =
                (run.clone(), endpoint.clone(), config.clone(), options.remote);
            tokio::task::spawn_local(async move {
                while run.goes_on() {
                    let start = Instant::now();
                    let connection = endpoint.connect_with(config.clone(), remote, "localhost")?.await?;
                    run.record(start);
                    connection.close(VarInt::from_u32(0), b"");
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for worker in workers {
        worker.await??;
    }
    Ok(run.result("hps", "handshakes", start.elapsed()))
}

fn throughput(test: &str, bytes: u64, took: Duration) -> Value {
    let rate = bytes as f64 * 8.0 / took.as_secs_f64();
    json!({ "test": test, "bytes": bytes, "seconds": took.as_secs_f64(), "bits_per_second": rate })
}

/// What the main thread, which does all the work, has used; none where the system does not tell.
fn cpu_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    text.split_whitespace().next()?.parse::<f64>().ok().map(|nanoseconds| nanoseconds / 1e9)
}
