//! Servers: handshakes go on beside one another, and connections wait to be taken when theirs is complete.

use super::connection::QuicConnection;
use super::settings::{Transport, code};
use crate::bridge;
use crate::data::Nothing;
use crate::errors::Failure;
use crate::runtime;
use godwit::{Connection, Endpoint, ServerConfig};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::AbortHandle;

/// Connections that wait to be taken. While there are as many no further handshake is begun.
const WAITING: usize = 128;
/// For packets that say that all is over.
const FAREWELL: Duration = Duration::from_millis(100);

/// A server's sockets.
#[pyclass(frozen)]
pub(crate) struct QuicListener {
    endpoint: Endpoint,
    connections: Arc<Mutex<Receiver<Connection>>>,
    taking: AbortHandle,
}

/// A server at this address, with a certificate and its key in PEM.
///
/// # Errors
/// If the address is in use, or the certificate cannot be used.
#[pyfunction]
pub(crate) fn listen(
    py: Python<'_>,
    address: &str,
    certificate: PyBackedBytes,
    private_key: PyBackedBytes,
    alpn: Vec<PyBackedBytes>,
    transport: Transport,
) -> PyResult<QuicListener> {
    let address: SocketAddr = address.parse().map_err(|_| {
        Failure::settings(format!("{address:?} is no address with a port; give one such as 127.0.0.1:4433"))
    })?;
    let handle = runtime::handle()?;
    let made = py.detach(|| -> Result<QuicListener, Failure> {
        let _inside = handle.enter();
        let config = ServerConfig::from_pem(&certificate, &private_key).alpn(&alpn);
        let config = config.transport(transport.config()?).build()?;
        let endpoint = Endpoint::server(config, address)
            .map_err(|error| Failure::settings(format!("cannot listen at {address}: {error}")))?;
        let (sender, connections) = channel(WAITING);
        let taking = handle.spawn(take(endpoint.clone(), sender)).abort_handle();
        Ok(QuicListener { endpoint, connections: Arc::new(Mutex::new(connections)), taking })
    });
    Ok(made?)
}

/// Takes all that come, until the endpoint ends or nobody wants them.
async fn take(endpoint: Endpoint, connections: Sender<Connection>) {
    while let Ok(room) = connections.clone().reserve_owned().await {
        let Some(incoming) = endpoint.accept().await else { return };
        tokio::spawn(async move {
            // Who fails in the handshake has been told; there is nobody here whom it concerns.
            if let Ok(connection) = incoming.await {
                room.send(connection);
            }
        });
    }
}

#[pymethods]
impl QuicListener {
    /// A future of the next connection; None when the listener is closed.
    fn accept<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let connections = Arc::clone(&self.connections);
        bridge::future(py, async move {
            let next = connections.lock().await.recv().await;
            Ok::<_, Failure>(next.map(|connection| QuicConnection::new(connection, None)))
        })
    }

    /// The address that it listens at.
    #[getter]
    fn address(&self) -> PyResult<(String, u16)> {
        let address = self.endpoint.local_addr()?;
        Ok((address.ip().to_string(), address.port()))
    }

    /// A future that is ready when all its connections have been closed with this code and reason.
    fn close<'py>(&self, py: Python<'py>, number: u64, reason: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        self.endpoint.close(code(number)?, reason);
        let endpoint = self.endpoint.clone();
        bridge::future(py, async move {
            let _ = tokio::time::timeout(FAREWELL, endpoint.wait_idle()).await;
            Ok::<_, Failure>(Nothing)
        })
    }
}

/// A listener that nobody has is closed to newcomers.
impl Drop for QuicListener {
    fn drop(&mut self) {
        self.taking.abort();
        self.endpoint.stop_accepting();
    }
}
