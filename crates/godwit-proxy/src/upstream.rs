//! Where requests go: the URL of an upstream, checked when it is read.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// How an upstream is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scheme {
    /// HTTP/1.1 over TCP.
    Http,
    /// HTTP/2 or HTTP/1.1 over TLS, as ALPN decides.
    Https,
    /// HTTP/2 over TCP with prior knowledge (RFC 9113 section 3.3).
    H2c,
}

impl Scheme {
    fn default_port(self) -> u16 {
        if self == Scheme::Https { 443 } else { 80 }
    }

    /// The scheme as requests name it.
    pub(crate) fn of_uri(self) -> http::uri::Scheme {
        if self == Scheme::Https { http::uri::Scheme::HTTPS } else { http::uri::Scheme::HTTP }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
            Scheme::H2c => "h2c",
        })
    }
}

/// One server that requests go to, made from a URL: `http://127.0.0.1:8080`, `https://origin.example`,
/// `h2c://[::1]:9000`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Upstream {
    scheme: Scheme,
    /// A name, or an address without brackets.
    host: String,
    port: u16,
}

/// What is wrong with the URL of an upstream, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamError {
    url: String,
    what: String,
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "upstream \"{}\": {}", self.url.escape_debug(), self.what)
    }
}

impl std::error::Error for UpstreamError {}

impl Upstream {
    /// How it is spoken to.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Its name or address; an IPv6 address has no brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Host and port as logs show them, such as `127.0.0.1:8080`.
    pub fn address(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// Host and port as the Host field has them: without the scheme's own port.
    pub(crate) fn authority(&self) -> String {
        let mut address = self.address();
        if self.port == self.scheme.default_port() {
            address.truncate(address.rfind(':').unwrap_or(address.len()));
        }
        address
    }

    fn parse(url: &str) -> Result<Self, String> {
        let remedy = "write it as http://HOST:PORT, https://HOST or h2c://HOST:PORT";
        if url.is_empty() {
            return Err(format!("it is empty; {remedy}"));
        }
        let (scheme, rest) = url.split_once("://").ok_or_else(|| format!("it has no scheme; {remedy}"))?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            "h2c" => Scheme::H2c,
            "ws" => return Err("WebSockets come with http://; write that".to_owned()),
            "wss" => return Err("WebSockets come with https://; write that".to_owned()),
            other => {
                return Err(format!("\"{}\" is not a scheme known here; {remedy}", other.escape_debug()));
            }
        };
        let (authority, path) = match rest.find(['/', '?', '#']) {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        if !matches!(path, "" | "/") {
            return Err(format!(
                "it has a path (\"{}\"), which would not be used; leave the path out",
                path.escape_debug()
            ));
        }
        if authority.contains('@') {
            return Err(
                "user names and passwords cannot stand here; set the authorization header instead".to_owned()
            );
        }
        let (host, port) = split_port(authority)?;
        let host = check_host(host)?;
        Ok(Upstream { scheme, host, port: port.unwrap_or_else(|| scheme.default_port()) })
    }
}

/// Host, with brackets if it has them, and port.
fn split_port(authority: &str) -> Result<(&str, Option<u16>), String> {
    let after_bracket = authority.rfind(']').map_or(0, |at| at.saturating_add(1));
    let (host, port) = match authority.get(after_bracket..).and_then(|rest| rest.rfind(':')) {
        Some(at) => {
            let (host, port) = authority.split_at(after_bracket.saturating_add(at));
            (host, port.get(1..))
        }
        None => (authority, None),
    };
    if !host.starts_with('[') && host.contains(':') {
        return Err("an IPv6 address stands in brackets, such as [::1]:8080".to_owned());
    }
    let Some(port) = port else { return Ok((host, None)) };
    match port.parse::<u16>() {
        Ok(number) if number > 0 && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            Ok((host, Some(number)))
        }
        _ => Err(format!("\"{}\" is not a port; ports are 1 to 65535", port.escape_debug())),
    }
}

fn check_host(host: &str) -> Result<String, String> {
    if host.is_empty() {
        return Err("it names no host; write for instance http://127.0.0.1:8080".to_owned());
    }
    if let Some(inner) = host.strip_prefix('[') {
        let inner = inner.strip_suffix(']').ok_or("a bracket is not closed")?;
        return match inner.parse::<IpAddr>() {
            Ok(IpAddr::V6(addr)) => Ok(addr.to_string()),
            _ => Err(format!("\"{}\" is not an IPv6 address", inner.escape_debug())),
        };
    }
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    let name = host.strip_suffix('.').unwrap_or(host);
    if name.len() > 253 || !name.split('.').all(label) {
        return Err(format!("\"{}\" is not a host name", host.escape_debug()));
    }
    let numeric = name.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    if numeric && name.parse::<std::net::Ipv4Addr>().is_err() {
        return Err(format!("\"{host}\" is not an IPv4 address"));
    }
    Ok(host.to_ascii_lowercase())
}

impl FromStr for Upstream {
    type Err = UpstreamError;

    fn from_str(url: &str) -> Result<Self, UpstreamError> {
        Self::parse(url).map_err(|what| UpstreamError { url: url.to_owned(), what })
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        for (url, scheme, host, port, address, authority) in [
            ("http://127.0.0.1:8080", Scheme::Http, "127.0.0.1", 8080, "127.0.0.1:8080", "127.0.0.1:8080"),
            (
                "http://Origin.example/",
                Scheme::Http,
                "origin.example",
                80,
                "origin.example:80",
                "origin.example",
            ),
            (
                "HTTPS://origin.example",
                Scheme::Https,
                "origin.example",
                443,
                "origin.example:443",
                "origin.example",
            ),
            ("h2c://[0:0::1]:9000", Scheme::H2c, "::1", 9000, "[::1]:9000", "[::1]:9000"),
            ("https://[::1]", Scheme::Https, "::1", 443, "[::1]:443", "[::1]"),
            ("http://app_1:80", Scheme::Http, "app_1", 80, "app_1:80", "app_1"),
        ] {
            let upstream: Upstream = url.parse().unwrap();
            assert_eq!((upstream.scheme(), upstream.host(), upstream.port()), (scheme, host, port), "{url}");
            assert_eq!((upstream.address().as_str(), upstream.authority().as_str()), (address, authority));
            assert_eq!(upstream.to_string().parse::<Upstream>().unwrap(), upstream, "{url}");
        }
    }

    #[test]
    fn mistakes_are_told_with_a_remedy() {
        for (url, said) in [
            ("", "it is empty"),
            ("127.0.0.1:8080", "it has no scheme"),
            ("ftp://a", "\"ftp\" is not a scheme known here"),
            ("ws://a", "write that"),
            ("http://", "names no host"),
            ("http://:80", "names no host"),
            ("http://a:0", "is not a port"),
            ("http://a:99999", "is not a port"),
            ("http://a:+80", "is not a port"),
            ("http://a:", "is not a port"),
            ("http://::1", "in brackets"),
            ("http://[::1", "bracket is not closed"),
            ("http://[::g]", "is not an IPv6 address"),
            ("http://a/b", "leave the path out"),
            ("http://a?x", "leave the path out"),
            ("http://u:p@a", "authorization header"),
            ("http://a b", "is not a host name"),
            ("http://a..b", "is not a host name"),
            ("http://1.2.3.456", "is not an IPv4 address"),
        ] {
            let error = url.parse::<Upstream>().unwrap_err().to_string();
            assert!(error.contains(said) && error.contains(&format!("\"{url}\"")), "{url}: {error}");
        }
    }
}
