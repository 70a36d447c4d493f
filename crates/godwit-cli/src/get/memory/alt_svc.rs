//! The `Alt-Svc` header (RFC 7838 section 3): where else a server is to be found, and for how long that holds.

/// How long an alternative holds if the header does not say, in seconds (RFC 7838 section 3.1).
const DEFAULT_AGE: u64 = 24 * 3600;
/// The longest time for which an alternative is believed: a month.
const MAX_AGE: u64 = 30 * 24 * 3600;
/// Entries looked at in one header: what comes later is not wanted.
const MAX_ENTRIES: usize = 16;

/// What a header says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AltSvc {
    /// All that was said before does not hold any more.
    Clear,
    /// Where HTTP/3 is offered, the preferred first; other protocols are left out.
    Http3(Vec<Offer>),
}

/// One alternative for HTTP/3.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Offer {
    /// Another host than the server's own: a name in small letters, or an address without brackets.
    pub(super) host: Option<String>,
    pub(super) port: u16,
    /// How long it holds, in seconds.
    pub(super) age: u64,
    /// It holds on other networks too.
    pub(super) persist: bool,
}

/// Reads the values of all `Alt-Svc` headers of a response. `None` if there is none, or none that can be read.
pub(super) fn parse<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Option<AltSvc> {
    let mut offers = Vec::new();
    let mut understood = false;
    for value in values {
        let Ok(text) = std::str::from_utf8(value) else { continue };
        if text.trim() == "clear" {
            return Some(AltSvc::Clear);
        }
        for entry in split(text, ',').into_iter().take(MAX_ENTRIES) {
            match parse_entry(entry) {
                Some(Some(offer)) => {
                    understood = true;
                    offers.push(offer);
                }
                Some(None) => understood = true,
                None => {}
            }
        }
    }
    understood.then_some(AltSvc::Http3(offers))
}

/// One entry. `Some(None)` if it is for another protocol, `None` if it is no entry.
fn parse_entry(entry: &str) -> Option<Option<Offer>> {
    let mut parts = split(entry, ';').into_iter();
    let (protocol, authority) = parts.next()?.split_once('=')?;
    let authority = unquote(authority.trim())?;
    if protocol.trim() != "h3" {
        return Some(None);
    }
    let (host, port) = authority.rsplit_once(':')?;
    let port: u16 = port.parse().ok().filter(|port| *port > 0)?;
    let host = match host {
        "" => None,
        host => Some(parse_host(host)?),
    };
    let mut offer = Offer { host, port, age: DEFAULT_AGE, persist: false };
    for parameter in parts {
        let Some((name, value)) = parameter.split_once('=') else { continue };
        let value = unquote(value.trim()).unwrap_or_default();
        match name.trim() {
            "ma" => offer.age = value.parse().ok()?,
            "persist" => offer.persist = value == "1",
            _ => {}
        }
    }
    offer.age = offer.age.min(MAX_AGE);
    Some(Some(offer))
}

fn parse_host(host: &str) -> Option<String> {
    if let Some(inner) = host.strip_prefix('[') {
        let address: std::net::Ipv6Addr = inner.strip_suffix(']')?.parse().ok()?;
        return Some(address.to_string());
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    (host.len() <= 253 && host.bytes().all(allowed)).then(|| host.to_ascii_lowercase())
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

    fn offers(value: &str) -> Vec<Offer> {
        match parse([value.as_bytes()]) {
            Some(AltSvc::Http3(offers)) => offers,
            other => panic!("{value}: {other:?}"),
        }
    }

    fn offer(host: Option<&str>, port: u16, age: u64, persist: bool) -> Offer {
        Offer { host: host.map(str::to_owned), port, age, persist }
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
        assert_eq!(parse([&b"clear"[..]]), Some(AltSvc::Clear));
    }

    #[test]
    fn what_makes_no_sense_is_left_out() {
        for value in
            ["", "h3", r#"h3=":0""#, r#"h3=":x""#, r#"h3="a b:1""#, r#"h3=":443"#, r#"h3=":1";ma=-1"#]
        {
            assert_eq!(parse([value.as_bytes()]), None, "{value}");
        }
        assert_eq!(parse(std::iter::empty()), None);
    }

    #[test]
    fn no_header_makes_it_panic() {
        use proptest::prelude::*;
        proptest!(|(value in r#"(h3|h2|clear|=|"|\\|:|;|,|ma|443| |\PC){0,40}"#)| {
            if let Some(AltSvc::Http3(offers)) = parse([value.as_bytes()]) {
                prop_assert!(offers.len() <= MAX_ENTRIES && offers.iter().all(|offer| offer.port > 0));
            }
        });
    }
}
