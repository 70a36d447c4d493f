use std::time::Duration;

use godwit_base::Time;
use godwit_recovery::congestion::cubic::Cubic;
use godwit_recovery::congestion::{Acked, CongestionControl, CongestionController};

use super::super::csv::csv;
use super::super::{Controller, Matrix};
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
        let same = record.compare(&once, &run(&once), |_, _| {});
        assert!(same.holds() && same.suspects == 0, "with the first seeds alone: {same}");

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
        let figures = Recorded { usage, first: usage, spread, seed: 1, seeds };
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
    assert_eq!(
        error(&text.replace("10,50,", "ten,50,"), &sweep),
        "line 3 is not a network with figures that can be"
    );
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

#[test]
fn a_record_without_figures_is_refused() {
    let sweep = sweep(1, 1);
    let text = csv(&run(&sweep));
    let error = |text: &str| read(text, &sweep).unwrap_err();
    assert_eq!(error(""), "it is empty");
    assert_eq!(error(&format!("{}\n", csv::HEAD)), "5 Mbit/s, RTT 50 ms, queue 23, loss 1/1000 is not in it");
    let line = text.lines().nth(1).unwrap();
    // The use, the seconds, the spread, and how many seeds.
    for (column, figures) in
        [(8, "NaN inf -1 -0.1 1e999 x "), (9, "NaN"), (10, "NaN -1"), (15, "0 -1 x"), (17, "NaN -1")]
    {
        for figure in figures.split(' ') {
            let mut fields: Vec<&str> = line.split(',').collect();
            fields[column] = figure;
            let wrong = text.replace(line, &fields.join(","));
            assert_eq!(error(&wrong), "line 2 is not a network with figures that can be", "{figure}");
        }
    }
    assert_eq!(error(&format!("{text}{line}\n")), "the network of line 4 has another line");
}

#[test]
fn what_is_no_number_is_less_than_any() {
    let comparison = Comparison { mean: f64::NAN, recorded: 85.0, suspects: 0, worse: Vec::new() };
    assert!(!comparison.holds());
    let figures = Recorded { usage: 80.0, first: 80.0, spread: 0.0, seed: 1, seeds: 1 };
    let record = Record(HashMap::from([(baseline::key(&cells()[0]), figures)]));
    assert!(record.fall(&tried(&[f64::NAN])).is_some());
}

#[test]
fn the_mean_is_not_said_to_have_fallen_before_all_seeds_are_tried() {
    let ten = sweep(1, 10);
    let record = read(&csv(&run(&ten)), &ten).unwrap();
    let once = sweep(1, 1);
    let mut unlucky = run(&once);
    for one in &mut unlucky {
        let recorded = record.of(&one.cell).unwrap().first;
        one.outcomes.iter_mut().for_each(|outcome| outcome.usage = recorded - 1.0);
    }
    let found = record.compare(&once, &unlucky, |_, _| {});
    assert!(found.holds() && found.suspects == 0 && (found.mean - found.recorded).abs() < 0.01, "{found}");
}

/// What the gate holds against the files that are checked in, in a few of its networks.
#[test]
fn a_broken_constant_fails_against_what_is_checked_in() {
    let mut sound = Sweep::default();
    let mut broken = Sweep::default();
    sound.trial.transport = Controller::CUBIC.transport();
    broken.trial.transport.congestion = sweep(3, 1).trial.transport.congestion;
    let slow = |cell: &Cell| cell.rate <= 20 && cell.loss == 1000;
    let cells: Vec<Cell> = Matrix::Smoke.cells().into_iter().filter(slow).take(4).collect();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../xtask/wan-cubic.csv");
    let record = Record::read(&file, &sound, &cells).unwrap();
    let compared = |sweep: &Sweep| record.compare(sweep, &sweep.run(&cells, |_, _| {}), |_, _| {});
    let (sound, broken) = (compared(&sound), compared(&broken));
    assert!(sound.worse.is_empty() && cells.len() == 4, "{sound}");
    assert!(broken.worse.len() >= 2 && broken.mean < sound.mean - 5.0, "{broken}\n{sound}");
}
