#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use crate::packet::testing::payload;
use godwit_wire::{Frame, Reader, varint_len};
use proptest::prelude::*;

const ROOM: usize = 1200;

fn datagrams(change: impl FnOnce(&mut DatagramConfig)) -> Datagrams {
    let mut config = DatagramConfig::default();
    change(&mut config);
    let mut datagrams = Datagrams::new(config);
    datagrams.set_peer_limit(65_535);
    datagrams
}

fn data(n: u8, len: usize) -> Bytes {
    vec![n; len].into()
}

fn outcomes(datagrams: &mut Datagrams) -> Vec<DatagramOutcome> {
    std::iter::from_fn(|| datagrams.next_outcome()).collect()
}

/// Writes one packet; returns its frames' contents and its tokens.
fn packet(datagrams: &mut Datagrams, room: usize) -> (Vec<Vec<u8>>, Vec<DatagramToken>) {
    let (payload, tokens, written) = payload(room, |packet| datagrams.write_data(ROOM, packet));
    assert_eq!(written, payload.len());
    let mut reader = Reader::new(&payload);
    let mut contents = Vec::new();
    while !reader.is_empty() {
        let Frame::Datagram { data } = Frame::decode(&mut reader).unwrap() else { panic!("another frame") };
        contents.push(data.to_vec());
    }
    (contents, tokens)
}

#[test]
fn a_tag_is_told_each_step() {
    let mut ours = datagrams(|_| {});
    ours.queue(data(1, 10), Some(1), false, ROOM).unwrap();
    ours.queue(data(2, 10), None, false, ROOM).unwrap();
    assert_eq!(ours.next_event(), None);
    let (contents, tokens) = packet(&mut ours, ROOM);
    assert_eq!(contents, [vec![1; 10], vec![2; 10]]);
    assert_eq!(tokens, [DatagramToken { tag: Some(1) }, DatagramToken { tag: None }]);
    assert_eq!(ours.next_event(), Some(Event::DatagramOutcomes));
    assert_eq!(ours.next_event(), None, "told once");
    ours.on_outcome(Outcome::Lost, DatagramToken { tag: Some(1) });
    ours.on_outcome(Outcome::Lost, DatagramToken { tag: None });
    ours.on_outcome(Outcome::Spurious, DatagramToken { tag: Some(1) });
    let expected = [
        DatagramOutcome::Sent { tag: 1 },
        DatagramOutcome::SuspectedLost { tag: 1 },
        DatagramOutcome::Spurious { tag: 1 },
    ];
    assert_eq!(outcomes(&mut ours), expected);
    let stats = DatagramStats { sent: 2, acknowledged: 1, lost: 2, spurious: 1, ..DatagramStats::default() };
    assert_eq!(ours.stats(), stats);
}

#[test]
fn the_oldest_make_room_or_the_newest_is_refused() {
    let mut ours = datagrams(|config| config.send_buffer = 3 * (100 + OVERHEAD));
    (0..5).for_each(|n| ours.queue(data(n, 100), Some(u64::from(n)), false, ROOM).unwrap());
    assert_eq!(outcomes(&mut ours), [0, 1].map(|tag| DatagramOutcome::Cancelled { tag }));
    assert_eq!(packet(&mut ours, ROOM).0, [vec![2; 100], vec![3; 100], vec![4; 100]]);

    let mut ours = datagrams(|config| {
        config.send_buffer = 3 * (100 + OVERHEAD);
        config.overflow = DatagramOverflow::Refuse;
    });
    (0..3).for_each(|n| ours.queue(data(n, 100), None, false, ROOM).unwrap());
    assert_eq!(ours.queue(data(3, 0), Some(3), false, ROOM), Err(SendDatagramError::Full));
    assert_eq!(ours.next_event(), None);
    packet(&mut ours, ROOM);
    assert_eq!(ours.next_event(), Some(Event::DatagramsWritable));
    assert_eq!(ours.next_event(), None);
}

#[test]
fn what_is_not_to_wait_is_cancelled_when_nothing_more_can_be_sent() {
    let mut ours = datagrams(|_| {});
    for (n, unless_blocked) in [(0, true), (1, false), (2, true), (3, true)] {
        ours.queue(data(n, 10), Some(n.into()), unless_blocked, ROOM).unwrap();
    }
    assert_eq!(ours.cancel(3), 1);
    assert_eq!(packet(&mut ours, 15).0, [vec![0; 10]], "there is room for one");
    ours.on_blocked();
    ours.on_blocked();
    let expected = [
        DatagramOutcome::Cancelled { tag: 3 },
        DatagramOutcome::Sent { tag: 0 },
        DatagramOutcome::Cancelled { tag: 2 },
    ];
    assert_eq!(outcomes(&mut ours), expected);
    assert_eq!(packet(&mut ours, ROOM).0, [vec![1; 10]]);
}

#[test]
fn what_cannot_be_sent_is_refused_or_cancelled() {
    let mut ours = Datagrams::new(DatagramConfig::default());
    assert_eq!(ours.queue(data(0, 1), None, false, ROOM), Err(SendDatagramError::Unsupported));
    assert_eq!(ours.max_len(ROOM), None);
    ours.set_peer_limit(100);
    assert_eq!(ours.queue(data(0, 98), None, false, ROOM), Err(SendDatagramError::TooLarge { max: 97 }));
    ours.set_peer_limit(65_535);
    assert_eq!(ours.max_len(ROOM), Some(ROOM - 3));
    // The path was wider when this one was queued.
    ours.queue(data(1, ROOM), Some(1), false, 2 * ROOM).unwrap();
    ours.queue(data(2, ROOM - 3), Some(2), false, ROOM).unwrap();
    ours.queue(data(3, 5), Some(3), false, ROOM).unwrap();
    ours.queue(data(4, 5), Some(4), false, ROOM).unwrap();
    assert_eq!(ours.cancel(3), 1);
    assert_eq!(
        packet(&mut ours, ROOM - 1).0.len(),
        0,
        "a fuller packet is no reason to drop one that fits later"
    );
    assert_eq!(packet(&mut ours, ROOM).0, [vec![2; ROOM - 3]]);
    ours.on_closed();
    let expected = [
        DatagramOutcome::Cancelled { tag: 3 },
        DatagramOutcome::Cancelled { tag: 1 },
        DatagramOutcome::Sent { tag: 2 },
        DatagramOutcome::Cancelled { tag: 4 },
    ];
    assert_eq!(outcomes(&mut ours), expected);
}

#[test]
fn unread_datagrams_are_bounded_and_the_newest_stay() {
    let mut ours = datagrams(|config| {
        config.receive_buffer = 3 * (100 + OVERHEAD);
        config.max_frame_size = 200;
    });
    (0..10).for_each(|n| ours.on_datagram(&[n; 100]).unwrap());
    assert_eq!(ours.next_event(), Some(Event::DatagramsReadable));
    assert_eq!(ours.next_event(), None);
    let read: Vec<_> = std::iter::from_fn(|| ours.read()).collect();
    assert_eq!(read, [data(7, 100), data(8, 100), data(9, 100)]);
    ours.on_datagram(&[]).unwrap();
    assert_eq!(ours.next_event(), Some(Event::DatagramsReadable));
    assert_eq!((ours.stats().received, ours.stats().dropped), (11, 7));
    assert_eq!(ours.on_datagram(&[0; 200]).unwrap_err().code, TransportErrorCode::PROTOCOL_VIOLATION);
    let mut none = datagrams(|config| config.max_frame_size = 0);
    assert_eq!(none.on_datagram(&[]).unwrap_err().code, TransportErrorCode::PROTOCOL_VIOLATION);
}

#[test]
fn packets_are_shared_as_the_setting_says() {
    for (share, later) in [0, 25, 80, 100].into_iter().flat_map(|share| [(share, false), (share, true)]) {
        let mut ours = datagrams(|config| config.share = if later { 50 } else { share });
        if later {
            ours.on_shared(0, 100_000);
            ours.set_share(share);
        }
        let (mut datagrams, mut streams) = (0, 0);
        for _ in 0..10_000 {
            let bytes = if ours.give_way() { (0, 1200) } else { (1200, 0) };
            ours.on_shared(bytes.0, bytes.1);
            (datagrams, streams) = (datagrams + bytes.0, streams + bytes.1);
        }
        let percent = 100 * datagrams / (datagrams + streams);
        assert!(percent.abs_diff(usize::from(share)) <= 1, "{share} {percent}");
    }
}

#[test]
fn a_longer_length_field_does_not_make_the_largest_shorter() {
    let mut ours = datagrams(|_| {});
    ours.set_peer_limit(65_535);
    for (room, max) in [(65, 63), (66, 63), (67, 64), (16_386, 16_383), (16_388, 16_383), (16_389, 16_384)] {
        assert_eq!(ours.max_len(room), Some(max), "{room}");
    }
}

proptest! {
    #[test]
    fn the_largest_length_is_the_largest_that_fits(room in 4usize..70_000, limit in 2u64..70_000) {
        let mut ours = datagrams(|_| {});
        ours.set_peer_limit(limit);
        let max = ours.max_len(room).unwrap();
        let size = |len: usize| 1 + varint_len(len as u64) + len;
        let fits = |len: usize| size(len) <= room && size(len) as u64 <= limit;
        prop_assert!(fits(max));
        prop_assert!(!fits(max + 1));
    }
}
