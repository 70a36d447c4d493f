//! A place for a connection, which is made anew when it ends: servers take so many requests on one and no more.

use super::connection::{Connector, Sender};
use crate::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Mutex;

/// A place for a connection, used by any number of tasks.
#[derive(Debug)]
pub(super) struct Lane {
    connector: Arc<Connector>,
    state: Mutex<State>,
    made: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// Which connection this is, from 1.
    number: u64,
    /// A handle of it to make more of; with HTTP/1.1 there is but one handle.
    shared: Option<Sender>,
    /// The first connection, until somebody uses it.
    ready: Option<Sender>,
}

impl Lane {
    pub(super) fn new(connector: Arc<Connector>) -> Lane {
        Lane { connector, state: Mutex::default(), made: AtomicU64::new(0) }
    }

    /// Makes the first connection.
    pub(super) async fn prepare(&self) -> Result<(), Error> {
        let mut state = self.state.lock().await;
        state.ready = Some(self.connect().await?);
        Ok(())
    }

    /// A handle of a connection, and its number, which is higher than `over`: that of one that has ended.
    pub(super) async fn sender(&self, over: u64) -> Result<(Sender, u64), Error> {
        // Whoever comes first makes the connection for all who wait here.
        let mut state = self.state.lock().await;
        if state.number > over
            && let Some(sender) = state.shared.as_ref().and_then(Sender::share)
        {
            return Ok((sender, state.number));
        }
        let sender = match state.ready.take() {
            Some(sender) => sender,
            None => self.connect().await?,
        };
        state.number += 1;
        state.shared = sender.share();
        Ok((sender, state.number))
    }

    async fn connect(&self) -> Result<Sender, Error> {
        self.made.fetch_add(1, Ordering::Relaxed);
        self.connector.connect().await
    }

    /// Connections made so far.
    pub(super) fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }
}
