//! QUIC: endpoints, connections, streams and datagrams.

mod connect;
mod connection;
mod datagram;
mod endpoint;
mod endpoint_api;
mod information;
mod lost;
mod operations;
mod paths;
pub(crate) mod statistics;
mod stream;
mod stream_api;
mod streaming;
mod transport;
mod work;

use crate::abi;
use crate::failure::Failure;
use godwit_client::trust::Roots;
use std::net::SocketAddr;
use std::path::Path;

/// Whom to trust: the system's authorities, unless `only` those in the file are wanted.
pub(crate) fn roots(file: Option<&Path>, only: bool) -> Result<Roots, Failure> {
    let unusable = |text: String| Failure::new(abi::ERROR_FILE, text);
    let mut roots = if only { Roots::none() } else { Roots::system() };
    if let Some(file) = file {
        let pem = std::fs::read(file).map_err(|error| Failure {
            system_code: error.raw_os_error(),
            ..unusable(format!("cannot read {}: {error}", file.display()))
        })?;
        roots.add_pem(&pem).map_err(|error| unusable(format!("{}: {error}", file.display())))?;
    }
    Ok(roots)
}

/// An address with its port, of text.
pub(crate) fn socket_address(text: &str) -> Result<SocketAddr, Failure> {
    let wrong = |_| {
        let shown = text.escape_debug();
        Failure::argument(format!("\"{shown}\" is no address; write it as 127.0.0.1:443 or [::1]:443"))
    };
    text.parse().map_err(wrong)
}

#[cfg(test)]
pub(crate) use connection::MOST_NEW_STREAMS;
#[cfg(test)]
pub(crate) use paths::MOST_PATH_EVENTS;

/// The functions, for tests to call.
#[cfg(test)]
pub(crate) mod functions {
    pub(crate) use super::connect::godwit_endpoint_connect;
    pub(crate) use super::datagram::godwit_connection_send_datagram;
    pub(crate) use super::endpoint_api::{
        godwit_endpoint_address, godwit_endpoint_create, godwit_endpoint_rebind, godwit_endpoint_shutdown,
    };
    pub(crate) use super::information::godwit_connection_information;
    pub(crate) use super::operations::{godwit_connection_open, godwit_connection_shutdown};
    pub(crate) use super::paths::{godwit_connection_migrate, godwit_connection_paths};
    pub(crate) use super::statistics::godwit_connection_statistics;
    pub(crate) use super::stream_api::{
        godwit_stream_reset, godwit_stream_send, godwit_stream_set_priority, godwit_stream_stop,
    };
}
