//! What earlier requests have taught: which servers offer HTTP/3 ([`alt_svc`]), and where UDP works ([`belief`], by
//! network: [`place`]). Kept in a file of the user's cache, read at the start and written at the end.

mod alt_svc;
mod belief;
mod file;
mod place;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub(super) use place::Place;

use super::target::Origin;
use crate::error::Failure;
use alt_svc::{AltSvc, Offer};
use belief::{Belief, Stance};

/// The most servers that are remembered; those whose offer ends first are forgotten first.
const MAX_ORIGINS: usize = 1000;
/// The most networks that are remembered; those of which nothing was learnt for longest are forgotten first.
const MAX_PLACES: usize = 100;
/// Ports below this are the operating system's: only who runs the machine can offer something on them.
const PRIVILEGED: u16 = 1024;

/// What is remembered.
#[derive(Debug)]
pub(super) struct Memory {
    contents: Contents,
    file: Option<PathBuf>,
    /// Entries that this run has changed, and that go into the file.
    changed: BTreeSet<String>,
}

#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Contents {
    /// By origin, as in a URL.
    #[serde(default)]
    origins: BTreeMap<String, OriginEntry>,
    /// By the name of the network.
    #[serde(default)]
    places: BTreeMap<String, Belief>,
}

/// What is known of one server. Times are seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct OriginEntry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    port: u16,
    /// Until when the offer holds.
    expires: i64,
    #[serde(default)]
    persist: bool,
    /// The network on which it was made.
    place: String,
    /// The lowest round-trip time there, in microseconds.
    #[serde(default)]
    rtt: Option<u64>,
    #[serde(default)]
    belief: Belief,
}

/// Where a server offers HTTP/3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Alternative {
    pub(super) host: String,
    pub(super) port: u16,
}

/// How a server should be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Approach {
    /// HTTP/3 is not known to be offered.
    Unknown,
    /// QUIC first, TCP a little later. `None`: nothing is known of the round-trip time.
    Ahead(Alternative, Option<Duration>),
    /// Both at once, as UDP was silent before.
    Together(Alternative, i64),
    /// TCP only: UDP has been silent since then. It is tried again at the second time.
    Blocked(i64, i64),
}

impl Memory {
    /// For one run only.
    pub(super) fn forgetful() -> Memory {
        Memory { contents: Contents::default(), file: None, changed: BTreeSet::new() }
    }

    /// What `file` holds, or the one in the user's cache.
    ///
    /// # Errors
    /// If `file` is given and is something else: it would be overwritten.
    pub(super) fn load(file: Option<PathBuf>) -> Result<Memory, Failure> {
        let given = file.is_some();
        let file = file.or_else(|| Some(dirs::cache_dir()?.join("godwit").join("alt-svc.json")));
        let Some(path) = &file else { return Ok(Memory::forgetful()) };
        let contents = match file::read(path) {
            Ok(contents) => contents,
            Err(problem) if given => {
                let remedy = "--alt-svc takes a file that godwit wrote, or one that does not exist yet";
                return Err(Failure::file("memory of servers", path, problem, remedy));
            }
            Err(problem) => {
                tracing::debug!(file = %path.display(), problem, "the memory of servers is not used");
                Contents::default()
            }
        };
        Ok(Memory { contents, file, changed: BTreeSet::new() })
    }

    /// Keeps what this run has learnt. What other runs have written meanwhile stays.
    pub(super) fn save(&mut self, now: i64) -> Result<(), String> {
        let Some(path) = self.file.as_ref().filter(|_| !self.changed.is_empty()) else { return Ok(()) };
        let mut merged = file::read(path).unwrap_or_default();
        for key in &self.changed {
            overlay(&mut merged.origins, &self.contents.origins, key);
            overlay(&mut merged.places, &self.contents.places, key);
        }
        merged.forget(now);
        self.changed.clear();
        file::write(path, &merged)
    }

    /// How `origin` should be reached over the network `place`.
    pub(super) fn approach(&self, origin: &Origin, place: &Place, now: i64) -> Approach {
        let entry = self.contents.origins.get(&origin.to_string());
        let Some(entry) = entry.filter(|entry| entry.expires > now) else { return Approach::Unknown };
        let here = entry.place == place.0;
        if !here && !entry.persist {
            return Approach::Unknown;
        }
        let host = entry.host.clone().unwrap_or_else(|| origin.host.clone());
        let alternative = Alternative { host, port: entry.port };
        let network = self.contents.places.get(&place.0);
        let of_network = network.map_or(Stance::Trust, |belief| belief.stance(now));
        let of_origin = if here { entry.belief.stance(now) } else { Stance::Trust };
        let worse = match network {
            Some(network) if of_network >= of_origin => network,
            _ => &entry.belief,
        };
        match of_network.max(of_origin) {
            Stance::Trust => {
                Approach::Ahead(alternative, entry.rtt.filter(|_| here).map(Duration::from_micros))
            }
            Stance::Doubt => Approach::Together(alternative, worse.since),
            Stance::Blocked => Approach::Blocked(worse.since, worse.next_probe()),
        }
    }

    /// A response of `origin` had these `Alt-Svc` headers.
    pub(super) fn on_headers<'a>(
        &mut self,
        origin: &Origin,
        place: &Place,
        values: impl IntoIterator<Item = &'a [u8]>,
        now: i64,
    ) {
        let key = origin.to_string();
        match alt_svc::parse(values) {
            None => {}
            Some(AltSvc::Clear) => {
                let known = self.contents.origins.remove(&key);
                self.changed.extend(known.map(|_| key));
            }
            Some(AltSvc::Http3(offers)) => {
                let Some(offer) = offers.into_iter().find(|offer| may_move(origin, offer)) else { return };
                let Offer { host, port, age, persist } = offer;
                let expires = now.saturating_add(i64::try_from(age).unwrap_or(i64::MAX));
                let entry = self.contents.origins.entry(key.clone()).or_default();
                if (&entry.host, entry.port, &entry.place) != (&host, port, &place.0) {
                    *entry = OriginEntry::default();
                }
                let OriginEntry { rtt, belief, .. } = std::mem::take(entry);
                *entry = OriginEntry { host, port, expires, persist, place: place.0.clone(), rtt, belief };
                self.changed.insert(key);
                self.contents.forget(now);
            }
        }
    }

    /// The round-trip time to `origin` was measured.
    pub(super) fn on_rtt(&mut self, origin: &Origin, place: &Place, rtt: Duration) {
        let key = origin.to_string();
        let Some(entry) = self.contents.origins.get_mut(&key).filter(|entry| entry.place == place.0) else {
            return;
        };
        let rtt = u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX);
        // The path may become longer; then the figure follows, slowly.
        let known = entry.rtt.map_or(rtt, |known| known.saturating_add(known / 4 + 1000).min(rtt));
        if entry.rtt != Some(known) {
            entry.rtt = Some(known);
            self.changed.insert(key);
        }
    }

    /// `origin` answered over UDP.
    pub(super) fn on_heard(&mut self, origin: &Origin, place: &Place, now: i64) {
        self.contents.places.entry(place.0.clone()).or_default().on_heard(now);
        self.changed.insert(place.0.clone());
        let key = origin.to_string();
        if let Some(entry) = self.contents.origins.get_mut(&key) {
            entry.belief.on_heard(now);
            self.changed.insert(key);
        }
        self.contents.forget(now);
    }

    /// `origin` was silent over UDP through `weight` flights of packets, while TCP had no difficulty.
    pub(super) fn on_silence(&mut self, origin: &Origin, place: &Place, weight: u32, now: i64) {
        let key = origin.to_string();
        self.contents.places.entry(place.0.clone()).or_default().on_silence(now, &key, weight, true);
        self.changed.insert(place.0.clone());
        self.on_failure(origin, weight, now);
    }

    /// `origin` has no usable HTTP/3 where it offers it, which says nothing of the network.
    pub(super) fn on_failure(&mut self, origin: &Origin, weight: u32, now: i64) {
        let key = origin.to_string();
        if let Some(entry) = self.contents.origins.get_mut(&key) {
            entry.belief.on_silence(now, &key, weight, false);
            self.changed.insert(key);
        }
    }
}

impl Contents {
    /// Drops what does not hold any more, and what is too much.
    fn forget(&mut self, now: i64) {
        self.origins.retain(|_, entry| entry.expires > now);
        forget_lowest(&mut self.origins, MAX_ORIGINS, |entry| entry.expires);
        forget_lowest(&mut self.places, MAX_PLACES, Belief::last_change);
    }
}

fn forget_lowest<V>(map: &mut BTreeMap<String, V>, most: usize, rank: impl Fn(&V) -> i64) {
    while map.len() > most {
        let lowest = map.iter().min_by_key(|(_, value)| rank(value)).map(|(key, _)| key.clone());
        lowest.and_then(|key| map.remove(&key));
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
fn may_move(origin: &Origin, offer: &Offer) -> bool {
    let same_host = offer.host.as_ref().is_none_or(|host| *host == origin.host);
    origin.secure && (same_host || origin.port >= PRIVILEGED || offer.port < PRIVILEGED)
}

#[cfg(test)]
mod tests;
