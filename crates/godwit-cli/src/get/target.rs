//! URLs: which server, and what to ask it for (RFC 3986, RFC 9110 section 4.2).

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};

/// The default port of https.
const HTTPS: u16 = 443;

/// A server: the URLs of one origin share a connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Origin {
    /// A DNS name in small letters, or an IP address (IPv6 without brackets).
    pub(super) host: String,
    pub(super) port: u16,
}

impl Origin {
    /// The address, where the host is one.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// Whether the host can only be this machine.
    pub(super) fn is_local(&self) -> bool {
        let name = self.host == "localhost" || self.host.ends_with(".localhost");
        name || self.address().is_some_and(|address| address.is_loopback())
    }

    /// As it stands in a URL: `example.com`, `[::1]:4433`.
    pub(super) fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == HTTPS { host } else { format!("{host}:{}", self.port) }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "https://{}", self.authority())
    }
}

/// A URL to fetch. It is displayed as it was given, but shortened if it is very long.
#[derive(Clone, Debug)]
pub(super) struct Target {
    text: String,
    pub(super) origin: Origin,
    path: PathAndQuery,
}

impl Target {
    /// Reads a URL.
    ///
    /// # Errors
    /// What was expected and what came, in words.
    pub(super) fn parse(text: &str) -> Result<Target, String> {
        let text = text.trim();
        let rest = after_scheme(text)?;
        let rest = rest.split('#').next().unwrap_or(rest);
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let origin = parse_authority(authority)?;
        let path = if path.starts_with('/') { escape(path) } else { format!("/{}", escape(path)) };
        let path = PathAndQuery::try_from(path)
            .map_err(|error| format!("not a usable path ({error}); check its letters and its length"))?;
        Ok(Target { text: text.to_owned(), origin, path })
    }

    /// The path without the query, always beginning with `/`.
    pub(super) fn path(&self) -> &str {
        self.path.path()
    }

    /// What the request names, with the authority that a `Host` header asked for instead of the URL's own.
    pub(super) fn uri(&self, authority: Option<&Authority>) -> Result<Uri, http::Error> {
        let builder = Uri::builder().scheme(Scheme::HTTPS).path_and_query(self.path.clone());
        match authority {
            Some(authority) => builder.authority(authority.clone()).build(),
            None => builder.authority(self.origin.authority()).build(),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", shortened(&self.text).escape_debug())
    }
}

/// The beginning and the end of a text that would fill the screen.
pub(super) fn shortened(text: &str) -> Cow<'_, str> {
    const MOST: usize = 300;
    const KEPT: usize = 120;
    let count = text.chars().count();
    if count <= MOST {
        return Cow::Borrowed(text);
    }
    let begin: String = text.chars().take(KEPT).collect();
    let end: String = text.chars().skip(count - KEPT).collect();
    Cow::Owned(format!("{begin}…{end}"))
}

fn after_scheme(text: &str) -> Result<&str, String> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err(if text.is_empty() {
            "expected a URL, got nothing; write https://HOST/PATH".to_owned()
        } else {
            format!("expected a URL that begins with https://; write https://{}", text.escape_debug())
        });
    };
    if scheme.eq_ignore_ascii_case("https") {
        Ok(rest)
    } else if scheme.eq_ignore_ascii_case("http") {
        Err("HTTP/3 is always encrypted, there is no http:// with it; write https://".to_owned())
    } else {
        Err(format!("expected https://, got {}://", scheme.escape_debug()))
    }
}

fn parse_authority(authority: &str) -> Result<Origin, String> {
    if authority.contains('@') {
        return Err(
            "a user name or password in a URL is not sent; give it with -H 'Authorization: …'".to_owned()
        );
    }
    if authority.parse::<Ipv6Addr>().is_ok() {
        return Err(format!("an IPv6 address stands in brackets: write https://[{authority}]/"));
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) =
                rest.split_once(']').ok_or("the [ of an IPv6 address is not closed with ]")?;
            let address: Ipv6Addr = host.parse().map_err(|_| format!("[{host}] is not an IPv6 address"))?;
            (address.to_string(), after)
        }
        None => {
            let (host, port) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
            (parse_name(host)?, port)
        }
    };
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => HTTPS,
        Some("") => HTTPS,
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => match digits.parse() {
            Ok(port) if port > 0 => port,
            _ => return Err(format!("expected a port from 1 to 65535, got {digits}")),
        },
        _ => return Err(format!("expected HOST:PORT, got {}", authority.escape_debug())),
    };
    Ok(Origin { host, port })
}

fn parse_name(host: &str) -> Result<String, String> {
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.is_empty() {
        return Err("the host is missing; write https://HOST/PATH".to_owned());
    }
    if !host.is_ascii() {
        return Err(format!("the host {host} is not ASCII; write its ASCII form (xn--…)"));
    }
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    if host.len() > 253 || !host.split('.').all(label) {
        return Err(format!("{} is not a host name", host.escape_debug()));
    }
    let numeric = host.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    if numeric && host.parse::<Ipv4Addr>().is_err() {
        return Err(format!("{host} is neither a host name nor an IPv4 address (such as 192.0.2.1)"));
    }
    Ok(host.to_ascii_lowercase())
}

/// Escapes what may not stand in a path or query, as browsers do, and leaves what is escaped already.
fn escape(path: &str) -> String {
    use fmt::Write;
    let mut escaped = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_a_server_and_a_path() {
        let cases = [
            ("https://example.com", "https://example.com/"),
            ("HTTPS://Example.COM:443/a/b?c=d#e", "https://example.com/a/b?c=d"),
            ("https://example.com.:4433?q", "https://example.com:4433/?q"),
            ("https://127.0.0.1:4433/x", "https://127.0.0.1:4433/x"),
            ("https://[::1]:4433/x", "https://[::1]:4433/x"),
            ("https://[0:0::1]/", "https://[::1]/"),
            ("  https://a_b.c/%20 ü\"{}  ", "https://a_b.c/%20%20%C3%BC%22%7B%7D"),
            ("https://example.com:/", "https://example.com/"),
            ("https://example.com/a:b@c", "https://example.com/a:b@c"),
        ];
        for (text, expected) in cases {
            let target = Target::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(target.uri(None).unwrap().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let cases = [
            ("", "write https://HOST/PATH"),
            ("example.com/x", "write https://example.com/x"),
            ("http://example.com/", "always encrypted"),
            ("ftp://example.com/", "got ftp://"),
            ("https:///path", "the host is missing"),
            ("https://user:secret@example.com/", "-H 'Authorization"),
            ("https://example.com:0/", "from 1 to 65535"),
            ("https://example.com:65536/", "from 1 to 65535"),
            ("https://example.com:99999999999999999999/", "from 1 to 65535"),
            ("https://example.com:x/", "expected HOST:PORT"),
            ("https://::1/", "write https://[::1]/"),
            ("https://[::1/", "not closed"),
            ("https://[::g]/", "not an IPv6 address"),
            ("https://[::1]x/", "expected HOST:PORT"),
            ("https://a b/", "not a host name"),
            ("https://a..b/", "not a host name"),
            ("https://bücher.example/", "xn--"),
            ("https://1.2.3/", "nor an IPv4 address"),
            ("https://256.1.1.1/", "nor an IPv4 address"),
        ];
        for (text, expected) in cases {
            let error = Target::parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_host_header_names_another_authority() {
        let target = Target::parse("https://127.0.0.1:4433/x").unwrap();
        let other = Authority::from_static("example.com");
        assert_eq!(target.uri(Some(&other)).unwrap().to_string(), "https://example.com/x");
    }

    #[test]
    fn only_this_machine_is_local() {
        let local = |text: &str| Target::parse(text).unwrap().origin.is_local();
        assert!(local("https://localhost") && local("https://a.localhost") && local("https://[::1]"));
        assert!(local("https://127.0.0.2"));
        assert!(!local("https://localhost.example") && !local("https://192.0.2.1"));
    }
}
