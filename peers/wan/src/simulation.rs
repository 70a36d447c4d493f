//! An upload by quinn over a modelled link, in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use godwit_base::Time;
use godwit_link::{
    Duplex, DuplexConfig, IpVersion, LinkConfig, Loss, Probability, QueueLimit, Rate, Reorder,
};
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionEvent, ConnectionHandle, DatagramEvent, Dir, Endpoint,
    EndpointConfig, Event, MtuDiscoveryConfig, ServerConfig, StreamEvent, StreamId, TransportConfig, VarInt,
};

const DURATION: Duration = Duration::from_secs(10);
/// More than any of the links holds, so that congestion control alone decides.
const WINDOW: u32 = 256 << 20;
static ZEROS: [u8; 16 << 10] = [0; 16 << 10];
/// Datagrams that quinn sends at once. Its sockets take ten where the kernel cuts them up (GSO), which shallow queues do not
/// hold; one shows the controllers at their best.
const AT_ONCE: usize = 1;

/// What `godwit wan` says of a network: losses and the like are denominators, times milliseconds.
pub struct Network {
    pub megabits: u32,
    pub rtt: u32,
    pub queue: u32,
    pub loss: u32,
    pub reorder: u32,
    pub delay: u32,
}

#[derive(Clone, Copy)]
pub enum Controller {
    Cubic,
    Bbr,
}

/// Both in percent.
#[derive(Debug)]
pub struct Outcome {
    pub usage: f64,
    pub waste: f64,
    /// Why the connection ended before its time.
    pub broken: Option<String>,
}

impl Network {
    fn link(&self) -> DuplexConfig {
        let one_of = |count: u32| match count {
            0 => Probability::NEVER,
            count => Probability::new(1.0 / f64::from(count)),
        };
        let mut link = LinkConfig::delayed(Duration::from_millis(self.rtt.into()) / 2);
        link.rate = Some(self.rate());
        link.queue = QueueLimit::Packets(self.queue as usize);
        link.loss = Loss::Independent(one_of(self.loss));
        if self.reorder > 0 {
            let extra = Duration::from_millis(self.delay.into());
            link.reorder = Some(Reorder { probability: one_of(self.reorder), extra });
        }
        DuplexConfig::symmetric(link)
    }

    fn rate(&self) -> Rate {
        Rate::megabits(self.megabits.into())
    }
}

/// The client, then the server.
const ADDRESSES: [([u8; 4], u16); 2] = [([10, 0, 0, 2], 5000), ([10, 0, 0, 1], 443)];
const CLIENT: usize = 0;

struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    broken: Option<String>,
}

/// A datagram on its way: when it arrives, its number, where, and what it holds.
type Arrival = Reverse<(Time, u64, usize, Vec<u8>)>;

struct Simulation {
    ends: [End; 2],
    link: Duplex,
    arrivals: BinaryHeap<Arrival>,
    sent: u64,
    began: Instant,
    now: Time,
    /// What the client writes to.
    stream: Option<StreamId>,
    received: u64,
}

pub fn run(network: &Network, controller: Controller, seed: u64) -> Outcome {
    let mut simulation = Simulation::new(network, controller, seed);
    simulation.run();
    let [client, server] = &simulation.ends;
    let counters = simulation.link.up.counters();
    Outcome {
        usage: 100.0 * simulation.received as f64 / network.rate().bytes_in(DURATION) as f64,
        waste: 100.0 * counters.queue_drops as f64 / counters.sent_packets.max(1) as f64,
        broken: client.broken.clone().or_else(|| server.broken.clone()),
    }
}

fn transport(controller: Controller) -> Arc<TransportConfig> {
    let factory: Arc<dyn ControllerFactory + Send + Sync> = match controller {
        Controller::Cubic => Arc::new(CubicConfig::default()),
        Controller::Bbr => Arc::new(BbrConfig::default()),
    };
    let mut mtu = MtuDiscoveryConfig::default();
    mtu.upper_bound(1472);
    let mut transport = TransportConfig::default();
    transport
        .congestion_controller_factory(factory)
        .stream_receive_window(VarInt::from_u32(WINDOW))
        .receive_window(VarInt::from_u32(WINDOW))
        .send_window(WINDOW.into())
        .mtu_discovery_config(Some(mtu));
    Arc::new(transport)
}

/// A certificate for all simulations.
fn configs() -> &'static (ClientConfig, ServerConfig) {
    static CONFIGS: OnceLock<(ClientConfig, ServerConfig)> = OnceLock::new();
    CONFIGS.get_or_init(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate = own.cert.der().clone();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate.clone()).unwrap();
        let key = rustls::pki_types::PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
        let server = ServerConfig::with_single_cert(vec![certificate], key).unwrap();
        (ClientConfig::with_root_certificates(Arc::new(roots)).unwrap(), server)
    })
}

impl Simulation {
    fn new(network: &Network, controller: Controller, seed: u64) -> Simulation {
        let (mut client, mut server) = configs().clone();
        client.transport_config(transport(controller));
        server.transport_config(transport(controller));
        let mut random = [0; 32];
        random[..8].copy_from_slice(&seed.to_le_bytes());
        let endpoint = |server, end: u8| {
            random[8] = end;
            Endpoint::new(Arc::new(EndpointConfig::default()), server, true, Some(random))
        };
        let mut endpoint = endpoint;
        let end = |endpoint| End { endpoint, connection: None, broken: None };
        let mut ends = [end(endpoint(None, 0)), end(endpoint(Some(Arc::new(server)), 1))];
        // Only differences of these times matter.
        let began = Instant::now();
        let connected = ends[CLIENT].endpoint.connect(began, client, ADDRESSES[1].into(), "localhost");
        ends[CLIENT].connection = Some(connected.unwrap());
        let link = Duplex::new(network.link(), seed);
        let (arrivals, now) = (BinaryHeap::new(), Time::ZERO);
        Simulation { ends, link, arrivals, sent: 0, began, now, stream: None, received: 0 }
    }

    fn instant(&self) -> Instant {
        self.began + (self.now - Time::ZERO)
    }

    fn run(&mut self) {
        let end = Time::ZERO + DURATION;
        loop {
            (0..2).for_each(|at| self.drive(at));
            let timeouts = self.ends.iter_mut().filter_map(|end| end.connection.as_mut()?.1.poll_timeout());
            let timeout = timeouts.min().map(|at| Time::ZERO + at.saturating_duration_since(self.began));
            let arrival = self.arrivals.peek().map(|Reverse(arrival)| arrival.0);
            let Some(next) = timeout.into_iter().chain(arrival).min().filter(|next| *next < end) else {
                return;
            };
            self.now = self.now.max(next);
            while self.arrivals.peek().is_some_and(|Reverse(arrival)| arrival.0 <= self.now) {
                let Some(Reverse((_, _, at, datagram))) = self.arrivals.pop() else { break };
                self.receive(at, &datagram);
            }
            let instant = self.instant();
            for (_, connection) in self.ends.iter_mut().filter_map(|end| end.connection.as_mut()) {
                if connection.poll_timeout().is_some_and(|at| at <= instant) {
                    connection.handle_timeout(instant);
                }
            }
        }
    }

    fn receive(&mut self, at: usize, datagram: &[u8]) {
        let (instant, from) = (self.instant(), SocketAddr::from(ADDRESSES[1 - at]));
        let mut buffer = Vec::new();
        let end = &mut self.ends[at];
        match end.endpoint.handle(instant, from, None, None, BytesMut::from(datagram), &mut buffer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => handle(end, event),
            Some(DatagramEvent::NewConnection(incoming)) => {
                end.connection = end.endpoint.accept(incoming, instant, &mut buffer, None).ok();
            }
            Some(DatagramEvent::Response(transmit)) => self.send(at, &buffer[..transmit.size]),
            None => {}
        }
    }

    /// Everything that an end has to do now.
    fn drive(&mut self, at: usize) {
        let instant = self.instant();
        loop {
            let end = &mut self.ends[at];
            let Some((handle_of, connection)) = &mut end.connection else { return };
            let handle_of = *handle_of;
            if let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = end.endpoint.handle_event(handle_of, event) {
                    handle(end, event);
                }
                continue;
            }
            if let Some(event) = connection.poll() {
                self.on_event(at, event);
                continue;
            }
            let mut buffer = Vec::new();
            let Some(transmit) = connection.poll_transmit(instant, AT_ONCE, &mut buffer) else { return };
            let segment = transmit.segment_size.unwrap_or(transmit.size).max(1);
            buffer[..transmit.size].chunks(segment).for_each(|datagram| self.send(at, datagram));
        }
    }

    fn on_event(&mut self, at: usize, event: Event) {
        let Some((_, connection)) = &mut self.ends[at].connection else { return };
        match event {
            Event::Connected if at == CLIENT => {
                self.stream = connection.streams().open(Dir::Uni);
                self.write();
            }
            Event::Stream(StreamEvent::Writable { .. }) => self.write(),
            Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                if let Some(id) = connection.streams().accept(Dir::Uni) {
                    self.read(id);
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => self.read(id),
            Event::ConnectionLost { reason } => self.ends[at].broken = Some(reason.to_string()),
            _ => {}
        }
    }

    fn write(&mut self) {
        let (Some(id), Some((_, connection))) = (self.stream, &mut self.ends[CLIENT].connection) else {
            return;
        };
        while connection.send_stream(id).write(&ZEROS).is_ok_and(|taken| taken == ZEROS.len()) {}
    }

    fn read(&mut self, id: StreamId) {
        let Some((_, connection)) = &mut self.ends[1 - CLIENT].connection else { return };
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            self.received += chunk.bytes.len() as u64;
        }
        let _ = chunks.finalize();
    }

    fn send(&mut self, from: usize, datagram: &[u8]) {
        let link = if from == CLIENT { &mut self.link.up } else { &mut self.link.down };
        for delivery in link.send(self.now, datagram.len(), IpVersion::V4).deliveries() {
            self.sent += 1;
            self.arrivals.push(Reverse((delivery.at, self.sent, 1 - from, datagram.to_vec())));
        }
    }
}

fn handle(end: &mut End, event: ConnectionEvent) {
    if let Some((_, connection)) = &mut end.connection {
        connection.handle_event(event);
    }
}
