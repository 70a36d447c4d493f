//! Why a handshake has failed, as a status.

use crate::abi::Status;
use rustls::{AlertDescription, Error, InvalidMessage};

/// Above this the transport errors of TLS alerts begin (RFC 9001, section 4.8).
const CRYPTO_ERROR: u64 = 0x100;

/// What `SHUTDOWN_INITIATED_BY_TRANSPORT` says when TLS fails here: the status of the alert with which it ends, or of the
/// one that came. So it is [`Status::EXPIRED_CERTIFICATE`], and not [`Status::CERT_EXPIRED`], which only applications
/// hear of that judge certificates themselves.
pub(crate) fn status_of_tls_failure(error: &Error) -> Status {
    Status::of_transport_error(CRYPTO_ERROR | u64::from(u8::from(alert_of(error))))
}

/// The alert that rustls sends.
fn alert_of(error: &Error) -> AlertDescription {
    match error {
        Error::AlertReceived(alert) => *alert,
        Error::InvalidCertificate(why) => why.clone().into(),
        Error::NoCertificatesPresented => AlertDescription::CertificateRequired,
        Error::NoApplicationProtocol => AlertDescription::NoApplicationProtocol,
        Error::InappropriateMessage { .. } | Error::InappropriateHandshakeMessage { .. } => {
            AlertDescription::UnexpectedMessage
        }
        Error::InvalidMessage(why) => InvalidMessage::clone(why).into(),
        Error::PeerMisbehaved(_) => AlertDescription::IllegalParameter,
        Error::PeerIncompatible(_) => AlertDescription::HandshakeFailure,
        Error::DecryptError => AlertDescription::BadRecordMac,
        _ => AlertDescription::InternalError,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::CertificateError;

    #[test]
    fn certificates_fail_with_their_alerts() {
        for (why, status) in [
            (CertificateError::Expired, Status::EXPIRED_CERTIFICATE),
            (CertificateError::UnknownIssuer, Status::of_tls_alert(48)),
            (CertificateError::NotValidForName, Status::BAD_CERTIFICATE),
            (CertificateError::Revoked, Status::REVOKED_CERTIFICATE),
            (CertificateError::InvalidPurpose, Status::UNSUPPORTED_CERTIFICATE),
        ] {
            assert_eq!(status_of_tls_failure(&why.into()), status);
        }
        assert_eq!(status_of_tls_failure(&Error::NoCertificatesPresented), Status::REQUIRED_CERTIFICATE);
    }

    #[test]
    fn what_came_is_what_is_told() {
        let came = |alert| status_of_tls_failure(&Error::AlertReceived(alert));
        assert_eq!(came(AlertDescription::CertificateUnknown), Status::UNKNOWN_CERTIFICATE);
        assert_eq!(came(AlertDescription::HandshakeFailure), Status::HANDSHAKE_FAILURE);
        assert_eq!(came(AlertDescription::UserCanceled), Status::USER_CANCELED);
    }

    #[test]
    fn other_failures_have_the_status_of_their_alert() {
        let status = status_of_tls_failure;
        assert_eq!(status(&Error::NoApplicationProtocol), Status::ALPN_NEG_FAILURE);
        assert_eq!(status(&Error::InvalidMessage(InvalidMessage::MessageTooShort)), Status::of_tls_alert(50));
        assert_eq!(status(&Error::General(String::new())), Status::of_tls_alert(80));
    }
}
