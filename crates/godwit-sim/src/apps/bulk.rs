//! A stream that never runs out of data, and an end that only counts what arrives: how much does a link carry?
//!
//! The bytes are zeros, not copied on the way out and not looked at on the way in. Whether data arrives unharmed is
//! proved by [`super::Exchange`]s.

use crate::app::{Application, Context};
use bytes::Bytes;
use godwit_base::{SocketId, Time};
use godwit_transport::{
    ClientConfig, ConnKey, ConnectionError, Direction, Event, PathKey, ReadChunk, StreamId,
};
use std::net::SocketAddr;
use std::time::Duration;

/// That of all streams.
const URGENCY: u8 = 3;
/// Written at a time: little enough to stay in the fastest cache while it is sent again and again.
static ZEROS: [u8; 16 << 10] = [0; 16 << 10];

/// Which way the data goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Way {
    /// From client to server.
    #[default]
    Upload,
    /// From server to client.
    Download,
}

/// Small requests on the same connection, one after the other. All streams take turns, or they would wait for the end of the
/// one that has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beside {
    /// Bytes of each.
    pub request: usize,
    /// Bytes of each answer.
    pub response: usize,
    /// From an answer to the next request.
    pub rest: Duration,
}

/// What an end has seen.
#[derive(Debug, Clone, Default)]
pub struct BulkProgress {
    /// The connection, once there is one.
    pub conn: Option<ConnKey>,
    /// When the handshake was complete.
    pub connected_at: Option<Time>,
    /// Bytes received in order.
    pub received: u64,
    /// How the connection ended.
    pub closed: Option<ConnectionError>,
    /// How long requests beside it took; see [`Beside`].
    pub beside: Vec<Duration>,
    /// When the one was made that is not answered yet.
    pub asked_at: Option<Time>,
}

impl BulkProgress {
    fn send(&self, cx: &mut Context<'_>, id: StreamId) {
        let Some(conn) = self.conn else { return };
        cx.endpoint.with(conn, |conn| {
            // Until nothing more is taken.
            while conn.write(id, Bytes::from_static(&ZEROS)).is_ok_and(|taken| taken == ZEROS.len()) {}
        });
    }

    fn receive(&mut self, cx: &mut Context<'_>, id: StreamId) {
        let now = cx.now;
        let Some(conn) = self.conn else { return };
        let received = cx.endpoint.with(conn, |conn| {
            let mut received = 0;
            while let Ok(ReadChunk::Data(data)) = conn.read(now, id, usize::MAX) {
                received += data.len() as u64;
            }
            received
        });
        self.received += received.unwrap_or(0);
    }
}

/// The client: opens one stream as soon as it is connected.
#[derive(Debug)]
pub struct BulkClient {
    config: ClientConfig,
    server: SocketAddr,
    way: Way,
    /// When it connects. Default: at once.
    pub starts_at: Time,
    /// What it asks beside. Default nothing.
    pub beside: Option<Beside>,
    /// What it has seen.
    pub progress: BulkProgress,
}

impl BulkClient {
    /// A client of a [`BulkServer`] that sends the same way.
    pub fn new(config: ClientConfig, server: SocketAddr, way: Way) -> Self {
        BulkClient {
            config,
            server,
            way,
            starts_at: Time::ZERO,
            beside: None,
            progress: BulkProgress::default(),
        }
    }

    fn open(&mut self, cx: &mut Context<'_>) {
        let Some(conn) = self.progress.conn else { return };
        let opened = cx.endpoint.with(conn, |conn| conn.open(Direction::Bidirectional)).flatten();
        let Some(id) = opened else { return };
        take_turns(cx, conn, id, self.beside);
        match self.way {
            Way::Upload => self.progress.send(cx, id),
            Way::Download => {
                // The server learns of a stream by what comes on it.
                cx.endpoint.with(conn, |conn| conn.write(id, Bytes::from_static(b"?")));
            }
        }
    }
}

impl BulkClient {
    /// Makes a request beside the data.
    fn ask(&mut self, cx: &mut Context<'_>) {
        let (Some(conn), Some(beside)) = (self.progress.conn, self.beside) else { return };
        let request = ZEROS.get(..beside.request).unwrap_or(&ZEROS);
        let asked = cx.endpoint.with(conn, |conn| {
            let Some(id) = conn.open(Direction::Bidirectional) else { return false };
            let _ = conn.set_priority(id, URGENCY, true);
            conn.write(id, Bytes::from_static(request)).is_ok() && conn.finish(id).is_ok()
        });
        if asked == Some(true) {
            self.progress.asked_at = Some(cx.now);
        }
    }

    fn on_answer(&mut self, cx: &mut Context<'_>, id: StreamId) {
        let (Some(conn), Some(beside)) = (self.progress.conn, self.beside) else { return };
        if ends(cx, conn, id)
            && let Some(asked) = self.progress.asked_at.take()
        {
            self.progress.beside.push(cx.now - asked);
            cx.wake_at(cx.now + beside.rest);
        }
    }
}

fn take_turns(cx: &mut Context<'_>, conn: ConnKey, id: StreamId, beside: Option<Beside>) {
    if beside.is_some() {
        cx.endpoint.with(conn, |conn| conn.set_priority(id, URGENCY, true));
    }
}

/// Reads what there is; true if the stream has ended.
fn ends(cx: &mut Context<'_>, conn: ConnKey, id: StreamId) -> bool {
    let now = cx.now;
    let ended = cx.endpoint.with(conn, |conn| {
        loop {
            match conn.read(now, id, usize::MAX) {
                Ok(ReadChunk::Data(_)) => {}
                Ok(ReadChunk::Finished) => return true,
                Ok(ReadChunk::Blocked) | Err(_) => return false,
            }
        }
    });
    ended == Some(true)
}

impl Application for BulkClient {
    fn on_start(&mut self, cx: &mut Context<'_>) {
        if cx.now < self.starts_at {
            return cx.wake_at(self.starts_at);
        }
        let path = PathKey { socket: SocketId(0), local: None, remote: self.server };
        self.progress.conn = cx.endpoint.connect(cx.now, &self.config, path, "localhost", None).ok();
    }

    fn on_wake(&mut self, cx: &mut Context<'_>) {
        match self.progress.connected_at {
            Some(_) => self.ask(cx),
            None => self.on_start(cx),
        }
    }

    fn on_event(&mut self, cx: &mut Context<'_>, conn: ConnKey, event: Event) {
        if self.progress.conn != Some(conn) {
            return;
        }
        match event {
            Event::Connected => {
                self.progress.connected_at = Some(cx.now);
                self.open(cx);
                self.ask(cx);
            }
            Event::Writable { id } if self.way == Way::Upload && id.index() == 0 => {
                self.progress.send(cx, id);
            }
            Event::Readable { id } if id.index() > 0 => self.on_answer(cx, id),
            Event::Readable { id } => self.progress.receive(cx, id),
            Event::Closed { reason } => self.progress.closed = Some(reason),
            _ => {}
        }
    }
}

/// The server of one [`BulkClient`].
#[derive(Debug)]
pub struct BulkServer {
    way: Way,
    /// What the client asks beside. Default nothing.
    pub beside: Option<Beside>,
    /// What it has seen.
    pub progress: BulkProgress,
}

impl BulkServer {
    /// A server whose data goes this way.
    pub fn new(way: Way) -> Self {
        BulkServer { way, beside: None, progress: BulkProgress::default() }
    }
}

impl BulkServer {
    fn answer(&self, cx: &mut Context<'_>, conn: ConnKey, id: StreamId) {
        if ends(cx, conn, id) {
            let answer = self.beside.and_then(|beside| ZEROS.get(..beside.response)).unwrap_or(&ZEROS);
            cx.endpoint.with(conn, |conn| {
                let _ = conn.set_priority(id, URGENCY, true);
                // A connection that has ended answers nobody.
                let _ = conn.write(id, Bytes::from_static(answer));
                let _ = conn.finish(id);
            });
        }
    }
}

impl Application for BulkServer {
    fn on_event(&mut self, cx: &mut Context<'_>, conn: ConnKey, event: Event) {
        self.progress.conn.get_or_insert(conn);
        match event {
            Event::Connected => self.progress.connected_at = Some(cx.now),
            Event::Readable { id } if id.index() > 0 => self.answer(cx, conn, id),
            Event::Readable { id } => {
                self.progress.receive(cx, id);
                take_turns(cx, conn, id, self.beside);
                if self.way == Way::Download {
                    self.progress.send(cx, id);
                }
            }
            Event::Writable { id } if self.way == Way::Download && id.index() == 0 => {
                self.progress.send(cx, id)
            }
            Event::Closed { reason } => self.progress.closed = Some(reason),
            _ => {}
        }
    }
}
