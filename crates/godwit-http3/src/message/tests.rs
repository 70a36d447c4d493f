#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use crate::qpack::{Decoder, Field, Section, TableEncoder};
use godwit_wire::{Direction, Side, StreamId};
use http::{Request, Response};

const STREAM: StreamId = StreamId::new(Side::Client, Direction::Bidirectional, 0);

type Fields<'a> = &'a [(&'a str, &'a str)];

fn build(kind: Kind, fields: Fields<'_>) -> Builder {
    let mut builder = Builder::new(kind);
    for (name, value) in fields {
        builder.field(Field { name: name.as_bytes(), value: value.as_bytes(), sensitive: false });
    }
    builder
}

const PLAIN: Kind = Kind::Request { connect_protocol: false };
const EXTENDED: Kind = Kind::Request { connect_protocol: true };

const GET: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "https"), (":authority", "a.example"), (":path", "/x?y")];

fn get_with<'a>(more: Fields<'a>) -> Vec<(&'a str, &'a str)> {
    [&GET[..], more].concat()
}

#[test]
fn good_requests() {
    let head = build(PLAIN, &get_with(&[("te", "trailers"), ("content-length", "5"), ("host", "A.example")]))
        .into_request()
        .unwrap();
    assert_eq!(head.request.uri(), "https://a.example/x?y");
    assert_eq!(head.request.version(), http::Version::HTTP_3);
    assert_eq!(head.body, Body::Exactly(5));

    let head = build(PLAIN, &[(":method", "GET"), (":scheme", "http"), (":path", "/"), ("host", "h:81")])
        .into_request()
        .unwrap();
    assert_eq!(head.request.uri(), "http://h:81/");

    let options = [(":method", "OPTIONS"), (":scheme", "https"), (":authority", "a.example"), (":path", "*")];
    let head = build(PLAIN, &options).into_request().unwrap();
    assert_eq!(head.request.uri(), "*");
    assert_eq!(head.request.headers()["host"], "a.example");

    let connect = [(":method", "CONNECT"), (":authority", "a.example:443"), ("content-length", "7")];
    let head = build(PLAIN, &connect).into_request().unwrap();
    assert_eq!(head.request.uri(), "a.example:443");
    assert_eq!(head.body, Body::Any);

    let mut extended = GET;
    extended[0] = (":method", "CONNECT");
    let extended = [&extended[..], &[(":protocol", "websocket")]].concat();
    let head = build(EXTENDED, &extended).into_request().unwrap();
    assert_eq!(head.request.extensions().get::<Protocol>().unwrap().as_str(), "websocket");
    assert!(build(PLAIN, &extended).into_request().is_err(), "not enabled");
}

#[test]
fn cookies_are_joined() {
    let head = build(PLAIN, &get_with(&[("cookie", "a=1"), ("x", "y"), ("cookie", "b=2")]));
    let head = head.into_request().unwrap();
    let cookies: Vec<_> = head.request.headers().get_all("cookie").iter().collect();
    assert_eq!(cookies, ["a=1; b=2"]);
    // As many as the limit on fields lets pass, none of which may be lost.
    let head = build(PLAIN, &get_with(&[("cookie", "a=1"); 1500])).into_request().unwrap();
    assert_eq!(head.request.headers()["cookie"].len(), 1500 * 5 - 2);
    let late = [&[("cookie", "a=1")][..], &GET].concat();
    assert!(build(PLAIN, &late).into_request().is_err(), "a cookie is a field like others");
    let response = [(":status", "200"), ("cookie", "a=1"), ("cookie", "b=2")];
    assert_eq!(
        build(Kind::Response, &response).into_response().unwrap().response.headers()["cookie"],
        "a=1; b=2"
    );
    let trailers = build(Kind::Trailers, &[("cookie", "a=1")]).into_trailers().unwrap();
    assert_eq!(trailers["cookie"], "a=1");
}

#[test]
fn malformed_requests() {
    let without = |gone: &str| GET.iter().copied().filter(|(name, _)| *name != gone).collect::<Vec<_>>();
    let with = |name: &'static str, value: &'static str| {
        let mut fields = GET.to_vec();
        fields.iter_mut().find(|field| field.0 == name).unwrap().1 = value;
        fields
    };
    let cases = [
        ("no method", without(":method")),
        ("no scheme", without(":scheme")),
        ("no authority", without(":authority")),
        ("no path", without(":path")),
        ("nothing", vec![]),
        ("method twice", get_with(&[(":method", "GET")])),
        ("path twice", get_with(&[(":path", "/x?y")])),
        ("late pseudo-header", [&[("x", "y")], &GET[..]].concat()),
        ("unknown pseudo-header", get_with(&[(":version", "3")])),
        ("empty pseudo-header", get_with(&[(":", "3")])),
        ("status", get_with(&[(":status", "200")])),
        (":protocol", get_with(&[(":protocol", "websocket")])),
        ("empty path", with(":path", "")),
        ("path without slash", with(":path", "x")),
        ("path with space", with(":path", "/a b")),
        ("path with fragment", with(":path", "/a#b")),
        ("asterisk", with(":path", "*")),
        ("bad method", with(":method", "G T")),
        ("empty method", with(":method", "")),
        ("bad scheme", with(":scheme", "ht tp")),
        ("no authority, scheme in capitals", vec![(":method", "GET"), (":scheme", "HTTPS"), (":path", "/")]),
        ("empty authority", with(":authority", "")),
        ("userinfo", with(":authority", "me@a.example")),
        ("CONNECT with path", with(":method", "CONNECT")),
        ("CONNECT without port", vec![(":method", "CONNECT"), (":authority", "a.example")]),
        ("CONNECT without authority", vec![(":method", "CONNECT")]),
        ("uppercase", get_with(&[("X-y", "z")])),
        ("empty name", get_with(&[("", "z")])),
        ("space in name", get_with(&[("a b", "z")])),
        ("newline in value", get_with(&[("a", "z\nb: c")])),
        ("carriage return in value", get_with(&[("a", "z\r")])),
        ("nul in value", get_with(&[("a", "\0")])),
        ("connection", get_with(&[("connection", "close")])),
        ("keep-alive", get_with(&[("keep-alive", "1")])),
        ("proxy-connection", get_with(&[("proxy-connection", "close")])),
        ("transfer-encoding", get_with(&[("transfer-encoding", "chunked")])),
        ("upgrade", get_with(&[("upgrade", "h2c")])),
        ("te", get_with(&[("te", "gzip")])),
        ("te list", get_with(&[("te", "trailers, gzip")])),
        ("host differs", get_with(&[("host", "b.example")])),
        ("two hosts", get_with(&[("host", "a.example"), ("host", "a.example")])),
        ("signed length", get_with(&[("content-length", "+5")])),
        ("empty length", get_with(&[("content-length", "")])),
        ("length list", get_with(&[("content-length", "5, 5")])),
        ("two lengths", get_with(&[("content-length", "5"), ("content-length", "6")])),
        ("huge length", get_with(&[("content-length", "99999999999999999999")])),
    ];
    for (why, fields) in cases {
        assert!(build(PLAIN, &fields).into_request().is_err(), "{why}");
    }
    let plain_connect = [(":method", "CONNECT"), (":authority", "a:1"), (":protocol", "websocket")];
    assert!(build(EXTENDED, &plain_connect).into_request().is_err(), "extended CONNECT without :path");
    assert!(build(EXTENDED, &get_with(&[(":protocol", "x")])).into_request().is_err(), ":protocol with GET");
}

#[test]
fn responses_and_trailers() {
    let head = build(Kind::Response, &[(":status", "404"), ("content-length", "0")]).into_response().unwrap();
    assert_eq!((head.response.status().as_u16(), head.body), (404, Body::Exactly(0)));
    for fields in [
        &[][..],
        &[(":status", "20")],
        &[(":status", "+20")],
        &[(":status", "101")],
        &[(":status", "200"), (":status", "200")],
        &[("x", "y"), (":status", "200")],
        &[(":status", "200"), (":path", "/")],
        &[(":status", "200"), ("te", "trailers")],
        &[(":status", "200"), ("connection", "close")],
    ] {
        assert!(build(Kind::Response, fields).into_response().is_err(), "{fields:?}");
    }
    assert_eq!(build(Kind::Trailers, &[("a", "b")]).into_trailers().unwrap()["a"], "b");
    for fields in [&[(":status", "200")], &[(":path", "/")], &[("te", "trailers")], &[("A", "b")]] {
        assert!(build(Kind::Trailers, fields).into_trailers().is_err(), "{fields:?}");
    }
}

fn written(write: impl Fn(&mut Section<'_>) -> Result<u64, &'static str>) -> Result<Vec<u8>, &'static str> {
    let mut encoder = TableEncoder::new(0);
    let mut lines = Vec::new();
    let mut section = encoder.section(None, &mut lines);
    write(&mut section)?;
    let mut out = Vec::new();
    section.finish().put_prefix(&mut out);
    Ok([out, lines].concat())
}

fn reread(kind: Kind, section: &[u8]) -> Builder {
    let mut builder = Builder::new(kind);
    Decoder::new().decode(STREAM, section, 10_000, &mut |field| builder.field(field)).unwrap();
    builder
}

#[test]
fn what_is_written_can_be_read() {
    let requests = [
        Request::get("https://a.example:444/p?q").header("x-a", "1").header("x-a", "2").body(()),
        Request::get("https://a.example?q").body(()),
        Request::builder().method("OPTIONS").uri("*").header("host", "a.example").body(()),
        Request::connect("a.example:443").body(()),
    ];
    for request in requests {
        let request = request.unwrap();
        let section = written(|section| write_request(&request, section)).unwrap();
        let again = reread(PLAIN, &section).into_request().unwrap().request;
        assert_eq!(again.method(), request.method());
        assert_eq!(again.uri().path(), request.uri().path());
        assert_eq!(
            again.headers().get_all("x-a").iter().count(),
            request.headers().get_all("x-a").iter().count()
        );
    }

    let mut request = Request::connect("https://a.example/chat").body(()).unwrap();
    request.extensions_mut().insert(Protocol::new("websocket").unwrap());
    let section = written(|section| write_request(&request, section)).unwrap();
    let again = reread(EXTENDED, &section).into_request().unwrap().request;
    assert_eq!(again.uri(), request.uri());
    assert_eq!(again.extensions().get::<Protocol>(), request.extensions().get::<Protocol>());

    let response = Response::builder().status(206).header("etag", "x").body(()).unwrap();
    let section = written(|section| write_response(&response, section)).unwrap();
    let again = reread(Kind::Response, &section).into_response().unwrap().response;
    assert_eq!((again.status(), again.headers()), (response.status(), response.headers()));
}

#[test]
fn what_could_not_be_read_is_not_written() {
    let refused = |request: http::request::Builder| {
        let request = request.body(()).unwrap();
        written(|section| write_request(&request, section)).is_err()
    };
    assert!(refused(Request::get("/only/path")));
    assert!(refused(Request::get("https://me@a.example/")));
    assert!(refused(Request::get("https://a.example/").header("host", "b.example")));
    assert!(refused(Request::get("https://a.example/").header("connection", "close")));
    assert!(refused(Request::get("https://a.example/").header("te", "gzip")));
    assert!(refused(Request::get("https://a.example/").extension(Protocol::new("x").unwrap())));
    assert!(!refused(Request::get("/only/path").header("host", "b.example")));
    let response = Response::builder().status(101).body(()).unwrap();
    assert!(written(|section| write_response(&response, section)).is_err());
    assert!(Protocol::new("a b").is_none() && Protocol::new("").is_none());
}
