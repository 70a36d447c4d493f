//! Stream limits, and what is heard of them.

use super::*;

#[test]
fn the_peer_hears_of_limits_and_this_end_that_more_is_wanted() {
    let mut pair = Pair::new(TransportConfig { max_uni_streams: 1, ..TransportConfig::default() });
    for end in [&mut pair.client, &mut pair.server] {
        end.watch_stream_limits();
    }
    pair.run(20);
    let direction = Direction::Unidirectional;
    let raised = Event::StreamLimitRaised { direction };
    assert!(events(&mut pair.client).contains(&raised));
    events(&mut pair.server);
    assert!(pair.client.open(direction).is_some() && pair.client.open(direction).is_none());
    pair.run(5);
    assert_eq!(events(&mut pair.server), [Event::StreamsWanted { direction }]);
    assert_eq!((pair.client.stream_limits(direction).available(), events(&mut pair.client)), (0, vec![]));
    pair.server.set_max_streams(direction, 3);
    pair.run(5);
    assert_eq!(events(&mut pair.client), [Event::StreamsAvailable { direction }, raised]);
    assert_eq!(pair.client.stream_limits(direction).available(), 2);
    assert_eq!(pair.server.stream_limits(direction).permitted_to_peer, 3);
}
