//! Where a server is for those who use it on this machine.

use std::net::{IpAddr, SocketAddr};

/// A place to reach a server at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SiteAddress {
    /// The host as a browser's address line has it: a name, or an address, in brackets where it is one of IPv6.
    pub host: String,
    /// The port, for UDP and TCP alike.
    pub port: u16,
}

impl SiteAddress {
    /// A place to reach a server at; `host` as [`SiteAddress::host`] has it.
    pub fn new(host: impl Into<String>, port: u16) -> SiteAddress {
        SiteAddress { host: host.into(), port }
    }

    /// The URL of what is at the top there.
    pub fn url(&self) -> String {
        match self.port {
            443 => format!("https://{}/", self.host),
            port => format!("https://{}:{port}/", self.host),
        }
    }

    /// Names for "every address" (`localhost`, and that of the machine where there is one), and the address itself
    /// otherwise: with HTTP/3 forced, a browser that is sent to `localhost` tries one address only, and that may not be
    /// the one that is bound.
    pub(crate) fn all(addresses: &[SocketAddr], machine: Option<&str>) -> Vec<SiteAddress> {
        let mut all = Vec::new();
        for address in addresses {
            let port = address.port();
            match address.ip() {
                ip if ip.is_unspecified() => {
                    all.push(SiteAddress::new("localhost", port));
                    all.extend(machine.map(|name| SiteAddress::new(name, port)));
                }
                IpAddr::V4(ip) => all.push(SiteAddress::new(ip.to_string(), port)),
                IpAddr::V6(ip) => all.push(SiteAddress::new(format!("[{ip}]"), port)),
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_its_own_is_named_as_such() {
        let addresses = ["127.0.0.1:4433".parse().unwrap(), "[::1]:443".parse().unwrap()];
        let urls: Vec<String> =
            SiteAddress::all(&addresses, Some("box")).iter().map(SiteAddress::url).collect();
        assert_eq!(urls, ["https://127.0.0.1:4433/", "https://[::1]/"]);
    }
}
