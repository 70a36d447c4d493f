//! What an older generation tells a newer one: lines of words, so that versions of the program that know different
//! things understand each other. Lines whose first word is not known are skipped.

use godwit_transport::Begun;
use godwit_transport::tls::secrets::KEY_LEN;
use godwit_wire::ConnectionId;
use std::fmt::Write;
use std::io;
use std::os::fd::RawFd;

/// What an offer begins with.
pub(crate) const GREETING: &str = "godwit hand-over 1";
/// What ends it.
pub(crate) const END: &str = "end";
/// The newer generation does without these sockets: no other word follows.
pub(crate) const DECLINED: &str = "declined";
/// The newer generation gives up. The rest of the line says why.
pub(crate) const SORRY: &str = "sorry ";
/// The newer generation has everything in place.
pub(crate) const READY: &str = "ready";
/// The older generation receives no more.
pub(crate) const GO: &str = "go";
/// The older generation has given up waiting, and receives itself.
pub(crate) const NEVER_MIND: &[u8] = b"never mind\n";
/// The newer generation receives.
pub(crate) const SERVING: &str = "serving";

/// The error of a newer generation that reads this.
pub(crate) fn too_late() -> io::Error {
    let text = "the older generation has not waited for this one, and goes on itself";
    io::Error::new(io::ErrorKind::TimedOut, text)
}

/// A line of an offer, or of what follows it. Descriptors are told by their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    /// What the older generation calls the endpoint.
    Name(String),
    /// What the connection ids of the newer generation carry.
    Generation(u8),
    /// The secrets that both have.
    Secrets(Box<[u8; 2 * KEY_LEN]>),
    /// The token key before the present one.
    PreviousKey(Box<[u8; KEY_LEN]>),
    /// A UDP socket: the shard, the socket's number, the descriptor.
    Socket(u8, u32, RawFd),
    /// The way to an older generation: the generation, the shard, the descriptor.
    OlderShard(u8, u8, RawFd),
    /// Something of the application's.
    Descriptor(RawFd, String),
    /// A handshake that was begun.
    Begun(Begun),
}

impl Line {
    pub(crate) fn write(&self, text: &mut String) {
        // Writing into a string cannot fail.
        let _ = match self {
            Line::Name(name) => writeln!(text, "name {name}"),
            Line::Generation(generation) => writeln!(text, "generation {generation}"),
            Line::Secrets(secrets) => writeln!(text, "secrets {}", hex(&secrets[..])),
            Line::PreviousKey(key) => writeln!(text, "previous {}", hex(&key[..])),
            Line::Socket(shard, id, descriptor) => writeln!(text, "socket {shard} {id} {descriptor}"),
            Line::OlderShard(generation, shard, descriptor) => {
                writeln!(text, "elder {generation} {shard} {descriptor}")
            }
            Line::Descriptor(descriptor, name) => writeln!(text, "descriptor {descriptor} {name}"),
            Line::Begun(Begun { id, generation, shard }) => {
                writeln!(text, "begun {generation} {shard} {}", hex(id.as_bytes()))
            }
        };
    }

    /// `None` if it is not known, or makes no sense.
    pub(crate) fn read(line: &str) -> Option<Line> {
        let (kind, rest) = line.split_once(' ')?;
        let mut words = rest.split(' ');
        let mut word = || words.next();
        Some(match kind {
            "name" => Line::Name(rest.to_owned()),
            "generation" => Line::Generation(word()?.parse().ok()?),
            "secrets" => Line::Secrets(Box::new(bytes(word()?)?.try_into().ok()?)),
            "previous" => Line::PreviousKey(Box::new(bytes(word()?)?.try_into().ok()?)),
            "socket" => Line::Socket(word()?.parse().ok()?, word()?.parse().ok()?, word()?.parse().ok()?),
            "elder" => Line::OlderShard(word()?.parse().ok()?, word()?.parse().ok()?, word()?.parse().ok()?),
            "descriptor" => {
                let (descriptor, name) = rest.split_once(' ')?;
                Line::Descriptor(descriptor.parse().ok()?, name.to_owned())
            }
            "begun" => {
                let (generation, shard) = (word()?.parse().ok()?, word()?.parse().ok()?);
                Line::Begun(Begun { id: ConnectionId::new(&bytes(word()?)?)?, generation, shard })
            }
            _ => return None,
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let (pairs, []) = hex.as_bytes().as_chunks::<2>() else { return None };
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let byte = |[high, low]: &[u8; 2]| u8::try_from(digit(*high)? << 4 | digit(*low)?).ok();
    pairs.iter().map(byte).collect()
}
