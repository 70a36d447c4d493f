//! Which bin a value belongs to.
//!
//! Bin 0 holds the value 0. Bin `i` > 0 holds the whole microseconds from `GAMMA^(i-1)` to before `GAMMA^i`, so that
//! the value in the relative middle is at most 1 % from everything in the bin. The bounds are made by repeated
//! multiplication, which gives the same bits on every machine: sketches of different machines merge exactly.
//!
//! A logarithm per value is avoided: values that share their highest bit and the six bits after it differ by
//! less than a factor of 1 + 1/64, which is less than `GAMMA`, so that they lie in one bin or in two neighbours.

/// The growth of the bins for a relative error of 1 %: (1 + 0.01) / (1 - 0.01).
const GAMMA: f64 = 1.01 / 0.99;

/// The highest value that is told apart, in microseconds: 12 days.
pub const MAX_MICROS: u64 = (1 << 40) - 1;

/// How many bins there are.
pub const COUNT: usize = 1388;

/// Bits after the highest one that choose the slot.
const FINE: u32 = 6;
const SLOTS: usize = 40 << FINE;

struct Map {
    /// The first whole value of the bin after each bin.
    ends: [u64; COUNT],
    /// The bin of the lowest value of each slot.
    slots: [u16; SLOTS],
}

static MAP: Map = build();

#[expect(clippy::indexing_slicing, reason = "it runs when this is compiled, and would fail there")]
const fn build() -> Map {
    let mut ends = [u64::MAX; COUNT];
    ends[0] = 1;
    let mut bound = 1.0_f64;
    let mut bin = 1;
    while bin < COUNT {
        bound *= GAMMA;
        ends[bin] = ceiling(bound);
        bin += 1;
    }
    let mut slots = [0; SLOTS];
    let mut slot = 0;
    let mut bin = 0;
    while slot < SLOTS {
        let lowest = lowest_of(slot);
        while ends[bin] <= lowest {
            bin += 1;
        }
        slots[slot] = bin as u16;
        slot += 1;
    }
    Map { ends, slots }
}

const fn ceiling(value: f64) -> u64 {
    let whole = value as u64;
    if (whole as f64) < value { whole + 1 } else { whole }
}

/// The lowest whole value of a slot.
const fn lowest_of(slot: usize) -> u64 {
    let exponent = (slot >> FINE) as u32;
    let mantissa = (1 << FINE) | (slot as u64 & ((1 << FINE) - 1));
    if exponent >= FINE {
        mantissa << (exponent - FINE)
    } else {
        // Below 64 a slot is narrower than 1: only those that begin at a whole number are used.
        mantissa.div_ceil(1 << (FINE - exponent))
    }
}

/// The bin of a value in microseconds.
#[inline]
pub fn bin_of(micros: u64) -> u16 {
    if micros == 0 {
        return 0;
    }
    let value = if micros > MAX_MICROS { MAX_MICROS } else { micros };
    let exponent = value.ilog2();
    let fine = (value << (63 - exponent) >> (63 - FINE)) as usize & ((1 << FINE) - 1);
    let slot = ((exponent as usize) << FINE) | fine;
    let bin = MAP.slots.get(slot).copied().unwrap_or(0);
    let end = MAP.ends.get(usize::from(bin)).copied().unwrap_or(u64::MAX);
    bin + u16::from(value >= end)
}

/// The value that stands for a bin, in microseconds: at most 1 % from every value in it.
pub fn value_of(bin: u16) -> f64 {
    if bin == 0 { 0.0 } else { GAMMA.powi(i32::from(bin) - 1) * (2.0 * GAMMA / (1.0 + GAMMA)) }
}
