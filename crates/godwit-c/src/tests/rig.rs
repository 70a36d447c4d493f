//! What the tests have: a queue, events taken from it as plain values, and both sides of HTTP and QUIC on loopback.

use crate::abi::{self, Plain};
use crate::client::*;
use crate::exchange::api::*;
use crate::handles::godwit_close;
use crate::lease::godwit_event_release;
use crate::queue::*;
use crate::quic::functions::*;
use crate::server::*;
use std::ffi::{CStr, CString, c_char};
use std::ptr::null;
use tempfile::TempDir;

/// Nobody waits as long; it only keeps a broken test from hanging.
const LONG_MS: i64 = 60_000;

/// An event that was taken and, unless it is kept, released.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    pub(super) kind: u32,
    pub(super) tag: u64,
    pub(super) handle: u64,
    pub(super) parent: u64,
    pub(super) status: i32,
    pub(super) flags: u32,
    pub(super) code: u64,
    pub(super) length: u64,
    pub(super) data: Vec<u8>,
    pub(super) headers: Vec<(String, String)>,
    /// Status, or that of the path.
    pub(super) number: u32,
    /// Of a request or response.
    pub(super) protocol: u32,
    /// Path, or ALPN.
    pub(super) text: String,
    pub(super) error: String,
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

/// # Safety
/// There is a text.
unsafe fn c_text(text: *const c_char) -> String {
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

impl Told {
    pub(super) fn of(event: &abi::Event) -> Told {
        let abi::Event { kind, tag, handle, parent, status, flags, code, length, .. } = *event;
        let mut told = Told { kind, tag, handle, parent, status, flags, code, length, ..Told::default() };
        // SAFETY: events point to nothing, or to what is there.
        unsafe {
            if !event.data.is_null() {
                told.data = std::slice::from_raw_parts(event.data, event.length as usize).to_vec();
            }
            for number in 0..event.header_count as usize {
                let header = *event.headers.add(number);
                let part = |start: *const c_char, length: u64| {
                    String::from_utf8_lossy(std::slice::from_raw_parts(start.cast(), length as usize))
                        .into_owned()
                };
                told.headers
                    .push((part(header.name, header.name_length), part(header.value, header.value_length)));
            }
            if let Some(response) = event.response.as_ref() {
                (told.number, told.protocol) = (response.status, response.protocol);
                told.text = c_text(response.url);
            }
            if let Some(request) = event.request.as_ref() {
                (told.protocol, told.text) = (request.protocol, c_text(request.path));
                assert!(!text(&request.client_address).is_empty());
            }
            if let Some(connection) = event.connection.as_ref() {
                (told.number, told.text) = (connection.flags, text(&connection.alpn));
            }
            if let Some(path) = event.path.as_ref() {
                (told.number, told.text) = (path.state, text(&path.local_address));
            }
            if let Some(error) = event.error.as_ref() {
                assert_eq!(error.status, event.status);
                told.error = text(&error.message);
            }
        }
        told
    }
}

/// A queue.
pub(super) struct Desk {
    pub(super) queue: u64,
}

impl Desk {
    pub(super) fn new() -> Desk {
        let mut queue = 0;
        ok(|error| unsafe { godwit_queue_create(null(), &mut queue, error) });
        Desk { queue }
    }

    /// The next event, still lent.
    pub(super) fn keep(&self) -> abi::Event {
        self.try_keep(LONG_MS).expect("an event")
    }

    pub(super) fn try_keep(&self, time_ms: i64) -> Option<abi::Event> {
        let (mut event, mut count) = (abi::Event::zeroed(), 0);
        ok(|error| unsafe { godwit_queue_wait(self.queue, &mut event, 1, time_ms, &mut count, error) });
        (count == 1).then_some(event)
    }

    /// The next event.
    pub(super) fn next(&self) -> Told {
        let mut event = self.keep();
        let told = Told::of(&event);
        release(&mut event);
        told
    }

    /// Passes over events until there is one of this kind.
    pub(super) fn until(&self, kind: u32) -> Told {
        loop {
            let told = self.next();
            if told.kind == kind {
                return told;
            }
        }
    }

    /// The same, of this handle.
    pub(super) fn until_of(&self, handle: u64, kind: u32) -> Told {
        loop {
            let told = self.next();
            if (told.handle, told.kind) == (handle, kind) {
                return told;
            }
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        forget(self.queue);
    }
}

pub(super) fn release(event: &mut abi::Event) {
    ok(|error| unsafe { godwit_event_release(event, error) });
}

pub(crate) fn close(handle: u64) {
    ok(|error| unsafe { godwit_close(handle, error) });
}

/// The same, of what may be closed already.
fn forget(handle: u64) {
    unsafe { godwit_close(handle, std::ptr::null_mut()) };
}

/// Does it, and it works.
#[track_caller]
pub(super) fn ok(act: impl FnOnce(*mut abi::Error) -> i32) {
    let mut error = abi::Error::zeroed();
    let status = act(&mut error);
    assert_eq!(status, abi::OK, "{}", text(&error.message));
}

/// Does it, and it says why not.
#[track_caller]
pub(super) fn refused(status: i32, act: impl FnOnce(*mut abi::Error) -> i32) -> String {
    let mut error = abi::Error::zeroed();
    assert_eq!(act(&mut error), status, "{}", text(&error.message));
    assert_eq!(error.status, status);
    assert!(error.message_length > 0);
    text(&error.message)
}

/// A certificate for localhost in files.
pub(super) struct Certificate {
    _folder: TempDir,
    pub(super) chain: CString,
    pub(super) key: CString,
}

impl Certificate {
    pub(super) fn new() -> Certificate {
        let folder = tempfile::tempdir().unwrap();
        let made =
            rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        let file = |name: &str, text: String| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            CString::new(path.to_str().unwrap()).unwrap()
        };
        let chain = file("chain.pem", made.cert.pem());
        let key = file("key.pem", made.signing_key.serialize_pem());
        Certificate { _folder: folder, chain, key }
    }
}

/// A server and a client of HTTP, each with a queue of its own.
pub(crate) struct Http {
    _certificate: Certificate,
    pub(super) front: Desk,
    pub(super) back: Desk,
    pub(crate) server: u64,
    pub(super) client: u64,
    pub(super) origin: String,
}

impl Http {
    /// With these limits for bodies; 0 for the usual.
    pub(crate) fn new(limit: u64) -> Http {
        let certificate = Certificate::new();
        let (front, back) = (Desk::new(), Desk::new());
        let addresses = [c"127.0.0.1:0".as_ptr()];
        let options = abi::ServerOptions {
            addresses: addresses.as_ptr(),
            address_count: 1,
            certificate_file: certificate.chain.as_ptr(),
            key_file: certificate.key.as_ptr(),
            receive_limit: limit,
            send_limit: limit,
            ..abi::ServerOptions::zeroed()
        };
        let mut server = 0;
        ok(|error| unsafe { godwit_server_create(back.queue, &options, 77, &mut server, error) });
        let (mut address, mut count) = (abi::Address::zeroed(), 0);
        ok(|error| unsafe { godwit_server_addresses(server, &mut address, 1, &mut count, error) });
        assert_eq!(count, 1);
        let origin = format!("https://{}", text(&address.text));
        let options = abi::ClientOptions {
            flags: abi::CLIENT_ONLY_ROOTS_FILE,
            roots_file: certificate.chain.as_ptr(),
            receive_limit: limit,
            send_limit: limit,
            ..abi::ClientOptions::zeroed()
        };
        let mut client = 0;
        ok(|error| unsafe { godwit_client_create(front.queue, &options, 0, &mut client, error) });
        Http { _certificate: certificate, front, back, server, client, origin }
    }

    /// Sends a request, as changed.
    pub(super) fn ask(&self, path: &str, tag: u64, change: impl FnOnce(&mut abi::Request)) -> u64 {
        let url = CString::new(format!("{}{path}", self.origin)).unwrap();
        let mut request = abi::Request { url: url.as_ptr(), ..abi::Request::zeroed() };
        change(&mut request);
        let mut exchange = 0;
        ok(|error| unsafe { godwit_client_request(self.client, &request, tag, &mut exchange, error) });
        exchange
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        forget(self.client);
        forget(self.server);
    }
}

pub(super) fn respond(exchange: u64, change: impl FnOnce(&mut abi::ResponseOptions)) {
    let mut response = abi::ResponseOptions { status: 200, ..abi::ResponseOptions::zeroed() };
    change(&mut response);
    ok(|error| unsafe { godwit_exchange_respond(exchange, &response, error) });
}

pub(super) fn send(exchange: u64, bytes: &[u8], flags: u32, tag: u64) -> i32 {
    let (data, length) = (bytes.as_ptr().cast(), bytes.len() as u64);
    unsafe { godwit_exchange_send(exchange, data, length, flags, tag, std::ptr::null_mut()) }
}

pub(super) fn header(name: &'static CStr, value: &'static CStr) -> abi::Header {
    abi::Header {
        name: name.as_ptr(),
        name_length: name.count_bytes() as u64,
        value: value.as_ptr(),
        value_length: value.count_bytes() as u64,
        ..abi::Header::zeroed()
    }
}

/// Two endpoints of QUIC, each with a queue of its own.
pub(super) struct Quic {
    pub(super) certificate: Certificate,
    pub(super) near: Desk,
    pub(super) far: Desk,
    pub(super) client: u64,
    pub(super) server: u64,
    address: CString,
}

const ALPN: [&CStr; 1] = [c"test"];

impl Quic {
    pub(super) fn new(transport: &abi::TransportOptions) -> Quic {
        let certificate = Certificate::new();
        let (near, far) = (Desk::new(), Desk::new());
        let alpn = ALPN.map(CStr::as_ptr);
        let mut options = abi::EndpointOptions {
            flags: abi::ENDPOINT_EARLY_DATA,
            address: c"127.0.0.1:0".as_ptr(),
            certificate_file: certificate.chain.as_ptr(),
            key_file: certificate.key.as_ptr(),
            alpn: alpn.as_ptr(),
            alpn_count: 1,
            transport,
            ..abi::EndpointOptions::zeroed()
        };
        let (mut server, mut client, mut address) = (0, 0, abi::Address::zeroed());
        ok(|error| unsafe { godwit_endpoint_create(far.queue, &options, 5, &mut server, error) });
        ok(|error| unsafe { godwit_endpoint_address(server, &mut address, error) });
        options = abi::EndpointOptions { address: c"0.0.0.0:0".as_ptr(), ..abi::EndpointOptions::zeroed() };
        ok(|error| unsafe { godwit_endpoint_create(near.queue, &options, 6, &mut client, error) });
        let address = CString::new(text(&address.text)).unwrap();
        Quic { certificate, near, far, client, server, address }
    }

    /// Begins a connection, as changed.
    pub(super) fn begin(&self, change: impl FnOnce(&mut abi::ConnectOptions)) -> u64 {
        let (alpn, transport) = (ALPN.map(CStr::as_ptr), datagrams());
        let mut options = abi::ConnectOptions {
            flags: abi::CONNECT_ONLY_ROOTS_FILE,
            address: self.address.as_ptr(),
            server_name: c"localhost".as_ptr(),
            alpn: alpn.as_ptr(),
            alpn_count: 1,
            roots_file: self.certificate.chain.as_ptr(),
            transport: &raw const transport,
            ..abi::ConnectOptions::zeroed()
        };
        change(&mut options);
        let mut connection = 0;
        ok(|error| unsafe { godwit_endpoint_connect(self.client, &options, 1, &mut connection, error) });
        connection
    }

    /// A connection, from both sides.
    pub(super) fn connect(&self) -> (u64, u64) {
        let connection = self.begin(|_| {});
        let connected = self.near.until(abi::EVENT_CONNECTED);
        assert_eq!((connected.handle, connected.parent, &*connected.text), (connection, self.client, "test"));
        let incoming = self.far.until(abi::EVENT_INCOMING);
        assert_eq!(incoming.parent, self.server);
        (connection, incoming.handle)
    }
}

impl Drop for Quic {
    fn drop(&mut self) {
        forget(self.client);
        forget(self.server);
    }
}

pub(super) fn datagrams() -> abi::TransportOptions {
    abi::TransportOptions { flags: abi::TRANSPORT_DATAGRAMS, ..abi::TransportOptions::zeroed() }
}

pub(super) fn open(connection: u64, flags: u32, tag: u64) -> u64 {
    let mut stream = 0;
    ok(|error| unsafe { godwit_connection_open(connection, flags, tag, &mut stream, error) });
    stream
}

pub(super) fn write(stream: u64, bytes: &[u8], flags: u32, tag: u64) -> i32 {
    let (data, length) = (bytes.as_ptr().cast(), bytes.len() as u64);
    unsafe { godwit_stream_send(stream, data, length, flags, tag, std::ptr::null_mut()) }
}
