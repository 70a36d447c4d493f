//! What there is of a stream's receiving direction.

use super::kept::Kept;
use super::own_memory::OwnMemory;
use crate::abi::ReceiveFlags;
use bytes::{Buf, Bytes};
use godwit_transport::ReadError;
use std::collections::VecDeque;

/// Pieces that are shown at once, at most.
const MOST_PIECES: usize = 64;

/// Bytes that are fetched and not taken, at most.
const MOST_BYTES: usize = 512 << 10;

/// The receiving direction of a stream.
#[derive(Debug)]
pub(crate) struct Receiving {
    /// What was fetched and not taken, but for what is kept.
    pub(super) held: VecDeque<Bytes>,
    /// All that was fetched and not taken.
    pub(super) held_bytes: u64,
    /// The application may be shown more before it has taken what it was shown.
    several: bool,
    /// What it was shown and has not taken, if it may be shown more.
    kept: Kept,
    /// What was fetched and is needed no longer, and still holds the peer back.
    unreleased: u64,
    /// It was told that there is nothing more behind what it was shown.
    fin_shown: bool,
    /// Where the first byte of that is in the stream.
    pub(super) offset: u64,
    /// Behind what is held there is nothing more.
    pub(super) fin: bool,
    /// The application provides the memory.
    pub(super) own: Option<OwnMemory>,
    /// There may be something to fetch.
    pub(super) readable: bool,
    /// How it ends, behind what is held: the peer has given up all that follows.
    pub(super) reset: Option<ReadError>,
    /// Up to where the peer's data comes although it has reset the stream.
    pub(super) reliable: Option<u64>,
    /// The application wants to be shown what comes.
    pub(super) is_enabled: bool,
    pub(super) showing: Showing,
    pub(super) is_over: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Showing {
    /// Nothing is being looked at.
    No,
    /// It is the callback's turn, in which so much was said to be taken, and that more is wanted, or not, afterwards.
    InCallback { taken: Option<u64>, enabled: Option<bool> },
    /// The application has kept so much, and will say when it has taken it.
    Kept { bytes: u64 },
}

/// What the application is shown. While it is, the pieces are here and not with the stream, which may go meanwhile.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) pieces: VecDeque<Bytes>,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) flags: ReceiveFlags,
}

impl Receiving {
    /// A direction in which something may come, or not.
    pub(crate) fn new(exists: bool) -> Self {
        Receiving {
            held: VecDeque::new(),
            held_bytes: 0,
            several: false,
            kept: Kept::default(),
            unreleased: 0,
            fin_shown: false,
            offset: 0,
            fin: false,
            own: None,
            readable: false,
            reset: None,
            reliable: None,
            is_enabled: true,
            showing: Showing::No,
            is_over: !exists,
        }
    }

    /// Lets go of everything, for the stream is gone.
    pub(super) fn clear(&mut self) {
        self.held.clear();
        (self.kept, self.own) = (Kept::default(), None);
    }

    /// The application may be shown more before it has taken what it was shown, unless it provides the memory.
    pub(crate) fn show_several(&mut self, several: bool) {
        self.several = several && self.own.is_none();
    }

    /// Whether the application may be shown more before it has taken what it was shown.
    pub(super) const fn shows_several(&self) -> bool {
        self.several
    }

    /// The application will provide the memory that is received into.
    pub(crate) fn receive_into_own(&mut self) {
        self.several = false;
        self.own.get_or_insert_default();
    }

    /// Nothing more comes, or is wanted.
    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Up to where the peer's data comes although it has reset the stream, if it has told so.
    pub(crate) const fn reliable(&self) -> Option<u64> {
        self.reliable
    }

    /// Nothing more is wanted. What the application has been shown and looks at stays where it is, as long as there is the
    /// stream.
    pub(crate) fn end(&mut self) {
        self.is_over = true;
        if self.showing == Showing::No {
            self.held.clear();
        }
        self.unreleased = self.unreleased.saturating_add(std::mem::take(&mut self.held_bytes));
    }

    /// Bytes by which the peer is to be held back no longer, once.
    pub(super) const fn release(&mut self) -> u64 {
        std::mem::replace(&mut self.unreleased, 0)
    }

    pub(super) fn may_show(&self) -> bool {
        !self.is_over && self.is_enabled && self.showing == Showing::No
    }

    pub(super) fn has_something(&self) -> bool {
        self.readable || self.unshown_bytes() > 0 || self.has_only_end() || self.reset.is_some()
    }

    /// Bytes that were fetched and the application has not been shown, or is to be shown once more.
    pub(super) const fn unshown_bytes(&self) -> u64 {
        self.held_bytes.saturating_sub(self.kept.bytes())
    }

    /// The end is all there is to show: everything before it has been taken.
    pub(super) const fn has_only_end(&self) -> bool {
        self.fin && self.held_bytes == 0 && !self.fin_shown
    }

    /// Whether so many pieces more may be shown at once.
    pub(super) fn has_room_for_pieces(&self) -> bool {
        self.held.len() < MOST_PIECES
    }

    /// What is shown now, which is what there is to show.
    pub(super) fn show(&mut self, early: ReceiveFlags) -> Shown {
        let fin = if self.fin { ReceiveFlags::FIN } else { ReceiveFlags::NONE };
        let (offset, bytes) = (self.offset.saturating_add(self.kept.bytes()), self.unshown_bytes());
        self.showing = Showing::InCallback { taken: None, enabled: None };
        let pieces = if self.several {
            self.fin_shown = self.fin;
            self.is_enabled = true;
            self.held.drain(..).map(|piece| self.kept.keep(piece)).collect()
        } else {
            std::mem::take(&mut self.held)
        };
        Shown { pieces, offset, bytes, flags: fin.union(early) }
    }

    /// The callback has returned to which this was shown.
    pub(super) fn take_back(&mut self, shown: VecDeque<Bytes>) {
        if !self.several {
            self.held = shown;
        }
    }

    /// Bytes that can be fetched now.
    pub(super) fn room(&self) -> usize {
        let most = self.own.as_ref().map_or(MOST_BYTES, OwnMemory::room);
        most.min(MOST_BYTES.saturating_sub(usize::try_from(self.held_bytes).unwrap_or(usize::MAX)))
    }

    /// Keeps what was fetched.
    pub(super) fn hold(&mut self, piece: Bytes) {
        self.held_bytes = self.held_bytes.saturating_add(piece.len() as u64);
        match &mut self.own {
            Some(own) => self.held.extend(own.fill(&piece)),
            None => self.held.push_back(piece),
        }
    }

    /// The application has been shown nothing so far, or only what it is to be shown once more.
    pub(super) const fn is_at_start(&self) -> bool {
        self.offset == 0 && self.kept.bytes() == 0
    }

    /// The application has taken everything it was shown.
    pub(super) const fn has_taken_all_shown(&self) -> bool {
        self.kept.bytes() == 0
    }

    /// Lets go of what was taken.
    pub(super) fn take(&mut self, bytes: u64) {
        // What it has not been shown it cannot have taken.
        let most = if self.several { self.kept.bytes() } else { self.held_bytes };
        let mut left = bytes.min(most);
        self.offset = self.offset.saturating_add(left);
        // What is held no longer, because the stream is over, has been released.
        let released = left.min(self.held_bytes);
        self.held_bytes = self.held_bytes.saturating_sub(released);
        self.unreleased = self.unreleased.saturating_add(released);
        if self.several {
            return self.kept.take(left);
        }
        while left > 0
            && let Some(piece) = self.held.front_mut()
        {
            let length = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
            piece.advance(length);
            left = left.saturating_sub(length as u64);
            if piece.is_empty() {
                self.held.pop_front();
            }
        }
    }
}
