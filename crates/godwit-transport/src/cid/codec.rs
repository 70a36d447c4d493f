//! The format of the connection ids we issue: who must receive the packets that carry them.
//!
//! An id has 8 to 20 bytes: six random ones, the number of the shard, the generation of the process,
//! and more random ones if it is longer than eight. Shard and generation are masked with a keyed mix of
//! the first six bytes ([`godwit_base::steering`], which packet steering in the kernel computes too), so
//! that an observer can neither read them nor link two ids of one connection (RFC 9000 section 5.1). Any
//! id of eight bytes or more is read by the same rule, so that client-chosen ids spread over the shards
//! by themselves.
//!
//! Where servers stand behind a load balancer that looks for a server's number in connection ids, four of the first six bytes are
//! that number: bytes 1 to 4, behind one that is random. This is the place that it has in ids by the plaintext algorithm of
//! draft-ietf-quic-load-balancers (section 5.2), for a server id of four bytes and every configuration codepoint: the first byte says neither
//! which configuration holds nor how long the id is. It is also where MsQuic puts it. What hides shard and generation follows from two
//! random bytes only then, and the number links the ids of all connections of a server, which is what it is for; ids are
//! longer, so that none comes twice.

use super::identifier::CidIdentifier;
use godwit_base::{Rng, steering};
use godwit_wire::ConnectionId;
use siphasher::sip::SipHasher13;
use std::net::IpAddr;

/// The bytes from which the masks are computed.
const RANDOM: usize = steering::RANDOM_LEN;

/// Where a server's number for load balancers is.
const SERVER_ID_AT: usize = 1;
/// Bytes of ids with such a number at least: as many random ones as the shortest ids have otherwise, and two.
const LEN_WITH_SERVER_ID: usize = 14;
/// Bytes of ids that have an identifier of [`Cibir`](super::Cibir) at least: else too few would be left that are random.
const LEN_WITH_IDENTIFIER: usize = 14;
/// Bytes in front of that identifier, and behind a server's number.
const BEFORE_IDENTIFIER: usize = 2;
/// How often other random bytes are tried where an identifier leaves no place to say the shard: one of 256 will do.
const TRIES: u32 = 8192;

/// A server's number for load balancers, which its connection ids show in bytes 1 to 4 (see
/// draft-ietf-quic-load-balancers, section 5.2, which is followed but for the first byte, which is random).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerId {
    /// This one.
    Fixed([u8; 4]),
    /// The address at which the client reaches the server: that of IPv4, or the last four bytes of that of IPv6; zeros where the
    /// data path does not tell it.
    LocalAddress,
}

impl ServerId {
    /// The number for a client that reaches this address.
    pub(crate) fn at(self, local: Option<IpAddr>) -> [u8; 4] {
        match (self, local) {
            (ServerId::Fixed(number), _) => number,
            (ServerId::LocalAddress, Some(IpAddr::V4(ip))) => ip.octets(),
            (ServerId::LocalAddress, Some(IpAddr::V6(ip))) => {
                ip.to_bits().to_be_bytes().last_chunk().copied().unwrap_or_default()
            }
            (ServerId::LocalAddress, None) => [0; 4],
        }
    }
}

/// What an id shows to others than this service.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shown {
    /// To load balancers.
    pub(crate) server_id: Option<[u8; 4]>,
    /// To whoever tells servers with one port apart.
    pub(crate) identifier: Option<CidIdentifier>,
}

/// Makes connection ids, and tells from an id who made it.
#[derive(Debug, Clone)]
pub struct CidCodec {
    len: usize,
    shard: u8,
    generation: u8,
    /// Where identifiers are.
    identifier_at: usize,
    steering: [u32; 4],
}

/// Whose packet it is that carries a connection id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// The id has our shard and generation, or is too short to tell.
    Ours,
    /// The id has another shard or generation. Meaningless for ids chosen by clients at random.
    Foreign {
        /// The shard it names, before reduction to the number of shards there are.
        shard: u8,
        /// The generation of the process it names.
        generation: u8,
    },
}

impl CidCodec {
    /// The shortest id that can be issued, in bytes.
    pub const MIN_LEN: usize = steering::MIN_CID_LEN;

    /// A codec for ids of `len` bytes (8 to 20; other lengths are brought into that range) issued by
    /// `shard` in `generation`. All shards and generations of a service share `key`.
    pub fn new(key: [u8; 16], len: usize, shard: u8, generation: u8) -> Self {
        let master = SipHasher13::new_with_key(&key);
        // The steering mix is simple enough for the kernel's packet filter. What an observer may solve
        // for is therefore a key of its own and says nothing about the master key.
        let [low, high] = [b"steer-0", b"steer-1"].map(|label| master.hash(label));
        CidCodec {
            len: len.clamp(Self::MIN_LEN, ConnectionId::MAX_LEN),
            shard,
            generation,
            identifier_at: BEFORE_IDENTIFIER,
            steering: [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32],
        }
    }

    /// The same for ids that show a server's number: they have 14 bytes at least.
    pub(crate) const fn with_server_ids(self) -> Self {
        let len = if self.len < LEN_WITH_SERVER_ID { LEN_WITH_SERVER_ID } else { self.len };
        CidCodec { len, identifier_at: SERVER_ID_AT + 4 + BEFORE_IDENTIFIER, ..self }
    }

    /// Whether ids have a place for that.
    const fn has_server_ids(&self) -> bool {
        self.identifier_at > BEFORE_IDENTIFIER
    }

    /// Length of the ids issued, in bytes.
    #[expect(clippy::len_without_is_empty, reason = "an id issued is never empty")]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// The key of the shard byte's mask, for steering in the kernel.
    pub const fn steering_key(&self) -> [u32; 4] {
        self.steering
    }

    /// A fresh id of ours.
    pub fn issue(&self, rng: &mut dyn Rng) -> ConnectionId {
        self.issue_with(rng, &Shown::default())
    }

    /// A fresh id of ours that shows something to others.
    pub(crate) fn issue_with(&self, rng: &mut dyn Rng, shown: &Shown) -> ConnectionId {
        let mut bytes = [0; ConnectionId::MAX_LEN];
        rng.fill(bytes.get_mut(..self.len).unwrap_or_default());
        let server_id = shown.server_id.filter(|_| self.has_server_ids());
        if let (Some(number), Some(place)) = (server_id, bytes.get_mut(SERVER_ID_AT..SERVER_ID_AT + 4)) {
            place.copy_from_slice(&number);
        }
        match shown.identifier.filter(|_| self.len >= LEN_WITH_IDENTIFIER) {
            None => self.say_who(&mut bytes),
            Some(identifier) => self.identify(&mut bytes, identifier.as_bytes(), rng),
        }
        ConnectionId::new(bytes.get(..self.len).unwrap_or_default()).unwrap_or_default()
    }

    /// Writes shard and generation.
    fn say_who(&self, id: &mut [u8; ConnectionId::MAX_LEN]) {
        if let Some((random, rest)) = id.split_first_chunk_mut::<RANDOM>() {
            let [shard_mask, generation_mask] = self.masks(*random);
            if let Some([shard, generation]) = rest.first_chunk_mut::<2>() {
                *shard = self.shard ^ shard_mask;
                *generation = self.generation ^ generation_mask;
            }
        }
    }

    /// Writes an identifier, and shard and generation where it leaves place for them. Where it has the place of the shard, the
    /// random bytes in front are chosen so that it says the shard; the generation is not said then, but the id is known
    /// to the endpoint that issued it.
    fn identify(&self, id: &mut [u8; ConnectionId::MAX_LEN], identifier: &[u8], rng: &mut dyn Rng) {
        let taken = self.identifier_at..self.identifier_at.saturating_add(identifier.len());
        if let Some(place) = id.get_mut(taken.clone()) {
            place.copy_from_slice(identifier);
        }
        for _ in 0..TRIES {
            let mut said = *id;
            self.say_who(&mut said);
            for at in [steering::SHARD_AT, steering::GENERATION_AT] {
                if let (false, Some(place), Some(byte)) = (taken.contains(&at), id.get_mut(at), said.get(at))
                {
                    *place = *byte;
                }
            }
            if id.get(steering::SHARD_AT) == said.get(steering::SHARD_AT) {
                return;
            }
            rng.fill(id.get_mut(..BEFORE_IDENTIFIER).unwrap_or_default());
        }
    }

    /// Who issued `dcid`, if one of us did.
    pub fn route(&self, dcid: &[u8]) -> Route {
        let Some((random, rest)) = dcid.split_first_chunk::<RANDOM>() else { return Route::Ours };
        let Some([shard, generation]) = rest.first_chunk::<2>() else { return Route::Ours };
        let [shard_mask, generation_mask] = self.masks(*random);
        let (shard, generation) = (shard ^ shard_mask, generation ^ generation_mask);
        if shard == self.shard && generation == self.generation {
            Route::Ours
        } else {
            Route::Foreign { shard, generation }
        }
    }

    fn masks(&self, random: [u8; RANDOM]) -> [u8; 2] {
        [steering::mix(self.steering, random), steering::mix_generation(self.steering, random)]
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
mod tests {
    use super::*;
    use godwit_base::SeededRng;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_codec_of_the_service_reads_what_another_issued(
            key: [u8; 16], seed: u64, len in 8_usize..=20, shard: u8, generation: u8, other: (u8, u8)
        ) {
            let codec = CidCodec::new(key, len, shard, generation);
            let cid = codec.issue(&mut SeededRng::new(seed));
            prop_assert_eq!(cid.len(), len);
            prop_assert_eq!(codec.route(cid.as_bytes()), Route::Ours);
            let reader = CidCodec::new(key, 8, other.0, other.1);
            let expected = if other == (shard, generation) {
                Route::Ours
            } else {
                Route::Foreign { shard, generation }
            };
            prop_assert_eq!(reader.route(cid.as_bytes()), expected);
        }

        #[test]
        fn any_bytes_can_be_routed(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
            let route = CidCodec::new([7; 16], 8, 1, 2).route(&bytes);
            prop_assert!(bytes.len() >= 8 || route == Route::Ours);
        }
    }

    #[test]
    fn a_servers_number_stands_where_balancers_look_and_hides_nothing_that_is_needed() {
        let mut rng = SeededRng::new(8);
        let codec = CidCodec::new([7; 16], 8, 3, 9).with_server_ids();
        let shown = Shown { server_id: Some([0xa1, 0xa2, 0xa3, 0xa4]), identifier: None };
        let mut seen = std::collections::HashSet::new();
        for _ in 0..20_000 {
            let cid = codec.issue_with(&mut rng, &shown);
            assert_eq!((cid.len(), &cid.as_bytes()[1..5]), (14, &[0xa1, 0xa2, 0xa3, 0xa4][..]));
            assert_eq!(codec.route(cid.as_bytes()), Route::Ours);
            assert_eq!(steering::shard_of(codec.steering_key(), cid.as_bytes(), 8), Some(3));
            assert!(seen.insert(cid), "no id comes twice");
        }
        let first: std::collections::HashSet<u8> = seen.iter().map(|cid| cid.as_bytes()[0]).collect();
        assert_eq!(first.len(), 256, "the first byte is random");
        let lens = [8, 14, 20].map(|len| CidCodec::new([0; 16], len, 0, 0).with_server_ids().len());
        assert_eq!(lens, [14, 14, 20]);
    }

    #[test]
    fn an_identifier_leaves_every_id_with_its_shard_and_different_from_others() {
        let mut rng = SeededRng::new(9);
        let plain = CidCodec::new([7; 16], 14, 3, 9);
        for (codec, server_id, at) in
            [(plain.clone(), None, 2), (plain.with_server_ids(), Some([0xa1, 0xa2, 0xa3, 0xa4]), 7)]
        {
            for len in 1..=CidIdentifier::MAX_LEN {
                let bytes = &[0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6][..len];
                let shown = Shown { server_id, identifier: CidIdentifier::new(bytes) };
                let mut seen = std::collections::HashSet::new();
                for _ in 0..200 {
                    let cid = codec.issue_with(&mut rng, &shown);
                    assert_eq!((cid.len(), &cid.as_bytes()[at..at + len]), (14, bytes));
                    assert_eq!(steering::shard_of(codec.steering_key(), cid.as_bytes(), 256), Some(3));
                    assert!(server_id.is_none_or(|number| cid.as_bytes()[1..5] == number));
                    assert!(seen.insert(cid), "no id comes twice");
                    let said = at + len <= steering::GENERATION_AT;
                    assert!(!said || codec.route(cid.as_bytes()) == Route::Ours, "{len}");
                }
            }
        }
    }

    #[test]
    fn short_ids_have_no_identifier() {
        let shown = Shown { server_id: None, identifier: CidIdentifier::new(&[0xc1; 6]) };
        let cid = CidCodec::new([7; 16], 8, 3, 9).issue_with(&mut SeededRng::new(1), &shown);
        assert_ne!(cid.as_bytes()[2..8], [0xc1; 6]);
    }

    #[test]
    fn the_number_may_follow_from_the_address() {
        let at = |ip: &str| ServerId::LocalAddress.at(Some(ip.parse().unwrap()));
        assert_eq!(at("10.1.2.3"), [10, 1, 2, 3]);
        assert_eq!(at("2001:db8::a1a2:a3a4"), [0xa1, 0xa2, 0xa3, 0xa4]);
        assert_eq!(ServerId::LocalAddress.at(None), [0; 4]);
        assert_eq!(ServerId::Fixed([1, 2, 3, 4]).at(Some("10.1.2.3".parse().unwrap())), [1, 2, 3, 4]);
    }

    #[test]
    fn lengths_are_brought_into_range() {
        let lens = [0, 8, 13, 20, 99].map(|len| CidCodec::new([0; 16], len, 0, 0).len());
        assert_eq!(lens, [8, 8, 13, 20, 20]);
    }

    #[test]
    fn the_kernels_rule_leads_to_the_issuing_shard() {
        for (shard, seed) in (0..8).zip(100..) {
            let codec = CidCodec::new([7; 16], 8, shard, 9);
            let cid = codec.issue(&mut SeededRng::new(seed));
            assert_eq!(steering::shard_of(codec.steering_key(), cid.as_bytes(), 8), Some(usize::from(shard)));
        }
    }

    #[test]
    fn shard_and_generation_do_not_show() {
        let codec = CidCodec::new([9; 16], 8, 3, 4);
        let mut rng = SeededRng::new(5);
        let mut seen = [[0_u32; 256]; 2];
        for _ in 0..25_600 {
            let cid = codec.issue(&mut rng);
            seen[0][usize::from(cid.as_bytes()[6])] += 1;
            seen[1][usize::from(cid.as_bytes()[7])] += 1;
        }
        assert!(
            seen.iter().flatten().all(|count| (40..200).contains(count)),
            "every value is about as common"
        );
    }
}
