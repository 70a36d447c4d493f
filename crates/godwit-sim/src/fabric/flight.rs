//! Packets under way in one direction of a wire.

use super::payload::Payload;
use godwit_base::{Ecn, SocketId, Time};
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};
use std::net::SocketAddr;

/// A packet on its way, or arrived.
#[derive(Debug)]
pub struct Packet {
    /// When it arrives.
    pub at: Time,
    /// The source address that its receiver sees.
    pub source: SocketAddr,
    /// The ECN codepoint with which it arrives.
    pub ecn: Ecn,
    /// The receiver's socket, once it has arrived.
    pub socket: SocketId,
    pub(super) payload: Payload,
    /// The destination as its sender sees it.
    pub(super) destination: SocketAddr,
    /// Later packets have higher numbers; settles who comes first at the same instant.
    pub(super) sequence: u64,
}

impl Packet {
    /// Bytes of UDP payload.
    pub const fn size(&self) -> usize {
        self.payload.len()
    }

    /// Writes the UDP payload into `room`, which is as long as it is.
    pub fn copy_to(&self, room: &mut [u8]) {
        self.payload.copy_to(room);
    }

    fn key(&self) -> (Time, u64) {
        (self.at, self.sequence)
    }
}

impl PartialEq for Packet {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Packet {}

impl PartialOrd for Packet {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Packet {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// The packets on one direction of a wire.
#[derive(Debug, Default)]
pub(super) struct Flight {
    in_order: VecDeque<Packet>,
    others: BinaryHeap<Reverse<Packet>>,
}

impl Flight {
    /// Answers whether the packet arrives before all others.
    pub(super) fn push(&mut self, in_order: bool, packet: Packet) -> bool {
        let first = self.next().is_none_or(|next| packet.at < next);
        if in_order {
            self.in_order.push_back(packet);
        } else {
            self.others.push(Reverse(packet));
        }
        first
    }

    pub(super) fn next(&self) -> Option<Time> {
        let plain = self.in_order.front().map(|packet| packet.at);
        let other = self.others.peek().map(|Reverse(packet)| packet.at);
        match (plain, other) {
            (Some(plain), Some(other)) => Some(plain.min(other)),
            (plain, other) => plain.or(other),
        }
    }

    pub(super) fn pop(&mut self, now: Time) -> Option<Packet> {
        if self.others.is_empty() {
            return self.in_order.pop_front_if(|packet| packet.at <= now);
        }
        let plain = self.in_order.front().map(Packet::key);
        let other = self.others.peek().map(|Reverse(packet)| packet.key());
        let from_plain = match (plain, other) {
            (Some(plain), Some(other)) => plain < other,
            (plain, _) => plain.is_some(),
        };
        if from_plain {
            self.in_order.pop_front_if(|packet| packet.at <= now)
        } else {
            other.filter(|(at, _)| *at <= now).and_then(|_| self.others.pop().map(|Reverse(packet)| packet))
        }
    }
}
