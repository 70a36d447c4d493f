//! Connections to servers: the name is resolved, and its addresses are tried one after the other.

use super::connection::QuicConnection;
use super::settings::Transport;
use crate::bridge;
use crate::errors::Failure;
use godwit::{ClientConfig, ConnectionErrorKind, Endpoint};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Whom to connect with, and whom to believe; every field is an entry of a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Server {
    host: String,
    port: u16,
    server_name: Option<String>,
    alpn: Vec<PyBackedBytes>,
    root_pem: Option<PyBackedBytes>,
    accept_any_certificate: bool,
    certificate: Option<PyBackedBytes>,
    private_key: Option<PyBackedBytes>,
}

/// A future of the connection.
#[pyfunction]
pub(crate) fn connect<'py>(
    py: Python<'py>,
    server: Server,
    transport: Transport,
) -> PyResult<Bound<'py, PyAny>> {
    let config = py.detach(|| server.config(&transport))?;
    bridge::future(py, async move { server.connect(&config).await })
}

impl Server {
    fn config(&self, transport: &Transport) -> Result<ClientConfig, Failure> {
        let mut builder = match (&self.root_pem, self.accept_any_certificate) {
            (_, true) => ClientConfig::danger_accept_any_certificate(),
            (Some(pem), false) => ClientConfig::with_roots_pem(pem),
            (None, false) => {
                let roots = godwit_client::trust::Roots::system();
                ClientConfig::verified_by(roots.verifier().map_err(Failure::settings)?)
            }
        };
        if let (Some(chain), Some(key)) = (&self.certificate, &self.private_key) {
            builder = builder.identity_pem(chain, key);
        }
        Ok(builder.alpn(&self.alpn).transport(transport.config()?).build()?)
    }

    async fn connect(&self, config: &ClientConfig) -> Result<QuicConnection, Failure> {
        let host = &self.host;
        let found = tokio::net::lookup_host((host.as_str(), self.port)).await;
        let addresses: Vec<SocketAddr> =
            found.map_err(|error| Failure::resolve(format!("{host} has no address: {error}")))?.collect();
        let mut last = Failure::resolve(format!("{host} has no address; is the name right?"));
        for address in addresses {
            match self.connect_to(config, address).await {
                Ok(connection) => return Ok(connection),
                Err(Attempt::Next(failure)) => last = failure,
                Err(Attempt::Final(failure)) => return Err(failure),
            }
        }
        Err(last)
    }

    async fn connect_to(
        &self,
        config: &ClientConfig,
        address: SocketAddr,
    ) -> Result<QuicConnection, Attempt> {
        let local: IpAddr = match address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let named = |error: &dyn std::fmt::Display| Failure::connect(format!("{address}: {error}"));
        let endpoint = Endpoint::client((local, 0).into()).map_err(|error| Attempt::Next(named(&error)))?;
        let name = self.server_name.as_ref().unwrap_or(&self.host);
        let connecting =
            endpoint.connect(config, address, name).map_err(|error| Attempt::Final(named(&error)))?;
        match connecting.await {
            Ok(connection) => Ok(QuicConnection::new(connection, Some(endpoint))),
            // Another address is another chance where nobody has answered.
            Err(error) if error.kind() == ConnectionErrorKind::HandshakeTimedOut => {
                Err(Attempt::Next(Failure::handshake(&error)))
            }
            Err(error) => Err(Attempt::Final(Failure::handshake(&error))),
        }
    }
}

/// What a failed attempt means for those to come.
enum Attempt {
    Next(Failure),
    Final(Failure),
}
