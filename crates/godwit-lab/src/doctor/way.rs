//! The way to a site: its name, its certificate, what it advertises, and whether that is true.

use std::net::SocketAddr;
use std::time::Duration;

use godwit_client::alt_svc::{self, AltSvc};
use godwit_text::{duration, unix_now};
use rustls::RootCertStore;

use super::finding::Findings;
use super::probe::{self, Answer, Problem, Reached};
use super::site::Site;
use super::{certificate, records};

/// Addresses of a name that are tried.
const MOST_ADDRESSES: usize = 4;
/// A clock that is wrong by more makes certificates and tokens invalid.
const CLOCK: i64 = 60;
/// UDP payload that nearly every path carries: 1500 bytes less IPv6 and UDP headers.
const FULL_MTU: u16 = 1452;

/// Examines a site, a section of the report for each part.
pub(super) async fn examine(
    site: &Site,
    roots: RootCertStore,
    dns: Option<SocketAddr>,
    section: &mut dyn FnMut(Findings),
) {
    let mut findings = Findings::new(format!("the name {}", site.host));
    let mut addresses = records::addresses(&mut findings, site, dns).await;
    addresses.truncate(MOST_ADDRESSES);
    if !addresses.is_empty() && site.address().is_none() {
        let https = records::https(site, dns).await;
        records::examine(&mut findings, site, &https, &addresses);
    }
    section(findings);
    if addresses.is_empty() {
        return;
    }
    let mut findings = Findings::new(format!("{} over TCP", site.url()));
    let answers = over_tcp(&mut findings, site, &addresses).await;
    let first = answers.first();
    if let Some(answer) = first {
        certificate::examine(&mut findings, &answer.chain, &site.host, &roots);
        clock(&mut findings, answer);
        advertised(&mut findings, site, answer);
    }
    section(findings);
    let port = first.and_then(|answer| h3_port(site, answer)).unwrap_or(site.port);
    let mut findings = Findings::new(format!("HTTP/3 at UDP port {port}"));
    for address in addresses {
        let address = SocketAddr::new(address.ip(), port);
        let reached = probe::over_quic(site, address).await;
        over_quic(&mut findings, address, &reached, first);
    }
    section(findings);
}

async fn over_tcp(findings: &mut Findings, site: &Site, addresses: &[SocketAddr]) -> Vec<Answer> {
    let mut answers = Vec::new();
    for address in addresses {
        match probe::over_tcp(site, *address).await {
            Ok(answer) => {
                let version = match answer.version {
                    Some(rustls::ProtocolVersion::TLSv1_3) => "TLS 1.3",
                    Some(_) => "TLS 1.2",
                    None => "TLS",
                };
                let took = duration(answer.connected);
                let (protocol, status) = (answer.protocol, answer.status);
                let text =
                    format!("{address}: {version}, {protocol:?}, status {status}, connected in {took}");
                match version {
                    "TLS 1.2" => findings.warn("TCP", text, "enable TLS 1.3: QUIC needs it anyway"),
                    _ => findings.good("TCP", text),
                }
                answers.push(answer);
            }
            Err(problem) => {
                let remedy = "check that a server listens there and that the firewall lets TCP through";
                findings.broken("TCP", format!("{address}: {problem}"), remedy);
            }
        }
    }
    answers
}

fn clock(findings: &mut Findings, answer: &Answer) {
    let Some(theirs) = answer.date.as_deref().and_then(godwit_text::parse_http_date) else { return };
    let off = theirs - unix_now();
    if off.abs() <= CLOCK {
        return findings.good("clock", "this machine and the server agree");
    }
    let text = format!("this machine and the server are {} apart", seconds(off.unsigned_abs()));
    findings.warn("clock", text, "set both by NTP; certificates and address tokens depend on it");
}

fn seconds(count: u64) -> String {
    duration(Duration::from_secs(count))
}

/// The port that HTTP/3 of the same host is advertised at.
fn h3_port(site: &Site, answer: &Answer) -> Option<u16> {
    let fields = answer.alt_svc.iter().filter_map(|text| alt_svc::parse(text).ok());
    let mut alternatives = fields.filter_map(|field| match field {
        AltSvc::Alternatives(alternatives) => Some(alternatives),
        _ => None,
    });
    let of_host =
        |host: &Option<String>| host.as_ref().is_none_or(|host| host.eq_ignore_ascii_case(&site.host));
    alternatives
        .find_map(|all| all.iter().find(|one| one.protocol == "h3" && of_host(&one.host)).map(|one| one.port))
}

fn advertised(findings: &mut Findings, site: &Site, answer: &Answer) {
    let topic = "Alt-Svc";
    let example = format!("h3=\":{}\"; ma=86400", site.port);
    if answer.alt_svc.is_empty() {
        let remedy = format!("send `alt-svc: {example}` once UDP works, or look why it is withheld");
        return findings.warn(topic, "not sent: browsers do not learn of HTTP/3 from it", remedy);
    }
    for text in &answer.alt_svc {
        match alt_svc::parse(text) {
            Err(problem) => {
                let text = format!("{text} cannot be read: {problem}");
                findings.broken(topic, text, format!("write it like `{example}`"));
            }
            Ok(AltSvc::Clear) => {
                let text = "clear: clients are told to forget HTTP/3";
                findings.warn(topic, text, "look why: the server's own probe of UDP may have failed");
            }
            Ok(AltSvc::Alternatives(all)) => match all.iter().find(|one| one.protocol == "h3") {
                None => findings.warn(topic, format!("{text} has no h3"), format!("add {example}")),
                Some(one) if site.port < 1024 && one.port >= 1024 => {
                    let text = format!("{text}: browsers ignore a port above 1023 for an origin below 1024");
                    findings.broken(topic, text, "advertise a port below 1024");
                }
                Some(one) if one.age < Duration::from_secs(60) => {
                    findings.warn(
                        topic,
                        format!("{text}: forgotten in a minute"),
                        "give it a day (ma=86400)",
                    );
                }
                Some(one) => {
                    let age = seconds(one.age.as_secs());
                    let host = one.host.as_deref().unwrap_or_default();
                    findings.good(topic, format!("h3 at {host}:{}, for {age}", one.port));
                }
            },
            Ok(_) => {}
        }
    }
}

fn over_quic(
    findings: &mut Findings,
    address: SocketAddr,
    reached: &Result<Reached, Problem>,
    tcp: Option<&Answer>,
) {
    let reached = match reached {
        Ok(reached) => reached,
        Err(Problem::Silent) => {
            let text = format!("{address}: not one datagram came back");
            let remedy = format!(
                "open UDP port {} in firewalls and security groups, publish it in the container (-p {0}:{0}/udp), \
                 and check that a server listens",
                address.port()
            );
            return findings.broken("QUIC", text, remedy);
        }
        Err(Problem::Failed(problem)) => {
            let text = format!("{address}: somebody answers, but {problem}");
            return findings.broken("QUIC", text, "look into the server's log for this handshake");
        }
        Err(Problem::NoRoute(problem)) => {
            let text = format!("{address}: this machine cannot send there ({problem})");
            return findings.warn("QUIC", text, "try from a machine that has this address family");
        }
    };
    let (took, rtt) = (duration(reached.handshake), duration(reached.rtt));
    findings
        .good("QUIC", format!("{address}: handshake in {took}, round trip {rtt}, status {}", reached.status));
    match reached.mtu {
        mtu if mtu >= FULL_MTU => findings.good("MTU", format!("{address}: {mtu} bytes in a datagram")),
        mtu => findings.warn(
            "MTU",
            format!("{address}: datagrams of {mtu} bytes, no larger ones"),
            "a tunnel or small MTU lies on the way, or ICMP is filtered; it works, with more datagrams",
        ),
    }
    let Some(tcp) = tcp else { return };
    if tcp.chain.first() != reached.chain.first() {
        let text = format!("{address}: not the one that TCP shows");
        findings.broken("certificate", text, "restart or reload the server: its UDP side has an old one");
    }
    if tcp.status != reached.status {
        let text = format!("{address}: {} over HTTP/3, {} over TCP", reached.status, tcp.status);
        findings.warn("status", text, "serve the same sites over both");
    }
}
