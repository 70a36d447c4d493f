//! The format of the connection ids we issue: who must receive the packets that carry them.
//!
//! An id has 8 to 20 bytes: six random ones, the number of the shard, the generation of the process,
//! and more random ones if it is longer than eight. Shard and generation are masked with a keyed mix of
//! the first six bytes ([`godwit_base::steering`], which packet steering in the kernel computes too), so
//! that an observer can neither read them nor link two ids of one connection (RFC 9000 section 5.1). Any
//! id of eight bytes or more is read by the same rule, so that client-chosen ids spread over the shards
//! by themselves.

use godwit_base::{Rng, steering};
use godwit_wire::ConnectionId;
use siphasher::sip::SipHasher13;

/// The bytes from which the masks are computed.
const RANDOM: usize = steering::RANDOM_LEN;

/// Makes connection ids, and tells from an id who made it.
#[derive(Debug, Clone)]
pub struct CidCodec {
    len: usize,
    shard: u8,
    generation: u8,
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
            steering: [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32],
        }
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
        let mut bytes = [0; ConnectionId::MAX_LEN];
        rng.fill(bytes.get_mut(..self.len).unwrap_or_default());
        if let Some((random, rest)) = bytes.split_first_chunk_mut::<RANDOM>() {
            let [shard_mask, generation_mask] = self.masks(*random);
            if let Some([shard, generation]) = rest.first_chunk_mut::<2>() {
                *shard = self.shard ^ shard_mask;
                *generation = self.generation ^ generation_mask;
            }
        }
        ConnectionId::new(bytes.get(..self.len).unwrap_or_default()).unwrap_or_default()
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
