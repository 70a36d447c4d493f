//! The way out: datagrams of the endpoint's own first, then each connection that has something to send,
//! in the order in which they asked.

use super::slot::ConnectionSlot;
use super::{ConnKey, Endpoint, Queues};
use crate::connection::boundary::Transmitted;
use crate::path::PathKey;
use crate::unprotected::{NotProtected, UnprotectedRuns};
use godwit_base::CappedQueue;
use godwit_base::{Ecn, SendBatch, SendMeta, SocketId, Time};
use std::io;
use std::net::SocketAddr;

/// Who wrote a batch, and when its runs leave ([`Endpoint::swap_writers`]).
#[derive(Debug, Default)]
pub struct BatchWriters {
    connections: Vec<(ConnKey, usize)>,
    at: Time,
    departures: Vec<Option<Time>>,
}

/// Datagrams of the endpoint's own: Version Negotiation, Retry, closes, stateless resets. None is worth
/// more than the memory it takes, so that what does not fit is dropped.
#[derive(Debug)]
pub(super) struct Outbox {
    queue: CappedQueue<(SendMeta, Vec<u8>)>,
    /// How many of them were Retry packets.
    retries: u64,
}

impl Outbox {
    const CAP: usize = 256;

    pub(super) const fn new() -> Self {
        Outbox { queue: CappedQueue::new(Self::CAP), retries: 0 }
    }

    /// How many Retry packets there were.
    pub(super) const fn retries(&self) -> u64 {
        self.retries
    }

    /// Sends a Retry packet back to where something came from.
    pub(super) fn push_retry(&mut self, path: &PathKey, datagram: Option<Vec<u8>>) {
        self.retries = self.retries.saturating_add(1);
        self.push(path, datagram);
    }

    /// Sends `datagram` back to where something came from.
    pub(super) fn push(&mut self, path: &PathKey, datagram: Option<Vec<u8>>) {
        let Some(datagram) = datagram else { return };
        let PathKey { socket, local, remote } = *path;
        let meta = SendMeta { socket, local, remote, ecn: Ecn::NotEct, dscp: 0, release: None };
        // Dropped when full: whoever waits for it will ask again.
        let _ = self.queue.push((meta, datagram));
    }

    pub(super) fn is_full(&self) -> bool {
        self.queue.is_full()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Moves datagrams to `batch`. True if all went.
    fn transmit(&mut self, batch: &mut SendBatch) -> bool {
        while let Some((meta, datagram)) = self.queue.front() {
            let len = datagram.len();
            let Some(room) = batch.reserve(len).and_then(|room| room.get_mut(..len)) else { return false };
            room.copy_from_slice(datagram);
            batch.commit(len, len, *meta);
            self.queue.pop();
        }
        true
    }
}

impl Endpoint {
    /// Fills `batch` with what is to be sent now. Every connection that has something gets one turn.
    /// True if there is more: send the batch, clear it and call again.
    pub fn transmit(&mut self, now: Time, batch: &mut SendBatch) -> bool {
        self.fill(now, batch, None)
    }

    /// As [`Endpoint::transmit`], but large runs of connections are left unprotected: those are in `runs`, which is to be
    /// empty before. They have to be protected ([`UnprotectedRuns::protect`]) before the batch is sent.
    pub fn transmit_unprotected(
        &mut self,
        now: Time,
        batch: &mut SendBatch,
        runs: &mut UnprotectedRuns,
    ) -> bool {
        self.fill(now, batch, Some(runs))
    }

    fn fill(&mut self, now: Time, batch: &mut SendBatch, mut apart: Option<&mut UnprotectedRuns>) -> bool {
        self.begin_batch(now);
        self.queues.first_flights.clear();
        if !self.outbox.transmit(batch) {
            return true;
        }
        let own = batch.run_count();
        for _ in 0..self.queues.ready.len() {
            let Some(key) = self.queues.ready.pop_front() else { break };
            let before = batch.run_count();
            if self.transmit_connection(now, key, batch, apart.as_deref_mut()) == Transmitted::More {
                if batch.reserve(SMALLEST_ROOM).is_none() {
                    // The next batch begins where this one ended, but for who had all of it: others wait for their share.
                    if before == own {
                        self.queues.ready.push_back(key);
                    } else {
                        self.queues.ready.push_front(key);
                    }
                    return true;
                }
                self.queues.ready.push_back(key);
            }
        }
        !self.queues.ready.is_empty()
    }

    /// True if [`Endpoint::transmit`] may have something to write.
    pub fn has_ready(&self) -> bool {
        !self.queues.ready.is_empty()
    }

    /// True if [`Endpoint::transmit_first_flights`] has something to write.
    #[inline]
    pub const fn has_first_flights(&self) -> bool {
        !self.queues.first_flights.is_empty()
    }

    /// Fills `batch` as [`Endpoint::transmit`] does, but only with what connections say that were accepted since, or begun
    /// without 0-RTT. Their cryptography has taken long: who sends this after each of them gives the peers
    /// something to do while the next one is begun. All else waits for its turn.
    pub fn transmit_first_flights(&mut self, now: Time, batch: &mut SendBatch) {
        self.begin_batch(now);
        let mut keys = std::mem::take(&mut self.queues.first_flights);
        for key in keys.drain(..) {
            // It stays among those that are ready, for what it may have left: none is there twice.
            if self.transmit_connection(now, key, batch, None) == Transmitted::Idle
                && self.queues.ready.back() == Some(&key)
            {
                self.queues.ready.pop_back();
            } else if let Some(slot) = self.slots.get_mut(key.0) {
                slot.ready = true;
            }
        }
        // The same allocation serves the next ones.
        self.queues.first_flights = keys;
    }

    fn begin_batch(&mut self, now: Time) {
        self.queues.in_batch.clear();
        if let Some(departures) = &mut self.queues.departures {
            departures.clear();
        }
        self.queues.batch_at = now;
    }

    /// Says whether whoever sends the batches keeps the times that go with their runs ([`SendMeta::release`]). Then what
    /// connections may send soon is in a batch early, so that they need not be called for every few packets, and are
    /// paced exactly although they are called late. Runs on one path have to leave in order. At first false: every run
    /// is to leave at once.
    pub fn set_departure_times(&mut self, kept: bool) {
        if kept {
            self.queues.departures.get_or_insert_default();
        } else if self.queues.departures.take().is_some() {
            for (_, slot) in self.slots.iter_mut() {
                slot.connection.machine.leave_at_once();
            }
        }
    }

    /// The local system refused to send a datagram of `size` bytes, from the batch that [`Endpoint::transmit`] filled
    /// last, to `remote`; `max` is the largest UDP payload that it does send there, if it tells. Whose search for the
    /// path MTU went too far learns of it without waiting for a loss.
    pub fn on_datagram_refused(&mut self, now: Time, remote: SocketAddr, size: usize, max: Option<usize>) {
        let keys = std::mem::take(&mut self.queues.in_batch);
        for (key, _) in &keys {
            if let Some(slot) = self.slots.get_mut(key.0)
                && slot.connection.machine.on_datagram_refused(now, remote, size, max)
            {
                self.touch(*key);
            }
        }
        self.queues.in_batch = keys;
    }

    /// The local system did not send `datagrams` of the run with this number in the batch that [`Endpoint::transmit`]
    /// filled last. Unless it was for want of room (`congested`), their loss tells nothing of the network.
    pub fn on_run_refused(&mut self, run: usize, datagrams: usize, congested: bool) {
        // By that time loss recovery knows its packets.
        let departure = self.queues.departures.as_ref().and_then(|departures| *departures.get(run)?);
        let sent_at = departure.unwrap_or(self.queues.batch_at);
        if let Some(slot) = self.writer_of(run).and_then(|key| self.slots.get_mut(key.0)) {
            slot.connection.machine.on_refused(sent_at, datagrams, congested);
        }
    }

    /// Who wrote the run with this number into the batch filled last.
    fn writer_of(&self, run: usize) -> Option<ConnKey> {
        // Each connection's runs are next to each other.
        self.queues.in_batch.iter().rfind(|(_, first)| *first <= run).map(|(key, _)| *key)
    }

    /// A run of the batch filled last could not be protected: its connection is closed. The batch must not be sent.
    pub fn on_not_protected(&mut self, now: Time, NotProtected { run }: NotProtected) {
        let Some(key) = self.writer_of(run) else { return };
        if let Some(slot) = self.slots.get_mut(key.0) {
            slot.connection.machine.on_not_protected(now);
            self.touch(key);
        }
    }

    /// Exchanges what is known of who wrote the batch filled last. Who fills several batches before the first is sent keeps
    /// this with each, and puts it back while that one is sent: refusals are then told to those whom they concern.
    pub fn swap_writers(&mut self, writers: &mut BatchWriters) {
        let Queues { in_batch, batch_at, departures, .. } = &mut self.queues;
        std::mem::swap(in_batch, &mut writers.connections);
        std::mem::swap(batch_at, &mut writers.at);
        match departures {
            Some(departures) => std::mem::swap(departures, &mut writers.departures),
            None => writers.departures.clear(),
        }
    }

    /// The network says that packets sent from `socket` to `remote` do not arrive (ICMP), and quotes how one of them
    /// began, which may be nothing. The attempts to connect that may have sent it take note of it; that is all, for
    /// anybody can say so (RFC 9000 section 21.1.1.1).
    pub fn on_unreachable(
        &mut self,
        socket: SocketId,
        remote: SocketAddr,
        quote: &[u8],
        kind: io::ErrorKind,
    ) {
        let concerned = |slot: &&mut ConnectionSlot| {
            let key = slot.connection.machine.path_key();
            (key.socket, key.remote) == (socket, remote)
                && quoted_dcid(quote).is_none_or(|dcid| slot.connection.machine.calls_peer(dcid))
        };
        // Not all connections are looked at: it would be too much work for what anybody can say.
        let attempts = std::mem::take(&mut self.queues.attempts);
        for key in &attempts {
            if let Some(slot) = self.slots.get_mut(key.0).filter(concerned)
                && slot.connection.machine.on_unreachable(kind)
            {
                self.settle(*key);
            }
        }
        self.queues.attempts = attempts;
    }

    fn transmit_connection(
        &mut self,
        now: Time,
        key: ConnKey,
        batch: &mut SendBatch,
        apart: Option<&mut UnprotectedRuns>,
    ) -> Transmitted {
        let Some(slot) = self.slots.get_mut(key.0) else { return Transmitted::Idle };
        let first_run = batch.run_count();
        let machine = &mut slot.connection.machine;
        if self.queues.departures.is_some() {
            machine.look_ahead(now);
        }
        let memory = &mut self.queues.writing;
        let transmitted = machine.transmit_apart(now, batch, &mut *self.rng, apart, memory);
        if let Some(departures) = &mut self.queues.departures {
            departures.resize(first_run, None);
            departures.extend(batch.runs().skip(first_run).map(|(run, _)| run.meta.release));
        }
        slot.ready = transmitted == Transmitted::More;
        if self.queues.in_batch.last().is_none_or(|(last, _)| *last != key) {
            self.queues.in_batch.push((key, first_run));
        }
        self.settle(key);
        transmitted
    }
}

/// A batch with less room than this counts as full, in bytes.
const SMALLEST_ROOM: usize = 1500;

/// The destination connection id of a long header (RFC 9000 section 17.2), if there is all of it: handshakes have no
/// other.
fn quoted_dcid(quote: &[u8]) -> Option<&[u8]> {
    let (&[first, _, _, _, _, len], rest) = quote.split_first_chunk()?;
    if first & 0x80 == 0 { None } else { rest.get(..usize::from(len)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_id_is_that_of_a_long_header_of_which_there_is_enough() {
        let quote = |first: u8, len: u8| [&[first, 0, 0, 0, 1, len][..], &[1, 2, 3, 4]].concat();
        for first in [0x80, 0xc0, 0xff] {
            assert_eq!(quoted_dcid(&quote(first, 3)), Some(&[1, 2, 3][..]), "{first:#x}");
        }
        assert_eq!(quoted_dcid(&quote(0xc0, 0)), Some(&[][..]));
        assert_eq!(quoted_dcid(&quote(0xc0, 4)), Some(&[1, 2, 3, 4][..]));
        assert_eq!(quoted_dcid(&quote(0xc0, 5)), None, "a part of it is missing");
        for first in [0, 0x40, 0x7f] {
            assert_eq!(quoted_dcid(&quote(first, 3)), None, "{first:#x}: a short header does not say");
        }
        assert_eq!(quoted_dcid(&[0xc0, 0, 0, 0, 1]), None);
    }
}
