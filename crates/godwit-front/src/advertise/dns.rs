//! The HTTPS records (RFC 9460) by which clients learn of HTTP/3 before their first
//! connection.
//!
//! For the usual port a record stands at the name itself; for another at `_PORT._https.NAME`, and its target is then
//! spelled out: at such a name `.` means the name with the underscores to the standard, and to some clients nothing.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU16;

use crate::settings::{Advertise, HostPattern, Settings, Site};

const USUAL_PORT: u16 = 443;

/// What records are for, and what they say.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Question {
    /// Names to make records for; empty: those of the sites.
    pub hosts: Vec<String>,
    /// The port that clients use; `None`: `advertise_port`, or the first of `listen`, or 443.
    pub port: Option<NonZeroU16>,
    /// Seconds that others may keep the records.
    pub ttl: u32,
    /// Addresses to name in the records.
    pub hint: Vec<IpAddr>,
}

impl Default for Question {
    fn default() -> Question {
        Question { hosts: Vec::new(), port: None, ttl: 300, hint: Vec::new() }
    }
}

/// The records, and what is to be said about them.
#[derive(Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// A line of a zone file each.
    pub records: Vec<String>,
    /// For whoever asked.
    pub warnings: Vec<String>,
    /// A name that records were asked for cannot have one, or none that works.
    pub failed: bool,
}

/// The HTTPS records for the names in question; `settings` are those of the server, if they are known.
pub fn records(question: &Question, settings: Option<&Settings>) -> Answer {
    let mut output = Answer::default();
    let (hints4, hints6) = hints(&question.hint);
    let listening = settings.and_then(|settings| settings.listen.first()).map(std::net::SocketAddr::port);
    for (host, site) in hosts(question, settings, &mut output.warnings) {
        let port = question.port.or(site.and_then(|site| site.advertise_port)).map(NonZeroU16::get);
        let named = !question.hosts.is_empty();
        output.failed |= named && settings.is_some() && site.is_none();
        let port = port.or(listening.filter(|port| *port != 0)).unwrap_or(USUAL_PORT);
        match site.map(|site| site.advertise) {
            Some(Advertise::Nobody) => {
                output.warnings.push(format!("{host} is left out: its site has advertise = false"));
                output.failed |= named;
                continue;
            }
            Some(Advertise::Percent(percent)) => output.warnings.push(format!(
                "{host} advertises HTTP/3 to {percent} % of its users, but DNS reaches everybody: keep the record \
                 out of the zone until the roll-out is over"
            )),
            _ => {}
        }
        if let Some(problem) = unfit(&host, port) {
            output.warnings.push(format!("{host} is left out: {problem}"));
            output.failed = true;
            continue;
        }
        let (owner, target) = match port {
            USUAL_PORT => (format!("{host}."), ".".to_owned()),
            port => (format!("_{port}._https.{host}."), format!("{host}.")),
        };
        let mut record = format!("{owner} {} IN HTTPS 1 {target}", question.ttl);
        if port != USUAL_PORT {
            let _ = write!(record, " port={port}");
        }
        let _ = write!(record, " alpn=\"h3,h2\"{hints4}{hints6}");
        output.records.push(record);
    }
    output.failed |= output.records.is_empty();
    output
}

/// The names, each with its site if that is known.
fn hosts<'a>(
    question: &Question,
    settings: Option<&'a Settings>,
    warnings: &mut Vec<String>,
) -> Vec<(String, Option<&'a Site>)> {
    let sites = settings.map(|settings| settings.sites.as_slice()).unwrap_or_default();
    if question.hosts.is_empty() {
        let all = sites.iter().flat_map(|site| site.hosts.iter().map(move |host| (host, site)));
        return all
            .filter(|(host, _)| {
                if **host == HostPattern::Any {
                    warnings.push(
                        "the site of hosts = [\"*\"] has no name; give its names as arguments".to_owned(),
                    );
                }
                **host != HostPattern::Any
            })
            .map(|(host, site)| (host.to_string(), Some(site)))
            .collect();
    }
    let name = |host: &String| host.trim_end_matches('.').to_ascii_lowercase();
    let of = |name: &str| {
        let served =
            |wanted: &dyn Fn(&HostPattern) -> bool| sites.iter().find(|site| site.hosts.iter().any(wanted));
        let parent = name.split_once('.').map_or("", |(_, parent)| parent);
        served(&|host| host.to_string() == name)
            .or_else(|| served(&|host| matches!(host, HostPattern::Wildcard(of) if of == parent)))
            .or_else(|| served(&|host| *host == HostPattern::Any))
    };
    let found: Vec<_> = question.hosts.iter().map(name).map(|name| (of(&name), name)).collect();
    for (site, name) in &found {
        if site.is_none() && settings.is_some() {
            warnings.push(format!("{name} is not served by this configuration"));
        }
    }
    found.into_iter().map(|(site, name)| (name, site)).collect()
}

/// Why a name cannot have such a record.
fn unfit(host: &str, port: u16) -> Option<&'static str> {
    let labels = host.strip_prefix("*.").unwrap_or(host);
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    if host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
        return Some("addresses have no records");
    }
    if host == "localhost" || host.ends_with(".localhost") {
        return Some("it is this machine's own name, which is not in the DNS");
    }
    if !labels.split('.').all(is_label) {
        return Some("it is no host name");
    }
    (host.starts_with("*.") && port != USUAL_PORT)
        .then_some("a wildcard has no record for a port of its own; name the hosts")
}

/// ` ipv4hint=…` and ` ipv6hint=…`, each if there are any.
fn hints(addresses: &[IpAddr]) -> (String, String) {
    let list = |name: &str, list: Vec<String>| match list.as_slice() {
        [] => String::new(),
        list => format!(" {name}={}", list.join(",")),
    };
    let four = addresses.iter().filter_map(|address| match address {
        IpAddr::V4(address) => Some(Ipv4Addr::to_string(address)),
        IpAddr::V6(_) => None,
    });
    let six = addresses.iter().filter_map(|address| match address {
        IpAddr::V6(address) => Some(Ipv6Addr::to_string(address)),
        IpAddr::V4(_) => None,
    });
    (list("ipv4hint", four.collect()), list("ipv6hint", six.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Handler, Site};

    fn arguments(hosts: &[&str], port: Option<u16>) -> Question {
        Question {
            hosts: hosts.iter().map(ToString::to_string).collect(),
            port: port.and_then(NonZeroU16::new),
            ttl: 300,
            hint: Vec::new(),
        }
    }

    fn site(host: HostPattern, advertise: Advertise) -> Site {
        Site { hosts: vec![host], advertise, ..Site::catch_all(Handler::Pages(&[])) }
    }

    fn exact(name: &str) -> HostPattern {
        HostPattern::Exact(name.to_owned())
    }

    #[test]
    fn records_spell_their_target_out_at_other_ports() {
        let records = |hosts: &[&str], port| super::records(&arguments(hosts, port), None).records;
        assert_eq!(records(&["Example.com."], None), [r#"example.com. 300 IN HTTPS 1 . alpn="h3,h2""#]);
        assert_eq!(
            records(&["example.com"], Some(8443)),
            [r#"_8443._https.example.com. 300 IN HTTPS 1 example.com. port=8443 alpn="h3,h2""#]
        );
        let mut with_hints = arguments(&["example.com"], None);
        with_hints.hint =
            ["192.0.2.1", "2001:db8::1", "192.0.2.2"].map(|text| text.parse().unwrap()).to_vec();
        let expected =
            r#"example.com. 300 IN HTTPS 1 . alpn="h3,h2" ipv4hint=192.0.2.1,192.0.2.2 ipv6hint=2001:db8::1"#;
        assert_eq!(super::records(&with_hints, None).records, [expected]);
    }

    #[test]
    fn names_without_records_are_left_out() {
        for host in ["192.0.2.1", "[::1]", "localhost", "a b", "a..b", ""] {
            let output = super::records(&arguments(&[host], None), None);
            assert!(output.records.is_empty() && output.warnings.len() == 1, "{host}: {output:?}");
            assert!(output.failed, "{host}");
            let with_another = super::records(&arguments(&["example.com", host], None), None);
            assert!(with_another.records.len() == 1 && with_another.failed, "{host}: {with_another:?}");
        }
        assert_eq!(super::records(&arguments(&["*.example.com"], None), None).records.len(), 1);
        assert!(super::records(&arguments(&["*.example.com"], Some(8443)), None).records.is_empty());
    }

    #[test]
    fn sites_say_what_is_to_be_known_of_them() {
        let sites = vec![
            site(exact("all.test"), Advertise::All),
            site(exact("some.test"), Advertise::Percent(5.0)),
            site(exact("none.test"), Advertise::Nobody),
            site(HostPattern::Any, Advertise::All),
        ];
        let settings = Settings { sites, listen: vec!["[::]:8443".parse().unwrap()], ..Settings::default() };
        let output = super::records(&arguments(&[], None), Some(&settings));
        assert_eq!(output.records.len(), 2);
        assert!(output.records.iter().all(|record| record.starts_with("_8443._https.")), "{output:?}");
        let warned = |text: &str| output.warnings.iter().any(|line| line.contains(text));
        assert!(
            warned("some.test advertises HTTP/3 to 5 %") && warned("none.test is left out"),
            "{output:?}"
        );
        assert!(warned("has no name"));
        assert!(!output.failed, "the configuration wants it so");
        let of =
            |hosts: &[&str], settings: &Settings| super::records(&arguments(hosts, None), Some(settings));
        assert!(!of(&["some.test"], &settings).failed);
        assert!(of(&["none.test"], &settings).failed, "it was asked for");
        let sites = vec![site(exact("all.test"), Advertise::All)];
        let named = Settings { sites, ..Settings::default() };
        let unserved = of(&["all.test", "other.test"], &named);
        assert!(unserved.failed && unserved.records.len() == 2, "{unserved:?}");
        let sites = vec![site(HostPattern::Any, Advertise::All)];
        assert!(of(&[], &Settings { sites, ..Settings::default() }).failed, "nothing to print");
        let other = super::records(&arguments(&["other.test"], None), Some(&settings));
        assert!(other.records.len() == 1 && other.warnings.is_empty(), "the site of any name: {other:?}");
    }
}
