//! What is printed when a server starts: where it is, what it shows and speaks, and how to reach it from this machine.
//! Never more than twelve lines.

use std::sync::Arc;

use godwit_certificates::Identity;
use godwit_certificates::local::host_name;
use godwit_text::{Style, date, shell_word, size, unix_now};

use crate::browser;
use crate::{Granted, Server, SiteAddress};

/// A receive buffer below this share of what was asked for is worth a hint.
const ENOUGH: f64 = 0.5;

/// What is worth telling when a server starts.
#[derive(Debug)]
pub struct Banner {
    title: String,
    identity: Arc<Identity>,
    sites: Vec<SiteAddress>,
    granted: Option<Granted>,
    ports: String,
    style: Style,
}

impl Banner {
    /// Of this server; `title` is the first line.
    pub fn new(title: impl Into<String>, server: &Server, style: Style) -> Banner {
        let addresses = server.addresses();
        let identity = Arc::clone(server.identity());
        let machine = host_name().filter(|name| identity.facts.names.contains(name));
        let mut ports: Vec<String> = addresses.iter().map(|address| address.port().to_string()).collect();
        ports.dedup();
        Banner {
            title: title.into(),
            identity,
            sites: SiteAddress::all(&addresses, machine.as_deref()),
            granted: server.granted(),
            ports: ports.join(", "),
            style,
        }
    }

    /// The best place to reach the server at from this machine.
    pub fn site(&self) -> Option<&SiteAddress> {
        self.sites.first()
    }

    /// The lines, each with its end.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in self.lines() {
            text.push_str(&line);
            text.push('\n');
        }
        text
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.style.bold(&self.title).into_owned()];
        let urls: Vec<String> = self.sites.iter().take(3).map(SiteAddress::url).collect();
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
        if let Some(site) = self.site() {
            lines.push(self.row("browser", &self.browser(site)));
            lines.push(self.row("curl", &self.command("curl --http3", site)));
            lines.push(self.row("godwit", &self.command("godwit get", site)));
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

    fn browser(&self, site: &SiteAddress) -> String {
        if self.identity.authority.is_none() {
            return site.url();
        }
        let flags = browser::trust_flags(site, &self.identity.facts.pin);
        let profile = std::env::temp_dir().join("godwit-profile");
        let profile = format!("--user-data-dir={}", profile.display());
        format!("chromium {} {} {}", flags.join(" "), shell_word(&profile), site.url())
    }

    fn command(&self, program: &str, site: &SiteAddress) -> String {
        let trust = self.identity.authority.as_ref().map_or_else(String::new, |authority| {
            format!(" --cacert {}", shell_word(&authority.display().to_string()))
        });
        format!("{program}{trust} {}", site.url())
    }
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

    fn banner(identity: Identity, receive_buffer: usize) -> Banner {
        let addresses = ["[::]:4433", "127.0.0.1:443", "[::1]:8443"].map(|text| text.parse().unwrap());
        let mut granted = Granted::default();
        (granted.gso, granted.receive_buffer, granted.wanted_buffer) = (true, receive_buffer, 7 << 20);
        Banner {
            title: "godwit serves its example site".to_owned(),
            identity: Arc::new(identity),
            sites: SiteAddress::all(&addresses, Some("box")),
            granted: Some(granted),
            ports: "4433".to_owned(),
            style: Style::PLAIN,
        }
    }

    #[test]
    fn the_fullest_banner_has_at_most_twelve_lines() {
        let identity = identity(Some("/home/my user/ca.pem"));
        let text = banner(identity, 212_992).text();
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
        let text = banner(identity, 7 << 20).text();
        assert!(
            !text.contains("sysctl") && !text.contains("cacert") && !text.contains("force-quic"),
            "{text}"
        );
    }
}
