//! Requests: each becomes an exchange, which the application hears of and answers.

use super::Server;
use crate::abi::{self, Plain};
use crate::exchange::{Exchange, SentBody, Side, USUAL_LIMIT, receive};
use crate::failure::Failure;
use crate::handles;
use crate::intake::Intake;
use crate::introductions::Place;
use crate::subject::Subject;
use crate::words::{address, protocol};
use godwit_body::{BoxBody, EarlyData, Informational, Peer};
use godwit_front::Builder;
use http::header::{CONTENT_LENGTH, HOST};
use http::request::Parts;
use http::{Method, Request, Response};
use std::sync::{Arc, Mutex, Weak};
use tokio::sync::oneshot;

/// Has requests asked of the application.
pub(super) fn serve(builder: Builder, server: &Arc<Server>) -> Builder {
    let server = Arc::downgrade(server);
    let service = tower::service_fn(move |request| answer(Weak::clone(&server), request));
    builder.service("/", service)
}

/// An exchange whose response nobody has given yet. Whoever drops it waits no longer.
struct Unanswered(Arc<Exchange>);

impl Drop for Unanswered {
    fn drop(&mut self) {
        let Side::Server { respond, .. } = &self.0.side else { return };
        let waits = respond.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if waits.is_some() {
            let failure =
                Failure::new(abi::ERROR_RESET, "the client does not wait for the response any more");
            self.0.fail(&failure, String::new());
        }
    }
}

/// Asks the application.
async fn answer(server: Weak<Server>, request: Request<BoxBody>) -> Result<Response<SentBody>, Failure> {
    let closed = || Failure::new(abi::ERROR_CLOSED, "the server was closed");
    let server = server.upgrade().filter(|server| !server.subject.is_closed()).ok_or_else(closed)?;
    // Whoever does not wait for it takes the future with them, and nothing is left.
    let place = server.subject.unless_closed(server.introductions.place()).await.ok_or_else(closed)?;
    let (head, body) = request.into_parts();
    let (respond, response) = oneshot::channel();
    let exchange = handles::insert(|handle| {
        let subject = Subject::of(&server.subject, handle, server.subject.tag());
        let side = Side::Server {
            respond: Mutex::new(Some(respond)),
            inform: head.extensions.get::<Informational>().cloned(),
            is_head: head.method == Method::HEAD,
        };
        Exchange::new(subject, server.send_limit, side)
    })?;
    let unanswered = Unanswered(Arc::clone(&exchange));
    tell_head(&exchange, head, place);
    let (receiving, intake) = (Arc::clone(&exchange), Intake::new(server.receive_limit, USUAL_LIMIT));
    tokio::spawn(async move {
        tokio::select! {
            biased;
            () = receiving.until_over() => {}
            outcome = receive(&receiving, &intake, body) => match outcome {
                Ok(()) => receiving.tell(receiving.event(abi::EVENT_END)),
                Err(error) => {
                    let text = format!("the request breaks off: {error}");
                    receiving.fail(&Failure::new(abi::ERROR_RESET, text), String::new());
                }
            },
        }
    });
    let answered = server.subject.unless_closed(response).await.and_then(Result::ok);
    drop(unanswered);
    answered.ok_or_else(Failure::cancelled)
}

fn tell_head(exchange: &Exchange, head: Parts, place: Place) {
    let peer = head.extensions.get::<Peer>();
    let is_early = head.extensions.get::<EarlyData>().is_some_and(EarlyData::may_be_replay);
    let length = head.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let host = || head.headers.get(HOST).and_then(|value| value.to_str().ok());
    let authority = head.uri.authority().map(http::uri::Authority::as_str).or_else(host).unwrap_or_default();
    let path = head.uri.path_and_query().map_or("*", http::uri::PathAndQuery::as_str);
    let event = exchange.event(abi::EVENT_REQUEST).introducing(place);
    let event = event.with_flags(if is_early { abi::EVENT_FLAG_EARLY } else { 0 });
    let event = event.lending(|lent| {
        lent.request = Some(Box::new(abi::RequestHead {
            flags: if peer.is_some_and(|peer| peer.secure) { 0 } else { abi::REQUEST_HEAD_PLAIN },
            protocol: protocol(head.version),
            content_length: length.unwrap_or(u64::MAX),
            method: lent.keep(head.method.as_str()),
            path: lent.keep(path),
            authority: lent.keep(authority),
            client_address: address(peer.map(|peer| peer.address)),
            ..abi::RequestHead::zeroed()
        }));
    });
    exchange.tell(event.with_headers(head.headers));
}
