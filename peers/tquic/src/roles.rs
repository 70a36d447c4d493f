//! What connections are for.

use crate::network::{Network, Sender};
use anyhow::{Context, Result, bail};
use bytes::Bytes;
use peer_perf::polled::{Answers, Client, Read, Streams};
use peer_perf::socket::{SEGMENTS, Socket};
use peer_perf::{
    ALPN, CONNECTION_WINDOW, IDLE, MTU, Measure, Outcome, STREAM_WINDOW, STREAMS, Serve, Timings, Work, idle,
};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tquic::{
    Config, CongestionControlAlgorithm, Connection, Endpoint, Error, Shutdown, TlsConfig, TransportHandler,
};

/// How often somebody who waits for the end of the standard input looks.
const NAP: Duration = Duration::from_millis(20);

fn settings(mut tls: TlsConfig) -> Result<Box<Config>> {
    tls.set_verify(false);
    let mut config = Config::new()?;
    config.set_tls_config(tls);
    config.set_max_idle_timeout(IDLE.as_millis() as u64);
    config.set_recv_udp_payload_size(MTU);
    config.set_send_udp_payload_size(MTU.into());
    config.set_initial_max_data(CONNECTION_WINDOW.into());
    config.set_max_connection_window(CONNECTION_WINDOW.into());
    config.set_initial_max_stream_data_bidi_local(STREAM_WINDOW.into());
    config.set_initial_max_stream_data_bidi_remote(STREAM_WINDOW.into());
    config.set_max_stream_window(STREAM_WINDOW.into());
    config.set_initial_max_streams_bidi(STREAMS.into());
    config.set_congestion_control_algorithm(CongestionControlAlgorithm::Cubic);
    config.set_send_batch_size(SEGMENTS);
    // Its pacer knows no less than a millisecond.
    config.enable_pacing(false);
    Ok(Box::new(config))
}

pub fn serve(options: &Serve) -> Result<()> {
    options.cipher.only_aes128("TQUIC")?;
    let name = |path: &std::path::Path| path.to_str().map(str::to_owned).context("a name in UTF-8");
    let (cert, key) = (name(&options.cert)?, name(&options.key)?);
    let tls = TlsConfig::new_server_config(&cert, &key, vec![ALPN.into()], false)?;
    let socket = Rc::new(Socket::bind(options.listen)?);
    println!("listening {}", socket.local());
    let handler = Box::new(Server::default());
    let mut endpoint = Endpoint::new(settings(tls)?, true, handler, Rc::new(Sender(socket.clone())));
    let mut network = Network::new(socket);
    loop {
        network.turn(&mut endpoint, None)?;
    }
}

/// Answers, by connection.
#[derive(Default)]
struct Server(HashMap<u64, Answers>);

impl Server {
    fn answers(&mut self, connection: &Connection) -> &mut Answers {
        self.0.entry(connection.index().unwrap_or_default()).or_default()
    }
}

impl TransportHandler for Server {
    fn on_conn_created(&mut self, _: &mut Connection) {}

    fn on_conn_established(&mut self, _: &mut Connection) {}

    fn on_conn_closed(&mut self, connection: &mut Connection) {
        self.0.remove(&connection.index().unwrap_or_default());
    }

    fn on_stream_created(&mut self, _: &mut Connection, _: u64) {}

    fn on_stream_readable(&mut self, connection: &mut Connection, id: u64) {
        self.answers(connection).readable(&mut Over(connection), id);
    }

    fn on_stream_writable(&mut self, connection: &mut Connection, id: u64) {
        let _ = connection.stream_want_write(id, false);
        self.answers(connection).writable(&mut Over(connection), id);
    }

    fn on_stream_closed(&mut self, _: &mut Connection, _: u64) {}

    fn on_new_token(&mut self, _: &mut Connection, _: Vec<u8>) {}
}

pub fn measure(options: &Measure) -> Result<Outcome> {
    let tls = TlsConfig::new_client_config(vec![ALPN.into()], false)?;
    let socket = Rc::new(Socket::client(options.remote)?);
    let local = socket.local();
    let shared = Rc::new(RefCell::new(Shared::new(options)));
    let handler = Box::new(Clients(shared.clone()));
    let mut endpoint = Endpoint::new(settings(tls)?, false, handler, Rc::new(Sender(socket.clone())));
    let mut network = Network::new(socket);
    let connect = |endpoint: &mut Endpoint| -> Result<()> {
        shared.borrow_mut().connecting += 1;
        endpoint.connect(local, options.remote, Some("localhost"), None, None, None)?;
        Ok(())
    };
    let (mut begun, mut said, released) = (0, false, Arc::new(AtomicBool::new(false)));
    while !released.load(Ordering::Relaxed) {
        while shared.borrow().wants(begun) {
            connect(&mut endpoint)?;
            begun += 1;
        }
        network.turn(&mut endpoint, matches!(options.work, Work::Idle(_)).then_some(NAP))?;
        let mut state = shared.borrow_mut();
        if let Some(error) = state.failure.take() {
            return Err(error);
        }
        if let Some(outcome) = state.take_outcome() {
            drop(state);
            // What closes the last connection leaves.
            endpoint.process_connections()?;
            return Ok(outcome);
        }
        if matches!(options.work, Work::Idle(wanted) if state.open == wanted) && !said {
            said = true;
            idle::opened(state.open);
            let released = Arc::clone(&released);
            std::thread::spawn(move || {
                idle::until_released();
                released.store(true, Ordering::Relaxed);
            });
        }
    }
    Ok(Outcome::Nothing)
}

/// What a client's connections share.
struct Shared {
    options: Measure,
    client: Option<Client>,
    timings: Option<Timings>,
    /// When connections were begun.
    begun: HashMap<u64, Instant>,
    connecting: usize,
    open: usize,
    outcome: Option<Outcome>,
    failure: Option<anyhow::Error>,
}

impl Shared {
    fn new(options: &Measure) -> Self {
        let timings = match options.work {
            Work::Handshakes { time, .. } => Some(Timings::begin(time)),
            _ => None,
        };
        Self {
            options: options.clone(),
            client: None,
            timings,
            begun: HashMap::new(),
            connecting: 0,
            open: 0,
            outcome: None,
            failure: None,
        }
    }

    /// Whether another connection is to be begun, after so many.
    fn wants(&self, begun: usize) -> bool {
        match self.options.work {
            Work::Handshakes { at_once, .. } => {
                self.connecting < at_once && self.timings.as_ref().is_some_and(Timings::goes_on)
            }
            Work::Idle(wanted) => begun < wanted && self.connecting < 8,
            _ => begun == 0,
        }
    }

    fn take_outcome(&mut self) -> Option<Outcome> {
        if let Some(timings) = self.timings.take_if(|timings| self.connecting == 0 && !timings.goes_on()) {
            return Some(Outcome::handshakes(timings));
        }
        self.outcome.take()
    }

    /// Does something with the client of the only connection.
    fn with_client(
        &mut self,
        connection: &mut Connection,
        act: impl FnOnce(&mut Client, &mut Over<'_>) -> Result<()>,
    ) {
        let Some(client) = &mut self.client else { return };
        if let Err(error) = act(client, &mut Over(connection)) {
            self.failure.get_or_insert(error);
        }
        if let Some(client) = self.client.take_if(|client| client.is_done()) {
            self.outcome = Some(client.outcome());
            let _ = connection.close(true, 0, b"");
        }
    }
}

struct Clients(Rc<RefCell<Shared>>);

impl TransportHandler for Clients {
    fn on_conn_created(&mut self, connection: &mut Connection) {
        let index = connection.index().unwrap_or_default();
        self.0.borrow_mut().begun.insert(index, Instant::now());
    }

    fn on_conn_established(&mut self, connection: &mut Connection) {
        let mut shared = self.0.borrow_mut();
        let begun = shared.begun.remove(&connection.index().unwrap_or_default());
        shared.connecting -= 1;
        shared.open += 1;
        match shared.options.work {
            Work::Handshakes { .. } => {
                if let (Some(timings), Some(begun)) = (&mut shared.timings, begun) {
                    timings.record(begun);
                }
                let _ = connection.close(true, 0, b"");
            }
            Work::Idle(_) => {}
            _ => match Client::new(&shared.options) {
                Ok(client) => {
                    shared.client = Some(client);
                    shared.with_client(connection, |client, streams| client.go_on(streams));
                }
                Err(error) => shared.failure = Some(error),
            },
        }
    }

    fn on_conn_closed(&mut self, connection: &mut Connection) {
        let mut shared = self.0.borrow_mut();
        if shared.client.is_some() || shared.begun.contains_key(&connection.index().unwrap_or_default()) {
            shared.failure = Some(anyhow::anyhow!("a connection ended: {:?}", connection.peer_error()));
        }
    }

    fn on_stream_created(&mut self, _: &mut Connection, _: u64) {}

    fn on_stream_readable(&mut self, connection: &mut Connection, id: u64) {
        self.0.borrow_mut().with_client(connection, |client, streams| client.readable(streams, id));
    }

    fn on_stream_writable(&mut self, connection: &mut Connection, id: u64) {
        let _ = connection.stream_want_write(id, false);
        self.0.borrow_mut().with_client(connection, |client, streams| client.writable(streams, id));
    }

    fn on_stream_closed(&mut self, connection: &mut Connection, _: u64) {
        // Another may be opened in its place.
        self.0.borrow_mut().with_client(connection, |client, streams| client.go_on(streams));
    }

    fn on_new_token(&mut self, _: &mut Connection, _: Vec<u8>) {}
}

/// The streams of one of TQUIC's connections.
struct Over<'a>(&'a mut Connection);

impl Streams for Over<'_> {
    fn open(&mut self) -> Result<Option<u64>> {
        match self.0.stream_bidi_new(0, false) {
            Ok(id) => Ok(Some(id)),
            Err(Error::StreamLimitError) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn read(&mut self, id: u64, buffer: &mut [u8], take: impl FnOnce(&[u8])) -> Result<Read> {
        match self.0.stream_read(id, buffer) {
            Ok((len, end)) => {
                take(&buffer[..len]);
                Ok(Read::Data { len, end })
            }
            Err(Error::Done) => Ok(Read::Blocked),
            Err(error) => bail!("reading: {error}"),
        }
    }

    fn write(&mut self, id: u64, data: Bytes, end: bool) -> Result<Option<usize>> {
        let wanted = data.len();
        let written = match self.0.stream_write(id, data, end) {
            Ok(len) => Some(len),
            Err(Error::Done) => None,
            Err(error) => bail!("writing: {error}"),
        };
        if written != Some(wanted) {
            self.0.stream_want_write(id, true)?;
        }
        Ok(written)
    }

    fn stop(&mut self, id: u64) {
        let _ = self.0.stream_shutdown(id, Shutdown::Read, 0);
    }
}
