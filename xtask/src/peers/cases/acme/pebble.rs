//! Pebble, an ACME server for tests, with a DNS server that knows every name.

use super::{python, words};
use crate::peers::cases::{READY, Stage};
use crate::peers::install::pebble_program;
use crate::peers::process::Process;
use serde_json::json;
use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

/// The two of them, at work. Dropped, they end.
pub(super) struct Pebble {
    /// URL of the directory.
    pub(super) directory: String,
    /// Its root certificate, another one each time it starts.
    pub(super) root: PathBuf,
    dns_management: u16,
    _pebble: Process,
    _dns: Process,
}

/// Where Pebble looks for who is asking.
#[derive(Clone, Copy)]
pub(super) struct Ports {
    pub(super) tls: u16,
    pub(super) http: u16,
}

impl Pebble {
    /// Issues certificates that are valid for `seconds`, after checks on these ports.
    pub(super) fn start(stage: &mut Stage<'_>, ports: Ports, seconds: u32) -> Result<Self, String> {
        let [dns, dns_management, own, management] = free_ports()?;
        let mut command = Command::new(pebble_program("pebble-challtestsrv"));
        command.args(["-dnsserver", &format!("127.0.0.1:{dns}")]);
        command.args(["-management", &format!("127.0.0.1:{dns_management}")]);
        command.args(["-defaultIPv4", "127.0.0.1", "-defaultIPv6", ""]);
        command.args(["-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", ""]);
        let names = stage.start("dns", &command)?;
        let material = &stage.bench.material;
        let settings = json!({"pebble": {
            "listenAddress": format!("127.0.0.1:{own}"),
            "managementListenAddress": format!("127.0.0.1:{management}"),
            "certificate": material.chain,
            "privateKey": material.key,
            "httpPort": ports.http,
            "tlsPort": ports.tls,
            "ocspResponderURL": "",
            "externalAccountBindingRequired": false,
            "domainBlocklist": ["blocked.test"],
            "retryAfter": {"authz": 1, "order": 1},
            "keyAlgorithm": "ecdsa",
            "profiles": {"default": {"description": "for tests", "validityPeriod": seconds}},
        }});
        let file = stage.logs.join("pebble.json");
        fs::write(&file, settings.to_string()).map_err(|error| format!("{}: {error}", file.display()))?;
        let mut command = Command::new(pebble_program("pebble"));
        command.arg("-config").arg(&file).args(["-strict", "-dnsserver", &format!("127.0.0.1:{dns}")]);
        // Checks begin at once; one nonce in twenty is refused, as happens elsewhere too; nothing is remembered
        // of earlier checks.
        command.envs([
            ("PEBBLE_VA_NOSLEEP", "1"),
            ("PEBBLE_WFE_NONCEREJECT", "5"),
            ("PEBBLE_AUTHZREUSE", "0"),
        ]);
        let mut pebble = stage.start("pebble", &command)?;
        pebble.wait_for(READY, |text| text.contains("Listening on: ").then_some(()))?;
        let root = stage.logs.join("pebble-root.pem");
        let mut fetch = python(&["fetch", "--ca"]);
        fetch.arg(stage.authority()).arg(format!("https://127.0.0.1:{management}/roots/0"));
        fs::write(&root, stage.run(&fetch)?).map_err(|error| format!("{}: {error}", root.display()))?;
        let directory = format!("https://127.0.0.1:{own}/dir");
        Ok(Self { directory, root, dns_management, _pebble: pebble, _dns: names })
    }

    /// Has a name lead to an address where nobody listens.
    pub(super) fn mislead(&self, stage: &mut Stage<'_>, name: &str) -> Result<(), String> {
        let url = format!("http://127.0.0.1:{}/add-a", self.dns_management);
        let body = json!({"host": format!("{name}."), "addresses": ["127.0.0.2"]}).to_string();
        stage.run(&python(&["post", &url, &body])).map(drop)
    }
}

/// Ports that nobody uses just now.
pub(super) fn free_ports<const N: usize>() -> Result<[u16; N], String> {
    let bind = || TcpListener::bind("127.0.0.1:0").map_err(words);
    let held: Vec<_> = (0..N).map(|_| bind()).collect::<Result<_, _>>()?;
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(&held) {
        *port = listener.local_addr().map_err(words)?.port();
    }
    Ok(ports)
}
