//! What a route carries, asked of the kernel.

use super::sys;
use std::net::{IpAddr, SocketAddr, UdpSocket};

/// Bytes of IP and UDP header before the payload.
const V4_HEADERS: usize = 28;
const V6_HEADERS: usize = 48;

/// The largest UDP payload, in bytes, that the system sends unfragmented to `remote`, from `source` if given: the
/// MTU of the route less the headers. It costs a socket of its own, because the kernel tells only for a connected
/// one, and so is asked only after a refusal.
pub(crate) fn max_payload(source: Option<IpAddr>, remote: SocketAddr) -> Option<usize> {
    let any: IpAddr = if remote.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let socket = UdpSocket::bind((source.unwrap_or(any), 0)).ok()?;
    socket.connect(remote).ok()?;
    let (level, name, headers) = match remote.is_ipv4() {
        true => (libc::IPPROTO_IP, libc::IP_MTU, V4_HEADERS),
        false => (libc::IPPROTO_IPV6, libc::IPV6_MTU, V6_HEADERS),
    };
    let mtu = usize::try_from(sys::option(&socket, level, name).ok()?).ok()?;
    // A datagram's length field has sixteen bits, whatever the interface carries.
    mtu.min(usize::from(u16::MAX)).checked_sub(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_route_carries_more_than_ethernet() {
        let remote = SocketAddr::from(([127, 0, 0, 1], 9));
        let max = max_payload(None, remote).unwrap();
        assert!((1472..=65_507).contains(&max), "{max}");
        assert_eq!(max_payload(Some(IpAddr::from([127, 0, 0, 1])), remote), Some(max));
    }
}
