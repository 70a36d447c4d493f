//! The test vectors of RFC 9001 appendix A and RFC 9369 appendix A, and of draft-ietf-quic-tls-29 appendix A.
#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::test_vectors::*;
use super::*;
use godwit_wire::version::{DRAFT_29, MSQUIC_1, V1, V2};
use godwit_wire::{ConnectionId, Side};
use rustls::quic::DirectionalKeys;

const CLIENT_DCID: &str = "8394c8f03e515708";

fn hex(text: &str) -> Vec<u8> {
    text.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn client_dcid() -> ConnectionId {
    ConnectionId::new(&hex(CLIENT_DCID)).unwrap()
}

/// Seals a packet from its header and payload, and opens it at the other end.
fn check(version: u32, sender: Side, pn: u64, header: &str, payload: &[u8], protected: &str) {
    let (header, protected) = (hex(header), hex(protected));
    let sending = initial(version, &client_dcid(), sender).unwrap();
    let pn_len = usize::from(header[0] & 3) + 1;
    let pn_offset = header.len() - pn_len;
    let mut packet = [&header[..], payload, &[0; TAG_LEN]].concat();
    let (head, body) = packet.split_at_mut(header.len());
    sending.sealer.seal(0, pn, head, body).unwrap();
    sending.header_sealer.mask_batch(&[PacketSpan { first: 0, pn_offset, pn_len }], &mut packet).unwrap();
    assert_eq!(packet, protected);

    let receiving = initial(version, &client_dcid(), sender.peer()).unwrap();
    let (first, number) = receiving.header_opener.unmask(&mut packet, pn_offset).unwrap();
    assert_eq!((first, number.expand(0)), (header[0], pn));
    let (head, body) = packet.split_at_mut(pn_offset + number.len());
    assert_eq!(head, header);
    let len = receiving.opener.open(0, pn, head, body).unwrap();
    assert_eq!(&body[..len], payload);
    // A second opening meets plaintext, which is not authentic.
    assert_eq!(receiving.opener.open(0, pn, head, body), None);
}

#[test]
fn initial_packets() {
    let mut client_payload = hex(CLIENT_CRYPTO);
    client_payload.resize(1162, 0);
    let server_payload = hex(SERVER_PAYLOAD);
    let client_v1 = "c300000001088394c8f03e5157080000449e00000002";
    check(V1, Side::Client, 2, client_v1, &client_payload, CLIENT_INITIAL_V1);
    let server_v1 = "c1000000010008f067a5502a4262b50040750001";
    check(V1, Side::Server, 1, server_v1, &server_payload, SERVER_INITIAL_V1);
    let client_v2 = "d36b3343cf088394c8f03e5157080000449e00000002";
    check(V2, Side::Client, 2, client_v2, &client_payload, CLIENT_INITIAL_V2);
    let server_v2 = "d16b3343cf0008f067a5502a4262b50040750001";
    check(V2, Side::Server, 1, server_v2, &server_payload, SERVER_INITIAL_V2);
}

/// A server's packet of draft 29: what opens is authentic.
#[test]
fn initial_packets_from_before_the_standard() {
    let packet = hex(concat!(
        "caff00001d0008f067a5502a4262b5004074aaf2f007823a5d3a1207c86ee49132824f0465243d082d868b107a38092b",
        "c80528664cbf9456ebf27673fb5fa5061ab573c9f001b81da028a00d52ab00b15bebaa70640e106cf2acd043e9c6b441",
        "1c0a79637134d8993701fe779e58c2fe753d14b0564021565ea92e57bc6faf56dfc7a40870e6",
    ));
    for version in [DRAFT_29, MSQUIC_1] {
        let keys = initial(version, &client_dcid(), Side::Client).unwrap();
        let mut packet = packet.clone();
        let (_, number) = keys.header_opener.unmask(&mut packet, 18).unwrap();
        assert_eq!(number.expand(0), 1);
        let (head, body) = packet.split_at_mut(18 + number.len());
        assert_eq!(keys.opener.open(0, 1, head, body), Some(98));
    }
}

/// Reserved ones have those of version 1, with which a client begins for a server to tell the versions that it knows.
#[test]
fn unknown_versions_have_no_keys() {
    assert!(initial(0x0a0a_0a0a, &client_dcid(), Side::Client).is_some());
    assert!(retry_integrity_tag(0x0a0a_0a0a, &client_dcid(), b"retry").is_none());
    for version in [0, 0x0a0a_0a0b, 0xff00_001c] {
        assert!(initial(version, &client_dcid(), Side::Client).is_none());
        assert!(retry_integrity_tag(version, &client_dcid(), b"retry").is_none());
    }
}

#[test]
fn retry_packets() {
    let v1 = hex("ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba");
    let v2 = hex("cf6b3343cf0008f067a5502a4262b5746f6b656ec8646ce8bfe33952d955543665dcc7b6");
    let draft = hex("ffff00001d0008f067a5502a4262b5746f6b656ed16926d81f6f9ca2953a8aa4575e1e49");
    for (version, packet) in [(V1, v1), (V2, v2), (DRAFT_29, draft)] {
        let (retry, tag) = packet.split_at(packet.len() - TAG_LEN);
        assert_eq!(retry_integrity_tag(version, &client_dcid(), retry).unwrap(), tag);
        assert_ne!(retry_integrity_tag(version, &ConnectionId::EMPTY, retry).unwrap(), tag);
    }
}

/// RFC 9001 appendix A.5 and RFC 9369 appendix A.5: a PING in the smallest packet there is.
#[test]
fn chacha20_short_header() {
    let v1 = (
        "c6d98ff3441c3fe1b2182094f69caa2ed4b716b65488960a7a984979fb23e1c8",
        "e0459b3474bdd0e44a41c144",
        "25a282b9e82f06f21f488917a4fc8f1b73573685608597d0efcb076b0ab7a7a4",
        "4cfe4189655e5cd55c41f69080575d7999c25a5bfb",
    );
    let v2 = (
        "3bfcddd72bcf02541d7fa0dd1f5f9eeea817e09a6963a0e6c7df0f9a1bab90f2",
        "a6b5bc6ab7dafce30ffff5dd",
        "d659760d2ba434a226fd37b35c69e2da8211d10c4f12538787d65645d5d1b8e2",
        "5558b1c60ae7b6b932bc27d786f4bc2bb20f2162ba",
    );
    for (key, iv, hp, protected) in [v1, v2] {
        let keys = || {
            let quic = crate::provider::chacha20_suite().unwrap().quic;
            let key: [u8; 32] = hex(key).try_into().unwrap();
            let iv: [u8; 12] = hex(iv).try_into().unwrap();
            let hp: [u8; 32] = hex(hp).try_into().unwrap();
            DirectionalKeys {
                header: quic.header_protection_key(hp.into()),
                packet: quic.packet_key(key.into(), iv.into()),
            }
        };
        let keys = LevelKeys::new(Keys { local: keys(), remote: keys() });
        let (pn, header) = (654_360_564, hex("4200bff4"));
        let mut packet = [&header[..], &[0x01], &[0; TAG_LEN]].concat();
        let (head, body) = packet.split_at_mut(4);
        keys.sealer.seal(0, pn, head, body).unwrap();
        let span = PacketSpan { first: 0, pn_offset: 1, pn_len: 3 };
        keys.header_sealer.mask_batch(&[span], &mut packet).unwrap();
        assert_eq!(packet, hex(protected));
        let (first, number) = keys.header_opener.unmask(&mut packet, 1).unwrap();
        assert_eq!((first, number.expand(654_360_000)), (0x42, pn));
        let (head, body) = packet.split_at_mut(4);
        assert_eq!(keys.opener.open(0, pn, head, body), Some(1));
        assert_eq!(body[0], 0x01);
    }
}

#[test]
fn paths_have_nonces_of_their_own() {
    let (client, server) = (
        initial(V1, &client_dcid(), Side::Client).unwrap(),
        initial(V1, &client_dcid(), Side::Server).unwrap(),
    );
    let mut sealed = [b"hello".to_vec(), vec![0; TAG_LEN]].concat();
    client.sealer.seal(1, 9, b"header", &mut sealed).unwrap();
    assert_eq!(server.opener.open(0, 9, b"header", &mut sealed.clone()), None);
    assert_eq!(server.opener.open(1, 10, b"header", &mut sealed.clone()), None);
    assert_eq!(server.opener.open(1, 9, b"header!", &mut sealed.clone()), None);
    assert_eq!(server.opener.open(1, 9, b"header", &mut sealed), Some(5));
    assert_eq!(&sealed[..5], b"hello");
}

#[test]
fn there_must_be_room_for_the_tag() {
    let keys = initial(V1, &client_dcid(), Side::Client).unwrap();
    assert_eq!(keys.sealer.seal(0, 0, b"", &mut [0; TAG_LEN - 1]), Err(SealFailed));
    assert_eq!(keys.sealer.seal(0, 0, b"", &mut [0; TAG_LEN]), Ok(()));
    assert_eq!(keys.opener.open(0, 0, b"", &mut [0; TAG_LEN - 1]), None);
    assert_eq!(keys.opener.open(0, 0, b"", &mut []), None);
}
