//! Unreliable datagrams in DATAGRAM frames (RFC 9221).
//!
//! `Datagrams` holds what the application wants to send until a packet takes it, and what has come until
//! the application reads it. Both queues are bounded in bytes. A datagram is sent once or never: what is lost
//! stays lost. Whoever gives one a tag learns what became of it, as [`DatagramOutcome`]s.
//!
//! Invariants: a datagram leaves whole, in one packet; at most one of sent and cancelled is told of each tag,
//! and acknowledged, suspected lost and spurious only after sent; packets are shared with streams by a
//! balance of bytes, so that neither starves.

mod outcome;
mod receive;
mod send;
#[cfg(test)]
mod tests;

pub use outcome::{DatagramOutcome, DatagramStats};
pub use send::SendDatagramError;

use crate::packet::PacketBuilder;
use crate::part::Part;
use crate::{Event, WireError};
use bytes::Bytes;
use godwit_base::Time;
use godwit_recovery::Outcome;
use godwit_wire::Frame;
use godwit_wire::TransportErrorCode;
use outcome::Outcomes;
use receive::ReceiveQueue;
use send::SendQueue;

/// What becomes of a datagram for which the send queue has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum DatagramOverflow {
    /// The oldest of the queue make room: news matter more than completeness.
    #[default]
    DropOldest,
    /// It is refused with [`SendDatagramError::Full`], and [`Event::DatagramsWritable`] follows.
    Refuse,
}

/// Settings of datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DatagramConfig {
    /// Largest DATAGRAM frame accepted, in bytes with its type and length (max_datagram_frame_size); 0 is
    /// none. Default 65,535.
    pub max_frame_size: u64,
    /// Bytes that wait to be sent at most. A datagram counts 64 bytes more than it has. Default 256 KiB.
    pub send_buffer: usize,
    /// What happens when they are more. Default: the oldest are dropped.
    pub overflow: DatagramOverflow,
    /// Bytes that wait to be read at most; then the oldest are dropped. Counted like `send_buffer`.
    /// Default 64 KiB.
    pub receive_buffer: usize,
    /// How much of what is sent datagrams may take while streams have data to send, in percent: 100 puts
    /// datagrams always first, 0 sends them only where streams leave room. Default 80.
    pub share: u8,
}

impl Default for DatagramConfig {
    fn default() -> Self {
        DatagramConfig {
            max_frame_size: 65_535,
            send_buffer: 256 << 10,
            overflow: DatagramOverflow::default(),
            receive_buffer: 64 << 10,
            share: 80,
        }
    }
}

/// Bytes that a waiting datagram counts beside its own.
const OVERHEAD: usize = 64;

/// Bytes by which one of datagrams and streams may be ahead of its share.
const MOST_AHEAD: i64 = 64 << 10;

/// The datagrams of one connection, both ways.
#[derive(Debug)]
pub(crate) struct Datagrams {
    config: DatagramConfig,
    send: SendQueue,
    receive: ReceiveQueue,
    /// From the first datagram on: most connections never have one.
    outcomes: Option<Box<Outcomes>>,
    /// Bytes that datagrams may send before it is the streams' turn; below zero it is. Counted only while
    /// both have something to send.
    balance: i64,
}

impl Datagrams {
    pub(crate) fn new(config: DatagramConfig) -> Self {
        Datagrams {
            config,
            send: SendQueue::default(),
            receive: ReceiveQueue::default(),
            outcomes: None,
            balance: if config.share == 0 { -1 } else { 0 },
        }
    }

    /// Bytes that wait to be sent or read.
    #[inline]
    pub(crate) const fn held(&self) -> u64 {
        self.send.bytes().saturating_add(self.receive.bytes()) as u64
    }

    /// Sets how much datagrams may take beside streams, in percent. What was ahead or behind so far is forgotten.
    pub(crate) fn set_share(&mut self, percent: u8) {
        self.config.share = percent.min(100);
        self.balance = if percent == 0 { -1 } else { 0 };
    }

    fn outcomes(&mut self) -> &mut Outcomes {
        self.outcomes.get_or_insert_default()
    }

    /// What the peer accepts (max_datagram_frame_size): 0 is nothing.
    pub(crate) fn set_peer_limit(&mut self, max_frame_size: u64) {
        self.send.peer_limit = max_frame_size;
    }

    /// The largest datagram that can be sent in a packet with `room` bytes for frames; none if the peer
    /// takes no datagrams.
    pub(crate) fn max_len(&self, room: usize) -> Option<usize> {
        self.send.max_len(room)
    }

    /// Queues a datagram. `room` is as in [`Datagrams::max_len`]. With `unless_blocked`, it does not wait until something can be
    /// sent again.
    pub(crate) fn queue(
        &mut self,
        data: Bytes,
        tag: Option<u64>,
        unless_blocked: bool,
        room: usize,
    ) -> Result<(), SendDatagramError> {
        let max = self.send.max_len(room).ok_or(SendDatagramError::Unsupported)?;
        if data.len() > max {
            return Err(SendDatagramError::TooLarge { max });
        }
        let cost = data.len().saturating_add(OVERHEAD);
        while self.send.bytes().saturating_add(cost) > self.config.send_buffer {
            let refuse = self.config.overflow == DatagramOverflow::Refuse;
            let Some(oldest) = (if refuse { None } else { self.send.pop() }) else {
                self.send.refused = true;
                return Err(SendDatagramError::Full);
            };
            self.outcomes().on_cancelled(oldest.tag);
        }
        self.send.push(data, tag, unless_blocked);
        Ok(())
    }

    /// Withdraws what waits to be sent under a tag; each is told as cancelled. Returns how many those were.
    pub(crate) fn cancel(&mut self, tag: u64) -> usize {
        let cancelled = self.send.cancel(tag);
        (0..cancelled).for_each(|_| self.outcomes().on_cancelled(Some(tag)));
        cancelled
    }

    /// Nothing more can be sent at present: what is not to wait is cancelled.
    #[inline]
    pub(crate) fn on_blocked(&mut self) {
        while let Some(hasty) = self.send.pop_hasty() {
            self.outcomes().on_cancelled(hasty.tag);
        }
    }

    /// Whether the streams, which have data as well, come first in the next packet.
    pub(crate) fn give_way(&self) -> bool {
        self.balance < 0
    }

    /// Both had something to send: `datagrams` and `streams` bytes went into a packet.
    pub(crate) fn on_shared(&mut self, datagrams: usize, streams: usize) {
        let share = i64::from(self.config.share.min(100));
        let part =
            |bytes: usize, percent: i64| i64::try_from(bytes).unwrap_or(0).saturating_mul(percent) / 100;
        let earned = part(streams, share);
        let spent = part(datagrams, 100_i64.saturating_sub(share));
        let most = if share == 0 { -1 } else { MOST_AHEAD };
        self.balance = self.balance.saturating_add(earned).saturating_sub(spent).clamp(-MOST_AHEAD, most);
    }

    /// Writes datagrams, oldest first, as long as they fit. `room` is what an empty packet has: what
    /// does not fit even there (the path has become narrower) is dropped. Returns the bytes written.
    pub(crate) fn write_data<T: From<DatagramToken>>(
        &mut self,
        room: usize,
        packet: &mut PacketBuilder<'_, T>,
    ) -> usize {
        let before = packet.writer().len();
        while let Some(len) = self.send.first_len() {
            if self.send.max_len(room).is_none_or(|max| len > max) {
                let tag = self.send.pop().and_then(|datagram| datagram.tag);
                self.outcomes().on_cancelled(tag);
                continue;
            }
            let Some(tag) = self.send.write_first(packet.writer()) else { break };
            packet.carries(DatagramToken { tag });
            self.outcomes().on_sent(tag);
        }
        packet.writer().len().saturating_sub(before)
    }

    /// A DATAGRAM frame. Fails if it is larger than what was announced, or nothing was (section 3).
    fn on_datagram(&mut self, data: &[u8]) -> Result<(), WireError> {
        // The frame may have had no length.
        let least = (data.len() as u64).saturating_add(1);
        if least > self.config.max_frame_size {
            let reason = "a DATAGRAM frame larger than max_datagram_frame_size";
            return Err(WireError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason));
        }
        let dropped = self.receive.push(data, self.config.receive_buffer);
        self.outcomes().on_received(dropped);
        Ok(())
    }

    /// The oldest datagram that has come and was not read.
    pub(crate) fn read(&mut self) -> Option<Bytes> {
        self.receive.pop()
    }

    /// The next thing that became of a tagged datagram.
    pub(crate) fn next_outcome(&mut self) -> Option<DatagramOutcome> {
        self.outcomes.as_mut()?.next()
    }

    pub(crate) fn stats(&self) -> DatagramStats {
        self.outcomes.as_ref().map(|outcomes| outcomes.stats()).unwrap_or_default()
    }
}

/// A DATAGRAM frame, which is never sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DatagramToken {
    /// The application's name for it, if its outcome is asked for.
    pub(crate) tag: Option<u64>,
}

/// Its data goes out by [`Datagrams::write_data`], after all other frames.
impl Part for Datagrams {
    type Token = DatagramToken;

    #[inline]
    fn on_frame(&mut self, _now: Time, frame: &Frame<'_>) -> Option<Result<(), WireError>> {
        if let Frame::Datagram { data } = frame { Some(self.on_datagram(data)) } else { None }
    }

    #[inline]
    fn wants_to_send(&self) -> bool {
        !self.send.is_empty()
    }

    /// Acknowledgements may come after a loss that was none.
    fn on_outcome(&mut self, outcome: Outcome, token: DatagramToken) {
        self.outcomes().on_outcome(outcome, token.tag);
    }

    /// Each is told once until the application has acted on it.
    fn next_event(&mut self) -> Option<Event> {
        if self.receive.take_news() {
            return Some(Event::DatagramsReadable);
        }
        if self.outcomes.as_mut().is_some_and(|outcomes| outcomes.take_news()) {
            return Some(Event::DatagramOutcomes);
        }
        let roomy = self.send.bytes() <= self.config.send_buffer / 2;
        (roomy && std::mem::take(&mut self.send.refused)).then_some(Event::DatagramsWritable)
    }

    /// What waits will not be sent.
    fn on_closed(&mut self) {
        while let Some(datagram) = self.send.pop() {
            self.outcomes().on_cancelled(datagram.tag);
        }
    }
}
