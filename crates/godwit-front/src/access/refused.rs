//! Clients that were turned away without a word from the sites: by the protocol's own code, or because they keep the
//! server waiting.

use std::error::Error;
use std::fmt;

use http::StatusCode;

use crate::metrics::Refusal;
use godwit_body::BoxError;

/// Why a connection over TCP is given up that the client would have gone on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shed {
    /// A request's head has been arriving for too long.
    HeadLate,
    /// The client takes too little of what it asked for.
    TooSlow,
}

impl fmt::Display for Shed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Shed::HeadLate => "a request's head did not arrive in time",
            Shed::TooSlow => "the client takes too little",
        })
    }
}

impl Error for Shed {}

/// What ended a connection, if that was a refusal, and the status with which hyper has answered.
pub(super) fn reason(error: &BoxError) -> Option<(Refusal, Option<StatusCode>)> {
    if let Some(shed) = error.downcast_ref::<Shed>() {
        return Some(match shed {
            Shed::HeadLate => (Refusal::HeadLate, None),
            Shed::TooSlow => (Refusal::TooSlow, None),
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
