//! The workers there are, and what each has: its shard, and the sockets in it.

use super::common_sockets::CommonSockets;
use super::polled::Polled;
use super::shown::shown;
use super::state::State;
use crate::parameters::versions_of_servers;
use godwit_base::SocketId;
use godwit_datapath::{Datapath, DatapathFactory, SocketConfig, share_port};
use godwit_engine::{OsRng, Shard, ShardCx, ShardGroup, ShardHandle};
use godwit_transport::tls::secrets::ServerSecrets;
use godwit_transport::{CidCodec, Endpoint, EndpointConfig, MemoryLimit, UsedTokens, WindowReserve};
use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// One that works: on a thread of its own, or when the application polls it.
pub(crate) struct Worker {
    number: u8,
    pub(super) shard: ShardHandle<State>,
    /// The application polls it.
    pub(super) polled: OnceLock<Polled>,
    /// Where its connections leave that do not care from where.
    pub(super) sockets: CommonSockets,
}

/// All workers.
pub(crate) struct Pool {
    workers: Box<[Worker]>,
    /// Which of them is next to have a connection.
    next: AtomicUsize,
    /// A socket has been asked for.
    has_sockets: AtomicBool,
    secrets: Arc<ServerSecrets>,
}

/// So many handshakes may be under way at a worker before clients have to prove their addresses, as everywhere in Godwit.
const HANDSHAKES_BEFORE_RETRY: usize = 512;

/// The number of the next socket: a listener's has the same at every worker, and no other ever has it.
static NEXT_SOCKET: AtomicU32 = AtomicU32::new(0);

/// Every client has to prove its address.
static RETRIES_ALWAYS: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The worker whose thread this is: where one thread polls several, the one whose callback is made.
    static CURRENT: Cell<Option<u8>> = const { Cell::new(None) };
    /// Which workers' this thread is, a bit for each: a callback of one's may have closed what another has.
    static INSIDE: Cell<[u64; 4]> = const { Cell::new([0; 4]) };
}

/// Whether every client has to prove its address, at workers that start now.
pub(super) fn retry_always(always: bool) {
    RETRIES_ALWAYS.store(always, Ordering::Relaxed);
}

/// How many handshakes may be under way at a worker before clients have to prove their addresses.
pub(super) fn handshakes_before_retry() -> usize {
    if RETRIES_ALWAYS.load(Ordering::Relaxed) { 0 } else { HANDSHAKES_BEFORE_RETRY }
}

impl Pool {
    /// As many workers as a handle can tell apart, at most.
    pub(super) const MOST_WORKERS: usize = 255;

    /// Workers that do nothing yet.
    pub(crate) fn new(count: usize) -> Self {
        let secrets = Arc::new(ServerSecrets::from_rng(&mut OsRng::new()));
        let group = ShardGroup::new(count, 0);
        let (reserve, memory, tokens) = (WindowReserve::default(), MemoryLimit::default(), UsedTokens::new());
        let versions = versions_of_servers();
        let shown = *shown();
        let mut workers = Vec::new();
        for number in (0_u8..).take(count) {
            let mut config = EndpointConfig::new(Arc::clone(&secrets));
            config.shard = number;
            config.handshakes_before_retry = handshakes_before_retry();
            config.window_reserve = reserve.clone();
            config.memory_limit = memory.clone();
            config.used_tokens = tokens.clone();
            config.accepts_each = true;
            (config.versions, config.upgrade_to) = (versions.accepted.clone(), versions.upgrade_to);
            shown.apply(&mut config);
            let mut endpoint = Endpoint::new(config, None, Box::new(OsRng::new()));
            endpoint.watch_incoming();
            let shard = Shard::new(endpoint, Vec::new(), State::new(number)).in_group(group.clone());
            let shard = ShardHandle::new(shard);
            shard.join_group(&group, number.into());
            workers.push(Worker {
                number,
                shard,
                polled: OnceLock::new(),
                sockets: CommonSockets::default(),
            });
        }
        Pool {
            workers: workers.into(),
            next: AtomicUsize::new(0),
            has_sockets: AtomicBool::new(false),
            secrets,
        }
    }

    /// Whether a socket has been asked for.
    pub(super) fn has_sockets(&self) -> bool {
        self.has_sockets.load(Ordering::Relaxed)
    }

    /// A worker by its number.
    pub(crate) fn worker(&self, number: u8) -> Option<&Worker> {
        self.workers.get(usize::from(number))
    }

    /// Whether the application polls them.
    pub(super) fn is_polled(&self) -> bool {
        self.workers.iter().all(|worker| worker.polled.get().is_some())
    }

    /// All of them.
    pub(crate) fn workers(&self) -> &[Worker] {
        &self.workers
    }

    /// The worker for a new connection: that of this thread if it is one, else each in turn.
    pub(crate) fn next_worker(&self) -> Option<&Worker> {
        if let Some(current) = CURRENT.get() {
            return self.worker(current);
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed).checked_rem(self.workers.len())?;
        self.workers.get(number)
    }

    /// A generation that is greater than those of all handles given so far.
    pub(super) fn next_generation(&self) -> u32 {
        let of_each = self.workers.iter().map(|worker| worker.peek(|_, state| state.next_generation()));
        of_each.max().unwrap_or(0)
    }

    /// Handles that are given from now on are of this generation or later ones.
    pub(super) fn begin_generations_at(&self, first: u32) {
        for worker in &self.workers {
            worker.shard.with_if(|_, state| (state.begin_generations_at(first), false));
        }
    }

    fn fresh_socket_id(&self) -> SocketId {
        self.has_sockets.store(true, Ordering::Relaxed);
        SocketId(NEXT_SOCKET.fetch_add(1, Ordering::Relaxed))
    }

    /// The worker of a partition, or all of them.
    fn members(&self, partition: Option<u16>) -> &[Worker] {
        let one = partition.map(usize::from).and_then(|number| self.workers.get(number..=number));
        one.unwrap_or(&self.workers)
    }

    /// Gives every worker a socket on `address`, or that of the partition alone, all with the same number, and says which
    /// address it has become. `beside`: this process has sockets with the same port already, at other addresses.
    ///
    /// # Errors
    /// If the address cannot be had.
    pub(crate) fn bind(
        &self,
        address: SocketAddr,
        beside: bool,
        partition: Option<u16>,
    ) -> io::Result<(SocketId, SocketAddr)> {
        let mut config = SocketConfig::default();
        config.reuse_port = beside;
        // A listener may have an address before the machine has it.
        config.free_bind = cfg!(target_os = "linux");
        self.bind_with(&config, address, self.members(partition))
    }

    /// As [`Pool::bind`], for connections of clients, which may share the port with others.
    ///
    /// # Errors
    /// If the address cannot be had.
    pub(crate) fn bind_for_clients(&self, address: SocketAddr) -> io::Result<(SocketId, SocketAddr)> {
        let mut config = SocketConfig::default();
        config.reuse_port = true;
        config.report_unreachable = true;
        self.bind_with(&config, address, &self.workers)
    }

    fn bind_with(
        &self,
        config: &SocketConfig,
        address: SocketAddr,
        members: &[Worker],
    ) -> io::Result<(SocketId, SocketAddr)> {
        let id = self.fresh_socket_id();
        let sockets = config.bind_group(id, address, members.len())?;
        let first = sockets.first().ok_or(io::ErrorKind::AddrNotAvailable)?;
        let bound = first.local_addr();
        share_port(&**first)?;
        if members.len() > 1 {
            self.steer(&**first);
        }
        for (worker, socket) in members.iter().zip(sockets) {
            worker.shard.replace_socket(socket);
        }
        Ok((id, bound))
    }

    /// Whether a connection of any worker uses one of these sockets.
    pub(crate) fn uses(&self, socket: SocketId) -> bool {
        self.workers.iter().any(|worker| worker.peek(|cx, _| cx.endpoint().uses_socket(socket)))
    }

    /// How many datagrams were dropped at these sockets, together.
    pub(crate) fn discarded_at(&self, socket: SocketId) -> u64 {
        let of_each =
            self.workers.iter().map(|worker| worker.peek(|cx, _| cx.endpoint().discarded_at(socket)));
        of_each.fold(0, u64::saturating_add)
    }

    /// Closes those sockets as soon as no connection uses them any more.
    pub(crate) fn unbind(&self, socket: SocketId) {
        self.workers.iter().for_each(|worker| worker.shard.retire_socket(socket));
    }

    /// Whether a worker has one of these sockets.
    pub(crate) fn has_socket(&self, socket: SocketId) -> bool {
        self.workers.iter().any(|worker| worker.shard.has_socket(socket))
    }

    /// Sockets that are to be closed are to stay; those workers that have theirs no more get another one, in a partition as in
    /// [`Pool::bind`]. Returns whether there was one left at all: if not, nothing has changed.
    ///
    /// # Errors
    /// If the address cannot be had by all. Then they are to be closed as before.
    pub(crate) fn keep(
        &self,
        socket: SocketId,
        bound: SocketAddr,
        partition: Option<u16>,
    ) -> io::Result<bool> {
        let (kept, without): (Vec<&Worker>, Vec<&Worker>) =
            self.members(partition).iter().partition(|worker| worker.shard.keep_socket(socket));
        if kept.is_empty() {
            return Ok(false);
        }
        let mut config = SocketConfig::default();
        config.reuse_port = true;
        for worker in without {
            // The kernel's order of them is another one now: workers hand datagrams to one another.
            match config.bind(socket, bound) {
                Ok(made) => worker.shard.replace_socket(made),
                Err(error) => {
                    // Nobody listens at those that are there: they are to be closed as before.
                    self.unbind(socket);
                    return Err(error);
                }
            }
        }
        Ok(true)
    }

    /// Has the kernel give each datagram to the worker of its connection.
    fn steer(&self, socket: &dyn Datapath) {
        let key = CidCodec::new(self.secrets.cid_key(), CidCodec::MIN_LEN, 0, 0).steering_key();
        if let Some(socket) = socket.socket() {
            // Without, they are steered by address, and workers hand them to one another.
            let _ = godwit_datapath::steering::attach(socket, key, self.workers.len());
        }
    }
}

impl Worker {
    /// Makes this thread the worker's own for as long as `act` takes.
    pub(super) fn as_current<R>(&self, act: impl FnOnce() -> R) -> R {
        let mut inside = INSIDE.get();
        if let Some(bits) = inside.get_mut(usize::from(self.number >> 6)) {
            *bits |= self.bit();
        }
        let before = (CURRENT.replace(Some(self.number)), INSIDE.replace(inside));
        let result = act();
        CURRENT.set(before.0);
        INSIDE.set(before.1);
        result
    }

    const fn bit(&self) -> u64 {
        1 << (self.number & 63)
    }

    /// Its number.
    pub(crate) const fn number(&self) -> u8 {
        self.number
    }

    /// Whether this thread is the worker's own: further up, a turn of the worker's is under way.
    pub(crate) fn is_current(&self) -> bool {
        INSIDE.get().get(usize::from(self.number >> 6)).is_some_and(|bits| bits & self.bit() != 0)
    }

    /// Whether this thread may wait for what the worker does: it is no worker's, and not the one to poll it.
    pub(crate) fn can_be_waited_for(&self) -> bool {
        CURRENT.get().is_none() && self.polled.get().is_none()
    }

    /// Calls `visit` with the worker's inside. On the worker's own thread, the turn that it is in sees to what follows.
    pub(crate) fn visit<R>(&self, visit: impl FnOnce(&mut ShardCx<'_>, &mut State) -> R) -> R {
        self.visit_as(self.is_current(), visit)
    }

    /// As [`Worker::visit`], for who knows whether this thread is the worker's own.
    pub(crate) fn visit_as<R>(
        &self,
        is_current: bool,
        visit: impl FnOnce(&mut ShardCx<'_>, &mut State) -> R,
    ) -> R {
        if is_current { self.visit_inside(visit) } else { self.shard.with(visit) }
    }

    /// As [`Worker::visit`], on the worker's own thread.
    pub(crate) fn visit_inside<R>(&self, visit: impl FnOnce(&mut ShardCx<'_>, &mut State) -> R) -> R {
        self.shard.with_if(|cx, state| (visit(cx, state), false))
    }

    /// The socket from which connections of this worker to `remote` leave that do not care from where.
    ///
    /// # Errors
    /// If there is none that reaches it.
    pub(crate) fn common_socket(&self, pool: &Pool, remote: SocketAddr) -> io::Result<SocketId> {
        self.sockets.find(remote, |address| self.bind(pool, address))
    }

    /// As [`Worker::visit`], for looking only.
    pub(crate) fn peek<R>(&self, look: impl FnOnce(&ShardCx<'_>, &State) -> R) -> R {
        self.shard.peek(look)
    }

    /// Gives this worker a socket on `address` of its own, and says which it has become.
    ///
    /// # Errors
    /// If the address cannot be had.
    pub(crate) fn bind(&self, pool: &Pool, address: SocketAddr) -> io::Result<(SocketId, SocketAddr)> {
        let mut config = SocketConfig::default();
        config.report_unreachable = true;
        let socket = config.bind(pool.fresh_socket_id(), address)?;
        let bound = (socket.id(), socket.local_addr());
        self.shard.replace_socket(socket);
        Ok(bound)
    }

    /// What each of its sockets has done so far.
    pub(crate) fn socket_counters(&self) -> Vec<godwit_datapath::Counters> {
        self.shard.counters()
    }

    /// Gives back what it has inside, for it works no more.
    pub(super) fn empty(&self) {
        let secrets = self.peek(|cx, _| Arc::clone(cx.endpoint().secrets()));
        let nobodys = Endpoint::new(EndpointConfig::new(secrets), None, Box::new(OsRng::new()));
        let inside = self.shard.with_if(|cx, state| {
            let endpoint = std::mem::replace(cx.endpoint_mut(), nobodys);
            ((endpoint, std::mem::replace(state, State::new(self.number))), false)
        });
        // What ends with it may look here.
        drop(inside);
    }

    /// Ends all connections.
    pub(super) fn end_all_connections(&self) {
        self.sockets.forget();
        self.shard.close(0, b"");
    }

    /// Closes a socket as soon as no connection uses it any more.
    pub(crate) fn unbind(&self, socket: SocketId) {
        self.shard.retire_socket(socket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use godwit_engine::PolledDriver;
    use std::net::Ipv4Addr;

    #[test]
    fn sockets_that_cannot_be_kept_by_all_are_closed_by_all() {
        let pool = Pool::new(2);
        let [first, second] = pool.workers() else { panic!("two workers") };
        let (socket, bound) = pool.bind((Ipv4Addr::LOCALHOST, 0).into(), false, None).unwrap();
        pool.unbind(socket);
        PolledDriver::new(&second.shard).unwrap().poll(&mut || false).unwrap();
        assert_eq!([first, second].map(|worker| worker.shard.has_socket(socket)), [true, false]);
        // Nobody has an address that is for documentation.
        let foreign = SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), bound.port()));
        assert!(pool.keep(socket, foreign, None).is_err());
        PolledDriver::new(&first.shard).unwrap().poll(&mut || false).unwrap();
        assert!(!pool.has_socket(socket));
    }
}
