#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use proptest::prelude::*;

use super::*;

fn full() -> Record<'static> {
    Record {
        time_ms: 1_795_303_301_123,
        client: Some(ClientAddress::Full("192.0.2.7".parse().unwrap())),
        family: Some(4),
        request: Request {
            host: Some("example.com"),
            method: "GET",
            path: "/x?y",
            protocol: Protocol::H3,
            bytes: 0,
        },
        status: Some(200),
        why_not_h3: Some(WhyNotH3::NoAttempt),
        user: Some(0x9f3c),
        arm: Some(Arm::On),
        connection: Connection {
            number: Some(123),
            request: Some(1),
            tls_resumed: Some(false),
            rtt: Some(Duration::from_micros(12_300)),
            lost: Some(0),
            retransmitted: Some(2),
        },
        response: Response {
            bytes: 123,
            first_byte: Some(Duration::from_micros(1200)),
            last_byte: Some(Duration::from_millis(3)),
            delivered: Some(Duration::from_micros(25_100)),
        },
        upstream: Some(Upstream { address: "127.0.0.1:8080", waited: Duration::from_micros(500) }),
        outcome: Outcome::Ok,
        reason: Some("busy"),
        user_agent: Some("a \"b\""),
        referer: Some("https://é.example/"),
    }
}

fn line(record: &Record<'_>) -> String {
    let mut out = Vec::new();
    record.write_json(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_line_has_every_key_in_order() {
    let expected = concat!(
        r#"{"time":"2026-11-21T23:21:41.123Z","client":"192.0.2.7","family":4,"host":"example.com","method":"GET","#,
        r#""path":"/x?y","protocol":"h3","status":200,"why_not_h3":"no_attempt","user":"0000000000009f3c","arm":"on","#,
        r#""connection":123,"request":1,"tls":"full","rtt_ms":12.3,"lost":0,"retransmitted":2,"request_bytes":0,"#,
        r#""response_bytes":123,"first_byte_ms":1.2,"last_byte_ms":3,"delivered_ms":25.1,"upstream":"127.0.0.1:8080","#,
        r#""upstream_ms":0.5,"last_mile_ms":24.6,"outcome":"ok","reason":"busy","user_agent":"a \"b\"","#,
        r#""referer":"https://\u00e9.example/"}"#,
        "\n"
    );
    assert_eq!(line(&full()), expected);
}

#[test]
fn what_is_not_known_is_left_out() {
    let record = Record {
        client: Some(ClientAddress::Prefix("2001:db8:1::".parse().unwrap())),
        family: None,
        request: Request { host: None, ..full().request },
        status: None,
        why_not_h3: None,
        user: None,
        arm: None,
        connection: Connection::default(),
        response: Response::default(),
        upstream: None,
        outcome: Outcome::ClientGone,
        reason: None,
        user_agent: None,
        referer: None,
        ..full()
    };
    let expected = concat!(
        r#"{"time":"2026-11-21T23:21:41.123Z","client":"2001:db8:1::/48","method":"GET","path":"/x?y","#,
        r#""protocol":"h3","request_bytes":0,"response_bytes":0,"outcome":"client_gone"}"#,
        "\n"
    );
    assert_eq!(line(&record), expected);
}

#[test]
fn the_last_mile_is_what_the_upstream_did_not_take() {
    let mut record = full();
    assert_eq!(record.last_mile(), Some(Duration::from_micros(24_600)));
    record.upstream = None;
    assert_eq!(record.last_mile(), Some(Duration::from_micros(25_100)));
    record.upstream = Some(Upstream { address: "", waited: Duration::from_secs(1) });
    assert_eq!(record.last_mile(), Some(Duration::ZERO), "never negative");
    record.response.delivered = None;
    assert_eq!(record.last_mile(), None, "when the last byte was handed on says nothing of the client");
}

#[test]
fn milliseconds_have_the_decimals_they_need() {
    for (nanos, expected) in
        [(0, "0"), (499, "0"), (500, "0.001"), (1_000_000, "1"), (1_010_000, "1.01"), (12_345_678, "12.346")]
    {
        let mut out = Vec::new();
        write_milliseconds(&mut out, Duration::from_nanos(nanos));
        assert_eq!(String::from_utf8(out).unwrap(), expected, "{nanos}");
    }
}

#[test]
fn names_lead_back() {
    assert!(Protocol::ALL.iter().all(|it| Protocol::of_name(it.name()) == Some(*it)));
    assert!(WhyNotH3::ALL.iter().all(|it| WhyNotH3::of_name(it.name()) == Some(*it)));
    assert!(Outcome::ALL.iter().all(|it| Outcome::of_name(it.name()) == Some(*it)));
    assert_eq!(Arm::of_name("perhaps"), None);
}

proptest! {
    #[test]
    fn any_json_reader_gets_back_what_was_written(
        path in "\\PC*|[\\x00-\\x20\"\\\\]*", agent in any::<String>(), number in any::<u64>(), micros in 0..u64::MAX / 2000,
    ) {
        let mut record = full();
        record.request.path = &path;
        record.user_agent = Some(&agent);
        record.connection.number = Some(number);
        record.response.first_byte = Some(Duration::from_micros(micros));
        let line = line(&record);
        let lines = line.matches('\n').count();
        prop_assert!(line.is_ascii() && lines == 1 && line.ends_with('\n'));
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        prop_assert_eq!(value["path"].as_str().unwrap(), &path);
        prop_assert_eq!(value["user_agent"].as_str().unwrap(), &agent);
        prop_assert_eq!(value["connection"].as_u64().unwrap(), number);
        let expected = micros as f64 / 1000.0;
        prop_assert!((value["first_byte_ms"].as_f64().unwrap() - expected).abs() <= expected * 1e-12);
    }
}

#[test]
fn what_a_client_sends_is_kept_in_part() {
    let (path, agent) = (format!("/{}", "é".repeat(30_000)), "\"".repeat(60_000));
    let method = "M".repeat(5000);
    let mut record = full();
    record.request = Request { host: Some(&path), method: &method, path: &path, ..record.request };
    (record.user_agent, record.referer) = (Some(agent.as_str()), Some(path.as_str()));
    let line = line(&record);
    assert!(line.len() < 64 << 10, "{}", line.len());
    let read: serde_json::Value = serde_json::from_str(&line).unwrap();
    // The bound is within a character.
    let kept = |text: &str| format!("{}{CUT}", &text[..text.floor_char_boundary(LONGEST_TEXT)]);
    assert_eq!(kept(&path).len(), LONGEST_TEXT - 1 + CUT.len_utf8());
    for (key, whole) in
        [("host", &path), ("path", &path), ("referer", &path), ("user_agent", &agent), ("method", &method)]
    {
        assert_eq!(read[key], kept(whole), "{key}");
    }
    assert!(crate::line::Facts::read(line.trim_end().as_bytes()).is_some());
    let longest = "x".repeat(LONGEST_TEXT);
    assert_eq!(shorten(&longest), longest);
}
