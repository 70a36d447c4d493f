//! Loss detection, congestion control, pacing, path-MTU search and acknowledgement generation.
//!
//! Recovery knows packets, not frames: what a packet carried is a run of opaque tokens (`T: Copy`), handed
//! back with an [`Outcome`] when the packet is acknowledged or lost. Three kinds of value make it up:
//!
//! * [`SpaceRecovery`]: the sent packets of one packet number space. Dropped with its keys.
//! * [`PathRecovery`]: what belongs to a network path: RTT, window, pacer, MTU, ECN, PTO back-off.
//! * [`AckTracker`]: the received packets of one packet number space.
//!
//! Nothing here reads a clock, and the only randomness is handed in. Nothing allocates per packet once
//! its rings have grown to the size of the window. (RFC 9002, RFC 9000 section 13, RFC 9438, RFC 9406,
//! RFC 8899, RFC 9937,
//! RFC 9959.)
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod ack_policy;
mod ack_tracker;
mod ambiguity;
pub mod congestion;
mod delivery;
mod detection;
mod ecn;
mod flight;
mod laboratory;
mod loss;
mod mtu;
mod pacer;
mod path;
mod prr;
mod refused;
mod resume;
mod rtt;
mod sent;
mod space;
mod sparse;
mod summary;
mod tallies;
mod tally;
mod timer;

pub use ack_policy::AckPolicy;
pub use ack_tracker::{AckTracker, EcnCounts, Received};
pub use congestion::{Algorithm, CongestionControl, Controller, SavedState};
pub use ecn::{EcnAcked, EcnFailure, EcnState, EcnStats, EcnValidation};
pub use laboratory::Laboratory;
pub use mtu::{BASE_MTU, MtuCounters, MtuSearch};
pub use path::{PathRecovery, PathSettings, PathStats, Paths};
pub use rtt::RttEstimator;
pub use space::{AckError, AckSummary, LossSummary, Outcome, SentInfo, SpaceId, SpaceRecovery};
pub use timer::{TimerInputs, TimerKind, timer};
