//! Two network namespaces with a router between them, a server in one on a thread of its own, and what clients in the other
//! need.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use godwit_link::DuplexConfig;
use godwit_relay::{Flow, FlowLinks, RelayCounters};

use super::contender::{Contender, Dialer};
use super::service::Uploads;
use super::settings::{ORIGIN_PORT, Options};
use super::setup::Dialers;
use crate::Error;
use crate::namespaces;

/// The clients' ports.
const PORTS: std::ops::Range<u16> = 10_000..60_000;

/// Everything that runs; it ends with the value.
#[derive(Debug)]
pub struct Testbed {
    #[cfg(target_os = "linux")]
    _relay: godwit_relay::tun::TunRelay,
    pub(super) links: FlowLinks,
    pub(super) uploads: Uploads,
    counters: Arc<RelayCounters>,
    next_port: AtomicU64,
    pub(super) dialers: Dialers,
    pub(super) seed: u64,
}

/// A connection's way: its link is taken away with it.
pub(super) struct Lane {
    links: FlowLinks,
    flow: Flow,
    pub(super) local: SocketAddr,
}

impl Lane {
    /// Packets that were sent so far, both ways.
    pub(super) fn packets(&self) -> u64 {
        let ways = self.links.counters(self.flow);
        ways.map_or(0, |ways| ways.iter().map(|way| way.sent_packets).sum())
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.links.take(self.flow);
    }
}

impl Testbed {
    /// Moves this thread into network namespaces of its own. Called before there is any other thread: the program does not
    /// come back from there.
    ///
    /// # Errors
    /// If the system does not permit it; the error says what is needed and how to get it.
    #[cfg(target_os = "linux")]
    pub fn make(options: &Options) -> Result<Testbed, Error> {
        use godwit_relay::tun::TunRelay;

        use super::setup;

        let purpose = namespaces::Purpose("the comparison with TCP");
        let server_device = purpose.enter_server()?;
        let uploads = Uploads::default();
        let origin = SocketAddr::from((namespaces::CLIENT, ORIGIN_PORT));
        let identity = setup::Identity::make()?;
        setup::serve(&identity, options, uploads.clone(), origin)?;
        let client_device = purpose.enter_client()?;
        setup::serve_origin(origin)?;
        let links = FlowLinks::default();
        let counters = Arc::<RelayCounters>::default();
        let relay = TunRelay::start(client_device, server_device, links.clone(), Arc::clone(&counters))
            .map_err(|error| {
                Error::new(format!("cannot start the router: {}", godwit_text::plain_error(&error)))
            })?;
        let dialers = Dialers::new(&identity, options)?;
        setup::hurry();
        let next_port = AtomicU64::new(0);
        Ok(Testbed { _relay: relay, links, uploads, counters, next_port, dialers, seed: options.seed })
    }

    /// Elsewhere there are no network namespaces.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(target_os = "linux"))]
    pub fn make(_options: &Options) -> Result<Testbed, Error> {
        Err(Error::new(
            "the comparison with TCP needs Linux: its link joins two network namespaces; run it there, as root",
        ))
    }

    /// How late of 1000 deliveries so many came at most: what the machine added to the links' delays.
    #[must_use]
    pub fn lateness(&self, permille: u64) -> Duration {
        self.counters.lateness(permille)
    }

    /// The same in a sentence.
    #[must_use]
    pub fn lateness_in_words(&self) -> String {
        let late = |permille| self.lateness(permille).as_secs_f64() * 1e3;
        let (median, p99) = (late(500), late(990));
        format!("packets left the links late by {median:.2} ms at the median, {p99:.2} ms at P99")
    }

    /// A way of its own for a connection: the next port, with a link of this kind.
    pub(super) fn lane(&self, contender: Contender, link: &DuplexConfig, seed: u64) -> Lane {
        let number = self.next_port.fetch_add(1, Ordering::Relaxed);
        let client_port = PORTS.start + (number % u64::from(PORTS.end - PORTS.start)) as u16;
        let protocol = if contender.control().is_some() { Flow::TCP } else { Flow::UDP };
        let flow = Flow { protocol, client_port };
        self.links.lay(flow, link.clone(), seed);
        let local = SocketAddr::new(IpAddr::V4(namespaces::CLIENT), client_port);
        Lane { links: self.links.clone(), flow, local }
    }

    /// Lays the link between the server and the origin behind it.
    pub(super) fn lay_origin(&self, link: &DuplexConfig) {
        let flow = Flow { protocol: Flow::TCP, client_port: ORIGIN_PORT };
        self.links.lay(flow, link.clone(), self.seed);
    }

    /// What a contender connects with in this network, below [`NETWORKS`].
    pub(super) fn dialer(&self, contender: Contender, network: u16) -> Option<Dialer> {
        self.dialers.of(contender, network)
    }
}
