//! Two ends between which streams overtake one another: whatever the order, messages are what was sent, or were given up.

use super::memory::World;
use super::*;
use crate::{BodyRead, ErrorCode, StreamId};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use proptest::prelude::*;
use std::collections::BTreeMap;

type Pairs = Vec<(u8, u8)>;

#[derive(Debug, Clone)]
enum Step {
    Request(Pairs),
    /// The server answers the first request that waits with content of this length, perhaps after an informational response and
    /// with trailers.
    Answer(Pairs, usize, bool, bool),
    /// One of what the client, or the server, is to hear of is told to it.
    Client(usize),
    Server(usize),
    /// One of them gives the newest exchange up.
    ClientResets,
    ServerResets,
}

fn step() -> impl Strategy<Value = Step> {
    let fields = || prop::collection::vec((0_u8..8, 0_u8..4), 0..6);
    let content = || prop_oneof![Just(0_usize), 1_usize..100, 3000_usize..9000];
    prop_oneof![
        3 => fields().prop_map(Step::Request),
        3 => (fields(), content(), any::<bool>(), any::<bool>())
            .prop_map(|(fields, content, hint, trailers)| Step::Answer(fields, content, hint, trailers)),
        8 => (0_usize..6).prop_map(Step::Client),
        8 => (0_usize..6).prop_map(Step::Server),
        1 => Just(Step::ClientResets),
        1 => Just(Step::ServerResets),
    ]
}

fn header_map(pairs: &Pairs) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in pairs {
        let name = HeaderName::from_bytes(format!("x-name-{name}").as_bytes()).unwrap();
        map.append(name, HeaderValue::from_str(&"v".repeat(usize::from(*value) * 15)).unwrap());
    }
    map
}

/// What was sent of each exchange.
#[derive(Default)]
struct Sent {
    request: HeaderMap,
    response: HeaderMap,
    content: Bytes,
    read: Vec<u8>,
    answered: bool,
    heard: bool,
    given_up: bool,
}

struct Exchanges {
    client: Peer,
    server: Peer,
    sent: BTreeMap<StreamId, Sent>,
    /// Requests that the server has seen and not answered.
    open: Vec<StreamId>,
}

impl Exchanges {
    fn new(world: &World, config: &Config) -> Exchanges {
        let (client, server) = pair_of(world, config);
        Exchanges { client, server, sent: BTreeMap::new(), open: Vec::new() }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Request(pairs) => {
                let mut request = Request::get("https://a.example/the/same").body(()).unwrap();
                *request.headers_mut() = header_map(pairs);
                let id = self.client.connection.send_request(&mut self.client.io, &request, true).unwrap();
                let request = request.headers().clone();
                self.sent.insert(id, Sent { request, ..Sent::default() });
            }
            Step::Answer(pairs, content, hint, trailers) if !self.open.is_empty() => {
                let id = self.open.remove(0);
                self.answer(id, header_map(pairs), *content, *hint, *trailers);
            }
            Step::Answer(..) => {}
            Step::Client(nth) => self.client.deliver(*nth),
            Step::Server(nth) => self.server.deliver(*nth),
            Step::ClientResets | Step::ServerResets => {
                let Some((id, sent)) = self.sent.iter_mut().next_back() else { return };
                sent.given_up = true;
                let by_client = matches!(step, Step::ClientResets);
                let peer = if by_client { &mut self.client } else { &mut self.server };
                peer.connection.reset(&mut peer.io, *id, ErrorCode::H3_REQUEST_CANCELLED);
            }
        }
        self.hear();
    }

    fn answer(&mut self, id: StreamId, headers: HeaderMap, content: usize, hint: bool, trailers: bool) {
        let Peer { connection, io } = &mut self.server;
        if !connection.has_request(id) {
            return;
        }
        let sent = self.sent.get_mut(&id).unwrap();
        let content: Bytes = (0..content).map(|n| (n % 251) as u8).collect();
        (sent.response, sent.content, sent.answered) = (headers.clone(), content.clone(), true);
        let mut response = Response::new(());
        *response.headers_mut() = headers.clone();
        // What the client no longer wants may be refused.
        if hint {
            *response.status_mut() = http::StatusCode::EARLY_HINTS;
            let _ = connection.send_informational(io, id, &response);
            *response.status_mut() = http::StatusCode::OK;
        }
        if connection.send_response_with(io, id, &response, &content, !trailers).is_ok() && trailers {
            let _ = connection.send_trailers(io, id, &headers);
        }
    }

    fn hear(&mut self) {
        for event in self.server.events() {
            match event {
                Event::Request { id, request, .. } => {
                    assert_eq!(request.headers(), &self.sent[&id].request);
                    self.open.push(id);
                }
                Event::Closed { error } => panic!("{error}"),
                _ => {}
            }
        }
        for event in self.client.events() {
            match event {
                Event::Informational { id, response } => {
                    assert_eq!(response.headers(), &self.sent[&id].response);
                }
                Event::Response { id, response, .. } => {
                    assert_eq!(response.headers(), &self.sent[&id].response);
                    self.read(id);
                }
                Event::DataReadable { id } => self.read(id),
                Event::Closed { error } => panic!("{error}"),
                _ => {}
            }
        }
    }

    fn read(&mut self, id: StreamId) {
        let sent = self.sent.get_mut(&id).unwrap();
        loop {
            match self.client.connection.read_body(&mut self.client.io, id, 100) {
                Ok(BodyRead::Trailers(trailers)) => assert_eq!(trailers, sent.response),
                Ok(BodyRead::Blocked) => return,
                Ok(BodyRead::Data(data)) => sent.read.extend_from_slice(&data),
                Ok(BodyRead::End) => {
                    assert_eq!(sent.read, sent.content);
                    sent.heard = true;
                    return;
                }
                Err(_) => {
                    sent.heard = true;
                    return;
                }
            }
        }
    }

    /// Each end hears what the other has kept back of its answers.
    fn acknowledge(&mut self) {
        let (client, server) = (&mut self.client.connection, &mut self.server.connection);
        let (mut by_client, mut by_server) = (Vec::new(), Vec::new());
        client.shared.compression.decoder.take_feedback(&mut by_client);
        server.shared.compression.decoder.take_feedback(&mut by_server);
        server.shared.compression.encoder.on_decoder_stream(&by_client, |_| Ok(false)).unwrap();
        client.shared.compression.encoder.on_decoder_stream(&by_server, |_| Ok(false)).unwrap();
    }

    fn settle(&mut self) {
        while self.client.pump() | self.server.pump() {
            self.hear();
        }
        self.hear();
    }
}

impl Peer {
    /// Tells the connection one of the things that have happened.
    fn deliver(&mut self, nth: usize) {
        if let Some(notice) = self.io.take_notice(nth) {
            memory::deliver(&mut self.connection, &mut self.io, notice);
        }
    }
}

proptest! {
    #[test]
    fn messages_are_what_was_sent_whatever_the_order(
        steps in prop::collection::vec(step(), 1..150),
        capacity in prop_oneof![Just(0_u64), 64_u64..400, Just(4096)],
        blocked in 0_usize..4,
        window in prop_oneof![Just(1_usize << 20), 20_usize..300],
        chunk in 1_usize..200,
    ) {
        let world = World::new(window, chunk);
        let config = Config { qpack_max_table_capacity: capacity, qpack_blocked_streams: blocked, ..Config::default() };
        let mut exchanges = Exchanges::new(&world, &config);
        for step in &steps {
            exchanges.step(step);
        }
        exchanges.settle();
        while let Some(id) = exchanges.open.pop() {
            exchanges.answer(id, HeaderMap::new(), 0, false, false);
        }
        exchanges.settle();
        prop_assert_eq!(world.closed(), None);
        for (id, sent) in &exchanges.sent {
            prop_assert!(sent.given_up || (sent.answered && sent.heard), "{:?} is not over", id);
        }
        exchanges.acknowledge();
        for peer in [&exchanges.client, &exchanges.server] {
            let shared = &peer.connection.shared;
            prop_assert_eq!((peer.connection.open_requests(), shared.held() - shared.compression.held()), (0, 0));
            prop_assert!(shared.compression.encoder.is_settled(), "no section waits for an answer");
        }
    }
}
