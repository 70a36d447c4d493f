//! Who waits for room, for the peer's permission or for a new stream, and when it is told.

use super::super::*;
use super::common::*;
use crate::WindowReserve;
use crate::part::Part;
use godwit_wire::Frame;

/// A client that may send so many bytes, on so many streams of either direction with so many bytes each.
fn client(data: u64, stream: u64, streams: u64) -> Streams {
    let mut client = Streams::new(Side::Client, &config());
    client.set_peer_limits(&TransportParameters {
        initial_max_data: data,
        initial_max_stream_data_bidi_remote: stream,
        initial_max_stream_data_uni: stream,
        initial_max_streams_bidi: streams,
        initial_max_streams_uni: streams,
        ..TransportParameters::default()
    });
    client
}

fn zeros(len: usize) -> Bytes {
    vec![0; len].into()
}

#[test]
fn asking_whether_a_stream_could_be_opened_tells_the_peer_of_a_refusal_once() {
    let mut streams = client(100, 100, 1);
    assert!(streams.can_open(BIDI) && streams.can_open(BIDI));
    assert_eq!(streams.interest(), Interest::default());
    assert!(streams.open(BIDI).is_some());
    assert!(!streams.can_open(BIDI));
    let (payload, _) = send(&mut streams, 100);
    assert_eq!(frames(&payload), [Frame::StreamsBlocked { direction: BIDI, limit: 1 }]);
    assert!(!streams.can_open(BIDI));
    assert_eq!((streams.interest(), events(&mut streams)), (Interest::default(), vec![]));
    assert!(streams.can_open(UNI), "the limits of the directions are apart");
    streams.want_to_open(UNI);
    assert_eq!(streams.interest(), Interest::default(), "it is permitted");
    streams.want_to_open(BIDI);
    let (payload, _) = send(&mut streams, 100);
    assert_eq!(frames(&payload), [Frame::StreamsBlocked { direction: BIDI, limit: 1 }], "it is wanted again");
    take(&mut streams, Frame::MaxStreams { direction: BIDI, limit: 2 }).unwrap();
    assert_eq!(events(&mut streams), [Event::StreamsAvailable { direction: BIDI }]);
    assert!(streams.can_open(BIDI));
}

#[test]
fn a_stream_that_takes_data_says_so_at_once_and_any_other_when_it_does() {
    let mut streams = client(1 << 30, 1 << 30, 2);
    let (full, free) = (streams.open(BIDI).unwrap(), streams.open(BIDI).unwrap());
    streams.watch_writable(free).unwrap();
    assert_eq!(events(&mut streams), [Event::Writable { id: free }]);
    // 100,000 bytes are all that may be written.
    assert_eq!(streams.write(full, zeros(99_999)), Ok(99_999));
    streams.watch_writable(full).unwrap();
    assert_eq!(events(&mut streams), [Event::Writable { id: full }], "one byte more");
    assert_eq!(streams.write(full, zeros(1)), Ok(1));
    streams.watch_writable(full).unwrap();
    assert_eq!(events(&mut streams), [], "it is full");
    let mut sent = Vec::new();
    while streams.interest().data {
        sent.extend(send(&mut streams, 10_000).1);
    }
    sent.into_iter().for_each(|token| streams.on_acked(token));
    assert_eq!(events(&mut streams), [Event::Writable { id: full }]);
}

#[test]
fn nobody_waits_to_write_where_nothing_can_be_written() {
    let mut streams = client(100, 100, 2);
    let unknown = id(Side::Client, BIDI, 0);
    assert_eq!(streams.watch_writable(unknown), Err(WriteError::UnknownStream));
    let stream = streams.open(BIDI).unwrap();
    streams.finish(stream).unwrap();
    assert_eq!(streams.watch_writable(stream), Err(WriteError::Finished));
    let receiving = id(Side::Server, UNI, 0);
    streams.on_stream(NOW, receiving, 0, b"x", false).unwrap();
    events(&mut streams);
    assert_eq!(streams.watch_writable(receiving), Err(WriteError::UnknownStream));
    assert_eq!(events(&mut streams), []);
}

#[test]
fn a_stream_has_so_many_bytes_buffered_as_were_written_and_not_acknowledged() {
    let mut streams = client(1 << 20, 1 << 20, 2);
    let stream = streams.open(UNI).unwrap();
    assert_eq!(streams.buffered_on(stream), Some(0));
    streams.write(stream, zeros(500)).unwrap();
    assert_eq!(streams.buffered_on(stream), Some(500));
    let (_, tokens) = send(&mut streams, 300);
    let [StreamToken::Data { len, .. }] = tokens[..] else { panic!("{tokens:?}") };
    assert_eq!(streams.buffered_on(stream), Some(500), "sent is not acknowledged");
    streams.on_acked(tokens[0]);
    assert_eq!(streams.buffered_on(stream), Some(500 - u64::from(len)));
    assert_eq!(streams.buffered_on(id(Side::Client, UNI, 1)), None);
    let receiving = id(Side::Server, UNI, 0);
    streams.on_stream(NOW, receiving, 0, b"x", false).unwrap();
    assert_eq!(streams.buffered_on(receiving), None);
}

/// A stream that has written, and sent, all that the peer permits on the connection, and waits to write more.
fn waits_for_permission() -> (Streams, StreamId) {
    let mut config = config();
    config.send_buffer = 1 << 20;
    let mut streams = Streams::new(Side::Client, &config);
    streams.set_peer_limits(&TransportParameters {
        initial_max_data: 1000,
        initial_max_stream_data_uni: 1 << 20,
        initial_max_streams_uni: 2,
        ..TransportParameters::default()
    });
    // As much may be held as is written ahead of permission, and more.
    streams.on_congestion_window(1 << 20);
    let stream = streams.open(UNI).unwrap();
    assert_eq!(streams.write(stream, zeros(1 << 20)), Ok(128 << 10));
    send(&mut streams, 2000);
    assert_eq!(events(&mut streams), []);
    (streams, stream)
}

#[test]
fn new_permission_on_the_connection_is_told_to_who_waits_for_it_and_a_repeated_limit_is_none() {
    let (mut streams, stream) = waits_for_permission();
    take(&mut streams, Frame::MaxData { limit: 999 }).unwrap();
    take(&mut streams, Frame::MaxData { limit: 1000 }).unwrap();
    assert_eq!(events(&mut streams), []);
    take(&mut streams, Frame::MaxData { limit: 1001 }).unwrap();
    assert_eq!(events(&mut streams), [Event::Writable { id: stream }]);
    take(&mut streams, Frame::MaxData { limit: 2000 }).unwrap();
    assert_eq!(events(&mut streams), [], "nobody waits any more");
}

#[test]
fn permission_is_not_told_to_who_waits_for_room() {
    let (mut streams, permitted) = waits_for_permission();
    let queued = streams.open(UNI).unwrap();
    streams.on_congestion_window(0);
    // Its own share, which is ahead of the peer's permission.
    assert_eq!(streams.write(queued, zeros(1 << 20)), Ok(16 << 10));
    assert_eq!(streams.budget.waiting, [queued]);
    take(&mut streams, Frame::MaxData { limit: 1001 }).unwrap();
    assert_eq!(events(&mut streams), [Event::Writable { id: permitted }]);
}

#[test]
fn a_limit_that_a_stream_has_already_is_not_told_to_who_waits_to_write() {
    let mut streams = client(1 << 20, 5000, 1);
    let stream = streams.open(BIDI).unwrap();
    streams.write(stream, zeros(1 << 20)).unwrap();
    streams.on_max_stream_data(stream, 5000).unwrap();
    streams.on_max_stream_data(stream, 4999).unwrap();
    assert_eq!(events(&mut streams), []);
    streams.on_max_stream_data(stream, 5001).unwrap();
    assert_eq!(events(&mut streams), [Event::Writable { id: stream }]);
}

#[test]
fn a_limit_is_raised_for_good_reason_by_a_kibibyte_when_as_much_was_sent() {
    for (sent, raised, useless) in
        [(1024, 1023, 1), (1024, 1024, 0), (1024, 1025, 0), (1023, 1024, 1), (1025, 1024, 0), (0, 1 << 20, 1)]
    {
        let mut streams = client(1 << 20, 1 << 20, 2);
        let (stream, other) = (streams.open(UNI).unwrap(), streams.open(UNI).unwrap());
        streams.write(stream, zeros(sent)).unwrap();
        send(&mut streams, 2000);
        streams.on_max_stream_data(other, (1 << 20) + raised).unwrap();
        assert_eq!(streams.take_useless(), useless, "{sent} sent, raised by {raised}");
        // What was sent is no reason twice.
        streams.on_max_stream_data(stream, 1 << 30).unwrap();
        assert_eq!(streams.take_useless() > 0, sent < 1024 || raised >= 1024, "{sent}, {raised}");
    }
}

#[test]
fn a_connection_limit_is_judged_as_that_of_a_stream() {
    let mut streams = client(1 << 20, 1 << 20, 1);
    let stream = streams.open(UNI).unwrap();
    streams.write(stream, zeros(1024)).unwrap();
    send(&mut streams, 2000);
    take(&mut streams, Frame::MaxData { limit: (1 << 20) + 1023 }).unwrap();
    assert_eq!(streams.take_useless(), 1);
    take(&mut streams, Frame::MaxData { limit: (1 << 20) + 1023 + 1024 }).unwrap();
    assert_eq!(streams.take_useless(), 0);
}

/// Streams that have written and sent this much each, and want to write more; the first takes all that may be held.
fn full(streams: &mut Streams, written: &[usize]) -> Vec<StreamId> {
    let ids: Vec<StreamId> = written.iter().map(|_| streams.open(UNI).unwrap()).collect();
    for (id, len) in ids.iter().zip(written) {
        assert_eq!(streams.write(*id, zeros(1 << 21)), Ok(*len));
    }
    while streams.interest().data {
        send(streams, 10_000);
    }
    assert_eq!(events(streams), []);
    ids
}

fn acked(streams: &mut Streams, id: StreamId, offset: u64, len: u32) -> Vec<Event> {
    streams.on_acked(StreamToken::Data { id, offset, len, fin: false });
    events(streams)
}

#[test]
fn who_waits_for_room_is_told_when_a_quarter_of_all_is_free_or_half_of_its_own_share() {
    let mut streams = client(1 << 30, 1 << 30, 4);
    streams.set_send_buffer(1 << 20, 1 << 20);
    let ids = full(&mut streams, &[1 << 20, 65_536, 65_536, 65_536]);
    // Half of its share is free.
    assert_eq!(acked(&mut streams, ids[1], 0, 32_767), []);
    assert_eq!(acked(&mut streams, ids[1], 32_767, 1), [Event::Writable { id: ids[1] }]);
    assert_eq!(acked(&mut streams, ids[1], 32_768, 1), [], "once");
    // What they hold beyond three quarters of the limit has to go.
    let beyond = (262_144 + 2 * 65_536 + 32_767) as u32;
    assert_eq!(acked(&mut streams, ids[0], 0, beyond - 1), []);
    let told = [ids[0], ids[2], ids[3]].map(|id| Event::Writable { id });
    assert_eq!(acked(&mut streams, ids[0], u64::from(beyond) - 1, 1), told);
    assert_eq!(acked(&mut streams, ids[2], 0, 65_536), [], "once");
}

#[test]
fn the_reserve_has_back_what_a_send_buffer_took_when_all_is_acknowledged() {
    let mut streams = client(1 << 30, 1 << 30, 1);
    let reserve = WindowReserve::new(16 << 20);
    streams.share(&reserve);
    let stream = streams.open(UNI).unwrap();
    streams.write(stream, zeros(1)).unwrap();
    streams.set_send_buffer(12 << 20, 12 << 20);
    assert_eq!((streams.ideal_buffer_of_all(), reserve.taken()), (12 << 20, 4 << 20));
    streams.write(stream, zeros(1)).unwrap();
    send(&mut streams, 100);
    acked(&mut streams, stream, 0, 1);
    assert_eq!((streams.ideal_buffer_of_all(), reserve.taken()), (12 << 20, 4 << 20), "a byte is not");
    acked(&mut streams, stream, 1, 1);
    assert_eq!((streams.ideal_buffer_of_all(), reserve.taken()), (8 << 20, 0));
}
