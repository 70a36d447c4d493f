//! What `h3` is told of what goes wrong, and its numbers in the forms that Godwit has for them.

use godwit::{ApplicationCode, ConnectionError, ConnectionErrorKind, ReadError, WriteError};
use h3::error::Code;
use h3::quic::{ConnectionErrorIncoming, StreamErrorIncoming, StreamId};
use std::sync::Arc;

/// Why a connection is over. What `h3` has no word for it can still show, and its program find out of what type it is.
pub(crate) fn of_connection(error: ConnectionError) -> ConnectionErrorIncoming {
    match (error.application_code(), error.kind()) {
        (Some(error_code), _) => ConnectionErrorIncoming::ApplicationClose { error_code },
        (None, ConnectionErrorKind::IdleTimedOut | ConnectionErrorKind::HandshakeTimedOut) => {
            ConnectionErrorIncoming::Timeout
        }
        (None, _) => ConnectionErrorIncoming::Undefined(Arc::new(error)),
    }
}

/// The same where a stream was wanted of it.
pub(crate) fn of_opening(error: ConnectionError) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming { connection_error: of_connection(error) }
}

/// Why nothing can be read.
pub(crate) fn of_reading(error: ReadError) -> StreamErrorIncoming {
    match error {
        ReadError::Reset(error_code) => StreamErrorIncoming::StreamTerminated { error_code },
        ReadError::ConnectionLost(error) => of_opening(error),
        error => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}

/// Why nothing can be written.
pub(crate) fn of_writing(error: WriteError) -> StreamErrorIncoming {
    match error {
        WriteError::Stopped(error_code) => StreamErrorIncoming::StreamTerminated { error_code },
        WriteError::ConnectionLost(error) => of_opening(error),
        error => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}

/// A caller has not kept to the contract of the traits: `h3` closes the connection with H3_INTERNAL_ERROR.
pub(crate) fn misused(what: &str) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming {
        connection_error: ConnectionErrorIncoming::InternalError(what.to_owned()),
    }
}

/// A code that no frame can carry has no meaning either.
pub(crate) fn code(code: u64) -> ApplicationCode {
    ApplicationCode::try_from(code).unwrap_or_else(|_| known(Code::H3_INTERNAL_ERROR))
}

/// One of the codes with names, all of which are small.
pub(crate) fn known(code: Code) -> ApplicationCode {
    u32::try_from(code.value()).unwrap_or_default().into()
}

/// Both are numbers below 2^62 (RFC 9000 section 2.1).
#[expect(clippy::expect_used, reason = "there are no streams with larger numbers")]
pub(crate) fn stream_id(id: godwit::StreamId) -> StreamId {
    id.as_u64().try_into().expect("the number of a stream is below 2^62")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_frames_cannot_carry_are_internal_errors() {
        assert_eq!(code(0x10c).value(), 0x10c);
        assert_eq!(code((1 << 62) - 1).value(), (1 << 62) - 1);
        assert_eq!(code(1 << 62).value(), Code::H3_INTERNAL_ERROR.value());
        assert_eq!(known(Code::H3_REQUEST_CANCELLED).value(), 0x10c);
    }

    #[test]
    fn streams_that_a_peer_ends_have_its_code_and_others_their_cause() {
        let StreamErrorIncoming::StreamTerminated { error_code: 7 } = of_reading(ReadError::Reset(7)) else {
            panic!("a reset is no end of the stream");
        };
        let StreamErrorIncoming::StreamTerminated { error_code: 8 } = of_writing(WriteError::Stopped(8))
        else {
            panic!("a stop is no end of the stream");
        };
        let StreamErrorIncoming::Unknown(error) = of_writing(WriteError::Finished) else {
            panic!("the stream is finished, and nothing else");
        };
        assert!(matches!(error.downcast_ref(), Some(WriteError::Finished)));
    }
}
