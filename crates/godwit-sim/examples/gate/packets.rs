//! Bulk data on one stream, and its acknowledgements.

use crate::pair::{Pair, receive, transmit};
use crate::{ALLOCATOR, Cost};
use godwit_base::{RecvBatch, SendBatch, Time};
use godwit_transport::ReadChunk;
use godwit_transport::tls::deterministic;
use godwit_transport::{
    ClientConfig, ConnKey, Direction, Endpoint, Event, ServerConfig, StreamId, TransportConfig,
};
use stats_alloc::Region;
use std::sync::Arc;

/// Packets in the batch that is built and opened.
const PACKETS: usize = 64;
/// Rounds before measuring, so that windows and rings have grown.
const WARM_UP: usize = 300;
/// Rounds measured.
const ROUNDS: usize = 200;

/// The step of a round that counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Transmit,
    Receive,
    Acknowledge,
}

#[inline(never)]
fn measured_transmit(endpoint: &mut Endpoint, now: Time, batch: &mut SendBatch) {
    transmit(endpoint, now, batch);
}

#[inline(never)]
fn measured_receive(endpoint: &mut Endpoint, now: Time, batch: &mut RecvBatch) {
    receive(endpoint, now, batch);
}

pub(super) fn measure(step: Step) -> Cost {
    let mut rig = Rig::new();
    for _ in 0..WARM_UP {
        rig.round(None);
    }
    let allocations = (0..ROUNDS).map(|_| rig.round(Some(step))).sum();
    Cost { calls: ROUNDS, allocations }
}

struct Rig {
    pair: Pair,
    sender: ConnKey,
    receiver: ConnKey,
    stream: StreamId,
}

impl Rig {
    fn new() -> Self {
        let mut transport = TransportConfig::default();
        transport.initial_stream_window = 16 << 20;
        transport.initial_connection_window = 32 << 20;
        transport.initial_mtu = 1452;
        transport.max_mtu = 1452;
        let transport = Arc::new(transport);
        let tls = deterministic::server_config(&[b"gate"]);
        let mut pair = Pair::new(ServerConfig::new(tls, transport.clone()));
        let sender = pair.connect(&ClientConfig::new(deterministic::client_config(&[b"gate"]), transport));
        let mut receiver = None;
        for _ in 0..40 {
            pair.exchange(true);
            receiver = receiver.or(pair.accept());
            pair.exchange(false);
            pair.advance();
        }
        while let Some((_, event)) = pair.client.next_event() {
            assert!(!matches!(event, Event::Closed { .. }), "{event:?}");
        }
        let stream = pair.client.with(sender, |connection| connection.open(Direction::Unidirectional));
        let stream = stream.flatten().expect("a stream may be opened");
        Rig { pair, sender, receiver: receiver.expect("accepted"), stream }
    }

    /// Data one way, acknowledgements the other. Returns the allocations of the measured call.
    fn round(&mut self, measured: Option<Step>) -> usize {
        let (now, stream) = (self.pair.now, self.stream);
        let data = bytes::Bytes::from_static(&[7; PACKETS * 1400]);
        self.pair.client.with(self.sender, |connection| connection.write(stream, data));
        let mut allocations = self.send(measured == Some(Step::Transmit));
        allocations += self.receive(true, measured == Some(Step::Receive));
        self.pair.server.with(self.receiver, |connection| {
            while let Ok(ReadChunk::Data(_)) = connection.read(now, stream, usize::MAX) {}
        });
        while self.pair.server.next_event().is_some() || self.pair.client.next_event().is_some() {}
        self.pair.advance();
        self.pair.send(false, transmit);
        allocations += self.receive(false, measured == Some(Step::Acknowledge));
        self.pair.advance();
        allocations
    }

    fn send(&mut self, measured: bool) -> usize {
        let region = Region::new(ALLOCATOR);
        if measured {
            self.pair.send(true, measured_transmit);
            return region.change().allocations;
        }
        self.pair.send(true, transmit);
        0
    }

    fn receive(&mut self, from_client: bool, measured: bool) -> usize {
        self.pair.carry(from_client);
        let region = Region::new(ALLOCATOR);
        if measured {
            self.pair.receive(from_client, measured_receive);
            return region.change().allocations;
        }
        self.pair.receive(from_client, receive);
        0
    }
}
