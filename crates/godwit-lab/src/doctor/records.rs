//! Names: the addresses of a host, and its HTTPS record (RFC 9460).

use std::net::{IpAddr, SocketAddr};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::rdata::svcb::{SVCB, SvcParamValue};
use hickory_resolver::proto::rr::{RData, RecordType};
use tokio::time::timeout;

use super::LONGEST;
use super::finding::Findings;
use super::site::Site;

/// One HTTPS record in service mode.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Https {
    /// Without the final dot; empty for "the same name".
    pub(super) target: String,
    pub(super) alpn: Vec<String>,
    pub(super) port: Option<u16>,
    pub(super) hints: Vec<IpAddr>,
}

/// A resolver that asks `server`, or whom the system asks.
pub(super) fn resolver(server: Option<SocketAddr>) -> Result<TokioResolver, String> {
    let builder = match server {
        None => TokioResolver::builder_tokio(),
        Some(address) => {
            let mut udp = ConnectionConfig::udp();
            udp.port = address.port();
            let server = NameServerConfig::new(address.ip(), true, vec![udp]);
            let config = ResolverConfig::from_parts(None, Vec::new(), vec![server]);
            Ok(TokioResolver::builder_with_config(config, TokioRuntimeProvider::default()))
        }
    };
    let mut builder = builder.map_err(|error| error.to_string())?;
    builder.options_mut().attempts = 1;
    builder.options_mut().timeout = LONGEST;
    builder.build().map_err(|error| error.to_string())
}

/// The addresses of the host, as the system finds them or as `resolver` does.
pub(super) async fn addresses(
    findings: &mut Findings,
    site: &Site,
    server: Option<SocketAddr>,
) -> Vec<SocketAddr> {
    let found = match (site.address(), server) {
        (Some(address), _) => Ok(vec![address]),
        (None, None) => system(site).await,
        (None, Some(_)) => asked(site, server).await,
    };
    match found {
        Ok(addresses) if !addresses.is_empty() => {
            let list: Vec<_> = addresses.iter().map(|address| address.ip().to_string()).collect();
            findings.good("addresses", list.join(", "));
            addresses
        }
        Ok(_) => {
            findings.broken("addresses", format!("{} has none", site.host), "add A and AAAA records");
            Vec::new()
        }
        Err(problem) => {
            let text = format!("{} is not found: {problem}", site.host);
            findings.broken("addresses", text, "check the name, and the machine's name servers");
            Vec::new()
        }
    }
}

async fn system(site: &Site) -> Result<Vec<SocketAddr>, String> {
    let lookup = tokio::net::lookup_host((site.host.as_str(), site.port));
    let found = timeout(LONGEST, lookup).await.map_err(|_| "no answer in time".to_owned())?;
    let mut addresses: Vec<SocketAddr> = found.map_err(|error| godwit_text::plain_error(&error))?.collect();
    addresses.dedup();
    Ok(addresses)
}

async fn asked(site: &Site, server: Option<SocketAddr>) -> Result<Vec<SocketAddr>, String> {
    let found = resolver(server)?.lookup_ip(site.host.as_str()).await.map_err(|error| error.to_string())?;
    Ok(found.iter().map(|address| SocketAddr::new(address, site.port)).collect())
}

/// The HTTPS records of the site.
///
/// # Errors
/// If no answer comes. That there are none is not an error.
pub(super) async fn https(site: &Site, server: Option<SocketAddr>) -> Result<Vec<Https>, String> {
    let resolver = resolver(server)?;
    let name = owner(site);
    let lookup = timeout(LONGEST * 2, resolver.lookup(name, RecordType::HTTPS));
    match lookup.await.map_err(|_| "no answer in time".to_owned())? {
        Ok(found) => Ok(found.answers().iter().filter_map(|record| service(&record.data)).collect()),
        Err(error) if error.is_no_records_found() || error.is_nx_domain() => Ok(Vec::new()),
        Err(error) => Err(error.to_string()),
    }
}

/// Where the record stands: for other ports than 443 under a name with a prefix (RFC 9460 section 9.1).
pub(super) fn owner(site: &Site) -> String {
    match site.port {
        443 => format!("{}.", site.host),
        port => format!("_{port}._https.{}.", site.host),
    }
}

fn service(data: &RData) -> Option<Https> {
    let RData::HTTPS(record) = data else { return None };
    let SVCB { svc_priority, target_name, svc_params, .. } = &record.0;
    if *svc_priority == 0 {
        return None;
    }
    let target = target_name.to_string();
    let mut https = Https { target: target.trim_end_matches('.').to_owned(), ..Https::default() };
    for (_, value) in svc_params {
        match value {
            SvcParamValue::Alpn(alpn) => https.alpn.clone_from(&alpn.0),
            SvcParamValue::Port(port) => https.port = Some(*port),
            SvcParamValue::Ipv4Hint(hints) => {
                https.hints.extend(hints.0.iter().map(|hint| IpAddr::V4(hint.0)))
            }
            SvcParamValue::Ipv6Hint(hints) => {
                https.hints.extend(hints.0.iter().map(|hint| IpAddr::V6(hint.0)))
            }
            _ => {}
        }
    }
    Some(https)
}

/// Judges the records beside the addresses that the name has.
pub(super) fn examine(
    findings: &mut Findings,
    site: &Site,
    records: &Result<Vec<Https>, String>,
    addresses: &[SocketAddr],
) {
    let topic = "HTTPS record";
    let print = format!("`godwit serve print-dns {}` prints it", site.host);
    let records = match records {
        Err(problem) => {
            let text = format!("it could not be looked up: {problem}");
            return findings.warn(topic, text, "check the name server; some do not know the type");
        }
        Ok(records) if records.is_empty() => {
            let text = format!("{} has none: browsers begin with TCP on the first visit", owner(site));
            return findings.warn(topic, text, format!("add one; {print}"));
        }
        Ok(records) => records,
    };
    for record in records {
        if !record.alpn.iter().any(|alpn| alpn == "h3") {
            let text = format!("it offers {} but not h3", record.alpn.join(", "));
            findings.warn(topic, text, format!("add h3 to its alpn; {print}"));
        } else if site.port != 443 && record.target.is_empty() {
            let text = "its target is \".\", which Chromium ignores for other ports than 443";
            findings.warn(topic, text, format!("name {} as target; {print}", site.host));
        } else if let Some(stray) = record.hints.iter().find(|hint| !has(addresses, **hint)) {
            let text = format!("its hint {stray} is no address of {}", site.host);
            findings.broken(topic, text, "bring the hints in line with the addresses, or leave them out");
        } else {
            let port = record.port.map_or_else(String::new, |port| format!(", port {port}"));
            findings.good(topic, format!("alpn {}{port}", record.alpn.join(", ")));
        }
    }
}

fn has(addresses: &[SocketAddr], wanted: IpAddr) -> bool {
    // The system may hide the family that this machine does not have.
    let of_family = addresses.iter().any(|address| address.is_ipv4() == wanted.is_ipv4());
    !of_family || addresses.iter().any(|address| address.ip() == wanted)
}

#[cfg(test)]
mod tests {
    use super::super::finding::{Finding, Level};
    use super::*;

    fn judge(url: &str, record: Https) -> Finding {
        let site = url.parse::<Site>().unwrap();
        let mut findings = Findings::new("test");
        examine(&mut findings, &site, &Ok(vec![record]), &["192.0.2.1:443".parse().unwrap()]);
        findings.findings.remove(0)
    }

    fn record() -> Https {
        Https { alpn: vec!["h3".to_owned(), "h2".to_owned()], ..Https::default() }
    }

    #[test]
    fn records_are_judged() {
        assert_eq!(judge("https://example.com/", record()).level, Level::Good);
        let without = Https { alpn: vec!["h2".to_owned()], ..record() };
        assert!(judge("https://example.com/", without).text.contains("not h3"));
        let other_port = judge("https://example.com:8443/", record());
        assert!(other_port.text.contains("Chromium ignores"), "{other_port:?}");
        let named = Https { target: "example.com".to_owned(), port: Some(8443), ..record() };
        assert_eq!(judge("https://example.com:8443/", named).level, Level::Good);
        let stray = Https { hints: vec!["192.0.2.9".parse().unwrap()], ..record() };
        assert_eq!(judge("https://example.com/", stray).level, Level::Broken);
        let other_family = Https { hints: vec!["2001:db8::9".parse().unwrap()], ..record() };
        assert_eq!(judge("https://example.com/", other_family).level, Level::Good);
    }

    #[test]
    fn records_of_other_ports_stand_under_a_prefix() {
        let owner = |url: &str| owner(&url.parse::<Site>().unwrap());
        assert_eq!(owner("https://example.com/"), "example.com.");
        assert_eq!(owner("https://example.com:8443/"), "_8443._https.example.com.");
    }
}
