//! Randomness of the operating system's strength.

use godwit_base::Rng;

const BUFFER: usize = 512;

/// A cryptographically strong source, seeded by the operating system. Small requests are served from a
/// buffer, whose bytes are overwritten as they are given.
pub struct OsRng {
    buffer: Box<[u8; BUFFER]>,
    used: usize,
}

impl Default for OsRng {
    fn default() -> Self {
        Self::new()
    }
}

impl OsRng {
    /// A source with nothing in its buffer.
    pub fn new() -> Self {
        OsRng { buffer: Box::new([0; BUFFER]), used: BUFFER }
    }
}

impl std::fmt::Debug for OsRng {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OsRng").finish_non_exhaustive()
    }
}

impl Rng for OsRng {
    /// # Panics
    /// If the operating system has no randomness to give: there is no going on without.
    fn fill(&mut self, buffer: &mut [u8]) {
        if buffer.len() > BUFFER / 4 {
            return strong(buffer);
        }
        if BUFFER - self.used < buffer.len() {
            strong(self.buffer.as_mut_slice());
            self.used = 0;
        }
        let Some(given) = self.buffer.get_mut(self.used..self.used + buffer.len()) else { return };
        buffer.copy_from_slice(given);
        given.fill(0);
        self.used += buffer.len();
    }
}

#[expect(clippy::expect_used, reason = "without randomness nothing may go on")]
fn strong(buffer: &mut [u8]) {
    godwit_transport::tls::fill_random(buffer).expect("the operating system gives randomness");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_all_sizes_are_filled_and_differ() {
        let mut rng = OsRng::new();
        let mut seen = std::collections::BTreeSet::new();
        for round in 0..2000 {
            let mut bytes = [0; 600];
            let len = 8 + round % 590;
            rng.fill(&mut bytes[..len]);
            assert!(seen.insert(bytes[..8].to_vec()), "repeated in round {round}");
            assert!(bytes[len..].iter().all(|byte| *byte == 0));
        }
    }
}
