//! What there is of a stream's receiving direction.

use super::own_memory::OwnMemory;
use crate::abi::ReceiveFlags;
use bytes::{Buf, Bytes};
use godwit_transport::ReadError;
use std::collections::VecDeque;

/// Bytes that are shown at once, at most.
const MOST_BYTES: usize = 512 << 10;

/// The receiving direction of a stream.
#[derive(Debug)]
pub(crate) struct Receiving {
    /// What was fetched and not taken.
    pub(super) held: VecDeque<Bytes>,
    pub(super) held_bytes: u64,
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

/// What the application is shown.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) pieces: Vec<Bytes>,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) flags: ReceiveFlags,
}

impl Receiving {
    /// A direction in which something may come, or not.
    pub(crate) const fn new(exists: bool) -> Self {
        Receiving {
            held: VecDeque::new(),
            held_bytes: 0,
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

    /// The application will provide the memory that is received into.
    pub(crate) fn receive_into_own(&mut self) {
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

    /// Nothing more is wanted.
    pub(crate) fn end(&mut self) {
        self.is_over = true;
        self.held.clear();
        self.held_bytes = 0;
    }

    pub(super) fn may_show(&self) -> bool {
        !self.is_over && self.is_enabled && self.showing == Showing::No
    }

    pub(super) fn has_something(&self) -> bool {
        self.readable || self.held_bytes > 0 || self.fin || self.reset.is_some()
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

    /// Lets go of what was taken.
    pub(super) fn take(&mut self, bytes: u64) {
        let mut left = bytes.min(self.held_bytes);
        self.offset = self.offset.saturating_add(left);
        self.held_bytes = self.held_bytes.saturating_sub(left);
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
