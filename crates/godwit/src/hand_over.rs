//! Exchanging the process for a newer one while its connections live (`godwit-handover`).

use crate::builder::EndpointBuilder;
use crate::endpoint::Endpoint;
use crate::generations::Inherited;
use crate::handler::Api;
use crate::shards::Shards;
use godwit_engine::ShardHandle;
use godwit_handover::Part;
use std::io;
use std::process::Child;
use std::sync::Arc;

pub use godwit_handover::{Inheritance, Predecessor, Successor};

impl EndpointBuilder {
    /// Makes the endpoint a newer generation of the one that left `inheritance`: it has the sockets of that one, and
    /// no addresses are bound and no other sockets used. The generation's number comes with it, and so do the
    /// secrets unless there are others. Nothing is received before [`Endpoint::take_over`] is called.
    pub fn inherit(mut self, inheritance: Inheritance) -> Self {
        self.generation = inheritance.generation();
        self.secrets.get_or_insert(Arc::clone(inheritance.secrets()));
        self.inherited_from = Inherited(Some(Arc::new(inheritance)));
        self
    }
}

impl Endpoint {
    /// Begins to receive, after [`EndpointBuilder::inherit`](crate::EndpointBuilder::inherit): the older generation is
    /// told to stop, and from now on refuses new connections. To be called when everything that the program
    /// needs is in place, for there is no way back. Does nothing where nothing was inherited.
    ///
    /// # Errors
    /// If the older generation has given up waiting: it goes on itself, and this process should end. That the older
    /// generation has died is no error.
    pub async fn take_over(&self) -> io::Result<()> {
        crate::Generation::new().endpoint("", self).take_over().await
    }

    /// Starts `successor`, and has it take over the sockets and all clients that come from now on. It has to build
    /// its endpoint with [`EndpointBuilder::inherit`](crate::EndpointBuilder::inherit) and to call
    /// [`Endpoint::take_over`](crate::Endpoint::take_over), or the same of [`Shards`](crate::Shards).
    ///
    /// The connections of this process go on: the successor hands over what it receives for them. New ones are no
    /// longer accepted, but those that clients have begun before: when these have been accepted,
    /// [`Endpoint::accept`](crate::Endpoint::accept) gives `None`. Then [`Endpoint::drain`](crate::Endpoint::drain) waits for
    /// the end. Should the successor die before this process, this process receives for its own connections again, but
    /// still refuses new ones.
    ///
    /// What is returned is the successor's process, which outlives this one. If the future is dropped before it is
    /// ready, the successor is killed, and all is as before.
    ///
    /// # Errors
    /// If the successor cannot be started, ends, or is not ready in time; if it is this process's turn to receive no
    /// more, or not yet. All is as before then: connections are accepted.
    pub async fn hand_over(&self, successor: crate::Successor) -> io::Result<std::process::Child> {
        crate::Generation::new().endpoint("", self).hand_over(successor).await
    }
}

impl Shards {
    /// As [`Endpoint::take_over`], for all shards.
    ///
    /// # Errors
    /// As there.
    pub async fn take_over(&self) -> io::Result<()> {
        crate::Generation::new().shards("", self).take_over().await
    }

    /// As [`Endpoint::hand_over`], for all shards. The successor must have as many.
    ///
    /// # Errors
    /// As there.
    pub async fn hand_over(&self, successor: crate::Successor) -> io::Result<std::process::Child> {
        crate::Generation::new().shards("", self).hand_over(successor).await
    }
}

/// The endpoints of this process that belong together: a successor takes over all of them at once, or none. One alone
/// needs no more than its own [`Endpoint::hand_over`] and [`Endpoint::take_over`].
#[derive(Debug, Clone, Default)]
#[must_use = "nothing happens before `hand_over` or `take_over`"]
pub struct Generation<'a> {
    parts: Vec<(String, &'a [ShardHandle<Api>])>,
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
        let parts = self.parts()?;
        let child = godwit_handover::hand_over(&parts, successor).await?;
        for shard in parts.iter().flat_map(|part| part.shards) {
            shard.with(|cx, api| api.drain(cx));
        }
        Ok(child)
    }

    /// As [`Endpoint::take_over`], for all of them: the older generation lets go when everything is ready. Endpoints for
    /// which nothing was inherited may be among them; names do not matter.
    ///
    /// # Errors
    /// As there.
    pub async fn take_over(&self) -> io::Result<()> {
        godwit_handover::take_over(&self.parts()?).await
    }

    fn parts(&self) -> io::Result<Vec<Part<'a, Api>>> {
        let part = |(name, shards): &(String, &'a [ShardHandle<Api>])| {
            let membership = shards.first().map(|shard| shard.peek(|_, api| api.membership.clone()));
            let generation = membership.ok_or(io::ErrorKind::Unsupported)?.generation;
            Ok(Part { name: name.clone(), shards, generation })
        };
        self.parts.iter().map(part).collect()
    }
}
