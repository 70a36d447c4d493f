//! Which fields a message has of those that are looked for: most have none of them, and to look through the names once is
//! cheaper than to search for each.

use super::{forwarded, is_in_hyphens};
use http::HeaderMap;

/// What was seen in one look. More than one field may count as the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen(u16);

impl Seen {
    const NONE: Seen = Seen(0);
    pub(super) const CONNECTION: Seen = Seen(1);
    pub(super) const TE: Seen = Seen(1 << 1);
    pub(super) const TRANSFER_ENCODING: Seen = Seen(1 << 2);
    /// Any that is about one connection, the three above among them.
    pub(super) const HOP_BY_HOP: Seen = Seen(1 << 3 | 0b111);
    pub(super) const EXPECT: Seen = Seen(1 << 4);
    pub(super) const COOKIE: Seen = Seen(1 << 5);
    pub(super) const VIA: Seen = Seen(1 << 6);
    pub(super) const ALT_SVC: Seen = Seen(1 << 7);
    pub(super) const KEEP_ALIVE: Seen = Seen(1 << 8 | 1 << 3);
    /// Early-Data, or what some applications take for it.
    pub(super) const EARLY_DATA: Seen = Seen(1 << 9);
    /// What only a trusted peer may say of a client.
    pub(super) const CLAIM: Seen = Seen(1 << 10);

    /// Looks through the names of a message.
    pub(super) fn of(headers: &HeaderMap) -> Seen {
        headers.keys().fold(Seen::NONE, |seen, name| Seen(seen.0 | Seen::in_name(name.as_str()).0))
    }

    /// Whether any was seen that counts as one of these.
    pub(super) fn any(self, of: Seen) -> bool {
        self.0 & of.0 != 0
    }

    fn in_name(name: &str) -> Seen {
        match name {
            "connection" => Seen::CONNECTION,
            "te" => Seen::TE,
            "transfer-encoding" => Seen::TRANSFER_ENCODING,
            "keep-alive" => Seen::KEEP_ALIVE,
            "proxy-connection"
            | "proxy-authenticate"
            | "proxy-authorization"
            | "upgrade"
            | "http2-settings" => Seen(1 << 3),
            "expect" => Seen::EXPECT,
            "cookie" => Seen::COOKIE,
            "via" => Seen::VIA,
            "alt-svc" => Seen::ALT_SVC,
            _ => match name.as_bytes().first() {
                Some(b'e') if is_in_hyphens(name, "early-data") => Seen::EARLY_DATA,
                Some(b'f' | b'x') if forwarded::is_claim(name, false) => Seen::CLAIM,
                _ => Seen::NONE,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{HOP_BY_HOP, tests::map};
    use super::*;

    #[test]
    fn all_that_is_looked_for_is_seen() {
        for name in &HOP_BY_HOP {
            assert!(Seen::of(&map(&[("accept", ""), (name.as_str(), "")])).any(Seen::HOP_BY_HOP), "{name}");
        }
        let names = [
            ("connection", Seen::CONNECTION),
            ("te", Seen::TE),
            ("transfer-encoding", Seen::TRANSFER_ENCODING),
            ("expect", Seen::EXPECT),
            ("cookie", Seen::COOKIE),
            ("via", Seen::VIA),
            ("alt-svc", Seen::ALT_SVC),
            ("early-data", Seen::EARLY_DATA),
            ("early_data", Seen::EARLY_DATA),
            ("forwarded", Seen::CLAIM),
            ("x-real_ip", Seen::CLAIM),
            ("x_forwarded-new", Seen::CLAIM),
        ];
        for (at, (name, what)) in names.iter().enumerate() {
            let seen = Seen::of(&map(&[(name, ""), ("forward", ""), ("x-real", ""), ("early", "")]));
            assert!(seen.any(*what), "{name}");
            for (other, not) in names.iter().skip(3).filter(|(_, other)| other != what) {
                assert!(at < 3 || !seen.any(*not), "{name} is taken for {other}");
            }
        }
        assert_eq!(Seen::of(&map(&[("accept", ""), ("keep", ""), ("x-", "")])), Seen::NONE);
    }
}
