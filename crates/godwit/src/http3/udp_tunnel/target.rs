//! Whom a tunnel leads to, as it stands in the path of its request (RFC 9298 sections 2 and 3.4).

use std::fmt::{self, Write as _};
use std::net::Ipv6Addr;

/// What the path of the default template begins with; host and port follow.
const PREFIX: &str = "/.well-known/masque/udp/";

/// The longest name of a host, in bytes.
const MAX_HOST: usize = 255;

/// The host and the port that a tunnel is to lead to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UdpTarget {
    host: String,
    port: u16,
}

impl UdpTarget {
    /// A name or an IP address (without brackets), and a port; `None` if one of them cannot be that.
    pub fn new(host: impl Into<String>, port: u16) -> Option<Self> {
        let host = host.into();
        let is_name = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
        let fits = !host.is_empty() && host.len() <= MAX_HOST;
        (fits && port > 0 && (is_name || host.parse::<Ipv6Addr>().is_ok()))
            .then_some(UdpTarget { host, port })
    }

    /// Name or IP address.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The path of the default template that names it.
    pub fn to_path(&self) -> String {
        let mut path = String::from(PREFIX);
        for byte in self.host.bytes() {
            match byte {
                // In an address of IPv6; all else that is permitted stands for itself.
                b':' => path.push_str("%3A"),
                byte => path.push(char::from(byte)),
            }
        }
        // Writing to a string does not fail.
        let _ = write!(path, "/{}/", self.port);
        path
    }

    /// What a path names by the default template.
    pub fn from_path(path: &str) -> Option<Self> {
        let (host, rest) = path.strip_prefix(PREFIX)?.split_once('/')?;
        let port = rest.strip_suffix('/').unwrap_or(rest);
        if host.len() > 3 * MAX_HOST || !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        Self::new(decoded(host)?, port.parse().ok()?)
    }
}

impl fmt::Display for UdpTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// The text without its percent-encoding.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'%' => {
                let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
                (high << 4) | low
            }
            byte => byte,
        };
        bytes.push(byte);
    }
    String::from_utf8(bytes).ok()
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_targets_are_the_same() {
        for (host, port, path) in [
            ("example.com", 443, "/.well-known/masque/udp/example.com/443/"),
            ("192.0.2.6", 1, "/.well-known/masque/udp/192.0.2.6/1/"),
            ("2001:db8::42", 65535, "/.well-known/masque/udp/2001%3Adb8%3A%3A42/65535/"),
        ] {
            let target = UdpTarget::new(host, port).unwrap();
            assert_eq!((target.host(), target.port(), &*target.to_path()), (host, port, path));
            assert_eq!(UdpTarget::from_path(path), Some(target.clone()));
            assert_eq!(UdpTarget::from_path(path.trim_end_matches('/')), Some(target));
        }
        let target = UdpTarget::from_path("/.well-known/masque/udp/a%2Db/5").unwrap();
        assert_eq!(target.to_string(), "a-b:5");
        assert_eq!(UdpTarget::new("::1", 9).unwrap().to_string(), "[::1]:9");
    }

    #[test]
    fn what_is_no_target_is_none() {
        let long = "a".repeat(MAX_HOST + 1);
        for rest in [
            "", "a", "a/", "a/0", "a/65536", "a/+1", "/1", "a/1/2", "a%/1", "a%2/1", "a%2f/1", "a%00/1",
            "a:b/1", "[::1]/1", "a%ff/1",
        ] {
            assert_eq!(UdpTarget::from_path(&format!("{PREFIX}{rest}")), None, "{rest}");
        }
        assert_eq!(UdpTarget::from_path(&format!("{PREFIX}{long}/1")), None);
        assert_eq!(UdpTarget::from_path("/other/a/1"), None);
    }
}
