//! Addresses as C has them: a `sockaddr` of either family, or of none.

use super::layout::{codes, layout};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

codes! {
    /// The family of an address, by its number on Linux.
    AddressFamily(u16), "QUIC_ADDRESS_FAMILY" {
        /// None: any address of either family.
        UNSPECIFIED = 0, "QUIC_ADDRESS_FAMILY_UNSPEC";
        /// IPv4 (`AF_INET`).
        INET = 2, "QUIC_ADDRESS_FAMILY_INET";
        /// IPv6 (`AF_INET6`).
        INET6 = 10, "QUIC_ADDRESS_FAMILY_INET6";
    }
}

/// An address and a port.
///
/// In C: `QUIC_ADDR`, a union of `struct sockaddr`, `struct sockaddr_in` and `struct sockaddr_in6`. The family and the
/// port lie in the same place in all of them.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Address {
    family: AddressFamily,
    /// The most significant byte first.
    port: [u8; 2],
    /// The address of IPv4, or the flow label of IPv6 as the system has it.
    ipv4_or_flow: [u8; 4],
    /// The address of IPv6; of no meaning for IPv4, for which it is zero.
    ipv6: [u8; 16],
    /// The number of the interface to which an address of IPv6 belongs.
    scope: u32,
}

layout! {
    Address, "QUIC_ADDR", 28 {
        family, "Ip.sa_family", 0;
        family, "Ipv4.sin_family", 0;
        port, "Ipv4.sin_port", 2;
        ipv4_or_flow, "Ipv4.sin_addr", 4;
        family, "Ipv6.sin6_family", 0;
        port, "Ipv6.sin6_port", 2;
        ipv4_or_flow, "Ipv6.sin6_flowinfo", 4;
        ipv6, "Ipv6.sin6_addr", 8;
        scope, "Ipv6.sin6_scope_id", 24;
    }
}

impl Address {
    /// Any address of either family, with a port; with port 0 it says nothing at all.
    pub const fn unspecified(port: u16) -> Self {
        Self {
            family: AddressFamily::UNSPECIFIED,
            port: port.to_be_bytes(),
            ipv4_or_flow: [0; 4],
            ipv6: [0; 16],
            scope: 0,
        }
    }

    /// The same with another port.
    pub(crate) const fn with_port(mut self, port: u16) -> Self {
        self.port = port.to_be_bytes();
        self
    }

    /// The family, which may be one that is not known.
    pub const fn family(&self) -> AddressFamily {
        self.family
    }

    /// Whether the family is one of the three that are known.
    pub fn is_valid(&self) -> bool {
        self.family.c_name().is_some()
    }

    /// The port; 0 leaves it open.
    pub const fn port(&self) -> u16 {
        u16::from_be_bytes(self.port)
    }

    /// The address and port, if there is an address: if the family is IPv4 or IPv6.
    pub fn socket_address(&self) -> Option<SocketAddr> {
        match self.family {
            AddressFamily::INET => {
                Some(SocketAddrV4::new(Ipv4Addr::from(self.ipv4_or_flow), self.port()).into())
            }
            AddressFamily::INET6 => {
                let flow = u32::from_ne_bytes(self.ipv4_or_flow);
                Some(SocketAddrV6::new(Ipv6Addr::from(self.ipv6), self.port(), flow, self.scope).into())
            }
            _ => None,
        }
    }

    /// Whether it leaves the address open: it has no family, or the address is all zero.
    pub fn is_wildcard(&self) -> bool {
        match self.socket_address() {
            Some(address) => address.ip().is_unspecified(),
            None => self.family == AddressFamily::UNSPECIFIED,
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        let port = Self::unspecified(address.port());
        match address {
            SocketAddr::V4(address) => {
                Self { family: AddressFamily::INET, ipv4_or_flow: address.ip().octets(), ..port }
            }
            SocketAddr::V6(address) => Self {
                family: AddressFamily::INET6,
                ipv4_or_flow: address.flowinfo().to_ne_bytes(),
                ipv6: address.ip().octets(),
                scope: address.scope_id(),
                ..port
            },
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.socket_address() {
            Some(address) => address.fmt(f),
            None => write!(f, "family {} port {}", self.family.0, self.port()),
        }
    }
}

/// An address as text, with room for the longest.
///
/// In C: `QUIC_ADDR_STR`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct AddressText {
    /// The text, ended by a zero byte.
    pub address: [std::ffi::c_char; 64],
}

layout! { AddressText, "QUIC_ADDR_STR", 64 { address, "Address", 0; } }

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ports_and_addresses_are_in_the_order_of_the_network() {
        let address = Address::from(SocketAddr::from(([192, 0, 2, 1], 0x1234)));
        assert_eq!(address.family(), AddressFamily::INET);
        assert_eq!((address.port, address.ipv4_or_flow), ([0x12, 0x34], [192, 0, 2, 1]));
        assert_eq!((address.ipv6, address.scope), ([0; 16], 0));
    }

    #[test]
    fn without_a_family_there_is_a_port_alone() {
        let address = Address::unspecified(4433);
        assert_eq!((address.socket_address(), address.port()), (None, 4433));
        assert!(address.is_valid() && address.is_wildcard());
        let strange = Address { family: AddressFamily(1), ..address };
        assert!(!strange.is_valid() && !strange.is_wildcard());
        assert_eq!(strange.socket_address(), None);
    }

    #[test]
    fn zero_is_any_address() {
        let of = |text: &str| Address::from(text.parse::<SocketAddr>().unwrap());
        assert!(of("0.0.0.0:1").is_wildcard() && of("[::]:1").is_wildcard());
        assert!(!of("127.0.0.1:1").is_wildcard() && !of("[::1]:1").is_wildcard());
    }

    proptest! {
        #[test]
        fn ipv4_comes_back(ip: [u8; 4], port: u16) {
            let address = SocketAddr::from((ip, port));
            prop_assert_eq!(Address::from(address).socket_address(), Some(address));
            prop_assert_eq!(Address::from(address).port(), port);
        }

        #[test]
        fn ipv6_comes_back(ip: [u8; 16], port: u16, flow: u32, scope: u32) {
            let address = SocketAddr::V6(SocketAddrV6::new(ip.into(), port, flow, scope));
            prop_assert_eq!(Address::from(address).socket_address(), Some(address));
            prop_assert_eq!(Address::from(address).port(), port);
        }
    }
}
