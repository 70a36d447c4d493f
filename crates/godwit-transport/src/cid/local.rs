//! The ids that we issue and the peer sends to (RFC 9000 sections 5.1.1, 5.1.2, 19.15, 19.16).
//!
//! The endpoint makes the ids, so that it can steer packets by them; this component numbers them,
//! announces them until the announcement is acknowledged, and takes them back when the peer retires
//! them. It never holds more than [`LocalCids::WANTED`] ids, and one for the preferred address.

use crate::WireError;
use crate::packet::PacketBuilder;
use crate::part::Part;
use godwit_wire::codec::NoRoom;
use godwit_wire::{ConnectionId, Frame, ResetToken, TransportErrorCode};
use std::collections::VecDeque;

/// The connection ids of this end.
#[derive(Debug)]
pub(crate) struct LocalCids {
    /// Ids not retired by the peer, by ascending sequence number.
    issued: VecDeque<Issued>,
    next_sequence: u64,
    peer_limit: usize,
    unannounced: usize,
}

#[derive(Debug)]
struct Issued {
    sequence: u64,
    cid: ConnectionId,
    reset_token: ResetToken,
    /// Its announcement is to be sent (again).
    pending: bool,
    /// The peer may know it.
    sent: bool,
}

impl LocalCids {
    /// Ids kept for the peer, whatever more it is ready to take.
    pub(crate) const WANTED: usize = 4;

    /// With the id of the handshake, which has the sequence number 0.
    pub(crate) fn new(first: ConnectionId, reset_token: ResetToken) -> Self {
        let first = Issued { sequence: 0, cid: first, reset_token, pending: false, sent: true };
        LocalCids { issued: VecDeque::from([first]), next_sequence: 1, peer_limit: 1, unannounced: 0 }
    }

    /// The id of the preferred address, which is announced in the transport parameters: it has the sequence
    /// number 1 (RFC 9000 section 5.1.1). To be called before any other is added.
    pub(crate) fn add_preferred(&mut self, cid: ConnectionId, reset_token: ResetToken) {
        let sequence = self.next_sequence;
        self.next_sequence = sequence.saturating_add(1);
        self.issued.push_back(Issued { sequence, cid, reset_token, pending: false, sent: true });
    }

    /// The peer's active_connection_id_limit (RFC 9000 section 18.2) is known.
    pub(crate) fn set_peer_limit(&mut self, limit: u64) {
        self.peer_limit = usize::try_from(limit).unwrap_or(usize::MAX).clamp(1, Self::WANTED);
    }

    /// How many ids are to be made and given to [`LocalCids::add`].
    pub(crate) fn wanted(&self) -> usize {
        self.peer_limit.saturating_sub(self.issued.len())
    }

    /// A new id, to be announced. Returns its sequence number, or `None` if no id is wanted.
    pub(crate) fn add(&mut self, cid: ConnectionId, reset_token: ResetToken) -> Option<u64> {
        if self.wanted() == 0 {
            return None;
        }
        let sequence = self.next_sequence;
        self.next_sequence = sequence.saturating_add(1);
        self.issued.push_back(Issued { sequence, cid, reset_token, pending: true, sent: false });
        self.unannounced = self.unannounced.saturating_add(1);
        Some(sequence)
    }

    /// How many ids the peer may use.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.issued.len()
    }

    /// A RETIRE_CONNECTION_ID frame came in a packet that was sent to `used`. Returns the id that is no
    /// longer valid, or `None` if it had been retired before.
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION for an id never announced, or the one of the packet itself (section 19.16).
    pub(crate) fn on_retire(
        &mut self,
        sequence: u64,
        used: &[u8],
    ) -> Result<Option<ConnectionId>, WireError> {
        const FRAME: u64 = 0x19;
        let violation =
            |reason| WireError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason).in_frame(FRAME);
        if sequence >= self.next_sequence {
            return Err(violation("retired a connection id that does not exist"));
        }
        let Some(at) = self.issued.iter().position(|issued| issued.sequence == sequence) else {
            return Ok(None);
        };
        let Some(issued) = self.issued.get(at) else { return Ok(None) };
        if !issued.sent {
            return Err(violation("retired a connection id that was not announced"));
        }
        if issued.cid.as_bytes() == used {
            return Err(violation("retired the connection id of the packet itself"));
        }
        let gone = self.issued.remove(at);
        self.count_unannounced();
        Ok(gone.map(|issued| issued.cid))
    }

    fn set_pending(&mut self, sequence: u64, pending: bool) {
        if sequence == 0 {
            return;
        }
        let issued = self.issued.iter_mut().find(|issued| issued.sequence == sequence);
        if let Some(issued) = issued.filter(|issued| issued.pending != pending) {
            issued.pending = pending;
            let before = self.unannounced;
            self.unannounced = if pending { before.saturating_add(1) } else { before.saturating_sub(1) };
        }
    }

    fn count_unannounced(&mut self) {
        self.unannounced = self.issued.iter().filter(|issued| issued.pending).count();
    }
}

/// The announcement of the id with this sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AnnouncedId(pub(crate) u64);

impl Part for LocalCids {
    type Token = AnnouncedId;

    #[inline]
    fn wants_to_send(&self) -> bool {
        self.unannounced > 0
    }

    fn write_frames<T: From<AnnouncedId>>(&mut self, packet: &mut PacketBuilder<'_, T>) {
        for issued in self.issued.iter_mut().filter(|issued| issued.pending) {
            let frame = Frame::NewConnectionId {
                sequence: issued.sequence,
                retire_prior_to: 0,
                cid: issued.cid,
                reset_token: issued.reset_token,
            };
            if let Err(NoRoom) = packet.put(&frame, AnnouncedId(issued.sequence)) {
                break;
            }
            issued.pending = false;
            issued.sent = true;
        }
        self.count_unannounced();
    }

    fn on_acked(&mut self, AnnouncedId(sequence): AnnouncedId) {
        self.set_pending(sequence, false);
    }

    /// It is written again unless the id is already retired.
    fn repeat(&mut self, AnnouncedId(sequence): AnnouncedId) {
        self.set_pending(sequence, true);
    }

    fn release_memory(&mut self) {
        self.issued.shrink_to_fit();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "tests")]
mod tests {
    use super::*;

    fn cid(n: u8) -> ConnectionId {
        ConnectionId::new(&[n; 8]).unwrap()
    }

    fn token(n: u8) -> ResetToken {
        ResetToken([n; 16])
    }

    fn cids(limit: u64) -> LocalCids {
        let mut cids = LocalCids::new(cid(0), token(0));
        cids.set_peer_limit(limit);
        let mut n = 1;
        while cids.add(cid(n), token(n)).is_some() {
            n += 1;
        }
        cids
    }

    fn written(cids: &mut LocalCids, room: usize) -> Vec<u64> {
        let (_, tokens, ()) = crate::packet::testing::payload(room, |packet| cids.write_frames(packet));
        tokens.into_iter().map(|AnnouncedId(sequence)| sequence).collect()
    }

    #[test]
    fn the_peers_limit_and_our_own_are_respected() {
        assert_eq!(LocalCids::new(cid(0), token(0)).wanted(), 0, "nothing before the limit is known");
        assert_eq!(cids(2).len(), 2);
        assert_eq!(cids(1 << 62).len(), LocalCids::WANTED);
    }

    #[test]
    fn announcements_are_repeated_until_acknowledged() {
        let mut cids = cids(3);
        assert_eq!(written(&mut cids, 40), [1], "only one fits");
        assert_eq!(written(&mut cids, 200), [2]);
        assert!(!cids.wants_to_send());
        cids.repeat(AnnouncedId(1));
        cids.repeat(AnnouncedId(0));
        assert_eq!(written(&mut cids, 200), [1]);
        cids.repeat(AnnouncedId(1));
        cids.on_acked(AnnouncedId(1));
        assert!(!cids.wants_to_send(), "a late acknowledgement counts");
    }

    #[test]
    fn retirement() {
        let mut cids = cids(3);
        assert!(cids.on_retire(1, cid(0).as_bytes()).is_err(), "never announced");
        written(&mut cids, 200);
        assert!(cids.on_retire(3, cid(0).as_bytes()).is_err(), "does not exist");
        assert!(cids.on_retire(1, cid(1).as_bytes()).is_err(), "the packet's own");
        assert_eq!(cids.on_retire(1, cid(0).as_bytes()), Ok(Some(cid(1))));
        assert_eq!(cids.on_retire(1, cid(0).as_bytes()), Ok(None));
        cids.repeat(AnnouncedId(1));
        assert!(!cids.wants_to_send());
        assert_eq!(cids.wanted(), 1);
        let left: Vec<_> = cids.issued.iter().map(|issued| (issued.sequence, issued.cid)).collect();
        assert_eq!(left, [(0, cid(0)), (2, cid(2))]);
    }

    #[test]
    fn retired_ids_are_replaced_under_new_numbers() {
        let mut cids = cids(4);
        written(&mut cids, 500);
        for sequence in 0..3 {
            assert!(cids.on_retire(sequence, cid(3).as_bytes()).unwrap().is_some());
        }
        for n in 4..7 {
            assert_eq!(cids.add(cid(n), token(n)), Some(u64::from(n)));
        }
        assert_eq!((cids.wanted(), cids.add(cid(7), token(7))), (0, None));
        let (payload, tokens, ()) =
            crate::packet::testing::payload::<AnnouncedId, _>(500, |packet| cids.write_frames(packet));
        assert_eq!(tokens.len(), 3);
        assert_eq!(payload[..3], [0x18, 4, 0], "type, sequence, retire_prior_to");
    }
}
