//! An application that keeps what it reads.

use super::*;

#[test]
fn a_peer_that_is_held_back_goes_on_when_it_is_released() {
    let mut pair = Pair::new(TransportConfig {
        initial_stream_window: 10_000,
        max_stream_window: 10_000,
        ..TransportConfig::default()
    });
    pair.run(20);
    let id = pair.client.open(Direction::Unidirectional).unwrap();
    let (mut unsent, mut taken) = (Bytes::from_static(&[7; 50_000]), Vec::new());
    let mut go_on = |pair: &mut Pair| {
        let (before, mut read) = (taken.len(), 0);
        for _ in 0..30 {
            pair.client.write_from(id, &mut unsent).unwrap();
            pair.run(2);
            while let Ok(ReadChunk::Data(data)) = pair.server.read_held(id, usize::MAX) {
                let readable = pair.server.readable(id).unwrap();
                read += data.len() as u64;
                taken.push(data.len() as u64);
                assert_eq!(readable.offset, taken.iter().sum::<u64>());
            }
        }
        assert!(taken.len() > before || read == 0);
        read
    };
    assert_eq!(go_on(&mut pair), 10_000, "as much as its window");
    assert_eq!(go_on(&mut pair), 0);
    pair.server.release_held(pair.now, id, 7_000);
    assert_eq!(go_on(&mut pair), 7_000);
    pair.server.release_held(pair.now, id, 10_000);
    assert_eq!(go_on(&mut pair), 10_000);
}
