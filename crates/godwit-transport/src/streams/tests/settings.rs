//! What the application sets while the connection lives: limits on streams, windows and the send buffer.

use super::super::*;
use super::common::*;
use crate::WindowReserve;
use godwit_base::Time;
use godwit_wire::Frame;
use std::time::Duration;

const MIB: u64 = 1 << 20;

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// Reads all that a stream has, with a round-trip time of nothing.
fn read_all(streams: &mut Streams, now: Time, id: StreamId) -> usize {
    let mut read = 0;
    while let Ok(ReadChunk::Data(data)) = streams.read(now, Duration::ZERO, id, usize::MAX) {
        read += data.len();
    }
    read
}

#[test]
fn more_streams_are_announced_and_fewer_are_not() {
    let mut streams = server();
    streams.set_max_streams(UNI, 4);
    streams.set_max_streams(UNI, 3);
    assert_eq!(streams.interest(), Interest::default());
    streams.set_max_streams(UNI, 5);
    let (payload, _) = send(&mut streams, 100);
    assert_eq!(frames(&payload), [Frame::MaxStreams { direction: UNI, limit: 5 }]);
    streams.set_max_streams(BIDI, 6);
    let (payload, _) = send(&mut streams, 100);
    assert_eq!(frames(&payload), [Frame::MaxStreams { direction: BIDI, limit: 6 }]);
}

#[test]
fn windows_of_streams_and_of_the_connection_grow_as_far_as_is_set() {
    let mut streams = server();
    let stream = id(Side::Client, UNI, 0);
    streams.on_stream(NOW, stream, 0, &[7; 1000], false).unwrap();
    streams.set_max_windows(1500, 3000);
    let late = id(Side::Client, UNI, 1);
    streams.on_stream(NOW, late, 0, &[7; 1000], false).unwrap();
    assert_eq!(read_all(&mut streams, NOW, stream) + read_all(&mut streams, NOW, late), 2000);
    let (payload, _) = send(&mut streams, 100);
    let limits = [
        Frame::MaxData { limit: 2000 + 3000 },
        Frame::MaxStreamData { id: stream, limit: 1000 + 1500 },
        Frame::MaxStreamData { id: late, limit: 1000 + 1500 },
    ];
    assert_eq!(frames(&payload), limits, "twice as large, had it been permitted");
}

#[test]
fn the_window_of_a_connection_that_is_to_hold_little_does_not_grow_as_set_before_it_may_hold_more() {
    let mut streams = server();
    streams.hold_little(true);
    streams.set_max_windows(1000, 5000);
    for (index, little, size) in [(0, true, 2500), (2, false, 5000)] {
        streams.hold_little(little);
        for index in index..index + 2 {
            let stream = id(Side::Client, UNI, index);
            streams.on_stream(NOW, stream, 0, &[7; 1000], false).unwrap();
            assert_eq!(read_all(&mut streams, NOW, stream), 1000);
        }
        assert_eq!(streams.window.size(), size);
    }
}

#[test]
fn the_send_buffer_can_be_set() {
    let mut streams = server();
    assert_eq!(streams.ideal_buffer_of_all(), 100_000);
    streams.set_send_buffer(50_000, 1 << 20);
    assert_eq!(streams.ideal_buffer_of_all(), 50_000);
    streams.set_send_buffer(1 << 20, 100_000);
    assert_eq!(streams.ideal_buffer_of_all(), 400_000, "four congestion windows");
    let stream = streams.open(UNI).unwrap();
    assert_eq!(streams.write(stream, vec![0; 1 << 20].into()), Ok(400_000));
}

#[test]
fn who_watches_is_told_when_the_figure_is_off_by_more_than_a_quarter() {
    let mut streams = Streams::new(Side::Server, &TransportConfig { send_buffer: 1 << 40, ..config() });
    streams.watch_ideal_buffer(20 * MIB);
    for (wanted, told) in [(25 * MIB, false), (15 * MIB, false), (25 * MIB + 4, true)] {
        streams.on_congestion_window(wanted / 4);
        assert_eq!(streams.ideal_buffer_of_all(), wanted);
        assert_eq!(events(&mut streams).contains(&Event::IdealBufferChanged), told, "{wanted}");
    }
}

/// What the window of a stream may grow to with a connection window of this size.
fn max_stream_window(connection: u64, shared: bool) -> u64 {
    let config = TransportConfig { max_stream_window: 192 * MIB, ..TransportConfig::default() };
    let mut streams = Streams::new(Side::Server, &config);
    if shared {
        streams.share(&WindowReserve::new(320 * MIB));
    }
    streams.window = ReceiveWindow::new(connection, 192 * MIB);
    streams.max_stream_window()
}

#[test]
fn of_a_shared_window_a_stream_has_five_sixths_or_what_each_has_for_itself() {
    assert_eq!(max_stream_window(MIB, true), 16 * MIB);
    assert_eq!(max_stream_window(96 * MIB, true), 80 * MIB);
    assert_eq!(max_stream_window(600 * MIB, true), 192 * MIB, "never more than was set");
    assert_eq!(max_stream_window(MIB, false), 192 * MIB, "nothing is shared");
}

#[test]
fn who_begins_with_more_than_its_own_has_it_for_itself() {
    let reserve = WindowReserve::new(320 * MIB);
    for (initial, shared) in [(32 * MIB, true), (32 * MIB + 1, false)] {
        let config = TransportConfig { initial_connection_window: initial, ..TransportConfig::default() };
        let mut streams = Streams::new(Side::Server, &config);
        streams.share(&reserve);
        assert_eq!(streams.share.is_attached(), shared, "{initial}");
    }
}

/// A connection that shares its window of 20 MiB, with 10 MiB less 1000 bytes of it used up, so that it doubles when the
/// application has read 1000 more. A stream has read half of its window, which is of 1 MiB, and is held back by it.
fn about_to_double() -> (Streams, StreamId) {
    let config = TransportConfig {
        initial_stream_window: MIB,
        max_stream_window: 192 * MIB,
        initial_connection_window: 20 * MIB,
        max_connection_window: 192 * MIB,
        max_uni_streams: 20,
        ..TransportConfig::default()
    };
    let mut streams = Streams::new(Side::Server, &config);
    streams.share(&WindowReserve::new(320 * MIB));
    let stream = id(Side::Client, UNI, 0);
    streams.on_stream(NOW, stream, 0, &vec![7; 512 << 10], false).unwrap();
    // Slowly: its own window does not grow by that.
    assert_eq!(read_all(&mut streams, at(10), stream), 512 << 10);
    streams.on_stream(NOW, stream, 512 << 10, &vec![7; 256 << 10], false).unwrap();
    for (index, size) in (1..).zip([MIB; 9].into_iter().chain([(512 << 10) - 1000])) {
        let discarded = id(Side::Client, UNI, index);
        streams.on_reset_stream(NOW, discarded, 0, size).unwrap();
        streams.stop_sending(discarded, 0).unwrap();
    }
    send(&mut streams, 1000);
    assert_eq!((streams.window.consumed(), streams.window.size()), (10 * MIB - 1000, 20 * MIB));
    (streams, stream)
}

/// What a stream is permitted that says that it is held back.
fn permitted_when_held_back(streams: &mut Streams, stream: StreamId) -> u64 {
    take(streams, Frame::StreamDataBlocked { id: stream, limit: MIB }).unwrap();
    let (payload, _) = send(streams, 1000);
    let limits: Vec<u64> = frames(&payload)
        .iter()
        .filter_map(|frame| match frame {
            Frame::MaxStreamData { limit, .. } => Some(*limit),
            _ => None,
        })
        .collect();
    assert_eq!(limits.len(), 1, "{payload:?}");
    limits[0] - (512 << 10)
}

#[test]
fn the_windows_of_streams_grow_no_further_than_that_of_the_connection_and_follow_it() {
    let (mut streams, stream) = about_to_double();
    assert_eq!(permitted_when_held_back(&mut streams, stream), 20 * MIB / 6 * 5);

    let (mut streams, stream) = about_to_double();
    let other = id(Side::Client, UNI, 11);
    streams.on_stream(NOW, other, 0, &[7; 1000], false).unwrap();
    assert_eq!(read_all(&mut streams, NOW, other), 1000);
    assert_eq!(streams.window.size(), 32 * MIB);
    assert_eq!(permitted_when_held_back(&mut streams, stream), 32 * MIB / 6 * 5, "it was read");

    let (mut streams, stream) = about_to_double();
    let sent = 20 * MIB - streams.window.received();
    for (index, size) in (11..).zip(vec![MIB; (sent / MIB) as usize]) {
        streams.on_reset_stream(NOW, id(Side::Client, UNI, index), 0, size).unwrap();
    }
    take(&mut streams, Frame::DataBlocked { limit: 20 * MIB }).unwrap();
    assert_eq!(streams.window.size(), 32 * MIB);
    assert_eq!(
        permitted_when_held_back(&mut streams, stream),
        32 * MIB / 6 * 5,
        "the peer said that it is held back"
    );
}

#[test]
fn a_peer_that_is_held_back_on_the_connection_is_permitted_more_at_once() {
    let mut streams =
        Streams::new(Side::Server, &TransportConfig { max_connection_window: 1 << 20, ..config() });
    let ids = [0, 1].map(|index| id(Side::Client, UNI, index));
    for stream in ids {
        streams.on_stream(NOW, stream, 0, &[7; 1000], false).unwrap();
        assert_eq!(read_all(&mut streams, at(100), stream), 1000);
    }
    send(&mut streams, 1000);
    take(&mut streams, Frame::DataBlocked { limit: 2500 }).unwrap();
    let (payload, _) = send(&mut streams, 1000);
    assert_eq!(frames(&payload), [Frame::MaxData { limit: 2000 + 32 * 2500 }]);
    take(&mut streams, Frame::DataBlocked { limit: 2500 }).unwrap();
    assert_eq!(streams.interest(), Interest::default(), "once for each limit");
}

#[test]
fn a_peer_that_could_open_more_streams_hears_of_those_that_have_finished() {
    let mut config = config();
    config.max_uni_streams = 32;
    let mut streams = Streams::new(Side::Server, &config);
    let first = id(Side::Client, UNI, 0);
    streams.on_stream(NOW, first, 0, b"x", true).unwrap();
    read_all(&mut streams, NOW, first);
    assert_eq!(streams.interest(), Interest::default(), "one alone is not worth a frame");
    take(&mut streams, Frame::StreamsBlocked { direction: BIDI, limit: 4 }).unwrap();
    assert_eq!(streams.interest(), Interest::default(), "none of this direction has finished");
    take(&mut streams, Frame::StreamsBlocked { direction: UNI, limit: 32 }).unwrap();
    let (payload, _) = send(&mut streams, 100);
    assert_eq!(frames(&payload), [Frame::MaxStreams { direction: UNI, limit: 33 }]);
}
