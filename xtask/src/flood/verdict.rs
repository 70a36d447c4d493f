//! What has to hold while a server is flooded, and whether it did.

use super::generator::{Done, Honest};
use super::memory::Memory;

/// How much memory a flood may cost the server at its peak, in KiB.
const MOST_MEMORY: u64 = 64 * 1024;
/// How many times as long half of the handshakes may take as in quiet times.
const MOST_TIME: f64 = 3.0;
/// The part of its rate that a download keeps.
const LEAST_RATE: f64 = 0.5;

/// A bar, in the order of [`BARS`].
pub(super) const BARS: [&str; 4] = [
    "memory: at its peak at most 64 MiB more than before",
    "handshakes: every honest one succeeds, and the request behind it",
    "time: half of the honest handshakes take less than three times what they take in quiet times",
    "download: an honest one keeps half of its rate",
];

/// What was seen of a server during one flood.
pub(super) struct Seen {
    pub(super) done: Done,
    pub(super) memory: Memory,
    pub(super) quiet: Honest,
    pub(super) flooded: Honest,
}

impl Seen {
    /// Which of [`BARS`] hold.
    pub(super) fn bars(&self) -> [bool; BARS.len()] {
        let (quiet, flooded) = (&self.quiet, &self.flooded);
        [
            self.memory.grown() <= MOST_MEMORY,
            flooded.failed == 0 && flooded.handshakes > 0,
            // What is no number holds nothing.
            flooded.p50 < quiet.p50 * MOST_TIME,
            flooded.mbit >= quiet.mbit * LEAST_RATE,
        ]
    }

    /// The row of a table about one server.
    pub(super) fn row(&self, kind: &str) -> String {
        let Seen { done, memory, quiet, flooded } = self;
        let cells = [
            format!("{} → {}", memory.start / 1024, memory.peak / 1024),
            format!("{} of {}", flooded.failed, flooded.handshakes + flooded.failed),
            format!("{:.2} → {:.2}, {:.1}", quiet.p50, flooded.p50, flooded.p99),
            format!("{:.0} → {:.0}", quiet.mbit, flooded.mbit),
        ];
        let [memory, failed, time, rate] = marked(cells, self.bars());
        let verdict = if self.bars().contains(&false) { "**not held**" } else { "held" };
        let Done { count, datagrams } = done;
        format!("| {kind} | {count} | {datagrams} | {memory} | {failed} | {time} | {rate} | {verdict} |")
    }

    /// The cell of a table in which several servers stand side by side.
    pub(super) fn cell(&self) -> String {
        let Seen { memory, quiet, flooded, .. } = self;
        let cells = [
            format!("+{} MiB", memory.grown() / 1024),
            format!("{} of {} failed", flooded.failed, flooded.handshakes + flooded.failed),
            format!("{:.1} x", flooded.p50 / quiet.p50),
            format!("{:.0} %", flooded.mbit / quiet.mbit * 100.0),
        ];
        marked(cells, self.bars()).join(", ")
    }
}

/// What does not hold is bold.
fn marked(cells: [String; BARS.len()], holds: [bool; BARS.len()]) -> [String; BARS.len()] {
    let mut holds = holds.into_iter();
    cells.map(|cell| if holds.next().unwrap_or(false) { cell } else { format!("**{cell}**") })
}

/// What became of a server over all floods.
#[derive(Default)]
pub(super) struct Verdicts {
    floods: usize,
    datagrams: u64,
    /// Names of the floods during which it did not hold, for each bar.
    broken: [Vec<String>; BARS.len()],
    remarks: Vec<String>,
}

impl Verdicts {
    pub(super) fn add(&mut self, kind: &str, seen: &Result<Seen, String>) {
        self.floods += 1;
        let holds = match seen {
            Ok(seen) => {
                self.datagrams += seen.done.datagrams;
                if seen.flooded.failed > 0 || seen.flooded.handshakes == 0 {
                    self.remarks
                        .push(format!("{kind}: the first honest visit that failed: {}", seen.flooded.why));
                }
                seen.bars()
            }
            // Nothing can be said for a server that is no more.
            Err(why) => {
                self.remarks.push(format!("{kind}: {why}"));
                [false; BARS.len()]
            }
        };
        for (broken, holds) in self.broken.iter_mut().zip(holds) {
            if !holds {
                broken.push(kind.to_owned());
            }
        }
    }

    /// How many floods there were in which everything held.
    pub(super) fn held(&self) -> usize {
        let mut broken: Vec<&String> = self.broken.iter().flatten().collect();
        broken.sort();
        broken.dedup();
        self.floods - broken.len()
    }

    pub(super) fn floods(&self) -> usize {
        self.floods
    }

    /// A line for each bar, and what was remarkable.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (bar, broken) in BARS.iter().zip(&self.broken) {
            let held = self.floods - broken.len();
            let but = if broken.is_empty() { String::new() } else { format!("; not: {}", broken.join(", ")) };
            lines.push(format!("- {bar}: {held} of {}{but}", self.floods));
        }
        lines.push(format!("- {} hostile datagrams in all", self.datagrams));
        lines.extend(self.remarks.iter().map(|remark| format!("- {remark}")));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn honest(failed: u64, p50: f64, mbit: f64) -> Honest {
        Honest { handshakes: 100, failed, why: "no answer".into(), p50, p99: p50, mbit }
    }

    fn seen(peak: u64, flooded: Honest) -> Seen {
        let memory = Memory { start: 10 << 10, peak: peak << 10 };
        Seen { done: Done { count: 1, datagrams: 2 }, memory, quiet: honest(0, 1.0, 100.0), flooded }
    }

    #[test]
    fn each_bar_is_broken_by_what_is_just_over_it() {
        let bars = |peak, failed, p50, mbit| seen(peak, honest(failed, p50, mbit)).bars();
        assert_eq!(bars(74, 0, 2.9, 50.0), [true; 4]);
        assert_eq!(bars(75, 0, 2.9, 50.0), [false, true, true, true]);
        assert_eq!(bars(74, 1, 2.9, 50.0), [true, false, true, true]);
        assert_eq!(bars(74, 0, 3.0, 50.0), [true, true, false, true]);
        assert_eq!(bars(74, 0, 2.9, 49.0), [true, true, true, false]);
        assert_eq!(bars(74, 0, f64::NAN, f64::NAN), [true, true, false, false]);
    }

    #[test]
    fn a_server_that_ended_holds_nothing() {
        let mut verdicts = Verdicts::default();
        verdicts.add("one", &Ok(seen(20, honest(0, 1.0, 100.0))));
        verdicts.add("two", &Err("the server has ended".into()));
        assert_eq!((verdicts.held(), verdicts.floods()), (1, 2));
        assert!(verdicts.lines().iter().take(4).all(|line| line.contains("1 of 2; not: two")));
    }

    #[test]
    fn what_does_not_hold_is_bold() {
        let cell = seen(100, honest(3, 2.0, 90.0)).cell();
        assert_eq!(cell, "**+90 MiB**, **3 of 103 failed**, 2.0 x, 90 %");
    }
}
