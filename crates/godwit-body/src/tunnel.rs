//! What passes through a tunnel that is made of an upgraded connection, and not of bodies.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Counts the bytes of a tunnel, and tells when it is over. A server that offers a request's connection for an upgrade
/// puts one into its extensions, and whoever carries the tunnel's bytes keeps a clone until its end.
#[derive(Clone)]
pub struct TunnelMeter(Arc<Counts>);

/// What is called when the tunnel is over: with the bytes from the client, and those to it.
type Over = Box<dyn FnOnce(u64, u64) + Send>;

#[derive(Default)]
struct Counts {
    from_client: AtomicU64,
    to_client: AtomicU64,
    over: Mutex<Option<Over>>,
}

impl TunnelMeter {
    /// A meter on which nothing is counted yet.
    #[expect(clippy::new_without_default, reason = "one that nobody shares measures nothing")]
    pub fn new() -> TunnelMeter {
        TunnelMeter(Arc::default())
    }

    /// So many bytes of the client's have been passed on.
    pub fn on_from_client(&self, bytes: usize) {
        self.0.from_client.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// So many bytes have been passed on to the client.
    pub fn on_to_client(&self, bytes: usize) {
        self.0.to_client.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Has `over` called with the bytes from the client, and those to it, when the last clone is dropped; this may be it.
    pub fn when_over(self, over: impl FnOnce(u64, u64) + Send + 'static) {
        *self.0.over.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(over));
    }
}

impl fmt::Debug for TunnelMeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TunnelMeter(..)")
    }
}

impl Drop for Counts {
    fn drop(&mut self) {
        let over = self.over.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(over) = over {
            over(*self.from_client.get_mut(), *self.to_client.get_mut());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_tells() {
        let told = Arc::new(Mutex::new(None));
        let meter = TunnelMeter::new();
        let carrier = meter.clone();
        carrier.on_from_client(3);
        let tell = Arc::clone(&told);
        meter.when_over(move |from, to| *tell.lock().unwrap() = Some((from, to)));
        carrier.on_to_client(5);
        carrier.on_from_client(4);
        assert_eq!(*told.lock().unwrap(), None);
        drop(carrier);
        assert_eq!(*told.lock().unwrap(), Some((7, 5)));
    }
}
