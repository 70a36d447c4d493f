#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use crate::observe::{
    Cid, CloseTrigger, ErrorName, FrameList, Initiator, PacketHeader, PacketName, Parameters, RawInfo,
    TextBytes, TupleEndpoint, Versions,
};
use godwit_base::WallTime;
use godwit_wire::transport_parameters::TransportParameters;
use godwit_wire::{ConnectionId, TransportErrorCode};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What was written, a string for each call.
type Written = Arc<Mutex<Vec<Vec<u8>>>>;

fn info(wall: Option<WallTime>) -> ObserverInfo {
    ObserverInfo {
        side: Side::Client,
        original_dcid: ConnectionId::new(&[0xab; 8]).unwrap(),
        remote: "192.0.2.1:443".parse().unwrap(),
        wall,
    }
}

fn qlog(wall: Option<WallTime>) -> (Qlog, Written) {
    let written = Written::default();
    let sink = Arc::clone(&written);
    let qlog = Qlog::new(&info(wall), Box::new(move |record| sink.lock().unwrap().push(record.to_vec())));
    (qlog, written)
}

/// Checks the frame of the last record and takes it apart.
fn last(written: &Written) -> Value {
    let written = written.lock().unwrap();
    let record = written.last().unwrap();
    assert_eq!((record.first(), record.last()), (Some(&0x1e), Some(&b'\n')));
    let text = std::str::from_utf8(&record[1..record.len() - 1]).unwrap();
    assert!(!text.contains(['\n', '\u{1e}']), "separators stand between records only: {text}");
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn logged(event: &TransportEvent<'_>) -> Value {
    let (mut qlog, written) = qlog(None);
    qlog.on_event(Time::ZERO, event);
    last(&written)
}

#[test]
fn the_header_comes_first() {
    let (_, written) = qlog(Some(WallTime::from_unix_micros(1_772_282_096_789_000)));
    let expected = json!({
        "file_schema": "urn:ietf:params:qlog:file:sequential",
        "serialization_format": "application/qlog+json-seq",
        "trace": {
            "event_schemas": ["urn:ietf:params:qlog:events:quic-12"],
            "vantage_point": { "name": "godwit", "type": "client" },
            "common_fields": {
                "group_id": "abababababababab",
                "time_format": "relative_to_epoch",
                "reference_time": {
                    "clock_type": "monotonic",
                    "epoch": "unknown",
                    "wall_clock_time": "2026-02-28T12:34:56.789Z",
                },
            },
        },
    });
    assert_eq!(last(&written), expected);
    // Readers recognise the file by its first 256 bytes.
    let start = written.lock().unwrap()[0][..256].to_vec();
    assert!(String::from_utf8(start).unwrap().contains("application/qlog+json-seq"));
}

#[test]
fn times_are_milliseconds_since_the_first_event() {
    let (mut qlog, written) = qlog(None);
    let start = Time::from_nanos(5_000_000_000);
    let event = TransportEvent::MtuUpdated { old: None, new: 1200 };
    for (micros, text) in [(0, "0"), (1500, "1.5"), (2_000_001, "2000.001"), (3_000_000, "3000")] {
        qlog.on_event(start + Duration::from_micros(micros), &event);
        let expected: Value = serde_json::from_str(text).unwrap();
        assert_eq!(last(&written)["time"].as_f64(), expected.as_f64());
    }
    assert_eq!(last(&written)["name"], "quic:mtu_updated");
    assert_eq!(last(&written)["data"], json!({ "new": 1200 }));
}

#[test]
fn a_packet_shows_its_frames() {
    let payload = [
        &[0x02, 10, 0x40, 100, 1, 2, 3, 0][..], // ACK of 8..=10 and 3
        &[0x0b, 4, 2, b'h', b'i'],              // STREAM 4 with end, "hi"
        &[0x18, 1, 0, 4, 1, 2, 3, 4],           // NEW_CONNECTION_ID
        &[7; 16],
        &[0x1d, 5, 3, b'b', b'"', 0xff], // CONNECTION_CLOSE of the application
        &[0, 0, 0],                      // PADDING
    ]
    .concat();
    let event = TransportEvent::PacketSent {
        header: PacketHeader { packet_type: PacketName::OneRtt, packet_number: Some(7), key_phase: Some(0) },
        frames: FrameList::new(&payload, 3),
        raw: RawInfo::length(60),
        is_mtu_probe_packet: None,
    };
    let expected = json!({
        "header": { "packet_type": "1RTT", "packet_number": 7, "key_phase": 0 },
        "frames": [
            { "frame_type": "ack", "ack_delay": 0.8, "acked_ranges": [[8, 10], [3]] },
            { "frame_type": "stream", "stream_id": 4, "offset": 0, "fin": true, "raw": { "length": 2 } },
            { "frame_type": "new_connection_id", "sequence_number": 1, "retire_prior_to": 0,
              "connection_id": "01020304" },
            { "frame_type": "connection_close", "error_space": "application", "error": "unknown",
              "error_code": 5, "reason": "b\"\u{fffd}" },
            { "frame_type": "padding", "raw": { "payload_length": 3 } },
        ],
        "raw": { "length": 60 },
    });
    assert_eq!(logged(&event)["data"], expected);
}

#[test]
fn ends_of_connections_name_the_error() {
    let event = |code| TransportEvent::ConnectionClosed {
        initiator: Some(Initiator::Remote),
        connection_error: Some(ErrorName(code)),
        application_error: None,
        error_code: None,
        reason: None,
        trigger: CloseTrigger::Error,
    };
    for (code, name) in [
        (TransportErrorCode::FLOW_CONTROL_ERROR, "flow_control_error"),
        (TransportErrorCode::crypto(42), "crypto_error_0x12a"),
        (TransportErrorCode(0x7777), "unknown"),
    ] {
        let expected = json!({ "initiator": "remote", "connection_error": name, "trigger": "error" });
        assert_eq!(logged(&event(code))["data"], expected);
    }
}

#[test]
fn reset_tokens_are_not_logged() {
    let parameters = TransportParameters {
        stateless_reset_token: Some(godwit_wire::ResetToken([0x5a; 16])),
        ..TransportParameters::default()
    };
    let event =
        TransportEvent::ParametersSet { initiator: Initiator::Local, parameters: Parameters(&parameters) };
    let logged = logged(&event).to_string();
    assert!(logged.contains("\"max_udp_payload_size\":65527") && !logged.contains("5a5a"), "{logged}");
}

#[test]
fn that_an_end_does_without_encryption_is_logged() {
    for disable_1rtt_encryption in [false, true] {
        let parameters = TransportParameters { disable_1rtt_encryption, ..TransportParameters::default() };
        let parameters = Parameters(&parameters);
        let logged = logged(&TransportEvent::ParametersSet { initiator: Initiator::Local, parameters });
        let expected = disable_1rtt_encryption.then_some(true);
        assert_eq!(logged["data"].get("disable_1rtt_encryption").and_then(|it| it.as_bool()), expected);
    }
}

#[test]
fn a_mask_is_what_it_was_set_to() {
    let (qlog, _) = qlog(None);
    assert_eq!(TransportEventKind::ALL.len(), qlog.mask().bits().count_ones() as usize);
    let mask = TransportEventKind::PacketLost.mask();
    assert_eq!(qlog.with_mask(mask).mask(), mask);
}

/// Some calls of a visitor, with whatever names and values.
#[derive(Debug, Clone)]
enum Call {
    Flag(String, bool),
    Number(String, u64),
    Duration(String, Duration),
    Text(String, String),
    Bytes(String, Vec<u8>),
    Group(String, Vec<Call>),
    List(String, Vec<Call>),
}

impl Call {
    fn visit(&self, visitor: &mut dyn Visitor) {
        match self {
            Call::Flag(name, value) => visitor.flag(name, *value),
            Call::Number(name, value) => visitor.number(name, *value),
            Call::Duration(name, value) => visitor.duration(name, *value),
            Call::Text(name, value) => visitor.text(name, value),
            Call::Bytes(name, value) => visitor.bytes(name, value),
            Call::Group(name, calls) => visitor.group(name, &|visitor| visit_all(calls, visitor)),
            Call::List(name, calls) => visitor.list(name, &|visitor| visit_all(calls, visitor)),
        }
    }

    fn name(&self) -> &str {
        match self {
            Call::Flag(name, _)
            | Call::Number(name, _)
            | Call::Duration(name, _)
            | Call::Text(name, _)
            | Call::Bytes(name, _)
            | Call::Group(name, _)
            | Call::List(name, _) => name,
        }
    }

    /// What JSON should make of it.
    fn value(&self) -> Value {
        match self {
            Call::Flag(_, value) => json!(value),
            Call::Number(_, value) => json!(value),
            Call::Duration(_, value) => {
                let micros = value.as_micros();
                let text = format!("{}.{:03}", micros / 1000, micros % 1000);
                serde_json::from_str(text.strip_suffix(".000").unwrap_or(&text)).unwrap()
            }
            Call::Text(_, value) => json!(value),
            Call::Bytes(_, value) => {
                json!(value.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
            }
            Call::Group(_, calls) => calls
                .iter()
                .map(|call| (call.name().to_owned(), call.value()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            Call::List(_, calls) => calls.iter().map(Call::value).collect::<Vec<_>>().into(),
        }
    }
}

fn visit_all(calls: &[Call], visitor: &mut dyn Visitor) {
    calls.iter().for_each(|call| call.visit(visitor));
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let text = || prop::collection::vec(any::<char>(), 0..8).prop_map(String::from_iter);
    let leaf = prop_oneof![
        (text(), any::<bool>()).prop_map(|(name, value)| Call::Flag(name, value)),
        (text(), any::<u64>()).prop_map(|(name, value)| Call::Number(name, value)),
        (text(), 0..1_u64 << 50).prop_map(|(name, value)| Call::Duration(name, Duration::from_nanos(value))),
        (text(), text()).prop_map(|(name, value)| Call::Text(name, value)),
        (text(), prop::collection::vec(any::<u8>(), 0..8)).prop_map(|(name, value)| Call::Bytes(name, value)),
    ];
    let tree = leaf.prop_recursive(4, 32, 6, move |inner| {
        let inner = prop::collection::vec(inner, 0..6);
        prop_oneof![
            (text(), inner.clone()).prop_map(|(name, calls)| Call::Group(name, calls)),
            (text(), inner).prop_map(|(name, calls)| Call::List(name, calls)),
        ]
    });
    prop::collection::vec(tree, 0..8)
}

proptest! {
    #[test]
    fn whatever_is_visited_parses_as_itself(calls in calls()) {
        let mut json = JsonWriter::new();
        // What the writer was used for before does not show.
        json.begin(b'x');
        visit_all(&calls, &mut json);
        json.end(b'x');
        json.begin(RECORD_SEPARATOR);
        visit_all(&calls, &mut json);
        let record = json.end(LINE_FEED);
        prop_assert!(record[1..record.len() - 1].iter().all(|byte| *byte >= 0x20));
        let parsed: Value = serde_json::from_slice(&record[1..]).unwrap();
        prop_assert_eq!(parsed, Call::Group(String::new(), calls).value());
    }

    #[test]
    fn any_payload_gives_a_record(
        payload in prop::collection::vec(any::<u8>(), 0..200),
        exponent in any::<u8>(),
        number in any::<u64>(),
    ) {
        let event = TransportEvent::PacketReceived {
            header: PacketHeader::numbered(PacketName::Initial, number),
            frames: Some(FrameList::new(&payload, exponent)),
            raw: RawInfo::payload(payload.len()),
        };
        let logged = logged(&event);
        let frames = FrameList::new(&payload, exponent).iter().count();
        prop_assert_eq!(logged["data"]["frames"].as_array().unwrap().len(), frames);
        prop_assert_eq!(logged["data"]["header"]["packet_number"].as_u64(), Some(number));
    }

    #[test]
    fn whatever_the_peer_says_gives_a_record(
        reason in prop::collection::vec(any::<u8>(), 0..50),
        cid in prop::collection::vec(any::<u8>(), 0..=20),
        code in any::<u64>(),
        versions in prop::collection::vec(any::<u32>(), 0..5),
        remote in any::<std::net::IpAddr>(),
    ) {
        let closed = TransportEvent::ConnectionClosed {
            initiator: None,
            connection_error: Some(ErrorName(TransportErrorCode(code))),
            application_error: Some("unknown"),
            error_code: Some(code),
            reason: Some(TextBytes(&reason)),
            trigger: CloseTrigger::Error,
        };
        let text = String::from_utf8_lossy(&reason).into_owned();
        prop_assert_eq!(&logged(&closed)["data"]["reason"], &Value::from(text));
        let cid = ConnectionId::new(&cid).unwrap();
        let end = TupleEndpoint { address: Some(remote), port: Some(1), cid: Some(cid) };
        let started = logged(&TransportEvent::ConnectionStarted { local: end, remote: end });
        let ids = &started["data"]["remote"]["connection_ids"];
        prop_assert_eq!(ids, &json!([cid.to_string()]));
        let updated = TransportEvent::ConnectionIdUpdated {
            initiator: Initiator::Local, old: Cid(cid), new: Cid(ConnectionId::EMPTY),
        };
        prop_assert_eq!(&logged(&updated)["data"]["new"], &json!(""));
        let information = TransportEvent::VersionInformation {
            server_versions: Some(Versions(&versions)), client_versions: None, chosen_version: None,
        };
        let count = logged(&information)["data"]["server_versions"].as_array().unwrap().len();
        prop_assert_eq!(count, versions.len());
    }
}
