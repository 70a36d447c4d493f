//! ClientHellos with transport parameters, or without extensions, that no client may send (RFC 9000 sections 7.3, 7.4 and
//! 18.2, RFC 9001 sections 8.1 and 8.2).

use super::*;
use crate::handshake::{CryptoToken, Handshake, Level};
use godwit_wire::{Reader, TransportParameters};

/// The extension that the parameters stand in, and the number that it had in drafts (RFC 9001 section 8.2).
const QUIC_PARAMETERS: u16 = 0x39;
const QUIC_PARAMETERS_OF_DRAFTS: u16 = 0xffa5;

/// TLS's alerts 109 and 120.
const MISSING_EXTENSION: Code = Code::crypto(109);
const NO_APPLICATION_PROTOCOL: Code = Code::crypto(120);

/// The ClientHello of a client with these protocols and encoded parameters.
fn hello(alpn: &[&[u8]], parameters: Vec<u8>) -> Vec<u8> {
    let tls = deterministic::client_config(alpn);
    let mut client =
        Handshake::client(tls.as_ref().clone(), 1, deterministic::SERVER_NAME, parameters).unwrap();
    let (payload, _, ()) = crate::packet::testing::payload::<CryptoToken, _>(2000, |packet| {
        client.write_crypto(Level::Initial, packet);
    });
    match Frame::decode(&mut Reader::new(&payload)) {
        Ok(Frame::Crypto { offset: 0, data }) => data.to_vec(),
        other => panic!("{other:?}"),
    }
}

/// The parameters of a client without wishes, with the id of its packets.
fn honest() -> TransportParameters {
    TransportParameters { initial_source_cid: Some(cid(1)), ..TransportParameters::default() }
}

fn encoded(parameters: &TransportParameters) -> Vec<u8> {
    crate::connection::negotiation::encode(parameters, 0).unwrap()
}

/// The code that a server closes with after this ClientHello; none if it goes on.
fn answer(hello: &[u8]) -> Option<Code> {
    let mut pair = pair(PacketType::Initial);
    let datagram = forged(&mut pair.client, PacketType::Initial, &crypto(0, hello), |_| {});
    told(&mut pair, datagram)
}

#[test]
fn transport_parameters() {
    let wrong = Some(Code::TRANSPORT_PARAMETER_ERROR);
    let behind = |more: &[u8]| [encoded(&honest()), more.to_vec()].concat();
    let alone = |more: &[u8]| {
        let parameters = TransportParameters { initial_source_cid: None, ..honest() };
        [encoded(&parameters), more.to_vec()].concat()
    };
    let above_2_to_60 = |number: u8| [number, 8, 0xd0, 0, 0, 0, 0, 0, 0, 1];
    // No addresses, an id of one byte and a token.
    let mut preferred = [0; 2 + 42];
    (preferred[0], preferred[1], preferred[2 + 24]) = (0x0d, 42, 1);
    let rows: Vec<(&str, Vec<u8>, Option<Code>)> = vec![
        ("what a client may say", behind(&[]), None),
        ("a parameter that nobody knows, twice", behind(&[0x1f, 1, 0, 0x1f, 1, 0]), None),
        ("initial_source_connection_id is missing", alone(&[]), wrong),
        ("initial_source_connection_id is another", alone(&[0x0f, 8, 5, 5, 5, 5, 5, 5, 5, 5]), wrong),
        ("initial_source_connection_id of 21 bytes", alone(&[&[0x0f, 21][..], &[1; 21]].concat()), wrong),
        ("original_destination_connection_id", behind(&[&[0x00, 8][..], &[9; 8]].concat()), wrong),
        ("preferred_address", behind(&preferred), wrong),
        ("retry_source_connection_id", behind(&[&[0x10, 8][..], &[9; 8]].concat()), wrong),
        ("stateless_reset_token", behind(&[&[0x02, 16][..], &[7; 16]].concat()), wrong),
        ("max_udp_payload_size below 1200", behind(&[0x03, 2, 0x44, 0xaf]), wrong),
        ("ack_delay_exponent above 20", behind(&[0x0a, 1, 21]), wrong),
        ("max_ack_delay of 2^14", behind(&[0x0b, 4, 0x80, 0, 0x40, 0]), wrong),
        ("active_connection_id_limit below 2", behind(&[0x0e, 1, 1]), wrong),
        ("initial_max_streams_bidi above 2^60", behind(&above_2_to_60(0x08)), wrong),
        ("initial_max_streams_uni above 2^60", behind(&above_2_to_60(0x09)), wrong),
        ("a parameter twice", behind(&[0x04, 1, 5, 0x04, 1, 5]), wrong),
        ("a parameter longer than its value", behind(&[0x04, 2, 5, 5]), wrong),
        ("disable_active_migration with a value", behind(&[0x0c, 1, 0]), wrong),
        ("a parameter cut short", behind(&[0x04, 4, 5]), wrong),
    ];
    for (name, parameters, expected) in rows {
        assert_eq!(answer(&hello(&[b"test"], parameters)), expected, "{name}");
    }
}

/// The ClientHello with each extension as `change` would have it: its number, or none to leave it out.
fn with_extensions(hello: &[u8], change: impl Fn(u16) -> Option<u16>) -> Vec<u8> {
    let mut reader = Reader::new(hello);
    reader.bytes(4 + 2 + 32).unwrap();
    let session_id = reader.u8().unwrap();
    reader.bytes(session_id.into()).unwrap();
    let suites = reader.u16().unwrap();
    reader.bytes(suites.into()).unwrap();
    let methods = reader.u8().unwrap();
    reader.bytes(methods.into()).unwrap();
    let before = &hello[4..hello.len() - reader.remaining()];
    reader.u16().unwrap();
    let mut extensions = Vec::new();
    while !reader.is_empty() {
        let (kind, len) = (reader.u16().unwrap(), reader.u16().unwrap());
        let content = reader.bytes(len.into()).unwrap();
        if let Some(kind) = change(kind) {
            extensions.extend([&kind.to_be_bytes()[..], &len.to_be_bytes(), content].concat());
        }
    }
    let body = [before, &(extensions.len() as u16).to_be_bytes(), &extensions].concat();
    [&[1][..], &(body.len() as u32).to_be_bytes()[1..], &body].concat()
}

#[test]
fn extensions_that_must_be_there() {
    let alpn_extension = 16;
    let original = hello(&[b"test"], encoded(&honest()));
    assert_eq!(with_extensions(&original, Some), original);
    let without = |gone: u16| with_extensions(&original, |kind| Some(kind).filter(|kind| *kind != gone));
    let of_drafts = with_extensions(&original, |kind| {
        Some(if kind == QUIC_PARAMETERS { QUIC_PARAMETERS_OF_DRAFTS } else { kind })
    });
    let rows: Vec<(&str, Vec<u8>, Option<Code>)> = vec![
        ("all of them", original.clone(), None),
        ("no transport parameters", without(QUIC_PARAMETERS), Some(MISSING_EXTENSION)),
        ("transport parameters by the number of drafts", of_drafts, Some(MISSING_EXTENSION)),
        ("no protocol in common", hello(&[b"other"], encoded(&honest())), Some(NO_APPLICATION_PROTOCOL)),
        ("no protocols", without(alpn_extension), Some(NO_APPLICATION_PROTOCOL)),
    ];
    for (name, hello, expected) in rows {
        assert_eq!(answer(&hello), expected, "{name}");
    }
}
