//! The bad link without privileges: a relay between the visitors and the server, both on the loopback interface.
//!
//! UDP datagrams are delayed and dropped as they are, so that QUIC meets the link for real. A kernel's TCP packets
//! cannot be had without privileges: TCP ends at the relay on both sides, and the bytes in between go through
//! [`super::tcp_model`].

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use godwit_base::Time;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::delay::DelayQueue;
use super::links::{Clock, Links, Tally, VisitLink, Way};
use super::relay::Ended;
use super::tcp_model::{Connection, Side};

/// Bytes that one side may write before the relay reads no more of it, as a kernel's send buffer would have it.
const BUFFER: usize = 1 << 20;
/// Headers of IPv4 and UDP, in bytes.
const UDP_HEADERS: usize = 28;
/// A visit's link is kept this long after its end: what is under way still arrives.
const AFTERLIFE: Duration = Duration::from_secs(3);
/// The same port has to be free for UDP and TCP: how often to ask.
const ATTEMPTS: usize = 32;

/// The relay's sockets, bound and not yet used.
#[derive(Debug)]
pub(super) struct Sockets {
    udp: std::net::UdpSocket,
    tcp: std::net::TcpListener,
    pub(super) address: SocketAddr,
}

impl Sockets {
    pub(super) fn bind() -> io::Result<Sockets> {
        let mut attempts = ATTEMPTS;
        loop {
            attempts -= 1;
            let udp = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            let address = udp.local_addr()?;
            match std::net::TcpListener::bind(address) {
                Ok(tcp) => {
                    udp.set_nonblocking(true)?;
                    tcp.set_nonblocking(true)?;
                    return Ok(Sockets { udp, tcp, address });
                }
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && attempts > 0 => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Relays until the future is dropped.
pub(super) async fn run(
    sockets: Sockets,
    server: SocketAddr,
    links: Links,
    tally: Arc<Tally>,
    ended: mpsc::UnboundedReceiver<Ended>,
) -> io::Result<()> {
    let clock = Clock::start();
    let listener = TcpListener::from_std(sockets.tcp)?;
    let socket = UdpSocket::from_std(sockets.udp)?;
    let datagrams = Datagrams::new(socket, server, links.clone(), clock, Arc::clone(&tally));
    tokio::select! {
        outcome = accept(&listener, server, &links, clock, &tally) => outcome,
        outcome = datagrams.run(ended) => outcome,
    }
}

async fn accept(
    listener: &TcpListener,
    server: SocketAddr,
    links: &Links,
    clock: Clock,
    tally: &Arc<Tally>,
) -> io::Result<()> {
    loop {
        let (client, address) = listener.accept().await?;
        let now = clock.now();
        let connection = Connection::open(links.of(address.port(), now), Arc::clone(tally), now);
        tokio::spawn(async move {
            if let Err(error) = carry(client, server, connection, clock).await {
                tracing::debug!(%error, "a relayed TCP connection failed");
            }
        });
    }
}

/// One TCP connection, until either side has closed it and everything of that side has arrived.
async fn carry(
    mut client: TcpStream,
    server: SocketAddr,
    mut connection: Connection,
    clock: Clock,
) -> io::Result<()> {
    let mut server = TcpStream::connect(server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut client_ended, mut server_ended) = (false, false);
    let (mut from_client, mut from_server) = (BytesMut::new(), BytesMut::new());
    loop {
        connection.advance(clock.now());
        while let Some(data) = connection.read(Side::Server) {
            server.write_all(&data).await?;
        }
        while let Some(data) = connection.read(Side::Client) {
            client.write_all(&data).await?;
        }
        let (up, down) = (connection.backlog(Side::Client), connection.backlog(Side::Server));
        if (client_ended && up == 0) || (server_ended && down == 0) {
            return Ok(());
        }
        from_client.reserve(1 << 14);
        from_server.reserve(1 << 14);
        tokio::select! {
            read = client.read_buf(&mut from_client), if !client_ended && up < BUFFER => {
                client_ended = read? == 0;
                let now = clock.now();
                connection.advance(now);
                connection.write(Side::Client, now, from_client.split().freeze());
            }
            read = server.read_buf(&mut from_server), if !server_ended && down < BUFFER => {
                server_ended = read? == 0;
                let now = clock.now();
                connection.advance(now);
                connection.write(Side::Server, now, from_server.split().freeze());
            }
            () = clock.sleep_until(connection.next()) => {}
        }
    }
}

/// What is to happen to a visit over UDP.
#[derive(Debug)]
enum Event {
    Deliver(Way, Vec<u8>),
    Forget,
}

/// A visit over UDP: its link, and the socket by which the server sees it.
#[derive(Debug)]
struct Visit {
    link: VisitLink,
    client: SocketAddr,
    upstream: Arc<UdpSocket>,
    reader: JoinHandle<()>,
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// The relay for UDP.
#[derive(Debug)]
struct Datagrams {
    socket: UdpSocket,
    server: SocketAddr,
    links: Links,
    clock: Clock,
    tally: Arc<Tally>,
    visits: BTreeMap<u16, Visit>,
    due: DelayQueue<(u16, Event)>,
}

impl Datagrams {
    fn new(
        socket: UdpSocket,
        server: SocketAddr,
        links: Links,
        clock: Clock,
        tally: Arc<Tally>,
    ) -> Datagrams {
        Datagrams { socket, server, links, clock, tally, visits: BTreeMap::new(), due: DelayQueue::new() }
    }

    async fn run(mut self, mut ended: mpsc::UnboundedReceiver<Ended>) -> io::Result<()> {
        let (answers, mut answered) = mpsc::unbounded_channel();
        let mut buffer = vec![0; 1 << 16];
        loop {
            tokio::select! {
                biased;
                () = self.clock.sleep_until(self.due.next()) => self.deliver().await,
                received = self.socket.recv_from(&mut buffer) => {
                    // Linux tells of an earlier datagram that nobody took; it is of no interest here.
                    let Ok((len, client)) = received else { continue };
                    self.on_client(client, buffer.get(..len).unwrap_or_default(), &answers).await?;
                }
                Some((port, data)) = answered.recv() => self.pass(port, Way::Down, data),
                Some(Ended(port)) = ended.recv() => {
                    self.due.push(self.clock.now() + AFTERLIFE, (port, Event::Forget));
                }
            }
        }
    }

    async fn on_client(
        &mut self,
        client: SocketAddr,
        data: &[u8],
        answers: &mpsc::UnboundedSender<(u16, Vec<u8>)>,
    ) -> io::Result<()> {
        let port = client.port();
        if !self.visits.contains_key(&port) {
            let upstream = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            upstream.connect(self.server).await?;
            let upstream = Arc::new(upstream);
            let reader = tokio::spawn(read(Arc::clone(&upstream), port, answers.clone()));
            let link = self.links.of(port, self.clock.now());
            self.visits.insert(port, Visit { link, client, upstream, reader });
        }
        self.pass(port, Way::Up, data.to_vec());
        Ok(())
    }

    /// Puts a datagram on the link.
    fn pass(&mut self, port: u16, way: Way, data: Vec<u8>) {
        let now: Time = self.clock.now();
        let Some(visit) = self.visits.get_mut(&port) else { return };
        if let Some(at) = visit.link.send(way, now, data.len() + UDP_HEADERS, &self.tally) {
            self.due.push(at, (port, Event::Deliver(way, data)));
        }
    }

    async fn deliver(&mut self) {
        let now = self.clock.now();
        while let Some((at, (port, event))) = self.due.pop(now) {
            let Some(visit) = self.visits.get(&port) else { continue };
            // A datagram that cannot be sent is lost, as datagrams may be.
            match event {
                Event::Deliver(way, data) => {
                    self.tally.on_delivery(at, now);
                    let _ = match way {
                        Way::Up => visit.upstream.send(&data).await,
                        Way::Down => self.socket.send_to(&data, visit.client).await,
                    };
                }
                Event::Forget => drop(self.visits.remove(&port)),
            }
        }
    }
}

async fn read(upstream: Arc<UdpSocket>, port: u16, answers: mpsc::UnboundedSender<(u16, Vec<u8>)>) {
    let mut buffer = vec![0; 1 << 11];
    loop {
        let Ok(len) = upstream.recv(&mut buffer).await else { continue };
        if answers.send((port, buffer.get(..len).unwrap_or_default().to_vec())).is_err() {
            return;
        }
    }
}
