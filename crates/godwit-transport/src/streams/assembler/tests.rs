#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use proptest::prelude::*;

fn byte_at(offset: u64) -> u8 {
    (offset * 11 + offset / 253) as u8
}

fn bytes(range: Range<u64>) -> Vec<u8> {
    range.map(byte_at).collect()
}

#[derive(Debug, Clone)]
enum Op {
    Insert(u64, u64),
    Read(usize),
}

fn ops(span: u64, longest: u64) -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        5 => (0..span, 0..longest).prop_map(|(at, len)| Op::Insert(at, len)),
        1 => (0usize..2000).prop_map(Op::Read),
    ];
    prop::collection::vec(op, 0..150)
}

fn agrees(ops: Vec<Op>) -> Result<(), TestCaseError> {
    let (mut assembler, mut model) = (Assembler::default(), godwit_base::IntervalSet::new());
    let mut read = 0;
    for op in ops {
        match op {
            Op::Insert(at, len) => {
                let data = at..at + len;
                let known = model.iter().any(|held| held.start <= data.start && held.end >= data.end);
                prop_assert_eq!(assembler.knows(data.clone()), known || data.is_empty());
                prop_assert!(assembler.insert(at, &bytes(at..at + len), usize::MAX).is_ok());
                model.insert(at..at + len);
            }
            Op::Read(max) => {
                let got = assembler.read(max);
                let got = got.as_deref().unwrap_or_default();
                prop_assert!(got.len() <= max.max(1));
                prop_assert_eq!(got, bytes(read..read + got.len() as u64));
                read += got.len() as u64;
            }
        }
        let ready = model.first().filter(|first| first.start == 0).map_or(0, |first| first.end);
        prop_assert_eq!((assembler.offset(), assembler.ready()), (read, ready));
        let in_order: usize = assembler.full.iter().map(Bytes::len).sum();
        prop_assert_eq!(in_order + assembler.chunk.len(), (ready - read) as usize);
        let mut last = ready;
        let mut stored = godwit_base::IntervalSet::new();
        for (&start, piece) in &assembler.pieces {
            prop_assert!(start >= last && start > ready && !piece.is_empty());
            last = end_of(start, piece);
            prop_assert_eq!(&piece[..], bytes(start..last));
            stored.insert(start..last);
        }
        prop_assert!(model.iter().filter(|range| range.start > 0 || ready == 0).eq(stored.iter()));
    }
    Ok(())
}

proptest! {
    #[test]
    fn agrees_with_a_model_on_small_frames(ops in ops(120, 12)) {
        agrees(ops)?;
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn agrees_with_a_model_on_large_frames(ops in ops(200_000, 40_000)) {
        agrees(ops)?;
    }
}

#[test]
fn a_small_stream_takes_a_small_chunk_and_a_big_one_grows_to_the_largest() {
    let mut assembler = Assembler::default();
    assembler.insert(0, &[7; 512], 0).unwrap();
    assert_eq!(assembler.allocated, 512);
    for packet in 0..1000u64 {
        assembler.insert(512 + packet * 1200, &[7; 1200], 0).unwrap();
        while assembler.read(4096).is_some() {}
    }
    assert_eq!(assembler.allocated as usize, LARGEST_CHUNK);
}

#[test]
fn a_chunk_is_used_again_when_its_slices_are_gone() {
    let mut assembler = Assembler::default();
    let (mut at, mut places) = (0, std::collections::BTreeSet::new());
    for packet in 0..2000u64 {
        assembler.insert(at, &[7; 1200], 0).unwrap();
        at += 1200;
        while let Some(data) = assembler.read(usize::MAX) {
            if packet >= 200 {
                places.insert(data.as_ptr() as usize >> 16);
            }
        }
    }
    assert!(places.len() <= 2, "one chunk of 64 KiB, wherever it lies: {places:?}");
}

#[test]
fn a_small_slice_does_not_pin_a_large_chunk() {
    let mut assembler = Assembler::default();
    assembler.insert(0, &vec![7; LARGEST_CHUNK], 0).unwrap();
    let chunk = assembler.chunk.as_ptr() as usize;
    let inside = |data: &Bytes| (chunk..chunk + LARGEST_CHUNK).contains(&(data.as_ptr() as usize));
    assert!(!inside(&assembler.read(1).unwrap()));
    assert!(inside(&assembler.read(2000).unwrap()));
}

#[test]
fn losing_every_other_packet_of_a_window_is_within_the_cap() {
    let mut assembler = Assembler::default();
    let cap = super::super::recv::max_pieces(16 << 20);
    for packet in (1..(16 << 20) / 1200).step_by(2) {
        assembler.insert(packet * 1200, &[7; 1200], cap).unwrap();
    }
    for packet in (0..(16 << 20) / 1200).step_by(2) {
        assembler.insert(packet * 1200, &[7; 1200], cap).unwrap();
    }
    assert_eq!(assembler.pieces(), 0);
}

#[test]
fn gaps_beyond_the_cap_are_refused() {
    let mut assembler = Assembler::default();
    let outcome: Vec<_> = (0..5u64).map(|at| assembler.insert(at * 2 + 1, &[7], 4).is_ok()).collect();
    assert_eq!(outcome, [true, true, true, true, false]);
}

#[test]
fn pieces_in_reverse_order_are_joined() {
    let mut assembler = Assembler::default();
    for at in (1..5000u64).rev() {
        assembler.insert(at, &[byte_at(at)], usize::MAX).unwrap();
    }
    assert!(assembler.pieces() <= 5);
    assembler.insert(0, &[byte_at(0)], usize::MAX).unwrap();
    let mut all = Vec::new();
    while let Some(data) = assembler.read(usize::MAX) {
        all.extend_from_slice(&data);
    }
    assert_eq!(all, bytes(0..5000));
}
