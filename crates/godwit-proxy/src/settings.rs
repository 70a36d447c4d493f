//! Settings of a proxy: plain values with defaults.

use crate::upstream::Upstream;
use godwit_body::Peer;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

/// Settings of a [`crate::Proxy`]: plain values, all with defaults except `upstreams`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// Where requests go; at least one.
    pub upstreams: Vec<Upstream>,
    /// How one of several is chosen. Default round robin.
    pub balance: Balance,
    /// How many more times a request may be tried, at another upstream if there is one. Only what surely
    /// has no effect twice is tried again. Default 1.
    pub retries: u32,
    /// Limits of time.
    pub timeouts: Timeouts,
    /// Unused connections kept for each upstream by each shard ([`godwit_os::shard`]), or by all threads that are no
    /// shard's. Default 256: as many as a busy client or two have requests under way, or each of their waves makes connections anew.
    pub max_idle: usize,
    /// Connections to each upstream at a time, tunnels included and regular checks not; at least 1. Requests
    /// beyond that wait for as long as a connection may take ([`Timeouts::connect`]), and are then answered
    /// with status 503. Default 512.
    pub max_connections: usize,
    /// Requests that clients of one network ([`godwit_body::ClientNetwork`]) may have under way at each upstream, tunnels
    /// included, in percent of `max_connections`: 1 to 100, and 100 is no limit; at least one request. Those beyond that wait
    /// as if all connections were in use, while others are served. Requests of this machine, of peers in `trust_forwarded`
    /// and of those that have no [`crate::Peer`] do not count. Default 25.
    pub network_share: u8,
    /// What the upstream sees as Host. Default what the client sent.
    pub host: HostHeader,
    /// Whether the upstream is told about the client in `Forwarded` and `X-Forwarded-For`, `-Proto` and
    /// `-Host`. Default true.
    pub forwarded: bool,
    /// Peers whose own such fields are kept and added to; those of anybody else are replaced. Default none.
    pub trust_forwarded: Vec<Network>,
    /// How `https` upstreams are verified.
    pub tls: Tls,
    /// Regular checks of the upstreams' health. Default none: an upstream is left alone for a while when no
    /// connection to it can be made.
    pub health: Option<Health>,
}

/// Limits of time of a [`crate::Proxy`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Timeouts {
    /// For making a connection, with TLS; and for waiting until there is room for it. Default 5 s.
    pub connect: Duration,
    /// From the last progress of a request to the head of its response; waiting for the client does not
    /// count. Default 60 s.
    pub response: Duration,
    /// Between two pieces of a response's body; `None` is for ever. Default 5 min.
    pub body: Option<Duration>,
    /// How long an unused connection is kept. Default 90 s.
    pub idle: Duration,
    /// How long nothing may pass through a tunnel; `None` is for ever. Default 10 min.
    pub tunnel: Option<Duration>,
}

/// How `https` upstreams are verified.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Tls {
    /// Certificate authorities (PEM) instead of the system's.
    pub ca: Option<Vec<u8>>,
    /// The name that certificates must be for, and that is sent as SNI, instead of the upstream's.
    pub name: Option<String>,
    /// Accept any certificate. Default false.
    pub insecure: bool,
}

/// How one of several upstreams is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Balance {
    /// In turn.
    #[default]
    RoundRobin,
    /// The one with the fewest requests under way.
    LeastRequests,
}

/// What the upstream sees as Host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum HostHeader {
    /// What the client sent.
    #[default]
    Keep,
    /// The upstream's own name.
    Upstream,
    /// This name.
    Name(String),
}

/// Regular checks of the upstreams' health.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Health {
    /// What is asked for. Default `/`.
    pub path: String,
    /// How often. Default 5 s.
    pub interval: Duration,
    /// How long an answer may take. Default 2 s.
    pub timeout: Duration,
    /// Good answers in a row after which an upstream is healthy again. Default 2.
    pub healthy: u32,
    /// Bad answers in a row after which it is not. Default 3.
    pub unhealthy: u32,
    /// The status of a good answer. Default 200.
    pub status: u16,
}

impl Settings {
    /// The defaults, for these upstreams.
    pub fn to(upstreams: impl IntoIterator<Item = Upstream>) -> Self {
        Settings { upstreams: upstreams.into_iter().collect(), ..Settings::default() }
    }

    /// Whether a peer is believed what it says about the client.
    pub(crate) fn trusts(&self, peer: Peer) -> bool {
        self.trust_forwarded.iter().any(|network| network.contains(peer.address.ip()))
    }

    /// Requests that one network may have under way at an upstream; `None` is any number.
    pub(crate) fn most_of_network(&self) -> Option<usize> {
        let share = usize::from(self.network_share);
        (share < 100).then(|| self.max_connections.saturating_mul(share).div_euclid(100).max(1))
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            upstreams: Vec::new(),
            balance: Balance::default(),
            retries: 1,
            timeouts: Timeouts::default(),
            max_idle: 256,
            max_connections: 512,
            network_share: 25,
            host: HostHeader::default(),
            forwarded: true,
            trust_forwarded: Vec::new(),
            tls: Tls::default(),
            health: None,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            connect: Duration::from_secs(5),
            response: Duration::from_secs(60),
            body: Some(Duration::from_secs(300)),
            idle: Duration::from_secs(90),
            tunnel: Some(Duration::from_secs(600)),
        }
    }
}

impl Default for Health {
    fn default() -> Self {
        Health {
            path: "/".to_owned(),
            interval: Duration::from_secs(5),
            timeout: Duration::from_secs(2),
            healthy: 2,
            unhealthy: 3,
            status: 200,
        }
    }
}

/// Why [`Settings`] cannot be used, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsError {
    field: &'static str,
    what: String,
}

impl SettingsError {
    pub(crate) fn new(field: &'static str, what: impl Into<String>) -> Self {
        SettingsError { field, what: what.into() }
    }

    /// The setting that it is about, as configuration files name it: `upstreams`, `max_connections`,
    /// `network_share`, `ca`, `tls_name`, `host`, `health`.
    pub fn field(&self) -> &'static str {
        self.field
    }

    /// What is wrong with it.
    pub fn what(&self) -> &str {
        &self.what
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.what)
    }
}

impl std::error::Error for SettingsError {}

/// A range of addresses, such as `10.0.0.0/8`, `fd00::/8` or `127.0.0.1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network {
    addr: IpAddr,
    prefix: u8,
}

/// Why a text is not a [`Network`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkError(String);

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NetworkError {}

impl Network {
    /// Whether the address belongs to it. An IPv4 address in IPv6 notation counts as IPv4.
    pub fn contains(&self, addr: IpAddr) -> bool {
        match (self.addr, addr.to_canonical()) {
            (IpAddr::V4(mine), IpAddr::V4(other)) => {
                let mask = u32::MAX.checked_shl(32_u32.saturating_sub(self.prefix.into())).unwrap_or(0);
                u32::from(mine) & mask == u32::from(other) & mask
            }
            (IpAddr::V6(mine), IpAddr::V6(other)) => {
                let mask = u128::MAX.checked_shl(128_u32.saturating_sub(self.prefix.into())).unwrap_or(0);
                u128::from(mine) & mask == u128::from(other) & mask
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let (addr, prefix) = match text.split_once('/') {
            Some((addr, prefix)) => (addr, Some(prefix)),
            None => (text, None),
        };
        let wrong = || {
            let text = text.escape_debug();
            NetworkError(format!(
                "\"{text}\" is not a network; write it as 10.0.0.0/8, fd00::/8 or 127.0.0.1"
            ))
        };
        let addr = addr.parse::<IpAddr>().map_err(|_| wrong())?;
        let longest = if addr.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            Some(prefix) => {
                prefix.parse::<u8>().ok().filter(|prefix| *prefix <= longest).ok_or_else(wrong)?
            }
            None => longest,
        };
        Ok(Network { addr, prefix })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks() {
        let network = |text: &str| text.parse::<Network>().unwrap();
        let within = |text: &str, addr: &str| network(text).contains(addr.parse().unwrap());
        assert!(within("10.0.0.0/8", "10.255.0.1") && !within("10.0.0.0/8", "11.0.0.1"));
        assert!(within("10.0.0.0/8", "::ffff:10.0.0.1") && !within("10.0.0.0/8", "::1"));
        assert!(within("0.0.0.0/0", "1.2.3.4") && within("::/0", "fd00::1"));
        assert!(within("127.0.0.1", "127.0.0.1") && !within("127.0.0.1", "127.0.0.2"));
        assert!(within("fd00::/9", "fd7f::1") && !within("fd00::/9", "fd80::1"));
        for text in ["", "10.0.0.0/33", "10.0.0/8", "::/129", "a/8", "1.2.3.4/-1"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
