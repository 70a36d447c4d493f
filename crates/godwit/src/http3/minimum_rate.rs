//! How long a peer may hold back what is sent to it.
//!
//! That is said of all streams of a connection together: while others flow, one that stands still may be waiting for
//! this side's turn, or be a video that is paused.

use godwit_body::MinimumRate;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use tokio::time::{Instant, Sleep};

/// Looks after one message. There is no timer before something is held back.
#[derive(Debug)]
pub(super) struct RateGuard {
    rate: Option<MinimumRate>,
    /// What the connection had sent when the present period began, if there is one.
    period: Option<u64>,
    sleep: Option<Pin<Box<Sleep>>>,
    /// Set when it is at its end, if it can be.
    ended: Option<Arc<AtomicBool>>,
}

impl RateGuard {
    pub(super) fn new(rate: Option<MinimumRate>) -> Self {
        RateGuard { rate, period: None, sleep: None, ended: rate.map(|_| Arc::default()) }
    }

    /// For asking later whether it has come to its end. `None` if there is none.
    pub(super) fn ended(&self) -> Option<Arc<AtomicBool>> {
        self.ended.clone()
    }

    /// Nothing is held back: there is nothing to send.
    pub(super) fn on_drained(&mut self) {
        self.period = None;
    }

    /// Something is held back, and all streams of the connection have sent so many bytes so far. Ready when that
    /// has been so for too long, and too few were sent meanwhile.
    pub(super) fn poll_exceeded(&mut self, cx: &mut Context<'_>, sent: u64) -> Poll<()> {
        let Some(rate) = self.rate else { return Poll::Pending };
        let (period, least) = (rate.period(), rate.least());
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(period)));
        if self.period.is_none() {
            self.period = Some(sent);
            sleep.as_mut().reset(Instant::now() + period);
        }
        loop {
            ready!(sleep.as_mut().poll(cx));
            let before = self.period.replace(sent).unwrap_or(sent);
            if sent.saturating_sub(before) < least {
                if let Some(ended) = &self.ended {
                    ended.store(true, Ordering::Relaxed);
                }
                return Poll::Ready(());
            }
            sleep.as_mut().reset(Instant::now() + period);
        }
    }
}
