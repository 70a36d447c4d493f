//! Informational responses from a server.

use super::error::Error;
use super::link::Link;
use godwit_body::Informational;
use godwit_wire::StreamId;
use std::sync::Arc;

/// Where the informational responses to a request go.
///
/// One is left out where another before it still waits for the client to take it; the first 100 (Continue) is always sent. It is
/// an error if its status is not an informational one or does not exist in HTTP/3 (101), the final response has begun, or the
/// exchange is over.
pub(super) fn to(link: &Arc<Link>, id: StreamId) -> Informational {
    // Kept for long, it must not keep a connection open.
    let link = Arc::downgrade(link);
    Informational::new(move |response| {
        let link = link.upgrade().ok_or_else(Error::cancelled)?;
        let sent = link.with(|protocol, io| match protocol.failure(id) {
            Some(error) => Err(error),
            None => protocol.h3.send_informational(io, id, &response).map_err(Error::from_send),
        });
        Ok(sent?)
    })
}
