//! UDP through HTTP (RFC 9298): the method that MASQUE proxies have, as proxy and as its client.
//!
//! A tunnel carries the UDP payloads between a client and one target. They go as HTTP datagrams; what is too large
//! for one, as long as the path's MTU is not known, goes as a capsule in the exchange itself (RFC 9297 section 3.5).
//!
//! A proxy's service gives requests to a [`UdpForwarder`], which asks whether the target is permitted and needs
//! [`Config::enable_connect_protocol`](super::Config::enable_connect_protocol) and
//! [`Config::enable_datagrams`](super::Config::enable_datagrams). A client asks for an [`UdpTunnel`]; with
//! [`UdpTunnel::into_carrier`] an endpoint of its own sends through it, so that there is QUIC within QUIC.

mod carrier;
mod forwarder;
mod target;
mod tunnel;

pub use carrier::TunnelCarrier;
pub use forwarder::UdpForwarder;
pub use target::UdpTarget;
pub use tunnel::{TunnelError, UdpTunnel};
