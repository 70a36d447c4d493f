//! Other connection ids by this end's will.

use super::*;

/// As an endpoint does: gives both ends ids for the other, from `first` on.
fn give_cids(pair: &mut Pair, first: u8) {
    for (end, number) in [(&mut pair.client, first), (&mut pair.server, first + 1)] {
        assert!(end.machine.add_local_cid(cid(number), ResetToken([number; 16])));
    }
    pair.run(5);
}

/// The id to which an end sends a PING.
fn sends_to(pair: &mut Pair, from_client: bool) -> Vec<u8> {
    let end = if from_client { &mut pair.client } else { &mut pair.server };
    end.ping();
    pair.batch.clear();
    end.machine.transmit(pair.now, &mut pair.batch, &mut pair.rng);
    let (_, datagram) = pair.batch.datagrams().next().unwrap();
    datagram[1..9].to_vec()
}

#[test]
fn either_end_moves_on_to_another_id_and_retires_the_one_before() {
    for by_client in [true, false] {
        let mut pair = Pair::new(TransportConfig::default());
        let now = pair.now;
        assert!(!pair.client.rotate_cid(now), "the handshake is not complete");
        pair.run(20);
        assert!(!pair.client.rotate_cid(now) && !pair.server.rotate_cid(now), "there is none to spare");
        give_cids(&mut pair, 20);
        let (given, retired) = if by_client { (cid(21), cid(2)) } else { (cid(20), cid(1)) };
        assert_eq!(sends_to(&mut pair, by_client), retired.as_bytes());
        let (end, other) = if by_client {
            (&mut pair.client, &mut pair.server)
        } else {
            (&mut pair.server, &mut pair.client)
        };
        while other.machine.next_endpoint_event().is_some() {}
        while end.machine.next_endpoint_event().is_some() {}
        assert!(end.rotate_cid(now) && !end.rotate_cid(now), "there was one");
        let told: Vec<_> = std::iter::from_fn(|| end.machine.next_endpoint_event()).collect();
        let token = |event: &EndpointEvent| match event {
            EndpointEvent::PeerResetToken { token, .. } => Some(token.0[0]),
            _ => None,
        };
        assert_eq!(told[0], EndpointEvent::ForgetResetTokens);
        assert!(told.iter().filter_map(token).eq([given.as_bytes()[0]]), "{told:?}");
        assert_eq!(sends_to(&mut pair, by_client), given.as_bytes());
        pair.run(10);
        let other = if by_client { &mut pair.server } else { &mut pair.client };
        let told: Vec<_> = std::iter::from_fn(|| other.machine.next_endpoint_event()).collect();
        assert!(told.contains(&EndpointEvent::RetiredCid(retired)), "{told:?}");
        assert!(pair.client.is_open() && pair.server.is_open());
    }
}

#[test]
fn who_has_closed_moves_no_more() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.run(20);
    give_cids(&mut pair, 20);
    pair.client.close(pair.now, 0, b"");
    assert!(!pair.client.rotate_cid(pair.now));
}

/// Both ends have been told to take another id after 20 s without anything sent, and have one to spare.
fn silent_pair() -> Pair {
    let mut pair = Pair::new(TransportConfig {
        fresh_cid_after: Some(Duration::from_secs(20)),
        max_idle_timeout: Duration::from_secs(100),
        ..TransportConfig::default()
    });
    pair.run(20);
    give_cids(&mut pair, 20);
    pair.run(20);
    pair
}

fn updates(pair: &Pair) -> (u64, u64) {
    (pair.client.stats().cid_updates, pair.server.stats().cid_updates)
}

#[test]
fn what_ends_a_silence_goes_to_another_id_and_so_does_the_answer() {
    let mut pair = silent_pair();
    assert_eq!(sends_to(&mut pair, true), cid(2).as_bytes());
    pair.now += Duration::from_millis(19_999);
    assert_eq!(sends_to(&mut pair, true), cid(2).as_bytes(), "it was not silent for long");
    pair.run(20);
    assert_eq!(updates(&pair), (0, 1), "the server was: what came before has not arrived");
    pair.now += Duration::from_secs(20);
    pair.client.ping();
    pair.run(20);
    assert_eq!(updates(&pair), (1, 1), "there was one to spare for each");
    assert_eq!(sends_to(&mut pair, true), cid(21).as_bytes());
    let told: Vec<_> = std::iter::from_fn(|| pair.server.machine.next_endpoint_event()).collect();
    assert!(told.contains(&EndpointEvent::RetiredCid(cid(2))), "{told:?}");
    assert!(pair.client.is_open() && pair.server.is_open());
}

#[test]
fn who_has_nothing_to_say_keeps_its_id() {
    let mut pair = silent_pair();
    pair.now += Duration::from_secs(30);
    pair.client.on_timeout(pair.now);
    assert_eq!((pair.exchange(true), updates(&pair)), (0, (0, 0)));
}

#[test]
fn silence_changes_no_ids_unless_it_was_asked_for() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.run(20);
    give_cids(&mut pair, 20);
    pair.now += Duration::from_secs(29);
    assert_eq!(sends_to(&mut pair, true), cid(2).as_bytes());
    pair.client.set_fresh_cid_after(Some(Duration::from_secs(1)));
    pair.now += Duration::from_secs(1);
    assert_eq!(sends_to(&mut pair, true), cid(21).as_bytes());
}

#[test]
fn who_may_not_send_yet_gives_up_one_id_for_a_silence() {
    let mut pair = silent_pair();
    let transmit = |pair: &mut Pair| {
        pair.batch.clear();
        pair.client.machine.transmit(pair.now, &mut pair.batch, &mut pair.rng);
        pair.batch.datagrams().count()
    };
    let stream = pair.client.open(Direction::Unidirectional).unwrap();
    pair.client.write(stream, vec![0; 100_000].into()).unwrap();
    // Congestion control and the pacer permit no more.
    while transmit(&mut pair) > 0 {
        pair.now += Duration::from_millis(1);
    }
    for number in [30, 31] {
        assert!(pair.server.machine.add_local_cid(cid(number), ResetToken([number; 16])));
    }
    pair.exchange(false);
    pair.client.set_fresh_cid_after(Some(Duration::from_millis(1)));
    for _ in 0..5 {
        pair.now += Duration::from_millis(1);
        assert_eq!((transmit(&mut pair), updates(&pair)), (0, (1, 0)));
    }
}
