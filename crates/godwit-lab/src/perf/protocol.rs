//! The "perf" protocol that QUIC implementations measure each other with.
//!
//! The client opens a bidirectional stream. Its first 8 bytes are the length of the answer, big-endian; what
//! follows, up to the end, is upload. The server reads to the end and answers with that many bytes of no
//! meaning; ours are those of `pattern`. A length of [`UNTIL_STOPPED`] asks for more than can ever be sent: the client stops the stream when
//! it has had enough. Unidirectional streams are read and never answered.
//!
//! Over TCP there are no streams: each connection is one, with one request after the other. A request begins with 16 bytes,
//! the lengths of the answer and of the upload that follows, both big-endian. An upload of [`UNTIL_STOPPED`] ends where the
//! client ends its side, and after it the server ends the other. The client ends a download of [`UNTIL_STOPPED`] with the
//! connection. This is of our own making, and spoken by this program only.

use super::pattern;
use bytes::Bytes;

/// The application protocol of TLS (ALPN).
pub(super) const ALPN: &[u8] = b"perf";

/// The answer's length that means: until the client stops it.
pub(super) const UNTIL_STOPPED: u64 = u64::MAX;

/// Bytes written at once, by both ends.
pub(super) const WRITE: usize = pattern::PIECE;

/// The code of streams and connections that end in order.
pub(super) const NO_ERROR: u32 = 0;

/// The code with which a server resets a stream that ended before its header did.
pub(super) const BAD_REQUEST: u32 = 1;

const HEADER: usize = 8;

/// Bytes of a request's header over TCP.
pub(super) const TCP_HEADER: usize = 16;

/// The most that a record of TLS carries (RFC 8446 section 5.1).
pub(super) const TLS_RECORD: usize = 16 << 10;

/// What is written of an answer from a position on: up to [`WRITE`] bytes of `remaining`, without copying.
pub(super) fn filling(position: u64, remaining: u64) -> Bytes {
    let len = usize::try_from(remaining).map_or(WRITE, |remaining| remaining.min(WRITE));
    let there = pattern::at(position);
    Bytes::from_static(there.get(..len).unwrap_or(there))
}

/// Every byte of an upload, which nobody looks at.
const UPLOAD: u8 = 0x67;

static UPLOADED: [u8; WRITE] = [UPLOAD; WRITE];

/// What is written of an upload: up to [`WRITE`] bytes of `remaining`, without copying.
pub(super) fn upload(remaining: u64) -> Bytes {
    let len = usize::try_from(remaining).map_or(WRITE, |remaining| remaining.min(WRITE));
    Bytes::from_static(UPLOADED.get(..len).unwrap_or(&UPLOADED))
}

/// The beginning of a request that asks for `response` bytes.
pub(super) fn header(response: u64) -> Bytes {
    Bytes::copy_from_slice(&response.to_be_bytes())
}

/// The same over TCP, where the length of the upload is told as well.
pub(super) fn tcp_header(response: u64, upload: u64) -> Bytes {
    Bytes::copy_from_slice(&[response.to_be_bytes(), upload.to_be_bytes()].concat())
}

/// A whole request: a header and what is uploaded after it.
#[derive(Debug)]
pub(super) struct Request {
    /// The header, and what of the upload is written with it.
    first: Bytes,
    /// Bytes of the upload after that.
    rest: u64,
}

/// A request over TCP with `upload` bytes.
pub(super) fn tcp_request(response: u64, upload: u64) -> Request {
    Request::new(&tcp_header(response, upload), upload)
}

/// The same over QUIC.
pub(super) fn request(response: u64, upload: u64) -> Request {
    Request::new(&header(response), upload)
}

impl Request {
    fn new(header: &[u8], upload: u64) -> Request {
        let mut first = header.to_vec();
        let room = WRITE.saturating_sub(header.len());
        let with_header = usize::try_from(upload).map_or(room, |upload| upload.min(room));
        first.resize(header.len() + with_header, UPLOAD);
        Request { first: Bytes::from(first), rest: upload - with_header as u64 }
    }

    /// The pieces to be written. They are made one by one: an upload may have any length.
    pub(super) fn pieces(&self) -> impl Iterator<Item = Bytes> + use<> {
        let mut remaining = self.rest;
        let rest = std::iter::from_fn(move || {
            let piece = upload(remaining);
            remaining -= piece.len() as u64;
            (!piece.is_empty()).then_some(piece)
        });
        std::iter::once(self.first.clone()).chain(rest)
    }
}

/// A request's header as it arrives, in whatever pieces.
#[derive(Debug, Default)]
pub(super) struct Header {
    bytes: [u8; HEADER],
    len: usize,
}

impl Header {
    /// Takes from the next piece of the stream what belongs to the header.
    pub(super) fn feed(&mut self, piece: &[u8]) {
        let missing = self.bytes.get_mut(self.len..).unwrap_or_default();
        let taken = missing.len().min(piece.len());
        for (to, from) in missing.iter_mut().zip(piece) {
            *to = *from;
        }
        self.len += taken;
    }

    /// The length of the answer, once it is known.
    pub(super) fn response(&self) -> Option<u64> {
        (self.len == HEADER).then(|| u64::from_be_bytes(self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(request: &Request) -> Vec<u8> {
        request.pieces().flatten().collect()
    }

    #[test]
    fn an_upload_may_have_any_length() {
        let request = request(5, u64::MAX);
        assert!(request.pieces().take(3).all(|piece| piece.len() == WRITE));
    }

    #[test]
    fn a_header_may_come_in_pieces() {
        let request = whole(&request(0x0102_0304_0506_0708, 3));
        assert_eq!(request.len(), 11);
        for cut in 0..request.len() {
            let (left, right) = request.split_at(cut);
            let mut header = Header::default();
            header.feed(left);
            assert_eq!(header.response().is_some(), cut >= HEADER, "{cut}");
            header.feed(right);
            assert_eq!(header.response(), Some(0x0102_0304_0506_0708));
        }
    }

    #[test]
    fn a_header_needs_all_its_bytes() {
        let mut header = Header::default();
        for byte in 0..7 {
            header.feed(&[byte]);
            header.feed(&[]);
            assert_eq!(header.response(), None);
        }
        header.feed(&[7, 8, 9]);
        assert_eq!(header.response(), Some(0x0001_0203_0405_0607));
    }

    #[test]
    fn filling_is_bounded() {
        for position in [0, 1, 4092, 4093, u64::MAX] {
            assert_eq!(filling(position, UNTIL_STOPPED).len(), WRITE);
            assert_eq!(filling(position, WRITE as u64 + 1).len(), WRITE);
            assert_eq!(filling(position, 10).len(), 10);
            assert!(filling(position, 0).is_empty());
        }
    }

    #[test]
    fn requests_carry_what_was_asked_for() {
        for upload in [0, 1, 512, WRITE as u64 - 8, WRITE as u64 - 7, 200_000] {
            let request = request(5, upload);
            assert!(request.pieces().all(|piece| piece.len() <= WRITE && !piece.is_empty()));
            let over_quic = whole(&request);
            assert_eq!(over_quic.len() as u64, 8 + upload);
            assert_eq!(over_quic[..8], 5_u64.to_be_bytes());
            let over_tcp = whole(&tcp_request(5, upload));
            assert_eq!((&over_tcp[..8], &over_tcp[8..16]), (&over_quic[..8], &upload.to_be_bytes()[..]));
            assert_eq!(over_tcp[16..], over_quic[8..]);
        }
    }
}
