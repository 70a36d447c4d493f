//! Servers behind a load balancer that reads their numbers in connection ids.

use super::*;
use crate::cid::Route;
use godwit_wire::header::{self, Packet};

const NUMBER: [u8; 4] = [0xa1, 0xa2, 0xa3, 0xa4];

fn pair(retry: bool) -> Pair {
    let mut pair = Pair::new(retry);
    pair.server.set_server_id(Some(ServerId::Fixed(NUMBER)));
    pair
}

fn ids(endpoint: &Endpoint) -> Vec<ConnectionId> {
    endpoint.slots.iter().flat_map(|(_, slot)| slot.cids.clone()).collect()
}

#[test]
fn every_id_of_a_server_shows_its_number_and_leads_to_it() {
    for retry in [false, true] {
        let mut pair = pair(retry);
        let key = pair.connect();
        pair.run_millis(200);
        let ids = ids(&pair.server);
        assert!(ids.len() > 1, "further ids were made: {ids:?}");
        for id in &ids {
            assert_eq!((id.len(), &id.as_bytes()[1..5]), (14, &NUMBER[..]), "{id:?}");
            assert_eq!(pair.server.codec.route(id.as_bytes()), Route::Ours);
        }
        let now = pair.now;
        assert_eq!(pair.client.with(key, |client| client.rotate_cid(now)), Some(true));
        say(&mut pair.client, key);
        pair.run_millis(200);
        assert_eq!(heard(&events(&mut pair.server)), 1, "another of them leads there as well");
    }
}

#[test]
fn a_retry_shows_the_number_too() {
    let mut pair = pair(true);
    pair.connect();
    pair.carry(true);
    let mut out = SendBatch::new(1 << 20);
    pair.server.transmit(pair.now, &mut out);
    let (_, retry) = out.datagrams().next().unwrap();
    let Ok(Packet::Retry { scid, .. }) = header::parse(retry, CidCodec::MIN_LEN) else {
        panic!("{retry:x?}")
    };
    assert_eq!((scid.len(), &scid.as_bytes()[1..5]), (14, &NUMBER[..]));
}

#[test]
fn ids_of_clients_show_nothing() {
    let mut pair = Pair::new(false);
    pair.client.set_server_id(Some(ServerId::Fixed(NUMBER)));
    pair.connect();
    pair.run_millis(200);
    let ids = ids(&pair.client);
    assert!(!ids.is_empty() && ids.iter().all(|id| id.as_bytes()[1..5] != NUMBER), "{ids:?}");
}

#[test]
fn a_server_that_forgot_is_known_by_its_number_and_resets_its_clients() {
    let mut pair = pair(false);
    let key = pair.connect();
    pair.run_millis(200);
    events(&mut pair.client);
    pair.server = server(false, 77);
    pair.server.set_server_id(Some(ServerId::Fixed(NUMBER)));
    say(&mut pair.client, key);
    pair.run_millis(1000);
    let closed = Event::Closed { reason: ConnectionError::Reset };
    assert!(events(&mut pair.client).contains(&closed));
}

#[test]
fn ids_keep_their_length_while_there_are_connections() {
    let mut pair = Pair::new(false);
    pair.connect();
    pair.run_millis(200);
    pair.server.set_server_id(Some(ServerId::LocalAddress));
    assert_eq!(pair.server.codec.len(), CidCodec::MIN_LEN);
    let shown = pair.server.shown_at(Some([9; 4].into()));
    assert_ne!(pair.server.fresh_cid(&shown).as_bytes()[1..5], [9; 4], "they have no place for it");
}
