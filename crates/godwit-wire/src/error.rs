//! Transport error codes (RFC 9000 section 20.1), and the errors that are told to the peer with them.

use std::fmt;
use std::panic::Location;

/// A transport error code as it stands in a CONNECTION_CLOSE frame of type 0x1c.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TransportErrorCode(pub u64);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        impl TransportErrorCode {
            $($(#[$doc])* pub const $name: TransportErrorCode = TransportErrorCode($value);)*

            /// The RFC's name for the code, if it has one.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($name)),)*
                    0x100..=0x1ff => Some("CRYPTO_ERROR"),
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// Closed without an error.
    NO_ERROR = 0x0;
    /// The endpoint met an internal error and cannot go on.
    INTERNAL_ERROR = 0x1;
    /// The server refuses the connection.
    CONNECTION_REFUSED = 0x2;
    /// More data than the advertised limits permit.
    FLOW_CONTROL_ERROR = 0x3;
    /// More streams than the advertised limit permits.
    STREAM_LIMIT_ERROR = 0x4;
    /// A frame for a stream in a state that does not permit it.
    STREAM_STATE_ERROR = 0x5;
    /// Data beyond a stream's final size, or a final size that changed.
    FINAL_SIZE_ERROR = 0x6;
    /// A badly formatted frame.
    FRAME_ENCODING_ERROR = 0x7;
    /// Bad, missing or forbidden transport parameters.
    TRANSPORT_PARAMETER_ERROR = 0x8;
    /// More connection ids than permitted.
    CONNECTION_ID_LIMIT_ERROR = 0x9;
    /// A violation that no other code names.
    PROTOCOL_VIOLATION = 0xa;
    /// A server refuses a client's token.
    INVALID_TOKEN = 0xb;
    /// The application closed the connection (in packets that cannot carry its own code).
    APPLICATION_ERROR = 0xc;
    /// More CRYPTO data than can be buffered.
    CRYPTO_BUFFER_EXCEEDED = 0xd;
    /// A key update went wrong.
    KEY_UPDATE_ERROR = 0xe;
    /// A limit of the packet protection was reached.
    AEAD_LIMIT_REACHED = 0xf;
    /// No usable network path.
    NO_VIABLE_PATH = 0x10;
    /// Version negotiation was tampered with (RFC 9368).
    VERSION_NEGOTIATION_ERROR = 0x11;
}

impl TransportErrorCode {
    /// The code for a TLS alert (RFC 9001 section 4.8).
    pub const fn crypto(alert: u8) -> Self {
        TransportErrorCode(0x100 | alert as u64)
    }

    /// The TLS alert in the code, if it is one.
    pub const fn alert(self) -> Option<u8> {
        if self.0 & !0xff == 0x100 { Some((self.0 & 0xff) as u8) } else { None }
    }
}

impl fmt::Debug for TransportErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for TransportErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name(), self.alert()) {
            (_, Some(alert)) => write!(f, "CRYPTO_ERROR (TLS alert {alert})"),
            (Some(name), None) => f.write_str(name),
            (None, None) => write!(f, "error code {:#x}", self.0),
        }
    }
}

/// A violation by the peer (or a failure of ours) that closes the connection with a CONNECTION_CLOSE
/// frame of type 0x1c (RFC 9000 section 11.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireError {
    /// The code the peer is told.
    pub code: TransportErrorCode,
    /// The type of the frame that caused it, or 0.
    pub frame_type: u64,
    /// What was wrong, for people.
    pub reason: &'static str,
    /// Where in our code it was decided.
    pub at: &'static Location<'static>,
}

impl WireError {
    /// A violation. The caller's place in the source is recorded.
    #[track_caller]
    pub const fn new(code: TransportErrorCode, reason: &'static str) -> Self {
        WireError { code, frame_type: 0, reason, at: Location::caller() }
    }

    /// The same, naming the frame that caused it.
    #[must_use]
    pub const fn in_frame(mut self, frame_type: u64) -> Self {
        self.frame_type = frame_type;
        self
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.reason)
    }
}

impl std::error::Error for WireError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_have_codes_of_their_own() {
        for alert in 0..=u8::MAX {
            let code = TransportErrorCode::crypto(alert);
            assert_eq!((code.0, code.alert()), (0x100 + u64::from(alert), Some(alert)));
            assert_eq!(code.to_string(), format!("CRYPTO_ERROR (TLS alert {alert})"));
            assert_eq!(TransportErrorCode(alert.into()).alert(), None);
            for above in [0x200, 0x300, 0x1100, 1 << 61] {
                assert_eq!(TransportErrorCode(above + u64::from(alert)).alert(), None);
            }
        }
    }

    #[test]
    fn errors_say_what_the_peer_is_told_and_why() {
        let error = WireError::new(TransportErrorCode::FLOW_CONTROL_ERROR, "too much").in_frame(8);
        assert_eq!((error.to_string().as_str(), error.frame_type), ("FLOW_CONTROL_ERROR: too much", 8));
        assert_eq!(TransportErrorCode(0x4321).to_string(), "error code 0x4321");
        assert_eq!(format!("{:?}", TransportErrorCode::NO_ERROR), "NO_ERROR");
    }
}
