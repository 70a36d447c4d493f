//! Packets of one space on two paths.

use super::*;
use crate::congestion::{
    Acked, CongestionControl, CongestionController, ControllerFactory, ControllerStart, Lost,
};
use crate::path::Paths;
use std::sync::{Arc, Mutex};

/// What a path's controller has heard.
#[derive(Debug, Default)]
struct Heard {
    acked: u64,
    rates: usize,
    lost: u64,
    lost_since: Vec<Option<u64>>,
    congestion: u32,
}

/// Notes what it hears; its window stays as it is.
#[derive(Debug, Clone, Default)]
struct Notes(Arc<Mutex<Heard>>);

impl ControllerFactory for Notes {
    fn controller(&self, _: &ControllerStart) -> Box<dyn CongestionController> {
        Box::new(self.clone())
    }
}

impl CongestionController for Notes {
    fn on_ack(&mut self, acked: &Acked<'_>) {
        let mut heard = self.0.lock().unwrap();
        heard.acked += acked.all_bytes;
        heard.rates += usize::from(acked.delivery.is_some());
    }

    fn on_lost(&mut self, lost: &Lost) {
        let mut heard = self.0.lock().unwrap();
        heard.lost += lost.bytes;
        heard.lost_since.push(lost.lost_since);
    }

    fn on_congestion(&mut self, _: Time) {
        self.0.lock().unwrap().congestion += 1;
    }

    fn on_persistent_congestion(&mut self) {}

    fn on_mtu_changed(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        100_000
    }

    fn wants_rate_samples(&self) -> bool {
        true
    }
}

/// The path in use, and the one before.
struct Two {
    new: PathRecovery,
    old: PathRecovery,
}

impl Paths for Two {
    fn in_use(&mut self) -> &mut PathRecovery {
        &mut self.new
    }

    fn each_other(&mut self, f: &mut impl FnMut(&mut PathRecovery)) {
        f(&mut self.old);
    }

    fn find(&mut self, id: u16) -> Option<&mut PathRecovery> {
        [&mut self.new, &mut self.old].into_iter().find(|path| path.id() == id)
    }
}

/// A connection that has moved.
struct Moved {
    paths: Two,
    space: SpaceRecovery<u64>,
    old: Notes,
    new: Notes,
    rng: SeededRng,
    log: Vec<(Outcome, u64)>,
}

const CONFIRMED: TimerInputs = TimerInputs {
    handshake_confirmed: true,
    has_handshake_keys: false,
    awaits_handshake: false,
    amplification_blocked: false,
    most_backed_off: None,
};

impl Moved {
    /// With `packets` sent on the old path at 100 ms, which has a round-trip time of 80 ms.
    fn with(packets: usize) -> Self {
        let (old, new) = (Notes::default(), Notes::default());
        let path = |id, notes: &Notes| {
            let congestion = CongestionControl::Custom(Arc::new(notes.clone()));
            PathRecovery::new(Time::ZERO, &PathSettings { id, congestion, ..PathSettings::default() })
        };
        let paths = Two { new: path(1, &new), old: path(0, &old) };
        let space = SpaceRecovery::new(SpaceId::Data);
        let mut moved = Moved { paths, space, old, new, rng: SeededRng::new(1), log: Vec::new() };
        moved.send(false, ms(0));
        moved.ack(ms(80), &[0..=0]);
        (0..packets).for_each(|_| moved.send(false, ms(100)));
        moved.paths.old.set_in_use(false);
        moved
    }

    fn send(&mut self, on_new: bool, now: Time) {
        self.send_as(on_new, now, false);
    }

    fn send_as(&mut self, on_new: bool, now: Time, mtu_probe: bool) {
        let packet_number = self.space.next_packet_number(&mut self.rng);
        let info = SentInfo {
            packet_number,
            now,
            bytes: if mtu_probe { 1472 } else { SIZE },
            ack_eliciting: true,
            in_flight: true,
            mtu_probe,
            marked: false,
        };
        let path = if on_new { &mut self.paths.new } else { &mut self.paths.old };
        self.space.on_packet_sent(path, info, &[packet_number]);
    }

    fn ack(&mut self, now: Time, ranges: &[RangeInclusive<u64>]) -> AckSummary {
        let log = &mut self.log;
        let (largest, ranges) = (*ranges[0].end(), ranges.iter().cloned());
        let mut note = |outcome, token| log.push((outcome, token));
        self.space.on_ack_received(&mut self.paths, now, largest, Duration::ZERO, ranges, &mut note).unwrap()
    }

    fn lost(&self) -> Vec<u64> {
        self.log.iter().filter(|(outcome, _)| *outcome == Outcome::Lost).map(|(_, token)| *token).collect()
    }
}

#[test]
fn what_is_left_behind_is_lost_by_the_old_paths_own_timer() {
    let mut moved = Moved::with(2);
    (0..6).for_each(|_| moved.send(true, ms(110)));
    // The new path is fast: much has overtaken, and nothing of it says that the old path has lost anything.
    let summary = moved.ack(ms(120), &[3..=8]);
    assert_eq!((summary.lost.packets, summary.rtt_sample), (0, Some(Duration::from_millis(10))));
    assert_eq!(moved.paths.new.rtt().smoothed(), Duration::from_millis(10));
    assert_eq!(timer(&moved.paths.new, CONFIRMED), None);
    // Nine eighths of 80 ms after 100 ms.
    let due = timer(&moved.paths.old, CONFIRMED);
    assert_eq!(due, Some((ms(190), TimerKind::LossTime(SpaceId::Data))));
    let (log, paths) = (&mut moved.log, &mut moved.paths);
    let mut note = |outcome, token| log.push((outcome, token));
    assert_eq!(moved.space.on_loss_timer(&mut paths.new, ms(190), &mut note).packets, 0);
    let summary = moved.space.on_loss_timer(&mut paths.old, ms(190), &mut note);
    assert_eq!((summary.packets, summary.congestion), (2, true));
    assert_eq!(moved.lost(), [1, 2]);
    assert_eq!((moved.paths.old.bytes_in_flight(), moved.paths.old.stats().packets_lost), (0, 2));
    assert_eq!(timer(&moved.paths.old, CONFIRMED), None);
    let (old, new) = (moved.old.0.lock().unwrap(), moved.new.0.lock().unwrap());
    assert_eq!((old.lost, old.congestion), (2 * SIZE as u64, 1));
    assert_eq!((new.lost, new.congestion, new.acked), (0, 0, 6 * SIZE as u64));
}

#[test]
fn what_still_arrives_is_the_old_paths_and_so_are_its_samples() {
    let mut moved = Moved::with(3);
    let before = moved.old.0.lock().unwrap().rates;
    moved.send(true, ms(110));
    let summary = moved.ack(ms(180), &[1..=3]);
    assert_eq!(summary.rtt_sample, Some(Duration::from_millis(80)));
    assert_eq!(moved.paths.old.rtt().latest(), Duration::from_millis(80));
    assert_eq!(moved.paths.new.rtt().first_sample_at(), None, "it says nothing of the new path");
    assert_eq!((moved.paths.old.bytes_in_flight(), moved.paths.new.bytes_in_flight()), (0, SIZE as u64));
    {
        let (old, new) = (moved.old.0.lock().unwrap(), moved.new.0.lock().unwrap());
        assert_eq!((old.acked, old.rates - before), (4 * SIZE as u64, 1));
        assert_eq!((new.acked, new.rates), (0, 0));
    }
    // One frame may speak of both.
    moved.send(false, ms(200));
    moved.send(true, ms(200));
    let summary = moved.ack(ms(220), &[4..=6]);
    assert_eq!((summary.newly_acked, summary.rtt_sample), (3, Some(Duration::from_millis(20))));
    assert_eq!(moved.paths.old.rtt().latest(), Duration::from_millis(80));
    assert_eq!(moved.old.0.lock().unwrap().acked, 5 * SIZE as u64);
    assert_eq!(moved.new.0.lock().unwrap().acked, 2 * SIZE as u64);
}

#[test]
fn what_was_lost_since_a_packet_was_sent_includes_it_whatever_came_late() {
    let mut moved = Moved::with(1);
    (0..4).for_each(|_| moved.send(true, ms(110)));
    moved.ack(ms(120), &[5..=5]);
    assert_eq!(moved.lost(), [2]);
    (0..5).for_each(|_| moved.send(true, ms(121)));
    // The lost one comes after all, and one of those that were sent when it counted as lost does not.
    moved.ack(ms(131), &[10..=10, 2..=5]);
    assert_eq!(moved.lost(), [2, 6]);
    let size = Some(SIZE as u64);
    assert_eq!(moved.new.0.lock().unwrap().lost_since, [size, size]);
}

#[test]
fn a_probe_of_the_mtu_that_is_left_behind_ends_with_its_path_timer() {
    let mut moved = Moved::with(0);
    moved.paths.old.mtu_search_mut().start(ms(100));
    assert!(moved.paths.old.next_mtu_probe(ms(100), false).is_some());
    moved.send_as(false, ms(100), true);
    assert_eq!(moved.paths.old.next_mtu_probe(ms(100), false), None);
    moved.send(true, ms(110));
    moved.ack(ms(120), &[2..=2]);
    let old = &mut moved.paths.old;
    let summary = moved.space.on_loss_timer(old, ms(190), &mut |_, _| {});
    assert_eq!((summary.packets, summary.congestion), (1, false));
    assert!(old.next_mtu_probe(ms(2000), false).is_some(), "it is tried again");
}

#[test]
fn each_path_has_its_own_probe_timeout() {
    let mut moved = Moved::with(2);
    moved.send(true, ms(400));
    let old = timer(&moved.paths.old, CONFIRMED).unwrap();
    // 80 ms, four times the variation of 40 ms, and the peer's 25 ms.
    assert_eq!(old, (ms(100 + 80 + 160 + 25), TimerKind::Pto(SpaceId::Data)));
    let new = timer(&moved.paths.new, CONFIRMED).unwrap();
    assert!(new.0 > ms(400 + 900), "nothing is known of it: {new:?}");
    moved.paths.old.on_pto(old.0);
    assert_eq!((moved.paths.old.pto_count(), moved.paths.new.pto_count()), (1, 0));
    let mut named = Vec::new();
    assert_eq!(moved.space.pto_tokens(&moved.paths.old, 9, &mut |token| named.push(token)), 2);
    assert_eq!(moved.space.pto_tokens(&moved.paths.new, 9, &mut |token| named.push(token)), 1);
    assert_eq!(named, [1, 2, 3]);
}

#[test]
fn on_the_path_in_use_another_paths_packets_overtake_nothing() {
    let mut moved = Moved::with(0);
    (0..5).for_each(|_| moved.send(true, ms(100)));
    moved.send(false, ms(110));
    let summary = moved.ack(ms(115), &[6..=6]);
    assert_eq!((summary.newly_acked, summary.lost.packets), (1, 0));
    assert_eq!(moved.paths.new.loss_time(SpaceId::Data), None);
    moved.ack(ms(200), &[5..=6]);
    assert_eq!(moved.lost(), [1, 2], "3 and 4 are less than three behind 5");
}

#[test]
fn what_was_sent_on_a_path_that_is_no_more_is_lost_at_once() {
    let mut moved = Moved::with(2);
    moved.send(true, ms(110));
    let log = &mut moved.log;
    moved.space.on_path_gone(0, ms(120), &mut |outcome, token| log.push((outcome, token)));
    assert_eq!(moved.lost(), [1, 2]);
    assert_eq!(moved.space.lost_on(0, 0, 9).map(|(number, _)| number).collect::<Vec<_>>(), [1, 2]);
    let (mut new, log) = (moved.paths.new, &mut moved.log);
    let mut note = |outcome, token| log.push((outcome, token));
    let ranges = std::iter::once(1..=3);
    let summary = moved.space.on_ack_received(&mut new, ms(130), 3, Duration::ZERO, ranges, &mut note);
    let summary = summary.unwrap();
    assert_eq!((summary.newly_acked, summary.spurious), (3, 2));
    assert_eq!((new.bytes_in_flight(), new.stats().spurious_losses), (0, 0));
    assert_eq!(moved.log[moved.log.len() - 3..].iter().filter(|(o, _)| *o == Outcome::Spurious).count(), 2);
    assert_eq!(moved.space.sent.len(), 0, "nothing holds the ring");
}

/// Steps of a case at most: fewer under Miri, which is slow.
const MAX_STEPS: usize = if cfg!(miri) { 8 } else { 80 };

proptest! {
    /// Whatever path packets go on and whatever is acknowledged, each has one fate, and the flights add up.
    #[test]
    fn two_paths_share_a_space(
        steps in prop::collection::vec((0..9_u8, any::<u64>(), any::<bool>(), 0..150_u64), 0..MAX_STEPS)
    ) {
        let mut moved = Moved::with(1);
        let (mut now, mut open, mut received) = (ms(100), BTreeMap::from([(1, 0_u16)]), vec![0]);
        for (what, pattern, on_new, wait) in steps {
            match what {
                0..4 => {
                    moved.send(on_new, now);
                    let number = moved.space.largest_sent().unwrap();
                    let path = if on_new { &moved.paths.new } else { &moved.paths.old };
                    open.insert(number, path.id());
                }
                // It goes back to where it was.
                4 => {
                    std::mem::swap(&mut moved.paths.new, &mut moved.paths.old);
                    moved.paths.new.set_in_use(true);
                    moved.paths.old.set_in_use(false);
                }
                5 | 6 => {
                    received.extend((1..=moved.space.largest_sent().unwrap()).filter(|n| {
                        (open.contains_key(n) || moved.log.contains(&(Outcome::Lost, *n))) && pattern >> (n % 64) & 1 == 1
                    }));
                    received.sort_unstable();
                    received.dedup();
                    let ranges: Vec<_> = received.iter().rev().map(|n| *n..=*n).collect();
                    moved.ack(now, &ranges);
                }
                _ => {
                    now += Duration::from_millis(wait);
                    for new in [true, false] {
                        let path = if new { &mut moved.paths.new } else { &mut moved.paths.old };
                        let Some((at, kind)) = timer(path, CONFIRMED).filter(|(at, _)| *at <= now) else { continue };
                        if kind == TimerKind::Pto(SpaceId::Data) {
                            path.on_pto(at);
                            continue;
                        }
                        let log = &mut moved.log;
                        let summary =
                            moved.space.on_loss_timer(path, now, &mut |outcome, token| log.push((outcome, token)));
                        // Once after a return: what another path's packets had overtaken is not late any more.
                        let again = timer(path, CONFIRMED).filter(|(at, kind)| {
                            *at <= now && *kind == TimerKind::LossTime(SpaceId::Data)
                        });
                        prop_assert!(summary.packets > 0 || (path.is_in_use() && again.is_none()), "set for nothing");
                    }
                }
            }
            for (_, token) in &moved.log {
                open.remove(token);
            }
            for path in [&moved.paths.old, &moved.paths.new] {
                let flight = open.values().filter(|on| **on == path.id()).count() as u64;
                prop_assert_eq!(path.bytes_in_flight(), flight * SIZE as u64);
                prop_assert_eq!(path.flights.of(SpaceId::Data).ack_eliciting, flight);
                prop_assert_eq!(timer(path, CONFIRMED).is_some(), flight > 0, "whatever is open is decided one day");
                let oldest = open.iter().find(|(_, on)| **on == path.id()).map(|(number, _)| *number);
                prop_assert!(oldest.is_none_or(|oldest| path.decided(SpaceId::Data) <= oldest));
            }
        }
        let mut acked: Vec<u64> = moved.log.iter().filter(|(o, _)| *o != Outcome::Lost).map(|(_, n)| *n).collect();
        let many = acked.len();
        acked.sort_unstable();
        acked.dedup();
        prop_assert_eq!(acked.len(), many);
    }
}
