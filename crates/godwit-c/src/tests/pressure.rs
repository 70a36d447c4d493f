//! Large bodies, and a receiver that takes its time.

use super::rig::*;
use crate::abi::{self, Plain};
use crate::exchange::api::godwit_exchange_cancel;
use crate::intake::LEAST;
use crate::queue::godwit_queue_wait;
use crate::quic::functions::{godwit_connection_migrate, godwit_stream_reset};
use crate::quic::{MOST_NEW_STREAMS, MOST_PATH_EVENTS};
use crate::server::MOST_NEW_REQUESTS;
use std::collections::VecDeque;

const LIMIT: u64 = 1 << 16;
static PIECE: [u8; 30_000] = [b'x'; 30_000];
const PIECES: usize = 200;

/// Sends pieces until there is no room, and says how many of them are left.
fn fill(exchange: u64, left: &mut usize) {
    while *left > 0 {
        let flags = if *left == 1 { abi::SEND_END } else { 0 };
        match send(exchange, &PIECE, flags, 0) {
            abi::OK => *left -= 1,
            status => return assert_eq!(status, abi::ERROR_FULL),
        }
    }
}

#[test]
fn large_bodies_go_both_ways_in_little_room() {
    let http = Http::new(LIMIT);
    for versions in [abi::VERSIONS_HTTP_1, abi::VERSIONS_HTTP_2, abi::VERSIONS_HTTP_3] {
        let exchange = http.ask("/", 1, |request| {
            request.method = c"POST".as_ptr();
            request.versions = versions;
            request.body_mode = abi::BODY_STREAM;
        });
        let mut up = PIECES;
        fill(exchange, &mut up);
        assert!(up > 0, "not everything has room");
        let echo = std::thread::scope(|scope| {
            // The server sends back what comes.
            let back = scope.spawn(|| {
                let (mut request, mut waiting, mut ended, mut total) =
                    (0, VecDeque::<Vec<u8>>::new(), false, 0);
                loop {
                    let told = http.back.next();
                    match told.kind {
                        abi::EVENT_REQUEST => {
                            request = told.handle;
                            respond(request, |response| response.body_mode = abi::BODY_STREAM);
                        }
                        abi::EVENT_BODY => {
                            total += told.data.len();
                            waiting.push_back(told.data);
                        }
                        abi::EVENT_END => ended = true,
                        abi::EVENT_FINISHED => return total,
                        abi::EVENT_FAILED => panic!("{}", told.error),
                        _ => {}
                    }
                    while let Some(piece) = waiting.front() {
                        match send(request, piece, 0, 0) {
                            abi::OK => drop(waiting.pop_front()),
                            status => {
                                assert_eq!(status, abi::ERROR_FULL);
                                break;
                            }
                        }
                    }
                    if ended && waiting.is_empty() {
                        ended = false;
                        assert_eq!(send(request, b"", abi::SEND_END, 0), abi::OK);
                    }
                }
            });
            let mut received = 0;
            loop {
                let told = http.front.next();
                match told.kind {
                    abi::EVENT_BODY => received += told.data.len(),
                    abi::EVENT_WRITABLE => fill(exchange, &mut up),
                    abi::EVENT_END => break,
                    abi::EVENT_FAILED => panic!("{}", told.error),
                    _ => {}
                }
            }
            assert_eq!(back.join().unwrap(), PIECE.len() * PIECES);
            received
        });
        assert_eq!(echo, PIECE.len() * PIECES);
        close(exchange);
    }
}

#[test]
fn what_is_not_released_keeps_the_sender_waiting() {
    let http = Http::new(LIMIT);
    let exchange = http.ask("/", 1, |request| {
        request.method = c"POST".as_ptr();
        request.versions = abi::VERSIONS_HTTP_3;
        request.body_mode = abi::BODY_STREAM;
    });
    let request = http.back.until(abi::EVENT_REQUEST).handle;
    let mut left = PIECES;
    fill(exchange, &mut left);
    // The first bodies fill what may be lent; none come beyond that.
    let (mut kept, mut lent) = (Vec::new(), 0);
    while let Some(event) = http.back.try_keep(300) {
        assert_eq!((event.kind, event.handle), (abi::EVENT_BODY, request));
        lent += event.length;
        kept.push(event);
        fill(exchange, &mut left);
    }
    assert!(lent <= LIMIT, "{lent} bytes were lent");
    assert!(left > 0, "everything could be sent");
    // With everything given back, the rest comes.
    kept.iter_mut().for_each(release);
    let mut received = lent;
    while received < (PIECE.len() * PIECES) as u64 {
        fill(exchange, &mut left);
        if let Some(mut event) = http.back.try_keep(1) {
            received += Told::of(&event).data.len() as u64;
            release(&mut event);
        }
    }
    respond(request, |_| {});
    http.front.until_of(exchange, abi::EVENT_END);
}

/// An upload that nobody takes, with no room left for more of it.
fn stuck_upload(http: &Http) -> (u64, u64) {
    let exchange = http.ask("/", 1, |request| {
        request.method = c"POST".as_ptr();
        request.versions = abi::VERSIONS_HTTP_3;
        request.body_mode = abi::BODY_STREAM;
    });
    let request = http.back.until(abi::EVENT_REQUEST).handle;
    let mut left = usize::MAX;
    fill(exchange, &mut left);
    while let Some(mut event) = http.front.try_keep(300) {
        assert_eq!((event.handle, event.kind), (exchange, abi::EVENT_WRITABLE));
        release(&mut event);
        fill(exchange, &mut left);
    }
    (exchange, request)
}

#[test]
fn who_waits_for_room_hears_that_nobody_takes_the_rest() {
    let http = Http::new(LIMIT);
    let (exchange, request) = stuck_upload(&http);
    respond(request, |response| response.status = 413);
    let mut kinds = Vec::new();
    while !kinds.contains(&abi::EVENT_END) || !kinds.contains(&abi::EVENT_WRITABLE) {
        kinds.push(http.front.next().kind);
    }
    assert_eq!(send(exchange, b"more", 0, 0), abi::ERROR_RESET);
}

#[test]
fn who_waits_for_room_hears_that_this_side_breaks_off() {
    let http = Http::new(LIMIT);
    let (exchange, _) = stuck_upload(&http);
    ok(|error| unsafe { godwit_exchange_cancel(exchange, error) });
    assert_eq!(http.front.next().kind, abi::EVENT_WRITABLE);
    assert_eq!(http.front.next().kind, abi::EVENT_FAILED, "it is the last");
    assert_eq!(send(exchange, b"more", 0, 0), abi::ERROR_CANCELLED);
    let quic = Quic::new(&datagrams());
    let (connection, _) = quic.connect();
    let stream = open(connection, abi::STREAM_UNIDIRECTIONAL, 0);
    quic.near.until_of(stream, abi::EVENT_STREAM_OPENED);
    loop {
        while write(stream, &PIECE, 0, 0) == abi::OK {}
        let Some(mut event) = quic.near.try_keep(300) else { break };
        release(&mut event);
    }
    ok(|error| unsafe { godwit_stream_reset(stream, 1, error) });
    quic.near.until_of(stream, abi::EVENT_WRITABLE);
    assert_eq!(write(stream, b"more", 0, 0), abi::ERROR_STATE);
}

#[test]
fn single_bytes_count_as_what_they_cost() {
    const PIECES: u32 = 8;
    let transport =
        abi::TransportOptions { receive_limit: u64::from(PIECES * LEAST), ..abi::TransportOptions::zeroed() };
    let quic = Quic::new(&transport);
    let (connection, _) = quic.connect();
    let stream = open(connection, abi::STREAM_UNIDIRECTIONAL, 0);
    let mut kept = Vec::new();
    for _ in 0..PIECES {
        assert_eq!(write(stream, b"x", 0, 0), abi::OK);
        kept.push(loop {
            let event = quic.far.keep();
            if event.kind == abi::EVENT_RECEIVED {
                break event;
            }
        });
    }
    assert_eq!(write(stream, b"yz", 0, 0), abi::OK);
    assert!(quic.far.try_keep(300).is_none(), "nothing more is lent");
    kept.iter_mut().for_each(release);
    assert_eq!(quic.far.until(abi::EVENT_RECEIVED).data, b"yz");
}

/// As many as the application may not have heard of, of streams and of requests, and some more.
const MANY: usize = 400;

/// How many things of this kind the events waiting in a queue introduce. All of them are taken, and closed.
fn introduced(desk: &Desk, kind: u32) -> usize {
    // Three of each that was broken off, and what was there before.
    let (mut events, mut count) = (vec![abi::Event::zeroed(); 4 * MANY], 0);
    let (place, capacity) = (events.as_mut_ptr(), events.len() as u64);
    ok(|error| unsafe { godwit_queue_wait(desk.queue, place, capacity, 0, &mut count, error) });
    let mut number = 0;
    for event in &mut events[..count as usize] {
        if event.kind == kind {
            number += 1;
            close(event.handle);
        }
        release(event);
    }
    number
}

#[test]
fn streams_that_are_reset_at_once_do_not_pile_up() {
    let quic = Quic::new(&datagrams());
    let (connection, _) = quic.connect();
    for _ in 0..MANY {
        let stream = open(connection, abi::STREAM_UNIDIRECTIONAL, 0);
        assert_eq!(write(stream, b"x", 0, 0), abi::OK);
        // Beyond what the peer permits there are no more streams: they wait, and are closed waiting.
        let mut told = quic.near.try_keep(5);
        told.iter_mut().for_each(release);
        ok(|error| unsafe { godwit_stream_reset(stream, 1, error) });
        close(stream);
    }
    let number = introduced(&quic.far, abi::EVENT_STREAM);
    assert!(number <= MOST_NEW_STREAMS, "{number} streams wait");
    // With these taken, others come.
    let stream = open(connection, abi::STREAM_UNIDIRECTIONAL, 0);
    assert_eq!(write(stream, b"last", abi::SEND_END, 0), abi::OK);
    while quic.far.until(abi::EVENT_RECEIVED).data != b"last" {}
}

#[test]
fn news_of_paths_that_nobody_takes_do_not_pile_up() {
    let quic = Quic::new(&datagrams());
    let (near, _) = quic.connect();
    for round in 0..MANY / 4 {
        let address = if round % 2 == 0 { c"127.0.0.2:0" } else { c"127.0.0.3:0" };
        ok(|error| unsafe { godwit_connection_migrate(near, address.as_ptr(), error) });
        while quic.near.until(abi::EVENT_PATH).number != abi::PATH_ACTIVE {}
    }
    // Each of them was seen by the server, which tells of new paths, of active ones and of those that are given up.
    let (mut events, mut count) = (vec![abi::Event::zeroed(); 4 * MANY], 0);
    let (place, capacity) = (events.as_mut_ptr(), events.len() as u64);
    ok(|error| unsafe { godwit_queue_wait(quic.far.queue, place, capacity, 0, &mut count, error) });
    let events = &mut events[..count as usize];
    let number = events.iter().filter(|event| event.kind == abi::EVENT_PATH).count();
    assert!(number > 0 && number <= MOST_PATH_EVENTS, "{number} news of paths wait");
    events.iter_mut().for_each(release);
    // With these taken, others come.
    ok(|error| unsafe { godwit_connection_migrate(near, c"127.0.0.4:0".as_ptr(), error) });
    quic.far.until(abi::EVENT_PATH);
}

#[test]
fn requests_that_are_cancelled_at_once_do_not_pile_up() {
    let http = Http::new(0);
    // From here on there is a connection.
    let exchange = http.ask("/first", 1, |request| request.versions = abi::VERSIONS_HTTP_3);
    close(http.back.until(abi::EVENT_REQUEST).handle);
    close(exchange);
    for _ in 0..MANY {
        let exchange = http.ask("/", 1, |request| request.versions = abi::VERSIONS_HTTP_3);
        let mut told = http.front.try_keep(5);
        told.iter_mut().for_each(release);
        close(exchange);
    }
    let number = introduced(&http.back, abi::EVENT_REQUEST);
    assert!(number <= MOST_NEW_REQUESTS, "{number} requests wait");
    // With these taken, others come.
    let exchange = http.ask("/last", 1, |request| request.versions = abi::VERSIONS_HTTP_3);
    let last = loop {
        let told = http.back.until(abi::EVENT_REQUEST);
        if told.text == "/last" {
            break told.handle;
        }
        close(told.handle);
    };
    respond(last, |_| {});
    http.front.until_of(exchange, abi::EVENT_END);
}
