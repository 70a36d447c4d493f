//! Making endpoints that run on tokio.

use super::{EndpointBuilder, warn_if_small};
use crate::config::ServerConfig;
use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::handler::Api;
use crate::shards::{self, Shards};
use crate::socket_groups::SocketGroups;
use godwit_datapath::Datapath;
use godwit_engine::{Driver, DriverConfig, Shard, ShardGroup, ShardHandle};
use godwit_transport::CidCodec;
use godwit_transport::tls::secrets::ServerSecrets;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

impl Endpoint {
    /// A server on `addr`. To be called within a tokio runtime.
    ///
    /// # Errors
    /// If the address cannot be had, or there is no runtime.
    pub fn server(config: ServerConfig, addr: SocketAddr) -> io::Result<Endpoint> {
        Self::builder().server(config).bind(addr).build()
    }

    /// An endpoint for clients. `addr` is mostly `[::]:0` (or `0.0.0.0:0` where there is no IPv6), which
    /// leaves the choice of address and port to the system. To be called within a tokio runtime.
    ///
    /// # Errors
    /// If the address cannot be had, or there is no runtime.
    pub fn client(addr: SocketAddr) -> io::Result<Endpoint> {
        Self::builder().bind(addr).build()
    }

    /// For an endpoint with settings of its own: the same as [`EndpointBuilder::new`].
    pub fn builder() -> EndpointBuilder {
        EndpointBuilder::new()
    }
}

impl EndpointBuilder {
    /// Makes the endpoint and begins to drive it on the present tokio runtime, which must have I/O and time enabled.
    ///
    /// # Errors
    /// If an address cannot be had, or this is not called within a tokio runtime.
    pub fn build(self) -> io::Result<Endpoint> {
        let runtime = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
        let place = self.place()?;
        let handle = ShardHandle::new(self.single_shard(&place, Api::new(place.membership.clone()))?);
        let driver = Driver::new(&handle, self.driver())?;
        runtime.spawn(async move {
            if let Err(error) = driver.await {
                tracing::error!(%error, "the endpoint has ended");
            }
        });
        Ok(Endpoint::new(handle, self.factory()))
    }

    /// Runs `count` shards: threads, each with its own socket on the address, its own single-threaded tokio
    /// runtime and its own connections. `application` is called for every connection whose handshake is
    /// complete, on the thread of its shard; the future it returns runs there and may use
    /// `tokio::task::spawn_local`.
    ///
    /// With `pin`, shard i runs on core `pin[i % pin.len()]`. Not to be called with 0 shards or more than
    /// 256.
    ///
    /// # Errors
    /// If an address cannot be had, not even shared by several sockets, or no threads.
    pub fn run_shards<A, F>(self, count: usize, pin: Option<Vec<usize>>, application: A) -> io::Result<Shards>
    where
        A: Fn(Connection) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + 'static,
    {
        let application = Arc::new(application);
        self.run_shards_with(count, pin, move |endpoint| {
            shards::accept_all(endpoint, Arc::clone(&application))
        })
    }

    /// As [`EndpointBuilder::run_shards`], but `application` is called once per shard, with the shard's
    /// endpoint.
    ///
    /// # Errors
    /// As [`EndpointBuilder::run_shards`].
    pub fn run_shards_with<A, F>(
        self,
        count: usize,
        pin: Option<Vec<usize>>,
        application: A,
    ) -> io::Result<Shards>
    where
        A: Fn(Endpoint) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + 'static,
    {
        let make = self.several(count)?;
        let factory = self.factory();
        let run = move |_, handle| application(Endpoint::new(handle, Arc::clone(&factory)));
        let shards = godwit_engine::run_shards(count, pin, &self.driver(), make, run)?;
        Ok(Shards::new(shards))
    }

    /// Runs a shard on each of `runtimes`, each with its own socket on the address and its own connections. The runtimes
    /// must have I/O and time enabled; several shards may have the same. The endpoints are those of the shards, in order:
    /// what is done with one costs least on its own runtime, if that has one thread.
    ///
    /// Not to be called with no runtime or more than 256.
    ///
    /// # Errors
    /// If an address cannot be had, not even shared by several sockets.
    pub fn run_shards_on(self, runtimes: &[tokio::runtime::Handle]) -> io::Result<(Shards, Vec<Endpoint>)> {
        let make = self.several(runtimes.len())?;
        let shards = godwit_engine::run_shards_on(runtimes, &self.driver(), make)?;
        let endpoint = |(handle, runtime): (&ShardHandle<Api>, &tokio::runtime::Handle)| {
            let _entered = runtime.enter();
            Endpoint::new(handle.clone(), self.factory())
        };
        let endpoints = shards.handles().iter().zip(runtimes).map(endpoint).collect();
        Ok((Shards::new(shards), endpoints))
    }

    /// What makes `count` shards on one address, each when it is called with its number.
    fn several(&self, count: usize) -> io::Result<impl FnMut(usize) -> io::Result<Shard<Api>> + '_> {
        if !(1..=256).contains(&count) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "there must be 1 to 256 shards"));
        }
        let sockets = match self.inherited_from.sockets(count, &self.socket_config())? {
            Some(inherited) => inherited,
            None => self.socket_groups(count)?,
        };
        let place = self.place()?;
        sockets.first().into_iter().flatten().for_each(|socket| steer(&**socket, &place.secrets, count));
        let group = ShardGroup::new(count, self.generation);
        let mut sockets = sockets.into_iter();
        Ok(move |number: usize| {
            let number = u8::try_from(number).map_err(io::Error::other)?;
            let sockets = sockets.next().unwrap_or_default();
            let shard = self.shard_of(number, &place, sockets, Api::new(place.membership.clone()));
            Ok(shard.in_group(group.clone()))
        })
    }

    /// Sockets for each shard: those that somebody else has bound, and a group for each address.
    fn socket_groups(&self, count: usize) -> io::Result<SocketGroups> {
        let mut sockets: SocketGroups = (0..count).map(|_| Vec::new()).collect();
        let adopted = self.adopted()?;
        if !adopted.is_empty() && adopted.len() != count {
            let problem = format!("{count} shards need as many sockets, not {}", adopted.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        sockets.iter_mut().zip(adopted).for_each(|(sockets, socket)| sockets.push(socket));
        let factory = self.factory();
        for (id, addr) in self.numbered_addrs() {
            let group = factory.bind_group(id, addr, count)?;
            if let Some(first) = group.first() {
                warn_if_small(&first.capabilities(), self.socket.recv_buffer);
            }
            sockets.iter_mut().zip(group).for_each(|(sockets, socket)| sockets.push(socket));
        }
        Ok(sockets)
    }

    fn driver(&self) -> DriverConfig {
        let mut config = DriverConfig::default();
        config.spin = self.spin;
        config
    }
}

/// Has the kernel give each datagram to the shard of its connection, not to one by address: a client that
/// moves keeps its shard.
#[cfg(target_os = "linux")]
fn steer(socket: &dyn Datapath, secrets: &ServerSecrets, count: usize) {
    // Every shard and generation has the same key.
    let key = CidCodec::new(secrets.cid_key(), CidCodec::MIN_LEN, 0, 0).steering_key();
    if count > 1
        && let Some(socket) = socket.socket()
        && let Err(error) = godwit_datapath::steering::attach(socket, key, count)
    {
        tracing::warn!(%error, "datagrams are steered by address, not by connection");
    }
}

#[cfg(not(target_os = "linux"))]
fn steer(_: &dyn Datapath, _: &ServerSecrets, _: usize) {}
