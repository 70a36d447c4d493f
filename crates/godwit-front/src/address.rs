//! Addresses to listen at, as people write them.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The port where none is named.
pub(crate) const DEFAULT_PORT: u16 = 4433;

/// Every address of this machine, where it has IPv6.
pub(crate) fn default_address() -> SocketAddr {
    SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), DEFAULT_PORT)
}

/// `ADDR:PORT`, `:PORT` or `PORT`.
///
/// # Errors
/// What was expected, for a person.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    if let Ok(port) = text.strip_prefix(':').unwrap_or(text).parse() {
        return Ok(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port));
    }
    if text.parse::<IpAddr>().is_ok() {
        return Err("the port is missing; expected for example 127.0.0.1:4433 or [::1]:4433".to_owned());
    }
    Err("expected an address and a port such as 127.0.0.1:4433, [::]:443 or :8443".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_in_all_their_forms() {
        for (text, expected) in [
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("[::1]:443", "[::1]:443"),
            (":8443", "[::]:8443"),
            ("8443", "[::]:8443"),
            ("0", "[::]:0"),
        ] {
            assert_eq!(parse_address(text).unwrap().to_string(), expected, "{text}");
        }
        assert!(parse_address("127.0.0.1").unwrap_err().contains("port is missing"));
        for text in ["", "localhost:80", "99999", "1.2.3.4:x"] {
            assert!(parse_address(text).unwrap_err().contains("expected"), "{text}");
        }
    }
}
