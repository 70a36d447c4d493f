//! Connections that wait for the application's word on the peer.

use super::*;

fn asking() -> TransportConfig {
    let max_idle_timeout = Duration::ZERO;
    TransportConfig {
        approval: Some(Duration::from_secs(60)),
        max_idle_timeout,
        ..TransportConfig::default()
    }
}

fn closed_with(event: Option<&Event>) -> Option<u8> {
    use crate::ConnectionError::{PeerTransport, Transport};
    match event {
        Some(Event::Closed { reason: Transport(error) }) => error.code.alert(),
        Some(Event::Closed { reason: PeerTransport { code, .. } }) => code.alert(),
        _ => None,
    }
}

#[test]
fn nothing_is_told_before_the_peer_is_approved() {
    let mut pair = Pair::new(asking());
    assert!(pair.client.wants_approval() && !pair.client.machine.awaits_approval());
    pair.run(20);
    for end in [&mut pair.client, &mut pair.server] {
        assert_eq!(events(end), [Event::ApprovalWanted]);
        assert!(end.machine.awaits_approval() && end.open(Direction::Bidirectional).is_none());
    }
    assert_eq!(pair.client.peer_certificates(), deterministic::certificates());
    assert_eq!(pair.server.server_name(), Some(deterministic::SERVER_NAME));

    pair.client.approve(pair.now);
    assert_eq!(events(&mut pair.client), [Event::Connected]);
    let id = pair.client.open(Direction::Bidirectional).unwrap();
    pair.client.write(id, Bytes::from_static(&[7; 20_000])).unwrap();
    pair.run(20);
    assert_eq!(events(&mut pair.server), []);
    assert_eq!(pair.server.accept(Direction::Bidirectional), None);
    assert_eq!(events(&mut pair.client), [], "a server that has not approved confirms nothing");

    pair.server.approve(pair.now);
    pair.run(20);
    let told = events(&mut pair.server);
    assert_eq!(told[..2], [Event::Connected, Event::Confirmed], "{told:?}");
    assert!(told.contains(&Event::StreamOpened { direction: Direction::Bidirectional }));
    assert_eq!(pair.server.accept(Direction::Bidirectional), Some(id));
    let mut len = 0;
    while let Ok(ReadChunk::Data(data)) = pair.server.read(pair.now, id, usize::MAX) {
        len += data.len();
    }
    assert_eq!(len, 20_000);
    assert!(events(&mut pair.client).contains(&Event::Confirmed));
    assert_eq!(pair.client.stats().packets_lost + pair.server.stats().packets_lost, 0, "nothing was dropped");
}

#[test]
fn a_client_that_is_confirmed_before_it_has_approved_is_so_afterwards() {
    let mut pair = Pair::with(asking(), TransportConfig::default());
    pair.run(20);
    assert!(events(&mut pair.server).contains(&Event::Confirmed));
    assert_eq!(events(&mut pair.client), [Event::ApprovalWanted]);
    pair.client.approve(pair.now);
    assert_eq!(events(&mut pair.client)[..2], [Event::Connected, Event::Confirmed]);
    pair.client.approve(pair.now);
    pair.client.refuse_peer(pair.now);
    assert!(pair.client.is_open() && events(&mut pair.client).is_empty(), "it was not asked again");
}

#[test]
fn peers_that_are_refused_are_told() {
    for by_server in [false, true] {
        let mut pair = Pair::new(asking());
        pair.run(20);
        let refusing = if by_server { &mut pair.server } else { &mut pair.client };
        refusing.refuse_peer(pair.now);
        pair.run(20);
        for end in [&mut pair.client, &mut pair.server] {
            assert_eq!(closed_with(events(end).last()), Some(49));
        }
    }
}

#[test]
fn a_peer_may_be_refused_for_any_reason_that_tls_knows() {
    for alert in [0, 42, 48, u8::MAX] {
        let mut pair = Pair::new(asking());
        pair.run(20);
        pair.client.refuse_peer_with(pair.now, alert);
        pair.run(20);
        for end in [&mut pair.client, &mut pair.server] {
            assert_eq!(closed_with(events(end).last()), Some(alert));
        }
    }
}

#[test]
fn approval_has_a_time_limit() {
    let mut pair = Pair::new(asking());
    let begun = pair.now;
    pair.run(20);
    pair.client.approve(pair.now);
    while pair.server.is_open() && pair.now < begun + Duration::from_secs(100) {
        pair.run(1);
    }
    let waited = pair.now.saturating_since(begun);
    assert!(waited > Duration::from_secs(60) && waited < Duration::from_secs(61), "{waited:?}");
    pair.run(20);
    assert_eq!(closed_with(events(&mut pair.client).last()), Some(46));
}

fn asking_before_finished() -> TransportConfig {
    TransportConfig { approval_before_finished: true, ..asking() }
}

#[test]
fn a_server_may_learn_of_the_end_of_the_handshake_when_it_is_approved() {
    let mut pair = Pair::with(asking_before_finished(), TransportConfig::default());
    pair.run(50);
    assert_eq!(events(&mut pair.client), [Event::ApprovalWanted]);
    assert_eq!(events(&mut pair.server), [], "it has not heard the client's Finished message");
    pair.client.approve(pair.now);
    pair.run(20);
    assert_eq!(events(&mut pair.server)[..2], [Event::Connected, Event::Confirmed]);
    assert_eq!(events(&mut pair.client)[..2], [Event::Connected, Event::Confirmed]);
}

#[test]
fn ends_of_which_one_waits_for_approval_do_not_keep_each_other_busy() {
    for early in [false, true] {
        let mut pair = Pair::with(asking_before_finished(), TransportConfig::default());
        pair.run(4);
        if early {
            // Data of a server that may not know yet whom it serves waits for the client's Finished as well.
            let id = pair.server.open(Direction::Unidirectional).unwrap();
            pair.server.write(id, Bytes::from_static(&[7; 3000])).unwrap();
        }
        pair.run(3000);
        let sent = [&pair.client, &pair.server].map(|end| end.stats().datagrams_sent);
        assert!(sent.iter().all(|sent| *sent < 40), "{sent:?}");
        pair.client.approve(pair.now);
        pair.run(20);
        assert!(events(&mut pair.server).contains(&Event::Confirmed));
    }
}

#[test]
fn a_client_that_waits_for_approval_hears_that_the_server_gives_up() {
    let mut pair = Pair::with(asking_before_finished(), TransportConfig::default());
    pair.run(20);
    assert_eq!(events(&mut pair.client), [Event::ApprovalWanted]);
    pair.server.close(pair.now, 7, b"not any more");
    pair.run(20);
    let told = events(&mut pair.client);
    assert!(matches!(told.last(), Some(Event::Closed { .. })), "{told:?}");
}

#[test]
fn a_server_that_is_not_approved_has_never_been_connected() {
    for by_alert in [false, true] {
        let mut pair = Pair::with(asking_before_finished(), TransportConfig::default());
        pair.run(20);
        match by_alert {
            true => pair.client.refuse_peer_with(pair.now, 42),
            // What the application says is for a server that is connected.
            false => pair.client.close(pair.now, 7, b"the application's own"),
        }
        pair.run(20);
        let told = events(&mut pair.server);
        assert!(!told.contains(&Event::Connected), "{told:?}");
        let code = match told.last() {
            Some(Event::Closed { reason: crate::ConnectionError::PeerTransport { code, .. } }) => code.0,
            other => panic!("{other:?}"),
        };
        assert_eq!(code, if by_alert { 0x12a } else { 0xc });
    }
}
