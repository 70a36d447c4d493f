//! Two ends back to back over a pipe that loses, reorders and duplicates, with applications that act on
//! events alone. Whatever happens on the way, every byte arrives where it should, nothing hangs, and in
//! the end nothing is held.

use super::super::*;
use crate::packet::testing::payload;
use crate::part::Part;
use godwit_base::{Rng, SeededRng, Time};
use godwit_wire::{Frame, Reader};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

const RTT: Duration = Duration::from_millis(10);

/// What both ends know about a direction of a stream: it follows from the id alone.
#[derive(Debug, Clone, Copy)]
struct Plan {
    len: u64,
    /// The sender resets after writing this much.
    reset_at: Option<u64>,
    /// The receiver stops after reading this much.
    stop_at: Option<u64>,
}

fn plan(seed: u64, id: StreamId, sender: Side) -> Plan {
    let mut rng = SeededRng::new(seed ^ id.as_u64() << 8 ^ sender as u64);
    let len = match rng.below(4) {
        0 => 0,
        1 => rng.below(30),
        2 => rng.below(3000),
        _ => rng.below(20_000),
    };
    let reset_at = (rng.below(6) == 0).then(|| rng.below(len + 1));
    let stop_at = (rng.below(6) == 0).then(|| rng.below(len + 1));
    Plan { len, reset_at, stop_at }
}

fn byte_at(id: StreamId, sender: Side, offset: u64) -> u8 {
    (offset.wrapping_mul(31) ^ offset >> 8 ^ id.as_u64() << 3 ^ sender as u64) as u8
}

#[derive(Debug, Default)]
struct Outgoing {
    written: u64,
    blocked: bool,
    /// Finished, reset or stopped: no call on it any more.
    ended: bool,
    /// The sender's last word: reset rather than an end.
    was_reset: bool,
    /// What still arrives although it was reset.
    reliable: u64,
    /// How often it was told that the peer knows of the reset.
    known: u32,
}

#[derive(Debug, Default)]
struct Incoming {
    read: u64,
    readable: bool,
    ended: bool,
    complete: bool,
    /// The reader was told of the reset.
    told: bool,
}

struct End {
    side: Side,
    seed: u64,
    streams: Streams,
    to_open: u32,
    refused: [bool; 2],
    outgoing: BTreeMap<StreamId, Outgoing>,
    incoming: BTreeMap<StreamId, Incoming>,
    next_packet: u64,
    /// Packets whose fate the sender does not know.
    unacked: BTreeMap<u64, Vec<StreamToken>>,
}

const DIRECTIONS: [Direction; 2] = [Direction::Bidirectional, Direction::Unidirectional];

impl End {
    fn new(side: Side, seed: u64, config: &TransportConfig) -> Self {
        let mut streams = Streams::new(side, config);
        let mut parameters = TransportParameters::default();
        Streams::announce(config, &mut parameters);
        streams.set_peer_limits(&parameters);
        End {
            side,
            seed,
            streams,
            to_open: 12,
            refused: [false; 2],
            outgoing: BTreeMap::new(),
            incoming: BTreeMap::new(),
            next_packet: 0,
            unacked: BTreeMap::new(),
        }
    }

    fn on_events(&mut self) {
        while let Some(event) = self.streams.next_event() {
            match event {
                Event::StreamOpened { direction } => {
                    while let Some(id) = self.streams.accept(direction) {
                        self.incoming.entry(id).or_default();
                        if direction == Direction::Bidirectional {
                            self.outgoing.insert(id, Outgoing::default());
                        }
                    }
                }
                Event::StreamsAvailable { direction } => self.refused[direction as usize] = false,
                Event::Readable { id } => self.incoming.entry(id).or_default().readable = true,
                Event::Writable { id } => self.outgoing.get_mut(&id).unwrap().blocked = false,
                Event::Finished { id } => assert!(self.outgoing[&id].ended && !self.outgoing[&id].was_reset),
                Event::Stopped { id, code } => {
                    assert_eq!(code, 77);
                    let outgoing = self.outgoing.entry(id).or_default();
                    (outgoing.ended, outgoing.was_reset) = (true, true);
                }
                Event::ResetAcknowledged { id } => self.outgoing.get_mut(&id).unwrap().known += 1,
                other => panic!("{other:?}"),
            }
        }
    }

    /// Does one thing an application might do. Returns whether there was anything to do.
    fn act(&mut self, now: Time, rng: &mut SeededRng) -> bool {
        self.on_events();
        let direction = DIRECTIONS[rng.below(2) as usize];
        if self.to_open > 0 && !self.refused[direction as usize] && rng.below(3) == 0 {
            match self.streams.open(direction) {
                None => self.refused[direction as usize] = true,
                Some(id) => {
                    self.to_open -= 1;
                    self.outgoing.insert(id, Outgoing::default());
                    if direction == Direction::Bidirectional {
                        self.incoming.entry(id).or_default();
                    }
                    self.streams.set_priority(id, rng.below(8) as u8, rng.below(2) == 0).unwrap();
                }
            }
            return true;
        }
        if rng.below(6) == 0 {
            self.give_up_more(rng);
        }
        let writable: Vec<_> =
            self.outgoing.iter().filter(|(_, o)| !o.ended && !o.blocked).map(|(id, _)| *id).collect();
        let readable: Vec<_> =
            self.incoming.iter().filter(|(_, i)| !i.ended && i.readable).map(|(id, _)| *id).collect();
        if !writable.is_empty() && (readable.is_empty() || rng.below(2) == 0) {
            self.write(writable[rng.below(writable.len() as u64) as usize], rng);
        } else if !readable.is_empty() {
            self.read(now, readable[rng.below(readable.len() as u64) as usize], rng);
        } else {
            return self.to_open > 0 && !self.refused.iter().all(|refused| *refused);
        }
        true
    }

    fn write(&mut self, id: StreamId, rng: &mut SeededRng) {
        let plan = plan(self.seed, id, self.side);
        let outgoing = self.outgoing.get_mut(&id).unwrap();
        if plan.reset_at.is_some_and(|at| outgoing.written >= at) {
            outgoing.reliable = if rng.below(3) == 0 { 0 } else { rng.below(outgoing.written + 1) };
            match outgoing.reliable {
                0 => self.streams.reset(id, 55).unwrap(),
                size => self.streams.reset_at(id, 55, size).unwrap(),
            }
            (outgoing.ended, outgoing.was_reset) = (true, true);
        } else if outgoing.written == plan.len {
            self.streams.finish(id).unwrap();
            outgoing.ended = true;
        } else {
            let len = (1 + rng.below(4000)).min(plan.len - outgoing.written);
            let range = outgoing.written..outgoing.written + len;
            let data: Vec<u8> = range.map(|at| byte_at(id, self.side, at)).collect();
            let accepted = self.streams.write(id, data.into()).unwrap() as u64;
            outgoing.written += accepted;
            outgoing.blocked = accepted < len;
        }
    }

    /// Lowers what a stream that was reset still delivers.
    fn give_up_more(&mut self, rng: &mut SeededRng) {
        let mut lowered = self.outgoing.iter_mut().filter(|(_, outgoing)| outgoing.reliable > 0);
        if let Some((&id, outgoing)) = lowered.next() {
            let size = rng.below(outgoing.reliable + 10);
            // It may be over by now.
            if self.streams.reset_at(id, 56, size).is_ok() {
                outgoing.reliable = outgoing.reliable.min(size);
            }
        }
    }

    fn read(&mut self, now: Time, id: StreamId, rng: &mut SeededRng) {
        let plan = plan(self.seed, id, self.side.peer());
        let incoming = self.incoming.get_mut(&id).unwrap();
        if plan.stop_at.is_some_and(|at| incoming.read >= at) {
            self.streams.stop_sending(id, 77).unwrap();
            incoming.ended = true;
            return;
        }
        match self.streams.read(now, RTT, id, 1 + rng.below(5000) as usize) {
            Ok(ReadChunk::Data(data)) => {
                for byte in data {
                    assert_eq!(
                        byte,
                        byte_at(id, self.side.peer(), incoming.read),
                        "{id} at {}",
                        incoming.read
                    );
                    incoming.read += 1;
                }
            }
            Ok(ReadChunk::Finished) => {
                assert_eq!(incoming.read, plan.len);
                (incoming.ended, incoming.complete) = (true, true);
            }
            Ok(ReadChunk::Blocked) => incoming.readable = false,
            Err(ReadError::Reset(55)) => {
                assert!(plan.reset_at.is_some());
                (incoming.ended, incoming.told) = (true, true);
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn packet(&mut self, room: usize) -> Option<(u64, Vec<u8>)> {
        let (payload, tokens, ()) = payload(room, |packet| {
            self.streams.write_frames(packet);
            self.streams.write_data(packet);
        });
        if payload.is_empty() {
            return None;
        }
        let number = self.next_packet;
        self.next_packet += 1;
        self.unacked.insert(number, tokens);
        Some((number, payload))
    }

    fn receive(&mut self, now: Time, payload: &[u8]) {
        let mut reader = Reader::new(payload);
        let streams = &mut self.streams;
        while !reader.is_empty() {
            let frame = Frame::decode(&mut reader).unwrap();
            if let Frame::Stream { data, fin, .. } = frame {
                assert!(!data.is_empty() || fin, "an empty frame says nothing");
            }
            streams.on_frame(now, &frame).unwrap_or_else(|| panic!("{frame:?}")).unwrap();
            let held = streams.store.iter_mut().filter_map(|(_, stream)| Some(stream.recv.as_ref()?.held()));
            assert_eq!(held.sum::<u64>(), streams.received, "what streams hold adds up");
        }
    }

    fn outcome(&mut self, number: u64, acked: bool) {
        for token in self.unacked.remove(&number).unwrap_or_default() {
            if acked { self.streams.on_acked(token) } else { self.streams.repeat(token) }
        }
    }
}

/// Moves one packet of the pipe, or loses it, or delivers it without the sender's knowing.
fn deliver(
    now: Time,
    rng: &mut SeededRng,
    lossy: bool,
    pipe: &mut Vec<(u64, Vec<u8>)>,
    from: &mut End,
    to: &mut End,
) {
    let at = if lossy { rng.below(pipe.len().min(20) as u64) as usize } else { 0 };
    let fate = if lossy { rng.below(10) } else { 9 };
    if fate == 0 {
        let (number, _) = pipe.remove(at);
        from.outcome(number, false);
        return;
    }
    let (number, payload) = if fate == 1 { pipe[at].clone() } else { pipe.remove(at) };
    to.receive(now, &payload);
    if fate == 2 {
        // Declared lost although it arrived, and the acknowledgement comes late.
        let tokens = from.unacked.get(&number).cloned().unwrap_or_default();
        from.outcome(number, false);
        if rng.below(2) == 0 {
            tokens.into_iter().for_each(|token| from.streams.on_acked(token));
        }
    } else {
        from.outcome(number, true);
    }
}

fn config(rng: &mut SeededRng) -> TransportConfig {
    let stream = 50 + rng.below(3000);
    let connection = 50 + rng.below(6000);
    TransportConfig {
        initial_stream_window: stream,
        max_stream_window: stream * (1 + rng.below(8)),
        initial_connection_window: connection,
        max_connection_window: connection * (1 + rng.below(8)),
        max_bidi_streams: 1 + rng.below(5),
        max_uni_streams: 1 + rng.below(5),
        send_buffer: 100 + rng.below(20_000),
        ..TransportConfig::default()
    }
}

fn run(seed: u64) {
    let mut rng = SeededRng::new(seed);
    let config = config(&mut rng);
    let mut ends = [End::new(Side::Client, seed, &config), End::new(Side::Server, seed, &config)];
    let mut pipes = [Vec::new(), Vec::new()];
    let mut now = Time::ZERO;
    let mut quiet = 0;
    for step in 0..400_000u32 {
        now += Duration::from_micros(rng.below(2000));
        let which = rng.below(2) as usize;
        let [client, server] = &mut ends;
        let (from, to) = if which == 0 { (client, server) } else { (server, client) };
        let busy = match rng.below(3) {
            0 => from.act(now, &mut rng),
            1 => {
                let room = if rng.below(4) == 0 { 20 + rng.below(60) } else { 1200 };
                let interest = from.streams.interest();
                let packet = from.packet(room as usize);
                assert!(interest.any() || packet.is_none(), "something to send without an interest in it");
                pipes[which].extend(packet);
                from.streams.wants_to_send()
            }
            _ if pipes[which].is_empty() => false,
            _ => {
                deliver(now, &mut rng, step < 20_000, &mut pipes[which], from, to);
                true
            }
        };
        quiet = if busy { 0 } else { quiet + 1 };
        if quiet > 200 {
            return check_end(seed, ends);
        }
    }
    panic!("seed {seed}: still busy");
}

fn check_end(seed: u64, ends: [End; 2]) {
    for (end, peer) in [(&ends[0], &ends[1]), (&ends[1], &ends[0])] {
        let streams = &end.streams;
        assert_eq!(end.to_open, 0, "all streams could be opened");
        assert!(end.outgoing.values().all(|outgoing| outgoing.ended), "nothing hangs on the sending side");
        for (id, outgoing) in &end.outgoing {
            assert_eq!(
                outgoing.known,
                u32::from(outgoing.was_reset),
                "told once of a reset, and of no other: {id}"
            );
        }
        for (id, incoming) in &end.incoming {
            assert!(incoming.ended, "nothing hangs on the receiving side: {id} {incoming:?}");
            let was_reset = peer.outgoing[id].was_reset;
            let plan = plan(seed, *id, end.side.peer());
            assert!(
                !incoming.told || incoming.read >= peer.outgoing[id].reliable,
                "{id}: promised data is missing"
            );
            assert!(incoming.complete || was_reset || plan.stop_at.is_some());
        }
        assert!(!streams.wants_to_send());
        assert_eq!(streams.active_streams(), 0, "all streams are forgotten");
        assert_eq!((streams.buffered(), streams.received, streams.pieces), (0, 0, 0));
        assert_eq!(streams.credit.used(), peer.streams.window.received(), "both count the same bytes");
        assert_eq!(streams.window.received(), streams.window.consumed(), "all credit is given back");
        assert_eq!(streams.stats().bytes_sent, peer.streams.stats().bytes_received);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn every_byte_arrives_and_nothing_is_left(seed in any::<u64>()) {
        run(seed);
    }
}
