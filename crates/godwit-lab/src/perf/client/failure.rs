//! What goes wrong on a link.

use crate::Error;
use std::fmt;

pub(super) fn broken(error: impl fmt::Display) -> Error {
    Error::new(format!("the connection or a stream of it broke off: {error}"))
}

pub(super) fn stopped_by_the_server() -> Error {
    Error::new("the server ended the download by itself: does it speak the \"perf\" protocol?")
}
