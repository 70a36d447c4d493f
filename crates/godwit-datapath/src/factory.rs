//! Who makes the data paths of an endpoint.

use crate::memory::Hub;
use crate::{Datapath, SocketConfig, bind, bind_group};
use godwit_base::SocketId;
use std::net::SocketAddr;
use std::{fmt, io};

/// Makes the data paths of an endpoint: one for each address that the endpoint is bound to, now or later.
///
/// [`SocketConfig`] makes UDP sockets, [`Hub`] those in memory; a program may bring one of its own.
pub trait DatapathFactory: Send + Sync + fmt::Debug {
    /// Makes a data path on `addr`, whose number is `id`. Address and port may be unspecified: then
    /// [`Datapath::local_addr`] tells what was chosen.
    ///
    /// # Errors
    /// If the address cannot be had.
    fn bind(&self, id: SocketId, addr: SocketAddr) -> io::Result<Box<dyn Datapath>>;

    /// Makes `count` data paths on one address, each for another shard and all with the number `id`. Datagrams that
    /// belong to another shard than the one that receives them are handed on.
    ///
    /// # Errors
    /// As [`DatapathFactory::bind`]. By default also if `count` is not 1, for there are not several on one address.
    fn bind_group(&self, id: SocketId, addr: SocketAddr, count: usize) -> io::Result<Vec<Box<dyn Datapath>>> {
        match count {
            1 => Ok(vec![self.bind(id, addr)?]),
            _ => Err(io::Error::new(io::ErrorKind::Unsupported, "these data paths cannot share an address")),
        }
    }
}

impl DatapathFactory for SocketConfig {
    fn bind(&self, id: SocketId, addr: SocketAddr) -> io::Result<Box<dyn Datapath>> {
        Ok(bind(id, addr, self)?)
    }

    fn bind_group(&self, id: SocketId, addr: SocketAddr, count: usize) -> io::Result<Vec<Box<dyn Datapath>>> {
        Ok(bind_group(id, addr, count, self)?)
    }
}

impl DatapathFactory for Hub {
    fn bind(&self, id: SocketId, addr: SocketAddr) -> io::Result<Box<dyn Datapath>> {
        Ok(Box::new(self.socket(id, addr)))
    }
}
