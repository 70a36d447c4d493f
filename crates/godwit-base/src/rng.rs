//! Randomness is injected: the engine hands in the operating system's, the simulator a seeded one.

/// A source of random bytes.
///
/// In production it must be cryptographically strong: connection ids, packet-number skips and path
/// challenges are drawn from it.
pub trait Rng {
    /// Fills `buffer` with random bytes.
    fn fill(&mut self, buffer: &mut [u8]);

    /// A random 64-bit number.
    fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// A random number below `bound` (0 if `bound` is 0). The bias is below 2^-32 for bounds below 2^32.
    fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.next_u64()) * u128::from(bound);
        (wide >> 64) as u64
    }
}

impl<R: Rng + ?Sized> Rng for Box<R> {
    fn fill(&mut self, buffer: &mut [u8]) {
        (**self).fill(buffer);
    }
}

/// A small, fast, repeatable generator (xoshiro256++), for simulations and tests only.
#[derive(Debug, Clone)]
pub struct SeededRng {
    state: [u64; 4],
}

impl SeededRng {
    /// A generator whose whole output follows from `seed`.
    pub fn new(seed: u64) -> Self {
        let mut mix = seed;
        let state = [(); 4].map(|()| splitmix(&mut mix));
        SeededRng { state }
    }

    fn step(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let out = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let t = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= t;
        *d = d.rotate_left(45);
        out
    }
}

impl Rng for SeededRng {
    fn fill(&mut self, buffer: &mut [u8]) {
        for chunk in buffer.chunks_mut(8) {
            let bytes = self.step().to_le_bytes();
            let (bytes, _) = bytes.split_at(chunk.len());
            chunk.copy_from_slice(bytes);
        }
    }

    fn next_u64(&mut self) -> u64 {
        self.step()
    }
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_same_bytes() {
        let (mut a, mut b) = (SeededRng::new(7), SeededRng::new(7));
        let (mut x, mut y) = ([0; 37], [0; 37]);
        a.fill(&mut x);
        b.fill(&mut y);
        assert_eq!(x, y);
        assert_ne!(SeededRng::new(8).next_u64(), SeededRng::new(7).next_u64());
    }

    #[test]
    fn below_stays_below() {
        let mut rng = SeededRng::new(1);
        let times = if cfg!(miri) { 100 } else { 10_000 };
        assert!((0..times).all(|_| rng.below(7) < 7));
        assert_eq!(rng.below(0), 0);
    }
}
