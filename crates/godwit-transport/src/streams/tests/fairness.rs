//! Who sends how much: shares by weight, and nobody waits but for the more urgent.

use super::super::*;
use crate::packet::testing::payload;
use crate::part::Part;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Larger than any frame of these tests.
const MOST: u64 = 1400;

fn streams(count: u64) -> (Streams, Vec<StreamId>) {
    let config = TransportConfig { send_buffer: 1 << 40, ..TransportConfig::default() };
    let mut streams = Streams::new(Side::Server, &config);
    let parameters = TransportParameters {
        initial_max_data: 1 << 40,
        initial_max_stream_data_uni: 1 << 40,
        initial_max_streams_uni: count,
        ..TransportParameters::default()
    };
    streams.set_peer_limits(&parameters);
    let ids = (0..count).map(|_| streams.open(Direction::Unidirectional).unwrap()).collect();
    (streams, ids)
}

/// Sends one packet. Returns the bytes of each stream in it, and acknowledges them.
fn send(streams: &mut Streams, room: usize) -> Vec<(StreamId, u64)> {
    let (_, tokens, _) = payload(room, |packet| streams.write_data(packet));
    let bytes = |token: &StreamToken| match *token {
        StreamToken::Data { id, len, .. } => Some((id, u64::from(len))),
        _ => None,
    };
    let sent = tokens.iter().filter_map(bytes).collect();
    tokens.into_iter().for_each(|token| streams.on_acked(token));
    sent
}

/// Sees to it that the stream has something to send.
fn fill(streams: &mut Streams, id: StreamId) {
    if streams.buffered_on(id).unwrap() < 2 * MOST {
        streams.write(id, Bytes::from_static(&[0; 8000])).unwrap();
    }
}

proptest! {
    #[test]
    fn incremental_streams_share_by_weight(
        weights in prop::collection::vec(1u8..30, 2..8),
        rooms in prop::collection::vec(100..MOST as usize, 200..1000),
    ) {
        let (mut streams, ids) = streams(weights.len() as u64);
        for (id, weight) in ids.iter().zip(&weights) {
            streams.set_priority(*id, 3, true).unwrap();
            streams.set_weight(*id, *weight).unwrap();
        }
        let mut sent = BTreeMap::new();
        for room in rooms {
            ids.iter().for_each(|id| fill(&mut streams, *id));
            for (id, bytes) in send(&mut streams, room) {
                *sent.entry(id).or_insert(0) += bytes;
            }
        }
        // Per unit of weight nobody is ahead of another by more than two turns, one being under way and one begun.
        let per_weight = |at: usize| sent.get(&ids[at]).copied().unwrap_or(0) / u64::from(weights[at]);
        for (a, b) in (0..ids.len()).flat_map(|a| (0..ids.len()).map(move |b| (a, b))) {
            prop_assert!(per_weight(a) <= per_weight(b) + 3 * MOST, "{weights:?} {sent:?}");
        }
    }

    /// Priorities are changed at any time. What is sent is always of the most urgent streams that have something, and
    /// no incremental stream waits for longer than one turn of each of the others.
    #[test]
    fn nobody_starves_but_behind_the_more_urgent(
        steps in prop::collection::vec((0usize..6, 0u8..3, 0u8..12, 100usize..MOST as usize), 50..300),
    ) {
        let (mut streams, ids) = streams(6);
        let mut urgencies = BTreeMap::new();
        let mut waited: BTreeMap<StreamId, u64> = BTreeMap::new();
        for id in &ids {
            streams.set_priority(*id, 2, true).unwrap();
            urgencies.insert(*id, 2);
        }
        for (who, urgency, weight, room) in steps {
            let changed = ids[who];
            streams.set_priority(changed, urgency, true).unwrap();
            streams.set_weight(changed, weight).unwrap();
            // Whoever comes or goes begins to wait anew, and so do those that were kept waiting by the more urgent.
            if urgencies.insert(changed, urgency) != Some(urgency) {
                waited.clear();
            }
            ids.iter().for_each(|id| fill(&mut streams, *id));
            let most_urgent = *urgencies.values().min().unwrap();
            let sent = send(&mut streams, room);
            prop_assert!(!sent.is_empty());
            for (id, bytes) in sent {
                prop_assert_eq!(urgencies[&id], most_urgent);
                for other in ids.iter().filter(|other| **other != id && urgencies[other] == most_urgent) {
                    *waited.entry(*other).or_default() += bytes;
                }
                waited.insert(id, 0);
            }
            // Five others, each of whom may use up an old turn and begin a new one of the largest weight.
            prop_assert!(waited.values().all(|bytes| *bytes <= 2 * 5 * 12 * MOST), "{waited:?}");
        }
    }
}

#[test]
fn a_weight_can_be_taken_back() {
    let (mut streams, ids) = streams(2);
    ids.iter().for_each(|id| streams.set_priority(*id, 3, true).unwrap());
    streams.set_weight(ids[0], 255).unwrap();
    let of_first = |streams: &mut Streams, packets: usize| {
        let mut bytes = 0;
        for _ in 0..packets {
            ids.iter().for_each(|id| fill(streams, *id));
            bytes +=
                send(streams, 1000).iter().filter(|(id, _)| *id == ids[0]).map(|(_, len)| len).sum::<u64>();
        }
        bytes / packets as u64
    };
    assert!(of_first(&mut streams, 200) > 950);
    streams.set_weight(ids[0], 0).unwrap();
    let share = of_first(&mut streams, 200);
    assert!((450..=550).contains(&share), "{share}");
}

#[test]
fn who_wants_to_is_told_what_is_worth_buffering() {
    let (mut streams, ids) = streams(1);
    let changed = |streams: &mut Streams| {
        std::iter::from_fn(|| streams.next_event())
            .filter(|event| *event == Event::IdealBufferChanged)
            .count()
    };
    streams.on_congestion_window(10 << 19);
    assert_eq!((changed(&mut streams), streams.ideal_buffer(ids[0])), (0, Ok(20 << 20)));
    streams.watch_ideal_buffer(20 << 20);
    streams.on_congestion_window(11 << 19);
    assert_eq!((changed(&mut streams), streams.ideal_buffer_of_all()), (0, 22 << 20));
    streams.on_congestion_window(13 << 19);
    streams.on_congestion_window(12 << 19);
    assert_eq!(changed(&mut streams), 1);
    streams.on_congestion_window(0);
    assert_eq!((changed(&mut streams), streams.ideal_buffer(ids[0])), (1, Ok(128 << 10)));
    streams.finish(ids[0]).unwrap();
    assert_eq!(streams.ideal_buffer(ids[0]), Err(WriteError::Finished));
}

#[test]
fn no_more_is_worth_buffering_than_the_peer_permits() {
    let mut streams = Streams::new(Side::Client, &TransportConfig::default());
    let parameters = TransportParameters {
        initial_max_data: 1 << 20,
        initial_max_stream_data_bidi_remote: 5000,
        initial_max_streams_bidi: 1,
        ..TransportParameters::default()
    };
    streams.set_peer_limits(&parameters);
    let id = streams.open(Direction::Bidirectional).unwrap();
    assert_eq!(streams.ideal_buffer(id), Ok(5000));
    streams.write(id, Bytes::from_static(&[0; 2000])).unwrap();
    assert_eq!(streams.ideal_buffer(id), Ok(5000), "what is written fills it");
    while !send(&mut streams, 1200).is_empty() {}
    assert_eq!(streams.ideal_buffer(id), Ok(3000), "what is acknowledged has used the limit up");
    streams.on_max_stream_data(id, 10_000).unwrap();
    assert_eq!(streams.ideal_buffer(id), Ok(8000));
}
