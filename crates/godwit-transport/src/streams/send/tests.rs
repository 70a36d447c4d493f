#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use godwit_wire::{Direction, Frame, Reader, Side};
use proptest::prelude::*;

const ID: StreamId = StreamId::new(Side::Client, Direction::Bidirectional, 20);

fn filled(len: usize) -> SendHalf {
    let mut half = SendHalf::new(u64::MAX >> 2);
    half.write((0..len).map(|at| at as u8).collect::<Vec<_>>().into());
    half
}

proptest! {
    #[test]
    fn frames_fit_any_room_and_say_where_they_end(len in 0usize..300, room in 0usize..320, start in 0usize..80) {
        let mut half = filled(len + start);
        if start > 0 {
            let mut first = vec![0; start + 3 + usize::from(start > 63)];
            while half.buffer.unsent() < start as u64 {
                half.write_frame(ID, (start as u64) - half.buffer.unsent(), 0, &mut Writer::new(&mut first)).unwrap();
            }
        }
        half.finish().unwrap();
        let mut room = vec![0; room];
        let mut writer = Writer::new(&mut room);
        let Some(sent) = half.write_frame(ID, u64::MAX, 0, &mut writer) else {
            prop_assert!(writer.is_empty());
            prop_assert!(room.len() < 7 + usize::from(len > 0), "a usable room was refused");
            return Ok(());
        };
        let used = writer.len();
        let mut reader = Reader::new(&room[..used]);
        let frame = Frame::decode(&mut reader).unwrap();
        prop_assert!(reader.is_empty());
        let Frame::Stream { id, offset, data, fin } = frame else { panic!("{frame:?}") };
        prop_assert_eq!((id, offset, data.len() as u32, fin), (ID, start as u64, sent.len, sent.fin));
        prop_assert_eq!(fin, data.len() == len);
        prop_assert!(data.iter().enumerate().all(|(at, byte)| *byte == (start + at) as u8));
        prop_assert!(!data.is_empty() || fin);
        prop_assert!(data.len() == len || room.len() - used <= 1, "room was left although there was data");
    }
}

#[test]
fn a_lost_end_is_sent_again_alone_if_the_data_arrived() {
    let mut half = filled(10);
    half.finish().unwrap();
    let mut room = [0; 100];
    let sent = half.write_frame(ID, 100, 0, &mut Writer::new(&mut room)).unwrap();
    assert_eq!(sent, SentFrame { offset: 0, len: 10, fin: true, fresh: true, resets: false });
    half.on_acked(0..10, false);
    half.on_lost(0..10, true);
    let sent = half.write_frame(ID, 0, 0, &mut Writer::new(&mut room)).unwrap();
    assert_eq!((sent.offset, sent.len, sent.fin), (10, 0, true));
    assert!(half.on_acked(10..10, true).finished);
    assert!(half.is_over());
}

#[test]
fn an_end_that_was_lost_before_the_stream_was_reset_is_not_sent_again() {
    for (len, reliable_size) in [(10, 5), (0, 5)] {
        let mut half = filled(len);
        half.finish().unwrap();
        let mut room = [0; 100];
        half.write_frame(ID, 100, 0, &mut Writer::new(&mut room)).unwrap();
        half.reset_at(7, reliable_size).unwrap();
        half.on_lost(0..len as u64, true);
        let mut again = Vec::new();
        while let Some(sent) = half.write_frame(ID, 100, 0, &mut Writer::new(&mut room)) {
            again.push((sent.offset, sent.len, sent.fin));
            assert!(again.len() < 5, "it never stops: {again:?}");
        }
        let reliable = u32::try_from(reliable_size.min(len as u64)).unwrap();
        assert!(again.iter().all(|sent| *sent == (0, reliable, false)), "{again:?}");
        assert_eq!(half.readiness(100), Readiness::Idle);
    }
}

#[test]
fn limits_hold_new_data_but_not_lost_data() {
    let mut half = filled(100);
    half.limit = 60;
    let mut room = [0; 200];
    assert_eq!(half.write_frame(ID, 40, 0, &mut Writer::new(&mut room)).unwrap().len, 40);
    assert_eq!(half.readiness(0), Readiness::ConnectionBlocked);
    assert_eq!(half.write_frame(ID, 40, 0, &mut Writer::new(&mut room)).unwrap().len, 20);
    assert_eq!(half.readiness(20), Readiness::StreamBlocked);
    half.on_lost(0..40, false);
    assert_eq!(half.readiness(0), Readiness::Ready);
    let again = half.write_frame(ID, 0, 0, &mut Writer::new(&mut room)).unwrap();
    assert_eq!(again, SentFrame { offset: 0, len: 40, fin: false, fresh: false, resets: false });
}

#[test]
fn a_reset_names_what_was_sent_and_frees_the_rest() {
    let mut half = filled(100);
    let mut room = [0; 40];
    let sent = half.write_frame(ID, 100, 0, &mut Writer::new(&mut room)).unwrap();
    assert_eq!(half.reset(7), Some(100));
    assert_eq!(half.reset_frame(), Some((7, u64::from(sent.len))));
    half.on_lost(0..u64::from(sent.len), false);
    assert_eq!(half.readiness(100), Readiness::Idle);
    assert_eq!(half.check_writable(), Err(WriteError::Reset));
    half.on_reset_acked();
    assert!(half.is_over());
}

#[test]
fn a_small_part_of_the_data_is_not_worth_a_frame_but_all_of_it_is() {
    // A frame that reaches to the end of its packet needs three bytes beside the data.
    for (len, least, room, written) in [
        (1000, 64, 3 + 63, None),
        (1000, 64, 3 + 64, Some(64)),
        (1000, 64, 3 + 65, Some(65)),
        (1000, 0, 3 + 1, Some(1)),
        (63, 64, 100, Some(63)),
        (63, 64, 3 + 63, Some(63)),
        (63, 64, 3 + 62, None),
    ] {
        let mut room = vec![0; room];
        let mut writer = Writer::new(&mut room);
        let sent = filled(len).write_frame(ID, u64::MAX, least, &mut writer);
        assert_eq!(sent.map(|sent| sent.len), written, "{len} bytes, at least {least}");
        assert_eq!(writer.is_empty(), written.is_none());
    }
}

#[test]
fn a_frame_has_a_length_unless_it_reaches_to_the_end_and_is_never_empty_for_want_of_room() {
    for (room, available, expected) in [
        (2, 0, None),
        (3, 0, Some((0, true))),
        (3, 1, None),
        (4, 0, Some((0, false))),
        (4, 1, Some((1, true))),
        (4, 9, Some((1, true))),
        (5, 1, Some((1, false))),
        // There is room for two, of which the length takes one.
        (6, 2, Some((2, false))),
        (5, 2, Some((2, true))),
        (3 + 65, 64, Some((63, false))),
        (3 + 66, 64, Some((64, false))),
    ] {
        assert_eq!(fit(room, ID, 0, available), expected, "{available} bytes in {room}");
    }
    assert_eq!(fit(4, ID, 63, 9), None, "the offset takes a byte");
    assert_eq!(fit(6, ID, 64, 9), Some((1, true)), "or two");
}

#[test]
fn a_stream_is_blocked_while_it_is_sending_has_more_and_has_used_its_limit_up() {
    let mut room = [0; 200];
    let mut half = filled(100);
    half.limit = 40;
    assert!(!half.is_stream_blocked(), "nothing is sent yet");
    half.write_frame(ID, 100, 0, &mut Writer::new(&mut room)).unwrap();
    assert!(half.is_stream_blocked());
    half.raise_limit(41);
    assert!(!half.is_stream_blocked());
    half.write_frame(ID, 100, 0, &mut Writer::new(&mut room)).unwrap();
    assert!(half.is_stream_blocked());
    half.reset(7).unwrap();
    assert!(!half.is_stream_blocked(), "nothing of it is sent any more");

    let mut half = filled(40);
    half.limit = 40;
    half.write_frame(ID, 100, 0, &mut Writer::new(&mut room)).unwrap();
    assert!(!half.is_stream_blocked(), "there is no more");
    half.write_waiting = true;
    assert!(half.is_stream_blocked(), "there would be");
}
