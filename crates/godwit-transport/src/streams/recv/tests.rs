#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;

fn receive(half: &mut RecvHalf, offset: u64, data: &[u8], fin: bool) -> Result<u64, TransportErrorCode> {
    let fresh = half.check(offset + data.len() as u64, fin).map_err(|error| error.code)?;
    half.on_data(Time::ZERO, offset, data, fin, fresh).map_err(|error| error.code)
}

fn read(half: &mut RecvHalf) -> Result<ReadChunk, ReadError> {
    half.read(Time::ZERO, Duration::ZERO, usize::MAX).map(|outcome| outcome.chunk)
}

#[test]
fn the_final_size_cannot_change() {
    let mut half = RecvHalf::new(100, 100);
    assert_eq!(receive(&mut half, 5, b"fghij", false), Ok(0));
    assert_eq!(receive(&mut half, 0, b"abc", true), Err(TransportErrorCode::FINAL_SIZE_ERROR));
    assert_eq!(receive(&mut half, 10, b"", true), Ok(0));
    assert_eq!(receive(&mut half, 9, b"xy", false), Err(TransportErrorCode::FINAL_SIZE_ERROR));
    assert_eq!(receive(&mut half, 10, b"x", true), Err(TransportErrorCode::FINAL_SIZE_ERROR));
    assert_eq!(half.check(9, true).map_err(|e| e.code), Err(TransportErrorCode::FINAL_SIZE_ERROR));
    assert_eq!(receive(&mut half, 0, b"abcde", false), Ok(0));
    assert_eq!(read(&mut half), Ok(ReadChunk::Data("abcdefghij".into())));
    assert_eq!(read(&mut half), Ok(ReadChunk::Finished));
    assert!(half.is_over());
}

#[test]
fn data_beyond_the_window_is_an_error() {
    let mut half = RecvHalf::new(10, 10);
    assert_eq!(receive(&mut half, 8, b"abc", false), Err(TransportErrorCode::FLOW_CONTROL_ERROR));
    assert_eq!(receive(&mut half, 8, b"ab", false), Ok(0));
}

#[test]
fn a_stopped_stream_counts_to_its_final_size() {
    let mut half = RecvHalf::new(100, 100);
    assert_eq!(receive(&mut half, 0, b"abcd", false), Ok(0));
    assert_eq!(half.stop(1), Some(4));
    assert_eq!(half.stop_frame(), Some(1));
    assert_eq!(receive(&mut half, 0, b"abcdef", false), Ok(2));
    assert!(!half.is_over());
    let fresh = half.check(20, true).unwrap();
    assert_eq!(half.on_reset(Time::ZERO, 3, fresh), Ok(14));
    assert!(half.is_over());
    assert_eq!(half.stop_frame(), None);
}

#[test]
fn a_reset_is_told_once_and_credits_what_was_not_read() {
    let mut half = RecvHalf::new(100, 100);
    assert_eq!(receive(&mut half, 0, b"abcd", false), Ok(0));
    assert!(half.take_news());
    let fresh = half.check(30, true).unwrap();
    assert_eq!(half.on_reset(Time::ZERO, 3, fresh), Ok(30));
    assert!(half.take_news(), "whoever has not read learns that there is nothing more to read");
    assert!(!half.take_news(), "once");
    assert_eq!(read(&mut half), Err(ReadError::Reset(3)));
    assert!(half.is_over());
}

#[test]
fn a_reset_after_all_data_is_ignored_but_not_before_the_end_is_known() {
    let mut half = RecvHalf::new(100, 100);
    assert_eq!(half.on_reset(Time::ZERO, 3, 0), Ok(0));
    assert_eq!(read(&mut half), Err(ReadError::Reset(3)));
    let mut half = RecvHalf::new(100, 100);
    assert_eq!(receive(&mut half, 0, b"abcd", true), Ok(0));
    assert_eq!(half.on_reset(Time::ZERO, 3, 0), Ok(0));
    assert_eq!(read(&mut half), Ok(ReadChunk::Data("abcd".into())));
    assert_eq!(read(&mut half), Ok(ReadChunk::Finished));
}

#[test]
fn readable_is_told_once_until_the_reader_waits() {
    let mut half = RecvHalf::new(100, 100);
    assert!(!half.take_news());
    receive(&mut half, 1, b"b", false).unwrap();
    assert!(!half.take_news(), "nothing in order");
    receive(&mut half, 0, b"a", false).unwrap();
    assert!(half.take_news());
    receive(&mut half, 2, b"c", false).unwrap();
    assert!(!half.take_news());
    assert_eq!(read(&mut half), Ok(ReadChunk::Data("abc".into())));
    assert_eq!(read(&mut half), Ok(ReadChunk::Blocked));
    assert!(!half.take_news());
    receive(&mut half, 3, b"", true).unwrap();
    assert!(half.take_news());
}

#[test]
fn a_reset_keeps_the_code_of_the_one_before() {
    let mut half = RecvHalf::new(100, 100);
    let code = |outcome: Result<u64, WireError>| outcome.map_err(|error| error.code);
    let fresh = half.check(30, true).unwrap();
    assert_eq!(code(half.on_reset_at(Time::ZERO, 7, fresh, 10)), Ok(20), "20 bytes are not waited for");
    let contradiction = Err(TransportErrorCode::STREAM_STATE_ERROR);
    assert_eq!(code(half.on_reset_at(Time::ZERO, 8, 0, 5)), contradiction);
    assert_eq!(code(half.on_reset(Time::ZERO, 8, 0)), contradiction);
    assert_eq!(code(half.on_reset_at(Time::ZERO, 7, 0, 5)), Ok(5));
    assert_eq!(code(half.on_reset(Time::ZERO, 7, 0)), Ok(5));
    assert_eq!(read(&mut half), Err(ReadError::Reset(7)));
}

#[test]
fn a_window_of_a_stream_allows_for_as_many_pieces_as_a_lossy_sender_needs() {
    assert_eq!([0, 600 * 1024 - 1, 600 * 1025, 600 * 2000].map(max_pieces), [1024, 1024, 1025, 2000]);
    assert_eq!([0, 600 * 4096, 600 * 4097].map(max_pieces_of_all), [8192, 8192, 8194]);
}
