//! QPACK's static table (RFC 9204 appendix A) and the search for a field in it.

/// The entries by index: name and value.
const TABLE: [(&str, &str); 99] = [
    (":authority", ""),
    (":path", "/"),
    ("age", "0"),
    ("content-disposition", ""),
    ("content-length", "0"),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("referer", ""),
    ("set-cookie", ""),
    (":method", "CONNECT"),
    (":method", "DELETE"),
    (":method", "GET"),
    (":method", "HEAD"),
    (":method", "OPTIONS"),
    (":method", "POST"),
    (":method", "PUT"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "103"),
    (":status", "200"),
    (":status", "304"),
    (":status", "404"),
    (":status", "503"),
    ("accept", "*/*"),
    ("accept", "application/dns-message"),
    ("accept-encoding", "gzip, deflate, br"),
    ("accept-ranges", "bytes"),
    ("access-control-allow-headers", "cache-control"),
    ("access-control-allow-headers", "content-type"),
    ("access-control-allow-origin", "*"),
    ("cache-control", "max-age=0"),
    ("cache-control", "max-age=2592000"),
    ("cache-control", "max-age=604800"),
    ("cache-control", "no-cache"),
    ("cache-control", "no-store"),
    ("cache-control", "public, max-age=31536000"),
    ("content-encoding", "br"),
    ("content-encoding", "gzip"),
    ("content-type", "application/dns-message"),
    ("content-type", "application/javascript"),
    ("content-type", "application/json"),
    ("content-type", "application/x-www-form-urlencoded"),
    ("content-type", "image/gif"),
    ("content-type", "image/jpeg"),
    ("content-type", "image/png"),
    ("content-type", "text/css"),
    ("content-type", "text/html; charset=utf-8"),
    ("content-type", "text/plain"),
    ("content-type", "text/plain;charset=utf-8"),
    ("range", "bytes=0-"),
    ("strict-transport-security", "max-age=31536000"),
    ("strict-transport-security", "max-age=31536000; includesubdomains"),
    ("strict-transport-security", "max-age=31536000; includesubdomains; preload"),
    ("vary", "accept-encoding"),
    ("vary", "origin"),
    ("x-content-type-options", "nosniff"),
    ("x-xss-protection", "1; mode=block"),
    (":status", "100"),
    (":status", "204"),
    (":status", "206"),
    (":status", "302"),
    (":status", "400"),
    (":status", "403"),
    (":status", "421"),
    (":status", "425"),
    (":status", "500"),
    ("accept-language", ""),
    ("access-control-allow-credentials", "FALSE"),
    ("access-control-allow-credentials", "TRUE"),
    ("access-control-allow-headers", "*"),
    ("access-control-allow-methods", "get"),
    ("access-control-allow-methods", "get, post, options"),
    ("access-control-allow-methods", "options"),
    ("access-control-expose-headers", "content-length"),
    ("access-control-request-headers", "content-type"),
    ("access-control-request-method", "get"),
    ("access-control-request-method", "post"),
    ("alt-svc", "clear"),
    ("authorization", ""),
    ("content-security-policy", "script-src 'none'; object-src 'none'; base-uri 'none'"),
    ("early-data", "1"),
    ("expect-ct", ""),
    ("forwarded", ""),
    ("if-range", ""),
    ("origin", ""),
    ("purpose", "prefetch"),
    ("server", ""),
    ("timing-allow-origin", "*"),
    ("upgrade-insecure-requests", "1"),
    ("user-agent", ""),
    ("x-forwarded-for", ""),
    ("x-frame-options", "deny"),
    ("x-frame-options", "sameorigin"),
];

/// The indices in order of name, then value.
const BY_NAME: [u8; 99] = [
    0, 15, 16, 17, 18, 19, 20, 21, 1, 22, 23, 63, 24, 25, 64, 65, 66, 26, 67, 68, 27, 69, 70, 71, 28, 29, 30,
    31, 72, 32, 73, 74, 75, 33, 34, 76, 77, 78, 35, 79, 80, 81, 82, 2, 83, 84, 36, 37, 38, 39, 40, 41, 3, 42,
    43, 4, 85, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 5, 6, 86, 7, 87, 88, 8, 9, 89, 10, 11, 12, 90, 91,
    55, 13, 92, 14, 56, 57, 58, 93, 94, 95, 59, 60, 61, 96, 97, 98, 62,
];

/// How much of a field the table holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    /// Name and value stand at this index.
    Field(u64),
    /// Only the name does.
    Name(u64),
}

/// The name and value at `index`.
pub(crate) fn entry(index: u64) -> Option<(&'static str, &'static str)> {
    TABLE.get(usize::try_from(index).ok()?).copied()
}

/// Searches for a field.
pub(crate) fn find(name: &[u8], value: &[u8]) -> Option<Match> {
    let key = |index: &u8| entry(u64::from(*index)).unwrap_or_default();
    let at = BY_NAME.partition_point(|index| {
        let (other_name, other_value) = key(index);
        (other_name.as_bytes(), other_value.as_bytes()) < (name, value)
    });
    let here = BY_NAME.get(at);
    if let Some(index) = here
        && key(index).0.as_bytes() == name
    {
        let index_found = u64::from(*index);
        let exact = key(index).1.as_bytes() == value;
        return Some(if exact { Match::Field(index_found) } else { Match::Name(index_found) });
    }
    // Every entry of this name may sort before the value looked for.
    let before = BY_NAME.get(at.checked_sub(1)?)?;
    (key(before).0.as_bytes() == name).then_some(Match::Name(u64::from(*before)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_found_by_its_content() {
        for index in 0..99 {
            let (name, value) = entry(index).unwrap();
            assert_eq!(find(name.as_bytes(), value.as_bytes()), Some(Match::Field(index)), "{name}: {value}");
        }
        assert_eq!(entry(99), None);
    }

    #[test]
    fn names_are_found_whatever_the_value() {
        for index in 0..99 {
            let (name, _) = entry(index).unwrap();
            for value in ["!", "zzz", "\u{1}", "~"] {
                let Some(Match::Name(found)) = find(name.as_bytes(), value.as_bytes()) else {
                    panic!("{name} not found with value {value:?}");
                };
                assert_eq!(entry(found).unwrap().0, name);
            }
        }
        assert_eq!(find(b"x-unknown", b""), None);
        assert_eq!(find(b"", b""), None);
        assert_eq!(find(b"zzz", b""), None);
    }
}
