//! What it means in gRPC that an exchange broke: for HTTP/3 gRFC G2, for HTTP/2 the specification of gRPC over HTTP/2.

use godwit::http3::{self, ErrorCode, ErrorKind};
use std::error::Error;

/// Those of gRPC's status codes that follow from what happens to an exchange, whatever the service says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// The other end gave up the call.
    Cancelled,
    /// The call was not over in its time.
    DeadlineExceeded,
    /// The connection is not secure enough for the other end.
    PermissionDenied,
    /// The other end has too much to do.
    ResourceExhausted,
    /// A rule of the protocol was broken.
    Internal,
    /// The server cannot be reached, or has not acted on the call: it can be made again.
    Unavailable,
}

impl Code {
    /// Its number in `grpc-status`.
    pub fn value(self) -> u8 {
        match self {
            Code::Cancelled => 1,
            Code::DeadlineExceeded => 4,
            Code::PermissionDenied => 7,
            Code::ResourceExhausted => 8,
            Code::Internal => 13,
            Code::Unavailable => 14,
        }
    }

    /// What a reset with this code of HTTP/3 means.
    pub fn of_http3(code: ErrorCode) -> Code {
        match code {
            ErrorCode::H3_REQUEST_REJECTED => Code::Unavailable,
            ErrorCode::H3_REQUEST_CANCELLED => Code::Cancelled,
            ErrorCode::H3_EXCESSIVE_LOAD => Code::ResourceExhausted,
            _ => Code::Internal,
        }
    }

    /// What an error of Godwit's clients means, or one of `h2`; whichever of them is first among `error` and what caused
    /// it. `None` if it is none of theirs, or about the body that was to be sent: its error says more than a code.
    pub fn of_error(error: &(dyn Error + 'static)) -> Option<Code> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(error) = error.downcast_ref::<http3::Error>() {
                return of_http3_error(error);
            }
            if let Some(error) = error.downcast_ref::<h2::Error>() {
                return Some(of_http2_error(error));
            }
            #[cfg(feature = "client")]
            if let Some(code) = error.downcast_ref::<godwit_client::Error>().and_then(of_client_error) {
                return Some(code);
            }
            next = error.source();
        }
        None
    }
}

fn of_http3_error(error: &http3::Error) -> Option<Code> {
    match error.kind() {
        ErrorKind::Body => None,
        ErrorKind::Cancelled => Some(Code::Cancelled),
        ErrorKind::Connect | ErrorKind::Connection | ErrorKind::GoingAway | ErrorKind::NotHttp3 => {
            Some(Code::Unavailable)
        }
        ErrorKind::Reset => Some(error.code().map_or(Code::Internal, Code::of_http3)),
        // Messages that cannot be sent, broken rules, and what is to come.
        _ => Some(Code::Internal),
    }
}

fn of_http2_error(error: &h2::Error) -> Code {
    // A connection that is gone is none of the stream's faults.
    if error.is_io() || error.is_go_away() {
        return Code::Unavailable;
    }
    match error.reason() {
        Some(h2::Reason::REFUSED_STREAM) => Code::Unavailable,
        Some(h2::Reason::CANCEL) => Code::Cancelled,
        Some(h2::Reason::ENHANCE_YOUR_CALM) => Code::ResourceExhausted,
        Some(h2::Reason::INADEQUATE_SECURITY) => Code::PermissionDenied,
        _ => Code::Internal,
    }
}

/// What is clear without looking further.
#[cfg(feature = "client")]
fn of_client_error(error: &godwit_client::Error) -> Option<Code> {
    use godwit_client::ErrorKind;
    match error.kind() {
        ErrorKind::Resolve | ErrorKind::Connect | ErrorKind::Certificate => Some(Code::Unavailable),
        ErrorKind::Timeout => Some(Code::DeadlineExceeded),
        // Of HTTP/1.1 nothing is known but that it failed.
        ErrorKind::Exchange if error.source().is_none() => Some(Code::Unavailable),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resets_mean_what_the_proposal_says() {
        for (code, meaning) in [
            (ErrorCode::H3_REQUEST_REJECTED, 14),
            (ErrorCode::H3_REQUEST_CANCELLED, 1),
            (ErrorCode::H3_EXCESSIVE_LOAD, 8),
            (ErrorCode::H3_NO_ERROR, 13),
            (ErrorCode::H3_INTERNAL_ERROR, 13),
            (ErrorCode::H3_MESSAGE_ERROR, 13),
        ] {
            assert_eq!(Code::of_http3(code).value(), meaning, "{code}");
        }
    }

    #[test]
    fn http2_is_looked_for_behind_other_errors() {
        let of = |reason: h2::Reason| Code::of_error(&Outer(reason.into())).unwrap();
        assert_eq!(of(h2::Reason::REFUSED_STREAM), Code::Unavailable);
        assert_eq!(of(h2::Reason::CANCEL), Code::Cancelled);
        assert_eq!(of(h2::Reason::ENHANCE_YOUR_CALM), Code::ResourceExhausted);
        assert_eq!(of(h2::Reason::INADEQUATE_SECURITY), Code::PermissionDenied);
        assert_eq!(of(h2::Reason::PROTOCOL_ERROR), Code::Internal);
        assert_eq!(Code::of_error(&std::fmt::Error), None);
    }

    #[derive(Debug)]
    struct Outer(h2::Error);

    impl std::fmt::Display for Outer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("outer")
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }
}
