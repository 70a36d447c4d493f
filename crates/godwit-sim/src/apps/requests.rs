//! Small requests over and over: how long does whoever asks wait?
//!
//! A [`RequestClient`] connects, asks, waits for the answer, rests, and begins anew, with what the connection before has
//! left in its session store. A [`RequestServer`] answers every stream that has ended with as many bytes as it is set
//! to. The bytes are zeros and only counted; whether data arrives unharmed is proved by [`super::Exchange`]s.

use super::records::Records;
use crate::app::{Application, Context};
use bytes::Bytes;
use godwit_base::{SocketId, Time};
use godwit_transport::{ClientConfig, ConnKey, Direction, Event, PathKey, ReadChunk, StreamId};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Asked and answered with, at most at a time.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// What is said in a round trip that goes before: so little is answered with as little.
const HELLO: &[u8] = &[0; 40];

/// What a [`RequestClient`] does.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RequestPlan {
    /// When it begins.
    pub start: Duration,
    /// Connections, one after the other.
    pub connections: u32,
    /// Rounds of requests on each.
    pub rounds: u32,
    /// Requests of a round, all at once.
    pub parallel: u32,
    /// Bytes of a request, 64 KiB at most.
    pub request: usize,
    /// Round trips of one small packet each way that go before the requests of a connection, as handshakes of more round
    /// trips than QUIC's have them.
    pub round_trips_before: u32,
    /// Whether an answer counts only when all that were asked for before it have come: as on one stream of bytes in order.
    pub in_order: bool,
    /// Answers of a round are sealed together in records of so many bytes, as TLS does over TCP, and none can be read
    /// before all of its record has come; 0 is none. They are as long as one another.
    pub record: usize,
    /// Whether such records have the answers in turns: as they are sent.
    pub turns: bool,
    /// Whether to ask before the handshake is complete where a ticket permits it.
    pub early: bool,
    /// The rest after each round, so that what is left of it comes to an end.
    pub rest: Duration,
    /// A round that takes longer has failed, and its connection is given up.
    pub limit: Duration,
}

impl Default for RequestPlan {
    fn default() -> Self {
        RequestPlan {
            start: Duration::ZERO,
            connections: 1,
            rounds: 1,
            parallel: 1,
            request: 500,
            round_trips_before: 0,
            in_order: false,
            record: 0,
            turns: false,
            early: false,
            rest: Duration::from_secs(2),
            limit: Duration::from_secs(60),
        }
    }
}

/// A round of requests.
#[derive(Debug, Clone, Default)]
pub struct Round {
    /// The number of its connection, from 0.
    pub connection: u32,
    /// Its number on the connection, from 0.
    pub round: u32,
    /// How long each request took that was answered: in the first round from when the connection was begun.
    pub took: Vec<Duration>,
    /// Those that were not.
    pub failed: u32,
    /// Datagrams that the client sent for it and got, until the end of the rest.
    pub datagrams: u64,
    /// Bytes of answers that came for it.
    pub bytes: u64,
}

/// Where a client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Asking,
    Resting,
}

/// Asks over and over; see [`RequestPlan`].
#[derive(Debug)]
pub struct RequestClient {
    config: ClientConfig,
    server: SocketAddr,
    plan: RequestPlan,
    phase: Phase,
    conn: Option<ConnKey>,
    begun: Time,
    /// Datagrams of the connection when the round began.
    counted: u64,
    asked: Vec<StreamId>,
    /// All that the round has asked for, and how many bytes have come of each.
    came: (Vec<StreamId>, Vec<usize>),
    /// Answers that wait for others.
    held: Vec<StreamId>,
    /// Round trips that are left before the first request, and the stream of the one under way.
    before: (u32, Option<StreamId>),
    current: Round,
    /// The rounds that are over.
    pub rounds: Vec<Round>,
}

impl RequestClient {
    /// A client of a [`RequestServer`] at `server`.
    pub fn new(config: ClientConfig, server: SocketAddr, plan: RequestPlan) -> Self {
        RequestClient {
            config,
            server,
            plan,
            phase: Phase::Idle,
            conn: None,
            begun: Time::ZERO,
            counted: 0,
            asked: Vec::new(),
            came: (Vec::new(), Vec::new()),
            held: Vec::new(),
            before: (0, None),
            current: Round::default(),
            rounds: Vec::new(),
        }
    }

    /// True if it has done all it was to.
    pub fn is_done(&self) -> bool {
        self.phase == Phase::Idle && self.current.connection >= self.plan.connections
    }

    fn connect(&mut self, cx: &mut Context<'_>) {
        let path = PathKey { socket: SocketId(0), local: None, remote: self.server };
        self.conn = cx.endpoint.connect(cx.now, &self.config, path, "localhost", None).ok();
        self.before = (self.plan.round_trips_before, None);
        self.begin_round(cx);
        if self.plan.early {
            self.ask(cx);
        }
    }

    fn begin_round(&mut self, cx: &mut Context<'_>) {
        (self.phase, self.begun) = (Phase::Asking, cx.now);
        self.counted = self.count(cx);
        cx.wake_at(cx.now + self.plan.limit);
    }

    /// Opens the streams of a round, unless it has been done or is not possible yet.
    fn ask(&mut self, cx: &mut Context<'_>) {
        let Some(conn) = self.conn.filter(|_| self.phase == Phase::Asking) else { return };
        if self.before.0 > 0 {
            if self.before.1.is_none() {
                self.before.1 = cx
                    .endpoint
                    .with(conn, |conn| {
                        let id = conn.open(Direction::Bidirectional)?;
                        conn.write(id, Bytes::from_static(HELLO)).ok()?;
                        conn.finish(id).ok()?;
                        Some(id)
                    })
                    .flatten();
            }
            return;
        }
        let sent = self.asked.len() + self.current.took.len();
        let missing = (self.plan.parallel as usize).saturating_sub(sent);
        let request = ZEROS.get(..self.plan.request).unwrap_or(&ZEROS);
        let (asked, came) = (&mut self.asked, &mut self.came);
        cx.endpoint.with(conn, |conn| {
            for _ in 0..missing {
                let Some(id) = conn.open(Direction::Bidirectional) else { return };
                if conn.write(id, Bytes::from_static(request)).is_ok() && conn.finish(id).is_ok() {
                    asked.push(id);
                    came.0.push(id);
                    came.1.push(0);
                }
            }
        });
    }

    fn on_readable(&mut self, cx: &mut Context<'_>, id: StreamId) {
        let Some(conn) = self.conn else { return };
        let (now, mut came) = (cx.now, 0);
        let finished = cx.endpoint.with(conn, |conn| {
            loop {
                match conn.read(now, id, usize::MAX) {
                    Ok(ReadChunk::Data(data)) => came += data.len(),
                    Ok(ReadChunk::Finished) => return true,
                    Ok(ReadChunk::Blocked) | Err(_) => return false,
                }
            }
        });
        if let Some(of) = self.place(id).and_then(|at| self.came.1.get_mut(at)) {
            *of += came;
        }
        if finished == Some(true) {
            if self.before.1 == Some(id) {
                self.before = (self.before.0.saturating_sub(1), None);
                return self.ask(cx);
            }
            self.held.push(id);
        }
        self.take_due(cx);
    }

    /// The number of a request in its round.
    fn place(&self, id: StreamId) -> Option<usize> {
        self.came.0.iter().position(|asked| *asked == id)
    }

    /// Whether an answer that has come whole counts.
    fn is_due(&self, id: StreamId) -> bool {
        let Some(at) = self.place(id) else { return true };
        let RequestPlan { record: size, turns, parallel, .. } = self.plan;
        let each = self.came.1.get(at).copied().unwrap_or(0);
        let records = Records { size, answers: parallel as usize, each, turns };
        (!self.plan.in_order || self.asked.first() == Some(&id)) && records.is_readable(at, &self.came.1)
    }

    /// Takes all that is due: an answer, or as many as waited for what has come.
    fn take_due(&mut self, cx: &mut Context<'_>) {
        if self.phase != Phase::Asking {
            return;
        }
        let now = cx.now;
        while let Some(at) = self.held.iter().position(|id| self.is_due(*id)) {
            let id = self.held.remove(at);
            self.asked.retain(|open| *open != id);
            self.current.took.push(now - self.begun);
        }
        if self.current.took.len() >= self.plan.parallel as usize {
            self.phase = Phase::Resting;
            cx.wake_at(now + self.plan.rest);
        }
    }

    /// The round is over, rested from or given up.
    fn end_round(&mut self, cx: &mut Context<'_>, broken: bool) {
        let (connection, round) = (self.current.connection, self.current.round);
        self.current.failed = self.plan.parallel.saturating_sub(self.current.took.len() as u32);
        self.current.datagrams = self.count(cx) - self.counted;
        self.current.bytes = self.came.1.iter().map(|came| *came as u64).sum();
        self.rounds.push(std::mem::take(&mut self.current));
        self.asked.clear();
        self.came = (Vec::new(), Vec::new());
        self.held.clear();
        if !broken && round + 1 < self.plan.rounds {
            self.current = Round { connection, round: round + 1, ..Round::default() };
            self.begin_round(cx);
            self.ask(cx);
            return;
        }
        self.current = Round { connection: connection + 1, ..Round::default() };
        self.phase = Phase::Idle;
        if let Some(conn) = self.conn.take() {
            cx.endpoint.with(conn, |conn| conn.close(cx.now, 0, b""));
        }
        if connection + 1 < self.plan.connections {
            cx.wake_at(cx.now + self.plan.rest / 2);
        }
    }

    fn count(&self, cx: &Context<'_>) -> u64 {
        let stats = self.conn.and_then(|conn| cx.endpoint.connection(conn)).map(|conn| conn.stats());
        stats.map_or(0, |stats| stats.datagrams_sent + stats.datagrams_received)
    }
}

impl Application for RequestClient {
    fn on_start(&mut self, cx: &mut Context<'_>) {
        cx.wake_at(cx.now + self.plan.start);
    }

    fn on_wake(&mut self, cx: &mut Context<'_>) {
        match self.phase {
            Phase::Idle => self.connect(cx),
            Phase::Asking => self.end_round(cx, true),
            Phase::Resting => self.end_round(cx, false),
        }
    }

    fn on_event(&mut self, cx: &mut Context<'_>, conn: ConnKey, event: Event) {
        if self.conn != Some(conn) {
            return;
        }
        match event {
            Event::Connected | Event::StreamsAvailable { .. } => self.ask(cx),
            Event::Readable { id } => self.on_readable(cx, id),
            Event::Closed { .. } if self.phase != Phase::Idle => self.end_round(cx, true),
            _ => {}
        }
    }
}

/// Answers every stream that has ended.
#[derive(Debug)]
pub struct RequestServer {
    response: usize,
    /// Whether answers take turns, or go one after the other; without, as the transport has it.
    pub take_turns: Option<bool>,
    /// Bytes of requests that have not ended, by stream.
    came: BTreeMap<(ConnKey, StreamId), usize>,
    /// Bytes that are yet to be written, by stream.
    owed: BTreeMap<(ConnKey, StreamId), usize>,
}

impl RequestServer {
    /// A server whose answers have so many bytes.
    pub fn new(response: usize) -> Self {
        RequestServer { response, take_turns: None, came: BTreeMap::new(), owed: BTreeMap::new() }
    }

    fn on_readable(&mut self, cx: &mut Context<'_>, conn: ConnKey, id: StreamId) {
        let now = cx.now;
        let mut came = self.came.remove(&(conn, id)).unwrap_or(0);
        let finished = cx.endpoint.with(conn, |conn| {
            loop {
                match conn.read(now, id, usize::MAX) {
                    Ok(ReadChunk::Data(data)) => came += data.len(),
                    Ok(ReadChunk::Finished) => return true,
                    Ok(ReadChunk::Blocked) | Err(_) => return false,
                }
            }
        });
        if finished == Some(true) {
            if let Some(turns) = self.take_turns {
                cx.endpoint.with(conn, |conn| conn.set_priority(id, 3, turns));
            }
            self.owed.insert((conn, id), if came <= HELLO.len() { HELLO.len() } else { self.response });
            self.write(cx, conn, id);
        } else {
            self.came.insert((conn, id), came);
        }
    }

    fn write(&mut self, cx: &mut Context<'_>, conn: ConnKey, id: StreamId) {
        let Some(owed) = self.owed.get_mut(&(conn, id)) else { return };
        let left = cx.endpoint.with(conn, |conn| {
            while let Some(part) = ZEROS.get(..(*owed).min(ZEROS.len())).filter(|part| !part.is_empty()) {
                let Ok(taken) = conn.write(id, Bytes::from_static(part)) else { return 0 };
                *owed -= taken;
                if taken < part.len() {
                    return *owed;
                }
            }
            // A stream that is over by now needs no end.
            let _ = conn.finish(id);
            0
        });
        if left.unwrap_or(0) == 0 {
            self.owed.remove(&(conn, id));
        }
    }
}

impl Application for RequestServer {
    fn on_event(&mut self, cx: &mut Context<'_>, conn: ConnKey, event: Event) {
        match event {
            Event::StreamOpened { direction } => {
                while let Some(id) = cx.endpoint.with(conn, |conn| conn.accept(direction)).flatten() {
                    self.on_readable(cx, conn, id);
                }
            }
            Event::Readable { id } => self.on_readable(cx, conn, id),
            Event::Writable { id } => self.write(cx, conn, id),
            Event::Closed { .. } => {
                self.came.retain(|(of, _), _| *of != conn);
                self.owed.retain(|(of, _), _| *of != conn);
            }
            _ => {}
        }
    }
}
