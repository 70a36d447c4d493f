//! Socket addresses as the kernel lays them out, written and read as plain bytes.

use super::field::Field;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

const V4_LEN: usize = 16;
const V6_LEN: usize = 28;

/// A `sockaddr_in` or `sockaddr_in6`.
pub(super) type Name = Field<V6_LEN>;

impl Name {
    /// Writes `addr`.
    pub(super) fn set(&mut self, addr: SocketAddr) {
        self.bytes = [0; V6_LEN];
        let (family, len) = match addr {
            SocketAddr::V4(_) => (libc::AF_INET, V4_LEN),
            SocketAddr::V6(_) => (libc::AF_INET6, V6_LEN),
        };
        self.len = len;
        self.bytes[0..2].copy_from_slice(&(family as u16).to_ne_bytes());
        self.bytes[2..4].copy_from_slice(&addr.port().to_be_bytes());
        match addr {
            SocketAddr::V4(v4) => self.bytes[4..8].copy_from_slice(&v4.ip().octets()),
            SocketAddr::V6(v6) => {
                self.bytes[4..8].copy_from_slice(&v6.flowinfo().to_ne_bytes());
                self.bytes[8..24].copy_from_slice(&v6.ip().octets());
                self.bytes[24..28].copy_from_slice(&v6.scope_id().to_ne_bytes());
            }
        }
    }

    /// The address, if it is of a known family and complete.
    pub(super) fn addr(&self) -> Option<SocketAddr> {
        let family = u16::from_ne_bytes(*self.bytes.first_chunk()?);
        let port = u16::from_be_bytes(self.array(2)?);
        match i32::from(family) {
            libc::AF_INET if self.len >= V4_LEN => {
                Some(SocketAddr::from((Ipv4Addr::from(self.array::<4>(4)?), port)))
            }
            libc::AF_INET6 if self.len >= V6_LEN => {
                let ip = Ipv6Addr::from(self.array::<16>(8)?);
                let scope = u32::from_ne_bytes(self.array(24)?);
                Some(SocketAddr::V6(SocketAddrV6::new(ip, port, 0, scope)))
            }
            _ => None,
        }
    }

    fn array<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.bytes.get(at..)?.first_chunk().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_round_trip() {
        for text in ["192.0.2.1:443", "[2001:db8::1]:443", "[fe80::1%3]:9"] {
            let addr: SocketAddr = text.parse().unwrap();
            let mut name = Name::default();
            name.set(addr);
            assert_eq!(name.addr(), Some(addr));
            name.set_len(5);
            assert_eq!(name.addr(), None, "{text} cut short");
        }
    }
}
