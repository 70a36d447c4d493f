//! HTTP/1.1 connections to one server: a few at a time, each for one request after the other.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use godwit_text::instant_now;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::{ExchangeError, is_idempotent};
use crate::body::RequestBody;
use crate::connect::interim::Count;
use crate::connect::tcp::TcpFacts;

/// Connections to one server at a time, as browsers have them.
const MOST: usize = 6;

/// The connections to one server.
pub(crate) struct Pool {
    idle: Mutex<Vec<(Channel, Instant)>>,
    room: Arc<Semaphore>,
    /// How long a connection without requests is kept.
    kept: Duration,
}

/// The right to one connection, and the connection, if there is one already.
pub(crate) struct Turn {
    pool: Arc<Pool>,
    permit: Option<OwnedSemaphorePermit>,
    idle: Option<Channel>,
}

/// A connection.
struct Channel {
    sender: SendRequest<RequestBody>,
    facts: Arc<TcpFacts>,
}

/// One connection for one request.
pub(crate) struct Lease {
    channel: Channel,
    /// It had requests before: the server may close it at any moment.
    used: bool,
    pool: Arc<Pool>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Pool {
    /// Keeps a connection without requests for so long.
    pub(crate) fn new(kept: Duration) -> Arc<Pool> {
        Arc::new(Pool { idle: Mutex::default(), room: Arc::new(Semaphore::new(MOST)), kept })
    }

    /// Waits until one more request may be under way.
    pub(crate) async fn turn(self: &Arc<Pool>) -> Turn {
        let room = Arc::clone(&self.room);
        // The semaphore is never closed.
        let permit = room.acquire_owned().await.ok();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|(channel, since)| !channel.sender.is_closed() && since.elapsed() < self.kept);
        let channel = idle.pop().map(|(channel, _)| channel);
        drop(idle);
        Turn { pool: Arc::clone(self), permit, idle: channel }
    }

    /// Whether there is no connection, and nobody is about to make one.
    pub(crate) fn is_unused(&self) -> bool {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.iter().all(|(channel, _)| channel.sender.is_closed()) && self.room.available_permits() == MOST
    }

    fn give_back(&self, channel: Channel) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push((channel, instant_now()));
    }
}

impl Turn {
    /// Takes the idle connection.
    pub(crate) fn reuse(self) -> Result<Lease, Turn> {
        match self.idle {
            Some(channel) => Ok(Lease { channel, used: true, pool: self.pool, permit: self.permit }),
            None => Err(self),
        }
    }

    /// Goes on with a connection that was made for it.
    pub(crate) fn with(self, sender: SendRequest<RequestBody>, facts: Arc<TcpFacts>) -> Lease {
        Lease { channel: Channel { sender, facts }, used: false, pool: self.pool, permit: self.permit }
    }
}

impl Lease {
    pub(super) fn facts(&self) -> &Arc<TcpFacts> {
        &self.channel.facts
    }

    pub(super) async fn send(
        mut self,
        mut request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, ExchangeError> {
        let idempotent = is_idempotent(request.method());
        let count = Count::of(&mut request);
        if let Err(error) = self.channel.sender.ready().await {
            return Err(ExchangeError::tcp(error, true));
        }
        let sent = tokio::select! {
            biased;
            sent = self.channel.sender.try_send_request(request) => sent,
            () = count.exceeded() => return Err(ExchangeError::TooManyInterim),
        };
        match sent {
            Ok(response) => {
                tokio::spawn(async move {
                    // Ready when the response has been read to its end.
                    if self.channel.sender.ready().await.is_ok() {
                        self.pool.give_back(self.channel);
                    }
                    drop(self.permit);
                });
                Ok(response)
            }
            Err(mut error) => {
                let unsent = error.take_message().is_some();
                let error = error.into_error();
                // The server closed an idle connection at the moment of the request.
                let stale = self.used && idempotent && (error.is_incomplete_message() || error.is_closed());
                Err(ExchangeError::tcp(error, unsent || stale))
            }
        }
    }
}
