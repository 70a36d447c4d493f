//! News of stream limits for an application that manages them itself.
//!
//! A peer can raise its limits, and say that it is held back by ours, as often as it likes: what has not been fetched is
//! told once.

use crate::{Direction, Event};

const RAISED_BIDI: u8 = 1;
const RAISED_UNI: u8 = 2;
const WANTED_BIDI: u8 = 4;
const WANTED_UNI: u8 = 8;

/// What is to be told, if anybody wants to know.
#[derive(Debug, Default)]
pub(super) struct LimitWatch {
    watched: bool,
    news: u8,
}

impl LimitWatch {
    /// Somebody wants to be told from now on.
    pub(super) const fn watch(&mut self) {
        self.watched = true;
    }

    /// The peer permits more streams.
    pub(super) const fn on_raised(&mut self, direction: Direction) {
        self.note(match direction {
            Direction::Bidirectional => RAISED_BIDI,
            Direction::Unidirectional => RAISED_UNI,
        });
    }

    /// The peer says that it would open more streams than it may.
    pub(super) const fn on_wanted(&mut self, direction: Direction) {
        self.note(match direction {
            Direction::Bidirectional => WANTED_BIDI,
            Direction::Unidirectional => WANTED_UNI,
        });
    }

    const fn note(&mut self, news: u8) {
        if self.watched {
            self.news |= news;
        }
    }

    /// The next event, if there is one.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Event> {
        if self.news == 0 { None } else { self.take() }
    }

    fn take(&mut self) -> Option<Event> {
        let lowest = self.news & self.news.wrapping_neg();
        self.news ^= lowest;
        let direction = match lowest {
            RAISED_BIDI | WANTED_BIDI => Direction::Bidirectional,
            _ => Direction::Unidirectional,
        };
        Some(match lowest {
            RAISED_BIDI | RAISED_UNI => Event::StreamLimitRaised { direction },
            _ => Event::StreamsWanted { direction },
        })
    }
}
