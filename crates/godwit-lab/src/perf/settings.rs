//! The transport and socket settings of both ends.

use super::breakdown::TimedDatapaths;
use super::options::{ServerOptions, Tuning};
use super::tls;
use crate::Error;
use godwit::resumption::SessionStore;
use godwit::{ClientConfig, Endpoint, EndpointBuilder, ServerConfig, SocketConfig, TransportConfig};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Bytes asked for as a socket's buffer, in each direction.
const SOCKET_BUFFER: usize = 4 << 20;

/// Streams the peer may have open at once, in each direction.
const STREAMS: u64 = 10_000;

/// The settings that a server and a client share.
fn transport(tuning: Tuning) -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout = Duration::from_secs(30);
    transport.initial_stream_window = 16 << 20;
    transport.max_stream_window = 16 << 20;
    transport.initial_connection_window = 32 << 20;
    transport.max_connection_window = 32 << 20;
    transport.max_bidi_streams = STREAMS;
    transport.max_uni_streams = STREAMS;
    transport.max_mtu = tuning.mtu;
    transport.keep_alive = tuning.keep_alive;
    transport.congestion = tuning.congestion.into();
    transport
}

/// An endpoint's settings, but for its address.
pub(super) fn endpoint(tuning: Tuning) -> EndpointBuilder {
    let mut socket = SocketConfig::default();
    socket.recv_buffer = SOCKET_BUFFER;
    socket.send_buffer = SOCKET_BUFFER;
    socket.backend = tuning.datapath;
    socket.departure_times = tuning.departure_times;
    let timed = tuning.breakdown.then(|| TimedDatapaths(socket.clone()));
    let builder =
        Endpoint::builder().socket(socket).spin(tuning.spin).sealing_threads(tuning.sealing_threads.into());
    match timed {
        Some(timed) => builder.datapaths(timed),
        None => builder,
    }
}

/// A server's settings, with TLS as it is given.
pub(super) fn server(tls: rustls::ServerConfig, options: &ServerOptions) -> Result<ServerConfig, Error> {
    let mut config = ServerConfig::from_rustls(tls).transport(transport(options.tuning));
    if options.tickets {
        config = config.session_tickets(tls::tickets()?);
    }
    config.build().map_err(|error| Error::new(error.to_string()))
}

/// A client's settings, for a protocol over QUIC. It believes certificates that go back to one in the file, or any, and
/// resumes sessions that are in the store.
pub(super) fn client(
    authority: Option<&Path>,
    protocol: &'static [u8],
    tuning: Tuning,
    sessions: Option<Arc<dyn SessionStore>>,
) -> Result<ClientConfig, Error> {
    let tls = tls::client(authority, protocol, tuning)?;
    let mut config = ClientConfig::from_rustls(tls).resumption(false).transport(transport(tuning));
    if let Some(sessions) = sessions {
        config = config.sessions(sessions);
    }
    config.build().map_err(|error| Error::new(error.to_string()))
}
