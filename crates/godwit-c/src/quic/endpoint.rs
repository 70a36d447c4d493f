//! An endpoint: the connections that come in, and the settings of those that go out.

use super::connection::Connection;
use super::lost;
use super::transport::Limits;
use crate::abi;
use crate::failure::Failure;
use crate::handles::{self, Kind, Thing};
use crate::introductions::Introductions;
use crate::subject::Subject;
use godwit::{ApplicationCode, ClientConfig, Incoming};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::Handle;

/// Connections that the application may not have heard of; more are there, and wait.
const MOST_NEW_CONNECTIONS: usize = 256;

/// A QUIC endpoint.
pub(crate) struct Endpoint {
    pub(crate) subject: Arc<Subject>,
    pub(super) runtime: Handle,
    pub(super) inner: godwit::Endpoint,
    /// Of connections that come in.
    pub(super) limits: Limits,
    pub(super) is_shut_down: AtomicBool,
    /// Connections that come in.
    introductions: Introductions,
    /// Settings that connections can go on with that began with the same: sessions are of those.
    configs: Mutex<HashMap<Trust, ClientConfig>>,
}

/// Whom connections trust.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Trust {
    pub(super) anybody: bool,
    pub(super) only_file: bool,
    pub(super) file: Option<PathBuf>,
}

impl Thing for Endpoint {
    const KIND: Kind = Kind::Endpoint;

    /// Ends it with its connections.
    fn close(&self) {
        self.subject.close();
        self.inner.close(ApplicationCode::default(), b"");
    }

    fn set_tag(&self, tag: u64) -> bool {
        self.subject.set_tag(tag);
        true
    }
}

impl Endpoint {
    pub(super) fn new(
        subject: Arc<Subject>,
        runtime: Handle,
        inner: godwit::Endpoint,
        limits: Limits,
    ) -> Endpoint {
        let (is_shut_down, configs) = (AtomicBool::new(false), Mutex::default());
        let introductions = Introductions::new(MOST_NEW_CONNECTIONS);
        Endpoint { subject, runtime, inner, limits, is_shut_down, introductions, configs }
    }

    /// Closes its connections, and tells when the peers know.
    pub(super) fn shut_down(self: &Arc<Self>, code: ApplicationCode, reason: &str) -> Result<(), Failure> {
        if self.is_shut_down.swap(true, Ordering::AcqRel) {
            let text = "the endpoint was shut down before; once is enough";
            return Err(Failure::new(abi::ERROR_STATE, text));
        }
        self.inner.close(code, reason.as_bytes());
        let endpoint = Arc::clone(self);
        self.runtime.spawn(async move {
            endpoint.inner.wait_idle().await;
            endpoint.subject.tell(endpoint.subject.event(abi::EVENT_ENDPOINT_STOPPED));
        });
        Ok(())
    }

    /// Settings that trust so.
    pub(super) fn config(&self, trust: Trust) -> Result<ClientConfig, Failure> {
        let mut configs = self.configs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = configs.get(&trust) {
            return Ok(config.clone());
        }
        let builder = if trust.anybody {
            ClientConfig::danger_accept_any_certificate()
        } else {
            let verifier = super::roots(trust.file.as_deref(), trust.only_file)?.verifier();
            let verifier = verifier.map_err(|error| Failure::new(abi::ERROR_TLS, error.to_string()))?;
            ClientConfig::verified_by(verifier)
        };
        let config = builder.build().map_err(|error| lost::config(&error))?;
        configs.insert(trust, config.clone());
        Ok(config)
    }

    /// Takes connections as they come.
    pub(super) async fn accept(self: Arc<Self>) {
        let accepting = Arc::clone(&self);
        let all = async move {
            while let Some(incoming) = accepting.inner.accept().await {
                tokio::spawn(Arc::clone(&accepting).welcome(incoming));
            }
        };
        self.subject.unless_closed(all).await;
    }

    /// Tells of a client, once its handshake is complete or it has sent ahead of it.
    async fn welcome(self: Arc<Self>, incoming: Incoming) {
        let handshake = async {
            let (inner, flags) = match incoming.accept().into_early() {
                Ok(early) => (early, abi::EVENT_FLAG_EARLY),
                // Whoever does not finish it is not heard of.
                Err(connecting) => (connecting.await.ok()?, 0),
            };
            // Nor is who does not wait.
            let place = tokio::select! {
                biased;
                place = self.introductions.place() => place,
                _ = inner.closed() => return None,
            };
            Some((inner, flags, place))
        };
        let Some(Some((inner, flags, place))) = self.subject.unless_closed(handshake).await else { return };
        let made = handles::insert(|handle| {
            let subject = Subject::of(&self.subject, handle, self.subject.tag());
            Arc::new(Connection::open(subject, self.runtime.clone(), self.limits, inner.clone()))
        });
        let Ok(connection) = made else {
            // There are as many handles as there can be.
            return inner.close(ApplicationCode::default(), b"");
        };
        let event = connection.subject.event(abi::EVENT_INCOMING).introducing(place).with_flags(flags);
        let information = Box::new(super::information::of(&inner));
        connection.subject.tell(event.lending(|lent| lent.connection = Some(information)));
        connection.work(inner).await;
    }
}
