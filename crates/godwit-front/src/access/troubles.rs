//! Upstreams that fail, told to whoever watches over the server.
//!
//! Each reason at each upstream is told once a minute at most, however many requests fail: a line for each of them is
//! the access log's business. What is remembered is capped by the upstreams of the configuration and the few reasons,
//! and by [`MOST`] should configurations come and go.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use godwit_certificates::Notices;
use godwit_proxy::{Problem, Reason};
use godwit_text::printable;

/// The same is not said again for so long.
const QUIET: Duration = Duration::from_secs(60);
/// The most that is remembered.
const MOST: usize = 1024;

/// Says which upstreams fail, and why.
#[derive(Debug)]
pub(super) struct Troubles {
    notices: Notices,
    said: Mutex<BTreeMap<(String, Reason), Instant>>,
}

impl Troubles {
    pub(super) fn new(notices: Notices) -> Troubles {
        Troubles { notices, said: Mutex::default() }
    }

    /// An upstream has failed. Problems that are not an upstream's are nobody's business here.
    pub(super) fn on_problem(&self, problem: &Problem, now: Instant) {
        let Some(upstream) = problem.upstream() else { return };
        if !self.is_news(upstream, problem.reason(), now) {
            return;
        }
        let (reason, detail) = (problem.reason().name(), printable(problem.detail()));
        self.notices.say(&format!("warning: the upstream {upstream} fails ({reason}): {detail}"));
    }

    fn is_news(&self, upstream: &str, reason: Reason, now: Instant) -> bool {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (upstream.to_owned(), reason);
        if said.get(&key).is_some_and(|at| now.saturating_duration_since(*at) < QUIET) {
            return false;
        }
        if said.len() >= MOST {
            said.clear();
        }
        said.insert(key, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_said_once_a_minute() {
        let troubles = Troubles::new(Notices::ignored());
        let begun = godwit_text::instant_now();
        let news = |upstream, reason, seconds| {
            troubles.is_news(upstream, reason, begun + Duration::from_secs(seconds))
        };
        assert!(news("a:1", Reason::ConnectionRefused, 0));
        assert!(!news("a:1", Reason::ConnectionRefused, 59));
        assert!(news("a:1", Reason::NotTls, 59), "another reason");
        assert!(news("b:1", Reason::NotTls, 59), "another upstream");
        assert!(news("a:1", Reason::ConnectionRefused, 60));
        assert!(!news("a:1", Reason::ConnectionRefused, 61));
    }

    #[test]
    fn what_is_remembered_is_capped() {
        let troubles = Troubles::new(Notices::ignored());
        let now = godwit_text::instant_now();
        for number in 0..3 * MOST {
            assert!(troubles.is_news(&number.to_string(), Reason::NotTls, now));
            assert!(troubles.said.lock().unwrap().len() <= MOST);
        }
    }
}
