//! A program's own congestion controller can be tested alone: what it is told can be made outside of this crate.

use godwit_base::Time;
use godwit_recovery::RttEstimator;
use godwit_recovery::congestion::{
    Acked, CeMarks, CongestionControl, CongestionController, ControllerStart, Lost, Sent,
};
use std::time::Duration;

/// Adds what was acknowledged, takes away what was lost or marked.
#[derive(Debug)]
struct Ledger(u64);

impl CongestionController for Ledger {
    fn on_sent(&mut self, sent: &Sent) {
        assert!(sent.ack_eliciting && sent.bytes <= sent.bytes_in_flight);
    }

    fn on_ack(&mut self, acked: &Acked<'_>) {
        assert!(acked.window_used && acked.rtt_sample.is_none() && acked.delivery.is_none());
        self.0 += acked.bytes;
    }

    fn on_lost(&mut self, lost: &Lost) {
        assert!(lost.sent_at < lost.now && lost.in_flight.is_none());
        self.0 -= lost.bytes;
    }

    fn on_ecn(&mut self, marks: &CeMarks) {
        self.0 -= marks.ce * marks.bytes_in_flight / marks.marked;
    }

    fn on_congestion(&mut self, _: Time) {}

    fn on_persistent_congestion(&mut self) {}

    fn on_mtu_changed(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        self.0
    }
}

#[test]
fn a_controller_is_told_by_its_own_tests() {
    let (rtt, later) = (RttEstimator::new(Duration::from_millis(50)), Time::from_nanos(50_000_000));
    let mut controller = Ledger(10_000);
    controller.on_sent(&Sent::new(Time::ZERO, 1_200, 1_200));
    controller.on_ack(&Acked::new(later, 1_200, &rtt));
    assert_eq!(controller.window(), 11_200);
    controller.on_lost(&Lost::new(later, 700, Time::ZERO));
    controller.on_ecn(&CeMarks::new(later, 4, 1, 2_000));
    assert_eq!(controller.window(), 10_000);
}

#[test]
fn a_controller_that_says_nothing_of_it_is_as_the_interface_says() {
    let controller = Ledger(10_000);
    assert_eq!((controller.slow_start_threshold(), controller.is_slow_start()), (None, true));
    assert!(controller.pacing().is_none() && controller.export().is_none());
    assert!(!controller.wants_rate_samples() && !controller.is_probing());
}

#[test]
fn a_function_makes_the_controllers_of_a_program() {
    let control = CongestionControl::custom(|start| Ledger(start.mtu.into()));
    let CongestionControl::Custom(factory) = control else { panic!("{control:?}") };
    let start = ControllerStart::new(Time::ZERO, 1_337, Duration::from_millis(50));
    assert_eq!(factory.controller(&start).window(), 1_337);
}
