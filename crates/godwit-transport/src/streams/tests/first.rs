//! Streams that go before all others, and what the peer has permitted of them.

use super::super::*;
use super::common::*;
use godwit_wire::Frame;

/// A server that may send so many bytes, and so many on each stream that it opens.
fn permitted(connection: u64, stream: u64) -> Streams {
    let mut streams = Streams::new(Side::Server, &config());
    streams.set_peer_limits(&TransportParameters {
        initial_max_data: connection,
        initial_max_stream_data_bidi_remote: stream,
        initial_max_stream_data_uni: stream,
        initial_max_streams_bidi: 4,
        initial_max_streams_uni: 4,
        ..TransportParameters::default()
    });
    streams
}

#[test]
fn they_go_before_the_most_urgent_and_what_was_ready_before() {
    let mut streams = server();
    let [long, urgent] = [(); 2].map(|()| streams.open(BIDI).unwrap());
    let first = streams.open(UNI).unwrap();
    streams.set_priority(urgent, 0, false).unwrap();
    streams.put_first(first).unwrap();
    for id in [long, urgent, first] {
        streams.write(id, vec![0; 1000].into()).unwrap();
    }
    let (payload, _) = send(&mut streams, 1200);
    let Some(Frame::Stream { id, .. }) = frames(&payload).into_iter().next() else { panic!("no stream") };
    assert_eq!(id, first);
}

#[test]
fn what_is_beyond_the_streams_limit_is_not_permitted() {
    let mut streams = permitted(1000, 10);
    let id = streams.open(UNI).unwrap();
    streams.put_first(id).unwrap();
    assert_eq!(streams.write(id, vec![0; 10].into()), Ok(10));
    assert!(streams.is_permitted(id, &[]));
    assert_eq!(streams.write(id, vec![0; 1].into()), Ok(1), "taken all the same");
    assert!(!streams.is_permitted(id, &[]));
    streams.on_max_stream_data(id, 11).unwrap();
    assert!(streams.is_permitted(id, &[]));
}

#[test]
fn what_is_beyond_the_connections_limit_is_not_permitted() {
    let mut streams = permitted(10, 1000);
    let [id, other] = [(); 2].map(|()| streams.open(UNI).unwrap());
    for (id, len) in [(other, 4), (id, 6)] {
        streams.put_first(id).unwrap();
        streams.write(id, vec![0; len].into()).unwrap();
    }
    assert!(streams.is_permitted(id, &[other]) && streams.is_permitted(id, &[]));
    streams.write(id, vec![0; 1].into()).unwrap();
    assert!(!streams.is_permitted(id, &[other]), "the other may be before it");
    assert!(streams.is_permitted(id, &[]));
    let _ = send(&mut streams, 1200);
    assert!(!streams.is_permitted(id, &[]), "what had been permitted is used up");
    take(&mut streams, Frame::MaxData { limit: 11 }).unwrap();
    assert!(streams.is_permitted(id, &[other]), "the other has nothing left");
}
