//! Which network a server is reached over: whether UDP works is a matter of networks, not of servers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// A name for a network, of 16 hexadecimal digits: it tells no addresses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::get) struct Place(pub(super) String);

impl Place {
    /// The network over which `remote` is reached. No packet is sent to find out.
    pub(in crate::get) fn towards(remote: SocketAddr) -> Place {
        if remote.ip().to_canonical().is_loopback() {
            return Place("loopback".to_owned());
        }
        let near = local_address(remote).map_or_else(|| "unknown".to_owned(), prefix);
        let gateway = if remote.is_ipv4() { gateway() } else { None };
        Place::named(&format!("{near} {}", gateway.unwrap_or_default()))
    }

    /// The same as a number.
    pub(in crate::get) fn number(&self) -> u64 {
        u64::from_str_radix(&self.0, 16).unwrap_or_default()
    }

    fn named(text: &str) -> Place {
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
        Place(digest.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect())
    }
}

/// The address that packets to `remote` would come from.
fn local_address(remote: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr =
        if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(remote).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// The network part of an address, as networks of people mostly have it: /24 and /64.
fn prefix(address: IpAddr) -> String {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            format!("{a}.{b}.{c}")
        }
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}")
        }
    }
}

/// Interface, address and hardware address of the IPv4 gateway: half of all homes are 192.168.1.
fn gateway() -> Option<String> {
    let routes = std::fs::read_to_string("/proc/net/route").ok()?;
    let (interface, gateway) = default_route(&routes)?;
    let neighbours = std::fs::read_to_string("/proc/net/arp").unwrap_or_default();
    let hardware = hardware_address(&neighbours, gateway).unwrap_or_default();
    Some(format!("{interface} {gateway} {hardware}"))
}

fn default_route(routes: &str) -> Option<(&str, Ipv4Addr)> {
    let mut best: Option<(u32, &str, Ipv4Addr)> = None;
    for line in routes.lines().skip(1) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let &[interface, "00000000", gateway, _, _, _, metric, "00000000", ..] = fields.as_slice() else {
            continue;
        };
        let (Ok(gateway), Ok(metric)) = (u32::from_str_radix(gateway, 16), metric.parse()) else { continue };
        // The kernel prints the four bytes as a number of the machine's own byte order.
        let gateway = Ipv4Addr::from(gateway.to_ne_bytes());
        if best.is_none_or(|(known, ..)| metric < known) {
            best = Some((metric, interface, gateway));
        }
    }
    best.map(|(_, interface, gateway)| (interface, gateway))
}

fn hardware_address(neighbours: &str, gateway: Ipv4Addr) -> Option<&str> {
    let gateway = gateway.to_string();
    let line = neighbours.lines().find(|line| line.split_whitespace().next() == Some(&gateway))?;
    line.split_whitespace().nth(3).filter(|hardware| *hardware != "00:00:00:00:00:00")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateways_are_found_in_the_kernels_tables() {
        let routes = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n\
                      wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n\
                      eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
                      eth0\t0000000A\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n";
        if cfg!(target_endian = "little") {
            assert_eq!(default_route(routes), Some(("eth0", Ipv4Addr::new(10, 0, 0, 1))));
        }
        assert_eq!(default_route(""), None);
        let neighbours = "IP address       HW type     Flags       HW address            Mask     Device\n\
                          10.0.0.1         0x1         0x2         02:00:00:00:00:01     *        eth0\n\
                          10.0.0.2         0x1         0x0         00:00:00:00:00:00     *        eth0\n";
        let find = |address: [u8; 4]| hardware_address(neighbours, address.into());
        assert_eq!(find([10, 0, 0, 1]), Some("02:00:00:00:00:01"));
        assert_eq!((find([10, 0, 0, 2]), find([10, 0, 0, 3])), (None, None));
    }

    #[test]
    fn names_of_networks_tell_no_addresses() {
        let loopback = |text: &str| Place::towards(text.parse().unwrap());
        assert_eq!(loopback("127.0.0.1:1"), loopback("[::1]:2"));
        let named = Place::named("192.168.1 wlan0 192.168.1.1");
        assert!(named.0.len() == 16 && named.0.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_ne!(named, Place::named("192.168.2 wlan0 192.168.2.1"));
    }
}
