//! Content codings: which a client takes, and which of several it gets (RFC 9110 section 12.5.3).

use http::HeaderMap;
use http::header::{ACCEPT_ENCODING, HeaderValue, VARY};

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Coding {
    /// RFC 8878.
    Zstd,
    /// RFC 7932.
    Brotli,
    /// RFC 1952.
    Gzip,
}

impl Coding {
    /// As `Content-Encoding` has it.
    pub fn name(self) -> &'static str {
        match self {
            Coding::Zstd => "zstd",
            Coding::Brotli => "br",
            Coding::Gzip => "gzip",
        }
    }

    /// What the names of files so encoded end with.
    pub fn suffix(self) -> &'static str {
        match self {
            Coding::Zstd => ".zst",
            Coding::Brotli => ".br",
            Coding::Gzip => ".gz",
        }
    }
}

/// What a client takes, in thousandths of preference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    zstd: u16,
    brotli: u16,
    gzip: u16,
    /// What it thinks of no coding at all, where it says so.
    identity: Option<u16>,
}

impl Accepted {
    /// Nothing but the plain bytes, where a client says nothing: it may take any, but hardly any such does.
    pub fn of(headers: &HeaderMap) -> Accepted {
        let (mut zstd, mut brotli, mut gzip, mut identity, mut any) = (None, None, None, None, None);
        let lists = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
        for item in lists.flat_map(|list| list.split(',')) {
            let mut parts = item.split(';');
            let name = parts.next().unwrap_or_default().trim();
            let preference = Some(parts.find_map(quality).unwrap_or(1000));
            let is = |known: &str| name.eq_ignore_ascii_case(known);
            match () {
                () if is("zstd") => zstd = preference,
                () if is("br") => brotli = preference,
                () if is("gzip") || is("x-gzip") => gzip = preference,
                () if is("identity") => identity = preference,
                () if is("*") => any = preference,
                () => {}
            }
        }
        let named = |named: Option<u16>| named.or(any).unwrap_or(0);
        Accepted { zstd: named(zstd), brotli: named(brotli), gzip: named(gzip), identity }
    }

    fn preference(self, coding: Coding) -> u16 {
        match coding {
            Coding::Zstd => self.zstd,
            Coding::Brotli => self.brotli,
            Coding::Gzip => self.gzip,
        }
    }

    /// Those of `offered` that the client likes at least as much as the plain bytes: the most liked first, and of
    /// those liked alike the one offered first.
    pub fn ranked(self, offered: &[Coding]) -> Vec<Coding> {
        let least = self.identity.unwrap_or(0).max(1);
        let mut codings: Vec<Coding> =
            offered.iter().copied().filter(|coding| self.preference(*coding) >= least).collect();
        codings.sort_by_key(|coding| std::cmp::Reverse(self.preference(*coding)));
        codings
    }
}

/// `q=0.8` in thousandths. What is malformed counts as 0: rather send plain bytes than what cannot be read.
fn quality(parameter: &str) -> Option<u16> {
    let (name, value) = parameter.split_once('=')?;
    if !name.trim().eq_ignore_ascii_case("q") {
        return None;
    }
    let value: f32 = value.trim().parse().unwrap_or(0.0);
    // A number of at most 1000 fits.
    Some((value.clamp(0.0, 1.0) * 1000.0) as u16)
}

/// Says that the response depends on `Accept-Encoding`, if it is not said yet.
pub fn vary(headers: &mut HeaderMap) {
    let lists = headers.get_all(VARY).iter().filter_map(|value| value.to_str().ok());
    let said = |name: &str| name.eq_ignore_ascii_case("accept-encoding") || name == "*";
    if !lists.flat_map(|list| list.split(',')).any(|name| said(name.trim())) {
        headers.append(VARY, HeaderValue::from_static("accept-encoding"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Coding; 3] = [Coding::Zstd, Coding::Brotli, Coding::Gzip];

    fn ranked(accept: &str) -> Vec<&'static str> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, accept.parse().unwrap());
        Accepted::of(&headers).ranked(&ALL).into_iter().map(Coding::name).collect()
    }

    #[test]
    fn preferences_count_and_then_our_order() {
        let cases: [(&str, &[&str]); 16] = [
            ("gzip, deflate, br, zstd", &["zstd", "br", "gzip"]),
            ("gzip", &["gzip"]),
            ("GZIP;q=0.5, Br;Q=0.9", &["br", "gzip"]),
            ("br;q=0.1, gzip;q=1.0", &["gzip", "br"]),
            ("br;q=0, gzip", &["gzip"]),
            ("*", &["zstd", "br", "gzip"]),
            ("*;q=0.5, gzip;q=0", &["zstd", "br"]),
            ("identity", &[]),
            ("identity;q=0.5, gzip;q=0.4", &[]),
            ("identity;q=0.5, gzip;q=0.5", &["gzip"]),
            ("identity;q=0, gzip;q=0.001", &["gzip"]),
            ("*;q=0", &[]),
            ("", &[]),
            ("deflate, compress", &[]),
            ("gzip;q=nonsense", &[]),
            ("gzip;x=1;q=0.2, br ; q=0.1", &["gzip", "br"]),
        ];
        for (accept, expected) in cases {
            assert_eq!(ranked(accept), expected, "{accept}");
        }
        assert!(Accepted::of(&HeaderMap::new()).ranked(&ALL).is_empty());
    }

    #[test]
    fn vary_is_said_once() {
        let mut headers = HeaderMap::new();
        headers.append(VARY, HeaderValue::from_static("origin"));
        vary(&mut headers);
        vary(&mut headers);
        assert_eq!(headers.get_all(VARY).iter().collect::<Vec<_>>(), ["origin", "accept-encoding"]);
        let mut headers = HeaderMap::new();
        headers.append(VARY, HeaderValue::from_static("Cookie, Accept-Encoding"));
        vary(&mut headers);
        assert_eq!(headers.get_all(VARY).iter().count(), 1);
    }
}
