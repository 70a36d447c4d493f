//! Stream limits as the application sees them.

use super::super::*;
use super::common::*;
use godwit_base::Time;
use godwit_wire::Frame;
use std::time::Duration;

#[test]
fn limits_count_what_was_opened_and_what_may_be() {
    let mut streams = server();
    let counts = |streams: &Streams, direction| {
        let limits = streams.limits(direction);
        let by_peer = (limits.opened_by_peer, limits.permitted_to_peer);
        ((limits.opened, limits.permitted, limits.available()), by_peer)
    };
    assert_eq!(counts(&streams, BIDI), ((0, 4, 4), (0, 4)));
    streams.open(BIDI).unwrap();
    streams.open(UNI).unwrap();
    streams.open(UNI).unwrap();
    take(&mut streams, Frame::MaxStreams { direction: UNI, limit: 9 }).unwrap();
    let data = Frame::Stream { id: id(Side::Client, UNI, 2), offset: 0, data: b"x", fin: false };
    take(&mut streams, data).unwrap();
    streams.set_max_streams(BIDI, 7);
    assert_eq!(counts(&streams, BIDI), ((1, 4, 3), (0, 7)));
    assert_eq!(counts(&streams, UNI), ((2, 9, 7), (3, 4)));
}

#[test]
fn news_of_limits_are_for_who_asks() {
    let all = [
        Event::StreamLimitRaised { direction: BIDI },
        Event::StreamLimitRaised { direction: UNI },
        Event::StreamsWanted { direction: BIDI },
        Event::StreamsWanted { direction: UNI },
    ];
    for asked in [false, true] {
        let mut streams = server();
        if asked {
            streams.watch_limits();
        }
        for repeated in 0..3 {
            for direction in [UNI, BIDI] {
                take(&mut streams, Frame::StreamsBlocked { direction, limit: 4 }).unwrap();
                take(&mut streams, Frame::MaxStreams { direction, limit: 5 + repeated }).unwrap();
            }
        }
        assert_eq!(events(&mut streams), if asked { all.as_slice() } else { &[] }, "each once");
        for direction in [BIDI, UNI] {
            take(&mut streams, Frame::MaxStreams { direction, limit: 7 }).unwrap();
        }
        assert_eq!(events(&mut streams), [], "it is what it was");
    }
}

#[test]
fn one_news_is_one_event() {
    let raised =
        |direction| (Frame::MaxStreams { direction, limit: 5 }, Event::StreamLimitRaised { direction });
    let wanted =
        |direction| (Frame::StreamsBlocked { direction, limit: 4 }, Event::StreamsWanted { direction });
    for (frame, event) in [raised(BIDI), raised(UNI), wanted(BIDI), wanted(UNI)] {
        let mut streams = server();
        streams.watch_limits();
        take(&mut streams, frame).unwrap();
        assert_eq!(events(&mut streams), [event]);
    }
}

#[test]
fn the_first_limits_are_news_as_well() {
    let mut streams = Streams::new(Side::Client, &config());
    streams.watch_limits();
    let parameters = TransportParameters { initial_max_streams_uni: 3, ..TransportParameters::default() };
    streams.set_peer_limits(&parameters);
    assert_eq!(events(&mut streams), [Event::StreamLimitRaised { direction: UNI }]);
}

#[test]
fn a_held_place_is_free_when_it_is_released() {
    let mut streams = server();
    let permitted = |streams: &Streams| streams.limits(UNI).permitted_to_peer;
    let (held, free) = (id(Side::Client, UNI, 0), id(Side::Client, UNI, 1));
    for id in [held, free] {
        let reset = Frame::ResetStream { id, code: 0, final_size: 0 };
        take(&mut streams, Frame::Stream { id, offset: 0, data: b"", fin: false }).unwrap();
        if id == held {
            assert_eq!(streams.hold_place(id), Ok(()));
        }
        take(&mut streams, reset).unwrap();
        assert!(streams.read(Time::ZERO, Duration::ZERO, id, 1).is_err());
    }
    assert_eq!(permitted(&streams), 5, "the other one's is free");
    assert_eq!(streams.hold_place(free), Err(UnknownStream), "it is over");
    streams.release_place(free);
    assert_eq!(permitted(&streams), 5);
    streams.release_place(held);
    streams.release_place(held);
    assert_eq!(permitted(&streams), 6, "once");
    let own = streams.open(UNI).unwrap();
    assert_eq!(streams.hold_place(own), Err(UnknownStream));
}
