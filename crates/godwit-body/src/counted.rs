//! A body whose bytes are counted as they pass.

use crate::wrapped::{FramePoll, Wrapped, Wrapper, data_of};
use http_body::Body;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Context;

/// A body whose bytes are added to a count that others can read.
pub type Counted<B> = Wrapped<B, Counter>;

/// Counts bytes.
#[derive(Debug)]
pub struct Counter(Arc<AtomicU64>);

impl<B: Body> Counted<B> {
    /// Adds to `count`.
    pub fn new(body: B, count: Arc<AtomicU64>) -> Self {
        Wrapped::with(body, Counter(count))
    }
}

impl<E> Wrapper<E> for Counter {
    fn on_answer(&mut self, answer: FramePoll<E>, _: &mut Context<'_>) -> FramePoll<E> {
        if let Some(data) = data_of(&answer) {
            self.0.fetch_add(data.len() as u64, Ordering::Relaxed);
        }
        answer
    }
}
