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

/// Connections to one server at a time, as browsers have them.
const MOST: usize = 6;
/// How long a connection without requests is kept.
const KEPT: Duration = Duration::from_secs(90);

/// The connections to one server.
pub(crate) struct Pool {
    idle: Mutex<Vec<(SendRequest<RequestBody>, Instant)>>,
    room: Arc<Semaphore>,
}

/// The right to one connection, and the connection, if there is one already.
pub(crate) struct Turn {
    pool: Arc<Pool>,
    permit: Option<OwnedSemaphorePermit>,
    pub(crate) idle: Option<SendRequest<RequestBody>>,
}

/// One connection for one request.
pub(crate) struct Lease {
    sender: SendRequest<RequestBody>,
    /// It had requests before: the server may close it at any moment.
    used: bool,
    pool: Arc<Pool>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Pool {
    pub(crate) fn new() -> Arc<Pool> {
        Arc::new(Pool { idle: Mutex::default(), room: Arc::new(Semaphore::new(MOST)) })
    }

    /// Waits until one more request may be under way.
    pub(crate) async fn turn(self: &Arc<Pool>) -> Turn {
        let room = Arc::clone(&self.room);
        // The semaphore is never closed.
        let permit = room.acquire_owned().await.ok();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let now = instant_now();
        idle.retain(|(sender, since)| !sender.is_closed() && now < *since + KEPT);
        let sender = idle.pop().map(|(sender, _)| sender);
        drop(idle);
        Turn { pool: Arc::clone(self), permit, idle: sender }
    }

    /// Whether there is no connection, and nobody is about to make one.
    pub(crate) fn is_unused(&self) -> bool {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.iter().all(|(sender, _)| sender.is_closed()) && self.room.available_permits() == MOST
    }

    fn give_back(&self, sender: SendRequest<RequestBody>) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push((sender, instant_now()));
    }
}

impl Turn {
    /// Takes the idle connection.
    pub(crate) fn reuse(self) -> Result<Lease, Turn> {
        match self.idle {
            Some(sender) => Ok(Lease { sender, used: true, pool: self.pool, permit: self.permit }),
            None => Err(self),
        }
    }

    /// Goes on with a connection that was made for it.
    pub(crate) fn with(self, sender: SendRequest<RequestBody>) -> Lease {
        Lease { sender, used: false, pool: self.pool, permit: self.permit }
    }
}

impl Lease {
    pub(super) async fn send(
        mut self,
        mut request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, ExchangeError> {
        let idempotent = is_idempotent(request.method());
        let count = Count::of(&mut request);
        if let Err(error) = self.sender.ready().await {
            return Err(ExchangeError::tcp(error, true));
        }
        let sent = tokio::select! {
            biased;
            sent = self.sender.try_send_request(request) => sent,
            () = count.exceeded() => return Err(ExchangeError::TooManyInterim),
        };
        match sent {
            Ok(response) => {
                tokio::spawn(async move {
                    // Ready when the response has been read to its end.
                    if self.sender.ready().await.is_ok() {
                        self.pool.give_back(self.sender);
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
