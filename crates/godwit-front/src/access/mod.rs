//! What becomes of requests: counted, logged, and answered with what the client should know.
//!
//! The server gives every request to an [`Observer`] and gets an [`Entry`], which follows it to its end:
//!
//! ```text
//! let mut entry = observer.begin(&request, arrived);
//! let request = request.map(|body| Counted::new(body, entry.count_request()));
//! entry.at_site(&site, request.headers());
//! let response = …;
//! entry.finish(response)      // adds Alt-Svc and Server-Timing, counts the body, writes the line at the end
//! ```
//!
//! A line in JSON is written when the client has acknowledged the whole response ([`super::client::undelivered`]), or
//! that can no longer be; other lines when the body is over. With the log off there are only [`super::metrics`].
//!
//! [`log`] makes lines, [`writer`] writes them to their [`target`] from a thread of its own: no request waits for a
//! disk.

mod body;
mod entry;
mod format;
mod log;
mod refused;
mod target;
#[cfg(test)]
mod tests;
mod time;
mod troubles;
mod writer;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use godwit::http3::ServerEvent;
use godwit_body::BoxError;
use godwit_certificates::Notices;
use http::Request;

#[cfg(test)]
use super::advertise::{Advertiser, UserKey};
use super::advertise::{Policy, SharedAdvertiser};
use super::client::Client;
use super::metrics::{Metrics, Refusal, SiteCounters, Transport};
use super::settings;
pub(crate) use body::{Logged, unlogged};
pub(crate) use entry::Entry;
pub(crate) use log::Log;
pub(crate) use refused::GaveUp;
use troubles::Troubles;

/// Sees every request. Clones share everything.
#[derive(Clone, Debug)]
pub(crate) struct Observer(Arc<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    log: Log,
    metrics: Arc<Metrics>,
    advertiser: SharedAdvertiser,
    troubles: Arc<Troubles>,
    /// Where requests count that are for no site.
    nowhere: Arc<SiteCounters>,
    /// The largest part of its users that each site has advertised to, by its first name.
    parts: Arc<Mutex<Vec<(String, f64)>>>,
}

/// What an observer knows of one site.
#[derive(Debug)]
pub(crate) struct Site {
    counters: Arc<SiteCounters>,
    policy: Policy,
    server_timing: bool,
}

impl Observer {
    /// An observer that logs to `log`, counts in `metrics`, advertises as `advertiser` says, and tells `notices` of
    /// upstreams that fail.
    pub(crate) fn new(
        log: Log,
        metrics: Arc<Metrics>,
        advertiser: SharedAdvertiser,
        notices: Notices,
    ) -> Observer {
        let states = Arc::clone(&advertiser);
        metrics.ask_advertisements(move || states.states());
        let nowhere = metrics.site("");
        let troubles = Arc::new(Troubles::new(notices));
        Observer(Arc::new(Inner { log, metrics, advertiser, troubles, nowhere, parts: Arc::default() }))
    }

    /// The same for another shard: what requests hold on to is its own.
    pub(crate) fn for_shard(&self) -> Observer {
        Observer(Arc::new(Inner::clone(&self.0)))
    }

    /// Logs nothing and advertises nothing.
    #[cfg(test)]
    pub(crate) fn quiet() -> Observer {
        let advertiser = Arc::new(Advertiser::new([], UserKey::random()));
        Observer::new(Log::off(), Metrics::new(), advertiser, Notices::ignored())
    }

    /// What is needed to observe a site. Once for each reading of the configuration.
    pub(crate) fn site(&self, settings: &settings::Site) -> Arc<Site> {
        let name = settings.hosts.first().map_or_else(|| "*".to_owned(), ToString::to_string);
        let mut policy = Policy::new(settings, false);
        if self.was_lowered(&name, policy.part()) {
            policy = Policy::new(settings, true);
        }
        Arc::new(Site { counters: self.0.metrics.site(&name), policy, server_timing: settings.server_timing })
    }

    /// Whether a site once advertised to a larger part of its users than now.
    fn was_lowered(&self, name: &str, part: f64) -> bool {
        let mut parts = self.0.parts.lock().unwrap_or_else(PoisonError::into_inner);
        match parts.iter_mut().find(|(known, _)| known == name) {
            Some((_, largest)) => {
                *largest = largest.max(part);
                part < *largest
            }
            None => {
                parts.push((name.to_owned(), part));
                false
            }
        }
    }

    /// Begins to follow a request that has come at `arrived`, or before.
    pub(crate) fn begin<B>(&self, request: &Request<B>, arrived: Instant) -> Box<Entry> {
        Box::new(Entry::new(self.clone(), request, arrived))
    }

    /// Notes why a TCP connection broke, while what is under way on it is still there. What was no request, or none
    /// that the server takes in, was answered by the protocol's own code, and has its line nevertheless.
    pub(crate) fn on_broken(&self, client: &Arc<Client>, error: &BoxError) {
        let Some((refusal, status)) = refused::reason(error) else { return };
        self.0.metrics.refused(Transport::Tcp, refusal);
        if refusal == Refusal::TooSlow {
            client.set_too_slow();
        }
        if let Some(status) = status {
            Entry::refused(self.clone(), client, status);
        }
    }

    /// Takes in what the HTTP/3 server at a port tells: for [`godwit::http3::Server::on_event`].
    pub(crate) fn on_quic(&self, port: u16, event: &ServerEvent) {
        self.0.metrics.on_quic(event);
        self.0.advertiser.on_quic(port, event);
    }

    /// The program's figures.
    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.0.metrics
    }

    /// What decides on the advertisement.
    pub(crate) fn advertiser(&self) -> &SharedAdvertiser {
        &self.0.advertiser
    }

    /// The log, for flushing and for opening its file anew.
    pub(crate) fn log(&self) -> &Log {
        &self.0.log
    }
}
