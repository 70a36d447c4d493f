//! Datagrams over bad links: what is told of each is true.

use crate::{delayed, ms, seeds};
use bytes::Bytes;
use godwit_base::{SocketId, Time};
use godwit_link::{DuplexConfig, LinkConfig, Loss, Probability, Rate, Reorder};
use godwit_sim::app::{Application, Context};
use godwit_sim::{Network, Scenario};
use godwit_transport::PathKey;
use godwit_transport::{
    ClientConfig, ConnKey, DatagramOutcome, Direction, Endpoint, Event, SendDatagramError, StreamId,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Sends bursts of tagged datagrams, and stream data beside them if wanted.
#[derive(Debug)]
struct Sender {
    config: ClientConfig,
    server: SocketAddr,
    bursts: u32,
    burst: u64,
    size: usize,
    stream: Option<Option<StreamId>>,
    conn: Option<ConnKey>,
    next: u64,
    outcomes: BTreeMap<u64, Vec<DatagramOutcome>>,
    closed: bool,
}

impl Sender {
    fn pump(&mut self, cx: &mut Context<'_>) {
        let Some(conn) = self.conn else { return };
        let wants_stream = self.stream;
        let stream = cx.endpoint.with(conn, |conn| match wants_stream {
            Some(None) => conn.open(Direction::Unidirectional),
            Some(open) => open,
            None => None,
        });
        if let (Some(known), Some(id)) = (&mut self.stream, stream.flatten()) {
            *known = Some(id);
            cx.endpoint
                .with(conn, |conn| while conn.write(id, Bytes::from_static(&[7; 4096])) == Ok(4096) {});
        }
    }

    fn collect(&mut self, cx: &mut Context<'_>) {
        let Some(conn) = self.conn else { return };
        while let Some(outcome) =
            cx.endpoint.connection_mut(conn).and_then(|conn| conn.next_datagram_outcome())
        {
            self.outcomes.entry(outcome.tag()).or_default().push(outcome);
        }
    }
}

impl Application for Sender {
    fn on_start(&mut self, cx: &mut Context<'_>) {
        let path = PathKey { socket: SocketId(0), local: None, remote: self.server };
        self.conn = cx.endpoint.connect(cx.now, &self.config, path, "localhost", None).ok();
        assert!(self.conn.is_some());
    }

    fn on_event(&mut self, cx: &mut Context<'_>, _: ConnKey, event: Event) {
        match event {
            Event::Connected => {
                cx.wake_at(cx.now);
                self.pump(cx);
            }
            Event::DatagramOutcomes => self.collect(cx),
            Event::Writable { .. } => self.pump(cx),
            Event::Closed { .. } => {
                self.collect(cx);
                self.closed = true;
            }
            _ => {}
        }
    }

    fn on_wake(&mut self, cx: &mut Context<'_>) {
        let Some(conn) = self.conn else { return };
        if self.bursts == 0 {
            return;
        }
        self.bursts -= 1;
        for _ in 0..self.burst {
            let mut data = vec![0; self.size];
            data[..8].copy_from_slice(&self.next.to_be_bytes());
            let tag = self.next;
            let sent = cx.endpoint.with(conn, |conn| conn.send_datagram(data.into(), Some(tag)));
            assert_eq!(sent, Some(Ok(())));
            self.next += 1;
        }
        cx.wake_at(cx.now + ms(5));
    }
}

/// Reads everything.
#[derive(Debug, Default)]
struct Receiver {
    came: BTreeMap<u64, u32>,
    stream_bytes: u64,
}

impl Application for Receiver {
    fn on_event(&mut self, cx: &mut Context<'_>, conn: ConnKey, event: Event) {
        let now = cx.now;
        match event {
            Event::DatagramsReadable => {
                while let Some(data) = cx.endpoint.connection_mut(conn).and_then(|conn| conn.read_datagram())
                {
                    *self.came.entry(u64::from_be_bytes(data[..8].try_into().unwrap())).or_default() += 1;
                }
            }
            Event::Readable { id } => {
                let read = cx.endpoint.with(conn, |conn| {
                    let mut read = 0;
                    while let Ok(godwit_transport::ReadChunk::Data(data)) = conn.read(now, id, 1 << 20) {
                        read += data.len() as u64;
                    }
                    read
                });
                self.stream_bytes += read.unwrap_or(0);
            }
            _ => {}
        }
    }
}

struct Ran {
    outcomes: BTreeMap<u64, Vec<DatagramOutcome>>,
    came: BTreeMap<u64, u32>,
    stream_bytes: u64,
    sent: u64,
}

/// Runs `bursts` of `burst` datagrams, and then for another `rest`.
fn run(scenario: &Scenario, bursts: u32, burst: u64, stream: bool, rest: Duration) -> Ran {
    let mut network = Network::new(scenario.seed);
    let endpoint = scenario.server_endpoint(&mut network);
    let server = network.add_host(scenario.server_address(), endpoint, Receiver::default());
    let rng = network.rng();
    let endpoint = Endpoint::new(scenario.endpoint_config(scenario.server_versions.clone()), None, rng);
    let sender = Sender {
        config: scenario.client_config(),
        server: scenario.server_address(),
        bursts,
        burst,
        size: 370,
        stream: stream.then_some(None),
        conn: None,
        next: 0,
        outcomes: BTreeMap::new(),
        closed: false,
    };
    let client = network.add_host(scenario.client_address(2), endpoint, sender);
    network.add_wire(client, server, scenario.link.clone()).unwrap();
    let end = Time::ZERO + ms(5) * bursts + rest;
    network.run_until(end, |_| false);
    // What is sent with the close is known to nobody any more.
    network.act(client, |app: &mut Sender, cx| {
        app.bursts = 0;
        let (conn, now) = (app.conn.unwrap(), cx.now);
        let late = cx.endpoint.with(conn, |conn| {
            conn.close(now, 0, b"");
            conn.send_datagram(Bytes::new(), Some(u64::MAX))
        });
        assert_eq!(late, Some(Err(SendDatagramError::Closed)));
    });
    network.run_until(end + ms(5_000), |_| false);
    let app = network.app::<Sender>(client).unwrap();
    assert!(app.closed);
    let (outcomes, sent) = (app.outcomes.clone(), app.next);
    let receiver = network.app::<Receiver>(server).unwrap();
    Ran { outcomes, came: receiver.came.clone(), stream_bytes: receiver.stream_bytes, sent }
}

#[test]
fn every_outcome_is_told_right() {
    for seed in seeds(6, 100) {
        let mut link = LinkConfig::limited(Rate::megabits(1), ms(10), 60_000);
        link.loss = Loss::Independent(Probability::percent(10.0));
        link.reorder = Some(Reorder { probability: Probability::percent(8.0), extra: ms(25) });
        let mut scenario = Scenario::new(seed).link(DuplexConfig::symmetric(link)).transport(|transport| {
            transport.datagrams.send_buffer = 10_000;
            transport.datagrams.receive_buffer = 1 << 20;
        });
        scenario.client.initial_rtt = ms(50);
        let ran = run(&scenario, 6_000, 3, false, ms(200));
        // Sent, acknowledged, suspected lost, spurious, cancelled.
        let mut counts = [0; 5];
        assert_eq!(ran.outcomes.len() as u64, ran.sent, "something is told of every one");
        for (tag, outcomes) in &ran.outcomes {
            let came = ran.came.contains_key(tag);
            let tag = *tag;
            outcomes.iter().for_each(|outcome| counts[kind(*outcome)] += 1);
            let (sent, lost) = (DatagramOutcome::Sent { tag }, DatagramOutcome::SuspectedLost { tag });
            let spurious = DatagramOutcome::Spurious { tag };
            let right = match outcomes[..] {
                [DatagramOutcome::Cancelled { .. }] => !came,
                [first, DatagramOutcome::Acknowledged { .. }] => first == sent && came,
                [first, second, third] => (first, second, third) == (sent, lost, spurious) && came,
                // Lost, or its acknowledgement was.
                [first, second] => (first, second) == (sent, lost),
                // In flight at the end.
                [only] => only == sent,
                _ => false,
            };
            assert!(right, "seed {seed}, {tag}, came: {came}, told: {outcomes:?}");
        }
        assert!(counts.iter().all(|count| *count >= 50), "seed {seed}: {counts:?}");
        assert!(ran.came.values().all(|times| *times == 1), "nothing comes twice");
        // Most that is suspected lost is.
        let lost = |outcomes: &Vec<DatagramOutcome>| outcomes.len() == 2 && kind(outcomes[1]) == 2;
        let suspected = ran.outcomes.iter().filter(|(_, outcomes)| lost(outcomes));
        let (mut wrong, mut all) = (0, 0);
        for (tag, _) in suspected {
            all += 1;
            wrong += u32::from(ran.came.contains_key(tag));
        }
        assert!(wrong * 5 < all, "seed {seed}: {wrong} of {all} had come");
    }
}

fn kind(outcome: DatagramOutcome) -> usize {
    match outcome {
        DatagramOutcome::Sent { .. } => 0,
        DatagramOutcome::Acknowledged { .. } => 1,
        DatagramOutcome::SuspectedLost { .. } => 2,
        DatagramOutcome::Spurious { .. } => 3,
        _ => 4,
    }
}

#[test]
fn datagrams_and_streams_share_as_the_setting_says() {
    for share in [0, 50, 80] {
        let link = LinkConfig::limited(Rate::megabits(10), ms(10), 60_000);
        let scenario = Scenario::new(20).both_ways(link).transport(|transport| {
            transport.datagrams.share = share;
            transport.datagrams.receive_buffer = 1 << 20;
            transport.max_mtu = 1200;
        });
        // Twice as much as passes.
        let ran = run(&scenario, 400, 31, true, ms(0));
        let datagrams = ran.came.len() as u64 * 370;
        let percent = 100 * datagrams / (datagrams + ran.stream_bytes);
        assert!(
            percent.abs_diff(u64::from(share)) <= 10,
            "{share}: {percent}, {datagrams} {}",
            ran.stream_bytes
        );
    }
}

#[test]
fn datagrams_follow_what_the_peer_accepts() {
    let mut scenario = Scenario::new(21).both_ways(delayed(10));
    scenario.server.datagrams.max_frame_size = 0;
    let mut network = Network::new(21);
    let endpoint = scenario.server_endpoint(&mut network);
    let server = network.add_host(scenario.server_address(), endpoint, Receiver::default());
    let rng = network.rng();
    let endpoint = Endpoint::new(scenario.endpoint_config(scenario.server_versions.clone()), None, rng);
    let idle = Sender {
        config: scenario.client_config(),
        server: scenario.server_address(),
        bursts: 0,
        burst: 0,
        size: 0,
        stream: None,
        conn: None,
        next: 0,
        outcomes: BTreeMap::new(),
        closed: false,
    };
    let client = network.add_host(scenario.client_address(2), endpoint, idle);
    network.add_wire(client, server, scenario.link.clone()).unwrap();
    network.run_until(Time::ZERO + ms(500), |_| false);
    network.act(client, |app: &mut Sender, cx| {
        let conn = cx.endpoint.connection_mut(app.conn.unwrap()).unwrap();
        assert_eq!(conn.max_datagram_len(), None);
        assert_eq!(conn.send_datagram(Bytes::new(), None), Err(SendDatagramError::Unsupported));
    });
}
