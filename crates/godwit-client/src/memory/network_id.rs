//! Which network a server is reached over: whether UDP works is a matter of networks, not of servers.

use godwit_os::route;
use std::net::{IpAddr, SocketAddr};

/// A name for a network, of 16 hexadecimal digits: it tells no addresses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NetworkId(pub(super) String);

impl NetworkId {
    /// The network over which `remote` is reached. No packet is sent to find out.
    pub(crate) fn towards(remote: SocketAddr) -> NetworkId {
        if remote.ip().to_canonical().is_loopback() {
            return NetworkId("loopback".to_owned());
        }
        let near = route::local_address(remote).map_or_else(|| "unknown".to_owned(), prefix);
        let gateway = if remote.is_ipv4() { gateway() } else { None };
        NetworkId::named(&format!("{near} {}", gateway.unwrap_or_default()))
    }

    /// The same as a number.
    pub(crate) fn number(&self) -> u64 {
        u64::from_str_radix(&self.0, 16).unwrap_or_default()
    }

    fn named(text: &str) -> NetworkId {
        let digest = godwit_tls::sha256(text.as_bytes());
        NetworkId(digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect())
    }
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
    let gateway = route::default_gateway()?;
    let hardware = gateway.hardware.unwrap_or_default();
    Some(format!("{} {} {hardware}", gateway.interface, gateway.address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_networks_tell_no_addresses() {
        let loopback = |text: &str| NetworkId::towards(text.parse().unwrap());
        assert_eq!(loopback("127.0.0.1:1"), loopback("[::1]:2"));
        let named = NetworkId::named("192.168.1 wlan0 192.168.1.1");
        assert!(named.0.len() == 16 && named.0.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_ne!(named, NetworkId::named("192.168.2 wlan0 192.168.2.1"));
    }
}
