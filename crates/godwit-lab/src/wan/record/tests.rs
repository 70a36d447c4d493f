use std::time::Duration;

use godwit_base::Time;
use godwit_recovery::congestion::cubic::Cubic;
use godwit_recovery::congestion::{Acked, CongestionControl, CongestionController};

use super::super::csv::csv;
use super::*;

/// CUBIC, its window reduced so many times where once is right: three times is a beta of 0.34 for 0.7.
#[derive(Debug)]
struct Reducing {
    cubic: Cubic,
    times: u32,
}

impl CongestionController for Reducing {
    fn on_ack(&mut self, acked: &Acked<'_>) {
        self.cubic.on_ack(acked);
    }

    fn on_congestion(&mut self, now: Time) {
        for _ in 0..self.times {
            self.cubic.on_congestion(now);
        }
    }

    fn on_persistent_congestion(&mut self) {
        self.cubic.on_persistent_congestion();
    }

    fn on_mtu_changed(&mut self, mtu: u16) {
        self.cubic.on_mtu_changed(mtu);
    }

    fn window(&self) -> u64 {
        self.cubic.window()
    }

    fn slow_start_threshold(&self) -> Option<u64> {
        self.cubic.slow_start_threshold()
    }
}

fn sweep(times: u32, seeds: u32) -> Sweep {
    let mut sweep = Sweep { seeds, ..Sweep::default() };
    sweep.trial.duration = Duration::from_secs(4);
    sweep.trial.transport.congestion =
        CongestionControl::custom(move |start| Reducing { cubic: Cubic::new(start.mtu), times });
    sweep
}

fn cells() -> Vec<Cell> {
    [5, 10].map(|rate| Cell::with_queue_ratio(rate, 50, 1.0).unwrap().with(1000, (0, 0))).to_vec()
}

fn run(sweep: &Sweep) -> Vec<Tried> {
    sweep.run(&cells(), |_, _| {})
}

fn read(text: &str, sweep: &Sweep) -> Result<Record, String> {
    Record::parse(text, sweep, &cells())
}

#[test]
fn a_broken_constant_is_found_and_nothing_where_nothing_is_broken() {
    for seeds in [1, 10] {
        let sound = sweep(1, seeds);
        let before = run(&sound);
        let record = read(&csv(&before), &sound).unwrap();
        let same = record.compare(&sound, &before, |_, _| {});
        assert!(same.holds() && same.suspects == 0 && (same.mean - same.recorded).abs() < 0.01, "{same:?}");
        let once = sweep(1, 1);
        assert!(record.compare(&once, &run(&once), |_, _| {}).worse.is_empty());

        let broken = sweep(3, 1);
        let found = record.compare(&broken, &run(&broken), |_, _| {});
        assert!(!found.holds() && found.mean < found.recorded - 1.0, "{found}");
        // One figure of so short a transfer may have been luck; of ten, each network falls behind.
        let networks = if seeds == 1 { 0 } else { 2 };
        assert!(found.worse.len() >= networks && found.suspects == 2, "{found}");
    }
}

/// A network with these figures, one for each seed.
fn tried(usages: &[f64]) -> Tried {
    let cell = cells()[0];
    let mut short = sweep(1, 1).trial;
    short.duration = Duration::from_millis(10);
    let outcome = short.run(&cell, 1);
    let outcomes = usages.iter().map(|usage| {
        let mut outcome = outcome.clone();
        outcome.usage = *usage;
        outcome
    });
    Tried { cell, outcomes: outcomes.collect() }
}

#[test]
fn what_chance_explains_is_not_worse() {
    let recorded = |usage, spread, seeds| {
        let figures = Recorded { usage, spread, seed: 1, seeds };
        Record(HashMap::from([(baseline::key(&cells()[0]), figures)]))
    };
    let (steady, unsteady) = (tried(&[80.0; 10]), tried(&[70.0, 90.0, 70.0, 90.0, 70.0, 90.0, 70.0, 90.0]));
    // Three points are no fall; more are one.
    assert_eq!(recorded(83.0, 0.0, 10).fall(&steady), None);
    let fall = recorded(83.1, 0.0, 10).fall(&steady).unwrap();
    assert_eq!((fall.usage, fall.recorded), (80.0, 83.1));
    // One lucky figure says little where figures differ by 20, ten say more.
    assert_eq!(recorded(92.0, 0.0, 1).fall(&unsteady), None);
    assert!(recorded(92.0, 10.0, 10).fall(&unsteady).is_some());
    assert_eq!(recorded(85.0, 10.0, 10).fall(&unsteady), None);
}

#[test]
fn a_fall_of_the_mean_alone_is_enough() {
    let mut comparison = Comparison { mean: 85.0, recorded: 85.3, suspects: 0, worse: Vec::new() };
    assert!(comparison.holds() && !comparison.to_string().contains("WORSE"));
    comparison.mean = 84.9;
    assert!(!comparison.holds());
    assert!(
        comparison.to_string().ends_with("\nWORSE: the mean has fallen by 0.40 points\n"),
        "{comparison}"
    );
}

#[test]
fn a_record_has_to_be_there_and_to_fit() {
    let sweep = sweep(1, 1);
    let text = csv(&run(&sweep));
    let lines: Vec<&str> = text.lines().collect();
    assert!(read(&text, &sweep).is_ok());
    let error = |text: &str, sweep: &Sweep| read(text, sweep).unwrap_err();
    assert_eq!(
        error(&lines[..2].join("\n"), &sweep),
        "10 Mbit/s, RTT 50 ms, queue 46, loss 1/1000 is not in it"
    );
    assert_eq!(error(&lines[1..].join("\n"), &sweep), "its first line is not that of figures of networks");
    assert_eq!(error(&text.replace("10,50,", "ten,50,"), &sweep), "line 3 says nothing");
    let mut other = sweep.clone();
    other.seed = 2;
    assert_eq!(error(&text, &other), "its first seed is 1, not 2");
    other.seed = 1;
    other.trial.duration = Duration::from_secs(3);
    assert!(error(&text, &other).ends_with("was simulated for 4 s"));
    let missing = Record::read(Path::new("no/such/file"), &sweep, &cells()).unwrap_err().to_string();
    assert!(
        missing.starts_with("cannot compare with no/such/file: ") && missing.ends_with(REMEDY),
        "{missing}"
    );
}
