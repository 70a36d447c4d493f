//! The readiness of a shard's sockets, as the runtime tells it.

use crate::handler::Handler;
use crate::shard::Shard;
use godwit_base::SocketId;
use godwit_datapath::{Datapath, Received};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// A socket's readiness.
pub(super) struct Port {
    id: SocketId,
    readiness: Readiness,
    /// Ready when there is something in the error queue, for sockets that have one.
    errors: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// What the runtime watches. It is the same socket as the datapath's under a second descriptor.
enum Readiness {
    /// There is no socket: it is looked at on every poll, and wakes the task itself.
    None,
    /// For receiving and sending.
    Both(UdpSocket),
    /// For sending only: another process receives from the same socket, and what comes is none of
    /// this one's business.
    #[cfg(target_os = "linux")]
    Sending(tokio::io::unix::AsyncFd<std::net::UdpSocket>),
}

impl Readiness {
    fn of(socket: &dyn Datapath, receives: bool) -> io::Result<Self> {
        let Some(socket) = socket.socket() else { return Ok(Readiness::None) };
        let socket = socket.try_clone()?;
        Ok(if receives { Readiness::Both(UdpSocket::from_std(socket)?) } else { Self::sending(socket)? })
    }

    #[cfg(target_os = "linux")]
    #[expect(
        deprecated,
        reason = "its successor is unsafe; this socket owns its one descriptor while it lives"
    )]
    fn sending(socket: std::net::UdpSocket) -> io::Result<Self> {
        tokio::io::unix::AsyncFd::with_interest(socket, Interest::WRITABLE).map(Readiness::Sending)
    }

    #[cfg(not(target_os = "linux"))]
    fn sending(socket: std::net::UdpSocket) -> io::Result<Self> {
        UdpSocket::from_std(socket).map(Readiness::Both)
    }
}

pub(super) fn ports_of<H: Handler>(shard: &Shard<H>) -> io::Result<Vec<Port>> {
    let receives = shard.receives;
    let port = |socket: &dyn Datapath| {
        let (readiness, errors) = (Readiness::of(socket, receives)?, errors_of(socket)?);
        Ok(Port { id: socket.id(), readiness, errors })
    };
    shard.sockets.iter().map(|socket| port(&**socket)).collect()
}

/// Waits for errors, under a descriptor of its own: what else happens to the socket is not taken from anybody.
fn errors_of(socket: &dyn Datapath) -> io::Result<Option<Pin<Box<dyn Future<Output = ()> + Send>>>> {
    let Some(socket) = socket.socket().filter(|_| socket.reports_errors()) else { return Ok(None) };
    let socket = UdpSocket::from_std(socket.try_clone()?)?;
    Ok(Some(Box::pin(async move {
        // If the runtime cannot tell, errors are met with when something is sent.
        let _ = error_of(&socket).await;
    })))
}

#[cfg(any(target_os = "linux", target_os = "android"))]
async fn error_of(socket: &UdpSocket) -> io::Result<()> {
    socket.ready(Interest::ERROR).await.map(drop)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
async fn error_of(_: &UdpSocket) -> io::Result<()> {
    std::future::pending().await
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
        let readiness = match &self.readiness {
            Readiness::Both(socket) => socket,
            Readiness::None => return receive_without_socket(cx, shard, at),
            // They are about to be watched for receiving again.
            #[cfg(target_os = "linux")]
            Readiness::Sending(_) => return Ok(None),
        };
        if readiness.poll_recv_ready(cx)?.is_pending() {
            // The runtime has not heard of any, but while spinning nobody asks it.
            let received = if spinning { shard.receive_from(at)? } else { Received::default() };
            return Ok((received.runs > 0).then_some(received));
        }
        let mut outcome = Received::default();
        let attempt = readiness.try_io(Interest::READABLE, || {
            outcome = shard.receive_from(at)?;
            if outcome.more { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
        });
        match attempt {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(Some(outcome)),
        }
    }

    /// Sends with `attempt` unless the socket is known to be full. `None` if there is no socket.
    pub(super) fn try_send(&self, attempt: impl FnOnce() -> io::Result<()>) -> Option<io::Result<()>> {
        match &self.readiness {
            Readiness::None => None,
            Readiness::Both(socket) => Some(socket.try_io(Interest::WRITABLE, attempt)),
            #[cfg(target_os = "linux")]
            Readiness::Sending(socket) => Some(socket.try_io(Interest::WRITABLE, |_| attempt())),
        }
    }

    /// Whether the socket takes more. If not, the task is woken when it does.
    pub(super) fn poll_send_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.readiness {
            Readiness::None => Poll::Ready(Ok(())),
            Readiness::Both(socket) => socket.poll_send_ready(cx),
            #[cfg(target_os = "linux")]
            Readiness::Sending(socket) => socket.poll_write_ready(cx).map_ok(|_| ()),
        }
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
