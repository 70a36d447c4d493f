//! What is broken off in the middle, by either side or with everything that it belongs to.

use super::rig::*;
use crate::abi::{self, Plain};
use crate::client::*;
use crate::exchange::api::*;
use crate::runtime::godwit_runtime_create;

const VERSIONS: [u32; 3] = [abi::VERSIONS_HTTP_1, abi::VERSIONS_HTTP_2, abi::VERSIONS_HTTP_3];

/// A request that the server has heard of and not answered.
fn half_way(http: &Http, versions: u32) -> (u64, u64) {
    let exchange = http.ask("/", 1, |request| {
        request.method = c"POST".as_ptr();
        request.versions = versions;
        request.body_mode = abi::BODY_STREAM;
    });
    assert_eq!(send(exchange, b"some", 0, 0), abi::OK);
    (exchange, http.back.until(abi::EVENT_REQUEST).handle)
}

#[test]
fn a_client_cancels_and_the_server_hears_of_it() {
    let http = Http::new(0);
    for versions in VERSIONS {
        let (exchange, request) = half_way(&http, versions);
        ok(|error| unsafe { godwit_exchange_cancel(exchange, error) });
        ok(|error| unsafe { godwit_exchange_cancel(exchange, error) });
        let failed = http.front.until_of(exchange, abi::EVENT_FAILED);
        assert_eq!(failed.status, abi::ERROR_CANCELLED);
        assert_eq!(send(exchange, b"more", 0, 0), abi::ERROR_CANCELLED);
        let failed = http.back.until_of(request, abi::EVENT_FAILED);
        assert_eq!(failed.status, abi::ERROR_RESET, "{}", failed.error);
        let late = abi::ResponseOptions { status: 200, ..abi::ResponseOptions::zeroed() };
        let status = unsafe { godwit_exchange_respond(request, &late, std::ptr::null_mut()) };
        assert_eq!(status, abi::ERROR_STATE);
        close(exchange);
        close(request);
    }
}

#[test]
fn closing_an_exchange_says_nothing_here_and_breaks_off_there() {
    let http = Http::new(0);
    for versions in VERSIONS {
        let (exchange, request) = half_way(&http, versions);
        close(exchange);
        http.back.until_of(request, abi::EVENT_FAILED);
        assert!(http.front.try_keep(0).is_none());
    }
}

#[test]
fn a_server_breaks_its_response_off() {
    let http = Http::new(0);
    for versions in VERSIONS {
        let (exchange, request) = half_way(&http, versions);
        respond(request, |response| response.body_mode = abi::BODY_STREAM);
        assert_eq!(send(request, b"begun", 0, 0), abi::OK);
        assert_eq!(http.front.until_of(exchange, abi::EVENT_BODY).data, b"begun");
        ok(|error| unsafe { godwit_exchange_cancel(request, error) });
        assert_eq!(http.back.until_of(request, abi::EVENT_FAILED).status, abi::ERROR_CANCELLED);
        let failed = http.front.until_of(exchange, abi::EVENT_FAILED);
        assert_eq!(failed.status, abi::ERROR_EXCHANGE, "{}", failed.error);
    }
}

#[test]
fn a_server_that_closes_a_request_unanswered_answers_500() {
    let http = Http::new(0);
    let (exchange, request) = half_way(&http, abi::VERSIONS_HTTP_3);
    close(request);
    assert_eq!(http.front.until_of(exchange, abi::EVENT_RESPONSE).number, 500);
}

#[test]
fn reports_that_were_asked_for_come_also_of_what_is_not_sent() {
    let http = Http::new(1 << 16);
    let (exchange, request) = half_way(&http, abi::VERSIONS_HTTP_3);
    respond(request, |response| response.body_mode = abi::BODY_STREAM);
    // Nobody takes it, so that not all of it can leave.
    let mut reports = 0;
    let body = http.front.until_of(exchange, abi::EVENT_RESPONSE);
    assert_eq!(body.number, 200);
    while send(request, &[0; 60_000], abi::SEND_REPORT, 1000 + reports) == abi::OK {
        reports += 1;
        assert!(reports < 10_000, "there is no end of room");
    }
    close(http.client);
    // The report on what is just being handed over may come after the end.
    let (mut told, mut failed) = (0, false);
    while told < reports || !failed {
        match http.back.next().kind {
            abi::EVENT_SENT => told += 1,
            abi::EVENT_FAILED => failed = true,
            _ => {}
        }
    }
    assert_eq!(told, reports);
}

#[test]
fn a_server_that_goes_away_fails_what_is_under_way() {
    for versions in VERSIONS {
        let http = Http::new(0);
        let (exchange, request) = half_way(&http, versions);
        respond(request, |response| response.body_mode = abi::BODY_STREAM);
        http.front.until_of(exchange, abi::EVENT_RESPONSE);
        close(http.server);
        let failed = http.front.until_of(exchange, abi::EVENT_FAILED);
        assert_eq!(failed.status, abi::ERROR_EXCHANGE, "{}", failed.error);
        assert!(http.back.try_keep(0).is_none(), "nothing is heard of what was closed");
        close(request);
        close(http.client);
    }
}

#[test]
fn a_client_that_is_closed_takes_its_exchanges_with_it() {
    let http = Http::new(0);
    for versions in VERSIONS {
        let client = Http::new(0);
        let (exchange, request) = half_way(&client, versions);
        close(client.client);
        client.back.until_of(request, abi::EVENT_FAILED);
        assert!(client.front.try_keep(0).is_none());
        close(exchange);
        close(client.server);
    }
    drop(http);
}

#[test]
fn a_queue_that_is_closed_harms_nobody() {
    let http = Http::new(0);
    let (exchange, request) = half_way(&http, abi::VERSIONS_HTTP_2);
    let deaf = Http::new(0);
    close(deaf.back.queue);
    // Nobody hears of these, and they are refused in the end.
    let lost = deaf.ask("/", 2, |_| {});
    let answer = deaf.front.next();
    assert!([abi::EVENT_RESPONSE, abi::EVENT_FAILED].contains(&answer.kind));
    close(lost);
    close(deaf.client);
    close(deaf.server);
    close(deaf.front.queue);
    respond(request, |_| {});
    http.front.until_of(exchange, abi::EVENT_END);
}

#[test]
fn a_runtime_can_be_closed_under_everything() {
    let (mut runtime, desk) = (0, Desk::new());
    let options = abi::RuntimeOptions { threads: 1, ..abi::RuntimeOptions::zeroed() };
    ok(|error| unsafe { godwit_runtime_create(&options, &mut runtime, error) });
    let options = abi::ClientOptions { runtime, ..abi::ClientOptions::zeroed() };
    let (mut client, mut exchange) = (0, 0);
    ok(|error| unsafe { godwit_client_create(desk.queue, &options, 0, &mut client, error) });
    let request = abi::Request { url: c"https://127.0.0.1:1/".as_ptr(), ..abi::Request::zeroed() };
    ok(|error| unsafe { godwit_client_request(client, &request, 1, &mut exchange, error) });
    close(runtime);
    ok(|error| unsafe { godwit_client_request(client, &request, 1, &mut exchange, error) });
    refused(abi::ERROR_HANDLE, |error| unsafe {
        godwit_client_create(desk.queue, &options, 0, &mut client, error)
    });
    close(exchange);
    close(client);
}
