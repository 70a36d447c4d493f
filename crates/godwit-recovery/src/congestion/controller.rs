//! What a congestion controller is told, and what it says.

use crate::RttEstimator;
use crate::delivery::RateSample;
use godwit_base::{Ecn, Time};
use std::fmt::Debug;
use std::time::Duration;

/// A packet that counts toward bytes in flight has been sent.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Sent {
    /// When.
    pub now: Time,
    /// Its size.
    pub bytes: u64,
    /// Bytes in flight, with it.
    pub bytes_in_flight: u64,
    /// It carries something that the peer must acknowledge.
    pub ack_eliciting: bool,
}

impl Sent {
    /// A packet that the peer must acknowledge.
    pub const fn new(now: Time, bytes: u64, bytes_in_flight: u64) -> Self {
        Sent { now, bytes, bytes_in_flight, ack_eliciting: true }
    }
}

/// What one ACK frame acknowledged on a path.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Acked<'a> {
    /// When the ACK frame came.
    pub now: Time,
    /// Bytes newly acknowledged and sent after the last reduction of the window; may be 0.
    pub bytes: u64,
    /// Bytes newly acknowledged, whenever they were sent.
    pub all_bytes: u64,
    /// When the largest packet newly acknowledged was sent.
    pub largest_sent_at: Time,
    /// The RTT sample of this ACK frame.
    pub rtt_sample: Option<Duration>,
    /// The path's RTT estimate, this sample included.
    pub rtt: &'a RttEstimator,
    /// Bytes in flight before this ACK frame.
    pub bytes_in_flight: u64,
    /// The sender used its window while these packets were sent. If not, the window must not grow (RFC 9002
    /// section 7.8).
    pub window_used: bool,
    /// The rate at which the path delivered, for controllers that
    /// [ask for it](CongestionController::wants_rate_samples).
    pub delivery: Option<RateSample>,
}

impl<'a> Acked<'a> {
    /// At this time, so many bytes: sent just now, with nothing else in flight, and all of the window in use.
    pub const fn new(now: Time, bytes: u64, rtt: &'a RttEstimator) -> Self {
        Acked {
            now,
            bytes,
            all_bytes: bytes,
            largest_sent_at: now,
            rtt_sample: None,
            rtt,
            bytes_in_flight: bytes,
            window_used: true,
            delivery: None,
        }
    }
}

/// A packet was found lost, and that means congestion: it was no probe of the path's MTU and did leave this host.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Lost {
    /// When it was found out.
    pub now: Time,
    /// Its size.
    pub bytes: u64,
    /// When it was sent.
    pub sent_at: Time,
    /// What was in flight when it was sent, with it, for controllers that
    /// [ask for rate samples](CongestionController::wants_rate_samples).
    pub in_flight: Option<u64>,
    /// Bytes lost since it was sent, with it; likewise.
    pub lost_since: Option<u64>,
    /// The sender had nothing more to send when it was sent; likewise.
    pub app_limited: Option<bool>,
}

impl Lost {
    /// A packet of which no rate sample is kept.
    pub const fn new(now: Time, bytes: u64, sent_at: Time) -> Self {
        Lost { now, bytes, sent_at, in_flight: None, lost_since: None, app_limited: None }
    }
}

/// What an ACK frame says of packets with an ECN mark.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CeMarks {
    /// When the ACK frame came.
    pub now: Time,
    /// Marked packets that it newly acknowledges.
    pub marked: u64,
    /// Those that it newly reports with "congestion experienced".
    pub ce: u64,
    /// Bytes in flight.
    pub bytes_in_flight: u64,
}

impl CeMarks {
    /// `ce` of `marked` packets met congestion.
    pub const fn new(now: Time, marked: u64, ce: u64, bytes_in_flight: u64) -> Self {
        CeMarks { now, marked, ce, bytes_in_flight }
    }
}

/// How fast packets may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pacing {
    /// Bytes per second.
    pub rate: u64,
    /// Bytes that may leave at once; at least one full packet may.
    pub burst: u64,
}

impl Pacing {
    /// At `rate` bytes per second, in bursts of `burst` bytes.
    pub const fn new(rate: u64, burst: u64) -> Self {
        Pacing { rate, burst }
    }
}

/// What a controller leaves to the controller of a later connection on the same path, which may trust it only as far as
/// RFC 9959 says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SavedState {
    /// The round-trip time; zero if unknown.
    pub rtt: Duration,
    /// The congestion window in bytes; zero if unknown.
    pub window: u64,
    /// The rate at which the path delivers, in bytes per second; zero if unknown.
    pub rate: u64,
}

/// How a path begins.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ControllerStart {
    /// When.
    pub now: Time,
    /// The size of full packets.
    pub mtu: u16,
    /// The round-trip time that is assumed until there is a sample.
    pub initial_rtt: Duration,
    /// What an earlier connection left, if this one goes on where that was.
    pub saved: Option<SavedState>,
}

impl ControllerStart {
    /// Of a path of which nothing is known.
    pub const fn new(now: Time, mtu: u16, initial_rtt: Duration) -> Self {
        ControllerStart { now, mtu, initial_rtt, saved: None }
    }
}

/// Makes the congestion controllers of a program's own. Shared by all its connections.
pub trait ControllerFactory: Debug + Send + Sync {
    /// A controller for a path.
    fn controller(&self, start: &ControllerStart) -> Box<dyn CongestionController>;

    /// The codepoint with which packets are marked once a path has proved to carry it: [`Ecn::Ect0`], as by default, or
    /// [`Ecn::Ect1`] for what keeps queues as short as RFC 9330 wants. Any other is taken for [`Ecn::Ect0`].
    fn ect(&self) -> Ecn {
        Ecn::Ect0
    }
}

/// A congestion control algorithm for one path. Windows are in bytes. A simple one implements what has no default.
pub trait CongestionController: Debug + Send {
    /// A packet was sent.
    fn on_sent(&mut self, sent: &Sent) {
        let _ = sent;
    }

    /// Packets were acknowledged.
    fn on_ack(&mut self, acked: &Acked<'_>);

    /// A packet was lost. For many, [`CongestionController::on_congestion`] is enough, which follows.
    fn on_lost(&mut self, lost: &Lost) {
        let _ = lost;
    }

    /// The path carries marks, and an ACK frame acknowledges marked packets. Where they report congestion,
    /// [`CongestionController::on_ce_congestion`] follows.
    fn on_ecn(&mut self, marks: &CeMarks) {
        let _ = marks;
    }

    /// The network is congested: reduce the window. Called at most once per round trip.
    fn on_congestion(&mut self, now: Time);

    /// The same, for "congestion experienced" alone. By default a mark is a loss (RFC 9002 section 7.1).
    fn on_ce_congestion(&mut self, now: Time) {
        self.on_congestion(now);
    }

    /// Persistent congestion: reduce the window to the minimum (RFC 9002 section 7.6.2). Comes after
    /// [`CongestionController::on_congestion`] if that was due as well.
    fn on_persistent_congestion(&mut self);

    /// The last [`CongestionController::on_congestion`] was made for packets that did arrive: undo it.
    fn on_spurious_congestion(&mut self) {}

    /// So many packets, of so many bytes, that had been told by [`CongestionController::on_lost`] have arrived after all:
    /// they were only late.
    fn on_late(&mut self, packets: u32, bytes: u64) {
        let _ = (packets, bytes);
    }

    /// The network says "congested" whatever is sent, and what it said so far meant nothing: look for its
    /// capacity anew.
    fn on_false_alarm(&mut self) {}

    /// Full packets have this size from now on.
    fn on_mtu_changed(&mut self, mtu: u16);

    /// When [`CongestionController::on_deadline`] is to be called. By default never.
    fn deadline(&self) -> Option<Time> {
        None
    }

    /// The deadline has come. It must be another afterwards.
    fn on_deadline(&mut self, now: Time) {
        let _ = now;
    }

    /// The congestion window.
    fn window(&self) -> u64;

    /// The slow start threshold, once there is one.
    fn slow_start_threshold(&self) -> Option<u64> {
        None
    }

    /// True in slow start: the path is paced at twice the window per round trip.
    fn is_slow_start(&self) -> bool {
        self.slow_start_threshold().is_none_or(|threshold| self.window() < threshold)
    }

    /// How fast packets may leave. By default, 1.25 times the window per round trip, or twice in slow start.
    fn pacing(&self) -> Option<Pacing> {
        None
    }

    /// Whether [`Acked::delivery`] is wanted, which costs some bytes and instructions per packet. Asked once, at the
    /// start.
    fn wants_rate_samples(&self) -> bool {
        false
    }

    /// True while the controller sends faster than it has known the path to deliver, to see whether it delivers more.
    /// Slow start is no such time. By default never.
    fn is_probing(&self) -> bool {
        false
    }

    /// What to leave to a later connection. By default, the round-trip time and the window.
    fn export(&self) -> Option<SavedState> {
        None
    }
}
