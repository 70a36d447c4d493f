//! Keeping a shard going on tokio.
//!
//! The driver is one task. A poll of it is one turn of the shard, or a few while datagrams keep coming; it
//! then waits for a socket, for the deadline, or for somebody who used a handle. Readiness is taken away
//! only inside the attempt that found nothing, so that nothing that comes meanwhile is missed.

mod deadline;

use crate::handle::{Ending, Shared};
use crate::handler::Handler;
use crate::shard::{Shard, Transmit};
use crate::{ShardHandle, Stopped};
use deadline::DeadlineTimer;
use godwit_base::{SocketId, Time};
use godwit_datapath::{Datapath, Received};
use godwit_transport::endpoint::Foreign;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use std::{fmt, io};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// Settings of a driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverConfig {
    /// How long to look for more after the last datagram before going to sleep. It saves the time of
    /// being woken and costs a core for that long. Default zero, which is off.
    pub spin: Duration,
    /// Batches received from each socket in one poll before other tasks have their turn. Default 1: a batch
    /// is up to a mebibyte, and data that its reader fetches at once is still in the cache, and its memory is
    /// used again for the next.
    pub batches_per_poll: usize,
}

impl Default for DriverConfig {
    fn default() -> Self {
        DriverConfig { spin: Duration::ZERO, batches_per_poll: 1 }
    }
}

/// Keeps a shard going: a future to be spawned. It ends when the shard does.
#[must_use = "a shard does nothing while its driver is not polled"]
pub struct Driver<H: Handler> {
    shared: Arc<Shared<H>>,
    config: DriverConfig,
    ports: Vec<Port>,
    ports_version: u64,
    timer: DeadlineTimer,
    last_traffic: Option<Time>,
    wakes: Vec<Waker>,
    foreign: Vec<Foreign>,
}

/// A socket's readiness. It is the same socket as the datapath's under a second descriptor.
struct Port {
    id: SocketId,
    /// `None` for what is not a socket: it is looked at on every poll, and wakes the task itself.
    readiness: Option<UdpSocket>,
}

impl<H: Handler> Driver<H> {
    /// A driver for the shard of `handle`. To be called within a tokio runtime with I/O and time.
    ///
    /// # Errors
    /// If a socket or the timer cannot be registered with the runtime.
    pub fn new(handle: &ShardHandle<H>, config: DriverConfig) -> io::Result<Self> {
        let shared = Arc::clone(handle.shared());
        let shard = shared.lock();
        let (ports, ports_version) = (ports_of(&shard)?, shard.sockets_version);
        drop(shard);
        Ok(Driver {
            shared,
            config,
            ports,
            ports_version,
            timer: DeadlineTimer::new()?,
            last_traffic: None,
            wakes: Vec::new(),
            foreign: Vec::new(),
        })
    }

    /// One poll. `Ready` if the shard is at its end.
    fn run(&mut self, cx: &mut Context<'_>) -> io::Result<Poll<()>> {
        let shared = Arc::clone(&self.shared);
        let mut shard = shared.lock();
        self.follow_sockets(&shard)?;
        let now = shard.begin_turn();
        self.timer.take_expired(cx);
        shard.run_timers();
        shared.take_inbox(&mut self.foreign);
        shard.receive_foreign(self.foreign.drain(..));
        shard.dispatch();
        let mut again = self.receive(cx, &mut shard)?;
        again |= self.transmit(cx, &mut shard)?;
        // Sending may have caused events: a connection that closes, for one.
        shard.dispatch();
        shard.watch_idle();
        std::mem::swap(&mut shard.wakes, &mut self.wakes);
        match shared.ending() {
            Ending::Now => return Ok(Poll::Ready(())),
            Ending::WhenIdle if shard.is_idle() => return Ok(Poll::Ready(())),
            _ => {}
        }
        again |= self.wait_until(cx, &mut shard)?;
        again |= self.last_traffic.is_some_and(|last| now.saturating_since(last) < self.config.spin);
        if again {
            cx.waker().wake_by_ref();
        }
        Ok(Poll::Pending)
    }

    /// Receives and answers batch by batch until there is nothing or the budget is spent, which is true.
    fn receive(&mut self, cx: &mut Context<'_>, shard: &mut Shard<H>) -> io::Result<bool> {
        let spinning = self.last_traffic.is_some() && !self.config.spin.is_zero();
        let mut again = false;
        for at in 0..self.ports.len() {
            let mut budget = self.config.batches_per_poll.max(1);
            while let Some(port) = self.ports.get(at) {
                let Some(received) = port.receive(cx, shard, at, spinning)? else { break };
                if received.runs == 0 {
                    continue;
                }
                self.last_traffic = Some(shard.begin_turn());
                shard.dispatch();
                self.transmit(cx, shard)?;
                budget = budget.saturating_sub(1);
                if budget == 0 && received.more {
                    again = true;
                    break;
                }
            }
        }
        Ok(again)
    }

    /// Sends a fair share. If a socket is full, the task is woken when it is writable. True if there may be
    /// more to send at once.
    fn transmit(&self, cx: &mut Context<'_>, shard: &mut Shard<H>) -> io::Result<bool> {
        loop {
            let blocked = match shard.transmit()? {
                Transmit::Done => return Ok(false),
                Transmit::More => return Ok(true),
                Transmit::Blocked(socket) => socket,
            };
            let port = self.ports.iter().find(|port| port.id == blocked);
            let Some(readiness) = port.and_then(|port| port.readiness.as_ref()) else { return Ok(true) };
            let mut again = Transmit::Blocked(blocked);
            let attempt = readiness.try_io(Interest::WRITABLE, || {
                again = shard.transmit()?;
                let blocked = matches!(again, Transmit::Blocked(_));
                if blocked { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
            });
            match attempt {
                Ok(()) => return Ok(again == Transmit::More),
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                Err(_) if readiness.poll_send_ready(cx)?.is_pending() => return Ok(false),
                Err(_) => {}
            }
        }
    }

    /// Sees to it that the task is woken at the shard's deadline. True if that is now.
    fn wait_until(&mut self, cx: &mut Context<'_>, shard: &mut Shard<H>) -> io::Result<bool> {
        let Some(deadline) = shard.deadline() else { return Ok(false) };
        if deadline <= shard.now() {
            return Ok(true);
        }
        // The clock is read again only if the timer has to be set: the turn may have taken its time.
        self.timer.arm(cx, deadline, || shard.begin_turn())
    }

    /// Registers the sockets anew if they were exchanged.
    fn follow_sockets(&mut self, shard: &Shard<H>) -> io::Result<()> {
        if self.ports_version != shard.sockets_version {
            self.ports = ports_of(shard)?;
            self.ports_version = shard.sockets_version;
        }
        Ok(())
    }
}

impl Port {
    /// Receives one batch if there may be one. `None` if the task is now woken when there is.
    fn receive<H: Handler>(
        &self,
        cx: &mut Context<'_>,
        shard: &mut Shard<H>,
        at: usize,
        spinning: bool,
    ) -> io::Result<Option<Received>> {
        let Some(readiness) = &self.readiness else {
            let received = shard.receive_from(at)?;
            if received.runs == 0
                && let Some(socket) = shard.sockets.get(at)
            {
                socket.wake_on_arrival(cx.waker());
            }
            return Ok((received.runs > 0).then_some(received));
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
}

fn ports_of<H: Handler>(shard: &Shard<H>) -> io::Result<Vec<Port>> {
    let port = |socket: &dyn Datapath| {
        let readiness = match socket.socket() {
            Some(socket) => Some(UdpSocket::from_std(socket.try_clone()?)?),
            None => None,
        };
        Ok(Port { id: socket.id(), readiness })
    };
    shard.sockets.iter().map(|socket| port(&**socket)).collect()
}

impl<H: Handler> Future for Driver<H> {
    type Output = Result<(), Stopped>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.shared.is_stopped() {
            return Poll::Ready(Ok(()));
        }
        this.shared.register_driver(cx.waker());
        let outcome = this.run(cx);
        this.wakes.drain(..).for_each(Waker::wake);
        match outcome {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(())) => {
                this.shared.stop(Stopped::Finished);
                Poll::Ready(Ok(()))
            }
            Err(error) => {
                let why = Stopped::Socket(Arc::new(error));
                this.shared.stop(why.clone());
                Poll::Ready(Err(why))
            }
        }
    }
}

impl<H: Handler> Drop for Driver<H> {
    fn drop(&mut self) {
        self.shared.stop(Stopped::Abandoned);
    }
}

impl<H: Handler> fmt::Debug for Driver<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("config", &self.config).finish_non_exhaustive()
    }
}
