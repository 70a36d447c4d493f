//! What the two halves of an exchange have to know of one another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// A request's body that is [`crate::Timed`], and the response to it. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Exchange(Arc<State>);

#[derive(Debug, Default)]
struct State {
    late: AtomicBool,
    /// A [`Stage`].
    stage: AtomicU8,
}

/// How far the response is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Before,
    UnderWay,
    Over,
}

/// A response under way: it is over when this is dropped.
#[derive(Debug)]
pub struct ResponseUnderWay(Exchange);

impl Exchange {
    /// Whether the request's body came too late.
    pub fn is_late(&self) -> bool {
        self.0.late.load(Ordering::Relaxed)
    }

    /// The head of the final response is there, and its body follows.
    pub fn begin_response(&self) -> ResponseUnderWay {
        self.0.stage.store(Stage::UnderWay as u8, Ordering::Relaxed);
        ResponseUnderWay(self.clone())
    }

    pub(crate) fn on_late(&self) {
        self.0.late.store(true, Ordering::Relaxed);
    }

    pub(crate) fn stage(&self) -> Stage {
        match self.0.stage.load(Ordering::Relaxed) {
            stage if stage == Stage::Before as u8 => Stage::Before,
            stage if stage == Stage::UnderWay as u8 => Stage::UnderWay,
            _ => Stage::Over,
        }
    }
}

impl Drop for ResponseUnderWay {
    fn drop(&mut self) {
        self.0.0.stage.store(Stage::Over as u8, Ordering::Relaxed);
    }
}
