//! Attempts to connect that nobody waits for at present.
//!
//! Who races connections gives the slower ones up, and often wants one of them a moment later. A parked attempt goes on by
//! itself; whoever next connects to the same server with the same settings may take it, finished or not.

use crate::config::ClientConfig;
use crate::connecting::Connecting;
use godwit_base::Time;
use godwit_engine::Clock;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Attempts kept at once; the oldest make room.
const MOST: usize = 64;
/// How long one is kept.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// What a connection was asked for with.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    config: ClientConfig,
    addr: SocketAddr,
    server_name: Box<str>,
}

impl Target {
    pub(crate) fn new(config: &ClientConfig, addr: SocketAddr, server_name: &str) -> Self {
        Target { config: config.clone(), addr, server_name: server_name.into() }
    }

    fn is(&self, config: &ClientConfig, addr: SocketAddr, server_name: &str) -> bool {
        self.addr == addr && *self.server_name == *server_name && self.config.is_same(config)
    }
}

/// The parked attempts of an endpoint, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Parked {
    attempts: Mutex<Vec<(Time, Connecting)>>,
}

impl Parked {
    /// Keeps an attempt. What has to go is given up once the lock is released.
    pub(crate) fn park(&self, connecting: Connecting) {
        let now = Clock::new().now();
        let mut attempts = self.lock();
        attempts.push((now, connecting));
        let outdated = attempts.iter().take_while(|(since, _)| *since + KEPT_FOR <= now).count();
        let surplus = attempts.len().saturating_sub(MOST);
        let given_up: Vec<_> = attempts.drain(..outdated.max(surplus)).collect();
        drop(attempts);
        drop(given_up);
    }

    /// The youngest attempt of these that may still succeed. Those that have failed are forgotten.
    pub(crate) fn take(
        &self,
        config: &ClientConfig,
        addr: SocketAddr,
        server_name: &str,
    ) -> Option<Connecting> {
        let now = Clock::new().now();
        loop {
            let mut attempts = self.lock();
            let fits = |(since, attempt): &(Time, Connecting)| {
                let target = attempt.target();
                *since + KEPT_FOR > now && target.is_some_and(|target| target.is(config, addr, server_name))
            };
            let at = attempts.iter().rposition(fits)?;
            let (_, attempt) = attempts.remove(at);
            drop(attempts);
            if !attempt.is_over() {
                return Some(attempt);
            }
        }
    }

    /// Gives all up.
    pub(crate) fn clear(&self) {
        let attempts = std::mem::take(&mut *self.lock());
        drop(attempts);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(Time, Connecting)>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
