//! What the HTTPS records of a name say (RFC 9460): in which protocols, at which ports and under which other names a
//! server is to be found.
//!
//! A record that demands the understanding of something that is not understood here counts as not there (section 8), as
//! do those beside a record in alias mode (section 2.4.2). What one answer may hold is capped.

use std::net::IpAddr;

/// The most records of one answer that are looked at.
const MOST_RECORDS: usize = 16;
/// The most addresses that one record may name.
const MOST_HINTS: usize = 16;

/// Keys of parameters (RFC 9460 section 14.3.2).
const ALPN: u16 = 1;
const NO_DEFAULT_ALPN: u16 = 2;
const PORT: u16 = 3;
const IPV4_HINT: u16 = 4;
const ECH: u16 = 5;
const IPV6_HINT: u16 = 6;

/// One record as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HttpsRecord {
    /// 0: alias mode; otherwise the lowest first.
    pub(crate) priority: u16,
    /// In small letters, without the final dot; empty for "the same name".
    pub(crate) target: String,
    /// Keys that have to be understood.
    pub(crate) mandatory: Vec<u16>,
    pub(crate) alpn: Vec<String>,
    pub(crate) no_default_alpn: bool,
    pub(crate) port: Option<u16>,
    pub(crate) hints: Vec<IpAddr>,
    /// A list of configurations for Encrypted Client Hello.
    pub(crate) ech: Option<Vec<u8>>,
}

/// What all records of a name say together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Nothing: there is none, or none that is understood.
    Nothing,
    /// What this name says holds instead.
    Alias(String),
    /// Where the server is, the preferred first; at least one.
    Services(Vec<Service>),
}

/// One place where the server is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Service {
    /// The name whose addresses are meant, where it is another than the URL's.
    pub(crate) target: Option<String>,
    /// The port, where it is another than the URL's.
    pub(crate) port: Option<u16>,
    /// The protocols, with the one that goes without saying.
    pub(crate) alpn: Vec<String>,
    /// Addresses to begin with as long as the target's are not known.
    pub(crate) hints: Vec<IpAddr>,
    pub(crate) ech: Option<Vec<u8>>,
}

impl Service {
    /// A name that stands for another one, and says nothing else.
    pub(crate) fn plain(target: String) -> Service {
        Service { target: Some(target), alpn: vec![DEFAULT_ALPN.to_owned()], ..Service::default() }
    }

    /// HTTP/3 is spoken there.
    pub(crate) fn has_http3(&self) -> bool {
        self.alpn.iter().any(|protocol| protocol == "h3")
    }

    /// HTTP/2 or HTTP/1.1 is spoken there.
    pub(crate) fn has_tcp(&self) -> bool {
        self.alpn.iter().any(|protocol| protocol == "h2" || protocol == DEFAULT_ALPN)
    }
}

/// What a server speaks that does not say that it does not (RFC 9460 section 9.2).
const DEFAULT_ALPN: &str = "http/1.1";

impl HttpsRecord {
    /// All that it demands is understood here, and is there.
    fn is_understood(&self) -> bool {
        self.mandatory.iter().all(|key| match *key {
            ALPN => !self.alpn.is_empty(),
            NO_DEFAULT_ALPN => self.no_default_alpn,
            PORT => self.port.is_some(),
            ECH => self.ech.is_some(),
            IPV4_HINT => self.hints.iter().any(IpAddr::is_ipv4),
            IPV6_HINT => self.hints.iter().any(IpAddr::is_ipv6),
            _ => false,
        })
    }

    /// `owner`: the name that the record stands under; `host`: the name in the URL.
    fn service(self, owner: &str, host: &str) -> Option<Service> {
        let target = if self.target.is_empty() { owner.to_owned() } else { self.target };
        // The name before which port and scheme stand has no addresses, and is no name of a host.
        if target.starts_with('_') || self.port == Some(0) {
            return None;
        }
        let mut alpn = self.alpn;
        if !self.no_default_alpn && !alpn.iter().any(|protocol| protocol == DEFAULT_ALPN) {
            alpn.push(DEFAULT_ALPN.to_owned());
        }
        let hints = self.hints.into_iter().take(MOST_HINTS).collect();
        let target = (target != host).then_some(target);
        Some(Service { target, port: self.port, alpn, hints, ech: self.ech })
    }
}

/// What the records under the name `owner` say of `host`.
pub(crate) fn meaning(owner: &str, host: &str, records: Vec<HttpsRecord>) -> Meaning {
    let mut records: Vec<_> = records.into_iter().take(MOST_RECORDS).collect();
    if let Some(alias) = records.iter().find(|record| record.priority == 0) {
        // A dot says that there is no such service (section 2.5.1).
        return match alias.target.as_str() {
            "" => Meaning::Nothing,
            target => Meaning::Alias(target.to_owned()),
        };
    }
    records.sort_by_key(|record| record.priority);
    let understood = records.into_iter().filter(HttpsRecord::is_understood);
    let services: Vec<_> = understood.filter_map(|record| record.service(owner, host)).collect();
    if services.is_empty() { Meaning::Nothing } else { Meaning::Services(services) }
}

/// The name that the records of a server stand under (RFC 9460 section 9.1).
pub(crate) fn owner(host: &str, port: u16) -> String {
    match port {
        443 => host.to_owned(),
        port => format!("_{port}._https.{host}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(priority: u16, target: &str, alpn: &[&str]) -> HttpsRecord {
        let alpn = alpn.iter().map(|&protocol| protocol.to_owned()).collect();
        HttpsRecord { priority, target: target.to_owned(), alpn, ..HttpsRecord::default() }
    }

    fn services(records: Vec<HttpsRecord>) -> Vec<Service> {
        match meaning("a.example", "a.example", records) {
            Meaning::Services(services) => services,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_lowest_priority_comes_first_and_a_dot_is_the_name_itself() {
        let found = services(vec![record(2, "b.example", &["h2"]), record(1, "", &["h3", "h2"])]);
        assert_eq!((&found[0].target, &found[1].target), (&None, &Some("b.example".to_owned())));
        assert!(found[0].has_http3() && found[0].has_tcp() && !found[1].has_http3());
        assert_eq!(found[1].alpn, ["h2", "http/1.1"]);
    }

    #[test]
    fn what_goes_without_saying_can_be_denied() {
        let only = HttpsRecord { no_default_alpn: true, ..record(1, "", &["h3"]) };
        assert!(!services(vec![only])[0].has_tcp());
        let usual = services(vec![record(1, "", &[])]);
        assert!(usual[0].has_tcp() && !usual[0].has_http3());
    }

    #[test]
    fn what_is_demanded_has_to_be_understood() {
        let demanding = |mandatory: &[u16]| HttpsRecord {
            mandatory: mandatory.to_vec(),
            port: Some(8443),
            ..record(1, "", &["h3"])
        };
        assert_eq!(services(vec![demanding(&[ALPN, PORT])])[0].port, Some(8443));
        for key in [7, 65280, IPV4_HINT, ECH, NO_DEFAULT_ALPN] {
            let meant = meaning("a.example", "a.example", vec![demanding(&[ALPN, key])]);
            assert_eq!(meant, Meaning::Nothing, "{key}");
        }
        let others = vec![demanding(&[7]), record(2, "", &["h2"])];
        assert_eq!(services(others)[0].alpn, ["h2", "http/1.1"]);
    }

    #[test]
    fn an_alias_speaks_for_all() {
        let records = vec![record(1, "", &["h3"]), record(0, "b.example", &[])];
        assert_eq!(meaning("a.example", "a.example", records), Meaning::Alias("b.example".to_owned()));
        assert_eq!(meaning("a.example", "a.example", vec![record(0, "", &[])]), Meaning::Nothing);
    }

    #[test]
    fn a_name_that_only_records_stand_under_is_no_host() {
        let owner = owner("a.example", 8443);
        assert_eq!(owner, "_8443._https.a.example");
        assert_eq!(meaning(&owner, "a.example", vec![record(1, "", &["h3"])]), Meaning::Nothing);
        let named = meaning(&owner, "a.example", vec![record(1, "a.example", &["h3"])]);
        assert!(matches!(named, Meaning::Services(services) if services[0].target.is_none()));
    }

    #[test]
    fn one_answer_has_limits() {
        let hints = (0..100).map(|last| IpAddr::from([192, 0, 2, last])).collect();
        let large = HttpsRecord { hints, ..record(1, "", &["h3"]) };
        let found = services(vec![large; 100]);
        assert_eq!((found.len(), found[0].hints.len()), (MOST_RECORDS, MOST_HINTS));
    }
}
