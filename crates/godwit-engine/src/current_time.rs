//! What time it is in a turn of a shard, or in a visit between its turns.
//!
//! A turn reads the clock as it begins. Visits are many and short, and most have no use for the time: they read the clock
//! when somebody asks.

use crate::clock::{Clock, read_calendar};
use godwit_base::{Time, WallTime};
use std::cell::Cell;

/// The time for as long as a shard is lent out; see the module.
#[derive(Debug)]
pub(crate) struct CurrentTime<'a> {
    known: Time,
    asked: Asked<'a>,
    read: Cell<Option<Time>>,
}

/// Who is asked for more than the last turn's time.
#[derive(Debug)]
enum Asked<'a> {
    /// Nobody: it is that turn, with this wall time.
    Turn(WallTime),
    Clock(&'a Clock),
}

impl<'a> CurrentTime<'a> {
    /// In a turn.
    pub(crate) fn of_turn(now: Time, wall: WallTime) -> Self {
        CurrentTime { known: now, asked: Asked::Turn(wall), read: Cell::new(None) }
    }

    /// In a visit. Time does not go back behind `now`, the last turn's.
    pub(crate) fn of_visit(now: Time, clock: &'a Clock) -> Self {
        CurrentTime { known: now, asked: Asked::Clock(clock), read: Cell::new(None) }
    }

    pub(crate) fn now(&self) -> Time {
        let Asked::Clock(clock) = self.asked else { return self.known };
        self.read.get().unwrap_or_else(|| {
            let now = clock.now().max(self.known);
            self.read.set(Some(now));
            now
        })
    }

    /// The wall time. A visit looks at the system's calendar: the last turn may have been long ago.
    pub(crate) fn wall(&self) -> WallTime {
        match self.asked {
            Asked::Turn(wall) => wall,
            Asked::Clock(_) => read_calendar(),
        }
    }

    /// What a visit has read.
    pub(crate) fn reading(&self) -> Option<Time> {
        self.read.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_visit_reads_the_clock_once_and_only_if_asked() {
        let clock = Clock::new();
        let (before, wall) = (clock.now(), WallTime::from_unix_micros(1_700_000_000_000_000));
        let visit = CurrentTime::of_visit(before, &clock);
        assert_eq!(visit.reading(), None);
        let now = visit.now();
        assert!(now >= before);
        assert_eq!((visit.reading(), visit.now()), (Some(now), now));
        assert!(visit.wall() > wall, "the calendar's");
        let later = before + Duration::from_secs(60);
        assert_eq!(CurrentTime::of_visit(later, &clock).now(), later, "it does not go back");
        let turn = CurrentTime::of_turn(later, wall);
        assert_eq!((turn.now(), turn.wall(), turn.reading()), (later, wall, None));
    }
}
