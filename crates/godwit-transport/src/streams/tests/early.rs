//! Streams used before the handshake is complete, and what becomes of them when the server rejects that.

use super::super::*;
use super::common::*;
use crate::part::Part;
use godwit_wire::Frame;

/// Limits of a server: so much data in all, and so many streams of either direction with 1000 bytes each.
fn limits(data: u64, bidirectional: u64, unidirectional: u64) -> TransportParameters {
    TransportParameters {
        initial_max_data: data,
        initial_max_stream_data_bidi_remote: 1000,
        initial_max_stream_data_uni: 1000,
        initial_max_streams_bidi: bidirectional,
        initial_max_streams_uni: unidirectional,
        ..TransportParameters::default()
    }
}

/// The streams of which data goes out now, in order.
fn sends(streams: &mut Streams) -> Vec<StreamId> {
    let mut ids = Vec::new();
    loop {
        let (payload, _) = send(streams, 100);
        if payload.is_empty() {
            return ids;
        }
        ids.extend(frames(&payload).into_iter().filter_map(|frame| match frame {
            Frame::Stream { id, .. } => Some(id),
            _ => None,
        }));
    }
}

#[test]
fn a_stream_is_early_if_the_peer_opened_it_with_early_data() {
    let mut streams = server();
    let (early, usual) = (id(Side::Client, UNI, 0), id(Side::Client, UNI, 1));
    streams.set_receiving_early(true);
    let own = streams.open(UNI).unwrap();
    streams.on_stream(NOW, early, 0, b"x", false).unwrap();
    streams.set_receiving_early(false);
    streams.on_stream(NOW, usual, 0, b"x", false).unwrap();
    streams.on_stream(NOW, early, 1, b"y", false).unwrap();
    assert_eq!([early, usual, own].map(|id| streams.is_early(id)), [true, false, false]);
    assert!(!streams.is_early(id(Side::Client, UNI, 2)), "there is no such stream");
    streams.stop_sending(early, 0).unwrap();
    streams.on_reset_stream(NOW, early, 0, 2).unwrap();
    assert!(!streams.is_early(early), "it is over");
}

#[test]
fn streams_beyond_the_limits_of_a_server_that_rejected_wait_until_these_rise() {
    let mut streams = Streams::new(Side::Client, &config());
    streams.set_peer_limits(&limits(10_000, 3, 2));
    let open = |streams: &mut Streams, direction| {
        let id = streams.open(direction).unwrap();
        streams.write(id, "hello".into()).unwrap();
        id
    };
    let both: Vec<StreamId> = (0..3).map(|_| open(&mut streams, BIDI)).collect();
    let one_way: Vec<StreamId> = (0..2).map(|_| open(&mut streams, UNI)).collect();
    assert_eq!(sends(&mut streams).len(), 5);
    streams.on_early_rejected(&limits(10_000, 1, 0));
    assert_eq!(sends(&mut streams), [both[0]], "all is sent again that may be");
    // They are told of nothing either.
    streams.reset(one_way[1], 7).unwrap();
    assert!(!streams.wants_to_send());
    for (direction, limit, expected) in [
        (BIDI, 1, vec![]),
        (BIDI, 2, vec![both[1]]),
        (BIDI, 2, vec![]),
        (BIDI, 3, vec![both[2]]),
        (UNI, 1, vec![one_way[0]]),
    ] {
        take(&mut streams, Frame::MaxStreams { direction, limit }).unwrap();
        assert_eq!(sends(&mut streams), expected, "{direction:?} {limit}");
    }
    take(&mut streams, Frame::MaxStreams { direction: UNI, limit: 2 }).unwrap();
    let (payload, _) = send(&mut streams, 100);
    assert_eq!(frames(&payload), [Frame::ResetStream { id: one_way[1], code: 7, final_size: 0 }]);
}

#[test]
fn that_remembered_limits_held_back_is_forgotten_with_them_and_nothing_else() {
    let mut streams = Streams::new(Side::Client, &config());
    streams.set_peer_limits(&limits(10, 1, 1));
    let stream = streams.open(BIDI).unwrap();
    assert_eq!((streams.open(BIDI), streams.open(UNI).map(StreamId::index)), (None, Some(0)));
    assert_eq!(streams.open(UNI), None);
    streams.write(stream, vec![7; 30].into()).unwrap();
    assert_eq!(sends(&mut streams), [stream]);
    // Blocked in all three ways again, and the other limits are owed.
    take(&mut streams, Frame::MaxData { limit: 20 }).unwrap();
    assert_eq!(sends(&mut streams), [stream]);
    for (direction, limit) in [(BIDI, 2), (UNI, 2)] {
        take(&mut streams, Frame::MaxStreams { direction, limit }).unwrap();
        streams.open(direction).unwrap();
        assert_eq!(streams.open(direction), None);
    }
    for token in [StreamToken::MaxData, StreamToken::MaxStreams { direction: UNI }] {
        streams.repeat(token);
    }
    take(&mut streams, Frame::MaxData { limit: 21 }).unwrap();
    send_data_only(&mut streams);
    assert_eq!(streams.control & output::BLOCKED_BITS, output::BLOCKED_BITS);
    streams.on_early_rejected(&limits(1000, 2, 2));
    let (payload, _) = send(&mut streams, 100);
    let expected = [
        Frame::MaxData { limit: 2500 },
        Frame::MaxStreams { direction: UNI, limit: 4 },
        Frame::Stream { id: stream, offset: 0, data: &[7; 30], fin: false },
    ];
    assert_eq!(frames(&payload), expected);
    assert_eq!(streams.interest(), Interest::default());
}

/// Sends data and nothing else.
fn send_data_only(streams: &mut Streams) {
    crate::packet::testing::payload::<StreamToken, _>(100, |packet| streams.write_data(packet));
}

#[test]
fn data_sent_early_counts_against_the_new_limit_alone() {
    let mut streams = Streams::new(Side::Client, &config());
    streams.set_peer_limits(&limits(100, 1, 0));
    let stream = streams.open(BIDI).unwrap();
    streams.write(stream, vec![7; 90].into()).unwrap();
    assert_eq!(sends(&mut streams), [stream]);
    streams.on_early_rejected(&limits(40, 1, 0));
    assert_eq!((streams.credit.limit(), streams.credit.used()), (40, 0));
    let (payload, _) = send(&mut streams, 100);
    assert_eq!(frames(&payload), [Frame::Stream { id: stream, offset: 0, data: &[7; 40], fin: false }]);
    assert_eq!(streams.credit.used(), 40);
}

#[test]
fn the_end_of_a_stream_is_sent_again_with_its_data() {
    let mut streams = Streams::new(Side::Client, &config());
    streams.set_peer_limits(&limits(1000, 3, 0));
    let [whole, open, empty] = [b"hello".as_slice(), b"world", b""].map(|data| {
        let id = streams.open(BIDI).unwrap();
        streams.write(id, data.into()).unwrap();
        id
    });
    streams.finish(whole).unwrap();
    streams.finish(empty).unwrap();
    assert_eq!(sends(&mut streams), [whole, open, empty]);
    streams.on_early_rejected(&limits(1000, 3, 0));
    let (payload, _) = send(&mut streams, 100);
    let expected = [
        Frame::Stream { id: whole, offset: 0, data: b"hello", fin: true },
        Frame::Stream { id: open, offset: 0, data: b"world", fin: false },
        Frame::Stream { id: empty, offset: 0, data: b"", fin: true },
    ];
    assert_eq!(frames(&payload), expected);
    assert_eq!(streams.interest(), Interest::default());
}
