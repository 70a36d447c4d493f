//! The network that a client comes from, for limits that one of many addresses is not to get around.

use std::net::IpAddr;

/// An IPv4 /24 or an IPv6 /48.
///
/// This machine itself is none: who comes from there is mostly another server that has many clients of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientNetwork([u8; 6]);

impl ClientNetwork {
    /// The network of an address; `None` for one of this machine. An IPv4 address in IPv6 notation counts as IPv4.
    pub fn of(address: IpAddr) -> Option<ClientNetwork> {
        match address.to_canonical() {
            address if address.is_loopback() => None,
            IpAddr::V4(address) => {
                let [a, b, c, _] = address.octets();
                Some(ClientNetwork([a, b, c, 0, 0, 4]))
            }
            IpAddr::V6(address) => address.octets().first_chunk().copied().map(ClientNetwork),
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
}
