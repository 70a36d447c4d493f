//! Sockets, endpoint and handler together, and what one turn of them is.

use crate::clock::Clock;
use crate::current_time::CurrentTime;
use crate::group::ShardGroup;
use crate::handed_on::HandedOn;
use crate::handler::{Handler, ShardCx};
use crate::outgoing::{Batch, Outgoing, SealingThreads};
use crate::processes::OtherProcesses;
use crate::retirement::Retirement;
use crate::stopped::Stopped;
use godwit_base::{RecvBatch, SocketId, Time, WallTime};
use godwit_datapath::{Capabilities, Counters, Datapath, Received, Refused, Sent, TooLarge, Unreachable};
use godwit_transport::{Endpoint, ForeignBatch};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;
use std::time::Duration;
use std::{fmt, io};

/// Runs received at once, and the most bytes of one.
const RECV_SLOTS: usize = 16;
const RECV_SLOT_SIZE: usize = 1 << 16;

/// A shard: sockets, an endpoint with its connections, and a handler.
pub struct Shard<H> {
    pub(crate) sockets: Vec<Box<dyn Datapath>>,
    /// Raised whenever a socket is exchanged, so that a driver waits for the right one.
    pub(crate) sockets_version: u64,
    /// Raised whenever an error was taken from a socket.
    errors_version: u64,
    pub(crate) endpoint: Endpoint,
    pub(crate) handler: H,
    pub(crate) clock: Clock,
    pub(crate) wakes: Vec<Waker>,
    pub(crate) group: Option<ShardGroup>,
    /// This process receives from the sockets, not another one.
    pub(crate) receives: bool,
    pub(crate) others: Option<Box<dyn OtherProcesses>>,
    /// What is for others; empty between calls.
    foreign: ForeignBatch,
    pub(crate) recv: RecvBatch,
    /// Something of `recv` is still to be taken in.
    rest: bool,
    /// Something may be waiting behind it.
    more_behind: bool,
    pub(crate) retirement: Retirement,
    pub(crate) handed_on: HandedOn,
    pub(crate) outgoing: Outgoing,
    /// How many batches were written, whether or not they have left yet.
    batches_sent: u64,
    pub(crate) now: Time,
    /// The clock is read in the course of a turn, not only by whoever began it.
    reads_clock: bool,
    /// No time before this one was told to the endpoint before this turn, or will be in it.
    pub(crate) told_before: Time,
    pub(crate) wall: WallTime,
    /// The handler knows that the shard is idle.
    idle_told: bool,
}

/// What the peer is told of a connection whose handler has panicked.
const HANDLER_PANICKED: &str = "the application has failed";

/// While a socket is full, what is due and waits for it is looked at this often: it stays due.
const BLOCKED_PAUSE: Duration = Duration::from_millis(1);

/// How far sending got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transmit {
    /// There is nothing more to send.
    Done,
    /// This socket is full.
    Blocked(SocketId),
    /// There may be more: it is another's turn.
    More,
}

/// The outcome of [`Shard::turn`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Turn {
    /// When to call again at the latest.
    pub deadline: Option<Time>,
    /// A socket that has to become writable before more can be sent.
    pub blocked: Option<SocketId>,
    /// Whether to call again at once, because more may have come.
    pub more: bool,
}

impl<H> fmt::Debug for Shard<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sockets: Vec<_> = self.sockets.iter().map(|socket| socket.local_addr()).collect();
        f.debug_struct("Shard").field("sockets", &sockets).finish_non_exhaustive()
    }
}

impl<H> Shard<H> {
    /// A shard of these parts. Each socket must have an id of its own.
    pub fn new(mut endpoint: Endpoint, sockets: Vec<Box<dyn Datapath>>, handler: H) -> Self {
        let mut clock = Clock::new();
        let now = clock.now();
        let wall = clock.wall(now);
        endpoint.set_time(now, wall);
        let mut shard = Shard {
            sockets,
            sockets_version: 0,
            errors_version: 0,
            endpoint,
            handler,
            wall,
            clock,
            wakes: Vec::new(),
            group: None,
            receives: true,
            others: None,
            foreign: ForeignBatch::new(),
            retirement: Retirement::default(),
            handed_on: HandedOn::default(),
            recv: RecvBatch::new(RECV_SLOTS, RECV_SLOT_SIZE),
            rest: false,
            more_behind: false,
            outgoing: Outgoing::new(),
            batches_sent: 0,
            now,
            reads_clock: true,
            told_before: now,
            idle_told: true,
        };
        shard.follow_departure_times();
        shard
    }

    /// Makes this one of the shards of `group`: datagrams that belong to another one are handed to it.
    #[must_use]
    pub fn in_group(mut self, group: ShardGroup) -> Self {
        self.group = Some(group);
        self
    }

    /// Has large runs of packets protected by `threads`, which other shards may have, too, while the shard writes and sends
    /// others. It costs more processor time than it saves, and is of use only where a core is idle.
    #[must_use]
    pub fn with_sealing_threads(mut self, threads: SealingThreads) -> Self {
        self.outgoing.set_threads(threads);
        self
    }

    /// Calls `visit` with the shard's inside, outside of any turn.
    pub fn with<R>(&mut self, visit: impl FnOnce(&mut ShardCx<'_>, &mut H) -> R) -> R {
        self.reads_clock = true;
        let mut cx = ShardCx {
            endpoint: &mut self.endpoint,
            time: CurrentTime::of_visit(self.now, &self.clock),
            wakes: &mut self.wakes,
            sockets: &self.sockets,
        };
        let result = visit(&mut cx, &mut self.handler);
        if let Some(now) = cx.time.reading() {
            self.set_now(now);
        }
        result
    }

    /// The addresses the sockets are bound to.
    pub fn local_addrs(&self) -> Vec<SocketAddr> {
        self.sockets.iter().map(|socket| socket.local_addr()).collect()
    }

    /// What each socket has done so far.
    pub fn counters(&self) -> Vec<Counters> {
        self.sockets.iter().map(|socket| socket.counters()).collect()
    }

    /// What each socket can do at present.
    pub fn capabilities(&self) -> Vec<Capabilities> {
        self.sockets.iter().map(|socket| socket.capabilities()).collect()
    }

    /// Puts `socket` in the place of the one with the same id, or beside the others if there is none.
    /// What was to be sent through the old one and has not been is sent through the new one.
    pub fn replace_socket(&mut self, socket: Box<dyn Datapath>) {
        match self.sockets.iter_mut().find(|old| old.id() == socket.id()) {
            Some(old) => {
                self.retirement.closed += old.counters();
                *old = socket;
            }
            None => self.sockets.push(socket),
        }
        self.sockets_version += 1;
        self.follow_departure_times();
    }

    /// Packets are made ready before they leave as long as every socket holds them back until then.
    pub(crate) fn follow_departure_times(&mut self) {
        let zero = self.clock.zero_on_system_clock();
        let kept = self.sockets.iter().all(|socket| socket.capabilities().departure_times);
        if kept {
            self.sockets.iter_mut().for_each(|socket| socket.keep_departure_times(zero));
        }
        self.endpoint.set_departure_times(kept && !self.sockets.is_empty());
    }

    /// Changes whenever sockets have to be registered anew with a runtime: when one is exchanged, and when it had an error.
    pub(crate) const fn registrations_version(&self) -> u64 {
        self.sockets_version.wrapping_add(self.errors_version)
    }

    /// Reads the clock.
    pub(crate) fn begin_turn(&mut self) -> Time {
        self.reads_clock = true;
        self.set_now(self.clock.now())
    }

    /// As [`Shard::begin_turn`], for who has read the clock: it is not read before the next turn.
    pub(crate) fn begin_turn_at(&mut self, now: Time) -> Time {
        self.reads_clock = false;
        self.set_now(now)
    }

    /// Reads the clock once more in the course of a turn, unless its time was handed in.
    fn read_clock_again(&mut self) {
        if self.reads_clock {
            self.set_now(self.clock.now());
        }
    }

    /// Time does not go back.
    fn set_now(&mut self, now: Time) -> Time {
        self.told_before = self.now.max(self.told_before);
        self.now = now.max(self.now);
        self.wall = self.clock.wall(self.now);
        self.now
    }

    /// The time of this turn.
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// Lets what is due happen.
    pub(crate) fn run_timers(&mut self) {
        // What has come and is not taken in yet may be what is waited for.
        if !self.rest && self.endpoint.deadline().is_some_and(|deadline| deadline <= self.now) {
            self.endpoint.on_timeout(self.now);
        }
    }

    /// Receives one batch from a socket into the endpoint.
    pub(crate) fn receive_from(&mut self, at: usize) -> io::Result<Received> {
        let Some(socket) = self.sockets.get_mut(at) else { return Ok(Received::default()) };
        self.recv.clear();
        let received = socket.receive(&mut self.recv)?;
        if received.runs > 0 {
            // There are other sockets, which may have something as well.
            self.more_behind = true;
            self.receive_rest();
        } else {
            self.report_errors();
        }
        Ok(received)
    }

    /// Takes in what is left of a batch, or as much of it as is to be taken in before something is sent.
    pub(crate) fn receive_rest(&mut self) {
        // It may answer what was sent after the turn began: by its beginning, round trips would take no time.
        self.read_clock_again();
        self.rest = self.endpoint.receive_some(self.now, self.wall, &mut self.recv);
    }

    /// A batch was received, all of which is to be taken in by the next turn. There may be `more` behind it.
    pub(crate) const fn set_rest(&mut self, more: bool) {
        self.rest = true;
        self.more_behind = more;
    }

    /// True if a part of a batch is still to be taken in: nothing else may be received before.
    pub(crate) const fn has_rest(&self) -> bool {
        self.rest
    }

    /// Where the socket with this id is, which is likely `at`.
    pub(crate) fn index_of(&self, id: SocketId, at: usize) -> Option<usize> {
        if self.sockets.get(at).is_some_and(|socket| socket.id() == id) {
            return Some(at);
        }
        self.sockets.iter().position(|socket| socket.id() == id)
    }

    /// Reads the error queue of a socket.
    pub(crate) fn receive_errors_from(&mut self, at: usize) {
        if let Some(socket) = self.sockets.get_mut(at) {
            socket.receive_errors();
        }
        // A runtime takes an error for the end of the socket: it is registered anew, also where another generation of
        // the process has read what there was.
        self.errors_version += 1;
        self.report_errors();
    }

    /// Tells the endpoint what the network said of datagrams sent earlier.
    pub(crate) fn report_errors(&mut self) {
        for socket in &mut self.sockets {
            let id = socket.id();
            while let Some(Unreachable { remote, kind, quote, .. }) = socket.next_unreachable() {
                self.errors_version += 1;
                if let Some(remote) = remote {
                    self.endpoint.on_unreachable(id, remote, quote.as_bytes(), kind);
                }
            }
        }
    }

    /// Takes in what other shards handed over.
    pub(crate) fn receive_foreign(&mut self, batch: &mut ForeignBatch) {
        if !batch.is_empty() {
            self.endpoint.receive_forwarded(self.now, self.wall, batch.runs_mut());
            batch.clear();
        }
    }

    /// Hands on what is not for this shard.
    pub(crate) fn hand_on(&mut self) {
        if !self.endpoint.has_foreign() {
            return;
        }
        let Shard { endpoint, foreign, group, others, clock, now, handed_on, wakes, .. } = self;
        endpoint.swap_foreign(foreign);
        let received = clock.since_boot(*now);
        for (owner, run) in foreign.runs() {
            let put = group.as_ref().and_then(|group| group.hand_on(owner, run));
            let taken = put.map(|put| {
                wakes.extend(put.driver);
                put.taken
            });
            match taken.or_else(|| others.as_ref()?.hand_on(owner, received, run)) {
                Some(taken) => handed_on.count(taken),
                None => endpoint.reject_foreign(*now, owner, run),
            }
        }
        foreign.clear();
    }

    /// Sends a few batches, less if there is nothing more to send or a socket is full.
    pub(crate) fn transmit(&mut self) -> io::Result<Transmit> {
        let mut outcome = Transmit::More;
        for _ in 0..self.outgoing.at_once() {
            if let Some(blocked) = self.flush(self.outgoing.before_another())? {
                return Ok(Transmit::Blocked(blocked));
            }
            // Whether there is more is found out by asking again: it may be that it writes nothing.
            if !self.write(Self::fill) {
                outcome = Transmit::Done;
                break;
            }
        }
        let under_way = !self.outgoing.is_empty();
        Ok(match self.flush(0)? {
            Some(blocked) => Transmit::Blocked(blocked),
            // To send the last of them may have given reason to say something.
            None if under_way && self.endpoint.has_ready() => Transmit::More,
            None => outcome,
        })
    }

    /// Sends what connections say that have just been begun or accepted, and nothing else.
    pub(crate) fn transmit_first_flights(&mut self) {
        // A socket that is full, or fails, is the next turn's concern: what is to be sent stays.
        if !self.endpoint.has_first_flights() || !matches!(self.flush(0), Ok(None)) {
            return;
        }
        // TLS has taken its time: by the beginning of the turn, round trips would take as much longer.
        self.read_clock_again();
        self.write(|shard, batch| {
            shard.endpoint.transmit_first_flights(shard.now, &mut batch.datagrams);
            false
        });
        let _ = self.flush(0);
    }

    /// Has the endpoint write a batch. True if it may have more.
    fn fill(&mut self, batch: &mut Batch) -> bool {
        if self.outgoing.has_threads() {
            self.endpoint.transmit_unprotected(self.now, &mut batch.datagrams, &mut batch.unprotected)
        } else {
            self.endpoint.transmit(self.now, &mut batch.datagrams)
        }
    }

    /// Has `fill` write a batch, and puts it behind the others. False if it wrote nothing.
    fn write(&mut self, fill: impl FnOnce(&mut Self, &mut Batch) -> bool) -> bool {
        let mut batch = self.outgoing.empty();
        let more = fill(self, &mut batch);
        if batch.datagrams.is_empty() {
            self.outgoing.recycle(batch);
            return false;
        }
        self.endpoint.swap_writers(&mut batch.writers);
        self.batches_sent = self.batches_sent.wrapping_add(1);
        self.outgoing.push(batch, more);
        true
    }

    /// A number that changes whenever there was something to send.
    pub(crate) fn batches_sent(&self) -> u64 {
        self.batches_sent
    }

    /// Sends the batches that are ready, and all but `keep` of them in any case. What a socket has no room for is kept, and no
    /// thread has anything of this shard then, nor if nothing is to be kept.
    fn flush(&mut self, keep: usize) -> io::Result<Option<SocketId>> {
        while let Some(mut batch) = self.outgoing.take_first(self.outgoing.len() > keep) {
            let outcome = self.send(&mut batch);
            if matches!(outcome, Ok(None)) {
                self.outgoing.recycle(batch);
            } else {
                self.outgoing.put_back(batch);
                self.outgoing.fetch_all();
                return outcome;
            }
        }
        Ok(None)
    }

    /// Sends a batch, or the rest of it. Whatever is refused, the endpoint is told of who wrote it.
    fn send(&mut self, batch: &mut Batch) -> io::Result<Option<SocketId>> {
        self.endpoint.swap_writers(&mut batch.writers);
        // Whichever way it came here: nothing leaves that is not protected.
        batch.protect();
        if let Some(failed) = batch.failed.take() {
            self.endpoint.on_not_protected(self.now, failed);
            batch.datagrams.clear();
        }
        let outcome = self.send_runs(batch);
        self.endpoint.swap_writers(&mut batch.writers);
        outcome
    }

    fn send_runs(&mut self, Batch { datagrams, progress, .. }: &mut Batch) -> io::Result<Option<SocketId>> {
        while let Some(id) = progress.next_socket(datagrams) {
            let Some(socket) = self.sockets.iter_mut().find(|socket| socket.id() == id) else {
                // A socket that is gone: what was for it is lost.
                datagrams.clear();
                break;
            };
            let before = *progress;
            let sent = socket.send(datagrams, progress)?;
            while let Some(TooLarge { remote, size, max, .. }) = socket.next_too_large() {
                self.endpoint.on_datagram_refused(self.now, remote, size, max);
            }
            while let Some(Refused { run, datagrams, congested, .. }) = socket.next_refused() {
                self.endpoint.on_run_refused(run, datagrams, congested);
            }
            if sent == Sent::Blocked {
                return Ok(Some(id));
            }
            if *progress == before {
                // A data path of a program's own that does not say how far it came would be asked without end.
                progress.finish_run();
            }
            self.report_errors();
        }
        Ok(None)
    }

    /// Receives one batch from each socket, or what is left of one. True if there may be more.
    pub(crate) fn receive_from_each(&mut self) -> io::Result<bool> {
        if self.rest {
            self.receive_rest();
            return Ok(self.rest || self.more_behind);
        }
        let sockets = if self.receives { self.sockets.len() } else { 0 };
        let mut more = false;
        for at in 0..sockets {
            more |= self.receive_from(at)?.more || self.rest;
            if self.rest {
                break;
            }
        }
        Ok(more)
    }

    /// What is to be waited for after this.
    pub(crate) fn end_turn(&mut self, transmit: Transmit, more: bool) -> Turn {
        self.drop_unused_sockets();
        let blocked = if let Transmit::Blocked(socket) = transmit { Some(socket) } else { None };
        let mut deadline = self.endpoint.deadline();
        if blocked.is_some() {
            deadline = deadline.map(|deadline| deadline.max(self.now + BLOCKED_PAUSE));
        }
        let due = deadline.is_some_and(|deadline| deadline <= self.now);
        Turn { deadline, blocked, more: more || due || transmit == Transmit::More }
    }

    /// Whether everything is over: no connections, nothing left to send.
    pub fn is_idle(&self) -> bool {
        self.endpoint.is_idle() && self.has_sent_everything()
    }

    /// Whether the sockets have taken all that the endpoint wrote.
    pub(crate) fn has_sent_everything(&self) -> bool {
        self.outgoing.is_empty()
    }

    /// Wakes whom a turn has found: for who has the shard to himself, with no lock.
    pub(crate) fn wake(&mut self) {
        self.wakes.drain(..).for_each(Waker::wake);
    }

    /// Whom a visit has found, to be woken with no lock held. Mostly there is nobody, and the memory stays for the next.
    pub(crate) fn take_wakes(&mut self) -> Vec<Waker> {
        if self.wakes.is_empty() { Vec::new() } else { std::mem::take(&mut self.wakes) }
    }

    pub(crate) fn split(&mut self) -> (ShardCx<'_>, &mut H) {
        let cx = ShardCx {
            endpoint: &mut self.endpoint,
            time: CurrentTime::of_turn(self.now, self.wall),
            wakes: &mut self.wakes,
            sockets: &self.sockets,
        };
        (cx, &mut self.handler)
    }
}

/// Calls the handler. False if it panicked: that costs the connection it was told of, and no other.
fn survives(what: &str, tell: impl FnOnce()) -> bool {
    let told = catch_unwind(AssertUnwindSafe(tell));
    if let Err(payload) = told {
        tracing::error!("a handler panicked over {what}, which ends with it");
        // To drop it may panic again.
        std::mem::forget(payload);
        return false;
    }
    true
}

impl<H: Handler> Shard<H> {
    /// Tells the handler everything that happened, and hands on what is not for this shard.
    pub(crate) fn dispatch(&mut self) {
        let mut any = false;
        loop {
            let (mut cx, handler) = self.split();
            if let Some(incoming) = cx.endpoint.next_incoming() {
                if !survives("a client that wants to connect", || handler.on_incoming(&mut cx, incoming)) {
                    cx.endpoint.refuse(incoming);
                }
                self.transmit_first_flights();
            } else if let Some((conn, event)) = cx.endpoint.next_event() {
                if !survives("an event of a connection", || handler.on_event(&mut cx, conn, event)) {
                    let now = cx.now();
                    cx.endpoint.with(conn, |connection| connection.abort(now, HANDLER_PANICKED));
                }
            } else if any {
                // The end of the turn may cause events in its turn.
                any = false;
                handler.on_turn_end(&mut cx);
                continue;
            } else {
                break;
            }
            any = true;
        }
        self.hand_on();
    }

    /// Tells the handler when the shard has become idle.
    pub(crate) fn watch_idle(&mut self) {
        let idle = self.is_idle();
        if idle && !self.idle_told {
            let (mut cx, handler) = self.split();
            handler.on_idle(&mut cx);
        }
        self.idle_told = idle;
    }

    pub(crate) fn stop(&mut self, why: &Stopped) {
        let (mut cx, handler) = self.split();
        handler.on_stopped(&mut cx, why);
        // What is for this shard from now on has nowhere to go, and whoever has it learns so.
        self.others = None;
    }
}
