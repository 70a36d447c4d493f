//! The module of the same name in the crates, with loom's types.

pub(crate) use loom::sync::Mutex;
pub(crate) use loom::sync::atomic::{AtomicBool, Ordering};
pub(crate) use std::sync::PoisonError;
