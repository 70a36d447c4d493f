//! The server.
//!
//! The same port number is answered over TCP (`tcp`).
//!
//! Each shard is a thread with a runtime of its own. A connection is one task that takes in the streams; a
//! stream becomes a task of its own only if it cannot be answered at once (see [`exchange`]).

mod exchange;
mod memory;
mod tcp;

use super::options::ServerOptions;
use super::{settings, tls};
use crate::Error;
use exchange::{Exchange, Upload};
use godwit::{Connection, Endpoint, Incoming, ServerConfig, Shards};
use godwit_os::processor::Usage;
use godwit_text::plain_error as plain;
use godwit_text::{Style, size};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;
use tcp::Tcp;
use tokio::task::{spawn_local, unconstrained};

/// Ports that are tried when any will do.
const ATTEMPTS: u32 = 16;

/// How long connections may take to end in order when the server ends.
const CLOSING: Duration = Duration::from_secs(2);

/// A running server.
#[derive(Debug)]
pub struct Server {
    shards: Shards,
    totals: Arc<Totals>,
}

impl Server {
    /// Binds, and begins to serve on threads of its own.
    ///
    /// # Errors
    /// If the address is taken, or the certificate cannot be used.
    pub fn start(mut options: ServerOptions) -> Result<Server, Error> {
        let totals = Arc::new(Totals::default());
        let tls = tls::server(&mut options)?;
        let config = settings::server(tls.clone(), &options)?;
        let mut attempts = if options.listen.port() == 0 { ATTEMPTS } else { 1 };
        loop {
            attempts -= 1;
            let started = start(&options, &tls, &config, &totals);
            match started {
                Ok(shards) => return Ok(Server { shards, totals }),
                // A port that was free over TCP need not be over UDP.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && attempts > 0 => {}
                Err(error) => {
                    return Err(Error::new(format!(
                        "cannot listen on {}: {}",
                        options.listen,
                        plain(&error)
                    )));
                }
            }
        }
    }

    /// Where it listens.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn local_addr(&self) -> Result<SocketAddr, Error> {
        self.shards.local_addr().map_err(|error| Error::new(plain(&error)))
    }

    /// What it has done so far, in a line.
    #[must_use]
    pub fn summary(&self, style: Style) -> String {
        self.totals.summary(Usage::now(), style)
    }

    /// Closes what is open, and waits a little until the peers have been told.
    pub fn close(self) {
        self.shards.close(super::protocol::NO_ERROR, b"");
        let (ended, all) = std::sync::mpsc::channel();
        // If it takes too long, the end of the process ends it.
        std::thread::spawn(move || {
            let _ = self.shards.join();
            let _ = ended.send(());
        });
        let _ = all.recv_timeout(CLOSING);
    }
}

/// Binds both sockets to one port, and begins.
fn start(
    options: &ServerOptions,
    tls: &rustls::ServerConfig,
    config: &ServerConfig,
    totals: &Arc<Totals>,
) -> io::Result<Shards> {
    let tcp = Tcp::bind(options.listen, tls.clone())
        .map_err(|error| io::Error::new(error.kind(), format!("over TCP: {}", plain(&error))))?;
    let listen = SocketAddr::new(options.listen.ip(), tcp.port()?);
    let pin = (!options.pin.is_empty()).then(|| options.pin.clone());
    let shared = Arc::clone(totals);
    let application = move |endpoint| {
        let (tcp, totals) = (tcp.clone(), Arc::clone(&shared));
        async move {
            tokio::spawn(tcp.accept(Arc::clone(&totals)));
            tokio::spawn(memory::give_back_what_is_free(Arc::clone(&totals)));
            accept(endpoint, totals).await;
        }
    };
    let builder = settings::endpoint(options.tuning).server(config.clone()).bind(listen);
    builder.run_shards_with(usize::from(options.shards), pin, application)
}

/// What the server has done, counted without order between the threads.
#[derive(Debug, Default)]
struct Totals {
    connections: AtomicU64,
    streams: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
}

impl Totals {
    fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }

    fn summary(&self, usage: Option<Usage>, style: Style) -> String {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let cpu =
            usage.map_or(String::new(), |usage| format!(", {:.2} s of CPU time", usage.ran.as_secs_f64()));
        let line = format!(
            "served {} connections, {} streams, {} received, {} sent{cpu}",
            of(&self.connections),
            of(&self.streams),
            size(of(&self.received)),
            size(of(&self.sent)),
        );
        style.dim(&line).into_owned()
    }
}

/// Takes everybody, on this thread.
async fn accept(endpoint: Endpoint, totals: Arc<Totals>) {
    while let Some(incoming) = endpoint.accept().await {
        // A connection's streams are taken in without pause: how many there can be is limited. It is where the shard's driver is:
        // what wakes tasks elsewhere has the runtime look for other events first.
        spawn_local(unconstrained(serve(incoming, Arc::clone(&totals))));
    }
}

/// A connection from beginning to end.
async fn serve(incoming: Incoming, totals: Arc<Totals>) {
    let connection = match incoming.await {
        Ok(connection) => connection,
        Err(error) => {
            tracing::debug!(%error, "a handshake failed");
            return;
        }
    };
    Totals::add(&totals.connections, 1);
    let error = streams(&connection, &totals).await;
    tracing::debug!(%error, "a connection is over");
}

async fn streams(connection: &Connection, totals: &Arc<Totals>) -> godwit::ConnectionError {
    loop {
        tokio::select! {
            biased;
            opened = connection.accept_bi() => match opened {
                Ok((send, recv)) => begin(Exchange::new(send, recv, Arc::clone(totals))),
                Err(error) => return error,
            },
            opened = connection.accept_uni() => match opened {
                Ok(recv) => begin(Upload::new(recv, Arc::clone(totals))),
                Err(error) => return error,
            },
        }
    }
}

/// Lets a stream get as far as it can now. Most requests are complete when they are seen, and their answer fits
/// into the send buffer; only others are worth a task.
fn begin(mut stream: impl Future<Output = ()> + Unpin + 'static) {
    // Whoever wakes nobody does no harm: a task begins by looking itself.
    let mut cx = Context::from_waker(Waker::noop());
    if Pin::new(&mut stream).poll(&mut cx).is_pending() {
        spawn_local(stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_another_program_has_over_tcp_is_not_taken() {
        let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let listen = other.local_addr().unwrap();
        let options = ServerOptions { listen, ..ServerOptions::default() };
        let failure = Server::start(options).unwrap_err().to_string();
        assert!(
            failure.starts_with("cannot listen on 127.0.0.1:") && failure.contains("over TCP: "),
            "{failure}"
        );
    }
}
