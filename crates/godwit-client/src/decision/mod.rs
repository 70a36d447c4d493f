//! What the client decides, without a socket, a task or a clock: each part is told what has happened and when, and says
//! what is to be done. The drivers ([`crate::race`], [`crate::vigil`], [`crate::lifeline`]) do it, and the tests put the same parts on
//! modelled networks in virtual time.
//!
//! - [`race`]: one connection in the making, QUIC against TCP, and how long TCP waits ([`head_start`]).
//! - [`lesson`]: what an attempt has taught, from evidence: a time-out by itself cannot tell blocked UDP from a bad network.
//! - [`belief`]: what is thought of UDP on a network, or of one server's UDP, after many lessons.
//! - [`watch`]: a connection that is in use and falls silent.
//!
//! Times are counted from a moment that the driver chooses; those that are remembered from one run to the next are seconds
//! since 1970.

pub(crate) mod belief;
pub(crate) mod head_start;
pub(crate) mod lesson;
pub(crate) mod race;
#[cfg(test)]
mod tests;
pub(crate) mod watch;
