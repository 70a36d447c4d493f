//! Connections, streams, datagrams, paths and statistics.

use super::rig::*;
use crate::abi::{self, Plain};
use crate::handles::godwit_set_tag;
use crate::quic::functions::*;

#[test]
fn bytes_go_both_ways_on_streams_of_either_side() {
    let quic = Quic::new(&datagrams());
    let (near, far) = quic.connect();
    for (opener, by, other) in [(near, &quic.near, &quic.far), (far, &quic.far, &quic.near)] {
        let stream = open(opener, 0, 11);
        assert_eq!(write(stream, b"there", abi::SEND_END | abi::SEND_REPORT, 12), abi::OK);
        assert_eq!(write(stream, b"late", 0, 0), abi::ERROR_STATE);
        let opened = by.until(abi::EVENT_STREAM_OPENED);
        assert_eq!((opened.handle, opened.tag, opened.parent), (stream, 11, opener));
        let sent = by.until(abi::EVENT_SENT);
        assert_eq!((sent.handle, sent.tag, sent.length, sent.status), (stream, 12, 5, abi::OK));
        let came = other.until(abi::EVENT_STREAM);
        assert_eq!((came.code, came.flags), (opened.code, 0));
        ok(|error| unsafe { godwit_set_tag(came.handle, 13, error) });
        let bytes = other.until(abi::EVENT_RECEIVED);
        assert_eq!((&*bytes.data, bytes.tag), (&b"there"[..], 13));
        assert_eq!(other.until(abi::EVENT_RECEIVED).flags, abi::EVENT_FLAG_END);
        assert_eq!(write(came.handle, b"back", abi::SEND_END, 0), abi::OK);
        assert_eq!(by.until(abi::EVENT_RECEIVED).data, b"back");
        other.until_of(came.handle, abi::EVENT_STREAM_FINISHED);
        close(stream);
        close(came.handle);
    }
}

#[test]
fn a_stream_of_one_direction_is_only_that() {
    let quic = Quic::new(&datagrams());
    let (near, _) = quic.connect();
    let stream = open(near, abi::STREAM_UNIDIRECTIONAL, 1);
    ok(|error| unsafe { godwit_stream_set_priority(stream, 0, 1, error) });
    refused(abi::ERROR_ARGUMENT, |error| unsafe { godwit_stream_set_priority(stream, 8, 1, error) });
    refused(abi::ERROR_STATE, |error| unsafe { godwit_stream_stop(stream, 1, error) });
    assert_eq!(write(stream, b"", abi::SEND_END, 0), abi::OK);
    let came = quic.far.until(abi::EVENT_STREAM);
    assert_eq!(came.flags, abi::EVENT_FLAG_UNIDIRECTIONAL);
    assert_eq!(write(came.handle, b"x", 0, 0), abi::ERROR_STATE);
    refused(abi::ERROR_STATE, |error| unsafe { godwit_stream_reset(came.handle, 1, error) });
    quic.near.until_of(stream, abi::EVENT_STREAM_FINISHED);
}

#[test]
fn streams_are_broken_off_with_a_code() {
    let quic = Quic::new(&datagrams());
    let (near, _) = quic.connect();
    let stream = open(near, 0, 1);
    assert_eq!(write(stream, b"x", 0, 0), abi::OK);
    let came = quic.far.until(abi::EVENT_STREAM).handle;
    ok(|error| unsafe { godwit_stream_reset(stream, 41, error) });
    let reset = quic.far.until_of(came, abi::EVENT_STREAM_RESET);
    assert_eq!((reset.code, reset.status), (41, abi::ERROR_RESET));
    ok(|error| unsafe { godwit_stream_stop(stream, 42, error) });
    let stopped = quic.far.until_of(came, abi::EVENT_STREAM_STOPPED);
    assert_eq!((stopped.code, stopped.status), (42, abi::ERROR_RESET));
    assert_eq!(write(came, b"x", 0, 0), abi::ERROR_RESET);
    refused(abi::ERROR_ARGUMENT, |error| unsafe { godwit_stream_reset(stream, u64::MAX, error) });
    // What is closed is broken off, too.
    let closed = open(near, 0, 2);
    assert_eq!(write(closed, b"x", 0, 0), abi::OK);
    let came = quic.far.until(abi::EVENT_STREAM).handle;
    quic.far.until_of(came, abi::EVENT_RECEIVED);
    close(closed);
    assert_eq!(quic.far.until_of(came, abi::EVENT_STREAM_RESET).code, 0);
}

#[test]
fn streams_wait_for_room_and_for_the_reader() {
    let limits = abi::TransportOptions {
        receive_limit: 1 << 15,
        send_limit: 1 << 15,
        send_buffer: 1 << 16,
        ..datagrams()
    };
    let quic = Quic::new(&limits);
    let connection = quic.begin(|options| options.transport = &raw const limits);
    let stream = open(connection, abi::STREAM_UNIDIRECTIONAL, 1);
    let (total, mut written) = (3_000_000, 0);
    let more = |written: &mut usize| {
        while *written < total {
            let piece = [7; 10_000];
            let flags = if *written + piece.len() == total { abi::SEND_END } else { 0 };
            match write(stream, &piece, flags, 0) {
                abi::OK => *written += piece.len(),
                status => return assert_eq!(status, abi::ERROR_FULL),
            }
        }
    };
    more(&mut written);
    assert!(written < total, "not everything has room");
    std::thread::scope(|scope| {
        let far = scope.spawn(|| {
            let (mut received, mut is_over) = (0, false);
            while !is_over {
                let told = quic.far.next();
                received += if told.kind == abi::EVENT_RECEIVED { told.data.len() } else { 0 };
                is_over = told.flags & abi::EVENT_FLAG_END != 0;
            }
            received
        });
        while quic.near.next().kind != abi::EVENT_STREAM_FINISHED {
            more(&mut written);
        }
        assert_eq!(far.join().unwrap(), total);
    });
}

#[test]
fn datagrams_are_sent_and_their_fate_is_told() {
    let quic = Quic::new(&datagrams());
    let (near, far) = quic.connect();
    let send = |bytes: &[u8], flags, tag, error| unsafe {
        godwit_connection_send_datagram(near, bytes.as_ptr().cast(), bytes.len() as u64, flags, tag, error)
    };
    ok(|error| send(b"once", abi::SEND_REPORT, 99, error));
    let came = quic.far.until(abi::EVENT_DATAGRAM);
    assert_eq!((came.handle, &*came.data), (far, &b"once"[..]));
    loop {
        let outcome = quic.near.until(abi::EVENT_DATAGRAM_OUTCOME);
        assert_eq!((outcome.handle, outcome.tag), (near, 99));
        if outcome.code == abi::DATAGRAM_ACKNOWLEDGED {
            break;
        }
    }
    let mut info = abi::ConnectionInfo::zeroed();
    ok(|error| unsafe { godwit_connection_information(near, &mut info, error) });
    assert!(info.max_datagram_length > 1000 && info.flags & abi::CONNECTION_ESTABLISHED != 0);
    let words = refused(abi::ERROR_ARGUMENT, |error| send(&[0; 60_000], 0, 0, error));
    assert!(words.contains("bytes"), "{words}");

    let deaf = Quic::new(&abi::TransportOptions::zeroed());
    let (near, _) = deaf.connect();
    let status =
        unsafe { godwit_connection_send_datagram(near, c"x".as_ptr().cast(), 1, 0, 0, std::ptr::null_mut()) };
    assert_eq!(status, abi::ERROR_UNSUPPORTED);
}

#[test]
fn a_client_moves_to_another_address_and_a_server_does_not() {
    let quic = Quic::new(&datagrams());
    let (near, far) = quic.connect();
    ok(|error| unsafe { godwit_connection_migrate(near, c"127.0.0.2:0".as_ptr(), error) });
    loop {
        let path = quic.near.until(abi::EVENT_PATH);
        if path.number == abi::PATH_ACTIVE && path.text.starts_with("127.0.0.2:") {
            break;
        }
    }
    let (mut paths, mut count) = ([abi::Path::zeroed(); 8], 0);
    let place = &raw mut paths;
    ok(|error| unsafe { godwit_connection_paths(near, place.cast(), 8, &mut count, error) });
    let active = paths[..count as usize].iter().find(|path| path.state == abi::PATH_ACTIVE).unwrap();
    assert!(text(&active.local_address).starts_with("127.0.0.2:"));
    assert!(active.mtu >= 1200 && active.window > 0);
    ok(|error| unsafe { godwit_connection_paths(near, std::ptr::null_mut(), 0, &mut count, error) });
    assert!(count > 0, "they are counted without room for them, too");
    refused(abi::ERROR_UNSUPPORTED, |error| unsafe {
        godwit_connection_migrate(far, c"127.0.0.1:0".as_ptr(), error)
    });
    refused(abi::ERROR_ARGUMENT, |error| unsafe {
        godwit_connection_migrate(near, c"nowhere".as_ptr(), error)
    });
    // And all at once, to another socket.
    ok(|error| unsafe { godwit_endpoint_rebind(quic.client, c"127.0.0.1:0".as_ptr(), error) });
    let stream = open(near, 0, 1);
    assert_eq!(write(stream, b"still here", abi::SEND_END, 0), abi::OK);
    assert_eq!(quic.far.until(abi::EVENT_RECEIVED).data, b"still here");
}

#[test]
fn a_connection_counts() {
    let quic = Quic::new(&datagrams());
    let (near, far) = quic.connect();
    let stream = open(near, 0, 1);
    assert_eq!(write(stream, &[1; 5000], abi::SEND_END, 0), abi::OK);
    quic.near.until_of(stream, abi::EVENT_STREAM_FINISHED);
    for (connection, sent, received) in [(near, 5000, 0), (far, 0, 5000)] {
        let mut counted = abi::Statistics::zeroed();
        ok(|error| unsafe { godwit_connection_statistics(connection, &mut counted, error) });
        assert_eq!((counted.stream_bytes_sent, counted.stream_bytes_received), (sent, received));
        assert!(counted.udp_bytes_received > 1200 && counted.rtt_ns > 0 && counted.mtu >= 1200);
    }
}

#[test]
fn what_is_sent_ahead_of_the_handshake_is_marked() {
    let quic = Quic::new(&datagrams());
    // What comes after this connection is known of: the ticket is there when bytes have come after it.
    let (near, _) = quic.connect();
    let stream = open(near, 0, 1);
    assert_eq!(write(stream, b"x", abi::SEND_END, 0), abi::OK);
    let came = quic.far.until(abi::EVENT_STREAM).handle;
    assert_eq!(write(came, b"x", abi::SEND_END, 0), abi::OK);
    quic.near.until_of(stream, abi::EVENT_RECEIVED);
    close(near);
    let again = quic.begin(|options| options.flags |= abi::CONNECT_EARLY_DATA);
    let stream = open(again, 0, 1);
    assert_eq!(write(stream, b"early", abi::SEND_END, 0), abi::OK);
    let connected = quic.near.until_of(again, abi::EVENT_CONNECTED);
    assert!(connected.number & abi::CONNECTION_RESUMED != 0);
    loop {
        let told = quic.far.until(abi::EVENT_STREAM);
        if told.handle != came {
            break;
        }
    }
    assert_eq!(quic.far.until(abi::EVENT_RECEIVED).data, b"early");
}
