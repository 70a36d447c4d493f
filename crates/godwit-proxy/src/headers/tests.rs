#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use proptest::prelude::*;

pub(super) fn map(fields: &[(&str, &str)]) -> HeaderMap {
    fields.iter().map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap())).collect()
}

fn me() -> Pseudonym {
    Pseudonym::new("me".into())
}

fn settings(trusted: &str) -> Settings {
    Settings { trust_forwarded: vec![trusted.parse().unwrap()], ..Settings::default() }
}

fn facts(peer: &str) -> Facts<'static> {
    let peer = Peer::new(peer.parse().unwrap(), true);
    Facts { version: Version::HTTP_3, peer: Some(peer), secure: true, early: false, host: None }
}

#[test]
fn an_ipv6_peer_is_quoted() {
    let mut headers = HeaderMap::new();
    let host = HeaderValue::from_static("[::1]:80");
    let facts = Facts { host: Some(&host), ..facts("[2001:db8::1]:5") };
    on_request(&mut headers, &facts, &settings("10.0.0.1"), &me()).unwrap();
    assert_eq!(headers["forwarded"], "for=\"[2001:db8::1]\";host=\"[::1]:80\";proto=https");
    assert_eq!(headers["x-forwarded-for"], "2001:db8::1");
    assert_eq!(headers["via"], "3 me");
}

#[test]
fn the_words_are_of_the_client_that_asks_and_the_host_that_it_asks() {
    let hosts = [None, Some(HeaderValue::from_static("a.test")), Some(HeaderValue::from_static("b.test"))];
    let seen = |peer: &str, secure: bool, host: &Option<HeaderValue>| {
        let mut headers = HeaderMap::new();
        let facts = Facts { secure, host: host.as_ref(), ..facts(peer) };
        on_request(&mut headers, &facts, &Settings::default(), &me()).unwrap();
        let text = |name: &str| headers[name].to_str().unwrap().to_owned();
        (text("forwarded"), text("x-forwarded-for"), text("x-real-ip"))
    };
    // Each differs from the one before in one thing, and each comes twice.
    for host in &hosts {
        for (peer, ip) in [("1.1.1.1:5", "1.1.1.1"), ("1.1.1.2:5", "1.1.1.2")] {
            for (secure, scheme) in [(true, "https"), (false, "http")] {
                let name =
                    host.as_ref().map_or(String::new(), |host| format!("host={};", host.to_str().unwrap()));
                let expected = (format!("for={ip};{name}proto={scheme}"), ip.to_owned(), ip.to_owned());
                assert_eq!(seen(peer, secure, host), expected);
                assert_eq!(seen(peer, secure, host), expected);
            }
        }
    }
}

#[test]
fn a_trusted_peer_is_added_to() {
    let mut headers =
        map(&[("forwarded", "for=a"), ("x-forwarded-for", "1.1.1.1"), ("x-real-ip", "1.1.1.1")]);
    on_request(&mut headers, &facts("10.0.0.1:5"), &settings("10.0.0.1"), &me()).unwrap();
    assert_eq!(headers["forwarded"], "for=a, for=10.0.0.1;proto=https");
    assert_eq!(headers["x-forwarded-for"], "1.1.1.1, 10.0.0.1");
    assert_eq!(headers["x-real-ip"], "1.1.1.1");
}

#[test]
fn the_warning_of_a_replay_is_made_and_kept_whoever_gives_it() {
    let seen = |early: bool, fields: &[(&str, &str)]| {
        let mut headers = map(fields);
        on_request(&mut headers, &Facts { early, ..facts("1.1.1.1:5") }, &Settings::default(), &me())
            .unwrap();
        let mut named = headers.iter().filter(|(name, _)| name.as_str().replace('_', "-") == "early-data");
        let value = named.next().map(|(_, value)| value.to_str().unwrap().to_owned());
        assert!(named.next().is_none());
        value
    };
    assert_eq!(seen(false, &[]), None);
    assert_eq!(seen(true, &[]).as_deref(), Some("1"));
    for fields in [
        &[("early-data", "1")][..],
        &[("early-data", "0")],
        &[("early-data", "1"), ("early-data", "1")],
        &[("early-data", "1"), ("connection", "early-data")],
        &[("early-data", "1"), ("early_data", "0")],
    ] {
        assert_eq!(seen(false, fields).as_deref(), Some("1"), "{fields:?}");
        assert_eq!(seen(true, fields).as_deref(), Some("1"), "{fields:?}");
    }
    assert_eq!(seen(true, &[("early_data", "0")]).as_deref(), Some("1"));
    assert_eq!(seen(false, &[("early_data", "0")]), None);
    let mut trailers = map(&[("early-data", "0")]);
    on_trailers(&mut trailers);
    assert!(trailers.is_empty());
}

#[test]
fn a_loop_is_found() {
    let with = |via: &[&str]| {
        let fields: Vec<_> = via.iter().map(|via| ("via", *via)).collect();
        on_request(&mut map(&fields), &facts("1.1.1.1:1"), &Settings::default(), &me())
    };
    for via in [&["1.1 me"][..], &["1.1 you, 2 me (comment)"], &["1.1 you", "HTTP/3 me"]] {
        assert_eq!(with(via).unwrap_err().kind(), ProblemKind::Loop, "{via:?}");
    }
    for via in [&["1.1 meme"][..], &["1.1 you (me)"], &[]] {
        assert!(with(via).is_ok(), "{via:?}");
    }
}

#[test]
fn a_loop_is_found_beside_odd_bytes() {
    let with = |lines: &[&[u8]]| {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(VIA, HeaderValue::from_bytes(line).unwrap());
        }
        on_request(&mut headers, &facts("1.1.1.1:1"), &Settings::default(), &me()).map(|()| headers)
    };
    for lines in [
        &[&b"\xff, 1.1 me"[..]][..],
        &[b"1.1 me (\xe4)"],
        &[b"1.1 \xff,,\t1.1\tme\t"],
        &[b"\xff", b"1.1 you, 1.1 me"],
        &[b"1.1 me", b"\xff"],
    ] {
        assert_eq!(with(lines).unwrap_err().kind(), ProblemKind::Loop, "{lines:?}");
    }
    // What a client has said stays in front of this hop's own member, and the next round finds that.
    let mut headers = with(&[b"\xff", b"1.1 (,"]).unwrap();
    let again = on_request(&mut headers, &facts("1.1.1.1:1"), &Settings::default(), &me());
    assert_eq!(again.unwrap_err().kind(), ProblemKind::Loop);
}

#[test]
fn odd_bytes_hide_nothing_that_connection_names() {
    let odd = |text: &[u8]| HeaderValue::from_bytes(text).unwrap();
    let mut headers = map(&[("x-a", "1"), ("x-b", "2"), ("te", "trailers"), ("upgrade", "websocket")]);
    headers.append(CONNECTION, odd(b"\xff, X-A, upgrade"));
    headers.append(CONNECTION, odd(b"x-b,\xe4"));
    headers.append(TE, odd(b"\xff"));
    assert_eq!(wanted_upgrade(Version::HTTP_11, &headers).unwrap(), "websocket");
    on_request(&mut headers, &facts("1.1.1.1:1"), &Settings::default(), &me()).unwrap();
    assert!(!headers.contains_key("x-a") && !headers.contains_key("x-b"), "{headers:?}");
    assert_eq!(headers[TE], "trailers");
    // A change to HTTP/2 is not hidden by them either.
    let mut headers = map(&[("connection", "upgrade")]);
    headers.append(UPGRADE, odd(b"websocket, h2c, \xff"));
    assert!(wanted_upgrade(Version::HTTP_11, &headers).is_none());
}

#[test]
fn upgrades() {
    let wanted = |version, fields: &[(&str, &str)]| wanted_upgrade(version, &map(fields));
    let upgrade = [("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")];
    assert_eq!(wanted(Version::HTTP_11, &upgrade).unwrap(), "websocket");
    assert!(wanted(Version::HTTP_10, &upgrade).is_none());
    assert!(wanted(Version::HTTP_11, &[("upgrade", "websocket")]).is_none());
    for name in ["h2c", "H2C", "websocket, h2c", "h2c-14"] {
        assert!(
            wanted(Version::HTTP_11, &[("connection", "upgrade"), ("upgrade", name)]).is_none(),
            "{name}"
        );
    }
}

#[test]
fn how_long_a_connection_is_kept() {
    let kept = |value: &str| keep_alive(&map(&[("keep-alive", value)])).map(|kept| kept.as_secs());
    assert_eq!(kept("timeout=5, max=100"), Some(5));
    assert_eq!(kept("max=100,Timeout = 7"), Some(7));
    assert_eq!(kept("max=100"), None);
    assert_eq!(kept("timeout=x"), None);
    assert_eq!(kept("timeout=99999999999999999999999"), None);
}

#[test]
fn lengths() {
    let length = |values: &[&str]| {
        let fields: Vec<_> = values.iter().map(|value| ("content-length", *value)).collect();
        announced_length(&map(&fields)).ok()
    };
    assert_eq!(length(&[]), Some(None));
    assert_eq!(length(&["5"]), Some(Some(5)));
    assert_eq!(length(&["5", "05"]), Some(Some(5)));
    for wrong in [&["5", "6"][..], &["5, 5"], &["+5"], &[""], &["-1"], &["0x5"], &["99999999999999999999"]] {
        assert_eq!(length(wrong), None, "{wrong:?}");
    }
}

#[test]
fn hosts() {
    let host = |uri: &str, hosts: &[&str]| {
        let fields: Vec<_> = hosts.iter().map(|host| ("host", *host)).collect();
        let host = requested_host(&uri.parse().unwrap(), &map(&fields));
        host.map(|host| host.map(|host| host.to_str().unwrap().to_owned())).map_err(|problem| problem.kind())
    };
    assert_eq!(host("/", &["a:80"]), Ok(Some("a:80".to_owned())));
    assert_eq!(host("http://b/", &["a"]), Ok(Some("b".to_owned())), "RFC 9112 section 3.2.2");
    assert_eq!(host("/", &[]), Ok(None));
    assert_eq!(host("/", &[""]), Ok(None));
    for wrong in [&["a", "a"][..], &["a/b"], &["a b"], &["u@a"], &["a:x"], &["a?b"], &["[::1"]] {
        assert_eq!(host("/", wrong), Err(ProblemKind::BadRequest), "{wrong:?}");
    }
    assert_eq!(host("http://u@b/", &[]), Err(ProblemKind::BadRequest));
}

/// Names that matter, and others.
fn names() -> impl Strategy<Value = String> {
    let known = [
        "connection",
        "keep-alive",
        "proxy-connection",
        "proxy-authorization",
        "te",
        "transfer-encoding",
        "content-length",
        "upgrade",
        "http2-settings",
        "forwarded",
        "x-forwarded-for",
        "x_forwarded_for",
        "x-forwarded-proto",
        "x-forwarded-anything",
        "x-real-ip",
        "x-real_ip",
        "cookie",
        "via",
        "host",
        "x-a",
        "x-b",
        "authorization",
    ];
    prop_oneof![4 => proptest::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => "x-[a-z]{1,8}"]
}

fn values() -> impl Strategy<Value = Vec<u8>> {
    let known =
        ["close", "x-a, x-b", "chunked", "host, cookie, via", "trailers", "gzip, Trailers", "6.6.6.6", ""];
    let any = proptest::collection::vec(prop_oneof![32..127_u8, Just(9), 128..=255_u8], 0..20);
    prop_oneof![proptest::sample::select(known.to_vec()).prop_map(|value| value.as_bytes().to_vec()), any]
}

fn headers() -> impl Strategy<Value = HeaderMap> {
    proptest::collection::vec((names(), values()), 0..20).prop_map(|fields| {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(name.parse::<HeaderName>().unwrap(), HeaderValue::from_bytes(&value).unwrap());
        }
        headers
    })
}

proptest! {
    #[test]
    fn nothing_about_one_connection_reaches_another(before in headers()) {
        prop_assume!(!has_passed(&before, &me()));
        let mut after = before.clone();
        on_request(&mut after, &facts("6.6.6.7:1"), &settings("10.0.0.0/8"), &me()).unwrap();
        for name in &HOP_BY_HOP {
            prop_assert!(!after.contains_key(name) || *name == TE);
        }
        if let Some(te) = after.get(TE) {
            prop_assert_eq!(te, "trailers");
        }
        let made = ["via", "te", "forwarded", "x-forwarded-for", "x-forwarded-proto", "x-real-ip"];
        for name in named_by_connection(&before) {
            prop_assert!(!after.contains_key(&name) || made.contains(&name.as_str()) || name == HOST);
        }
        if before.contains_key(TRANSFER_ENCODING) {
            prop_assert!(!after.contains_key(CONTENT_LENGTH));
        }
    }

    #[test]
    fn an_untrusted_peer_claims_nothing(before in headers()) {
        prop_assume!(!has_passed(&before, &me()));
        let mut after = before.clone();
        on_request(&mut after, &facts("6.6.6.7:1"), &settings("10.0.0.0/8"), &me()).unwrap();
        prop_assert_eq!(&after["x-forwarded-for"], "6.6.6.7");
        prop_assert_eq!(&after["x-real-ip"], "6.6.6.7");
        prop_assert_eq!(&after["x-forwarded-proto"], "https");
        prop_assert_eq!(&after["forwarded"], "for=6.6.6.7;proto=https");
        for name in ["x_forwarded_for", "x-forwarded-anything", "x-real_ip"] {
            prop_assert!(!after.contains_key(name));
        }
        for name in ["x-forwarded-for", "forwarded", "via", "cookie"] {
            prop_assert!(after.get_all(name).iter().count() <= 1);
        }
    }

    #[test]
    fn everything_else_is_passed_on(before in headers()) {
        prop_assume!(!has_passed(&before, &me()));
        let mut after = before.clone();
        on_request(&mut after, &facts("6.6.6.7:1"), &settings("10.0.0.0/8"), &me()).unwrap();
        let named: Vec<HeaderName> = named_by_connection(&before).collect();
        for name in before.keys() {
            if (name.as_str().starts_with("x-") && !forwarded::is_claim(name.as_str(), false)) || name == "authorization" {
                let same = before.get_all(name).iter().eq(after.get_all(name).iter());
                prop_assert_eq!(same, !named.contains(name), "{}", name);
            }
        }
    }

    #[test]
    fn responses_and_trailers(before in headers()) {
        let mut response = before.clone();
        on_response(&mut response, Version::HTTP_11, &me());
        let mut trailers = before.clone();
        on_trailers(&mut trailers);
        let mut hint = before;
        on_informational(&mut hint);
        for name in &HOP_BY_HOP {
            for headers in [&response, &trailers, &hint] {
                prop_assert!(!headers.contains_key(name));
            }
        }
        prop_assert!(response["via"].as_bytes().ends_with(b"1.1 me"));
        prop_assert!(!trailers.contains_key(CONTENT_LENGTH) && !trailers.contains_key(HOST));
    }
}
