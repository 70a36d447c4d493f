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
    ];
    for (at, one) in said.iter().enumerate() {
        assert!(one.contains(' ') && !said[..at].contains(one), "{one}");
    }
    assert!(said[0].contains("0x10c") && said[5].contains("0x10c"), "codes are told");
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
