//! The wires between the hosts, and the packets on them.
//!
//! Every wire joins a client to a server and has a [`Duplex`] link with the address translation at the
//! client's end. What arrives in order waits in a plain queue; only what overtakes or is overtaken goes
//! through a heap. Packets that arrive at the same instant on one wire keep the order in which they were sent.
//!
//! Wires can share a bottleneck: a link that the packets of all of them pass, in order of sending, before each goes on
//! over the link of its own wire. Round-trip times can thus differ, and still a packet is one event.

mod flight;
mod payload;

pub use crate::names::{HostId, SharedId, WireId};
use crate::trace::{Fate, LogEntry, Trace};
use flight::Flight;
pub use flight::Packet;
use godwit_base::timer_queue::TimerQueue;
use godwit_base::{Ecn, SendMeta, SocketId, Time};
use godwit_link::{DropReason, Duplex, DuplexConfig, IpVersion, Outcome, Translation};
use payload::Payload;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Buffers kept for reuse.
const POOL: usize = 4096;

#[derive(Debug)]
struct Wire {
    client: HostId,
    server: HostId,
    duplex: Duplex,
    /// What its packets pass first.
    shared: Option<SharedId>,
    flights: [Flight; 2],
}

/// The two directions of a wire: which of its flights, and the low bit of its timers.
const UP: usize = 0;
const DOWN: usize = 1;

impl Wire {
    /// The next packet that has arrived, with its destination as its receiver sees it; `Some(None)` is one that the
    /// translator drops.
    fn pop(&mut self, direction: usize, now: Time) -> Option<Option<Packet>> {
        let packet = self.flight(direction).pop(now)?;
        if direction == UP {
            return Some(Some(packet));
        }
        let inside = self.duplex.nat.inbound(now, packet.destination);
        Some(inside.map(|destination| Packet { destination, ..packet }))
    }

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
    shared: Vec<Duplex>,
    /// Who reaches which address over which wire: for a client the server's, for a server the
    /// addresses under which its clients have been seen.
    routes: BTreeMap<(HostId, SocketAddr), WireId>,
    /// The way of each host's last packet, most likely also that of its next; forgotten when a route changes.
    last_ways: Vec<Option<Way>>,
    /// How long a host that has been given packets is left alone, and until when each host is.
    rest: Duration,
    resting: Vec<Time>,
    /// Who has been given packets; empty between calls.
    had_packets: Vec<HostId>,
    timers: TimerQueue<u32>,
    pool: Vec<Vec<u8>>,
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
        self.resting.push(Time::ZERO);
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
        self.wires.push(Wire { client, server, duplex, shared: None, flights: Default::default() });
        Some(id)
    }

    /// A link for wires to share. What matters of it are loss, rate, queue and marks: its packets go on in order, and what
    /// becomes of them beyond is up to the wires' own links.
    pub fn add_shared_link(&mut self, config: DuplexConfig, seed: u64) -> SharedId {
        self.shared.push(Duplex::new(config, seed));
        SharedId(self.shared.len() as u32 - 1)
    }

    /// The packets of `wire` pass this link from now on, before the wire's own.
    pub fn share(&mut self, wire: WireId, link: SharedId) {
        if let Some(wire) = self.wires.get_mut(wire.0 as usize) {
            wire.shared = Some(link);
        }
    }

    /// A link that wires share: for its counters, or to change it.
    pub fn shared_link(&mut self, link: SharedId) -> Option<&mut Duplex> {
        self.shared.get_mut(link.0 as usize)
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
        let (len, ip) = (bytes.len(), IpVersion::from(way.remote.ip()));
        let shared = wire.shared.and_then(|id| self.shared.get_mut(id.0 as usize));
        let outcome = match shared.map(|shared| if way.up { &mut shared.up } else { &mut shared.down }) {
            None => link.send_marked(now, len, ip, ecn),
            Some(shared) => match shared.send_marked(now, len, ip, ecn) {
                Outcome::Delivered { first, .. } => link.send_marked(first.at, len, ip, first.ecn),
                dropped => dropped,
            },
        };
        for delivery in outcome.deliveries() {
            let mut payload = Payload::new(bytes, || self.pool.pop().unwrap_or_default());
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
                let rested = self.resting.get(way.to.0 as usize).copied().unwrap_or_default();
                self.timers.set(timer(way.wire, direction), Some(delivery.at.max(rested)));
            }
        }
        outcome
    }

    /// Lets hosts look for packets at most every so often, as network cards do that raise no interrupt soon after
    /// another. What arrives meanwhile is handed over together. Zero, the default, hands over each packet at once.
    pub const fn set_rest(&mut self, rest: Duration) {
        self.rest = rest;
    }

    /// When the next packet is handed over.
    pub fn next_arrival(&mut self) -> Option<Time> {
        self.timers.next_deadline()
    }

    /// Hands over every packet that has arrived by `now` with its receiver, unless that rests.
    pub fn deliver(&mut self, now: Time, mut to: impl FnMut(HostId, Packet)) {
        while let Some(timer) = self.timers.pop_expired(now) {
            let (index, direction) = ((timer / 2) as usize, (timer % 2) as usize);
            let Some(wire) = self.wires.get(index) else { continue };
            let host = if direction == UP { wire.server } else { wire.client };
            let rested = self.resting.get(host.0 as usize).copied().unwrap_or_default();
            if rested > now {
                self.timers.set(timer, Some(rested));
                continue;
            }
            while let Some(packet) = self.wires.get_mut(index).and_then(|wire| wire.pop(direction, now)) {
                match packet {
                    Some(packet) => {
                        let socket = self.socket_at(host, packet.destination);
                        to(host, Packet { socket, ..packet });
                    }
                    None => self.counters.untranslatable += 1,
                }
            }
            if let Some(next) = self.wires.get_mut(index).and_then(|wire| wire.flight(direction).next()) {
                self.timers.set(timer, Some(next.max(now + self.rest)));
            }
            self.had_packets.push(host);
        }
        for host in self.had_packets.drain(..) {
            if let Some(resting) = self.resting.get_mut(host.0 as usize) {
                *resting = now + self.rest;
            }
        }
    }

    /// Takes back the buffer of a packet that has been dealt with.
    pub fn recycle(&mut self, packet: Packet) {
        if let Payload::All(bytes) = packet.payload
            && self.pool.len() < POOL
        {
            self.pool.push(bytes);
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
mod tests;
