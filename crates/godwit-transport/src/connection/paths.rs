//! What a connection does when its paths change (RFC 9000 section 9), or what was sent on them does not leave.

use super::input::Datagram;
use super::outcome::collect;
use super::{Machine, path_settings};
use crate::path::{PathEvent, PathId, PathKey, PathState};
use godwit_base::Time;
use godwit_recovery::{PathRecovery, SpaceId};
use std::net::SocketAddr;

impl Machine {
    /// An authentic packet came from a new address.
    pub(super) fn adopt_path(&mut self, now: Time, origin: &Datagram) -> Option<PathId> {
        let recovery = self.fresh_recovery(now, &origin.key);
        let id = self.paths.adopt(now, origin.key, origin.len, |_| recovery)?;
        self.announce_path_state(id, PathState::Probing);
        Some(id)
    }

    /// The state of a path of which nothing is known yet.
    pub(super) fn fresh_recovery(&mut self, now: Time, key: &PathKey) -> PathRecovery {
        let mut settings = path_settings(&self.config, key);
        settings.id = self.free_recovery_id();
        let mut recovery = PathRecovery::new(now, &settings);
        self.negotiation.apply_limits(&mut recovery);
        recovery.mtu_search_mut().start(now);
        recovery
    }

    /// A number that tells the packets of a path from those of every other that there is. There are fewer numbers than a
    /// connection may have paths in its life, so that they come again.
    fn free_recovery_id(&mut self) -> u16 {
        loop {
            let id = self.migration.next_recovery_id();
            if self.paths.all().all(|path| path.recovery.id() != id) {
                return id;
            }
        }
    }

    /// Draws the consequences of what happened to paths.
    pub(super) fn follow_paths(&mut self, now: Time) {
        while let Some(event) = self.paths.next_event() {
            self.observe_path(&event);
            match event {
                PathEvent::Migrated { from, to } | PathEvent::FellBack { from, to } => {
                    self.migration.announced_active = to;
                    // The new path gets an id of its own, so that an observer cannot link the two.
                    self.migration.shares_id = !self.parts.remote_cids.assign(to);
                    self.parts.remote_cids.promote(to, from);
                    self.header_bits.on_new_path();
                    self.paths.path_mut(to).recovery.restart_ecn();
                    self.announce_path_state(to, PathState::Active);
                }
                PathEvent::Validated(id) => self.announce_path_state(id, PathState::Validated),
                PathEvent::Abandoned { id, key, recovery } => {
                    self.lose_flight(now, recovery);
                    self.on_path_abandoned(now, id, key);
                }
                // Nothing better is known: the idle timeout decides.
                PathEvent::NoPath => {}
            }
            self.announce_move();
            self.announce_reset_tokens();
        }
    }

    /// What was sent on a path that is no more, and not acknowledged, is sent again.
    fn lose_flight(&mut self, now: Time, recovery: u16) {
        let outcomes = &mut self.outcomes;
        let space = &mut self.spaces.data.space.recovery;
        space.on_path_gone(recovery, now, &mut |outcome, token| collect(outcomes, outcome, token));
        self.observe_path_gone(recovery);
        self.dispatch_outcomes(SpaceId::Data);
    }

    /// The local system refused to send a datagram of `size` bytes to `remote`; `max` is the largest that it does send
    /// there, if it tells. False if no path leads there.
    pub(crate) fn on_datagram_refused(
        &mut self,
        now: Time,
        remote: SocketAddr,
        size: usize,
        max: Option<usize>,
    ) -> bool {
        let Some(path) = self.paths.all_mut().find(|path| path.key().remote == remote) else { return false };
        let bytes = |size: usize| u16::try_from(size).unwrap_or(u16::MAX);
        path.recovery.on_datagram_refused(now, bytes(size), max.map(bytes));
        let id = path.id();
        self.observe_recovery(id);
        true
    }

    /// The local system did not send `datagrams` that were written at `sent_at`: those of the path in use, but for
    /// probes of others, whose loss says nothing.
    pub(crate) fn on_refused(&mut self, sent_at: Time, datagrams: usize, congested: bool) {
        self.stats.on_refused(datagrams);
        if !congested {
            self.paths.active_mut().recovery.on_refused(sent_at);
        }
    }
}
