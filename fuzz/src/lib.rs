//! What the fuzz targets check. The targets only hand the bytes over; ordinary tests replay the
//! checked-in corpus, and inputs made of it by chance, through the same functions.

pub mod client;
pub mod differential;
pub mod front;
pub mod hex;
pub mod http3;
pub mod http3_connection;
pub mod mutate;
pub mod program;
pub mod replay;
pub mod report;
pub mod scratch;
pub mod sessions;
pub mod tls;
pub mod transport;
pub mod wire;
