//! What the memory consists of, as it stands in its file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::decision::belief::Belief;

/// The most servers that are remembered; those whose offer ends first are forgotten first.
pub(super) const MAX_ORIGINS: usize = 1000;
/// The most networks that are remembered; those of which nothing was learnt for longest are forgotten first.
pub(super) const MAX_NETWORKS: usize = 100;

/// For how long a name server that gave no answer in time is not waited for, in seconds; an answer ends that.
pub(super) const MUTE_FOR: i64 = 7 * 86_400;

#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Contents {
    /// By origin, as in a URL.
    #[serde(default)]
    pub(super) origins: BTreeMap<String, OriginEntry>,
    /// By the name of the network.
    #[serde(default, rename = "places")]
    pub(super) networks: BTreeMap<String, Belief>,
    /// By the name of the network: when the name server there last gave no answer about HTTPS records in time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) mute_resolvers: BTreeMap<String, i64>,
}

/// What is known of one server. Times are seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OriginEntry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) host: Option<String>,
    pub(super) port: u16,
    /// Until when the offer holds.
    pub(super) expires: i64,
    #[serde(default)]
    pub(super) persist: bool,
    /// It is no offer of the server's own (`Alt-Svc`), only what is known of one that DNS made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) of_record: bool,
    /// The network on which it was made.
    #[serde(rename = "place")]
    pub(super) network: String,
    /// The lowest round-trip time there, in microseconds.
    #[serde(default)]
    pub(super) rtt: Option<u64>,
    #[serde(default, rename = "belief")]
    pub(super) udp: Belief,
}

impl Contents {
    /// Drops what does not hold any more, and what is too much.
    pub(super) fn forget(&mut self, now: i64) {
        self.origins.retain(|_, entry| entry.expires > now);
        forget_lowest(&mut self.origins, MAX_ORIGINS, |entry| entry.expires);
        forget_lowest(&mut self.networks, MAX_NETWORKS, Belief::last_change);
        self.mute_resolvers.retain(|_, since| now.saturating_sub(*since) < MUTE_FOR);
        forget_lowest(&mut self.mute_resolvers, MAX_NETWORKS, |since| *since);
    }
}

fn forget_lowest<V>(map: &mut BTreeMap<String, V>, most: usize, rank: impl Fn(&V) -> i64) {
    while map.len() > most {
        let lowest = map.iter().min_by_key(|(_, value)| rank(value)).map(|(key, _)| key.clone());
        lowest.and_then(|key| map.remove(&key));
    }
}
