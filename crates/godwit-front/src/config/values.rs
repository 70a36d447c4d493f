//! Notations of the configuration file: durations, sizes, rates, percentages, host names, paths, networks, headers.
//!
//! A function's error is the remedy: the caller has said what was expected and what came.

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;
use std::time::Duration;

use godwit_text::units::{self, UnitError};
use http::{HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;

use crate::path::{encode, normal};
use crate::settings::{Advertise, EarlyData, HostPattern, Network, PathPattern};

pub(super) const DURATION: &str = "a duration such as \"250ms\", \"5s\", \"2m\", \"1h\" or \"1d\"";
pub(super) const SIZE: &str = "a size such as \"64KiB\", \"10MB\" or \"1GiB\", or a number of bytes";

/// Scheme, host, and port unless that is 443, and nothing else.
pub(super) fn origin(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("https://").ok_or("begin it with https://")?;
    if rest.contains(['/', '?', '#', '@', '*']) {
        return Err("leave out what is neither host nor port; patterns are none".to_owned());
    }
    match rest.parse::<http::uri::Authority>() {
        Ok(authority) if !authority.host().is_empty() => Ok(text.to_ascii_lowercase()),
        _ => Err("use a host, and a port unless that is 443".to_owned()),
    }
}

/// What is answered before the handshake is complete.
pub(super) const EARLY_DATA: [(&str, EarlyData); 3] =
    [("off", EarlyData::Off), ("safe", EarlyData::Safe), ("all", EarlyData::All)];

/// A duration of more than nothing.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    units::duration(text).map_err(|error| error.to_string())
}

pub(super) fn duration_or_zero(text: &str) -> Result<Duration, String> {
    units::duration_or_zero(text).map_err(|error| error.to_string())
}

pub(super) fn size(text: &str) -> Result<u64, String> {
    units::size(text).map_err(|error| error.to_string())
}

/// Bytes in a second.
pub(super) fn rate(text: &str) -> Result<u64, String> {
    units::rate(text).map_err(|error| match error {
        UnitError::Nothing => "use more than nothing, or \"none\"".to_owned(),
        error => error.to_string(),
    })
}

pub(super) fn percent(text: &str) -> Result<Advertise, String> {
    let Some(number) = text.strip_suffix('%') else {
        return Err(match text.parse::<f64>() {
            Ok(_) => format!("add the sign: \"{text}%\""),
            Err(_) => "use for example \"5%\"".to_owned(),
        });
    };
    match number.trim().parse::<f64>() {
        Ok(0.0) => Ok(Advertise::Nobody),
        Ok(100.0) => Ok(Advertise::All),
        Ok(share) if (0.0..100.0).contains(&share) => Ok(Advertise::Percent(share)),
        _ => Err("use a number from 0 to 100".to_owned()),
    }
}

/// A host name, or a pattern of them.
pub(super) fn host(text: &str) -> Result<HostPattern, String> {
    if text == "*" {
        return Ok(HostPattern::Any);
    }
    match text.strip_prefix("*.") {
        Some(rest) => Ok(HostPattern::Wildcard(host_name(rest)?)),
        None => host_name(text).map(HostPattern::Exact),
    }
}

/// A name in lower case, or an address without brackets.
pub(super) fn host_name(text: &str) -> Result<String, String> {
    if let Some((_, rest)) = text.split_once("://") {
        let name = rest.split('/').next().unwrap_or(rest);
        return Err(format!("leave the scheme out: {name:?}"));
    }
    if let Some((name, _)) = text.split_once('/') {
        return Err(format!("leave the path out: {name:?}; paths are for [[site.route]]"));
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<Ipv6Addr>() {
        return Ok(address.to_string());
    }
    if let Some((name, port)) = text.rsplit_once(':') {
        let port_is_number = !name.contains(':') && port.parse::<u16>().is_ok();
        let remedy = if port_is_number { format!("leave the port out: {name:?}") } else { "no colon".into() };
        return Err(format!("{remedy}; ports are for `listen`"));
    }
    if text.contains('*') {
        return Err("a * can only be the whole first label, as in \"*.example.com\"".to_owned());
    }
    if !text.is_ascii() {
        return Err("write it in its ASCII form, which begins with \"xn--\"".to_owned());
    }
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let label_is_good = |label: &str| {
        let edges = !label.starts_with('-') && !label.ends_with('-');
        let letters = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        (1..=63).contains(&label.len()) && edges && letters
    };
    if name.len() > 253 || !name.split('.').all(label_is_good) {
        return Err("a name has letters, digits and hyphens between its dots, 63 at most".to_owned());
    }
    Ok(name)
}

/// `/exactly/this` or `/everything/below/*`.
pub(super) fn path_pattern(text: &str) -> Result<PathPattern, String> {
    let (path, prefix) = match text.strip_suffix('*') {
        Some(path) => (path, true),
        None => (text, false),
    };
    if prefix && !path.ends_with('/') {
        return Err("the * stands alone after the last slash, as in \"/api/*\"".to_owned());
    }
    let path = decoded_path(path)?;
    Ok(if prefix { PathPattern::Prefix(path) } else { PathPattern::Exact(path) })
}

/// A path as it is compared with those of requests: without its escapes.
pub(super) fn decoded_path(text: &str) -> Result<String, String> {
    path(text)?;
    let is_escape = |rest: &str| rest.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    if !text.split('%').skip(1).all(is_escape) {
        return Err("two hexadecimal digits follow a %; write %25 for the % itself".to_owned());
    }
    let decoded = percent_decode_str(text).decode_utf8_lossy().into_owned();
    is_clean(&decoded)?;
    let compared = normal(text).path;
    if decoded != compared {
        let compared = encode(&compared);
        return Err(format!(
            "requests are compared without what follows a semicolon and with slashes for backslashes, and none is \
             for this one; write {compared:?}"
        ));
    }
    Ok(decoded)
}

fn is_clean(path: &str) -> Result<(), String> {
    if path.split('/').any(|segment| matches!(segment, "." | "..")) || path.contains("//") {
        return Err(
            "write it without \"//\", \".\" and \"..\": requests are cleaned of them first".to_owned()
        );
    }
    Ok(())
}

/// An absolute path without anything that would be cleaned up before it is compared.
pub(super) fn path(path: &str) -> Result<String, String> {
    if !path.starts_with('/') {
        return Err("begin it with a slash".to_owned());
    }
    if path.contains('*') {
        return Err("a * can only stand at the end, after a slash".to_owned());
    }
    if path.contains(['?', '#']) {
        return Err("leave ? and # and what follows out: paths are matched without the query".to_owned());
    }
    is_clean(path)?;
    if !path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
        return Err("write spaces and other special characters as %20 and so on".to_owned());
    }
    Ok(path.to_owned())
}

/// `10.0.0.0/8`, or one address.
pub(super) fn network(text: &str) -> Result<Network, String> {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| "begin with an IPv4 or IPv6 address".to_owned())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let prefix = match prefix {
        None => most,
        Some(prefix) => {
            let bits = prefix.parse().ok().filter(|bits| *bits <= most);
            bits.ok_or_else(|| format!("after the slash comes a number from 0 to {most}"))?
        }
    };
    let begin = begin_of(address, prefix);
    if begin != address {
        return Err(format!("bits are set beyond the prefix: did you mean {begin}/{prefix}?"));
    }
    Ok(Network { address, prefix })
}

fn begin_of(address: IpAddr, prefix: u8) -> IpAddr {
    let cut = |bits: u128, width: u32| {
        let rest = width - u32::from(prefix);
        if rest >= width { 0 } else { bits >> rest << rest }
    };
    match address {
        IpAddr::V4(ip) => {
            let bits = cut(u128::from(ip.to_bits()), 32);
            IpAddr::V4(u32::try_from(bits).unwrap_or_default().into())
        }
        IpAddr::V6(ip) => IpAddr::V6(cut(ip.to_bits(), 128).into()),
    }
}

/// A header that a rule may change.
pub(super) fn header_name(text: &str) -> Result<HeaderName, String> {
    const OF_THE_CONNECTION: [&str; 9] = [
        "connection",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "content-length",
        "http2-settings",
    ];
    let Ok(name) = HeaderName::from_str(text) else {
        return Err("use letters, digits and hyphens".to_owned());
    };
    match name.as_str() {
        "alt-svc" => Err("the server writes it itself: see `advertise`".to_owned()),
        "host" => Err("see `host` in [site.route.upstream]".to_owned()),
        name if OF_THE_CONNECTION.contains(&name) => {
            Err("it belongs to the connection, and the server writes it itself; leave it out".to_owned())
        }
        _ => Ok(name),
    }
}

pub(super) fn header_value(text: &str) -> Result<HeaderValue, String> {
    let control = text.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t');
    match HeaderValue::from_str(text) {
        Ok(value) if !control => Ok(value),
        _ => Err("leave line breaks and other control characters out".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_everywhere_and_a_rate_may_be_left_out() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert!(duration("5").unwrap_err().contains("add a unit, for example \"5s\""));
        assert!(duration("0s").unwrap_err().contains("more than nothing"));
        assert_eq!(duration_or_zero("0s"), Ok(Duration::ZERO));
        assert_eq!((size("64KiB"), rate("256B/s")), (Ok(65_536), Ok(256)));
        assert!(size("1 mb").is_err());
        assert!(rate("0B/s").unwrap_err().contains("none"));
    }

    #[test]
    fn percentages() {
        assert_eq!(percent("5%"), Ok(Advertise::Percent(5.0)));
        assert_eq!(percent("0.5%"), Ok(Advertise::Percent(0.5)));
        assert_eq!((percent("0%"), percent("100%")), (Ok(Advertise::Nobody), Ok(Advertise::All)));
        for (text, remedy) in
            [("5", "\"5%\""), ("101%", "0 to 100"), ("-1%", "0 to 100"), ("NaN%", "0 to 100")]
        {
            assert!(percent(text).unwrap_err().contains(remedy), "{text}");
        }
    }

    #[test]
    fn hosts_are_names_alone() {
        assert_eq!(host("*"), Ok(HostPattern::Any));
        assert_eq!(host("WWW.Example.com."), Ok(HostPattern::Exact("www.example.com".to_owned())));
        assert_eq!(host("*.example.com"), Ok(HostPattern::Wildcard("example.com".to_owned())));
        assert_eq!(host("[::1]"), Ok(HostPattern::Exact("::1".to_owned())));
        for (text, remedy) in [
            ("https://example.com/", "leave the scheme out: \"example.com\""),
            ("example.com:443", "leave the port out: \"example.com\""),
            ("example.com/a", "leave the path out"),
            ("www.*.com", "first label"),
            ("*", ""),
            ("a*.example.com", "first label"),
            ("b\u{fc}cher.example", "xn--"),
            ("exa mple.com", "letters, digits"),
            ("example..com", "letters, digits"),
            ("-a.com", "letters, digits"),
            ("", "letters, digits"),
        ] {
            if let Err(why) = host(text) {
                assert!(why.contains(remedy), "{text}: {why}");
            } else {
                assert_eq!(text, "*");
            }
        }
    }

    #[test]
    fn paths_are_plain() {
        assert_eq!(path_pattern("/*"), Ok(PathPattern::Prefix("/".to_owned())));
        assert_eq!(path_pattern("/a/*"), Ok(PathPattern::Prefix("/a/".to_owned())));
        assert_eq!(path_pattern("/a"), Ok(PathPattern::Exact("/a".to_owned())));
        for text in ["", "a", "*", "/a*", "/a/*/b", "/a?b", "/a/../b", "/a//b", "/a b", "/\u{e9}", "/a\\b"] {
            assert!(path_pattern(text).is_err(), "{text}");
        }
    }

    #[test]
    fn escapes_are_undone_as_they_are_in_requests() {
        for (text, path) in [
            ("/100%25", "/100%"),
            ("/a%20b", "/a b"),
            ("/%C3%a9/%41", "/\u{e9}/A"),
            ("/a%2fb", "/a/b"),
            ("/%ff", "/\u{fffd}"),
        ] {
            assert_eq!(path_pattern(text), Ok(PathPattern::Exact(path.to_owned())), "{text}");
        }
        assert_eq!(path_pattern("/a%20b/*"), Ok(PathPattern::Prefix("/a b/".to_owned())));
        assert!(path_pattern("/a/%2e%2E/b").unwrap_err().contains("\"..\""));
        for (text, path) in [("/a;b/c", "/a/c"), ("/a%3bb", "/a"), ("/a%5Cb%20c", "/a/b%20c")] {
            assert!(path_pattern(text).unwrap_err().ends_with(&format!("write {path:?}")), "{text}");
        }
        for text in ["/%", "/%2", "/%zz/a", "/100%/", "/a%2g", "/%%41", "/%/*", "/%+1"] {
            assert!(path_pattern(text).unwrap_err().contains("%25"), "{text}");
        }
    }

    #[test]
    fn networks_have_no_bits_too_many() {
        let network_of =
            |text: &str| network(text).map(|network| (network.address.to_string(), network.prefix));
        assert_eq!(network_of("10.0.0.0/8"), Ok(("10.0.0.0".to_owned(), 8)));
        assert_eq!(network_of("::1"), Ok(("::1".to_owned(), 128)));
        assert_eq!(network_of("::/0"), Ok(("::".to_owned(), 0)));
        assert!(network("10.1.2.3/8").unwrap_err().contains("did you mean 10.0.0.0/8?"));
        assert!(network("fe80::1/64").unwrap_err().contains("did you mean fe80::/64?"));
        assert!(network("10.0.0.0/33").unwrap_err().contains("0 to 32"));
        assert!(network("example.com").unwrap_err().contains("address"));
    }

    #[test]
    fn headers_of_the_connection_are_the_servers() {
        assert!(header_name("X-Powered-By").is_ok());
        for name in ["", "a b", "a:", "Connection", "transfer-encoding", "alt-svc", "Host"] {
            assert!(header_name(name).is_err(), "{name}");
        }
        assert!(header_value("max-age=1; a=\"b\"").is_ok());
        assert!(header_value("a\r\nb: c").is_err());
    }
}
