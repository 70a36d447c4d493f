//! A sketch as bytes: the number of bins with something in them, then for each the distance from the bin before
//! and its count. All are variable-length integers of 7 bits a byte, least significant first.
//!
//! The same counters give the same bytes. Decoding accepts only what encoding writes and holds no more than
//! [`super::BINS`] counters, whatever the bytes say.

use super::{BINS, Sketch};

pub(crate) fn write_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Takes one integer from the front of `bytes`.
pub(crate) fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return None;
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

impl Sketch {
    /// Appends the sketch to `bytes`.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        write_varint(bytes, self.bins().count() as u64);
        let mut next = 0;
        for (bin, count) in self.bins() {
            write_varint(bytes, u64::from(bin - next));
            write_varint(bytes, count);
            next = bin + 1;
        }
    }

    /// Takes one sketch from the front of `bytes`; `None` if there is none.
    pub fn decode(bytes: &mut &[u8]) -> Option<Sketch> {
        let number = read_varint(bytes)?;
        if number > BINS as u64 {
            return None;
        }
        let mut sketch = Sketch::new();
        let mut next = 0_u64;
        for _ in 0..number {
            let bin = next.checked_add(read_varint(bytes)?).filter(|&bin| bin < BINS as u64)?;
            let count = read_varint(bytes).filter(|&count| count > 0)?;
            sketch.add(bin as u16, count);
            next = bin + 1;
        }
        Some(sketch)
    }
}
