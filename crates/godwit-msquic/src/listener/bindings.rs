//! Addresses at which there are listeners. Several may be at one address, if they are for different protocols.
//!
//! A listener without an address, or with one of no family, is at every address of both families.

use super::Listener;
use crate::abi::{Address, Status};
use crate::io_status::status_of;
use crate::worker::pool;
use bytes::Bytes;
use godwit_base::SocketId;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An address, and who listens there.
struct Binding {
    asked: SocketAddr,
    bound: SocketAddr,
    socket: SocketId,
    listeners: Vec<(Arc<Listener>, Vec<Bytes>)>,
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

/// The listener for a client, and the protocol that both have: the first of the listener's.
pub(crate) fn choose(asked: &Asked<'_>) -> Result<(Arc<Listener>, Bytes), NoListener> {
    let bindings = bindings();
    let binding = bindings.iter().find(|binding| binding.socket == asked.socket).ok_or(NoListener::Gone)?;
    for (listener, alpn) in &binding.listeners {
        if let Some(protocol) = alpn.iter().find(|protocol| asked.alpn.contains(&protocol.as_ref())) {
            return Ok((Arc::clone(listener), protocol.clone()));
        }
    }
    Err(NoListener::Protocol)
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
    let _changing = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut bindings = bindings();
    let shared = bindings
        .iter_mut()
        .find(|it| wanted.port() != 0 && it.asked.ip() == wanted.ip() && it.bound.port() == wanted.port());
    if let Some(binding) = shared {
        let taken = |protocol: &Bytes| binding.listeners.iter().any(|(_, alpn)| alpn.contains(protocol));
        if alpn.iter().any(taken) {
            return Err(Status::ALPN_IN_USE);
        }
        binding.listeners.push((Arc::clone(listener), alpn.to_vec()));
        return Ok(told(binding.bound, address));
    }
    drop(bindings);
    let pool = pool().ok_or(Status::INVALID_STATE)?;
    let outcome =
        pool.bind(wanted).or_else(|error| match (address.and_then(Address::socket_address), error) {
            // There is no IPv6 here, and it was not asked for.
            (None, error) if error.kind() != std::io::ErrorKind::AddrInUse => {
                pool.bind((Ipv4Addr::UNSPECIFIED, port).into())
            }
            (_, error) => Err(error),
        });
    let (socket, bound) = outcome.map_err(|error| status_of(&error))?;
    let listeners = vec![(Arc::clone(listener), alpn.to_vec())];
    self::bindings().push(Binding { asked: wanted, bound, socket, listeners });
    Ok(told(bound, address))
}

/// The address as its listener is told it.
fn told(bound: SocketAddr, asked: Option<&Address>) -> SocketAddr {
    let ip = asked.and_then(Address::socket_address).map_or(bound.ip(), |asked| asked.ip());
    let ip = if ip.is_unspecified() && bound.ip().is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { ip };
    SocketAddr::new(ip, bound.port())
}

/// A listener listens no more. The socket is closed with the last of them, once no connection uses it.
pub(super) fn remove(listener: &Arc<Listener>) {
    let mut bindings = bindings();
    for binding in bindings.iter_mut() {
        binding.listeners.retain(|(other, _)| !Arc::ptr_eq(other, listener));
    }
    let gone: Vec<SocketId> =
        bindings.extract_if(.., |it| it.listeners.is_empty()).map(|binding| binding.socket).collect();
    drop(bindings);
    if let Some(pool) = pool() {
        gone.into_iter().for_each(|socket| pool.unbind(socket));
    }
}
