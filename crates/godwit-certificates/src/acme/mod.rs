//! Certificates from an ACME server (RFC 8555), without anybody's doing.
//!
//! A `Job` keeps one certificate: from its file, where it is after the first time, or from the server when two
//! thirds of its life are over or the server says so (RFC 9773). Whatever fails, the old certificate stays, the
//! operator gets one line, and it is tried again later and later. Names are proved by TLS (RFC 8737) or by plain HTTP.
//!
//! - `settings`: what the operator decides. `schedule`: when to ask. `problem`: what went wrong, in words.
//! - `folder`: what is kept. `account`: who asks. `order`: how. `client`: over what.
//! - `challenges`: the proofs that are shown while the server checks.

mod account;
mod challenges;
mod client;
mod folder;
mod job;
mod order;
mod problem;
mod schedule;
mod settings;

pub(crate) use challenges::Challenges;
#[cfg(test)]
pub(crate) use challenges::test_answer;
pub(crate) use job::Job;
pub use settings::{Method, Settings};
