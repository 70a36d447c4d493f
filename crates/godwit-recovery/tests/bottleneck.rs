//! A sender without end behind one drop-tail bottleneck, in virtual time: how much of the link is used.
#![allow(missing_docs, reason = "tests")]

use godwit_base::{Ecn, Rng, SeededRng, Time};
use godwit_recovery::{
    AckTracker, Algorithm, PathRecovery, PathSettings, SentInfo, SpaceId, SpaceRecovery, TimerInputs,
    TimerKind, timer,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::RangeInclusive;
use std::time::Duration;

const SIZE: u64 = 1200;

#[derive(Debug, Clone, Copy)]
struct Scenario {
    algorithm: Algorithm,
    megabits: u64,
    rtt_ms: u64,
    /// Queue in hundredths of the bandwidth-delay product.
    queue_percent: u64,
    /// One packet in so many is dropped; 0 is none.
    loss: u64,
    /// One packet in so many comes `reorder_ms` late; 0 is none.
    reorder: u64,
    reorder_ms: u64,
    /// The sender has data only in the first half of each second.
    half_idle: bool,
    /// Until then the sender has three packets at a time only, every 400 ms.
    small_until: u64,
}

const CLEAN: Scenario = Scenario {
    algorithm: Algorithm::Cubic,
    megabits: 10,
    rtt_ms: 50,
    queue_percent: 100,
    loss: 0,
    reorder: 0,
    reorder_ms: 0,
    half_idle: false,
    small_until: 0,
};

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival(u64),
    Ack(Vec<(u64, u64)>),
    AckTimer,
    Wake,
}

struct Link {
    scenario: Scenario,
    rng: SeededRng,
    busy_until: Time,
    dropped: u64,
}

impl Link {
    fn serialisation(&self) -> Duration {
        Duration::from_nanos(SIZE * 8 * 1000 / self.scenario.megabits)
    }

    /// When a packet sent now arrives, if it does.
    fn send(&mut self, now: Time) -> Option<Time> {
        let Scenario { rtt_ms, queue_percent, loss, reorder, reorder_ms, .. } = self.scenario;
        if loss > 0 && self.rng.below(loss) == 0 {
            self.dropped += 1;
            return None;
        }
        let limit =
            (Duration::from_millis(rtt_ms) * queue_percent as u32 / 100).max(self.serialisation() * 4);
        if self.busy_until.saturating_since(now) > limit {
            self.dropped += 1;
            return None;
        }
        self.busy_until = self.busy_until.max(now) + self.serialisation();
        let late = reorder > 0 && self.rng.below(reorder) == 0;
        let extra = Duration::from_millis(if late { reorder_ms } else { 0 });
        Some(self.busy_until + Duration::from_millis(rtt_ms) / 2 + extra)
    }
}

struct Run {
    link: Link,
    path: PathRecovery,
    space: SpaceRecovery<u64>,
    receiver: AckTracker,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    order: u64,
    wake_at: Option<Time>,
    arrived: u64,
}

#[derive(Debug)]
struct Report {
    /// Percent of what the link could carry.
    used: u64,
    sent: u64,
    dropped: u64,
    path: godwit_recovery::PathStats,
}

fn run(scenario: Scenario, seconds: u64) -> Report {
    let mut settings = PathSettings::default();
    settings.congestion = scenario.algorithm.into();
    settings.max_mtu = 1200;
    let link = Link { scenario, rng: SeededRng::new(1), busy_until: Time::ZERO, dropped: 0 };
    let mut run = Run {
        link,
        path: PathRecovery::new(Time::ZERO, &settings),
        space: SpaceRecovery::new(SpaceId::Data),
        receiver: AckTracker::delayed(Duration::from_millis(25)),
        events: BinaryHeap::new(),
        order: 0,
        wake_at: None,
        arrived: 0,
    };
    run.push(Time::ZERO, Event::Wake);
    let end = Time::ZERO + Duration::from_secs(seconds);
    while let Some(Reverse((now, _, event))) = run.events.pop() {
        if now >= end {
            break;
        }
        run.step(now, event);
    }
    let possible = seconds * scenario.megabits * 1_000_000 / 8 / SIZE;
    let path = *run.path.stats();
    Report { used: run.arrived * 100 / possible, sent: path.packets_sent, dropped: run.link.dropped, path }
}

impl Run {
    fn push(&mut self, at: Time, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, event)));
    }

    fn step(&mut self, now: Time, event: Event) {
        match event {
            Event::Arrival(number) => {
                assert!(!self.receiver.is_duplicate(number));
                self.receiver.on_packet_received(number, now, true, Ecn::NotEct);
                self.receiver.on_batch_end(now, Duration::ZERO);
                self.arrived += 1;
                self.acknowledge(now);
                if let Some(at) = self.receiver.ack_deadline() {
                    self.push(at, Event::AckTimer);
                }
                return;
            }
            Event::AckTimer => return self.acknowledge(now),
            Event::Ack(ranges) => {
                let largest = ranges[0].1;
                let ranges = ranges.into_iter().map(|(from, to)| RangeInclusive::new(from, to));
                let receiver = &mut self.receiver;
                let mut seen = |_, token: u64| {
                    if token.is_multiple_of(50) {
                        receiver.on_ack_acked(token / 2)
                    }
                };
                self.space
                    .on_ack_received(&mut self.path, now, largest, Duration::ZERO, ranges, &mut seen)
                    .expect("only packets that were sent are acknowledged");
            }
            Event::Wake => {}
        }
        self.sender(now);
    }

    fn acknowledge(&mut self, now: Time) {
        if self.receiver.ack_due(now) {
            let ranges =
                self.receiver.ranges().take(32).map(|range| (*range.start(), *range.end())).collect();
            self.receiver.on_ack_sent(now);
            self.push(now + Duration::from_millis(self.link.scenario.rtt_ms) / 2, Event::Ack(ranges));
        }
    }

    fn loss_timer(&self) -> Option<(Time, TimerKind)> {
        let inputs = TimerInputs {
            handshake_confirmed: true,
            has_handshake_keys: false,
            awaits_handshake: false,
            amplification_blocked: false,
            most_backed_off: None,
        };
        timer(&self.path, inputs)
    }

    fn sender(&mut self, now: Time) {
        let mut probes = 0;
        while let Some((at, kind)) = self.loss_timer() {
            if at > now {
                break;
            }
            match kind {
                TimerKind::LossTime(_) => {
                    self.space.on_loss_timer(&mut self.path, now, &mut |_, _| {});
                }
                TimerKind::Pto(_) => {
                    self.path.on_pto(now);
                    probes = 1;
                    self.transmit(now);
                }
            }
        }
        let mut paced = None;
        let Scenario { half_idle, small_until, .. } = self.link.scenario;
        let small = now < Time::ZERO + Duration::from_secs(small_until);
        let (part, period) = if small { (3_000_000, 400_000_000) } else { (500_000_000, 1_000_000_000) };
        let has_data = !(half_idle || small) || now.as_nanos() % period < part;
        while probes == 0 && has_data && self.path.can_send(SIZE as usize) {
            paced = self.path.next_send_time(now, SIZE as usize);
            if paced.is_some() {
                break;
            }
            self.transmit(now);
        }
        if !has_data {
            self.path.on_app_limited();
            paced = Some(Time::from_nanos((now.as_nanos() / period + 1) * period));
        }
        let next = [paced, self.loss_timer().map(|(at, _)| at)].into_iter().flatten().min();
        if let Some(at) = next
            && self.wake_at.is_none_or(|before| before <= now || at < before)
        {
            self.wake_at = Some(at);
            self.push(at, Event::Wake);
        }
    }

    fn transmit(&mut self, now: Time) {
        let packet_number = self.space.next_packet_number(&mut self.link.rng);
        let info = SentInfo {
            packet_number,
            now,
            bytes: SIZE as usize,
            ack_eliciting: true,
            in_flight: true,
            mtu_probe: false,
            marked: false,
        };
        self.space.on_packet_sent(&mut self.path, info, &[packet_number]);
        if let Some(at) = self.link.send(now) {
            self.push(at, Event::Arrival(packet_number));
        }
    }
}

#[test]
fn a_clean_link_with_a_queue_is_filled() {
    // Slow start takes its share of the eight seconds where the round trip is long.
    for (megabits, rtt_ms, least) in [(5, 5, 95), (10, 50, 90), (100, 50, 90), (50, 200, 75), (1000, 5, 95)] {
        let report = run(Scenario { megabits, rtt_ms, ..CLEAN }, 8);
        assert!(report.used >= least, "{megabits} Mbit/s, {rtt_ms} ms: {report:?}");
        assert!(report.dropped * 25 <= report.sent, "{megabits} Mbit/s, {rtt_ms} ms: {report:?}");
        assert_eq!(report.path.spurious_losses, 0, "nothing is lost that was not dropped");
        assert_eq!(report.path.ptos, 0);
    }
}

#[test]
fn a_short_queue_is_lived_with() {
    let report = run(Scenario { queue_percent: 20, ..CLEAN }, 20);
    assert!(report.used >= 70, "{report:?}");
    let report = run(Scenario { algorithm: Algorithm::NewReno, ..CLEAN }, 20);
    assert!(report.used >= 85, "{report:?}");
}

#[test]
fn every_drop_is_found_and_nothing_else() {
    let report = run(Scenario { loss: 200, megabits: 20, ..CLEAN }, 10);
    assert!(report.path.packets_lost.abs_diff(report.dropped) <= 40, "{report:?}");
    assert_eq!(report.path.spurious_losses, 0);
    assert!(report.used >= 15, "{report:?}");
}

#[test]
fn reordering_without_loss_costs_little() {
    let reordered = Scenario { reorder: 100, reorder_ms: 10, megabits: 20, queue_percent: 500, ..CLEAN };
    let report = run(reordered, 10);
    assert!(report.used >= 80, "{report:?}");
    assert!(report.path.congestion_undone > 0, "{report:?}");
}

#[test]
fn an_idle_sender_does_not_grow_its_window_without_bound() {
    let scenario = Scenario { megabits: 100, half_idle: true, ..CLEAN };
    let report = run(scenario, 8);
    assert!((30..=50).contains(&report.used), "{report:?}");
    assert!(report.dropped * 20 <= report.sent, "{report:?}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let scenario = Scenario { loss: 100, reorder: 50, reorder_ms: 3, ..CLEAN };
    assert_eq!(format!("{:?}", run(scenario, 3)), format!("{:?}", run(scenario, 3)));
}

const MODELLED: Scenario = Scenario { algorithm: Algorithm::Bbr, ..CLEAN };

#[test]
fn a_model_of_the_path_fills_it_whatever_the_queue_holds() {
    for queue_percent in [20, 100, 500] {
        for (megabits, rtt_ms, least) in [(10, 50, 94), (100, 50, 94), (50, 200, 88), (20, 500, 80)] {
            let scenario = Scenario { megabits, rtt_ms, queue_percent, ..MODELLED };
            let report = run(scenario, 10);
            assert!(report.used >= least, "{scenario:?}: {report:?}");
            assert!(report.dropped * 100 <= report.sent * 2, "{scenario:?}: {report:?}");
        }
    }
}

#[test]
fn losses_that_nothing_pushed_out_cost_little_more_than_themselves() {
    for (loss, least) in [(1000, 90), (28, 75), (14, 60)] {
        let report = run(Scenario { loss, rtt_ms: 350, ..MODELLED }, 20);
        assert!(report.used >= least, "1/{loss}: {report:?}");
    }
}

#[test]
fn packets_out_of_order_cost_a_model_nothing() {
    let clean = run(MODELLED, 10);
    let report = run(Scenario { reorder: 1000, reorder_ms: 10, ..MODELLED }, 10);
    assert!(report.used + 1 >= clean.used, "{report:?} beside {clean:?}");
}

#[test]
fn pauses_do_not_make_a_model_forget() {
    let report = run(Scenario { half_idle: true, ..MODELLED }, 20);
    assert!(report.used >= 44, "half of the time: {report:?}");
    assert!(report.dropped * 100 <= report.sent, "{report:?}");
}

#[test]
fn small_exchanges_do_not_make_a_model_believe_in_a_slow_path() {
    let small = Scenario { loss: 28, rtt_ms: 350, small_until: 5, ..MODELLED };
    let at_once = run(Scenario { small_until: 0, ..small }, 5);
    let later = run(small, 10);
    // The second half of the ten seconds is all that counts.
    assert!(later.used * 2 + 12 >= at_once.used, "{later:?} after small ones, {at_once:?} at once");
}
