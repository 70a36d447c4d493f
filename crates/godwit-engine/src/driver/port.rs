//! The readiness of a shard's sockets, as the runtime tells it.

use super::watched::Watched;
use crate::handler::Handler;
use crate::shard::Shard;
use godwit_base::SocketId;
use godwit_datapath::{Datapath, Received};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::Interest;

/// A socket's readiness.
pub(super) struct Port {
    id: SocketId,
    arrivals: Arrivals,
    /// While it is full: ready when it takes more.
    room: Option<Watched>,
    /// Ready when there is something in the error queue, for sockets that have one.
    errors: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// How it is known that something can be received.
enum Arrivals {
    /// There is no socket: it is looked at on every poll, and wakes the task itself.
    NoSocket,
    Watched(Watched),
    /// Another process receives from the same socket, and what comes is none of this one's business.
    OfAnother,
}

impl Arrivals {
    fn of(socket: &dyn Datapath, receives: bool) -> io::Result<Self> {
        Ok(match socket.socket() {
            None => Arrivals::NoSocket,
            Some(_) if !receives => Arrivals::OfAnother,
            Some(socket) => Arrivals::Watched(Watched::new(socket, Interest::READABLE)?),
        })
    }
}

pub(super) fn ports_of<H: Handler>(shard: &Shard<H>) -> io::Result<Vec<Port>> {
    let receives = shard.receives;
    let port = |socket: &dyn Datapath| {
        let (arrivals, errors) = (Arrivals::of(socket, receives)?, errors_of(socket)?);
        Ok(Port { id: socket.id(), arrivals, room: None, errors })
    };
    shard.sockets.iter().map(|socket| port(&**socket)).collect()
}

/// Waits for errors, under a descriptor of its own: what else happens to the socket is not taken from anybody.
fn errors_of(socket: &dyn Datapath) -> io::Result<Option<Pin<Box<dyn Future<Output = ()> + Send>>>> {
    let Some(socket) = socket.socket().filter(|_| socket.reports_errors()) else { return Ok(None) };
    let errors = super::watched::error_of(socket)?;
    Ok(Some(Box::pin(async move {
        // If the runtime cannot tell, errors are met with when something is sent.
        let _ = errors.await;
    })))
}

impl Port {
    /// True once when there is something in the error queue. If not, the task is woken when there is.
    pub(super) fn has_errors(&mut self, cx: &mut Context<'_>) -> bool {
        let ready = self.errors.as_mut().is_some_and(|errors| errors.as_mut().poll(cx).is_ready());
        if ready {
            self.errors = None;
        }
        ready
    }

    pub(super) const fn id(&self) -> SocketId {
        self.id
    }

    /// Receives one batch if there may be one. `None` if the task is now woken when there is.
    pub(super) fn receive<H: Handler>(
        &self,
        cx: &mut Context<'_>,
        shard: &mut Shard<H>,
        at: usize,
        spinning: bool,
    ) -> io::Result<Option<Received>> {
        if !shard.receives {
            return Ok(None);
        }
        let watched = match &self.arrivals {
            Arrivals::Watched(watched) => watched,
            Arrivals::NoSocket => return receive_without_socket(cx, shard, at),
            // They are about to be watched for receiving again.
            Arrivals::OfAnother => return Ok(None),
        };
        if watched.poll_ready(cx)?.is_pending() {
            // The runtime has not heard of any, but while spinning nobody asks it.
            let received = if spinning { shard.receive_from(at)? } else { Received::default() };
            return Ok((received.runs > 0).then_some(received));
        }
        let mut outcome = Received::default();
        let attempt = watched.attempt(|| {
            outcome = shard.receive_from(at)?;
            if outcome.more { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
        });
        match attempt {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(Some(outcome)),
        }
    }

    /// What tells when `socket`, which is full, takes more. `None` if there is no socket.
    ///
    /// # Errors
    /// If it cannot be watched.
    pub(super) fn room_in(&mut self, socket: &dyn Datapath) -> io::Result<Option<&Watched>> {
        if self.room.is_none()
            && let Some(socket) = socket.socket()
        {
            self.room = Some(Watched::new(socket, Interest::WRITABLE)?);
        }
        Ok(self.room.as_ref())
    }

    /// Everything has been sent: nobody waits for the socket to take more, of which it would tell after each datagram.
    pub(super) fn has_sent(&mut self) {
        self.room = None;
    }
}

fn receive_without_socket<H: Handler>(
    cx: &mut Context<'_>,
    shard: &mut Shard<H>,
    at: usize,
) -> io::Result<Option<Received>> {
    let received = shard.receive_from(at)?;
    if received.runs == 0
        && let Some(socket) = shard.sockets.get(at)
    {
        socket.wake_on_arrival(cx.waker());
    }
    Ok((received.runs > 0).then_some(received))
}

/// The readiness of what other processes hand on, where there are any.
pub(super) struct HandedOnPort {
    #[cfg(unix)]
    readiness: Option<tokio::net::UnixStream>,
}

#[cfg(unix)]
impl HandedOnPort {
    pub(super) fn of<H: Handler>(shard: &Shard<H>) -> io::Result<Self> {
        let readiness = match shard.others.as_ref().and_then(|others| others.readiness()) {
            // It is not read from: the runtime only watches it.
            Some(socket) => Some(tokio::net::UnixStream::from_std(socket.try_clone_to_owned()?.into())?),
            None => None,
        };
        Ok(HandedOnPort { readiness })
    }

    /// Receives one batch if there may be one. True if there may be more; otherwise the task is woken when there is.
    pub(super) fn receive<H: Handler>(&self, cx: &mut Context<'_>, shard: &mut Shard<H>) -> bool {
        let Some(readiness) = &self.readiness else { return false };
        loop {
            match readiness.poll_read_ready(cx) {
                Poll::Pending => return false,
                Poll::Ready(Ok(())) if shard.others.is_some() => {}
                Poll::Ready(Ok(())) => return false,
                Poll::Ready(Err(error)) => {
                    shard.part_with_others(&error);
                    return false;
                }
            }
            let mut received = Received::default();
            let attempt = readiness.try_io(Interest::READABLE, || {
                received = shard.receive_handed_on();
                if received.more { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
            });
            if attempt.is_ok() {
                return true;
            }
        }
    }
}

#[cfg(not(unix))]
impl HandedOnPort {
    pub(super) fn of<H: Handler>(_: &Shard<H>) -> io::Result<Self> {
        Ok(HandedOnPort {})
    }

    pub(super) fn receive<H: Handler>(&self, _: &mut Context<'_>, _: &mut Shard<H>) -> bool {
        false
    }
}
