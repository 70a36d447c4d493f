//! This machine: what its sockets can do, its limits, its clock, and a QUIC handshake with itself.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;

use godwit::http3::{self, Client};
use godwit::{Capabilities, ClientConfig, Endpoint, ServerConfig, SocketConfig};
use tokio::time::timeout;

use super::LONGEST;
use super::finding::Findings;
use godwit_text::plain_error as plain;
use godwit_text::{duration, instant_now, size, unix_now};

/// The program is younger than this: 2026-01-01.
const EARLIEST: i64 = 1_767_225_600;
/// Descriptors that a server for many clients wants.
const DESCRIPTORS: u64 = 8192;
/// The least MTU that QUIC works with: datagrams of 1200 bytes and their headers (RFC 9000 section 14).
const LEAST_MTU: u32 = 1280;
const USUAL_MTU: u32 = 1500;

pub(super) async fn examine(findings: &mut Findings) {
    match server() {
        Ok(endpoint) => {
            if let Some(socket) = endpoint.stats().sockets.first() {
                sockets(findings, &socket.capabilities);
            }
            handshake(findings, &endpoint).await;
            endpoint.close(0, b"");
        }
        Err(problem) => {
            let remedy = "check that nothing (a sandbox, a limit) forbids UDP sockets";
            findings.broken("UDP socket", problem, remedy);
        }
    }
    families(findings);
    interfaces(findings, Path::new("/sys/class/net"));
    limits(findings, std::fs::read_to_string("/proc/self/limits").ok().as_deref());
    ports(findings, std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start").ok().as_deref());
    clock(findings, unix_now());
}

fn server() -> Result<Endpoint, String> {
    let made =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).map_err(|error| error.to_string())?;
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let config = ServerConfig::with_single_cert(vec![made.cert.der().clone()], key).alpn([http3::ALPN]);
    let config = config.build().map_err(|error| error.to_string())?;
    Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into()).map_err(|error| plain(&error))
}

fn sockets(findings: &mut Findings, granted: &Capabilities) {
    let wanted = SocketConfig::default().recv_buffer;
    let (got, asked) = (size(granted.recv_buffer as u64), size(wanted as u64));
    if granted.recv_buffer == 0 || granted.recv_buffer >= wanted {
        findings.good("UDP buffers", format!("{got} for receiving"));
    } else {
        let text = format!("{got} for receiving, {asked} were asked for: bursts are lost");
        let remedy = format!("as root: sysctl -w net.core.rmem_max={wanted} net.core.wmem_max={wanted}");
        findings.warn("UDP buffers", text, remedy);
    }
    match (granted.gso_segments > 1, granted.gro) {
        (true, true) => {
            let text = format!("GSO ({} datagrams a send) and GRO", granted.gso_segments);
            findings.good("UDP offloads", text);
        }
        (gso, _) => {
            let missing = if gso { "GRO" } else { "GSO" };
            let text = format!("no {missing}: each datagram costs a system call");
            findings.warn("UDP offloads", text, "use Linux 5.0 or later; some container sandboxes hide it");
        }
    }
    if !granted.ecn {
        let text = "not available: congestion is seen only when packets are lost";
        findings.warn("ECN", text, "nothing to do on this system");
    }
}

async fn handshake(findings: &mut Findings, endpoint: &Endpoint) {
    let begun = instant_now();
    let outcome = timeout(LONGEST, async {
        let address = endpoint.local_addr().map_err(|error| plain(&error))?;
        let client = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).map_err(|error| plain(&error))?;
        let config = ClientConfig::danger_accept_any_certificate().build();
        let config = config.map_err(|error| error.to_string())?;
        let connect = async { Client::connect(&client, &config, address, "localhost").await.map(drop) };
        let accept = async {
            if let Some(incoming) = endpoint.accept().await {
                // The client's word decides.
                let _ = incoming.accept().await;
            }
        };
        let (connected, ()) = tokio::join!(connect, accept);
        connected.map_err(|error| error.to_string())
    });
    match outcome.await {
        Ok(Ok(())) => findings.good("handshake", format!("with itself, in {}", duration(begun.elapsed()))),
        Ok(Err(problem)) => {
            let remedy = "check for a firewall that filters UDP on the loopback";
            findings.broken("handshake", format!("with itself failed: {problem}"), remedy);
        }
        Err(_) => {
            let remedy = "check for a firewall that drops UDP on the loopback";
            findings.broken("handshake", "with itself: nothing came through", remedy);
        }
    }
}

fn families(findings: &mut Findings) {
    let can = |address: SocketAddr| UdpSocket::bind(address).is_ok();
    match (can((Ipv4Addr::LOCALHOST, 0).into()), can((Ipv6Addr::LOCALHOST, 0).into())) {
        (true, true) => findings.good("families", "IPv4 and IPv6"),
        (true, false) => {
            let text = "IPv4 only: clients of IPv6 networks come by way of translators";
            findings.warn("families", text, "enable IPv6 on this machine");
        }
        (false, _) => findings.good("families", "IPv6"),
    }
}

fn interfaces(findings: &mut Findings, folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut seen = Vec::new();
    for entry in entries.flatten() {
        let read = |name: &str| std::fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        let name = entry.file_name().to_string_lossy().into_owned();
        let up = read("operstate").trim() == "up";
        if let (Ok(mtu), true) = (read("mtu").trim().parse::<u32>(), up && name != "lo") {
            seen.push((mtu, name));
        }
    }
    seen.sort();
    let Some((mtu, name)) = seen.first() else { return };
    let text = format!("{mtu} bytes on {name}");
    if *mtu < LEAST_MTU {
        let remedy = format!("set it to {LEAST_MTU} at least: ip link set {name} mtu {LEAST_MTU}");
        findings.broken("MTU", format!("{text}: too small for QUIC"), remedy);
    } else if *mtu < USUAL_MTU {
        findings.warn("MTU", text, "a tunnel perhaps; QUIC works, with smaller datagrams");
    } else {
        findings.good("MTU", text);
    }
}

fn limits(findings: &mut Findings, limits: Option<&str>) {
    let line = limits.and_then(|text| text.lines().find_map(|line| line.strip_prefix("Max open files")));
    let Some(line) = line else { return };
    let mut numbers = line.split_whitespace().map(|word| word.parse().unwrap_or(u64::MAX));
    let (soft, hard) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if hard >= DESCRIPTORS {
        return findings.good("open files", format!("{} may be open", soft.max(hard).min(1 << 30)));
    }
    let text = format!("{hard} may be open: a server takes about half as many connections over TCP");
    findings.warn("open files", text, "raise it: LimitNOFILE=65536 in the systemd unit, or ulimit -n 65536");
}

fn ports(findings: &mut Findings, first_free: Option<&str>) {
    let first_free: u16 = first_free.and_then(|text| text.trim().parse().ok()).unwrap_or(1024);
    let root = std::fs::metadata("/proc/self").is_ok_and(|own| {
        use std::os::unix::fs::MetadataExt;
        own.uid() == 0
    });
    if root || first_free <= 443 {
        return findings.good("port 443", "may be used");
    }
    let text = "needs a privilege that this user does not have";
    let remedy = "use systemd's socket activation, or `setcap cap_net_bind_service=+ep` on the program";
    findings.warn("port 443", text, remedy);
}

fn clock(findings: &mut Findings, now: i64) {
    if now < EARLIEST {
        let text = format!("it says {}", godwit_text::date(now));
        findings.broken("clock", text, "set it, best by NTP: certificates seem not to be valid yet");
    } else {
        findings.good("clock", format!("it says {}", godwit_text::date(now)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn only(examine: impl FnOnce(&mut Findings)) -> (Level, String) {
        let mut findings = Findings::new("test");
        examine(&mut findings);
        let finding = findings.findings.remove(0);
        (finding.level, finding.text)
    }

    #[tokio::test]
    async fn this_machine_can_shake_hands_with_itself() {
        let mut findings = Findings::new("test");
        examine(&mut findings).await;
        let handshake = findings.findings.iter().find(|finding| finding.topic == "handshake").unwrap();
        assert_eq!(handshake.level, Level::Good, "{findings:?}");
    }

    #[test]
    fn small_buffers_get_a_remedy() {
        let mut granted = Capabilities::new("test");
        (granted.gso_segments, granted.recv_buffer) = (64, 212_992);
        (granted.gro, granted.ecn, granted.packet_info) = (true, true, true);
        let mut findings = Findings::new("test");
        sockets(&mut findings, &granted);
        assert_eq!(findings.findings[0].level, Level::Warning);
        assert!(findings.findings[0].remedy.as_deref().unwrap().contains("net.core.rmem_max="));
        assert_eq!(findings.findings[1].level, Level::Good);
    }

    #[test]
    fn interfaces_with_small_mtu_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let interface = |name: &str, mtu: &str, state: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join("mtu"), mtu).unwrap();
            std::fs::write(path.join("operstate"), state).unwrap();
        };
        interface("lo", "65536\n", "unknown\n");
        interface("eth0", "1500\n", "up\n");
        interface("eth1", "900\n", "down\n");
        let (level, text) = only(|findings| interfaces(findings, folder.path()));
        assert_eq!((level, text.as_str()), (Level::Good, "1500 bytes on eth0"));
        interface("tun0", "1200\n", "up\n");
        assert_eq!(only(|findings| interfaces(findings, folder.path())).0, Level::Broken);
    }

    #[test]
    fn limits_and_clock() {
        let line = |soft, hard| {
            format!("Max open files            {soft}                {hard}              files\n")
        };
        assert_eq!(only(|findings| limits(findings, Some(&line(1024, 524_288)))).0, Level::Good);
        assert_eq!(only(|findings| limits(findings, Some(&line(256, 4096)))).0, Level::Warning);
        assert_eq!(only(|findings| clock(findings, 0)).0, Level::Broken);
        assert_eq!(only(|findings| clock(findings, EARLIEST + 1)).0, Level::Good);
    }
}
