//! Inputs made of a corpus by chance that can be repeated: the smoke test of the ordinary test run, which needs neither
//! a nightly compiler nor a fuzzer. A fuzzer finds more; this finds what a change has just broken.

/// The input of a round: a seed, changed at a few places.
pub fn mutated(seeds: &[Vec<u8>], round: u64) -> Vec<u8> {
    let mut chance = Chance(round);
    let mut bytes = seeds[chance.below(seeds.len())].clone();
    for _ in 0..=chance.below(4) {
        let at = chance.below(bytes.len() + 1);
        match chance.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
            1 if at < bytes.len() => bytes[at] = EXTREME[chance.below(EXTREME.len())],
            2 => bytes.insert(at, chance.below(256) as u8),
            3 if at < bytes.len() => drop(bytes.remove(at)),
            4 => bytes.truncate(at),
            5 => {
                let again = bytes[at..].to_vec();
                bytes.extend(again.into_iter().take(256));
            }
            _ => {
                let other = &seeds[chance.below(seeds.len())];
                bytes.truncate(at);
                bytes.extend_from_slice(&other[chance.below(other.len() + 1)..]);
            }
        }
    }
    bytes
}

/// How many rounds a smoke test plays: seconds in ordinary runs, minutes where `GODWIT_FULL` asks for more.
pub fn rounds() -> u64 {
    if std::env::var_os("GODWIT_FULL").is_some() { 250_000 } else { 50_000 }
}

/// Bytes at which something changes in the encodings of QUIC and HTTP/3.
const EXTREME: [u8; 10] = [0x00, 0x01, 0x3f, 0x40, 0x7f, 0x80, 0xbf, 0xc0, 0xfe, 0xff];

/// SplitMix64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }
}
