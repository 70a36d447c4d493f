//! Why connections are over, for C.

use crate::abi;
use crate::failure::Failure;
use godwit::{ConfigError, ConnectError, ConnectErrorKind, ConnectionError, ConnectionErrorKind};

/// Why a connection is over.
pub(super) fn connection(error: &ConnectionError) -> Failure {
    use ConnectionErrorKind as Kind;
    let status = match error.kind() {
        Kind::ClosedLocally => abi::ERROR_CANCELLED,
        Kind::ClosedByPeer => abi::ERROR_CLOSED_BY_PEER,
        Kind::EndpointStopped => abi::ERROR_CLOSED,
        Kind::HandshakeTimedOut | Kind::IdleTimedOut => abi::ERROR_TIMEOUT,
        Kind::Refused => abi::ERROR_REFUSED,
        Kind::Reset => abi::ERROR_RESET,
        Kind::Tls if matches!(error.tls(), Some(godwit::rustls::Error::InvalidCertificate(_))) => {
            abi::ERROR_CERTIFICATE
        }
        Kind::Tls => abi::ERROR_TLS,
        _ => abi::ERROR_PROTOCOL,
    };
    let application = error.application_code().map(|code| (code, abi::ERROR_FLAG_APPLICATION_CODE));
    let transport = error.transport_code().map(|code| (code, abi::ERROR_FLAG_TRANSPORT_CODE));
    Failure { peer_code: application.or(transport), ..Failure::new(status, error.to_string()) }
}

/// Why there is no connection to be made.
pub(super) fn connect(error: &ConnectError) -> Failure {
    let status = match error.kind() {
        ConnectErrorKind::EndpointStopped => abi::ERROR_CLOSED,
        ConnectErrorKind::TooManyConnections => abi::ERROR_LIMIT,
        ConnectErrorKind::InvalidRemoteAddress | ConnectErrorKind::InvalidServerName => abi::ERROR_ARGUMENT,
        _ => abi::ERROR_TLS,
    };
    Failure::new(status, error.to_string())
}

/// Why settings cannot be used: their certificates are in files.
pub(super) fn config(error: &ConfigError) -> Failure {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    let text = error.to_string();
    let text = if text.ends_with(&cause) { text } else { format!("{text}{cause}") };
    Failure::new(abi::ERROR_FILE, text)
}
