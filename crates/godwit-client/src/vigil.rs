//! Connections over UDP are watched while requests are under way on them: the driver of [`Watch`]. All requests of one
//! connection share one watch, and there is a task only while there are any.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use godwit::Connection;
use godwit_text::instant_now;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::decision::watch::{Sample, Step, Watch};
use crate::network::Network;
use crate::target::Origin;

/// It is looked this often at least: a request that begins meanwhile may be one that needs it.
const MOST: Duration = Duration::from_secs(1);

/// From so many bytes on a connection proves that UDP works beyond the handshake.
const GOOD_DEAL: u64 = 256 << 10;

/// How a connection is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Health {
    #[default]
    Fine,
    /// What was due has not come.
    Suspect,
}

/// The watch over one connection.
#[derive(Debug)]
pub(crate) struct Vigil {
    health: watch::Sender<Health>,
    under_way: AtomicUsize,
    is_kept: AtomicBool,
    network: Weak<Network>,
    /// Where it leads to, if it was not asked for.
    origin: Option<Origin>,
    /// As long as nothing has ever come: how long that may take.
    first: Option<Duration>,
}

/// A request that is under way on a connection. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Watched {
    vigil: Arc<Vigil>,
    health: watch::Receiver<Health>,
}

impl Vigil {
    /// Watches nothing yet. `origin`: where the connection leads to, if it was not asked for; `first`: where it goes ahead of its
    /// handshake, how long the first answer may take.
    pub(crate) fn new(network: &Arc<Network>, origin: Option<Origin>, first: Option<Duration>) -> Arc<Vigil> {
        Arc::new(Vigil {
            health: watch::Sender::default(),
            under_way: AtomicUsize::new(0),
            is_kept: AtomicBool::new(false),
            network: Arc::downgrade(network),
            origin,
            first,
        })
    }

    /// Whether the way is suspected to be dead.
    pub(crate) fn is_suspect(&self) -> bool {
        *self.health.borrow() == Health::Suspect
    }

    /// A request begins on `connection`, which is always the same.
    pub(crate) fn begin(self: &Arc<Vigil>, connection: &Connection) -> Watched {
        self.under_way.fetch_add(1, Ordering::SeqCst);
        if !self.is_kept.swap(true, Ordering::SeqCst) {
            tokio::spawn(Arc::clone(self).keep(connection.clone()));
        }
        Watched { vigil: Arc::clone(self), health: self.health.subscribe() }
    }

    /// Looks after the connection until no request is under way.
    async fn keep(self: Arc<Vigil>, connection: Connection) {
        let begun = instant_now();
        let mut watch = Watch::new(Duration::ZERO, &sample(&connection), self.first);
        loop {
            let wait = match watch.look(begun.elapsed(), &sample(&connection)) {
                Step::Wait(wait) => wait,
                Step::Ask(wait) => {
                    connection.ping();
                    wait
                }
                Step::Suspect(wait) => {
                    tracing::debug!(remote = %connection.remote_address(), "nothing comes over UDP any more");
                    self.health.send_replace(Health::Suspect);
                    if let Some(network) = self.network.upgrade() {
                        network.take_new_port(connection.remote_address());
                    }
                    wait
                }
                Step::Recovered(wait) => {
                    self.health.send_replace(Health::Fine);
                    wait
                }
            };
            sleep(wait.min(MOST)).await;
            if self.is_over(&connection) {
                return self.conclude(&connection);
            }
        }
    }

    /// What has carried a good deal is not one of those connections that die as soon as they have.
    fn conclude(&self, connection: &Connection) {
        if self.is_suspect() || connection.stats().bytes_received < GOOD_DEAL {
            return;
        }
        if let (Some(network), Some(origin)) = (self.network.upgrade(), &self.origin) {
            network.memory().on_proven(origin);
        }
    }

    /// Whether the watch may end. Who begins afterwards begins another.
    fn is_over(&self, connection: &Connection) -> bool {
        if connection.close_reason().is_some() {
            return true;
        }
        if self.under_way.load(Ordering::SeqCst) > 0 {
            return false;
        }
        self.is_kept.store(false, Ordering::SeqCst);
        // Somebody may have begun in between, and seen that it was kept.
        self.under_way.load(Ordering::SeqCst) == 0 || self.is_kept.swap(true, Ordering::SeqCst)
    }
}

fn sample(connection: &Connection) -> Sample {
    let stats = connection.stats();
    Sample {
        received: stats.datagrams_received,
        rtt: stats.rtt,
        rtt_variance: stats.rtt_variance,
        in_flight: stats.bytes_in_flight,
    }
}

impl Watched {
    /// Returns when the way is suspected to be dead; never, if it is not.
    pub(crate) async fn suspected(&mut self) {
        if self.health.wait_for(|health| *health == Health::Suspect).await.is_err() {
            std::future::pending().await
        }
    }
}

impl Clone for Watched {
    fn clone(&self) -> Watched {
        self.vigil.under_way.fetch_add(1, Ordering::SeqCst);
        Watched { vigil: Arc::clone(&self.vigil), health: self.health.clone() }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.vigil.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}
