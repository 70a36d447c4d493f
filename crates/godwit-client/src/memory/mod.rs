//! What earlier requests have taught: which servers offer HTTP/3 ([`crate::alt_svc`]), and where UDP works
//! ([`crate::decision::belief`], by network: [`NetworkId`]). Kept in a file if one is given, read at the start and written at the
//! end.

mod contents;
mod file;
mod network_id;
mod records;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use godwit_text::http_date;

pub(crate) use network_id::NetworkId;

use crate::alt_svc::{self, Http3Offer, Http3Offers};
use crate::decision::belief::{Belief, UdpState, slow_minimum};
use crate::target::Origin;
use contents::{Contents, OriginEntry};

/// Ports below this are the operating system's: only who runs the machine can offer something on them.
const PRIVILEGED: u16 = 1024;

/// What is remembered.
#[derive(Debug)]
pub(crate) struct Memory {
    contents: Contents,
    file: Option<PathBuf>,
    /// Entries that this run has changed, and that go into the file if there is one.
    changed: BTreeSet<String>,
}

/// The most changes that are remembered, among them some of entries that are forgotten by now.
const MAX_CHANGED: usize = 2 * (contents::MAX_ORIGINS + contents::MAX_NETWORKS);

/// Where a server offers HTTP/3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Http3Place {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// DNS says so (RFC 9460), not the server itself.
    pub(crate) by_record: bool,
}

/// How a server should be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Approach {
    /// HTTP/3 is not known to be offered.
    Unknown,
    /// QUIC first, TCP a little later. `None`: nothing is known of the round-trip time.
    Ahead(Http3Place, Option<Duration>),
    /// Both at once, as it did not work before.
    Together(Http3Place, Doubt),
    /// TCP only, as it has not worked. It is tried again at this time.
    Blocked(Doubt, i64),
}

/// Since when HTTP/3 has not worked, in seconds since 1970, and what that is known of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// Nothing comes back over UDP on this network.
    Network(i64),
    /// This server was silent, or refused, or had a certificate that was not accepted.
    Server(i64),
}

impl fmt::Display for Doubt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::Network(since) => {
                write!(formatter, "UDP has been silent on this network since {}", http_date(*since))
            }
            Doubt::Server(since) => {
                write!(formatter, "HTTP/3 of this server has not worked since {}", http_date(*since))
            }
        }
    }
}

impl Memory {
    /// For one run only.
    pub(crate) fn forgetful() -> Memory {
        Memory { contents: Contents::default(), file: None, changed: BTreeSet::new() }
    }

    /// What `path` holds, and it will be kept there.
    ///
    /// # Errors
    /// In words, if it is something else: it would be overwritten.
    pub(crate) fn in_file(path: PathBuf) -> Result<Memory, String> {
        Ok(Memory { contents: file::read(&path)?, file: Some(path), changed: BTreeSet::new() })
    }

    /// The same; what is something else is overwritten.
    pub(crate) fn in_cache(path: PathBuf) -> Memory {
        let contents = file::read(&path).unwrap_or_else(|problem| {
            tracing::debug!(file = %path.display(), problem, "the memory of servers is not used");
            Contents::default()
        });
        Memory { contents, file: Some(path), changed: BTreeSet::new() }
    }

    /// Keeps what this run has learnt. What other runs have written meanwhile stays.
    pub(crate) fn save(&mut self, now: i64) -> Result<(), String> {
        let Some(path) = self.file.as_ref().filter(|_| !self.changed.is_empty()) else { return Ok(()) };
        let mut merged = file::read(path).unwrap_or_default();
        for key in &self.changed {
            overlay(&mut merged.origins, &self.contents.origins, key);
            overlay(&mut merged.networks, &self.contents.networks, key);
            overlay(&mut merged.mute_resolvers, &self.contents.mute_resolvers, key);
        }
        merged.forget(now);
        self.changed.clear();
        file::write(path, &merged)
    }

    /// How `origin` should be reached over `network` by what it has offered itself.
    #[cfg(test)]
    pub(crate) fn approach(&self, origin: &Origin, network: &NetworkId, now: i64) -> Approach {
        self.approach_by(origin, network, None, now)
    }

    /// How `origin` should be reached over `network`. What it has offered itself goes before what DNS says of it
    /// (`record`).
    pub(crate) fn approach_by(
        &self,
        origin: &Origin,
        network: &NetworkId,
        record: Option<Http3Place>,
        now: i64,
    ) -> Approach {
        let entry = self.contents.origins.get(&origin.to_string()).filter(|entry| entry.expires > now);
        let place = |entry: &OriginEntry| Http3Place {
            host: entry.host.clone().unwrap_or_else(|| origin.host.clone()),
            port: entry.port,
            by_record: entry.of_record,
        };
        let is_offer =
            |entry: &&OriginEntry| !entry.of_record && (entry.network == network.0 || entry.persist);
        let Some(alternative) = entry.filter(is_offer).map(place).or(record) else {
            return Approach::Unknown;
        };
        let unknown = OriginEntry::default();
        let entry = entry.filter(|entry| place(entry) == alternative).unwrap_or(&unknown);
        let here = entry.network == network.0;
        let of_all = self.contents.networks.get(&network.0);
        let of_network = of_all.map_or(UdpState::Works, |udp| udp.state(now));
        let of_origin = if here { entry.udp.state(now) } else { UdpState::Works };
        let worse = match of_all {
            Some(udp) if of_network >= of_origin => udp,
            _ => &entry.udp,
        };
        // A server that fails in another way than by silence says nothing of the network.
        let doubt = match of_network {
            UdpState::Works => Doubt::Server(worse.since),
            _ => Doubt::Network(worse.since),
        };
        match of_network.max(of_origin) {
            UdpState::Works => {
                // Nobody is nearer than who is nearest.
                let nearest = of_all.and_then(Belief::rtt);
                let rtt = entry.rtt.filter(|_| here).or(nearest).map(Duration::from_micros);
                Approach::Ahead(alternative, rtt)
            }
            UdpState::Doubtful => Approach::Together(alternative, doubt),
            UdpState::Blocked => Approach::Blocked(doubt, worse.next_probe()),
        }
    }

    /// A response of `origin` had these `Alt-Svc` headers.
    pub(crate) fn on_headers<'a>(
        &mut self,
        origin: &Origin,
        network: &NetworkId,
        values: impl IntoIterator<Item = &'a [u8]>,
        now: i64,
    ) {
        let key = origin.to_string();
        match alt_svc::parse_http3(values) {
            None => {}
            Some(Http3Offers::Clear) => {
                let known = self.contents.origins.remove(&key).map(|_| key);
                known.into_iter().for_each(|key| self.on_change(key));
            }
            Some(Http3Offers::Offers(offers)) => {
                let Some(offer) = offers.into_iter().find(|offer| may_move(origin, offer)) else { return };
                let Http3Offer { host, port, age, persist } = offer;
                let expires = now.saturating_add(i64::try_from(age).unwrap_or(i64::MAX));
                let entry = self.contents.origins.entry(key.clone()).or_default();
                if (&entry.host, entry.port, &entry.network) != (&host, port, &network.0) {
                    *entry = OriginEntry::default();
                }
                let OriginEntry { rtt, udp, .. } = std::mem::take(entry);
                let network = network.0.clone();
                *entry = OriginEntry { host, port, expires, persist, of_record: false, network, rtt, udp };
                self.contents.forget(now);
                self.on_change(key);
            }
        }
    }

    /// The round-trip time to `origin` was measured.
    pub(crate) fn on_rtt(&mut self, origin: &Origin, network: &NetworkId, rtt: Duration) {
        let key = origin.to_string();
        let rtt = u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX);
        if let Some(of_all) = self.contents.networks.get_mut(&network.0) {
            of_all.on_rtt(rtt);
        }
        let Some(entry) = self.contents.origins.get_mut(&key).filter(|entry| entry.network == network.0)
        else {
            return;
        };
        // The path may become longer; then the figure follows, slowly.
        let known = slow_minimum(entry.rtt, rtt);
        if entry.rtt != Some(known) {
            entry.rtt = Some(known);
            self.on_change(key);
        }
    }

    /// `origin` answered over UDP.
    pub(crate) fn on_heard(&mut self, origin: &Origin, network: &NetworkId, now: i64) {
        self.contents.networks.entry(network.0.clone()).or_default().on_heard(now);
        self.on_change(network.0.clone());
        let key = origin.to_string();
        if let Some(entry) = self.contents.origins.get_mut(&key) {
            entry.udp.on_heard(now);
            self.on_change(key);
        }
        self.contents.forget(now);
    }

    /// `origin` was silent over UDP through `weight` flights of packets, while TCP had no difficulty.
    pub(crate) fn on_silence(&mut self, origin: &Origin, network: &NetworkId, weight: u32, now: i64) {
        let key = origin.to_string();
        self.contents.networks.entry(network.0.clone()).or_default().on_silence(now, &key, weight, true);
        self.on_change(network.0.clone());
        self.on_failure(origin, weight, now);
    }

    /// A connection over TCP was made, with or without difficulties.
    pub(crate) fn on_tcp(&mut self, network: &NetworkId, difficult: bool) {
        // Of a network of which nothing is known only difficulties are worth a note.
        if difficult || self.contents.networks.contains_key(&network.0) {
            self.contents.networks.entry(network.0.clone()).or_default().on_tcp(difficult);
            self.on_change(network.0.clone());
        }
    }

    /// A connection to `origin` over UDP died in the midst of its life.
    pub(crate) fn on_death(&mut self, origin: &Origin, now: i64) {
        let key = origin.to_string();
        if let Some(entry) = self.contents.origins.get_mut(&key) {
            entry.udp.on_death(now);
            self.on_change(key);
        }
    }

    /// A connection to `origin` over UDP has carried a good deal.
    pub(crate) fn on_proven(&mut self, origin: &Origin) {
        let key = origin.to_string();
        if self.contents.origins.get_mut(&key).is_some_and(|entry| entry.udp.on_proven()) {
            self.on_change(key);
        }
    }

    /// `origin` has no usable HTTP/3 where it offers it, which says nothing of the network.
    pub(crate) fn on_failure(&mut self, origin: &Origin, weight: u32, now: i64) {
        let key = origin.to_string();
        if let Some(entry) = self.contents.origins.get_mut(&key) {
            entry.udp.on_silence(now, &key, weight, false);
            self.on_change(key);
        }
    }

    fn on_change(&mut self, key: String) {
        if self.file.is_none() {
            return;
        }
        self.changed.insert(key);
        if self.changed.len() > MAX_CHANGED {
            // What is forgotten here may stay in the file: it has its end there too.
            let Contents { origins, networks, mute_resolvers } = &self.contents;
            let is_known = |key: &String| {
                origins.contains_key(key) || networks.contains_key(key) || mute_resolvers.contains_key(key)
            };
            self.changed.retain(is_known);
        }
    }
}

/// Copies what `from` has under `key`, or that it has nothing.
fn overlay<V: Clone>(to: &mut BTreeMap<String, V>, from: &BTreeMap<String, V>, key: &str) {
    match from.get(key) {
        Some(value) => drop(to.insert(key.to_owned(), value.clone())),
        None => drop(to.remove(key)),
    }
}

/// Whether an offer is followed. The alternative has to show a certificate for the origin's own name in any case;
/// besides, who only has an unprivileged port of some other machine does not get the requests to a privileged one.
fn may_move(origin: &Origin, offer: &Http3Offer) -> bool {
    let same_host = offer.host.as_ref().is_none_or(|host| *host == origin.host);
    origin.secure && (same_host || origin.port >= PRIVILEGED || offer.port < PRIVILEGED)
}

#[cfg(test)]
mod tests;
