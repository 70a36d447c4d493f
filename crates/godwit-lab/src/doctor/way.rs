//! The way to a site: its name, its certificate, what it advertises, and whether that is true.

use std::net::SocketAddr;
use std::time::Duration;

use godwit_client::TriedOutcome;
use godwit_client::alt_svc::{self, AltSvc, Alternative};
use godwit_client::trust::Roots;
use godwit_text::{duration, long_duration as long, unix_now};

use super::finding::Findings;
use super::probe::{self, Answer, Problem, Reached, TcpProblem};
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
    roots: Roots,
    dns: Option<SocketAddr>,
    section: &mut dyn FnMut(Findings),
) {
    let mut findings = Findings::new(format!("the name {}", site.host));
    let mut addresses = records::addresses(&mut findings, site, dns).await;
    addresses.truncate(MOST_ADDRESSES);
    if !addresses.is_empty() && site.address().is_none() && !site.is_local() {
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
    let place = first.and_then(|answer| h3_place(site, answer));
    let port = place.as_ref().map_or(site.port, |place| place.port);
    let elsewhere = place.and_then(|place| place.host).filter(|host| !is_same(host, site));
    let mut findings;
    if let Some(host) = &elsewhere {
        findings = Findings::new(format!("HTTP/3 at {host}, UDP port {port}, where Alt-Svc sends clients"));
        let other = Site { host: host.clone(), port, path: site.path.clone() };
        addresses = records::addresses(&mut findings, &other, dns).await;
        addresses.truncate(MOST_ADDRESSES);
    } else {
        findings = Findings::new(format!("HTTP/3 at UDP port {port}"));
    }
    for address in addresses {
        let address = SocketAddr::new(address.ip(), port);
        let reached = probe::over_quic(site, address).await;
        let place = Place { address, elsewhere: elsewhere.as_deref() };
        over_quic(&mut findings, place, &reached, first);
        if let (Some(_), Ok(reached)) = (&elsewhere, &reached) {
            // It need not be the same, but good for this site (RFC 7838 section 2.1).
            certificate::trust(&mut findings, &reached.chain, &site.host, &roots);
        }
    }
    section(findings);
}

/// Where HTTP/3 is looked for.
#[derive(Clone, Copy, Debug)]
struct Place<'a> {
    address: SocketAddr,
    /// Another server than the site's own, which `Alt-Svc` names.
    elsewhere: Option<&'a str>,
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
                if let Some(server) = &answer.server {
                    findings.good("server", format!("{address}: {server}"));
                }
                answers.push(answer);
            }
            Err(problem) => {
                findings.broken(
                    "TCP",
                    format!("{address}: {}", problem.text),
                    tcp_remedy(&problem, *address),
                );
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

/// A time of whole seconds.
fn seconds(count: u64) -> String {
    long(Duration::from_secs(count))
}

/// The versions of QUIC that there are (RFC 9000, RFC 9369).
fn version(number: u32) -> String {
    match number {
        1 => "QUIC version 1".to_owned(),
        0x6b33_43cf => "QUIC version 2".to_owned(),
        other => format!("QUIC version {other:#010x}"),
    }
}

/// What helps where TCP does not work.
fn tcp_remedy(problem: &TcpProblem, address: SocketAddr) -> String {
    let port = address.port();
    match problem.outcome {
        Some(TriedOutcome::Silent) => {
            format!("open TCP port {port} in firewalls and security groups; check that the address is right")
        }
        Some(TriedOutcome::NobodyListens) => {
            "start the server, or give the port that it listens on".to_owned()
        }
        Some(TriedOutcome::NotTls) => {
            "give the port for https, or configure TLS for this one: HTTP/3 is always encrypted".to_owned()
        }
        Some(TriedOutcome::NoWay) => "try from a machine that has this address family".to_owned(),
        Some(_) | None => "look into the server's log for this connection".to_owned(),
    }
}

/// Where HTTP/3 is advertised: on the same host if it is there, or else at another.
fn h3_place(site: &Site, answer: &Answer) -> Option<Alternative> {
    let fields = answer.alt_svc.iter().filter_map(|text| alt_svc::parse(text).ok());
    let all = fields.filter_map(|field| match field {
        AltSvc::Alternatives(alternatives) => Some(alternatives),
        _ => None,
    });
    let offers: Vec<Alternative> = all.flatten().filter(|one| one.protocol == "h3").collect();
    let own = offers.iter().find(|one| one.host.as_ref().is_none_or(|host| is_same(host, site)));
    own.or(offers.first()).cloned()
}

fn is_same(host: &str, site: &Site) -> bool {
    host.eq_ignore_ascii_case(&site.host)
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
                    let (age, port) = (long(one.age), one.port);
                    let text = match one.host.as_deref() {
                        Some(host) if !is_same(host, site) => {
                            format!("h3 at another server, {host}:{port}, for {age}")
                        }
                        host => format!("h3 at {}:{port}, for {age}", host.unwrap_or_default()),
                    };
                    findings.good(topic, text);
                }
            },
            Ok(_) => {}
        }
    }
}

fn over_quic(
    findings: &mut Findings,
    place: Place<'_>,
    reached: &Result<Reached, Problem>,
    tcp: Option<&Answer>,
) {
    let Place { address, elsewhere } = place;
    let port = address.port();
    // Where another server is meant, it may be that none should be.
    let or_none = elsewhere.map_or_else(String::new, |host| {
        format!("; or leave {host} out of Alt-Svc (h3=\":{port}\") if this server speaks HTTP/3 itself")
    });
    let reached = match reached {
        Ok(reached) => reached,
        Err(Problem::Silent) => {
            let text = format!("{address}: not one datagram came back");
            let remedy = format!(
                "open UDP port {port} in firewalls and security groups, publish it in the container (-p \
                 {port}:{port}/udp), and check that a server listens{or_none}"
            );
            return findings.broken("QUIC", text, remedy);
        }
        Err(Problem::Refused) => {
            let text = format!("{address}: refused: the machine says that nobody listens on UDP port {port}");
            let remedy = format!(
                "start a server for HTTP/3 there (UDP comes through; a firewall may also refuse in its name){or_none}"
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
    let version = version(reached.version);
    let status = reached.status;
    let text = format!("{address}: {version}, handshake in {took}, round trip {rtt}, status {status}");
    findings.good("QUIC", text);
    let of_tcp = tcp.and_then(|tcp| tcp.server.as_ref());
    if let Some(server) = reached.server.as_ref().filter(|server| of_tcp != Some(*server)) {
        findings.good("server", format!("{address}: {server}"));
    }
    match reached.mtu {
        mtu if mtu >= FULL_MTU => findings.good("MTU", format!("{address}: {mtu} bytes in a datagram")),
        mtu => findings.warn(
            "MTU",
            format!("{address}: datagrams of {mtu} bytes, no larger ones"),
            "a tunnel or small MTU lies on the way, or ICMP is filtered; it works, with more datagrams",
        ),
    }
    let Some(tcp) = tcp else { return };
    if elsewhere.is_none() && tcp.chain.first() != reached.chain.first() {
        let text = format!("{address}: not the one that TCP shows");
        findings.broken("certificate", text, "restart or reload the server: its UDP side has an old one");
    }
    if tcp.status != reached.status {
        let text = format!("{address}: {} over HTTP/3, {} over TCP", reached.status, tcp.status);
        findings.warn("status", text, "serve the same sites over both");
    }
}
