//! How much an HTTP/2 client may give up of what it asks for (CVE-2023-44487, CVE-2025-8671).
//!
//! The HTTP/2 library limits streams that are reset before it has heard of the request. What was handed to a service,
//! and is reset then, by the client or because of what the client sent, ends here: a request that is dropped before its
//! answer is complete costs, one that is answered pays back, as does time. HTTP/3 does the same by itself
//! ([`godwit::http3::Config::abandoned_allowance`]), and HTTP/1.1 has a connection for each.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use godwit_base::{RefillingBudget, Time};
use tokio::sync::Notify;

use godwit_text::instant_now;

/// The requests that a client gives up on one connection.
#[derive(Debug)]
pub(crate) struct Abandoned {
    begun: Instant,
    budget: Mutex<RefillingBudget>,
    too_many: Notify,
}

impl Abandoned {
    /// `budget`: of requests.
    pub(super) fn new(budget: RefillingBudget) -> Abandoned {
        Abandoned { begun: instant_now(), budget: Mutex::new(budget), too_many: Notify::new() }
    }

    /// A request is over.
    pub(super) fn on_over(&self, given_up: bool) {
        self.on_over_at(Time::ZERO + self.begun.elapsed(), given_up);
    }

    fn on_over_at(&self, now: Time, given_up: bool) {
        let mut budget = self.budget.lock().unwrap_or_else(PoisonError::into_inner);
        match given_up {
            true if budget.charge(now, 1).is_err() => self.too_many.notify_one(),
            true => {}
            false => budget.refund(1),
        }
    }

    /// Ready once too many have been given up.
    pub(crate) async fn too_many(&self) {
        self.too_many.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};
    use std::time::Duration;

    use super::*;

    #[test]
    fn answers_and_time_make_up_for_what_is_given_up() {
        let abandoned = Abandoned::new(RefillingBudget::new(2, 1));
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let is_enough = || {
            let mut cx = Context::from_waker(Waker::noop());
            pin!(abandoned.too_many()).poll(&mut cx).is_ready()
        };
        for second in 0..1000 {
            abandoned.on_over_at(at(second), true);
        }
        for _ in 0..1000 {
            abandoned.on_over_at(at(1000), true);
            abandoned.on_over_at(at(1000), false);
        }
        assert!(!is_enough());
        for _ in 0..3 {
            abandoned.on_over_at(at(1000), true);
        }
        assert!(is_enough());
    }
}
