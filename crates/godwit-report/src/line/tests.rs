#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use proptest::prelude::*;

const FULL: &str = r#"{"time":"2026-11-21T23:21:41.123Z","client":"192.0.2.7","family":4,"host":"example.com","method":"GET","path":"/x?\"y\\","protocol":"h2","status":200,"why_not_h3":"no_attempt","user":"9f3c000000000000","arm":"off","connection":123,"request":2,"tls":"resumed","rtt_ms":12.3,"lost":0,"retransmitted":0,"request_bytes":0,"response_bytes":1234,"first_byte_ms":1.2,"last_byte_ms":3.45,"delivered_ms":25.123,"upstream":"127.0.0.1:8080","upstream_ms":0.5,"last_mile_ms":24.6,"outcome":"ok","user_agent":"x \u00e9","referer":""}"#;

fn read(line: &str) -> Option<Facts> {
    Facts::read(line.as_bytes())
}

fn least(more: &str) -> String {
    format!(r#"{{"time":"2026-11-21T23:21:41.123Z","protocol":"h3","status":200{more}}}"#)
}

#[test]
fn a_full_line_is_read() {
    let facts = read(FULL).unwrap();
    assert_eq!(facts.time, 20_261_121_232_141);
    assert_eq!(facts.hour(), 23);
    assert_eq!(facts.protocol, Protocol::Http2);
    assert_eq!(facts.family, Family::V4);
    assert_eq!(facts.reuse, Reuse::Reused);
    assert_eq!(facts.tls, Tls::Resumed);
    assert_eq!(facts.arm, Arm::Off);
    assert_eq!(facts.why_not, Some(WhyNot::NoAttempt));
    assert_eq!((facts.status, facts.finished, facts.tunnel), (200, true, false));
    assert_eq!(facts.size, 1234);
    assert_eq!(facts.times, [Some(24_600), Some(1200), Some(3450), Some(25_123), Some(500)]);
    assert_eq!(facts.user, user::of_name(b"9f3c000000000000"));
}

#[test]
fn order_and_space_and_unknown_keys_do_not_matter() {
    let line = r#" { "status" : 200 , "new" : {"a":[1,"]}",{"b":null}]} , "protocol":"h3", "flag":true,
        "time":"2026-11-21T23:21:41Z" } "#
        .replace('\n', " ");
    assert_eq!(read(&line).unwrap().protocol, Protocol::Http3);
}

#[test]
fn absent_values_are_unknown() {
    let facts = read(&least("")).unwrap();
    assert_eq!(facts.family, Family::Unknown);
    assert_eq!(facts.reuse, Reuse::Unknown);
    assert_eq!(facts.times, [None; 5]);
}

#[test]
fn last_mile_is_worked_out_of_its_parts() {
    let last_mile = |more: &str| read(&least(more)).unwrap().times[0];
    assert_eq!(last_mile(r#","last_byte_ms":5"#), None);
    assert_eq!(last_mile(r#","last_byte_ms":5,"delivered_ms":30,"upstream_ms":4"#), Some(26_000));
    assert_eq!(last_mile(r#","delivered_ms":5,"upstream_ms":7"#), Some(0));
}

#[test]
fn numbers_keep_three_places() {
    let time =
        |number: &str| read(&least(&format!(r#","last_mile_ms":{number}"#))).and_then(|facts| facts.times[0]);
    let cases = [
        ("0", Some(0)),
        ("1.2345", Some(1234)),
        ("12.3", Some(12_300)),
        ("1e2", Some(100_000)),
        ("-3.5", Some(0)),
        ("99999999999999999999999", Some(u64::MAX)),
        ("1.2.3", None),
        ("\"1\"", None),
    ];
    for (number, micros) in cases {
        assert_eq!(time(number), micros, "{number}");
    }
}

#[test]
fn tunnels_are_told_apart() {
    assert!(read(&least(r#","method":"CONNECT""#)).unwrap().tunnel);
    assert!(read(&least("").replace("200", "101")).unwrap().tunnel);
    assert!(!read(&least(r#","method":"GET""#)).unwrap().tunnel);
}

#[test]
fn clients_of_one_network_are_one_user() {
    let user = |client: &str| read(&least(&format!(r#","client":"{client}""#))).unwrap().user;
    assert_eq!(user("192.0.2.7"), user("192.0.2.200"));
    assert_ne!(user("192.0.2.7"), user("192.0.3.7"));
    assert_eq!(user("2001:db8:1:2::1"), user("2001:db8:1:ffff::9"));
    assert_eq!(user("2001:db8::1"), user("2001:db8::2"));
    assert_ne!(user("2001:db8:1::1"), user("2001:db8:2::1"));
}

#[test]
fn broken_lines_are_refused() {
    let lines = [
        "",
        "{}",
        "nonsense",
        r#"{"time":"2026-11-21T23:21:41Z","protocol":"h3"}"#,
        r#"{"time":"yesterday at five o'clock","protocol":"h3","status":200}"#,
        r#"{"time":"2026-11-21T23:21:41Z","protocol":"spdy","status":200}"#,
        r#"{"time":"2026-11-21T23:21:41Z","protocol":"h3","status":200"#,
        r#"{"time":"2026-11-21T23:21:41Z","protocol":"h3","status":200}}"#,
        r#"{"time":"2026-11-21T23:21:41Z","protocol":"h3" "status":200}"#,
        r#"{"time":"2026-11-21T23:21:41Z","protocol":"h3","status":99999}"#,
        r#"{,"time":"2026-11-21T23:21:41Z","protocol":"h3","status":200}"#,
    ];
    for line in lines {
        assert_eq!(read(line), None, "{line}");
    }
    assert_eq!(read(&least(&format!(r#","deep":{}"#, "[".repeat(100_000)))), None);
}

#[test]
fn requests_without_an_answer_are_no_broken_lines() {
    let line = r#"{"time":"2026-11-21T23:21:41Z","protocol":"h2","outcome":"client_gone"}"#;
    let facts = read(line).unwrap();
    assert_eq!((facts.status, facts.finished), (0, false));
}

proptest! {
    #[test]
    fn every_cut_of_a_line_is_refused(cut in 0..FULL.len()) {
        prop_assert_eq!(Facts::read(&FULL.as_bytes()[..cut]), None);
    }

    #[test]
    fn any_bytes_are_taken_without_a_panic(at in 0..FULL.len(), bytes in prop::collection::vec(any::<u8>(), 0..20)) {
        let mut line = FULL.as_bytes().to_vec();
        line.splice(at..(at + bytes.len()).min(FULL.len()), bytes);
        let _ = Facts::read(&line);
    }

    #[test]
    fn text_may_hold_any_characters(text in any::<String>()) {
        let line = least(&format!(r#","path":{},"request":1"#, serde_json::to_string(&text).unwrap()));
        prop_assert_eq!(read(&line).unwrap().reuse, Reuse::First);
    }
}
