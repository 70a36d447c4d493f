//! What outlives a connection so that the next one begins faster.
//!
//! Clients keep tickets, address tokens and what they have learnt of the path in a [`SessionStore`], which every
//! [`crate::ClientConfig`] has one of, in memory. With a [`FileSessionStore`] it outlives the process. Servers give
//! out tickets: with [`crate::ServerConfigBuilder::session_tickets`] such that other processes know, with
//! [`crate::ServerConfigBuilder::early_data`] such that 0-RTT is accepted.

mod file;

pub use file::FileSessionStore;
pub use godwit_transport::tls::resumption::{
    EarlySessions, MemorySessions, PortableVerifier, Remembered, SessionKey, SessionStore, SessionTicket,
    SessionTickets,
};
