//! TLS failures as QUIC errors (RFC 9001 section 4.8).

use godwit_wire::TransportErrorCode;
use godwit_wire::WireError;
use rustls::quic::Connection;
use rustls::{AlertDescription, Error};

/// A message that has no place here (alert 10).
pub const UNEXPECTED_MESSAGE: TransportErrorCode = TransportErrorCode::crypto(10);

/// A message that cannot be one (alert 50).
pub const DECODE_ERROR: TransportErrorCode = TransportErrorCode::crypto(50);

/// An extension that must be there is missing (alert 109).
pub const MISSING_EXTENSION: TransportErrorCode = TransportErrorCode::crypto(109);

/// The error that `failure` of `tls` is on the wire.
#[track_caller]
pub fn from_tls(tls: &Connection, failure: &Error) -> WireError {
    // rustls sends an alert for all that a peer can cause; the rest are failures of this end.
    let alert = tls.alert().unwrap_or(AlertDescription::InternalError);
    WireError::new(TransportErrorCode::crypto(u8::from(alert)), reason(failure))
}

/// A short explanation for the peer. It must not tell more than the alert does about this end.
fn reason(failure: &Error) -> &'static str {
    match failure {
        Error::AlertReceived(_) => "the peer sent a TLS alert in a CRYPTO frame",
        Error::InappropriateMessage { .. } | Error::InappropriateHandshakeMessage { .. } => {
            "TLS message out of place"
        }
        Error::InvalidCertificate(_) => "certificate not accepted",
        Error::InvalidMessage(_) => "malformed TLS message",
        Error::NoApplicationProtocol => "no common application protocol",
        Error::NoCertificatesPresented => "a certificate is required",
        Error::PeerIncompatible(_) => "no common TLS parameters",
        Error::PeerMisbehaved(_) => "TLS protocol violation",
        _ => "TLS failed",
    }
}
