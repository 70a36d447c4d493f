//! Keeping a shard going on tokio.
//!
//! The driver is one task. A poll of it is one turn of the shard, or a few while datagrams keep coming; it
//! then waits for a socket, for the deadline, or for somebody who used a handle. Readiness is taken away
//! only inside the attempt that found nothing, so that nothing that comes meanwhile is missed.
//!
//! When what was received wakes tasks, sending waits until they have run: an answer goes with the acknowledgement of what it
//! answers, in one datagram and one system call, and the first words of a client with the end of its handshake.

mod deadline;
mod port;
mod spinner;
mod watched;

use crate::handle::{Ending, ShardHandle, Shared};
use crate::handler::Handler;
use crate::shard::{Shard, Transmit};
use crate::spin::Spin;
use crate::stopped::Stopped;
use crate::turn::{self, TurnHost};
use deadline::DeadlineTimer;
use godwit_base::Time;
use godwit_os::processor::Usage;
use godwit_transport::ForeignBatch;
use godwit_transport::tls::make_key_share_ready;
use port::{HandedOnPort, Port, ports_of};
use spinner::Spinner;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use std::{fmt, io};

/// Settings of a driver.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DriverConfig {
    /// Whether to look for more datagrams before going to sleep. Default off.
    pub spin: Spin,
    /// Batches received from each socket in one poll before other tasks have their turn. Default 1: a batch
    /// is up to a mebibyte, and data that its reader fetches at once is still in the cache, and its memory is
    /// used again for the next.
    pub batches_per_poll: usize,
}

impl Default for DriverConfig {
    fn default() -> Self {
        DriverConfig { spin: Spin::Off, batches_per_poll: 1 }
    }
}

/// Keeps a shard going: a future to be spawned. It ends when the shard does.
#[must_use = "a shard does nothing while its driver is not polled"]
pub struct Driver<H: Handler> {
    shared: Arc<Shared<H>>,
    config: DriverConfig,
    ports: Vec<Port>,
    ports_version: u64,
    /// The port that is received from first.
    first_port: usize,
    /// Where other processes' datagrams come in.
    handed_on: HandedOnPort,
    timer: DeadlineTimer,
    spinner: Spinner,
    wakes: Vec<Waker>,
    foreign: ForeignBatch,
    /// Sockets could not be registered: it is tried again at this time.
    register_at: Option<Time>,
    held: Held,
    /// Somebody has used a handle since the poll before.
    changed: bool,
    /// There is nothing to do until something comes.
    waits: bool,
}

/// Whether what there is to send waits for those who may have something to add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    /// No.
    No,
    /// Until the tasks that are woken now have run.
    ForTasks,
    /// Until the runtime's main future has run as well, for none of the tasks has done anything.
    ForAll,
}

impl Held {
    /// In the next poll. `changed` tells whether anybody has done anything meanwhile.
    const fn next(self, changed: bool) -> Self {
        if matches!(self, Held::ForTasks) && !changed { Held::ForAll } else { Held::No }
    }
}

/// How long to wait before registering sockets is tried again. What it lacks is mostly descriptors.
const REGISTER_AGAIN: Duration = Duration::from_millis(20);

impl<H: Handler> Driver<H> {
    /// A driver for the shard of `handle`. To be called within a tokio runtime with I/O and time.
    ///
    /// # Errors
    /// If a socket or the timer cannot be registered with the runtime.
    pub fn new(handle: &ShardHandle<H>, config: DriverConfig) -> io::Result<Self> {
        let shared = Arc::clone(handle.shared());
        let shard = shared.lock();
        let (ports, ports_version) = (ports_of(&shard)?, shard.registrations_version());
        let handed_on = HandedOnPort::of(&shard)?;
        drop(shard);
        let spinner = Spinner::new(config.spin);
        Ok(Driver {
            shared,
            config,
            ports,
            ports_version,
            first_port: 0,
            handed_on,
            timer: DeadlineTimer::new()?,
            spinner,
            wakes: Vec::new(),
            foreign: ForeignBatch::new(),
            register_at: None,
            held: Held::No,
            changed: false,
            waits: false,
        })
    }

    /// One poll. `Ready` if the shard is at its end.
    fn run(&mut self, cx: &mut Context<'_>) -> io::Result<Poll<()>> {
        let shared = Arc::clone(&self.shared);
        let mut shard = shared.lock();
        shard.begin_turn();
        let sent = shard.batches_sent();
        self.follow_sockets(&shard);
        self.timer.take_expired(cx);
        let turn = turn::run(&mut DriverTurn { driver: self, shard: &mut shard, cx })?;
        let mut again = turn.more | self.follow_sockets(&shard);
        std::mem::swap(&mut shard.wakes, &mut self.wakes);
        match shared.ending() {
            Ending::Now => return Ok(Poll::Ready(())),
            Ending::WhenIdle if shard.is_idle() && self.held == Held::No => return Ok(Poll::Ready(())),
            _ => {}
        }
        again |= self.wait_until(cx, &mut shard, turn.deadline)?;
        if shard.batches_sent() != sent {
            self.spinner.on_sent(shard.now());
        }
        if self.held == Held::ForAll || !again && self.looks(shard.now()) {
            // After all that can run now, the runtime's main future included, which is not in the queue of the others, and
            // after the runtime has looked what else there is.
            let _ = std::pin::pin!(tokio::task::yield_now()).poll(cx);
        } else if again {
            cx.waker().wake_by_ref();
        } else {
            self.waits = true;
        }
        Ok(Poll::Pending)
    }

    /// Whether to be polled again although there is nothing to do.
    fn looks(&mut self, now: Time) -> bool {
        let looks = self.spinner.looks(now);
        if self.spinner.wants_sample(now)
            && let Some(usage) = Usage::of_this_thread()
        {
            self.spinner.on_sample(now, usage.waited);
        }
        looks
    }

    /// Sends a fair share, unless tasks are about to be woken, which may have something to say.
    fn send(&mut self, cx: &mut Context<'_>, shard: &mut Shard<H>) -> io::Result<Transmit> {
        if self.held == Held::No && !shard.wakes.is_empty() {
            self.held = Held::ForTasks;
        }
        // There is more to send: the task is polled again after those that are woken now.
        if self.held == Held::No { self.transmit(cx, shard) } else { Ok(Transmit::More) }
    }

    /// Sends a fair share. If a socket is full, the task is woken when it is writable.
    fn transmit(&mut self, cx: &mut Context<'_>, shard: &mut Shard<H>) -> io::Result<Transmit> {
        loop {
            let blocked = match shard.transmit()? {
                Transmit::Blocked(socket) => socket,
                Transmit::Done => {
                    self.ports.iter_mut().for_each(Port::has_sent);
                    return Ok(Transmit::Done);
                }
                Transmit::More => return Ok(Transmit::More),
            };
            let socket = shard.sockets.iter().find(|socket| socket.id() == blocked);
            let port = self.ports.iter_mut().find(|port| port.id() == blocked);
            let Some((port, socket)) = port.zip(socket) else { return Ok(Transmit::More) };
            let room = match port.room_in(&**socket) {
                Ok(Some(room)) => room,
                Ok(None) => return Ok(Transmit::More),
                Err(error) => {
                    self.register_later(shard, &error);
                    return Ok(Transmit::Blocked(blocked));
                }
            };
            let mut again = Transmit::Blocked(blocked);
            let attempt = room.attempt(|| {
                again = shard.transmit()?;
                let blocked = matches!(again, Transmit::Blocked(_));
                if blocked { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
            });
            match attempt {
                Ok(()) => return Ok(again),
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                Err(_) if room.poll_ready(cx)?.is_pending() => return Ok(Transmit::Blocked(blocked)),
                Err(_) => {}
            }
        }
    }

    /// Sees to it that the task is woken at the shard's deadline. True if that is now.
    fn wait_until(
        &mut self,
        cx: &mut Context<'_>,
        shard: &mut Shard<H>,
        deadline: Option<Time>,
    ) -> io::Result<bool> {
        let Some(deadline) = deadline.into_iter().chain(self.register_at).min() else { return Ok(false) };
        if deadline <= shard.now() {
            return Ok(true);
        }
        // The clock is read again only if the timer has to be set: the turn may have taken its time.
        self.timer.arm(cx, deadline, || shard.begin_turn())
    }

    /// Registers the sockets anew if they, or what is done with them, have changed, which is true. Where that cannot be
    /// done now, those that were registered before have to do for a while.
    fn follow_sockets(&mut self, shard: &Shard<H>) -> bool {
        let now = shard.now();
        if self.ports_version == shard.registrations_version() || self.register_at.is_some_and(|at| now < at)
        {
            return false;
        }
        match ports_of(shard).and_then(|ports| Ok((ports, HandedOnPort::of(shard)?))) {
            Ok((ports, handed_on)) => {
                (self.ports, self.handed_on) = (ports, handed_on);
                self.ports_version = shard.registrations_version();
                self.register_at = None;
                true
            }
            Err(error) => {
                self.register_later(shard, &error);
                false
            }
        }
    }

    /// Sockets could not be registered: that is tried again in a while.
    fn register_later(&mut self, shard: &Shard<H>, error: &io::Error) {
        if self.register_at.is_none() {
            tracing::warn!(%error, "sockets cannot be registered with the runtime; trying again");
        }
        self.ports_version = shard.registrations_version().wrapping_sub(1);
        self.register_at = Some(shard.now() + REGISTER_AGAIN);
    }
}

/// A turn of the shard in a poll of its driver: where there is nothing to do, the task will be woken when there is.
struct DriverTurn<'a, 'b, H: Handler> {
    driver: &'a mut Driver<H>,
    shard: &'a mut Shard<H>,
    cx: &'a mut Context<'b>,
}

impl<H: Handler> TurnHost for DriverTurn<'_, '_, H> {
    type Handler = H;

    fn shard(&mut self) -> &mut Shard<H> {
        self.shard
    }

    fn take_in(&mut self) -> io::Result<bool> {
        Ok(self.driver.handed_on.receive(self.cx, self.shard))
    }

    /// Receives and answers batch by batch until there is nothing or the budget is spent, which is true.
    fn receive(&mut self) -> io::Result<bool> {
        self.release()?;
        let DriverTurn { driver, shard, .. } = self;
        driver.shared.take_inbox(&mut driver.foreign);
        shard.receive_foreign(&mut driver.foreign);
        shard.dispatch();
        let (spinning, ports) = (driver.spinner.is_looking(), driver.ports.len());
        if self.receive_rest()? {
            return Ok(true);
        }
        let mut again = false;
        let first = if self.driver.first_port < ports { self.driver.first_port } else { 0 };
        for number in (first..ports).chain(0..first) {
            again |= self.receive_from(number, spinning)?;
            if self.shard.has_rest() {
                // After it, it is the next one's turn.
                self.driver.first_port = number.saturating_add(1);
                return Ok(true);
            }
        }
        Ok(again)
    }

    fn send(&mut self) -> io::Result<Transmit> {
        self.driver.send(self.cx, self.shard)
    }

    fn deliver_events(&mut self) -> bool {
        self.shard.dispatch();
        self.shard.watch_idle();
        false
    }
}

impl<H: Handler> DriverTurn<'_, '_, H> {
    /// Sends what was held, unless that goes on.
    fn release(&mut self) -> io::Result<()> {
        let DriverTurn { driver, shard, cx } = self;
        let held = driver.held;
        driver.held = held.next(driver.changed);
        if held != Held::No && driver.held == Held::No {
            // It is not to wait for what comes now, over which something may be held again.
            driver.transmit(cx, shard)?;
        }
        Ok(())
    }

    /// Receives from one socket until there is nothing or the budget is spent, which is true.
    fn receive_from(&mut self, number: usize, spinning: bool) -> io::Result<bool> {
        let DriverTurn { driver, shard, cx } = self;
        // While registering fails, ports and sockets are not the same.
        let at = driver.ports.get(number).and_then(|port| shard.index_of(port.id(), number));
        let Some(at) = at else { return Ok(false) };
        if driver.ports.get_mut(number).is_some_and(|port| port.has_errors(cx)) {
            shard.receive_errors_from(at);
            shard.dispatch();
        }
        let mut budget = driver.config.batches_per_poll.max(1);
        while let Some(port) = self.driver.ports.get(number) {
            let Some(received) = port.receive(self.cx, self.shard, at, spinning)? else { break };
            if received.runs > 0 {
                self.answer()?;
                if self.receive_rest()? {
                    return Ok(true);
                }
            }
            // Datagrams of no bytes, and errors, are no runs, but take their time, too.
            budget = budget.saturating_sub(1);
            if budget == 0 && received.more {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes in what is left of a batch, a part at a time, and answers each. True if something is left: what is held is to be
    /// sent before that.
    fn receive_rest(&mut self) -> io::Result<bool> {
        while self.shard.has_rest() {
            if self.driver.held != Held::No {
                return Ok(true);
            }
            self.shard.receive_rest();
            self.answer()?;
        }
        Ok(false)
    }

    /// Tells of what was received, and sends what there is to say.
    fn answer(&mut self) -> io::Result<()> {
        let DriverTurn { driver, shard, cx } = self;
        driver.spinner.on_received(shard.begin_turn());
        shard.dispatch();
        driver.send(cx, shard).map(drop)
    }
}

impl<H: Handler> Future for Driver<H> {
    type Output = Result<(), Stopped>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.shared.is_stopped() {
            return Poll::Ready(Ok(()));
        }
        this.changed = this.shared.register_driver(cx.waker());
        this.waits = false;
        let outcome = this.run(cx);
        this.wakes.drain(..).for_each(Waker::wake);
        if this.waits {
            // The other end's turn is the time to make ready what is needed for the next handshake.
            let _ = make_key_share_ready();
        }
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
