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

/// The indices in order of name; those of one name in their own order.
const BY_NAME: [u8; 99] = [
    0, 15, 16, 17, 18, 19, 20, 21, 1, 22, 23, 24, 25, 26, 27, 28, 63, 64, 65, 66, 67, 68, 69, 70, 71, 29, 30,
    31, 72, 32, 73, 74, 33, 34, 75, 76, 77, 78, 35, 79, 80, 81, 82, 2, 83, 84, 36, 37, 38, 39, 40, 41, 3, 42,
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
    let first = usize::from(*FIRST.get(slot(name))?);
    let entries = || BY_NAME.get(first..).unwrap_or_default().iter().map(|index| u64::from(*index));
    // Another name may have the slot, or none: 0xff is beyond the table.
    let index = entries().next().filter(|index| is_named(*index, name))?;
    let of_name = entries().take_while(|index| is_named(*index, name));
    let exact = of_name.filter(|index| entry(*index).is_some_and(|(_, known)| known.as_bytes() == value));
    Some(exact.map(Match::Field).next().unwrap_or(Match::Name(index)))
}

fn is_named(index: u64, name: &[u8]) -> bool {
    entry(index).is_some_and(|(known, _)| known.as_bytes() == name)
}

/// By [`slot`]: where the entries of a name begin in [`BY_NAME`].
static FIRST: [u8; SLOTS] = first();
const SLOTS: usize = 256;

/// A number that no two names of the table share, which the compiler makes sure of; the factors were found by trying.
const fn slot(name: &[u8]) -> usize {
    let [first, .., before, last] = *name else { return 0 };
    let mixed = (first as usize).wrapping_mul(112)
        ^ (before as usize).wrapping_mul(106)
        ^ (last as usize).wrapping_mul(120)
        ^ name.len().wrapping_mul(5);
    mixed % SLOTS
}

#[allow(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "evaluated by the compiler")]
const fn first() -> [u8; SLOTS] {
    let mut slots = [0xff; SLOTS];
    let mut at = BY_NAME.len();
    while at > 0 {
        at -= 1;
        let name = TABLE[BY_NAME[at] as usize].0.as_bytes();
        let slot = slot(name);
        let taken = slots[slot] as usize;
        assert!(taken >= BY_NAME.len() || is_same(name, TABLE[BY_NAME[taken] as usize].0.as_bytes()));
        slots[slot] = at as u8;
    }
    slots
}

#[allow(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "evaluated by the compiler")]
const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
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
