//! What the application hears of losses.

use super::*;

#[test]
fn a_packet_that_is_lost_with_data_of_a_watched_stream_is_told() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.run(20);
    events(&mut pair.client);
    let streams = [0; 3].map(|_| pair.client.open(Direction::Unidirectional).unwrap());
    let [watched, unwatched, spared] = streams;
    for id in [watched, unwatched] {
        pair.client.write(id, Bytes::from_static(b"lost")).unwrap();
    }
    for id in [watched, spared] {
        pair.client.watch_loss(id).unwrap();
    }
    pair.batch.clear();
    pair.client.machine.transmit(pair.now, &mut pair.batch, &mut pair.rng);
    assert_eq!(pair.batch.datagrams().count(), 1, "never arrives");
    for _ in 0..5 {
        pair.client.write(spared, Bytes::from_static(b"spared")).unwrap();
        pair.exchange(true);
    }
    pair.run(10);
    assert!(pair.client.stats().packets_lost > 0);
    let lost: Vec<_> = events(&mut pair.client)
        .into_iter()
        .filter(|event| matches!(event, Event::StreamDataLost { .. }))
        .collect();
    assert_eq!(lost, [Event::StreamDataLost { id: watched }]);
}
