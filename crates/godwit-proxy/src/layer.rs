//! The proxy in front of another service.

use crate::BoxError;
use crate::body::Body;
use crate::service::Proxy;
use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body_util::BodyExt;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::{Layer, Service};

type Matcher = Arc<dyn Fn(&Parts) -> bool + Send + Sync>;

/// Has some requests answered by a [`Proxy`], and the others by the service that it is put around.
#[derive(Clone)]
pub struct ProxyLayer {
    proxy: Proxy,
    matcher: Matcher,
}

impl ProxyLayer {
    /// Sends the requests that `matcher` selects to the proxy.
    pub fn new(proxy: Proxy, matcher: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self {
        ProxyLayer { proxy, matcher: Arc::new(matcher) }
    }

    /// Sends requests for paths that begin so to the proxy. `/api` stands for `/api` and all below it.
    pub fn prefix(proxy: Proxy, prefix: impl Into<String>) -> Self {
        let prefix = prefix.into();
        Self::new(proxy, move |request| {
            request
                .uri
                .path()
                .strip_prefix(prefix.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || prefix.ends_with('/'))
        })
    }
}

impl fmt::Debug for ProxyLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyLayer").field("proxy", &self.proxy).finish_non_exhaustive()
    }
}

impl<S> Layer<S> for ProxyLayer {
    type Service = ProxyService<S>;

    fn layer(&self, inner: S) -> ProxyService<S> {
        ProxyService { layer: self.clone(), inner }
    }
}

/// What [`ProxyLayer`] makes.
#[derive(Debug, Clone)]
pub struct ProxyService<S> {
    layer: ProxyLayer,
    inner: S,
}

/// A body of either.
type EitherBody = godwit_body::BoxBody;

impl<S, B, R> Service<Request<B>> for ProxyService<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    type Response = Response<EitherBody>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<EitherBody>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (parts, body) = request.into_parts();
        let ours = (self.layer.matcher)(&parts);
        let request = Request::from_parts(parts, body);
        if ours {
            let proxy = self.layer.proxy.clone();
            return Box::pin(async move { Ok(proxy.handle(request).await.map(Body::boxed_unsync)) });
        }
        let answer = self.inner.call(request);
        Box::pin(async move { Ok(answer.await?.map(|body| godwit_body::boxed(body))) })
    }
}
