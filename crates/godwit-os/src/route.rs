//! Where packets would leave: the local address towards a remote one, and the gateway of the default route.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// The router to which packets go for which there is no other way (IPv4).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gateway {
    /// The network interface that leads there, by name.
    pub interface: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its hardware address, if that is known at the moment.
    pub hardware: Option<String>,
}

/// The address that packets to `remote` would come from. No packet is sent to find out.
pub fn local_address(remote: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr =
        if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(remote).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// The gateway of the IPv4 default route with the lowest metric. Only Linux tells.
pub fn default_gateway() -> Option<Gateway> {
    let routes = std::fs::read_to_string("/proc/net/route").ok()?;
    let (interface, address) = default_route(&routes)?;
    let neighbours = std::fs::read_to_string("/proc/net/arp").unwrap_or_default();
    let hardware = hardware_address(&neighbours, address).map(str::to_owned);
    Some(Gateway { interface: interface.to_owned(), address, hardware })
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
}
