//! Informational responses from a server.

use super::error::Error;
use super::link::Link;
use godwit_wire::StreamId;
use http::Response;
use std::sync::{Arc, Weak};

/// Sends informational (1xx) responses before the final one: hints of what a page will need, or that work
/// is going on. A [`super::Server`] puts it into each request's extensions.
#[derive(Debug, Clone)]
pub struct Informational {
    /// Weak: kept for long, it must not keep a connection open.
    link: Weak<Link>,
    id: StreamId,
}

impl Informational {
    pub(super) fn new(link: &Arc<Link>, id: StreamId) -> Self {
        Informational { link: Arc::downgrade(link), id }
    }

    /// Sends `response`, or leaves it out where one before it still waits for the client to take it; the first 100 (Continue)
    /// is always sent.
    ///
    /// # Errors
    /// If its status is not an informational one or does not exist in HTTP/3 (101), the final response has
    /// begun, or the exchange is over.
    pub fn send(&self, response: &Response<()>) -> Result<(), Error> {
        let link = self.link.upgrade().ok_or_else(Error::cancelled)?;
        link.with(|protocol, io| match protocol.failure(self.id) {
            Some(error) => Err(error),
            None => protocol.h3.send_informational(io, self.id, response).map_err(Error::from_send),
        })
    }
}
