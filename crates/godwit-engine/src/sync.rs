//! What the wake-ups are built on. The models in `models/` exchange this module for one whose threads take every order there
//! is.

pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
pub(crate) use std::sync::{Mutex, PoisonError};
