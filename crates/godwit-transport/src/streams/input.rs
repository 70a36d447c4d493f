//! Frames from the peer (RFC 9000 sections 19.4, 19.5 and 19.8 to 19.14).

use super::recv::RecvHalf;
use super::{Streams, output, recv};
use crate::{Direction, Event, StreamId, WireError};
use godwit_base::Time;
use godwit_wire::{Frame, TransportErrorCode};
use std::ops::Range;

/// The half of a stream, seen from here, that a frame is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    Receive,
    Send,
}

/// A frame of the peer to the stream that it is about.
#[inline]
pub(super) fn on_frame(streams: &mut Streams, now: Time, frame: &Frame<'_>) -> Option<Result<(), WireError>> {
    Some(match *frame {
        Frame::Stream { id, offset, data, fin } => streams.on_stream(now, id, offset, data, fin),
        Frame::ResetStream { id, code, final_size } => streams.on_reset_stream(now, id, code, final_size),
        Frame::ResetStreamAt { id, code, final_size, reliable_size } => {
            streams.on_reset_stream_at(now, id, code, final_size, reliable_size)
        }
        Frame::StopSending { id, code } => streams.on_stop_sending(id, code),
        Frame::MaxData { limit } => {
            streams.judge_update(streams.credit.limit(), limit);
            streams.raise_credit(limit);
            Ok(())
        }
        Frame::MaxStreamData { id, limit } => streams.on_max_stream_data(id, limit),
        Frame::MaxStreams { direction, limit } => {
            streams.raise_stream_limit(direction, limit);
            Ok(())
        }
        Frame::DataBlocked { limit } => {
            streams.on_blocked(now, limit);
            Ok(())
        }
        Frame::StreamDataBlocked { id, limit } => streams.on_stream_blocked(now, id, limit),
        Frame::StreamsBlocked { direction, limit } => {
            streams.on_streams_blocked(direction, limit);
            Ok(())
        }
        _ => return None,
    })
}

/// What the frames of the peer were good for.
#[derive(Debug, Default)]
pub(super) struct Merit {
    /// Those that served nothing, since they were last asked for.
    useless: u32,
    /// Bytes that came beyond all that came before, without gaps, as far as 32 bits tell.
    arrived: u32,
    /// What had been sent when a limit of the peer's was raised for good reason, as far as 32 bits tell.
    judged_at: u32,
}

impl Streams {
    /// STREAM.
    #[inline]
    pub(crate) fn on_stream(
        &mut self,
        now: Time,
        id: StreamId,
        offset: u64,
        data: &[u8],
        fin: bool,
    ) -> Result<(), WireError> {
        let end = offset.saturating_add(data.len() as u64);
        let keeps = !self.is_to_hold_little();
        self.on_received(now, id, (offset..end, fin), |recv, fresh| {
            recv.keep_memory(keeps);
            recv.on_data(now, offset, data, fin, fresh)
        })
    }

    /// RESET_STREAM.
    pub(super) fn on_reset_stream(
        &mut self,
        now: Time,
        id: StreamId,
        code: u64,
        final_size: u64,
    ) -> Result<(), WireError> {
        self.on_received(now, id, (final_size..final_size, true), |recv, fresh| {
            recv.on_reset(now, code, fresh)
        })
    }

    /// RESET_STREAM_AT (draft-ietf-quic-reliable-stream-reset section 5): as RESET_STREAM, but the first
    /// `reliable_size` bytes still arrive and are read before the reset is told.
    pub(super) fn on_reset_stream_at(
        &mut self,
        now: Time,
        id: StreamId,
        code: u64,
        final_size: u64,
        reliable_size: u64,
    ) -> Result<(), WireError> {
        self.on_received(now, id, (final_size..final_size, true), |recv, fresh| {
            recv.on_reset_at(now, code, fresh, reliable_size)
        })
    }

    /// A frame that shows how far the peer has sent, and whether that is the end: what it says beyond that is for `act`,
    /// with the bytes that count for the first time. It returns those that nobody will read.
    // Most packets have one of these.
    #[inline(always)]
    fn on_received(
        &mut self,
        now: Time,
        id: StreamId,
        (data, fin): (Range<u64>, bool),
        act: impl FnOnce(&mut RecvHalf, u64) -> Result<u64, WireError>,
    ) -> Result<(), WireError> {
        let Some(slot) = self.resolve(id, Half::Receive)? else { return self.on_over() };
        let Some(recv) = self.store.at_mut(slot).and_then(|stream| stream.recv.as_mut()) else {
            return self.on_over();
        };
        let fresh = recv.check(data.end, fin)?;
        let arrived = fresh.min(data.end.saturating_sub(data.start));
        if fresh == 0 && recv.knows(data, fin) {
            self.merit.useless = self.merit.useless.saturating_add(1);
        }
        self.merit.arrived = self.merit.arrived.wrapping_add(arrived as u32);
        self.window.check(fresh)?;
        self.window.on_received(now, fresh);
        self.stats.bytes_received = self.stats.bytes_received.saturating_add(fresh);
        let (held, pieces) = (recv.held(), recv.pieces());
        let discarded = act(recv, fresh)?;
        let (held_now, pieces_now) = (recv.held(), recv.pieces());
        if recv.take_news() {
            self.events.push_back(Event::Readable { id });
        }
        let over = recv.is_over();
        self.on_held(held, held_now);
        if pieces_now != pieces {
            self.on_pieces(pieces, pieces_now)?;
        }
        self.discard(discarded);
        if over {
            self.reap(slot);
        }
        Ok(())
    }

    /// A frame for a stream that is over.
    #[cold]
    fn on_over(&mut self) -> Result<(), WireError> {
        self.merit.useless = self.merit.useless.saturating_add(1);
        Ok(())
    }

    /// A stream that held so many pieces out of order holds so many now.
    #[cold]
    pub(super) fn on_pieces(&mut self, before: usize, now: usize) -> Result<(), WireError> {
        self.pieces = self.pieces.saturating_sub(before as u32).saturating_add(now as u32);
        if now > before && self.pieces as usize > recv::max_pieces_of_all(self.window.size()) {
            let reason = "too many gaps in the data of streams";
            return Err(WireError::new(TransportErrorCode::INTERNAL_ERROR, reason));
        }
        Ok(())
    }

    /// STOP_SENDING. The stream is reset with the peer's code (RFC 9000 section 3.5), unless all of it is
    /// acknowledged or it was reset before.
    pub(super) fn on_stop_sending(&mut self, id: StreamId, code: u64) -> Result<(), WireError> {
        let Some(slot) = self.resolve(id, Half::Send)? else { return Ok(()) };
        let Some(send) = self.store.at_mut(slot).and_then(|stream| stream.send.as_mut()) else {
            return Ok(());
        };
        let unsent = send.unsent();
        if let Some(freed) = send.on_stop(code) {
            self.budget.on_given_up(unsent, send);
            self.events.push_back(Event::Stopped { id, code });
            self.after_reset(slot, freed);
        }
        Ok(())
    }

    /// MAX_STREAM_DATA.
    pub(super) fn on_max_stream_data(&mut self, id: StreamId, limit: u64) -> Result<(), WireError> {
        let Some(slot) = self.resolve(id, Half::Send)? else { return self.on_over() };
        let Some(send) = self.store.at_mut(slot).and_then(|stream| stream.send.as_mut()) else {
            return self.on_over();
        };
        let before = send.limit();
        if limit > before {
            send.raise_limit(limit);
            self.reschedule(slot);
            self.announce_writable(slot);
        }
        self.judge_update(before, limit);
        Ok(())
    }

    /// A limit of the peer's was raised, or not. It is raised for good reason where we have sent something meanwhile; what is
    /// raised at the same time on other streams is paid for by its acknowledgements.
    fn judge_update(&mut self, before: u64, now: u64) {
        /// Peers that have small windows raise them by a packet's worth.
        const USEFUL: u64 = 1 << 10;
        let sent = self.stats.bytes_sent as u32;
        if now.saturating_sub(before) < USEFUL || sent.wrapping_sub(self.merit.judged_at) < USEFUL as u32 {
            self.merit.useless = self.merit.useless.saturating_add(1);
        } else {
            self.merit.judged_at = sent;
        }
    }

    /// How many frames served nothing that nobody has taken account of.
    #[inline]
    pub(crate) const fn useless(&self) -> u32 {
        self.merit.useless
    }

    /// Bytes that came beyond all that came before, without gaps, as far as 32 bits tell.
    pub(crate) const fn arrived(&self) -> u32 {
        self.merit.arrived
    }

    /// How many frames served nothing, once.
    pub(crate) const fn take_useless(&mut self) -> u32 {
        std::mem::replace(&mut self.merit.useless, 0)
    }

    /// DATA_BLOCKED.
    fn on_blocked(&mut self, now: Time, limit: u64) {
        if self.window.on_blocked_of_all(now, limit, &mut self.share) {
            self.control |= output::MAX_DATA;
            self.on_window_resized();
        }
    }

    /// STREAM_DATA_BLOCKED. It may open the stream, and must be for one that the peer sends on.
    fn on_stream_blocked(&mut self, now: Time, id: StreamId, limit: u64) -> Result<(), WireError> {
        let Some(slot) = self.resolve(id, Half::Receive)? else { return Ok(()) };
        let recv = self.store.at_mut(slot).and_then(|stream| stream.recv.as_mut());
        if recv.is_some_and(|recv| recv.on_blocked(now, limit)) {
            self.owe(slot, output::MAX_STREAM_DATA);
        }
        Ok(())
    }

    /// STREAMS_BLOCKED: what streams have finished since the last announcement is given out at once.
    fn on_streams_blocked(&mut self, direction: Direction, limit: u64) {
        self.limits.watch.on_wanted(direction);
        if self.limits.remote(direction).on_blocked(limit) {
            self.control |= output::max_streams_bit(direction);
        }
    }

    /// Finds the stream of a frame, opening it if the peer may, or none if it is over already.
    fn resolve(&mut self, id: StreamId, half: Half) -> Result<Option<u32>, WireError> {
        let found = self.store.find(id);
        let local = id.initiator() == self.side;
        if id.direction() == Direction::Unidirectional && local == (half == Half::Receive) {
            return Err(WireError::new(
                TransportErrorCode::STREAM_STATE_ERROR,
                "a frame for the wrong direction of a stream",
            ));
        }
        if found.is_some() {
            return Ok(found);
        }
        if local {
            return if id.index() < self.limits.local(id.direction()).opened() {
                Ok(None)
            } else {
                Err(WireError::new(
                    TransportErrorCode::STREAM_STATE_ERROR,
                    "a frame for a stream that was not opened",
                ))
            };
        }
        self.open_by_peer(id)?;
        Ok(self.store.find(id))
    }

    /// Opens a stream of the peer's and all before it (RFC 9000 section 3.2).
    #[cold]
    fn open_by_peer(&mut self, id: StreamId) -> Result<(), WireError> {
        let direction = id.direction();
        let limit = self.limits.remote(direction);
        let announce = limit.all_accepted();
        let new = limit.open_to(id.index())?;
        if announce && !new.is_empty() {
            self.events.push_back(Event::StreamOpened { direction });
        }
        for index in new {
            self.create(StreamId::new(id.initiator(), direction, index));
        }
        Ok(())
    }

    /// What follows when sending was given up, by the application or because of the peer.
    pub(super) fn after_reset(&mut self, slot: u32, freed: u64) {
        self.scheduler.remove(slot);
        self.owe(slot, output::RESET);
        self.on_freed(slot, freed);
    }

    /// What follows when sending was given up but for the beginning, which may still have to be sent.
    pub(super) fn after_reset_at(&mut self, slot: u32, freed: u64) {
        self.owe(slot, output::RESET);
        self.on_freed(slot, freed);
        self.reschedule(slot);
    }

    /// Room came free in the send buffer: whoever waited for it is told.
    ///
    /// A single stream is told when half of its own share is free; all are when a quarter of the
    /// connection's buffer is. Not at the first byte, or writing would go on in crumbs.
    pub(super) fn on_freed(&mut self, slot: u32, freed: u64) {
        if freed == 0 {
            return;
        }
        self.budget.used = self.budget.used.saturating_sub(freed);
        if self.budget.used == 0 {
            // Nobody knows when more will be written. The next acknowledgement gives it back.
            self.budget.limit = self.share.send(self.budget.limit, 0);
        }
        if !self.budget.waiting.is_empty() && self.budget.has_room() {
            while let Some(id) = self.budget.waiting.pop_front() {
                let Some(slot) = self.store.find(id) else { continue };
                if let Some(send) = self.store.at_mut(slot).and_then(|stream| stream.send.as_mut()) {
                    send.write_queued = false;
                }
                self.announce_writable(slot);
            }
        }
        if let Some(send) = self.store.at_mut(slot).and_then(|stream| stream.send.as_ref())
            && send.write_waiting
            && send.buffered() <= self.budget.stream_share() >> 1
        {
            self.announce_writable(slot);
        }
    }

    pub(super) fn announce_writable(&mut self, slot: u32) {
        let Some(stream) = self.store.at_mut(slot) else { return };
        let id = stream.id;
        if let Some(send) = &mut stream.send
            && std::mem::take(&mut send.write_waiting)
        {
            self.events.push_back(Event::Writable { id });
        }
    }
}
