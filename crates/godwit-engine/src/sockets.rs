//! Exchanging a shard's sockets while its connections live (RFC 9000 section 9.2).
//!
//! A new socket takes over what is begun from now on, and clients' connections are asked to move to it. Each
//! does so when the path from there is validated; until the last connection has left, the old socket is kept,
//! so that nothing that is on its way to it is lost.

use crate::handler::ShardCx;
use crate::shard::Shard;
use godwit_base::SocketId;
use godwit_datapath::{Counters, Datapath};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6};

/// Which sockets are to go.
#[derive(Debug, Default)]
pub(crate) struct Retirement {
    /// They are closed as soon as no connection has a path on them.
    retiring: Vec<SocketId>,
    /// One of them may be unused by now.
    due: bool,
    /// What those have done that are closed.
    pub(crate) closed: Counters,
}

/// Whether a socket bound to `local` can send to `remote`. An IPv6 socket on any address may be dual-stack; if it
/// is not, the kernel will say so.
pub(crate) fn reaches(local: SocketAddr, remote: SocketAddr) -> bool {
    let local = local.ip().to_canonical();
    local.is_ipv4() == remote.is_ipv4() || local.is_ipv6() && local.is_unspecified()
}

/// An address as packets from there tell it: IPv4 as such and not mapped into IPv6, no flow label, and a scope only
/// where it is a part of the address.
pub(crate) fn as_told(addr: SocketAddr) -> SocketAddr {
    let port = addr.port();
    match (addr.ip().to_canonical(), addr) {
        (IpAddr::V6(ip), SocketAddr::V6(addr)) if ip.is_unicast_link_local() => {
            SocketAddr::V6(SocketAddrV6::new(ip, port, 0, addr.scope_id()))
        }
        (ip, _) => SocketAddr::new(ip, port),
    }
}

/// Whether one host can answer from this address.
pub(crate) fn is_somebody(addr: SocketAddr) -> bool {
    let ip = addr.ip();
    addr.port() != 0 && !ip.is_unspecified() && !ip.is_multicast() && ip != Ipv4Addr::BROADCAST
}

impl<H> Shard<H> {
    /// A number that no socket has.
    fn next_socket_id(&self) -> SocketId {
        let highest = self.sockets.iter().map(|socket| socket.id().0).max();
        SocketId(highest.map_or(0, |highest| highest.wrapping_add(1)))
    }

    /// Makes a socket and has it take the place of those whose address family it can serve: what is begun from now
    /// on leaves from it, and clients' connections move to it, each as soon as the path from there is validated
    /// (RFC 9000 section 9.2). An old socket is closed when no connection uses it any more. Returns the new address.
    ///
    /// # Errors
    /// What `make` says; then nothing has changed.
    pub fn rebind<E>(
        &mut self,
        make: impl FnOnce(SocketId) -> Result<Box<dyn Datapath>, E>,
    ) -> Result<SocketAddr, E> {
        let now = self.now();
        let socket = make(self.next_socket_id())?;
        let (id, local) = (socket.id(), socket.local_addr());
        for old in self.sockets.iter().filter(|old| reaches(local, old.local_addr())) {
            if !self.retirement.retiring.contains(&old.id()) {
                self.retirement.retiring.push(old.id());
            }
        }
        self.sockets.insert(0, socket);
        self.sockets_version += 1;
        let clients: Vec<_> = self.endpoint.clients().collect();
        for key in clients {
            // One that cannot move keeps the socket that it has.
            self.endpoint.with(key, |connection| {
                reaches(local, connection.remote()).then(|| connection.migrate(now, id, None))
            });
        }
        self.retirement.due = true;
        Ok(local)
    }

    /// Closes the sockets that are to go and are no longer used. Between batches only: what is for a socket that
    /// is gone cannot be sent.
    pub(crate) fn drop_unused_sockets(&mut self) {
        if self.retirement.retiring.is_empty() {
            return;
        }
        self.retirement.due |= self.endpoint.take_paths_left();
        if !self.retirement.due || !self.has_sent_everything() {
            return;
        }
        self.retirement.due = false;
        let Shard { endpoint, sockets, retirement, .. } = self;
        let gone: Vec<_> =
            retirement.retiring.iter().copied().filter(|socket| !endpoint.uses_socket(*socket)).collect();
        retirement.retiring.retain(|socket| !gone.contains(socket));
        for socket in sockets.extract_if(.., |socket| gone.contains(&socket.id())) {
            retirement.closed += socket.counters();
        }
        if !gone.is_empty() {
            self.sockets_version += 1;
        }
    }
}

impl ShardCx<'_> {
    /// The socket with the address `local` from which `remote` can be reached, and the address to choose on it: none
    /// if it is bound to that very address, or `local` is unspecified. Port 0 stands for any.
    pub fn socket_at(&self, local: SocketAddr, remote: SocketAddr) -> Option<(SocketId, Option<IpAddr>)> {
        let ip = local.ip().to_canonical();
        let usable =
            |bound: SocketAddr| (local.port() == 0 || bound.port() == local.port()) && reaches(bound, remote);
        let sockets = self.sockets.iter().map(|socket| (socket.id(), socket.local_addr()));
        let mut sockets = sockets.filter(|(_, bound)| usable(*bound));
        if let Some((id, _)) = sockets.clone().find(|(_, bound)| bound.ip() == ip) {
            return Some((id, None));
        }
        let (id, _) = sockets.find(|(_, bound)| bound.ip().is_unspecified())?;
        match ip.is_unspecified() {
            true => Some((id, None)),
            false => (ip.is_ipv4() == remote.is_ipv4()).then_some((id, Some(ip))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_known_by_how_packets_tell_them() {
        for (given, told) in [
            ("192.0.2.1:443", "192.0.2.1:443"),
            ("[::ffff:192.0.2.1]:443", "192.0.2.1:443"),
            ("[2001:db8::1%7]:443", "[2001:db8::1]:443"),
            ("[fe80::1%7]:443", "[fe80::1%7]:443"),
        ] {
            assert_eq!(as_told(given.parse().unwrap()), told.parse().unwrap());
        }
        let labelled = SocketAddrV6::new("2001:db8::1".parse().unwrap(), 443, 5, 0);
        assert_eq!(as_told(labelled.into()), "[2001:db8::1]:443".parse().unwrap());
    }

    #[test]
    fn nobody_answers_for_everybody() {
        for nobody in
            ["0.0.0.0:1", "[::]:1", "224.0.0.1:1", "[ff02::1%1]:1", "255.255.255.255:1", "127.0.0.1:0"]
        {
            assert!(!is_somebody(nobody.parse().unwrap()), "{nobody}");
        }
        assert!(is_somebody("[::1]:1".parse().unwrap()) && is_somebody("10.0.0.255:1".parse().unwrap()));
    }
}
