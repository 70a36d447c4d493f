//! A look at the ClientHello before there is any TLS state for it (RFC 8446 section 4.1.2): which server is
//! asked for (RFC 6066 section 3) and in which application protocols (RFC 7301).
//!
//! [`Peek`] collects CRYPTO frames, which may be spread over several Initial packets; [`parse`] reads what is
//! contiguous. Both are bounded. TLS parses the message again and judges it: what is accepted here may still
//! be refused there.

mod offered;

pub use offered::offered_tickets;

use crate::Assembler;
use godwit_wire::WireError;
use godwit_wire::transport_parameters::VersionInformation;
use godwit_wire::version::{DRAFT_29, MSQUIC_1};
use godwit_wire::{Malformed, Reader, Side, TransportParameters};

/// A ClientHello may be this long, with its header, in bytes.
pub const MAX_LEN: usize = 16 << 10;

/// Application protocols offered at most.
const MAX_PROTOCOLS: usize = 64;

const CLIENT_HELLO: u8 = 1;
/// A handshake message's type and length.
const HEADER_LEN: usize = 4;
const EXTENSION_SERVER_NAME: u16 = 0;
const EXTENSION_ALPN: u16 = 16;
const EXTENSION_PRE_SHARED_KEY: u16 = 41;
const EXTENSION_EARLY_DATA: u16 = 42;
const EXTENSION_TRANSPORT_PARAMETERS: u16 = 57;
/// Of versions before the standard.
const EXTENSION_TRANSPORT_PARAMETERS_DRAFT: u16 = 0xffa5;
const NAME_TYPE_HOST: u8 = 0;

/// What a ClientHello says that matters for choosing a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ClientHello {
    /// The server's name, in lower case, if the client gave one.
    pub server_name: Option<String>,
    /// The application protocols the client offers, in its order of preference.
    pub alpn: Vec<Vec<u8>>,
    /// The versions it offers (RFC 9368), if it says so in a form that can be read.
    pub versions: Option<VersionInformation>,
    /// It means to send 0-RTT packets.
    pub early_data: bool,
}

/// How far the message has been understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// It is not all there yet.
    NeedMore,
    /// It is complete.
    Complete(ClientHello),
    /// It is not a ClientHello, or longer than [`MAX_LEN`].
    Malformed,
}

/// Collects the CRYPTO frames of a client's Initial packets.
#[derive(Debug, Default)]
pub struct Peek {
    received: Assembler,
}

impl Peek {
    /// Nothing received yet.
    pub const fn new() -> Self {
        Peek { received: Assembler::new() }
    }

    /// Takes a CRYPTO frame. Fails with CRYPTO_BUFFER_EXCEEDED beyond [`MAX_LEN`].
    pub fn on_crypto(&mut self, offset: u64, data: &[u8]) -> Result<Parsed, WireError> {
        self.received.insert(offset, data, MAX_LEN)?;
        Ok(parse(self.received.contiguous()))
    }

    /// The ClientHello with its header as it came, once it is complete.
    pub fn message(&self) -> Option<&[u8]> {
        let bytes = self.received.contiguous();
        let body = body(bytes).ok().flatten()?;
        bytes.get(..body.len().saturating_add(HEADER_LEN))
    }

    /// Bytes that have come so far, contiguous or not.
    pub fn received(&self) -> u64 {
        self.received.len()
    }

    /// Bytes of memory that are kept: what has not come between others takes room as well.
    pub const fn held(&self) -> usize {
        self.received.held()
    }
}

/// Reads a ClientHello from the first bytes of a client's CRYPTO stream. What follows it is ignored.
pub fn parse(bytes: &[u8]) -> Parsed {
    match body(bytes).map(|body| body.map(client_hello)) {
        Ok(None) => Parsed::NeedMore,
        Ok(Some(Ok(hello))) => Parsed::Complete(hello),
        Ok(Some(Err(Malformed))) | Err(Malformed) => Parsed::Malformed,
    }
}

/// Whether a ClientHello has transport parameters, readable or not, by the number that they have in this version of QUIC (RFC 9001
/// section 8.2): rustls also takes those by another version's. `None` if it is not all there yet; what is no ClientHello
/// lacks nothing.
pub fn has_transport_parameters(bytes: &[u8], version: u32) -> Option<bool> {
    match body(bytes) {
        Ok(None) => None,
        Ok(Some(body)) => {
            let found = extensions(body).and_then(|all| transport_parameters_among(all, version));
            Some(found.map_or(true, |them| them.is_some()))
        }
        Err(Malformed) => Some(true),
    }
}

/// The transport parameters in a whole ClientHello of this version of QUIC, with its header, as they came. `None` if it has none,
/// or cannot be read. Nothing of them is proved before the handshake is complete.
pub fn transport_parameters(message: &[u8], version: u32) -> Option<&[u8]> {
    let body = body(message).ok().flatten()?;
    extensions(body).and_then(|all| transport_parameters_among(all, version)).ok().flatten()
}

fn transport_parameters_among(mut extensions: Reader<'_>, version: u32) -> Result<Option<&[u8]>, Malformed> {
    let wanted = match version {
        DRAFT_29 | MSQUIC_1 => EXTENSION_TRANSPORT_PARAMETERS_DRAFT,
        _ => EXTENSION_TRANSPORT_PARAMETERS,
    };
    while !extensions.is_empty() {
        let kind = extensions.u16()?;
        let content = vector16(&mut extensions)?;
        if kind == wanted {
            return Ok(Some(content));
        }
    }
    Ok(None)
}

/// What follows the header of a ClientHello, if all of it is there.
fn body(bytes: &[u8]) -> Result<Option<&[u8]>, Malformed> {
    let Some((&message_type, rest)) = bytes.split_first() else { return Ok(None) };
    if message_type != CLIENT_HELLO {
        return Err(Malformed);
    }
    let Some(([high, middle, low], rest)) = rest.split_first_chunk() else { return Ok(None) };
    let len = usize::try_from(u32::from_be_bytes([0, *high, *middle, *low])).unwrap_or(usize::MAX);
    if len > MAX_LEN.saturating_sub(HEADER_LEN) {
        return Err(Malformed);
    }
    Ok(rest.get(..len))
}

/// The extensions of a ClientHello, one after the other.
fn extensions(body: &[u8]) -> Result<Reader<'_>, Malformed> {
    let mut reader = Reader::new(body);
    let _legacy_version_and_random = reader.bytes(2 + 32)?;
    let _legacy_session_id = vector8(&mut reader)?;
    let _cipher_suites = vector16(&mut reader)?;
    let _compression_methods = vector8(&mut reader)?;
    let extensions = Reader::new(vector16(&mut reader)?);
    if reader.is_empty() { Ok(extensions) } else { Err(Malformed) }
}

fn client_hello(body: &[u8]) -> Result<ClientHello, Malformed> {
    let mut extensions = extensions(body)?;
    let (mut server_name, mut alpn) = (None, None);
    let (mut versions, mut early_data) = (None, false);
    while !extensions.is_empty() {
        let kind = extensions.u16()?;
        let content = Reader::new(vector16(&mut extensions)?);
        let repeated = match kind {
            EXTENSION_SERVER_NAME => server_name.replace(host_name(content)?).is_some(),
            EXTENSION_ALPN => alpn.replace(protocols(content)?).is_some(),
            EXTENSION_TRANSPORT_PARAMETERS => {
                // What is wrong with them is for the connection to say.
                let said = TransportParameters::version_information_of(content.rest(), Side::Client);
                versions = said.ok().flatten();
                false
            }
            EXTENSION_EARLY_DATA => std::mem::replace(&mut early_data, true),
            _ => false,
        };
        if repeated {
            return Err(Malformed);
        }
    }
    let (server_name, alpn) = (server_name.flatten(), alpn.unwrap_or_default());
    Ok(ClientHello { server_name, alpn, versions, early_data })
}

/// The host name in a server_name extension; names of other types are skipped.
fn host_name(mut extension: Reader<'_>) -> Result<Option<String>, Malformed> {
    let mut names = Reader::new(vector16(&mut extension)?);
    if !extension.is_empty() || names.is_empty() {
        return Err(Malformed);
    }
    let mut host = None;
    while !names.is_empty() {
        let kind = names.u8()?;
        let name = vector16(&mut names)?;
        if kind != NAME_TYPE_HOST {
            continue;
        }
        let plausible = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        if name.is_empty() || name.len() > 255 || !name.iter().all(plausible) || host.is_some() {
            return Err(Malformed);
        }
        host = Some(std::str::from_utf8(name).map_err(|_| Malformed)?.to_ascii_lowercase());
    }
    Ok(host)
}

fn protocols(mut extension: Reader<'_>) -> Result<Vec<Vec<u8>>, Malformed> {
    let mut names = Reader::new(vector16(&mut extension)?);
    if !extension.is_empty() || names.is_empty() {
        return Err(Malformed);
    }
    let mut protocols = Vec::new();
    while !names.is_empty() {
        let name = vector8(&mut names)?;
        if name.is_empty() || protocols.len() >= MAX_PROTOCOLS {
            return Err(Malformed);
        }
        protocols.push(name.to_vec());
    }
    Ok(protocols)
}

/// Bytes with their count in one byte before them.
fn vector8<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Malformed> {
    let len = reader.u8()?;
    reader.bytes(usize::from(len))
}

/// Bytes with their count in two bytes before them.
fn vector16<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Malformed> {
    let len = reader.u16()?;
    reader.bytes(usize::from(len))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;
    use godwit_wire::version::{V1, V2};
    use proptest::prelude::*;

    pub(super) fn with_len16(content: &[u8]) -> Vec<u8> {
        [&(content.len() as u16).to_be_bytes()[..], content].concat()
    }

    pub(super) fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
        [&kind.to_be_bytes()[..], &with_len16(content)].concat()
    }

    pub(super) fn sni(name: &[u8]) -> Vec<u8> {
        extension(0, &with_len16(&[&[0][..], &with_len16(name)].concat()))
    }

    fn alpn(names: &[&[u8]]) -> Vec<u8> {
        let list: Vec<u8> = names.iter().flat_map(|name| [&[name.len() as u8][..], name].concat()).collect();
        extension(16, &with_len16(&list))
    }

    pub(super) fn message(extensions: &[Vec<u8>]) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend_from_slice(&[7; 32]);
        body.push(0);
        body.extend_from_slice(&with_len16(&[0x13, 0x01]));
        body.extend_from_slice(&[1, 0]);
        body.extend_from_slice(&with_len16(&extensions.concat()));
        let len = (body.len() as u32).to_be_bytes();
        [&[1, len[1], len[2], len[3]][..], &body].concat()
    }

    fn complete(parsed: Parsed) -> ClientHello {
        match parsed {
            Parsed::Complete(hello) => hello,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn name_and_protocols_are_found() {
        let bytes =
            message(&[extension(0x2b, &[2, 3, 4]), sni(b"WWW.Example.org"), alpn(&[b"h3", b"hq-interop"])]);
        let hello = complete(parse(&bytes));
        assert_eq!(hello.server_name.as_deref(), Some("www.example.org"));
        assert_eq!(hello.alpn, [b"h3".to_vec(), b"hq-interop".to_vec()]);
        assert_eq!(complete(parse(&message(&[]))), ClientHello::default());
    }

    #[test]
    fn every_cut_needs_more() {
        let bytes = message(&[sni(b"example.org"), alpn(&[b"h3"])]);
        assert!((0..bytes.len()).all(|len| parse(&bytes[..len]) == Parsed::NeedMore));
        let mut longer = bytes;
        longer.extend_from_slice(b"more");
        assert!(matches!(parse(&longer), Parsed::Complete(_)));
    }

    #[test]
    fn transport_parameters_are_known_by_one_number() {
        for (kind, known) in [(57, [true, true, false]), (0xffa5, [false, false, true])] {
            let bytes = message(&[sni(b"example.org"), extension(kind, b"of any form")]);
            assert!((0..bytes.len()).all(|len| has_transport_parameters(&bytes[..len], V1).is_none()));
            let found = [V1, V2, DRAFT_29].map(|version| has_transport_parameters(&bytes, version));
            assert_eq!(found, known.map(Some));
        }
        assert_eq!(has_transport_parameters(&[2], V1), Some(true), "no ClientHello");
        assert_eq!(has_transport_parameters(&[1, 0, 0, 1, 0], V1), Some(true), "TLS will say what is wrong");
    }

    #[test]
    fn nonsense_is_malformed() {
        let bad: [Vec<u8>; 9] = [
            vec![2, 0, 0, 0],
            vec![1, 0xff, 0xff, 0xff],
            vec![1, 0, 0, 1, 0],
            message(&[sni(b"a"), sni(b"b")]),
            message(&[alpn(&[b"h3"]), alpn(&[b"h3"])]),
            message(&[sni(b"not a name")]),
            message(&[sni(b"")]),
            message(&[alpn(&[b""])]),
            message(&[alpn(&vec![&b"x"[..]; MAX_PROTOCOLS + 1])]),
        ];
        for (at, bytes) in bad.iter().enumerate() {
            assert_eq!(parse(bytes), Parsed::Malformed, "case {at}");
        }
    }

    #[test]
    fn transport_parameters_are_shown_as_they_came() {
        let parameters = extension(57, &[1, 2, 3]);
        let whole = message(&[sni(b"host"), parameters.clone(), parameters]);
        assert_eq!(transport_parameters(&whole, V1), Some(&[1, 2, 3][..]));
        assert_eq!(transport_parameters(&message(&[sni(b"host")]), V1), None);
        // Those of drafts had another number.
        assert_eq!(transport_parameters(&message(&[extension(0xffa5, &[1])]), V1), None);
        assert_eq!(transport_parameters(&whole[..whole.len() - 1], V1), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..600), body in any::<bool>()) {
            let bytes = if body { [&[1, 0, (bytes.len() >> 8) as u8, bytes.len() as u8][..], &bytes].concat() } else { bytes };
            let _ = parse(&bytes);
        }

        #[test]
        fn changed_bytes_do_no_harm(at in 0usize..100, to in any::<u8>()) {
            let mut bytes = message(&[sni(b"example.org"), alpn(&[b"h3", b"perf"])]);
            let at = at % bytes.len();
            bytes[at] = to;
            let _ = parse(&bytes);
        }

        #[test]
        fn frames_may_come_in_any_order(cuts in prop::collection::vec(0usize..2000, 0..8), seed in any::<u64>()) {
            let bytes = message(&[extension(0x33, &[9; 1500]), sni(b"example.org"), alpn(&[b"h3"])]);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % bytes.len()).chain([0, bytes.len()]).collect();
            cuts.sort_unstable();
            let mut frames: Vec<_> = cuts.windows(2).map(|pair| pair[0]..pair[1]).collect();
            let middle = seed as usize % frames.len();
            frames.rotate_left(middle);
            let (last, first) = frames.split_last().unwrap();
            let mut peek = Peek::new();
            for frame in first {
                let _ = peek.on_crypto(frame.start as u64, &bytes[frame.clone()]).unwrap();
            }
            let hello = complete(peek.on_crypto(last.start as u64, &bytes[last.clone()]).unwrap());
            prop_assert_eq!(hello.server_name.as_deref(), Some("example.org"));
        }
    }
}
