//! One visit to a server: the race as [`Race`] has it, then requests one after the other, on QUIC as soon as it is there.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use godwit_base::Time;
use godwit_link::{DuplexConfig, LinkConfig, Loss, Probability, QueueLimit, Rate};
use godwit_sim::apps::{Exchange, ExchangeClient};
use godwit_sim::{Scenario, Simulation};

use super::tcp::{Made, Tcp};
use crate::connect::addresses::{Addresses, Next};
use crate::decision::head_start::{HeadStart, first_estimate};
use crate::decision::lesson::{Lesson, Sight, Tcp as Met, Unreachable, learn};
use crate::decision::race::{Happening, Race, Step};

/// How often it is looked what has come over UDP.
const LOOK: Duration = Duration::from_millis(5);

/// What becomes of UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Udp {
    Works,
    Silent,
    /// The network says so, after half a round trip.
    Prohibited,
    /// 100 kbit/s in each direction.
    Throttled,
    /// The first address, of one family, is dead over UDP and TCP.
    OneFamilyDead,
    /// The same over UDP alone.
    OneFamilySilent,
    /// Where HTTP/3 is said to be there is somebody else: the handshake fails after a round trip.
    SomebodyElse,
    /// The server is there, and nobody listens on its UDP port: its machine says so after a round trip.
    NobodyListens,
}

/// A way to a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub(super) rtt: Duration,
    /// Per cent in either direction.
    pub(super) loss: f64,
    /// Bytes that wait before the link.
    pub(super) queue: u64,
    pub(super) udp: Udp,
}

/// What came of a visit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit {
    /// When there was a connection.
    pub(super) ready: Duration,
    /// When there would have been one with plain HTTP/2.
    pub(super) plain: Duration,
    /// Requests, and those of them that went over QUIC.
    pub(super) requests: u32,
    pub(super) over_quic: u32,
    pub(super) lesson: Lesson,
    pub(super) tcp_began: bool,
}

impl Path {
    pub(super) fn link(&self) -> LinkConfig {
        let rate = if self.udp == Udp::Throttled { 100_000 } else { 10_000_000 };
        self.link_of(rate)
    }

    fn link_of(&self, bits: u64) -> LinkConfig {
        let mut link = LinkConfig::delayed(self.rtt / 2);
        link.rate = Some(Rate::bits_per_second(bits));
        link.queue = QueueLimit::Bytes(self.queue);
        if self.loss > 0.0 {
            link.loss = Loss::Independent(Probability::percent(self.loss));
        }
        link
    }

    pub(super) fn tcp(&self, seed: u64) -> Tcp {
        Tcp::new(&self.link_of(10_000_000), seed)
    }

    /// Client and server, with nothing to do yet but to connect.
    pub(super) fn quic(&self, seed: u64, known: Option<Duration>) -> (Simulation, Rc<Cell<bool>>) {
        let mut scenario = Scenario::new(seed).link(DuplexConfig::symmetric(self.link()));
        scenario.client.initial_rtt = first_estimate(known).unwrap_or(scenario.client.initial_rtt);
        scenario.client.keep_alive = Some(Duration::from_secs(10));
        scenario.close_when_done = false;
        let mut simulation = scenario.build();
        let never = [Udp::Silent, Udp::Prohibited, Udp::SomebodyElse, Udp::NobodyListens];
        let dead = Rc::new(Cell::new(never.contains(&self.udp)));
        let is_dead = Rc::clone(&dead);
        simulation.network.fabric().set_filter(Some(Box::new(move |_| !is_dead.get())));
        (simulation, dead)
    }

    /// When the address that answers is tried, over UDP and over TCP, counted from the beginning of each.
    fn begins(&self) -> (Duration, Duration) {
        let second = || {
            let both = ["[::1]:443".parse().unwrap(), "127.0.0.1:443".parse().unwrap()];
            let mut addresses = Addresses::new(&both);
            assert_eq!(addresses.next(Duration::ZERO), Next::Try(both[0]));
            let Next::Wait(Some(at)) = addresses.next(Duration::ZERO) else {
                panic!("the second is not tried")
            };
            assert_eq!(addresses.next(at), Next::Try(both[1]));
            at
        };
        match self.udp {
            Udp::OneFamilyDead => (second(), second()),
            Udp::OneFamilySilent => (second(), Duration::ZERO),
            _ => (Duration::ZERO, Duration::ZERO),
        }
    }

    /// When the network says something, and what that does to the race.
    fn word(&self) -> Option<(Duration, Happening, Option<Unreachable>)> {
        match self.udp {
            Udp::Prohibited => Some((self.rtt / 2, Happening::Unreachable, Some(Unreachable::Host))),
            Udp::SomebodyElse => Some((self.rtt, Happening::QuicFailed, None)),
            Udp::NobodyListens => Some((self.rtt, Happening::Unreachable, Some(Unreachable::Port))),
            _ => None,
        }
    }

    /// A visit, with so many requests. `known`: the round-trip time that is remembered.
    pub(super) fn visit(
        &self,
        seed: u64,
        head_start: HeadStart,
        known: Option<Duration>,
        requests: u32,
    ) -> Visit {
        Visiting::new(self, seed, known).run(head_start, requests)
    }
}

/// A visit under way.
struct Visiting<'a> {
    path: &'a Path,
    seed: u64,
    simulation: Simulation,
    dead: Rc<Cell<bool>>,
    quic_begins: Duration,
    /// How long TCP takes, and what it meets.
    made: Made,
    /// QUIC, if it is there.
    connected: bool,
}

impl<'a> Visiting<'a> {
    fn new(path: &'a Path, seed: u64, known: Option<Duration>) -> Visiting<'a> {
        let (simulation, dead) = path.quic(seed, known);
        let (quic_begins, tcp_begins) = path.begins();
        let mut made =
            path.tcp(seed).connect().unwrap_or(Made { took: Duration::from_secs(60), retransmitted: 9 });
        made.took += tcp_begins;
        Visiting { path, seed, simulation, dead, quic_begins, made, connected: false }
    }

    /// What was seen over UDP: whether anything came, and whether the handshake is complete.
    fn look(&mut self) -> (bool, bool) {
        let (client, _) = self.simulation.stats();
        let connected = self.simulation.client_app().is_some_and(|app| app.connected_at.is_some());
        (client.datagrams_received > 0, connected)
    }

    /// Lets time pass until then, or until there is news over UDP.
    fn pass(&mut self, now: Duration, until: Duration, known: (bool, bool)) -> Duration {
        let client = self.simulation.client;
        let mut now = now;
        while now < until {
            // Whoever asks a host wakes it, so that it is not asked at each event.
            now = until.min(now + LOOK);
            let Some(end) = now.checked_sub(self.quic_begins) else { continue };
            self.simulation.network.run_until(Time::ZERO + end, |network| {
                let app = network.app::<ExchangeClient>(client);
                app.is_some_and(|app| app.connected_at.is_some() != known.1)
            });
            if self.look() != known {
                let seen = self.simulation.network.now() - Time::ZERO + self.quic_begins;
                return if seen <= now { seen.max(now.saturating_sub(LOOK)) } else { now };
            }
        }
        until
    }

    fn run(mut self, head_start: HeadStart, requests: u32) -> Visit {
        let mut race = Race::new(head_start);
        let (mut now, mut known) = (Duration::ZERO, (false, false));
        let mut word = self.path.word();
        let mut unreachable = None;
        let mut tcp_ready = None;
        let winner = loop {
            let until = match race.step(now) {
                Step::BeginTcp => {
                    tcp_ready = Some(now + self.made.took);
                    continue;
                }
                Step::Wait(until) => until,
                end => break end,
            };
            let ends = [until, tcp_ready, word.map(|(at, ..)| at)];
            let until = ends.into_iter().flatten().min().unwrap_or(now + Duration::from_secs(60));
            now = self.pass(now, until, known);
            let seen = self.look();
            if seen.0 && !known.0 {
                race.on(now, Happening::Heard);
            }
            if seen.1 && !known.1 {
                race.on(now, Happening::QuicReady);
            }
            known = seen;
            if let Some((_, happening, said)) = word.take_if(|(at, ..)| *at <= now) {
                race.on(now, happening);
                unreachable = said;
            }
            if tcp_ready.take_if(|at| *at <= now).is_some() {
                race.on(now, Happening::TcpReady);
            }
            assert!(now < Duration::from_secs(120), "no connection");
        };
        self.connected = winner == Step::UseQuic;
        let ready = now;
        let over_quic = (0..requests).filter(|number| self.request(&mut now, *number)).count();
        let (client, _) = self.simulation.stats();
        let sight = Sight {
            heard: client.datagrams_received > 0,
            flights: u32::from(client.datagrams_sent > 0 && now >= self.path.rtt + self.path.rtt / 2),
            unreachable,
        };
        let met = if self.made.retransmitted > 0 { Met::Difficult } else { Met::Easy };
        let lesson = match self.path.udp {
            Udp::SomebodyElse => Lesson::Server,
            _ => learn(&sight, met),
        };
        let over_quic = u32::try_from(over_quic).unwrap();
        let tcp_began = race.tcp_began().is_some();
        Visit { ready, plain: self.made.took, requests, over_quic, lesson, tcp_began }
    }

    /// One request; whether it went over QUIC.
    fn request(&mut self, now: &mut Duration, number: u32) -> bool {
        // QUIC may have been finished in the background meanwhile.
        self.connected |= self.look().1 && !self.dead.get();
        if !self.connected || self.dead.get() {
            let tcp = self.path.tcp(self.seed ^ u64::from(number) << 32);
            let took = tcp.request(self.path.rtt).unwrap_or(Duration::from_secs(60));
            let (from, known) = (*now, self.look());
            *now = self.pass(from, from + took, known).max(from + took);
            return false;
        }
        let client = self.simulation.client;
        self.simulation
            .network
            .act(client, |app: &mut ExchangeClient, cx| app.add(cx, [Exchange::request(200, 4000)]));
        let end = self.simulation.network.now() + Duration::from_secs(120);
        self.simulation.network.run_until(end, |network| {
            network.app::<ExchangeClient>(client).is_some_and(ExchangeClient::is_done)
        });
        *now = (self.simulation.network.now() - Time::ZERO + self.quic_begins).max(*now);
        self.simulation.client_app().is_some_and(ExchangeClient::is_done)
    }
}
