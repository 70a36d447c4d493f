//! One service behind all three protocols.
//!
//! [`Front`] takes a request of any protocol and sees it through, in this order: limits, the site of its host, the
//! site's rules for requests, the route of its path, the route's handler, the site's rules for responses,
//! compression, what is said about HTTP/3, the log. Nothing here and behind knows which protocol brought a request:
//! what an upgrade or a tunnel needs travels in the extensions of request and response, untouched.
//!
//! The sites can be exchanged while requests are under way ([`Front::replace`]): each request is seen through by
//! the sites that it began with.

pub(crate) mod body;
pub(crate) mod coding;
mod compress;
mod handler;
pub(crate) mod host;
mod limits;
mod pages;
mod path;
mod proxy;
pub(crate) mod redirect;
mod respond;
mod router;
mod rules;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arc_swap::ArcSwap;
use bytes::Bytes;
use godwit_proxy::{Proxy, UpstreamStatus};
use http::header::{self, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::ext::Protocol;

use crate::error::Failure;
use crate::output::{http_date, unix_now};
use crate::serve::access::{self, Entry, Observer};
use crate::serve::config::{self, HeaderRules};
use body::{BoxError, RequestBody, ResponseBody};
use coding::Coding;
use compress::{Room, Wish};
use handler::{Handler, Route};
use host::{Host, HostProblem};
use limits::Limits;
use pages::Reader;
use proxy::Proxies;
use router::{Choice, Hosts, Routes, Rule};

/// The service. Clones share everything.
#[derive(Clone, Debug)]
pub(crate) struct Front {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    sites: ArcSwap<Sites>,
    room: Room,
    observer: Observer,
}

impl Front {
    /// # Errors
    /// If a folder cannot be opened, an upstream not be used, or a redirect leads nowhere.
    pub(crate) fn new(settings: &config::Settings, observer: Observer) -> Result<Front, Failure> {
        let sites = ArcSwap::from_pointee(Sites::new(settings, &Proxies::default(), &observer)?);
        Ok(Front { shared: Arc::new(Shared { sites, room: Room::default(), observer }) })
    }

    /// Who sees every request.
    pub(crate) fn observer(&self) -> &Observer {
        &self.shared.observer
    }

    /// Serves other sites from the next request on, at all clones.
    ///
    /// # Errors
    /// As for [`Front::new`]; the sites stay as they are then.
    pub(crate) fn replace(&self, settings: &config::Settings) -> Result<(), Failure> {
        let sites = Sites::new(settings, &self.shared.sites.load().proxies, &self.shared.observer)?;
        self.shared.sites.store(Arc::new(sites));
        Ok(())
    }

    /// How the upstreams of all sites are, for the metrics.
    pub(crate) fn upstreams(&self) -> Vec<UpstreamStatus> {
        self.shared.sites.load().proxies.iter().flat_map(Proxy::status).collect()
    }

    async fn respond(self, request: Request<RequestBody>) -> Response<ResponseBody> {
        let mut entry = self.shared.observer.begin(&request);
        let request = request.map(|body| entry.count_request(body));
        let sites = self.shared.sites.load_full();
        let mut response = sites.respond(request, &self.shared.room, &mut entry).await;
        let headers = response.headers_mut();
        headers.entry(header::SERVER).or_insert(HeaderValue::from_static("godwit"));
        if !headers.contains_key(header::DATE)
            && let Ok(date) = HeaderValue::from_str(&http_date(unix_now()))
        {
            headers.insert(header::DATE, date);
        }
        entry.finish(response)
    }
}

impl<B> tower::Service<Request<B>> for Front
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let front = self.clone();
        let request = request.map(body::boxed);
        Box::pin(async move { Ok(front.respond(request).await) })
    }
}

/// All sites as of one reading of the configuration.
#[derive(Debug)]
struct Sites {
    hosts: Hosts,
    sites: Vec<Site>,
    proxies: Proxies,
    limits: Limits,
}

#[derive(Debug)]
struct Site {
    observed: Arc<access::Site>,
    request_headers: HeaderRules,
    response_headers: HeaderRules,
    compress: Vec<Coding>,
    routes: Routes<Route>,
}

impl Site {
    fn new(
        settings: &config::Site,
        proxies: &mut Proxies,
        before: &Proxies,
        observer: &Observer,
    ) -> Result<Site, Failure> {
        let mut routes = Vec::new();
        for route in &settings.routes {
            let rule = Rule { path: route.path.clone(), methods: route.methods.clone() };
            let handler = Handler::new(&route.handler, proxies, before)?;
            routes.push((rule, Route { strip_prefix: route.strip_prefix.clone(), handler }));
        }
        Ok(Site {
            observed: observer.site(settings),
            request_headers: settings.request_headers.clone(),
            response_headers: settings.response_headers.clone(),
            compress: settings.compress.clone(),
            routes: Routes::new(routes),
        })
    }

    async fn respond(
        &self,
        mut request: Request<RequestBody>,
        host: Option<&Host>,
        reader: Reader,
        room: &Room,
    ) -> Response<ResponseBody> {
        let wish = Wish::of(&request);
        rules::apply_to_request(&self.request_headers, request.headers_mut());
        let mut response = self.handle(request, host, reader).await;
        rules::apply(&self.response_headers, response.headers_mut());
        compress::compress(response, wish, &self.compress, room)
    }

    async fn handle(
        &self,
        request: Request<RequestBody>,
        host: Option<&Host>,
        reader: Reader,
    ) -> Response<ResponseBody> {
        let normal = path::normal(request.uri().path());
        let route = match self.routes.choose(request.method(), &normal.path) {
            Choice::Route(route) => route,
            Choice::OtherMethods(methods) => {
                let page = reader.page(StatusCode::METHOD_NOT_ALLOWED, "this address is for other methods");
                return allowing(page, &methods);
            }
            Choice::Nothing => return reader.page(StatusCode::NOT_FOUND, "there is nothing at this address"),
        };
        if normal.doubtful && !route.handler.bears_doubtful_paths() {
            return reader
                .page(StatusCode::BAD_REQUEST, "the address has dot segments or control characters");
        }
        route.respond(request, host, reader).await
    }
}

impl Sites {
    fn new(settings: &config::Settings, before: &Proxies, observer: &Observer) -> Result<Sites, Failure> {
        let hosts = Hosts::new(settings.sites.iter().map(|site| site.hosts.as_slice()));
        let mut proxies = Proxies::of(settings);
        let site = |site| Site::new(site, &mut proxies, before, observer);
        let sites = settings.sites.iter().map(site).collect::<Result<_, _>>()?;
        Ok(Sites { hosts, sites, proxies, limits: Limits::of(&settings.limits) })
    }

    async fn respond(
        &self,
        request: Request<RequestBody>,
        room: &Room,
        entry: &mut Entry,
    ) -> Response<ResponseBody> {
        let reader = Reader::of(&request);
        let (site, host) = match self.find(&request) {
            Ok(found) => found,
            Err((status, sentence)) => return reader.page(status, sentence),
        };
        entry.at_site(&site.observed, request.headers());
        if request.uri().path() == "*" {
            return options();
        }
        let (request, exceeded) = self.limits.limit(request);
        let response = site.respond(request, host.as_ref(), reader, room).await;
        if exceeded.is() {
            let (status, sentence) = limits::TOO_LARGE;
            return reader.page(status, sentence);
        }
        response
    }

    /// The site that a request is for, or what is wrong with the request.
    fn find<B>(&self, request: &Request<B>) -> Result<(&Site, Option<Host>), (StatusCode, &'static str)> {
        self.limits.check(request)?;
        if request.method() == Method::CONNECT && request.extensions().get::<Protocol>().is_none() {
            return Err((StatusCode::METHOD_NOT_ALLOWED, "this server is no way to others"));
        }
        let host = host::of(request).map_err(|problem| match problem {
            HostProblem::NotOne => (StatusCode::BAD_REQUEST, "the request does not name one host"),
            HostProblem::Malformed => (StatusCode::BAD_REQUEST, "the request's host is malformed"),
        })?;
        let site = self.hosts.site(host.as_ref()).and_then(|number| self.sites.get(number));
        match site {
            Some(site) => Ok((site, host)),
            None => Err((StatusCode::MISDIRECTED_REQUEST, "this server has no site of that name")),
        }
    }
}

/// The answer to `OPTIONS *`, and to anything else about the server as a whole (RFC 9110 section 9.3.7).
fn options() -> Response<ResponseBody> {
    use Method as M;
    let methods = [M::GET, M::HEAD, M::POST, M::PUT, M::PATCH, M::DELETE, M::OPTIONS];
    allowing(body::bare(StatusCode::NO_CONTENT), &methods)
}

/// Says which methods there are.
fn allowing(mut response: Response<ResponseBody>, methods: &[Method]) -> Response<ResponseBody> {
    let list: Vec<&str> = methods.iter().map(Method::as_str).collect();
    if let Ok(list) = HeaderValue::try_from(list.join(", ")) {
        response.headers_mut().insert(header::ALLOW, list);
    }
    response
}
