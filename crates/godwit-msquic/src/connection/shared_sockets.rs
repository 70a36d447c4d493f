//! Sockets that connections of clients share because they have asked for it (`QUIC_PARAM_CONN_SHARE_UDP_BINDING`).
//!
//! The connections may be of different workers. So every worker has a socket at the address, all with one number, and each
//! datagram is given to the worker of its connection. Who names no port gets a new one; who names the port of others joins
//! them. The sockets are closed when the last of the connections has left them.
//!
//! Invariant: for each user that is counted here, a connection holds the socket as its own, or is about to.

use crate::worker::{Pool, Worker};
use godwit_base::SocketId;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sockets of all workers at one address.
struct Shared {
    /// The workers that have them.
    pool: &'static Pool,
    socket: SocketId,
    bound: SocketAddr,
    /// Connections that use them.
    users: usize,
}

impl Shared {
    /// Whether packets from `local` to `remote` can leave here.
    fn serves(&self, local: SocketAddr, remote: SocketAddr) -> bool {
        let is_at = self.bound.ip().to_canonical() == local.ip().to_canonical();
        let is_everywhere = self.bound.ip().is_unspecified();
        let is_of_family = match self.bound.ip() {
            ip if ip.is_unspecified() && ip.is_ipv6() => true,
            ip => ip.to_canonical().is_ipv4() == remote.ip().to_canonical().is_ipv4(),
        };
        self.bound.port() == local.port() && (is_at || is_everywhere) && is_of_family
    }
}

/// Held while sockets are bound, which takes the workers' locks: nobody may come here who holds one.
static SHARED: Mutex<Vec<Shared>> = Mutex::new(Vec::new());

fn shared() -> MutexGuard<'static, Vec<Shared>> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A share in the sockets at `local`, which are made if there are none yet, and the address.
///
/// # Errors
/// If the address cannot be had, for instance because others have it who do not share.
pub(crate) fn join(
    pool: &'static Pool,
    local: Option<SocketAddr>,
    remote: SocketAddr,
) -> io::Result<(SocketId, SocketAddr)> {
    let mut all = shared();
    if let Some(local) = local.filter(|local| local.port() != 0) {
        let joined = all.iter_mut().find(|it| std::ptr::eq(it.pool, pool) && it.serves(local, remote));
        if let Some(joined) = joined {
            joined.users = joined.users.saturating_add(1);
            return Ok((joined.socket, local));
        }
    }
    let (socket, bound) = match local {
        Some(local) => pool.bind_for_clients(local)?,
        None => pool
            .bind_for_clients((Ipv6Addr::UNSPECIFIED, 0).into())
            .or_else(|_| pool.bind_for_clients((Ipv4Addr::UNSPECIFIED, 0).into()))?,
    };
    all.push(Shared { pool, socket, bound, users: 1 });
    Ok((socket, bound))
}

/// A connection of this worker uses a socket no more, which it had for itself or shared with others.
pub(crate) fn leave(worker: &Worker, socket: SocketId) {
    let mut all = shared();
    let Some(at) = all.iter().position(|it| it.socket == socket) else {
        drop(all);
        worker.unbind(socket);
        return;
    };
    let Some(left) = all.get_mut(at) else { return };
    left.users = left.users.saturating_sub(1);
    if left.users == 0 {
        let pool = left.pool;
        all.swap_remove(at);
        drop(all);
        pool.unbind(socket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool() -> &'static Pool {
        Box::leak(Box::new(Pool::new(2)))
    }

    fn at(address: &str) -> SocketAddr {
        address.parse().unwrap()
    }

    #[test]
    fn those_who_name_the_port_join_and_the_last_closes() {
        let (pool, remote) = (pool(), at("127.0.0.1:4433"));
        let (first, bound) = join(pool, None, remote).unwrap();
        let local = SocketAddr::new(remote.ip(), bound.port());
        assert_eq!(join(pool, Some(local), remote).unwrap(), (first, local));
        let [one, other] = pool.workers() else { panic!("two workers") };
        leave(one, first);
        assert_eq!(join(pool, Some(local), remote).unwrap().0, first, "one is left");
        leave(other, first);
        leave(one, first);
        assert!(shared().iter().all(|it| it.socket != first));
    }

    #[test]
    fn who_names_no_port_gets_a_new_one() {
        let (pool, remote) = (pool(), at("127.0.0.1:4433"));
        let (first, second) = (join(pool, None, remote).unwrap(), join(pool, None, remote).unwrap());
        let third = join(pool, Some(at("127.0.0.1:0")), remote).unwrap();
        assert!(first.0 != second.0 && second.0 != third.0 && first.1.port() != second.1.port());
    }

    #[test]
    fn whoever_does_not_share_keeps_others_out() {
        let (pool, remote) = (pool(), at("127.0.0.1:4433"));
        let [worker, _] = pool.workers() else { panic!("two workers") };
        let (_, bound) = worker.bind(pool, at("127.0.0.1:0")).unwrap();
        assert_eq!(join(pool, Some(bound), remote).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn sockets_serve_their_address_and_families() {
        let bound_at = |bound| Shared { pool: pool(), socket: SocketId(0), bound: at(bound), users: 1 };
        let serves = |bound, local, remote| bound_at(bound).serves(at(local), at(remote));
        assert!(serves("[::]:1", "127.0.0.1:1", "127.0.0.1:9"));
        assert!(serves("[::]:1", "[::1]:1", "[::1]:9"));
        assert!(serves("127.0.0.1:1", "127.0.0.1:1", "127.0.0.1:9"));
        assert!(!serves("[::]:1", "127.0.0.1:2", "127.0.0.1:9"), "another port");
        assert!(!serves("127.0.0.1:1", "127.0.0.2:1", "127.0.0.1:9"), "another address");
        assert!(!serves("0.0.0.0:1", "[::1]:1", "[::1]:9"), "another family");
    }
}
