//! The way to other servers: settings of the configuration made into proxies, and their failures into pages.

use std::collections::BTreeMap;

use godwit_proxy::{Health, HostHeader, Network, Problem, ProblemKind, Proxy, Settings};
use http::{Request, Response, StatusCode};

use super::pages::Reader;
use crate::FrontError;
use crate::service::RouteService;
use crate::settings;
use godwit_body::{BoxBody, boxed};
use godwit_text::plain_error;

/// The proxies of all sites by their settings: routes with the same settings share one, and so does a
/// configuration that is read again, so that connections and what is known of the upstreams are kept.
#[derive(Debug, Default)]
pub(super) struct Proxies {
    by_settings: BTreeMap<String, Proxy>,
    /// Connections that an upstream may have where the settings do not say.
    most: usize,
}

/// Connections that an upstream may have at a time, if there are descriptors for so many.
const MOST_CONNECTIONS: usize = 8192;
/// And if there are not.
const FEWEST_CONNECTIONS: usize = 16;

impl Proxies {
    /// None yet. The upstreams of these settings share a quarter of the process's descriptors.
    pub(super) fn of(settings: &settings::Settings) -> Proxies {
        let files = godwit_os::descriptors::raise_limit().unwrap_or(1024);
        let routes = settings.sites.iter().flat_map(|site| &site.routes);
        let upstreams = routes.map(|route| match &route.handler {
            settings::Handler::Proxy(proxy) => proxy.upstreams.len(),
            _ => 0,
        });
        Proxies { by_settings: BTreeMap::new(), most: share(files, upstreams.sum()) }
    }

    /// The proxy for these settings, perhaps one of `before`.
    ///
    /// # Errors
    /// If an upstream or a file of authorities cannot be used.
    pub(super) fn service(
        &mut self,
        settings: &settings::Proxy,
        before: &Proxies,
    ) -> Result<RouteService, FrontError> {
        let mut checked = checked(settings)?;
        // The file of authorities may have changed under the same name: its content is part of these. What follows
        // from the number of other upstreams is not: they come and go.
        let key = format!("{checked:?}");
        if settings.max_connections.is_none() {
            checked.max_connections = self.most;
        }
        let proxy = match self.by_settings.get(&key).or_else(|| before.by_settings.get(&key)) {
            Some(proxy) => proxy.clone(),
            None => Proxy::new(checked).map_err(|error| {
                let upstreams = settings.upstreams.join(", ");
                FrontError::new(format!("cannot pass requests on to {upstreams}: {error}"))
            })?,
        };
        self.by_settings.insert(key, proxy.clone());
        Ok(RouteService::of(move |request| {
            let proxy = proxy.clone();
            Box::pin(async move { pass_on(&proxy, request).await })
        }))
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Proxy> {
        self.by_settings.values()
    }
}

/// What each of some upstreams may have of the connections for all of them.
fn share(files: u64, upstreams: usize) -> usize {
    let all = usize::try_from(files / 4).unwrap_or(usize::MAX);
    (all / upstreams.max(1)).clamp(FEWEST_CONNECTIONS, MOST_CONNECTIONS)
}

/// The proxy's own form of the settings, with 0 for a number of connections that they do not say.
fn checked(settings: &settings::Proxy) -> Result<Settings, FrontError> {
    let upstream = |url: &String| {
        url.parse().map_err(|error| FrontError::new(format!("cannot pass requests on to {url}: {error}")))
    };
    let network = |network: &settings::Network| {
        let text = format!("{}/{}", network.address, network.prefix);
        text.parse::<Network>().map_err(|error| FrontError::new(error.to_string()))
    };
    let ca = |path: &std::path::PathBuf| {
        let remedy = "give a PEM file with the upstream's authority";
        godwit_text::read_file(path).map_err(|error| {
            FrontError::file("cannot read the authorities in", path, plain_error(&error), remedy)
        })
    };
    let upstreams: Vec<godwit_proxy::Upstream> =
        settings.upstreams.iter().map(upstream).collect::<Result<_, _>>()?;
    let mut checked = Settings::to(upstreams);
    checked.balance = match settings.balance {
        settings::Balance::RoundRobin => godwit_proxy::Balance::RoundRobin,
        settings::Balance::LeastRequests => godwit_proxy::Balance::LeastRequests,
    };
    checked.retries = settings.retries;
    checked.timeouts.connect = settings.connect_timeout;
    checked.timeouts.response = settings.response_timeout;
    checked.timeouts.body = settings.body_timeout;
    checked.timeouts.idle = settings.idle_timeout;
    checked.max_idle = settings.max_idle;
    checked.max_connections = settings.max_connections.unwrap_or_default();
    checked.network_share = settings.network_share;
    checked.host = match &settings.host {
        settings::UpstreamHost::Keep => HostHeader::Keep,
        settings::UpstreamHost::Upstream => HostHeader::Upstream,
        settings::UpstreamHost::Name(name) => HostHeader::Name(name.clone()),
    };
    checked.forwarded = settings.forwarded;
    checked.trust_forwarded = settings.trust_forwarded.iter().map(network).collect::<Result<_, _>>()?;
    checked.tls.ca = settings.tls.ca.as_ref().map(ca).transpose()?;
    checked.tls.name.clone_from(&settings.tls.name);
    checked.tls.insecure = settings.tls.insecure;
    checked.health = settings.health.as_ref().map(health);
    Ok(checked)
}

fn health(settings: &settings::Health) -> Health {
    let mut health = Health::default();
    health.path.clone_from(&settings.path);
    health.interval = settings.interval;
    health.timeout = settings.timeout;
    health.healthy = settings.healthy;
    health.unhealthy = settings.unhealthy;
    health.status = settings.status.as_u16();
    health
}

async fn pass_on(proxy: &Proxy, request: Request<BoxBody>) -> Response<BoxBody> {
    let reader = Reader::of(&request);
    let response = proxy.handle(request).await;
    let Some(problem) = response.extensions().get::<Problem>() else { return response.map(boxed) };
    let (status, sentence) = (problem.status(), sentence(problem));
    tracing::debug!(%problem, "a request could not be passed on");
    // In place of the proxy's own plain answer, with what it says to the log and to the client's next attempt.
    let (mut own, _) = response.into_parts();
    own.headers.remove(http::header::CONTENT_TYPE);
    own.headers.remove(http::header::CONTENT_LENGTH);
    let mut page = reader.page(status, sentence);
    page.headers_mut().extend(own.headers);
    *page.extensions_mut() = own.extensions;
    page
}

/// What the client is told: nothing about the inside.
fn sentence(problem: &Problem) -> &'static str {
    match (problem.kind(), problem.status()) {
        (ProblemKind::NoUpstream, _) => "no server behind this one is well; try again in a moment",
        (ProblemKind::Busy, _) => {
            "too many are waiting for the server behind this one; try again in a moment"
        }
        (ProblemKind::Connect | ProblemKind::ConnectTimeout, _) => {
            "the server behind this one cannot be reached"
        }
        (ProblemKind::Broken, _) => "the server behind this one gave no valid answer",
        (ProblemKind::ResponseTimeout | ProblemKind::BodyTimeout, _) => {
            "the server behind this one took too long to answer"
        }
        (ProblemKind::Loop, _) => "the request has come here before",
        (ProblemKind::NotSupported, _) => "requests of this kind are not passed on",
        (ProblemKind::Expectation, _) => "the request expects something that is not known here",
        (_, StatusCode::REQUEST_TIMEOUT) => "the request's body did not arrive in time",
        _ => "the request cannot be passed on",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstreams_share_what_there_is() {
        let shares = [(1024, 0), (1024, 1), (1024, 2), (1_000_000, 3), (64, 50), (u64::MAX, 1)];
        let shares = shares.map(|(files, upstreams)| share(files, upstreams));
        assert_eq!(shares, [256, 256, 128, 8192, 16, 8192]);
    }
}
