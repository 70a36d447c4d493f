//! What leaves at once when a sender that was idle has something to send again.
//!
//! The rate of a sender that never has much to send is the rate of its little flights, one in a round trip: paced by it, an
//! answer of some packets takes a round trip to leave, on a path that could carry it in a moment. So a flight begins with as
//! much as a new connection may send at once, in the time of a train, and with more where the path has shown that it takes
//! that (RFC 9002 section 7.7). Where this loses packets, it is less the next time.

use super::model::Model;
use super::rate_of;
use super::startup::train_time;
use crate::congestion::{Lost, Pacing, Sent};
use godwit_base::Time;
use std::time::Duration;

/// Packets that leave at once at first,
const FIRST: u8 = 10;
/// and at most,
const MOST: u8 = 40;
/// and at least.
const LEAST: u8 = 2;
/// If so many of them are lost, or one part of so many, half as many may leave the next time. If none is lost it is twice
/// as many, provided that all were made use of.
const TOO_MANY_LOST: u8 = 3;
const TOO_LARGE_PART: u8 = 4;

/// The beginnings of flights.
#[derive(Debug, Clone, Copy)]
pub(super) struct IdleEnd {
    /// The present one was sent between these times.
    from: Time,
    until: Time,
    /// Bytes of it that are still to be sent.
    left: u32,
    /// How many packets it has.
    packets: u8,
    /// How many of them have been lost.
    lost: u8,
    /// All of it was sent.
    is_used: bool,
}

impl IdleEnd {
    pub(super) const fn new(now: Time) -> Self {
        IdleEnd { from: now, until: now, left: 0, packets: FIRST, lost: 0, is_used: false }
    }

    /// When the last of it was sent.
    #[cfg(test)]
    pub(super) const fn sent_until(&self) -> Time {
        self.until
    }

    pub(super) const fn is_on(&self) -> bool {
        self.left > 0
    }

    /// The sender was idle, and sends something.
    pub(super) fn begin(&mut self, now: Time, mtu: u16) {
        let too_many = self.lost >= TOO_MANY_LOST || self.lost.saturating_mul(TOO_LARGE_PART) >= self.packets;
        self.packets = if too_many {
            (self.packets / 2).max(LEAST)
        } else if self.is_used && self.lost == 0 {
            self.packets.saturating_mul(2).min(MOST)
        } else {
            self.packets
        };
        self.is_used = false;
        (self.from, self.until, self.lost) = (now, now, 0);
        self.left = u32::from(self.packets).saturating_mul(u32::from(mtu));
    }

    /// True if this was the last of what leaves at once: also if a round trip of `rtt` has passed, and what is left was not
    /// made use of.
    pub(super) fn on_sent(&mut self, sent: &Sent, rtt: Duration) -> bool {
        if sent.now.saturating_since(self.from) >= rtt {
            self.left = 0;
            return true;
        }
        self.until = sent.now;
        self.left = self.left.saturating_sub(u32::try_from(sent.bytes).unwrap_or(u32::MAX));
        self.is_used = self.left == 0;
        self.is_used
    }

    pub(super) fn on_lost(&mut self, lost: &Lost) {
        if (self.from..=self.until).contains(&lost.sent_at) {
            self.lost = self.lost.saturating_add(1);
        }
    }

    /// How what leaves at once does.
    pub(super) fn pacing(&self, model: &Model, mtu: u16) -> Pacing {
        let packet = u64::from(mtu);
        let rate = rate_of(packet.saturating_mul(FIRST.into()), train_time(model.min_rtt()));
        Pacing::new(rate.max(model.rate()), packet.saturating_mul(2))
    }
}
