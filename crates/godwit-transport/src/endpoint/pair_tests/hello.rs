//! What is known of a client before it is accepted.

use super::*;
use crate::TransportConfig;

#[test]
fn the_application_may_read_the_client_hello_itself() {
    use godwit_tls::client_hello::{Parsed, parse};
    // In one datagram, and in two, whose first or second is sent again.
    for (at_length, lost) in [(false, vec![]), (true, vec![]), (true, vec![0]), (true, vec![1])] {
        let mut pair = Pair::new(false);
        pair.lost = lost;
        let key = if at_length {
            connect_at_length(&mut pair);
            pair.client.clients().next().unwrap()
        } else {
            pair.connect()
        };
        let mut incoming = None;
        for _ in 0..100 {
            pair.carry(true);
            incoming = pair.server.next_incoming();
            if incoming.is_some() {
                break;
            }
            pair.carry(false);
            pair.now += Duration::from_millis(20);
            pair.client.on_timeout(pair.now);
        }
        let incoming = pair.server.incoming(incoming.unwrap()).unwrap();
        let raw = incoming.client_hello().unwrap();
        let Parsed::Complete(hello) = parse(&raw) else { panic!("{raw:?}") };
        assert_eq!(
            raw.len(),
            4 + usize::from(raw[2]) * 256 + usize::from(raw[3]),
            "nothing before or behind"
        );
        assert_eq!(hello.server_name.as_deref(), Some(deterministic::SERVER_NAME));
        assert!(incoming.alpn().eq(hello.alpn.iter().map(Vec::as_slice)));
        let list = incoming.alpn_list();
        assert!(list.ends_with(b"\x04test") && list.len() == if at_length { 5 + 6 * 251 } else { 5 });
        assert!(raw.windows(list.len()).any(|window| window == list));
        let client = pair.client.connection(key).unwrap();
        assert_eq!(incoming.original_dcid(), client.original_dcid());
        assert_eq!((incoming.local(), incoming.version()), (None, version::V1));
    }
}

#[test]
fn whether_a_client_would_do_without_encryption_is_known_before_it_is_accepted() {
    for danger_without_encryption in [false, true] {
        let mut pair = Pair::new(false);
        let transport = TransportConfig { danger_without_encryption, ..TransportConfig::default() };
        let config = ClientConfig { transport: Arc::new(transport), ..client_config(version::V1) };
        let path = path_to(SERVER.parse().unwrap());
        pair.client.connect(pair.now, &config, path, deterministic::SERVER_NAME, None).unwrap();
        pair.carry(true);
        let key = pair.server.next_incoming().unwrap();
        let incoming = pair.server.incoming(key).unwrap();
        assert_eq!(incoming.offers_no_encryption(), danger_without_encryption);
    }
}

#[test]
fn both_ends_know_a_connection_by_the_id_before_a_retry() {
    for retry in [false, true] {
        let mut pair = Pair::new(retry);
        let key = pair.connect();
        pair.run_millis(200);
        let client = *pair.client.connection(key).unwrap().original_dcid();
        let server = *pair.server.slots.iter().next().unwrap().1.connection.original_dcid();
        assert_eq!(client, server);
        assert_eq!(client.len(), CidCodec::MIN_LEN);
    }
}
