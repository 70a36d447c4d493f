//! What the client decides, without a socket, a task or a clock: each part is told what has happened and when, and says
//! what is to be done. The drivers ([`crate::vigil`] is one) do it.
//!
//! - [`watch`]: a connection that is in use and falls silent.
//!
//! Times are counted from a moment that the driver chooses; those that are remembered from one run to the next are seconds
//! since 1970.

pub(crate) mod watch;
