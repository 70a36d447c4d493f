//! The plain HTTP port, which leads to HTTPS: a permanent redirect that keeps the method (308), the health page, and
//! the answers by which ACME servers check names (RFC 8555 section 8.3).
//!
//! Invariant: it leads to hosts that the operator has named and to nobody else's, whatever `Host` says (and whichever
//! cache on the way keeps the answer): those that sites name; where a site is for every host, those that a
//! certificate names, and the address that the client came to.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HeaderValue, LOCATION};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use super::client::Client;
use super::sites::host::{self, Host};
use super::sites::{Front, Naming};
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
    /// Knows the sites, and sees every request.
    front: Front,
}

impl Redirect {
    /// `listening`: where HTTPS is; 443 is preferred.
    pub(super) fn new(store: Store, listening: &[SocketAddr], front: Front) -> Redirect {
        let ports = || listening.iter().map(SocketAddr::port);
        let port = ports().find(|port| *port == 443).or_else(|| ports().next()).unwrap_or(443);
        Redirect { store, port, front }
    }

    pub(super) async fn serve(
        &self,
        stream: ClientStream,
        guard: ConnectionGuard<'_>,
    ) -> Result<(), BoxError> {
        let observer = self.front.observer().clone();
        let client = client(&stream, Protocol::Http11, None, &observer, guard.limits)?;
        let sender = Arc::clone(&client);
        let (redirect, leaving) = (self.clone(), Arc::clone(&guard.leaving));
        let pace = Arc::clone(&guard.pace);
        let service = service_fn(move |mut request: Request<Incoming>| {
            pace.on_request();
            request.extensions_mut().insert(Arc::clone(&sender));
            let entry = redirect.front.observer().begin(&request, godwit_text::instant_now());
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
        outcome.inspect_err(|error| observer.on_broken(&client, error))
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
        let came_to = Client::of(request.extensions()).map(|client| client.local().ip());
        if !self.is_ours(&host, came_to) {
            let reason = "this server has no site and no certificate of that name\n";
            return text(StatusCode::MISDIRECTED_REQUEST, reason);
        }
        let Ok(location) = HeaderValue::try_from(self.location(&host, request.uri())) else {
            return text(StatusCode::BAD_REQUEST, "the request's address is malformed\n");
        };
        let mut response = text(StatusCode::PERMANENT_REDIRECT, "this site is at https://\n");
        response.headers_mut().insert(LOCATION, location);
        response
    }

    /// `came_to`: where the client is connected.
    fn is_ours(&self, host: &Host, came_to: Option<IpAddr>) -> bool {
        match self.front.naming(host) {
            Naming::Named => true,
            Naming::CaughtAll => {
                let is_here = came_to.is_some() && host.as_str().parse().ok() == came_to;
                is_here || self.store.has_certificate_for(host.as_str())
            }
            Naming::Unknown => false,
        }
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
mod tests;
