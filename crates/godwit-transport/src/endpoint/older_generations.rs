//! Handshakes that an older generation of the process has begun.
//!
//! Until a client has heard from us, its packets carry an id that it chose itself, which tells nothing of whose
//! they are. So an older generation leaves a list of these, and for a minute, which is longer than a handshake may
//! last, they lead back to it.

use super::Endpoint;
use super::table::Table;
use crate::keyed_hash::KeyedHash;
use godwit_base::Time;
use godwit_wire::ConnectionId;
use std::time::Duration;

/// How long clients are expected to go on with ids of their own.
const LIFETIME: Duration = Duration::from_secs(60);
/// The most handshakes of older generations; the packets of others find nobody, and their clients begin anew.
const MAX: usize = 1 << 14;

/// A handshake under way, by the id that its client chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begun {
    /// The Destination Connection ID of the client's first packets.
    pub id: ConnectionId,
    /// The generation that took them.
    pub generation: u8,
    /// The shard of it that did.
    pub shard: u8,
}

/// The list.
#[derive(Debug)]
pub(super) struct OlderGenerations {
    begun: Vec<Begun>,
    by_id: Table<ConnectionId, (u8, u8), KeyedHash>,
    until: Time,
}

impl OlderGenerations {
    pub(super) fn new(hash: KeyedHash) -> Self {
        OlderGenerations { begun: Vec::new(), by_id: Table::with_hasher(hash), until: Time::ZERO }
    }

    /// The generation and the shard that began a handshake with `id`.
    pub(super) fn find(&self, now: Time, id: &ConnectionId) -> Option<(u8, u8)> {
        if now >= self.until {
            return None;
        }
        self.by_id.get(id).copied()
    }

    fn adopt(&mut self, now: Time, begun: impl Iterator<Item = Begun>) {
        if now >= self.until {
            for old in self.begun.drain(..) {
                self.by_id.remove(&old.id);
            }
        }
        let room = MAX.saturating_sub(self.begun.len());
        for handshake in begun.take(room) {
            self.by_id.insert(handshake.id, (handshake.generation, handshake.shard));
            self.begun.push(handshake);
        }
        self.until = now + LIFETIME;
    }
}

impl Endpoint {
    /// The handshakes under way, those included that were [adopted](Endpoint::adopt_handshakes) not long ago: what a
    /// newer generation has to know before packets are given to it.
    pub fn handshakes(&self, now: Time) -> impl Iterator<Item = Begun> {
        let (generation, shard) = (self.config.generation, self.config.shard);
        let waiting = self.incoming.client_ids();
        let accepted = self.slots.iter().filter(|(_, slot)| slot.connection.is_handshaking());
        let accepted = accepted.filter_map(|(_, slot)| slot.initial_dcid);
        let own = waiting.chain(accepted).map(move |id| Begun { id, generation, shard });
        let adopted =
            self.older_generations.begun.iter().copied().filter(move |_| now < self.older_generations.until);
        own.chain(adopted)
    }

    /// Takes over the list of the handshakes that an older generation has begun: their packets are
    /// [foreign](Endpoint::swap_foreign), although nothing in them says so.
    pub fn adopt_handshakes(&mut self, now: Time, begun: impl Iterator<Item = Begun>) {
        self.older_generations.adopt(now, begun);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;
    use godwit_base::SeededRng;

    fn begun(n: u32) -> Begun {
        let id = ConnectionId::new(&[n.to_be_bytes(), [0; 4]].concat()).unwrap();
        Begun { id, generation: 3, shard: 1 }
    }

    #[test]
    fn they_are_known_for_a_while() {
        let mut older_generations = OlderGenerations::new(KeyedHash::new(&mut SeededRng::new(1)));
        let now = Time::from_nanos(5);
        assert_eq!(older_generations.find(now, &begun(1).id), None);
        older_generations.adopt(now, [begun(1), begun(2)].into_iter());
        assert_eq!(older_generations.find(now, &begun(1).id), Some((3, 1)));
        assert_eq!(older_generations.find(now, &begun(3).id), None);
        let later = now + LIFETIME;
        assert_eq!(older_generations.find(later, &begun(1).id), None);
        older_generations.adopt(later, [begun(3)].into_iter());
        assert_eq!(older_generations.find(later, &begun(1).id), None, "forgotten, not only out of date");
        assert_eq!(older_generations.find(later, &begun(3).id), Some((3, 1)));
    }

    #[test]
    fn their_number_is_bounded() {
        let mut older_generations = OlderGenerations::new(KeyedHash::new(&mut SeededRng::new(2)));
        let many = MAX as u32;
        older_generations.adopt(Time::ZERO, (0..many + 10).map(begun));
        older_generations.adopt(Time::ZERO, [begun(many + 20)].into_iter());
        let known = (0..many + 30).filter(|n| older_generations.find(Time::ZERO, &begun(*n).id).is_some());
        assert_eq!(known.count(), MAX);
    }
}
