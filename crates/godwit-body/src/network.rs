//! The network that a client comes from, for limits that one of many addresses is not to get around, and for what is to be
//! known of many clients and not of one.

use std::net::IpAddr;

/// An IPv4 /24 or an IPv6 /48.
///
/// For limits this machine itself is none: who comes from there is mostly another server that has many clients of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientNetwork(IpAddr);

impl ClientNetwork {
    /// The network of an address; `None` for one of this machine. An IPv4 address in IPv6 notation counts as IPv4.
    pub fn of(address: IpAddr) -> Option<ClientNetwork> {
        (!address.to_canonical().is_loopback()).then(|| ClientNetwork(ClientNetwork::prefix(address)))
    }

    /// Its first address.
    pub(crate) fn address(self) -> IpAddr {
        self.0
    }

    /// The first address of the network of any address, of this machine's too: an IPv4 address's first 24 bits, an IPv6
    /// address's first 48. An IPv4 address in IPv6 notation counts as IPv4.
    pub fn prefix(address: IpAddr) -> IpAddr {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let [a, b, c, _] = address.octets();
                IpAddr::from([a, b, c, 0])
            }
            IpAddr::V6(address) => {
                let [a, b, c, ..] = address.segments();
                IpAddr::from([a, b, c, 0, 0, 0, 0, 0])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_network_and_this_machine_is_none() {
        let of = |text: &str| ClientNetwork::of(text.parse().unwrap());
        assert!(of("192.0.2.1").is_some() && of("192.0.2.1") == of("::ffff:192.0.2.255"));
        assert_ne!(of("192.0.2.1"), of("192.0.3.1"));
        assert!(of("2001:db8:1::1").is_some() && of("2001:db8:1::1") == of("2001:db8:1:ffff::2"));
        assert_ne!(of("2001:db8:1::1"), of("2001:db8:2::1"));
        for this in ["127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(of(this), None, "{this}");
        }
    }

    #[test]
    fn prefixes_keep_the_beginning() {
        let cases = [
            ("192.0.2.7", "192.0.2.0"),
            ("::ffff:192.0.2.7", "192.0.2.0"),
            ("127.0.0.1", "127.0.0.0"),
            ("2001:db8:1:2::3", "2001:db8:1::"),
        ];
        for (address, expected) in cases {
            assert_eq!(ClientNetwork::prefix(address.parse().unwrap()), expected.parse::<IpAddr>().unwrap());
        }
    }
}
