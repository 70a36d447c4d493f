#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use proptest::prelude::*;

fn sketch_of(values: &[u64]) -> Sketch {
    let mut sketch = Sketch::new();
    values.iter().for_each(|&value| sketch.record(value));
    sketch
}

/// Values of every magnitude alike.
fn micros() -> impl Strategy<Value = u64> {
    (0_u32..41, any::<u64>()).prop_map(|(bits, value)| value & ((1 << bits) - 1))
}

#[test]
fn the_bins_reach_to_the_highest_value_and_no_further() {
    assert_eq!(usize::from(bin_of(MAX_MICROS)), BINS - 1);
    assert_eq!(bin_of(u64::MAX), bin_of(MAX_MICROS));
    assert_eq!(bin_of(0), 0);
    assert_eq!(bin_of(1), 1);
}

#[test]
fn neighbouring_values_never_go_down_a_bin() {
    let mut last = 0;
    for value in 0..3_000_000 {
        let bin = bin_of(value);
        assert!(bin >= last, "{value}");
        assert!((value_of(bin) - value as f64).abs() <= value as f64 * 0.010_000_1, "{value}");
        last = bin;
    }
}

#[test]
fn an_empty_sketch_has_no_quantiles() {
    assert_eq!(Sketch::new().quantile(0.5), None);
    let mut bytes = Vec::new();
    Sketch::new().encode(&mut bytes);
    assert_eq!(bytes, [0]);
}

#[test]
fn hostile_bytes_are_refused() {
    let mut wide = Vec::new();
    write_varint(&mut wide, 1);
    write_varint(&mut wide, BINS as u64);
    write_varint(&mut wide, 1);
    let mut many = Vec::new();
    write_varint(&mut many, u64::MAX);
    let mut nothing = Vec::new();
    [1, 0, 0].iter().for_each(|&value| write_varint(&mut nothing, value));
    for bytes in [&wide[..], &many, &nothing, &[0x80; 12], &[]] {
        assert_eq!(Sketch::decode(&mut &bytes[..]), None, "{bytes:?}");
    }
}

proptest! {
    #[test]
    fn a_value_is_at_most_one_percent_from_its_bin(value in micros()) {
        let error = (value_of(bin_of(value)) - value as f64).abs();
        prop_assert!(error <= value as f64 * (RELATIVE_ERROR + 1e-9));
    }

    #[test]
    fn quantiles_are_within_one_percent(mut values in prop::collection::vec(micros(), 1..400), q in 0.0..=1.0_f64) {
        let estimate = sketch_of(&values).quantile(q).unwrap();
        values.sort_unstable();
        let exact = values[(q * (values.len() - 1) as f64).floor() as usize] as f64;
        prop_assert!((estimate - exact).abs() <= exact * (RELATIVE_ERROR + 1e-9), "{estimate} for {exact}");
    }

    #[test]
    fn merging_parts_gives_the_whole_in_any_order(values in prop::collection::vec(micros(), 0..200), cut in 0_usize..200) {
        let (front, back) = values.split_at(cut.min(values.len()));
        let whole = sketch_of(&values);
        let mut merged = sketch_of(front);
        merged.merge(&sketch_of(back));
        let mut reversed = sketch_of(back);
        reversed.merge(&sketch_of(front));
        prop_assert_eq!(&merged, &whole);
        prop_assert_eq!(&reversed, &whole);
        prop_assert_eq!(whole.count(), values.len() as u64);
        let (mut one, mut other) = (Vec::new(), Vec::new());
        merged.encode(&mut one);
        whole.encode(&mut other);
        prop_assert_eq!(one, other);
    }

    #[test]
    fn bytes_come_back_as_the_sketch(values in prop::collection::vec(micros(), 0..200)) {
        let sketch = sketch_of(&values);
        let mut bytes = Vec::new();
        sketch.encode(&mut bytes);
        let mut rest = &bytes[..];
        prop_assert_eq!(Sketch::decode(&mut rest), Some(sketch));
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn any_bytes_are_taken_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Some(sketch) = Sketch::decode(&mut &bytes[..]) {
            let mut again = Vec::new();
            sketch.encode(&mut again);
            prop_assert!(again.len() <= bytes.len());
        }
    }
}
