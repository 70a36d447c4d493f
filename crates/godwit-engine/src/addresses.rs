//! What addresses mean to sockets.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6};

/// Whether a socket bound to `local` can send to `remote`. An IPv6 socket on any address may be dual-stack; if it
/// is not, the kernel will say so.
pub(crate) fn reaches(local: SocketAddr, remote: SocketAddr) -> bool {
    let local = local.ip().to_canonical();
    local.is_ipv4() == remote.is_ipv4() || local.is_ipv6() && local.is_unspecified()
}

/// An address as packets from there tell it: IPv4 as such and not mapped into IPv6, no flow label, and a scope only
/// where it is a part of the address.
pub(crate) fn as_told(addr: SocketAddr) -> SocketAddr {
    let port = addr.port();
    match (addr.ip().to_canonical(), addr) {
        (IpAddr::V6(ip), SocketAddr::V6(addr)) if ip.is_unicast_link_local() => {
            SocketAddr::V6(SocketAddrV6::new(ip, port, 0, addr.scope_id()))
        }
        (ip, _) => SocketAddr::new(ip, port),
    }
}

/// Whether one host can answer from this address.
pub(crate) fn is_somebody(addr: SocketAddr) -> bool {
    let ip = addr.ip();
    addr.port() != 0 && !ip.is_unspecified() && !ip.is_multicast() && ip != Ipv4Addr::BROADCAST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_known_by_how_packets_tell_them() {
        for (given, told) in [
            ("192.0.2.1:443", "192.0.2.1:443"),
            ("[::ffff:192.0.2.1]:443", "192.0.2.1:443"),
            ("[2001:db8::1%7]:443", "[2001:db8::1]:443"),
            ("[fe80::1%7]:443", "[fe80::1%7]:443"),
        ] {
            assert_eq!(as_told(given.parse().unwrap()), told.parse().unwrap());
        }
        let labelled = SocketAddrV6::new("2001:db8::1".parse().unwrap(), 443, 5, 0);
        assert_eq!(as_told(labelled.into()), "[2001:db8::1]:443".parse().unwrap());
    }

    #[test]
    fn nobody_answers_for_everybody() {
        for nobody in
            ["0.0.0.0:1", "[::]:1", "224.0.0.1:1", "[ff02::1%1]:1", "255.255.255.255:1", "127.0.0.1:0"]
        {
            assert!(!is_somebody(nobody.parse().unwrap()), "{nobody}");
        }
        assert!(is_somebody("[::1]:1".parse().unwrap()) && is_somebody("10.0.0.255:1".parse().unwrap()));
    }
}
