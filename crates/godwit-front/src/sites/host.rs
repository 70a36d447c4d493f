//! Which host a request is for (RFC 9110 section 7.2).
//!
//! Hosts are compared without their port, in small letters, without the dot at the end that a fully qualified
//! name may have; IPv6 addresses in their canonical form and without brackets.

use std::cell::RefCell;
use std::net::Ipv6Addr;
use std::sync::Arc;

use http::header::HOST;
use http::uri::Authority;
use http::{Request, Version};

/// DNS allows no longer names.
const LONGEST: usize = 253;

/// A host as it is compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Host(Arc<str>);

impl Host {
    /// Takes `example.com`, `Example.com:443`, `192.0.2.1`, `[::1]:4433`. `None` if it is no host.
    pub(crate) fn parse(text: &str) -> Option<Host> {
        if let Some(rest) = text.strip_prefix('[') {
            let (address, port) = rest.split_once(']')?;
            let address: Ipv6Addr = address.parse().ok()?;
            return is_port(port).then(|| Host(address.to_string().into()));
        }
        let (name, port) = text.split_at(text.find(':').unwrap_or(text.len()));
        let name = name.strip_suffix('.').unwrap_or(name);
        let fits = (1..=LONGEST).contains(&name.len()) && name.split('.').all(is_label);
        (fits && is_port(port)).then(|| Host(name.to_ascii_lowercase().into()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// As it stands in a URL: IPv6 addresses in brackets.
    pub(crate) fn in_url(&self) -> String {
        if self.0.contains(':') { format!("[{}]", self.0) } else { self.0.to_string() }
    }
}

/// Nothing, or a colon and digits: an empty port is allowed (RFC 3986 section 3.2.3).
fn is_port(text: &str) -> bool {
    match text.strip_prefix(':') {
        Some(digits) => {
            let all_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.is_empty() || (all_digits && digits.parse::<u16>().is_ok())
        }
        None => text.is_empty(),
    }
}

/// The underscore is in no host's name by the book, but in many by habit.
fn is_label(label: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !label.is_empty() && label.len() <= 63 && label.bytes().all(allowed)
}

thread_local! {
    /// The last authority that was a host, and which: the next request is most often for the same.
    static LAST: RefCell<Option<(Box<str>, Host)>> = const { RefCell::new(None) };
}

/// The host of an authority, which must not have a user name.
fn of_authority(authority: &str) -> Result<Host, HostProblem> {
    LAST.with_borrow_mut(|last| {
        if let Some((text, host)) = last
            && **text == *authority
        {
            return Ok(host.clone());
        }
        let host = if authority.contains('@') { None } else { Host::parse(authority) };
        let host = host.ok_or(HostProblem::Malformed)?;
        // A port may have any number of zeros.
        if authority.len() <= LONGEST {
            *last = Some((authority.into(), host.clone()));
        }
        Ok(host)
    })
}

/// Why a request has no host that could be looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostProblem {
    /// HTTP/1.1 without `Host`, or with several.
    NotOne,
    /// It is there, but it is not a host and a port.
    Malformed,
}

/// The host of a request, from its target if that has one (HTTP/2, HTTP/3, absolute form), else from `Host`.
/// `None` is what HTTP/1.0 may come with.
pub(crate) fn of<B>(request: &Request<B>) -> Result<Option<Host>, HostProblem> {
    if let Some(authority) = request.uri().authority().map(Authority::as_str) {
        return of_authority(authority).map(Some);
    }
    let mut values = request.headers().get_all(HOST).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => of_authority(value.to_str().map_err(|_| HostProblem::Malformed)?).map(Some),
        (None, _) if request.version() < Version::HTTP_11 => Ok(None),
        _ => Err(HostProblem::NotOne),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn host(text: &str) -> Option<String> {
        Host::parse(text).map(|host| host.0.to_string())
    }

    #[test]
    fn hosts_are_compared_without_port_case_and_last_dot() {
        for (text, expected) in [
            ("example.com", "example.com"),
            ("EXAMPLE.com:443", "example.com"),
            ("example.com.", "example.com"),
            ("example.com.:8443", "example.com"),
            ("example.com:", "example.com"),
            ("localhost:4433", "localhost"),
            ("192.0.2.1:80", "192.0.2.1"),
            ("[::1]:4433", "::1"),
            ("[0:0:0:0:0:0:0:1]", "::1"),
            ("[2001:DB8::1]", "2001:db8::1"),
            ("a_b.example", "a_b.example"),
        ] {
            assert_eq!(host(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "",
            ".",
            ":80",
            "a..b",
            "a b",
            "a/b",
            "user@example.com",
            "example.com:x",
            "example.com:65536",
            "example.com:+1",
            "[::1",
            "[::1]x",
            "[nonsense]",
            "::1",
            "exa\u{301}mple.com",
            "*",
            "a\0b",
            "..",
        ] {
            assert_eq!(host(text), None, "{text}");
        }
        assert_eq!(host(&"a".repeat(64)), None);
        assert_eq!(host(&format!("{}a", "a.".repeat(127))), None);
    }

    fn of_request(uri: &str, hosts: &[&str], version: Version) -> Result<Option<String>, HostProblem> {
        let mut request = Request::builder().uri(uri).version(version);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        of(&request.body(()).unwrap()).map(|host| host.map(|host| host.0.to_string()))
    }

    #[test]
    fn the_target_comes_before_the_header() {
        let one = |name: &str| Ok(Some(name.to_owned()));
        assert_eq!(of_request("/x", &["a.test:1"], Version::HTTP_11), one("a.test"));
        assert_eq!(of_request("http://b.test/x", &["a.test"], Version::HTTP_11), one("b.test"));
        assert_eq!(of_request("https://b.test:4433/x", &[], Version::HTTP_3), one("b.test"));
        assert_eq!(of_request("/x", &[], Version::HTTP_11), Err(HostProblem::NotOne));
        assert_eq!(of_request("/x", &["a", "a"], Version::HTTP_11), Err(HostProblem::NotOne));
        assert_eq!(of_request("/x", &[], Version::HTTP_10), Ok(None));
        assert_eq!(of_request("/x", &["a b"], Version::HTTP_11), Err(HostProblem::Malformed));
        assert_eq!(of_request("/x", &["u@a.test"], Version::HTTP_11), Err(HostProblem::Malformed));
        assert_eq!(of_request("http://u:p@a.test/x", &[], Version::HTTP_2), Err(HostProblem::Malformed));
        // Whatever came before, each is looked at for itself.
        for (name, host) in [("A.test:1", "a.test"), ("A.test:1", "a.test"), ("a.test:12", "a.test")] {
            assert_eq!(of_request(&format!("https://{name}/x"), &["b.test"], Version::HTTP_3), one(host));
            assert_eq!(of_request("/x", &["u@a.test"], Version::HTTP_11), Err(HostProblem::Malformed));
        }
    }

    proptest! {
        #[test]
        fn a_parsed_host_parses_to_itself(text in "[ -~]{0,40}") {
            if let Some(host) = Host::parse(&text) {
                prop_assert_eq!(Host::parse(&host.in_url()), Some(host));
            }
        }
    }
}
