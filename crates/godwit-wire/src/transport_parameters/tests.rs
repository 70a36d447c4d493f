#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use crate::Reader;
use crate::codec::VARINT_MAX;
use proptest::prelude::*;

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..64_u64, 64_u64..1 << 14, 1_u64 << 14..1 << 30, 1_u64 << 30..=VARINT_MAX]
}

fn cid(least: usize) -> impl Strategy<Value = ConnectionId> {
    prop::collection::vec(any::<u8>(), least..=20).prop_map(|bytes| ConnectionId::new(&bytes).unwrap())
}

fn preferred_address() -> impl Strategy<Value = PreferredAddress> {
    (any::<([u8; 4], [u8; 16], u16, bool, bool)>(), cid(1), any::<[u8; 16]>()).prop_map(
        |((v4, v6, port, has_v4, has_v6), cid, token)| PreferredAddress {
            ipv4: has_v4.then(|| SocketAddrV4::new(v4.into(), port.max(1))),
            ipv6: has_v6.then(|| SocketAddrV6::new(v6.into(), port.max(1), 0, 0)),
            cid,
            reset_token: ResetToken(token),
        },
    )
}

fn version_information() -> impl Strategy<Value = VersionInformation> {
    (1..=u32::MAX, prop::collection::vec(1..=u32::MAX, 0..15)).prop_map(|(chosen, others)| {
        let available = VersionList::new(others.into_iter().chain([chosen]));
        VersionInformation { chosen, available }
    })
}

prop_compose! {
    fn parameters()(
        numbers in prop::array::uniform8(number()),
        small in (0..=20_u8, 0..1_u64 << 14, any::<bool>(), any::<bool>(), any::<Option<[u8; 16]>>()),
        disable_1rtt_encryption: bool,
        cids in prop::array::uniform3(prop::option::of(cid(0))),
        preferred_address in prop::option::of(preferred_address()),
        version_information in prop::option::of(version_information()),
    ) -> TransportParameters {
        let [idle, udp, data, bidi_local, bidi_remote, uni, streams, datagram] = numbers;
        let no_address = cids[1].is_some_and(|cid| cid.is_empty());
        TransportParameters {
            original_destination_cid: cids[0],
            max_idle_timeout: Duration::from_millis(idle),
            stateless_reset_token: small.4.map(ResetToken),
            max_udp_payload_size: udp.max(1200),
            initial_max_data: data,
            initial_max_stream_data_bidi_local: bidi_local,
            initial_max_stream_data_bidi_remote: bidi_remote,
            initial_max_stream_data_uni: uni,
            initial_max_streams_bidi: streams.min(1 << 60),
            initial_max_streams_uni: data.min(1 << 60),
            ack_delay_exponent: small.0,
            max_ack_delay: Duration::from_millis(small.1),
            disable_active_migration: small.2,
            preferred_address: preferred_address.filter(|_| !no_address),
            active_cid_limit: uni.max(2),
            initial_source_cid: cids[1],
            retry_source_cid: cids[2],
            max_datagram_frame_size: datagram,
            grease_quic_bit: small.3,
            reset_stream_at: small.2 ^ small.3,
            min_ack_delay: small.2.then(|| Duration::from_micros(small.1 * 700)),
            disable_1rtt_encryption,
            timestamps: Timestamps { receive: small.0 & 1 != 0, send: small.3 },
            cibir_encoding: small.3.then(|| CibirEncoding { length: (small.1 % 200) as u8 + 1, offset: small.0 * 2 }),
            version_information,
        }
    }
}

fn encoded(parameters: &TransportParameters, grease: u64) -> Vec<u8> {
    let mut buffer = [0; TransportParameters::MAX_LEN];
    let mut writer = Writer::new(&mut buffer);
    parameters.encode(&mut writer, grease).unwrap();
    writer.written().to_vec()
}

/// The numbers of the parameters in `bytes`, each with the position behind it.
fn entries(bytes: &[u8]) -> Vec<(u64, usize)> {
    let mut reader = Reader::new(bytes);
    let mut entries = Vec::new();
    while !reader.is_empty() {
        let number = reader.varint().unwrap();
        reader.prefixed().unwrap();
        entries.push((number, bytes.len() - reader.remaining()));
    }
    entries
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(parameters in parameters(), grease: u64) {
        let encoding = encoded(&parameters, grease);
        for sender in [Side::Client, Side::Server] {
            let versions = TransportParameters::version_information_of(&encoding, sender);
            if let Ok(all) = TransportParameters::decode(&encoding, sender) {
                prop_assert_eq!(versions, Ok(all.version_information));
                let offers = TransportParameters::offers_no_encryption(&encoding);
                prop_assert_eq!(offers, all.disable_1rtt_encryption);
            }
        }
        let bytes = encoded(&parameters, grease);
        prop_assert_eq!(TransportParameters::decode(&bytes, Side::Server), Ok(parameters));
        let (last, _) = *entries(&bytes).last().unwrap();
        prop_assert_eq!(last % 31, 27, "the reserved parameter");
    }

    #[test]
    fn a_list_cut_short_is_refused_unless_cut_between_parameters(parameters in parameters(), grease: u64) {
        let bytes = encoded(&parameters, grease);
        let ends: Vec<_> = entries(&bytes).into_iter().map(|(_, end)| end).collect();
        for cut in 1..bytes.len() {
            let decoded = TransportParameters::decode(&bytes[..cut], Side::Server);
            prop_assert_eq!(decoded.is_ok(), ends.contains(&cut));
        }
    }

    #[test]
    fn what_does_not_fit_leaves_the_writer_alone(parameters in parameters(), grease: u64) {
        for room in 0..encoded(&parameters, grease).len() {
            let mut buffer = vec![0; room];
            let mut writer = Writer::new(&mut buffer);
            prop_assert_eq!(parameters.encode(&mut writer, grease), Err(NoRoom));
            prop_assert!(writer.is_empty());
        }
    }

    #[test]
    fn nothing_known_comes_twice(parameters in parameters(), pick: prop::sample::Index) {
        let bytes = encoded(&parameters, 0);
        let entries = entries(&bytes);
        let at = pick.index(entries.len());
        let start = at.checked_sub(1).map_or(0, |before| entries[before].1);
        let (number, end) = entries[at];
        let twice = [&bytes[..], &bytes[start..end]].concat();
        let decoded = TransportParameters::decode(&twice, Side::Server);
        prop_assert_eq!(decoded.is_ok(), number == 27, "only the reserved parameter may");
    }

    #[test]
    fn any_bytes_are_refused_or_understood(
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0_u8..0x22], 0..60), client: bool,
    ) {
        let sender = if client { Side::Client } else { Side::Server };
        if let Ok(parameters) = TransportParameters::decode(&bytes, sender) {
            let again = encoded(&parameters, 1);
            prop_assert_eq!(TransportParameters::decode(&again, sender), Ok(parameters));
        }
    }
}

#[test]
fn an_empty_list_means_the_defaults() {
    let decoded = TransportParameters::decode(&[], Side::Client).unwrap();
    assert_eq!(decoded, TransportParameters::default());
    assert_eq!((decoded.active_cid_limit, decoded.ack_delay_exponent), (2, 3));
    assert_eq!((decoded.max_udp_payload_size, decoded.max_ack_delay.as_millis()), (65_527, 25));
    // Nothing but the reserved parameter is written: number 27, without content.
    assert_eq!(encoded(&decoded, 0), [27, 0]);
}

/// A preferred address without addresses, with a connection id of one byte.
fn bare_address() -> Vec<u8> {
    let mut value = [0; 42];
    value[24] = 1;
    [&[0x0d, 42][..], &value].concat()
}

#[test]
fn violations_are_named() {
    let too_long_cid = [&[0x0f, 21][..], &[0; 21]].concat();
    let no_cid = [&[0x0d, 41][..], &[0; 41]].concat();
    let odd_versions = [0x11, 7, 0, 0, 0, 1, 0, 0, 0];
    let address_without_cid = [&[0x0f, 0][..], &bare_address()].concat();
    let cases: [(&[u8], &str); 20] = [
        (&[0x01, 0], "cut short"),
        (&[0x01, 2, 5, 5], "longer than its value"),
        (&[0x01, 1, 0x40], "cut short"),
        (&[0x02, 3, 1, 2, 3], "cut short"),
        (&[0x03, 2, 0x44, 0xaf], "below 1200"),
        (&[0x08, 8, 0xd0, 0, 0, 0, 0, 0, 0, 1], "above 2^60"),
        (&[0x09, 8, 0xd0, 0, 0, 0, 0, 0, 0, 1], "above 2^60"),
        (&[0x0a, 1, 21], "above 20"),
        (&[0x0a, 4, 0x80, 0, 1, 3], "above 20"),
        (&[0x0b, 4, 0x80, 0, 0x40, 0], "2^14 or more"),
        (&[0xc0, 0, 0, 0, 0xff, 0x04, 0xde, 0x1b, 4, 0x80, 0, 0x61, 0xa9], "above max_ack_delay"),
        (&[0x0c, 1, 0], "longer than its value"),
        (&[0x0e, 1, 1], "below 2"),
        (&[0x6a, 0xb2, 1, 0], "longer than its value"),
        (&[0x80, 0, 0xba, 0xad, 1, 0], "longer than its value"),
        (&too_long_cid, "longer than 20"),
        (&no_cid, "forbidden length"),
        (&odd_versions, "odd length"),
        (&[0x11, 4, 0, 0, 0, 0], "version 0"),
        (&address_without_cid, "zero-length connection id"),
    ];
    for (bytes, reason) in cases {
        let error = TransportParameters::decode(bytes, Side::Server).unwrap_err();
        assert!(error.reason.contains(reason), "{bytes:x?}: {error}");
        assert_eq!(error.to_string(), format!("transport parameters: {}", error.reason));
    }
}

#[test]
fn limits_themselves_are_accepted() {
    let cases: [&[u8]; 6] = [
        &[0x03, 2, 0x44, 0xb0],
        &[0x08, 8, 0xd0, 0, 0, 0, 0, 0, 0, 0],
        &[0x0a, 1, 20],
        &[0x0b, 2, 0x7f, 0xff],
        &[0x0e, 1, 2],
        &[0x0c, 0],
    ];
    for bytes in cases {
        assert!(TransportParameters::decode(bytes, Side::Client).is_ok(), "{bytes:x?}");
    }
}

#[test]
fn only_an_empty_parameter_of_that_number_does_without_encryption() {
    let cases: [(&[u8], bool); 5] = [
        (&[0x80, 0, 0xba, 0xad, 0], true),
        (&[0x0e, 1, 2, 0x80, 0, 0xba, 0xad, 0, 0x0c, 0], true),
        (&[0x80, 0, 0xba, 0xae, 0], false),
        (&[0x80, 0, 0xba, 0xad, 1, 1], false),
        (&[0x0e, 9, 2, 0x80, 0, 0xba, 0xad, 0], false),
    ];
    for (bytes, offered) in cases {
        assert_eq!(TransportParameters::offers_no_encryption(bytes), offered, "{bytes:x?}");
        let decoded = TransportParameters::decode(bytes, Side::Client);
        assert_eq!(decoded.is_ok_and(|all| all.disable_1rtt_encryption), offered, "{bytes:x?}");
    }
}

#[test]
fn clients_may_not_send_what_is_for_servers() {
    let token = [&[0x02, 16][..], &[0; 16]].concat();
    for bytes in [&[0x00, 0][..], &token, &bare_address(), &[0x10, 0]] {
        assert!(TransportParameters::decode(bytes, Side::Server).is_ok());
        let error = TransportParameters::decode(bytes, Side::Client).unwrap_err();
        assert!(error.reason.contains("only servers"), "{bytes:x?}: {error}");
    }
}

#[test]
fn clients_offer_the_version_they_chose() {
    let bytes = [0x11, 8, 0, 0, 0, 1, 0x6b, 0x33, 0x43, 0xcf];
    assert!(TransportParameters::decode(&bytes, Side::Server).is_ok());
    assert!(TransportParameters::decode(&bytes, Side::Client).is_err());
    assert!(TransportParameters::decode(&[0x11, 4, 0, 0, 0, 1], Side::Server).is_ok(), "an empty list");
}

#[test]
fn long_lists_of_versions_are_cut() {
    let list = VersionList::new(1..100);
    assert_eq!(list.as_slice(), (1..=16).collect::<Vec<_>>());
}

#[test]
fn the_longest_list_fits() {
    let cid = ConnectionId::new(&[9; 20]);
    let reset_token = ResetToken([7; 16]);
    let preferred_address = Some(PreferredAddress { ipv4: None, ipv6: None, cid: cid.unwrap(), reset_token });
    let longest = TransportParameters {
        original_destination_cid: cid,
        max_idle_timeout: Duration::MAX,
        stateless_reset_token: Some(reset_token),
        max_udp_payload_size: VARINT_MAX,
        initial_max_data: VARINT_MAX,
        initial_max_stream_data_bidi_local: VARINT_MAX,
        initial_max_stream_data_bidi_remote: VARINT_MAX,
        initial_max_stream_data_uni: VARINT_MAX,
        initial_max_streams_bidi: VARINT_MAX,
        initial_max_streams_uni: VARINT_MAX,
        ack_delay_exponent: u8::MAX,
        max_ack_delay: Duration::MAX,
        disable_active_migration: true,
        preferred_address,
        active_cid_limit: VARINT_MAX,
        initial_source_cid: cid,
        retry_source_cid: cid,
        max_datagram_frame_size: VARINT_MAX,
        grease_quic_bit: true,
        min_ack_delay: Some(Duration::MAX),
        reset_stream_at: true,
        disable_1rtt_encryption: true,
        timestamps: Timestamps { receive: true, send: true },
        cibir_encoding: Some(CibirEncoding { length: 200, offset: 55 }),
        version_information: Some(VersionInformation { chosen: 1, available: VersionList::new(1..17) }),
    };
    assert!(encoded(&longest, u64::MAX).len() > 300);
}
