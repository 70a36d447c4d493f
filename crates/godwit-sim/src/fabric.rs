//! The wires between the hosts, and the packets on them.
//!
//! Every wire joins a client to a server and has a [`Duplex`] link with the address translation at the
//! client's end. What arrives in order waits in a plain queue; only what overtakes or is overtaken goes
//! through a heap. Packets that arrive at the same instant on one wire keep the order in which they were sent.

pub use crate::names::{HostId, WireId};
use crate::payload::Payload;
use crate::trace::{Fate, LogEntry, Trace};
use godwit_base::timer_queue::TimerQueue;
use godwit_base::{Ecn, SendMeta, SocketId, Time};
use godwit_link::{DropReason, Duplex, DuplexConfig, IpVersion, Outcome, Translation};
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::net::SocketAddr;

/// Buffers kept for reuse.
const POOL: usize = 4096;

/// A packet on its way, or arrived.
#[derive(Debug)]
pub struct Packet {
    /// When it arrives.
    pub at: Time,
    /// The source address that its receiver sees.
    pub source: SocketAddr,
    /// The ECN codepoint with which it arrives.
    pub ecn: Ecn,
    /// The receiver's socket, once it has arrived.
    pub socket: SocketId,
    payload: Payload,
    /// The destination as its sender sees it.
    destination: SocketAddr,
    /// Later packets have higher numbers; settles who comes first at the same instant.
    sequence: u64,
}

impl Packet {
    /// Bytes of UDP payload.
    pub const fn size(&self) -> usize {
        self.payload.len()
    }

    /// Writes the UDP payload into `room`, which is as long as it is.
    pub fn copy_to(&self, room: &mut [u8]) {
        self.payload.copy_to(room);
    }

    fn key(&self) -> (Time, u64) {
        (self.at, self.sequence)
    }
}

impl PartialEq for Packet {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Packet {}

impl PartialOrd for Packet {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Packet {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// The packets on one direction of a wire.
#[derive(Debug, Default)]
struct Flight {
    in_order: VecDeque<Packet>,
    others: BinaryHeap<Reverse<Packet>>,
}

impl Flight {
    /// Answers whether the packet arrives before all others.
    fn push(&mut self, in_order: bool, packet: Packet) -> bool {
        let first = self.next().is_none_or(|next| packet.at < next);
        if in_order {
            self.in_order.push_back(packet);
        } else {
            self.others.push(Reverse(packet));
        }
        first
    }

    fn next(&self) -> Option<Time> {
        let plain = self.in_order.front().map(|packet| packet.at);
        let other = self.others.peek().map(|Reverse(packet)| packet.at);
        match (plain, other) {
            (Some(plain), Some(other)) => Some(plain.min(other)),
            (plain, other) => plain.or(other),
        }
    }

    fn pop(&mut self, now: Time) -> Option<Packet> {
        if self.others.is_empty() {
            return self.in_order.pop_front_if(|packet| packet.at <= now);
        }
        let plain = self.in_order.front().map(Packet::key);
        let other = self.others.peek().map(|Reverse(packet)| packet.key());
        let from_plain = match (plain, other) {
            (Some(plain), Some(other)) => plain < other,
            (plain, _) => plain.is_some(),
        };
        if from_plain {
            self.in_order.pop_front_if(|packet| packet.at <= now)
        } else {
            other.filter(|(at, _)| *at <= now).and_then(|_| self.others.pop().map(|Reverse(packet)| packet))
        }
    }
}

#[derive(Debug)]
struct Wire {
    client: HostId,
    server: HostId,
    duplex: Duplex,
    flights: [Flight; 2],
}

/// The two directions of a wire: which of its flights, and the low bit of its timers.
const UP: usize = 0;
const DOWN: usize = 1;

impl Wire {
    fn flight(&mut self, direction: usize) -> &mut Flight {
        let [up, down] = &mut self.flights;
        if direction == UP { up } else { down }
    }
}

/// The way of a host's packets from one of its sockets to one address.
#[derive(Debug, Clone, Copy)]
struct Way {
    socket: SocketId,
    remote: SocketAddr,
    wire: WireId,
    up: bool,
    to: HostId,
    /// The sender's address, as it sees itself.
    source: SocketAddr,
}

/// A packet that a filter may look at, change or take out before it enters its link.
#[derive(Debug)]
pub struct Filtered<'a> {
    /// When it is sent.
    pub now: Time,
    /// Who sends it.
    pub from: HostId,
    /// Who is to get it.
    pub to: HostId,
    /// The socket that it leaves.
    pub socket: SocketId,
    /// The address to which it goes.
    pub remote: SocketAddr,
    /// The UDP payload.
    pub bytes: &'a mut Vec<u8>,
}

/// Looks at every packet in order of sending; answers whether it may pass.
pub type Filter = Box<dyn FnMut(Filtered<'_>) -> bool>;

/// Packets that came to nothing outside the links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FabricCounters {
    /// Nobody had the destination address.
    pub unroutable: u64,
    /// A filter took them out.
    pub filtered: u64,
    /// They came for an address that the translator had forgotten.
    pub untranslatable: u64,
}

/// All wires of a network.
#[derive(Default)]
pub struct Fabric {
    /// The addresses of each host's sockets, by their numbers.
    addresses: Vec<Vec<SocketAddr>>,
    /// Wires that clients' further sockets are plugged into.
    plugs: BTreeMap<(HostId, SocketId), WireId>,
    wires: Vec<Wire>,
    /// Who reaches which address over which wire: for a client the server's, for a server the
    /// addresses under which its clients have been seen.
    routes: BTreeMap<(HostId, SocketAddr), WireId>,
    /// The way of each host's last packet, most likely also that of its next; forgotten when a route changes.
    last_ways: Vec<Option<Way>>,
    timers: TimerQueue<u32>,
    pool: Vec<Payload>,
    sequence: u64,
    filter: Option<Filter>,
    trace: Trace,
    counters: FabricCounters,
}

impl std::fmt::Debug for Fabric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fabric").field("wires", &self.wires.len()).finish_non_exhaustive()
    }
}

impl Fabric {
    /// A host at this address.
    pub fn add_host(&mut self, address: SocketAddr) -> HostId {
        self.addresses.push(vec![address]);
        HostId(self.addresses.len() as u32 - 1)
    }

    /// The address of a host, as it sees itself.
    pub fn address(&self, host: HostId) -> Option<SocketAddr> {
        self.socket_address(host, SocketId(0))
    }

    /// The address of one of a host's sockets, as it sees itself.
    pub fn socket_address(&self, host: HostId, socket: SocketId) -> Option<SocketAddr> {
        self.addresses.get(host.0 as usize)?.get(socket.0 as usize).copied()
    }

    /// Gives a host another socket. A client's is plugged into `wire`; a server's can be reached over every wire
    /// that leads to it. `None` if there is no such host.
    pub fn add_socket(&mut self, host: HostId, address: SocketAddr, wire: WireId) -> Option<SocketId> {
        let sockets = self.addresses.get_mut(host.0 as usize)?;
        let socket = SocketId(sockets.len() as u32);
        sockets.push(address);
        for (id, joined) in self.wires.iter().enumerate() {
            let id = WireId(id as u32);
            if joined.server == host {
                self.routes.insert((joined.client, address), id);
            } else if id == wire && joined.client == host {
                self.plugs.insert((host, socket), id);
                self.routes.insert((joined.server, address), id);
            }
        }
        self.last_ways.clear();
        Some(socket)
    }

    fn socket_at(&self, host: HostId, address: SocketAddr) -> SocketId {
        let sockets = self.addresses.get(host.0 as usize);
        let at = sockets.and_then(|sockets| sockets.iter().position(|known| *known == address));
        SocketId(at.unwrap_or(0) as u32)
    }

    /// Joins two hosts. `None` if there is no such host.
    pub fn add_wire(
        &mut self,
        client: HostId,
        server: HostId,
        config: DuplexConfig,
        seed: u64,
    ) -> Option<WireId> {
        let id = WireId(self.wires.len() as u32);
        // Of two wires between the same hosts the first serves what is not plugged into the other.
        let (to_server, to_client) = ((client, self.address(server)?), (server, self.address(client)?));
        self.routes.entry(to_server).or_insert(id);
        self.routes.entry(to_client).or_insert(id);
        self.last_ways.clear();
        let duplex = Duplex::new(config, seed);
        self.wires.push(Wire { client, server, duplex, flights: Default::default() });
        Some(id)
    }

    /// The way of a packet, if anybody has its destination address.
    fn way(&mut self, from: HostId, meta: &SendMeta) -> Option<Way> {
        let known = self.last_ways.get(from.0 as usize).copied().flatten();
        let alike = |way: &Way| (way.socket, way.remote) == (meta.socket, meta.remote);
        if let Some(way) = known.filter(alike) {
            return Some(way);
        }
        let plug = self.plugs.get(&(from, meta.socket));
        let id = *plug.or_else(|| self.routes.get(&(from, meta.remote)))?;
        let wire = self.wires.get(id.0 as usize)?;
        let up = wire.client == from;
        let way = Way {
            socket: meta.socket,
            remote: meta.remote,
            wire: id,
            up,
            to: if up { wire.server } else { wire.client },
            source: self.socket_address(from, meta.socket)?,
        };
        if self.last_ways.len() < self.addresses.len() {
            self.last_ways.resize(self.addresses.len(), None);
        }
        if let Some(last) = self.last_ways.get_mut(from.0 as usize) {
            *last = Some(way);
        }
        Some(way)
    }

    /// Sends one packet.
    pub fn send(&mut self, now: Time, from: HostId, meta: &SendMeta, bytes: &[u8]) {
        let Some(way) = self.way(from, meta) else {
            self.trace.on_packet(now, from, None, meta.ecn, bytes);
            self.counters.unroutable += 1;
            self.note(now, (from, from), meta.remote, bytes, Fate::Unroutable);
            return;
        };
        self.trace.on_packet(now, from, Some(way.to), meta.ecn, bytes);
        let fate = match self.pass_filter(now, from, &way, bytes) {
            Some(None) => {
                self.counters.filtered += 1;
                Fate::Filtered
            }
            Some(Some(changed)) => self.enter(now, &way, meta.ecn, &changed).into(),
            None => self.enter(now, &way, meta.ecn, bytes).into(),
        };
        self.note(now, (from, way.to), meta.remote, bytes, fate);
    }

    /// What the filter makes of a packet: nothing, if there is none; otherwise what is left of it, which again may be
    /// nothing.
    fn pass_filter(&mut self, now: Time, from: HostId, way: &Way, bytes: &[u8]) -> Option<Option<Vec<u8>>> {
        let filter = self.filter.as_mut()?;
        let Way { socket, remote, to, .. } = *way;
        let mut bytes = bytes.to_vec();
        let passes = filter(Filtered { now, from, to, socket, remote, bytes: &mut bytes });
        Some(passes.then_some(bytes))
    }

    /// Translates the source, asks the link, and puts the packet and its copy on the wire.
    fn enter(&mut self, now: Time, way: &Way, ecn: Ecn, bytes: &[u8]) -> Outcome {
        let Some(wire) = self.wires.get_mut(way.wire.0 as usize) else {
            return Outcome::Dropped(DropReason::Loss);
        };
        let mut source = way.source;
        let (direction, link) = if way.up {
            source = wire.duplex.nat.outbound(now, way.source);
            if source != way.source && self.routes.insert((wire.server, source), way.wire) != Some(way.wire) {
                self.last_ways.clear();
            }
            (UP, &mut wire.duplex.up)
        } else {
            (DOWN, &mut wire.duplex.down)
        };
        let outcome = link.send_marked(now, bytes.len(), IpVersion::from(way.remote.ip()), ecn);
        for delivery in outcome.deliveries() {
            let mut payload = self.pool.pop().unwrap_or_default();
            payload.set(bytes);
            if let Some(corruption) = delivery.corruption {
                payload.change(|bytes| corruption.apply(bytes));
            }
            let packet = Packet {
                at: delivery.at,
                source,
                ecn: delivery.ecn,
                payload,
                socket: SocketId(0),
                destination: way.remote,
                sequence: self.sequence,
            };
            self.sequence += 1;
            if wire.flight(direction).push(delivery.in_order, packet) {
                self.timers.set(timer(way.wire, direction), Some(delivery.at));
            }
        }
        outcome
    }

    /// When the next packet arrives.
    pub fn next_arrival(&mut self) -> Option<Time> {
        self.timers.next_deadline()
    }

    /// Hands over every packet that has arrived by `now` with its receiver.
    pub fn deliver(&mut self, now: Time, mut to: impl FnMut(HostId, Packet)) {
        while let Some(timer) = self.timers.pop_expired(now) {
            let (index, direction) = ((timer / 2) as usize, (timer % 2) as usize);
            while let Some(wire) = self.wires.get_mut(index)
                && let Some(packet) = wire.flight(direction).pop(now)
            {
                let (host, inside) = match direction {
                    UP => (wire.server, Some(packet.destination)),
                    _ => (wire.client, wire.duplex.nat.inbound(now, packet.destination)),
                };
                match inside {
                    Some(address) => to(host, Packet { socket: self.socket_at(host, address), ..packet }),
                    None => self.counters.untranslatable += 1,
                }
            }
            let next = self.wires.get_mut(index).and_then(|wire| wire.flight(direction).next());
            self.timers.set(timer, next);
        }
    }

    /// Takes back the buffer of a packet that has been dealt with.
    pub fn recycle(&mut self, packet: Packet) {
        if self.pool.len() < POOL {
            self.pool.push(packet.payload);
        }
    }

    /// Shows every packet to `filter` before it enters its link.
    pub fn set_filter(&mut self, filter: Option<Filter>) {
        self.filter = filter;
    }

    /// The link of a wire: for its counters, or to change it.
    pub fn duplex(&mut self, wire: WireId) -> Option<&mut Duplex> {
        self.wires.get_mut(wire.0 as usize).map(|wire| &mut wire.duplex)
    }

    /// The translator of a wire forgets its mappings now.
    pub fn rebind(&mut self, wire: WireId, change: Translation) {
        if let Some(duplex) = self.duplex(wire) {
            duplex.nat.rebind(change);
        }
    }

    /// What was sent.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The trace, to switch its log on.
    pub fn trace_mut(&mut self) -> &mut Trace {
        &mut self.trace
    }

    /// Packets that came to nothing outside the links.
    pub fn counters(&self) -> FabricCounters {
        self.counters
    }

    fn note(
        &mut self,
        at: Time,
        (from, to): (HostId, HostId),
        remote: SocketAddr,
        payload: &[u8],
        fate: Fate,
    ) {
        if !self.trace.is_logging() {
            return;
        }
        let first_byte = payload.first().copied().unwrap_or(0);
        self.trace.on_fate(LogEntry { at, from, to, remote, len: payload.len(), first_byte, fate });
    }
}

fn timer(wire: WireId, direction: usize) -> u32 {
    wire.0 * 2 + direction as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use godwit_link::{Duplicate, LinkConfig, Probability, Reorder};
    use std::time::Duration;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn meta(remote: SocketAddr) -> SendMeta {
        SendMeta { socket: SocketId(0), local: None, remote, ecn: Ecn::Ect0, release: None }
    }

    struct Pair {
        fabric: Fabric,
        client: HostId,
        server: HostId,
        wire: WireId,
    }

    fn pair(link: LinkConfig) -> Pair {
        let mut fabric = Fabric::default();
        let client = fabric.add_host("10.0.0.2:5000".parse().unwrap());
        let server = fabric.add_host("10.0.0.1:443".parse().unwrap());
        let wire = fabric.add_wire(client, server, DuplexConfig::symmetric(link), 7).unwrap();
        Pair { fabric, client, server, wire }
    }

    impl Pair {
        fn send(&mut self, now: Time, from: HostId, to: SocketAddr, payload: &[u8]) {
            self.fabric.send(now, from, &meta(to), payload);
        }

        fn drain(&mut self) -> Vec<(HostId, Time, SocketAddr, Vec<u8>)> {
            let mut out = Vec::new();
            while let Some(now) = self.fabric.next_arrival() {
                self.fabric.deliver(now, |host, packet| {
                    let mut bytes = vec![0; packet.size()];
                    packet.copy_to(&mut bytes);
                    out.push((host, packet.at, packet.source, bytes));
                });
            }
            out
        }
    }

    #[test]
    fn packets_arrive_where_they_are_sent_in_order_of_time() {
        let mut link = LinkConfig::default();
        link.delay = Duration::from_millis(10);
        link.reorder = Some(Reorder { probability: Probability::new(0.3), extra: Duration::from_millis(4) });
        link.duplicate =
            Some(Duplicate { probability: Probability::new(0.2), after: Duration::from_millis(1) });
        let mut pair = pair(link);
        let (client, server) = (pair.client, pair.server);
        let (a, b) = (pair.fabric.address(client).unwrap(), pair.fabric.address(server).unwrap());
        for step in 0..200_u64 {
            pair.send(at(step), client, b, &[step as u8; 30]);
            pair.send(at(step), server, a, &[!step as u8; 40]);
        }
        let counters = *pair.fabric.duplex(pair.wire).unwrap().up.counters();
        let arrived = pair.drain();
        assert!(arrived.is_sorted_by_key(|(_, at, _, _)| *at));
        let at_server: Vec<_> = arrived.iter().filter(|(host, ..)| *host == server).collect();
        assert_eq!(at_server.len() as u64, 200 + counters.duplicated);
        assert!(counters.duplicated > 0 && counters.reordered > 0);
        for (_, arrival, source, bytes) in &at_server {
            assert_eq!((bytes.len(), *source), (30, a));
            let late = (*arrival - at(u64::from(bytes[0]))).as_millis();
            assert!([10, 11, 14, 15].contains(&late), "{late}");
        }
        // Whatever was sent came at least once.
        let seen: std::collections::BTreeSet<_> = at_server.iter().map(|(.., bytes)| bytes[0]).collect();
        assert_eq!(seen.len(), 200);
    }

    #[test]
    fn a_rebound_client_is_seen_elsewhere_and_its_old_address_is_dead() {
        let mut pair = pair(LinkConfig::delayed(Duration::from_millis(5)));
        let (client, server, wire) = (pair.client, pair.server, pair.wire);
        let (a, b) = (pair.fabric.address(client).unwrap(), pair.fabric.address(server).unwrap());
        pair.send(at(0), client, b, b"one");
        assert_eq!(pair.drain()[0].2, a);
        pair.fabric.rebind(wire, Translation::Port);
        pair.send(at(10), server, a, b"to the old address");
        assert!(pair.drain().is_empty());
        assert_eq!(pair.fabric.counters().untranslatable, 1);
        pair.send(at(20), client, b, b"two");
        let seen = pair.drain()[0].2;
        assert_ne!(seen, a);
        pair.send(at(30), server, seen, b"to the new address");
        assert_eq!(pair.drain()[0].0, client);
        pair.send(at(40), server, "1.2.3.4:5".parse().unwrap(), b"nobody");
        assert_eq!(pair.fabric.counters().unroutable, 1);
    }

    #[test]
    fn filters_change_and_take_out() {
        let mut pair = pair(LinkConfig::default());
        let (client, server) = (pair.client, pair.server);
        let b = pair.fabric.address(server).unwrap();
        pair.fabric.trace_mut().keep_log(2);
        pair.fabric.set_filter(Some(Box::new(|packet| {
            packet.bytes[0] += 1;
            packet.bytes[0] % 2 == 0
        })));
        for byte in 0..10 {
            pair.send(at(0), client, b, &[byte]);
        }
        let bytes: Vec<_> = pair.drain().iter().map(|(.., bytes)| bytes[0]).collect();
        assert_eq!(bytes, [2, 4, 6, 8, 10]);
        assert_eq!(pair.fabric.counters().filtered, 5);
        let log: Vec<_> = pair.fabric.trace().log().iter().map(|entry| entry.fate).collect();
        assert_eq!(log, [Fate::Filtered, Fate::Arrives(at(0))]);
        assert_eq!(pair.fabric.trace().packets(), 10);
    }

    #[test]
    fn same_seed_same_trace() {
        let run = || {
            let mut pair = pair(LinkConfig::delayed(Duration::from_millis(1)));
            let b = pair.fabric.address(pair.server).unwrap();
            for step in 0..50_u64 {
                pair.send(at(step), pair.client, b, &step.to_le_bytes());
            }
            pair.fabric.trace().hash()
        };
        assert_eq!(run(), run());
    }
}
