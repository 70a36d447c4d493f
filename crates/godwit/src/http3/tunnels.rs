//! Who waits for what of extended CONNECT exchanges: datagrams, and streams of WebTransport sessions.
//!
//! Whoever waits is woken, and looks again, when something of the kind happens, and when the exchange is over.

use godwit_http3::RequestMap;
use godwit_wire::{Direction, StreamId};
use std::task::Waker;

/// Tasks that wait for the same, each once.
#[derive(Debug, Default)]
pub(super) struct Waiting(Vec<Waker>);

impl Waiting {
    /// Puts a task among them.
    pub(super) fn wait(&mut self, waker: &Waker) {
        if !self.0.iter().any(|known| known.will_wake(waker)) {
            self.0.push(waker.clone());
        }
    }

    /// All of them, to be woken.
    pub(super) fn take(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.0)
    }
}

/// Those who wait, by the request of the exchange: only as long as somebody does.
#[derive(Debug, Default)]
pub(super) struct Tunnels {
    waiting: RequestMap<Tunnel>,
    /// Those who wait for the peer to permit another stream, in whatever session.
    openers: [Waiting; 2],
}

#[derive(Debug, Default)]
struct Tunnel {
    readers: Waiting,
    acceptors: [Waiting; 2],
}

impl Tunnels {
    /// Waits for a datagram.
    pub(super) fn wait_for_datagrams(&mut self, id: StreamId, waker: &Waker) {
        if let Some(tunnel) = self.tunnel(id) {
            tunnel.readers.wait(waker);
        }
    }

    /// Waits for a stream of the peer's.
    pub(super) fn wait_for_stream(&mut self, id: StreamId, direction: Direction, waker: &Waker) {
        if let Some(waiting) = self.tunnel(id).and_then(|tunnel| tunnel.acceptors.get_mut(place(direction))) {
            waiting.wait(waker);
        }
    }

    /// Waits until a stream may be opened.
    pub(super) fn wait_to_open(&mut self, direction: Direction, waker: &Waker) {
        if let Some(waiting) = self.openers.get_mut(place(direction)) {
            waiting.wait(waker);
        }
    }

    /// Datagrams have come: whom to wake.
    pub(super) fn on_datagrams(&mut self, id: StreamId) -> Vec<Waker> {
        self.waiting.get_mut(id).map_or_else(Vec::new, |tunnel| tunnel.readers.take())
    }

    /// A stream has come.
    pub(super) fn on_stream(&mut self, id: StreamId, direction: Direction) -> Vec<Waker> {
        let tunnel = self.waiting.get_mut(id);
        let waiting = tunnel.and_then(|tunnel| tunnel.acceptors.get_mut(place(direction)));
        waiting.map_or_else(Vec::new, Waiting::take)
    }

    /// Streams may be opened.
    pub(super) fn on_streams_available(&mut self, direction: Direction) -> Vec<Waker> {
        self.openers.get_mut(place(direction)).map_or_else(Vec::new, Waiting::take)
    }

    /// An exchange is over.
    pub(super) fn close(&mut self, id: StreamId) -> Vec<Waker> {
        let everyone = self.waiting.remove(id).map(|mut tunnel| tunnel.take());
        // Whoever waits to open a stream may do so in this session.
        let openers = self.openers.iter_mut().flat_map(Waiting::take);
        everyone.unwrap_or_default().into_iter().chain(openers).collect()
    }

    /// All are.
    pub(super) fn everyone(&mut self) -> Vec<Waker> {
        let mut all: Vec<_> = self.waiting.values_mut().flat_map(Tunnel::take).collect();
        self.waiting.clear();
        all.extend(self.openers.iter_mut().flat_map(Waiting::take));
        all
    }

    fn tunnel(&mut self, id: StreamId) -> Option<&mut Tunnel> {
        if !self.waiting.contains(id) {
            self.waiting.insert(id, Tunnel::default());
        }
        self.waiting.get_mut(id)
    }
}

impl Tunnel {
    fn take(&mut self) -> Vec<Waker> {
        let acceptors = self.acceptors.iter_mut().flat_map(Waiting::take);
        let mut all: Vec<_> = acceptors.collect();
        all.extend(self.readers.take());
        all
    }
}

fn place(direction: Direction) -> usize {
    usize::from(direction == Direction::Unidirectional)
}
