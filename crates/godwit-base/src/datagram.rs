//! Datagrams in batches: what a datapath hands up, and what a transport hands down.
//!
//! A received *run* is one buffer with several datagrams of equal size back to back (what UDP GRO
//! delivers); a sent run is the same for UDP GSO. A run has one source, one destination and one ECN
//! codepoint. Everything above the datapath works on runs, so that a system call, a lookup and an
//! acknowledgement decision are paid once per run and not once per packet.

use crate::Time;
use std::net::{IpAddr, SocketAddr};

/// Which of an endpoint's sockets a datagram came from or goes out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SocketId(pub u32);

/// The ECN codepoint of an IP packet (RFC 3168 section 5): the low two bits of the TOS byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Ecn {
    /// Not ECN-capable (00).
    #[default]
    NotEct,
    /// ECN-capable, codepoint ECT(1) (01).
    Ect1,
    /// ECN-capable, codepoint ECT(0) (10).
    Ect0,
    /// Congestion experienced (11).
    Ce,
}

impl Ecn {
    /// From a TOS or traffic-class byte.
    pub const fn from_tos(tos: u8) -> Self {
        match tos & 0b11 {
            0b00 => Ecn::NotEct,
            0b01 => Ecn::Ect1,
            0b10 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// The two bits in the TOS byte.
    pub const fn bits(self) -> u8 {
        match self {
            Ecn::NotEct => 0b00,
            Ecn::Ect1 => 0b01,
            Ecn::Ect0 => 0b10,
            Ecn::Ce => 0b11,
        }
    }
}

/// Where a received run of datagrams came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecvMeta {
    /// The socket that received it.
    pub socket: SocketId,
    /// The local address it was sent to, if the datapath can tell (packet info).
    pub local: Option<IpAddr>,
    /// The sender's address.
    pub remote: SocketAddr,
    /// The ECN codepoint of every datagram in the run.
    pub ecn: Ecn,
    /// Bytes in the run.
    pub len: usize,
    /// Size of each datagram in the run but the last, which may be shorter. Never 0.
    pub stride: usize,
}

/// A batch of received runs. The buffers are reused from one receive call to the next.
#[derive(Debug)]
pub struct RecvBatch {
    slots: Vec<Box<[u8]>>,
    metas: Vec<RecvMeta>,
    /// Runs that [`RecvBatch::next_run`] has handed out.
    taken: usize,
}

impl RecvBatch {
    /// A batch of at most `slots` runs of at most `slot_size` bytes each.
    pub fn new(slots: usize, slot_size: usize) -> Self {
        RecvBatch {
            slots: (0..slots.max(1)).map(|_| vec![0; slot_size].into_boxed_slice()).collect(),
            metas: Vec::with_capacity(slots.max(1)),
            taken: 0,
        }
    }

    /// Forgets what was received.
    pub fn clear(&mut self) {
        self.metas.clear();
        self.taken = 0;
    }

    /// True if nothing has been received since [`RecvBatch::clear`].
    pub fn is_empty(&self) -> bool {
        self.metas.is_empty()
    }

    /// Number of runs received.
    pub fn len(&self) -> usize {
        self.metas.len()
    }

    /// The buffers not yet filled: the datapath receives into these and then calls [`RecvBatch::push`]
    /// once for each, in order.
    pub fn free_slots(&mut self) -> &mut [Box<[u8]>] {
        self.slots.get_mut(self.metas.len()..).unwrap_or_default()
    }

    /// Declares the first free slot filled as `meta` says. Ignored if the batch is full, if the run is
    /// empty, or if the figures do not fit the slot.
    #[inline]
    pub fn push(&mut self, meta: RecvMeta) {
        let fits = self.slots.get(self.metas.len()).is_some_and(|slot| meta.len <= slot.len());
        if fits && meta.stride > 0 && meta.len > 0 {
            self.metas.push(meta);
        }
    }

    /// Copies one datagram in (memory datapaths and tests). False if there is no room.
    pub fn push_datagram(&mut self, meta: RecvMeta, bytes: &[u8]) -> bool {
        let Some(slot) = self.free_slots().first_mut().and_then(|slot| slot.get_mut(..bytes.len())) else {
            return false;
        };
        slot.copy_from_slice(bytes);
        let before = self.metas.len();
        self.push(RecvMeta { len: bytes.len(), stride: bytes.len(), ..meta });
        self.metas.len() > before
    }

    /// The runs received, each to be decrypted in place.
    pub fn runs(&mut self) -> impl Iterator<Item = (RecvMeta, &mut [u8])> {
        self.metas
            .iter()
            .zip(&mut self.slots)
            .filter_map(|(meta, slot)| slot.get_mut(..meta.len).map(|bytes| (*meta, bytes)))
    }

    /// The next of the runs received that has not been handed out since [`RecvBatch::clear`], to be decrypted in place:
    /// for who has something else to do between them.
    #[inline]
    pub fn next_run(&mut self) -> Option<(RecvMeta, &mut [u8])> {
        let (meta, slot) = self.metas.get(self.taken).zip(self.slots.get_mut(self.taken))?;
        self.taken = self.taken.saturating_add(1);
        Some((*meta, slot.get_mut(..meta.len)?))
    }

    /// True if [`RecvBatch::next_run`] has another one.
    #[inline]
    pub fn has_next_run(&self) -> bool {
        self.taken < self.metas.len()
    }
}

/// Where a run of datagrams is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendMeta {
    /// The socket to send from.
    pub socket: SocketId,
    /// The local address to send from, if the kernel shall not choose.
    pub local: Option<IpAddr>,
    /// The destination.
    pub remote: SocketAddr,
    /// The ECN codepoint of every datagram in the run.
    pub ecn: Ecn,
    /// How the network is to treat them: the upper six bits of the traffic class, 0 to 63 (RFC 2474). Datapaths that cannot say
    /// so leave it at 0.
    pub dscp: u8,
    /// Not to leave before this time, where the datapath can hold packets back; `None` is at once.
    pub release: Option<Time>,
}

impl SendMeta {
    /// The traffic class of every datagram in the run, of IPv4 the type of service: the ECN codepoint, and the DSCP above it.
    pub const fn traffic_class(&self) -> u8 {
        self.dscp << 2 | self.ecn.bits()
    }
}

/// A committed run in a [`SendBatch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendRun {
    /// Where the run goes.
    pub meta: SendMeta,
    /// Offset of the run's first byte in the batch.
    pub start: usize,
    /// Bytes in the run.
    pub len: usize,
    /// Size of each datagram but the last, which may be shorter.
    pub segment: usize,
}

/// Datagrams to send, written back to back into one buffer.
///
/// A writer asks for room with [`SendBatch::reserve`], writes one or more datagrams of equal size (the
/// last may be shorter) and hands them over with [`SendBatch::commit`].
#[derive(Debug)]
pub struct SendBatch {
    buffer: Box<[u8]>,
    used: usize,
    runs: Vec<SendRun>,
}

impl SendBatch {
    /// The most bytes a single UDP GSO send can carry over IPv4.
    pub const MAX_RUN: usize = 65_507;
    /// The most segments a single UDP GSO send can carry on every kernel that has it.
    pub const MAX_SEGMENTS: usize = 64;

    /// A batch that holds `capacity` bytes.
    pub fn new(capacity: usize) -> Self {
        SendBatch { buffer: vec![0; capacity].into_boxed_slice(), used: 0, runs: Vec::new() }
    }

    /// Forgets everything committed.
    pub fn clear(&mut self) {
        self.used = 0;
        self.runs.clear();
    }

    /// True if nothing is committed.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Runs committed.
    #[inline]
    pub fn run_count(&self) -> usize {
        self.runs.len()
    }

    /// Room for at least one datagram of `segment` bytes and for at most a whole run
    /// ([`SendBatch::MAX_RUN`] bytes, [`SendBatch::MAX_SEGMENTS`] segments), or `None` if the batch is full.
    pub fn reserve(&mut self, segment: usize) -> Option<&mut [u8]> {
        let most = segment.saturating_mul(Self::MAX_SEGMENTS).min(Self::MAX_RUN);
        let free = self.buffer.get_mut(self.used..)?;
        let room = free.len().min(most);
        if segment == 0 || room < segment { None } else { free.get_mut(..room) }
    }

    /// Commits the first `len` bytes of what [`SendBatch::reserve`] gave, as datagrams of `segment`
    /// bytes each, the last one possibly shorter.
    pub fn commit(&mut self, len: usize, segment: usize, meta: SendMeta) {
        if len == 0 || segment == 0 || len > self.buffer.len().saturating_sub(self.used) {
            return;
        }
        self.runs.push(SendRun { meta, start: self.used, len, segment });
        self.used = self.used.saturating_add(len);
    }

    /// The committed runs with their bytes, in order.
    pub fn runs(&self) -> impl Iterator<Item = (&SendRun, &[u8])> {
        self.runs.iter().filter_map(|run| {
            let end = run.start.saturating_add(run.len);
            self.buffer.get(run.start..end).map(|bytes| (run, bytes))
        })
    }

    /// The bytes of a committed run, by its number, for who has something to do with them before they are sent.
    pub fn run_mut(&mut self, number: usize) -> Option<&mut [u8]> {
        let run = self.runs.get(number)?;
        self.buffer.get_mut(run.start..)?.get_mut(..run.len)
    }

    /// The committed datagrams one by one, in order (memory datapaths, the simulator, tests).
    pub fn datagrams(&self) -> impl Iterator<Item = (SendMeta, &[u8])> {
        self.runs().flat_map(|(run, bytes)| bytes.chunks(run.segment).map(|datagram| (run.meta, datagram)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta() -> SendMeta {
        SendMeta {
            socket: SocketId(0),
            local: None,
            remote: "127.0.0.1:1".parse().unwrap(),
            ecn: Ecn::NotEct,
            dscp: 0,
            release: None,
        }
    }

    #[test]
    fn send_batch_keeps_runs_apart() {
        let mut batch = SendBatch::new(4000);
        let room = batch.reserve(1200).unwrap();
        assert_eq!(room.len(), 4000);
        room[..1200].fill(1);
        room[1200..1500].fill(2);
        batch.commit(1500, 1200, meta());
        batch.reserve(1200).unwrap()[..700].fill(3);
        batch.commit(700, 1200, meta());
        let sizes: Vec<_> = batch.datagrams().map(|(_, d)| (d.len(), d[0])).collect();
        assert_eq!(sizes, [(1200, 1), (300, 2), (700, 3)]);
        assert_eq!(batch.run_mut(1).map(|run| (run.len(), run[0])), Some((700, 3)));
        assert_eq!(batch.run_mut(2), None);
        assert!(batch.reserve(2000).is_none());
    }

    #[test]
    fn recv_batch_ignores_impossible_runs() {
        let mut batch = RecvBatch::new(1, 10);
        let meta = RecvMeta {
            socket: SocketId(0),
            local: None,
            remote: "127.0.0.1:1".parse().unwrap(),
            ecn: Ecn::Ce,
            len: 11,
            stride: 5,
        };
        batch.push(meta);
        assert!(batch.is_empty());
        assert!(batch.push_datagram(meta, b"hello"));
        assert!(!batch.push_datagram(meta, b"no room"));
        assert_eq!(batch.runs().count(), 1);
    }

    #[test]
    fn runs_are_handed_out_once_until_the_batch_is_cleared() {
        let mut batch = RecvBatch::new(3, 10);
        let meta = RecvMeta {
            socket: SocketId(0),
            local: None,
            remote: "127.0.0.1:1".parse().unwrap(),
            ecn: Ecn::NotEct,
            len: 0,
            stride: 1,
        };
        for _ in 0..2 {
            assert!(!batch.has_next_run() && batch.next_run().is_none());
            assert!(batch.push_datagram(meta, b"one") && batch.push_datagram(meta, b"two"));
            assert_eq!(batch.next_run().map(|(_, bytes)| &*bytes), Some(&b"one"[..]));
            assert!(batch.has_next_run());
            assert_eq!(batch.next_run().map(|(_, bytes)| &*bytes), Some(&b"two"[..]));
            assert!(!batch.has_next_run() && batch.next_run().is_none());
            batch.clear();
        }
    }
}
