//! What is printed at the start: where the server is, what it shows and speaks, and how to reach it.
//! Never more than twelve lines.

use std::net::{IpAddr, SocketAddr};

use godwit_certificates::Identity;
use godwit_certificates::local::host_name;
use godwit_front::Granted;

use super::browser;
use super::target::Target;
use crate::output::{Style, date, shell_word, size, unix_now};

/// A receive buffer below this share of what was asked for is worth a hint.
const ENOUGH: f64 = 0.5;

/// What the banner tells.
#[derive(Debug)]
pub(super) struct Banner<'a> {
    /// What is served.
    what: &'a str,
    identity: &'a Identity,
    targets: Vec<Target>,
    granted: Option<Granted>,
    ports: String,
    style: Style,
}

impl<'a> Banner<'a> {
    pub(super) fn new(
        what: &'a str,
        identity: &'a Identity,
        addresses: &[SocketAddr],
        granted: Option<Granted>,
        style: Style,
    ) -> Banner<'a> {
        let host = host_name().filter(|name| identity.facts.names.contains(name));
        let mut ports: Vec<String> = addresses.iter().map(|address| address.port().to_string()).collect();
        ports.dedup();
        Banner {
            what,
            identity,
            targets: targets(addresses, host.as_deref()),
            granted,
            ports: ports.join(", "),
            style,
        }
    }

    /// The best place to reach the server at from this machine.
    pub(super) fn target(&self) -> Option<&Target> {
        self.targets.first()
    }

    /// The lines, each with its end.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for line in self.lines() {
            text.push_str(&line);
            text.push('\n');
        }
        text
    }

    fn lines(&self) -> Vec<String> {
        let what = self.what;
        let version = env!("CARGO_PKG_VERSION");
        let title = format!("godwit {version} serves {what}");
        let mut lines = vec![self.style.bold(&title).into_owned()];
        let urls: Vec<String> = self.targets.iter().take(3).map(Target::url).collect();
        lines.push(self.row("address", &urls.join("  ")));
        lines.push(self.row("protocols", &self.protocols()));
        lines.push(self.row("certificate", &self.certificate()));
        if let Some(authority) = &self.identity.authority {
            lines.push(self.row("authority", &authority.display().to_string()));
        }
        if let Some(granted) = &self.granted {
            lines.push(self.row("UDP", &udp(granted)));
            lines.extend(remedy(granted).map(|remedy| self.row("", &remedy)));
        }
        if let Some(target) = self.target() {
            lines.push(self.row("browser", &self.browser(target)));
            lines.push(self.row("curl", &self.command("curl --http3", target)));
            lines.push(self.row("godwit", &self.command("godwit get", target)));
        }
        lines.push(String::new());
        lines
    }

    fn row(&self, label: &str, text: &str) -> String {
        let label = format!("  {label:<13}");
        format!("{}{text}", self.style.dim(&label))
    }

    fn protocols(&self) -> String {
        format!("HTTP/3 (UDP), HTTP/2 and HTTP/1.1 (TCP), port {}", self.ports)
    }

    fn certificate(&self) -> String {
        let facts = &self.identity.facts;
        let days = (facts.not_after - unix_now()).div_euclid(86_400);
        let end = match days {
            ..0 => format!("expired on {}", date(facts.not_after)),
            days => format!("until {} ({days} days)", date(facts.not_after)),
        };
        format!("{}; {end}", facts.names_in_words())
    }

    fn browser(&self, target: &Target) -> String {
        if self.identity.authority.is_none() {
            return target.url();
        }
        let flags = browser::trust_flags(target, &self.identity.facts.pin);
        let profile = std::env::temp_dir().join("godwit-profile");
        let profile = format!("--user-data-dir={}", profile.display());
        format!("chromium {} {} {}", flags.join(" "), shell_word(&profile), target.url())
    }

    fn command(&self, program: &str, target: &Target) -> String {
        let trust = self.identity.authority.as_ref().map_or_else(String::new, |authority| {
            format!(" --cacert {}", shell_word(&authority.display().to_string()))
        });
        format!("{program}{trust} {}", target.url())
    }
}

/// Names for "every address", and the address itself otherwise: with HTTP/3 forced, a browser that is sent to
/// `localhost` tries one address only, and that may not be the one that is bound.
fn targets(addresses: &[SocketAddr], host: Option<&str>) -> Vec<Target> {
    let mut targets = Vec::new();
    for address in addresses {
        let port = address.port();
        match address.ip() {
            ip if ip.is_unspecified() => {
                targets.push(Target { host: "localhost".to_owned(), port });
                targets.extend(host.map(|host| Target { host: host.to_owned(), port }));
            }
            IpAddr::V4(ip) => targets.push(Target { host: ip.to_string(), port }),
            IpAddr::V6(ip) => targets.push(Target { host: format!("[{ip}]"), port }),
        }
    }
    targets
}

fn udp(granted: &Granted) -> String {
    let on = |on: bool| if on { "on" } else { "off" };
    format!(
        "GSO {}, GRO {}, receive buffer {}",
        on(granted.gso),
        on(granted.gro),
        size(granted.receive_buffer as u64)
    )
}

/// What to do about a small receive buffer.
fn remedy(granted: &Granted) -> Option<String> {
    let wanted = granted.wanted_buffer;
    let small = granted.receive_buffer > 0 && (granted.receive_buffer as f64) < wanted as f64 * ENOUGH;
    small.then(|| {
        let asked = size(wanted as u64);
        format!("of {asked} asked for; bursts may be lost: sudo sysctl -w net.core.rmem_max={wanted}")
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

    use super::*;
    use godwit_certificates::Facts;

    fn identity(authority: Option<&str>) -> Identity {
        let mut facts = Facts::default();
        facts.names = vec!["localhost".to_owned(), "box".to_owned()];
        facts.not_after = unix_now() + 86_400 * 30 + 60;
        facts.pin = "PIN=".to_owned();
        Identity {
            chain: Vec::new(),
            key: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(vec![0])),
            facts,
            authority: authority.map(PathBuf::from),
        }
    }

    fn banner(identity: &Identity, receive_buffer: usize) -> Banner<'_> {
        let addresses = ["[::]:4433", "127.0.0.1:443", "[::1]:8443"].map(|text| text.parse().unwrap());
        let mut granted = Granted::default();
        (granted.gso, granted.receive_buffer, granted.wanted_buffer) = (true, receive_buffer, 7 << 20);
        Banner {
            what: "its example site",
            identity,
            targets: targets(&addresses, Some("box")),
            granted: Some(granted),
            ports: "4433".to_owned(),
            style: Style::PLAIN,
        }
    }

    #[test]
    fn the_fullest_banner_has_at_most_twelve_lines() {
        let identity = identity(Some("/home/my user/ca.pem"));
        let text = banner(&identity, 212_992).text();
        assert!(text.lines().count() <= 12, "{text}");
        for expected in [
            "https://localhost:4433/  https://box:4433/  https://127.0.0.1/",
            "HTTP/3 (UDP), HTTP/2 and HTTP/1.1 (TCP), port 4433",
            "localhost, box; until",
            "(30 days)",
            "GSO on, GRO off, receive buffer 208 KiB",
            "sudo sysctl -w net.core.rmem_max=7340032",
            "--origin-to-force-quic-on=localhost:4433",
            "--ignore-certificate-errors-spki-list=PIN=",
            "curl --http3 --cacert '/home/my user/ca.pem' https://localhost:4433/",
            "godwit get --cacert '/home/my user/ca.pem' https://localhost:4433/",
        ] {
            assert!(text.contains(expected), "{expected:?} is missing in\n{text}");
        }
    }

    #[test]
    fn no_hint_without_need() {
        let identity = identity(None);
        let text = banner(&identity, 7 << 20).text();
        assert!(
            !text.contains("sysctl") && !text.contains("cacert") && !text.contains("force-quic"),
            "{text}"
        );
    }

    #[test]
    fn an_address_of_its_own_is_named_as_such() {
        let addresses = ["127.0.0.1:4433".parse().unwrap(), "[::1]:443".parse().unwrap()];
        let urls: Vec<String> = targets(&addresses, Some("box")).iter().map(Target::url).collect();
        assert_eq!(urls, ["https://127.0.0.1:4433/", "https://[::1]/"]);
    }
}
