//! The decision whether to look for datagrams or to sleep, from what looking would have brought lately.
//!
//! A wait begins with the last datagram that came or went, and ends with the next one that comes. Looking pays where most waits
//! are shorter than being woken takes and a little more; where they are longer, it is given up after that time and costs nothing
//! from then on. So whoever hears nothing for a second has looked for a ten-thousandth of it, and never looks again until
//! something comes or goes.
//!
//! What is known of a wait that was slept through is too long by the time it took to be woken, here and perhaps at the peer: it
//! counts for less, and the less the more often looking was in vain.

use crate::spin::Spin;
use godwit_base::Time;
use std::time::Duration;

/// The longest that it is looked in a wait.
const LIMIT: Duration = Duration::from_micros(100);
/// The longest that it is looked between two datagrams that come, however many go meanwhile.
const FRUITLESS_LIMIT: Duration = Duration::from_micros(200);
/// A wait that was slept through may have been within the limit, had nobody been asleep.
const SLEPT_LIMIT: Duration = Duration::from_micros(200);
/// The share of waits that are short, as it is believed to be, where all are.
const ALL: u32 = 1 << 16;
/// It is looked from this share on. Where every other wait is short, it is not reached.
const ENOUGH: u32 = ALL / 2;
/// A short wait closes this part of what is missing to [`ALL`]: after looking, and after sleeping.
const LOOKED_GAIN: u32 = 4;
const SLEPT_GAIN: u32 = 16;
/// Being wrong so many times in a row makes it no slower to try again.
const MOST_MISSES: u32 = 6;

/// How often it is asked whether others want the core, while it is looked.
const SAMPLE_EVERY: Duration = Duration::from_millis(10);
/// A sample that is older says nothing about now.
const SAMPLE_LIFE: Duration = Duration::from_millis(50);
/// Others want the core if we had to wait for this part of the time.
const CONTENDED_PART: u32 = 8;
/// How long it is not looked then: the first time, and at most.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_millis(1600);

/// See the module.
#[derive(Debug)]
pub(super) struct Spinner {
    mode: Spin,
    /// When the last datagram came or went.
    since: Option<Time>,
    wait: Wait,
    /// The share of waits that are short, of [`ALL`].
    short: u32,
    /// How often in a row looking was in vain.
    misses: u32,
    competition: Competition,
}

/// What is done in the wait under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// It has just begun.
    Begun,
    /// It is looked, since then and without having found anything.
    Looking(Time),
    /// It is slept.
    Asleep,
    /// It is slept after having looked in vain.
    InVain,
}

impl Spinner {
    pub(super) const fn new(mode: Spin) -> Self {
        Spinner { mode, since: None, wait: Wait::Begun, short: 0, misses: 0, competition: Competition::new() }
    }

    /// It was decided to look, so there is no use in waiting to be told.
    pub(super) const fn is_looking(&self) -> bool {
        matches!(self.wait, Wait::Looking(_))
    }

    /// A datagram came.
    pub(super) fn on_received(&mut self, now: Time) {
        if let Some(since) = self.since {
            self.learn(now.saturating_since(since));
        }
        self.since = Some(now);
        self.wait = Wait::Begun;
    }

    /// A datagram went.
    pub(super) fn on_sent(&mut self, now: Time) {
        self.since = Some(now);
        if !self.is_looking() {
            self.wait = Wait::Begun;
        }
    }

    /// Whether to look at once, now that there is nothing to do, in place of sleeping.
    pub(super) fn looks(&mut self, now: Time) -> bool {
        let Some(since) = self.since else { return false };
        let waited = now.saturating_since(since);
        match self.mode {
            Spin::Off => return false,
            Spin::Always(limit) => {
                let looks = waited < limit.min(Spin::LONGEST);
                self.wait = if looks { Wait::Looking(since) } else { Wait::InVain };
            }
            Spin::Auto => self.weigh(now, waited),
        }
        self.is_looking()
    }

    fn weigh(&mut self, now: Time, waited: Duration) {
        match self.wait {
            Wait::Begun => {
                let pays = self.short >= ENOUGH && waited < LIMIT && !self.competition.pauses(now);
                self.wait = if pays { Wait::Looking(now) } else { Wait::Asleep };
            }
            Wait::Looking(_) if self.competition.pauses(now) => self.wait = Wait::Asleep,
            Wait::Looking(from) => {
                if waited >= LIMIT || now.saturating_since(from) >= FRUITLESS_LIMIT {
                    self.short /= 2;
                    self.misses = self.misses.saturating_add(1).min(MOST_MISSES);
                    self.wait = Wait::InVain;
                }
            }
            Wait::Asleep | Wait::InVain => {}
        }
    }

    /// A wait is over that lasted for `waited`.
    fn learn(&mut self, waited: Duration) {
        let missing = ALL.saturating_sub(self.short);
        match self.wait {
            Wait::Looking(_) => {
                self.short = self.short.saturating_add(missing / LOOKED_GAIN);
                self.misses = 0;
            }
            Wait::Begun | Wait::Asleep if waited <= SLEPT_LIMIT => {
                self.short = self.short.saturating_add((missing / SLEPT_GAIN) >> self.misses);
            }
            Wait::Begun | Wait::Asleep => self.short /= 2,
            // That was learnt when looking was given up.
            Wait::InVain => {}
        }
    }

    /// Whether it is to be asked how long this thread has waited for a core.
    pub(super) fn wants_sample(&mut self, now: Time) -> bool {
        self.mode == Spin::Auto && self.is_looking() && self.competition.wants_sample(now)
    }

    /// How long this thread has waited for a core since it began.
    pub(super) fn on_sample(&mut self, now: Time, waited: Duration) {
        self.competition.on_sample(now, waited);
    }
}

/// Whether others want the core.
#[derive(Debug)]
struct Competition {
    sample: Option<(Time, Duration)>,
    /// When a sample was asked for last: some systems have none.
    asked: Option<Time>,
    paused_until: Option<Time>,
    /// How long the next pause is.
    pause: Duration,
}

impl Competition {
    const fn new() -> Self {
        Competition { sample: None, asked: None, paused_until: None, pause: PAUSE }
    }

    fn pauses(&self, now: Time) -> bool {
        self.paused_until.is_some_and(|until| now < until)
    }

    fn wants_sample(&mut self, now: Time) -> bool {
        let wants = self.asked.is_none_or(|asked| now.saturating_since(asked) >= SAMPLE_EVERY);
        if wants {
            self.asked = Some(now);
        }
        wants
    }

    fn on_sample(&mut self, now: Time, waited: Duration) {
        let Some((before, waited_before)) = self.sample.replace((now, waited)) else { return };
        let span = now.saturating_since(before);
        if span > SAMPLE_LIFE {
            return;
        }
        // On a runtime of several threads this may be another one than before. Then it is found at worst that others want the core.
        if waited.saturating_sub(waited_before) > span / CONTENDED_PART {
            self.paused_until = Some(now + self.pause);
            self.pause = self.pause.saturating_mul(2).min(LONGEST_PAUSE);
        } else {
            self.pause = PAUSE;
        }
    }
}

#[cfg(test)]
mod tests;
