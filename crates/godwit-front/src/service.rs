//! Any `tower` service as what answers a route.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use godwit_body::{BoxBody, BoxError, bare, boxed};
use http::{Request, Response, StatusCode};
use tower::{Service, ServiceExt};

/// A response to come.
pub(crate) type Answer = Pin<Box<dyn Future<Output = Response<BoxBody>> + Send>>;

/// A service that a route leads to. Clones are the same.
///
/// It answers in any way it likes, tunnels included. Requests have a [`godwit_body::Peer`] in their extensions, and where
/// [`crate::settings::Settings::early_data`] lets them in early, a [`godwit_body::EarlyData`]; over HTTP/3 and HTTP/1.1 a
/// [`godwit_body::Informational`] sends what is to be said ahead of the final response (103 Early Hints). If the service fails,
/// the client gets status 500.
#[derive(Clone)]
pub struct RouteService(Arc<dyn Fn(Request<BoxBody>) -> Answer + Send + Sync>);

impl RouteService {
    /// Has clones of `service` answer.
    pub fn new<S, B>(service: S) -> RouteService
    where
        S: Service<Request<BoxBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError> + Send,
        S::Future: Send,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        RouteService::of(move |request| boxed_answer(service.clone().oneshot(request)))
    }

    pub(crate) fn of(answer: impl Fn(Request<BoxBody>) -> Answer + Send + Sync + 'static) -> RouteService {
        RouteService(Arc::new(answer))
    }

    pub(crate) fn answer(&self, request: Request<BoxBody>) -> Answer {
        (self.0)(request)
    }
}

/// Type-erased: what the future holds is of no interest any more.
fn boxed_answer<F, B, E>(answer: F) -> Answer
where
    F: Future<Output = Result<Response<B>, E>> + Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    E: Into<BoxError>,
{
    Box::pin(async move { answered(answer.await) })
}

/// What the client gets.
fn answered<B, E>(outcome: Result<Response<B>, E>) -> Response<BoxBody>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    E: Into<BoxError>,
{
    match outcome {
        Ok(response) => response.map(boxed),
        Err(error) => {
            let error: BoxError = error.into();
            tracing::warn!(%error, "a service failed");
            bare(StatusCode::INTERNAL_SERVER_ERROR)
        }
    }
}

impl fmt::Debug for RouteService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RouteService")
    }
}
