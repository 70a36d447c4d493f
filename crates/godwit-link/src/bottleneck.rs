//! The drop-tail queue and the serialisation behind it.
//!
//! A packet's departure is known when it enters: after everything in front of it. The queue is thus only
//! a ring of departure times, and needs no event of its own.

use crate::config::{QueueLimit, Rate};
use godwit_base::Time;
use std::collections::VecDeque;
use std::time::Duration;

#[derive(Debug, Clone)]
struct Waiting {
    departs: Time,
    bytes: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Bottleneck {
    rate: Option<Rate>,
    limit: QueueLimit,
    mark_above: QueueLimit,
    waiting: VecDeque<Waiting>,
    waiting_bytes: u64,
    busy_until: Time,
    /// The part of a nanosecond by which the last packet outlasts `busy_until`, in units of 1 / rate:
    /// without it the rate would be a little off for every packet.
    remainder: u64,
}

/// A packet that found room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passage {
    pub(crate) departs: Time,
    pub(crate) marked: bool,
}

impl Bottleneck {
    pub(crate) fn new(rate: Option<Rate>, limit: QueueLimit, mark_above: QueueLimit) -> Self {
        Bottleneck {
            rate,
            limit,
            mark_above,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            busy_until: Time::ZERO,
            remainder: 0,
        }
    }

    /// Lets a packet in that occupies `bytes` on the wire, or answers `None` if the queue is full.
    pub(crate) fn enter(&mut self, now: Time, bytes: u64) -> Option<Passage> {
        let Some(rate) = self.rate else {
            return Some(Passage { departs: now, marked: false });
        };
        self.let_go(now);
        if self.would_exceed(self.limit, bytes) {
            return None;
        }
        let marked = self.would_exceed(self.mark_above, bytes);
        if self.busy_until < now {
            self.busy_until = now;
            self.remainder = 0;
        }
        let work = bytes.saturating_mul(8_000_000_000).saturating_add(self.remainder);
        let rate = rate.as_bits_per_second();
        self.remainder = work % rate;
        self.busy_until += Duration::from_nanos(work / rate);
        self.waiting.push_back(Waiting { departs: self.busy_until, bytes });
        self.waiting_bytes = self.waiting_bytes.saturating_add(bytes);
        Some(Passage { departs: self.busy_until, marked })
    }

    /// Packets and bytes that are in the queue or being sent.
    pub(crate) fn occupancy(&mut self, now: Time) -> (usize, u64) {
        self.let_go(now);
        (self.waiting.len(), self.waiting_bytes)
    }

    fn let_go(&mut self, now: Time) {
        while let Some(gone) = self.waiting.pop_front_if(|first| first.departs <= now) {
            self.waiting_bytes = self.waiting_bytes.saturating_sub(gone.bytes);
        }
    }

    fn would_exceed(&self, limit: QueueLimit, bytes: u64) -> bool {
        match limit {
            _ if self.waiting.is_empty() => false,
            QueueLimit::Unlimited => false,
            QueueLimit::Packets(most) => self.waiting.len() >= most,
            QueueLimit::Bytes(most) => self.waiting_bytes.saturating_add(bytes) > most,
        }
    }
}
