//! The network paths of a connection (RFC 9000 section 9).

use godwit_engine::ShardCx;
use godwit_transport::{PathInfo, PathKey, PathState, PathUpdate};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// News of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathEvent {
    /// A number that no other path of the connection has; that of the handshake is 0.
    pub path: u32,
    /// This end's address; unspecified as far as the system has not told it yet.
    pub local: SocketAddr,
    /// The peer's address.
    pub remote: SocketAddr,
    /// What the path has become.
    pub state: PathState,
}

/// A path as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathStats {
    /// A number that no other path of the connection has; that of the handshake is 0.
    pub path: u32,
    /// This end's address; unspecified as far as the system has not told it yet.
    pub local: SocketAddr,
    /// The peer's address.
    pub remote: SocketAddr,
    /// Whether it carries the connection.
    pub active: bool,
    /// Whether the peer is known to receive at its address.
    pub validated: bool,
    /// Smoothed round-trip time, the initial guess before the first sample.
    pub rtt: Duration,
    /// The lowest round-trip time of late.
    pub min_rtt: Duration,
    /// Congestion window in bytes.
    pub window: u64,
    /// Bytes in flight.
    pub bytes_in_flight: u64,
    /// UDP payload size that passes it, in bytes.
    pub mtu: u16,
    /// Packets sent on it.
    pub packets_sent: u64,
    /// Packets declared lost on it.
    pub packets_lost: u64,
}

impl PathEvent {
    pub(crate) fn of(shard: &ShardCx<'_>, update: &PathUpdate) -> Self {
        let PathUpdate { id, key, state, .. } = *update;
        PathEvent { path: id.0, local: local_of(shard, &key), remote: key.remote, state }
    }
}

impl PathStats {
    pub(crate) fn of(shard: &ShardCx<'_>, info: &PathInfo) -> Self {
        PathStats {
            path: info.id.0,
            local: local_of(shard, &info.key),
            remote: info.key.remote,
            active: info.active,
            validated: info.validated,
            rtt: info.rtt,
            min_rtt: info.min_rtt,
            window: info.window,
            bytes_in_flight: info.bytes_in_flight,
            mtu: info.mtu,
            packets_sent: info.packets_sent,
            packets_lost: info.packets_lost,
        }
    }
}

/// The address of this end: the socket's port, and the address that packets came in at.
fn local_of(shard: &ShardCx<'_>, key: &PathKey) -> SocketAddr {
    let unspecified: IpAddr = match key.remote {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let bound = shard.local_addr(key.socket).unwrap_or(SocketAddr::new(unspecified, 0));
    SocketAddr::new(key.local.unwrap_or(bound.ip()), bound.port())
}
