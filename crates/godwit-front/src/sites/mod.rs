//! One service behind all three protocols.
//!
//! [`Front`] takes a request of any protocol and sees it through, in this order: limits, the site of its host, the
//! site's rules for requests, the route of its path, the route's handler, the site's rules for responses,
//! compression, what is said about HTTP/3, the log. Nothing here and behind knows which protocol brought a request:
//! what an upgrade or a tunnel needs travels in the extensions of request and response, untouched.
//!
//! The sites can be exchanged while requests are under way ([`Front::replace`]): each request is seen through by
//! the sites that it began with.

mod date;
mod handler;
pub(crate) mod host;
mod pages;
mod proxy;
pub(crate) mod redirect;
mod respond;
mod router;
mod rules;
#[cfg(test)]
mod tests;

use std::num::NonZeroU8;
use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;
use godwit_os::shard;
use godwit_proxy::{Proxy, UpstreamStatus};
use http::header::{self, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::ext::Protocol;
use hyper::upgrade::OnUpgrade;

use crate::FrontError;
use crate::access::{self, Entry, Logged, Observer};
use crate::path;
use crate::settings::{self, HeaderRules};
use godwit_body::{BoxBody, Counted, EarlyData, Exceeded, ExtendedConnect, Limited, boxed};
use godwit_layers::compression::{CompressionLayer, CompressionMemory};
use godwit_layers::limits::{Refusal, RequestLimits};
use handler::{Answered, Handler, Route};
use host::{Host, HostProblem};
use http_body::Body as _;
use pages::Reader;
use proxy::Proxies;
pub(crate) use router::Naming;
use router::{Choice, Hosts, Routes, Rule};

/// The service. Clones share everything.
///
/// Each shard has a copy ([`Front::here`]) of all that requests hold on to while they are under way: what counts who holds on
/// would otherwise go from core to core with each of them.
#[derive(Clone, Debug)]
pub(crate) struct Front {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    sites: ArcSwap<Sites>,
    memory: CompressionMemory,
    observer: Observer,
    /// Those of the shards, where there are several.
    shards: Vec<Front>,
}

impl Front {
    /// # Errors
    /// If a folder cannot be opened, an upstream not be used, or a redirect leads nowhere.
    pub(crate) fn new(settings: &settings::Settings, observer: Observer) -> Result<Front, FrontError> {
        let memory = CompressionMemory::default();
        let sites = Sites::new(settings, &Proxies::default(), &observer, &memory)?;
        let count = if settings.shards == NonZeroU8::MIN { 0 } else { settings.shards.get() };
        let shard = |_| {
            let observer = observer.for_shard();
            let sites = Sites::new(settings, &sites.proxies, &observer, &memory)?;
            let (sites, memory, shards) = (ArcSwap::from_pointee(sites), memory.clone(), Vec::new());
            Ok(Front { shared: Arc::new(Shared { sites, memory, observer, shards }) })
        };
        let shards = (0..count).map(shard).collect::<Result<_, FrontError>>()?;
        let sites = ArcSwap::from_pointee(sites);
        Ok(Front { shared: Arc::new(Shared { sites, memory, observer, shards }) })
    }

    /// That of the shard whose thread calls.
    pub(crate) fn here(&self) -> Front {
        let shard = shard::current().and_then(|number| self.shared.shards.get(usize::from(number)));
        shard.unwrap_or(self).clone()
    }

    /// Who sees every request.
    pub(crate) fn observer(&self) -> &Observer {
        &self.shared.observer
    }

    /// Serves other sites from the next request on, at all clones.
    ///
    /// # Errors
    /// As for [`Front::new`]; the sites stay as they are then.
    pub(crate) fn replace(&self, settings: &settings::Settings) -> Result<(), FrontError> {
        let Shared { sites, memory, observer, shards } = &*self.shared;
        let new = Sites::new(settings, &sites.load().proxies, observer, memory)?;
        let of_shard =
            |shard: &Front| Sites::new(settings, &new.proxies, &shard.shared.observer, memory).map(Arc::new);
        let of_shards = shards.iter().map(of_shard).collect::<Result<Vec<_>, _>>()?;
        shards.iter().zip(of_shards).for_each(|(shard, new)| shard.shared.sites.store(new));
        sites.store(Arc::new(new));
        Ok(())
    }

    /// How the sites' configuration speaks of a host.
    pub(crate) fn naming(&self, host: &Host) -> Naming {
        self.shared.sites.load().hosts.naming(host)
    }

    /// How the upstreams of all sites are, for the metrics.
    pub(crate) fn upstreams(&self) -> Vec<UpstreamStatus> {
        self.shared.sites.load().proxies.iter().flat_map(Proxy::status).collect()
    }

    /// The same, asked again and again, by somebody who may be part of this front: it does not keep it.
    pub(crate) fn ask_upstreams(&self) -> impl Fn() -> Vec<UpstreamStatus> + Send + Sync + use<> {
        let shared = Arc::downgrade(&self.shared);
        move || shared.upgrade().map(|shared| Front { shared }.upstreams()).unwrap_or_default()
    }

    /// Answers a request that has come at `arrived`, or before.
    pub(crate) async fn respond(self, mut request: Request<BoxBody>, arrived: Instant) -> Response<Logged> {
        let mut entry = self.shared.observer.begin(&request, arrived);
        if request.extensions().get::<OnUpgrade>().is_some() {
            request.extensions_mut().insert(entry.count_tunnel());
        }
        let sites = self.shared.sites.load_full();
        let mut response = sites.respond(request, arrived, &mut entry).await;
        let headers = response.headers_mut();
        headers.entry(header::SERVER).or_insert(HeaderValue::from_static("godwit"));
        headers.entry(header::DATE).or_insert_with(date::now);
        entry.finish(response)
    }
}

/// All sites as of one reading of the configuration.
#[derive(Debug)]
struct Sites {
    hosts: Hosts,
    sites: Vec<Site>,
    proxies: Proxies,
    limits: RequestLimits,
}

#[derive(Debug)]
struct Site {
    observed: Arc<access::Site>,
    request_headers: Arc<HeaderRules>,
    response_headers: Arc<HeaderRules>,
    compression: CompressionLayer,
    /// There is a route that may send informational responses.
    speaks_ahead: bool,
    routes: Routes<Route>,
}

/// What is known of a request from the beginning.
#[derive(Clone, Copy, Debug)]
struct Asked {
    reader: Reader,
    /// It has come by then.
    arrived: Instant,
}

impl Site {
    fn new(
        (settings, early_data): (&settings::Site, settings::EarlyData),
        proxies: &mut Proxies,
        before: &Proxies,
        observer: &Observer,
        memory: &CompressionMemory,
    ) -> Result<Site, FrontError> {
        let mut routes = Vec::new();
        for route in &settings.routes {
            let rule = Rule { path: route.path.clone(), methods: route.methods.clone() };
            let handler = Handler::new(&route.handler, proxies, before)?;
            let (strip_prefix, early_data) =
                (route.strip_prefix.clone(), route.early_data.unwrap_or(early_data));
            routes.push((rule, Route { strip_prefix, early_data, handler }));
        }
        let speaks_ahead = routes.iter().any(|(_, route): &(_, Route)| route.handler.may_speak_ahead());
        Ok(Site {
            observed: observer.site(settings),
            request_headers: Arc::new(settings.request_headers.clone()),
            response_headers: Arc::new(settings.response_headers.clone()),
            compression: CompressionLayer::new(&settings.compress, memory.clone())
                .with_credentials(settings.compress_with_credentials),
            speaks_ahead,
            routes: Routes::new(routes),
        })
    }

    async fn respond(
        &self,
        mut request: Request<BoxBody>,
        host: Option<&Host>,
        asked: Asked,
    ) -> Response<BoxBody> {
        let preferences = self.compression.preferences(&request);
        // Boxed: hardly any request waits.
        if let Some(early) = self.held(&request)
            && !Box::pin(async move { early.confirmed().await }).await
        {
            // Nobody is there any more to read this.
            let sentence = "this came before the handshake, which was never completed";
            return asked.reader.page(StatusCode::TOO_EARLY, sentence);
        }
        if self.speaks_ahead {
            // Rules are for informational responses, too.
            handler::offer_interim(&mut request);
        }
        rules::requested(&mut request, &self.request_headers, &self.response_headers);
        let mut response = match self.handle(request, host, asked) {
            Answered::Now(response) => response,
            Answered::Later(answer) => answer.await,
        };
        rules::apply(&self.response_headers, response.headers_mut());
        self.compression.compress(response, preferences)
    }

    /// What a request waits for that came before the handshake is complete, at a route that does not answer it so early.
    fn held(&self, request: &Request<BoxBody>) -> Option<EarlyData> {
        let early = request.extensions().get::<EarlyData>().filter(|early| early.may_be_replay())?;
        let path = path::normal(request.uri().path()).path;
        match self.routes.choose(request.method(), &path) {
            Choice::Route(route) if !route.early_data.permits(request.method()) => Some(early.clone()),
            _ => None,
        }
    }

    fn handle(&self, request: Request<BoxBody>, host: Option<&Host>, asked: Asked) -> Answered {
        let reader = asked.reader;
        let normal = path::normal(request.uri().path());
        let route = match self.routes.choose(request.method(), &normal.path) {
            Choice::Route(route) => route,
            Choice::OtherMethods(methods) => {
                let page = reader.page(StatusCode::METHOD_NOT_ALLOWED, "this address is for other methods");
                return Answered::Now(allowing(page, &methods));
            }
            Choice::Nothing => {
                let page = reader.page(StatusCode::NOT_FOUND, "there is nothing at this address");
                return Answered::Now(page);
            }
        };
        if normal.doubtful && !route.handler.bears_doubtful_paths() {
            let sentence = "the address has dot segments or control characters";
            return Answered::Now(reader.page(StatusCode::BAD_REQUEST, sentence));
        }
        route.respond(request, host, asked)
    }
}

impl Sites {
    fn new(
        settings: &settings::Settings,
        before: &Proxies,
        observer: &Observer,
        memory: &CompressionMemory,
    ) -> Result<Sites, FrontError> {
        let hosts = Hosts::new(settings.sites.iter().map(|site| site.hosts.as_slice()));
        let mut proxies = Proxies::of(settings);
        let site = |site| Site::new((site, settings.early_data), &mut proxies, before, observer, memory);
        let sites = settings.sites.iter().map(site).collect::<Result<_, _>>()?;
        Ok(Sites { hosts, sites, proxies, limits: limits_of(&settings.limits) })
    }

    async fn respond(
        &self,
        request: Request<BoxBody>,
        arrived: Instant,
        entry: &mut Entry,
    ) -> Response<BoxBody> {
        let reader = Reader::of(&request);
        let (site, host) = match self.find(&request) {
            Ok(found) => found,
            Err((status, sentence)) => return reader.page(status, sentence),
        };
        entry.at_site(&site.observed, request.headers());
        if request.uri().path() == "*" {
            return options();
        }
        let (request, exceeded) = self.limited(request, entry);
        let response = site.respond(request, host.as_ref(), Asked { reader, arrived }).await;
        if exceeded.is_so() {
            let Refusal { status, reason, .. } = Refusal::BODY_TOO_LARGE;
            return reader.page(status, reason);
        }
        response
    }

    /// Counts the request's body for the log, and lets no more of it through than is allowed.
    fn limited(&self, request: Request<BoxBody>, entry: &mut Entry) -> (Request<BoxBody>, Exceeded) {
        if request.body().is_end_stream() {
            return (request, Exceeded::default());
        }
        let most = self.limits.most(&request);
        let (parts, body) = request.into_parts();
        let counted = Counted::new(body, entry.count_request());
        let Some(most) = most else {
            return (Request::from_parts(parts, boxed(counted)), Exceeded::default());
        };
        let limited = Limited::new(counted, most);
        let exceeded = limited.exceeded();
        (Request::from_parts(parts, boxed(limited)), exceeded)
    }

    /// The site that a request is for, or what is wrong with the request.
    fn find<B>(&self, request: &Request<B>) -> Result<(&Site, Option<Host>), (StatusCode, &'static str)> {
        self.limits.check(request).map_err(|refusal| (refusal.status, refusal.reason))?;
        if request.method() == Method::CONNECT && !is_extended_connect(request) {
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

fn limits_of(limits: &settings::Limits) -> RequestLimits {
    let mut requests = RequestLimits::default();
    requests.header_size = limits.header_size as usize;
    requests.body_size = limits.body_size;
    requests
}

/// Whichever server brought it.
fn is_extended_connect<B>(request: &Request<B>) -> bool {
    let extensions = request.extensions();
    extensions.get::<ExtendedConnect>().is_some() || extensions.get::<Protocol>().is_some()
}

/// What handlers that care for no method answer.
const ORDINARY_METHODS: [Method; 7] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS];

/// The answer to `OPTIONS *`, and to anything else about the server as a whole (RFC 9110 section 9.3.7).
fn options() -> Response<BoxBody> {
    allowing(godwit_body::bare(StatusCode::NO_CONTENT), &ORDINARY_METHODS)
}

/// Says which methods there are.
fn allowing(mut response: Response<BoxBody>, methods: &[Method]) -> Response<BoxBody> {
    let list: Vec<&str> = methods.iter().map(Method::as_str).collect();
    if let Ok(list) = HeaderValue::try_from(list.join(", ")) {
        response.headers_mut().insert(header::ALLOW, list);
    }
    response
}
