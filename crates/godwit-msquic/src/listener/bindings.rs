//! Addresses at which there are listeners. Several may be at one address, if they are for different protocols; and at
//! different addresses with one port, of which the system gives each datagram to the narrowest.
//!
//! A listener without an address, or with one of no family, is at every address of both families.
//!
//! The sockets of an address stay as long as connections use them. A listener that comes to that address meanwhile has them
//! again.

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
    asked: SocketAddr,
    bound: SocketAddr,
    socket: SocketId,
    /// Nobody: the sockets are closed when no connection uses them any more.
    listeners: Vec<(Arc<Listener>, Vec<Bytes>)>,
}

impl Binding {
    /// Whether clients that came to `other` could have come here, were there no narrower address.
    fn is_wider_than(&self, other: &Binding) -> bool {
        let is_of_family = self.asked.is_ipv6() || other.asked.is_ipv4();
        self.bound.port() == other.bound.port() && self.asked.ip().is_unspecified() && is_of_family
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

/// Has a listener listen at an address, and says which it has become.
pub(super) fn add(
    listener: &Arc<Listener>,
    alpn: &[Bytes],
    address: Option<&Address>,
) -> Result<SocketAddr, Status> {
    let wanted = address.and_then(Address::socket_address);
    let port = address.map_or(0, Address::port);
    let wanted = wanted.unwrap_or_else(|| (Ipv6Addr::UNSPECIFIED, port).into());
    let pool = pool().ok_or(Status::INVALID_STATE)?;
    let _changing = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
    let entry = (Arc::clone(listener), alpn.to_vec());
    let bound = match join(pool, wanted, entry)? {
        Joined::There(bound) => bound,
        Joined::NotThere { entry, beside } => {
            let outcome = pool.bind(wanted, beside).or_else(|error| match wanted_family(address) {
                // There is no IPv6 here, and it was not asked for.
                None if error.kind() != std::io::ErrorKind::AddrInUse => {
                    pool.bind((Ipv4Addr::UNSPECIFIED, port).into(), beside)
                }
                _ => Err(error),
            });
            let (socket, bound) = outcome.map_err(|error| status_of(&error))?;
            bindings().push(Binding { asked: wanted, bound, socket, listeners: vec![entry] });
            bound
        }
    };
    Ok(told(bound, address))
}

fn wanted_family(address: Option<&Address>) -> Option<SocketAddr> {
    address.and_then(Address::socket_address)
}

/// A listener with the protocols that it is for.
type Entry = (Arc<Listener>, Vec<Bytes>);

/// Whether a listener has joined others, or the sockets that they have left.
enum Joined {
    There(SocketAddr),
    /// There is nothing at this address; `beside`: but there is at others with this port.
    NotThere {
        entry: Entry,
        beside: bool,
    },
}

/// Has a listener join those at its address, or take over what is left of them.
fn join(pool: &Pool, wanted: SocketAddr, entry: Entry) -> Result<Joined, Status> {
    let is_at = |it: &Binding| it.asked.ip() == wanted.ip() && it.bound.port() == wanted.port();
    let mut all = bindings();
    if wanted.port() == 0 {
        return Ok(Joined::NotThere { entry, beside: false });
    }
    if let Some(binding) = all.iter_mut().find(|it| is_at(it) && !it.listeners.is_empty()) {
        let taken = |protocol: &Bytes| binding.listeners.iter().any(|(_, alpn)| alpn.contains(protocol));
        if entry.1.iter().any(taken) {
            return Err(Status::ALPN_IN_USE);
        }
        binding.listeners.push(entry);
        return Ok(Joined::There(binding.bound));
    }
    // Workers' locks are taken, under which they look for listeners here.
    let left = all.iter().find(|it| is_at(it)).map(|it| (it.socket, it.bound));
    drop(all);
    if let Some((socket, bound)) = left {
        if pool.keep(socket, bound).map_err(|error| status_of(&error))? {
            if let Some(binding) = bindings().iter_mut().find(|it| it.socket == socket) {
                binding.listeners.push(entry);
            }
            return Ok(Joined::There(bound));
        }
        bindings().retain(|it| it.socket != socket);
    }
    let beside = bindings().iter().any(|it| it.bound.port() == wanted.port());
    Ok(Joined::NotThere { entry, beside })
}

/// The address as its listener is told it.
fn told(bound: SocketAddr, asked: Option<&Address>) -> SocketAddr {
    let ip = asked.and_then(Address::socket_address).map_or(bound.ip(), |asked| asked.ip());
    let ip = if ip.is_unspecified() && bound.ip().is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { ip };
    SocketAddr::new(ip, bound.port())
}

/// A listener listens no more. The sockets are closed after the last of them, once no connection uses them.
pub(super) fn remove(listener: &Arc<Listener>) {
    let Some(pool) = pool() else { return };
    let _changing = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut all = bindings();
    let mut left = Vec::new();
    for binding in all.iter_mut().filter(|it| !it.listeners.is_empty()) {
        binding.listeners.retain(|(other, _)| !Arc::ptr_eq(other, listener));
        if binding.listeners.is_empty() {
            left.push(binding.socket);
        }
    }
    let vacant: Vec<SocketId> = all.iter().filter(|it| it.listeners.is_empty()).map(|it| it.socket).collect();
    drop(all);
    left.into_iter().for_each(|socket| pool.unbind(socket));
    let closed: Vec<SocketId> = vacant.into_iter().filter(|socket| !pool.has_socket(*socket)).collect();
    bindings().retain(|it| !closed.contains(&it.socket));
}
