//! What precedes a run of datagrams in a relay. All numbers are big-endian:
//!
//! | bytes | meaning |
//! |---|---|
//! | 0 | version of this header: 1 |
//! | 1 | ECN codepoint (bits 0 and 1); the remote address is IPv6 (bit 4); the local address is told (bit 5) and IPv6 (bit 6) |
//! | 2..4 | remote port |
//! | 4..8 | number of the socket |
//! | 8..12 | size of each datagram but the last |
//! | 12..16 | scope of a remote IPv6 address |
//! | 16..24 | when the run was received, in nanoseconds since the system was started |
//! | 24..40 | remote address, IPv4 in the first four |
//! | 40..56 | local address likewise |

use godwit_base::{Ecn, RecvMeta, SocketId};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::time::Duration;

/// Bytes of the header.
pub(super) const LEN: usize = 56;

const VERSION: u8 = 1;
const REMOTE_V6: u8 = 1 << 4;
const LOCAL_TOLD: u8 = 1 << 5;
const LOCAL_V6: u8 = 1 << 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) meta: RecvMeta,
    pub(super) received: Duration,
}

impl Header {
    pub(super) fn to_bytes(self) -> [u8; LEN] {
        let RecvMeta { socket, local, remote, ecn, stride, .. } = self.meta;
        let mut flags = ecn.bits();
        flags |= if remote.is_ipv6() { REMOTE_V6 } else { 0 };
        flags |= if local.is_some() { LOCAL_TOLD } else { 0 };
        flags |= if local.is_some_and(|local| local.is_ipv6()) { LOCAL_V6 } else { 0 };
        let scope = if let SocketAddr::V6(remote) = remote { remote.scope_id() } else { 0 };
        let stride = u32::try_from(stride).unwrap_or(u32::MAX);
        let received = u64::try_from(self.received.as_nanos()).unwrap_or(u64::MAX);
        let unspecified = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let mut bytes = [0; LEN];
        let mut rest = &mut bytes[..];
        let mut put = |field: &[u8]| {
            let (place, after) = std::mem::take(&mut rest).split_at_mut(field.len());
            place.copy_from_slice(field);
            rest = after;
        };
        put(&[VERSION, flags]);
        put(&remote.port().to_be_bytes());
        put(&socket.0.to_be_bytes());
        put(&stride.to_be_bytes());
        put(&scope.to_be_bytes());
        put(&received.to_be_bytes());
        put(&octets(remote.ip()));
        put(&octets(local.unwrap_or(unspecified)));
        bytes
    }

    /// `None` if it is of another version, or makes no sense for `len` bytes of payload.
    pub(super) fn from_bytes(bytes: &[u8; LEN], len: usize) -> Option<Self> {
        let mut rest = &bytes[..];
        let [VERSION, flags] = take(&mut rest)? else { return None };
        let port = u16::from_be_bytes(take(&mut rest)?);
        let socket = SocketId(u32::from_be_bytes(take(&mut rest)?));
        let stride = usize::try_from(u32::from_be_bytes(take(&mut rest)?)).ok()?;
        let scope = u32::from_be_bytes(take(&mut rest)?);
        let received = Duration::from_nanos(u64::from_be_bytes(take(&mut rest)?));
        let remote = address(take(&mut rest)?, flags & REMOTE_V6 != 0);
        let local = address(take(&mut rest)?, flags & LOCAL_V6 != 0);
        let remote = match remote {
            IpAddr::V4(_) => SocketAddr::new(remote, port),
            IpAddr::V6(ip) => SocketAddr::V6(SocketAddrV6::new(ip, port, 0, scope)),
        };
        let local = (flags & LOCAL_TOLD != 0).then_some(local);
        let meta = RecvMeta { socket, local, remote, ecn: Ecn::from_tos(flags), len, stride };
        (len > 0 && stride > 0).then_some(Header { meta, received })
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (field, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*field)
}

fn octets(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => {
            let mut octets = [0; 16];
            octets[..4].copy_from_slice(&ip.octets());
            octets
        }
        IpAddr::V6(ip) => ip.octets(),
    }
}

fn address(octets: [u8; 16], v6: bool) -> IpAddr {
    match (v6, octets) {
        (true, octets) => Ipv6Addr::from(octets).into(),
        (false, [a, b, c, d, ..]) => Ipv4Addr::new(a, b, c, d).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let v6: SocketAddr = SocketAddrV6::new("fe80::7".parse().unwrap(), 443, 0, 3).into();
        for remote in ["192.0.2.1:4000".parse().unwrap(), v6] {
            for local in [None, Some("192.0.2.9".parse().unwrap()), Some("2001:db8::9".parse().unwrap())] {
                for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
                    let meta = RecvMeta { socket: SocketId(9), local, remote, ecn, len: 2500, stride: 1200 };
                    let header = Header { meta, received: Duration::from_nanos(1 << 50) };
                    let mut bytes = header.to_bytes();
                    assert_eq!(Header::from_bytes(&bytes, 2500), Some(header));
                    assert_eq!(Header::from_bytes(&bytes, 0), None);
                    bytes[0] = 2;
                    assert_eq!(Header::from_bytes(&bytes, 2500), None, "of another version");
                }
            }
        }
        assert_eq!(Header::from_bytes(&[1; LEN], 10).unwrap().meta.stride, 0x0101_0101);
        let mut bytes = [1; LEN];
        bytes[8..12].fill(0);
        assert_eq!(Header::from_bytes(&bytes, 10), None, "datagrams of no bytes");
    }
}
