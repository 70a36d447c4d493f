//! HTTP/1.1 connections to one server: a few at a time, each for one request after the other.

use std::sync::{Arc, Mutex, PoisonError};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::interim::Count;
use super::{Error, is_idempotent};
use crate::get::upload::Upload;

/// Connections to one server at a time, as browsers have them.
const MOST: usize = 6;

/// The connections to one server.
pub(in crate::get) struct Pool {
    idle: Mutex<Vec<SendRequest<Upload>>>,
    room: Arc<Semaphore>,
}

/// The right to one connection, and the connection, if there is one already.
pub(in crate::get) struct Turn {
    pool: Arc<Pool>,
    permit: OwnedSemaphorePermit,
    pub(in crate::get) idle: Option<SendRequest<Upload>>,
}

/// One connection for one request.
pub(in crate::get) struct Lease {
    sender: SendRequest<Upload>,
    /// It had requests before: the server may close it at any moment.
    used: bool,
    pool: Arc<Pool>,
    permit: OwnedSemaphorePermit,
}

impl Pool {
    pub(in crate::get) fn new() -> Arc<Pool> {
        Arc::new(Pool { idle: Mutex::default(), room: Arc::new(Semaphore::new(MOST)) })
    }

    /// Waits until one more request may be under way.
    pub(in crate::get) async fn turn(self: &Arc<Pool>) -> Turn {
        let room = Arc::clone(&self.room);
        let permit = room.acquire_owned().await;
        let permit = permit.unwrap_or_else(|_| unreachable!("the semaphore is never closed"));
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|sender| !sender.is_closed());
        let sender = idle.pop();
        drop(idle);
        Turn { pool: Arc::clone(self), permit, idle: sender }
    }

    fn give_back(&self, sender: SendRequest<Upload>) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
    }
}

impl Turn {
    /// Takes the idle connection.
    pub(in crate::get) fn reuse(self) -> Result<Lease, Turn> {
        match self.idle {
            Some(sender) => Ok(Lease { sender, used: true, pool: self.pool, permit: self.permit }),
            None => Err(self),
        }
    }

    /// Goes on with a connection that was made for it.
    pub(in crate::get) fn with(self, sender: SendRequest<Upload>) -> Lease {
        Lease { sender, used: false, pool: self.pool, permit: self.permit }
    }
}

impl Lease {
    pub(super) async fn send(mut self, mut request: Request<Upload>) -> Result<Response<Incoming>, Error> {
        let idempotent = is_idempotent(request.method());
        let count = Count::of(&mut request);
        if let Err(error) = self.sender.ready().await {
            return Err(Error::tcp(error, true));
        }
        let sent = tokio::select! {
            biased;
            sent = self.sender.try_send_request(request) => sent,
            () = count.exceeded() => return Err(Error::TooManyInterim),
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
                Err(Error::tcp(error, unsent || stale))
            }
        }
    }
}
