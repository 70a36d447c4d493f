//! What the demonstration runs on: a site, and a link in front of it that both protocols cross as IP packets.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use super::preset::{Conditions, Preset};
use super::setting::Setting;
use super::site::{Server, Site};
use super::visitors::Visitors;
use crate::Error;

/// What is to be demonstrated.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The kind of link, for its name.
    pub preset: Preset,
    /// The link in figures: the preset's, or others.
    pub conditions: Conditions,
    /// How many files the page needs besides itself.
    pub objects: u16,
    /// How long visitors come.
    pub seconds: u64,
    /// The number that all chances of the link follow from.
    pub seed: u64,
    /// The congestion control of the kernel's TCP, by its name, if not CUBIC where that can be had.
    pub tcp: Option<String>,
    /// The program `godwit`, which serves the site.
    pub program: PathBuf,
}

impl Options {
    /// A preset as it is, for 40 seconds, with 10 files on the page.
    #[must_use]
    pub fn new(preset: Preset, program: PathBuf) -> Options {
        let (conditions, objects) = (preset.conditions(), super::site::FEW_OBJECTS);
        Options { preset, conditions, objects, seconds: 40, seed: 1, tcp: None, program }
    }
}

/// Everything that runs, ended with the value: first the relay, then the server, then the folder.
#[derive(Debug)]
pub struct Testbed {
    #[cfg(target_os = "linux")]
    _relay: godwit_relay::tun::TunRelay,
    _server: Server,
    site: Site,
    setting: Setting,
    /// The visitors' address, and the site's as they see it.
    route: (IpAddr, SocketAddr),
}

impl Testbed {
    /// Moves this thread into network namespaces of its own and has the site served there. Called before there is any
    /// other thread: the program does not come back from there.
    ///
    /// # Errors
    /// If the system does not permit it; the error says what is needed and how to get it.
    #[cfg(target_os = "linux")]
    pub fn make(options: &Options) -> Result<Testbed, Error> {
        use std::sync::Arc;

        use godwit_relay::tun::TunRelay;
        use godwit_relay::{RelayCounters, VisitLinks};

        use crate::namespaces::{self, Purpose};

        const PORT: u16 = 4433;
        let purpose = Purpose("the demonstration");
        let server_device = purpose.enter_server()?;
        let use_wanted = || options.tcp.as_deref().map_or(Ok(()), namespaces::use_congestion_control);
        use_wanted()?;
        let site = Site::make(options.objects)?;
        let control =
            namespaces::congestion_control().unwrap_or_else(|_| "unknown congestion control".to_owned());
        let address = SocketAddr::from((namespaces::SERVER, PORT));
        let server = site.serve(&options.program, address)?;
        let client_device = purpose.enter_client()?;
        use_wanted()?;
        let Options { preset, conditions, objects, seconds, seed, .. } = *options;
        let counters = Arc::<RelayCounters>::default();
        let links = VisitLinks::new(conditions.link(), seed);
        let relay = TunRelay::start(client_device, server_device, links, Arc::clone(&counters));
        let relay = relay.map_err(|error| {
            Error::new(format!("cannot start the relay: {}", godwit_text::plain_error(&error)))
        })?;
        // What else the machine does would hold up HTTP/3, which is in this process, more than the kernel's TCP.
        let _ = godwit_os::urgency::run_before_others(1);
        let visitors = super::visitors::number_of_visitors(&conditions, objects);
        let setting = Setting { preset, conditions, objects, control, visitors, seconds, seed, counters };
        let route = (IpAddr::V4(namespaces::CLIENT), address);
        Ok(Testbed { _relay: relay, _server: server, site, setting, route })
    }

    /// Elsewhere there are no network namespaces.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(target_os = "linux"))]
    pub fn make(_options: &Options) -> Result<Testbed, Error> {
        Err(Error::new(
            "the demonstration needs Linux: both protocols cross a link between two network namespaces; run it on a \
             Linux machine or in a container, as root",
        ))
    }

    /// What the figures depend on.
    #[must_use]
    pub fn setting(&self) -> &Setting {
        &self.setting
    }

    /// The visitors, who come from now on, within a runtime of tokio.
    ///
    /// # Errors
    /// If their TLS cannot be set up.
    pub fn visitors(&self) -> Result<Visitors, Error> {
        Visitors::new(&self.site.certificate, self.route, &self.setting)
    }
}
