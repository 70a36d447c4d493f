//! How connections use what earlier ones have left in a [`godwit_tls::resumption::SessionStore`], and what became of
//! their 0-RTT (RFC 9001 sections 4.5 and 4.6).

mod network;
mod server_memory;
#[cfg(test)]
mod tests;

pub(crate) use network::{Found, Network};
pub use server_memory::Recalled;
pub(crate) use server_memory::ServerMemory;

/// What became of 0-RTT on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum EarlyDataStatus {
    /// It was not offered.
    #[default]
    NotTried,
    /// The client has offered it, and does not know yet. What is sent now may have to be sent again.
    Offered,
    /// The server has accepted it.
    Accepted,
    /// The server has refused it: what was sent is sent again, in 1-RTT packets.
    Rejected,
}
