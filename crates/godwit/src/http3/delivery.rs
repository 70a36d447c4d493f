//! Knowing when a response has arrived.

use super::link::Link;
use godwit_wire::StreamId;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll};

/// Ready with `true` once the client has acknowledged every byte of a response and its end (RFC 9000
/// section 3.1, "Data Recvd"), or has closed the connection without an error (H3_NO_ERROR) after all of it was sent:
/// then it waits for nothing any more, and acknowledgements of the last packets are often left out. Ready with
/// `false` if neither will ever be: the exchange was given up by either end, or the connection is over. From
/// [`super::ConnectionInfo::delivery`].
///
/// It may be polled from any task, and with any waker: it is woken outside of all locks. There is one such
/// future for a request; another takes its place.
#[derive(Debug)]
#[must_use = "it tells only whoever awaits it"]
pub struct Delivery {
    link: Weak<Link>,
    id: StreamId,
    /// Known once it is settled, also when the connection is gone.
    outcome: Arc<OnceLock<bool>>,
}

impl Delivery {
    /// `too_slow` is set when the response is given up because the client takes too little.
    pub(super) fn new(link: Weak<Link>, id: StreamId, too_slow: Option<Arc<AtomicBool>>) -> Self {
        let watched = link.upgrade();
        let watched = watched.map(|link| link.look(|protocol, _| protocol.watch_delivery(id, too_slow)));
        Delivery { link, id, outcome: watched.unwrap_or_default() }
    }
}

impl Future for Delivery {
    type Output = bool;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        let settled = || self.outcome.get().copied().unwrap_or(false);
        let Some(link) = self.link.upgrade() else { return Poll::Ready(settled()) };
        let id = self.id;
        link.look(|protocol, _| protocol.poll_delivered(cx, id))
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        let Some(link) = self.link.upgrade() else { return };
        let id = self.id;
        drop(link.look(|protocol, _| protocol.forget_delivery(id)));
    }
}
