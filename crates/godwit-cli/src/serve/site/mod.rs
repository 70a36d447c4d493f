//! What is served: one `tower` service for all three protocols.
//!
//! [`Front`] takes a request of any protocol, asks its [`Source`] (a folder, or the pages built into the program),
//! adds the headers every response has and counts the body for the request log. It answers `GET` and `HEAD` only
//! and never looks at a request's body.

mod body;
mod conditions;
mod embedded;
mod folder;
mod pages;
mod path;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::{self, HeaderValue};
use http::{Method, Request, Response, StatusCode, Version};

pub(crate) use body::Body;
pub(crate) use embedded::Embedded;
pub(crate) use folder::Folder;

use super::log::RequestLog;
use crate::output::{http_date, unix_now};

/// Where the files come from.
#[derive(Debug)]
pub(crate) enum Source {
    Embedded(Embedded),
    Folder(Folder),
}

/// The service of one listener. Clones share everything.
#[derive(Clone, Debug)]
pub(crate) struct Front(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    source: Arc<Source>,
    log: RequestLog,
    /// What responses over TCP say about HTTP/3; `None` when it does not run on this port.
    alt_svc: Option<HeaderValue>,
}

impl Front {
    /// A front door whose HTTP/3 is at UDP `http3_port`, if it has one.
    pub(crate) fn new(source: Arc<Source>, log: RequestLog, http3_port: Option<u16>) -> Front {
        Front(Arc::new(Inner { source, log, alt_svc: http3_port.map(alt_svc) }))
    }

    async fn respond(self, request: Request<()>) -> Response<Body> {
        let entry = self.0.log.entry(&request);
        let over_tcp = request.version() != Version::HTTP_3;
        let mut response = match *request.method() {
            Method::GET | Method::HEAD => match &*self.0.source {
                Source::Embedded(site) => site.respond(&request),
                Source::Folder(folder) => folder.respond(request).await,
            },
            _ => pages::method_not_allowed(),
        };
        let headers = response.headers_mut();
        headers.insert(header::SERVER, HeaderValue::from_static("godwit"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        match (&self.0.alt_svc, over_tcp) {
            (Some(alt_svc), true) => {
                headers.insert(header::ALT_SVC, alt_svc.clone());
            }
            // Over TCP hyper writes the date.
            (_, false) => {
                if let Ok(date) = HeaderValue::from_str(&http_date(unix_now())) {
                    headers.insert(header::DATE, date);
                }
            }
            (None, true) => {}
        }
        let status = response.status();
        response.map(|body| body.logged(entry, status))
    }
}

impl<B> tower::Service<Request<B>> for Front {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let front = self.clone();
        let request = request.map(drop);
        Box::pin(async move { Ok(front.respond(request).await) })
    }
}

/// `h3=":4433"; ma=86400`: HTTP/3 at that UDP port of the same host, to be remembered for a day (RFC 7838).
fn alt_svc(port: u16) -> HeaderValue {
    let value = format!("h3=\":{port}\"; ma=86400");
    HeaderValue::try_from(value).unwrap_or_else(|_| HeaderValue::from_static("clear"))
}

/// A response without a body.
fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use tower::ServiceExt;

    use super::*;

    async fn ask(front: &Front, method: Method, path: &str, version: Version) -> Response<Body> {
        let request = Request::builder().method(method).uri(path).version(version).body(()).unwrap();
        front.clone().oneshot(request).await.unwrap()
    }

    fn front(port: Option<u16>) -> Front {
        Front::new(Arc::new(Source::Embedded(Embedded::new())), RequestLog::off(), port)
    }

    #[tokio::test]
    async fn only_tcp_responses_point_to_http3() {
        let front = front(Some(4433));
        for version in [Version::HTTP_11, Version::HTTP_2] {
            let response = ask(&front, Method::GET, "/", version).await;
            assert_eq!(response.headers()[header::ALT_SVC], "h3=\":4433\"; ma=86400");
            assert_eq!(response.headers()[header::SERVER], "godwit");
        }
        let response = ask(&front, Method::GET, "/", Version::HTTP_3).await;
        assert!(!response.headers().contains_key(header::ALT_SVC));
        assert!(response.headers().contains_key(header::DATE));
    }

    #[tokio::test]
    async fn nothing_points_to_http3_where_there_is_none() {
        let response = ask(&front(None), Method::GET, "/", Version::HTTP_2).await;
        assert!(!response.headers().contains_key(header::ALT_SVC));
    }

    #[tokio::test]
    async fn other_methods_are_refused() {
        let response = ask(&front(None), Method::DELETE, "/", Version::HTTP_11).await;
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(response.headers()[header::ALLOW], "GET, HEAD");
    }
}
