//! Congestion control: how many bytes may be in flight on a path (RFC 9002 section 7).
//!
//! An algorithm sees acknowledgements summed up per ACK frame, reductions at most once per round trip, and the
//! withdrawal of a reduction that was made for nothing. Which packet belongs to which round trip is the path's
//! business. No algorithm uses floating point, so that every platform computes the same window.

pub mod cubic;
pub mod new_reno;

use crate::RttEstimator;
use cubic::Cubic;
use godwit_base::Time;
use new_reno::NewReno;
use std::fmt::Debug;
use std::time::Duration;

/// The algorithms that come with this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Algorithm {
    /// NewReno as in RFC 9002 section 7 and appendix B.
    NewReno,
    /// CUBIC (RFC 9438) with HyStart++ (RFC 9406).
    #[default]
    Cubic,
}

/// What one ACK frame acknowledged on a path.
#[derive(Debug, Clone, Copy)]
pub struct Acked<'a> {
    /// When the ACK frame came.
    pub now: Time,
    /// Bytes newly acknowledged and sent after the last reduction of the window; may be 0.
    pub bytes: u64,
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
}

/// A congestion control algorithm. Windows are in bytes.
pub trait CongestionControl: Debug + Send {
    /// Packets were acknowledged.
    fn on_ack(&mut self, acked: &Acked<'_>);
    /// The network is congested: reduce the window. Called at most once per round trip.
    fn on_congestion(&mut self, now: Time);
    /// Persistent congestion: reduce the window to the minimum (RFC 9002 section 7.6.2). Comes after
    /// [`CongestionControl::on_congestion`] if that was due as well.
    fn on_persistent_congestion(&mut self);
    /// The last [`CongestionControl::on_congestion`] was made for packets that did arrive: undo it.
    fn on_spurious_congestion(&mut self);
    /// The network says "congested" whatever is sent, and what it said so far meant nothing: look for its
    /// capacity anew.
    fn on_false_alarm(&mut self) {}
    /// Full packets have this size from now on.
    fn on_mtu_changed(&mut self, mtu: u16);
    /// The congestion window.
    fn window(&self) -> u64;
    /// The slow start threshold, once there is one.
    fn slow_start_threshold(&self) -> Option<u64>;
    /// True in slow start: the path is paced at twice the window per round trip.
    fn is_slow_start(&self) -> bool {
        self.slow_start_threshold().is_none_or(|threshold| self.window() < threshold)
    }
}

/// The congestion controller of a path.
#[derive(Debug)]
pub enum Controller {
    /// NewReno.
    NewReno(NewReno),
    /// CUBIC.
    Cubic(Cubic),
    /// One that the caller brought along.
    Custom(Box<dyn CongestionControl>),
}

macro_rules! each {
    ($self:expr, $inner:ident => $call:expr) => {
        match $self {
            Controller::NewReno($inner) => $call,
            Controller::Cubic($inner) => $call,
            Controller::Custom($inner) => $call,
        }
    };
}

impl Controller {
    /// A controller in slow start with the initial window.
    pub fn new(algorithm: Algorithm, mtu: u16) -> Self {
        match algorithm {
            Algorithm::NewReno => Controller::NewReno(NewReno::new(mtu)),
            Algorithm::Cubic => Controller::Cubic(Cubic::new(mtu)),
        }
    }

    /// See [`CongestionControl::on_ack`].
    pub fn on_ack(&mut self, acked: &Acked<'_>) {
        each!(self, inner => inner.on_ack(acked));
    }

    /// See [`CongestionControl::on_congestion`].
    pub fn on_congestion(&mut self, now: Time) {
        each!(self, inner => inner.on_congestion(now));
    }

    /// See [`CongestionControl::on_persistent_congestion`].
    pub fn on_persistent_congestion(&mut self) {
        each!(self, inner => inner.on_persistent_congestion());
    }

    /// See [`CongestionControl::on_spurious_congestion`].
    pub fn on_spurious_congestion(&mut self) {
        each!(self, inner => inner.on_spurious_congestion());
    }

    /// See [`CongestionControl::on_false_alarm`].
    pub fn on_false_alarm(&mut self) {
        each!(self, inner => inner.on_false_alarm());
    }

    /// See [`CongestionControl::on_mtu_changed`].
    pub fn on_mtu_changed(&mut self, mtu: u16) {
        each!(self, inner => inner.on_mtu_changed(mtu));
    }

    /// The congestion window in bytes.
    pub fn window(&self) -> u64 {
        each!(self, inner => inner.window())
    }

    /// The slow start threshold in bytes, once there is one.
    pub fn slow_start_threshold(&self) -> Option<u64> {
        each!(self, inner => inner.slow_start_threshold())
    }

    /// True in slow start.
    pub fn is_slow_start(&self) -> bool {
        each!(self, inner => inner.is_slow_start())
    }
}

/// The initial window (RFC 9002 section 7.2).
pub fn initial_window(mtu: u16) -> u64 {
    let mtu = u64::from(mtu);
    mtu.saturating_mul(10).min(mtu.saturating_mul(2).max(14_720))
}

/// The window after the MTU has changed: the initial one is recalculated as long as nothing has shrunk it (RFC 9002
/// section 7.2).
fn window_after_mtu_change(window: u64, mtu: u16, threshold: Option<u64>) -> u64 {
    window.max(if threshold.is_none() { initial_window(mtu) } else { minimum_window(mtu) })
}

/// The least the window shrinks to (RFC 9002 section 7.2).
pub fn minimum_window(mtu: u16) -> u64 {
    u64::from(mtu).saturating_mul(2)
}

/// Counts numerators and gives out whole quotients, keeping the remainder, so that growth by fractions of a
/// byte per acknowledgement is not rounded away.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fraction {
    remainder: u128,
}

impl Fraction {
    pub(crate) fn add(&mut self, numerator: u128, denominator: u128) -> u64 {
        let sum = self.remainder.saturating_add(numerator);
        let quotient = sum.checked_div(denominator).unwrap_or(0);
        self.remainder = sum.checked_rem(denominator).unwrap_or(0);
        u64::try_from(quotient).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;

    #[test]
    fn the_initial_window_is_of_the_mtu_that_is_found_until_something_is_lost() {
        let mut window = initial_window(1200);
        window = window_after_mtu_change(window, 1472, None);
        assert_eq!(window, initial_window(1472));
        assert_eq!(window_after_mtu_change(window, 1200, None), window, "it never shrinks");
        assert_eq!(window_after_mtu_change(3000, 9000, Some(3000)), minimum_window(9000));
    }

    #[test]
    fn windows_follow_rfc_9002_section_7_2() {
        assert_eq!(
            (initial_window(1200), initial_window(1472), initial_window(9000)),
            (12_000, 14_720, 18_000)
        );
        assert_eq!(minimum_window(1200), 2400);
    }

    #[test]
    fn fractions_add_up() {
        let mut fraction = Fraction::default();
        let whole: u64 = (0..3000).map(|_| fraction.add(1, 3)).sum();
        assert_eq!(whole, 1000);
        assert_eq!(fraction.add(1, 0), 0);
    }

    #[derive(Debug)]
    struct Fixed(u64);

    impl CongestionControl for Fixed {
        fn on_ack(&mut self, _: &Acked<'_>) {}
        fn on_congestion(&mut self, _: Time) {
            self.0 /= 2;
        }
        fn on_persistent_congestion(&mut self) {}
        fn on_spurious_congestion(&mut self) {}
        fn on_mtu_changed(&mut self, _: u16) {}
        fn window(&self) -> u64 {
            self.0
        }
        fn slow_start_threshold(&self) -> Option<u64> {
            Some(1)
        }
    }

    #[test]
    fn a_custom_algorithm_is_asked() {
        let mut controller = Controller::Custom(Box::new(Fixed(10_000)));
        controller.on_congestion(Time::ZERO);
        assert_eq!((controller.window(), controller.is_slow_start()), (5000, false));
    }
}
