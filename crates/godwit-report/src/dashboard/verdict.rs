//! Whether Godwit wins or loses: its figure against the best of the others, in the same file only. Two files are never
//! compared in this way, because machines have better and worse days.

use super::history::{Better, Figure, Measurement};

/// How a figure of ours fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Loses,
    Even,
    Wins,
    /// Nobody else was measured.
    Alone,
}

/// A figure of ours beside the best of the others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comparison<'a> {
    pub(super) ours: &'a Figure,
    pub(super) best: Option<&'a Figure>,
    /// The best of those that are of another kind, such as TCP.
    pub(super) beside: Option<&'a Figure>,
}

fn best<'a>(better: Better, figures: impl Iterator<Item = &'a Figure>) -> Option<&'a Figure> {
    match better {
        Better::More => figures.max_by(|one, other| one.median.total_cmp(&other.median)),
        Better::Less => figures.min_by(|one, other| one.median.total_cmp(&other.median)),
    }
}

impl<'a> Comparison<'a> {
    /// Every figure of ours: those that lose most first, then those that win least, then those that nobody else has.
    pub(super) fn all(measurement: &'a Measurement) -> Vec<Comparison<'a>> {
        let ours = measurement.figures.iter().filter(|figure| figure.ours);
        let mut all: Vec<_> = ours.map(|ours| Comparison::of(measurement, ours)).collect();
        // A peer's figure of zero has no ratio; it counts as the utmost.
        all.sort_by(|one, other| {
            let advantage =
                |row: &Comparison<'_>| row.best.map_or(f64::INFINITY, |best| row.advantage_over(best));
            let alone = |row: &Comparison<'_>| row.best.is_none();
            alone(one).cmp(&alone(other)).then(advantage(one).total_cmp(&advantage(other)))
        });
        all
    }

    pub(super) fn of(measurement: &'a Measurement, ours: &'a Figure) -> Comparison<'a> {
        let same = |figure: &&Figure| figure.scenario == ours.scenario && figure.figure == ours.figure;
        let others = || measurement.figures.iter().filter(same).filter(|figure| !figure.ours);
        let best = best(ours.better, others().filter(|figure| figure.is_peer()));
        let beside = self::best(ours.better, others().filter(|figure| !figure.is_peer()));
        Comparison { ours, best, beside }
    }

    pub(super) fn outcome(&self) -> Outcome {
        let Some(best) = self.best else { return Outcome::Alone };
        let (more, less) = match self.ours.better {
            Better::More => (Outcome::Wins, Outcome::Loses),
            Better::Less => (Outcome::Loses, Outcome::Wins),
        };
        match self.ours.median.total_cmp(&best.median) {
            std::cmp::Ordering::Greater => more,
            std::cmp::Ordering::Equal => Outcome::Even,
            std::cmp::Ordering::Less => less,
        }
    }

    /// Our median over theirs.
    pub(super) fn ratio(&self) -> Option<f64> {
        let best = self.best?;
        (best.median > 0.0).then(|| self.ours.median / best.median)
    }

    /// How many times as good ours is as the best: above 1 it wins.
    pub(super) fn times_as_good(&self) -> Option<f64> {
        let times = self.advantage_over(self.best?);
        (times.is_finite() && times > 0.0).then_some(times)
    }

    /// Whether runs of both lie among each other, so that the order of the medians may be chance.
    pub(super) fn overlaps(&self) -> bool {
        self.best.is_some_and(|best| self.ours.least <= best.most && best.least <= self.ours.most)
    }

    /// How good ours is for each one of theirs.
    fn advantage_over(&self, best: &Figure) -> f64 {
        let (good, bad) = match self.ours.better {
            Better::More => (self.ours.median, best.median),
            Better::Less => (best.median, self.ours.median),
        };
        if good == bad { 1.0 } else { good / bad }
    }
}
