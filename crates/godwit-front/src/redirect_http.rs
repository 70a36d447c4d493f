//! The plain HTTP port, which leads to HTTPS: a permanent redirect that keeps the method (308), the health page, and
//! the answers by which ACME servers check names (RFC 8555 section 8.3).

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HeaderValue, LOCATION};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use super::access::Observer;
use super::sites::host::{self, Host};
use super::tcp_connection::{ConnectionGuard, client, http1_builder};
use super::tcp_stream::ClientStream;
use godwit_body::{BoxBody, BoxError, full};
use godwit_certificates::Store;
use godwit_report::record::Protocol;

const CHALLENGE: &str = "/.well-known/acme-challenge/";
const HEALTH: &str = "/healthz";

/// What plain HTTP is answered with.
#[derive(Clone, Debug)]
pub(super) struct Redirect {
    store: Store,
    /// The port of HTTPS.
    port: u16,
    observer: Observer,
}

impl Redirect {
    /// `listening`: where HTTPS is; 443 is preferred.
    pub(super) fn new(store: Store, listening: &[SocketAddr], observer: Observer) -> Redirect {
        let ports = || listening.iter().map(SocketAddr::port);
        let port = ports().find(|port| *port == 443).or_else(|| ports().next()).unwrap_or(443);
        Redirect { store, port, observer }
    }

    pub(super) async fn serve(
        &self,
        stream: ClientStream,
        guard: ConnectionGuard<'_>,
    ) -> Result<(), BoxError> {
        let client = client(&stream, Protocol::Http11, None, &self.observer, guard.limits)?;
        let sender = Arc::clone(&client);
        let (redirect, leaving) = (self.clone(), Arc::clone(&guard.leaving));
        let pace = Arc::clone(&guard.pace);
        let service = service_fn(move |mut request: Request<Incoming>| {
            pace.on_request();
            request.extensions_mut().insert(Arc::clone(&sender));
            let entry = redirect.observer.begin(&request);
            let mut response = entry.finish(redirect.answer(&request));
            if leaving.load(Ordering::Relaxed) {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            pace.on_response_over();
            async move { Ok::<_, Infallible>(response) }
        });
        let builder = http1_builder(guard.limits);
        let mut connection =
            std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service).with_upgrades());
        // What is under way is dropped with the connection, and logged then.
        let outcome = guard.keep(&client, connection.as_mut()).await;
        outcome.inspect_err(|error| self.observer.on_broken(&client, error))
    }

    fn answer<B>(&self, request: &Request<B>) -> Response<BoxBody> {
        let path = request.uri().path();
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        if is_read && let Some(token) = path.strip_prefix(CHALLENGE) {
            return match self.store.http_challenge(token) {
                Some(answer) => text(StatusCode::OK, answer),
                None => text(StatusCode::NOT_FOUND, "no such challenge\n"),
            };
        }
        if is_read && path == HEALTH {
            return text(StatusCode::OK, "ok\n");
        }
        let Ok(Some(host)) = host::of(request) else {
            return text(StatusCode::BAD_REQUEST, "the request does not name one host\n");
        };
        let Ok(location) = HeaderValue::try_from(self.location(&host, request.uri())) else {
            return text(StatusCode::BAD_REQUEST, "the request's address is malformed\n");
        };
        let mut response = text(StatusCode::PERMANENT_REDIRECT, "this site is at https://\n");
        response.headers_mut().insert(LOCATION, location);
        response
    }

    fn location(&self, host: &Host, uri: &http::Uri) -> String {
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let path = if path.starts_with('/') { path } else { "/" };
        match self.port {
            443 => format!("https://{}{path}", host.in_url()),
            port => format!("https://{}:{port}{path}", host.in_url()),
        }
    }
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<BoxBody> {
    let mut response = Response::new(full(body));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redirect(listening: &[&str]) -> Redirect {
        let listening: Vec<SocketAddr> = listening.iter().map(|text| text.parse().unwrap()).collect();
        Redirect::new(Store::new(Vec::new()).unwrap(), &listening, Observer::quiet())
    }

    fn ask(redirect: &Redirect, uri: &str, host: Option<&str>) -> (u16, String) {
        let mut request = Request::builder().uri(uri);
        if let Some(host) = host {
            request = request.header("host", host);
        }
        let response = redirect.answer(&request.body(()).unwrap());
        let location = response.headers().get(LOCATION).map_or("", |value| value.to_str().unwrap());
        (response.status().as_u16(), location.to_owned())
    }

    #[test]
    fn everything_leads_to_https() {
        let standard = redirect(&["[::]:8443", "[::]:443"]);
        let to = |uri, host| ask(&standard, uri, Some(host));
        assert_eq!(to("/a?b=c", "example.com"), (308, "https://example.com/a?b=c".to_owned()));
        assert_eq!(to("/", "example.com:80"), (308, "https://example.com/".to_owned()));
        assert_eq!(to("/", "[::1]:80"), (308, "https://[::1]/".to_owned()));
        assert_eq!(to("http://other.test/x", "example.com"), (308, "https://other.test/x".to_owned()));
        let other = redirect(&["127.0.0.1:4433"]);
        assert_eq!(ask(&other, "/x", Some("localhost")), (308, "https://localhost:4433/x".to_owned()));
    }

    #[test]
    fn what_cannot_be_redirected_is_refused() {
        let redirect = redirect(&["[::]:443"]);
        assert_eq!(ask(&redirect, "/", None).0, 400);
        assert_eq!(ask(&redirect, "/", Some("evil.test/x")).0, 400);
        assert_eq!(ask(&redirect, "/", Some("a b")).0, 400);
    }

    #[test]
    fn health_and_challenges_are_answered_here() {
        let redirect = redirect(&["[::]:443"]);
        assert_eq!(ask(&redirect, "/healthz", None).0, 200);
        assert_eq!(ask(&redirect, "/.well-known/acme-challenge/unknown", Some("a.test")).0, 404);
    }
}
