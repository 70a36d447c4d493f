//! The world that is demonstrated: a site, a link in front of it, and how HTTP/2's TCP comes about.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::arguments::{Arguments, Tcp};
use super::links::{Links, Tally};
use super::preset::Conditions;
use super::relay::Relay;
use super::site::{Server, Site};
use super::{model_relay, visitors};
use crate::error::{Failure, plain};

/// What the figures depend on.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) preset: super::preset::Preset,
    pub(super) conditions: Conditions,
    pub(super) tcp: TcpKind,
    pub(super) visitors: u16,
    pub(super) seconds: u64,
    pub(super) seed: u64,
    pub(super) tally: Arc<Tally>,
}

/// The TCP that carries HTTP/2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TcpKind {
    /// The kernel's, with this congestion control.
    Kernel(String),
    /// The model, and why not the kernel's.
    Modelled(String),
}

impl TcpKind {
    pub(super) fn in_words(&self) -> String {
        match self {
            TcpKind::Kernel(control) => {
                let unlike = match control.as_str() {
                    "cubic" => "",
                    _ => {
                        " Its congestion control is another than HTTP/3's (CUBIC), and that is part of what you see."
                    }
                };
                format!(
                    "TCP: this kernel's own ({control}). The packets of both protocols cross the same modelled link, \
                     between two network namespaces.{unlike}"
                )
            }
            TcpKind::Modelled(why) => format!(
                "TCP: modelled, because {why}. QUIC's packets are really delayed and dropped. HTTP/2's bytes cross \
                 the same link in segments by TCP's rules as Linux has them (CUBIC, SACK, RACK, tail loss probes); in \
                 doubt the model favours TCP."
            ),
        }
    }
}

impl Setting {
    /// Packets that left the link late, from 0 to 1.
    pub(super) fn late_share(&self) -> f64 {
        share(self.tally.late.load(Ordering::Relaxed), self.tally.delivered.load(Ordering::Relaxed))
    }

    /// Packets that were lost or found the queue full, from 0 to 1.
    pub(super) fn lost_share(&self) -> f64 {
        share(self.tally.dropped.load(Ordering::Relaxed), self.tally.packets.load(Ordering::Relaxed))
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Everything that runs, ended with the value: first the relay, then the server, then the folder.
#[derive(Debug)]
pub(super) struct World {
    pub(super) relay: Relay,
    _server: Server,
    pub(super) site: Site,
    pub(super) setting: Setting,
    /// The visitors' address, and the site's as they see it.
    pub(super) route: (IpAddr, SocketAddr),
}

impl World {
    /// Called before there is any other thread.
    pub(super) fn make(arguments: &Arguments) -> Result<World, Failure> {
        match arguments.tcp {
            Tcp::Modelled => World::modelled(arguments, "it was asked for".to_owned()),
            Tcp::Kernel => match probe() {
                Ok(()) => World::kernel(arguments),
                Err(why) => Err(Failure::new(format!(
                    "the kernel's TCP cannot be used here: {why}; run as root, or leave out --tcp kernel"
                ))),
            },
            Tcp::Auto => match probe() {
                Ok(()) => World::kernel(arguments),
                Err(why) => World::modelled(arguments, why),
            },
        }
    }

    fn modelled(arguments: &Arguments, why: String) -> Result<World, Failure> {
        let no_port =
            |error: std::io::Error| Failure::new(format!("no port for the relay: {}", plain(&error)));
        let site = Site::make()?;
        let sockets = model_relay::Sockets::bind().map_err(no_port)?;
        // Both were just free for UDP and TCP.
        let server_address = model_relay::Sockets::bind().map_err(no_port)?.address;
        let server = site.serve(server_address)?;
        let setting = setting(arguments, TcpKind::Modelled(why));
        let route = (IpAddr::V4(Ipv4Addr::LOCALHOST), sockets.address);
        let (links, tally) = (Links::new(&setting.conditions, setting.seed), Arc::clone(&setting.tally));
        let relay =
            Relay::start(move |ended| model_relay::run(sockets, server_address, links, tally, ended))?;
        Ok(World { relay, _server: server, site, setting, route })
    }

    #[cfg(target_os = "linux")]
    fn kernel(arguments: &Arguments) -> Result<World, Failure> {
        use super::{namespaces, tun_relay};
        const PORT: u16 = 4433;
        let failed = |why: String| Failure::new(format!("{why}; try --tcp modelled"));
        let site = Site::make()?;
        let server_device = namespaces::enter_server().map_err(failed)?;
        let control =
            namespaces::congestion_control().unwrap_or_else(|_| "unknown congestion control".to_owned());
        let server_address = SocketAddr::from((namespaces::SERVER, PORT));
        let server = site.serve(server_address)?;
        let client_device = namespaces::enter_client().map_err(failed)?;
        let setting = setting(arguments, TcpKind::Kernel(control));
        let (links, tally) = (Links::new(&setting.conditions, setting.seed), Arc::clone(&setting.tally));
        let relay =
            Relay::start(move |ended| tun_relay::run(client_device, server_device, links, tally, ended))?;
        let route = (IpAddr::V4(namespaces::CLIENT), server_address);
        Ok(World { relay, _server: server, site, setting, route })
    }

    #[cfg(not(target_os = "linux"))]
    fn kernel(arguments: &Arguments) -> Result<World, Failure> {
        World::modelled(arguments, "this system has no network namespaces".to_owned())
    }
}

fn setting(arguments: &Arguments, tcp: TcpKind) -> Setting {
    let conditions = arguments.conditions();
    let visitors = visitors::visitors(&conditions);
    let (preset, seconds, seed) = (arguments.preset, arguments.seconds, arguments.seed);
    Setting { preset, conditions, tcp, visitors, seconds, seed, tally: Arc::default() }
}

/// Whether the kernel's TCP can be used, tried in a process of its own: a failure half way leaves no trace here.
fn probe() -> Result<(), String> {
    if !cfg!(target_os = "linux") {
        return Err("this system has no network namespaces".to_owned());
    }
    let unknown = |error: std::io::Error| format!("it cannot be tried ({})", plain(&error));
    let program = std::env::current_exe().map_err(unknown)?;
    let tried =
        Command::new(program).args(["demo", "--probe"]).stdin(Stdio::null()).output().map_err(unknown)?;
    if tried.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&tried.stderr);
    let why = why.trim().trim_start_matches("godwit: ");
    Err(if why.is_empty() { "the kernel does not permit it".to_owned() } else { why.to_owned() })
}

/// What `--probe` does.
#[cfg(target_os = "linux")]
pub(super) fn try_kernel() -> Result<(), Failure> {
    use super::namespaces;
    let _server = namespaces::enter_server().map_err(Failure::new)?;
    let _client = namespaces::enter_client().map_err(Failure::new)?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn try_kernel() -> Result<(), Failure> {
    Err(Failure::new("this system has no network namespaces"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::demo::preset::Preset;

    /// A setting for tests of what is printed.
    pub(in crate::demo) fn setting() -> Setting {
        Setting {
            preset: Preset::Mobile,
            conditions: Preset::Mobile.conditions(),
            tcp: TcpKind::Modelled("user namespaces are not permitted".to_owned()),
            visitors: 91,
            seconds: 40,
            seed: 1,
            tally: Arc::default(),
        }
    }

    #[test]
    fn it_says_which_tcp_it_is() {
        assert!(setting().tcp.in_words().starts_with("TCP: modelled, because user namespaces"));
        assert!(TcpKind::Kernel("cubic".to_owned()).in_words().ends_with("namespaces."));
        assert!(TcpKind::Kernel("bbr".to_owned()).in_words().contains("another than HTTP/3's"));
        assert!(setting().late_share().abs() < 1e-9);
    }
}
