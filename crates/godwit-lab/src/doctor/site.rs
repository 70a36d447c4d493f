//! A site to examine, as it is named on a command line.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use http::Uri;
use http::uri::Authority;

/// How this program names itself to servers.
pub(super) const USER_AGENT_NAME: &str = concat!("godwit-doctor/", env!("CARGO_PKG_VERSION"));

/// A site to examine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Site {
    /// A DNS name in small letters, or an IP address without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Path and query.
    pub path: String,
}

impl Site {
    /// The address, where the host is one.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.host.parse::<IpAddr>().ok().map(|address| SocketAddr::new(address, self.port))
    }

    /// Whether it is this machine by its own name, which is not in the DNS (RFC 6761 section 6.3).
    pub(super) fn is_local(&self) -> bool {
        self.host == "localhost" || self.host.ends_with(".localhost")
    }

    /// Host and port as in a URL.
    pub(super) fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == 443 { host } else { format!("{host}:{}", self.port) }
    }

    pub(super) fn url(&self) -> String {
        format!("https://{}{}", self.authority(), self.path)
    }
}

impl FromStr for Site {
    type Err = String;

    /// Reads a URL, or a host alone.
    fn from_str(text: &str) -> Result<Site, String> {
        parse(text)
    }
}

fn parse(text: &str) -> Result<Site, String> {
    let text = text.trim();
    let rest = match text.split_once("://") {
        Some(("https", rest)) => rest,
        Some((other, _)) => return Err(format!("HTTP/3 is for https, not {other}")),
        None => text,
    };
    let rest = rest.split('#').next().unwrap_or(rest);
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let authority: Authority = authority.parse().map_err(|_| format!("{authority:?} is not a host"))?;
    if authority.as_str().contains('@') {
        return Err("it has a user name in it; leave that out".to_owned());
    }
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    path.parse::<Uri>().map_err(|error| format!("not a usable path ({error})"))?;
    let host = authority.host().trim_matches(['[', ']']).to_ascii_lowercase();
    // A port that is none is not told from no port by `Authority::port`.
    let port = match authority.as_str().strip_prefix(authority.host()).and_then(|rest| rest.strip_prefix(':'))
    {
        Some(port) => port.parse().unwrap_or(0),
        None => 443,
    };
    if host.is_empty() || port == 0 {
        return Err("expected a host and, if it is not 443, its port (1 to 65535)".to_owned());
    }
    Ok(Site { host, port, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_are_read() {
        let site =
            |host: &str, port, path: &str| Ok(Site { host: host.to_owned(), port, path: path.to_owned() });
        assert_eq!(parse("https://Example.com"), site("example.com", 443, "/"));
        assert_eq!(parse("example.com:8443/a?b#c"), site("example.com", 8443, "/a?b"));
        assert_eq!(parse("https://[::1]:4433?x"), site("::1", 4433, "/?x"));
        for bad in ["http://example.com", "https://", "https://a:b@c/", "https://h:0/", "h:99999"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
