//! When there is room again, who is queued, and what the application is told in words.

use super::super::*;
use crate::packet::testing::payload;
use crate::part::Part;
use godwit_base::Time;
use godwit_wire::Frame;

#[test]
fn there_is_room_again_when_a_quarter_is_free() {
    let mut budget = WriteBudget::new(1 << 30);
    assert_eq!(budget.limit, WriteBudget::LEAST);
    for (used, room) in [
        (0, true),
        (WriteBudget::LEAST / 4 * 3, true),
        (WriteBudget::LEAST / 4 * 3 + 1, false),
        (WriteBudget::LEAST, false),
        (u64::MAX, false),
    ] {
        budget.used = used;
        assert_eq!(budget.has_room(), room, "{used} of {}", budget.limit);
    }
}

#[test]
fn each_stream_may_hold_less_once_all_hold_a_mebibyte_beyond_the_limit() {
    let mut budget = WriteBudget::new(1 << 30);
    let beyond = budget.limit + (1 << 20);
    for (used, share) in [(0, 65_536), (beyond - 1, 65_536), (beyond, 65_536), (beyond + 1, 16_384)] {
        budget.used = used;
        assert_eq!(budget.stream_share(), share, "{used}");
    }
    budget.is_small = true;
    assert_eq!(budget.stream_share(), 2048, "while memory is scarce");
}

#[test]
fn four_congestion_windows_are_held_but_neither_too_little_nor_too_much() {
    let mut budget = WriteBudget::new(1 << 20);
    let wanted =
        |budget: &WriteBudget| [0, 32_768, 32_769, 262_144, 262_145].map(|window| budget.wanted(window));
    assert_eq!(wanted(&budget), [131_072, 131_072, 131_076, 1 << 20, 1 << 20]);
    budget.is_small = true;
    assert_eq!(wanted(&budget), [65_536; 5], "while memory is scarce");
}

#[test]
fn who_waits_while_there_is_room_waits_for_permission_and_others_are_queued_once() {
    let id = StreamId::new(Side::Client, Direction::Unidirectional, 0);
    let mut budget = WriteBudget::new(1000);
    let mut send = SendHalf::new(0);
    budget.wait(id, &mut send);
    assert!(send.write_waiting && !send.write_queued && budget.unpermitted);
    assert!(budget.waiting.is_empty());
    // All of the room is taken.
    budget.used = 1000;
    budget.wait(id, &mut send);
    budget.wait(id, &mut send);
    assert_eq!(budget.waiting, [id], "once");
    assert!(send.write_queued && budget.unpermitted, "who waited before still does");
    // Who is queued already hears of room, whatever it waits for.
    (budget.used, budget.unpermitted) = (0, false);
    budget.wait(id, &mut send);
    assert!(!budget.unpermitted);
    assert_eq!(budget.waiting, [id]);
}

#[test]
fn those_that_are_gone_leave_a_queue_when_they_outnumber_the_living_by_far() {
    let id = |index| StreamId::new(Side::Client, Direction::Unidirectional, index);
    let left = |living: u64, queued: u64| {
        let mut store = Store::default();
        for index in 0..living {
            store.insert(Stream::new(id(index), None, None)).unwrap();
        }
        let mut queue: VecDeque<StreamId> = (0..queued).map(id).collect();
        forget_gone(&mut queue, &store, |stream| stream.id != id(1));
        queue.into_iter().map(StreamId::index).collect::<Vec<_>>()
    };
    assert_eq!(left(0, 64).len(), 64);
    assert!(left(0, 65).is_empty());
    assert_eq!(left(3, 70).len(), 70, "two for each that lives, and 64");
    assert_eq!(left(3, 71), [0, 2], "those that live and stand in it");
}

#[test]
fn a_stream_with_several_things_to_say_is_queued_once() {
    let mut streams = Streams::new(Side::Server, &TransportConfig::default());
    let id = StreamId::new(Side::Client, Direction::Bidirectional, 0);
    streams.on_stream(Time::ZERO, id, 0, b"x", false).unwrap();
    assert_eq!(streams.control_queue.len(), 0, "nothing to say");
    streams.stop_sending(id, 1).unwrap();
    streams.on_stop_sending(id, 2).unwrap();
    assert_eq!(streams.control_queue, [id]);
}

#[test]
fn every_refusal_has_a_sentence_of_its_own() {
    let said = [
        ReadError::Reset(0x10c).to_string(),
        ReadError::Stopped.to_string(),
        ReadError::UnknownStream.to_string(),
        WriteError::Finished.to_string(),
        WriteError::Reset.to_string(),
        WriteError::Stopped(0x10c).to_string(),
        WriteError::UnknownStream.to_string(),
        UnknownStream.to_string(),
        ResetAtError::Unsupported.to_string(),
    ];
    for (at, one) in said.iter().enumerate() {
        assert!(one.contains(' ') && !said[..at].contains(one), "{one}");
    }
    assert!(said[0].contains("0x10c") && said[5].contains("0x10c"), "codes are told");
    assert_eq!(ResetAtError::UnknownStream.to_string(), UnknownStream.to_string());
}

#[test]
fn a_peer_that_says_it_is_blocked_without_need_is_given_nothing() {
    let mut streams = Streams::new(Side::Server, &TransportConfig::default());
    let id = StreamId::new(Side::Client, Direction::Bidirectional, 0);
    streams.on_stream(Time::ZERO, id, 0, b"x", true).unwrap();
    for limit in [0, 1, TransportConfig::default().initial_stream_window, 1 << 40] {
        streams.on_frame(Time::ZERO, &Frame::StreamDataBlocked { id, limit }).unwrap().unwrap();
        assert_eq!(streams.interest(), Interest::default(), "{limit}: all of the stream has come");
    }
}

#[test]
fn who_has_sent_all_that_was_permitted_and_has_no_more_is_not_blocked() {
    for (written, blocked) in [(19, false), (20, false), (21, true)] {
        let mut streams = Streams::new(Side::Client, &TransportConfig::default());
        streams.set_peer_limits(&TransportParameters {
            initial_max_data: 1 << 20,
            initial_max_stream_data_bidi_remote: 20,
            initial_max_streams_bidi: 1,
            ..TransportParameters::default()
        });
        let id = streams.open(Direction::Bidirectional).unwrap();
        streams.write(id, vec![7; written].into()).unwrap();
        let mut said = Vec::new();
        for _ in 0..3 {
            let (payload, ..) = payload::<StreamToken, _>(100, |packet| {
                streams.write_frames(packet);
                streams.write_data(packet);
            });
            said.extend(payload);
        }
        // Type, stream and limit of a STREAM_DATA_BLOCKED frame.
        let told = said.windows(3).any(|bytes| bytes == [0x15, 0, 20]);
        assert_eq!(told, blocked, "{written}: {said:?}");
    }
}

#[test]
fn data_that_follows_on_data_is_remembered_as_one() {
    let id = |index| StreamId::new(Side::Client, Direction::Bidirectional, index);
    let data = |index, offset, len, fin| StreamToken::Data { id: id(index), offset, len, fin };
    let merged = |mut one: StreamToken, next| one.absorb(next).then_some(one);
    assert_eq!(merged(data(0, 5, 10, false), data(0, 15, 7, false)), Some(data(0, 5, 17, false)));
    assert_eq!(merged(data(0, 5, 10, false), data(0, 15, 0, true)), Some(data(0, 5, 10, true)));
    for next in [
        data(1, 15, 7, false),
        data(0, 16, 7, false),
        data(0, 14, 7, false),
        data(0, 15, u32::MAX, false),
        StreamToken::MaxData,
    ] {
        assert_eq!(merged(data(0, 5, 10, false), next), None, "{next:?}");
    }
    assert_eq!(merged(data(0, 5, 10, true), data(0, 15, 7, false)), None, "behind the end");
}
