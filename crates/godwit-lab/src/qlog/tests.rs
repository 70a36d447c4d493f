//! Traces made up for what should be found in them.

use std::io::{Cursor, Write};
use std::path::Path;
use std::time::Duration;

use godwit_report::qlog::Records;
use godwit_text::Style;

use super::analysis::Analysis;
use super::losses::Cause;
use super::stalls::Reason;
use super::{svg, text};

const HEADER: &str = r#"{"serialization_format":"application/qlog+json-seq","trace":{"vantage_point":{"type":"client"},"common_fields":{"group_id":"ab"}}}"#;

/// A trace of events, each a time in milliseconds, a name and data.
fn trace(events: &[(u32, &str, &str)]) -> Vec<u8> {
    let mut bytes = format!("\x1e{HEADER}\n").into_bytes();
    for (time, name, data) in events {
        writeln!(bytes, "\x1e{{\"time\":{time},\"name\":\"quic:{name}\",\"data\":{data}}}").unwrap();
    }
    bytes
}

fn analyse(bytes: Vec<u8>) -> Result<Analysis, String> {
    let records = Records::new(Path::new("x.sqlog"), Box::new(Cursor::new(bytes)));
    Analysis::of(records).map_err(|error| error.to_string())
}

const COMPLETE: (u32, &str, &str) = (10, "connection_state_updated", r#"{"new":"handshake_complete"}"#);
const METRICS: &str =
    r#"{"min_rtt":10,"latest_rtt":10,"smoothed_rtt":10,"congestion_window":12000,"bytes_in_flight":"#;

fn metrics(in_flight: u32) -> String {
    format!("{METRICS}{in_flight}}}")
}

fn packet(frames: &str) -> String {
    format!(
        r#"{{"header":{{"packet_type":"1RTT","packet_number":1}},"raw":{{"length":100}},"frames":[{frames}]}}"#
    )
}

const STREAM: &str = r#"{"frame_type":"stream","stream_id":0,"raw":{"length":60}}"#;
const REQUEST: &str = r#"{"frame_type":"stream","stream_id":0,"fin":true,"raw":{"length":60}}"#;

/// The reason of the only stall after the handshake.
fn reason(before: &[(u32, &str, String)]) -> Reason {
    let data = packet(STREAM);
    let mut events = vec![COMPLETE, (11, "packet_received", data.as_str())];
    events.extend(before.iter().map(|(time, name, data)| (*time, *name, data.as_str())));
    events.push((500, "packet_received", &data));
    let analysis = analyse(trace(&events)).unwrap();
    let stalls = analysis.stalls.longest();
    let [stall] = stalls.as_slice() else { panic!("{stalls:?}") };
    assert!(stall.lasted > Duration::from_millis(400), "{stall:?}");
    stall.reason
}

#[test]
fn a_stall_has_a_reason() {
    let sent = |frames: &str| (12, "packet_sent", packet(frames));
    assert_eq!(reason(&[]), Reason::Application);
    assert_eq!(reason(&[sent(REQUEST)]), Reason::Peer);
    assert_eq!(reason(&[(12, "recovery_metrics_updated", metrics(5_000))]), Reason::Peer);
    assert_eq!(reason(&[(12, "recovery_metrics_updated", metrics(11_500))]), Reason::Congestion);
    let blocked = r#"{"frame_type":"stream_data_blocked","stream_id":0,"limit":5}"#;
    assert_eq!(reason(&[sent(blocked)]), Reason::FlowControl);
    let permitted = (13, "packet_received", packet(r#"{"frame_type":"max_data","maximum":9}"#));
    assert_eq!(reason(&[sent(blocked), permitted]), Reason::Application);
}

#[test]
fn the_handshake_is_waited_for_too() {
    let data = packet(STREAM);
    let analysis = analyse(trace(&[(0, "connection_started", "{}"), (300, "packet_sent", &data)])).unwrap();
    assert_eq!(
        analysis.stalls.totals().collect::<Vec<_>>(),
        [(Reason::Handshake, 1, Duration::from_millis(300))]
    );
}

#[test]
fn losses_have_causes() {
    let lost = |number: u32| {
        format!(
            r#"{{"header":{{"packet_type":"1RTT","packet_number":{number}}},"trigger":"reordering_threshold"}}"#
        )
    };
    let ack = |range: &str| packet(&format!(r#"{{"frame_type":"ack","acked_ranges":[{range}]}}"#));
    let (low, high) = (metrics(0), r#"{"latest_rtt":30}"#);
    let events = [
        COMPLETE,
        (20, "recovery_metrics_updated", low.as_str()),
        (20, "packet_received", &ack("[0]")),
        (21, "packet_lost", &lost(5)),
        (22, "packet_lost", &lost(6)),
        (23, "packet_received", &ack("[6,8]")),
        (40, "recovery_metrics_updated", high),
        (41, "packet_lost", &lost(9)),
        (
            42,
            "packet_lost",
            r#"{"header":{"packet_type":"1RTT","packet_number":10},"is_mtu_probe_packet":true}"#,
        ),
        (900, "packet_lost", &lost(11)),
    ];
    let analysis = analyse(trace(&events)).unwrap();
    let causes: Vec<_> = analysis.losses.causes().collect();
    let expected =
        [(Cause::Probe, 1), (Cause::Late, 1), (Cause::Queue, 1), (Cause::Silence, 1), (Cause::Line, 1)];
    assert_eq!(causes, expected);
    assert_eq!((analysis.losses.total(), analysis.losses.episodes), (5, 2));
}

#[test]
fn a_report_and_a_drawing_come_of_it() {
    let data = packet(STREAM);
    let low = metrics(3_000);
    let lost = r#"{"header":{"packet_type":"1RTT","packet_number":1},"trigger":"time_threshold"}"#;
    let closed = r#"{"initiator":"remote","error_code":7,"reason":"\u001b[31mbye","trigger":"application"}"#;
    let events = [
        COMPLETE,
        (11, "packet_sent", data.as_str()),
        (20, "recovery_metrics_updated", &low),
        (21, "packet_lost", lost),
        (700, "packet_received", &data),
        (701, "connection_closed", closed),
    ];
    let analysis = analyse(trace(&events)).unwrap();
    let mut out = String::new();
    text::render(&mut out, Path::new("x.sqlog"), &analysis, Style::PLAIN);
    for expected in
        ["seen by the client", "by the peer, code 7", "waiting for peer", "1 packets (100.00 % of"]
    {
        assert!(out.contains(expected), "{expected}: {out}");
    }
    assert!(!out.contains('\u{1b}'), "{out:?}");
    let drawing = svg::draw(&analysis);
    assert_eq!(drawing.matches("<polyline").count(), 5);
    assert_eq!(drawing.matches("class=\"x\"").count(), 1);
    assert!(
        !drawing.contains("NaN") && !drawing.contains("inf\"") && drawing.ends_with("</svg>\n"),
        "{drawing}"
    );
}

#[test]
fn paths_marks_and_early_data_are_told_of() {
    let early = r#"{"header":{"packet_type":"0RTT","packet_number":0},"raw":{"length":90},"frames":[]}"#;
    let marked = packet(r#"{"frame_type":"ack","acked_ranges":[[0]],"ect0":1,"ect1":0,"ce":0}"#);
    let challenge = packet(r#"{"frame_type":"path_challenge","data":"0123456789abcdef"}"#);
    let events = [
        (0, "packet_sent", early),
        (0, "ecn_state_updated", r#"{"new":"testing"}"#),
        COMPLETE,
        (11, "packet_received", marked.as_str()),
        (11, "ecn_state_updated", r#"{"old":"testing","new":"capable"}"#),
        (12, "recovery_metrics_updated", r#"{"congestion_window":12000}"#),
        (13, "recovery_metrics_updated", r#"{"congestion_window":8400}"#),
        (20, "migration_state_updated", r#"{"new":"probing_started","tuple_id":"1"}"#),
        (20, "packet_sent", &challenge),
        (50, "migration_state_updated", r#"{"new":"migration_complete","tuple_id":"1"}"#),
    ];
    let analysis = analyse(trace(&events)).unwrap();
    let mut out = String::new();
    text::render(&mut out, Path::new("x.sqlog"), &analysis, Style::PLAIN);
    for expected in ["1 0RTT", "ECN capable", "1 changes of path", "reduced 1 times"] {
        assert!(out.contains(expected), "{expected}: {out}");
    }
}

#[test]
fn times_count_from_what_the_trace_says() {
    let lasted = |common: &str, times: [f64; 3]| {
        let header = HEADER.replace(r#""group_id":"ab""#, common);
        let mut bytes = format!("\x1e{header}\n").into_bytes();
        for time in times {
            writeln!(bytes, "\x1e{{\"time\":{time},\"name\":\"transport:x\"}}").unwrap();
        }
        analyse(bytes).unwrap().length
    };
    let system = r#""reference_time":{"clock_type":"system","epoch":"1970-01-01T00:00:00.000Z"}"#;
    for (common, times) in [
        (r#""group_id":"ab""#, [0.0, 10.0, 25.0]),
        (r#""time_format":"relative_to_previous_event""#, [0.0, 10.0, 15.0]),
        (r#""time_format":"absolute""#, [1.7e12, 1.7e12 + 25.0, 1.7e12 + 10.0]),
        (system, [1.7e12, 1.7e12 - 1.0, 1.7e12 + 25.0]),
    ] {
        assert_eq!(lasted(common, times), Duration::from_millis(25), "{common}");
    }
}

#[test]
fn impossible_figures_are_no_trouble() {
    let most = u64::MAX;
    let packet = format!(
        r#"{{"header":{{"packet_type":"1RTT","packet_number":{most}}},"raw":{{"length":{most}}},"frames":[{{"frame_type":"stream","stream_id":{most},"raw":{{"length":{most}}}}}]}}"#
    );
    let metrics = format!(r#"{{"congestion_window":{most},"bytes_in_flight":{most},"smoothed_rtt":1e300}}"#);
    let mtu = format!(r#"{{"new":{most}}}"#);
    let events = [
        COMPLETE,
        (11, "packet_sent", packet.as_str()),
        (11, "mtu_updated", &mtu),
        (12, "recovery_metrics_updated", &metrics),
        (900, "packet_sent", &packet),
        (901, "packet_received", &packet),
    ];
    let drawing = svg::draw(&analyse(trace(&events)).unwrap());
    assert!(!drawing.contains("NaN") && !drawing.contains("inf"), "{drawing}");
}

#[test]
fn an_empty_trace_can_be_drawn() {
    let analysis = analyse(trace(&[])).unwrap();
    let drawing = svg::draw(&analysis);
    assert!(!drawing.contains("NaN") && !drawing.contains("inf"), "{drawing}");
}

#[test]
fn bad_files_give_one_clear_line() {
    let problem = |bytes: &[u8]| analyse(bytes.to_vec()).unwrap_err();
    for bytes in [&b""[..], b"hello\n", b"{\"time\":1}\n", &[0xff; 100]] {
        assert!(problem(bytes).contains("not a qlog trace"), "{}", problem(bytes));
        assert!(!problem(bytes).contains('\n'));
    }
    let mut damaged = trace(&[COMPLETE]);
    damaged.extend(b"\x1e{\"time\":\n\x1e{}\n");
    assert!(problem(&damaged).contains("record 3: a record is not JSON"), "{}", problem(&damaged));
    let impossible = format!("\x1e{HEADER}\n\x1e{{\"time\":-5,\"name\":\"quic:x\"}}\n");
    assert!(problem(impossible.as_bytes()).contains("impossible"), "{}", problem(impossible.as_bytes()));
}

#[test]
fn a_trace_that_is_cut_off_says_so() {
    let mut bytes = trace(&[COMPLETE]);
    bytes.extend(b"\x1e{\"time\":12,\"na");
    let analysis = analyse(bytes).unwrap();
    assert!(analysis.cut_off);
    assert_eq!(analysis.complete, Some(Duration::from_millis(10)));
}

#[test]
fn compressed_traces_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.sqlog.gz");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&trace(&[COMPLETE])).unwrap();
    std::fs::write(&path, encoder.finish().unwrap()).unwrap();
    assert_eq!(Analysis::read(&path).unwrap().complete, Some(Duration::from_millis(10)));
}
