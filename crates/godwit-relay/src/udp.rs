//! Datagrams on the loopback: they pass the link in either direction, keep their ECN marks, and may come from other
//! addresses than before.
//!
//! The relay has one socket for each address of the server that clients know (a *front*) and, for each address under
//! which the server is to see a client, one of its own (a *back*). One thread does everything.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use godwit_base::{Ecn, RecvBatch, Rng, SeededRng, SendBatch, SendMeta, SocketId, Time};
use godwit_datapath::{Datapath, Progress, SocketConfig, bind};
use godwit_link::{IpVersion, Link, LinkConfig, Nat, NatConfig};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::{Arrival, Clock, DelayQueue, Lane, LaneSettings, Way};

/// The longest sleep: this often the relay looks whether it is still wanted.
const NAP: u16 = 50;

/// What the network does.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The link, in either direction.
    pub link: LinkConfig,
    /// What the way to the server does besides.
    pub up: LaneSettings,
    /// What the way to the client does besides.
    pub down: LaneSettings,
    /// The translation of addresses in front of the clients.
    pub nat: NatConfig,
    /// The number that all chances follow from.
    pub seed: u64,
}

/// An end of the relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Before the link on the way up, after it on the way down.
    Client,
    /// The other one.
    Server,
}

/// A datagram that passes an end.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Passing<'a> {
    /// Which way it goes.
    pub way: Way,
    /// The number of the server's address.
    pub front: usize,
    /// The client's address, as this end sees it.
    pub client: SocketAddr,
    /// Its mark.
    pub ecn: Ecn,
    /// What is in it.
    pub data: &'a [u8],
}

/// Who is shown every datagram at both ends.
pub trait Observer: Send + 'static {
    /// A datagram passes an end, so long after the relay began. False if there has been too much: the rest of what
    /// came with it does not pass.
    fn on_datagram(&mut self, at: Duration, end: End, passing: Passing<'_>) -> bool;

    /// Whether the link may damage it.
    fn may_be_damaged(&self, data: &[u8]) -> bool {
        let _ = data;
        true
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
#[derive(Debug)]
pub struct Bound {
    fronts: Vec<Box<dyn Datapath>>,
    ip: IpAddr,
}

/// A relay that runs. Dropping it ends it.
#[derive(Debug)]
pub struct UdpRelay<O> {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<(O, Option<String>)>>,
}

/// Binds `fronts` addresses on `ip`.
///
/// # Errors
/// If the system gives no sockets.
pub fn bound(ip: IpAddr, fronts: u32) -> Result<Bound, String> {
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
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.fronts.iter().map(|front| front.local_addr()).collect()
    }

    /// Begins to relay, from each front to the server's address of the same number.
    pub fn run<O: Observer>(self, servers: Vec<SocketAddr>, options: Options, observer: O) -> UdpRelay<O> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut worker = Worker::new(self, servers, options, observer);
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                if let Err(why) = worker.turn() {
                    return (worker.observer, Some(why));
                }
            }
            (worker.observer, None)
        });
        UdpRelay { stop, thread: Some(thread) }
    }
}

impl<O> UdpRelay<O> {
    /// Ends the relay and returns the observer, and why the relay ended by itself if it did. Nothing if it panicked.
    #[must_use]
    pub fn finish(mut self) -> Option<(O, Option<String>)> {
        self.end()
    }

    fn end(&mut self) -> Option<(O, Option<String>)> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().and_then(|thread| thread.join().ok())
    }
}

impl<O> Drop for UdpRelay<O> {
    fn drop(&mut self) {
        self.end();
    }
}

struct Worker<O> {
    clock: Clock,
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
    up: Lane,
    down: Lane,
    due: DelayQueue<Travelling>,
    observer: O,
    batch: RecvBatch,
}

impl<O: Observer> Worker<O> {
    fn new(bound: Bound, servers: Vec<SocketAddr>, options: Options, observer: O) -> Worker<O> {
        let Options { link, up, down, nat, seed } = options;
        let mut rng = SeededRng::new(seed);
        let mut lane =
            |settings| Lane::new(Link::new(link.clone(), SeededRng::new(rng.next_u64())), settings);
        Worker {
            clock: Clock::start(),
            fronts: bound.fronts,
            servers,
            ip: bound.ip,
            version: bound.ip.into(),
            nat: Nat::new(nat),
            backs: BTreeMap::new(),
            homes: BTreeMap::new(),
            up: lane(up),
            down: lane(down),
            due: DelayQueue::new(),
            observer,
            batch: RecvBatch::new(16, 1 << 16),
        }
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
        let left = match self.due.next() {
            Some(at) => at.saturating_since(self.clock.now()).as_micros().div_ceil(1000).min(u128::from(NAP)),
            None => u128::from(NAP),
        };
        let left = u16::try_from(left).unwrap_or(NAP);
        poll(&mut polled, PollTimeout::from(left)).map_err(|error| error.to_string())?;
        Ok(())
    }

    fn receive_from_clients(&mut self, front: usize) -> Result<(), String> {
        let Some(socket) = self.fronts.get_mut(front) else { return Ok(()) };
        for (client, ecn, data) in received(socket.as_mut(), &mut self.batch)? {
            let (now, may) = (self.clock.now(), self.observer.may_be_damaged(&data));
            let arrival = self.up.pass(now, data.len(), self.version, may);
            let passing = Passing { way: Way::Up, front, client, ecn, data: &data };
            if !self.show(End::Client, passing) {
                break;
            }
            self.send_off(arrival, Travelling { way: Way::Up, path: Path { front, client }, ecn, data });
        }
        Ok(())
    }

    fn receive_from_server(&mut self, outside: Path) -> Result<(), String> {
        let Some(back) = self.backs.get_mut(&outside) else { return Ok(()) };
        for (_, ecn, data) in received(back.as_mut(), &mut self.batch)? {
            let (now, may) = (self.clock.now(), self.observer.may_be_damaged(&data));
            let arrival = self.down.pass(now, data.len(), self.version, may);
            let Path { front, client } = outside;
            if !self.show(End::Server, Passing { way: Way::Down, front, client, ecn, data: &data }) {
                break;
            }
            if let Some(client) = self.nat.inbound(now, outside.client) {
                let path = Path { client, ..outside };
                self.send_off(arrival, Travelling { way: Way::Down, path, ecn, data });
            }
        }
        Ok(())
    }

    fn send_off(&mut self, arrival: Option<Arrival>, mut datagram: Travelling) {
        let Some(Arrival { at, corruption }) = arrival else { return };
        if let Some(corruption) = corruption {
            corruption.apply(&mut datagram.data);
        }
        self.due.push(at, datagram);
    }

    fn deliver(&mut self) -> Result<(), String> {
        let now = self.clock.now();
        while let Some((_, Travelling { way, path, ecn, data })) = self.due.pop(now) {
            let Path { front, client } = path;
            match way {
                Way::Up => {
                    let outside = self.nat.outbound(now, client);
                    let passing = Passing { way, front, client: outside, ecn, data: &data };
                    self.show(End::Server, passing);
                    let Some(server) = self.servers.get(front).copied() else { continue };
                    let back = self.back(Path { client: outside, front }, client.ip())?;
                    send(back.as_mut(), server, ecn, &data)?;
                }
                Way::Down => {
                    self.show(End::Client, Passing { way, front, client, ecn, data: &data });
                    if let Some(socket) = self.fronts.get_mut(front) {
                        send(socket.as_mut(), client, ecn, &data)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn show(&mut self, end: End, passing: Passing<'_>) -> bool {
        let at = self.clock.now().saturating_since(Time::ZERO);
        self.observer.on_datagram(at, end, passing)
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
    let meta = SendMeta { socket: socket.id(), local: None, remote, ecn, dscp: 0, release: None };
    batch.commit(data.len(), data.len(), meta);
    socket.send(&batch, &mut Progress::default()).map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What passed where.
    #[derive(Debug, Default)]
    struct Seen(Vec<(End, Way, usize)>);

    impl Observer for Seen {
        fn on_datagram(&mut self, _at: Duration, end: End, passing: Passing<'_>) -> bool {
            self.0.push((end, passing.way, passing.front));
            true
        }
    }

    const SOON: Duration = Duration::from_secs(20);

    /// Waits for so many datagrams.
    fn arrivals(socket: &mut dyn Datapath, count: usize) -> Vec<(SocketAddr, Ecn, Vec<u8>)> {
        let (clock, mut batch, mut all) = (Clock::start(), RecvBatch::new(4, 2048), Vec::new());
        while all.len() < count {
            all.extend(received(socket, &mut batch).unwrap());
            assert!(clock.now() < Time::ZERO + SOON, "nothing came");
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
        let relay = bound.run(vec![server.local_addr(); 2], Options::default(), Seen::default());
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
        let (seen, failed) = relay.finish().unwrap();
        let at = |end| seen.0.iter().filter(|(seen, ..)| *seen == end).count();
        assert_eq!((at(End::Client), at(End::Server), failed), (4, 4, None));
        let up = seen.0.iter().filter(|(end, way, _)| (*end, *way) == (End::Client, Way::Up));
        assert_eq!(up.map(|(.., front)| *front).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn the_first_datagrams_are_lost_as_listed() {
        let (mut client, mut server) = (local(), local());
        let bound = bound(Ipv4Addr::LOCALHOST.into(), 1).unwrap();
        let front = bound.addresses()[0];
        let mut options = Options::default();
        options.up.lost = vec![2, 3];
        let relay = bound.run(vec![server.local_addr()], options, Seen::default());
        for number in 1..=4_u8 {
            send(client.as_mut(), front, Ecn::NotEct, &[number]).unwrap();
        }
        let arrived: Vec<_> = arrivals(server.as_mut(), 2).into_iter().map(|(.., data)| data).collect();
        assert_eq!(arrived, [[1], [4]]);
        let seen = relay.finish().unwrap().0;
        assert_eq!(seen.0.iter().filter(|(end, ..)| *end == End::Client).count(), 4);
    }
}
