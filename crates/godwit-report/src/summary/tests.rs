#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use proptest::prelude::*;

fn line() -> impl Strategy<Value = String> {
    let protocol = prop::sample::select(vec!["http/1.1", "h2", "h3"]);
    let status = prop::sample::select(vec![101, 200, 404]);
    let arm = prop::sample::select(vec!["on", "off", "?"]);
    (protocol, status, arm, 1_u32..4, 0_u32..24, 0_u64..3_000_000, 0.0..90_000.0_f64, "[a-f]{2}").prop_map(
        |(protocol, status, arm, request, hour, size, ms, user)| {
            format!(
                r#"{{"time":"2026-11-21T{hour:02}:00:00Z","family":4,"protocol":"{protocol}","status":{status},"user":"{user}","arm":"{arm}","request":{request},"why_not_h3":"no_attempt","response_bytes":{size},"last_byte_ms":{ms:.3},"upstream_ms":0.2,"outcome":"ok"}}"#
            )
        },
    )
}

fn summary_of(lines: &[String]) -> Summary {
    let mut summary = Summary::new(Metric::ALL);
    lines.iter().for_each(|line| assert!(summary.add_line(line.as_bytes()), "{line}"));
    summary
}

#[test]
fn only_finished_requests_are_in_the_latencies() {
    let base = r#"{"time":"2026-11-21T05:00:00Z","protocol":"h3","status":200,"request":1,"delivered_ms":3,"outcome":"ok"}"#;
    let mut summary = Summary::new(&[Metric::LastMile]);
    summary.add_line(base.as_bytes());
    summary.add_line(base.replace("200", "503").as_bytes());
    summary.add_line(base.replace("ok", "client_gone").as_bytes());
    summary.add_line(base.replace("200", "101").as_bytes());
    assert!(!summary.add_line(b"nonsense"));
    let counters = &summary.protocols[Protocol::Http3.index()];
    let expected = Counters { requests: 4, errors: 1, unfinished: 1, tunnels: 1, kept: 1, delivered: 1 };
    assert_eq!(counters, &expected);
    assert_eq!((summary.lines, summary.broken), (5, 1));
    let table = summary.table(Metric::LastMile).unwrap();
    assert_eq!(table.gather(|_| true).count(), 1);
    assert_eq!(table.gather(|cell| cell.hour == 5 && cell.reuse == Reuse::First).count(), 1);
    assert_eq!(table.handshakes.iter().map(Sketch::count).sum::<u64>(), 1);
}

#[test]
fn a_metric_that_only_one_part_holds_is_dropped() {
    let mut summary = Summary::new(Metric::ALL);
    summary.merge(&Summary::new(&[Metric::FirstByte]));
    assert_eq!(summary.metrics().collect::<Vec<_>>(), [Metric::FirstByte]);
}

#[test]
fn files_that_are_not_sketches_are_refused() {
    let file = Summary::new(&[Metric::LastMile]).encode();
    assert_eq!(Summary::decode(b"{}").unwrap_err(), Refused::NotASketch);
    let mut newer = file.clone();
    newer[8] = 9;
    assert_eq!(Summary::decode(&newer).unwrap_err(), Refused::Newer(9));
    for cut in 8..file.len() {
        assert_eq!(Summary::decode(&file[..cut]).unwrap_err(), Refused::Damaged, "{cut}");
    }
    let mut flipped = file;
    flipped[12] ^= 4;
    assert_eq!(Summary::decode(&flipped).unwrap_err(), Refused::Damaged);
}

#[test]
fn sections_of_later_programs_are_skipped() {
    let summary = summary_of(&[]);
    let mut file = summary.encode();
    file.truncate(file.len() - 8);
    file.extend_from_slice(&[77, 3, 1, 2, 3]);
    let sum = super::coding::checksum(&file);
    file.extend_from_slice(&sum.to_le_bytes());
    assert_eq!(Summary::decode(&file).unwrap().encode(), summary.encode());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn merged_parts_are_the_whole_byte_for_byte(lines in prop::collection::vec(line(), 0..60), parts in 1_usize..10) {
        let whole = summary_of(&lines).encode();
        let mut merged = summary_of(&[]);
        for part in lines.chunks(lines.len().div_ceil(parts).max(1)).rev() {
            merged.merge(&Summary::decode(&summary_of(part).encode()).unwrap());
        }
        prop_assert_eq!(merged.encode(), whole);
    }

    #[test]
    fn hostile_sections_are_taken_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let mut file = SKETCH_FILE_START.to_vec();
        file.extend_from_slice(&[1, 2]);
        file.extend_from_slice(&bytes);
        let sum = super::coding::checksum(&file);
        file.extend_from_slice(&sum.to_le_bytes());
        let _ = Summary::decode(&file);
    }
}
