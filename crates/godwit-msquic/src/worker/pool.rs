//! The workers there are, and what each has: its shard, and the sockets in it.

use super::state::State;
use godwit_base::SocketId;
use godwit_datapath::{Datapath, DatapathFactory, SocketConfig, share_port};
use godwit_engine::{OsRng, Shard, ShardCx, ShardGroup, ShardHandle, ThreadDriver};
use godwit_transport::tls::secrets::ServerSecrets;
use godwit_transport::{CidCodec, Endpoint, EndpointConfig, MemoryLimit, UsedTokens, WindowReserve};
use std::cell::Cell;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// One of the threads.
pub(crate) struct Worker {
    number: u8,
    shard: ShardHandle<State>,
    /// Where connections leave that do not care from where, over IPv4 and IPv6.
    sockets: Mutex<Option<SharedSockets>>,
}

/// Sockets that many connections of clients share. With a dual-stack socket, both are the same.
#[derive(Debug, Clone, Copy)]
struct SharedSockets {
    ipv4: Option<SocketId>,
    ipv6: Option<SocketId>,
}

/// All workers.
pub(crate) struct Pool {
    workers: Box<[Worker]>,
    /// Which of them is next to have a connection.
    next: AtomicUsize,
    /// The number of the next socket: a listener's has the same at every worker.
    next_socket: AtomicU32,
    secrets: Arc<ServerSecrets>,
}

pub(super) static POOL: OnceLock<Pool> = OnceLock::new();
/// So many handshakes may be under way at a worker before clients have to prove their addresses, as everywhere in Godwit.
const HANDSHAKES_BEFORE_RETRY: usize = 512;

/// Every client has to prove its address.
static RETRIES_ALWAYS: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The worker whose thread this is.
    static CURRENT: Cell<Option<u8>> = const { Cell::new(None) };
}

/// The workers, if they have been started.
pub(crate) fn pool() -> Option<&'static Pool> {
    POOL.get()
}

/// Whether a socket has been asked for: from then on some things cannot be set.
pub(crate) fn is_in_use() -> bool {
    pool().is_some_and(|pool| pool.next_socket.load(Ordering::Relaxed) > 0)
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
    pub(super) fn new() -> io::Result<(Self, Vec<ThreadDriver<State>>)> {
        let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(255);
        let secrets = Arc::new(ServerSecrets::from_rng(&mut OsRng::new()));
        let group = ShardGroup::new(count, 0);
        let (reserve, memory, tokens) = (WindowReserve::default(), MemoryLimit::default(), UsedTokens::new());
        let (mut workers, mut drivers) = (Vec::new(), Vec::new());
        for number in (0_u8..).take(count) {
            let mut config = EndpointConfig::new(Arc::clone(&secrets));
            config.shard = number;
            config.handshakes_before_retry = handshakes_before_retry();
            config.window_reserve = reserve.clone();
            config.memory_limit = memory.clone();
            config.used_tokens = tokens.clone();
            config.accepts_each = true;
            let endpoint = Endpoint::new(config, None, Box::new(OsRng::new()));
            let shard = Shard::new(endpoint, Vec::new(), State::new(number)).in_group(group.clone());
            let shard = ShardHandle::new(shard);
            shard.join_group(&group, number.into());
            drivers.push(ThreadDriver::new(&shard)?);
            workers.push(Worker { number, shard, sockets: Mutex::new(None) });
        }
        let pool = Pool {
            workers: workers.into(),
            next: AtomicUsize::new(0),
            next_socket: AtomicU32::new(0),
            secrets,
        };
        Ok((pool, drivers))
    }

    /// A worker by its number.
    pub(crate) fn worker(&self, number: u8) -> Option<&Worker> {
        self.workers.get(usize::from(number))
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

    fn fresh_socket_id(&self) -> SocketId {
        SocketId(self.next_socket.fetch_add(1, Ordering::Relaxed))
    }

    /// Gives every worker a socket on `address`, all with the same number, and says which address it has become. `beside`:
    /// this process has sockets with the same port already, at other addresses.
    ///
    /// # Errors
    /// If the address cannot be had.
    pub(crate) fn bind(&self, address: SocketAddr, beside: bool) -> io::Result<(SocketId, SocketAddr)> {
        let id = self.fresh_socket_id();
        let mut config = SocketConfig::default();
        config.reuse_port = beside;
        let sockets = config.bind_group(id, address, self.workers.len())?;
        let first = sockets.first().ok_or(io::ErrorKind::AddrNotAvailable)?;
        let bound = first.local_addr();
        share_port(&**first)?;
        self.steer(&**first);
        for (worker, socket) in self.workers.iter().zip(sockets) {
            worker.shard.replace_socket(socket);
        }
        Ok((id, bound))
    }

    /// Closes those sockets as soon as no connection uses them any more.
    pub(crate) fn unbind(&self, socket: SocketId) {
        self.workers.iter().for_each(|worker| worker.shard.retire_socket(socket));
    }

    /// Whether a worker has a socket with this number.
    pub(crate) fn has_socket(&self, socket: SocketId) -> bool {
        self.workers.iter().any(|worker| worker.shard.has_socket(socket))
    }

    /// Sockets that are to be closed are to stay; those workers that have theirs no more get another one. Returns whether
    /// there was one left at all: if not, nothing has changed.
    ///
    /// # Errors
    /// If the address cannot be had by all.
    pub(crate) fn keep(&self, socket: SocketId, bound: SocketAddr) -> io::Result<bool> {
        let (kept, without): (Vec<&Worker>, Vec<&Worker>) =
            self.workers.iter().partition(|worker| worker.shard.keep_socket(socket));
        if kept.is_empty() {
            return Ok(false);
        }
        let mut config = SocketConfig::default();
        config.reuse_port = true;
        for worker in without {
            // The kernel's order of them is another one now: workers hand datagrams to one another.
            worker.shard.replace_socket(config.bind(socket, bound)?);
        }
        Ok(true)
    }

    /// Has the kernel give each datagram to the worker of its connection.
    fn steer(&self, socket: &dyn Datapath) {
        let key = CidCodec::new(self.secrets.cid_key(), CidCodec::MIN_LEN, 0, 0).steering_key();
        if self.workers.len() > 1
            && let Some(socket) = socket.socket()
        {
            // Without, they are steered by address, and workers hand them to one another.
            let _ = godwit_datapath::steering::attach(socket, key, self.workers.len());
        }
    }
}

impl Worker {
    /// Its number.
    pub(crate) const fn number(&self) -> u8 {
        self.number
    }

    /// Makes this thread the worker's own.
    pub(super) fn take_thread(&self) {
        CURRENT.set(Some(self.number));
    }

    /// Whether this thread is the worker's own.
    pub(crate) fn is_current(&self) -> bool {
        CURRENT.get() == Some(self.number)
    }

    /// Calls `visit` with the worker's inside. On the worker's own thread, the turn that it is in sees to what follows.
    pub(crate) fn visit<R>(&self, visit: impl FnOnce(&mut ShardCx<'_>, &mut State) -> R) -> R {
        if self.is_current() {
            self.shard.with_if(|cx, state| (visit(cx, state), false))
        } else {
            self.shard.with(visit)
        }
    }

    /// As [`Worker::visit`], for looking only.
    pub(crate) fn peek<R>(&self, look: impl FnOnce(&ShardCx<'_>, &State) -> R) -> R {
        self.shard.peek(look)
    }

    /// The socket that connections to `remote` share.
    ///
    /// # Errors
    /// If there is none that reaches it.
    pub(crate) fn shared_socket(&self, pool: &Pool, remote: SocketAddr) -> io::Result<SocketId> {
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = match *sockets {
            Some(shared) => shared,
            None => *sockets.insert(self.bind_shared(pool)?),
        };
        let socket = if remote.is_ipv4() { shared.ipv4 } else { shared.ipv6 };
        socket.ok_or_else(|| io::ErrorKind::NetworkUnreachable.into())
    }

    fn bind_shared(&self, pool: &Pool) -> io::Result<SharedSockets> {
        let dual = self.bind(pool, (Ipv6Addr::UNSPECIFIED, 0).into(), false);
        if let Ok((socket, _)) = dual {
            return Ok(SharedSockets { ipv4: Some(socket), ipv6: Some(socket) });
        }
        let (socket, _) = self.bind(pool, (Ipv4Addr::UNSPECIFIED, 0).into(), false)?;
        Ok(SharedSockets { ipv4: Some(socket), ipv6: None })
    }

    /// Gives this worker a socket on `address`, and says which it has become. `reuse` permits other sockets there.
    ///
    /// # Errors
    /// If the address cannot be had.
    pub(crate) fn bind(
        &self,
        pool: &Pool,
        address: SocketAddr,
        reuse: bool,
    ) -> io::Result<(SocketId, SocketAddr)> {
        let mut config = SocketConfig::default();
        config.reuse_port = reuse;
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

    /// The socket of this worker with this address, if there is one, from which `remote` can be reached.
    pub(crate) fn socket_at(&self, local: SocketAddr, remote: SocketAddr) -> Option<SocketId> {
        self.peek(|cx, _| cx.socket_at(local, remote)).map(|(socket, _)| socket)
    }

    /// Closes a socket as soon as no connection uses it any more.
    pub(crate) fn unbind(&self, socket: SocketId) {
        self.shard.retire_socket(socket);
    }
}
