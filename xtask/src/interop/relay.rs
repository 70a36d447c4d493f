//! A relay for UDP on the loopback: datagrams pass a modelled link in either direction, keep their ECN marks, and
//! may come from other addresses than before.
//!
//! The relay has one socket for each address of the server that clients know (a *front*) and, for each address
//! under which the server is to see a client, one of its own (a *back*). One thread does everything.

use super::trace::{Kind, Seen, Trace, Way};
use godwit_base::{Ecn, RecvBatch, Rng, SeededRng, SendBatch, SendMeta, SocketId, Time};
use godwit_datapath::{Datapath, Progress, SocketConfig, bind};
use godwit_link::{
    Corrupt, Damage, DropReason, IpVersion, Link, LinkConfig, Loss, Nat, NatConfig, Outage, Outcome,
    Probability, QueueLimit, Rate, Rebinding, Translation,
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The runner's link: 10 Mbit/s, 15 ms, 25 packets.
const DELAY: Duration = Duration::from_millis(15);
const RATE: Rate = Rate::megabits(10);
const QUEUE: usize = 25;
/// Packets in a row that are lost or damaged at most.
const BURST: u32 = 3;
/// For as long as outages and rebindings are planned.
const HORIZON: u64 = 400;
/// The longest sleep: this often the relay looks whether it is still wanted.
const NAP: u16 = 50;

/// What the network does in a test case.
#[derive(Debug, Clone)]
pub(super) struct Scenario {
    delay: Duration,
    /// Numbers of the datagrams to the server that are lost, from 1.
    lost_up: Vec<u64>,
    /// Percent lost, or damaged, in either direction.
    loss: f64,
    corruption: f64,
    /// Seconds on, and then off.
    blackhole: Option<(u64, u64)>,
    rebinding: Option<Translation>,
}

impl Scenario {
    /// The link that most cases have.
    pub(super) fn simple() -> Scenario {
        Scenario {
            delay: DELAY,
            lost_up: Vec::new(),
            loss: 0.0,
            corruption: 0.0,
            blackhole: None,
            rebinding: None,
        }
    }

    pub(super) fn delay(self, delay: Duration) -> Scenario {
        Scenario { delay, ..self }
    }

    pub(super) fn losing(self, up: &[u64]) -> Scenario {
        Scenario { lost_up: up.to_vec(), ..self }
    }

    pub(super) fn loss(self, percent: f64) -> Scenario {
        Scenario { loss: percent, ..self }
    }

    pub(super) fn corruption(self, percent: f64) -> Scenario {
        Scenario { corruption: percent, ..self }
    }

    pub(super) fn blackhole(self, on: u64, off: u64) -> Scenario {
        Scenario { blackhole: Some((on, off)), ..self }
    }

    pub(super) fn rebinding(self, change: Translation) -> Scenario {
        Scenario { rebinding: Some(change), ..self }
    }

    fn link(&self) -> LinkConfig {
        let second = |second: u64| Time::ZERO + Duration::from_secs(second);
        let outages = self.blackhole.into_iter().flat_map(|(on, off)| {
            (0..HORIZON / (on + off)).map(move |turn| {
                let from = turn * (on + off) + on;
                Outage { from: second(from), until: second(from + off) }
            })
        });
        let corrupt =
            Corrupt { probability: Probability::percent(self.corruption), damage: Damage::Bytes(3) };
        LinkConfig {
            delay: self.delay,
            rate: Some(RATE),
            queue: QueueLimit::Packets(QUEUE),
            loss: Loss::Independent(Probability::percent(self.loss)),
            corrupt: (self.corruption > 0.0).then_some(corrupt),
            outages: outages.collect(),
            ..LinkConfig::default()
        }
    }

    fn nat(&self) -> NatConfig {
        let at = |second| Time::ZERO + Duration::from_secs(second);
        let every = (0..HORIZON / 5).map(|turn| at(1 + 5 * turn));
        let rebindings = self.rebinding.into_iter();
        let rebindings = rebindings.flat_map(|change| every.clone().map(move |at| Rebinding { at, change }));
        NatConfig { rebindings: rebindings.collect(), idle_timeout: None }
    }
}

/// One direction: the link, and what the runner's network does beyond it.
struct Direction {
    link: Link,
    /// Numbers of datagrams to lose.
    lost: Vec<u64>,
    count: u64,
    /// Losses, or damages, in a row.
    run: u32,
}

/// What becomes of a datagram on the link.
enum Fate {
    Lost,
    Arrives(Time, Option<godwit_link::Corruption>),
}

impl Direction {
    fn new(config: LinkConfig, lost: Vec<u64>, rng: SeededRng) -> Direction {
        Direction { link: Link::new(config, rng), lost, count: 0, run: 0 }
    }

    /// As in the runner, a Version Negotiation packet is never damaged: damaged Initial packets provoke some, and a
    /// client can see that they are wrong only if they list its version.
    fn pass(&mut self, now: Time, seen: &Seen, ip: IpVersion) -> Fate {
        self.count += 1;
        let len = seen.len;
        if self.lost.contains(&self.count) {
            return Fate::Lost;
        }
        let mut outcome = self.link.send(now, len, ip);
        // After so many in a row the next one passes.
        while self.run >= BURST && matches!(outcome, Outcome::Dropped(DropReason::Loss)) {
            outcome = self.link.send(now, len, ip);
        }
        let Outcome::Delivered { first, .. } = outcome else {
            self.run += u32::from(matches!(outcome, Outcome::Dropped(DropReason::Loss)));
            return Fate::Lost;
        };
        let whole = self.run >= BURST || seen.has(Kind::VersionNegotiation);
        let corruption = first.corruption.filter(|_| !whole);
        self.run = if corruption.is_some() { self.run + 1 } else { 0 };
        Fate::Arrives(first.at, corruption)
    }
}

/// A datagram under way.
struct Travelling {
    way: Way,
    path: Path,
    ecn: Ecn,
    data: Vec<u8>,
}

/// Where a datagram goes: which front, and the client's address, its own or the one that it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Path {
    front: usize,
    client: SocketAddr,
}

/// The relay before it runs: its addresses are known.
pub(super) struct Bound {
    fronts: Vec<Box<dyn Datapath>>,
    ip: IpAddr,
}

/// A relay that runs. Dropping it ends it.
pub(super) struct Relay {
    stop: Arc<AtomicBool>,
    trace: Arc<Mutex<Trace>>,
    thread: Option<JoinHandle<()>>,
}

/// Binds `fronts` addresses on `ip`.
pub(super) fn bound(ip: IpAddr, fronts: u32) -> Result<Bound, String> {
    let fronts =
        (0..fronts).map(|number| socket(number, SocketAddr::new(ip, 0))).collect::<Result<_, _>>()?;
    Ok(Bound { fronts, ip })
}

fn socket(number: u32, address: SocketAddr) -> Result<Box<dyn Datapath>, String> {
    let mut config = SocketConfig::default();
    (config.gso, config.gro) = (false, false);
    bind(SocketId(number), address, &config).map_err(|error| error.to_string())
}

impl Bound {
    /// The addresses that clients use.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.fronts.iter().map(|front| front.local_addr()).collect()
    }

    /// Begins to relay, from each front to the server's address of the same number.
    pub(super) fn run(self, servers: Vec<SocketAddr>, scenario: &Scenario, seed: u64) -> Relay {
        let stop = Arc::new(AtomicBool::new(false));
        let trace = Arc::new(Mutex::new(Trace::default()));
        let mut worker = Worker::new(self, servers, scenario, seed, Arc::clone(&trace));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                if let Err(why) = worker.turn() {
                    eprintln!("xtask: relay: {why}");
                    return;
                }
            }
        });
        Relay { stop, trace, thread: Some(thread) }
    }
}

impl Relay {
    /// Ends the relay and returns what it has seen.
    pub(super) fn finish(mut self) -> Trace {
        self.end();
        std::mem::take(&mut *self.trace.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.end();
    }
}

struct Worker {
    start: Instant,
    fronts: Vec<Box<dyn Datapath>>,
    servers: Vec<SocketAddr>,
    ip: IpAddr,
    version: IpVersion,
    nat: Nat,
    /// By the address that the translation gives the client, and by the front: the server's address is known by the
    /// socket to which it answers, even if the server uses one for all.
    backs: BTreeMap<Path, Box<dyn Datapath>>,
    /// Other addresses of ours, by the addresses that the translation makes up.
    homes: BTreeMap<IpAddr, IpAddr>,
    up: Direction,
    down: Direction,
    due: BinaryHeap<Reverse<(Time, u64)>>,
    travelling: BTreeMap<u64, Travelling>,
    next: u64,
    trace: Arc<Mutex<Trace>>,
    batch: RecvBatch,
}

impl Worker {
    fn new(
        bound: Bound,
        servers: Vec<SocketAddr>,
        scenario: &Scenario,
        seed: u64,
        trace: Arc<Mutex<Trace>>,
    ) -> Worker {
        let mut rng = SeededRng::new(seed);
        let link = scenario.link();
        Worker {
            start: now(),
            fronts: bound.fronts,
            servers,
            ip: bound.ip,
            version: bound.ip.into(),
            nat: Nat::new(scenario.nat()),
            backs: BTreeMap::new(),
            homes: BTreeMap::new(),
            up: Direction::new(link.clone(), scenario.lost_up.clone(), SeededRng::new(rng.next_u64())),
            down: Direction::new(link, Vec::new(), SeededRng::new(rng.next_u64())),
            due: BinaryHeap::new(),
            travelling: BTreeMap::new(),
            next: 0,
            trace,
            batch: RecvBatch::new(16, 1 << 16),
        }
    }

    fn now(&self) -> Time {
        Time::ZERO + now().saturating_duration_since(self.start)
    }

    /// Waits for something to do, and does it.
    fn turn(&mut self) -> Result<(), String> {
        self.wait()?;
        for front in 0..self.fronts.len() {
            self.receive_from_clients(front)?;
        }
        for outside in self.backs.keys().copied().collect::<Vec<_>>() {
            self.receive_from_server(outside)?;
        }
        self.deliver()
    }

    fn wait(&self) -> Result<(), String> {
        let sockets = self.fronts.iter().chain(self.backs.values()).filter_map(|datapath| datapath.socket());
        let mut polled: Vec<_> =
            sockets.map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN)).collect();
        let left = match self.due.peek() {
            Some(Reverse((at, _))) => {
                at.saturating_since(self.now()).as_micros().div_ceil(1000).min(u128::from(NAP))
            }
            None => u128::from(NAP),
        };
        let left = u16::try_from(left).unwrap_or(NAP);
        poll(&mut polled, PollTimeout::from(left)).map_err(|error| error.to_string())?;
        Ok(())
    }

    fn receive_from_clients(&mut self, front: usize) -> Result<(), String> {
        for (client, ecn, data) in received(self.fronts[front].as_mut(), &mut self.batch)? {
            let (now, seen) = (self.now(), Seen::new(Way::Up, front, ecn, &data));
            let fate = self.up.pass(now, &seen, self.version);
            if !self.note(true, seen, client) {
                break;
            }
            self.send_off(fate, Travelling { way: Way::Up, path: Path { front, client }, ecn, data });
        }
        Ok(())
    }

    fn receive_from_server(&mut self, outside: Path) -> Result<(), String> {
        let Some(back) = self.backs.get_mut(&outside) else { return Ok(()) };
        for (_, ecn, data) in received(back.as_mut(), &mut self.batch)? {
            let (now, seen) = (self.now(), Seen::new(Way::Down, outside.front, ecn, &data));
            let fate = self.down.pass(now, &seen, self.version);
            if !self.note(false, seen, outside.client) {
                break;
            }
            if let Some(client) = self.nat.inbound(now, outside.client) {
                let path = Path { client, ..outside };
                self.send_off(fate, Travelling { way: Way::Down, path, ecn, data });
            }
        }
        Ok(())
    }

    fn send_off(&mut self, fate: Fate, mut datagram: Travelling) {
        let Fate::Arrives(at, corruption) = fate else { return };
        if let Some(corruption) = corruption {
            corruption.apply(&mut datagram.data);
        }
        self.due.push(Reverse((at, self.next)));
        self.travelling.insert(self.next, datagram);
        self.next += 1;
    }

    fn deliver(&mut self) -> Result<(), String> {
        let now = self.now();
        while let Some(Reverse((at, number))) = self.due.peek().copied() {
            if at > now {
                break;
            }
            self.due.pop();
            let Some(datagram) = self.travelling.remove(&number) else { continue };
            let Travelling { way, path, ecn, data } = datagram;
            match way {
                Way::Up => {
                    let (server, outside) = (self.servers[path.front], self.nat.outbound(now, path.client));
                    self.note(false, Seen::new(Way::Up, path.front, ecn, &data), outside);
                    let outside = Path { client: outside, ..path };
                    send(self.back(outside, path.client.ip())?.as_mut(), server, ecn, &data)?;
                }
                Way::Down => {
                    self.note(true, Seen::new(Way::Down, path.front, ecn, &data), path.client);
                    send(self.fronts[path.front].as_mut(), path.client, ecn, &data)?;
                }
            }
        }
        Ok(())
    }

    /// The socket by which the server sees a client that has this address of its own.
    fn back(&mut self, outside: Path, inside: IpAddr) -> Result<&mut Box<dyn Datapath>, String> {
        if !self.backs.contains_key(&outside) {
            let ip = self.home(outside.client.ip(), inside);
            let made = socket(0, SocketAddr::new(ip, 0))?;
            self.backs.insert(outside, made);
        }
        self.backs.get_mut(&outside).ok_or_else(|| "a socket is gone".to_owned())
    }

    /// The address of ours that stands for one that the translation made up.
    fn home(&mut self, outside: IpAddr, client: IpAddr) -> IpAddr {
        if outside == client || self.ip.is_ipv6() {
            return self.ip;
        }
        let number = u8::try_from(self.homes.len() + 2).unwrap_or(2);
        *self.homes.entry(outside).or_insert(IpAddr::V4(Ipv4Addr::new(127, 0, 1, number)))
    }

    /// Writes down what passes the client's end (`near`) or the server's, with the client's address there. False if
    /// there has been too much.
    fn note(&mut self, near: bool, mut seen: Seen, client: SocketAddr) -> bool {
        let at = now().saturating_duration_since(self.start);
        let mut trace = self.trace.lock().unwrap_or_else(PoisonError::into_inner);
        let Trace { client: at_client, server: at_server, client_addresses, server_addresses, flooded } =
            &mut *trace;
        *flooded |= at_client.len().max(at_server.len()) >= Trace::MOST;
        if *flooded {
            return false;
        }
        let known = if near { client_addresses } else { server_addresses };
        let number = known.iter().position(|known| *known == client).unwrap_or_else(|| {
            known.push(client);
            known.len() - 1
        });
        seen.path += number * self.fronts.len();
        seen.at = at;
        if near {
            at_client.push(seen)
        } else {
            at_server.push(seen)
        }
        true
    }
}

#[expect(clippy::disallowed_methods, reason = "a relay of real datagrams reads the clock")]
fn now() -> Instant {
    Instant::now()
}

/// Everything that waits in a socket.
fn received(
    socket: &mut dyn Datapath,
    batch: &mut RecvBatch,
) -> Result<Vec<(SocketAddr, Ecn, Vec<u8>)>, String> {
    let mut all = Vec::new();
    loop {
        batch.clear();
        let outcome = socket.receive(batch).map_err(|error| error.to_string())?;
        for (meta, run) in batch.runs() {
            all.extend(run.chunks(meta.stride).map(|datagram| (meta.remote, meta.ecn, datagram.to_vec())));
        }
        if !outcome.more {
            return Ok(all);
        }
    }
}

/// Sends one datagram; one that the system refuses is lost.
fn send(socket: &mut dyn Datapath, remote: SocketAddr, ecn: Ecn, data: &[u8]) -> Result<(), String> {
    let mut batch = SendBatch::new(data.len());
    let Some(room) = batch.reserve(data.len()) else { return Ok(()) };
    room.copy_from_slice(data);
    let meta = SendMeta { socket: socket.id(), local: None, remote, ecn, release: None };
    batch.commit(data.len(), data.len(), meta);
    socket.send(&batch, &mut Progress::default()).map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    /// Waits for so many datagrams.
    fn arrivals(socket: &mut dyn Datapath, count: usize) -> Vec<(SocketAddr, Ecn, Vec<u8>)> {
        let (start, mut batch, mut all) = (now(), RecvBatch::new(4, 2048), Vec::new());
        while all.len() < count {
            all.extend(received(socket, &mut batch).unwrap());
            assert!(start.elapsed() < SOON, "nothing came");
            std::thread::sleep(Duration::from_millis(1));
        }
        all
    }

    fn next(socket: &mut dyn Datapath) -> (SocketAddr, Ecn, Vec<u8>) {
        arrivals(socket, 1).remove(0)
    }

    fn local() -> Box<dyn Datapath> {
        socket(9, "127.0.0.1:0".parse().unwrap()).unwrap()
    }

    #[test]
    fn marks_pass_both_ways_and_every_front_is_known() {
        let (mut client, mut server) = (local(), local());
        let bound = bound(Ipv4Addr::LOCALHOST.into(), 2).unwrap();
        let fronts = bound.addresses();
        let relay = bound.run(vec![server.local_addr(); 2], &Scenario::simple().delay(Duration::ZERO), 1);
        let mut seen_from = Vec::new();
        for (front, mark) in fronts.iter().zip([Ecn::Ect0, Ecn::Ce]) {
            send(client.as_mut(), *front, mark, b"hello").unwrap();
            let (from, ecn, data) = next(server.as_mut());
            assert_eq!((ecn, data.as_slice()), (mark, &b"hello"[..]));
            send(server.as_mut(), from, Ecn::Ect1, b"answer").unwrap();
            assert_eq!(next(client.as_mut()), (*front, Ecn::Ect1, b"answer".to_vec()));
            seen_from.push(from);
        }
        assert_ne!(seen_from[0], seen_from[1]);
        let trace = relay.finish();
        assert_eq!((trace.client.len(), trace.server.len()), (4, 4));
        assert_eq!(trace.sent_by_client().map(|seen| seen.path).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn the_first_datagrams_are_lost_as_listed() {
        let (mut client, mut server) = (local(), local());
        let bound = bound(Ipv4Addr::LOCALHOST.into(), 1).unwrap();
        let front = bound.addresses()[0];
        let relay = bound.run(vec![server.local_addr()], &Scenario::simple().losing(&[2, 3]), 1);
        for number in 1..=4_u8 {
            send(client.as_mut(), front, Ecn::NotEct, &[number]).unwrap();
        }
        let arrived: Vec<_> = arrivals(server.as_mut(), 2).into_iter().map(|(.., data)| data).collect();
        assert_eq!(arrived, [[1], [4]]);
        assert_eq!(relay.finish().sent_by_client().count(), 4);
    }

    #[test]
    fn what_negotiates_versions_is_not_damaged() {
        let link = Scenario::simple().corruption(100.0).link();
        let mut direction = Direction::new(link, Vec::new(), SeededRng::new(1));
        let damaged = |direction: &mut Direction, first: u8, version: u8| {
            let datagram = [first, 0, 0, 0, version, 0, 0, 0, 0, 0, 1];
            let seen = Seen::new(Way::Down, 0, Ecn::NotEct, &datagram);
            match direction.pass(Time::ZERO, &seen, IpVersion::V4) {
                Fate::Arrives(_, corruption) => corruption.is_some(),
                Fate::Lost => panic!("lost"),
            }
        };
        assert!(damaged(&mut direction, 0x40, 1));
        assert!(!damaged(&mut direction, 0xc0, 0));
        assert!(damaged(&mut direction, 0x40, 1));
    }
}
