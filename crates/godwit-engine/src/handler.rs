//! What a shard's user implements to learn what happens in it.

use crate::addresses::{as_told, is_somebody, reaches};
use crate::current_time::CurrentTime;
use crate::stopped::Stopped;
use godwit_base::{SocketId, Time, WallTime};
use godwit_datapath::Datapath;
use godwit_transport::IncomingKey;
use godwit_transport::PathKey;
use godwit_transport::{ConnKey, Endpoint, Event};
use std::net::{IpAddr, SocketAddr};
use std::task::Waker;

/// What an application is to a shard. All calls are made on the shard's turn, with its lock held and no
/// connection borrowed: a handler may call into every connection through [`ShardCx::endpoint_mut`], but
/// must not use a handle of the same shard.
///
/// If it panics over an event, the connection that the event is of is closed with INTERNAL_ERROR; over a handshake, that
/// is refused. The handler is called again for others. A panic in any other call ends the shard.
pub trait Handler: Send + 'static {
    /// Something happened on a connection.
    fn on_event(&mut self, cx: &mut ShardCx<'_>, conn: ConnKey, event: Event);

    /// A client wants to connect. It waits, for a limited time, until it is accepted, refused, sent a
    /// Retry or ignored, which need not be done in this call. By default it is accepted with the
    /// endpoint's settings.
    fn on_incoming(&mut self, cx: &mut ShardCx<'_>, incoming: IncomingKey) {
        let now = cx.now();
        // What cannot be accepted is gone, and has been answered.
        let _ = cx.endpoint_mut().accept(now, incoming, None);
    }

    /// Everything that a batch of datagrams or a deadline caused has been told. What was put off until
    /// more is known can be done now.
    fn on_turn_end(&mut self, _cx: &mut ShardCx<'_>) {}

    /// The last connection is over, no handshake is under way and nothing is left to send. Called each time
    /// that this comes to be.
    fn on_idle(&mut self, _cx: &mut ShardCx<'_>) {}

    /// The shard is at its end: no connection makes progress any more. Called once.
    fn on_stopped(&mut self, _cx: &mut ShardCx<'_>, _why: &Stopped) {}
}

/// What a handler, or a visitor through a handle, sees of the shard.
#[derive(Debug)]
pub struct ShardCx<'a> {
    pub(crate) endpoint: &'a mut Endpoint,
    pub(crate) time: CurrentTime<'a>,
    pub(crate) wakes: &'a mut Vec<Waker>,
    pub(crate) sockets: &'a [Box<dyn Datapath>],
}

impl ShardCx<'_> {
    /// The endpoint with all its connections.
    pub fn endpoint(&self) -> &Endpoint {
        self.endpoint
    }

    /// The endpoint with all its connections, to call into them.
    pub fn endpoint_mut(&mut self) -> &mut Endpoint {
        self.endpoint
    }

    /// The time of this turn. A visit between turns has one time, too, that of the first question for it.
    pub fn now(&self) -> Time {
        self.time.now()
    }

    /// The wall time of this turn, or of a visit.
    pub fn wall(&self) -> WallTime {
        self.time.wall()
    }

    /// Wakes a task once the shard's lock is released, so that the task does not have to wait for it.
    pub fn wake(&mut self, waker: Waker) {
        self.wakes.push(waker);
    }

    /// The address a socket is bound to.
    pub fn local_addr(&self, socket: SocketId) -> Option<SocketAddr> {
        self.sockets.iter().find(|candidate| candidate.id() == socket).map(|socket| socket.local_addr())
    }

    /// The path to `remote` over the first socket that can reach its address family, with the local
    /// address left to the system, and `remote` as packets from there will tell it. `None` if no socket can, or if
    /// nobody in particular is at that address.
    pub fn path_to(&self, remote: SocketAddr) -> Option<PathKey> {
        let remote = Some(as_told(remote)).filter(|remote| is_somebody(*remote))?;
        let same = |local: SocketAddr| local.is_ipv4() == remote.is_ipv4();
        let exact = self.sockets.iter().find(|socket| same(socket.local_addr()));
        let dual = || self.sockets.iter().find(|socket| reaches(socket.local_addr(), remote));
        let socket = exact.or_else(dual)?;
        Some(PathKey { socket: socket.id(), local: None, remote })
    }

    /// The path to `remote` over this socket, with the local address left to the system. `None` if there is no such socket,
    /// if it does not reach there, or if nobody in particular is at that address.
    pub fn path_over(&self, socket: SocketId, remote: SocketAddr) -> Option<PathKey> {
        let remote = Some(as_told(remote)).filter(|remote| is_somebody(*remote))?;
        let local = self.local_addr(socket)?;
        reaches(local, remote).then_some(PathKey { socket, local: None, remote })
    }

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
