//! QUIC on a plain `epoll` loop: no asynchronous runtime, no thread but this one. Linux only.
//!
//! - `epoll_echo serve CERTIFICATE.pem KEY.pem ADDRESS:PORT [CONNECTIONS]` sends back whatever comes on streams, and
//!   ends after so many connections if told;
//! - `epoll_echo ask CERTIFICATE.pem ADDRESS:PORT STREAMS` opens so many streams, sends a message on each, and checks
//!   that the same comes back.

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("this example needs epoll, which only Linux has");
    std::process::exit(1);
}

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    const USAGE: &str = "usage: epoll_echo serve CERTIFICATE.pem KEY.pem ADDRESS:PORT [CONNECTIONS]\n       \
                         epoll_echo ask CERTIFICATE.pem ADDRESS:PORT STREAMS";
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", certificate, key, addr] => linux::serve(certificate, key, addr.parse()?, usize::MAX),
        ["serve", certificate, key, addr, connections] => {
            linux::serve(certificate, key, addr.parse()?, connections.parse()?)
        }
        ["ask", certificate, addr, streams] => linux::ask(certificate, addr.parse()?, streams.parse()?),
        _ => Err(USAGE.into()),
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use bytes::Bytes;
    use godwit::polled::{ConnKey, Event, PolledConnection, PolledEndpoint, PolledEvent, ReadChunk};
    use godwit::{ClientConfig, Direction, Endpoint, ServerConfig, StreamId};
    use rustix::event::epoll;
    use rustix::time::Timespec;
    use std::collections::HashMap;
    use std::error::Error;
    use std::io::Write;
    use std::mem::MaybeUninit;
    use std::net::SocketAddr;
    use std::ops::ControlFlow;
    use std::time::Instant;

    const MOST_AT_ONCE: usize = 64 << 10;
    const GOODBYE: u32 = 0;
    const WRONG_ECHO: u32 = 1;

    /// What the loop calls.
    trait Application {
        fn on_event(&mut self, endpoint: &mut PolledEndpoint, event: PolledEvent);

        /// Whether there is no more to do.
        fn is_done(&self, endpoint: &PolledEndpoint) -> bool;
    }

    /// The loop: waits until a socket is ready or the time has come, and polls.
    fn run(endpoint: &mut PolledEndpoint, application: &mut impl Application) -> Result<(), Box<dyn Error>> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for socket in endpoint.sockets() {
            // Edge-triggered, the sockets need not be registered anew when one is full: that it is no longer is an edge.
            let interest = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
            epoll::add(&epoll, socket, epoll::EventData::new_u64(0), interest)?;
        }
        let mut ready = [MaybeUninit::uninit(); 8];
        loop {
            let wait = endpoint.poll(now(), |endpoint, event| application.on_event(endpoint, event))?;
            if application.is_done(endpoint) {
                return Ok(());
            }
            let timeout = wait.timeout(now()).map(Timespec::try_from).transpose()?;
            match epoll::wait(&epoll, &mut ready, timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a program's main loop is where the clock is read")]
    fn now() -> Instant {
        Instant::now()
    }

    pub(super) fn serve(
        certificate: &str,
        key: &str,
        addr: SocketAddr,
        connections: usize,
    ) -> Result<(), Box<dyn Error>> {
        let config = ServerConfig::from_pem_files(certificate, key).alpn(["echo"]).build()?;
        let mut endpoint = Endpoint::builder().server(config).bind(addr).build_polled()?;
        println!("listening on {}", endpoint.local_addr()?);
        std::io::stdout().flush()?;
        let mut server = Server { left: connections, ..Server::default() };
        run(&mut endpoint, &mut server)?;
        println!("{} streams echoed", server.echoed);
        Ok(())
    }

    /// Sends everything back.
    #[derive(Default)]
    struct Server {
        /// What was read and could not be sent back yet, by stream. No more is read before it is.
        waiting: HashMap<(ConnKey, StreamId), Bytes>,
        echoed: usize,
        /// Connections to serve before it is enough.
        left: usize,
    }

    impl Application for Server {
        fn on_event(&mut self, endpoint: &mut PolledEndpoint, event: PolledEvent) {
            match event {
                PolledEvent::Incoming(client) => {
                    // A client that is gone meanwhile cannot be accepted.
                    let _ = endpoint.accept(client);
                }
                PolledEvent::Connection(key, Event::StreamOpened { direction }) => {
                    let Some(mut connection) = endpoint.connection(key) else { return };
                    while let Some(id) = connection.accept(direction) {
                        self.echo(&mut connection, id);
                    }
                }
                PolledEvent::Connection(key, Event::Readable { id } | Event::Writable { id }) => {
                    let Some(mut connection) = endpoint.connection(key) else { return };
                    self.echo(&mut connection, id);
                }
                PolledEvent::Connection(key, Event::Closed { reason }) => {
                    eprintln!("a connection is over: {reason}");
                    self.waiting.retain(|(owner, _), _| *owner != key);
                    self.left = self.left.saturating_sub(1);
                }
                _ => {}
            }
        }

        fn is_done(&self, endpoint: &PolledEndpoint) -> bool {
            self.left == 0 && endpoint.is_idle()
        }
    }

    impl Server {
        /// Goes on with a stream until there is nothing to read or no room to write. An event follows either.
        fn echo(&mut self, connection: &mut PolledConnection<'_>, id: StreamId) {
            let place = (connection.key(), id);
            let mut unsent = self.waiting.remove(&place).unwrap_or_default();
            loop {
                match connection.write(id, unsent.clone()) {
                    Ok(taken) if taken < unsent.len() => {
                        self.waiting.insert(place, unsent.split_off(taken));
                        return;
                    }
                    Ok(_) => {}
                    // The client does not want it, or the stream has only one direction.
                    Err(_) => {
                        let _ = connection.stop_sending(id, GOODBYE);
                        return;
                    }
                }
                unsent = match connection.read(id, MOST_AT_ONCE) {
                    Ok(ReadChunk::Data(data)) => data,
                    Ok(ReadChunk::Finished) => {
                        self.echoed += usize::from(connection.finish(id).is_ok());
                        return;
                    }
                    Ok(ReadChunk::Blocked) => return,
                    Err(_) => {
                        let _ = connection.reset(id, GOODBYE);
                        return;
                    }
                }
            }
        }
    }

    pub(super) fn ask(certificate: &str, addr: SocketAddr, streams: u64) -> Result<(), Box<dyn Error>> {
        let config = ClientConfig::with_roots_file(certificate).alpn(["echo"]).build()?;
        let any_port = SocketAddr::new(if addr.is_ipv4() { [0; 4].into() } else { [0; 16].into() }, 0);
        let mut endpoint = Endpoint::builder().bind(any_port).build_polled()?;
        endpoint.connect(&config, addr, "localhost")?;
        let mut client = Client { unopened: 0..streams, open: HashMap::new(), result: None };
        run(&mut endpoint, &mut client)?;
        client.result.unwrap_or(Err("it ended early".to_owned()))?;
        println!("{streams} messages came back");
        Ok(())
    }

    /// Sends messages and checks what comes back.
    struct Client {
        /// The numbers of the messages that have no stream yet.
        unopened: std::ops::Range<u64>,
        open: HashMap<StreamId, Exchange>,
        result: Option<Result<(), String>>,
    }

    struct Exchange {
        unsent: Bytes,
        expected: Bytes,
    }

    /// Messages differ in content and length.
    fn message(number: u64) -> Bytes {
        let len = usize::try_from(number * 977 % 8000).unwrap_or_default();
        (0..len).map(|at| (number as usize ^ at ^ (at >> 8)) as u8).collect()
    }

    impl Application for Client {
        fn on_event(&mut self, endpoint: &mut PolledEndpoint, event: PolledEvent) {
            let PolledEvent::Connection(key, event) = event else { return };
            if let Event::Closed { reason } = event {
                let early = || Err(format!("the connection is over: {reason}"));
                self.result.get_or_insert_with(early);
                return;
            }
            let Some(mut connection) = endpoint.connection(key) else { return };
            let outcome = match event {
                Event::Connected | Event::StreamsAvailable { .. } => self.open(&mut connection),
                Event::Writable { id } => self.send(&mut connection, id),
                Event::Readable { id } => self.receive(&mut connection, id),
                _ => Ok(ControlFlow::Continue(())),
            };
            match outcome {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => {
                    connection.close(GOODBYE, b"thank you");
                    self.result = Some(Ok(()));
                }
                Err(error) => {
                    connection.close(WRONG_ECHO, error.as_bytes());
                    self.result = Some(Err(error));
                }
            }
        }

        /// The server has been told, and the connection is over.
        fn is_done(&self, endpoint: &PolledEndpoint) -> bool {
            self.result.is_some() && endpoint.is_idle()
        }
    }

    impl Client {
        /// Opens as many streams as are wanted and permitted. Breaks when all is done.
        fn open(&mut self, connection: &mut PolledConnection<'_>) -> Result<ControlFlow<()>, String> {
            while !self.unopened.is_empty()
                && let Some(id) = connection.open(Direction::Bidirectional)
            {
                let message = self.unopened.next().map(message).unwrap_or_default();
                self.open.insert(id, Exchange { unsent: message.clone(), expected: message });
                let _ = self.send(connection, id)?;
            }
            let done = self.open.is_empty() && self.unopened.is_empty();
            Ok(if done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        }

        fn send(
            &mut self,
            connection: &mut PolledConnection<'_>,
            id: StreamId,
        ) -> Result<ControlFlow<()>, String> {
            let Some(exchange) = self.open.get_mut(&id) else { return Ok(ControlFlow::Continue(())) };
            let taken = connection.write(id, exchange.unsent.clone()).map_err(|error| error.to_string())?;
            exchange.unsent = exchange.unsent.split_off(taken);
            if exchange.unsent.is_empty() {
                connection.finish(id).map_err(|error| error.to_string())?;
            }
            Ok(ControlFlow::Continue(()))
        }

        fn receive(
            &mut self,
            connection: &mut PolledConnection<'_>,
            id: StreamId,
        ) -> Result<ControlFlow<()>, String> {
            while let Some(exchange) = self.open.get_mut(&id) {
                match connection.read(id, MOST_AT_ONCE).map_err(|error| error.to_string())? {
                    ReadChunk::Data(data) if exchange.expected.starts_with(&data) => {
                        exchange.expected = exchange.expected.split_off(data.len());
                    }
                    ReadChunk::Finished if exchange.expected.is_empty() => {
                        self.open.remove(&id);
                        return self.open(connection);
                    }
                    ReadChunk::Blocked => break,
                    ReadChunk::Data(_) | ReadChunk::Finished => return Err(format!("{id} is not an echo")),
                }
            }
            Ok(ControlFlow::Continue(()))
        }
    }
}
