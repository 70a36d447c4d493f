//! Clients that were turned away without a word from the sites: by the protocol's own code, or because they keep the
//! server waiting.

use std::error::Error;
use std::fmt;

use http::StatusCode;

use crate::metrics::Refusal;
use godwit_body::BoxError;

/// Why a connection over TCP is given up that the client would have gone on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GaveUp {
    /// A request's head has been arriving for too long.
    HeadLate,
    /// The client takes too little of what it asked for.
    TooSlow,
    /// The client has given up more requests than it may.
    Abandoned,
    /// The client has sent too many frames that serve nothing (HTTP/2).
    Useless,
}

impl fmt::Display for GaveUp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            GaveUp::HeadLate => "a request's head did not arrive in time",
            GaveUp::TooSlow => "the client takes too little",
            GaveUp::Abandoned => "the client gives up too many requests",
            GaveUp::Useless => "the client sends too many frames that serve nothing",
        })
    }
}

impl Error for GaveUp {}

/// What ended a connection, if that was a refusal, and the status with which hyper has answered.
pub(super) fn reason(error: &BoxError) -> Option<(Refusal, Option<StatusCode>)> {
    if let Some(why) = error.downcast_ref::<GaveUp>() {
        return Some(match why {
            GaveUp::HeadLate => (Refusal::HeadLate, None),
            GaveUp::TooSlow => (Refusal::TooSlow, None),
            GaveUp::Abandoned => (Refusal::Abandoned, None),
            GaveUp::Useless => (Refusal::Useless, None),
        });
    }
    let error = error.downcast_ref::<hyper::Error>().filter(|error| error.is_parse())?;
    // The two sorts of what is too large differ in their words only.
    Some(match error.is_parse_too_large() {
        // It is left without an answer.
        false if error.is_parse_version_h2() => (Refusal::BadRequest, None),
        true if error.to_string().contains("URI") => (Refusal::UriTooLong, Some(StatusCode::URI_TOO_LONG)),
        true => (Refusal::HeaderTooLarge, Some(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)),
        false => (Refusal::BadRequest, Some(StatusCode::BAD_REQUEST)),
    })
}
