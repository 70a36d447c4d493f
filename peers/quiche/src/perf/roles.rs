//! What a connection is for.

use super::endpoint::{Endpoint, Session};
use anyhow::{Context, Result, bail, ensure};
use boring::ssl::{SslContextBuilder, SslMethod, SslOptions};
use bytes::Bytes;
use peer_perf::polled::{Answers, Client, Read, Streams};
use peer_perf::socket::Socket;
use peer_perf::{
    ALPN, CONNECTION_WINDOW, IDLE, MTU, Measure, Outcome, STREAM_WINDOW, STREAMS, Serve, Timings, Work, idle,
};
use quiche::{Config, CongestionControlAlgorithm, Connection, Error, Shutdown};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often somebody who waits for the end of the standard input looks.
const NAP: Duration = Duration::from_millis(20);

pub enum Role {
    Server(Answers),
    /// Its streams that are open are numbered below.
    Client {
        streams: u64,
    },
}

impl Role {
    pub fn server() -> Self {
        Role::Server(Answers::default())
    }
}

fn settings() -> Result<Config> {
    let mut tls = SslContextBuilder::new(SslMethod::tls())?;
    tls.set_options(SslOptions::NO_TICKET);
    let mut config = Config::with_boring_ssl_ctx_builder(quiche::PROTOCOL_VERSION, tls)?;
    config.set_curves_list("X25519")?;
    config.set_application_protos(&[ALPN.as_bytes()])?;
    config.verify_peer(false);
    config.set_max_idle_timeout(IDLE.as_millis() as u64);
    config.set_max_recv_udp_payload_size(usize::from(MTU));
    config.set_max_send_udp_payload_size(usize::from(MTU));
    config.set_initial_max_data(CONNECTION_WINDOW.into());
    config.set_max_connection_window(CONNECTION_WINDOW.into());
    config.set_initial_max_stream_data_bidi_local(STREAM_WINDOW.into());
    config.set_initial_max_stream_data_bidi_remote(STREAM_WINDOW.into());
    config.set_max_stream_window(STREAM_WINDOW.into());
    config.set_initial_max_streams_bidi(STREAMS.into());
    config.set_cc_algorithm(CongestionControlAlgorithm::CUBIC);
    // It would be for the loop to hold packets back; this one sends them at once.
    config.enable_pacing(false);
    Ok(config)
}

pub fn serve(options: &Serve) -> Result<()> {
    options.cipher.only_aes128("quiche")?;
    let mut config = settings()?;
    config.load_cert_chain_from_pem_file(options.cert.to_str().context("a name in UTF-8")?)?;
    config.load_priv_key_from_pem_file(options.key.to_str().context("a name in UTF-8")?)?;
    let socket = Socket::bind(options.listen)?;
    println!("listening {}", socket.local());
    let mut endpoint = Endpoint::new(socket, config, true);
    loop {
        for number in endpoint.turn(None)? {
            if let Some(Session { connection, role: Role::Server(answers), .. }) = endpoint.session(number) {
                for id in connection.readable() {
                    answers.readable(&mut Over { connection, streams: &mut 0 }, id);
                }
                for id in connection.writable() {
                    answers.writable(&mut Over { connection, streams: &mut 0 }, id);
                }
            }
            endpoint.settle(number)?;
        }
    }
}

pub fn measure(options: &Measure) -> Result<Outcome> {
    let endpoint = Endpoint::new(Socket::client(options.remote)?, settings()?, false);
    match options.work {
        Work::Handshakes { at_once, time } => handshakes(endpoint, options, at_once, Timings::begin(time)),
        Work::Idle(connections) => stay(endpoint, options, connections),
        _ => one_connection(endpoint, options),
    }
}

fn one_connection(mut endpoint: Endpoint, options: &Measure) -> Result<Outcome> {
    let number = endpoint.connect(options.remote, Role::Client { streams: 0 })?;
    let mut client: Option<Client> = None;
    loop {
        endpoint.turn(None)?;
        let session = endpoint.session(number).context("the connection is gone")?;
        let Session { connection, role: Role::Client { streams }, .. } = session else { bail!("a server") };
        ensure!(!connection.is_closed(), "the connection ended: {:?}", connection.peer_error());
        if connection.is_established() {
            let client = match &mut client {
                Some(client) => client,
                None => client.insert(Client::new(options)?),
            };
            client.go_on(&mut Over { connection, streams })?;
            for id in connection.readable() {
                client.readable(&mut Over { connection, streams }, id)?;
            }
            for id in connection.writable() {
                client.writable(&mut Over { connection, streams }, id)?;
            }
        }
        let done = client.take_if(|client| client.is_done());
        if done.is_some() {
            let _ = connection.close(true, 0, b"");
        }
        endpoint.settle(number)?;
        if let Some(client) = done {
            return Ok(client.outcome());
        }
    }
}

fn handshakes(
    mut endpoint: Endpoint,
    options: &Measure,
    at_once: usize,
    mut timings: Timings,
) -> Result<Outcome> {
    let mut waiting = 0;
    while waiting > 0 || timings.goes_on() {
        while waiting < at_once && timings.goes_on() {
            endpoint.connect(options.remote, Role::Client { streams: 0 })?;
            waiting += 1;
        }
        for number in endpoint.turn(None)? {
            if let Some(session) = endpoint.session(number) {
                let over = session.connection.is_draining() || session.connection.local_error().is_some();
                if session.connection.is_established() && !over {
                    timings.record(session.begun);
                    waiting -= 1;
                    let _ = session.connection.close(true, 0, b"");
                }
            }
            endpoint.settle(number)?;
        }
    }
    Ok(Outcome::handshakes(timings))
}

fn stay(mut endpoint: Endpoint, options: &Measure, connections: usize) -> Result<Outcome> {
    /// Under way at a time.
    const AT_ONCE: usize = 8;
    let released = Arc::new(AtomicBool::new(false));
    let (mut begun, mut open, mut said) = (0, 0, false);
    while !released.load(Ordering::Relaxed) {
        while begun < connections && begun - open < AT_ONCE {
            endpoint.connect(options.remote, Role::Client { streams: 0 })?;
            begun += 1;
        }
        for number in endpoint.turn(Some(NAP))? {
            if let Some(Session { connection, role: Role::Client { streams }, .. }) = endpoint.session(number)
            {
                if connection.is_established() && std::mem::replace(streams, 1) == 0 {
                    open += 1;
                }
            }
            endpoint.settle(number)?;
        }
        ensure!(endpoint.len() == begun, "a connection is gone");
        if open == connections && !std::mem::replace(&mut said, true) {
            idle::opened(connections);
            let released = Arc::clone(&released);
            std::thread::spawn(move || {
                idle::until_released();
                released.store(true, Ordering::Relaxed);
            });
        }
    }
    Ok(Outcome::Nothing)
}

/// The streams of one of quiche's connections.
struct Over<'a> {
    connection: &'a mut Connection,
    /// How many a client has opened.
    streams: &'a mut u64,
}

impl Streams for Over<'_> {
    fn open(&mut self) -> Result<Option<u64>> {
        if self.connection.peer_streams_left_bidi() == 0 {
            return Ok(None);
        }
        let id = 4 * *self.streams;
        *self.streams += 1;
        Ok(Some(id))
    }

    fn read(&mut self, id: u64, buffer: &mut [u8], take: impl FnOnce(&[u8])) -> Result<Read> {
        match self.connection.stream_recv(id, buffer) {
            Ok((len, end)) => {
                take(&buffer[..len]);
                Ok(Read::Data { len, end })
            }
            Err(Error::Done) => Ok(Read::Blocked),
            Err(error) => Err(error.into()),
        }
    }

    fn write(&mut self, id: u64, data: Bytes, end: bool) -> Result<Option<usize>> {
        match self.connection.stream_send(id, &data, end) {
            Ok(len) => Ok(Some(len)),
            Err(Error::Done) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn stop(&mut self, id: u64) {
        let _ = self.connection.stream_shutdown(id, Shutdown::Read, 0);
    }
}
