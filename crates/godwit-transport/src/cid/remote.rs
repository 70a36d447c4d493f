//! The ids that the peer issues and we send to (RFC 9000 sections 5.1.1, 5.1.2, 10.3.1, 19.15, 19.16).
//!
//! One id is active: the connection sends to it. Other paths may be assigned ids of their own, so that
//! an observer cannot link them (section 9.5). The peer can make us hold no more ids than our
//! active_connection_id_limit and no more unacknowledged retirements than [`RemoteCids::MAX_RETIRING`].

use crate::WireError;
use crate::packet::PacketBuilder;
use crate::part::Part;
use crate::path::PathId;
use godwit_base::IntervalSet;
use godwit_wire::codec::NoRoom;
use godwit_wire::{ConnectionId, Frame, ResetToken, TransportErrorCode};
use std::collections::VecDeque;

const NEW_CONNECTION_ID: u64 = 0x18;

/// The connection ids of the peer.
#[derive(Debug)]
pub(crate) struct RemoteCids {
    active: Known,
    /// The other ids, by ascending sequence number. With the active one at most `limit`.
    others: Vec<Known>,
    limit: usize,
    retire_prior_to: u64,
    /// Sequence numbers that were retired, in a bounded number of ranges.
    retired: IntervalSet,
    /// RETIRE_CONNECTION_ID frames not yet acknowledged. At most [`RemoteCids::MAX_RETIRING`].
    retiring: VecDeque<Retiring>,
    tokens_changed: bool,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    sequence: u64,
    cid: ConnectionId,
    reset_token: Option<ResetToken>,
    /// The path, other than the active one, to which it belongs.
    path: Option<PathId>,
}

#[derive(Debug)]
struct Retiring {
    sequence: u64,
    pending: bool,
}

impl RemoteCids {
    /// Retirements kept until they are acknowledged. A peer that replaces its ids faster than it
    /// acknowledges is refused.
    pub(crate) const MAX_RETIRING: usize = 32;
    /// Ids held at most, whatever limit was offered.
    const MAX_KNOWN: u64 = 16;

    /// With the first id we send to (which has the sequence number 0) and the active_connection_id_limit
    /// that we offer.
    pub(crate) fn new(first: ConnectionId, limit: u64) -> Self {
        RemoteCids {
            active: Known { sequence: 0, cid: first, reset_token: None, path: None },
            others: Vec::new(),
            limit: usize::try_from(limit.clamp(2, Self::MAX_KNOWN)).unwrap_or(2),
            retire_prior_to: 0,
            retired: IntervalSet::new(),
            retiring: VecDeque::new(),
            tokens_changed: false,
        }
    }

    /// The active_connection_id_limit to offer for a configured one: what [`RemoteCids`] can hold.
    pub(crate) fn offered_limit(configured: u64) -> u64 {
        configured.clamp(2, Self::MAX_KNOWN)
    }

    /// The peer chose its first id: in a client, by a Retry or by the server's first packet (RFC 9000
    /// section 7.2).
    pub(crate) fn set_first(&mut self, cid: ConnectionId) {
        if self.active.sequence == 0 {
            self.active.cid = cid;
        }
    }

    /// The peer gave the reset token of its first id in the transport parameters.
    pub(crate) fn set_first_reset_token(&mut self, token: ResetToken) {
        let mut all = std::iter::once(&mut self.active).chain(&mut self.others);
        if let Some(first) = all.find(|known| known.sequence == 0) {
            first.reset_token = Some(token);
            self.tokens_changed = true;
        }
    }

    /// A NEW_CONNECTION_ID frame came (also: the preferred address, with sequence number 1).
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION if the peer uses zero-length ids, if the frame contradicts an earlier one, or
    /// if it leaves us without an id; CONNECTION_ID_LIMIT_ERROR if there are more ids than we allow, or
    /// more retirements than we keep.
    pub(crate) fn on_new_connection_id(
        &mut self,
        sequence: u64,
        retire_prior_to: u64,
        cid: ConnectionId,
        token: ResetToken,
    ) -> Result<(), WireError> {
        if self.active.cid.is_empty() {
            return Err(violation("NEW_CONNECTION_ID from a peer with zero-length ids"));
        }
        let repeated = self.check_consistent(sequence, cid, token)?;
        if !repeated && sequence < self.retire_prior_to {
            // Section 19.15: an id that comes when it is already to be retired is retired at once, once.
            if !self.retired.contains(sequence) {
                self.retire(sequence)?;
            }
        } else if !repeated && !self.retired.contains(sequence) {
            let at = self.others.partition_point(|known| known.sequence < sequence);
            self.others.insert(at, Known { sequence, cid, reset_token: Some(token), path: None });
        }
        if retire_prior_to > self.retire_prior_to {
            self.retire_all_prior_to(retire_prior_to)?;
        }
        if self.others.len() >= self.limit {
            let code = TransportErrorCode::CONNECTION_ID_LIMIT_ERROR;
            return Err(
                WireError::new(code, "more connection ids than the limit").in_frame(NEW_CONNECTION_ID)
            );
        }
        Ok(())
    }

    /// The id that the active path sends to.
    pub(crate) const fn active(&self) -> &ConnectionId {
        &self.active.cid
    }

    /// The id that `path` sends to: its own, or the active one if it has none.
    pub(crate) fn for_path(&self, path: PathId) -> &ConnectionId {
        self.others.iter().find(|known| known.path == Some(path)).map_or(&self.active.cid, |known| &known.cid)
    }

    /// Retires the active id in favour of a spare one. False if there is none.
    pub(crate) fn rotate(&mut self) -> bool {
        let Some(at) = self.spare() else { return false };
        let room = self.retiring.len() < Self::MAX_RETIRING && self.retired.len() < self.max_retired();
        if !room || self.active.cid.is_empty() {
            return false;
        }
        let old = std::mem::replace(&mut self.active, self.others.remove(at));
        self.tokens_changed = true;
        self.retire(old.sequence).is_ok()
    }

    /// True if a path, known or yet to come, has an id of its own or could be assigned one.
    pub(crate) fn can_assign(&self, path: Option<PathId>) -> bool {
        let assigned = path.is_some() && self.others.iter().any(|known| known.path == path);
        !self.active.cid.is_empty() && (assigned || self.spare().is_some())
    }

    /// Assigns a spare id to `path`, unless it has one. False if there is none to spare: the path then
    /// shares the active id. True without an assignment if the peer uses zero-length ids.
    pub(crate) fn assign(&mut self, path: PathId) -> bool {
        if self.active.cid.is_empty() || self.others.iter().any(|known| known.path == Some(path)) {
            return true;
        }
        let Some(spare) = self.spare().and_then(|at| self.others.get_mut(at)) else { return false };
        spare.path = Some(path);
        self.tokens_changed = true;
        true
    }

    /// `path` becomes the active path and its id, if it has one of its own, the active id. The id that
    /// was active stays with `previous`, until that path is [released](RemoteCids::release).
    pub(crate) fn promote(&mut self, path: PathId, previous: PathId) {
        let Some(at) = self.others.iter().position(|known| known.path == Some(path)) else { return };
        let promoted = Known { path: None, ..self.others.remove(at) };
        let old = std::mem::replace(&mut self.active, promoted);
        let at = self.others.partition_point(|known| known.sequence < old.sequence);
        self.others.insert(at, Known { path: Some(previous), ..old });
        self.tokens_changed = true;
    }

    /// `path` is no more: the id that it had of its own is retired.
    pub(crate) fn release(&mut self, path: PathId) {
        if self.retiring.len() >= Self::MAX_RETIRING || self.retired.len() >= self.max_retired() {
            // The peer does not acknowledge: the id stays assigned and thus unused.
            return;
        }
        if let Some(at) = self.others.iter().position(|known| known.path == Some(path)) {
            let known = self.others.remove(at);
            self.tokens_changed = true;
            // Cannot fail: there is room, as seen above.
            let _ = self.retire(known.sequence);
        }
    }

    /// True if the last 16 bytes of a datagram are the reset token of an id in use. Takes the same time
    /// for every wrong token (RFC 9000 section 10.3.1).
    pub(crate) fn matches_reset(&self, last: &[u8; 16]) -> bool {
        self.reset_tokens().fold(false, |found, token| found | constant_time_eq(&token.0, last))
    }

    /// The reset tokens of the ids in use: the active one first, then those assigned to paths.
    pub(crate) fn reset_tokens(&self) -> impl Iterator<Item = ResetToken> {
        let assigned = self.others.iter().filter(|known| known.path.is_some());
        std::iter::once(&self.active).chain(assigned).filter_map(|known| known.reset_token)
    }

    /// The same, with the path to which each belongs if that is not the active one.
    pub(crate) fn reset_tokens_of_paths(&self) -> impl Iterator<Item = (Option<PathId>, ResetToken)> {
        let assigned = self.others.iter().filter(|known| known.path.is_some());
        let used = std::iter::once(&self.active).chain(assigned);
        used.filter_map(|known| Some((known.path, known.reset_token?)))
    }

    /// True once after [`RemoteCids::reset_tokens`] changed, so that the endpoint can be told.
    pub(crate) fn take_tokens_changed(&mut self) -> bool {
        std::mem::take(&mut self.tokens_changed)
    }

    /// The lowest id that belongs to no path.
    fn spare(&self) -> Option<usize> {
        self.others.iter().position(|known| known.path.is_none())
    }

    /// True if the id is known already; an error if it was known otherwise (section 19.15).
    fn check_consistent(
        &self,
        sequence: u64,
        cid: ConnectionId,
        token: ResetToken,
    ) -> Result<bool, WireError> {
        for known in std::iter::once(&self.active).chain(&self.others) {
            let same_token = known.reset_token.is_some_and(|other| constant_time_eq(&other.0, &token.0));
            let (same_cid, same_sequence) = (known.cid == cid, known.sequence == sequence);
            // The first id's token is unknown to a server: clients have none to give.
            let same = same_cid && (same_token || known.reset_token.is_none());
            if same_sequence && same {
                return Ok(true);
            }
            if same_sequence || same_cid || same_token {
                return Err(violation("NEW_CONNECTION_ID contradicts an earlier one"));
            }
        }
        Ok(false)
    }

    fn retire_all_prior_to(&mut self, retire_prior_to: u64) -> Result<(), WireError> {
        self.retire_prior_to = retire_prior_to;
        while let Some(known) = self.others.first().copied().filter(|known| known.sequence < retire_prior_to)
        {
            self.others.remove(0);
            self.tokens_changed |= known.path.is_some();
            self.retire(known.sequence)?;
        }
        if self.active.sequence < retire_prior_to {
            // An id that another path holds is better than none.
            let at = self.spare().or(if self.others.is_empty() { None } else { Some(0) });
            let Some(at) = at else { return Err(violation("every connection id was withdrawn")) };
            let next = Known { path: None, ..self.others.remove(at) };
            let old = std::mem::replace(&mut self.active, next);
            self.tokens_changed = true;
            self.retire(old.sequence)?;
        }
        self.trim_retired();
        Ok(())
    }

    fn retire(&mut self, sequence: u64) -> Result<(), WireError> {
        if self.retiring.len() >= Self::MAX_RETIRING {
            let code = TransportErrorCode::CONNECTION_ID_LIMIT_ERROR;
            let reason = "more connection ids withdrawn than acknowledged";
            return Err(WireError::new(code, reason).in_frame(NEW_CONNECTION_ID));
        }
        self.retiring.push_back(Retiring { sequence, pending: true });
        self.retired.insert(sequence..sequence.saturating_add(1));
        self.trim_retired();
        Ok(())
    }

    /// Ranges of retired ids that are remembered: the ids in use of a peer that leaves none out make no more.
    const fn max_retired(&self) -> usize {
        self.limit.saturating_mul(2)
    }

    /// Memory of retired ids is needed against late duplicates only. It is bounded by forgetting the
    /// oldest below `retire_prior_to`: to retire one of those again is harmless, while those above would
    /// come back as new ids.
    fn trim_retired(&mut self) {
        while self.retired.len() > self.max_retired()
            && self.retired.first().is_some_and(|first| first.end <= self.retire_prior_to)
        {
            self.retired.pop_first();
        }
    }
}

/// The retirement of the id with this sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RetiredId(pub(crate) u64);

impl Part for RemoteCids {
    type Token = RetiredId;

    #[inline]
    fn wants_to_send(&self) -> bool {
        self.retiring.iter().any(|retiring| retiring.pending)
    }

    fn write_frames<T: From<RetiredId>>(&mut self, packet: &mut PacketBuilder<'_, T>) {
        for retiring in self.retiring.iter_mut().filter(|retiring| retiring.pending) {
            let sequence = retiring.sequence;
            if let Err(NoRoom) = packet.put(&Frame::RetireConnectionId { sequence }, RetiredId(sequence)) {
                break;
            }
            retiring.pending = false;
        }
    }

    fn on_acked(&mut self, RetiredId(sequence): RetiredId) {
        self.retiring.retain(|retiring| retiring.sequence != sequence);
    }

    fn repeat(&mut self, RetiredId(sequence): RetiredId) {
        if let Some(retiring) = self.retiring.iter_mut().find(|retiring| retiring.sequence == sequence) {
            retiring.pending = true;
        }
    }

    fn release_memory(&mut self) {
        self.others.shrink_to_fit();
        self.retired.shrink_to_fit();
        self.retiring.shrink_to_fit();
    }
}

#[track_caller]
fn violation(reason: &'static str) -> WireError {
    WireError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason).in_frame(NEW_CONNECTION_ID)
}

fn constant_time_eq(a: &[u8; 16], b: &[u8; 16]) -> bool {
    let (a, b) = (u128::from_ne_bytes(*a), u128::from_ne_bytes(*b));
    std::hint::black_box(a ^ b) == 0
}

#[cfg(test)]
mod tests;
