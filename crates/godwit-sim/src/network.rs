//! The simulation: hosts, wires, and the clock that jumps from event to event.
//!
//! At each instant, packets are handed to their hosts in one batch per host, deadlines are fired, and
//! every host concerned is polled once: its events go to its application, and what it has to send goes
//! onto the wires. Hosts are visited in the order of their numbers.

use crate::app::{Application, Context};
use crate::fabric::{Fabric, HostId, Packet, SharedId, WireId};
use crate::held_back::{HeldBack, at_tick};
use godwit_base::timer_queue::TimerQueue;
use godwit_base::{Ecn, RecvBatch, RecvMeta, Rng, SeededRng, SendBatch, SocketId, Time, WallTime};
use godwit_link::DuplexConfig;
use godwit_transport::Endpoint;
use std::any::Any;
use std::net::SocketAddr;
use std::time::Duration;

/// Runs in a received batch.
const RUNS: usize = 16;
/// Bytes in a received run.
const RUN_SIZE: usize = 65_535;
/// Bytes in a batch to send.
const SEND_SIZE: usize = 1 << 18;
/// Turns of the clock at one instant before the simulation is declared stuck.
const MAX_TURNS: u32 = 1_000_000;
/// The same, counting only those at which no packet arrived.
const MAX_EMPTY_TURNS: u32 = 1_000;
/// The wall time at which every simulation begins: some day in 2026.
const WALL_EPOCH_MICROS: u64 = 1_780_000_000_000_000;

/// Why a run stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The condition was met.
    Condition,
    /// The time limit was reached.
    Limit,
    /// Nothing will ever happen again: no packet is on its way and no deadline is set.
    Idle,
    /// Hosts keep having deadlines that are past: time no longer moves.
    Stuck,
}

/// The two timers of a host, by the low bit of their numbers: it is to be polled, or its system lets go of packets.
const WAKES: u32 = 0;
const LETS_GO: u32 = 1;

struct Host {
    endpoint: Endpoint,
    app: Box<dyn Application>,
    wake: Option<Time>,
    /// The endpoint's deadline, as of when it was polled last.
    deadline: Option<Time>,
    inbox: Vec<Packet>,
    queued: bool,
    /// Its timers go off at multiples of this only, if it is not zero.
    tick: Duration,
    /// What its system holds back until it may leave, if it does so.
    held: Option<HeldBack>,
}

/// Hosts and wires in virtual time.
pub struct Network {
    now: Time,
    fabric: Fabric,
    hosts: Vec<Host>,
    timers: TimerQueue<u32>,
    due: Vec<u32>,
    started: usize,
    turns: u32,
    empty_turns: u32,
    received: RecvBatch,
    sending: SendBatch,
    rng: SeededRng,
    /// What the calendar said, and when.
    calendar: (Time, WallTime),
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network")
            .field("now", &self.now)
            .field("fabric", &self.fabric)
            .finish_non_exhaustive()
    }
}

impl Network {
    /// An empty network at time zero, whose chances all follow from `seed`: those of the links, of the
    /// endpoints made with [`Network::rng`], and of the cryptography on this thread. Simulations on
    /// one thread must therefore run one after another, not by turns.
    pub fn new(seed: u64) -> Self {
        let mut rng = SeededRng::new(seed);
        godwit_transport::tls::deterministic::seed(rng.next_u64());
        Network {
            now: Time::ZERO,
            fabric: Fabric::default(),
            hosts: Vec::new(),
            timers: TimerQueue::new(),
            due: Vec::new(),
            started: 0,
            turns: 0,
            empty_turns: 0,
            received: RecvBatch::new(RUNS, RUN_SIZE),
            sending: SendBatch::new(SEND_SIZE),
            rng,
            calendar: (Time::ZERO, WallTime::from_unix_micros(WALL_EPOCH_MICROS)),
        }
    }

    /// A generator for an endpoint; each call gives another one.
    pub fn rng(&mut self) -> Box<dyn Rng + Send> {
        Box::new(SeededRng::new(self.rng.next_u64()))
    }

    /// Adds a host. Its application is started when the clock next moves.
    pub fn add_host(&mut self, address: SocketAddr, endpoint: Endpoint, app: impl Application) -> HostId {
        let app = Box::new(app);
        self.hosts.push(Host {
            endpoint,
            app,
            wake: None,
            deadline: None,
            inbox: Vec::new(),
            queued: false,
            tick: Duration::ZERO,
            held: None,
        });
        self.fabric.add_host(address)
    }

    /// Has a host's timers go off at multiples of `tick` only, late as those of real systems. Zero, the default, is in
    /// time. Packets are received when they come.
    pub fn set_tick(&mut self, host: HostId, tick: Duration) {
        if let Some(host) = self.hosts.get_mut(host.0 as usize) {
            host.tick = tick;
        }
    }

    /// Has a host's system keep departure times: what is to leave later is held back until then, exactly, whenever the
    /// host itself wakes.
    pub fn keep_departure_times(&mut self, host: HostId) {
        if let Some(host) = self.hosts.get_mut(host.0 as usize) {
            host.held = Some(HeldBack::default());
            host.endpoint.set_departure_times(true);
        }
    }

    /// Joins a client to a server. `None` if there is no such host.
    pub fn add_wire(&mut self, client: HostId, server: HostId, config: DuplexConfig) -> Option<WireId> {
        let seed = self.rng.next_u64();
        self.fabric.add_wire(client, server, config, seed)
    }

    /// A link for wires to share: see [`Fabric::share`].
    pub fn add_shared_link(&mut self, config: DuplexConfig) -> SharedId {
        let seed = self.rng.next_u64();
        self.fabric.add_shared_link(config, seed)
    }

    /// The present.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The present in calendar time.
    pub fn wall(&self) -> WallTime {
        let (at, wall) = self.calendar;
        wall + (self.now - at)
    }

    /// Somebody sets the calendar of all hosts, forward or back; clocks that count do not notice.
    pub fn set_wall(&mut self, wall: WallTime) {
        self.calendar = (self.now, wall);
    }

    /// The wires.
    pub fn fabric(&mut self) -> &mut Fabric {
        &mut self.fabric
    }

    /// The application of a host, if it is of this type.
    pub fn app<A: Application>(&self, host: HostId) -> Option<&A> {
        let app: &dyn Any = self.hosts.get(host.0 as usize)?.app.as_ref();
        app.downcast_ref()
    }

    /// Acts on a host from outside, now: `act` gets its application and what an application gets when it
    /// is called. `None` if there is no such host or its application is of another type.
    pub fn act<A: Application, R>(
        &mut self,
        host: HostId,
        act: impl FnOnce(&mut A, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let Host { endpoint, app, wake, .. } = self.hosts.get_mut(host.0 as usize)?;
        let app: &mut dyn Any = app.as_mut();
        let mut cx = Context { now: self.now, endpoint, wake };
        let result = act(app.downcast_mut()?, &mut cx);
        self.queue(host.0);
        Some(result)
    }

    /// Puts another endpoint in a host's place, as after a crash: nothing is said to anyone.
    pub fn replace_endpoint(&mut self, host: HostId, endpoint: Endpoint) {
        if let Some(host) = self.hosts.get_mut(host.0 as usize) {
            host.endpoint = endpoint;
            host.endpoint.set_departure_times(host.held.is_some());
        }
        self.queue(host.0);
    }

    /// Hands a datagram to a host now, as if `from` had sent it past all wires.
    pub fn inject(&mut self, to: HostId, from: SocketAddr, datagram: &[u8]) {
        let wall = self.wall();
        let Network { fabric, hosts, received, .. } = self;
        let (Some(host), Some(local)) = (hosts.get_mut(to.0 as usize), fabric.address(to)) else { return };
        let meta = receive_meta(SocketId(0), local, from, Ecn::NotEct);
        received.clear();
        received.push_datagram(meta, datagram);
        host.endpoint.receive(self.now, wall, received);
        self.queue(to.0);
    }

    /// Runs until `done`, or until `limit`, or until nothing more can happen.
    pub fn run_until(&mut self, limit: Time, mut done: impl FnMut(&mut Network) -> bool) -> Stop {
        self.start();
        loop {
            self.poll_due();
            if done(self) {
                return Stop::Condition;
            }
            if let Some(stop) = self.turn(limit) {
                return stop;
            }
        }
    }

    /// Moves the clock to the next event, unless somebody is concerned now.
    fn turn(&mut self, limit: Time) -> Option<Stop> {
        if !self.due.is_empty() {
            return None;
        }
        let (arrival, deadline) = (self.fabric.next_arrival(), self.timers.next_deadline());
        let Some(next) = arrival.into_iter().chain(deadline).min() else { return Some(Stop::Idle) };
        if next > limit {
            self.now = self.now.max(limit);
            return Some(Stop::Limit);
        }
        if self.advance(next, arrival) { None } else { Some(Stop::Stuck) }
    }

    /// Runs for this long, or until nothing more can happen; then the clock stands there all the same.
    pub fn run_for(&mut self, duration: Duration) -> Stop {
        let limit = self.now + duration;
        let stop = self.run_until(limit, |_| false);
        self.now = self.now.max(limit);
        stop
    }

    fn start(&mut self) {
        while let Some(Host { endpoint, app, wake, .. }) = self.hosts.get_mut(self.started) {
            app.on_start(&mut Context { now: self.now, endpoint, wake });
            self.queue(self.started as u32);
            self.started += 1;
        }
    }

    /// Moves the clock and finds out who is concerned. False if time has not moved for too long.
    fn advance(&mut self, next: Time, arrival: Option<Time>) -> bool {
        let moved = next > self.now;
        self.turns = if moved { 0 } else { self.turns + 1 };
        self.now = self.now.max(next);
        let Network { fabric, hosts, due, .. } = self;
        let mut arrived = false;
        if arrival.is_some_and(|arrival| arrival <= self.now) {
            fabric.deliver(self.now, |host, packet| {
                arrived = true;
                if let Some(state) = hosts.get_mut(host.0 as usize) {
                    state.inbox.push(packet);
                    if !std::mem::replace(&mut state.queued, true) {
                        due.push(host.0);
                    }
                }
            });
        }
        while let Some(timer) = self.timers.pop_expired(self.now) {
            let host = timer / 2;
            if timer % 2 == WAKES { self.queue(host) } else { self.let_go(HostId(host)) }
        }
        self.due.sort_unstable();
        self.empty_turns = if moved || arrived { 0 } else { self.empty_turns + 1 };
        self.turns < MAX_TURNS && self.empty_turns < MAX_EMPTY_TURNS
    }

    /// What a host's system has held back until now goes onto the wires.
    fn let_go(&mut self, id: HostId) {
        let Some(held) = self.hosts.get_mut(id.0 as usize).and_then(|host| host.held.as_mut()) else {
            return;
        };
        while let Some((meta, datagram)) = held.pop(self.now) {
            self.fabric.send(self.now, id, &meta, &datagram);
        }
        self.timers.set(id.0 * 2 + LETS_GO, held.next());
    }

    fn queue(&mut self, host: u32) {
        if let Some(state) = self.hosts.get_mut(host as usize)
            && !std::mem::replace(&mut state.queued, true)
        {
            self.due.push(host);
        }
    }

    fn poll_due(&mut self) {
        let mut due = std::mem::take(&mut self.due);
        for host in due.drain(..) {
            self.poll(HostId(host));
        }
        if self.due.is_empty() {
            self.due = due;
        }
    }

    /// Gives a host what has come for it, and takes what it has to say.
    fn poll(&mut self, id: HostId) {
        self.receive(id);
        let Some(host) = self.hosts.get_mut(id.0 as usize) else { return };
        let Host { endpoint, app, wake, deadline, queued, tick, held, .. } = host;
        *queued = false;
        let now = self.now;
        if deadline.is_some_and(|deadline| deadline <= now) {
            endpoint.on_timeout(now);
        }
        if wake.take_if(|wake| *wake <= now).is_some() {
            app.on_wake(&mut Context { now, endpoint, wake });
        }
        let mut sent = false;
        loop {
            let mut called = false;
            while let Some(incoming) = endpoint.next_incoming() {
                called = true;
                app.on_incoming(&mut Context { now, endpoint, wake }, incoming);
            }
            while let Some((conn, event)) = endpoint.next_event() {
                called = true;
                app.on_event(&mut Context { now, endpoint, wake }, conn, event);
            }
            // Whoever has sent everything has nothing to add unless the application was called since.
            if called || !sent {
                send(&mut self.fabric, &mut self.sending, now, id, endpoint, held);
                sent = true;
            }
            if !called {
                break;
            }
        }
        *deadline = endpoint.deadline();
        let woken = (*deadline).into_iter().chain(*wake).min().map(|at| at_tick(at, *tick));
        self.timers.set(id.0 * 2 + WAKES, woken);
        if let Some(held) = held {
            self.timers.set(id.0 * 2 + LETS_GO, held.next());
        }
    }

    /// Hands a host its packets, in batches of runs as a socket would.
    fn receive(&mut self, id: HostId) {
        let wall = self.wall();
        let Network { now, fabric, hosts, received, .. } = self;
        let Some(host) = hosts.get_mut(id.0 as usize).filter(|host| !host.inbox.is_empty()) else { return };
        let mut inbox = std::mem::take(&mut host.inbox);
        let mut packets = inbox.as_slice();
        while !packets.is_empty() {
            received.clear();
            while !packets.is_empty() && received.len() < RUNS {
                let local = packets.first().and_then(|first| fabric.socket_address(id, first.socket));
                let Some(local) = local else { return };
                packets = push_run(received, local, packets);
            }
            host.endpoint.receive(*now, wall, received);
        }
        for packet in inbox.drain(..) {
            fabric.recycle(packet);
        }
        host.inbox = inbox;
    }
}

/// Puts all that an endpoint has to say on the wires, or has it held back.
fn send(
    fabric: &mut Fabric,
    batch: &mut SendBatch,
    now: Time,
    from: HostId,
    endpoint: &mut Endpoint,
    held: &mut Option<HeldBack>,
) {
    loop {
        batch.clear();
        let more = endpoint.transmit(now, batch);
        for (meta, datagram) in batch.datagrams() {
            match (held.as_mut(), meta.release) {
                (Some(held), Some(at)) if at > now => held.push(at, meta, datagram),
                _ => fabric.send(now, from, &meta, datagram),
            }
        }
        if !more {
            return;
        }
    }
}

fn receive_meta(socket: SocketId, local: SocketAddr, remote: SocketAddr, ecn: Ecn) -> RecvMeta {
    RecvMeta { socket, local: Some(local.ip()), remote, ecn, len: 0, stride: 1 }
}

/// Joins as many packets as go into one run, the way GRO does: same sender, same codepoint, same size but
/// for a shorter last one. Answers what is left.
fn push_run<'a>(batch: &mut RecvBatch, local: SocketAddr, packets: &'a [Packet]) -> &'a [Packet] {
    let Some((first, mut rest)) = packets.split_first() else { return packets };
    let Some(slot) = batch.free_slots().first_mut() else { return packets };
    let stride = first.size();
    let Some(room) = slot.get_mut(..stride) else { return rest };
    first.copy_to(room);
    let mut len = stride;
    let mut last = stride;
    while let Some((next, after)) = rest.split_first() {
        let alike = next.source == first.source && next.socket == first.socket && next.ecn == first.ecn;
        if !alike || last < stride || next.size() > stride || next.size() == 0 {
            break;
        }
        let Some(room) = slot.get_mut(len..len + next.size()) else { break };
        next.copy_to(room);
        len += next.size();
        last = next.size();
        rest = after;
    }
    let meta = receive_meta(first.socket, local, first.source, first.ecn);
    batch.push(RecvMeta { len, stride: stride.max(1), ..meta });
    rest
}
