//! How connections end, or never begin.

use super::rig::*;
use crate::abi::{self, Plain};
use crate::quic::functions::*;
use std::ptr::null;

#[test]
fn a_connection_is_closed_with_a_code_and_a_reason() {
    let quic = Quic::new(&datagrams());
    let (near, far) = quic.connect();
    let stream = open(near, 0, 2);
    assert_eq!(write(stream, b"x", 0, 0), abi::OK);
    let came = quic.far.until(abi::EVENT_STREAM).handle;
    ok(|error| unsafe { godwit_connection_shutdown(near, 4711, c"enough".as_ptr(), error) });
    let closed = quic.near.until_of(near, abi::EVENT_CONNECTION_CLOSED);
    assert_eq!(closed.status, abi::ERROR_CANCELLED);
    let (mut closed, mut reset) = (None, None);
    while closed.is_none() || reset.is_none() {
        let told = quic.far.next();
        match told.kind {
            abi::EVENT_CONNECTION_CLOSED => closed = Some(told),
            abi::EVENT_STREAM_RESET if told.handle == came => reset = Some(told),
            _ => {}
        }
    }
    let closed = closed.unwrap();
    assert_eq!((closed.handle, closed.code, &*closed.data), (far, 4711, &b"enough"[..]));
    assert_eq!(closed.status, abi::ERROR_CLOSED_BY_PEER);
    assert_eq!(reset.unwrap().status, abi::ERROR_CLOSED_BY_PEER);
    let mut none = 0;
    refused(abi::ERROR_CLOSED, |error| unsafe { godwit_connection_open(near, 0, 1, &mut none, error) });
    refused(abi::ERROR_CLOSED, |error| unsafe {
        godwit_connection_send_datagram(near, null(), 0, 0, 0, error)
    });
    // What it counted is known all the same.
    let mut counted = abi::Statistics::zeroed();
    ok(|error| unsafe { godwit_connection_statistics(near, &mut counted, error) });
    assert!(counted.packets_sent > 0);
}

#[test]
fn a_connection_whose_handle_is_closed_closes_in_silence() {
    let quic = Quic::new(&datagrams());
    let (near, far) = quic.connect();
    close(near);
    let closed = quic.far.until_of(far, abi::EVENT_CONNECTION_CLOSED);
    assert_eq!((closed.code, closed.status), (0, abi::ERROR_CLOSED_BY_PEER));
    while let Some(mut event) = quic.near.try_keep(0) {
        assert_ne!(event.handle, near);
        release(&mut event);
    }
}

#[test]
fn a_certificate_that_is_not_trusted_is_told() {
    let (quic, other) = (Quic::new(&datagrams()), Quic::new(&datagrams()));
    let connection = quic.begin(|options| options.roots_file = other.certificate.chain.as_ptr());
    let stream = open(connection, 0, 9);
    assert_eq!(write(stream, b"never sent", abi::SEND_REPORT, 10), abi::OK);
    let (mut closed, mut sent, mut stopped) = (None, None, None);
    while closed.is_none() || sent.is_none() || stopped.is_none() {
        let told = quic.near.next();
        match told.kind {
            abi::EVENT_CONNECTION_CLOSED => closed = Some(told),
            abi::EVENT_SENT => sent = Some(told),
            abi::EVENT_STREAM_STOPPED => stopped = Some(told),
            _ => {}
        }
    }
    let closed = closed.unwrap();
    assert_eq!((closed.handle, closed.status), (connection, abi::ERROR_CERTIFICATE), "{}", closed.error);
    let sent = sent.unwrap();
    assert_eq!((sent.tag, sent.status), (10, abi::ERROR_CANCELLED));
    assert_eq!(stopped.unwrap().handle, stream);
    let mut counted = abi::Statistics::zeroed();
    refused(abi::ERROR_CERTIFICATE, |error| unsafe {
        godwit_connection_statistics(connection, &mut counted, error)
    });
    // Whoever accepts anything has no difficulty.
    let any = quic.begin(|options| {
        (options.flags, options.roots_file) = (abi::CONNECT_ACCEPT_ANY_CERTIFICATE, null());
    });
    quic.near.until_of(any, abi::EVENT_CONNECTED);
}

#[test]
fn a_protocol_that_nobody_speaks_is_refused() {
    let quic = Quic::new(&datagrams());
    let alpn = [c"other".as_ptr()];
    let connection = quic.begin(|options| options.alpn = alpn.as_ptr());
    let closed = quic.near.until_of(connection, abi::EVENT_CONNECTION_CLOSED);
    assert_eq!(closed.status, abi::ERROR_TLS, "{}", closed.error);
}

#[test]
fn nobody_there_and_no_such_name_are_told() {
    let quic = Quic::new(&datagrams());
    let limits = abi::TransportOptions { handshake_timeout_ms: 300, ..datagrams() };
    let connection = quic.begin(|options| {
        options.address = c"127.0.0.1:9".as_ptr();
        options.transport = &raw const limits;
    });
    let mut info = abi::ConnectionInfo::zeroed();
    let status = unsafe { godwit_connection_information(connection, &mut info, std::ptr::null_mut()) };
    assert_ne!(status, abi::OK);
    let closed = quic.near.until_of(connection, abi::EVENT_CONNECTION_CLOSED);
    assert_eq!(closed.status, abi::ERROR_TIMEOUT, "{}", closed.error);
    let connection = quic.begin(|options| options.address = c"no such host:1".as_ptr());
    let closed = quic.near.until_of(connection, abi::EVENT_CONNECTION_CLOSED);
    assert_eq!(closed.status, abi::ERROR_RESOLVE, "{}", closed.error);
}

#[test]
fn a_connection_under_way_can_be_broken_off() {
    let quic = Quic::new(&datagrams());
    let connection = quic.begin(|options| options.address = c"127.0.0.1:9".as_ptr());
    ok(|error| unsafe { godwit_connection_shutdown(connection, 0, null(), error) });
    let closed = quic.near.until_of(connection, abi::EVENT_CONNECTION_CLOSED);
    assert_eq!(closed.status, abi::ERROR_CANCELLED);
    let connection = quic.begin(|options| options.address = c"127.0.0.1:9".as_ptr());
    close(connection);
    assert!(quic.near.try_keep(0).is_none());
}

#[test]
fn an_endpoint_ends_with_its_connections() {
    let quic = Quic::new(&datagrams());
    let (near, far) = quic.connect();
    ok(|error| unsafe { godwit_endpoint_shutdown(quic.server, 8, c"night".as_ptr(), error) });
    refused(abi::ERROR_STATE, |error| unsafe { godwit_endpoint_shutdown(quic.server, 8, null(), error) });
    let closed = quic.near.until_of(near, abi::EVENT_CONNECTION_CLOSED);
    assert_eq!((closed.code, &*closed.data), (8, &b"night"[..]));
    let (mut stopped, mut closed) = (false, false);
    while !stopped || !closed {
        let told = quic.far.next();
        stopped |= (told.kind, told.handle) == (abi::EVENT_ENDPOINT_STOPPED, quic.server);
        closed |= (told.kind, told.handle) == (abi::EVENT_CONNECTION_CLOSED, far);
    }
    ok(|error| unsafe { godwit_endpoint_shutdown(quic.client, 0, null(), error) });
    let (mut none, options) = (0, abi::ConnectOptions::zeroed());
    refused(abi::ERROR_CLOSED, |error| unsafe {
        godwit_endpoint_connect(quic.client, &options, 1, &mut none, error)
    });
}

#[test]
fn everything_can_be_closed_in_the_middle() {
    let quic = Quic::new(&datagrams());
    let (near, _) = quic.connect();
    let streams: Vec<u64> = (0..50).map(|tag| open(near, 0, tag)).collect();
    for stream in &streams {
        assert_eq!(write(*stream, &[0; 20_000], 0, 0), abi::OK);
    }
    quic.far.until(abi::EVENT_STREAM);
    close(quic.server);
    close(quic.client);
    assert!(quic.near.try_keep(0).is_none() && quic.far.try_keep(0).is_none());
    for stream in streams {
        write(stream, b"x", 0, 0);
        close(stream);
    }
    close(near);
}
