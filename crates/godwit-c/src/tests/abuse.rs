//! What cannot be: handles that are none, null pointers, sizes, texts and numbers out of range. All of it is refused, and
//! nothing comes of it.

use super::rig::*;
use crate::abi::{self, Plain};
use crate::client::*;
use crate::exchange::api::*;
use crate::handles::{godwit_close, godwit_set_tag};
use crate::lease::godwit_event_release;
use crate::queue::*;
use crate::quic::functions::*;
use crate::runtime::godwit_runtime_create;
use crate::server::*;
use std::ffi::c_char;
use std::ptr::{null, null_mut};

type Error = *mut abi::Error;
/// A function that wants a handle.
type Call = Box<dyn Fn(u64, Error) -> i32>;

/// Every function that takes a handle, with everything else as it should be.
fn of_handles() -> Vec<(&'static str, Call)> {
    macro_rules! functions {
        ($($name:ident($($given:expr),*)),* $(,)?) => {
            vec![$((
                stringify!($name),
                Box::new(|handle: u64, error: Error| unsafe { $name(handle, $($given,)* error) })
                    as Call,
            )),*]
        };
    }
    functions![
        godwit_close(),
        godwit_set_tag(1),
        godwit_queue_descriptor(&mut 0),
        godwit_queue_wait(&mut abi::Event::zeroed(), 1, 0, &mut 0),
        godwit_queue_wake(),
        godwit_client_create(null(), 0, &mut 0),
        godwit_client_request(
            &abi::Request { url: c"https://localhost/".as_ptr(), ..abi::Request::zeroed() },
            0,
            &mut 0
        ),
        godwit_client_shutdown(),
        godwit_server_create(&abi::ServerOptions::zeroed(), 0, &mut 0),
        godwit_server_addresses(&mut abi::Address::zeroed(), 1, &mut 0),
        godwit_server_shutdown(0),
        godwit_exchange_send(null(), 0, 0, 0),
        godwit_exchange_send_trailers(null(), 0),
        godwit_exchange_cancel(),
        godwit_exchange_respond(&abi::ResponseOptions::zeroed()),
        godwit_exchange_inform(103, null(), 0),
        godwit_exchange_statistics(&mut abi::Statistics::zeroed()),
        godwit_endpoint_create(null(), 0, &mut 0),
        godwit_endpoint_address(&mut abi::Address::zeroed()),
        godwit_endpoint_connect(&abi::ConnectOptions::zeroed(), 0, &mut 0),
        godwit_endpoint_rebind(c"127.0.0.1:0".as_ptr()),
        godwit_endpoint_shutdown(0, null()),
        godwit_connection_shutdown(0, null()),
        godwit_connection_information(&mut abi::ConnectionInfo::zeroed()),
        godwit_connection_open(0, 0, &mut 0),
        godwit_connection_send_datagram(null(), 0, 0, 0),
        godwit_connection_migrate(c"127.0.0.1:0".as_ptr()),
        godwit_connection_paths(null_mut(), 0, &mut 0),
        godwit_connection_statistics(&mut abi::Statistics::zeroed()),
        godwit_stream_send(null(), 0, 0, 0),
        godwit_stream_reset(0),
        godwit_stream_stop(0),
        godwit_stream_set_priority(0, 0),
    ]
}

#[test]
fn every_function_refuses_handles_that_are_none() {
    let desk = Desk::new();
    let mut closed = 0;
    ok(|error| unsafe { godwit_queue_create(null(), &mut closed, error) });
    close(closed);
    let mut runtime = 0;
    let options = abi::RuntimeOptions { threads: 1, ..abi::RuntimeOptions::zeroed() };
    ok(|error| unsafe { godwit_runtime_create(&options, &mut runtime, error) });
    // The right place, and a kind that is none there.
    let wrong_kind = desk.queue ^ (1 << 56);
    for (name, call) in of_handles() {
        for handle in [0, 1, u64::MAX, closed, wrong_kind, desk.queue | 0xff_ffff] {
            let words = refused(abi::ERROR_HANDLE, |error| call(handle, error));
            assert!(words.contains("handle"), "{name}: {words}");
            assert_eq!(call(handle, null_mut()), abi::ERROR_HANDLE, "{name} without an error");
        }
        // Of another kind: no function is for runtimes, but that which closes everything.
        if name != "godwit_close" {
            refused(abi::ERROR_HANDLE, |error| call(runtime, error));
        }
        let mut short = abi::Error::zeroed();
        short.size = 8;
        assert_eq!(call(desk.queue, &mut short), abi::ERROR_SIZE, "{name} with a short error");
    }
    close(runtime);
}

#[test]
fn null_pointers_are_refused() {
    let (http, quic) = (Http::new(0), Quic::new(&datagrams()));
    let (near, _) = quic.connect();
    let exchange = http.ask("/", 1, |_| {});
    let request = http.back.until(abi::EVENT_REQUEST).handle;
    let calls: [&dyn Fn(Error) -> i32; 22] = unsafe {
        [
            &|error| godwit_queue_create(null(), null_mut(), error),
            &|error| godwit_runtime_create(null(), null_mut(), error),
            &|error| godwit_queue_descriptor(http.front.queue, null_mut(), error),
            &|error| godwit_queue_wait(http.front.queue, null_mut(), 1, 0, &mut 0, error),
            &|error| godwit_queue_wait(http.front.queue, &mut abi::Event::zeroed(), 0, 0, &mut 0, error),
            &|error| godwit_queue_wait(http.front.queue, &mut abi::Event::zeroed(), 1, 0, null_mut(), error),
            &|error| godwit_event_release(null_mut(), error),
            &|error| godwit_client_create(http.front.queue, null(), 0, null_mut(), error),
            &|error| godwit_client_request(http.client, null(), 0, &mut 0, error),
            &|error| godwit_client_request(http.client, &abi::Request::zeroed(), 0, &mut 0, error),
            &|error| godwit_server_create(http.back.queue, null(), 0, &mut 0, error),
            &|error| godwit_server_addresses(http.server, null_mut(), 1, &mut 0, error),
            &|error| godwit_exchange_send(exchange, null(), 1, 0, 0, error),
            &|error| godwit_exchange_send_trailers(exchange, null(), 1, error),
            &|error| godwit_exchange_respond(request, null(), error),
            &|error| godwit_endpoint_address(quic.server, null_mut(), error),
            &|error| godwit_endpoint_rebind(quic.client, null(), error),
            &|error| godwit_endpoint_connect(quic.client, &abi::ConnectOptions::zeroed(), 0, &mut 0, error),
            &|error| godwit_connection_information(near, null_mut(), error),
            &|error| godwit_connection_open(near, 0, 0, null_mut(), error),
            &|error| godwit_connection_paths(near, null_mut(), 1, &mut 0, error),
            &|error| godwit_connection_migrate(near, null(), error),
        ]
    };
    for (number, call) in calls.iter().enumerate() {
        let words = refused(abi::ERROR_ARGUMENT, call);
        assert!(words.len() > 10, "{number}: {words}");
    }
    respond(request, |_| {});
}

#[test]
fn structs_of_other_versions_are_taken_as_far_as_they_are_understood() {
    let desk = Desk::new();
    let mut client = 0;
    let mut create = |options: *const abi::ClientOptions| unsafe {
        let status = godwit_client_create(desk.queue, options, 0, &mut client, null_mut());
        if status == abi::OK {
            close(client);
        }
        status
    };
    // An older one ends early; what is behind it is not looked at.
    let mut options = abi::ClientOptions { size: 48, versions: 99, ..abi::ClientOptions::zeroed() };
    assert_eq!(create(&options), abi::OK);
    for size in [0, 7, 1 << 20, u32::MAX] {
        options.size = size;
        assert_eq!(create(&options), abi::ERROR_SIZE, "{size}");
    }
    // A newer one has more, which is zero where it is not used.
    #[repr(C)]
    struct Newer(abi::ClientOptions, [u64; 2]);
    let mut newer = Newer(abi::ClientOptions::zeroed(), [0, 0]);
    newer.0.size = size_of::<Newer>() as u32;
    assert_eq!(create((&raw const newer).cast()), abi::OK);
    newer.1[1] = 1;
    assert_eq!(create((&raw const newer).cast()), abi::ERROR_SIZE);
}

#[test]
fn what_is_written_keeps_to_the_size_that_was_said() {
    let quic = Quic::new(&datagrams());
    let (near, _) = quic.connect();
    let mut counted = abi::Statistics::zeroed();
    (counted.size, counted.udp_bytes_received) = (24, 1234);
    ok(|error| unsafe { godwit_connection_statistics(near, &mut counted, error) });
    assert!(counted.udp_datagrams_sent > 0 && counted.udp_bytes_sent > 1200);
    assert_eq!((counted.size, counted.udp_bytes_received), (24, 1234));
    #[repr(C)]
    struct Newer(abi::Statistics, u64);
    let mut newer = Newer(abi::Statistics::zeroed(), 5);
    newer.0.size = size_of::<Newer>() as u32;
    ok(|error| unsafe { godwit_connection_statistics(near, (&raw mut newer).cast(), error) });
    assert_eq!((newer.1, newer.0.size), (0, 224), "what is not known is zero");
    // Events of a newer version lie farther apart.
    #[repr(C)]
    struct NewerEvent(abi::Event, [u64; 2]);
    let mut event = NewerEvent(abi::Event::zeroed(), [1, 1]);
    event.0.size = size_of::<NewerEvent>() as u32;
    let stream = open(near, 0, 3);
    let mut count = 0;
    ok(|error| unsafe {
        godwit_queue_wait(quic.near.queue, (&raw mut event).cast(), 1, -1, &mut count, error)
    });
    assert_eq!((count, event.1), (1, [0, 0]));
    ok(|error| unsafe { godwit_event_release((&raw mut event).cast(), error) });
    let mut short = abi::Event { size: 64, ..abi::Event::zeroed() };
    refused(abi::ERROR_SIZE, |error| unsafe {
        godwit_queue_wait(quic.near.queue, &mut short, 1, 0, &mut count, error)
    });
    close(stream);
}

#[test]
fn texts_headers_and_numbers_are_looked_at() {
    let http = Http::new(0);
    let request = |change: &dyn Fn(&mut abi::Request)| {
        let mut request = abi::Request { url: c"https://127.0.0.1:1/".as_ptr(), ..abi::Request::zeroed() };
        change(&mut request);
        let mut exchange = 0;
        refused(abi::ERROR_ARGUMENT, |error| unsafe {
            godwit_client_request(http.client, &request, 0, &mut exchange, error)
        })
    };
    let (bad_name, bad_value) = ([header(c"a b", c"x")], [header(c"a", c"x\ny")]);
    assert!(request(&|it| it.url = c"\xff".as_ptr()).contains("UTF-8"));
    assert!(request(&|it| it.method = c"G T".as_ptr()).contains("method"));
    request(&|it| it.flags = 1);
    request(&|it| it.versions = 9);
    request(&|it| it.body_mode = 9);
    request(&|it| (it.body_mode, it.body_length) = (abi::BODY_WHOLE, u64::MAX));
    assert!(request(&|it| (it.headers, it.header_count) = (bad_name.as_ptr(), 1)).contains("a b"));
    request(&|it| (it.headers, it.header_count) = (bad_value.as_ptr(), 1));
    request(&|it| it.header_count = u64::MAX);
    // What only the client knows of is told later.
    let mut exchange = 0;
    let odd = abi::Request { url: c"gopher://x/".as_ptr(), ..abi::Request::zeroed() };
    ok(|error| unsafe { godwit_client_request(http.client, &odd, 0, &mut exchange, error) });
    let failed = http.front.until_of(exchange, abi::EVENT_FAILED);
    assert_eq!(failed.status, abi::ERROR_REQUEST, "{}", failed.error);
}

#[test]
fn options_that_cannot_be_are_refused() {
    let (desk, certificate) = (Desk::new(), Certificate::new());
    let client = |status, change: &dyn Fn(&mut abi::ClientOptions)| {
        let (mut options, mut client) = (abi::ClientOptions::zeroed(), 0);
        change(&mut options);
        refused(status, |error| unsafe { godwit_client_create(desk.queue, &options, 0, &mut client, error) })
    };
    client(abi::ERROR_ARGUMENT, &|it| it.flags = 1 << 31);
    client(abi::ERROR_ARGUMENT, &|it| it.flags = abi::CLIENT_ONLY_ROOTS_FILE);
    client(abi::ERROR_ARGUMENT, &|it| it.family = 5);
    client(abi::ERROR_ARGUMENT, &|it| it.max_redirects = 256);
    client(abi::ERROR_ARGUMENT, &|it| it.proxy = c"gopher://x".as_ptr());
    client(abi::ERROR_FILE, &|it| it.roots_file = c"/no/such/file".as_ptr());
    client(abi::ERROR_HANDLE, &|it| it.runtime = 5);
    let server = |status, address: *const c_char, change: &dyn Fn(&mut abi::ServerOptions)| {
        let addresses = [address];
        let mut options = abi::ServerOptions {
            addresses: addresses.as_ptr(),
            address_count: 1,
            certificate_file: certificate.chain.as_ptr(),
            key_file: certificate.key.as_ptr(),
            ..abi::ServerOptions::zeroed()
        };
        change(&mut options);
        let mut server = 0;
        refused(status, |error| unsafe { godwit_server_create(desk.queue, &options, 0, &mut server, error) })
    };
    server(abi::ERROR_ARGUMENT, c"localhost".as_ptr(), &|_| {});
    server(abi::ERROR_ARGUMENT, c"127.0.0.1:0".as_ptr(), &|it| it.address_count = 65);
    server(abi::ERROR_ARGUMENT, c"127.0.0.1:0".as_ptr(), &|it| it.key_file = null());
    server(abi::ERROR_CONNECT, c"127.0.0.1:0".as_ptr(), &|it| it.key_file = c"/no/such/file".as_ptr());
    server(abi::ERROR_CONNECT, c"192.0.2.1:1".as_ptr(), &|_| {});
    let endpoint = |status, change: &dyn Fn(&mut abi::EndpointOptions)| {
        let (mut options, mut endpoint) = (abi::EndpointOptions::zeroed(), 0);
        change(&mut options);
        refused(status, |error| unsafe {
            godwit_endpoint_create(desk.queue, &options, 0, &mut endpoint, error)
        })
    };
    endpoint(abi::ERROR_ARGUMENT, &|it| it.address = c"x".as_ptr());
    endpoint(abi::ERROR_SYSTEM, &|it| it.address = c"192.0.2.1:1".as_ptr());
    endpoint(abi::ERROR_ARGUMENT, &|it| it.certificate_file = certificate.chain.as_ptr());
    endpoint(abi::ERROR_ARGUMENT, &|it| {
        (it.certificate_file, it.key_file) = (certificate.chain.as_ptr(), certificate.key.as_ptr());
    });
    let (alpn, huge) =
        ([c"x".as_ptr()], abi::TransportOptions { max_stream_window: u64::MAX, ..datagrams() });
    endpoint(abi::ERROR_FILE, &|it| {
        (it.alpn, it.alpn_count) = (alpn.as_ptr(), 1);
        (it.certificate_file, it.key_file) = (certificate.key.as_ptr(), certificate.chain.as_ptr());
    });
    endpoint(abi::ERROR_ARGUMENT, &|it| it.transport = &raw const huge);
    let many = abi::RuntimeOptions { threads: 257, ..abi::RuntimeOptions::zeroed() };
    refused(abi::ERROR_ARGUMENT, |error| unsafe { godwit_runtime_create(&many, &mut 0, error) });
}
