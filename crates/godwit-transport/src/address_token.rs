//! Tokens with which a client proves its address (RFC 9000 sections 8.1.2 to 8.1.4).
//!
//! A server gives them out in Retry packets (bound to address and port, good for seconds) and in NEW_TOKEN
//! frames (bound to the address, good for a day), and needs no memory to check them: they carry what it must
//! know, sealed with the token key of [`ServerSecrets`]. All have the same length.
//!
//! ```text
//! kind (1) | sealed { issued (8) address (16) port (2) cid length (1) cid (20) } | nonce (12) | tag (16)
//! ```
//! In the place of the cid, tokens of NEW_TOKEN frames have nothing, or what the connection has found of its path: the
//! round-trip time in microseconds (4) and the congestion window (8), for careful resume (RFC 9959).

use godwit_base::{Rng, WallTime};
use godwit_recovery::SavedState;
use godwit_tls::secrets::{ServerSecrets, TOKEN_OVERHEAD};
use godwit_wire::{ConnectionId, Reader, Writer};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Bytes of every token.
pub(crate) const TOKEN_LEN: usize = 1 + CONTENT_LEN + TOKEN_OVERHEAD;

/// How long a Retry token is good: the client answers at once.
pub(crate) const RETRY_LIFETIME: Duration = Duration::from_secs(15);

/// How long a token from a NEW_TOKEN frame is good.
pub(crate) const NEW_TOKEN_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

const CONTENT_LEN: usize = 8 + 16 + 2 + 1 + ConnectionId::MAX_LEN;

/// How a token was given out (RFC 9000 section 8.1.1 asks that a server can tell).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// In a Retry packet. If it is not good, the connection is closed with INVALID_TOKEN.
    Retry,
    /// In a NEW_TOKEN frame. If it is not good, the client counts as one without a token.
    NewToken,
}

impl TokenKind {
    /// The kind of `token`, or `None` if it does not look like one of ours: it may come from another server
    /// or an older program, and counts as no token.
    pub(crate) fn of(token: &[u8]) -> Option<TokenKind> {
        match token.first() {
            _ if token.len() != TOKEN_LEN => None,
            Some(&RETRY) => Some(TokenKind::Retry),
            Some(&NEW_TOKEN) => Some(TokenKind::NewToken),
            _ => None,
        }
    }

    const fn byte(self) -> u8 {
        match self {
            TokenKind::Retry => RETRY,
            TokenKind::NewToken => NEW_TOKEN,
        }
    }
}

const RETRY: u8 = 0xa7;
const NEW_TOKEN: u8 = 0x5c;

/// Why a token is no good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenError {
    /// Not sealed by us, or not for this address.
    Invalid,
    /// It was good once, or will be by its date.
    Expired,
}

/// The token of a Retry packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RetryToken {
    /// The client's address and port.
    pub remote: SocketAddr,
    /// The Destination Connection ID of the client's first Initial packet, which the server has to repeat in
    /// its transport parameters (RFC 9000 section 7.3).
    pub original_dcid: ConnectionId,
    /// When it was given out.
    pub issued: WallTime,
}

impl RetryToken {
    /// The token as it stands in the packet. `None` only if the AEAD fails.
    pub(crate) fn seal(&self, secrets: &ServerSecrets, rng: &mut dyn Rng) -> Option<[u8; TOKEN_LEN]> {
        let content = Content {
            issued: self.issued,
            address: self.remote.ip(),
            port: self.remote.port(),
            cid: self.original_dcid,
        };
        content.seal(TokenKind::Retry, secrets, rng)
    }

    /// Checks a token that came from `remote`. Good for [`RETRY_LIFETIME`].
    pub(crate) fn open(
        secrets: &ServerSecrets,
        token: &[u8],
        remote: SocketAddr,
        now: WallTime,
    ) -> Result<Self, TokenError> {
        let content = Content::open(TokenKind::Retry, secrets, token).ok_or(TokenError::Invalid)?;
        if content.address != remote.ip().to_canonical() || content.port != remote.port() {
            return Err(TokenError::Invalid);
        }
        content.check_age(now, RETRY_LIFETIME)?;
        Ok(RetryToken { remote, original_dcid: content.cid, issued: content.issued })
    }
}

/// The token of a NEW_TOKEN frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NewToken {
    /// The client's address; its port may have changed.
    pub address: IpAddr,
    /// When it was given out.
    pub issued: WallTime,
    /// What was known of the path by then.
    pub path: Option<SavedState>,
}

impl NewToken {
    /// The token as it stands in the frame. `None` only if the AEAD fails.
    pub(crate) fn seal(&self, secrets: &ServerSecrets, rng: &mut dyn Rng) -> Option<[u8; TOKEN_LEN]> {
        let cid = self.path.as_ref().and_then(encode_path).unwrap_or(ConnectionId::EMPTY);
        let content = Content { issued: self.issued, address: self.address, port: 0, cid };
        content.seal(TokenKind::NewToken, secrets, rng)
    }

    /// Checks a token that came from `address`. Good for [`NEW_TOKEN_LIFETIME`].
    pub(crate) fn open(
        secrets: &ServerSecrets,
        token: &[u8],
        address: IpAddr,
        now: WallTime,
    ) -> Result<Self, TokenError> {
        let content = Content::open(TokenKind::NewToken, secrets, token).ok_or(TokenError::Invalid)?;
        if content.address != address.to_canonical() {
            return Err(TokenError::Invalid);
        }
        content.check_age(now, NEW_TOKEN_LIFETIME)?;
        Ok(NewToken { address, issued: content.issued, path: decode_path(content.cid.as_bytes()) })
    }
}

/// A round-trip time that no path has.
const MOST_RTT: Duration = Duration::from_secs(5);
/// A window that none needs.
const MOST_WINDOW: u64 = 1 << 30;

fn encode_path(path: &SavedState) -> Option<ConnectionId> {
    let micros = u32::try_from(path.rtt.as_micros()).ok()?;
    let mut bytes = [0; 12];
    let mut writer = Writer::new(&mut bytes);
    writer.bytes(&micros.to_be_bytes()).ok()?;
    writer.bytes(&path.window.to_be_bytes()).ok()?;
    ConnectionId::new(&bytes)
}

/// Nothing, if there is nothing or it makes no sense, whoever sealed it.
fn decode_path(bytes: &[u8]) -> Option<SavedState> {
    let mut reader = Reader::new(bytes);
    let mut path = SavedState::default();
    path.rtt = Duration::from_micros(u64::from(u32::from_be_bytes(reader.array().ok()?)));
    path.window = u64::from_be_bytes(reader.array().ok()?);
    let sane = !path.rtt.is_zero() && path.rtt <= MOST_RTT && path.window > 0;
    path.window = path.window.min(MOST_WINDOW);
    sane.then_some(path)
}

/// What both kinds carry. IPv4 addresses that came over an IPv6 socket count as IPv4.
struct Content {
    issued: WallTime,
    address: IpAddr,
    port: u16,
    cid: ConnectionId,
}

impl Content {
    fn seal(&self, kind: TokenKind, secrets: &ServerSecrets, rng: &mut dyn Rng) -> Option<[u8; TOKEN_LEN]> {
        let mut token = [0; TOKEN_LEN];
        let (first, rest) = token.split_first_mut()?;
        *first = kind.byte();
        self.encode(rest)?;
        secrets.seal_token(rng, kind.byte(), rest)?;
        Some(token)
    }

    fn open(kind: TokenKind, secrets: &ServerSecrets, token: &[u8]) -> Option<Self> {
        if TokenKind::of(token) != Some(kind) {
            return None;
        }
        let mut token: [u8; TOKEN_LEN] = token.try_into().ok()?;
        let (_, rest) = token.split_first_mut()?;
        Self::decode(secrets.open_token(kind.byte(), rest)?)
    }

    fn encode(&self, buffer: &mut [u8]) -> Option<()> {
        let address = match self.address {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        let mut writer = Writer::new(buffer);
        writer.bytes(&self.issued.as_unix_micros().to_be_bytes()).ok()?;
        writer.bytes(&address.octets()).ok()?;
        writer.u16(self.port).ok()?;
        writer.u8(u8::try_from(self.cid.len()).ok()?).ok()?;
        writer.bytes(self.cid.as_bytes()).ok()
    }

    fn decode(content: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(content);
        let issued = WallTime::from_unix_micros(u64::from_be_bytes(reader.array().ok()?));
        let address = IpAddr::from(reader.array::<16>().ok()?).to_canonical();
        let port = reader.u16().ok()?;
        let cid_len = reader.u8().ok()?;
        let cid = ConnectionId::new(reader.bytes(usize::from(cid_len)).ok()?)?;
        Some(Content { issued, address, port, cid })
    }

    /// Whose calendar was wrong by more than a day when it gave out the token, and has been set back since, is not to
    /// believe it until then.
    fn check_age(&self, now: WallTime, lifetime: Duration) -> Result<(), TokenError> {
        let is_old = now.saturating_since(self.issued) > lifetime;
        let is_to_come = self.issued.saturating_since(now) > NEW_TOKEN_LIFETIME;
        if is_old || is_to_come { Err(TokenError::Expired) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;
    use godwit_base::SeededRng;
    use proptest::prelude::*;

    const NOW: WallTime = WallTime::from_unix_micros(1_800_000_000_000_000);

    fn secrets() -> ServerSecrets {
        ServerSecrets::from_rng(&mut SeededRng::new(11))
    }

    fn retry() -> RetryToken {
        RetryToken {
            remote: "192.0.2.7:4433".parse().unwrap(),
            original_dcid: ConnectionId::new(&[5; 20]).unwrap(),
            issued: NOW,
        }
    }

    fn new_token() -> NewToken {
        NewToken { address: "2001:db8::7".parse().unwrap(), issued: NOW, path: None }
    }

    #[test]
    fn a_retry_token_is_bound_to_address_port_and_time() {
        let (secrets, sent) = (secrets(), retry());
        let token = sent.seal(&secrets, &mut SeededRng::new(1)).unwrap();
        assert_eq!(TokenKind::of(&token), Some(TokenKind::Retry));
        let open = |remote: &str, now| RetryToken::open(&secrets, &token, remote.parse().unwrap(), now);
        assert_eq!(open("192.0.2.7:4433", NOW + RETRY_LIFETIME), Ok(sent));
        assert!(open("[::ffff:192.0.2.7]:4433", NOW).is_ok(), "the same address on an IPv6 socket");
        assert_eq!(open("192.0.2.7:4434", NOW), Err(TokenError::Invalid));
        assert_eq!(open("192.0.2.8:4433", NOW), Err(TokenError::Invalid));
        let late = NOW + RETRY_LIFETIME + Duration::from_micros(1);
        assert_eq!(open("192.0.2.7:4433", late), Err(TokenError::Expired));
        assert_eq!(NewToken::open(&secrets, &token, sent.remote.ip(), NOW), Err(TokenError::Invalid));
    }

    #[test]
    fn a_new_token_is_bound_to_address_and_time() {
        let (secrets, sent) = (secrets(), new_token());
        let token = sent.seal(&secrets, &mut SeededRng::new(1)).unwrap();
        assert_eq!(TokenKind::of(&token), Some(TokenKind::NewToken));
        let open = |address: &str, now| NewToken::open(&secrets, &token, address.parse().unwrap(), now);
        assert_eq!(open("2001:db8::7", NOW + NEW_TOKEN_LIFETIME), Ok(sent));
        assert_eq!(open("2001:db8::8", NOW), Err(TokenError::Invalid));
        let late = NOW + NEW_TOKEN_LIFETIME + Duration::from_micros(1);
        assert_eq!(open("2001:db8::7", late), Err(TokenError::Expired));
    }

    #[test]
    fn a_new_token_carries_what_is_known_of_the_path_unless_it_makes_no_sense() {
        let secrets = secrets();
        let opened = |micros, window| {
            let mut path = SavedState::default();
            (path.rtt, path.window) = (Duration::from_micros(micros), window);
            let sent = NewToken { path: Some(path), ..new_token() };
            let token = sent.seal(&secrets, &mut SeededRng::new(1)).unwrap();
            let opened = NewToken::open(&secrets, &token, sent.address, NOW).unwrap().path;
            opened.map(|path| (path.rtt.as_micros(), path.window))
        };
        assert_eq!(opened(80_000, 1_000_000), Some((80_000, 1_000_000)));
        assert_eq!(opened(80_000, u64::MAX), Some((80_000, MOST_WINDOW)));
        for (micros, window) in [(0, 1_000_000), (80_000, 0), (5_000_001, 1_000_000), (1 << 40, 1_000_000)] {
            assert_eq!(opened(micros, window), None, "{micros} {window}");
        }
    }

    #[test]
    fn tokens_do_not_repeat_and_keys_matter() {
        let mut rng = SeededRng::new(2);
        let secrets = secrets();
        let (one, two) =
            (retry().seal(&secrets, &mut rng).unwrap(), retry().seal(&secrets, &mut rng).unwrap());
        assert_ne!(one, two);
        let others = ServerSecrets::from_rng(&mut rng);
        assert_eq!(RetryToken::open(&others, &one, retry().remote, NOW), Err(TokenError::Invalid));
        assert!(RetryToken::open(&secrets.rotated(&mut rng), &one, retry().remote, NOW).is_ok());
    }

    #[test]
    fn every_changed_byte_and_every_length_is_noticed() {
        let secrets = secrets();
        let token = retry().seal(&secrets, &mut SeededRng::new(3)).unwrap();
        for at in 0..TOKEN_LEN {
            for bit in 0..8 {
                let mut forged = token;
                forged[at] ^= 1 << bit;
                let opened = RetryToken::open(&secrets, &forged, retry().remote, NOW);
                assert_eq!(opened, Err(TokenError::Invalid), "bit {bit} of byte {at}");
            }
        }
        let later = new_token().seal(&secrets, &mut SeededRng::new(3)).unwrap();
        for at in 0..later.len() {
            for bit in 0..8 {
                let mut forged = later;
                forged[at] ^= 1 << bit;
                let opened = NewToken::open(&secrets, &forged, new_token().address, NOW);
                assert_eq!(opened, Err(TokenError::Invalid), "bit {bit} of byte {at}");
            }
        }
        for len in 0..TOKEN_LEN {
            assert_eq!(
                RetryToken::open(&secrets, &token[..len], retry().remote, NOW),
                Err(TokenError::Invalid)
            );
        }
        // A token relabelled as one of the other kind.
        let mut relabelled = token;
        relabelled[0] = NEW_TOKEN;
        assert_eq!(NewToken::open(&secrets, &relabelled, retry().remote.ip(), NOW), Err(TokenError::Invalid));
    }

    proptest! {
        #[test]
        fn every_cid_and_address_survives(
            cid in prop::collection::vec(any::<u8>(), 0..=20), address in any::<[u8; 16]>(), port in any::<u16>(),
            issued in 0..u64::MAX / 2, seed in any::<u64>(),
        ) {
            let remote = SocketAddr::new(IpAddr::from(address), port);
            let issued = WallTime::from_unix_micros(issued);
            let sent = RetryToken { remote, original_dcid: ConnectionId::new(&cid).unwrap(), issued };
            let token = sent.seal(&secrets(), &mut SeededRng::new(seed)).unwrap();
            prop_assert_eq!(RetryToken::open(&secrets(), &token, remote, issued), Ok(sent));
        }

        #[test]
        fn strangers_never_open(token in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert!(RetryToken::open(&secrets(), &token, retry().remote, NOW).is_err());
            prop_assert!(NewToken::open(&secrets(), &token, new_token().address, NOW).is_err());
        }
    }
}
