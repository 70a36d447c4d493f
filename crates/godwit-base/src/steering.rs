//! Which shard a datagram belongs to, told from its destination connection id alone.
//!
//! One rule serves every destination connection id of at least [`MIN_CID_LEN`] bytes, those we issued
//! and those a client made up for its first Initial: bytes 0 to 5 are random, byte 6 is the shard and
//! byte 7 the generation of the process, the latter two XORed with a keyed mix of the former six. The
//! shard is `(byte 6 ^ mask) % shards`, so that our ids come back to the shard that issued them, and
//! ids chosen by clients spread over all shards, a 0-RTT packet following its Initial.
//!
//! The mix is made of 32-bit multiplications, shifts and exclusive ors only, because the kernel has to
//! compute it too: a classic BPF program on a group of `SO_REUSEPORT` sockets does the same arithmetic.
//! It hides the shard from an onlooker who would link the ids of one connection by it. It is not a
//! cryptographic hash: with a great many ids whose shards are known otherwise its key could be solved
//! for, and all that would be won is the shard. Nothing secret may hang on it.

/// The shortest connection id that the rule reads a shard from. A client's first Destination
/// Connection ID is at least this long (RFC 9000 section 7.2).
pub const MIN_CID_LEN: usize = 8;
/// How many random bytes begin a connection id.
pub const RANDOM_LEN: usize = 6;
/// Where the masked shard is in a connection id.
pub const SHARD_AT: usize = 6;
/// Where the masked generation is in a connection id.
pub const GENERATION_AT: usize = 7;
/// The shifts of the three rounds of [`mix_word`], for those who compute it elsewhere.
pub const SHIFTS: [u32; 3] = [15, 13, 16];

/// The keyed mix of a connection id's random bytes. [`mix`] is its highest byte.
///
/// With `w` the first four bytes and `h` the last two as big-endian numbers: start with `w ^ key[0]`;
/// multiply by `key[1] | 1`, fold with shift 15; XOR with `h`, multiply by `key[2] | 1`, fold with shift 13;
/// multiply by `key[3] | 1`, fold with shift 16, where to fold is `a ^= a >> shift`. All is modulo 2^32.
pub const fn mix_word(key: [u32; 4], random: [u8; RANDOM_LEN]) -> u32 {
    let [a, b, c, d, e, f] = random;
    let mut word = u32::from_be_bytes([a, b, c, d]) ^ key[0];
    word = fold(word.wrapping_mul(key[1] | 1), SHIFTS[0]);
    word ^= u32::from_be_bytes([0, 0, e, f]);
    word = fold(word.wrapping_mul(key[2] | 1), SHIFTS[1]);
    fold(word.wrapping_mul(key[3] | 1), SHIFTS[2])
}

const fn fold(word: u32, shift: u32) -> u32 {
    word ^ (word >> shift)
}

/// The mask of the shard byte.
pub const fn mix(key: [u32; 4], random: [u8; RANDOM_LEN]) -> u8 {
    mix_word(key, random).to_be_bytes()[0]
}

/// The mask of the generation byte.
pub const fn mix_generation(key: [u32; 4], random: [u8; RANDOM_LEN]) -> u8 {
    mix_word(key, random).to_be_bytes()[1]
}

/// The shard, in `0..shards`, that the connection id `cid` leads to. `None` if it is shorter than
/// [`MIN_CID_LEN`] or `shards` is 0.
pub fn shard_of(key: [u32; 4], cid: &[u8], shards: usize) -> Option<usize> {
    let random = *cid.first_chunk::<RANDOM_LEN>()?;
    let _generation = cid.get(GENERATION_AT)?;
    let shard = cid.get(SHARD_AT)? ^ mix(key, random);
    usize::from(shard).checked_rem(shards)
}

/// The shard that a datagram with this UDP payload belongs to: the rule that the BPF program follows.
///
/// A short header's connection id begins at byte 1; a long header tells its length at byte 5
/// (RFC 8999 section 5). Whatever cannot be read so goes to shard 0.
pub fn shard_of_datagram(key: [u32; 4], datagram: &[u8], shards: usize) -> usize {
    let cid = match datagram.first() {
        Some(first) if first & 0x80 != 0 => long_header_cid(datagram),
        _ => datagram.get(1..),
    };
    cid.and_then(|cid| shard_of(key, cid, shards)).unwrap_or(0)
}

fn long_header_cid(datagram: &[u8]) -> Option<&[u8]> {
    let (len, rest) = datagram.get(5..)?.split_first()?;
    (usize::from(*len) >= MIN_CID_LEN).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rng, SeededRng};

    const ROUNDS: u32 = 40_000;

    fn random_inputs(rng: &mut SeededRng) -> ([u32; 4], [u8; RANDOM_LEN]) {
        let key = [(); 4].map(|()| rng.next_u64() as u32);
        let mut random = [0; RANDOM_LEN];
        rng.fill(&mut random);
        (key, random)
    }

    /// Each bit must be set in about half of the cases: six standard deviations are allowed.
    fn assert_balanced(ones: &[u32], what: &str) {
        let slack = 6.0 * (f64::from(ROUNDS) * 0.25).sqrt();
        for (bit, count) in ones.iter().enumerate() {
            let off = (f64::from(*count) - f64::from(ROUNDS) / 2.0).abs();
            assert!(off < slack, "{what}: bit {bit} is set {count} times of {ROUNDS}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs many rounds, of which each does the same")]
    fn bits_are_balanced_for_one_key() {
        let mut rng = SeededRng::new(1);
        let (key, _) = random_inputs(&mut rng);
        let mut ones = [0; 16];
        for _ in 0..ROUNDS {
            let (_, random) = random_inputs(&mut rng);
            let masks = u16::from_be_bytes([mix(key, random), mix_generation(key, random)]);
            for (bit, count) in ones.iter_mut().enumerate() {
                *count += u32::from(masks >> bit & 1);
            }
        }
        assert_balanced(&ones, "random ids");
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs many rounds, of which each does the same")]
    fn flipping_any_input_bit_flips_each_mask_bit_half_of_the_time() {
        let mut rng = SeededRng::new(2);
        for flipped in 0..8 * RANDOM_LEN {
            let mut ones = [0; 8];
            for _ in 0..ROUNDS {
                let (key, random) = random_inputs(&mut rng);
                let mut other = random;
                other[flipped / 8] ^= 1 << (flipped % 8);
                let change = mix(key, random) ^ mix(key, other);
                for (bit, count) in ones.iter_mut().enumerate() {
                    *count += u32::from(change >> bit & 1);
                }
            }
            // The topmost input bits have few ways through multiplications: a quarter is asked of them.
            for (bit, count) in ones.iter().enumerate() {
                let share = f64::from(*count) / f64::from(ROUNDS);
                assert!((0.25..0.75).contains(&share), "input bit {flipped}, mask bit {bit}: {share}");
            }
        }
    }

    #[test]
    fn an_issued_id_leads_back_to_its_shard() {
        let mut rng = SeededRng::new(3);
        for shard in 0..=255u8 {
            let (key, random) = random_inputs(&mut rng);
            let mut cid = [0; 8];
            cid[..RANDOM_LEN].copy_from_slice(&random);
            cid[SHARD_AT] = shard ^ mix(key, random);
            assert_eq!(shard_of(key, &cid, 256), Some(usize::from(shard)));
            let short = [&[0x40][..], &cid, &[0; 20]].concat();
            let long = [&[0xc0, 0, 0, 0, 1, 8][..], &cid, &[0; 20]].concat();
            assert_eq!(shard_of_datagram(key, &short, 256), usize::from(shard));
            assert_eq!(shard_of_datagram(key, &long, 256), usize::from(shard));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs many rounds, of which each does the same")]
    fn chosen_ids_spread_evenly() {
        let mut rng = SeededRng::new(4);
        let (key, _) = random_inputs(&mut rng);
        let mut hits = [0u32; 3];
        for _ in 0..30_000 {
            let mut cid = [0; 12];
            rng.fill(&mut cid);
            hits[shard_of(key, &cid, 3).unwrap()] += 1;
        }
        assert!(hits.iter().all(|count| (9_500..10_500).contains(count)), "{hits:?}");
    }

    #[test]
    fn what_cannot_be_read_goes_to_shard_0() {
        let key = [1, 2, 3, 4];
        assert_eq!(shard_of(key, &[7; 7], 4), None);
        assert_eq!(shard_of(key, &[7; 8], 0), None);
        for datagram in [
            &[][..],
            &[0xc0],
            &[0x40; 5],
            &[0xc0, 0, 0, 0, 1, 8, 9],
            &[0xff; 9],
            &[0xc0, 0, 0, 0, 1, 7, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        ] {
            assert_eq!(shard_of_datagram(key, datagram, 4), 0);
        }
    }
}
