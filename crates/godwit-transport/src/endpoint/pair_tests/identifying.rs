//! Identifiers in the connection ids of both ends, by which servers with one port are told apart.

use super::*;
use crate::{Cibir, CidIdentifier, TransportConfig};
use godwit_wire::TransportErrorCode;

fn used(bytes: &[u8]) -> Cibir {
    Cibir::Used(CidIdentifier::new(bytes).unwrap())
}

fn transport(cibir: Cibir) -> Arc<TransportConfig> {
    Arc::new(TransportConfig { cibir, ..TransportConfig::default() })
}

/// A pair with this at each end, and the client's connection, whose hello is in one datagram or in two.
fn pair(client: Cibir, server: Cibir, long: bool) -> (Pair, ConnKey) {
    let mut pair = Pair::new(false);
    for endpoint in [&mut pair.client, &mut pair.server] {
        endpoint.set_cid_len(14);
    }
    let tls = deterministic::server_config(&[b"test"]);
    pair.server.server = Some(Arc::new(ServerConfig::new(tls, transport(server))));
    pair.server.set_cid_identifier(server.identifier());
    let protocols: Vec<Vec<u8>> = (0..if long { 6 } else { 0 }).map(|number| vec![number; 250]).collect();
    let mut protocols: Vec<&[u8]> = protocols.iter().map(Vec::as_slice).collect();
    protocols.push(b"test");
    let config = ClientConfig::new(deterministic::client_config(&protocols), transport(client));
    let path = path_to(SERVER.parse().unwrap());
    let key = pair.client.connect(pair.now, &config, path, deterministic::SERVER_NAME, None).unwrap();
    (pair, key)
}

#[test]
fn every_id_of_both_ends_has_the_identifier() {
    for (bytes, long) in [(&[0xc1][..], false), (&[0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6], true)] {
        let (mut pair, _) = pair(used(bytes), used(bytes), long);
        if long {
            // The half that comes is answered before the other.
            pair.lost = vec![1];
        }
        pair.run_millis(500);
        for endpoint in [&mut pair.client, &mut pair.server] {
            assert!(events(endpoint).contains(&Event::Confirmed));
            let ids: Vec<_> = endpoint.slots.iter().flat_map(|(_, slot)| slot.cids.clone()).collect();
            assert!(ids.len() > 1);
            for id in ids {
                assert_eq!(&id.as_bytes()[2..2 + bytes.len()], bytes, "{id:?}");
            }
        }
    }
}

#[test]
fn ends_that_do_not_agree_do_not_connect() {
    let three = used(&[1, 2, 3]);
    for (client, server, code) in [
        (three, used(&[3, 2, 1]), None),
        (Cibir::Ignored, Cibir::Ignored, None),
        (three, Cibir::Refused, Some(TransportErrorCode::CONNECTION_REFUSED)),
        (three, used(&[1, 2]), Some(TransportErrorCode::CONNECTION_REFUSED)),
        (Cibir::Refused, three, Some(TransportErrorCode::CONNECTION_REFUSED)),
    ] {
        let (mut pair, _) = pair(client, server, false);
        pair.run_millis(500);
        let told = events(&mut pair.client);
        let refused = told.iter().find_map(|event| match event {
            Event::Closed { reason: ConnectionError::PeerTransport { code, .. } } => Some(*code),
            _ => None,
        });
        assert_eq!(refused, code, "{client:?} {server:?} {told:?}");
        assert_eq!(told.contains(&Event::Confirmed), code.is_none());
    }
}

#[test]
fn a_client_does_not_go_on_without_its_identifier() {
    let (mut pair, key) = pair(used(&[1, 2, 3]), Cibir::Ignored, false);
    pair.run_millis(500);
    let told = events(&mut pair.client);
    let closed = |event: &Event| match event {
        Event::Closed { reason: ConnectionError::Transport(error) } => {
            error.code == TransportErrorCode::TRANSPORT_PARAMETER_ERROR
        }
        _ => false,
    };
    assert!(told.iter().any(closed), "{told:?}");
    assert!(pair.client.connection(key).is_none_or(|client| !client.is_open()));
}
