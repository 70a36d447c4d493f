//! HTTP/0.9 over QUIC (ALPN `hq-interop`), in both roles: one `GET /path` on each bidirectional stream, answered with the
//! bare file.

pub mod client;
pub mod server;

pub const ALPN: &str = "hq-interop";
