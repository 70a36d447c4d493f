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
    /// What it has seen.
    pub progress: BulkProgress,
}

impl BulkClient {
    /// A client of a [`BulkServer`] that sends the same way.
    pub fn new(config: ClientConfig, server: SocketAddr, way: Way) -> Self {
        BulkClient { config, server, way, starts_at: Time::ZERO, progress: BulkProgress::default() }
    }

    fn open(&mut self, cx: &mut Context<'_>) {
        let Some(conn) = self.progress.conn else { return };
        let opened = cx.endpoint.with(conn, |conn| conn.open(Direction::Bidirectional)).flatten();
        let Some(id) = opened else { return };
        match self.way {
            Way::Upload => self.progress.send(cx, id),
            Way::Download => {
                // The server learns of a stream by what comes on it.
                cx.endpoint.with(conn, |conn| conn.write(id, Bytes::from_static(b"?")));
            }
        }
    }
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
        self.on_start(cx);
    }

    fn on_event(&mut self, cx: &mut Context<'_>, conn: ConnKey, event: Event) {
        if self.progress.conn != Some(conn) {
            return;
        }
        match event {
            Event::Connected => {
                self.progress.connected_at = Some(cx.now);
                self.open(cx);
            }
            Event::Writable { id } if self.way == Way::Upload => self.progress.send(cx, id),
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
    /// What it has seen.
    pub progress: BulkProgress,
}

impl BulkServer {
    /// A server whose data goes this way.
    pub fn new(way: Way) -> Self {
        BulkServer { way, progress: BulkProgress::default() }
    }
}

impl Application for BulkServer {
    fn on_event(&mut self, cx: &mut Context<'_>, conn: ConnKey, event: Event) {
        self.progress.conn.get_or_insert(conn);
        match event {
            Event::Connected => self.progress.connected_at = Some(cx.now),
            Event::Readable { id } => {
                self.progress.receive(cx, id);
                if self.way == Way::Download {
                    self.progress.send(cx, id);
                }
            }
            Event::Writable { id } if self.way == Way::Download => self.progress.send(cx, id),
            Event::Closed { reason } => self.progress.closed = Some(reason),
            _ => {}
        }
    }
}
