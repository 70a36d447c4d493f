//! The second connection to a server: resumed sessions, 0-RTT, tokens, and what happens when the server has
//! other ideas.

use crate::{delayed, judge_all, ms, seeds};
use godwit_base::{Time, WallTime};
use godwit_link::{DuplexConfig, Jitter, LinkConfig, Loss, Probability};
use godwit_sim::app::Application;
use godwit_sim::apps::{Completion, ExchangeClient, ExchangeServer, Policy};
use godwit_sim::network::Stop;
use godwit_sim::{Exchange, HostId, Network, Scenario};
use godwit_transport::EarlyDataStatus;
use godwit_transport::tls::deterministic;
use godwit_transport::tls::resumption::{
    EarlySessions, MemorySessions, SessionKey, SessionStore, SessionTickets,
};
use godwit_transport::tls::secrets::ServerSecrets;
use godwit_transport::{ClientConfig, CongestionAlgorithm, Endpoint, ServerConfig, TransportConfig};
use godwit_wire::version;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const ALPN: &[&[u8]] = &[b"godwit-sim"];

/// A server 50 ms away, and one client that comes again and again.
struct World {
    scenario: Scenario,
    network: Network,
    server: HostId,
    config: ClientConfig,
    store: Arc<MemorySessions>,
    home: HostId,
    clients: u16,
    /// The versions that the client's endpoint speaks.
    spoken: Vec<u32>,
}

/// How a visit went.
#[derive(Debug)]
struct Visit {
    began: Time,
    connected: Option<Duration>,
    confirmed: Option<Duration>,
    completed: Vec<Completion>,
    status: EarlyDataStatus,
    resumed: bool,
    /// 0-RTT packets that the client sent.
    early_packets: u64,
    stop: Stop,
}

impl Visit {
    /// How long the first exchange took, from the first packet of the connection.
    fn first_answer(&self) -> Duration {
        self.completed[0].ended - self.began
    }
}

fn server_endpoint(scenario: &Scenario, network: &mut Network, tls: Arc<rustls::ServerConfig>) -> Endpoint {
    let transport = Arc::new(scenario.server.clone());
    let mut config = ServerConfig::new(tls, transport);
    config.retry = scenario.policy == Policy::Retry;
    let rng = network.rng();
    let versions = scenario.server_versions.clone();
    Endpoint::new(scenario.endpoint_config(versions), Some(Arc::new(config)), rng)
}

fn early_server(scenario: &Scenario, network: &mut Network) -> Endpoint {
    let tls = deterministic::early_server_config(ALPN, Arc::new(EarlySessions::new(100)));
    server_endpoint(scenario, network, tls)
}

/// A server that gives out tickets of both kinds, those with all of the session sealed with keys from `secrets`.
fn server_with_both(scenario: &Scenario, network: &mut Network, secrets: &ServerSecrets) -> Endpoint {
    let tls = deterministic::early_server_config(ALPN, Arc::new(EarlySessions::new(100)));
    let tickets = Some(Arc::new(SessionTickets::new(secrets, tls.crypto_provider())));
    let mut config = ServerConfig::new(tls, Arc::new(scenario.server.clone()));
    config.tickets = tickets.map(|tickets| tickets as _);
    let rng = network.rng();
    Endpoint::new(scenario.endpoint_config(vec![version::V1]), Some(Arc::new(config)), rng)
}

impl World {
    fn new(scenario: Scenario) -> Self {
        // Times are counted in whole round trips: with a controller that sends its first window at once.
        let scenario =
            scenario.transport(|transport| transport.congestion = CongestionAlgorithm::Cubic.into());
        let mut network = Network::new(scenario.seed);
        let endpoint = early_server(&scenario, &mut network);
        let app = ExchangeServer::new(Policy::Accept);
        let server = network.add_host(scenario.server_address(), endpoint, app);
        let store = Arc::new(MemorySessions::default());
        let tls = deterministic::early_client_config(ALPN);
        let transport = Arc::new(scenario.client.clone());
        let mut config = ClientConfig::new(tls, transport);
        config.resumption.store = Some(store.clone());
        config.version = scenario.version;
        let app = ExchangeClient::new(config.clone(), scenario.server_address(), Vec::new(), 1);
        let rng = network.rng();
        // Nothing happens there before the first visit.
        let mut nobody = scenario.endpoint_config(vec![version::V1]);
        nobody.max_connections = 0;
        let home = network.add_host(scenario.client_address(2), Endpoint::new(nobody, None, rng), app);
        network.add_wire(home, server, DuplexConfig::symmetric(delayed(50))).unwrap();
        network.run_for(Duration::ZERO);
        let spoken = vec![scenario.version, version::V1, version::V2];
        World { scenario, network, server, config, store, home, clients: 2, spoken }
    }

    fn client(&mut self, plan: Vec<Exchange>) -> (Endpoint, ExchangeClient) {
        let rng = self.network.rng();
        let endpoint = Endpoint::new(self.scenario.endpoint_config(self.spoken.clone()), None, rng);
        let concurrency = plan.len();
        let mut app =
            ExchangeClient::new(self.config.clone(), self.scenario.server_address(), plan, concurrency);
        (app.early, app.close_when_done) = (true, false);
        (endpoint, app)
    }

    /// Another process takes the server's place.
    fn exchange_server(&mut self, change: impl FnOnce(&mut TransportConfig)) {
        change(&mut self.scenario.server);
        let endpoint = early_server(&self.scenario, &mut self.network);
        self.network.replace_endpoint(self.server, endpoint);
    }

    /// The client connects from home, works off `plan` and closes.
    fn visit(&mut self, plan: Vec<Exchange>) -> Visit {
        let began = self.begin(plan);
        self.follow(self.home, began)
    }

    /// The client connects from home, now.
    fn begin(&mut self, plan: Vec<Exchange>) -> Time {
        let began = self.network.now();
        let (endpoint, app) = self.client(plan);
        self.network.replace_endpoint(self.home, endpoint);
        self.network.act(self.home, |old: &mut ExchangeClient, cx| {
            *old = app;
            old.on_start(cx);
        });
        began
    }

    /// The same from another address, over `link`.
    fn visit_from_elsewhere(&mut self, plan: Vec<Exchange>, link: &LinkConfig) -> Visit {
        self.clients += 1;
        let began = self.network.now();
        let (endpoint, app) = self.client(plan);
        let host = self.network.add_host(self.scenario.client_address(self.clients), endpoint, app);
        self.network.add_wire(host, self.server, DuplexConfig::symmetric(link.clone())).unwrap();
        self.follow(host, began)
    }

    fn follow(&mut self, host: HostId, began: Time) -> Visit {
        let stop = self.network.run_until(began + Duration::from_secs(120), |network| {
            let app = network.app::<ExchangeClient>(host).unwrap();
            app.closed.is_some() || app.failure.is_some() || app.connected_at.is_some() && app.is_done()
        });
        // The tickets and the token come a little later.
        self.network.run_for(Duration::from_secs(3));
        let seen = self.network.act(host, |app: &mut ExchangeClient, cx| {
            let connection = app.conn.and_then(|conn| cx.endpoint.connection(conn));
            let seen = connection.map(|conn| (conn.is_resumed(), conn.stats().packets_sent_by_type.zero_rtt));
            app.close(cx, 0);
            seen
        });
        let (resumed, early_packets) = seen.flatten().unwrap_or_default();
        self.network.run_for(Duration::from_secs(3));
        let app = self.network.app::<ExchangeClient>(host).unwrap();
        assert_eq!(app.failure, None);
        Visit {
            began,
            connected: app.connected_at.map(|at| at - began),
            confirmed: app.confirmed_at.map(|at| at - began),
            completed: app.completed.clone(),
            status: app.early_status,
            resumed,
            early_packets,
            stop,
        }
    }

    fn exchange_for_both_kinds(&mut self, secrets: &ServerSecrets) {
        let endpoint = server_with_both(&self.scenario, &mut self.network, secrets);
        self.network.replace_endpoint(self.server, endpoint);
    }

    fn offer_early_data(&mut self, early: bool) {
        Arc::make_mut(&mut self.config.tls).enable_early_data = early;
    }

    fn key(&self) -> SessionKey {
        let alpn = ALPN.iter().map(|name| name.to_vec()).collect();
        SessionKey::new("localhost", alpn, self.config.version)
    }

    fn server_app(&self) -> &ExchangeServer {
        self.network.app(self.server).unwrap()
    }

    /// Counts the packets of each type that the client sends from now on, by the bits of the first byte.
    fn count_zero_rtt(&mut self) -> Rc<RefCell<u32>> {
        let count = Rc::new(RefCell::new(0));
        let seen = Rc::clone(&count);
        let zero_rtt = if self.config.version == version::V2 { 0xe0 } else { 0xd0 };
        self.network.fabric().set_filter(Some(Box::new(move |packet| {
            let mut rest: &[u8] = packet.bytes;
            while let Ok(godwit_wire::header::Packet::Long { end, .. }) = godwit_wire::header::parse(rest, 8)
            {
                // Header protection leaves the type alone.
                *seen.borrow_mut() += u32::from(rest[0] & 0xf0 == zero_rtt);
                rest = &rest[end..];
            }
            true
        })));
        count
    }
}

fn request() -> Exchange {
    Exchange::request(1_000, 5_000)
}

#[test]
fn a_request_in_zero_rtt_is_answered_after_one_round_trip() {
    for version in [version::V1, version::V2] {
        let mut world = World::new(Scenario { version, ..Scenario::new(1) });
        let first = world.visit(vec![request()]);
        assert_eq!((first.status, first.resumed), (EarlyDataStatus::NotTried, false), "{first:?}");
        assert_eq!(first.first_answer(), ms(200), "handshake, then request");
        let zero_rtt = world.count_zero_rtt();
        let second = world.visit(vec![request()]);
        assert_eq!((second.status, second.resumed), (EarlyDataStatus::Accepted, true), "{second:?}");
        assert_eq!(second.first_answer(), ms(100));
        assert_eq!(second.connected, Some(ms(100)));
        assert!(*zero_rtt.borrow() > 0);
        assert_eq!((first.early_packets, second.early_packets), (0, u64::from(*zero_rtt.borrow())));
        assert_eq!(world.server_app().received, 2);
    }
}

#[test]
fn no_resumed_handshake_without_loss_waits_for_a_timer() {
    for early in [false, true] {
        let mut world = World::new(Scenario::new(1));
        world.visit(vec![request()]);
        world.offer_early_data(early);
        for delay in [Duration::from_micros(20), Duration::from_micros(500), ms(30)] {
            let visit = world.visit_from_elsewhere(vec![request()], &LinkConfig::delayed(delay));
            assert!(visit.resumed && (visit.early_packets > 0) == early, "{visit:?}");
            assert_eq!((visit.connected, visit.confirmed), (Some(2 * delay), Some(4 * delay)));
        }
    }
}

#[test]
fn a_retry_costs_zero_rtt_one_round_trip_and_no_data() {
    let mut world = World::new(Scenario { policy: Policy::Retry, ..Scenario::new(2) });
    world.visit(vec![request()]);
    // The token makes a Retry unnecessary.
    let second = world.visit(vec![request()]);
    assert_eq!((second.status, second.first_answer()), (EarlyDataStatus::Accepted, ms(100)), "{second:?}");
    while world.store.take_token(&world.key()).is_some() {}
    let third = world.visit(vec![request()]);
    assert_eq!((third.status, third.first_answer()), (EarlyDataStatus::Accepted, ms(200)), "{third:?}");
}

/// Somebody sets the calendar, forward or back by more than a year, while a download is under way. Tokens of the other
/// calendar are no longer believed, which costs the next visit a round trip; nobody is turned away for it.
#[test]
fn a_clock_that_is_set_ends_nothing_and_ages_tokens() {
    const STEP: i64 = 400 * 86_400_000_000;
    for step in [STEP, -STEP, 0] {
        let mut world = World::new(Scenario { policy: Policy::Retry, ..Scenario::new(2) });
        world.visit(vec![request()]);
        assert_eq!(world.visit(vec![request()]).first_answer(), ms(100), "the token is believed");
        let began = world.begin(vec![Exchange::download(3 << 20)]);
        world.network.run_until(began + ms(300), |_| false);
        let micros = world.network.wall().as_unix_micros().saturating_add_signed(step);
        // What it has got from the server so far is of the other calendar.
        let kept: Vec<_> = std::iter::from_fn(|| world.store.take_token(&world.key())).collect();
        assert!(!kept.is_empty());
        world.network.set_wall(WallTime::from_unix_micros(micros));
        let across = world.follow(world.home, began);
        assert_eq!((across.stop, across.completed.len()), (Stop::Condition, 1), "{across:?}");
        while world.store.take_token(&world.key()).is_some() {}
        kept.into_iter().for_each(|token| world.store.put_token(&world.key(), token));
        let believed = world.visit(vec![request()]).first_answer() == ms(100);
        assert_eq!(believed, step == 0, "set by {step}");
        assert_eq!(world.visit(vec![request()]).first_answer(), ms(100), "those of the new calendar are");
    }
}

#[test]
fn every_rejected_early_request_is_sent_again() {
    let plan = || vec![Exchange::request(3_000, 2_000); 20];
    let mut world = World::new(Scenario::new(3));
    world.visit(plan());
    world.exchange_server(|_| {});
    let zero_rtt = world.count_zero_rtt();
    let second = world.visit(plan());
    assert_eq!((second.status, second.resumed), (EarlyDataStatus::Rejected, false), "{second:?}");
    assert!(*zero_rtt.borrow() > 5, "{zero_rtt:?}");
    assert_eq!(second.completed.len(), 20);
    assert_eq!(world.server_app().received, 40);
    assert!(second.first_answer() >= ms(200));
    let third = world.visit(plan());
    assert_eq!(third.status, EarlyDataStatus::Accepted);
}

#[test]
fn rejected_streams_keep_to_lower_limits() {
    let plan = || vec![Exchange::request(30_000, 2_000); 12];
    let mut world = World::new(Scenario::new(4));
    world.visit(plan());
    world.exchange_server(|server| {
        server.initial_stream_window = 4_000;
        server.initial_connection_window = 10_000;
        server.max_bidi_streams = 3;
    });
    let second = world.visit(plan());
    assert_eq!(second.status, EarlyDataStatus::Rejected, "{second:?}");
    assert_eq!(second.completed.len(), 12, "{second:?}");
    assert_eq!(world.server_app().received, 24);
}

#[test]
fn zero_rtt_in_a_version_that_is_not_spoken_any_more_costs_one_round_trip() {
    // More than the first window holds.
    let plan = || vec![Exchange::two_way(100_000, 1_000)];
    let mut world = World::new(Scenario::new(12));
    world.visit(plan());
    world.scenario.server_versions = vec![version::V2];
    world.exchange_server(|_| {});
    let zero_rtt = world.count_zero_rtt();
    let second = world.visit(plan());
    assert!(*zero_rtt.borrow() > 5, "{zero_rtt:?}");
    assert_eq!((second.status, second.connected), (EarlyDataStatus::Rejected, Some(ms(200))));
    assert_eq!((second.completed.len(), world.server_app().received), (1, 2));
}

#[test]
fn zero_rtt_survives_loss_and_reordering() {
    let mut link = delayed(30);
    link.loss = Loss::Independent(Probability::percent(10.0));
    link.jitter = Jitter::Unordered(ms(20));
    judge_all(seeds(100, 1000), |seed| {
        let mut world = World::new(Scenario::new(seed));
        let plan = || vec![Exchange::request(8_000, 8_000); 5];
        world.visit(plan());
        let rejected = seed % 3 == 0;
        if rejected {
            world.exchange_server(|_| {});
        }
        let second = world.visit_from_elsewhere(plan(), &link);
        let expected = if rejected { EarlyDataStatus::Rejected } else { EarlyDataStatus::Accepted };
        if second.status != expected || second.completed.len() != 5 || second.stop != Stop::Condition {
            return Err(format!("{second:?}"));
        }
        if world.server_app().received != 10 {
            return Err(format!("{} exchanges arrived", world.server_app().received));
        }
        Ok(())
    });
}

#[test]
fn a_replayed_first_flight_does_nothing() {
    let mut world = World::new(Scenario::new(5));
    world.visit(vec![request()]);
    let flight = Rc::new(RefCell::new(Vec::new()));
    let (seen, server) = (Rc::clone(&flight), world.server);
    let source = world.scenario.client_address(2);
    let mut from_client = 0;
    world.network.fabric().set_filter(Some(Box::new(move |packet| {
        if packet.from != server && from_client < 3 {
            from_client += 1;
            seen.borrow_mut().push((source, packet.bytes.clone()));
        }
        true
    })));
    let second = world.visit(vec![request()]);
    assert_eq!(second.status, EarlyDataStatus::Accepted);
    assert_eq!(world.server_app().received, 2);
    let accepted = world.server_app().accepted.len();
    for (source, bytes) in flight.borrow().iter() {
        world.network.inject(world.server, *source, bytes);
    }
    world.network.run_for(Duration::from_secs(1));
    let app = world.server_app();
    assert_eq!(app.accepted.len(), accepted + 1, "the flight begins another handshake");
    assert_eq!(app.received, 2, "but its request is not heard a second time");
}

#[test]
fn a_client_begins_with_the_round_trip_time_it_knows() {
    let mut world = World::new(Scenario::new(6));
    world.visit(vec![request()]);
    let known = world.store.remembered(&world.key()).unwrap();
    assert!(known.rtt >= ms(100) && known.rtt < ms(110), "{known:?}");
    assert!(known.window > 10_000);
    // The first packet is lost; the default estimate would take a second to notice.
    let mut dropped = false;
    let server = world.server;
    world.network.fabric().set_filter(Some(Box::new(move |packet| {
        let drop = packet.from != server && !std::mem::replace(&mut dropped, true);
        !drop
    })));
    let second = world.visit(vec![request()]);
    assert_eq!(second.status, EarlyDataStatus::Accepted);
    assert!(second.first_answer() < ms(600), "{second:?}");
}

#[test]
fn zero_rtt_that_overtakes_the_client_hello_is_kept() {
    // Of every first flight the first datagram, which holds the ClientHello, is the last to arrive.
    let mut world = World::new(Scenario::new(7));
    let plan = || vec![Exchange::request(6_000, 1_000)];
    world.visit(plan());
    let held = Rc::new(RefCell::new(None));
    let (slot, home) = (Rc::clone(&held), world.home);
    let mut first = true;
    world.network.fabric().set_filter(Some(Box::new(move |packet| {
        let hold = packet.from == home && std::mem::take(&mut first);
        if hold {
            *slot.borrow_mut() = Some(packet.bytes.clone());
        }
        !hold
    })));
    let began = world.network.now();
    let (endpoint, app) = world.client(plan());
    world.network.replace_endpoint(world.home, endpoint);
    world.network.act(world.home, |old: &mut ExchangeClient, cx| {
        *old = app;
        old.on_start(cx);
    });
    world.network.run_for(ms(52));
    let hello = held.borrow_mut().take().unwrap();
    let source = world.scenario.client_address(2);
    world.network.inject(world.server, source, &hello);
    let visit = world.follow(world.home, began);
    assert_eq!(visit.status, EarlyDataStatus::Accepted);
    assert_eq!(visit.first_answer(), ms(102), "nothing had to be sent again: {visit:?}");
}

#[test]
fn a_server_with_both_kinds_of_tickets_resumes_here_and_elsewhere() {
    let mut world = World::new(Scenario::new(8));
    let secrets = ServerSecrets::from_bytes(&[8; 64]);
    let outcome = |visit: &Visit| (visit.status, visit.resumed);
    world.exchange_for_both_kinds(&secrets);
    assert_eq!(outcome(&world.visit(vec![request()])), (EarlyDataStatus::NotTried, false));
    let here = world.visit(vec![request()]);
    assert_eq!((outcome(&here), here.first_answer()), ((EarlyDataStatus::Accepted, true), ms(100)));
    // Another process with the same secrets. Each visit leaves a ticket of each kind.
    world.exchange_for_both_kinds(&secrets);
    world.offer_early_data(false);
    let elsewhere = world.visit(vec![request()]);
    assert_eq!((outcome(&elsewhere), elsewhere.first_answer()), ((EarlyDataStatus::NotTried, true), ms(200)));
    assert_eq!(outcome(&world.visit(vec![request()])), (EarlyDataStatus::NotTried, true));
    world.offer_early_data(true);
    world.exchange_for_both_kinds(&secrets);
    assert_eq!(outcome(&world.visit(vec![request()])), (EarlyDataStatus::Rejected, false));
    assert_eq!(outcome(&world.visit(vec![request()])), (EarlyDataStatus::Accepted, true));
    // With other secrets neither kind is known.
    world.exchange_for_both_kinds(&ServerSecrets::from_bytes(&[9; 64]));
    world.offer_early_data(false);
    assert_eq!(outcome(&world.visit(vec![request()])), (EarlyDataStatus::NotTried, false));
}

#[test]
fn a_client_begins_with_the_version_that_it_has_tickets_of() {
    let mut world = world_with_a_server_that_moves(9);
    let first = world.visit(vec![request()]);
    assert_eq!((first.resumed, first.first_answer()), (false, ms(300)), "{first:?}");
    let begun = world.key();
    assert!(!world.store.has_ticket(&begun) && world.store.take_token(&begun).is_none());
    for _ in 0..3 {
        let again = world.visit(vec![request()]);
        assert_eq!((again.resumed, again.first_answer()), (true, ms(100)), "token and ticket: {again:?}");
        assert_eq!(again.status, EarlyDataStatus::Accepted);
    }
}

#[test]
fn tickets_of_a_version_that_is_not_spoken_any_more_are_left_alone() {
    let mut world = world_with_a_server_that_moves(10);
    world.visit(vec![request()]);
    let mut moved = world.key();
    moved.version = version::V2;
    assert!(world.store.has_ticket(&moved));
    world.spoken = vec![version::V1];
    let second = world.visit(vec![request()]);
    assert_eq!((second.resumed, second.first_answer()), (false, ms(300)), "{second:?}");
    assert!(world.store.has_ticket(&moved));
}

#[test]
fn a_server_that_has_given_the_version_of_the_tickets_up_is_still_reached() {
    let mut world = world_with_a_server_that_moves(11);
    world.visit(vec![request()]);
    world.scenario.server_versions = vec![version::V1];
    world.exchange_server(|_| {});
    let second = world.visit(vec![request()]);
    assert_eq!((second.resumed, second.completed.len()), (false, 1), "{second:?}");
    assert_eq!(second.first_answer(), ms(300), "Version Negotiation, handshake, request");
}

/// Its server moves every client that offers version 2 to that, and demands that unknown ones prove their address.
fn world_with_a_server_that_moves(seed: u64) -> World {
    let mut world = World::new(Scenario::new(seed));
    let tls = deterministic::early_server_config(ALPN, Arc::new(EarlySessions::new(100)));
    let mut config = ServerConfig::new(tls, Arc::new(world.scenario.server.clone()));
    config.retry = true;
    let mut settings = world.scenario.endpoint_config(vec![version::V1, version::V2]);
    settings.upgrade_to = Some(version::V2);
    let endpoint = Endpoint::new(settings, Some(Arc::new(config)), world.network.rng());
    world.network.replace_endpoint(world.server, endpoint);
    world
}
