//! The measuring side.

use super::next_chunk;
use crate::{Trust, endpoint};
use anyhow::{Context, Result};
use bytes::Bytes;
use peer_perf::{ALPN, Measure, Outcome, Requests, Timings, Work, idle};
use quinn::{ClientConfig, Connection, Endpoint, VarInt};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::{JoinSet, LocalSet};

pub async fn run(options: &Measure) -> Result<()> {
    let trust = Trust { ca: options.ca.clone(), insecure: options.ca.is_none() };
    let (endpoint, config) = endpoint::client(&trust, ALPN, options.remote)?;
    let target = Rc::new(Target { endpoint, config, remote: options.remote });
    LocalSet::new().run_until(measure(options, target.clone())).await?.print();
    target.endpoint.wait_idle().await;
    Ok(())
}

/// Whom to connect to, and how.
struct Target {
    endpoint: Endpoint,
    config: ClientConfig,
    remote: SocketAddr,
}

impl Target {
    async fn connect(&self) -> Result<Connection> {
        Ok(self.endpoint.connect_with(self.config.clone(), self.remote, "localhost")?.await?)
    }
}

async fn measure(options: &Measure, target: Rc<Target>) -> Result<Outcome> {
    match options.work {
        Work::Handshakes { at_once, time } => return handshakes(target, at_once, time).await,
        Work::Idle(connections) => return stay(&target, connections).await,
        _ => {}
    }
    let connection = target.connect().await?;
    let outcome = match options.work {
        Work::Download(time) => download(&connection, time).await?,
        Work::Upload(time) => upload(&connection, time).await?,
        Work::Requests(wanted) => requests(&connection, wanted).await?,
        _ => Outcome::Nothing,
    };
    connection.close(VarInt::from_u32(0), b"");
    Ok(outcome)
}

async fn download(connection: &Connection, time: Duration) -> Result<Outcome> {
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
    Ok(Outcome::download(bytes, took))
}

/// Up to the server's word that it has everything.
async fn upload(connection: &Connection, time: Duration) -> Result<Outcome> {
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
    Ok(Outcome::upload(bytes, start.elapsed()))
}

type Shared = Rc<RefCell<Timings>>;

async fn all(mut tasks: JoinSet<Result<()>>, timings: Shared) -> Result<Timings> {
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(Rc::into_inner(timings).context("a task goes on")?.into_inner())
}

async fn requests(connection: &Connection, wanted: Requests) -> Result<Outcome> {
    let message = Bytes::from(wanted.message());
    let timings = Shared::new(Timings::begin(wanted.time).into());
    let mut tasks = JoinSet::new();
    for _ in 0..wanted.streams {
        let (timings, connection, message) = (timings.clone(), connection.clone(), message.clone());
        tasks.spawn_local(async move {
            while timings.borrow().goes_on() {
                let start = Instant::now();
                request(&connection, message.clone(), wanted.response).await?;
                timings.borrow_mut().record(start);
            }
            Ok(())
        });
    }
    Ok(Outcome::requests(all(tasks, timings).await?))
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

async fn handshakes(target: Rc<Target>, at_once: usize, time: Duration) -> Result<Outcome> {
    let timings = Shared::new(Timings::begin(time).into());
    let mut tasks = JoinSet::new();
    for _ in 0..at_once {
        let (timings, target) = (timings.clone(), target.clone());
        tasks.spawn_local(async move {
            while timings.borrow().goes_on() {
                let start = Instant::now();
                let connection = target.connect().await?;
                timings.borrow_mut().record(start);
                connection.close(VarInt::from_u32(0), b"");
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
    for connection in &connections {
        anyhow::ensure!(connection.close_reason().is_none(), "a connection is gone");
        connection.close(VarInt::from_u32(0), b"");
    }
    Ok(Outcome::Nothing)
}
