//! Serving one request, in a task of its own if it has to wait: what goes wrong in it, a panic included, stays in it.

use super::BoxError;
use super::body::Body;
use super::connection_info::{ConnectionInfo, Origin};
use super::datagram_flow::DatagramFlow;
use super::early_requests::EarlyRequests;
use super::exchange::{RecvHalf, SendHalf};
use super::informational;
use super::link::Link;
use super::minimum_rate::RateGuard;
use super::outgoing::{Outgoing, content_length, has_no_content, set_content_length};
use super::protocol::Arrival;
use super::send_body::send_body;
use bytes::Bytes;
use godwit_body::MinimumRate;
use godwit_http3::{ErrorCode, Protocol};
use http::{Method, Request, Response, StatusCode};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;
use tower::Service;

/// A request with both halves of its exchange.
pub(super) struct Task {
    request: Request<Body>,
    send: SendHalf,
    guard: RateGuard,
    /// It came before the handshake was complete, and no service sees it until that is so.
    held: Option<Confirmation>,
}

/// Whether the handshake is complete, once that is settled. Boxed: hardly any request has one.
type Confirmation = Pin<Box<dyn Future<Output = bool> + Send>>;

impl Task {
    pub(super) fn new(
        link: &Arc<Link>,
        info: &Origin,
        (arrival, arrived): (Arrival, Instant),
        (rate, early): (Option<MinimumRate>, EarlyRequests),
    ) -> Self {
        let guard = RateGuard::new(rate);
        let info = info.of_request(&arrival, arrived, guard.ended());
        let (mut parts, ()) = arrival.request.into_parts();
        let held = early.holds(&parts.method, &info).then(|| confirmation(info.clone()));
        parts.extensions.insert(info);
        parts.extensions.insert(informational::to(link, arrival.id));
        super::proxied::describe(&mut parts.extensions);
        if parts.extensions.get::<Protocol>().is_some() {
            DatagramFlow::describe(link, arrival.id, &mut parts.extensions);
        }
        // What follows a CONNECT is not content.
        let length = content_length(&parts.headers).filter(|_| parts.method != Method::CONNECT);
        let body = match arrival.end {
            true => Body::empty(),
            false => Body::arriving(RecvHalf::new(Arc::clone(link), arrival.id), length),
        };
        let send = SendHalf::new(Arc::clone(link), arrival.id);
        Task { request: Request::from_parts(parts, body), send, guard, held }
    }

    /// Has `service` answer the request, and sends the answer. A service that fails is answered for with status 500; one that panics, or whose body fails, leaves the exchange reset with H3_INTERNAL_ERROR.
    /// If the client gives up, the service's future is dropped.
    pub(super) async fn run<S, B>(self, service: S)
    where
        S: Service<Request<Body>, Response = Response<B>>,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let Task { request, mut send, guard, held } = self;
        let method = request.method().clone();
        let sent = match ask(service, request, held, &mut send).await {
            Ok(Ok(response)) => respond(&mut send, &method, response, guard).await,
            Ok(Err(error)) => {
                tracing::warn!(%error, "a service failed: answering with status 500");
                respond(&mut send, &method, bare(StatusCode::INTERNAL_SERVER_ERROR), guard).await
            }
            Err(error) => Err(error),
        };
        if let Err(error) = sent {
            tracing::debug!(%error, "a response was not sent to its end");
            send.abandon(ErrorCode::H3_INTERNAL_ERROR, &error);
        }
    }
}

/// What the service says, or why nobody wants to know any more. If it is `held`, it is asked once the handshake is complete.
async fn ask<S, B>(
    service: S,
    request: Request<Body>,
    held: Option<Confirmation>,
    send: &mut SendHalf,
) -> Result<Result<Response<B>, BoxError>, super::Error>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
{
    let mut answer = pin!(async move {
        if let Some(confirmed) = held
            && !confirmed.await
        {
            // The connection is over, which is told below.
            return std::future::pending().await;
        }
        let mut service = service;
        poll_fn(|cx| service.poll_ready(cx)).await?;
        service.call(request).await
    });
    poll_fn(|cx| match answer.as_mut().poll(cx) {
        Poll::Ready(answer) => Poll::Ready(Ok(answer.map_err(Into::into))),
        Poll::Pending => send.poll_refused(cx).map(Err),
    })
    .await
}

fn confirmation(info: ConnectionInfo) -> Confirmation {
    Box::pin(async move { info.confirmed().await })
}

fn bare(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

async fn respond<B>(
    send: &mut SendHalf,
    method: &Method,
    response: Response<B>,
    guard: RateGuard,
) -> Result<(), super::Error>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let (mut parts, body) = response.into_parts();
    let status = parts.status;
    if has_no_content(status) || *method == Method::HEAD {
        // What the body would have been is not looked at.
        drop(body);
        let mut outgoing = Outgoing::empty_response(Response::from_parts(parts, ()));
        return poll_fn(|cx| send.poll_send(cx, &mut outgoing)).await;
    }
    if !(*method == Method::CONNECT && status.is_success()) {
        set_content_length(&mut parts.headers, &body);
    }
    let outgoing = Outgoing::response(Response::from_parts(parts, ()));
    send_body(send, outgoing, body, ErrorCode::H3_INTERNAL_ERROR, guard).await
}
