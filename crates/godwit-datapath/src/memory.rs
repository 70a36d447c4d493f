//! Datagrams in memory: a network without sockets, for tests.
//!
//! A [`Hub`] connects any number of [`MemorySocket`]s by address. Delivery is immediate, in order and
//! bounded: a full receiver blocks its senders, as a socket's buffer would, and a datagram to an address
//! that nobody has is lost.

use crate::{Capabilities, Counters, Datapath, Progress, Received, Sent};
use godwit_base::{Ecn, RecvBatch, RecvMeta, SendBatch, SendMeta, SocketId};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// Connects memory sockets.
#[derive(Debug, Clone)]
pub struct Hub {
    queues: Arc<Mutex<BTreeMap<SocketAddr, Queue>>>,
    capacity: usize,
}

/// What a socket has not received yet, and who waits for it.
#[derive(Debug, Default)]
struct Queue {
    runs: VecDeque<QueuedRun>,
    waker: Option<Waker>,
}

#[derive(Debug)]
struct QueuedRun {
    from: SocketAddr,
    ecn: Ecn,
    segment: usize,
    bytes: Box<[u8]>,
}

impl Hub {
    /// A hub whose sockets each hold at most `capacity` runs not yet received.
    pub fn new(capacity: usize) -> Self {
        Hub { queues: Arc::default(), capacity: capacity.max(1) }
    }

    /// Two sockets connected by a hub of their own.
    pub fn pair(capacity: usize, a: SocketAddr, b: SocketAddr) -> (MemorySocket, MemorySocket) {
        let hub = Hub::new(capacity);
        (hub.socket(SocketId(0), a), hub.socket(SocketId(0), b))
    }

    /// A socket with the address `addr`. One that had it before receives nothing more.
    pub fn socket(&self, id: SocketId, addr: SocketAddr) -> MemorySocket {
        self.lock().insert(addr, Queue::default());
        MemorySocket { hub: self.clone(), id, addr, counters: Counters::default() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, Queue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of a [`Hub`]'s sockets.
#[derive(Debug)]
pub struct MemorySocket {
    hub: Hub,
    id: SocketId,
    addr: SocketAddr,
    counters: Counters,
}

impl MemorySocket {
    fn from(&self, meta: &SendMeta) -> SocketAddr {
        SocketAddr::new(meta.local.unwrap_or(self.addr.ip()), self.addr.port())
    }
}

impl Drop for MemorySocket {
    fn drop(&mut self) {
        self.hub.lock().remove(&self.addr);
    }
}

impl Datapath for MemorySocket {
    fn receive(&mut self, batch: &mut RecvBatch) -> io::Result<Received> {
        let mut queues = self.hub.lock();
        let Some(queue) = queues.get_mut(&self.addr) else { return Ok(Received::default()) };
        let mut runs = 0;
        while let Some(slot) = batch.free_slots().first_mut() {
            let Some(run) = queue.runs.pop_front() else { return Ok(Received { runs, more: false }) };
            let Some(place) = slot.get_mut(..run.bytes.len()) else {
                self.counters.truncated += 1;
                continue;
            };
            place.copy_from_slice(&run.bytes);
            let (len, stride) = (run.bytes.len(), run.segment.min(run.bytes.len()));
            let local = Some(self.addr.ip());
            batch.push(RecvMeta { socket: self.id, local, remote: run.from, ecn: run.ecn, len, stride });
            self.counters.runs_received += 1;
            self.counters.datagrams_received += len.div_ceil(stride) as u64;
            runs += 1;
        }
        Ok(Received { runs, more: !queue.runs.is_empty() })
    }

    fn send(&mut self, batch: &SendBatch, progress: &mut Progress) -> io::Result<Sent> {
        let mut queues = self.hub.lock();
        for piece in crate::pieces(batch, *progress, self.id, |_| SendBatch::MAX_SEGMENTS) {
            if let Some(queue) = queues.get_mut(&piece.meta.remote) {
                if queue.runs.len() >= self.hub.capacity {
                    self.counters.send_blocked += 1;
                    return Ok(Sent::Blocked);
                }
                let from = self.from(&piece.meta);
                let bytes = piece.payload.into();
                queue.runs.push_back(QueuedRun { from, ecn: piece.meta.ecn, segment: piece.segment, bytes });
                queue.waker.take().into_iter().for_each(Waker::wake);
            }
            self.counters.datagrams_sent += piece.datagrams() as u64;
            progress.advance(&piece);
        }
        Ok(Sent::Done)
    }

    fn id(&self) -> SocketId {
        self.id
    }

    fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "memory",
            gso_segments: SendBatch::MAX_SEGMENTS,
            gro: true,
            ecn: true,
            packet_info: true,
            may_fragment: false,
            departure_times: false,
            recv_buffer: 0,
            send_buffer: 0,
        }
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn socket(&self) -> Option<&UdpSocket> {
        None
    }

    fn wake_on_arrival(&self, waker: &Waker) {
        if let Some(queue) = self.hub.lock().get_mut(&self.addr) {
            match queue.runs.is_empty() {
                true => queue.waker = Some(waker.clone()),
                false => waker.wake_by_ref(),
            }
        }
    }
}
