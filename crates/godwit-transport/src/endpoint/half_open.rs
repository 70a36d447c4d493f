//! Connections that were accepted and whose handshake is not complete: each costs a state of TLS, and a signature.
//!
//! A client that went through Retry may have an address and nothing else. So their number is limited like that of
//! handshakes that wait to be accepted, by source network and in all. When there are many, strangers have to prove their
//! address before anything of their ClientHello is kept or acknowledged; when there are too many, the oldest gives way
//! that has had time enough to go on, and if there is none, the newcomer's packet is lost, and will come again.
//!
//! Invariant: every server's connection that is not complete is known here; some that are may be.

use super::admission::Ledger;
use super::demux::KeyedHash;
use super::slot::ConnectionSlot;
use super::{ConnKey, Endpoint};
use godwit_base::{Slab, Time};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

/// So long a handshake may take whoever else comes: three round trips on long paths.
const LEAST_TIME: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy)]
struct Begun {
    key: ConnKey,
    address: IpAddr,
    at: Time,
}

/// See the module.
#[derive(Debug)]
pub(super) struct HalfOpen {
    /// In the order in which they were accepted.
    begun: VecDeque<Begun>,
    ledger: Ledger,
}

impl HalfOpen {
    pub(super) fn new(most: usize, hash: KeyedHash) -> Self {
        HalfOpen { begun: VecDeque::new(), ledger: Ledger::new(most, hash) }
    }

    /// Forgets the oldest as far as they are no longer half-open: most are done in the order in which they began.
    fn forget_oldest(&mut self, is_half_open: impl Fn(ConnKey) -> bool) {
        while let Some(begun) = self.begun.pop_front_if(|begun| !is_half_open(begun.key)) {
            self.ledger.leave(begun.address);
        }
    }

    /// Forgets those that are no longer half-open.
    fn purge(&mut self, is_half_open: impl Fn(ConnKey) -> bool) {
        let ledger = &mut self.ledger;
        self.begun.retain(|begun| {
            let keep = is_half_open(begun.key);
            if !keep {
                ledger.leave(begun.address);
            }
            keep
        });
    }

    /// The oldest that stands in the way of one from `address` and has had its time.
    fn in_the_way(&self, now: Time, address: IpAddr) -> Option<ConnKey> {
        let old = self.begun.iter().take_while(|begun| now.saturating_since(begun.at) >= LEAST_TIME);
        let mut old = old.filter(|begun| self.ledger.stands_in_the_way(address, begun.address));
        old.next().map(|begun| begun.key)
    }
}

/// Whether a connection's handshake may still come to an end.
fn is_half_open(slots: &Slab<ConnectionSlot>, key: ConnKey) -> bool {
    slots.get(key.0).is_some_and(|slot| slot.connection.is_handshaking() && slot.connection.is_open())
}

impl Endpoint {
    /// Looks which connections are still half-open.
    fn purge_half_open(&mut self) {
        self.half_open.purge(|key| is_half_open(&self.slots, key));
    }

    /// True if there are so many half-open connections, from a network or in all, that strangers should prove their
    /// address. What waits to be accepted becomes one.
    pub(super) fn has_many_half_open(&mut self, address: IpAddr) -> bool {
        let many = self.config.handshakes_before_retry.saturating_sub(self.incoming.len());
        let strained = self.half_open.ledger.is_strained(address, many);
        if strained {
            self.purge_half_open();
        }
        strained && self.half_open.ledger.is_strained(address, many)
    }

    /// Whether a client from `address` may have a connection; if need be, an older one gives way.
    pub(super) fn has_room_for_half_open(&mut self, now: Time, address: IpAddr) -> bool {
        if self.half_open.ledger.has_room(address) {
            return true;
        }
        self.purge_half_open();
        if self.half_open.ledger.has_room(address) {
            return true;
        }
        let Some(key) = self.half_open.in_the_way(now, address) else { return false };
        self.with(key, |connection| connection.abort(now, "the handshake took too long while others waited"));
        self.purge_half_open();
        self.half_open.ledger.has_room(address)
    }

    /// A client's connection begins.
    pub(super) fn on_half_open(&mut self, now: Time, key: ConnKey, address: IpAddr) {
        self.half_open.forget_oldest(|key| is_half_open(&self.slots, key));
        self.half_open.begun.push_back(Begun { key, address, at: now });
        self.half_open.ledger.enter(address);
        // One that takes long must not keep those behind it.
        if self.half_open.begun.len() > self.config.max_handshakes {
            self.purge_half_open();
        }
    }
}
