//! The `Alt-Svc` header (RFC 7838 section 3): where else a server is to be found, and for how long that holds.

use std::fmt;
use std::time::Duration;

/// How long an alternative holds if the header does not say, in seconds (RFC 7838 section 3.1).
const DEFAULT_AGE: u64 = 24 * 3600;
/// The longest time for which an alternative is believed: a month.
const MAX_AGE: u64 = 30 * 24 * 3600;
/// Entries looked at in one header: what comes later is not wanted.
const MAX_ENTRIES: usize = 16;

/// What a field's value says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AltSvc {
    /// All that was said before does not hold any more.
    Clear,
    /// Other places, the preferred first.
    Alternatives(Vec<Alternative>),
}

/// Another place where a server is to be found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Alternative {
    /// The protocol's name as in ALPN: `h3`.
    pub protocol: String,
    /// Another host than the server's own: a name in small letters, or an address without brackets.
    pub host: Option<String>,
    /// Its port.
    pub port: u16,
    /// How long it holds (`ma`).
    pub age: Duration,
    /// It holds on other networks too.
    pub persist: bool,
}

/// A value that cannot be read. It is displayed as what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AltSvcError(String);

impl fmt::Display for AltSvcError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for AltSvcError {}

/// Reads a field's value.
///
/// # Errors
/// What is wrong with the first entry that is not as the RFC wants it.
pub fn parse(text: &str) -> Result<AltSvc, AltSvcError> {
    if text.trim() == "clear" {
        return Ok(AltSvc::Clear);
    }
    let entries = split(text, ',').into_iter().map(str::trim).filter(|entry| !entry.is_empty());
    let entries = entries.map(|entry| parse_entry(entry, true));
    entries.collect::<Result<_, _>>().map(AltSvc::Alternatives).map_err(AltSvcError)
}

/// Where HTTP/3 is offered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Http3Offer {
    pub(crate) host: Option<String>,
    pub(crate) port: u16,
    /// How long it holds, in seconds.
    pub(crate) age: u64,
    pub(crate) persist: bool,
}

/// What all values of a response say of HTTP/3.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Http3Offers {
    Clear,
    /// The preferred first.
    Offers(Vec<Http3Offer>),
}

/// Reads the values of all `Alt-Svc` headers of a response, and leaves out what cannot be read. `None` if nothing
/// can.
pub(crate) fn parse_http3<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Option<Http3Offers> {
    let mut offers = Vec::new();
    let mut understood = false;
    for value in values {
        let Ok(text) = std::str::from_utf8(value) else { continue };
        if text.trim() == "clear" {
            return Some(Http3Offers::Clear);
        }
        for entry in split(text, ',').into_iter().take(MAX_ENTRIES) {
            let Ok(entry) = parse_entry(entry, false) else { continue };
            understood = true;
            if entry.protocol == "h3" {
                let Alternative { host, port, age, persist, .. } = entry;
                offers.push(Http3Offer { host, port, age: age.as_secs().min(MAX_AGE), persist });
            }
        }
    }
    understood.then_some(Http3Offers::Offers(offers))
}

/// `quoted`: the place has to stand in quotation marks, as the RFC wants it.
fn parse_entry(entry: &str, quoted: bool) -> Result<Alternative, String> {
    let mut parts = split(entry, ';').into_iter().map(str::trim);
    let first = parts.next().unwrap_or_default();
    let (protocol, place) = first.split_once('=').ok_or_else(|| format!("{first:?} has no ="))?;
    let (protocol, place) = (protocol.trim(), place.trim());
    if !is_token(protocol) {
        return Err(format!("{protocol:?} is not a protocol"));
    }
    let inside = unquote(place).filter(|_| !quoted || place.starts_with('"'));
    let authority = inside.ok_or_else(|| format!("{place:?} is not in quotation marks"))?;
    let (host, port) = authority.rsplit_once(':').ok_or_else(|| format!("{authority:?} has no port"))?;
    let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(|| format!("{port:?} is not a port"))?;
    let host = match host {
        "" => None,
        host => Some(parse_host(host).ok_or_else(|| format!("{host:?} is not a host"))?),
    };
    let (mut age, mut persist) = (Duration::from_secs(DEFAULT_AGE), false);
    for parameter in parts {
        let Some((name, value)) = parameter.split_once('=') else { continue };
        let value = unquote(value.trim()).unwrap_or_default();
        match name.trim() {
            "ma" => {
                let seconds = value.parse().map_err(|_| format!("{parameter:?} is no age"))?;
                age = Duration::from_secs(seconds);
            }
            "persist" => persist = value == "1",
            _ => {}
        }
    }
    Ok(Alternative { protocol: protocol.to_owned(), host, port, age, persist })
}

fn parse_host(host: &str) -> Option<String> {
    if let Some(inner) = host.strip_prefix('[') {
        let address: std::net::Ipv6Addr = inner.strip_suffix(']')?.parse().ok()?;
        return Some(address.to_string());
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    (host.len() <= 253 && host.bytes().all(allowed)).then(|| host.to_ascii_lowercase())
}

/// RFC 9110 section 5.6.2.
fn is_token(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(allowed)
}

/// Splits at a separator that does not stand in quotes.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(|c: char| {
        if escaped {
            escaped = false;
            return false;
        }
        match c {
            '"' => quoted = !quoted,
            '\\' if quoted => escaped = true,
            c => return c == separator && !quoted,
        }
        false
    })
    .collect()
}

/// A token, or a string in quotes without them.
fn unquote(text: &str) -> Option<String> {
    let Some(inner) = text.strip_prefix('"') else { return Some(text.to_owned()) };
    let inner = inner.strip_suffix('"')?;
    let mut plain = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(c) = characters.next() {
        plain.push(if c == '\\' { characters.next()? } else { c });
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offers(value: &str) -> Vec<Http3Offer> {
        match parse_http3([value.as_bytes()]) {
            Some(Http3Offers::Offers(offers)) => offers,
            other => panic!("{value}: {other:?}"),
        }
    }

    fn offer(host: Option<&str>, port: u16, age: u64, persist: bool) -> Http3Offer {
        Http3Offer { host: host.map(str::to_owned), port, age, persist }
    }

    #[test]
    fn usual_headers_are_read() {
        assert_eq!(offers(r#"h3=":443"; ma=86400"#), [offer(None, 443, 86_400, false)]);
        assert_eq!(
            offers(r#"h2="a.example:443", h3="B.example:8443";ma=60 ; persist=1;v="46,43", h3=":444""#),
            [offer(Some("b.example"), 8443, 60, true), offer(None, 444, DEFAULT_AGE, false)]
        );
        assert_eq!(offers(r#"h3="[::1]:443""#), [offer(Some("::1"), 443, DEFAULT_AGE, false)]);
        assert_eq!(offers(r#"h3=":443"; ma="7""#), [offer(None, 443, 7, false)]);
        assert_eq!(offers(r#"h3=":443"; ma=999999999999"#)[0].age, MAX_AGE);
        assert_eq!(offers(r#"h3-29=":443""#), []);
        assert_eq!(parse_http3([&b"clear"[..]]), Some(Http3Offers::Clear));
    }

    #[test]
    fn what_makes_no_sense_is_left_out() {
        for value in [
            "",
            "h3",
            r#"=":443""#,
            r#"h"3=":443""#,
            r#"h3=":0""#,
            r#"h3=":x""#,
            r#"h3="a b:1""#,
            r#"h3=":443"#,
            r#"h3=":1";ma=-1"#,
        ] {
            assert_eq!(parse_http3([value.as_bytes()]), None, "{value}");
        }
        assert_eq!(parse_http3(std::iter::empty()), None);
    }

    #[test]
    fn fields_of_real_servers_are_read() {
        let AltSvc::Alternatives(all) =
            parse(r#"h3=":443"; ma=2592000,h3-29="alt.example.com:8443"; ma="60"; persist=1"#).unwrap()
        else {
            panic!("alternatives");
        };
        let wanted = |protocol: &str, host: Option<&str>, port, age, persist| Alternative {
            protocol: protocol.to_owned(),
            host: host.map(str::to_owned),
            port,
            age: Duration::from_secs(age),
            persist,
        };
        let other = wanted("h3-29", Some("alt.example.com"), 8443, 60, true);
        assert_eq!(all, [wanted("h3", None, 443, 2_592_000, false), other]);
        assert_eq!(parse(" clear ").unwrap(), AltSvc::Clear);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, problem) in [
            ("h3", "has no ="),
            ("h3=:443", "quotation marks"),
            ("h 3=\":443\"", "not a protocol"),
            ("=\":443\"", "not a protocol"),
            ("h3=\"443\"", "no port"),
            ("h3=\":x\"", "not a port"),
            ("h3=\":443\"; ma=x", "no age"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn no_header_makes_it_panic() {
        use proptest::prelude::*;
        proptest!(|(value in r#"(h3|h2|clear|=|"|\\|:|;|,|ma|443| |\PC){0,40}"#)| {
            let _ = parse(&value);
            if let Some(Http3Offers::Offers(offers)) = parse_http3([value.as_bytes()]) {
                prop_assert!(offers.len() <= MAX_ENTRIES && offers.iter().all(|offer| offer.port > 0));
            }
        });
    }
}
