//! URLs: which server, and what to ask it for (RFC 3986, RFC 9110 section 4.2).
//!
//! The `http` crate holds their parts. They are taken apart here and not by the `url` crate, which mends like a browser
//! what was written wrong (missing slashes, backslashes, tabs): whoever writes a command or a program is told instead
//! what was expected and what came.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};

/// The default port of https.
const HTTPS: u16 = 443;
/// The default port of http.
const HTTP: u16 = 80;

/// A server: the URLs of one origin share connections.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// https rather than http.
    pub secure: bool,
    /// A DNS name in small letters, or an IP address (IPv6 without brackets).
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Origin {
    /// The address, where the host is one.
    pub fn address(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// Whether the host can only be this machine.
    pub fn is_local(&self) -> bool {
        let name = self.host == "localhost" || self.host.ends_with(".localhost");
        name || self.address().is_some_and(|address| address.is_loopback())
    }

    /// As it stands in a URL: `example.com`, `[::1]:4433`.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == default_port(self.secure) { host } else { format!("{host}:{}", self.port) }
    }

    /// With the port in any case, as CONNECT names it.
    pub(crate) fn authority_with_port(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// `https` or `http`.
    pub fn scheme(&self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}://{}", self.scheme(), self.authority())
    }
}

fn default_port(secure: bool) -> u16 {
    if secure { HTTPS } else { HTTP }
}

/// A URL to fetch. It is displayed as it was given, but shortened if it is very long.
#[derive(Clone, Debug)]
pub struct Target {
    text: String,
    pub(crate) origin: Origin,
    path: PathAndQuery,
}

impl Target {
    /// Reads a URL.
    ///
    /// # Errors
    /// What was expected and what came, in words.
    pub fn parse(text: &str) -> Result<Target, String> {
        let text = text.trim();
        let (secure, rest) = after_scheme(text)?;
        let rest = rest.split('#').next().unwrap_or(rest);
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let origin = parse_authority(secure, authority)?;
        let path = if path.starts_with('/') { escape(path) } else { format!("/{}", escape(path)) };
        let path = PathAndQuery::try_from(path)
            .map_err(|error| format!("not a usable path ({error}); check its letters and its length"))?;
        Ok(Target { text: text.to_owned(), origin, path })
    }

    /// Whose URL it is.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The path without the query, always beginning with `/`.
    pub fn path(&self) -> &str {
        self.path.path()
    }

    /// What a reference in this document means, such as the `Location` of a redirect (RFC 3986 section 5.2).
    ///
    /// # Errors
    /// As [`Target::parse`].
    pub fn join(&self, reference: &str) -> Result<Target, String> {
        let reference = reference.trim();
        let reference = reference.split('#').next().unwrap_or(reference);
        if has_scheme(reference) {
            return Target::parse(reference);
        }
        if let Some(rest) = reference.strip_prefix("//") {
            return Target::parse(&format!("{}://{rest}", self.origin.scheme()));
        }
        let (path, query) = reference.split_at(reference.find('?').unwrap_or(reference.len()));
        let base = self.path.path();
        let joined = match path {
            "" if query.is_empty() => {
                return Target::parse(&format!("{}{}", self.origin, self.path));
            }
            "" => base.to_owned(),
            path if path.starts_with('/') => path.to_owned(),
            path => format!("{}/{path}", base.rsplit_once('/').map_or("", |(folder, _)| folder)),
        };
        Target::parse(&format!("{}{}{query}", self.origin, without_dots(&joined)))
    }

    /// What a request names, with `authority` in the place of the URL's own if there is one: what a `Host` header asks for.
    ///
    /// # Errors
    /// If the authority cannot stand in a URL.
    pub fn uri(&self, authority: Option<&Authority>) -> Result<Uri, http::Error> {
        let scheme = if self.origin.secure { Scheme::HTTPS } else { Scheme::HTTP };
        let builder = Uri::builder().scheme(scheme).path_and_query(self.path.clone());
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
pub fn shortened(text: &str) -> Cow<'_, str> {
    const MOST: usize = 300;
    const KEPT: usize = 120;
    let count = text.chars().count();
    if count <= MOST {
        return Cow::Borrowed(text);
    }
    let begin: String = text.chars().take(KEPT).collect();
    let end: String = text.chars().skip(count.saturating_sub(KEPT)).collect();
    Cow::Owned(format!("{begin}…{end}"))
}

/// Whether a reference begins with `SCHEME:`.
fn has_scheme(reference: &str) -> bool {
    let end = reference.find([':', '/', '?']).unwrap_or(reference.len());
    let (scheme, rest) = reference.split_at(end);
    rest.starts_with(':')
        && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// A path without its `.` and `..` (RFC 3986 section 5.2.4).
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            segment => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

/// Whether it is https, and what comes after `://`.
fn after_scheme(text: &str) -> Result<(bool, &str), String> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err(if text.is_empty() {
            "expected a URL, got nothing; write https://HOST/PATH".to_owned()
        } else {
            format!("expected a URL that begins with https://; write https://{}", text.escape_debug())
        });
    };
    if scheme.eq_ignore_ascii_case("https") {
        Ok((true, rest))
    } else if scheme.eq_ignore_ascii_case("http") {
        Ok((false, rest))
    } else {
        Err(format!("expected https:// or http://, got {}://", scheme.escape_debug()))
    }
}

/// Reads `HOST:PORT`.
///
/// # Errors
/// What was expected and what came, in words.
pub(crate) fn parse_authority(secure: bool, authority: &str) -> Result<Origin, String> {
    if authority.contains('@') {
        return Err(
            "a user name or password in a URL is not sent; give it in a header 'Authorization: …'".to_owned()
        );
    }
    if authority.parse::<Ipv6Addr>().is_ok() {
        let scheme = if secure { "https" } else { "http" };
        return Err(format!("an IPv6 address stands in brackets: write {scheme}://[{authority}]/"));
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
        None if port.is_empty() => default_port(secure),
        Some("") => default_port(secure),
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => match digits.parse() {
            Ok(port) if port > 0 => port,
            _ => return Err(format!("expected a port from 1 to 65535, got {digits}")),
        },
        _ => return Err(format!("expected HOST:PORT, got {}", authority.escape_debug())),
    };
    Ok(Origin { secure, host, port })
}

fn parse_name(host: &str) -> Result<String, String> {
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.is_empty() {
        return Err("the host is missing; write https://HOST/PATH".to_owned());
    }
    if !host.is_ascii() {
        return Err(format!("the host {} is not ASCII; write its ASCII form (xn--…)", host.escape_debug()));
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
            ("http://example.com:80/", "http://example.com/"),
            ("HTTP://example.com:443/", "http://example.com:443/"),
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
            ("ftp://example.com/", "got ftp://"),
            ("https:///path", "the host is missing"),
            ("https://user:secret@example.com/", "in a header 'Authorization"),
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
            ("https://exe\u{202e}fdp.example/", r"the host exe\u{202e}fdp.example is not ASCII"),
            ("https://1.2.3/", "nor an IPv4 address"),
            ("https://256.1.1.1/", "nor an IPv4 address"),
        ];
        for (text, expected) in cases {
            let error = Target::parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn references_are_resolved() {
        let base = Target::parse("https://a.example:4433/b/c/d?q#f").unwrap();
        let cases = [
            ("/x", "https://a.example:4433/x"),
            ("x", "https://a.example:4433/b/c/x"),
            ("./x/", "https://a.example:4433/b/c/x/"),
            ("../x?y=/../z", "https://a.example:4433/b/x?y=/../z"),
            ("../../../../x", "https://a.example:4433/x"),
            ("..", "https://a.example:4433/b/"),
            ("?y", "https://a.example:4433/b/c/d?y"),
            ("", "https://a.example:4433/b/c/d?q"),
            ("#g", "https://a.example:4433/b/c/d?q"),
            ("//b.example/x", "https://b.example/x"),
            ("http://b.example/x#y", "http://b.example/x"),
            ("/a:b", "https://a.example:4433/a:b"),
            ("https://[::1]/", "https://[::1]/"),
        ];
        for (reference, expected) in cases {
            let target = base.join(reference).unwrap_or_else(|error| panic!("{reference}: {error}"));
            assert_eq!(target.uri(None).unwrap().to_string(), expected, "{reference}");
        }
        for bad in ["mailto:x", "ftp://a/", "https://", "//", "https://a:b@c/"] {
            assert!(base.join(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn references_never_panic() {
        use proptest::prelude::*;
        let base = Target::parse("https://a.example/b/c").unwrap();
        proptest!(|(reference in "\\PC{0,80}")| {
            if let Ok(target) = base.join(&reference) {
                prop_assert!(target.path().starts_with('/'));
            }
        });
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
