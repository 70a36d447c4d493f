//! Streams: their states, data in order, flow control, limits, and who sends next.
//!
//! [`Streams`] is wiring over parts that own one concern each: the two halves of a stream with their
//! buffers, windows and credit, the limits on opening streams, and the scheduler. To the connection they are one
//! part (`part`): frames come in through `input`, go out through `output`, and what becomes of them returns there.
//! The application learns from [`Streams::next_event`] that there is something to do, and then calls.
//!
//! Invariants: a stream exists from when it is opened until both its halves are over and the application
//! has seen the end; nothing exists for streams that are merely permitted. Every byte received is counted
//! once against the connection's window and given back once, whether it is read, discarded or reset. What
//! a peer can make us hold is bounded by the announced windows and stream limits.
//!
//! (RFC 9000 sections 2, 3, 4 and 19.4 to 19.14.)

mod application;
mod assembler;
mod early;
mod flow;
mod input;
mod limits;
mod output;
mod part;
mod places;
mod recv;
mod scheduler;
mod send;
mod send_buffer;
mod store;
mod taken;
#[cfg(test)]
mod tests;
mod token;
mod watch;

use crate::reserve::{OWN_STREAM_WINDOW, Share, WindowReserve};
use crate::{Direction, Event, Side, StreamId, TransportConfig};
use bytes::Bytes;
use early::EarlyState;
use flow::{ReceiveWindow, SendCredit};
use godwit_wire::transport_parameters::TransportParameters;
use input::Merit;
use limits::Limits;
pub use limits::StreamLimits;
use recv::RecvHalf;
use scheduler::Scheduler;
use send::{Readiness, SendHalf};
use std::collections::VecDeque;
use std::fmt;
use std::num::NonZeroU64;
use store::{Store, Stream};
pub(crate) use token::StreamToken;

/// What a read gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadChunk {
    /// The next bytes of the stream, at least one.
    Data(Bytes),
    /// The end: everything has been read. The stream needs no further reading.
    Finished,
    /// Nothing now. [`Event::Readable`] follows when there is.
    Blocked,
}

/// What there is to read of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Readable {
    /// The offset in the stream of the first byte that has not been read.
    pub offset: u64,
    /// Bytes that can be read without waiting.
    pub len: u64,
    /// The stream ends behind them.
    pub ends: bool,
}

/// Why there is nothing to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// The peer gave up sending, with this application error code.
    Reset(u64),
    /// `stop_sending` was called.
    Stopped,
    /// There is no such stream to read from, or it is over.
    UnknownStream,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Reset(code) => write!(f, "the peer reset the stream with code {code:#x}"),
            ReadError::Stopped => f.write_str("reading was stopped by this end"),
            ReadError::UnknownStream => f.write_str("no such stream to read from, or it is over"),
        }
    }
}

impl std::error::Error for ReadError {}

/// Why nothing can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError {
    /// `finish` was called.
    Finished,
    /// `reset` was called.
    Reset,
    /// The peer does not read on, with this application error code. The stream was reset with the same.
    Stopped(u64),
    /// There is no such stream to write to, or it is over.
    UnknownStream,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Finished => f.write_str("the stream is finished"),
            WriteError::Reset => f.write_str("the stream was reset by this end"),
            WriteError::Stopped(code) => write!(f, "the peer stopped reading with code {code:#x}"),
            WriteError::UnknownStream => f.write_str("no such stream to write to, or it is over"),
        }
    }
}

impl std::error::Error for WriteError {}

/// The call names a stream that does not exist, is over, or has no such half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownStream;

impl fmt::Display for UnknownStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such stream, or it is over")
    }
}

impl std::error::Error for UnknownStream {}

/// Why `Streams::reset_at` was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResetAtError {
    /// The peer does not know RESET_STREAM_AT, or its transport parameters have not come yet.
    Unsupported,
    /// There is no such stream to write to, or it is over.
    UnknownStream,
}

impl fmt::Display for ResetAtError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResetAtError::Unsupported => f.write_str("the peer does not support RESET_STREAM_AT"),
            ResetAtError::UnknownStream => UnknownStream.fmt(f),
        }
    }
}

impl std::error::Error for ResetAtError {}

/// What wants to go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Interest {
    /// Frames other than STREAM.
    pub control: bool,
    /// STREAM frames. May turn out to be nothing once, if flow control has just been used up.
    pub data: bool,
}

impl Interest {
    /// True if anything wants to go out.
    pub(crate) const fn any(self) -> bool {
        self.control || self.data
    }
}

/// The connection window while memory is scarce.
const SMALL_WINDOW: u64 = 64 << 10;

/// Counters, in bytes of stream data. They only rise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct StreamStats {
    /// Sent for the first time.
    pub bytes_sent: u64,
    /// Sent again.
    pub bytes_retransmitted: u64,
    /// Received, each byte of a stream once, gaps included.
    pub bytes_received: u64,
    /// Streams opened by this end.
    pub opened_locally: u64,
    /// Streams opened by the peer.
    pub opened_by_peer: u64,
}

/// What a stream is made with, from the configuration and the peer's transport parameters.
#[derive(Debug, Clone, Copy, Default)]
struct Settings {
    stream_window: u64,
    max_stream_window: u64,
    max_connection_window: u64,
    /// The peer's first limits on a stream's data.
    peer_bidi_local: u64,
    peer_bidi_remote: u64,
    peer_uni: u64,
    /// The peer takes RESET_STREAM_AT.
    peer_reset_at: bool,
}

/// Bytes that the application has written and the peer not acknowledged.
#[derive(Debug)]
struct WriteBudget {
    used: u64,
    /// What of that has not been sent yet.
    unsent: u64,
    /// What may be used now: follows the congestion window, and is `most` at most.
    limit: u64,
    most: u64,
    /// The limit of which the application was told last, if it wants to be told; at least 1.
    announced: Option<NonZeroU64>,
    /// Streams whose `write` was refused for want of room, in order. Some may be gone.
    waiting: VecDeque<StreamId>,
    /// Others wait for nothing but the peer's permission.
    unpermitted: bool,
    /// Memory is scarce: little may be used, however large the congestion window is.
    is_small: bool,
}

impl WriteBudget {
    /// What may be used however small the congestion window is: many clients that take little hold no more than
    /// this each, and on a fast network with a short round trip it lasts until the application writes again.
    const LEAST: u64 = 128 << 10;
    /// So many congestion windows may be used. What follows a lost packet is held until that has come: a round trip passes
    /// before it is missed, an eighth of one or more until it is known that others have not just overtaken it, and another
    /// until what it carried is acknowledged. And of what is sent again some is lost again.
    const WINDOWS: u64 = 4;
    /// Bytes that a stream may hold however much the others hold, so that a short answer does not wait behind a long one.
    const STREAM_SHARE: u64 = 64 << 10;
    /// So much may the streams hold by that beyond the limit. Then each has the smaller share: whoever opens many
    /// streams and reads none of them holds little by each.
    const BEYOND: u64 = 1 << 20;
    const SMALL_SHARE: u64 = 16 << 10;
    /// What may be used, and what a stream may hold in any case, while memory is scarce.
    const SMALL: u64 = 64 << 10;
    const SMALLEST_SHARE: u64 = 2 << 10;
    /// So much may be written to a stream ahead of the peer's permission to send it, and [`WriteBudget::LEAST`] to all
    /// of them: it leaves when that comes, while the application writes more.
    const AHEAD: u64 = 16 << 10;

    fn new(most: u64) -> Self {
        let limit = most.min(Self::LEAST);
        WriteBudget {
            used: 0,
            unsent: 0,
            limit,
            most,
            announced: None,
            waiting: VecDeque::new(),
            unpermitted: false,
            is_small: false,
        }
    }

    /// What may be used with such a congestion window, in bytes.
    fn wanted(&self, window: u64) -> u64 {
        let most = if self.is_small { self.most.min(Self::SMALL) } else { self.most };
        window.saturating_mul(Self::WINDOWS).max(Self::LEAST).min(most)
    }

    /// What each stream may hold however much the others hold.
    const fn stream_share(&self) -> u64 {
        if self.is_small {
            Self::SMALLEST_SHARE
        } else if self.used > self.limit.saturating_add(Self::BEYOND) {
            Self::SMALL_SHARE
        } else {
            Self::STREAM_SHARE
        }
    }

    /// What a stream may hold in addition to what it does, with so much credit on the connection. Not in crumbs.
    #[inline]
    fn room(&self, send: &SendHalf, credit: u64) -> u64 {
        let own = self.stream_share().saturating_sub(send.buffered());
        let permitted = send.permitted_beyond().min(credit.saturating_sub(self.unsent));
        let ahead = Self::AHEAD.saturating_sub(send.unsent());
        let ahead = if ahead >= Self::AHEAD >> 1 { ahead } else { 0 };
        let ahead = Self::LEAST.saturating_sub(self.unsent).max(ahead);
        self.limit.saturating_sub(self.used).max(own).min(permitted.max(ahead))
    }

    /// Of a stream that had so much unsent, some will never be sent.
    fn on_given_up(&mut self, unsent: u64, send: &SendHalf) {
        self.unsent = self.unsent.saturating_sub(unsent.saturating_sub(send.unsent()));
    }

    /// Whether all who wait may write again.
    const fn has_room(&self) -> bool {
        self.used <= self.limit.saturating_sub(self.limit >> 2)
    }

    /// The application is told when the stream `id` takes more. Who only waits for the peer's permission is not among
    /// those who wait for room.
    fn wait(&mut self, id: StreamId, send: &mut SendHalf) {
        send.write_waiting = true;
        if self.has_room() {
            self.unpermitted |= !send.write_queued;
        } else if !std::mem::replace(&mut send.write_queued, true) {
            self.waiting.push_back(id);
        }
    }
}

/// All streams of one connection.
#[derive(Debug)]
pub(crate) struct Streams {
    side: Side,
    settings: Settings,
    store: Store,
    scheduler: Scheduler,
    limits: Limits,
    window: ReceiveWindow,
    /// What the windows and the send buffer have beyond the connection's own.
    share: Share,
    credit: SendCredit,
    /// The connection's own control frames to be written, as bits of [`output`].
    control: u8,
    /// Memory that all streams hold for what has come, in bytes.
    received: u64,
    /// Bytes that the application has read and holds the peer back for.
    taken: u64,
    /// Pieces out of order that all streams hold.
    pieces: u32,
    merit: Merit,
    /// Streams that owe control frames, each once. Some may be gone.
    control_queue: VecDeque<StreamId>,
    budget: WriteBudget,
    events: VecDeque<Event>,
    /// Streams opened (true) and over, for an observer; not kept without one.
    journal: Option<Vec<(StreamId, bool)>>,
    early: EarlyState,
    stats: StreamStats,
}

impl Streams {
    /// No streams yet, and none may be opened before [`Streams::set_peer_limits`].
    pub(crate) fn new(side: Side, config: &TransportConfig) -> Self {
        Streams {
            side,
            settings: Settings {
                stream_window: config.initial_stream_window,
                max_stream_window: config.max_stream_window,
                max_connection_window: config.max_connection_window,
                ..Settings::default()
            },
            store: Store::default(),
            scheduler: Scheduler::new(),
            limits: Limits::new(config.max_bidi_streams, config.max_uni_streams),
            window: ReceiveWindow::new(config.initial_connection_window, config.max_connection_window),
            share: Share::default(),
            credit: SendCredit::default(),
            control: 0,
            received: 0,
            taken: 0,
            pieces: 0,
            merit: Merit::default(),
            control_queue: VecDeque::new(),
            budget: WriteBudget::new(config.send_buffer),
            events: VecDeque::new(),
            journal: None,
            early: EarlyState::default(),
            stats: StreamStats::default(),
        }
    }

    /// What is beyond the connection's own comes out of this from now on; but who began with more than that has it.
    pub(crate) fn share(&mut self, reserve: &WindowReserve) {
        if self.window.size() <= crate::reserve::OWN_WINDOW {
            self.share.attach(reserve);
        }
    }

    /// Bytes that are held for the peer: what has come, as memory that it takes, and what the peer has not acknowledged.
    #[inline]
    pub(crate) const fn held(&self) -> u64 {
        self.received.saturating_add(self.budget.used)
    }

    /// A stream that held so many bytes of what has come holds so many now.
    #[inline]
    const fn on_held(&mut self, before: u64, now: u64) {
        // Each adds what it takes away later.
        self.received = self.received.wrapping_add(now.wrapping_sub(before));
    }

    /// What the window of a stream may grow to now.
    fn max_stream_window(&self) -> u64 {
        let most = self.settings.max_stream_window;
        match self.share.is_attached() {
            true => most.min((self.window.size() / 6).saturating_mul(5).max(OWN_STREAM_WINDOW)),
            false => most,
        }
    }

    /// The connection window has grown or shrunk, and those of the streams may as far.
    fn on_window_resized(&mut self) {
        let max = self.max_stream_window();
        for (_, stream) in self.store.iter_mut() {
            if let Some(recv) = &mut stream.recv {
                recv.set_max_window(max);
            }
        }
    }

    /// Puts the limits we begin with into our transport parameters.
    #[cfg(test)]
    pub(crate) fn announce(config: &TransportConfig, parameters: &mut TransportParameters) {
        parameters.initial_max_data = config.initial_connection_window;
        parameters.reset_stream_at = true;
        parameters.initial_max_stream_data_bidi_local = config.initial_stream_window;
        parameters.initial_max_stream_data_bidi_remote = config.initial_stream_window;
        parameters.initial_max_stream_data_uni = config.initial_stream_window;
        parameters.initial_max_streams_bidi = config.max_bidi_streams;
        parameters.initial_max_streams_uni = config.max_uni_streams;
    }

    /// Takes the limits of the peer's transport parameters, remembered ones or its real ones. Limits
    /// never fall (RFC 9000 section 7.4.1).
    pub(crate) fn set_peer_limits(&mut self, parameters: &TransportParameters) {
        let settings = &mut self.settings;
        settings.peer_reset_at |= parameters.reset_stream_at;
        for (limit, new) in [
            (&mut settings.peer_bidi_local, parameters.initial_max_stream_data_bidi_local),
            (&mut settings.peer_bidi_remote, parameters.initial_max_stream_data_bidi_remote),
            (&mut settings.peer_uni, parameters.initial_max_stream_data_uni),
        ] {
            *limit = new.max(*limit);
        }
        let (side, settings) = (self.side, self.settings);
        let mut raised = Vec::new();
        for (slot, stream) in self.store.iter_mut() {
            if let Some(send) = &mut stream.send {
                send.raise_limit(settings.peer_limit(side, stream.id));
                raised.push(slot);
            }
        }
        raised.into_iter().for_each(|slot| self.reschedule(slot));
        self.raise_credit(parameters.initial_max_data);
        self.raise_stream_limit(Direction::Bidirectional, parameters.initial_max_streams_bidi);
        self.raise_stream_limit(Direction::Unidirectional, parameters.initial_max_streams_uni);
    }

    /// Has the send buffer and the connection window be small while memory is scarce, or not. What was taken and announced
    /// stays.
    pub(crate) fn hold_little(&mut self, little: bool) {
        self.budget.is_small = little;
        if little {
            self.budget.limit = self.share.send(self.budget.limit.min(WriteBudget::SMALL), self.budget.used);
            self.window.shrink(SMALL_WINDOW);
            self.release_spare_memory();
        } else {
            self.window.set_max(self.settings.max_connection_window);
        }
    }

    fn release_spare_memory(&mut self) {
        let mut released = 0_u64;
        for recv in self.store.iter_mut().filter_map(|(_, stream)| stream.recv.as_mut()) {
            let before = recv.held();
            recv.keep_memory(false);
            released = released.saturating_add(before.saturating_sub(recv.held()));
        }
        self.on_held(released, 0);
    }

    /// Whether that is so.
    pub(crate) const fn is_to_hold_little(&self) -> bool {
        self.budget.is_small
    }

    /// Throws away what was received and written: the connection is closed, and its memory needed. All streams are given up,
    /// so that none seems to have come to its end; the peer hears nothing of it any more.
    pub(crate) fn forget_data(&mut self) {
        const CODE: u64 = 0;
        for (_, stream) in self.store.iter_mut() {
            if let Some(recv) = &mut stream.recv {
                recv.stop(CODE);
            }
            if let Some(send) = &mut stream.send {
                send.reset(CODE);
            }
        }
        (self.received, self.pieces) = (0, 0);
        (self.budget.used, self.budget.unsent) = (0, 0);
    }

    /// Bytes that a connection that is to hold little may hold beside what it does, by what was permitted and what each of
    /// its streams takes in any case.
    pub(crate) fn may_yet_hold(&self) -> u64 {
        let streams = (self.active_streams() as u64).saturating_mul(assembler::LARGEST_CHUNK as u64);
        self.window.permitted().saturating_add(WriteBudget::SMALL).saturating_add(streams)
    }

    /// Has the send buffer follow the congestion window, in bytes, so that it never holds the window back. A peer that
    /// takes little is given little memory; what is held already may exceed it.
    pub(crate) fn on_congestion_window(&mut self, window: u64) {
        let budget = &mut self.budget;
        budget.limit = self.share.send(budget.wanted(window), budget.used);
        if let Some(known) = budget.announced
            && budget.limit.abs_diff(known.get()) > known.get() >> 2
        {
            budget.announced = NonZeroU64::new(budget.limit.max(1));
            self.events.push_back(Event::IdealBufferChanged);
        }
    }

    /// Remembers from now on which streams are opened and which are over.
    pub(crate) fn keep_journal(&mut self) {
        self.journal.get_or_insert_default();
    }

    /// The streams opened (true) and over since the last call, in order.
    pub(crate) fn take_journal(&mut self) -> Vec<(StreamId, bool)> {
        self.journal.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn note(&mut self, id: StreamId, opened: bool) {
        if let Some(journal) = &mut self.journal {
            journal.push((id, opened));
        }
    }

    /// True if any stream is open.
    #[cfg(test)]
    pub(crate) const fn has_active_streams(&self) -> bool {
        self.store.len() > 0
    }

    /// Number of streams that are open.
    pub(crate) const fn active_streams(&self) -> usize {
        self.store.len()
    }

    /// Bytes written by the application and not acknowledged.
    #[cfg(test)]
    pub(crate) const fn buffered(&self) -> u64 {
        self.budget.used
    }

    /// Counters.
    pub(crate) const fn stats(&self) -> StreamStats {
        self.stats
    }

    /// Bytes of stream data sent for the first time.
    #[inline]
    pub(crate) const fn data_sent(&self) -> u64 {
        self.stats.bytes_sent
    }

    /// True if more than a few packets of some stream have come, and its end has not.
    pub(crate) fn in_midst_of_data(&self) -> bool {
        self.store.iter().any(|stream| stream.recv.as_ref().is_some_and(RecvHalf::is_in_midst_of_data))
    }

    /// Makes a stream of either end exist.
    fn create(&mut self, id: StreamId) {
        let local = id.initiator() == self.side;
        let both = id.direction() == Direction::Bidirectional;
        let (settings, max_stream_window) = (&self.settings, self.max_stream_window());
        let send = (local || both).then(|| SendHalf::new(settings.peer_limit(self.side, id)));
        let recv = (!local || both).then(|| RecvHalf::new(settings.stream_window, max_stream_window));
        let opened = if local { &mut self.stats.opened_locally } else { &mut self.stats.opened_by_peer };
        *opened = opened.saturating_add(1);
        self.note(id, true);
        let early = !local && self.is_receiving_early();
        self.store.insert(Stream { early, ..Stream::new(id, send, recv) });
    }

    /// Forgets a stream that is over, and lets the peer open another in its place.
    fn reap(&mut self, slot: u32) {
        let Some(id) = self.store.at_mut(slot).filter(|stream| stream.is_over()).map(|stream| stream.id)
        else {
            return;
        };
        self.note(id, false);
        self.scheduler.remove(slot);
        self.store.remove(slot);
        let store = &self.store;
        forget_gone(&mut self.control_queue, store, |stream| stream.control_queued);
        forget_gone(&mut self.budget.waiting, store, |stream| {
            stream.send.as_ref().is_some_and(|send| send.write_queued)
        });
        if id.initiator() != self.side && !self.limits.places.on_over(id) {
            self.free_place(id.direction());
        }
    }

    /// The peer may have another stream instead of one that is over.
    fn free_place(&mut self, direction: Direction) {
        if self.limits.remote(direction).on_finished() {
            self.control |= output::max_streams_bit(direction);
        }
    }

    /// Puts a stream where it belongs after something changed: among the ready, the blocked, or neither.
    fn reschedule(&mut self, slot: u32) {
        let Some(stream) = self.store.at_mut(slot) else { return };
        let send = stream.send.as_ref().filter(|_| !stream.held);
        let readiness = send.map_or(Readiness::Idle, |send| send.readiness(self.credit.available()));
        match readiness {
            Readiness::Ready => self.scheduler.push_back(slot, stream.rank),
            Readiness::Idle => self.scheduler.remove(slot),
            Readiness::StreamBlocked => {
                self.scheduler.remove(slot);
                if stream.send.as_mut().is_some_and(SendHalf::newly_blocked) {
                    self.owe(slot, output::STREAM_BLOCKED);
                }
            }
            Readiness::ConnectionBlocked => {
                self.scheduler.block(slot);
                if self.credit.newly_blocked() {
                    self.control |= output::DATA_BLOCKED;
                }
            }
        }
    }

    /// Takes note that a stream is to write control frames.
    fn owe(&mut self, slot: u32, frames: u8) {
        let Some(stream) = self.store.at_mut(slot) else { return };
        stream.control |= frames;
        if stream.control != 0 && !stream.control_queued && !stream.held {
            stream.control_queued = true;
            self.control_queue.push_back(stream.id);
        }
    }

    /// Gives back connection flow control for bytes that nobody will read.
    fn discard(&mut self, bytes: u64) {
        if bytes > 0 && self.window.on_discarded_of_all(bytes, &mut self.share) {
            self.control |= output::MAX_DATA;
        }
    }

    fn raise_credit(&mut self, limit: u64) {
        let raised = limit > self.credit.limit();
        if self.credit.raise(limit) {
            while let Some(slot) = self.scheduler.pop_blocked() {
                self.reschedule(slot);
            }
        }
        if raised && std::mem::take(&mut self.budget.unpermitted) {
            self.announce_permission();
        }
    }

    /// Whoever waits for the peer's permission is told to try again. If there is no room meanwhile, they find out, and
    /// wait for that.
    fn announce_permission(&mut self) {
        for (_, stream) in self.store.iter_mut() {
            if let Some(send) = &mut stream.send
                && !send.write_queued
                && std::mem::take(&mut send.write_waiting)
            {
                self.events.push_back(Event::Writable { id: stream.id });
            }
        }
    }

    fn raise_stream_limit(&mut self, direction: Direction, limit: u64) {
        let local = self.limits.local(direction);
        let before = local.limit();
        let available = local.raise(limit);
        if local.limit() > before {
            // That the old limit is too low need not be said any more.
            self.control &= !output::streams_blocked_bit(direction);
            self.limits.watch.on_raised(direction);
        }
        if available {
            self.events.push_back(Event::StreamsAvailable { direction });
        }
        self.release_held(direction);
    }
}

/// Squeezes streams that are over out of a queue once they outnumber the living.
fn forget_gone(queue: &mut VecDeque<StreamId>, store: &Store, stands_in: impl Fn(&Stream) -> bool) {
    if queue.len() > store.len().saturating_mul(2).saturating_add(64) {
        queue.retain(|id| store.find(*id).and_then(|slot| store.at(slot)).is_some_and(&stands_in));
    }
}

impl Settings {
    /// The peer's first limit on what we send on a stream (RFC 9000 section 18.2: "local" and "remote"
    /// are seen from the peer).
    fn peer_limit(&self, side: Side, id: StreamId) -> u64 {
        match (id.direction(), id.initiator() == side) {
            (Direction::Unidirectional, true) => self.peer_uni,
            (Direction::Unidirectional, false) => 0,
            (Direction::Bidirectional, true) => self.peer_bidi_remote,
            (Direction::Bidirectional, false) => self.peer_bidi_local,
        }
    }
}
