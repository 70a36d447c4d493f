//! Losses as the application hears of them.

use super::super::*;
use super::common::*;
use crate::part::Part;
use godwit_recovery::Outcome;

/// A stream with 20 bytes in two packets, and what those carried.
fn sent(streams: &mut Streams, fin: bool) -> (StreamId, [StreamToken; 2]) {
    let id = streams.open(BIDI).unwrap();
    let mut tokens = Vec::new();
    for last in [false, true] {
        streams.write(id, Bytes::from_static(&[7; 10])).unwrap();
        if last && fin {
            streams.finish(id).unwrap();
        }
        tokens.extend(send(streams, 1000).1);
    }
    (id, tokens.try_into().unwrap())
}

#[test]
fn a_loss_is_told_once_and_only_to_who_asks() {
    let mut streams = server();
    let (watched, [first, second]) = sent(&mut streams, false);
    let (_, [other, _]) = sent(&mut streams, false);
    streams.watch_loss(watched).unwrap();
    streams.on_outcome(Outcome::Lost, other);
    assert_eq!(events(&mut streams), []);
    streams.on_outcome(Outcome::Lost, second);
    streams.on_outcome(Outcome::Lost, first);
    assert_eq!(events(&mut streams), [Event::StreamDataLost { id: watched }]);
    let again = send(&mut streams, 1000).1;
    again.iter().for_each(|token| streams.on_outcome(Outcome::Lost, *token));
    assert_eq!(events(&mut streams), []);
    streams.watch_loss(watched).unwrap();
    let again = send(&mut streams, 1000).1;
    again.iter().for_each(|token| streams.on_outcome(Outcome::Lost, *token));
    assert_eq!(events(&mut streams), [Event::StreamDataLost { id: watched }]);
}

#[test]
fn what_the_peer_has_is_not_lost() {
    let mut streams = server();
    let (id, [first, second]) = sent(&mut streams, false);
    streams.watch_loss(id).unwrap();
    streams.on_outcome(Outcome::Acked, first);
    streams.repeat(first);
    assert_eq!(events(&mut streams), [], "a probe");
    streams.finish(id).unwrap();
    streams.on_outcome(Outcome::Lost, first);
    assert_eq!(events(&mut streams), [], "it has come in another packet");
    streams.on_outcome(Outcome::Lost, second);
    assert_eq!(events(&mut streams), [Event::StreamDataLost { id }]);
}

#[test]
fn what_a_probe_repeats_is_as_good_as_lost() {
    let mut streams = server();
    let (id, [first, _]) = sent(&mut streams, false);
    streams.watch_loss(id).unwrap();
    streams.repeat_quietly(first);
    assert_eq!(events(&mut streams), [], "nothing says so");
    streams.repeat(first);
    streams.repeat(first);
    assert_eq!(events(&mut streams), [Event::StreamDataLost { id }]);
}

#[test]
fn the_end_may_be_lost_as_well() {
    for fin in [false, true] {
        let mut streams = server();
        let (id, tokens) = sent(&mut streams, fin);
        streams.watch_loss(id).unwrap();
        let StreamToken::Data { offset, len, fin, .. } = tokens[1] else { panic!("{tokens:?}") };
        let end = StreamToken::Data { id, offset: offset + u64::from(len), len: 0, fin };
        streams.on_outcome(Outcome::Lost, end);
        assert_eq!(events(&mut streams).len(), usize::from(fin));
    }
}

#[test]
fn a_stream_that_was_given_up_loses_nothing() {
    let mut streams = server();
    let (id, [first, _]) = sent(&mut streams, true);
    streams.watch_loss(id).unwrap();
    streams.reset(id, 5).unwrap();
    streams.on_outcome(Outcome::Lost, first);
    assert_eq!(events(&mut streams), []);
    assert_eq!(streams.watch_loss(self::id(Side::Server, BIDI, 9)), Err(UnknownStream));
    assert_eq!(streams.watch_loss(self::id(Side::Client, UNI, 0)), Err(UnknownStream));
}
