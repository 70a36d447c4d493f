//! An exchange: one request with its response, at a client or at a server.
//!
//! Of each there is one last event, and none after it but reports on what was sent; `over` says whether that has been, and
//! who tells of the exchange holds it meanwhile. Trailers and statistics aside, both sides are alike from the outside.

pub(crate) mod api;
mod body;
mod incoming;

pub(crate) use body::SentBody;
pub(crate) use incoming::receive;

use crate::abi;
use crate::event::Event;
use crate::failure::Failure;
use crate::handles::{Kind, Thing};
use crate::outbox::Outbox;
use crate::subject::Subject;
use godwit_body::Informational;
use http::Response;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::{oneshot, watch};

/// Bytes that may be lent, or wait, where nothing else is said.
pub(crate) const USUAL_LIMIT: u32 = 1 << 20;

/// A request with its response.
pub(crate) struct Exchange {
    pub(crate) subject: Arc<Subject>,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) side: Side,
    /// The last event was told.
    over: watch::Sender<bool>,
}

/// Which side of it this is.
pub(crate) enum Side {
    Client {
        /// The connection of the response, where it is QUIC.
        connection: OnceLock<Option<godwit::Connection>>,
    },
    Server {
        /// Who waits for the response, until it is there.
        respond: Mutex<Option<oneshot::Sender<Response<SentBody>>>>,
        /// The way for informational responses.
        inform: Option<Informational>,
        /// The method was HEAD: nobody takes the body of the response.
        is_head: bool,
    },
}

impl Thing for Exchange {
    const KIND: Kind = Kind::Exchange;

    /// Breaks it off unheard.
    fn close(&self) {
        self.subject.close();
        self.cancel();
    }

    fn set_tag(&self, tag: u64) -> bool {
        self.subject.set_tag(tag);
        true
    }
}

impl Exchange {
    pub(crate) fn new(subject: Arc<Subject>, send_limit: u64, side: Side) -> Arc<Exchange> {
        let outbox = Outbox::new(&subject, send_limit, u64::from(USUAL_LIMIT));
        Arc::new(Exchange { subject, outbox, side, over: watch::Sender::new(false) })
    }

    /// Begins an event of it.
    pub(crate) fn event(&self, kind: u32) -> Event {
        self.subject.event(kind)
    }

    /// Tells of something, unless the last event was told.
    pub(crate) fn tell(&self, event: Event) {
        let unheard = {
            let over = self.over.borrow();
            if *over { Some(event) } else { self.subject.try_tell(event) }
        };
        // It may close this.
        drop(unheard);
    }

    /// Tells the last event, unless there was one.
    pub(crate) fn tell_last(&self, event: Event) {
        self.end(|| self.subject.tell(event));
    }

    /// Does what belongs to the end, unless there was one. Nobody else comes between, with an end of their own.
    fn end(&self, act: impl FnOnce()) {
        let mut act = Some(act);
        self.over.send_if_modified(|over| {
            if let Some(act) = act.take_if(|_| !*over) {
                act();
            }
            !std::mem::replace(over, true)
        });
    }

    /// It has failed, unless it was over. `remedy`: what may help.
    pub(crate) fn fail(&self, failure: &Failure, remedy: String) {
        self.end(|| {
            // Who takes from it learns of this, and must not be the first to say that it has failed.
            self.outbox.abandon(failure);
            let event = self.event(abi::EVENT_FAILED).with_failure(failure);
            self.subject.tell(event.with_bytes(remedy.into(), None));
        });
        // It may have been over, with bytes that wait nevertheless.
        self.outbox.abandon(failure);
    }

    /// Whether the last event was told.
    pub(crate) fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    /// Waits until the last event was told, or nobody wants to hear of it.
    pub(crate) async fn until_over(&self) {
        let mut over = self.over.subscribe();
        // Its sender is in this.
        let _ = self.subject.unless_closed(over.wait_for(|over| *over)).await;
    }

    /// Breaks it off.
    pub(crate) fn cancel(&self) {
        self.fail(&Failure::cancelled(), String::new());
        self.forget_response();
    }

    /// Who waits for a response waits no longer.
    fn forget_response(&self) {
        if let Side::Server { respond, .. } = &self.side {
            drop(respond.lock().unwrap_or_else(PoisonError::into_inner).take());
        }
    }
}
