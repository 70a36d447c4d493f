#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use godwit_tls::client_hello::{Parsed, Peek};
use godwit_tls::deterministic;
use godwit_tls::secret_tap::tapped;
use godwit_wire::Reader;
use godwit_wire::version::{V1, V2};
use proptest::prelude::*;

const LEVELS: [Level; 3] = [Level::Initial, Level::Handshake, Level::OneRtt];

/// Everything an end has to send at a level, as frames of at most `room` bytes, acknowledged at once.
fn take(from: &mut Handshake, level: Level, room: usize) -> Vec<(u64, Vec<u8>)> {
    let mut frames = Vec::new();
    while from.has_crypto(level) {
        let (payload, tokens, ()) =
            crate::packet::testing::payload(room, |packet| from.write_crypto(level, packet));
        let mut reader = Reader::new(&payload);
        while !reader.is_empty() {
            assert_eq!(reader.varint(), Ok(6));
            let offset = reader.varint().unwrap();
            frames.push((offset, reader.prefixed().unwrap().to_vec()));
        }
        tokens.into_iter().for_each(|token: CryptoToken| from.on_acked(token));
    }
    frames
}

fn transfer(from: &mut Handshake, to: &mut Handshake) -> Result<bool, WireError> {
    let mut any = false;
    for level in LEVELS {
        for (offset, data) in take(from, level, 1200) {
            to.on_crypto(level, offset, &data)?;
            any = true;
        }
    }
    Ok(any)
}

/// Both ends talk until they have nothing to say.
pub(crate) fn run(client: &mut Handshake, server: &mut Handshake) -> Result<(), WireError> {
    while transfer(client, server)? | transfer(server, client)? {}
    Ok(())
}

fn begin(version: u32) -> (Handshake, Handshake) {
    let (client, server) =
        (deterministic::client_config(&[b"h3", b"hq"]), deterministic::server_config(&[b"hq"]));
    (
        Handshake::client(client.as_ref().clone(), version, "localhost", b"client parameters".to_vec())
            .unwrap(),
        Handshake::server(tapped(&server), version, b"server parameters".to_vec()).unwrap(),
    )
}

/// The keys of both ends of a complete handshake, at each level: client's, then server's.
pub(crate) fn established(version: u32) -> ([LevelKeys; 2], [Box<OneRtt>; 2]) {
    deterministic::seed(1);
    let (mut client, mut server) = begin(version);
    run(&mut client, &mut server).unwrap();
    let keys = |end: &mut Handshake| {
        let (Some(NewKeys::Handshake(handshake)), Some(NewKeys::OneRtt(one_rtt)), None) =
            (end.next_keys(), end.next_keys(), end.next_keys())
        else {
            panic!("keys in order")
        };
        (*handshake, one_rtt)
    };
    let (client, server) = (keys(&mut client), keys(&mut server));
    ([client.0, server.0], [client.1, server.1])
}

#[test]
fn both_ends_agree() {
    for version in [V1, V2] {
        deterministic::seed(7);
        let (mut client, mut server) = begin(version);
        assert!(client.data().is_none() && !client.is_complete());
        run(&mut client, &mut server).unwrap();
        assert!(client.is_complete() && server.is_complete());
        assert_eq!(client.peer_parameters(), Some(&b"server parameters"[..]));
        assert_eq!(server.peer_parameters(), Some(&b"client parameters"[..]));
        let (at_client, at_server) = (client.data().unwrap(), server.data().unwrap());
        assert_eq!(
            (at_client.alpn.as_deref(), at_server.alpn.as_deref()),
            (Some(&b"hq"[..]), Some(&b"hq"[..]))
        );
        assert_eq!(
            (at_client.server_name.as_deref(), at_server.server_name.as_deref()),
            (None, Some("localhost"))
        );
        assert_eq!(at_client.peer_certificates, deterministic::certificates());
        assert!(at_server.peer_certificates.is_empty() && !at_client.resumed);
        assert_eq!(at_client.cipher_suite, Some(CipherSuite::TLS13_AES_128_GCM_SHA256));
    }
}

#[test]
fn keys_of_both_ends_fit() {
    for version in [V1, V2] {
        let (handshake, one_rtt) = established(version);
        for (from, to) in [(0, 1), (1, 0)] {
            let mut packet = [b"hello".to_vec(), vec![0; 16]].concat();
            handshake[from].sealer.seal(0, 3, b"h", &mut packet).unwrap();
            assert_eq!(handshake[to].opener.open(0, 3, b"h", &mut packet), Some(5));
        }
        drop(one_rtt);
    }
}

/// FNV-1a of all CRYPTO data of a handshake.
fn fingerprint(seed: u64) -> u64 {
    deterministic::seed(seed);
    let (mut client, mut server) = begin(V1);
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut more = true;
    while more {
        more = false;
        for turn in 0..2 {
            for level in LEVELS {
                let (from, to) =
                    if turn == 0 { (&mut client, &mut server) } else { (&mut server, &mut client) };
                for (offset, data) in take(from, level, 1200) {
                    for byte in &data {
                        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
                    }
                    to.on_crypto(level, offset, &data).unwrap();
                    more = true;
                }
            }
        }
    }
    assert!(client.is_complete() && server.is_complete());
    hash
}

#[test]
fn the_same_seed_gives_the_same_bytes_in_every_process() {
    // Another version of rustls may say hello in other bytes; another process may not.
    assert_eq!(fingerprint(42), 10_370_260_658_430_944_714);
    assert_eq!(fingerprint(42), fingerprint(42));
    assert_ne!(fingerprint(42), fingerprint(43));
}

#[test]
fn one_byte_frames_backwards() {
    let (mut client, mut server) = begin(V1);
    let hello = take(&mut client, Level::Initial, 1200).concat_data();
    let (first, rest) = hello.split_at(200);
    server.on_crypto(Level::Initial, 200, rest).unwrap();
    for at in (0..200).rev() {
        server.on_crypto(Level::Initial, at as u64, &first[at..at + 1]).unwrap();
    }
    assert!(server.has_crypto(Level::Initial) && server.has_crypto(Level::Handshake));
    run(&mut client, &mut server).unwrap();
    assert!(client.is_complete() && server.is_complete());
}

trait ConcatData {
    fn concat_data(&self) -> Vec<u8>;
}

impl ConcatData for Vec<(u64, Vec<u8>)> {
    fn concat_data(&self) -> Vec<u8> {
        self.iter().flat_map(|(_, data)| data.clone()).collect()
    }
}

#[test]
fn the_peek_understands_a_real_client_hello() {
    let (mut client, _) = begin(V1);
    let hello = take(&mut client, Level::Initial, 1200).concat_data();
    let mut peek = Peek::new();
    assert_eq!(peek.on_crypto(100, &hello[100..]).unwrap(), Parsed::NeedMore);
    let Parsed::Complete(parsed) = peek.on_crypto(0, &hello[..100]).unwrap() else { panic!() };
    assert_eq!(parsed.server_name.as_deref(), Some("localhost"));
    assert_eq!(parsed.alpn, [b"h3".to_vec(), b"hq".to_vec()]);
}

#[test]
fn failures_are_tls_alerts() {
    // No common application protocol: the server says so.
    let mut client =
        Handshake::client(deterministic::client_config(&[b"h3"]).as_ref().clone(), V1, "localhost", vec![])
            .unwrap();
    let mut server =
        Handshake::server(tapped(&deterministic::server_config(&[b"perf"])), V1, vec![]).unwrap();
    let error = transfer(&mut client, &mut server).unwrap_err();
    assert_eq!(error.code.alert(), Some(120));
    assert!(server.failure().is_some());

    // A certificate for other names: the client says so.
    let client = deterministic::client_config(&[b"h3"]);
    let mut client = Handshake::client(client.as_ref().clone(), V1, "elsewhere.test", vec![]).unwrap();
    let mut server = Handshake::server(tapped(&deterministic::server_config(&[b"h3"])), V1, vec![]).unwrap();
    let error = run(&mut client, &mut server).unwrap_err();
    assert_eq!((error.code.alert(), error.reason), (Some(42), "certificate not accepted"));

    // Nonsense instead of a ClientHello.
    let mut server = Handshake::server(tapped(&deterministic::server_config(&[b"h3"])), V1, vec![]).unwrap();
    let error = server.on_crypto(Level::Initial, 0, &[0x17; 64]).unwrap_err();
    assert!(error.code.alert().is_some());
}

#[test]
fn what_cannot_begin_is_refused() {
    let client = |version, name| {
        Handshake::client(deterministic::client_config(&[]).as_ref().clone(), version, name, vec![])
    };
    assert!(matches!(client(V1, "not a name"), Err(ConnectError::InvalidServerName(_))));
    assert!(matches!(client(0x0a0a_0a0b, "localhost"), Err(ConnectError::Tls(_))));
    assert!(Handshake::server(tapped(&deterministic::server_config(&[])), 0, vec![]).is_err());
    assert!(client(V1, "192.0.2.1").is_ok());
}

#[test]
fn data_at_the_wrong_level_is_a_violation() {
    let (mut client, mut server) = begin(V1);
    let code = |result: Result<(), WireError>| result.unwrap_err().code;
    assert_eq!(code(server.on_crypto(Level::ZeroRtt, 0, b"x")), TransportErrorCode::PROTOCOL_VIOLATION);
    let hello = take(&mut client, Level::Initial, 1200).concat_data();
    server.on_crypto(Level::Initial, 0, &hello).unwrap();
    // The server reads Handshake data now: what it knows may come again, new data may not.
    server.on_crypto(Level::Initial, 0, &hello).unwrap();
    let beyond = server.on_crypto(Level::Initial, 1, &hello);
    assert_eq!(code(beyond), TransportErrorCode::PROTOCOL_VIOLATION);

    // Data beyond a gap when the level ends.
    let (mut client, mut server) = begin(V1);
    server.on_crypto(Level::Initial, 5000, b"left behind").unwrap();
    let hello = take(&mut client, Level::Initial, 1200).concat_data();
    assert_eq!(code(server.on_crypto(Level::Initial, 0, &hello)), TransportErrorCode::PROTOCOL_VIOLATION);
}

#[test]
fn what_waits_is_capped() {
    let (mut client, mut server) = begin(V1);
    let far = server.on_crypto(Level::Initial, INITIAL_LIMIT as u64, b"x").unwrap_err();
    assert_eq!(far.code, TransportErrorCode::CRYPTO_BUFFER_EXCEEDED);
    transfer(&mut client, &mut server).unwrap();
    assert!(server.on_crypto(Level::Handshake, LIMIT as u64 - 1, b"x").is_ok());
    let far = server.on_crypto(Level::Handshake, LIMIT as u64, b"x").unwrap_err();
    assert_eq!(far.code, TransportErrorCode::CRYPTO_BUFFER_EXCEEDED);
}

#[test]
fn data_of_a_later_level_waits_for_its_turn() {
    let (mut client, mut server) = begin(V1);
    transfer(&mut client, &mut server).unwrap();
    let flight = take(&mut server, Level::Handshake, 1200);
    for (offset, data) in &flight {
        client.on_crypto(Level::Handshake, *offset, data).unwrap();
    }
    assert!(!client.is_complete());
    transfer(&mut server, &mut client).unwrap();
    assert!(client.is_complete());
}

#[test]
fn a_confirmed_server_lets_go_of_tls() {
    let (mut client, mut server) = begin(V1);
    run(&mut client, &mut server).unwrap();
    server.on_confirmed();
    client.on_confirmed();
    assert!(server.tls.is_none() && client.tls.is_some(), "a client may get tickets yet");
    assert_eq!(server.data().unwrap().server_name.as_deref(), Some("localhost"));
    let error = server.on_crypto(Level::OneRtt, 0, b"late").unwrap_err();
    assert_eq!(error.code, TransportErrorCode::crypto(10));
    for level in LEVELS {
        server.discard(level);
        assert!(!server.has_crypto(level));
    }
}

/// The provider for real use, with tickets and a hybrid key exchange where rustls offers one.
fn real_configs() -> (Arc<rustls::ClientConfig>, Arc<rustls::ServerConfig>) {
    let versions = &[&rustls::version::TLS13];
    let mut roots = rustls::RootCertStore::empty();
    roots.add(deterministic::authority()).unwrap();
    let client = rustls::ClientConfig::builder_with_provider(godwit_tls::provider());
    let mut client =
        client.with_protocol_versions(versions).unwrap().with_root_certificates(roots).with_no_client_auth();
    let server = rustls::ServerConfig::builder_with_provider(godwit_tls::provider());
    let mut server = server
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(deterministic::certificates(), deterministic::key())
        .unwrap();
    client.alpn_protocols = vec![b"h3".to_vec()];
    server.alpn_protocols = vec![b"h3".to_vec()];
    (Arc::new(client), Arc::new(server))
}

#[test]
fn sessions_are_resumed_with_tickets_read_after_confirmation() {
    let (client_config, server_config) = real_configs();
    for round in 0..2 {
        let mut client = Handshake::client(client_config.as_ref().clone(), V1, "localhost", vec![1]).unwrap();
        let mut server = Handshake::server(tapped(&server_config), V1, vec![2]).unwrap();
        while !server.is_complete() {
            transfer(&mut client, &mut server).unwrap();
            if !server.is_complete() {
                transfer(&mut server, &mut client).unwrap();
            }
        }
        server.on_confirmed();
        client.on_confirmed();
        assert!(server.has_crypto(Level::OneRtt), "tickets outlive the TLS state");
        transfer(&mut server, &mut client).unwrap();
        assert_eq!(client.data().unwrap().resumed, round == 1);
        assert_eq!(server.data().unwrap().resumed, round == 1);
    }
}

/// A client and a server whose handshake is confirmed, and the tickets that the server has not sent yet.
fn confirmed(tickets: usize) -> (Handshake, Vec<(u64, Vec<u8>)>) {
    let (client_config, server_config) = real_configs();
    let mut server_config = server_config.as_ref().clone();
    server_config.send_tls13_tickets = tickets;
    let mut client = Handshake::client(client_config.as_ref().clone(), V1, "localhost", vec![1]).unwrap();
    let mut server = Handshake::server(tapped(&server_config), V1, vec![2]).unwrap();
    while !server.is_complete() {
        transfer(&mut client, &mut server).unwrap();
        if !server.is_complete() {
            transfer(&mut server, &mut client).unwrap();
        }
    }
    client.on_confirmed();
    (client, take(&mut server, Level::OneRtt, 30))
}

#[test]
fn a_client_without_use_for_tickets_lets_go_of_tls_at_once() {
    let (mut client, tickets) = confirmed(2);
    assert!(client.tls.is_some());
    client.without_tickets();
    client.on_confirmed();
    assert!(client.tls.is_none());
    // They may come yet.
    for (offset, data) in &tickets {
        client.on_crypto(Level::OneRtt, *offset, data).unwrap();
    }
    assert!(client.data().is_some_and(|data| !data.peer_certificates.is_empty()));
}

#[test]
fn a_client_lets_go_of_tls_when_it_has_tickets_and_is_idle_or_has_enough_of_them() {
    let (mut client, tickets) = confirmed(0);
    assert!(tickets.is_empty());
    client.release_memory();
    assert!(client.tls.is_some(), "there may be tickets yet");
    for count in [1, 2, 3] {
        let (mut client, tickets) = confirmed(count);
        assert!(tickets.len() > count, "they come in parts");
        let (last, first) = tickets.split_last().unwrap();
        for (offset, data) in first {
            client.on_crypto(Level::OneRtt, *offset, data).unwrap();
            assert!(count > 1 || client.tls.is_some());
        }
        if count == 1 {
            client.release_memory();
            assert!(client.tls.is_some(), "the ticket has not come as a whole");
        }
        client.on_crypto(Level::OneRtt, last.0, &last.1).unwrap();
        assert_eq!(client.tls.is_some(), count == 1);
        client.release_memory();
        assert!(client.tls.is_none() && client.one_rtt.is_none());
        assert!(client.data().is_some_and(|data| !data.peer_certificates.is_empty()));
    }
}

#[test]
fn what_comes_after_tls_is_a_ticket_or_an_error() {
    let gone = || {
        let (mut client, tickets) = confirmed(1);
        for (offset, data) in &tickets {
            client.on_crypto(Level::OneRtt, *offset, data).unwrap();
        }
        client.release_memory();
        assert!(client.tls.is_none());
        (client, tickets)
    };
    let (mut client, tickets) = gone();
    let end = tickets.last().map(|(offset, data)| offset + data.len() as u64).unwrap();
    for (offset, data) in &tickets {
        client.on_crypto(Level::OneRtt, *offset, data).unwrap();
        client.release_memory();
    }
    assert!(client.one_rtt.is_none(), "old data");
    client.on_crypto(Level::OneRtt, end + 2, &[0, 2, 7, 7, 4]).unwrap();
    client.release_memory();
    client.on_crypto(Level::OneRtt, end, &[4, 0]).unwrap();
    client.release_memory();
    let error = client.on_crypto(Level::OneRtt, end + 7, &[0, 0, 0, 24]).unwrap_err();
    assert_eq!(error.code, alert::UNEXPECTED_MESSAGE, "a key update");
    let (mut client, _) = gone();
    let far = client.on_crypto(Level::OneRtt, end + LIMIT as u64, b"x").unwrap_err();
    assert_eq!(far.code, TransportErrorCode::CRYPTO_BUFFER_EXCEEDED);
}

/// Ends whose cipher suite and key exchange are as given, or the provider's own choice.
fn ends_with(suite: Option<CipherSuite>) -> (Handshake, Handshake) {
    let mut provider = godwit_tls::provider().as_ref().clone();
    provider.cipher_suites.retain(|known| suite.is_none_or(|suite| known.suite() == suite));
    let provider = Arc::new(provider);
    let mut roots = rustls::RootCertStore::empty();
    roots.add(deterministic::authority()).unwrap();
    let client = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let server = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(deterministic::certificates(), deterministic::key())
        .unwrap();
    let client = Handshake::client(client, V1, "localhost", vec![]).unwrap();
    (client, Handshake::server(tapped(&server), V1, vec![]).unwrap())
}

#[test]
fn exported_key_material_is_that_of_tls_and_outlives_it() {
    let suites = [
        CipherSuite::TLS13_AES_128_GCM_SHA256,
        CipherSuite::TLS13_AES_256_GCM_SHA384,
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
    ];
    for suite in suites {
        let (mut client, mut server) = ends_with(Some(suite));
        let mut output = [0; 5];
        assert_eq!(client.export_keying_material(b"l", b"", &mut output), Err(ExportError::NotConnected));
        run(&mut client, &mut server).unwrap();
        let cases: [(&[u8], &[u8], usize); 4] = [
            (b"", b"", 1),
            (b"label", b"", 32),
            (b"label", b"context", 48),
            (&[b'l'; 249], &[1; 3000], 5000),
        ];
        for (label, context, len) in cases {
            let of_tls = |end: &Handshake| {
                let tls = end.tls.as_ref().unwrap();
                tls.export_keying_material(vec![0; len], label, Some(context)).unwrap()
            };
            let (expected, mut ours, mut theirs) = (of_tls(&client), vec![0; len], vec![0; len]);
            client.export_keying_material(label, context, &mut ours).unwrap();
            server.export_keying_material(label, context, &mut theirs).unwrap();
            assert_eq!((&ours, &theirs), (&expected, &expected), "{suite:?} {len}");
        }
        let mut before = [0; 20];
        server.export_keying_material(b"label", b"", &mut before).unwrap();
        server.on_confirmed();
        let mut after = [0; 20];
        server.export_keying_material(b"label", b"", &mut after).unwrap();
        assert_eq!(before, after);
        let long = vec![0; 255 * 48 + 1];
        assert_eq!(server.export_keying_material(b"", b"", &mut long.clone()), Err(ExportError::TooLong));
        assert_eq!(server.export_keying_material(&[0; 250], b"", &mut after), Err(ExportError::TooLong));
    }
}

#[cfg(feature = "aws-lc-rs")]
#[test]
fn the_hybrid_group_comes_first_and_its_classical_part_beside_it() {
    let (mut client, mut server) = ends_with(None);
    let hello = take(&mut client, Level::Initial, 1100);
    assert_eq!(hello.len(), 2, "two packets");
    for (offset, data) in hello {
        server.on_crypto(Level::Initial, offset, &data).unwrap();
    }
    run(&mut client, &mut server).unwrap();
    for end in [&client, &server] {
        assert_eq!(end.data().unwrap().group, Some(NamedGroup::X25519MLKEM768));
    }
    // A server that does not know it takes the other share: no second ClientHello.
    let (mut client, _) = ends_with(None);
    let mut server = Handshake::server(tapped(&deterministic::server_config(&[])), V1, vec![]).unwrap();
    run(&mut client, &mut server).unwrap();
    assert_eq!(client.data().unwrap().group, Some(NamedGroup::X25519));
    assert!(!client.is_hello_retried());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn arbitrary_crypto_data_does_no_harm(
        frames in prop::collection::vec((0usize..4, 0u64..3000, prop::collection::vec(any::<u8>(), 0..300)), 1..20),
        hello_first in any::<bool>(),
    ) {
        let (mut client, mut server) = begin(V1);
        if hello_first {
            transfer(&mut client, &mut server).unwrap();
        }
        for (level, offset, data) in frames {
            let level = [Level::Initial, Level::ZeroRtt, Level::Handshake, Level::OneRtt][level];
            let _ = server.on_crypto(level, offset, &data);
            let _ = client.on_crypto(level, offset, &data);
        }
    }

    #[test]
    fn a_changed_byte_is_refused_or_harmless(at in any::<prop::sample::Index>(), to in any::<u8>(), turn in 0usize..2) {
        let (mut client, mut server) = begin(V1);
        if turn == 1 {
            transfer(&mut client, &mut server).unwrap();
        }
        let (from, into) = if turn == 0 { (&mut client, &mut server) } else { (&mut server, &mut client) };
        let mut same = true;
        for level in LEVELS {
            let mut data = take(from, level, 1200).concat_data();
            if !data.is_empty() {
                let at = at.index(data.len());
                same &= data[at] == to;
                data[at] = to;
                if into.on_crypto(level, 0, &data).is_err() {
                    return Ok(());
                }
            }
        }
        let done = run(&mut client, &mut server).is_ok() && client.is_complete() && server.is_complete();
        prop_assert!(same || !done, "a changed transcript never completes");
    }
}
