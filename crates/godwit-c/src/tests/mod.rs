//! Tests of the functions as an application would use them.
#![allow(clippy::arithmetic_side_effects, reason = "sums of tests")]
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "here the tests are the application: what they point to is on the stack, or is wrong on purpose and refused"
)]

mod abrupt;
mod abuse;
mod http;
mod pressure;
mod queue;
mod quic;
mod quic_endings;
pub(crate) mod rig;
