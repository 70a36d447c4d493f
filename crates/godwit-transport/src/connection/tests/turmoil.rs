//! Everything at once: loss, reordering, copies, marks, forged addresses, a NAT that forgets, a client that moves,
//! key updates, streams that end in every way. Whatever happens, the connection lives, every byte of a stream that
//! is not given up arrives, nobody is sent more than he may be, and nobody is busy with nothing.

use super::*;
use crate::connection::boundary::Transmitted;
use godwit_wire::header;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

const SERVER: ([u8; 4], u16) = ([10, 0, 0, 2], 443);

#[derive(Debug, Clone)]
struct Flying {
    to_server: bool,
    remote: SocketAddr,
    local: IpAddr,
    socket: SocketId,
    ecn: Ecn,
    bytes: Vec<u8>,
}

/// What came from an address and what went there before it was proved.
#[derive(Debug, Default, Clone, Copy)]
struct Book {
    received: usize,
    sent: usize,
}

struct World {
    now: Time,
    client: Connection,
    server: Connection,
    rng: SeededRng,
    flying: BTreeMap<(Time, u64), Flying>,
    number: u64,
    /// Added to the client's ports: a NAT that has forgotten its mappings.
    rebindings: u16,
    books: BTreeMap<SocketAddr, Book>,
    cids: u64,
    loss: u64,
    /// Packets are plaintext: nobody would notice that one was altered, so none is.
    unencrypted: bool,
    read: BTreeMap<(bool, StreamId), u64>,
    ended: BTreeSet<(bool, StreamId)>,
    /// The streams that must arrive, by who opened them.
    whole: BTreeMap<(bool, StreamId), u64>,
    unwritten: Vec<(bool, StreamId, u64, u64)>,
    datagrams: u64,
}

fn byte_at(id: StreamId, offset: u64) -> u8 {
    (offset.wrapping_mul(31) ^ offset >> 8 ^ id.as_u64() << 3) as u8
}

impl World {
    fn new(seed: u64, unencrypted: bool) -> Self {
        let mut rng = SeededRng::new(seed);
        let transport = TransportConfig {
            key_update_after: Some(20 + rng.below(200)),
            keep_alive: (rng.below(2) == 0).then_some(Duration::from_secs(1)),
            max_idle_timeout: Duration::from_secs(600),
            active_cid_limit: 2 + rng.below(4),
            ack_frequency: rng.below(4) > 0,
            grease_quic_bit: rng.below(2) == 0,
            danger_without_encryption: unencrypted,
            ..TransportConfig::default()
        };
        let pair = Pair::new(transport);
        World {
            now: pair.now,
            client: pair.client,
            server: pair.server,
            loss: rng.below(8),
            unencrypted,
            rng,
            flying: BTreeMap::new(),
            number: 0,
            rebindings: 0,
            books: BTreeMap::new(),
            cids: 1 << 32,
            read: BTreeMap::new(),
            ended: BTreeSet::new(),
            whole: BTreeMap::new(),
            unwritten: Vec::new(),
            datagrams: 0,
        }
    }

    fn end(&mut self, is_client: bool) -> &mut Connection {
        if is_client { &mut self.client } else { &mut self.server }
    }

    /// What an end wants to send leaves.
    fn leave(&mut self, is_client: bool) {
        let mut batch = SendBatch::new(1 << 20);
        let (now, mut rng) = (self.now, self.rng.clone());
        for turn in 0.. {
            assert!(turn < 1000, "it never stops sending");
            if self.end(is_client).machine.transmit(now, &mut batch, &mut rng) == Transmitted::Idle {
                break;
            }
        }
        self.rng = rng;
        for (meta, datagram) in batch.datagrams() {
            let flying = if is_client {
                let local = meta.local.unwrap_or(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)));
                let port = 1 + meta.socket.0 as u16 + 100 * self.rebindings;
                Flying {
                    to_server: true,
                    remote: SocketAddr::new(local, port),
                    local: meta.remote.ip(),
                    socket: SocketId(0),
                    ecn: meta.ecn,
                    bytes: datagram.to_vec(),
                }
            } else {
                self.check_credit(meta.remote, datagram.len());
                let socket = (meta.remote.port() - 1) % 100;
                let nat = (meta.remote.port() - 1) / 100;
                if nat != self.rebindings && self.rng.below(2) == 0 {
                    continue;
                }
                Flying {
                    to_server: false,
                    remote: SERVER.into(),
                    local: meta.remote.ip(),
                    socket: SocketId(socket.into()),
                    ecn: meta.ecn,
                    bytes: datagram.to_vec(),
                }
            };
            self.fly(flying);
        }
    }

    /// Nobody is sent more than three times what came from his address before he has proved to be there.
    fn check_credit(&mut self, remote: SocketAddr, len: usize) {
        let proved = self.server.paths().any(|path| path.key.remote == remote && path.validated);
        let book = self.books.entry(remote).or_default();
        if proved {
            *book = Book { received: usize::MAX / 4, sent: 0 };
        } else {
            book.sent += len;
        }
        assert!(book.sent <= 3 * book.received, "{} bytes to {remote} for {}", book.sent, book.received);
    }

    fn fly(&mut self, mut flying: Flying) {
        if flying.ecn == Ecn::Ect0 && self.rng.below(30) == 0 {
            flying.ecn = Ecn::Ce;
        }
        let copies = if self.rng.below(30) == 0 { 2 } else { 1 };
        for _ in 0..copies {
            if self.rng.below(100) < self.loss {
                continue;
            }
            let late =
                if self.rng.below(20) == 0 { self.rng.below(60_000_000) } else { self.rng.below(1_000_000) };
            let mut flying = flying.clone();
            if self.rng.below(100) == 0 && !self.unencrypted {
                let at = self.rng.below(flying.bytes.len() as u64) as usize;
                flying.bytes[at] ^= 1 << self.rng.below(8);
            }
            if flying.to_server && self.rng.below(200) == 0 {
                // Somebody on the path sends it from elsewhere.
                flying.remote = SocketAddr::new(Ipv4Addr::new(10, 9, 9, self.rng.below(4) as u8).into(), 1);
            }
            self.number += 1;
            self.flying.insert((self.now + Duration::from_nanos(10_000_000 + late), self.number), flying);
        }
    }

    fn arrive(&mut self) {
        let Some(((at, _), mut flying)) = self.flying.pop_first() else { return };
        self.now = self.now.max(at);
        if flying.to_server {
            let book = self.books.entry(flying.remote).or_default();
            book.received = book.received.saturating_add(flying.bytes.len()).min(usize::MAX / 4);
        }
        let key = PathKey { socket: flying.socket, local: Some(flying.local), remote: flying.remote };
        let now = self.now;
        let end = self.end(!flying.to_server);
        if header::peek_dcid(&flying.bytes, 8).is_some() {
            end.machine.receive(now, key, flying.ecn, &mut flying.bytes);
        }
        end.machine.on_batch_end(now);
    }

    /// One thing an application or an operator may do.
    fn act(&mut self) {
        let is_client = self.rng.below(2) == 0;
        let choice = self.rng.below(200);
        let now = self.now;
        match choice {
            0..8 => {
                let both = self.rng.below(2) == 0;
                let direction = if both { Direction::Bidirectional } else { Direction::Unidirectional };
                let len = self.rng.below(60_000);
                let Some(id) = self.end(is_client).open(direction) else { return };
                self.whole.insert((is_client, id), len);
                self.unwritten.push((is_client, id, 0, len));
            }
            8..10 => {
                let some: Vec<_> = self.whole.keys().filter(|(who, _)| *who == is_client).copied().collect();
                if some.is_empty() {
                    return;
                }
                let key = some[self.rng.below(some.len() as u64) as usize];
                let reliable = self.rng.below(20_000);
                self.whole.remove(&key);
                self.unwritten.retain(|(who, id, ..)| (*who, *id) != key);
                match self.rng.below(2) {
                    0 => drop(self.end(is_client).reset(key.1, 7)),
                    _ => drop(self.end(is_client).reset_at(key.1, 7, reliable)),
                }
            }
            10..12 => {
                let (socket, host) = (self.rng.below(3) as u32, self.rng.below(3) as u8);
                let local = Some(IpAddr::V4(Ipv4Addr::new(10, 0, 1, host)));
                let _ = self.client.migrate(now, SocketId(socket), local);
            }
            12 => self.rebindings = (self.rebindings + 1) % 50,
            13..16 => {
                let len = self.rng.below(1100) as usize;
                let tag = Some(self.datagrams);
                self.datagrams += 1;
                let _ = self.end(is_client).send_datagram(Bytes::from(vec![1; len]), tag);
            }
            16 => self.end(is_client).ping(),
            17 => {
                let percent = self.rng.below(101) as u8;
                self.end(is_client).set_datagram_share(percent);
            }
            _ => {}
        }
    }

    fn write_and_read(&mut self) {
        let now = self.now;
        let mut unwritten = std::mem::take(&mut self.unwritten);
        unwritten.retain_mut(|(is_client, id, at, len)| {
            let end = self.end(*is_client);
            let most = (*len - *at).min(7_000);
            let data: Vec<u8> = (*at..*at + most).map(|offset| byte_at(*id, offset)).collect();
            *at += end.write(*id, data.into()).unwrap() as u64;
            if at == len {
                end.finish(*id).unwrap();
            }
            at != len
        });
        self.unwritten = unwritten;
        for is_client in [true, false] {
            while let Some(event) = self.end(is_client).next_event() {
                if let Event::Closed { reason } = event {
                    let who = if is_client { "client" } else { "server" };
                    for end in [&self.client, &self.server] {
                        println!("{:?}: {:#?}", end.side(), end.paths().collect::<Vec<_>>());
                        println!("{:#?}", end.machine.parts.remote_cids);
                        println!("{:#?}", end.stats());
                    }
                    panic!("{who}: {reason:?}, rebindings {}", self.rebindings);
                }
            }
            self.give_cids(is_client);
            let end = self.end(is_client);
            while end.read_datagram().is_some() {}
            while end.next_datagram_outcome().is_some() {}
            for direction in [Direction::Bidirectional, Direction::Unidirectional] {
                while let Some(id) = self.end(is_client).accept(direction) {
                    self.read.insert((is_client, id), 0);
                    if direction == Direction::Bidirectional {
                        self.end(is_client).finish(id).unwrap();
                    }
                }
            }
            let open: Vec<_> = self.read.keys().filter(|(who, _)| *who == is_client).copied().collect();
            for key in open {
                loop {
                    match self.end(is_client).read(now, key.1, 4000) {
                        Ok(ReadChunk::Data(data)) => {
                            let at = self.read.get_mut(&key).unwrap();
                            let fine = data.iter().zip(*at..).all(|(byte, at)| *byte == byte_at(key.1, at));
                            assert!(fine, "{:?}", key.1);
                            *at += data.len() as u64;
                        }
                        Ok(ReadChunk::Blocked) => break,
                        Ok(ReadChunk::Finished) => {
                            self.ended.insert((is_client, key.1));
                            self.read.remove(&key).unwrap();
                            break;
                        }
                        Err(_) => {
                            self.read.remove(&key);
                            break;
                        }
                    }
                }
            }
        }
    }

    fn give_cids(&mut self, is_client: bool) {
        while let Some(event) = self.end(is_client).machine.next_endpoint_event() {
            let EndpointEvent::NeedCids(count) = event else { continue };
            for _ in 0..count {
                self.cids += 1;
                let bytes = self.cids.to_be_bytes();
                let mut token = [0; 16];
                token[..8].copy_from_slice(&bytes);
                self.end(is_client)
                    .machine
                    .add_local_cid(ConnectionId::new(&bytes).unwrap(), ResetToken(token));
            }
        }
    }

    fn deadline(&self) -> Option<Time> {
        [self.client.deadline(), self.server.deadline()].into_iter().flatten().min()
    }

    fn step(&mut self, turmoil: bool) {
        if turmoil {
            self.act();
        }
        self.write_and_read();
        for is_client in [true, false] {
            self.leave(is_client);
        }
        let flying = self.flying.first_key_value().map(|((at, _), _)| *at);
        match (flying, self.deadline()) {
            (Some(at), Some(deadline)) if at <= deadline => self.arrive(),
            (Some(_), None) => self.arrive(),
            // Nothing for a long time: nobody waits for the idle timeout.
            (_, Some(deadline)) if deadline > self.now + Duration::from_secs(5) => {
                self.now += Duration::from_millis(self.rng.below(3000));
            }
            (_, Some(deadline)) => {
                self.now = self.now.max(deadline);
                for idle in 0.. {
                    assert!(idle < 20, "busy with nothing: {:?} at {:?}", self.deadline(), self.now);
                    for is_client in [true, false] {
                        let now = self.now;
                        self.end(is_client).on_timeout(now);
                        self.leave(is_client);
                    }
                    if self.deadline().is_none_or(|deadline| deadline > self.now) {
                        break;
                    }
                }
            }
            (None, None) => {}
        }
    }

    fn is_done(&self) -> bool {
        self.unwritten.is_empty() && self.whole.keys().all(|(who, id)| self.ended.contains(&(!who, *id)))
    }
}

#[test]
fn a_connection_survives_everything_at_once() {
    survive(false);
}

#[test]
fn without_encryption_it_survives_all_but_altered_packets() {
    survive(true);
}

fn survive(unencrypted: bool) {
    // GODWIT_SEED: only this one. GODWIT_FULL: so many times as many.
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let seeds =
        number("GODWIT_SEED").map_or(0..3 * number("GODWIT_FULL").unwrap_or(1), |seed| seed..seed + 1);
    for seed in seeds {
        println!("seed {seed}");
        let mut world = World::new(seed, unencrypted);
        for _ in 0..100 {
            world.step(false);
        }
        for _ in 0..5000 {
            world.step(true);
        }
        assert_eq!(
            (world.client.is_unencrypted(), world.server.is_unencrypted()),
            (unencrypted, unencrypted)
        );
        let calm_since = world.now;
        world.loss = 0;
        for _ in 0..20_000 {
            if world.is_done() {
                break;
            }
            world.step(false);
        }
        assert!(
            world.is_done(),
            "seed {seed}: {:?} since {calm_since:?}, now {:?}: {:?}",
            world.unwritten,
            world.now,
            world.whole.keys().filter(|(who, id)| !world.ended.contains(&(!who, *id))).collect::<Vec<_>>()
        );
    }
}
