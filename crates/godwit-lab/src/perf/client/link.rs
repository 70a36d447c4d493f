//! What requests are made on: a QUIC connection with streams, or a TCP connection that stands for one.

use super::quic;
use super::tcp::TcpLink;
use crate::Error;
use crate::perf::pattern::Checker;
use crate::perf::protocol::{NO_ERROR, Request};
use crate::perf::window::{Meter, Window};
use godwit::Connection;
use rustls::CipherSuite;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A connection to the server.
#[derive(Debug)]
pub(super) enum Link {
    Quic(Connection),
    /// One of several connections for each request, in turn.
    Any(Arc<Rotation>),
    Tcp(Box<TcpLink>),
}

/// Connections that take turns.
#[derive(Debug)]
pub(super) struct Rotation {
    connections: Vec<Connection>,
    turn: AtomicUsize,
}

impl Rotation {
    /// So many lanes over these connections.
    pub(super) fn lanes(connections: &[Connection], count: u32) -> Vec<Link> {
        let all = Rotation { connections: connections.to_vec(), turn: AtomicUsize::new(0) };
        let all = Arc::new(all);
        (0..count).map(|_| Link::Any(Arc::clone(&all))).collect()
    }

    fn next(&self) -> Result<&Connection, Error> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let place = turn.checked_rem(self.connections.len());
        place
            .and_then(|place| self.connections.get(place))
            .ok_or_else(|| Error::new("there is no connection"))
    }
}

impl Link {
    /// The connection of QUIC.
    pub(super) fn quic(&self) -> Option<&Connection> {
        match self {
            Link::Quic(connection) => Some(connection),
            Link::Any(_) | Link::Tcp(_) => None,
        }
    }

    /// Handles for so many streams of each connection. A TCP connection is one already.
    pub(super) fn lanes(links: Vec<Link>, streams: u32) -> Vec<Link> {
        let mut lanes = Vec::new();
        for link in links {
            if let Link::Quic(connection) = &link {
                let others = (1..streams).map(|_| Link::Quic(connection.clone()));
                lanes.extend(others);
            }
            lanes.push(link);
        }
        lanes
    }

    pub(super) fn cipher(&self) -> Option<CipherSuite> {
        match self {
            Link::Quic(connection) => connection.cipher_suite(),
            Link::Any(all) => all.connections.first().and_then(Connection::cipher_suite),
            Link::Tcp(link) => link.cipher(),
        }
    }

    pub(super) fn is_resumed(&self) -> bool {
        self.quic().is_some_and(Connection::is_resumed)
    }

    /// Whether it has ended. Nothing may be under way on it.
    pub(super) fn has_ended(&mut self) -> bool {
        match self {
            Link::Quic(connection) => connection.close_reason().is_some(),
            Link::Any(all) => all.connections.iter().all(|connection| connection.close_reason().is_some()),
            Link::Tcp(link) => link.has_ended(),
        }
    }

    /// Ends it. A TCP connection ends when it is dropped.
    pub(super) fn close(self) {
        if let Link::Quic(connection) = self {
            connection.close(NO_ERROR, b"");
        }
    }

    /// One request, and how many bytes came of the `response` that it asks for.
    pub(super) async fn exchange(&mut self, request: &Request, response: u64) -> Result<u64, Error> {
        match self {
            Link::Quic(connection) => quic::exchange(connection, request).await,
            Link::Any(all) => quic::exchange(all.next()?, request).await,
            Link::Tcp(link) => link.exchange(request, response).await,
        }
    }

    /// Receives until it is given up, and checks what comes if that is wanted.
    pub(super) async fn download(&mut self, meter: &Meter, checker: Option<Checker>) -> Result<(), Error> {
        match self {
            Link::Quic(connection) => quic::download(connection, meter, checker).await,
            Link::Any(all) => quic::download(all.next()?, meter, checker).await,
            Link::Tcp(link) => link.download(meter, checker).await,
        }
    }

    /// Sends until the time is over, and waits until the server has read everything.
    pub(super) async fn upload(&mut self, window: &Window) -> Result<(), Error> {
        match self {
            Link::Quic(connection) => quic::upload(connection, window).await,
            Link::Any(all) => quic::upload(all.next()?, window).await,
            Link::Tcp(link) => link.upload(window).await,
        }
    }
}
