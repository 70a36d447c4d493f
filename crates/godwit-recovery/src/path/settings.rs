//! How a path starts, and what it counts.

use crate::congestion::{CongestionControl, SavedState};
use crate::laboratory::Laboratory;
use crate::rtt::RttEstimator;
use std::time::Duration;

/// How a path starts.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PathSettings {
    /// Tells the packets of this path from those of others; no two paths of a connection may share it.
    pub id: u16,
    /// RTT assumed until the first sample. RFC 9002 section 6.2.2 recommends 333 ms.
    pub initial_rtt: Duration,
    /// The variation of that, if an earlier connection over the same network has measured both:
    /// [`RttEstimator::known`](crate::RttEstimator::known).
    pub known_variation: Option<Duration>,
    /// UDP payload size assumed to pass, at least 1200 bytes.
    pub initial_mtu: u16,
    /// Largest UDP payload the MTU search tries; not above `initial_mtu` is no search.
    pub max_mtu: u16,
    /// Congestion control.
    pub congestion: CongestionControl,
    /// What an earlier connection left for congestion control, if this one goes on where that was.
    pub saved: Option<SavedState>,
    /// Whether packets are marked once the path has proved to carry it (RFC 9000 section 13.4).
    pub ecn: bool,
    /// What is taken away for measurements. Default nothing.
    pub laboratory: Laboratory,
}

impl Default for PathSettings {
    fn default() -> Self {
        PathSettings {
            id: 0,
            initial_rtt: Duration::from_millis(333),
            known_variation: None,
            initial_mtu: crate::mtu::BASE_MTU,
            max_mtu: 1472,
            congestion: CongestionControl::default(),
            saved: None,
            ecn: true,
            laboratory: Laboratory::default(),
        }
    }
}

/// What is assumed of the round-trip time at first.
pub(super) fn first_estimate(settings: &PathSettings) -> RttEstimator {
    let estimate = match settings.known_variation {
        Some(variation) => RttEstimator::known(settings.initial_rtt, variation),
        None => RttEstimator::new(settings.initial_rtt),
    };
    match settings.laboratory.retransmission_timer {
        Some(least_margin) => estimate.with_least_margin(least_margin),
        None => estimate,
    }
}

/// Counters of a path, since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PathStats {
    /// Packets sent.
    pub packets_sent: u64,
    /// Bytes sent, QUIC headers included.
    pub bytes_sent: u64,
    /// Bytes acknowledged.
    pub bytes_acked: u64,
    /// Packets declared lost that count as congestion.
    pub packets_lost: u64,
    /// Bytes of the packets declared lost.
    pub bytes_lost: u64,
    /// Packets declared lost and acknowledged later.
    pub spurious_losses: u64,
    /// Reductions of the window.
    pub congestion_events: u64,
    /// Reductions taken back.
    pub congestion_undone: u64,
    /// Times persistent congestion was established.
    pub persistent_congestion: u64,
    /// Probe timeouts.
    pub ptos: u64,
}
