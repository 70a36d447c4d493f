//! Which of Python's exceptions an error becomes. The classes are those of `godwit._errors`; the text is the error's own,
//! with what to do; codes and the like are attributes.

use bytes::Bytes;
use godwit::{ConnectionError, ConnectionErrorKind, ReadError, SendDatagramError, WriteError, rustls};
use godwit_client::ErrorKind;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// An error on its way to Python.
#[derive(Debug)]
pub(crate) struct Failure {
    class: &'static str,
    text: String,
    details: Vec<(&'static str, Detail)>,
}

/// An attribute of an exception.
#[derive(Debug)]
enum Detail {
    Number(Option<u64>),
    Text(&'static str),
    Bytes(Option<Bytes>),
}

impl Failure {
    fn new(class: &'static str, text: impl ToString) -> Self {
        Failure { class, text: text.to_string(), details: Vec::new() }
    }

    fn with(mut self, name: &'static str, detail: Detail) -> Self {
        self.details.push((name, detail));
        self
    }

    /// Settings, or arguments, that cannot be used.
    pub(crate) fn settings(text: impl ToString) -> Self {
        Failure::new("ConfigurationError", text)
    }

    /// A response that is not what was asked for.
    pub(crate) fn response(text: impl ToString) -> Self {
        Failure::new("ResponseError", text)
    }

    /// No address has this name.
    pub(crate) fn resolve(text: impl ToString) -> Self {
        Failure::new("ResolveError", text)
    }

    /// No connection came about.
    pub(crate) fn connect(text: impl ToString) -> Self {
        Failure::new("ConnectError", text)
    }

    /// Something was used after its end.
    pub(crate) fn closed(text: impl ToString) -> Self {
        Failure::new("ClosedError", text)
    }

    /// A stream that is longer than `most` bytes.
    pub(crate) fn too_long(most: usize) -> Self {
        let text = format!(
            "the stream is longer than the limit of {most} bytes; give a larger one, or read it piece by piece"
        );
        Failure::new("LimitExceeded", text)
    }

    /// A connection that never came about.
    pub(crate) fn handshake(error: &ConnectionError) -> Self {
        let class = match error.kind() {
            ConnectionErrorKind::HandshakeTimedOut => "TimeoutError",
            _ if matches!(error.tls(), Some(rustls::Error::InvalidCertificate(_))) => "CertificateError",
            _ => "ConnectError",
        };
        Failure::new(class, error)
    }

    /// The exception.
    pub(crate) fn into_exception(self, py: Python<'_>) -> PyErr {
        let made = py.import("godwit._errors").and_then(|module| {
            let exception = module.getattr(self.class)?.call1((&self.text,))?;
            for (name, detail) in self.details {
                match detail {
                    Detail::Number(number) => exception.setattr(name, number)?,
                    Detail::Text(text) => exception.setattr(name, text)?,
                    Detail::Bytes(None) => exception.setattr(name, py.None())?,
                    Detail::Bytes(Some(bytes)) => exception.setattr(name, PyBytes::new(py, &bytes))?,
                }
            }
            Ok(PyErr::from_value(exception))
        });
        // Without its classes the package is broken; what happened is told all the same.
        made.unwrap_or_else(|_| PyRuntimeError::new_err(self.text))
    }
}

impl From<godwit_client::Error> for Failure {
    fn from(error: godwit_client::Error) -> Self {
        let class = match error.kind() {
            ErrorKind::Resolve => "ResolveError",
            ErrorKind::Connect => "ConnectError",
            ErrorKind::Certificate => "CertificateError",
            ErrorKind::Request => "RequestError",
            ErrorKind::Exchange => "ProtocolError",
            ErrorKind::Redirect => "RedirectError",
            ErrorKind::Response => "ResponseError",
            ErrorKind::Timeout => "TimeoutError",
            _ => "Error",
        };
        Failure::new(class, error)
    }
}

impl From<ConnectionError> for Failure {
    fn from(error: ConnectionError) -> Self {
        lost(error.to_string(), &error)
    }
}

/// A connection that is over.
fn lost(text: String, error: &ConnectionError) -> Failure {
    let kind = match error.kind() {
        ConnectionErrorKind::ClosedLocally => "closed_locally",
        ConnectionErrorKind::ClosedByPeer => "closed_by_peer",
        ConnectionErrorKind::EndpointStopped => "endpoint_stopped",
        ConnectionErrorKind::HandshakeTimedOut => "handshake_timed_out",
        ConnectionErrorKind::IdleTimedOut => "idle_timed_out",
        ConnectionErrorKind::PeerProtocol => "peer_protocol",
        ConnectionErrorKind::Refused => "refused",
        ConnectionErrorKind::Reset => "reset",
        ConnectionErrorKind::Tls => "tls",
        ConnectionErrorKind::VersionMismatch => "version_mismatch",
        _ => "protocol",
    };
    Failure::new("ConnectionLost", text)
        .with("kind", Detail::Text(kind))
        .with("code", Detail::Number(error.application_code()))
        .with("transport_code", Detail::Number(error.transport_code()))
        .with("reason", Detail::Bytes(error.peer_reason().cloned()))
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match &error {
            ReadError::ConnectionLost(why) => lost(error.to_string(), why),
            ReadError::Reset(code) => {
                Failure::new("StreamReset", &error).with("code", Detail::Number(Some(*code)))
            }
            _ => Failure::closed(error),
        }
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        match &error {
            WriteError::ConnectionLost(why) => lost(error.to_string(), why),
            WriteError::Stopped(code) => {
                Failure::new("StreamStopped", &error).with("code", Detail::Number(Some(*code)))
            }
            _ => Failure::closed(error),
        }
    }
}

impl From<SendDatagramError> for Failure {
    fn from(error: SendDatagramError) -> Self {
        Failure::new("DatagramError", error)
    }
}

/// For functions that fail at once.
impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        Python::attach(|py| failure.into_exception(py))
    }
}
