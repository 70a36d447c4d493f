//! Questions to the kernel about its network (rtnetlink, `rtnetlink(7)`): one that asks for everything of a kind, and the
//! messages and attributes of the answer. What is cut short is left out.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};

/// Bytes before a message: its length with them, its type, flags, sequence number and sender.
const HEADER: usize = 16;
/// Where messages and attributes begin.
const ALIGNMENT: usize = 4;
/// No answer of the kernel comes in larger pieces.
const LARGEST_PIECE: usize = 32 << 10;
/// Pieces of one answer at most: thousands of interfaces fit.
const MOST_PIECES: usize = 1024;

/// The types of messages that end an answer.
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// A question for all there is of a kind (`NLM_F_REQUEST`, `NLM_F_DUMP`).
const REQUEST_ALL: u16 = 0x301;
/// What was asked for changed meanwhile (`NLM_F_DUMP_INTR`).
const INTERRUPTED: u16 = 0x10;

/// A message: what it is, and what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    pub(crate) kind: u16,
    flags: u16,
    pub(crate) payload: &'a [u8],
}

/// The messages of a piece.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let len = usize::try_from(u32_at(bytes, 0)?).ok()?;
        let (kind, flags) = (u16_at(bytes, 4)?, u16_at(bytes, 6)?);
        let payload = bytes.get(HEADER..len)?;
        bytes = bytes.get(len.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
        Some(Message { kind, flags, payload })
    })
}

/// The attributes of a message, by number: what follows the part that all messages of its type have.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (len, kind) = (usize::from(u16_at(bytes, 0)?), u16_at(bytes, 2)?);
        let value = bytes.get(4..len)?;
        bytes = bytes.get(len.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// An attribute that is text, which ends with a zero.
pub(crate) fn text(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value.split(|byte| *byte == 0).next()?).ok()
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Asks for all there is of `kind`, with as many zeroes behind the header as its messages have before their attributes.
/// Calls `each` with every message of that answer.
///
/// # Errors
/// If the kernel does not answer, says that it cannot, or what was asked for changed meanwhile.
pub(crate) fn ask_for_all(kind: u16, fixed: usize, mut each: impl FnMut(u16, &[u8])) -> io::Result<()> {
    let mut socket = open()?;
    socket.write_all(&question(kind, fixed))?;
    let mut piece = vec![0; LARGEST_PIECE];
    for _ in 0..MOST_PIECES {
        // The kernel has begun its answer before the question counts as written, and goes on as it is read.
        let len = socket.read(&mut piece)?;
        for message in messages(piece.get(..len).unwrap_or_default()) {
            match message.kind {
                _ if message.flags & INTERRUPTED != 0 => return Err(io::ErrorKind::Interrupted.into()),
                ERROR => return Err(error_of(message.payload)),
                DONE => return Ok(()),
                kind => each(kind, message.payload),
            }
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

fn question(kind: u16, fixed: usize) -> Vec<u8> {
    let len = u32::try_from(HEADER + fixed).unwrap_or(u32::MAX);
    let mut bytes = Vec::with_capacity(HEADER + fixed);
    bytes.extend(len.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(REQUEST_ALL.to_ne_bytes());
    bytes.resize(HEADER + fixed, 0);
    bytes
}

fn error_of(payload: &[u8]) -> io::Error {
    match u32_at(payload, 0) {
        Some(errno) => io::Error::from_raw_os_error(errno.cast_signed().wrapping_neg()),
        None => io::ErrorKind::InvalidData.into(),
    }
}

/// A socket to the kernel's routing, of which reading and writing are those of a file: it is not bound to an address, and
/// what is written goes to the kernel.
fn open() -> io::Result<File> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no memory is handed over.
    let fd = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was opened just now and belongs to nobody else.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(fd) }))
}

#[cfg(test)]
pub(crate) mod testing {
    /// A message of this type.
    pub(crate) fn message(kind: u16, flags: u16, payload: &[u8]) -> Vec<u8> {
        let len = super::HEADER + payload.len();
        let mut bytes = (len as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend([0; 8]);
        bytes.extend(payload);
        bytes.resize(len.next_multiple_of(super::ALIGNMENT), 0xee);
        bytes
    }

    /// An attribute with this number.
    pub(crate) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let len = 4 + value.len();
        let mut bytes = (len as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(len.next_multiple_of(super::ALIGNMENT), 0xee);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{attribute, message};
    use super::*;

    #[test]
    fn messages_and_attributes_follow_one_another_whatever_their_length() {
        let piece = [message(16, 0, b"abc"), message(17, 2, b""), message(18, 0, b"defg")].concat();
        let read: Vec<_> = messages(&piece).map(|message| (message.kind, message.payload)).collect();
        assert_eq!(read, [(16, &b"abc"[..]), (17, b""), (18, b"defg")]);
        let listed = [attribute(1, b"fq\0"), attribute(2, b""), attribute(7, &[9; 9])].concat();
        let read: Vec<_> = attributes(&listed).collect();
        assert_eq!(read, [(1, &b"fq\0"[..]), (2, b""), (7, &[9; 9])]);
        assert_eq!(
            (text(b"fq\0\0"), text(b"mq"), text(b""), text(&[0xff])),
            (Some("fq"), Some("mq"), Some(""), None)
        );
    }

    #[test]
    fn what_is_cut_short_or_nonsense_ends_the_reading() {
        let piece = [message(16, 0, b"abcd"), message(17, 0, b"efgh")].concat();
        for len in 0..piece.len() {
            assert_eq!(messages(&piece[..len]).count(), len / 20, "{len}");
        }
        // A length below that of the header, or of nothing: it must not be read for ever.
        for len in [0_u32, 1, 15] {
            let mut piece = message(16, 0, b"abcd");
            piece[..4].copy_from_slice(&len.to_ne_bytes());
            assert_eq!(messages(&piece).count(), 0, "{len}");
        }
        let listed = attribute(1, b"abcd");
        for len in 0..listed.len() {
            assert_eq!(attributes(&listed[..len]).count(), 0, "{len}");
        }
        for len in [0_u16, 3] {
            let mut listed = attribute(1, b"abcd");
            listed[..2].copy_from_slice(&len.to_ne_bytes());
            assert_eq!(attributes(&listed).count(), 0, "{len}");
        }
        assert_eq!(messages(&[0xff; 64]).count() + attributes(&[0xff; 64]).count(), 0);
    }

    #[test]
    fn errors_are_told_by_their_numbers() {
        assert_eq!(error_of(&(-95_i32).to_ne_bytes()).raw_os_error(), Some(95));
        assert_eq!(error_of(&[1]).kind(), io::ErrorKind::InvalidData);
    }
}
