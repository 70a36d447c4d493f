//! Where a connection tells its observer what happens.
//!
//! Each hook is a mask test, made before anything else; what follows when the bit is set stands apart, in
//! `emit`, out of the way of connections that nobody watches. Hooks only look: they change nothing that the
//! connection acts on.
//!
//! Not everything that happens comes with the time. The observation keeps the time of the latest input,
//! which is what the events that follow are stamped with.

mod emit;

use super::Machine;
use super::input::PacketInfo;
use crate::ConnectionError;
use crate::config::EndpointConfig;
use crate::observe::{
    CongestionState, ConnectionState, DropTrigger, EcnName, LossTrigger, Observer, PacketName, Recovery,
    TransportEvent, TransportEventKind as Kind, TransportMask, without_panic,
};
use crate::packet::WrittenPacket;
use crate::path::{PathEvent, PathId};
use godwit_base::{Time, WallTime};
use godwit_recovery::SpaceId;
use godwit_wire::ConnectionId;
use godwit_wire::transport_parameters::TransportParameters;
use std::fmt;

/// An observer, or none.
#[derive(Default)]
pub(super) struct Observation {
    /// The kinds of events that are wanted; none without an observer.
    mask: TransportMask,
    watch: Option<Box<Watch>>,
}

/// An observer, and what it was told last.
struct Watch {
    observer: Box<dyn Observer + Send>,
    now: Time,
    recovery: Recovery,
    congestion: Option<CongestionState>,
    mtu: Option<u16>,
    ecn: Option<EcnName>,
    key_phase: u64,
    /// The Destination Connection ID of the packets sent.
    remote_cid: ConnectionId,
    /// The Destination Connection ID of the packets received.
    local_cid: Option<ConnectionId>,
    /// By the id of a path's recovery state and per packet number space, the first packet whose loss has not been told.
    lost_from: Vec<(u16, [u64; 3])>,
}

impl Observation {
    /// True if any of these events is wanted.
    #[inline]
    pub(super) const fn wants(&self, kinds: TransportMask) -> bool {
        self.mask.intersects(kinds)
    }

    fn start(&mut self, now: Time, observer: Box<dyn Observer + Send>, remote_cid: ConnectionId) {
        self.mask = observer.mask();
        self.watch = Some(Box::new(Watch {
            observer,
            now,
            recovery: Recovery::default(),
            congestion: None,
            mtu: None,
            ecn: None,
            key_phase: 0,
            remote_cid,
            local_cid: None,
            lost_from: Vec::new(),
        }));
    }

    /// Gives an event to the observer, if it is wanted. One that panics is not asked again.
    fn emit(&mut self, event: &TransportEvent<'_>) {
        if self.wants(event.kind().mask())
            && let Some(watch) = &mut self.watch
        {
            let Watch { observer, now, .. } = &mut **watch;
            if without_panic(|| observer.on_event(*now, event)).is_none() {
                self.mask = TransportMask::default();
                let watch = self.watch.take();
                without_panic(|| drop(watch));
            }
        }
    }
}

impl fmt::Debug for Observation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observation").field("mask", &self.mask).finish_non_exhaustive()
    }
}

const SENT: TransportMask =
    Kind::PacketSent.mask().union(Kind::KeyUpdated.mask()).union(Kind::ConnectionIdUpdated.mask());
const RECEIVED: TransportMask =
    Kind::PacketReceived.mask().union(Kind::KeyUpdated.mask()).union(Kind::ConnectionIdUpdated.mask());
const RECOVERY: TransportMask = Kind::RecoveryMetricsUpdated
    .mask()
    .union(Kind::CongestionStateUpdated.mask())
    .union(Kind::MtuUpdated.mask())
    .union(Kind::EcnStateUpdated.mask());
const PATHS: TransportMask = Kind::TupleAssigned.mask().union(Kind::MigrationStateUpdated.mask());
const CLOSED: TransportMask = Kind::ConnectionClosed.mask().union(Kind::ConnectionStateUpdated.mask());

impl Machine {
    /// Asks the endpoint's factory for an observer, and tells it how the connection begins.
    pub(crate) fn start_observing(&mut self, now: Time, wall: WallTime, config: &EndpointConfig) {
        if config.observe.is_set() {
            self.emit_start(now, wall, config);
        }
    }

    /// The connection goes on in another version.
    pub(super) fn observe_version(&mut self) {
        if self.observation.wants(Kind::VersionInformation.mask()) {
            self.emit_version();
        }
    }

    /// Time has passed: what is told from now on happens now.
    #[inline]
    pub(super) fn observe_time(&mut self, now: Time) {
        if !self.observation.mask.is_empty() {
            self.emit_time(now);
        }
    }

    /// A packet is about to be sealed in its datagram.
    #[inline]
    pub(super) fn observe_sent(&mut self, packet: &WrittenPacket, datagram: &[u8]) {
        if self.observation.wants(SENT) {
            self.emit_sent(packet, datagram);
        }
    }

    /// An authentic packet came for the first time.
    #[inline]
    pub(super) fn observe_received(&mut self, info: &PacketInfo, payload: &[u8]) {
        if self.observation.wants(RECEIVED) {
            self.emit_received(info, payload);
        }
    }

    /// A packet without a number came.
    #[inline]
    pub(super) fn observe_unnumbered(&mut self, packet_type: PacketName, len: usize) {
        if self.observation.wants(Kind::PacketReceived.mask()) {
            self.emit_unnumbered(packet_type, len);
        }
    }

    /// A packet was dropped.
    #[inline]
    pub(super) fn observe_dropped(&mut self, packet_type: Option<PacketName>, len: usize, why: DropTrigger) {
        if self.observation.wants(Kind::PacketDropped.mask()) {
            self.emit_dropped(packet_type, len, why);
        }
    }

    /// Loss detection has run.
    #[inline]
    pub(super) fn observe_lost(&mut self, space: SpaceId, trigger: Option<LossTrigger>) {
        if self.observation.wants(Kind::PacketLost.mask()) {
            self.emit_lost(space, trigger);
        }
    }

    /// A path is no more, and what was in flight on it is lost.
    pub(super) fn observe_path_gone(&mut self, recovery: u16) {
        if self.observation.wants(Kind::PacketLost.mask()) {
            self.emit_path_gone(recovery);
        }
    }

    /// Something was sent, acknowledged or lost on a path. What is told are the metrics of the one in use.
    #[inline]
    pub(super) fn observe_recovery(&mut self, path: PathId) {
        if self.observation.wants(RECOVERY) {
            self.emit_recovery(path);
        }
    }

    /// The handshake gave the keys of a packet number space.
    #[inline]
    pub(super) fn observe_keys(&mut self, space: SpaceId) {
        if self.observation.wants(Kind::KeyUpdated.mask()) {
            self.emit_keys(space);
        }
    }

    /// The keys of a packet number space were dropped.
    #[inline]
    pub(super) fn observe_discarded(&mut self, space: SpaceId) {
        if self.observation.wants(Kind::KeyDiscarded.mask()) {
            self.emit_discarded(space);
        }
    }

    /// The handshake came a step further.
    #[inline]
    pub(super) fn observe_state(&mut self, new: ConnectionState) {
        if self.observation.wants(Kind::ConnectionStateUpdated.mask().union(Kind::AlpnInformation.mask())) {
            self.emit_state(new);
        }
    }

    /// The peer declared its transport parameters.
    #[inline]
    pub(super) fn observe_parameters(&mut self, parameters: &TransportParameters) {
        if self.observation.wants(Kind::ParametersSet.mask()) {
            self.emit_parameters(crate::observe::Initiator::Remote, parameters);
        }
    }

    /// Something became of a path.
    #[inline]
    pub(super) fn observe_path(&mut self, event: &PathEvent) {
        if self.observation.wants(PATHS) {
            self.emit_path(event);
        }
    }

    /// A path is being tried, by either end.
    #[inline]
    pub(super) fn observe_probing(&mut self, id: PathId) {
        if self.observation.wants(PATHS) {
            self.emit_probing(id);
        }
    }

    /// The connection is closed.
    #[inline]
    pub(super) fn observe_closed(&mut self, reason: &ConnectionError) {
        if self.observation.wants(CLOSED) {
            self.emit_closed(reason);
        }
    }
}
