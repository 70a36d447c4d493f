//! Whole handshakes, at both ends together: from the first datagram until both have confirmed it and a request
//! has been answered.

use crate::pair::{Pair, secrets};
use crate::{ALLOCATOR, Cost};
use bytes::Bytes;
use godwit_transport::EarlyDataStatus;
use godwit_transport::ReadChunk;
use godwit_transport::tls::deterministic;
use godwit_transport::tls::resumption::{EarlySessions, MemorySessions};
use godwit_transport::{ClientConfig, ConnKey, Direction, Event, ServerConfig, TransportConfig};
use stats_alloc::Region;
use std::sync::Arc;
use std::time::Duration;

/// Handshakes before measuring.
const WARM_UP: usize = 4;
/// Handshakes measured.
const ROUNDS: usize = 40;
const ALPN: &[&[u8]] = &[b"gate"];

/// How a client begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It knows nothing.
    Full,
    /// It has a ticket.
    Resumed,
    /// It has a ticket, and its request is in the first flight.
    Early,
}

pub(super) fn measure(kind: Kind) -> Cost {
    let mut rig = Rig::new(kind);
    for _ in 0..WARM_UP {
        rig.round(false);
    }
    let allocations = (0..ROUNDS).map(|_| rig.round(true)).sum();
    Cost { calls: ROUNDS, allocations }
}

struct Rig {
    kind: Kind,
    pair: Pair,
    config: ClientConfig,
    visits: usize,
}

/// What of a connection has happened.
#[derive(Default)]
struct Progress {
    server: Option<ConnKey>,
    confirmed: u8,
    asked: bool,
    answered: bool,
}

#[inline(never)]
fn measured_handshake(rig: &mut Rig) -> (ConnKey, Progress) {
    rig.handshake()
}

impl Rig {
    fn new(kind: Kind) -> Self {
        let transport = Arc::new(TransportConfig::default());
        let tls = match kind {
            Kind::Early => deterministic::early_server_config(ALPN, Arc::new(EarlySessions::new(100))),
            Kind::Resumed => deterministic::ticket_server_config(ALPN, &secrets(2)),
            Kind::Full => deterministic::server_config(ALPN),
        };
        let pair = Pair::new(ServerConfig::new(tls, transport.clone()));
        let tls = match kind {
            Kind::Early => deterministic::early_client_config(ALPN),
            Kind::Full | Kind::Resumed => deterministic::client_config(ALPN),
        };
        let store = (kind != Kind::Full).then(|| Arc::new(MemorySessions::default()) as _);
        let mut config = ClientConfig::new(tls, transport);
        config.resumption.store = store;
        Rig { kind, pair, config, visits: 0 }
    }

    /// One visit. Returns the allocations of its handshake.
    fn round(&mut self, measured: bool) -> usize {
        let region = Region::new(ALLOCATOR);
        let (client, progress) = if measured { measured_handshake(self) } else { self.handshake() };
        let allocations = region.change().allocations;
        assert!(progress.answered && progress.confirmed == 2, "the visit did not succeed");
        let connection = self.pair.client.connection(client).expect("it is open");
        let seen = (connection.is_resumed(), connection.early_data_status() == EarlyDataStatus::Accepted);
        let first = self.visits == 0;
        let expected = match self.kind {
            Kind::Full => (false, false),
            Kind::Resumed => (!first, false),
            Kind::Early => (!first, !first),
        };
        assert_eq!(seen, expected, "visit {}: resumed, early", self.visits);
        self.visits += 1;
        self.part(client);
        if measured { allocations } else { 0 }
    }

    fn handshake(&mut self) -> (ConnKey, Progress) {
        let client = self.pair.connect(&self.config);
        let mut progress = Progress::default();
        if self.kind == Kind::Early && self.visits > 0 {
            self.ask(client, &mut progress);
        }
        loop {
            let mut moved = self.pair.exchange(true);
            progress.server = progress.server.or(self.pair.accept());
            self.answer(&mut progress);
            moved |= self.pair.exchange(false);
            self.hear(client, &mut progress);
            if !moved {
                return (client, progress);
            }
        }
    }

    fn ask(&mut self, client: ConnKey, progress: &mut Progress) {
        self.pair.client.with(client, |connection| {
            let Some(stream) = connection.open(Direction::Bidirectional) else { return };
            let _ = connection.write(stream, Bytes::from_static(&[1; 400]));
            let _ = connection.finish(stream);
            progress.asked = true;
        });
    }

    fn answer(&mut self, progress: &mut Progress) {
        let now = self.pair.now;
        while let Some((key, event)) = self.pair.server.next_event() {
            match event {
                Event::Confirmed => progress.confirmed += 1,
                Event::Readable { id } => {
                    self.pair.server.with(key, |connection| {
                        while let Ok(ReadChunk::Data(_)) = connection.read(now, id, usize::MAX) {}
                        let _ = connection.write(id, Bytes::from_static(&[2; 4000]));
                        let _ = connection.finish(id);
                    });
                }
                _ => {}
            }
        }
    }

    fn hear(&mut self, client: ConnKey, progress: &mut Progress) {
        let now = self.pair.now;
        while let Some((key, event)) = self.pair.client.next_event() {
            match event {
                Event::Connected if !progress.asked => self.ask(client, progress),
                Event::Confirmed => progress.confirmed += 1,
                Event::Readable { id } => {
                    self.pair.client.with(key, |connection| {
                        while let Ok(ReadChunk::Data(_)) = connection.read(now, id, usize::MAX) {}
                    });
                    progress.answered = true;
                }
                _ => {}
            }
        }
    }

    /// The client closes, and both forget the connection.
    fn part(&mut self, client: ConnKey) {
        let now = self.pair.now;
        self.pair.client.with(client, |connection| connection.close(now, 0, b""));
        for _ in 0..20 {
            self.pair.exchange(true);
            self.pair.exchange(false);
            self.pair.now += Duration::from_millis(500);
            self.pair.advance();
            while self.pair.server.next_event().is_some() || self.pair.client.next_event().is_some() {}
        }
        assert!(self.pair.client.is_idle() && self.pair.server.is_idle(), "a connection is left");
    }
}
