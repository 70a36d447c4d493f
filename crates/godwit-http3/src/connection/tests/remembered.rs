//! Settings that are remembered for 0-RTT (RFC 9114 section 7.2.4.2).

use super::memory::World;
use super::{Peer, frame};
use crate::{Config, ErrorCode, Event, SendError, Settings, Transport as _};
use godwit_wire::{Direction, Side};
use http::Request;

fn told() -> Settings {
    Settings {
        max_field_section_size: Some(1000),
        qpack_max_table_capacity: 4096,
        qpack_blocked_streams: 16,
        enable_connect_protocol: true,
        h3_datagram: true,
        webtransport_max_sessions: 0,
    }
}

/// How the connection is closed on which a client that was told so hears this.
fn closed_by(remembered: Option<Settings>, forgets: bool, now: &Settings) -> Option<ErrorCode> {
    let world = World::new(1 << 22, usize::MAX);
    let mut client = Peer::new(Side::Client, &world, Config::default());
    if let Some(settings) = remembered {
        client.connection.remember_settings(settings);
        assert!(client.connection.has_remembered_settings());
    }
    if forgets {
        client.connection.forget_remembered_settings();
    }
    let mut io = world.end(Side::Server);
    let id = io.open(Direction::Unidirectional).unwrap();
    io.put(id, &[&[0][..], &frame(4, &now.to_bytes())].concat());
    client.pump();
    assert!(!client.connection.has_remembered_settings());
    let events = client.events();
    match &events[..] {
        [Event::Settings] => None,
        [Event::Closed { error }] => Some(error.code),
        events => panic!("{events:?}"),
    }
}

#[test]
fn a_server_that_takes_0rtt_keeps_to_what_it_has_told() {
    let kept = told();
    assert_eq!(closed_by(Some(kept), false, &kept), None);
    let more = Settings { max_field_section_size: None, qpack_blocked_streams: 100, ..kept };
    assert_eq!(closed_by(Some(kept), false, &more), None);
    let without_table = Settings { qpack_max_table_capacity: 0, ..kept };
    assert_eq!(
        closed_by(Some(without_table), false, &kept),
        None,
        "there may be a table where there was none"
    );
    let (less, other) = (ErrorCode::H3_SETTINGS_ERROR, ErrorCode::QPACK_DECODER_STREAM_ERROR);
    for (now, code) in [
        (Settings { max_field_section_size: Some(999), ..kept }, less),
        (Settings { qpack_blocked_streams: 15, ..kept }, less),
        (Settings { enable_connect_protocol: false, ..kept }, less),
        (Settings { h3_datagram: false, ..kept }, less),
        (Settings { qpack_max_table_capacity: 4095, ..kept }, other),
        (Settings { qpack_max_table_capacity: 4097, ..kept }, other),
        (without_table, other),
    ] {
        assert_eq!(closed_by(Some(kept), false, &now), Some(code), "{now:?}");
        assert_eq!(closed_by(Some(kept), true, &now), None, "0-RTT was refused: {now:?}");
        assert_eq!(closed_by(None, false, &now), None, "nothing was told before: {now:?}");
    }
}

#[test]
fn early_requests_keep_to_the_limit_that_is_remembered() {
    let world = World::new(1 << 22, usize::MAX);
    let mut client = Peer::new(Side::Client, &world, Config::default());
    let request = |size: usize| {
        let request = Request::get("https://a.example/").header("a", "x".repeat(size));
        request.body(()).unwrap()
    };
    client.connection.remember_settings(told());
    let sent = client.connection.send_request(&mut client.io, &request(1000), true);
    assert_eq!(sent, Err(SendError::FieldsTooLarge));
    assert!(client.connection.send_request(&mut client.io, &request(500), true).is_ok());
    client.connection.forget_remembered_settings();
    assert!(client.connection.send_request(&mut client.io, &request(1000), true).is_ok());
}
