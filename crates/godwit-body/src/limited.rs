//! A body that may not have more than so many bytes.

use crate::BoxError;
use crate::wrapped::{FramePoll, Wrapped, Wrapper, data_of};
use http_body::Body;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

/// A body of which no more than a limit is let through: then it fails.
pub type Limited<B> = Wrapped<B, Limit>;

/// Lets so many bytes through.
#[derive(Debug)]
pub struct Limit {
    left: u64,
    exceeded: Arc<AtomicBool>,
}

/// Says afterwards whether a body had more than its limit.
#[derive(Clone, Debug, Default)]
pub struct Exceeded(Option<Arc<AtomicBool>>);

impl Exceeded {
    /// Whether it had.
    pub fn is_so(&self) -> bool {
        self.0.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

impl<B: Body<Error = BoxError>> Limited<B> {
    /// At most so many bytes of `body`.
    pub fn new(body: B, most: u64) -> Self {
        Wrapped::with(body, Limit { left: most, exceeded: Arc::default() })
    }

    /// For asking later.
    pub fn exceeded(&self) -> Exceeded {
        Exceeded(Some(Arc::clone(&self.wrapper().exceeded)))
    }
}

impl Wrapper for Limit {
    fn on_answer(&mut self, answer: FramePoll, _: &mut Context<'_>) -> FramePoll {
        let bytes = data_of(&answer).map_or(0, |data| data.len() as u64);
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                answer
            }
            None => {
                self.exceeded.store(true, Ordering::Relaxed);
                Poll::Ready(Some(Err("the request's body is larger than allowed".into())))
            }
        }
    }
}
