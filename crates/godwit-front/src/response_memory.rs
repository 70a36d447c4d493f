//! How much of responses HTTP/2 connections hold that their clients do not take.
//!
//! The HTTP/2 library keeps of each stream as much as its buffer takes, and a client may have a hundred streams on each of
//! hundreds of connections, with windows as large as it likes (RFC 9113 section 6.9), and read nothing. So all responses of a
//! connection together have [`OF_CONNECTION`], and all connections together [`OF_ALL`], of which the clients of one network
//! have a quarter ([`NetworkShares`]). It counts what bodies have handed out and the socket has not been given, whatever
//! answers.
//!
//! A response of which nothing is held has one piece all the same: streams whose client takes nothing of them for the time
//! being, as a proxy with slow clients of its own has many, do not stand in the way of others. Only where the pieces of one
//! network are as much as all connections should have together, the next of its responses wait until there are fewer.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use godwit_body::{ClientNetwork, FramePoll, NetworkShares, Share, Wrapper};
use tokio::time::Sleep;

/// Bytes for all HTTP/2 connections of the process.
const OF_ALL: usize = 64 << 20;
/// Bytes for one of them. A single stream holds less: its buffer, the piece that filled it, and one that waits.
const OF_CONNECTION: usize = 256 << 10;
/// What a piece counts for besides its bytes, as it takes memory to keep: there may be thousands of a byte each.
const OF_PIECE: usize = 256;
/// How long it is until a response of a network that has far too much looks again.
const LOOK: Duration = Duration::from_millis(500);

static ALL: LazyLock<NetworkShares> = LazyLock::new(|| NetworkShares::of(OF_ALL));

/// What the responses of one connection may hold together. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct ResponseMemory(Arc<OfConnection>);

#[derive(Debug)]
struct OfConnection {
    held: AtomicUsize,
    network: Option<ClientNetwork>,
    all: NetworkShares,
}

/// What one response holds of it. Without a memory it holds what it likes.
#[derive(Debug)]
pub(super) struct HeldResponse(Option<Held>);

#[derive(Debug)]
struct Held {
    memory: ResponseMemory,
    own: Arc<Own>,
    /// Until the network is looked at again.
    wait: Option<Pin<Box<Sleep>>>,
}

/// The pieces of one response.
#[derive(Debug, Default)]
struct Own(Mutex<Pieces>);

#[derive(Debug, Default)]
struct Pieces {
    held: usize,
    /// Who waits until there are fewer.
    waker: Option<Waker>,
}

/// A piece. Its fields are dropped in this order: who waits is woken when there is room.
struct Piece {
    bytes: Bytes,
    _charge: Charge,
    _one: OneOf,
}

/// Bytes that count for a connection.
struct Charge {
    connection: Arc<OfConnection>,
    bytes: usize,
    _share: Share,
}

/// One of a response's pieces.
struct OneOf(Arc<Own>);

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.connection.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Drop for OneOf {
    fn drop(&mut self) {
        let mut own = self.0.lock();
        own.held = own.held.saturating_sub(1);
        let waker = own.waker.take();
        drop(own);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Own {
    fn lock(&self) -> MutexGuard<'_, Pieces> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResponseMemory {
    /// Of a connection from this network; `None` is this machine.
    pub(super) fn new(network: Option<ClientNetwork>) -> ResponseMemory {
        ResponseMemory::of(network, ALL.clone())
    }

    fn of(network: Option<ClientNetwork>, all: NetworkShares) -> ResponseMemory {
        ResponseMemory(Arc::new(OfConnection { held: AtomicUsize::new(0), network, all }))
    }

    fn has_room(&self) -> bool {
        let OfConnection { held, network, all } = &*self.0;
        held.load(Ordering::Relaxed) < OF_CONNECTION && !all.is_used_up(*network)
    }

    /// Whether the network has as much as all connections should have.
    fn is_beyond_all(&self) -> bool {
        self.0.all.taken_by(self.0.network) >= self.0.all.most()
    }

    fn charge(&self, piece: usize) -> Charge {
        let bytes = piece.saturating_add(OF_PIECE);
        let connection = Arc::clone(&self.0);
        connection.held.fetch_add(bytes, Ordering::Relaxed);
        let share = connection.all.take_anyway(bytes, connection.network);
        Charge { connection, bytes, _share: share }
    }
}

impl HeldResponse {
    pub(super) fn new(memory: Option<ResponseMemory>) -> HeldResponse {
        HeldResponse(memory.map(|memory| Held { memory, own: Arc::default(), wait: None }))
    }
}

impl Held {
    /// The same bytes, which count until the last of them is dropped.
    fn counted(&self, bytes: Bytes) -> Bytes {
        if bytes.is_empty() {
            return bytes;
        }
        let mut own = self.own.lock();
        own.held = own.held.saturating_add(1);
        drop(own);
        let (charge, one) = (self.memory.charge(bytes.len()), OneOf(Arc::clone(&self.own)));
        Bytes::from_owner(Piece { bytes, _charge: charge, _one: one })
    }

    fn poll_may_ask(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut own = self.own.lock();
        if own.held > 0 {
            if self.memory.has_room() {
                return Poll::Ready(());
            }
            // Dropped behind the lock, which its drop may take.
            let before = own.waker.replace(cx.waker().clone());
            drop(own);
            drop(before);
            return Poll::Pending;
        }
        drop(own);
        while self.memory.is_beyond_all() {
            let wait = self.wait.get_or_insert_with(|| Box::pin(tokio::time::sleep(LOOK)));
            ready!(wait.as_mut().poll(cx));
            self.wait = None;
        }
        Poll::Ready(())
    }
}

impl<E> Wrapper<E> for HeldResponse {
    fn poll_may_ask(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().map_or(Poll::Ready(()), |held| held.poll_may_ask(cx))
    }

    fn on_answer(&mut self, answer: FramePoll<E>, _: &mut Context<'_>) -> FramePoll<E> {
        let Some(held) = &self.0 else { return answer };
        answer.map(|frame| frame.map(|frame| frame.map(|frame| frame.map_data(|data| held.counted(data)))))
    }
}

#[cfg(test)]
mod tests;
