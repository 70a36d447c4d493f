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
fn two_chunks_are_used_again_and_again_by_a_stream_that_is_read_as_it_comes() {
    let (mut assembler, mut places, mut offset) =
        (Assembler::default(), std::collections::BTreeSet::new(), 0);
    assembler.keep_last(true);
    for round in 0..200 {
        // More than a chunk at once, as a batch of packets may have.
        for _ in 0..64 {
            assembler.insert(offset, &bytes(offset..offset + 1400), 1).unwrap();
            offset += 1400;
        }
        while let Some(data) = assembler.read(usize::MAX) {
            let place = data.as_ptr() as usize;
            if round > 20 {
                places.insert(place >> 16);
            }
        }
        assert!(assembler.held() <= 2 * LARGEST_CHUNK as u64, "{}", assembler.held());
    }
    assert!(places.len() <= 4, "two chunks of 64 KiB, wherever they lie: {places:?}");
    assert!(assembler.held() > LARGEST_CHUNK as u64);
    assembler.keep_last(false);
    assert!(assembler.held() <= LARGEST_CHUNK as u64, "{}", assembler.held());
    assembler.keep_last(true);
    assembler.insert(offset, &[7; 2 * LARGEST_CHUNK], 1).unwrap();
    while assembler.read(usize::MAX).is_some() {}
    assembler.release_memory();
    assert_eq!(assembler.held(), 0);
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

#[test]
fn a_read_takes_no_more_than_was_asked_for_and_nothing_of_the_next_chunk() {
    let mut assembler = Assembler::default();
    assembler.insert(0, &bytes(0..600), 0).unwrap();
    assembler.insert(600, &bytes(600..1200), 0).unwrap();
    let mut read = 0;
    for (max, len) in [(0, 1), (99, 99), (499, 499), (2, 1), (599, 599), (2, 1)] {
        let data = assembler.read(max).unwrap();
        assert_eq!(data, bytes(read..read + len), "{max} bytes from {read} on");
        read += len;
        assert_eq!(assembler.offset(), read);
    }
    assert_eq!(assembler.read(1), None);
}

#[test]
fn slices_below_512_bytes_are_copied_out_of_chunks_eight_times_their_size() {
    for (len, allocated, copied) in [
        (511, 8 * 511, true),
        (511, 8 * 511 - 1, false),
        (512, LARGEST_CHUNK, false),
        (32, 256, false),
        (1, 256, false),
        (1, 257, true),
    ] {
        assert_eq!(pins_too_much(len, allocated), copied, "{len} of {allocated}");
    }
}

/// The number of pieces when these have come, each an offset and a length.
fn pieces(come: &[(u64, u64)]) -> usize {
    let mut assembler = Assembler::default();
    for &(at, len) in come {
        assembler.insert(at, &bytes(at..at + len), usize::MAX).unwrap();
    }
    let stored: u64 = assembler.pieces.values().map(|piece| piece.len() as u64).sum();
    assert_eq!(assembler.held(), stored + 128 * assembler.pieces() as u64);
    for (&start, piece) in &assembler.pieces {
        assert_eq!(&piece[..], bytes(start..end_of(start, piece)));
    }
    assembler.pieces()
}

#[test]
fn pieces_grow_at_their_ends_to_64_kib_and_no_further() {
    for (len, more, expected) in [(65_535, 1, 1), (65_535, 2, 2), (65_536, 1, 2)] {
        assert_eq!(pieces(&[(1, len), (1 + len, more)]), expected, "{len} and {more}");
        let expected = expected + 1;
        assert_eq!(pieces(&[(1, len), (100_000, 1), (1 + len, more)]), expected, "not the last");
    }
}

#[test]
fn a_piece_takes_over_the_next_if_that_is_of_a_kibibyte_at_most_and_fits() {
    for (len, next, expected) in [(1000, 1024, 1), (1000, 1025, 2), (64_536, 1000, 1), (64_536, 1001, 2)] {
        let first = 100_000 - len;
        assert_eq!(pieces(&[(100_000, next), (first, len)]), expected, "{len} before {next}");
    }
}

#[test]
fn a_piece_that_is_covered_to_its_end_is_replaced() {
    assert_eq!(pieces(&[(5000, 2000), (4000, 3000)]), 1);
    assert_eq!(pieces(&[(5000, 2000), (4000, 3001)]), 1);
    assert_eq!(pieces(&[(5000, 2000), (4000, 2999)]), 2, "its last byte stays where it is");
    assert_eq!(pieces(&[(5000, 2000), (8000, 2000), (4000, 6000)]), 1);
}
