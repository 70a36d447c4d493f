//! HTTP/3 written by hand (RFC 9114), so that it can be said as no client would.

use godwit_http3::frame::{FrameType, put_header, put_varint, reserved};
use godwit_http3::qpack::Encoder;

/// The beginning of a control stream: its type, and SETTINGS without any.
pub(crate) fn control() -> Vec<u8> {
    let mut bytes = Vec::new();
    put_varint(0, &mut bytes);
    put_header(FrameType::SETTINGS, 0, &mut bytes);
    bytes
}

/// The beginning of a control stream with SETTINGS of a mebibyte, and the settings of a thousand bytes of it.
pub(crate) fn large_settings() -> (Vec<u8>, Vec<u8>) {
    let (mut begun, mut more) = (Vec::new(), Vec::new());
    put_varint(0, &mut begun);
    put_header(FrameType::SETTINGS, 1 << 20, &mut begun);
    let mut number = 0;
    while more.len() < 1000 {
        put_varint(reserved(number), &mut more);
        put_varint(number, &mut more);
        number += 1;
    }
    (begun, more)
}

/// A request's HEADERS frame.
pub(crate) fn request(method: &str, path: &str) -> Vec<u8> {
    let mut section = Vec::new();
    let mut encoder = Encoder::new(&mut section);
    for (name, value) in
        [(":method", method), (":scheme", "https"), (":authority", "localhost"), (":path", path)]
    {
        encoder.field(name.as_bytes(), value.as_bytes(), false);
    }
    let mut bytes = Vec::new();
    put_header(FrameType::HEADERS, section.len() as u64, &mut bytes);
    bytes.extend_from_slice(&section);
    bytes
}

/// A request whose body has as many bytes as one likes to write.
pub(crate) fn endless_request() -> Vec<u8> {
    let mut bytes = request("POST", "/small");
    put_header(FrameType::DATA, 1 << 40, &mut bytes);
    bytes
}

/// Frames of no use, as many as fit 1000 bytes.
pub(crate) fn many(frame: impl Fn(u64, &mut Vec<u8>), first: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut number = first;
    while bytes.len() < 1000 {
        frame(number, &mut bytes);
        number += 1;
    }
    bytes
}

/// A frame of a type that is reserved for being ignored, empty.
pub(crate) fn grease(number: u64, bytes: &mut Vec<u8>) {
    put_header(FrameType(reserved(number)), 0, bytes);
}

/// A DATA frame without data.
pub(crate) fn empty_data(_: u64, bytes: &mut Vec<u8>) {
    put_header(FrameType::DATA, 0, bytes);
}

/// A PRIORITY_UPDATE frame for a request that may come (RFC 9218, section 7.2).
pub(crate) fn priority(number: u64, bytes: &mut Vec<u8>) {
    let mut payload = Vec::new();
    put_varint(number % 100 * 4, &mut payload);
    payload.extend_from_slice(if number.is_multiple_of(2) { b"u=1" } else { b"u=6" });
    put_header(FrameType(0xf0700), payload.len() as u64, bytes);
    bytes.extend_from_slice(&payload);
}
