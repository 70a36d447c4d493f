//! Which entries leave the dynamic table for another (RFC 9204 section 2.1.1).
//!
//! Entries can only leave in the order in which they came. What is worth more than what would be inserted is duplicated before it
//! would leave, for a byte or two, and so moves to the end; if too little is left that may go, nothing is done. The worth of an
//! entry is what it saves of late for each byte of the table that it takes.
//!
//! The oldest entry, if it is in use all the time, is hardly ever without a section that refers to it and has not been acknowledged,
//! and keeps all behind it where they are. Once that has been in the way it is duplicated, in the place that it leaves, with the
//! first reference that finds it free. Until then it is referred to as ever: not to do so costs more than it gains.

use super::indexed::{Indexed, Mark};

/// Entries that are looked at for one insertion.
const LOOKED_AT: usize = 32;

/// What an entry does for the space that it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Worth {
    /// How often it is used, or likely to be, as `frequency` has it.
    pub(super) frequency: u32,
    /// Bytes that each use saves.
    pub(super) gain: u32,
    /// What it takes of the capacity.
    pub(super) size: u64,
}

impl Worth {
    /// Whether that is to stay rather than make room for another. What is new may never come again, so that it is taken for less
    /// than it seems.
    fn stays_before(self, new: Worth) -> bool {
        let saves = |worth: Worth| u64::from(worth.frequency).saturating_mul(worth.gain.into());
        let (old, new_saves) = (saves(self).saturating_mul(new.size), saves(new).saturating_mul(self.size));
        old.saturating_mul(10) > new_saves.saturating_mul(7)
    }
}

/// What is to happen for an insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// So many of the oldest entries leave, and before that those are duplicated whose bit is set.
    Made { leave: usize, saved: u32 },
    /// What might leave is worth more.
    Worthless,
    /// The entry with this absolute index has to stay: it is referred to by what has not been acknowledged, or has not arrived.
    Kept(u64),
}

impl Room {
    /// Seeks room for what is worth that much, where entries may leave that are before `may_leave` and not kept.
    pub(super) fn seek(table: &Indexed, new: Worth, section: u16, may_leave: u64) -> Room {
        let mut room = table.table().capacity().saturating_sub(table.table().size());
        let mut saved = 0_u32;
        let first = table.table().dropped();
        for (position, (mark, size)) in table.entries().enumerate() {
            if room >= new.size {
                return Room::Made { leave: position, saved };
            }
            if position >= LOOKED_AT {
                return Room::Worthless;
            }
            let index = first.saturating_add(position as u64);
            if mark.is_pinned() || index >= may_leave {
                return Room::Kept(index);
            }
            if worth(mark, size, section).stays_before(new) {
                saved |= 1_u32.wrapping_shl(position as u32);
            } else {
                room = room.saturating_add(size);
            }
        }
        match room >= new.size {
            true => Room::Made { leave: table.table().len(), saved },
            false => Room::Worthless,
        }
    }
}

/// What an entry is worth: nothing if there is another like it.
fn worth(mark: &Mark, size: u64, section: u16) -> Worth {
    let frequency = if mark.is_superseded() { 0 } else { mark.frequency(section) };
    Worth { frequency, gain: mark.gain(), size }
}

#[cfg(test)]
mod tests {
    use super::super::frequency::ONCE;
    use super::*;

    fn worth(frequency: u32, gain: u32, size: u64) -> Worth {
        Worth { frequency, gain, size }
    }

    #[test]
    fn what_saves_more_in_its_place_stays() {
        let new = worth(ONCE, 30, 60);
        assert!(worth(ONCE, 30, 60).stays_before(new));
        assert!(!worth(ONCE / 4, 30, 60).stays_before(new), "it is seldom used");
        assert!(!worth(ONCE, 8, 60).stays_before(new), "it saves little");
        assert!(!worth(ONCE, 30, 250).stays_before(new), "it takes much room");
        assert!(!worth(0, 3000, 3100).stays_before(worth(1, 1, 33)), "it is not used at all");
    }
}
