//! Proxies (RFC 9110 sections 3.7 and 9.3.6): https goes through a tunnel made by CONNECT, http is asked for with the
//! whole URL. HTTP/3 does not go through either.

use std::ffi::OsString;
use std::fmt;
use std::net::Ipv6Addr;

use base64::prelude::{BASE64_STANDARD, Engine};
use http::HeaderValue;

use crate::target::{Origin, parse_authority};

/// An HTTP proxy.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Proxy {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// `Proxy-Authorization`.
    pub(crate) authorization: Option<HeaderValue>,
}

impl Proxy {
    /// Reads `http://user:password@host:port`; the scheme, the user and the port may be missing.
    ///
    /// # Errors
    /// What was expected, in words, and what is wrong. Nothing of the URL is in it but its scheme: where a URL is not as
    /// it should be, a password may stand anywhere.
    pub(crate) fn parse(url: &str) -> Result<Proxy, String> {
        let rest = match url.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some((scheme, _)) if is_scheme(scheme) => {
                return Err(format!("expected http://HOST:PORT, got {scheme}://…"));
            }
            Some(_) => {
                let text =
                    "expected http://HOST:PORT, got something else before ://; is it escaped (%3A%2F%2F)?";
                return Err(text.to_owned());
            }
            None => url,
        };
        let (rest, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if path.contains('@') {
            let text = "expected http://USER:PASSWORD@HOST:PORT, got a /, ? or # before the @; \
                in a password they are written %2F, %3F and %23";
            return Err(text.to_owned());
        }
        let (user, place) = match rest.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, rest),
        };
        if place.is_empty() || place.starts_with(':') {
            return Err("expected http://HOST:PORT, got no host".to_owned());
        }
        let origin = parse_authority(false, place).map_err(|_| wrong_place(place).to_owned())?;
        let authorization = user.map(basic).transpose()?;
        Ok(Proxy { host: origin.host, port: origin.port, authorization })
    }
}

/// Whether a text can be one (RFC 3986 section 3.1).
fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// What is wrong with a host and a port that are none.
fn wrong_place(place: &str) -> &'static str {
    let host = match place.rsplit_once(']') {
        Some((host, _)) => format!("{host}]"),
        None => place.split(':').next().unwrap_or(place).to_owned(),
    };
    if place.parse::<Ipv6Addr>().is_ok() {
        "expected http://HOST:PORT, got an IPv6 address without brackets; write http://[ADDRESS]:PORT"
    } else if parse_authority(false, &host).is_ok() {
        "expected http://HOST:PORT, got something else than a port from 1 to 65535 after the host; \
         is a user name meant? (http://USER:PASSWORD@HOST:PORT)"
    } else {
        "expected http://HOST:PORT, got a host that is neither a name nor an IP address"
    }
}

/// Without the password.
impl fmt::Display for Proxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(formatter, "[{}]:{}", self.host, self.port),
            false => write!(formatter, "{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Proxy({self})")
    }
}

/// Name and password as they stand in the header (RFC 7617).
fn basic(user: &str) -> Result<HeaderValue, String> {
    let user = unescape(user);
    let pair = if user.contains(&b':') { user } else { [user, vec![b':']].concat() };
    let value = HeaderValue::try_from(format!("Basic {}", BASE64_STANDARD.encode(pair)));
    let mut value = value.map_err(|_| "the user name cannot be sent".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

/// A text of a URL without its `%xx`.
fn unescape(text: &str) -> Vec<u8> {
    percent_encoding::percent_decode_str(text).collect()
}

/// Which proxy which requests go through.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proxies {
    pub(crate) https: Option<Proxy>,
    pub(crate) http: Option<Proxy>,
    /// Hosts that are reached without: names, those below a name, addresses, or `*`.
    except: Vec<String>,
}

impl Proxies {
    /// All requests go through this one.
    pub(crate) fn all(proxy: Proxy) -> Proxies {
        Proxies { https: Some(proxy.clone()), http: Some(proxy), except: Vec::new() }
    }

    /// Those that `variable` names: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY, in small letters first.
    ///
    /// # Errors
    /// The variable, and what is wrong with it.
    pub(crate) fn from_variables(
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Proxies, (String, String)> {
        // The header `Proxy` of a request to a CGI program comes to it as HTTP_PROXY.
        let is_cgi = variable("REQUEST_METHOD").is_some();
        let find = |name: &str| {
            let small = name.to_ascii_lowercase();
            let large = if is_cgi && name == "HTTP_PROXY" { None } else { variable(name) };
            variable(&small).map(|value| (small, value)).or(large.map(|value| (name.to_owned(), value)))
        };
        let proxy = |name: &str| {
            let Some((name, value)) = find(name) else { return Ok(None) };
            let Some(url) = value.to_str().map(str::trim) else {
                let text = "expected http://HOST:PORT, got bytes that are no text; \
                    in a password they are written %FF and so on";
                return Err((name, text.to_owned()));
            };
            if url.is_empty() {
                return Ok(None);
            }
            Proxy::parse(url).map(Some).map_err(|problem| (name, problem))
        };
        let all = proxy("ALL_PROXY")?;
        let except = find("NO_PROXY").map(|(_, value)| value).unwrap_or_default();
        let except = except.to_string_lossy();
        let except = except.split(',').map(|one| one.trim().to_ascii_lowercase());
        Ok(Proxies {
            https: proxy("HTTPS_PROXY")?.or_else(|| all.clone()),
            http: proxy("HTTP_PROXY")?.or(all),
            except: except.filter(|one| !one.is_empty()).collect(),
        })
    }

    /// The one for requests to `origin`.
    pub(crate) fn of(&self, origin: &Origin) -> Option<&Proxy> {
        let proxy = if origin.secure { &self.https } else { &self.http };
        proxy.as_ref().filter(|_| !self.except.iter().any(|except| is_excepted(origin, except)))
    }
}

fn is_excepted(origin: &Origin, except: &str) -> bool {
    let (name, port) = match except.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, port.parse::<u16>().ok()),
        _ => (except, None),
    };
    let name = name.trim_start_matches("*.").trim_start_matches('.').trim_matches(['[', ']']);
    let is_same =
        origin.host == name || origin.host.strip_suffix(name).is_some_and(|front| front.ends_with('.'));
    name == "*" || (is_same && port.is_none_or(|port| origin.port == port))
}

#[cfg(test)]
mod tests {
    use crate::target::Target;

    use super::*;

    #[test]
    fn urls_of_proxies_are_read() {
        let plain = Proxy::parse("http://proxy.example:3128/").unwrap();
        assert_eq!((plain.to_string().as_str(), plain.authorization), ("proxy.example:3128", None));
        assert_eq!(Proxy::parse("[::1]:8080").unwrap().to_string(), "[::1]:8080");
        assert_eq!(Proxy::parse("proxy.example").unwrap().port, 80);
        let with_user = Proxy::parse("http://Aladdin:open%20sesame@proxy:1").unwrap();
        assert_eq!(with_user.authorization.clone().unwrap(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert!(!format!("{with_user:?}").contains("sesame"));
        for (url, problem) in [
            ("socks5://a:1", "got socks5://"),
            ("http://", "HOST:PORT, got no host"),
            ("", "got no host"),
            (":1", "got no host"),
            ("http://a:x", "HOST:PORT"),
        ] {
            let error = Proxy::parse(url).unwrap_err();
            assert!(error.contains(problem), "{url}: {error}");
        }
    }

    #[test]
    fn no_error_shows_a_password() {
        for (url, problem) in [
            (
                "http://user:pass/word@proxy:1",
                "got a /, ? or # before the @; in a password they are written %2F",
            ),
            ("http://user:80/pass@proxy:1", "before the @"),
            ("user:pass?word@proxy:1", "before the @"),
            ("http://user:#pass@proxy:1", "before the @"),
            ("http:/user:pass@proxy:1", "before the @"),
            ("http://user:pass", "than a port from 1 to 65535 after the host"),
            ("http://[::1]:pass", "than a port from 1 to 65535 after the host"),
            ("http://user:pass@", "got no host"),
            ("http://user:pass@word pass", "neither a name nor an IP address"),
            ("http://user:pass@[pass", "neither a name nor an IP address"),
            ("http://user:pass@]pass", "neither a name nor an IP address"),
            ("user:pass://word@proxy:1", "got something else before ://"),
            ("https://user:pass@proxy:1", "got https://…"),
            ("http://user:pass@fe80::1", "IPv6 address without brackets"),
            ("http://user:p\u{e4}ss@proxy:pass", "than a port"),
        ] {
            let error = Proxy::parse(url).unwrap_err();
            assert!(error.contains(problem), "{url}: {error}");
            let shown = error.replace("PASSWORD", "").replace("in a password", "");
            assert!(!shown.contains("pass") && !shown.contains("word"), "{url}: {error}");
        }
    }

    #[test]
    fn the_environment_says_which_proxy() {
        let of = |pairs: &[(&str, &str)], url: &str| {
            let variable =
                |name: &str| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into());
            let proxies = Proxies::from_variables(variable).unwrap();
            proxies.of(Target::parse(url).unwrap().origin()).map(ToString::to_string)
        };
        let all =
            [("ALL_PROXY", "http://all:1"), ("https_proxy", "http://small:2"), ("HTTPS_PROXY", "large:3")];
        assert_eq!(of(&all, "https://a.example/").unwrap(), "small:2");
        assert_eq!(of(&all, "http://a.example/").unwrap(), "all:1");
        let http = ("HTTP_PROXY", "http://http:4");
        assert_eq!(of(&[http], "http://a.example/").unwrap(), "http:4");
        assert_eq!(of(&[http, ("REQUEST_METHOD", "GET")], "http://a.example/"), None);
        for (except, url, goes_through) in [
            ("*", "https://a.example/", false),
            ("b.example, a.example", "https://a.example/", false),
            (".a.example", "https://x.a.example/", false),
            ("a.example", "https://xa.example/", true),
            ("a.example:444", "https://a.example/", true),
            ("::1,127.0.0.1", "https://[::1]/", false),
            ("[::1]", "https://[::1]:4433/", false),
            ("[::1]:4433", "https://[::1]:4433/", false),
            ("[::1]:4433", "https://[::1]/", true),
            ("::1,127.0.0.1", "https://127.0.0.1:4433/", false),
        ] {
            let pairs = [("ALL_PROXY", "p:1"), ("NO_PROXY", except)];
            assert_eq!(of(&pairs, url).is_some(), goes_through, "{except} {url}");
        }
        let wrong = Proxies::from_variables(|name| (name == "ALL_PROXY").then(|| "ftp://x".into()));
        assert_eq!(wrong.unwrap_err().0, "ALL_PROXY");
    }
}
