//! Congestion control: how many bytes may be in flight on a path (RFC 9002 section 7).
//!
//! An algorithm sees acknowledgements summed up per ACK frame, reductions at most once per round trip, and the
//! withdrawal of a reduction that was made for nothing. Which packet belongs to which round trip is the path's
//! business. No algorithm here uses floating point, so that every platform computes the same window.
//!
//! Programs bring their own by [`CongestionControl::custom`], or as a [`ControllerFactory`]: it makes a
//! [`CongestionController`] for each path. Those may ask for [delivery-rate samples](RateSample), pace as they
//! like, have a deadline of their own, begin with what an earlier connection knew and leave something to the next.

pub mod bbr;
mod controller;
pub mod cubic;
mod history;
mod name;
pub mod new_reno;
pub mod prague;

pub use controller::{
    Acked, CeMarks, CongestionController, ControllerFactory, ControllerStart, Lost, Pacing, SavedState, Sent,
};
pub use name::UnknownAlgorithm;

pub use crate::delivery::RateSample;
pub(crate) use history::REMEMBERED;

use bbr::Bbr;
use cubic::Cubic;
use godwit_base::{Ecn, Time};
use new_reno::NewReno;
use prague::Prague;
use std::fmt;
use std::sync::Arc;

/// The algorithms that come with this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Algorithm {
    /// NewReno as in RFC 9002 section 7 and appendix B.
    NewReno,
    /// CUBIC (RFC 9438) with HyStart++ (RFC 9406).
    Cubic,
    /// BBR (draft-ietf-ccwg-bbr), with a faster start.
    #[default]
    Bbr,
    /// Prague (draft-briscoe-iccrg-prague-congestion-control): short queues where the network marks packets as RFC 9331
    /// has it, and CUBIC elsewhere.
    Prague,
}

/// Who controls the congestion of a connection's paths.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum CongestionControl {
    /// An algorithm that comes with this crate.
    BuiltIn(Algorithm),
    /// The caller's own.
    Custom(Arc<dyn ControllerFactory>),
}

impl Default for CongestionControl {
    fn default() -> Self {
        CongestionControl::BuiltIn(Algorithm::default())
    }
}

impl From<Algorithm> for CongestionControl {
    fn from(algorithm: Algorithm) -> Self {
        CongestionControl::BuiltIn(algorithm)
    }
}

impl CongestionControl {
    /// The controllers that `make` makes, one for each path: what a [`ControllerFactory`] does that says nothing
    /// besides.
    pub fn custom<C: CongestionController + 'static>(
        make: impl Fn(&ControllerStart) -> C + Send + Sync + 'static,
    ) -> Self {
        CongestionControl::Custom(Arc::new(Making(make)))
    }

    /// The codepoint with which packets are marked once a path has proved to carry it.
    pub(crate) fn ect(&self) -> Ecn {
        match self {
            CongestionControl::BuiltIn(Algorithm::Prague) => Ecn::Ect1,
            CongestionControl::BuiltIn(_) => Ecn::Ect0,
            CongestionControl::Custom(factory) => factory.ect(),
        }
    }
}

/// A factory that is nothing but a function.
struct Making<F>(F);

impl<C: CongestionController + 'static, F: Fn(&ControllerStart) -> C + Send + Sync> ControllerFactory
    for Making<F>
{
    fn controller(&self, start: &ControllerStart) -> Box<dyn CongestionController> {
        Box::new((self.0)(start))
    }
}

impl<F> fmt::Debug for Making<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ControllerFactory")
    }
}

/// The congestion controller of a path.
#[derive(Debug)]
pub enum Controller {
    /// NewReno.
    NewReno(NewReno),
    /// CUBIC.
    Cubic(Box<Cubic>),
    /// BBR.
    Bbr(Box<Bbr>),
    /// Prague.
    Prague(Box<Prague>),
    /// One that the caller brought along.
    Custom(Box<dyn CongestionController>),
}

macro_rules! each {
    ($self:expr, $inner:ident => $call:expr) => {
        match $self {
            Controller::NewReno($inner) => $call,
            Controller::Cubic($inner) => $call,
            Controller::Bbr($inner) => $call,
            Controller::Prague($inner) => $call,
            Controller::Custom($inner) => $call,
        }
    };
}

impl Controller {
    /// The controller of a path that begins like this.
    pub fn begin(control: &CongestionControl, start: &ControllerStart) -> Self {
        match control {
            CongestionControl::BuiltIn(Algorithm::NewReno) => Controller::NewReno(NewReno::new(start.mtu)),
            CongestionControl::BuiltIn(Algorithm::Cubic) => {
                Controller::Cubic(Box::new(Cubic::new(start.mtu)))
            }
            CongestionControl::BuiltIn(Algorithm::Bbr) => Controller::Bbr(Box::new(Bbr::new(start))),
            CongestionControl::BuiltIn(Algorithm::Prague) => {
                Controller::Prague(Box::new(Prague::new(start.mtu)))
            }
            CongestionControl::Custom(factory) => Controller::Custom(factory.controller(start)),
        }
    }

    /// See [`CongestionController::on_ack`].
    pub fn on_ack(&mut self, acked: &Acked<'_>) {
        each!(self, inner => inner.on_ack(acked));
    }

    /// See [`CongestionController::on_congestion`].
    pub fn on_congestion(&mut self, now: Time) {
        each!(self, inner => inner.on_congestion(now));
    }

    /// See [`CongestionController::on_ce_congestion`].
    pub fn on_ce_congestion(&mut self, now: Time) {
        each!(self, inner => inner.on_ce_congestion(now));
    }

    /// See [`CongestionController::on_persistent_congestion`].
    pub fn on_persistent_congestion(&mut self) {
        each!(self, inner => inner.on_persistent_congestion());
    }

    /// See [`CongestionController::on_spurious_congestion`].
    pub fn on_spurious_congestion(&mut self) {
        each!(self, inner => inner.on_spurious_congestion());
    }

    /// The reduction that so many others have followed was made for packets that did arrive: makes up for it. False if the
    /// controller does not do that.
    pub(crate) fn on_spurious_earlier(&mut self, events_ago: usize) -> bool {
        match self {
            Controller::NewReno(inner) => inner.undo_earlier(events_ago),
            Controller::Cubic(inner) => inner.undo_earlier(events_ago),
            Controller::Bbr(_) | Controller::Prague(_) | Controller::Custom(_) => return false,
        }
        true
    }

    /// See [`CongestionController::on_false_alarm`].
    pub fn on_false_alarm(&mut self) {
        each!(self, inner => inner.on_false_alarm());
    }

    /// See [`CongestionController::on_mtu_changed`].
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

    /// Whether reductions are spread over a round trip by the path, because the controller has no pace of its own.
    pub(crate) const fn wants_prr(&self) -> bool {
        matches!(self, Controller::NewReno(_) | Controller::Cubic(_))
    }

    /// Whether the path makes it resume what an earlier one has left. BBR exports, but its own start is faster, and
    /// controllers of a caller's own are given what was left to do with it what they like.
    pub(crate) const fn wants_resume(&self) -> bool {
        matches!(self, Controller::NewReno(_) | Controller::Cubic(_) | Controller::Prague(_))
    }

    /// Makes the window so large, and with a threshold slow start end there.
    pub(crate) fn set_window(&mut self, window: u64, threshold: Option<u64>) {
        match self {
            Controller::NewReno(inner) => inner.set_window(window, threshold),
            Controller::Cubic(inner) => inner.resume_at(window, threshold),
            Controller::Prague(inner) => inner.set_window(window, threshold),
            Controller::Bbr(_) | Controller::Custom(_) => {}
        }
    }

    /// See [`CongestionController::on_sent`].
    #[inline]
    pub(crate) fn on_sent(&mut self, sent: &Sent) {
        match self {
            Controller::Bbr(inner) => inner.on_sent(sent),
            Controller::Custom(inner) => inner.on_sent(sent),
            Controller::NewReno(_) | Controller::Cubic(_) | Controller::Prague(_) => {}
        }
    }

    /// See [`CongestionController::pacing`].
    #[inline]
    pub(crate) fn pacing(&self) -> Option<Pacing> {
        match self {
            Controller::Bbr(inner) => inner.pacing(),
            Controller::Prague(inner) => inner.pacing(),
            Controller::Custom(inner) => inner.pacing(),
            Controller::NewReno(_) | Controller::Cubic(_) => None,
        }
    }

    /// One that is told of every packet, may pace as it likes and have a deadline; the others do without.
    #[inline]
    pub(crate) fn detailed_mut(&mut self) -> Option<&mut dyn CongestionController> {
        match self {
            Controller::Custom(inner) => Some(inner.as_mut()),
            Controller::Bbr(inner) => Some(inner.as_mut()),
            Controller::Prague(inner) => Some(inner.as_mut()),
            Controller::NewReno(_) | Controller::Cubic(_) => None,
        }
    }

    #[inline]
    pub(crate) fn detailed(&self) -> Option<&dyn CongestionController> {
        match self {
            Controller::Custom(inner) => Some(inner.as_ref()),
            Controller::Bbr(inner) => Some(inner.as_ref()),
            Controller::Prague(inner) => Some(inner.as_ref()),
            Controller::NewReno(_) | Controller::Cubic(_) => None,
        }
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
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;

    #[test]
    fn the_initial_window_is_of_the_mtu_that_is_found_until_something_is_lost() {
        let mut window = initial_window(1200);
        window = window_after_mtu_change(window, 1472, None);
        assert_eq!(window, initial_window(1472));
        assert_eq!(window_after_mtu_change(window, 1200, None), window, "it never shrinks");
        assert_eq!(window_after_mtu_change(3000, 9000, Some(3000)), minimum_window(9000));
    }

    /// The controllers that are built in and know losses.
    fn classic() -> [Box<dyn CongestionController>; 3] {
        [Box::new(NewReno::new(1200)), Box::new(Cubic::new(1200)), Box::new(Prague::new(1200))]
    }

    #[test]
    fn marks_that_meant_nothing_are_forgotten_with_all_that_was_learnt() {
        for mut controller in classic() {
            controller.on_congestion(Time::ZERO);
            controller.on_ce_congestion(Time::ZERO);
            assert!(controller.window() < initial_window(1200) && !controller.is_slow_start());
            controller.on_false_alarm();
            let state = (controller.window(), controller.slow_start_threshold());
            assert_eq!(state, (initial_window(1200), None), "{controller:?}");
        }
    }

    #[test]
    fn a_larger_mtu_makes_larger_windows() {
        for mut controller in classic() {
            controller.on_mtu_changed(1472);
            assert_eq!(controller.window(), initial_window(1472), "{controller:?}");
            controller.on_persistent_congestion();
            assert_eq!(controller.window(), minimum_window(1472), "{controller:?}");
        }
    }

    #[test]
    fn a_reduction_that_was_none_is_undone() {
        for mut controller in classic() {
            controller.on_congestion(Time::ZERO);
            controller.on_spurious_congestion();
            let state = (controller.window(), controller.slow_start_threshold());
            assert_eq!(state, (initial_window(1200), None), "{controller:?}");
        }
    }

    #[test]
    fn a_mark_costs_by_the_controller() {
        let after = classic().map(|mut controller| {
            controller.on_ce_congestion(Time::ZERO);
            controller.window()
        });
        assert_eq!(after, [9600, 10_200, 6000]);
    }

    #[test]
    fn packets_are_marked_as_the_controller_wants_them() {
        let custom = CongestionControl::custom(|_| NewReno::new(1200));
        let marks = [Algorithm::Prague.into(), Algorithm::Cubic.into(), custom];
        assert_eq!(marks.map(|control: CongestionControl| control.ect()), [Ecn::Ect1, Ecn::Ect0, Ecn::Ect0]);
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

    impl CongestionController for Fixed {
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
