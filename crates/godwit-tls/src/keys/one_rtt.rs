//! The 1-RTT keys and their updates (RFC 9001 section 6).
//!
//! Keys come in phases, told apart by one bit of the short header. There is always the current phase and
//! the next one, whose keys are made in advance so that a forged key phase bit cannot be recognised by the
//! time it takes. The receive key of the phase before stays until three probe timeouts after the first
//! packet of the current one, for packets that come late, unless it is known before that none can.
//!
//! Invariants: both directions change phase together; this end begins an update only when the handshake
//! is confirmed, a packet of the current phase has been acknowledged and the previous key is gone; no key
//! seals more packets than its AEAD permits, and no connection tries more forged packets than that.

use super::{
    HeaderOpener, HeaderSealer, LevelKeys, Opener, ProtectionKeys, Ratchet, SealFailed, Sealer,
    UnprotectedPacket, apart,
};
use crate::provider;
use godwit_base::Time;
use godwit_wire::TransportErrorCode;
use godwit_wire::WireError;
use rustls::quic::{Keys, Secrets};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The key phase bit of a short header (RFC 9001 section 5.4.1).
const KEY_PHASE_BIT: u8 = 0x04;

/// Packets of a key's limit that are reserved for closing the connection when the key is used up.
const CLOSING_PACKETS: u64 = 32;

/// Which phase's keys opened a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeysUsed {
    /// Those of the phase before this one.
    Previous,
    /// Those of this phase.
    Current,
    /// Those of the next phase: the peer has updated its keys, and so has this end now.
    Updated,
}

/// A packet whose protection has been removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// Bytes of plaintext at the front of the payload.
    pub len: usize,
    /// With which keys.
    pub keys: KeysUsed,
}

/// Packet protection of the 1-RTT level, with key updates.
pub struct OneRtt {
    /// Removes header protection; it never changes.
    pub header_opener: HeaderOpener,
    /// Adds header protection; it never changes.
    pub header_sealer: HeaderSealer,
    opener: Opener,
    sealer: Sealer,
    /// Copies of what protects packets of the current phase, if somebody else was to have them.
    copied: Option<Arc<ProtectionKeys>>,
    /// Opens packets of the next phase. What seals them is made when that begins.
    next: Opener,
    /// The two are ready for use.
    prepared: bool,
    previous: Option<Box<Previous>>,
    secrets: Phases,
    phase: Phase,
    /// Updates so far; the lowest bit is the key phase bit.
    updates: u64,
    /// Packets that were not authentic, over all phases.
    forged: u64,
    confirmed: bool,
    /// Packets after which this end updates the keys by itself.
    update_after: u64,
    /// Packets that the key of one phase seals at most.
    seal_limit: u64,
}

/// Where the keys of later phases come from.
#[derive(Clone)]
enum Phases {
    /// From rustls, with keys of a provider that is not ours.
    Tls(Box<Secrets>),
    /// From here.
    Derived(Box<Ratchet>),
}

impl Phases {
    /// What opens packets of the next phase.
    fn next_opener(&self) -> Opener {
        match self {
            Phases::Tls(_) => self.clone().advance().0,
            Phases::Derived(ratchet) => ratchet.next_opener(),
        }
    }

    /// The keys of the next phase, which becomes the current one.
    fn advance(&mut self) -> (Opener, Sealer) {
        match self {
            Phases::Tls(secrets) => {
                let keys = secrets.next_packet_keys();
                let found = provider::found_packet_key;
                (Opener::new(found(keys.remote)), Sealer::new(found(keys.local)))
            }
            Phases::Derived(ratchet) => ratchet.next_phase(),
        }
    }
}

/// The receive key of the phase before.
struct Previous {
    opener: Opener,
    /// When it is dropped; known once a packet of the current phase has come.
    expires: Option<Time>,
}

/// What has been done with the keys of the current phase.
#[derive(Debug, Clone, Copy, Default)]
struct Phase {
    sealed: u64,
    first_sent: Option<u64>,
    acknowledged: bool,
    lowest_received: Option<u64>,
}

impl OneRtt {
    /// From what TLS gives, best within [`super::from_tls`]. `next` are the secrets of the phase after `keys`; `ratchet` is what
    /// derives the same with less, if that is known, and is used for keys of our provider.
    pub fn new(keys: Keys, next: Secrets, ratchet: Option<Ratchet>) -> Self {
        let keys = LevelKeys::new(keys);
        match ratchet.filter(|_| keys.are_laid_aside()) {
            Some(ratchet) => Self::derived(keys, ratchet),
            None => Self::with(keys, Phases::Tls(Box::new(next))),
        }
    }

    /// As if so many packets had been sealed in this phase, and none acknowledged.
    #[cfg(any(test, feature = "testing"))]
    pub fn pretend_sealed(&mut self, packets: u64) {
        self.phase = Phase { sealed: packets, ..Phase::default() };
    }

    /// From keys that were derived here, and what derives those of the phases after them.
    pub fn derived(keys: LevelKeys, next: Ratchet) -> Self {
        Self::with(keys, Phases::Derived(Box::new(next)))
    }

    fn with(keys: LevelKeys, secrets: Phases) -> Self {
        let LevelKeys { opener, sealer, header_opener, header_sealer } = keys;
        let update_after = update_limit(&sealer);
        let seal_limit = sealer.confidentiality_limit().saturating_sub(CLOSING_PACKETS);
        OneRtt {
            header_opener,
            header_sealer,
            opener,
            sealer,
            copied: None,
            next: secrets.next_opener(),
            prepared: false,
            previous: None,
            secrets,
            phase: Phase::default(),
            updates: 0,
            forged: 0,
            confirmed: false,
            update_after,
            seal_limit,
        }
    }

    /// What the keys are used with is made of them when they are used the next time: until then they take a fifth of the
    /// memory. For connections that are idle.
    pub fn forget(&mut self, now: Time) {
        self.drop_expired(now);
        if let Some(previous) = &mut self.previous {
            previous.opener.key.forget();
        }
        self.copied = None;
        self.header_opener.forget();
        self.header_sealer.forget();
        self.sealer.key.forget();
        self.opener.key.forget();
        self.next.key.forget();
        self.prepared = false;
    }

    /// Both that may have sealed what has come are made at once: which of them is used tells the key phase bit.
    #[cold]
    fn prepare(&mut self) {
        self.opener.key.prepare();
        self.next.key.prepare();
        self.prepared = true;
    }

    /// Updates the keys after `packets` sealed packets, rather than only shortly before the AEAD's limit.
    pub fn set_update_after(&mut self, packets: Option<u64>) {
        let limit = update_limit(&self.sealer);
        self.update_after = packets.map_or(limit, |packets| packets.clamp(1, limit));
    }

    /// The handshake is confirmed: this end may update the keys (RFC 9001 section 6.1).
    pub fn on_confirmed(&mut self) {
        self.confirmed = true;
    }

    /// The key phase bit for packets sent now. Call it before the header of each packet is written: when an
    /// update is due, this begins it.
    #[inline]
    pub fn phase_to_send(&mut self, now: Time) -> bool {
        if self.is_update_due() {
            self.initiate_update(now);
        }
        self.phase_bit()
    }

    /// Whether this end wants to update the keys by itself.
    #[inline]
    pub fn is_update_due(&self) -> bool {
        self.phase.sealed >= self.update_after
    }

    /// If packets of the phase before are waited for, and nothing else is in the way of an update: they have lower numbers than
    /// this.
    pub fn late_packets_below(&self) -> Option<u64> {
        self.phase.lowest_received.filter(|_| self.phase.acknowledged && self.previous.is_some())
    }

    /// No packet of the phase before can come any more.
    pub fn drop_previous(&mut self) {
        self.previous = None;
    }

    /// The current key phase bit.
    #[inline]
    pub fn phase_bit(&self) -> bool {
        self.updates & 1 == 1
    }

    /// How often the keys have been updated, by either end.
    #[inline]
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// How many packets were not authentic, over all phases.
    pub fn forged(&self) -> u64 {
        self.forged
    }

    /// Seals a packet as [`Sealer::seal`] does, with the keys of the current phase.
    ///
    /// Fails with AEAD_LIMIT_REACHED when the key has sealed all it may, which only happens to a peer that
    /// acknowledges nothing.
    #[inline]
    pub fn seal(
        &mut self,
        path: u32,
        pn: u64,
        header: &[u8],
        payload_and_tag_room: &mut [u8],
    ) -> Result<(), WireError> {
        if self.is_exhausted() {
            return Err(WireError::new(
                TransportErrorCode::AEAD_LIMIT_REACHED,
                "the key has sealed as many packets as it may",
            ));
        }
        self.sealer.seal(path, pn, header, payload_and_tag_room).map_err(|SealFailed| {
            WireError::new(TransportErrorCode::INTERNAL_ERROR, "a packet could not be sealed")
        })?;
        self.count_sealed(pn);
        Ok(())
    }

    #[inline]
    fn count_sealed(&mut self, pn: u64) {
        self.phase.sealed = self.phase.sealed.saturating_add(1);
        self.phase.first_sent.get_or_insert(pn);
    }

    /// Whether the next `packets` packets can be protected all at once after they are written, or by others: if
    /// neither an update nor the end of the key can come between them.
    #[inline]
    pub fn can_protect_later(&self, packets: u64) -> bool {
        self.phase.sealed.saturating_add(packets) <= self.update_after.min(self.seal_limit)
    }

    /// Counts a packet of the current phase as [`OneRtt::seal`] does, which is protected when others are written, too.
    /// To be called for at most as many as [`OneRtt::can_protect_later`] was asked for.
    #[inline]
    pub fn begin_apart(&mut self, pn: u64) {
        self.count_sealed(pn);
    }

    /// The keys of the current phase for whoever protects packets apart from this connection. They are made when they
    /// are first asked for in a phase. None if they cannot be copied, which those of another provider cannot.
    pub fn copied(&mut self) -> Option<&Arc<ProtectionKeys>> {
        if self.copied.is_none() {
            self.copied = ProtectionKeys::copied(&self.sealer, &self.header_sealer).map(Arc::new);
        }
        self.copied.as_ref()
    }

    /// Protects `packets` of the current phase, which were counted ([`OneRtt::begin_apart`]) and stand in `buffer`.
    ///
    /// # Errors
    /// As [`ProtectionKeys::protect`].
    pub fn protect(&self, packets: &[UnprotectedPacket], buffer: &mut [u8]) -> Result<(), SealFailed> {
        apart::protect(&self.sealer, &self.header_sealer, packets, buffer)
    }

    /// True if the key has sealed all it may.
    #[inline]
    pub fn is_exhausted(&self) -> bool {
        self.phase.sealed >= self.seal_limit
    }

    /// The connection is being closed: what was kept back for that may be used.
    pub fn on_closing(&mut self) {
        self.seal_limit = self.sealer.confidentiality_limit();
    }

    /// Opens a packet as [`Opener::open`] does, with the keys that its key phase bit and number call for.
    /// `pto` is the current probe timeout. `Ok(None)` is a packet to drop.
    ///
    /// Fails with AEAD_LIMIT_REACHED after too many forged packets, and with KEY_UPDATE_ERROR if the peer
    /// updates its keys twice without waiting (RFC 9001 section 6.2).
    pub fn open(
        &mut self,
        (now, pto): (Time, Duration),
        path: u32,
        pn: u64,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<Option<Opened>, WireError> {
        self.drop_expired(now);
        if !self.prepared {
            self.prepare();
        }
        let bit = header.first().is_some_and(|first| first & KEY_PHASE_BIT != 0);
        let (keys, opener) = if bit == self.phase_bit() {
            (KeysUsed::Current, &self.opener)
        } else if self.phase.lowest_received.is_some_and(|lowest| pn > lowest) || self.updates == 0 {
            (KeysUsed::Updated, &self.next)
        } else if let Some(previous) = &self.previous {
            (KeysUsed::Previous, &previous.opener)
        } else {
            // Older than the current phase, and its key is gone.
            return Ok(None);
        };
        let Some(len) = opener.open(path, pn, header, payload) else {
            return self.on_forged();
        };
        match keys {
            KeysUsed::Previous => {}
            KeysUsed::Current => self.on_current(now, pto, pn),
            KeysUsed::Updated => {
                self.on_peer_update()?;
                self.on_current(now, pto, pn);
            }
        }
        Ok(Some(Opened { len, keys }))
    }

    /// The peer has acknowledged our packets up to `largest`, in a packet that `keys` opened.
    ///
    /// Fails with KEY_UPDATE_ERROR if that packet is older than a key update it acknowledges
    /// (RFC 9001 section 6.2).
    #[inline]
    pub fn on_ack_received(&mut self, largest: u64, keys: KeysUsed) -> Result<(), WireError> {
        if self.phase.acknowledged || self.phase.first_sent.is_none_or(|first| largest < first) {
            return Ok(());
        }
        if keys == KeysUsed::Previous {
            return Err(WireError::new(
                TransportErrorCode::KEY_UPDATE_ERROR,
                "an updated packet was acknowledged under the keys before the update",
            ));
        }
        self.phase.acknowledged = true;
        Ok(())
    }

    /// Whether the peer has acknowledged a packet that was sealed in the current phase.
    pub fn is_acknowledged(&self) -> bool {
        self.phase.acknowledged
    }

    /// Begins a key update, if it is permitted now; returns whether it was.
    pub fn initiate_update(&mut self, now: Time) -> bool {
        self.drop_expired(now);
        let permitted = self.confirmed && self.phase.acknowledged && self.previous.is_none();
        if permitted {
            self.advance();
        }
        permitted
    }

    fn on_current(&mut self, now: Time, pto: Duration, pn: u64) {
        let lowest = self.phase.lowest_received.map_or(pn, |lowest| lowest.min(pn));
        self.phase.lowest_received = Some(lowest);
        if let Some(previous) = &mut self.previous {
            previous.expires.get_or_insert(now + pto.saturating_mul(3));
        }
    }

    fn on_peer_update(&mut self) -> Result<(), WireError> {
        if self.updates > 0 && self.phase.first_sent.is_none() {
            return Err(WireError::new(
                TransportErrorCode::KEY_UPDATE_ERROR,
                "the peer updated its keys twice without waiting for an acknowledgement",
            ));
        }
        self.advance();
        Ok(())
    }

    fn on_forged(&mut self) -> Result<Option<Opened>, WireError> {
        self.forged = self.forged.saturating_add(1);
        if self.forged >= self.opener.integrity_limit() {
            return Err(WireError::new(
                TransportErrorCode::AEAD_LIMIT_REACHED,
                "more forged packets than the AEAD withstands",
            ));
        }
        Ok(None)
    }

    /// Moves both directions to the next phase.
    fn advance(&mut self) {
        (_, self.sealer) = self.secrets.advance();
        self.copied = None;
        let next = std::mem::replace(&mut self.next, self.secrets.next_opener());
        let opener = std::mem::replace(&mut self.opener, next);
        self.prepared = false;
        self.previous = Some(Box::new(Previous { opener, expires: None }));
        self.phase = Phase::default();
        self.updates = self.updates.saturating_add(1);
    }

    fn drop_expired(&mut self, now: Time) {
        let expired = |previous: &Previous| previous.expires.is_some_and(|expires| expires <= now);
        if self.previous.as_deref().is_some_and(expired) {
            self.previous = None;
        }
    }
}

impl fmt::Debug for OneRtt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OneRtt")
            .field("updates", &self.updates)
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}

/// Half of what the AEAD permits: the update has the other half to be acknowledged in.
fn update_limit(sealer: &Sealer) -> u64 {
    (sealer.confidentiality_limit() / 2).max(1)
}

#[cfg(test)]
mod tests;
