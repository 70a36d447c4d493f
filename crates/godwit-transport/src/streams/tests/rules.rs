//! The rules one by one: which frames are errors, and what the application hears.

use super::super::*;
use super::common::*;
use crate::TransportErrorCode;
use crate::WindowReserve;
use crate::part::Part;
use godwit_wire::Frame;
use std::time::Duration;

#[test]
fn what_fills_gaps_is_of_use_and_what_comes_again_is_not() {
    let mut streams = server();
    let id = id(Side::Client, BIDI, 0);
    let mut come = |offset: u64| {
        streams.on_stream(NOW, id, offset, b"ab", false).unwrap();
        streams.take_useless()
    };
    let odd = (1..400).step_by(4);
    assert!(odd.clone().all(|offset| come(offset) == 0) && odd.clone().all(|offset| come(offset) == 1));
    assert_eq!([come(4), come(4), come(5), come(6), come(0)], [0, 1, 1, 0, 0], "gaps, in part and in all");
    assert_eq!([come(0), come(3), come(3), come(9)], [1, 0, 1, 1]);
}

#[test]
fn frames_for_the_wrong_half_or_an_unopened_stream_are_errors() {
    let state = Some(TransportErrorCode::STREAM_STATE_ERROR);
    let limit = Some(TransportErrorCode::STREAM_LIMIT_ERROR);
    let mut streams = server();
    let own_uni = streams.open(UNI).unwrap();
    let peer_uni = id(Side::Client, UNI, 0);
    let unopened = id(Side::Server, BIDI, 0);
    let beyond = id(Side::Client, BIDI, 4);
    assert_eq!(code(streams.on_stream(NOW, own_uni, 0, b"x", false)), state);
    assert_eq!(code(streams.on_reset_stream(NOW, own_uni, 0, 0)), state);
    assert_eq!(code(take(&mut streams, Frame::StreamDataBlocked { id: own_uni, limit: 0 })), state);
    assert_eq!(code(streams.on_stop_sending(peer_uni, 0)), state);
    assert_eq!(code(streams.on_max_stream_data(peer_uni, 0)), state);
    for frame in [
        streams.on_stream(NOW, unopened, 0, b"x", false),
        streams.on_reset_stream(NOW, unopened, 0, 0),
        streams.on_stop_sending(unopened, 0),
        streams.on_max_stream_data(unopened, 0),
        take(&mut streams, Frame::StreamDataBlocked { id: unopened, limit: 0 }),
    ] {
        assert_eq!(code(frame), state);
    }
    for frame in [
        streams.on_stream(NOW, beyond, 0, b"x", false),
        streams.on_reset_stream(NOW, beyond, 0, 0),
        streams.on_stop_sending(beyond, 0),
        streams.on_max_stream_data(beyond, 0),
        take(&mut streams, Frame::StreamDataBlocked { id: beyond, limit: 0 }),
    ] {
        assert_eq!(code(frame), limit);
    }
    assert_eq!(streams.active_streams(), 1, "no error opened a stream");
}

#[test]
fn the_connections_limit_counts_over_all_streams() {
    let mut streams = server();
    let data = [0; 1000];
    for index in 0..2 {
        streams.on_stream(NOW, id(Side::Client, BIDI, index), 0, &data, false).unwrap();
    }
    streams.on_stream(NOW, id(Side::Client, BIDI, 1), 500, &data[..500], false).unwrap();
    let third = id(Side::Client, BIDI, 2);
    streams.on_stream(NOW, third, 499, &data[..1], false).unwrap();
    let error = code(streams.on_stream(NOW, third, 500, &data[..1], false));
    assert_eq!(error, Some(TransportErrorCode::FLOW_CONTROL_ERROR));
    let error = code(streams.on_reset_stream(NOW, third, 0, 501));
    assert_eq!(error, Some(TransportErrorCode::FLOW_CONTROL_ERROR));
}

#[test]
fn using_a_stream_opens_those_before_it_once() {
    let mut streams = server();
    streams.on_max_stream_data(id(Side::Client, BIDI, 2), 5).unwrap();
    assert_eq!(events(&mut streams), [Event::StreamOpened { direction: BIDI }]);
    streams.on_stream(NOW, id(Side::Client, BIDI, 0), 0, b"x", false).unwrap();
    assert_eq!(events(&mut streams), [Event::Readable { id: id(Side::Client, BIDI, 0) }]);
    let accepted: Vec<_> = std::iter::from_fn(|| streams.accept(BIDI)).map(StreamId::index).collect();
    assert_eq!(accepted, [0, 1, 2]);
    take(&mut streams, Frame::StreamDataBlocked { id: id(Side::Client, BIDI, 3), limit: 0 }).unwrap();
    assert_eq!(events(&mut streams), [Event::StreamOpened { direction: BIDI }]);
}

#[test]
fn streams_that_were_opened_are_told_again_only_when_all_before_were_accepted() {
    let mut streams = server();
    let ids = [0, 1, 2].map(|index| id(Side::Client, UNI, index));
    let opened = || Event::StreamOpened { direction: UNI };
    streams.on_stream(NOW, ids[0], 1, b"", false).unwrap();
    assert_eq!(events(&mut streams), [opened()]);
    streams.on_stream(NOW, ids[1], 1, b"", false).unwrap();
    assert_eq!(events(&mut streams), [], "the first waits to be accepted");
    assert_eq!([(); 3].map(|()| streams.accept(UNI)), [Some(ids[0]), Some(ids[1]), None]);
    // A late frame for one that is over opens nothing.
    streams.on_reset_stream(NOW, ids[0], 0, 1).unwrap();
    streams.stop_sending(ids[0], 0).unwrap();
    events(&mut streams);
    streams.on_stream(NOW, ids[0], 0, b"x", false).unwrap();
    assert_eq!(events(&mut streams), []);
    streams.on_stream(NOW, ids[2], 1, b"", false).unwrap();
    assert_eq!(events(&mut streams), [opened()]);
}

#[test]
fn a_finished_stream_makes_room_for_another() {
    let mut streams = server();
    for index in 0..4 {
        let id = id(Side::Client, UNI, index);
        streams.on_stream(NOW, id, 0, b"x", true).unwrap();
        assert_eq!(streams.read(NOW, Duration::ZERO, id, 10), Ok(ReadChunk::Data("x".into())));
        assert_eq!(streams.read(NOW, Duration::ZERO, id, 10), Ok(ReadChunk::Finished));
        assert_eq!(streams.read(NOW, Duration::ZERO, id, 10), Err(ReadError::UnknownStream));
        streams.on_stream(NOW, id, 0, b"x", true).unwrap();
    }
    assert!(!streams.has_active_streams());
    assert_eq!(streams.accept(UNI), None, "streams that are over are not handed out");
    let (payload, tokens) = send(&mut streams, 100);
    assert_eq!(frames(&payload), [Frame::MaxStreams { direction: UNI, limit: 8 }]);
    streams.repeat(tokens[0]);
    let (payload, _) = send(&mut streams, 100);
    assert_eq!(frames(&payload), [Frame::MaxStreams { direction: UNI, limit: 8 }]);
    assert!(!streams.wants_to_send());
}

#[test]
fn being_blocked_is_told_once_and_ends_with_an_event() {
    let mut streams = Streams::new(Side::Client, &config());
    let limits = |data, streams| TransportParameters {
        initial_max_data: data,
        initial_max_stream_data_bidi_remote: 20,
        initial_max_streams_bidi: streams,
        ..TransportParameters::default()
    };
    streams.set_peer_limits(&limits(10, 1));
    let first = streams.open(BIDI).unwrap();
    assert_eq!(streams.open(BIDI), None);
    assert_eq!(streams.open(BIDI), None);
    assert_eq!(streams.write(first, Bytes::from_static(&[7; 30])), Ok(30));
    let (payload, _) = send(&mut streams, 100);
    assert_eq!(frames(&payload)[0], Frame::StreamsBlocked { direction: BIDI, limit: 1 });
    assert_eq!(frames(&payload)[1], Frame::Stream { id: first, offset: 0, data: &[7; 10], fin: false });
    assert_eq!(streams.interest(), Interest { control: true, data: false });
    let (payload, _) = send(&mut streams, 100);
    assert_eq!(frames(&payload), [Frame::DataBlocked { limit: 10 }]);
    assert_eq!(streams.interest(), Interest::default());
    take(&mut streams, Frame::MaxData { limit: 100 }).unwrap();
    let (payload, _) = send(&mut streams, 100);
    assert_eq!(frames(&payload), [Frame::Stream { id: first, offset: 10, data: &[7; 10], fin: false }]);
    let (payload, _) = send(&mut streams, 100);
    assert_eq!(frames(&payload), [Frame::StreamDataBlocked { id: first, limit: 20 }]);
    assert_eq!(streams.interest(), Interest::default());
    streams.on_max_stream_data(first, 30).unwrap();
    take(&mut streams, Frame::MaxStreams { direction: BIDI, limit: 2 }).unwrap();
    assert_eq!(events(&mut streams), [Event::StreamsAvailable { direction: BIDI }]);
    let (payload, _) = send(&mut streams, 100);
    assert_eq!(frames(&payload), [Frame::Stream { id: first, offset: 20, data: &[7; 10], fin: false }]);
    assert_eq!(streams.open(BIDI).map(StreamId::index), Some(1));
}

#[test]
fn a_limit_that_rises_takes_back_that_it_was_too_low() {
    let mut streams = Streams::new(Side::Client, &config());
    assert_eq!(streams.open(BIDI), None);
    let parameters = TransportParameters { initial_max_streams_bidi: 1, ..TransportParameters::default() };
    streams.set_peer_limits(&parameters);
    assert!(!streams.wants_to_send(), "nothing of STREAMS_BLOCKED");
    assert!(streams.open(BIDI).is_some());
    assert_eq!(streams.open(BIDI), None);
    let (payload, _) = send(&mut streams, 100);
    assert_eq!(frames(&payload), [Frame::StreamsBlocked { direction: BIDI, limit: 1 }]);
}

#[test]
fn a_stream_says_once_for_each_limit_that_it_is_blocked() {
    let mut streams = Streams::new(Side::Client, &config());
    streams.set_peer_limits(&TransportParameters {
        initial_max_data: 1000,
        initial_max_stream_data_uni: 20,
        initial_max_streams_uni: 1,
        ..TransportParameters::default()
    });
    let id = streams.open(UNI).unwrap();
    for limit in [20, 25] {
        streams.on_max_stream_data(id, limit).unwrap();
        streams.write(id, vec![7; 30].into()).unwrap();
        send(&mut streams, 100);
        let (payload, _) = send(&mut streams, 100);
        assert_eq!(frames(&payload), [Frame::StreamDataBlocked { id, limit }]);
        streams.write(id, vec![7; 30].into()).unwrap();
        assert_eq!(streams.interest(), Interest::default(), "it has said so");
    }
}

#[test]
fn a_stream_says_no_more_than_it_owes() {
    let mut streams = server();
    let id = id(Side::Client, BIDI, 0);
    streams.on_stream(NOW, id, 0, b"x", false).unwrap();
    streams.reset(id, 5).unwrap();
    let (payload, _) = send(&mut streams, 100);
    assert_eq!(frames(&payload), [Frame::ResetStream { id, code: 5, final_size: 0 }]);
    assert_eq!(streams.interest(), Interest::default());
    streams.stop_sending(id, 6).unwrap();
    let (payload, _) = send(&mut streams, 100);
    assert_eq!(frames(&payload), [Frame::StopSending { id, code: 6 }]);
    assert_eq!(streams.interest(), Interest::default());
}

#[test]
fn frames_for_a_stream_that_is_over_serve_nothing() {
    let mut streams = server();
    let id = id(Side::Client, BIDI, 0);
    streams.on_stop_sending(id, 1).unwrap();
    streams.on_reset_stream(NOW, id, 0, 0).unwrap();
    streams.stop_sending(id, 0).unwrap();
    let (_, tokens) = send(&mut streams, 100);
    tokens.into_iter().for_each(|token| streams.on_acked(token));
    assert_eq!((streams.active_streams(), streams.take_useless()), (0, 0));
    streams.on_stream(NOW, id, 0, b"x", false).unwrap();
    streams.on_reset_stream(NOW, id, 0, 0).unwrap();
    streams.on_max_stream_data(id, 1 << 30).unwrap();
    assert_eq!((streams.useless(), streams.take_useless(), streams.useless()), (3, 3, 0));
}

#[test]
fn an_observer_hears_of_streams_opened_and_over_from_when_it_asks() {
    let mut streams = server();
    let opened_before = streams.open(UNI).unwrap();
    assert_eq!(streams.take_journal(), []);
    streams.keep_journal();
    let (own, peers) = (streams.open(UNI).unwrap(), id(Side::Client, UNI, 0));
    streams.on_stream(NOW, peers, 0, b"abc", true).unwrap();
    streams.stop_sending(peers, 0).unwrap();
    streams.reset(opened_before, 0).unwrap();
    let (_, tokens) = send(&mut streams, 100);
    tokens.into_iter().for_each(|token| streams.on_acked(token));
    let journal = [(own, true), (peers, true), (peers, false), (opened_before, false)];
    assert_eq!(streams.take_journal(), journal);
    assert_eq!(streams.take_journal(), [], "once");
}

#[test]
fn bytes_are_counted_once_and_again_where_they_are_sent_again() {
    let mut streams = server();
    let (own, peers) = (streams.open(UNI).unwrap(), id(Side::Client, UNI, 1));
    streams.write(own, vec![7; 30].into()).unwrap();
    let (_, tokens) = send(&mut streams, 100);
    streams.repeat(tokens[0]);
    send(&mut streams, 100);
    streams.on_stream(NOW, peers, 10, &[7; 20], false).unwrap();
    streams.on_stream(NOW, peers, 25, &[7; 10], false).unwrap();
    let expected = StreamStats {
        bytes_sent: 30,
        bytes_retransmitted: 30,
        bytes_received: 35,
        opened_locally: 1,
        opened_by_peer: 2,
    };
    assert_eq!((streams.stats(), streams.data_sent()), (expected, 30));
    assert_eq!(streams.arrived(), 20 + 5, "without the gap");
}

#[test]
fn stop_sending_resets_the_stream_with_the_same_code() {
    let mut streams = server();
    let id = streams.open(UNI).unwrap();
    streams.write(id, "hello".into()).unwrap();
    send(&mut streams, 100);
    streams.on_stop_sending(id, 9).unwrap();
    streams.on_stop_sending(id, 9).unwrap();
    assert_eq!(events(&mut streams), [Event::Stopped { id, code: 9 }]);
    assert_eq!(streams.write(id, "x".into()), Err(WriteError::Stopped(9)));
    assert_eq!(streams.buffered(), 0);
    let (payload, tokens) = send(&mut streams, 100);
    assert_eq!(frames(&payload), [Frame::ResetStream { id, code: 9, final_size: 5 }]);
    streams.repeat(tokens[0]);
    let (payload, tokens) = send(&mut streams, 100);
    assert_eq!(frames(&payload), [Frame::ResetStream { id, code: 9, final_size: 5 }]);
    streams.on_acked(tokens[0]);
    assert!(!streams.has_active_streams());
    streams.repeat(tokens[0]);
    assert!(!streams.wants_to_send());
}

#[test]
fn data_after_our_stop_is_counted_and_credited() {
    let mut streams = server();
    let id = id(Side::Client, UNI, 0);
    streams.on_stream(NOW, id, 0, &[0; 600], false).unwrap();
    streams.stop_sending(id, 3).unwrap();
    let (payload, _) = send(&mut streams, 100);
    assert_eq!(frames(&payload), [Frame::StopSending { id, code: 3 }]);
    assert_eq!(streams.read(NOW, Duration::ZERO, id, 10), Err(ReadError::Stopped));
    streams.on_stream(NOW, id, 600, &[0; 400], false).unwrap();
    let error = code(streams.on_stream(NOW, id, 1000, &[0; 1], false));
    assert_eq!(error, Some(TransportErrorCode::FLOW_CONTROL_ERROR));
    streams.on_reset_stream(NOW, id, 0, 1000).unwrap();
    assert!(!streams.has_active_streams());
    assert_eq!((streams.window.received(), streams.window.consumed()), (1000, 1000));
}

#[test]
fn the_urgent_go_first_and_the_incremental_take_turns() {
    let mut streams = server();
    let ids: Vec<_> = (0..4).map(|_| streams.open(BIDI).unwrap()).collect();
    for (id, (urgency, incremental)) in ids.iter().zip([(5, false), (3, true), (3, true), (0, false)]) {
        streams.set_priority(*id, urgency, incremental).unwrap();
        streams.write(*id, vec![0; 3000].into()).unwrap();
    }
    let order: Vec<_> = (0..11).flat_map(|_| stream_ids(&send(&mut streams, 1200).0)).collect();
    // The first turn of stream 1 is the rest of a packet, so that it needs one turn more.
    assert_eq!(order, [3, 3, 3, 1, 2, 1, 2, 1, 2, 1, 0, 0, 0, 0]);
}

#[test]
fn streams_of_one_urgency_finish_in_the_order_they_came() {
    let mut streams = server();
    let ids: Vec<_> = (0..3).map(|_| streams.open(BIDI).unwrap()).collect();
    for id in &ids {
        streams.write(*id, vec![0; 2000].into()).unwrap();
    }
    let mut order: Vec<_> = (0..8).flat_map(|_| stream_ids(&send(&mut streams, 1200).0)).collect();
    order.dedup();
    assert_eq!(order, [0, 1, 2]);
}

#[test]
fn many_small_streams_share_a_packet() {
    let mut streams = server();
    for _ in 0..4 {
        let id = streams.open(UNI).unwrap();
        streams.write(id, "hello".into()).unwrap();
        streams.finish(id).unwrap();
    }
    let (payload, tokens) = send(&mut streams, 1200);
    assert_eq!(stream_ids(&payload), [0, 1, 2, 3]);
    tokens.into_iter().for_each(|token| streams.on_acked(token));
    assert_eq!(events(&mut streams).len(), 4);
    assert!(!streams.has_active_streams());
}

#[test]
fn a_full_send_buffer_refuses_and_then_tells() {
    let mut streams = server();
    let (big, small) = (streams.open(BIDI).unwrap(), streams.open(BIDI).unwrap());
    assert_eq!(streams.write(big, vec![0; 150_000].into()), Ok(100_000));
    assert_eq!(streams.write(big, vec![0; 1].into()), Ok(0));
    assert_eq!(streams.write(small, vec![0; 70_000].into()), Ok(65_536), "each stream has a share");
    assert_eq!(events(&mut streams), []);
    let mut sent = Vec::new();
    while streams.interest().data {
        sent.extend(send(&mut streams, 10_000).1);
    }
    let mut told = Vec::new();
    for token in sent {
        streams.on_acked(token);
        told.extend(events(&mut streams).into_iter().map(|event| (event, streams.buffered())));
    }
    assert_eq!(told.len(), 2);
    assert_eq!(told[0].0, Event::Writable { id: big });
    assert_eq!(told[1].0, Event::Writable { id: small });
    assert!(told[0].1 > 60_000, "not only when everything is acknowledged");
    assert_eq!(streams.buffered(), 0);
}

#[test]
fn many_streams_that_nobody_reads_hold_little_each() {
    let mut streams = server();
    // It permits everything, and acknowledges nothing.
    streams.set_peer_limits(&TransportParameters {
        initial_max_streams_bidi: 100,
        initial_max_data: 1 << 40,
        initial_max_stream_data_bidi_remote: 1 << 40,
        ..TransportParameters::default()
    });
    let opened: Vec<StreamId> = (0..100).map(|_| streams.open(BIDI).unwrap()).collect();
    let written: Vec<usize> =
        opened.iter().map(|id| streams.write(*id, vec![0; 200_000].into()).unwrap()).collect();
    assert_eq!(written[..3], [100_000, 65_536, 65_536], "a few have what makes them quick");
    assert_eq!(written[99], 16_384, "and each has some");
    assert!(streams.buffered() < 3 << 20, "all together hold {} bytes", streams.buffered());
}

#[test]
fn little_is_written_ahead_of_the_peers_permission() {
    let mut streams = Streams::new(Side::Server, &TransportConfig::default());
    let mut parameters = TransportParameters {
        initial_max_streams_bidi: 4,
        initial_max_data: 100_000,
        initial_max_stream_data_bidi_remote: 70_000,
        ..TransportParameters::default()
    };
    streams.set_peer_limits(&parameters);
    streams.on_congestion_window(1 << 30);
    let all = || Bytes::from(vec![0; 1 << 20]);
    let (first, second, third) =
        (streams.open(BIDI).unwrap(), streams.open(BIDI).unwrap(), streams.open(BIDI).unwrap());
    assert_eq!(
        streams.write(first, all()),
        Ok(128 << 10),
        "more than it may send, but no more than it always may"
    );
    assert_eq!(streams.write(second, all()), Ok(16_384), "a little ahead");
    assert_eq!(streams.write(third, all()), Ok(16_384), "and of each");
    assert_eq!(events(&mut streams), []);
    // The end of a stream whose data was never sent is no longer in the way of the others.
    streams.reset(first, 0).unwrap();
    assert_eq!(streams.write_room(second), Ok((128 << 10) - 2 * 16_384));
    // New permission is told to who waits for it.
    streams.on_max_stream_data(second, 80_000).unwrap();
    assert_eq!(events(&mut streams), [Event::Writable { id: second }]);
    while streams.interest().data {
        send(&mut streams, 10_000);
    }
    parameters.initial_max_data = 1 << 20;
    streams.set_peer_limits(&parameters);
    assert_eq!(streams.write_room(third), Ok(128 << 10));
    streams.write(third, all()).unwrap();
    assert_eq!(streams.write_room(second), Ok(80_000 - 16_384), "what it may send");
}

#[test]
fn the_send_buffer_follows_the_congestion_window() {
    let mut streams = Streams::new(Side::Server, &TransportConfig::default());
    let parameters = TransportParameters {
        initial_max_streams_bidi: 4,
        initial_max_data: 1 << 40,
        initial_max_stream_data_bidi_remote: 1 << 40,
        ..TransportParameters::default()
    };
    streams.set_peer_limits(&parameters);
    let reserve = WindowReserve::new(16 << 20);
    streams.share(&reserve);
    let id = streams.open(BIDI).unwrap();
    let all = || Bytes::from(vec![0; 16 << 20]);
    assert_eq!(streams.write(id, all()), Ok(128 << 10), "a peer that has taken nothing yet");
    streams.on_congestion_window(1 << 20);
    assert_eq!(streams.write(id, all()), Ok(3968 << 10), "four times the window in all");
    streams.on_congestion_window(1 << 40);
    assert_eq!(streams.write(id, all()), Ok(12 << 20), "its own 8 MiB and half of the reserve in all");
    assert_eq!(reserve.taken(), 8 << 20);
    streams.on_congestion_window(12_000);
    assert_eq!(streams.write(id, all()), Ok(0));
}

#[test]
fn too_many_gaps_close_the_connection() {
    let mut config = config();
    config.initial_stream_window = 10_000;
    config.initial_connection_window = 10_000;
    let mut streams = Streams::new(Side::Server, &config);
    let id = id(Side::Client, UNI, 0);
    let error = (0..2000).find_map(|at| code(streams.on_stream(NOW, id, at * 2 + 1, b"x", false)));
    assert_eq!(error, Some(TransportErrorCode::INTERNAL_ERROR));
}

#[test]
fn too_many_gaps_in_many_streams_close_the_connection() {
    let config = TransportConfig { max_uni_streams: 1000, ..TransportConfig::default() };
    let mut streams = Streams::new(Side::Server, &config);
    let id = |index| id(Side::Client, UNI, index);
    // Each stream is far below its own limit. Those that end give back what they held.
    for index in 0..200 {
        for at in 0..500 {
            assert_eq!(code(streams.on_stream(NOW, id(index), at * 2 + 1, b"x", false)), None);
        }
        if index % 2 == 0 {
            streams.stop_sending(id(index), 0).unwrap();
        } else {
            streams.on_reset_stream(NOW, id(index), 0, 1000).unwrap();
        }
    }
    assert_eq!(streams.pieces, 0);
    let mut sent = (200..400).flat_map(|index| (0..500).map(move |at| (index, at)));
    let refused = sent.position(|(index, at)| {
        let refused = code(streams.on_stream(NOW, id(index), at * 2 + 1, b"x", false));
        assert!(matches!(refused, None | Some(TransportErrorCode::INTERNAL_ERROR)));
        refused.is_some()
    });
    assert_eq!(refused, Some(8192));
}

#[test]
fn what_was_never_sent_is_not_held_and_memory_without_data_is() {
    let mut streams = Streams::new(Side::Server, &TransportConfig::default());
    let id = |index| id(Side::Client, UNI, index);
    streams.on_stream(NOW, id(0), 60_000, &[7], false).unwrap();
    streams.on_stream(NOW, id(1), 60_000, &[], true).unwrap();
    assert_eq!(streams.held(), 1 + 128, "a byte, and its place");
    streams.stop_sending(id(0), 0).unwrap();
    assert_eq!(streams.held(), 0);
    for _ in 0..60 {
        let at = streams.stats.bytes_received - 120_001;
        streams.on_stream(NOW, id(2), at, &[7; 1000], false).unwrap();
        assert!(matches!(streams.read(NOW, Duration::ZERO, id(2), 2000), Ok(ReadChunk::Data(_))));
    }
    assert!(streams.held() > 30_000, "the next bytes have room already: {}", streams.held());
    streams.release_memory();
    assert!(streams.held() < 30_000, "{}", streams.held());
}

#[test]
fn a_stream_keeps_a_second_chunk_to_be_filled_again_unless_memory_is_scarce() {
    const CHUNK: u64 = 64 << 10;
    let mut config = TransportConfig { initial_stream_window: 1 << 24, ..TransportConfig::default() };
    config.initial_connection_window = 1 << 24;
    let mut streams = Streams::new(Side::Server, &config);
    let (id, all, mut at) = (id(Side::Client, UNI, 0), vec![7; 90_000], 0);
    let mut round = |streams: &mut Streams| {
        streams.on_stream(NOW, id, at, &all, false).unwrap();
        at += all.len() as u64;
        while let Ok(ReadChunk::Data(_)) = streams.read(NOW, Duration::ZERO, id, usize::MAX) {}
    };
    for little in [false, true, false] {
        for _ in 0..5 {
            round(&mut streams);
        }
        assert!((CHUNK + 1..=2 * CHUNK).contains(&streams.held()), "{}", streams.held());
        streams.hold_little(true);
        assert!(streams.held() <= CHUNK, "{}", streams.held());
        round(&mut streams);
        assert!(streams.held() <= CHUNK, "{}", streams.held());
        streams.hold_little(little);
        streams.hold_little(false);
    }
    streams.release_memory();
    assert_eq!(streams.held(), 0);
}

#[test]
fn little_is_permitted_while_memory_is_scarce() {
    const ALL: u64 = 1 << 20;
    let mut config = TransportConfig { initial_stream_window: ALL, ..TransportConfig::default() };
    config.send_buffer = 20_000;
    let mut streams = Streams::new(Side::Server, &config);
    let id = id(Side::Client, UNI, 0);
    let permitted = streams.window.permitted();
    assert_eq!(permitted, ALL, "and stays so");
    streams.hold_little(true);
    assert_eq!((streams.window.permitted(), streams.budget.wanted(1 << 30)), (ALL, 20_000));
    let all = vec![7; 1 << 20];
    streams.on_stream(NOW, id, 0, &all, false).unwrap();
    while let Ok(ReadChunk::Data(_)) = streams.read(NOW, Duration::ZERO, id, usize::MAX) {}
    assert_eq!(streams.window.permitted(), 64 << 10, "all was read at once, and little is permitted");
    streams.hold_little(false);
    streams.on_stream(NOW, id, ALL, &all[..60_000], false).unwrap();
    while let Ok(ReadChunk::Data(_)) = streams.read(NOW, Duration::ZERO, id, usize::MAX) {}
    assert!(streams.window.permitted() > 100 << 10, "it grows again");
}

/// Neither half of a stream may seem to have ended well.
#[test]
fn what_is_thrown_away_with_a_connection_was_neither_read_nor_delivered() {
    let mut streams = server();
    let whole = id(Side::Client, UNI, 0);
    streams.on_stream(NOW, whole, 0, b"all of it", true).unwrap();
    let answer = streams.open(UNI).unwrap();
    assert_eq!(streams.write(answer, Bytes::from_static(b"an answer")), Ok(9));
    streams.finish(answer).unwrap();
    send(&mut streams, 1000);
    assert!(streams.is_sent(answer));
    streams.forget_data();
    assert_eq!(streams.held(), 0);
    assert_eq!(streams.read(NOW, Duration::ZERO, whole, 100), Err(ReadError::Stopped));
    assert!(!streams.is_sent(answer));
    assert!(!events(&mut streams).contains(&Event::Finished { id: answer }));
}

#[test]
fn a_stream_whose_application_waits_to_write_says_that_it_is_blocked_and_still_ends() {
    let mut streams = Streams::new(Side::Server, &TransportConfig::default());
    let mut parameters = TransportParameters {
        initial_max_streams_bidi: 4,
        initial_max_data: 1 << 20,
        initial_max_stream_data_bidi_remote: 300_000,
        ..TransportParameters::default()
    };
    streams.set_peer_limits(&parameters);
    streams.on_congestion_window(1 << 30);
    let stream = streams.open(BIDI).unwrap();
    let all = || Bytes::from(vec![0; 1 << 20]);
    assert_eq!(streams.write(stream, all()), Ok(300_000), "what may be sent");
    let mut said = Vec::new();
    while streams.interest().data || streams.wants_to_send() {
        let (payload, _) = send(&mut streams, 10_000);
        said.extend(frames(&payload).iter().filter_map(|frame| match frame {
            Frame::StreamDataBlocked { limit, .. } => Some(*limit),
            _ => None,
        }));
    }
    assert_eq!(said, [300_000], "the peer hears that there would be more");
    // With more credit than was used, the end needs no permission.
    streams.finish(stream).unwrap();
    let (payload, _) = send(&mut streams, 100);
    assert!(matches!(frames(&payload)[..], [Frame::Stream { fin: true, .. }]), "{:?}", frames(&payload));
    // Whoever waits when there is no room either hears of permission when it comes.
    let other = streams.open(BIDI).unwrap();
    streams.write(other, all()).unwrap();
    while streams.interest().data {
        send(&mut streams, 10_000);
    }
    events(&mut streams);
    streams.on_congestion_window(1);
    parameters.initial_max_data = 1 << 22;
    streams.set_peer_limits(&parameters);
    streams.on_max_stream_data(other, 1 << 21).unwrap();
    assert_eq!(events(&mut streams), [Event::Writable { id: other }]);
}

#[test]
fn streams_that_are_gone_do_not_stay_in_queues() {
    let mut config = config();
    config.max_uni_streams = 1 << 20;
    let mut streams = Streams::new(Side::Server, &config);
    for index in 0..10_000 {
        let id = id(Side::Client, UNI, index);
        streams.on_stream(NOW, id, 0, b"x", false).unwrap();
        streams.stop_sending(id, 0).unwrap();
        streams.on_reset_stream(NOW, id, 0, 1).unwrap();
    }
    assert!(streams.control_queue.len() < 100);
    assert_eq!(streams.active_streams(), 0);
}

#[test]
fn an_idle_connection_with_a_few_streams_is_small() {
    assert!(size_of::<Streams>() <= 1024, "{}", size_of::<Streams>());
    assert!(size_of::<super::super::store::Stream>() <= 640, "{}", size_of::<super::super::store::Stream>());
}
