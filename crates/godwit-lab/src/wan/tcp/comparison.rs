//! The whole comparison: transfers, requests, and requests by way of a point of presence, one table after the other.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use super::contender::Contender;
use super::exchanges::{Exchanges, Path};
use super::settings::{PRESENCE, REQUESTS};
use super::testbed::Testbed;
use super::transfers::Transfers;
use crate::wan::Profile;

/// How much further an origin is than the point of presence before it, there and back.
const FURTHER: Duration = Duration::from_millis(100);

/// A part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Part {
    /// Uploads.
    Transfers,
    /// Small requests.
    Requests,
    /// Small requests to an origin, by way of a point of presence and without it.
    Presence,
}

impl FromStr for Part {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "transfers" => Ok(Part::Transfers),
            "requests" => Ok(Part::Requests),
            "presence" => Ok(Part::Presence),
            _ => Err("expected transfers, requests or presence"),
        }
    }
}

/// What is compared.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Comparison {
    /// Which parts.
    pub parts: Vec<Part>,
    /// The uploads.
    pub transfers: Transfers,
    /// The requests; what is said of their contenders and path holds where nothing stands between.
    pub exchanges: Exchanges,
    /// The networks of the requests. Those by way of a point of presence cross the first.
    pub profiles: Vec<Profile>,
}

impl Default for Comparison {
    fn default() -> Self {
        Comparison {
            parts: vec![Part::Transfers, Part::Requests, Part::Presence],
            transfers: Transfers::default(),
            exchanges: Exchanges::default(),
            profiles: Profile::ALL.into_iter().take(3).collect(),
        }
    }
}

impl Comparison {
    /// Makes it. `tell` gets each table when it is done; its error ends everything. `progress` is told how many of how many
    /// uploads are done.
    ///
    /// # Errors
    /// The first of `tell`.
    pub async fn run<E>(
        &self,
        testbed: &Arc<Testbed>,
        mut tell: impl FnMut(String) -> Result<(), E>,
        progress: impl Fn(usize, usize) + Send + Sync + 'static,
    ) -> Result<(), E> {
        if self.parts.contains(&Part::Transfers) {
            tell(self.transfers.run(testbed, progress).await.to_string())?;
        }
        for (number, profile) in
            (REQUESTS..).zip(&self.profiles).filter(|_| self.parts.contains(&Part::Requests))
        {
            let timed = self.exchanges.run(testbed, profile, number).await;
            tell(format!("{}\n{timed}", profile.name))?;
        }
        let Some(profile) = self.profiles.first().filter(|_| self.parts.contains(&Part::Presence)) else {
            return Ok(());
        };
        let mut exchanges = self.exchanges.clone();
        exchanges.contenders = vec![Contender::TcpCubic, Contender::TcpBbr, Contender::Http3Known];
        let ways = [
            (Path::Direct(FURTHER), "to the origin itself"),
            (Path::Presence(FURTHER), "by a point of presence"),
        ];
        for (number, (path, name)) in PRESENCE.into_iter().zip(ways) {
            exchanges.path = path;
            let timed = exchanges.run(testbed, profile, number).await;
            tell(format!("{} and an origin 100 ms further, {name}\n{timed}", profile.name))?;
        }
        Ok(())
    }
}
