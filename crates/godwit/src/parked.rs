//! Attempts to connect that nobody waits for at present.
//!
//! Who races connections gives the slower ones up, and often wants one of them a moment later. A parked attempt goes on
//! by itself; whoever next connects to the same server with the same settings may take it, finished or not.

use crate::config::ClientConfig;
use crate::connecting::Connecting;
use godwit_base::Time;
use godwit_engine::Clock;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::runtime::Handle;

/// Attempts kept at once; the oldest make room.
const MOST: usize = 64;
/// How long one is kept.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// The parked attempts of an endpoint.
#[derive(Debug, Default)]
pub(crate) struct Parked {
    list: Mutex<List>,
}

#[derive(Debug, Default)]
struct List {
    /// Oldest first.
    attempts: Vec<(Time, Connecting)>,
    /// Somebody sees to it that none is kept for too long.
    watched: bool,
}

impl Parked {
    /// Keeps an attempt. What has to go is given up once the lock is released. Has `watch` run if nobody watches.
    pub(crate) fn park(this: &Arc<Self>, connecting: Connecting, runtime: Option<&Handle>) {
        this.park_at(Clock::new().now(), connecting);
        let Some(runtime) = runtime else { return };
        if !std::mem::replace(&mut this.lock().watched, true) {
            runtime.spawn(watch(Arc::downgrade(this)));
        }
    }

    fn park_at(&self, now: Time, connecting: Connecting) {
        let mut list = self.lock();
        list.attempts.push((now, connecting));
        let surplus = list.attempts.len().saturating_sub(MOST);
        let given_up: Vec<_> = list.attempts.drain(..surplus).collect();
        drop(list);
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
            let mut list = self.lock();
            let fits = |(since, attempt): &(Time, Connecting)| {
                let target = attempt.target();
                *since + KEPT_FOR > now && target.is_some_and(|target| target.is(config, addr, server_name))
            };
            let at = list.attempts.iter().rposition(fits)?;
            let (_, attempt) = list.attempts.remove(at);
            drop(list);
            if !attempt.is_over() {
                return Some(attempt);
            }
        }
    }

    /// Gives up what has been kept for long enough. How long until the next is to go; `None` if there is none: then
    /// nobody watches any more.
    fn expire(&self, now: Time) -> Option<Duration> {
        let mut list = self.lock();
        let outdated = list.attempts.iter().take_while(|(since, _)| *since + KEPT_FOR <= now).count();
        let given_up: Vec<_> = list.attempts.drain(..outdated).collect();
        let next = list.attempts.first().map(|(since, _)| (*since + KEPT_FOR).saturating_since(now));
        list.watched = next.is_some();
        drop(list);
        drop(given_up);
        next
    }

    /// Gives all up.
    pub(crate) fn clear(&self) {
        let attempts = std::mem::take(&mut self.lock().attempts);
        drop(attempts);
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn watch(parked: Weak<Parked>) {
    loop {
        let next = parked.upgrade().and_then(|parked| parked.expire(Clock::new().now()));
        let Some(wait) = next else { return };
        tokio::time::sleep(wait).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Endpoint;

    #[tokio::test]
    async fn nothing_is_kept_for_longer_than_a_minute() {
        let client = Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let config = ClientConfig::with_roots_pem(made.cert.pem().as_bytes()).build().unwrap();
        let nobody = SocketAddr::from(([127, 0, 0, 1], 9));
        let (parked, begin) = (Parked::default(), Clock::new().now());
        assert_eq!(parked.expire(begin), None);
        for seconds in [0, 30] {
            let attempt = client.connect(&config, nobody, "localhost").unwrap();
            parked.park_at(begin + Duration::from_secs(seconds), attempt);
        }
        let expire = |seconds| parked.expire(begin + Duration::from_secs(seconds));
        assert_eq!(expire(59), Some(Duration::from_secs(1)));
        assert_eq!((expire(60), parked.lock().attempts.len()), (Some(Duration::from_secs(30)), 1));
        assert_eq!((expire(100), parked.lock().attempts.len()), (None, 0));
        client.wait_idle().await;
    }
}
