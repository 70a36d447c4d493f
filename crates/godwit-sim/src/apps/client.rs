//! The client of exchanges.

use super::flow::{Inflow, Outflow};
use super::{Exchange, Header};
use crate::app::{Application, Context};
use crate::pattern::Pattern;
use bytes::Bytes;
use godwit_base::{Rng, SeededRng, SocketId, Time};
use godwit_transport::EarlyDataStatus;
use godwit_transport::{ClientConfig, ConnKey, ConnectionError, Direction, Event, StreamId};
use godwit_transport::{PathKey, PathUpdate};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// An exchange that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// What it was.
    pub exchange: Exchange,
    /// When its stream was opened.
    pub opened: Time,
    /// When its last byte had come, and it was known that those sent had arrived.
    pub ended: Time,
}

#[derive(Debug)]
struct Running {
    exchange: Exchange,
    opened: Time,
    out: Outflow,
    back: Option<Inflow>,
    /// Everything sent has been acknowledged.
    delivered: bool,
}

impl Running {
    /// An answer that came after the last byte proves that all have arrived; else the acknowledgement must.
    fn is_done(&self) -> bool {
        let answered = self.back.as_ref().is_some_and(Inflow::is_done);
        let proved = answered && !self.exchange.at_once;
        proved || self.delivered && (answered || self.back.is_none())
    }
}

/// Connects at the start and works off a list of exchanges, so many at a time.
#[derive(Debug)]
pub struct ExchangeClient {
    config: ClientConfig,
    server: SocketAddr,
    queue: VecDeque<Exchange>,
    concurrency: usize,
    running: BTreeMap<StreamId, Running>,
    seeds: SeededRng,
    /// The connection, once begun.
    pub conn: Option<ConnKey>,
    /// When the handshake was complete.
    pub connected_at: Option<Time>,
    /// When the handshake was confirmed.
    pub confirmed_at: Option<Time>,
    /// How the connection ended.
    pub closed: Option<ConnectionError>,
    /// Exchanges that are over, in the order in which they ended.
    pub completed: Vec<Completion>,
    /// Bytes received and found right.
    pub verified: u64,
    /// The first thing that went wrong.
    pub failure: Option<String>,
    /// Whether the connection is closed after the last exchange. Default true.
    pub close_when_done: bool,
    /// Validated changes of path.
    pub path_changes: u32,
    /// Whether it begins its work in 0-RTT, if it can. Default false.
    pub early: bool,
    /// What became of 0-RTT.
    pub early_status: EarlyDataStatus,
    /// News of paths, with the time.
    pub path_news: Vec<(Time, PathUpdate)>,
}

impl ExchangeClient {
    /// A client that connects to `server` and works off `plan`, `concurrency` exchanges at a time.
    pub fn new(config: ClientConfig, server: SocketAddr, plan: Vec<Exchange>, concurrency: usize) -> Self {
        ExchangeClient {
            config,
            server,
            seeds: SeededRng::new(plan.len() as u64),
            queue: plan.into(),
            concurrency: concurrency.max(1),
            running: BTreeMap::new(),
            conn: None,
            connected_at: None,
            confirmed_at: None,
            closed: None,
            completed: Vec::new(),
            verified: 0,
            failure: None,
            close_when_done: true,
            path_changes: 0,
            early: false,
            early_status: EarlyDataStatus::NotTried,
            path_news: Vec::new(),
        }
    }

    /// True if every exchange is over.
    pub fn is_done(&self) -> bool {
        self.queue.is_empty() && self.running.is_empty()
    }

    /// Bytes received on streams still running.
    pub fn verified_so_far(&self) -> u64 {
        let running = self.running.values().filter_map(|running| running.back.as_ref());
        self.verified + running.map(Inflow::verified).sum::<u64>()
    }

    /// More to do, from now on.
    pub fn add(&mut self, cx: &mut Context<'_>, exchanges: impl IntoIterator<Item = Exchange>) {
        self.queue.extend(exchanges);
        if self.connected_at.is_some() {
            self.open_more(cx);
        }
    }

    /// Closes the connection with this code.
    pub fn close(&mut self, cx: &mut Context<'_>, code: u64) {
        if let Some(conn) = self.conn {
            let now = cx.now;
            cx.endpoint.with(conn, |conn| conn.close(now, code, b""));
        }
    }

    fn open_more(&mut self, cx: &mut Context<'_>) {
        let Some(conn) = self.conn else { return };
        while self.running.len() < self.concurrency {
            let Some(exchange) = self.queue.front().copied() else { break };
            let Some(id) = cx.endpoint.with(conn, |conn| conn.open(exchange.direction)).flatten() else {
                break;
            };
            self.queue.pop_front();
            let Exchange { upload, download, at_once, direction } = exchange;
            let header = Header { upload, download, seed: self.seeds.next_u64(), at_once };
            let out =
                Outflow::new(Bytes::copy_from_slice(&header.encode()), Pattern::new(header.seed), upload);
            let back = (direction == Direction::Bidirectional)
                .then(|| Inflow::new(Pattern::new(!header.seed), download));
            self.running.insert(id, Running { exchange, opened: cx.now, out, back, delivered: false });
            self.pump(cx, id);
        }
    }

    fn pump(&mut self, cx: &mut Context<'_>, id: StreamId) {
        let (Some(conn), Some(running)) = (self.conn, self.running.get_mut(&id)) else { return };
        let now = cx.now;
        let outcome = cx.endpoint.with(conn, |conn| {
            running.out.pump(conn, id)?;
            match &mut running.back {
                Some(back) => back.pump(now, conn, id),
                None => Ok(()),
            }
        });
        match outcome {
            Some(Ok(())) => self.complete(cx, id),
            Some(Err(failure)) => self.fail(cx, failure),
            None => {}
        }
    }

    /// Takes note of the end of an exchange, if it is done.
    fn complete(&mut self, cx: &mut Context<'_>, id: StreamId) {
        if !self.running.get(&id).is_some_and(Running::is_done) {
            return;
        }
        let Some(running) = self.running.remove(&id) else { return };
        self.verified += running.back.map_or(0, |back| back.verified());
        self.completed.push(Completion { exchange: running.exchange, opened: running.opened, ended: cx.now });
        self.open_more(cx);
        if self.is_done() && self.close_when_done {
            self.close(cx, 0);
        }
    }

    fn look_at_early(&mut self, cx: &mut Context<'_>) {
        let conn = self.conn.and_then(|conn| cx.endpoint.connection(conn));
        self.early_status = conn.map_or(EarlyDataStatus::NotTried, |conn| conn.early_data_status());
    }

    fn fail(&mut self, cx: &mut Context<'_>, failure: String) {
        self.failure.get_or_insert(failure);
        self.close(cx, 1);
    }
}

impl Application for ExchangeClient {
    fn on_start(&mut self, cx: &mut Context<'_>) {
        let path = PathKey { socket: SocketId(0), local: None, remote: self.server };
        match cx.endpoint.connect(cx.now, &self.config, path, "localhost", None) {
            Ok(conn) => {
                self.conn = Some(conn);
                self.look_at_early(cx);
                if self.early && self.early_status == EarlyDataStatus::Offered {
                    self.open_more(cx);
                }
            }
            Err(error) => self.failure = Some(format!("connect: {error}")),
        }
    }

    fn on_event(&mut self, cx: &mut Context<'_>, conn: ConnKey, event: Event) {
        if self.conn != Some(conn) {
            return;
        }
        match event {
            Event::Connected => {
                self.connected_at = Some(cx.now);
                self.look_at_early(cx);
                self.open_more(cx);
            }
            Event::Confirmed => self.confirmed_at = Some(cx.now),
            Event::StreamsAvailable { .. } => self.open_more(cx),
            Event::Readable { id } | Event::Writable { id } => self.pump(cx, id),
            Event::Finished { id } => {
                if let Some(running) = self.running.get_mut(&id) {
                    running.delivered = true;
                    self.complete(cx, id);
                }
            }
            Event::Stopped { id, code } => self.fail(cx, format!("{id:?}: stopped with {code:#x}")),
            Event::PathChanged => self.path_changes += 1,
            Event::Path(update) => self.path_news.push((cx.now, update)),
            Event::Closed { reason } => self.closed = Some(reason),
            _ => {}
        }
    }
}
