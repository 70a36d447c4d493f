//! A connection: its streams, its datagrams, what is known of it, and its end.

use super::settings::code;
use super::stream::{ReceiveHalf, SendHalf};
use crate::bridge;
use crate::data::{Data, Nothing, shared};
use crate::errors::Failure;
use godwit::{Connection, Endpoint};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};
use std::time::Duration;

/// For the packet that says that all is over.
const FAREWELL: Duration = Duration::from_millis(100);

/// A connection, as client or as server.
#[pyclass(frozen)]
pub(crate) struct QuicConnection {
    connection: Connection,
    /// A client's own.
    endpoint: Option<Endpoint>,
}

impl QuicConnection {
    pub(crate) fn new(connection: Connection, endpoint: Option<Endpoint>) -> Self {
        QuicConnection { connection, endpoint }
    }
}

#[pymethods]
impl QuicConnection {
    /// A future of both halves of a new stream.
    fn open_stream<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let connection = self.connection.clone();
        bridge::future(py, async move {
            let (send, receive) = connection.open_bi().await?;
            Ok((SendHalf::new(send), ReceiveHalf::new(receive)))
        })
    }

    /// A future of a new stream that only this end sends on.
    fn open_unidirectional_stream<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let connection = self.connection.clone();
        bridge::future(py, async move { Ok(SendHalf::new(connection.open_uni().await?)) })
    }

    /// A future of both halves of the next stream that the peer opens.
    fn accept_stream<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let connection = self.connection.clone();
        bridge::future(py, async move {
            let (send, receive) = connection.accept_bi().await?;
            Ok((SendHalf::new(send), ReceiveHalf::new(receive)))
        })
    }

    /// A future of the next stream that the peer opens to send on it.
    fn accept_unidirectional_stream<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let connection = self.connection.clone();
        bridge::future(py, async move { Ok(ReceiveHalf::new(connection.accept_uni().await?)) })
    }

    /// Queues a datagram.
    fn send_datagram(&self, data: PyBackedBytes) -> PyResult<()> {
        Ok(self.connection.send_datagram(shared(data)).map_err(Failure::from)?)
    }

    /// A future of the next datagram of the peer.
    fn receive_datagram<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let connection = self.connection.clone();
        bridge::future(py, async move { Ok(Data::from(connection.read_datagram().await?)) })
    }

    /// How long a datagram may be; None if the peer takes none.
    #[getter]
    fn max_datagram_size(&self) -> Option<usize> {
        self.connection.max_datagram_len()
    }

    #[getter]
    fn alpn<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.connection.alpn().map(|name| PyBytes::new(py, &name))
    }

    #[getter]
    fn server_name(&self) -> Option<String> {
        self.connection.server_name()
    }

    #[getter]
    fn remote_address(&self) -> (String, u16) {
        let address = self.connection.remote_address();
        (address.ip().to_string(), address.port())
    }

    #[getter]
    fn is_closed(&self) -> bool {
        self.connection.close_reason().is_some()
    }

    /// What was counted, by name; times in seconds.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counted = self.connection.stats();
        let table = PyDict::new(py);
        for (name, time) in
            [("rtt", counted.rtt), ("min_rtt", counted.min_rtt), ("rtt_variance", counted.rtt_variance)]
        {
            table.set_item(name, time.as_secs_f64())?;
        }
        for (name, count) in [
            ("mtu", u64::from(counted.mtu)),
            ("congestion_window", counted.window),
            ("bytes_in_flight", counted.bytes_in_flight),
            ("bytes_sent", counted.bytes_sent),
            ("bytes_received", counted.bytes_received),
            ("packets_sent", counted.packets_sent),
            ("packets_received", counted.packets_received),
            ("packets_lost", counted.packets_lost),
            ("stream_bytes_sent", counted.stream_bytes_sent),
            ("stream_bytes_received", counted.stream_bytes_received),
            ("streams_open", counted.streams_open),
            ("datagrams_sent", counted.datagram_frames.sent),
            ("datagrams_received", counted.datagram_frames.received),
            ("datagrams_lost", counted.datagram_frames.lost),
        ] {
            table.set_item(name, count)?;
        }
        Ok(table)
    }

    /// Closes it with this code and reason: a future that is ready when the peer has probably been told.
    fn close<'py>(&self, py: Python<'py>, number: u64, reason: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        self.connection.close(code(number)?, reason);
        let endpoint = self.endpoint.clone();
        bridge::future(py, async move {
            if let Some(endpoint) = endpoint {
                let _ = tokio::time::timeout(FAREWELL, endpoint.wait_idle()).await;
            }
            Ok::<_, Failure>(Nothing)
        })
    }

    /// A future that fails with the reason when the connection is over.
    fn wait_closed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let connection = self.connection.clone();
        bridge::future::<Nothing>(py, async move { Err(connection.closed().await.into()) })
    }
}
