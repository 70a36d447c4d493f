//! Data that is taken and not released yet.

use super::super::*;
use super::common::*;
use godwit_base::Time;
use godwit_wire::Frame;
use std::time::Duration;

const RTT: Duration = Duration::from_millis(30);

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// The client's stream with this number.
fn stream(index: u64) -> StreamId {
    id(Side::Client, BIDI, index)
}

/// The client sends so many bytes at an offset, and the end.
fn come(streams: &mut Streams, stream: StreamId, offset: u64, len: usize, fin: bool) {
    streams.on_stream(at(0), stream, offset, &vec![7; len], fin).unwrap();
}

/// Takes all there is, and says how much that was.
fn take_all(streams: &mut Streams, stream: StreamId) -> u64 {
    let mut taken = 0;
    while let Ok(ReadChunk::Data(data)) = streams.take(stream, 300) {
        taken += data.len() as u64;
    }
    taken
}

/// What is announced to the peer now.
fn announced(streams: &mut Streams) -> Vec<(Option<u64>, u64)> {
    let (payload, _) = send(streams, 1000);
    let limit = |frame| match frame {
        Frame::MaxData { limit } => Some((None, limit)),
        Frame::MaxStreamData { id, limit } => Some((Some(id.index()), limit)),
        _ => None,
    };
    frames(&payload).into_iter().filter_map(limit).collect()
}

#[test]
fn what_is_held_holds_the_peer_back_until_it_is_released() {
    // A window of 1000 bytes for each stream, and of 2500 for all.
    let mut streams = server();
    for index in 0..2 {
        come(&mut streams, stream(index), 0, 1000, false);
        assert_eq!(take_all(&mut streams, stream(index)), 1000);
    }
    assert_eq!(announced(&mut streams), []);
    streams.release(at(1000), RTT, stream(0), 499);
    assert_eq!(announced(&mut streams), [], "less than half a window");
    streams.release(at(1000), RTT, stream(0), 1);
    assert_eq!(announced(&mut streams), [(Some(0), 1500)]);
    streams.release(at(1000), RTT, stream(1), 1000);
    assert_eq!(announced(&mut streams), [(None, 4000), (Some(1), 2000)]);
}

#[test]
fn reading_and_releasing_is_as_reading_at_once() {
    let mut ends = [server(), server()];
    for step in 0..20 {
        for end in &mut ends {
            come(end, stream(0), step * 450, 450, false);
        }
        let [held, usual] = &mut ends;
        let now = at(1000 * step);
        while let Ok(ReadChunk::Data(data)) = held.take(stream(0), 200) {
            held.release(now, RTT, stream(0), data.len() as u64);
            assert_eq!(usual.read(now, RTT, stream(0), 200), Ok(ReadChunk::Data(data)));
        }
        assert_eq!(usual.read(now, RTT, stream(0), 200), Ok(ReadChunk::Blocked));
        assert_eq!(announced(held), announced(usual));
    }
    assert_eq!(ends[0].taken, 0);
}

#[test]
fn more_than_was_taken_is_not_released() {
    let mut streams = server();
    come(&mut streams, stream(0), 0, 1000, false);
    come(&mut streams, stream(1), 0, 1000, false);
    assert_eq!(take_all(&mut streams, stream(0)), 1000);
    streams.release(at(1000), RTT, stream(1), u64::MAX);
    assert_eq!((announced(&mut streams), streams.taken), (vec![], 1000), "it was not that stream's");
    streams.release(at(1000), RTT, stream(0), u64::MAX);
    assert_eq!(streams.taken, 0);
    assert_eq!(announced(&mut streams), [(Some(0), 2000)]);
    streams.release(at(1000), RTT, stream(0), u64::MAX);
    streams.release(at(1000), RTT, stream(3), u64::MAX);
    assert_eq!(announced(&mut streams), []);
}

#[test]
fn what_is_left_of_a_stream_that_is_over_is_released_as_well() {
    let mut streams = server();
    let unidirectional = id(Side::Client, UNI, 0);
    come(&mut streams, unidirectional, 0, 1000, true);
    come(&mut streams, stream(0), 0, 500, false);
    assert_eq!(take_all(&mut streams, unidirectional), 1000);
    assert!(streams.store.find(unidirectional).is_none(), "all of it has been read");
    assert_eq!(take_all(&mut streams, stream(0)), 500);
    assert!(announced(&mut streams).iter().all(|(id, _)| id.is_some()), "nothing for the connection");
    streams.release(at(1000), RTT, unidirectional, 1000);
    streams.release(at(1000), RTT, stream(0), 500);
    assert!(announced(&mut streams).contains(&(None, 4000)));
}

#[test]
fn a_stream_that_is_given_up_returns_what_was_not_taken_at_once_and_the_rest_later() {
    let mut streams = server();
    come(&mut streams, stream(0), 0, 1000, false);
    come(&mut streams, stream(1), 0, 1000, false);
    assert_eq!(streams.take(stream(0), 400).map(|_| ()), Ok(()));
    streams.stop_sending(stream(0), 0).unwrap();
    streams.on_reset_stream(at(1), stream(1), 5, 1000).unwrap();
    // 600 and 1000 of 2000 will not be read.
    assert_eq!(streams.window.consumed(), 1600);
    streams.release(at(1000), RTT, stream(0), 400);
    assert_eq!(streams.window.consumed(), 2000);
}

#[test]
fn what_there_is_to_read_is_said_with_its_offset_and_whether_it_is_all() {
    let mut streams = server();
    let now = |streams: &Streams| streams.readable(stream(0)).map(|it| (it.offset, it.len, it.ends));
    assert_eq!(now(&streams), None);
    come(&mut streams, stream(0), 10, 10, true);
    assert_eq!(now(&streams), Some((0, 0, false)), "the beginning is missing");
    come(&mut streams, stream(0), 0, 10, false);
    assert_eq!(now(&streams), Some((0, 20, true)));
    assert_eq!(streams.read(at(0), RTT, stream(0), 15), Ok(ReadChunk::Data(Bytes::from_static(&[7; 15]))));
    assert_eq!(now(&streams), Some((15, 5, true)));
    assert_eq!(streams.take(stream(0), 15), Ok(ReadChunk::Data(Bytes::from_static(&[7; 5]))));
    assert_eq!(now(&streams), Some((20, 0, true)));
    let own = streams.open(UNI).unwrap();
    assert_eq!(streams.readable(own), None, "nothing comes on it");
    come(&mut streams, stream(1), 0, 10, false);
    streams.on_reset_stream(at(0), stream(1), 5, 10).unwrap();
    assert_eq!(streams.readable(stream(1)).map(|it| (it.len, it.ends)), Some((0, false)));
}
