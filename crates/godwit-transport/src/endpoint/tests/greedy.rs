//! Clients that hold much for as little as it takes, beside honest ones.

use super::strangers::{abandoned, number};
use super::*;

fn is_close(datagram: &[u8]) -> bool {
    // An ACK alone is shorter than a close with a reason.
    matches!(header::parse(datagram, 8), Ok(Packet::Long { packet_type: PacketType::Initial, .. }))
        && datagram.len() > 60
}

/// A token of a Retry for this address.
fn token_for(rig: &mut Rig, from: &str, n: u64) -> (ConnectionId, Vec<u8>) {
    let hello = client_hello(1500);
    let first = Initial { dcid: number(n), ..Initial::new(1, &hello[..900]) }.seal();
    let answers = rig.receive_from(from, &first);
    retry_of(&answers[0].1)
}

/// One address with a token, which says as little as it can in as many bytes as it may.
struct Hoarder {
    from: &'static str,
    token: Vec<u8>,
    next: u64,
    /// Ids and how many pieces each has.
    begun: Vec<(ConnectionId, u64)>,
}

impl Hoarder {
    /// A quarter of the places is a network's.
    const SHARE: usize = 24;

    fn new(rig: &mut Rig, from: &'static str, number: u64) -> Self {
        let (_, token) = token_for(rig, from, number << 32);
        Hoarder { from, token, next: (number << 32) + (1 << 31), begun: Vec::new() }
    }

    /// One more piece of a hello, of one byte, for the handshake at this place. False if it is refused.
    fn piece(&mut self, rig: &mut Rig, at: usize, size: usize) -> bool {
        let hello = client_hello(1500);
        let (dcid, pieces) = &mut self.begun[at];
        let offset = *pieces;
        *pieces += 1;
        let piece = Initial {
            dcid: *dcid,
            number: offset,
            offset,
            token: &self.token,
            size,
            ..Initial::new(1, &hello[offset as usize..][..1])
        };
        let answers = rig.receive_from(self.from, &piece.seal());
        let refused = answers.iter().any(|(_, answer)| is_close(answer));
        if refused {
            self.begun.remove(at);
        }
        !refused
    }

    fn begin(&mut self, rig: &mut Rig) {
        self.begun.push((number(self.next), 0));
        self.next += 1;
        let at = self.begun.len() - 1;
        self.piece(rig, at, 1472);
    }

    fn place(&self) -> Option<usize> {
        (0..self.begun.len()).find(|at| self.begun[*at].1 < 20)
    }

    /// One more piece, or another beginning. The number of pieces that were lost, if there was no room. More beginnings than
    /// its share would only stand in the way of its own.
    fn more(&mut self, rig: &mut Rig, size: usize) -> Option<u64> {
        let Some(at) = self.place() else {
            if self.begun.len() >= Self::SHARE {
                return Some(0);
            }
            self.begin(rig);
            return None;
        };
        let pieces = self.begun[at].1;
        if self.piece(rig, at, size) { None } else { Some(pieces) }
    }

    /// Until nothing fits any more. Returns how many packets that took.
    fn fill(&mut self, rig: &mut Rig) -> u64 {
        let mut packets = 0;
        for size in [1472, 1200] {
            for _ in 0..500 {
                packets += 1;
                if let Some(lost) = self.more(rig, size) {
                    // What it had is lost, and fits elsewhere.
                    (0..lost).for_each(|_| {
                        let _ = self.more(rig, size);
                    });
                    packets += lost;
                    break;
                }
            }
        }
        packets
    }
}

#[test]
fn a_hello_in_two_parts_gets_in_whatever_others_hoard() {
    let mut rig = Rig::with(true, |config| config.max_incoming = 100);
    let mut hoarders = [("198.51.100.1:7", 1), ("203.0.113.1:7", 2)]
        .map(|(from, number)| Hoarder::new(&mut rig, from, number));
    for hoarder in &mut hoarders {
        (0..Hoarder::SHARE).for_each(|_| hoarder.begin(&mut rig));
    }
    let mut fill = |rig: &mut Rig| hoarders.each_mut().map(|hoarder| hoarder.fill(rig));
    let first = fill(&mut rig);
    let hello = client_hello(1500);
    let mut got_in = 0;
    let mut refused = 0;
    let mut packets = Vec::new();
    for n in 0..10 {
        let from = format!("192.0.{}.1:4000", n + 2);
        let (dcid, token) = token_for(&mut rig, &from, 100 + n);
        let front = Initial { dcid, token: &token, ..Initial::new(1, &hello[..900]) }.seal();
        rig.receive_from(&from, &front);
        // 50 ms later; meanwhile:
        rig.now += Duration::from_millis(50);
        packets.push(fill(&mut rig));
        let back =
            Initial { dcid, token: &token, number: 1, offset: 900, ..Initial::new(1, &hello[900..]) }.seal();
        let answers = rig.receive_from(&from, &back);
        refused += usize::from(answers.iter().any(|(_, answer)| is_close(answer)));
        let from: SocketAddr = from.parse().unwrap();
        while let Some(key) = rig.endpoint.next_incoming() {
            if rig.endpoint.incoming(key).unwrap().remote() == from {
                got_in += 1;
                rig.endpoint.ignore(key);
            }
        }
    }
    assert_eq!(got_in, 10, "{refused} refused; the hoarders sent {first:?} packets, and then {packets:?}");
}

#[test]
fn four_addresses_that_finish_nothing_keep_nobody_out() {
    let mut outcomes = Vec::new();
    // One attempt of theirs in so many steps of 5 ms: 200, 100, 66, 40, 33 a second.
    for every in [1, 3] {
        let mut rig = Rig::with(false, |config| {
            config.max_connections = 1_000_000;
            config.max_handshakes = 64;
            config.handshakes_before_retry = 16;
        });
        let (mut seed, mut got_in) = (0, 0);
        for tick in 0..4000_u64 {
            rig.now += Duration::from_millis(5);
            rig.endpoint.on_timeout(rig.now);
            while rig.endpoint.next_event().is_some() {}
            // An honest client tries about once a second, and has an address of its own.
            if tick > 800 && tick == tick / 200 * 200 + (tick / 200 * 7919) % 200 {
                got_in += u32::from(abandoned(&mut rig, 1_000_000 + tick, "192.0.2.1:7").is_some());
            }
            if tick % every == 0 {
                seed += 1;
                abandoned(&mut rig, seed, &format!("10.{}.0.1:7", seed % 4));
            }
        }
        outcomes.push((200 / every, got_in));
    }
    assert!(
        outcomes.iter().all(|(_, got_in)| *got_in == 16),
        "(attempts of theirs each second, honest ones of 16 that got in) {outcomes:?}"
    );
}

/// What a client sends that has been told an id of ours: to that, with the keys of its first.
fn seal_to(first: &ConnectionId, to: &ConnectionId, number: u64, offset: u64, crypto: &[u8]) -> Vec<u8> {
    let keys = keys::initial(version::V1, first, Side::Client).unwrap();
    let mut buffer = vec![0; 1200];
    let mut writer = Writer::new(&mut buffer);
    let truncated = TruncatedPacketNumber::new(number, None);
    let header = LongHeader {
        packet_type: PacketType::Initial,
        version: version::V1,
        dcid: to,
        scid: &cid(0xcc),
        token: &[],
    };
    let slot = header.encode(&mut writer, truncated).unwrap();
    let payload_at = writer.len();
    Frame::Crypto { offset, data: crypto }.encode(&mut writer).unwrap();
    writer.space(1200 - TAG_LEN - writer.len()).unwrap().fill(0);
    slot.fill(&mut writer, TAG_LEN).unwrap();
    writer.space(TAG_LEN).unwrap();
    let (header, payload) = writer.written_mut().split_at_mut(payload_at);
    keys.sealer.seal(0, number, header, payload).unwrap();
    let span = PacketSpan { first: 0, pn_offset: slot.packet_number_offset(), pn_len: truncated.len() };
    keys.header_sealer.mask_batch(&[span], writer.written_mut()).unwrap();
    buffer
}

const HONEST: &str = "192.0.2.1:7";

/// The first half of a hello, and the id of ours that its client is told with the acknowledgement.
fn first_half(rig: &mut Rig) -> ConnectionId {
    let hello = client_hello(1500);
    let front = Initial { dcid: number(1), ..Initial::new(1, &hello[..900]) }.seal();
    let answers = rig.receive_from(HONEST, &front);
    let (ours, _, frames) = initial_of(&answers[0].1, &number(1));
    assert_eq!(frames, ["[0..=0] None"], "it is told that this has come");
    ours
}

/// The other half, and again every second for ten, as the client was not answered.
fn second_half(rig: &mut Rig, ours: &ConnectionId) -> Vec<(SocketAddr, Vec<u8>)> {
    let hello = client_hello(1500);
    let mut answers = Vec::new();
    for number_ in 1..=10 {
        answers.extend(rig.receive_from(HONEST, &seal_to(&number(1), ours, number_, 900, &hello[900..])));
        if number_ == 1
            && let Some(key) = rig.endpoint.next_incoming()
        {
            println!("{:?}", rig.endpoint.accept(rig.now, key, None));
            answers.extend(rig.sent());
        }
        rig.now += Duration::from_secs(1);
        rig.endpoint.on_timeout(rig.now);
    }
    assert_eq!(rig.endpoint.next_incoming(), None);
    let us: SocketAddr = HONEST.parse().unwrap();
    answers.retain(|(to, _)| *to == us);
    // A client that has had an Initial packet of the server's heeds no Retry any more (RFC 9000 section 17.2.5.2).
    answers.retain(|(_, answer)| !matches!(header::parse(answer, 8), Ok(Packet::Retry { .. })));
    answers
}

#[test]
fn who_is_told_that_half_its_hello_has_come_is_told_that_the_rest_is_not_wanted() {
    let mut rig = Rig::with(false, |config| {
        config.max_connections = 1000;
        config.max_handshakes = 16;
        config.handshakes_before_retry = 1000;
    });
    let ours = first_half(&mut rig);
    for n in 0..40 {
        abandoned(&mut rig, n, &format!("10.{n}.0.1:7"));
    }
    let answers = second_half(&mut rig, &ours);
    assert!(!answers.is_empty(), "it repeats the second half until its time is up");
}

#[test]
fn who_gives_way_to_others_is_told() {
    let mut rig = Rig::with(false, |config| config.max_incoming = 8);
    let ours = first_half(&mut rig);
    let hello = client_hello(1500);
    let us: SocketAddr = HONEST.parse().unwrap();
    let mut told = Vec::new();
    for n in 2..20 {
        let from = format!("10.{n}.0.1:7");
        let first = Initial { dcid: number(n), ..Initial::new(1, &hello[..900]) }.seal();
        let answers = rig.receive_from(&from, &first);
        if let Some((_, answer)) = answers.first()
            && matches!(header::parse(answer, 8), Ok(Packet::Retry { .. }))
        {
            let (dcid, token) = retry_of(answer);
            let second = Initial { dcid, token: &token, ..Initial::new(1, &hello[..900]) }.seal();
            told.extend(rig.receive_from(&from, &second));
        }
    }
    told.retain(|(to, _)| *to == us);
    told.extend(second_half(&mut rig, &ours));
    assert!(!told.is_empty(), "it repeats the second half until its time is up");
}

#[test]
fn the_gap_before_a_part_of_a_hello_counts() {
    const GAP: u64 = 16_000;
    let mut rig = Rig::with(false, |config| config.max_incoming = 100);
    for n in 0..100 {
        let datagram = Initial { dcid: number(n), offset: GAP, ..Initial::new(1, b"x") }.seal();
        rig.receive_from(&format!("10.{n}.0.1:7"), &datagram);
    }
    let held = rig.endpoint.incoming.len() as u64 * GAP;
    assert!((GAP..100 * 6000).contains(&held), "{held} bytes, 6000 for each of 100");
}

/// Some clients say their hello in pieces in any order, so that nobody learns to rely on it.
#[test]
fn a_hello_from_back_to_front_is_understood() {
    let hello = client_hello(3000);
    let mut rig = Rig::new(false);
    let parts: Vec<_> = hello.chunks(900).enumerate().collect();
    for (at, part) in parts.into_iter().rev() {
        let (number, offset) = (10 - at as u64, 900 * at as u64);
        rig.receive(&Initial { number, offset, ..Initial::new(1, part) }.seal());
    }
    assert!(rig.endpoint.next_incoming().is_some());
}
