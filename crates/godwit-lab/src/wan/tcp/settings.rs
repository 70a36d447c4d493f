//! What all parts of the testbed agree on.

use godwit::TransportConfig;

/// The name in the certificate.
pub(super) const NAME: &str = "localhost";
/// The server's ports for TCP, by congestion control, and the first of those for QUIC: every network has its own, so that
/// what the server has learnt in one is not used in another.
pub(super) const TCP_PORTS: [(&str, u16); 2] = [("cubic", 4433), ("bbr", 4434)];
pub(super) const QUIC_PORT: u16 = 4433;
pub(super) const NETWORKS: u16 = 12;
/// The network of transfers: what a server learns from them would help no request. Those of requests follow, and the last
/// two are those with an origin behind the server.
pub(super) const TRANSFERS: u16 = 0;
pub(super) const REQUESTS: u16 = 1;
pub(super) const PRESENCE: [u16; 2] = [10, 11];
/// Where the origin is, on the client's side, and so behind the link too.
pub(super) const ORIGIN_PORT: u16 = 4500;

/// How the contenders are set.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The settings of Godwit's ends.
    pub transport: TransportConfig,
    /// What all chances follow from.
    pub seed: u64,
    /// Clients offer the post-quantum key exchange, whose handshakes begin with two datagrams. The simulator's do not.
    pub post_quantum: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { transport: TransportConfig::default(), seed: 1, post_quantum: true }
    }
}
