//! Requests and responses, over each protocol.

use super::rig::*;
use crate::abi::{self, Plain};
use crate::client::*;
use crate::exchange::api::*;
use crate::server::*;

const VERSIONS: [(u32, u32); 3] = [
    (abi::VERSIONS_HTTP_1, abi::HTTP_1_1),
    (abi::VERSIONS_HTTP_2, abi::HTTP_2),
    (abi::VERSIONS_HTTP_3, abi::HTTP_3),
];

#[test]
fn whole_bodies_go_both_ways_over_each_protocol() {
    let http = Http::new(0);
    for (versions, protocol) in VERSIONS {
        let exchange = http.ask("/path?query", 1, |request| {
            request.method = c"POST".as_ptr();
            request.versions = versions;
            request.body_mode = abi::BODY_WHOLE;
            (request.body, request.body_length) = (c"sent".as_ptr().cast(), 4);
        });
        let request = http.back.until(abi::EVENT_REQUEST);
        assert_eq!((request.protocol, &*request.text), (protocol, "/path?query"));
        let body = http.back.until(abi::EVENT_BODY);
        assert_eq!((body.handle, &*body.data), (request.handle, &b"sent"[..]));
        http.back.until_of(request.handle, abi::EVENT_END);
        let headers = [header(c"x-answer", c"yes")];
        respond(request.handle, |response| {
            response.status = 201;
            (response.headers, response.header_count) = (headers.as_ptr(), 1);
            response.body_mode = abi::BODY_WHOLE;
            (response.body, response.body_length) = (c"answered".as_ptr().cast(), 8);
        });
        let response = http.front.until(abi::EVENT_RESPONSE);
        assert_eq!((response.handle, response.number, response.protocol), (exchange, 201, protocol));
        assert_eq!(response.parent, http.client);
        assert!(response.headers.contains(&("x-answer".to_owned(), "yes".to_owned())));
        assert!(response.headers.contains(&("content-length".to_owned(), "8".to_owned())));
        assert_eq!(http.front.until(abi::EVENT_BODY).data, b"answered");
        http.front.until_of(exchange, abi::EVENT_END);
        http.back.until_of(request.handle, abi::EVENT_FINISHED);
        let mut statistics = abi::Statistics::zeroed();
        if protocol == abi::HTTP_3 {
            ok(|error| unsafe { godwit_exchange_statistics(exchange, &mut statistics, error) });
            assert!(statistics.packets_received > 0 && statistics.rtt_ns > 0);
        } else {
            refused(abi::ERROR_UNSUPPORTED, |error| unsafe {
                godwit_exchange_statistics(exchange, &mut statistics, error)
            });
        }
        close(exchange);
        close(request.handle);
    }
}

#[test]
fn trailers_and_reports_go_both_ways() {
    let http = Http::new(0);
    for (versions, _) in &VERSIONS[1..] {
        let trailers = [header(c"x-sum", c"7")];
        let exchange = http.ask("/", 1, |request| {
            request.method = c"PUT".as_ptr();
            request.versions = *versions;
            request.body_mode = abi::BODY_STREAM;
        });
        assert_eq!(send(exchange, b"piece", abi::SEND_REPORT, 9), abi::OK);
        ok(|error| unsafe { godwit_exchange_send_trailers(exchange, trailers.as_ptr(), 1, error) });
        let sent = http.front.until(abi::EVENT_SENT);
        assert_eq!((sent.tag, sent.length, sent.status), (9, 5, abi::OK));
        let request = http.back.until(abi::EVENT_REQUEST).handle;
        assert_eq!(http.back.until(abi::EVENT_TRAILERS).headers, [("x-sum".to_owned(), "7".to_owned())]);
        http.back.until(abi::EVENT_END);
        respond(request, |response| response.body_mode = abi::BODY_STREAM);
        assert_eq!(send(request, b"piece", abi::SEND_REPORT, 10), abi::OK);
        ok(|error| unsafe { godwit_exchange_send_trailers(request, trailers.as_ptr(), 1, error) });
        assert_eq!(send(request, b"late", 0, 0), abi::ERROR_STATE);
        let sent = http.back.until(abi::EVENT_SENT);
        assert_eq!((sent.tag, sent.length, sent.status), (10, 5, abi::OK));
        assert_eq!(http.front.until(abi::EVENT_BODY).data, b"piece");
        assert_eq!(http.front.until(abi::EVENT_TRAILERS).headers.len(), 1);
        http.front.until_of(exchange, abi::EVENT_END);
        http.back.until_of(request, abi::EVENT_FINISHED);
    }
}

#[test]
fn there_is_one_response_and_none_from_a_client() {
    let http = Http::new(0);
    let exchange = http.ask("/", 1, |request| request.method = c"HEAD".as_ptr());
    let request = http.back.until(abi::EVENT_REQUEST).handle;
    assert_eq!(send(request, b"early", 0, 0), abi::ERROR_STATE, "there is no response yet");
    let response = abi::ResponseOptions { status: 200, ..abi::ResponseOptions::zeroed() };
    refused(abi::ERROR_UNSUPPORTED, |error| unsafe { godwit_exchange_respond(exchange, &response, error) });
    let wrong = abi::ResponseOptions { status: 100, ..response };
    refused(abi::ERROR_ARGUMENT, |error| unsafe { godwit_exchange_respond(request, &wrong, error) });
    let wrong = abi::ResponseOptions { body_mode: 9, ..response };
    refused(abi::ERROR_ARGUMENT, |error| unsafe { godwit_exchange_respond(request, &wrong, error) });
    respond(request, |response| {
        response.body_mode = abi::BODY_WHOLE;
        (response.body, response.body_length) = (c"nobody reads it".as_ptr().cast(), 15);
    });
    refused(abi::ERROR_STATE, |error| unsafe { godwit_exchange_respond(request, &response, error) });
    http.back.until_of(request, abi::EVENT_FINISHED);
    let response = http.front.until_of(exchange, abi::EVENT_RESPONSE);
    assert!(response.headers.contains(&("content-length".to_owned(), "15".to_owned())));
    http.front.until_of(exchange, abi::EVENT_END);
}

#[test]
fn informational_responses_come_before_the_final_one() {
    let http = Http::new(0);
    let exchange = http.ask("/", 1, |request| request.versions = abi::VERSIONS_HTTP_3);
    let request = http.back.until(abi::EVENT_REQUEST).handle;
    let hints = [header(c"link", c"</style.css>; rel=preload")];
    let inform = |exchange, status| unsafe {
        godwit_exchange_inform(exchange, status, hints.as_ptr(), 1, std::ptr::null_mut())
    };
    assert_eq!(inform(request, 103), abi::OK);
    assert_eq!(inform(request, 200), abi::ERROR_ARGUMENT);
    assert_eq!(inform(exchange, 103), abi::ERROR_UNSUPPORTED);
    respond(request, |_| {});
    assert_eq!(inform(request, 103), abi::ERROR_STATE);
    assert_eq!(http.front.until(abi::EVENT_RESPONSE).number, 200);
    http.front.until(abi::EVENT_END);
}

#[test]
fn a_hundred_requests_at_a_time_are_told_apart() {
    let http = Http::new(0);
    for (versions, _) in VERSIONS {
        let exchanges: Vec<u64> = (0..100)
            .map(|tag| http.ask(&format!("/{tag}"), tag, |request| request.versions = versions))
            .collect();
        let (mut answered, mut ended) = (0, std::collections::BTreeMap::new());
        while answered < 100 {
            let request = http.back.next();
            if request.kind == abi::EVENT_REQUEST {
                answered += 1;
                respond(request.handle, |response| {
                    response.body_mode = abi::BODY_WHOLE;
                    (response.body, response.body_length) =
                        (request.text.as_ptr().cast(), request.text.len() as u64);
                });
            }
            if request.kind == abi::EVENT_FINISHED {
                close(request.handle);
            }
        }
        let mut over = 0;
        while over < 100 {
            let told = http.front.next();
            assert_ne!(told.kind, abi::EVENT_FAILED, "{}", told.error);
            assert_eq!(told.handle, exchanges[told.tag as usize]);
            if told.kind == abi::EVENT_BODY {
                ended.entry(told.tag).or_insert_with(Vec::new).extend(told.data);
            }
            over += usize::from(told.kind == abi::EVENT_END);
        }
        for (tag, body) in ended {
            assert_eq!(body, format!("/{tag}").into_bytes());
        }
        exchanges.into_iter().for_each(close);
    }
}

#[test]
fn shutting_down_lets_what_is_under_way_end() {
    let http = Http::new(0);
    let exchange = http.ask("/", 1, |_| {});
    let request = http.back.until(abi::EVENT_REQUEST).handle;
    ok(|error| unsafe { godwit_client_shutdown(http.client, error) });
    refused(abi::ERROR_STATE, |error| unsafe { godwit_client_shutdown(http.client, error) });
    let mut another = 0;
    let options = abi::Request { url: c"https://localhost/".as_ptr(), ..abi::Request::zeroed() };
    refused(abi::ERROR_CLOSED, |error| unsafe {
        godwit_client_request(http.client, &options, 1, &mut another, error)
    });
    ok(|error| unsafe { godwit_server_shutdown(http.server, 30_000, error) });
    refused(abi::ERROR_STATE, |error| unsafe { godwit_server_shutdown(http.server, 0, error) });
    respond(request, |_| {});
    http.front.until_of(exchange, abi::EVENT_END);
    let stopped = http.front.until(abi::EVENT_CLIENT_STOPPED);
    assert_eq!(stopped.handle, http.client);
    let stopped = http.back.until(abi::EVENT_SERVER_STOPPED);
    assert_eq!((stopped.handle, stopped.code), (http.server, 0));
}

#[test]
fn a_content_length_that_is_not_that_of_the_body_is_refused() {
    let http = Http::new(0);
    for (method, body) in [(c"GET", c"four"), (c"HEAD", c"four"), (c"GET", c"")] {
        let exchange = http.ask("/", 1, |request| request.method = method.as_ptr());
        let request = http.back.until(abi::EVENT_REQUEST).handle;
        let [wrong, right] = [
            header(c"content-length", c"5"),
            header(c"content-length", if body.is_empty() { c"0" } else { c"4" }),
        ];
        let mut response = abi::ResponseOptions {
            status: 200,
            body_mode: abi::BODY_WHOLE,
            body: body.as_ptr().cast(),
            body_length: body.count_bytes() as u64,
            headers: &raw const wrong,
            header_count: 1,
            ..abi::ResponseOptions::zeroed()
        };
        let words = refused(abi::ERROR_ARGUMENT, |error| unsafe {
            godwit_exchange_respond(request, &response, error)
        });
        assert!(words.contains("says 5 bytes"), "{words}");
        // It can still be answered.
        response.headers = &raw const right;
        ok(|error| unsafe { godwit_exchange_respond(request, &response, error) });
        http.front.until_of(exchange, abi::EVENT_END);
    }
}
