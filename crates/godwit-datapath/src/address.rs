//! IPv4 on dual-stack sockets: mapped to IPv6 towards the kernel, real IPv4 towards everyone else.

use std::net::{IpAddr, SocketAddr, SocketAddrV6};

/// IPv4-mapped addresses become IPv4; all others stay.
pub(crate) fn normalise(addr: SocketAddr) -> SocketAddr {
    match addr {
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(v4) => SocketAddr::from((v4, v6.port())),
            None => addr,
        },
        SocketAddr::V4(_) => addr,
    }
}

/// How `addr` is to be called on a socket of the given family.
pub(crate) fn for_socket(addr: SocketAddr, socket_is_v6: bool) -> SocketAddr {
    match addr {
        SocketAddr::V4(v4) if socket_is_v6 => {
            SocketAddr::V6(SocketAddrV6::new(v4.ip().to_ipv6_mapped(), v4.port(), 0, 0))
        }
        _ => addr,
    }
}

/// The address to send from, if it is one that the kernel shall not choose and of the remote's family.
pub(crate) fn source(local: Option<IpAddr>, remote: SocketAddr) -> Option<IpAddr> {
    local
        .map(|ip| ip.to_canonical())
        .filter(|ip| !ip.is_unspecified() && ip.is_ipv4() == normalise(remote).is_ipv4())
}

/// The IPv6 form of an address of either family.
#[cfg(target_os = "linux")]
pub(crate) fn ipv6_octets(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
    .octets()
}

/// The canonical address behind sixteen octets.
#[cfg(target_os = "linux")]
pub(crate) fn from_ipv6_octets(octets: [u8; 16]) -> IpAddr {
    IpAddr::from(octets).to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapping_and_normalising_are_inverse() {
        let v4: SocketAddr = "192.0.2.1:443".parse().unwrap();
        let v6: SocketAddr = "[2001:db8::1]:443".parse().unwrap();
        assert_eq!(for_socket(v4, true).to_string(), "[::ffff:192.0.2.1]:443");
        assert_eq!(normalise(for_socket(v4, true)), v4);
        assert_eq!(for_socket(v4, false), v4);
        assert_eq!(normalise(for_socket(v6, true)), v6);
    }

    #[test]
    fn a_source_must_be_of_the_remotes_family() {
        let remote = "192.0.2.1:443".parse().unwrap();
        let (v4, v6) = ("192.0.2.9".parse().unwrap(), "2001:db8::9".parse().unwrap());
        assert_eq!(source(Some(v4), remote), Some(v4));
        assert_eq!(source(Some(v6), remote), None);
        assert_eq!(source(Some("0.0.0.0".parse().unwrap()), remote), None);
        assert_eq!(source(Some("::ffff:192.0.2.9".parse().unwrap()), remote), Some(v4));
    }
}
