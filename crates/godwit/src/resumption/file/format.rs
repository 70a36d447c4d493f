//! The file as bytes.
//!
//! A line with the version; a checksum of the rest (8 bytes, FNV-1a); then the entries one after another. Numbers are in
//! network byte order, byte strings and lists come after their length or number (4 bytes). An entry is: server name,
//! list of application protocols, QUIC version (4), network (8); last use (8, seconds since the Unix epoch); key
//! exchange group (2, 0 is none); list of tokens; list of tickets, each with its expiry (8), whether it permits 0-RTT
//! (1), and itself; then 0 for nothing; or 1 and round-trip time (8, nanoseconds), window (8) and application data; or 2
//! and the same with the rate (8, bytes per second) after the window, where one was measured.

use super::super::{Remembered, SessionKey};
use super::content::{Content, Entry, MAX_SERVERS, MAX_TICKETS, MAX_TOKENS, Ticket};
use bytes::Bytes;
use rustls::NamedGroup;
use std::time::Duration;

/// The first line.
const HEAD: &[u8] = b"godwit sessions 1\n";
/// What the file may take, in bytes.
pub(super) const MAX_FILE: u64 = 2 << 20;
/// Application protocols of one connection.
const MAX_PROTOCOLS: usize = 64;
/// What is remembered of a connection without a rate, as files had it before there were any.
const WITHOUT_RATE: u8 = 1;
/// The same with a rate.
const WITH_RATE: u8 = 2;

/// Why there is nothing to be had from a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// It is of this format, and not as it was written.
    Damaged,
    /// It is something else.
    Foreign,
}

/// All of it, as much as there may be: the oldest entries go if need be.
pub(super) fn encode(content: &mut Content) -> Vec<u8> {
    loop {
        let mut body = Vec::new();
        for (key, entry) in &content.entries {
            write(key, entry, &mut body);
        }
        let whole = HEAD.len().saturating_add(8).saturating_add(body.len());
        if whole as u64 <= MAX_FILE || !content.forget_oldest() {
            return [HEAD, &checksum(&body).to_be_bytes(), &body].concat();
        }
    }
}

/// Nothing at all is a file without entries.
pub(super) fn decode(bytes: &[u8]) -> Result<Content, Unreadable> {
    if bytes.is_empty() {
        return Ok(Content::default());
    }
    let Some(rest) = bytes.strip_prefix(HEAD) else {
        // What was cut off within the first line is still ours.
        return Err(if HEAD.starts_with(bytes) { Unreadable::Damaged } else { Unreadable::Foreign });
    };
    let body = rest.split_first_chunk().filter(|(sum, body)| u64::from_be_bytes(**sum) == checksum(body));
    let mut reader = Reader(body.ok_or(Unreadable::Damaged)?.1);
    let mut content = Content::default();
    while !reader.0.is_empty() {
        let (key, entry) = read(&mut reader).ok_or(Unreadable::Damaged)?;
        content.entries.insert(key, entry);
        if content.entries.len() > MAX_SERVERS {
            return Err(Unreadable::Damaged);
        }
    }
    Ok(content)
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

fn write(key: &SessionKey, entry: &Entry, out: &mut Vec<u8>) {
    put(out, key.server_name.as_bytes());
    put_list(out, &key.alpn, |out, protocol| put(out, protocol));
    out.extend_from_slice(&key.version.to_be_bytes());
    out.extend_from_slice(&key.network.to_be_bytes());
    out.extend_from_slice(&entry.used.as_secs().to_be_bytes());
    out.extend_from_slice(&entry.group.map_or(0, u16::from).to_be_bytes());
    put_list(out, &entry.tokens, |out, token| put(out, token));
    put_list(out, &entry.tickets, |out, ticket| {
        out.extend_from_slice(&ticket.expires.as_secs().to_be_bytes());
        out.push(ticket.early.into());
        put(out, &ticket.bytes);
    });
    match &entry.remembered {
        Some(remembered) => write_remembered(remembered, out),
        None => out.push(0),
    }
}

fn write_remembered(remembered: &Remembered, out: &mut Vec<u8>) {
    let Remembered { rtt, window, rate, application, .. } = remembered;
    out.push(if *rate == 0 { WITHOUT_RATE } else { WITH_RATE });
    out.extend_from_slice(&u64::try_from(rtt.as_nanos()).unwrap_or(u64::MAX).to_be_bytes());
    out.extend_from_slice(&window.to_be_bytes());
    if *rate > 0 {
        out.extend_from_slice(&rate.to_be_bytes());
    }
    put(out, application);
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    put_len(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn put_list<T>(out: &mut Vec<u8>, list: &[T], mut put: impl FnMut(&mut Vec<u8>, &T)) {
    put_len(out, list.len());
    list.iter().for_each(|item| put(out, item));
}

fn put_len(out: &mut Vec<u8>, len: usize) {
    // Nothing here is as long as that: what there is has limits of its own.
    out.extend_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes());
}

/// `None` if there is not what must be there.
fn read(reader: &mut Reader<'_>) -> Option<(SessionKey, Entry)> {
    let server_name = String::from_utf8(reader.bytes()?.to_vec()).ok()?;
    let alpn = reader.list(MAX_PROTOCOLS, |reader| reader.bytes().map(<[u8]>::to_vec))?;
    let version = u32::from_be_bytes(reader.array()?);
    let network = u64::from_be_bytes(reader.array()?);
    let used = Duration::from_secs(u64::from_be_bytes(reader.array()?));
    let group = Some(u16::from_be_bytes(reader.array()?)).filter(|group| *group != 0).map(NamedGroup::from);
    let tokens = reader.list(MAX_TOKENS, |reader| reader.bytes().map(Bytes::copy_from_slice))?;
    let tickets = reader.list(MAX_TICKETS, |reader| {
        let expires = Duration::from_secs(u64::from_be_bytes(reader.array()?));
        let early = reader.flag()?;
        Some(Ticket { expires, early, bytes: reader.bytes()?.to_vec() })
    })?;
    let remembered = match reader.array()? {
        [0] => None,
        [WITHOUT_RATE] => Some(read_remembered(reader, false)?),
        [WITH_RATE] => Some(read_remembered(reader, true)?),
        _ => return None,
    };
    let mut key = SessionKey::new(server_name, alpn, version);
    key.network = network;
    Some((key, Entry { used, tickets, tokens, remembered, group }))
}

fn read_remembered(reader: &mut Reader<'_>, with_rate: bool) -> Option<Remembered> {
    let mut remembered = Remembered::default();
    remembered.rtt = Duration::from_nanos(u64::from_be_bytes(reader.array()?));
    remembered.window = u64::from_be_bytes(reader.array()?);
    if with_rate {
        remembered.rate = u64::from_be_bytes(reader.array()?);
    }
    remembered.application = Bytes::copy_from_slice(reader.bytes()?);
    Some(remembered)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.array()? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }

    fn len(&mut self) -> Option<usize> {
        usize::try_from(u32::from_be_bytes(self.array()?)).ok()
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.len()?;
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    fn list<T>(&mut self, most: usize, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let len = self.len().filter(|len| *len <= most)?;
        (0..len).map(|_| read(self)).collect()
    }
}
