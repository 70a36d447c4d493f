//! The ring of sent packets of one space, and of the tokens they carried.
//!
//! Packets sit at index `packet number - base`. A packet's tokens are a run in a second ring, in the same
//! order, so that both rings are only ever pushed at the back and popped at the front.

use crate::SentInfo;
use crate::delivery::Snapshot;
use godwit_base::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// What is known of a packet's fate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Neither acknowledged nor lost.
    Sent,
    /// Acknowledged. At least the next `run` packets, counted from this one, are so too.
    Acked { run: u32 },
    /// Declared lost, but remembered for a late acknowledgement. `event` is the reduction of the window it is
    /// charged to; 0 is none.
    Lost { at: Time, event: u32 },
    /// The number was never used.
    Skipped,
}

/// A packet in the ring.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SentPacket {
    pub(crate) sent_at: Time,
    pub(crate) state: State,
    /// Index of its first token since the ring began, wrapping.
    first_token: u32,
    token_count: u16,
    pub(crate) bytes: u16,
    pub(crate) path: u16,
    pub(crate) ack_eliciting: bool,
    pub(crate) in_flight: bool,
    pub(crate) mtu_probe: bool,
    /// Sent with ECT(0).
    pub(crate) marked: bool,
    /// What it carried was sent more than once, and that is held against it:
    /// [`Laboratory::ambiguous_repeats`](crate::Laboratory::ambiguous_repeats).
    pub(crate) ambiguous: bool,
}

/// The tokens of one packet, as [`SentRing::for_each_of`] finds them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenRun {
    first: u32,
    count: u16,
}

impl SentPacket {
    pub(crate) fn new(info: &SentInfo, path: u16) -> Self {
        SentPacket {
            sent_at: info.now,
            state: State::Sent,
            first_token: 0,
            token_count: 0,
            bytes: u16::try_from(info.bytes).unwrap_or(u16::MAX),
            path,
            ack_eliciting: info.ack_eliciting,
            in_flight: info.in_flight,
            mtu_probe: info.mtu_probe,
            marked: info.marked,
            ambiguous: false,
        }
    }

    pub(crate) fn skipped() -> Self {
        SentPacket {
            sent_at: Time::ZERO,
            state: State::Skipped,
            first_token: 0,
            token_count: 0,
            bytes: 0,
            path: 0,
            ack_eliciting: false,
            in_flight: false,
            mtu_probe: false,
            marked: false,
            ambiguous: false,
        }
    }

    /// Which tokens it carried.
    #[inline]
    pub(crate) const fn tokens(&self) -> TokenRun {
        TokenRun { first: self.first_token, count: self.token_count }
    }

    pub(crate) fn is_outstanding_in_flight(&self) -> bool {
        self.in_flight && self.state == State::Sent
    }
}

/// An emptied ring keeps room for this many packets.
const KEPT_CAPACITY: usize = 1024;

/// Sent packets by number, with their tokens.
#[derive(Debug)]
pub(crate) struct SentRing<T> {
    base: u64,
    packets: VecDeque<SentPacket>,
    tokens: VecDeque<T>,
    /// Index of the first token in the ring since the ring began, wrapping.
    token_base: u32,
    /// What delivery-rate samples need of each packet, by its index; empty where nobody asks for them.
    snapshots: VecDeque<Option<Snapshot>>,
}

impl<T: Copy> SentRing<T> {
    pub(crate) fn new() -> Self {
        SentRing {
            base: 0,
            packets: VecDeque::new(),
            tokens: VecDeque::new(),
            token_base: 0,
            snapshots: VecDeque::new(),
        }
    }

    /// The first packet to be added has this number. Only as long as there is none.
    pub(crate) fn begin_at(&mut self, number: u64) {
        self.base = number;
    }

    /// Takes the memory of a ring whose packets are forgotten, as far as there is none yet. The packets are looked at no more.
    pub(crate) fn inherit(&mut self, other: &mut Self) {
        take_over(&mut self.packets, &mut other.packets);
        take_over(&mut self.tokens, &mut other.tokens);
        take_over(&mut self.snapshots, &mut other.snapshots);
    }

    pub(crate) fn shrink(&mut self) {
        self.packets.shrink_to_fit();
        self.tokens.shrink_to_fit();
        self.snapshots.shrink_to_fit();
    }

    /// Memory that is held, in bytes, about.
    #[inline]
    pub(crate) fn held(&self) -> u64 {
        // Most that are held for long have one token, and no snapshot.
        let packet = size_of::<SentPacket>().saturating_add(size_of::<T>()) as u64;
        (self.packets.capacity() as u64).wrapping_mul(packet)
    }

    /// The packet number of the oldest packet in the ring, or of the next if it is empty.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// The number after that of the newest packet.
    pub(crate) fn end(&self) -> u64 {
        self.base.saturating_add(u64::try_from(self.packets.len()).unwrap_or(u64::MAX))
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(crate) fn front(&self) -> Option<&SentPacket> {
        self.packets.front()
    }

    fn index(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.base)?).ok()
    }

    pub(crate) fn get(&self, number: u64) -> Option<&SentPacket> {
        self.packets.get(self.index(number)?)
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut SentPacket> {
        let index = self.index(number)?;
        self.packets.get_mut(index)
    }

    /// Adds the packet with the next number. Tokens beyond 65,535 would be lost; a packet cannot carry them.
    pub(crate) fn push(&mut self, mut packet: SentPacket, tokens: &[T]) {
        let count = u16::try_from(tokens.len()).unwrap_or(u16::MAX);
        let in_ring = u32::try_from(self.tokens.len()).unwrap_or(u32::MAX);
        packet.first_token = self.token_base.wrapping_add(in_ring);
        packet.token_count = count;
        self.tokens.extend(tokens.iter().take(usize::from(count)));
        self.packets.push_back(packet);
    }

    /// As [`SentRing::push`], with what delivery-rate samples need of the packet.
    #[inline]
    pub(crate) fn push_with(&mut self, packet: SentPacket, snapshot: Option<Snapshot>, tokens: &[T]) {
        self.push(packet, tokens);
        if snapshot.is_some() {
            let before = self.packets.len().saturating_sub(1);
            if self.snapshots.len() < before {
                self.snapshots.resize(before, None);
            }
            self.snapshots.push_back(snapshot);
        }
    }

    /// What [`SentRing::push_with`] was given for a packet.
    pub(crate) fn snapshot(&self, number: u64) -> Option<Snapshot> {
        *self.snapshots.get(self.index(number)?)?
    }

    /// Calls `f` with every token of the packet, in the order they were pushed.
    pub(crate) fn for_each_token(&self, number: u64, f: impl FnMut(T)) {
        let Some(packet) = self.get(number) else { return };
        self.for_each_of(packet.tokens(), f);
    }

    /// The same for whoever has looked the packet up.
    #[inline]
    pub(crate) fn for_each_of(&self, tokens: TokenRun, mut f: impl FnMut(T)) {
        let first = usize::try_from(tokens.first.wrapping_sub(self.token_base)).unwrap_or(usize::MAX);
        for offset in 0..usize::from(tokens.count) {
            if let Some(token) = self.tokens.get(first.saturating_add(offset)) {
                f(*token);
            }
        }
    }

    pub(crate) fn pop_front(&mut self) {
        let Some(packet) = self.packets.pop_front() else { return };
        if !self.snapshots.is_empty() {
            self.snapshots.pop_front();
        }
        self.base = self.base.saturating_add(1);
        self.token_base = self.token_base.wrapping_add(u32::from(packet.token_count));
        for _ in 0..packet.token_count {
            self.tokens.pop_front();
        }
    }

    /// Drops the oldest packets, which carried so many tokens, at once; the next has the number `base`.
    fn forget(&mut self, packets: usize, tokens: u32, base: u64) {
        let carried = usize::try_from(tokens).unwrap_or(usize::MAX);
        self.packets.drain(..packets.min(self.packets.len()));
        self.tokens.drain(..carried.min(self.tokens.len()));
        self.snapshots.drain(..packets.min(self.snapshots.len()));
        self.token_base = self.token_base.wrapping_add(tokens);
        self.base = base;
    }

    /// Pops what needs no longer be remembered: acknowledged packets, packets lost at least `retention` ago,
    /// and numbers left out, once the peer has acknowledged a later packet and not them.
    pub(crate) fn release(&mut self, now: Time, largest_acked: Option<u64>, retention: Duration) {
        let done = |number: u64, packet: &SentPacket| match packet.state {
            State::Acked { .. } => true,
            State::Lost { at, .. } => now >= at + retention,
            State::Skipped => largest_acked.is_some_and(|largest| largest > number),
            State::Sent => false,
        };
        let (mut packets, mut tokens, mut number) = (0_usize, 0_u32, self.base);
        for packet in &self.packets {
            if !done(number, packet) {
                break;
            }
            packets = packets.saturating_add(1);
            tokens = tokens.saturating_add(u32::from(packet.token_count));
            number = number.saturating_add(1);
        }
        self.forget(packets, tokens, number);
        if self.packets.is_empty() && self.packets.capacity() > KEPT_CAPACITY.saturating_mul(4) {
            self.packets.shrink_to(KEPT_CAPACITY);
            self.tokens.shrink_to(KEPT_CAPACITY);
            self.snapshots.shrink_to(KEPT_CAPACITY);
        }
    }

    /// Bytes in flight on a path. Looks at every packet.
    pub(crate) fn in_flight_on(&self, path: u16) -> u64 {
        let outstanding = self.packets.iter().filter(|p| p.path == path && p.is_outstanding_in_flight());
        outstanding.map(|packet| u64::from(packet.bytes)).fold(0, u64::saturating_add)
    }
}

fn take_over<T>(heir: &mut VecDeque<T>, other: &mut VecDeque<T>) {
    if heir.capacity() == 0 {
        other.clear();
        std::mem::swap(heir, other);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;
    use proptest::prelude::*;

    fn packet(bytes: usize) -> SentPacket {
        let info = SentInfo {
            packet_number: 0,
            now: Time::ZERO,
            bytes,
            ack_eliciting: true,
            in_flight: true,
            mtu_probe: false,
            marked: false,
        };
        SentPacket::new(&info, 0)
    }

    #[test]
    fn a_packet_takes_half_a_cache_line_and_a_bit() {
        assert!(size_of::<SentPacket>() <= 40, "{}", size_of::<SentPacket>());
    }

    #[test]
    fn a_skipped_number_stays_until_a_later_one_is_acknowledged() {
        let mut ring = SentRing::<u32>::new();
        ring.push(SentPacket::skipped(), &[]);
        ring.release(Time::MAX, None, Duration::ZERO);
        ring.release(Time::MAX, Some(0), Duration::ZERO);
        assert_eq!(ring.len(), 1);
        ring.release(Time::MAX, Some(1), Duration::ZERO);
        assert_eq!((ring.len(), ring.base()), (0, 1));
    }

    #[test]
    fn the_first_number_can_be_chosen() {
        let mut ring = SentRing::<u32>::new();
        ring.begin_at(7);
        ring.push(packet(100), &[]);
        assert_eq!((ring.base(), ring.end(), ring.get(7).is_some()), (7, 8, true));
    }

    #[test]
    fn memory_is_inherited_without_packets_and_only_where_there_is_none() {
        let (mut first, mut second, mut third) = (SentRing::new(), SentRing::new(), SentRing::new());
        first.push(packet(100), &[1, 2]);
        second.begin_at(5);
        second.inherit(&mut first);
        assert_eq!((first.held(), second.len(), second.base()), (0, 0, 5));
        let held = second.held();
        assert!(held > 0);
        second.push(packet(100), &[3]);
        third.push(packet(100), &[4]);
        second.inherit(&mut third);
        let mut tokens = Vec::new();
        second.for_each_token(5, |token: u32| tokens.push(token));
        assert_eq!((second.held(), second.len(), tokens), (held, 1, vec![3]));
    }

    #[test]
    fn snapshots_stay_with_their_packets() {
        let mut ring = SentRing::<u32>::new();
        let snapshots = [None, None, Some(2), None, Some(4), Some(5), None, Some(7)];
        let snapshots = snapshots.map(|delivered: Option<u64>| delivered.map(Snapshot::of));
        for snapshot in snapshots {
            ring.push_with(packet(100), snapshot, &[]);
        }
        for gone in 0..=snapshots.len() {
            for (number, snapshot) in snapshots.iter().enumerate().skip(gone) {
                assert_eq!(ring.snapshot(number as u64), *snapshot, "{number} of those from {gone} on");
            }
            ring.pop_front();
        }
    }

    /// A ring of so many packets that are acknowledged, and forgotten but for some.
    fn after(packets: usize, left: usize) -> SentRing<u32> {
        let mut ring = SentRing::<u32>::new();
        for number in 0..packets {
            ring.push_with(packet(100), Some(Snapshot::of(0)), &[1]);
            if number + left < packets {
                ring.get_mut(number as u64).unwrap().state = State::Acked { run: 0 };
            }
        }
        ring.release(Time::ZERO, None, Duration::ZERO);
        assert_eq!(ring.len(), left);
        ring
    }

    #[test]
    fn a_large_ring_gives_memory_back_when_it_is_empty_and_any_if_it_is_told_to() {
        let large = KEPT_CAPACITY * 4 + 1;
        assert!(after(large, 0).packets.capacity() <= KEPT_CAPACITY);
        assert!(after(large, 1).packets.capacity() >= large, "it is in use");
        assert!(after(KEPT_CAPACITY * 3, 0).packets.capacity() > KEPT_CAPACITY, "it may be used again");
        let mut ring = after(KEPT_CAPACITY * 4, 0);
        assert!(ring.packets.capacity() > KEPT_CAPACITY, "as large as that it may be");
        ring.shrink();
        assert_eq!((ring.packets.capacity(), ring.tokens.capacity(), ring.snapshots.capacity()), (0, 0, 0));
    }

    proptest! {
        /// Whatever is pushed and popped, a packet finds exactly its own tokens, also where the index wraps.
        #[test]
        fn tokens_stay_with_their_packet(
            start in prop_oneof![Just(0), Just(u32::MAX - 5)],
            ops in prop::collection::vec(prop::option::of(0usize..5), 0..80),
        ) {
            let mut ring = SentRing::<u64>::new();
            ring.token_base = start;
            let mut next = 0;
            for op in ops {
                match op {
                    Some(count) => {
                        let tokens: Vec<u64> = (0..count as u64).map(|i| next * 10 + i).collect();
                        ring.push(packet(100), &tokens);
                        next += 1;
                    }
                    None => ring.pop_front(),
                }
                for number in ring.base()..next {
                    let mut seen = Vec::new();
                    ring.for_each_token(number, |token| seen.push(token));
                    prop_assert!(seen.iter().enumerate().all(|(i, t)| *t == number * 10 + i as u64));
                    prop_assert_eq!(seen.len(), usize::from(ring.get(number).unwrap().token_count));
                }
            }
            prop_assert_eq!(ring.in_flight_on(0), ring.len() as u64 * 100);
        }
    }
}
