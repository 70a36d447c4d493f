//! Error codes, connection errors, and why calls are refused (RFC 9114 section 8, RFC 9204 section 6, RFC 9297 section 5.2,
//! draft-ietf-webtrans-http3).

use std::fmt;
use std::panic::Location;

/// An application error code as it stands in CONNECTION_CLOSE, RESET_STREAM and STOP_SENDING frames.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub(crate) u64);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        impl ErrorCode {
            $($(#[$doc])* pub const $name: ErrorCode = ErrorCode($value);)*

            /// A code by its number; `None` above 2^62-1, which no frame can carry.
            pub const fn new(code: u64) -> Option<ErrorCode> {
                if code <= godwit_wire::codec::VARINT_MAX { Some(ErrorCode(code)) } else { None }
            }

            /// The number.
            pub const fn value(self) -> u64 {
                self.0
            }

            /// The RFC's name for the code, if it has one.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// No error: a connection or stream is closed without one.
    H3_NO_ERROR = 0x100;
    /// A violation that no other code names.
    H3_GENERAL_PROTOCOL_ERROR = 0x101;
    /// The endpoint met an internal error.
    H3_INTERNAL_ERROR = 0x102;
    /// The peer created a stream that is not accepted.
    H3_STREAM_CREATION_ERROR = 0x103;
    /// A stream the connection needs was closed or reset.
    H3_CLOSED_CRITICAL_STREAM = 0x104;
    /// A frame not permitted in this state or on this stream.
    H3_FRAME_UNEXPECTED = 0x105;
    /// A frame of the wrong layout or size.
    H3_FRAME_ERROR = 0x106;
    /// The peer causes more work than it is worth.
    H3_EXCESSIVE_LOAD = 0x107;
    /// A stream id or push id used wrongly.
    H3_ID_ERROR = 0x108;
    /// An error in a SETTINGS frame.
    H3_SETTINGS_ERROR = 0x109;
    /// No SETTINGS frame at the start of the control stream.
    H3_MISSING_SETTINGS = 0x10a;
    /// A server refuses a request without having processed any of it: it can be sent again.
    H3_REQUEST_REJECTED = 0x10b;
    /// The request or its response is no longer wanted.
    H3_REQUEST_CANCELLED = 0x10c;
    /// The client's stream ended without a whole request.
    H3_REQUEST_INCOMPLETE = 0x10d;
    /// A malformed message.
    H3_MESSAGE_ERROR = 0x10e;
    /// The connection that a CONNECT request asked for was reset or closed abnormally.
    H3_CONNECT_ERROR = 0x10f;
    /// The request cannot be served over HTTP/3; the peer should use HTTP/1.1.
    H3_VERSION_FALLBACK = 0x110;
    /// A datagram or capsule that breaks the rules (RFC 9297 section 5.2).
    H3_DATAGRAM_ERROR = 0x33;
    /// A stream came before its WebTransport session, and there was no room for it.
    WT_BUFFERED_STREAM_REJECTED = 0x3994bd84;
    /// The WebTransport session of a stream is over.
    WT_SESSION_GONE = 0x170d7b68;
    /// A field section cannot be decompressed.
    QPACK_DECOMPRESSION_FAILED = 0x200;
    /// A bad instruction on the encoder stream.
    QPACK_ENCODER_STREAM_ERROR = 0x201;
    /// A bad instruction on the decoder stream.
    QPACK_DECODER_STREAM_ERROR = 0x202;
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "error code {:#x}", self.0),
        }
    }
}

/// An error that ends the connection (RFC 9114 section 8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    /// The code the peer is told.
    pub code: ErrorCode,
    /// What was wrong, for people.
    pub reason: &'static str,
    /// Where in our code it was decided.
    pub at: &'static Location<'static>,
}

impl Error {
    /// An error. The caller's place in the source is recorded.
    #[track_caller]
    pub const fn new(code: ErrorCode, reason: &'static str) -> Self {
        Error { code, reason, at: Location::caller() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.reason)
    }
}

impl std::error::Error for Error {}

/// Why something cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// The connection is closed.
    Closed,
    /// The peer's limit of streams is reached. Try again when the transport says that streams may be
    /// opened.
    NoStreams,
    /// The peer is going away and takes no new requests.
    GoingAway,
    /// There is no such request, or it is over.
    UnknownStream,
    /// The peer does not want the rest; the code says why.
    Stopped(ErrorCode),
    /// The message's headers are larger than the peer accepts.
    FieldsTooLarge,
    /// The call comes at the wrong time or from the wrong side; the text says what is wrong.
    NotPermitted(&'static str),
    /// The message cannot be expressed in HTTP/3; the text says why.
    Malformed(&'static str),
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::Closed => f.write_str("the connection is closed"),
            SendError::NoStreams => f.write_str("the peer permits no more requests at once"),
            SendError::GoingAway => f.write_str("the peer is going away"),
            SendError::UnknownStream => f.write_str("no such request"),
            SendError::Stopped(code) => write!(f, "the peer stopped reading: {code}"),
            SendError::FieldsTooLarge => f.write_str("the headers are larger than the peer accepts"),
            SendError::NotPermitted(why) => write!(f, "not permitted: {why}"),
            SendError::Malformed(why) => write!(f, "malformed message: {why}"),
        }
    }
}

impl std::error::Error for SendError {}

/// Why a datagram is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DatagramError {
    /// The exchange or the connection is over.
    Closed,
    /// The peer takes no datagrams.
    Unsupported,
    /// It is too large; `max` bytes are permitted now.
    TooLarge {
        /// What is permitted.
        max: usize,
    },
    /// Too many wait to be sent. There is room later.
    Full,
}

impl fmt::Display for DatagramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatagramError::Closed => f.write_str("the exchange of the datagram is over"),
            DatagramError::Unsupported => f.write_str("the peer takes no datagrams"),
            DatagramError::TooLarge { max } => write!(f, "the datagram is longer than {max} bytes"),
            DatagramError::Full => f.write_str("too many datagrams wait to be sent"),
        }
    }
}

impl std::error::Error for DatagramError {}

/// Why the rest of a message cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// The connection is closed.
    Closed,
    /// There is no such request, or it is over.
    UnknownStream,
    /// The stream was reset.
    Reset {
        /// Why.
        code: ErrorCode,
        /// True if this end reset it, because of an error in what came; false if the peer did.
        local: bool,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Closed => f.write_str("the connection is closed"),
            ReadError::UnknownStream => f.write_str("no such request"),
            ReadError::Reset { code, local: true } => write!(f, "the message is invalid: {code}"),
            ReadError::Reset { code, local: false } => write!(f, "reset by the peer: {code}"),
        }
    }
}

impl std::error::Error for ReadError {}
