//! What was seen at one end of the relay: sizes, marks, paths and the parts of headers that anybody can read.

use godwit_base::Ecn;
pub(super) use godwit_relay::Way;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::net::SocketAddr;
use std::time::Duration;

/// QUIC version 2 (RFC 9369).
pub(super) const V2: u32 = 0x6b33_43cf;
/// An Initial or Handshake packet that is not answered by then is not answered.
const ANSWERED_WITHIN: Duration = Duration::from_secs(3);
/// So many in a row are no chance.
const UNANSWERED: usize = 2;
/// QUIC version 1 (RFC 9000).
pub(super) const V1: u32 = 1;
/// Bytes of the integrity tag of a Retry.
const RETRY_TAG: usize = 16;

/// The types of packets with a long header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Initial,
    ZeroRtt,
    Handshake,
    Retry,
    VersionNegotiation,
}

/// A packet with a long header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Long {
    pub(super) kind: Kind,
    pub(super) version: u32,
    pub(super) dcid: Vec<u8>,
    pub(super) scid: Vec<u8>,
    /// The token of an Initial packet, or of a Retry.
    pub(super) token: Vec<u8>,
    /// Bytes with the header.
    pub(super) len: usize,
}

/// A datagram.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    /// Since the relay began.
    pub(super) at: Duration,
    pub(super) way: Way,
    pub(super) len: usize,
    pub(super) ecn: Ecn,
    /// Number of the pair of addresses, as this end sees them: both the client's and the server's count.
    pub(super) path: usize,
    /// The packets with long headers in it.
    pub(super) long: Vec<Long>,
    /// Bytes of a packet with a short header in it, and the first bytes of its connection id.
    pub(super) short: Option<(usize, [u8; 4])>,
}

impl Seen {
    pub(super) fn new(way: Way, path: usize, ecn: Ecn, datagram: &[u8]) -> Seen {
        let (at, len) = (Duration::ZERO, datagram.len());
        let mut seen = Seen { at, way, len, ecn, path, long: Vec::new(), short: None };
        let mut rest = datagram;
        while let Some(first) = rest.first() {
            // Padding may follow the packets of a handshake.
            if rest.iter().all(|byte| *byte == 0) {
                break;
            }
            if first & 0x80 == 0 {
                let id = rest.get(1..5).and_then(|id| id.try_into().ok()).unwrap_or_default();
                seen.short = Some((rest.len(), id));
                break;
            }
            let Some(long) = Long::parse(rest) else { break };
            rest = rest.get(long.len..).unwrap_or_default();
            seen.long.push(long);
        }
        seen
    }

    /// Whether there is a packet of this type in it.
    pub(super) fn has(&self, kind: Kind) -> bool {
        self.long.iter().any(|long| long.kind == kind)
    }
}

impl Long {
    /// Reads the header at the front of `bytes`.
    fn parse(bytes: &[u8]) -> Option<Long> {
        let mut reader = Reader(bytes);
        let first = reader.byte()?;
        let version = u32::from_be_bytes(reader.take(4)?.try_into().ok()?);
        let dcid = reader.counted()?;
        let scid = reader.counted()?;
        let number = usize::from(first >> 4 & 3);
        let kind = match version {
            0 => Kind::VersionNegotiation,
            V2 => [Kind::Retry, Kind::Initial, Kind::ZeroRtt, Kind::Handshake][number],
            _ => [Kind::Initial, Kind::ZeroRtt, Kind::Handshake, Kind::Retry][number],
        };
        let mut token = Vec::new();
        let len = match kind {
            Kind::Retry => {
                token.extend(reader.0.get(..reader.0.len().checked_sub(RETRY_TAG)?)?);
                bytes.len()
            }
            Kind::VersionNegotiation => bytes.len(),
            _ => {
                if kind == Kind::Initial {
                    let len = reader.varint()?;
                    token.extend(reader.take(len)?);
                }
                let length = reader.varint()?;
                (bytes.len() - reader.0.len()).checked_add(length)?
            }
        };
        (len <= bytes.len()).then_some(Long { kind, version, dcid, scid, token, len })
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn counted(&mut self) -> Option<Vec<u8>> {
        let count = self.byte()?;
        self.take(usize::from(count)).map(<[u8]>::to_vec)
    }

    fn varint(&mut self) -> Option<usize> {
        let first = self.byte()?;
        let more = self.take((1 << (first >> 6)) - 1)?;
        let value = more.iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte));
        usize::try_from(value).ok()
    }
}

/// Everything that was seen, in order of time, by each end.
#[derive(Debug, Clone, Default)]
pub(super) struct Trace {
    /// Next to the client: before the link on the way up, after it on the way down.
    pub(super) client: Vec<Seen>,
    /// Next to the server.
    pub(super) server: Vec<Seen>,
    /// The client's own addresses.
    pub(super) client_addresses: Vec<SocketAddr>,
    /// The client's addresses that the server saw, behind any translation.
    pub(super) server_addresses: Vec<SocketAddr>,
    /// There was more than is kept: an end floods the other. The rest did not pass.
    pub(super) flooded: bool,
}

impl Trace {
    /// Datagrams that are kept at each end; a case has a tenth of that.
    pub(super) const MOST: usize = 300_000;

    /// Handshakes that the server took part in: it chooses a connection id for each.
    pub(super) fn handshakes(&self) -> usize {
        let initials =
            self.sent_by_server().flat_map(|seen| &seen.long).filter(|long| long.kind == Kind::Initial);
        initials.map(|long| &long.scid).collect::<BTreeSet<_>>().len()
    }

    /// Everything in lines, for those who look for what went wrong.
    pub(super) fn listing(&self) -> String {
        let mut out = String::new();
        for (end, list, addresses) in [
            ("client", &self.client, &self.client_addresses),
            ("server", &self.server, &self.server_addresses),
        ] {
            let _ = writeln!(out, "at the {end}'s end, where the client is {addresses:?}");
            for seen in list {
                let ms = seen.at.as_secs_f64() * 1e3;
                let _ =
                    write!(out, "{ms:10.3} {:?} path {} {:?} {:4}", seen.way, seen.path, seen.ecn, seen.len);
                for long in &seen.long {
                    let _ =
                        write!(out, " {:?} v{:x} {:x?}>{:x?}", long.kind, long.version, long.scid, long.dcid);
                }
                match seen.short {
                    Some((len, id)) => drop(writeln!(out, " short {len} >{id:x?}")),
                    None => out.push('\n'),
                }
            }
        }
        out
    }

    /// Says so if the peer left the last Initial or Handshake packets of a connection that came to it without the
    /// acknowledgement that they must have (RFC 9000 section 13.2.1).
    pub(super) fn unanswered(&self, peer_is_server: bool) -> Option<String> {
        let (seen_by_peer, to_peer) =
            if peer_is_server { (&self.server, Way::Up) } else { (&self.client, Way::Down) };
        // By type and the peer's connection id: when it last sent, and how much came later than that.
        let mut silences: BTreeMap<(Kind, &[u8]), (Duration, usize)> = BTreeMap::new();
        for (seen, long) in
            seen_by_peer.iter().flat_map(|seen| seen.long.iter().map(move |long| (seen, long)))
        {
            if ![Kind::Initial, Kind::Handshake].contains(&long.kind) {
                continue;
            }
            if seen.way != to_peer {
                silences.insert((long.kind, &long.scid), (seen.at, 0));
            } else if let Some((last, later)) = silences.get_mut(&(long.kind, &long.dcid[..]))
                && seen.at > *last + ANSWERED_WITHIN
            {
                *later += 1;
            }
        }
        silences.into_iter().find(|(_, (_, later))| *later >= UNANSWERED).map(|((kind, _), (last, later))| {
            let last = last.as_secs_f64();
            format!(
                "the peer was silent: {later} {kind:?} packets that came after {last:.1} s were not answered"
            )
        })
    }

    /// What the server sent, whether it arrived or not.
    pub(super) fn sent_by_server(&self) -> impl Iterator<Item = &Seen> {
        self.server.iter().filter(|seen| seen.way == Way::Down)
    }

    /// What the client sent, whether it arrived or not.
    pub(super) fn sent_by_client(&self) -> impl Iterator<Item = &Seen> {
        self.client.iter().filter(|seen| seen.way == Way::Up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(first: u8, version: u32, rest: &[u8]) -> Vec<u8> {
        let mut bytes = vec![first];
        bytes.extend(version.to_be_bytes());
        bytes.extend([2, 1, 2, 1, 9]);
        bytes.extend(rest);
        bytes
    }

    #[test]
    fn coalesced_packets_are_taken_apart() {
        let mut datagram = long(0xc0, 1, &[1, 0xff, 0x40, 3, 7, 7, 7]);
        datagram.extend(long(0xe0, 1, &[2, 7, 7]));
        datagram.extend([0x40, 1, 2, 3, 4, 5]);
        let seen = Seen::new(Way::Up, 0, Ecn::Ect0, &datagram);
        assert_eq!(
            seen.long.iter().map(|long| long.kind).collect::<Vec<_>>(),
            [Kind::Initial, Kind::Handshake]
        );
        assert_eq!((seen.long[0].len, seen.long[1].len), (17, 13));
        assert_eq!(seen.short, Some((6, [1, 2, 3, 4])));
        let mut padded = long(0xe0, 1, &[2, 7, 7]);
        padded.extend([0; 20]);
        let seen = Seen::new(Way::Up, 0, Ecn::Ect0, &padded);
        assert_eq!((seen.long.len(), seen.short), (1, None));
    }

    #[test]
    fn who_does_not_answer_is_told_of() {
        let packet = |way, at, ids: [u8; 2]| {
            let mut bytes = vec![0xe0, 0, 0, 0, 1, 1, ids[0], 1, ids[1], 2, 7, 7];
            bytes.extend([0x40, 1, 2, 3, 4, 5]);
            Seen { at: Duration::from_secs(at), ..Seen::new(way, 0, Ecn::NotEct, &bytes) }
        };
        let mut trace = Trace { server: vec![packet(Way::Up, 1, [8, 9])], ..Trace::default() };
        trace.server.push(packet(Way::Down, 2, [9, 5]));
        trace.server.extend([3, 9].map(|at| packet(Way::Up, at, [5, 9])));
        assert_eq!(trace.unanswered(true), None, "one may just have come");
        trace.server.push(packet(Way::Up, 20, [5, 9]));
        let said = trace.unanswered(true).unwrap();
        assert!(said.contains("silent: 2 Handshake packets that came after 2.0 s"), "{said}");
        assert_eq!(trace.unanswered(false), None);
        trace.server.push(packet(Way::Down, 21, [9, 5]));
        assert_eq!(trace.unanswered(true), None);
    }

    #[test]
    fn version_2_has_other_types() {
        let datagram = long(0xd0, V2, &[0, 1, 7]);
        assert!(Seen::new(Way::Down, 0, Ecn::NotEct, &datagram).has(Kind::Initial));
        let mut retry = vec![1, 2, 3];
        retry.extend([0; RETRY_TAG]);
        let seen = Seen::new(Way::Down, 0, Ecn::NotEct, &long(0xc0, V2, &retry));
        assert!(seen.has(Kind::Retry) && seen.long[0].token == [1, 2, 3]);
    }

    #[test]
    fn damaged_headers_end_the_reading() {
        for len in 0..17 {
            let datagram = long(0xc0, 1, &[1, 0xff, 0x40, 3, 7, 7, 7]);
            let seen = Seen::new(Way::Up, 0, Ecn::NotEct, &datagram[..len]);
            assert!(seen.long.is_empty() && seen.short.is_none(), "{len}");
        }
    }
}
