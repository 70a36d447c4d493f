//! Whom to measure.

use crate::Error;
use godwit_text::plain_error as plain;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

/// The server to measure.
#[derive(Debug)]
pub(super) struct Target {
    /// As it was typed.
    pub(super) text: String,
    /// The name for TLS.
    pub(super) name: String,
    pub(super) addr: SocketAddr,
}

impl Target {
    pub(super) fn resolve(text: &str) -> Result<Target, Error> {
        let expected = || Error::new(format!("{text:?}: expected HOST:PORT, for example 192.0.2.1:4433"));
        let (host, port) = text.rsplit_once(':').ok_or_else(expected)?;
        let port: u16 = port.parse().map_err(|_| expected())?;
        let name = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if name.is_empty() || port == 0 || (name == host && host.contains(':')) {
            return Err(expected());
        }
        let addr = resolve(name, port)?;
        Ok(Target { text: text.to_owned(), name: name.to_owned(), addr })
    }

    /// Any address of ours that reaches it.
    pub(super) fn local(&self) -> SocketAddr {
        match self.addr {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        }
    }
}

/// The first address of a name.
pub(in crate::perf) fn resolve(name: &str, port: u16) -> Result<SocketAddr, Error> {
    let unknown = |problem: String| Error::new(format!("cannot find {name}: {problem}; check the name"));
    let mut found = (name, port).to_socket_addrs().map_err(|error| unknown(plain(&error)))?;
    found.next().ok_or_else(|| unknown("it has no address".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_hosts_with_ports() {
        let target = Target::resolve("127.0.0.1:4433").unwrap();
        assert_eq!((target.name.as_str(), target.addr.port()), ("127.0.0.1", 4433));
        let target = Target::resolve("[::1]:1").unwrap();
        assert_eq!((target.name.as_str(), target.local().is_ipv6()), ("::1", true));
        for wrong in ["", "host", ":1", "host:", "host:0", "host:65536", "::1:4433", "[]:1"] {
            let failure = Target::resolve(wrong).unwrap_err().to_string();
            assert!(failure.contains("expected HOST:PORT"), "{wrong:?}: {failure}");
        }
    }
}
