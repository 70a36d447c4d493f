//! The paths of one connection: which is active, which are being validated, which to fall back to.
//!
//! Invariants: there is always an active path; there are at most [`PathSet::MAX_OTHERS`] others, so that
//! forged source addresses cannot fill memory. A client moves only by its own will; a server follows
//! the client once the handshake is confirmed, challenges the new address *and* the old one (RFC 9000
//! section 9.3.3), and goes back if the new one does not answer (section 9.3.2). A path that is neither
//! active nor being validated is forgotten after three probe timeouts of silence, once the active one
//! is known to work.

use super::challenge::{Challenge, Proof};
use super::{Credit, Path, PathId, PathInfo, PathKey};
use crate::packet::PacketBuilder;
use godwit_base::{SocketId, Time};
use godwit_recovery::PathRecovery;
use godwit_wire::Side;
use godwit_wire::constants::MIN_DATAGRAM;
use std::collections::VecDeque;
use std::time::Duration;

/// Where a datagram came from, as seen by a [`PathSet`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// From a path that is known.
    Known(PathId),
    /// From an address not seen before. Once a packet in it proves authentic, call [`PathSet::adopt`].
    New,
    /// From where nothing is expected: drop it unread.
    Ignored,
}

/// What became of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathEvent {
    /// The peer moved: another path is active now, which is being validated unless it already was.
    Migrated {
        /// The path that was active.
        from: PathId,
        /// The path that is active now.
        to: PathId,
    },
    /// The new path did not answer: the connection returned to an earlier one.
    FellBack {
        /// The path that was active.
        from: PathId,
        /// The path that is active now.
        to: PathId,
    },
    /// The path is validated.
    Validated(PathId),
    /// The path is forgotten: its connection id can be retired, and what is in flight on it will not be heard of.
    Abandoned {
        /// Which.
        id: PathId,
        /// Its addresses.
        key: PathKey,
        /// The id of its recovery state.
        recovery: u16,
    },
    /// The active path does not answer and there is no other.
    NoPath,
}

/// The paths of a connection.
#[derive(Debug)]
pub(crate) struct PathSet {
    side: Side,
    active: Path,
    /// At most [`PathSet::MAX_OTHERS`], oldest first.
    others: Vec<Path>,
    next_id: u32,
    peer_may_move: bool,
    /// How long a path is kept that is used no more.
    keep_unused: Duration,
    events: VecDeque<PathEvent>,
    /// How the network is to treat what is sent, on whatever path.
    dscp: u8,
}

/// Loss recovery of the active path, and of the others: packets of one space may have been sent on several.
pub(crate) struct PathsRecovery<'a> {
    active: &'a mut PathRecovery,
    others: &'a mut [Path],
}

impl godwit_recovery::Paths for PathsRecovery<'_> {
    #[inline]
    fn in_use(&mut self) -> &mut PathRecovery {
        self.active
    }

    fn each_other(&mut self, f: &mut impl FnMut(&mut PathRecovery)) {
        self.others.iter_mut().for_each(|path| f(&mut path.recovery));
    }

    fn find(&mut self, id: u16) -> Option<&mut PathRecovery> {
        if self.active.id() == id {
            return Some(self.active);
        }
        self.others.iter_mut().map(|path| &mut path.recovery).find(|recovery| recovery.id() == id)
    }
}

impl PathSet {
    /// Paths held beside the active one.
    pub(crate) const MAX_OTHERS: usize = 4;
    /// Three probe timeouts of a path of which nothing is known.
    const FIRST_KEEP_UNUSED: Duration = Duration::from_secs(3);

    /// With the path of the handshake. A client never limits itself towards the server it chose, so
    /// that `validated` counts for servers only: it says whether a token proved the client's address.
    pub(crate) fn new(side: Side, key: PathKey, recovery: PathRecovery, validated: bool) -> Self {
        let credit = if validated || side == Side::Client { Credit::Validated } else { Credit::NONE };
        PathSet {
            side,
            active: Path::new(PathId(0), key, recovery, credit),
            others: Vec::new(),
            next_id: 1,
            peer_may_move: false,
            keep_unused: Self::FIRST_KEEP_UNUSED,
            events: VecDeque::new(),
            dscp: 0,
        }
    }

    /// See [`godwit_base::SendMeta::dscp`].
    #[inline]
    pub(crate) const fn dscp(&self) -> u8 {
        self.dscp
    }

    pub(crate) const fn set_dscp(&mut self, dscp: u8) {
        self.dscp = dscp;
    }

    /// The path on which the connection sends.
    #[inline]
    pub(crate) const fn active(&self) -> &Path {
        &self.active
    }

    /// The path on which the connection sends, to be changed.
    #[inline]
    pub(crate) const fn active_mut(&mut self) -> &mut Path {
        &mut self.active
    }

    /// A path by its number.
    pub(crate) fn get(&self, id: PathId) -> Option<&Path> {
        self.all().find(|path| path.id == id)
    }

    /// A path by its number, to be changed.
    pub(crate) fn get_mut(&mut self, id: PathId) -> Option<&mut Path> {
        self.all_mut().find(|path| path.id == id)
    }

    /// The number of the path that carries the connection.
    #[inline]
    pub(crate) const fn active_id(&self) -> PathId {
        self.active.id
    }

    /// The path with this number; if it is no more, the one that carries the connection.
    #[inline]
    pub(crate) fn path(&self, id: PathId) -> &Path {
        if id == self.active.id { &self.active } else { self.other(id) }
    }

    /// The path with this number, to be changed; if it is no more, the one that carries the connection.
    #[inline]
    pub(crate) fn path_mut(&mut self, id: PathId) -> &mut Path {
        if id == self.active.id { &mut self.active } else { self.other_mut(id) }
    }

    /// Loss recovery of every path.
    #[inline]
    pub(crate) fn recovery(&mut self) -> PathsRecovery<'_> {
        PathsRecovery { active: &mut self.active.recovery, others: &mut self.others }
    }

    /// Every path, the active one first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.active).chain(&self.others)
    }

    /// Every path, to be changed.
    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut Path> {
        std::iter::once(&mut self.active).chain(&mut self.others)
    }

    /// The paths that have timers: the active one, and those on which something is still in flight.
    #[inline]
    pub(crate) fn timed(&self) -> impl Iterator<Item = &Path> {
        let others = self.others.iter().filter(|path| path.recovery.bytes_in_flight() > 0);
        std::iter::once(&self.active).chain(others)
    }

    /// The same, to be changed.
    pub(crate) fn timed_mut(&mut self) -> impl Iterator<Item = &mut Path> {
        let others = self.others.iter_mut().filter(|path| path.recovery.bytes_in_flight() > 0);
        std::iter::once(&mut self.active).chain(others)
    }

    /// The numbers of all paths, for loops that change what they go through.
    pub(crate) fn ids(&self) -> [Option<PathId>; PathSet::MAX_OTHERS.saturating_add(1)] {
        let mut paths = self.all();
        std::array::from_fn(|_| paths.next().map(Path::id))
    }

    #[cold]
    fn other(&self, id: PathId) -> &Path {
        self.others.iter().find(|path| path.id == id).unwrap_or(&self.active)
    }

    #[cold]
    fn other_mut(&mut self, id: PathId) -> &mut Path {
        self.others.iter_mut().find(|path| path.id == id).unwrap_or(&mut self.active)
    }

    /// What became of paths since the last call; call until `None` after every input.
    pub(crate) fn next_event(&mut self) -> Option<PathEvent> {
        self.events.pop_front()
    }

    /// The handshake is confirmed: the peer may change its address from now on (RFC 9000 section 9).
    pub(crate) const fn allow_migration(&mut self) {
        self.peer_may_move = true;
    }

    /// Every path, the active one first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = PathInfo> {
        let others = self.others.iter().map(|path| path.info(false));
        std::iter::once(self.active.info(true)).chain(others)
    }

    /// True if any path uses the socket.
    pub(crate) fn uses(&self, socket: SocketId) -> bool {
        self.all().any(|path| path.key.socket == socket)
    }

    /// The other path with exactly these addresses.
    pub(crate) fn find(&self, key: &PathKey) -> Option<PathId> {
        self.others.iter().find(|path| path.key == *key).map(|path| path.id)
    }

    /// True if a move to `key` would change nothing.
    pub(crate) fn is_at(&self, key: &PathKey) -> bool {
        let active = &self.active;
        let here = key.local.is_none_or(|wanted| active.local() == Some(wanted));
        here && active.key.socket == key.socket && active.key.remote == key.remote
    }

    /// A datagram of `len` bytes came. Must be called before it is decrypted, for what it adds to the
    /// credit may be needed to answer it.
    #[inline]
    pub(crate) fn on_datagram(&mut self, key: &PathKey, len: usize) -> Arrival {
        let alone = self.others.is_empty();
        let is_active = if alone { self.active.key.matches(key) } else { self.active.key == *key };
        if is_active {
            self.active.credit.on_received(len);
            if self.active.seen_local.is_none() {
                self.active.seen_local = key.local;
            }
            return Arrival::Known(self.active.id);
        }
        self.on_other_datagram(key, len)
    }

    /// As [`PathSet::on_datagram`], where there is more than one path. An exact match comes first: a path whose
    /// local address is left to the system matches any.
    fn on_other_datagram(&mut self, key: &PathKey, len: usize) -> Arrival {
        let active_matches = self.active.key.matches(key);
        let exact = self.others.iter().position(|path| path.key == *key);
        let at = exact.or_else(|| {
            let matching = || self.others.iter().position(|path| path.key.matches(key));
            if active_matches { None } else { matching() }
        });
        let known = match at {
            Some(at) => self.others.get_mut(at),
            None if active_matches => Some(&mut self.active),
            None => None,
        };
        match known {
            Some(path) => {
                path.credit.on_received(len);
                path.seen_local = path.seen_local.or(key.local);
                Arrival::Known(path.id)
            }
            None if self.side == Side::Server && self.peer_may_move => Arrival::New,
            None => Arrival::Ignored,
        }
    }

    /// An authentic packet came on path `id`.
    #[inline]
    pub(crate) fn on_authentic(&mut self, now: Time, id: PathId) {
        if id != self.active.id
            && let Some(path) = self.others.iter_mut().find(|path| path.id == id)
        {
            path.last_used = now;
        }
    }

    /// A datagram of `len` bytes that came from a [new](Arrival::New) address holds an authentic packet:
    /// the address becomes a path, not active and not validated.
    /// The oldest of the other paths gives way if there are too many. A path that exists already is given back as it
    /// is: a datagram counts once, however many packets it holds. `None` if numbers have run out.
    pub(crate) fn adopt(
        &mut self,
        now: Time,
        key: PathKey,
        len: usize,
        fresh: impl FnOnce(PathId) -> PathRecovery,
    ) -> Option<PathId> {
        if let Some(known) = self.all().find(|path| path.key == key) {
            return Some(known.id);
        }
        let mut credit = Credit::NONE;
        credit.on_received(len);
        self.insert(now, key, fresh, credit)
    }

    /// A path to be tried by this end's will (RFC 9000 section 9.2): it is challenged, and on
    /// [`PathEvent::Validated`] the connection can move there. `None` if numbers have run out.
    pub(crate) fn probe(
        &mut self,
        now: Time,
        key: PathKey,
        pto: Duration,
        fresh: impl FnOnce(PathId) -> PathRecovery,
    ) -> Option<PathId> {
        let id = match self.find(&key) {
            Some(known) => known,
            None => self.insert(now, key, fresh, Credit::Validated)?,
        };
        let path = self.others.iter_mut().find(|path| path.id == id)?;
        path.challenge = Some(Challenge::new(now, pto));
        path.suspect = false;
        Some(id)
    }

    /// Path `id` becomes the active one as soon as it is validated, and no other that was to be before. `None`
    /// calls the move off.
    pub(crate) fn move_when_validated(&mut self, id: Option<PathId>) {
        for path in &mut self.others {
            let wanted = id == Some(path.id);
            if path.wanted && !wanted {
                path.challenge = None;
            }
            path.wanted = wanted;
        }
    }

    /// True if the connection is to move to path `id` as soon as it is validated.
    pub(crate) fn is_move_under_way(&self, id: PathId) -> bool {
        self.others.iter().any(|path| path.id == id && path.wanted && path.challenge.is_some())
    }

    /// A packet with a frame that is not a probe came on path `id`; `largest` says whether it has the
    /// highest packet number so far. A server follows its client there (RFC 9000 section 9.3).
    #[inline]
    pub(crate) fn on_non_probing(&mut self, now: Time, id: PathId, largest: bool, pto: Duration) {
        if id == self.active.id || !largest || self.side == Side::Client {
            return;
        }
        let Some(from) = self.switch_to(now, id) else { return };
        self.keep_unused = pto.saturating_mul(3);
        if !self.active.is_validated() && self.active.challenge.is_none() {
            self.active.challenge = Some(Challenge::new(now, pto));
        }
        // If the client did not move but someone forwards its packets, the answer to this brings the
        // connection back (section 9.3.3).
        if let Some(previous) = self.others.iter_mut().find(|path| path.id == from && path.is_validated()) {
            previous.challenge = Some(Challenge::new(now, pto));
        }
        self.events.push_back(PathEvent::Migrated { from, to: id });
    }

    /// A PATH_CHALLENGE came on path `id`: it is answered on the same path, where that is not active so often in a probe
    /// timeout as an initial window permits. A server asks back: should the client move there, it is at once free to send.
    pub(crate) fn on_path_challenge(&mut self, now: Time, id: PathId, data: [u8; 8], pto: Duration) {
        let is_active = id == self.active.id;
        let asks_back = self.side == Side::Server && !is_active;
        if let Some(path) = self.get_mut(id) {
            if is_active {
                path.responses.push(data);
            } else {
                path.responses.push_within_bounds(now, data, pto);
            }
            if asks_back && !path.is_validated() && path.challenge.is_none() {
                path.challenge = Some(Challenge::new(now, pto));
            }
        }
    }

    /// A PATH_RESPONSE came, on whatever path (RFC 9000 section 8.2.3). Unexpected ones are ignored.
    pub(crate) fn on_path_response(&mut self, now: Time, data: [u8; 8], pto: Duration) {
        let answered = self.all_mut().find_map(|path| {
            let (proof, asked_at) = path.challenge.as_ref()?.on_response(data)?;
            Some((path, proof, asked_at))
        });
        let Some((path, proof, asked_at)) = answered else { return };
        path.on_answered();
        path.suspect = false;
        path.last_used = now;
        path.recovery.set_initial_rtt(now.saturating_since(asked_at));
        if proof == Proof::Address {
            // The credit did not allow a datagram of full size; now it does (section 8.2.1).
            path.challenge = Some(Challenge::new(now, pto));
            return;
        }
        path.challenge = None;
        let (id, wanted) = (path.id, path.wanted);
        self.keep_unused = pto.saturating_mul(3);
        self.events.push_back(PathEvent::Validated(id));
        if wanted && let Some(from) = self.switch_to(now, id) {
            self.events.push_back(PathEvent::Migrated { from, to: id });
        }
        if id == self.active.id {
            self.forget(|path| path.suspect);
        }
    }

    /// The handshake proved the peer's address: the client came back from a Retry, or a packet under Handshake keys came
    /// (RFC 9000 section 8.1).
    pub(crate) const fn on_address_validated(&mut self) {
        self.active.on_answered();
    }

    /// The next path, other than the active one, that has a probe to send and may send it, after so many of them.
    pub(crate) fn next_probe(&self, skipped: usize) -> Option<PathId> {
        let mut probes = self.others.iter().filter(|path| path.wants_probe() && path.can_send_anything());
        probes.nth(skipped).map(|path| path.id)
    }

    /// Writes the PATH_RESPONSE and PATH_CHALLENGE frames that are due on the packet's path. Their datagram is
    /// expanded, unless the address has not earned as many bytes yet (RFC 9000 section 8.2.1).
    pub(crate) fn write_probe<T>(&mut self, packet: &mut PacketBuilder<'_, T>) {
        let Some(path) = self.get_mut(packet.path()) else { return };
        let expand = path.can_send(MIN_DATAGRAM);
        let responded = path.responses.write(packet);
        let challenge = path.challenge.as_mut();
        let challenged = challenge.is_some_and(|challenge| challenge.write(expand, packet));
        if expand && (responded || challenged) {
            packet.expand();
        }
    }

    /// When to call [`PathSet::on_timeout`].
    pub(crate) fn deadline(&self) -> Option<Time> {
        if self.others.is_empty() && self.active.challenge.is_none() {
            return None;
        }
        let challenges = self.all().filter_map(|path| path.challenge.as_deref()).map(Challenge::deadline);
        let unused = self.others.iter().filter_map(|path| self.unused_at(path));
        challenges.chain(unused).min()
    }

    /// When a path that is not active is to be forgotten for being of no use.
    fn unused_at(&self, path: &Path) -> Option<Time> {
        let settled = self.active.is_validated() && !self.active.suspect && self.active.challenge.is_none();
        (settled && path.challenge.is_none()).then(|| path.last_used + self.keep_unused)
    }

    /// Time has passed: challenges are repeated or given up, and paths that are not used are forgotten.
    pub(crate) fn on_timeout(&mut self, now: Time, pto: Duration) {
        for path in &mut self.others {
            if path.challenge.as_mut().is_some_and(|challenge| challenge.on_timeout(now)) {
                path.challenge = None;
                path.suspect = true;
            }
        }
        if self.active.challenge.as_mut().is_some_and(|challenge| challenge.on_timeout(now)) {
            self.active.challenge = None;
            self.fall_back(now, pto);
        }
        // A validated path that stopped answering is kept as long as there is no better one.
        let reachable = self.active.is_validated() && !self.active.suspect;
        self.forget(|path| path.suspect && (reachable || !path.is_validated()));
        if self.others.iter().any(|path| self.unused_at(path).is_some_and(|at| at <= now)) {
            let keep_unused = self.keep_unused;
            self.forget(|path| path.challenge.is_none() && path.last_used + keep_unused <= now);
        }
    }

    fn fall_back(&mut self, now: Time, pto: Duration) {
        let best = |path: &&Path| (path.is_validated(), !path.suspect, path.id);
        let Some(id) = self.others.iter().max_by_key(best).filter(|path| path.is_validated()).map(Path::id)
        else {
            self.events.push_back(PathEvent::NoPath);
            return;
        };
        let Some(from) = self.switch_to(now, id) else { return };
        if self.active.suspect {
            // Neither address answered: the last that worked gets one more chance.
            self.active.challenge = Some(Challenge::new(now, pto));
        }
        self.events.push_back(PathEvent::FellBack { from, to: id });
        self.forget(|path| path.id == from);
    }

    /// Makes another path active; returns the path that was.
    fn switch_to(&mut self, now: Time, id: PathId) -> Option<PathId> {
        let other = self.others.iter_mut().find(|path| path.id == id)?;
        std::mem::swap(&mut self.active, other);
        if self.active.same_network(other) {
            // Only a port differs: the network is the same, and so are its delay and capacity.
            std::mem::swap(&mut self.active.recovery, &mut other.recovery);
            std::mem::swap(&mut self.active.told, &mut other.told);
        }
        self.active.recovery.set_in_use(true);
        other.recovery.set_in_use(false);
        (self.active.wanted, other.last_used) = (false, now);
        Some(other.id)
    }

    fn insert(
        &mut self,
        now: Time,
        key: PathKey,
        fresh: impl FnOnce(PathId) -> PathRecovery,
        credit: Credit,
    ) -> Option<PathId> {
        if self.others.len() >= Self::MAX_OTHERS {
            let unproven = self.others.iter().find(|path| !path.is_validated());
            let oldest = unproven.or(self.others.first()).map(Path::id)?;
            self.forget(|path| path.id == oldest);
        }
        let id = PathId(self.next_id);
        self.next_id = self.next_id.checked_add(1)?;
        let mut recovery = fresh(id);
        recovery.set_in_use(false);
        self.others.push(Path { last_used: now, ..Path::new(id, key, recovery, credit) });
        Some(id)
    }

    fn forget(&mut self, gone: impl Fn(&Path) -> bool) {
        let events = &mut self.events;
        self.others.retain(|path| {
            let gone = gone(path);
            if gone {
                let key = PathKey { local: path.local(), ..path.key };
                events.push_back(PathEvent::Abandoned { id: path.id, key, recovery: path.recovery.id() });
            }
            !gone
        });
    }
}

#[cfg(test)]
mod tests;
