//! Addresses at which there are listeners. Several may be at one address, if they are for different protocols; and at
//! different addresses with one port, of which the system gives each datagram to the narrowest.
//!
//! A listener without an address, or with one of no family, is at every address of both families.
//!
//! An address that its listeners have left is kept as long as there are connections, and a new listener can have it.

use super::Listener;
use crate::abi::{Address, Status};
use crate::io_status::status_of;
use crate::worker::{Pool, pool};
use bytes::Bytes;
use godwit_base::SocketId;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An address, and who listens there.
struct Binding {
    /// The workers that have its sockets.
    pool: &'static Pool,
    asked: SocketAddr,
    bound: SocketAddr,
    socket: SocketId,
    /// Nobody: the sockets are closed when no connection uses them any more.
    listeners: Vec<Entry>,
    /// The one worker that has a socket, if it is not all.
    partition: Option<u16>,
    /// The workers are closing the sockets.
    is_closing: bool,
}

/// A listener with the protocols that it is for.
type Entry = (Arc<Listener>, Vec<Bytes>);

impl Binding {
    /// Whether clients that came to `other` could have come here, were there no narrower address.
    fn is_wider_than(&self, other: &Binding) -> bool {
        let is_of_family = self.asked.is_ipv6() || other.asked.is_ipv4();
        self.has_port(other.pool, other.bound.port()) && self.asked.ip().is_unspecified() && is_of_family
    }

    fn has_port(&self, pool: &Pool, port: u16) -> bool {
        std::ptr::eq(self.pool, pool) && self.bound.port() == port
    }

    fn find(&self, alpn: &[&[u8]]) -> Option<(Arc<Listener>, Bytes)> {
        self.listeners.iter().find_map(|(listener, of_listener)| {
            let protocol = of_listener.iter().find(|protocol| alpn.contains(&protocol.as_ref()))?;
            Some((Arc::clone(listener), protocol.clone()))
        })
    }
}

static BINDINGS: Mutex<Vec<Binding>> = Mutex::new(Vec::new());

/// Held by who adds an address: to bind it takes the workers' locks, under which they look for listeners here.
static CHANGING: Mutex<()> = Mutex::new(());

fn bindings() -> MutexGuard<'static, Vec<Binding>> {
    BINDINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// No listener comes or goes as long as this is held.
#[cfg(test)]
pub(super) fn hold() -> impl Sized {
    bindings()
}

/// What a client asks for.
pub(crate) struct Asked<'a> {
    pub(crate) socket: SocketId,
    pub(crate) alpn: Vec<&'a [u8]>,
}

/// Why there is no listener for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoListener {
    /// None is at that address.
    Gone,
    /// None is for a protocol that the client offers.
    Protocol,
}

/// The listener for a client, and the protocol that both have: the first of the listener's. Listeners at the address that
/// the client came to go before those at every address.
pub(crate) fn choose(asked: &Asked<'_>) -> Result<(Arc<Listener>, Bytes), NoListener> {
    let bindings = bindings();
    let own = bindings.iter().find(|binding| binding.socket == asked.socket).ok_or(NoListener::Gone)?;
    let wider =
        |ipv6: bool| bindings.iter().filter(move |it| it.asked.is_ipv6() == ipv6 && it.is_wider_than(own));
    let mut is_anybody_there = false;
    for binding in std::iter::once(own).chain(wider(false)).chain(wider(true)) {
        is_anybody_there |= !binding.listeners.is_empty();
        if let Some(found) = binding.find(&asked.alpn) {
            return Ok(found);
        }
    }
    Err(if is_anybody_there { NoListener::Protocol } else { NoListener::Gone })
}

/// How many datagrams were dropped at the address of a listener, which it may share with others.
pub(super) fn dropped_at(listener: &Listener) -> u64 {
    let is_its = |binding: &&Binding| binding.listeners.iter().any(|(it, _)| std::ptr::eq(&**it, listener));
    let place = bindings().iter().find(is_its).map(|binding| (binding.pool, binding.socket));
    // Workers' locks are taken, under which they look for listeners here.
    place.map_or(0, |(pool, socket)| pool.discarded_at(socket))
}

/// Has a listener listen at an address, at the one worker of a partition or at all of them, and says which it has become.
pub(super) fn add(
    listener: &Arc<Listener>,
    alpn: &[Bytes],
    address: Option<&Address>,
    partition: Option<u16>,
) -> Result<SocketAddr, Status> {
    let wanted = address.and_then(Address::socket_address);
    let port = address.map_or(0, Address::port);
    let is_any_family = wanted.is_none();
    let wanted = wanted.unwrap_or_else(|| (Ipv6Addr::UNSPECIFIED, port).into());
    let pool = pool().ok_or(Status::INVALID_STATE)?;
    let _changing = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
    let entry = (Arc::clone(listener), alpn.to_vec());
    let bound = match join(pool, wanted, &entry, partition)? {
        Some(bound) => bound,
        None => bind(pool, (wanted, is_any_family), entry, partition).map_err(|error| status_of(&error))?,
    };
    Ok(told(bound, address))
}

/// Has a listener join those at its address, or take over what they have left; `None` if there is neither. Listeners of one
/// address in different partitions have all workers.
fn join(
    pool: &'static Pool,
    wanted: SocketAddr,
    entry: &Entry,
    partition: Option<u16>,
) -> Result<Option<SocketAddr>, Status> {
    if wanted.port() == 0 {
        return Ok(None);
    }
    let mut all = bindings();
    let is_at = |it: &&mut Binding| it.asked.ip() == wanted.ip() && it.has_port(pool, wanted.port());
    let Some(binding) = all.iter_mut().find(is_at) else { return Ok(None) };
    let taken = |protocol: &Bytes| binding.listeners.iter().any(|(_, alpn)| alpn.contains(protocol));
    if entry.1.iter().any(taken) {
        return Err(Status::ALPN_IN_USE);
    }
    let (socket, bound) = (binding.socket, binding.bound);
    let is_enough = binding.partition.is_none() || binding.partition == partition;
    if !binding.is_closing && is_enough {
        binding.listeners.push(entry.clone());
        return Ok(Some(bound));
    }
    let partition = partition.filter(|_| binding.is_closing);
    // Workers' locks are taken, under which they look for listeners here.
    drop(all);
    if pool.keep(socket, bound, partition).map_err(|error| status_of(&error))? {
        if let Some(binding) = bindings().iter_mut().find(|it| it.socket == socket) {
            (binding.is_closing, binding.partition) = (false, partition);
            binding.listeners.push(entry.clone());
        }
        return Ok(Some(bound));
    }
    bindings().retain(|it| it.socket != socket);
    Ok(None)
}

/// Has a listener be at an address at which there is none.
fn bind(
    pool: &'static Pool,
    (wanted, is_any_family): (SocketAddr, bool),
    entry: Entry,
    partition: Option<u16>,
) -> std::io::Result<SocketAddr> {
    let port = wanted.port();
    let beside = port != 0 && bindings().iter().any(|it| it.has_port(pool, port));
    let outcome = pool.bind(wanted, beside, partition).or_else(|error| {
        // There is no IPv6 here, and it was not asked for.
        if is_any_family && error.kind() != std::io::ErrorKind::AddrInUse {
            pool.bind((Ipv4Addr::UNSPECIFIED, port).into(), beside, partition)
        } else {
            Err(error)
        }
    });
    let (socket, bound) = outcome?;
    bindings().push(Binding {
        pool,
        asked: wanted,
        bound,
        socket,
        partition,
        listeners: vec![entry],
        is_closing: false,
    });
    Ok(bound)
}

/// The address as its listener is told it.
fn told(bound: SocketAddr, asked: Option<&Address>) -> SocketAddr {
    let ip = asked.and_then(Address::socket_address).map_or(bound.ip(), |asked| asked.ip());
    let ip = if ip.is_unspecified() && bound.ip().is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { ip };
    SocketAddr::new(ip, bound.port())
}

/// A listener listens no more. The sockets are closed with the last of them, once no connection uses any.
pub(super) fn remove(listener: &Arc<Listener>) {
    for binding in bindings().iter_mut() {
        binding.listeners.retain(|(other, _)| !Arc::ptr_eq(other, listener));
    }
    close_unused_bindings();
}

/// Closes the sockets of addresses that listeners have left and no connection uses any more. No lock may be held.
pub(crate) fn close_unused_bindings() {
    if !bindings().iter().any(|it| it.listeners.is_empty()) {
        return;
    }
    let _changing = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
    let of = |is_closing: bool| -> Vec<(SocketId, &'static Pool)> {
        let all = bindings();
        let left = all.iter().filter(|it| it.listeners.is_empty() && it.is_closing == is_closing);
        left.map(|it| (it.socket, it.pool)).collect()
    };
    let closed: Vec<SocketId> =
        of(true).into_iter().filter(|(socket, pool)| !pool.has_socket(*socket)).map(|it| it.0).collect();
    bindings().retain(|it| !closed.contains(&it.socket));
    for (socket, pool) in of(false).into_iter().filter(|(socket, pool)| !pool.uses(*socket)) {
        if let Some(binding) = bindings().iter_mut().find(|it| it.socket == socket) {
            binding.is_closing = true;
        }
        pool.unbind(socket);
    }
}
