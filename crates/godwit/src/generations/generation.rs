//! Several endpoints that change hands together.

use super::Successor;
use super::hand_over::{Part, hand_over, take_over};
use crate::endpoint::Endpoint;
use crate::shards::Shards;
use std::io;
use std::process::Child;

/// The endpoints of this process that belong together: a successor takes over all of them at once, or none. One alone
/// needs no more than its own [`Endpoint::hand_over`] and [`Endpoint::take_over`].
#[derive(Debug, Clone, Default)]
#[must_use = "nothing happens before `hand_over` or `take_over`"]
pub struct Generation<'a> {
    parts: Vec<Part<'a>>,
}

impl<'a> Generation<'a> {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an endpoint. The successor knows it by its [name](crate::Inheritance::name), which has one line.
    pub fn endpoint(mut self, name: impl Into<String>, endpoint: &'a Endpoint) -> Self {
        self.parts.push((name.into(), endpoint.shards()));
        self
    }

    /// Adds an endpoint on several cores.
    pub fn shards(mut self, name: impl Into<String>, shards: &'a Shards) -> Self {
        self.parts.push((name.into(), shards.handles()));
        self
    }

    /// As [`Endpoint::hand_over`], for all of them. The successor finds each with
    /// [`Inheritance::all_from_env`](crate::Inheritance::all_from_env), and what is passed on beside the sockets with
    /// the first one.
    ///
    /// Those that it [declines](crate::Inheritance::decline) take no new connections any more either.
    ///
    /// # Errors
    /// As there; also if there is no endpoint, a name has more than one line, or the successor declines all.
    pub async fn hand_over(&self, successor: Successor) -> io::Result<Child> {
        if self.parts.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is nothing to hand over"));
        }
        hand_over(&self.parts, successor).await
    }

    /// As [`Endpoint::take_over`], for all of them: the older generation lets go when everything is ready. Endpoints for
    /// which nothing was inherited may be among them; names do not matter.
    ///
    /// # Errors
    /// As there.
    pub async fn take_over(&self) -> io::Result<()> {
        take_over(&self.parts).await
    }
}
