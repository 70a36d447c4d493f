//! The proxy as a service.

use crate::BoxError;
use crate::backend::{Backend, Backends, UpstreamStatus};
use crate::body::Body;
use crate::dial::{Dialer, TlsSetup};
use crate::forward::{self, Forwarder};
use crate::headers::Pseudonym;
use crate::health::Check;
use crate::lock;
use crate::settings::{HostHeader, Settings, SettingsError};
use crate::upstream::Scheme;
use bytes::Bytes;
use http::{Request, Response};
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::task::AbortHandle;
use tower::Service;

/// How often unused connections are looked at.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// A reverse proxy: a service that has requests answered by upstreams. It never fails: what goes wrong becomes
/// a response.
///
/// Cloning is cheap and shares everything. Checks of the upstreams' health begin with the first clone that is
/// made or used within a tokio runtime, and end with the last clone.
#[derive(Debug, Clone)]
pub struct Proxy(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    forwarder: Arc<Forwarder>,
    check: Option<Check>,
    started: AtomicBool,
    tasks: Mutex<Vec<AbortHandle>>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        lock(&self.tasks).iter().for_each(AbortHandle::abort);
    }
}

impl Proxy {
    /// A proxy with these settings. Nothing is connected yet.
    ///
    /// # Errors
    /// If the settings cannot be used: no upstream, no connection, a file of authorities without certificates, a name
    /// that cannot be one, checks without an interval.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        if settings.upstreams.is_empty() {
            return Err(SettingsError::new("upstreams", "there is none; name at least one"));
        }
        if settings.max_connections == 0 {
            return Err(SettingsError::new("max_connections", "it is 0; allow at least one"));
        }
        if !(1..=100).contains(&settings.network_share) {
            return Err(SettingsError::new("network_share", "it is a percentage; give one from 1 to 100"));
        }
        if let HostHeader::Name(name) = &settings.host
            && name.parse::<http::uri::Authority>().map_or(true, |name| name.as_str().contains('@'))
        {
            let name = name.escape_debug();
            return Err(SettingsError::new("host", format!("\"{name}\" is not a name of a host")));
        }
        let check = settings.health.as_ref().map(|health| Check::new(health, &settings.host)).transpose()?;
        let needed = settings.upstreams.iter().any(|upstream| upstream.scheme() == Scheme::Https);
        let tls = TlsSetup::new(&settings.tls, needed)?;
        let mut backends = Vec::with_capacity(settings.upstreams.len());
        for upstream in &settings.upstreams {
            let dialer = Dialer::new(upstream, &tls)?;
            backends.push(Arc::new(Backend::new(upstream.clone(), dialer, &settings)));
        }
        let backends = Backends::new(backends, settings.balance);
        let forwarder = Arc::new(Forwarder { settings, backends, pseudonym: Pseudonym::by_chance() });
        let proxy = Proxy(Arc::new(Shared {
            forwarder,
            check,
            started: AtomicBool::new(false),
            tasks: Mutex::default(),
        }));
        if tokio::runtime::Handle::try_current().is_ok() {
            proxy.start();
        }
        Ok(proxy)
    }

    /// What is known of each upstream, in the order of the settings.
    pub fn status(&self) -> Vec<UpstreamStatus> {
        self.0.forwarder.backends.all.iter().map(|backend| backend.status()).collect()
    }

    /// Answers a request.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        self.start();
        let request = request.map(godwit_body::boxed);
        forward::forward(&self.0.forwarder, request).await
    }

    /// Begins what goes on in the background, once.
    fn start(&self) {
        if self.0.started.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut tasks = lock(&self.0.tasks);
        tasks.push(tokio::spawn(sweep(Arc::downgrade(&self.0.forwarder))).abort_handle());
        if let Some(check) = &self.0.check {
            tasks.extend(
                self.0
                    .forwarder
                    .backends
                    .all
                    .iter()
                    .map(|backend| tokio::spawn(check.clone().run(Arc::clone(backend))).abort_handle()),
            );
        }
    }
}

async fn sweep(forwarder: Weak<Forwarder>) {
    loop {
        tokio::time::sleep(SWEEP_EVERY).await;
        let Some(forwarder) = forwarder.upgrade() else { return };
        forwarder.backends.all.iter().for_each(|backend| backend.sweep());
    }
}

impl<B> Service<Request<B>> for Proxy
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let proxy = self.clone();
        Box::pin(async move { Ok(proxy.handle(request).await) })
    }
}
