//! Status codes: what calls return, and what events report and callbacks answer.

use super::layout::codes;
use std::fmt;
use std::str::FromStr;

/// Above this the status codes of TLS alerts begin. In C: `TLS_ERROR_BASE`.
const TLS_ERROR_BASE: u32 = 200_000_256;

/// Above this the status codes of certificates begin. In C: `CERT_ERROR_BASE`.
const CERTIFICATE_ERROR_BASE: u32 = 200_000_512;

/// How the status codes of TLS alerts that have no name of their own are written.
const TLS_ALERT: &str = "QUIC_STATUS_TLS_ALERT(";

/// The transport error codes that become a status of their own (RFC 9000, section 20.1; RFC 9368, section 10).
mod transport_errors {
    pub(super) const NO_ERROR: u64 = 0x0;
    pub(super) const CONNECTION_REFUSED: u64 = 0x2;
    pub(super) const PROTOCOL_VIOLATION: u64 = 0xa;
    /// By the RFC this is INVALID_TOKEN. MsQuic sends it where APPLICATION_ERROR is meant.
    pub(super) const APPLICATION_ERROR_OF_MSQUIC: u64 = 0xb;
    pub(super) const APPLICATION_ERROR: u64 = 0xc;
    pub(super) const VERSION_NEGOTIATION_ERROR: u64 = 0x11;
    /// To this a TLS alert is added (RFC 9001, section 4.8).
    pub(super) const CRYPTO: u64 = 0x100;
    pub(super) const CRYPTO_LAST: u64 = 0x1ff;
}

/// The alerts that become a status other than that of the alert (RFC 8446, section 6).
mod alerts {
    pub(super) const HANDSHAKE_FAILURE: u8 = 40;
    pub(super) const USER_CANCELED: u8 = 90;
    pub(super) const NO_APPLICATION_PROTOCOL: u8 = 120;
}

codes! {
    /// How something went. What is positive as an `int` has failed; the numbers of failures are those of Linux, but for
    /// TLS alerts and certificates, which lie above 200,000,000.
    Status(u32), "QUIC_STATUS" {
        /// It is done, or what was reported is taken note of.
        SUCCESS = 0, "QUIC_STATUS_SUCCESS";
        /// It goes on, and an event or a later call ends it.
        PENDING = u32::MAX - 1, "QUIC_STATUS_PENDING";
        /// Answer to received data of which a part was taken: go on reporting.
        CONTINUE = u32::MAX, "QUIC_STATUS_CONTINUE";
        /// There is no memory for it (`ENOMEM`).
        OUT_OF_MEMORY = 12, "QUIC_STATUS_OUT_OF_MEMORY";
        /// An argument is not one of those that are allowed (`EINVAL`).
        INVALID_PARAMETER = 22, "QUIC_STATUS_INVALID_PARAMETER";
        /// It is too early or too late for that (`EPERM`).
        INVALID_STATE = 1, "QUIC_STATUS_INVALID_STATE";
        /// This system, build or peer cannot do it (`EOPNOTSUPP`).
        NOT_SUPPORTED = 95, "QUIC_STATUS_NOT_SUPPORTED";
        /// There is no such thing (`ENOENT`).
        NOT_FOUND = 2, "QUIC_STATUS_NOT_FOUND";
        /// There is no such file: the same number as [`NOT_FOUND`](Self::NOT_FOUND).
        FILE_NOT_FOUND = 2, "QUIC_STATUS_FILE_NOT_FOUND";
        /// The buffer holds less than the answer, whose length is given back (`EOVERFLOW`).
        BUFFER_TOO_SMALL = 75, "QUIC_STATUS_BUFFER_TOO_SMALL";
        /// The handshake failed (`ECONNABORTED`).
        HANDSHAKE_FAILURE = 103, "QUIC_STATUS_HANDSHAKE_FAILURE";
        /// It was given up, or what it was about has ended (`ECANCELED`).
        ABORTED = 125, "QUIC_STATUS_ABORTED";
        /// Another socket has the address (`EADDRINUSE`).
        ADDRESS_IN_USE = 98, "QUIC_STATUS_ADDRESS_IN_USE";
        /// The address is not one that can be used (`EAFNOSUPPORT`).
        INVALID_ADDRESS = 97, "QUIC_STATUS_INVALID_ADDRESS";
        /// The peer did not answer in time (`ETIMEDOUT`).
        CONNECTION_TIMEOUT = 110, "QUIC_STATUS_CONNECTION_TIMEOUT";
        /// Nothing happened for as long as the idle timeout (`ETIME`).
        CONNECTION_IDLE = 62, "QUIC_STATUS_CONNECTION_IDLE";
        /// Something went wrong that has no status of its own (`EIO`).
        INTERNAL_ERROR = 5, "QUIC_STATUS_INTERNAL_ERROR";
        /// The server refused the connection (`ECONNREFUSED`).
        CONNECTION_REFUSED = 111, "QUIC_STATUS_CONNECTION_REFUSED";
        /// One end broke a rule of the protocol (`EPROTO`).
        PROTOCOL_ERROR = 71, "QUIC_STATUS_PROTOCOL_ERROR";
        /// The ends have no version in common (`EPROTONOSUPPORT`).
        VER_NEG_ERROR = 93, "QUIC_STATUS_VER_NEG_ERROR";
        /// No way leads to the peer (`EHOSTUNREACH`).
        UNREACHABLE = 113, "QUIC_STATUS_UNREACHABLE";
        /// TLS failed (`ENOKEY`).
        TLS_ERROR = 126, "QUIC_STATUS_TLS_ERROR";
        /// The application at either end ended it (`EOWNERDEAD`).
        USER_CANCELED = 130, "QUIC_STATUS_USER_CANCELED";
        /// The ends have no ALPN in common (`ENOPROTOOPT`).
        ALPN_NEG_FAILURE = 92, "QUIC_STATUS_ALPN_NEG_FAILURE";
        /// The peer allows no more streams now (`ESTRPIPE`).
        STREAM_LIMIT_REACHED = 86, "QUIC_STATUS_STREAM_LIMIT_REACHED";
        /// Another listener has the ALPN at this address (`EPROTOTYPE`).
        ALPN_IN_USE = 91, "QUIC_STATUS_ALPN_IN_USE";
        /// The system has no such address of its own (`EADDRNOTAVAIL`).
        ADDRESS_NOT_AVAILABLE = 99, "QUIC_STATUS_ADDRESS_NOT_AVAILABLE";
        /// The TLS alert `close_notify`.
        CLOSE_NOTIFY = TLS_ERROR_BASE, "QUIC_STATUS_CLOSE_NOTIFY";
        /// The TLS alert `bad_certificate`.
        BAD_CERTIFICATE = TLS_ERROR_BASE + 42, "QUIC_STATUS_BAD_CERTIFICATE";
        /// The TLS alert `unsupported_certificate`.
        UNSUPPORTED_CERTIFICATE = TLS_ERROR_BASE + 43, "QUIC_STATUS_UNSUPPORTED_CERTIFICATE";
        /// The TLS alert `certificate_revoked`.
        REVOKED_CERTIFICATE = TLS_ERROR_BASE + 44, "QUIC_STATUS_REVOKED_CERTIFICATE";
        /// The TLS alert `certificate_expired`.
        EXPIRED_CERTIFICATE = TLS_ERROR_BASE + 45, "QUIC_STATUS_EXPIRED_CERTIFICATE";
        /// The TLS alert `certificate_unknown`.
        UNKNOWN_CERTIFICATE = TLS_ERROR_BASE + 46, "QUIC_STATUS_UNKNOWN_CERTIFICATE";
        /// The TLS alert `certificate_required`.
        REQUIRED_CERTIFICATE = TLS_ERROR_BASE + 116, "QUIC_STATUS_REQUIRED_CERTIFICATE";
        /// A certificate of the peer has expired.
        CERT_EXPIRED = CERTIFICATE_ERROR_BASE + 1, "QUIC_STATUS_CERT_EXPIRED";
        /// The peer's chain ends at a root that is not trusted.
        CERT_UNTRUSTED_ROOT = CERTIFICATE_ERROR_BASE + 2, "QUIC_STATUS_CERT_UNTRUSTED_ROOT";
        /// The peer has no certificate.
        CERT_NO_CERT = CERTIFICATE_ERROR_BASE + 3, "QUIC_STATUS_CERT_NO_CERT";
    }
}

impl Status {
    /// Whether it means failure. In C: `QUIC_FAILED`.
    pub const fn failed(self) -> bool {
        self.0.cast_signed() > 0
    }

    /// Whether it does not mean failure; what is [`PENDING`](Self::PENDING) has not failed. In C: `QUIC_SUCCEEDED`.
    pub const fn succeeded(self) -> bool {
        !self.failed()
    }

    /// That of a TLS alert. In C: `QUIC_STATUS_TLS_ALERT`.
    pub const fn of_tls_alert(alert: u8) -> Self {
        Self(TLS_ERROR_BASE | alert as u32)
    }

    /// The TLS alert that it stands for.
    pub fn tls_alert(self) -> Option<u8> {
        self.0.checked_sub(TLS_ERROR_BASE)?.try_into().ok()
    }

    /// The status with which a connection ends after a transport error (RFC 9000, section 20.1).
    pub fn of_transport_error(code: u64) -> Self {
        use transport_errors::*;
        match code {
            NO_ERROR => Self::SUCCESS,
            CONNECTION_REFUSED => Self::CONNECTION_REFUSED,
            PROTOCOL_VIOLATION => Self::PROTOCOL_ERROR,
            APPLICATION_ERROR | APPLICATION_ERROR_OF_MSQUIC => Self::USER_CANCELED,
            VERSION_NEGOTIATION_ERROR => Self::VER_NEG_ERROR,
            CRYPTO..=CRYPTO_LAST => match code as u8 {
                alerts::USER_CANCELED => Self::USER_CANCELED,
                alerts::HANDSHAKE_FAILURE => Self::HANDSHAKE_FAILURE,
                alerts::NO_APPLICATION_PROTOCOL => Self::ALPN_NEG_FAILURE,
                alert => Self::of_tls_alert(alert),
            },
            _ => Self::INTERNAL_ERROR,
        }
    }
}

// Alerts are put in by `|`, which is the same as `+` only while the last eight bits are free.
const _: () = assert!(TLS_ERROR_BASE & 0xff == 0);

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.c_name(), self.tls_alert()) {
            (Some(name), _) => f.write_str(name),
            (None, Some(alert)) => write!(f, "{TLS_ALERT}{alert})"),
            (None, None) => write!(f, "{:#x}", self.0),
        }
    }
}

/// That a text is no status code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownStatus;

impl fmt::Display for UnknownStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "expected the name of a status code, QUIC_STATUS_TLS_ALERT with a number, or a number in 0x…",
        )
    }
}

impl std::error::Error for UnknownStatus {}

/// Reads what is written by `Display`.
impl FromStr for Status {
    type Err = UnknownStatus;

    fn from_str(text: &str) -> Result<Self, UnknownStatus> {
        if let Some(value) = Self::CONSTANTS.value_of(text) {
            return value.try_into().map(Self).map_err(|_| UnknownStatus);
        }
        if let Some(number) = text.strip_prefix(TLS_ALERT).and_then(|rest| rest.strip_suffix(')')) {
            return number.parse().map(Self::of_tls_alert).map_err(|_| UnknownStatus);
        }
        let number = text.strip_prefix("0x").ok_or(UnknownStatus)?;
        u32::from_str_radix(number, 16).map(Self).map_err(|_| UnknownStatus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_goes_on_has_not_failed() {
        assert!(Status::SUCCESS.succeeded() && Status::PENDING.succeeded() && Status::CONTINUE.succeeded());
        assert!(Status::INVALID_STATE.failed() && Status::CERT_NO_CERT.failed());
        assert_eq!(Status::PENDING.0.cast_signed(), -2);
    }

    #[test]
    fn alerts_are_found_again_and_others_are_none() {
        assert_eq!(Status::of_tls_alert(116), Status::REQUIRED_CERTIFICATE);
        assert_eq!(Status::REQUIRED_CERTIFICATE.tls_alert(), Some(116));
        assert_eq!(Status::of_tls_alert(255).tls_alert(), Some(255));
        for other in [Status::SUCCESS, Status::PENDING, Status::CERT_EXPIRED, Status::TLS_ERROR] {
            assert_eq!(other.tls_alert(), None);
        }
    }

    #[test]
    fn transport_errors_have_their_status() {
        for (code, status) in [
            (0, Status::SUCCESS),
            (0x1, Status::INTERNAL_ERROR),
            (0x2, Status::CONNECTION_REFUSED),
            (0xa, Status::PROTOCOL_ERROR),
            (0xb, Status::USER_CANCELED),
            (0xc, Status::USER_CANCELED),
            (0x11, Status::VER_NEG_ERROR),
            (0x100 + 40, Status::HANDSHAKE_FAILURE),
            (0x100 + 42, Status::BAD_CERTIFICATE),
            (0x100 + 90, Status::USER_CANCELED),
            (0x100 + 120, Status::ALPN_NEG_FAILURE),
            (0x1ff, Status::of_tls_alert(255)),
            (0x200, Status::INTERNAL_ERROR),
            (u64::MAX, Status::INTERNAL_ERROR),
        ] {
            assert_eq!(Status::of_transport_error(code), status, "{code:#x}");
        }
    }

    #[test]
    fn names_are_those_of_c() {
        assert_eq!(Status::STREAM_LIMIT_REACHED.to_string(), "QUIC_STATUS_STREAM_LIMIT_REACHED");
        assert_eq!(Status(2).to_string(), "QUIC_STATUS_NOT_FOUND");
        assert_eq!("QUIC_STATUS_FILE_NOT_FOUND".parse(), Ok(Status(2)));
        assert_eq!(Status::of_tls_alert(80).to_string(), "QUIC_STATUS_TLS_ALERT(80)");
        assert_eq!(Status(0x3039).to_string(), "0x3039");
        for wrong in ["", "QUIC_STATUS_NONE", "QUIC_STATUS_TLS_ALERT(256)", "12", "0x", "0x100000000"] {
            assert_eq!(wrong.parse::<Status>(), Err(UnknownStatus), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn every_number_is_read_back_from_its_text(number in prop_oneof![any::<u32>(), 0..200u32, TLS_ERROR_BASE..TLS_ERROR_BASE + 600]) {
            prop_assert_eq!(Status(number).to_string().parse(), Ok(Status(number)));
        }
    }
}
