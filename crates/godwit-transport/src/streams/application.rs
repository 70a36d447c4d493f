//! What the application calls.

use super::scheduler::Rank;
use super::send::SendHalf;
use super::{ReadChunk, ReadError, ResetAtError, StreamLimits, Streams, UnknownStream, WriteError, output};
use crate::{Direction, StreamId};
use bytes::Bytes;
use godwit_base::Time;
use godwit_wire::constants::VARINT_MAX;
use std::num::NonZeroU64;
use std::time::Duration;

impl Streams {
    /// Opens a stream, or none if the peer permits no more: [`crate::Event::StreamsAvailable`] follows when it
    /// does.
    pub(crate) fn open(&mut self, direction: Direction) -> Option<StreamId> {
        let limit = self.limits.local(direction);
        let Some(index) = limit.open() else {
            if limit.newly_blocked() {
                self.control |= output::streams_blocked_bit(direction);
            }
            return None;
        };
        let id = StreamId::new(self.side, direction, index);
        self.create(id);
        Some(id)
    }

    /// Whether a stream could be opened now. If not, [`crate::Event::StreamsAvailable`] follows when that changes.
    pub(crate) fn can_open(&mut self, direction: Direction) -> bool {
        let limit = self.limits.local(direction);
        let possible = limit.can_open();
        if !possible && limit.newly_blocked() {
            self.control |= output::streams_blocked_bit(direction);
        }
        possible
    }

    /// Has the peer told that a stream is wanted and not permitted, if it is not, also if it was told before.
    pub(crate) fn want_to_open(&mut self, direction: Direction) {
        if !self.limits.local(direction).can_open() {
            self.control |= output::streams_blocked_bit(direction);
        }
    }

    /// The next stream that the peer opened. [`crate::Event::StreamOpened`] follows a none.
    pub(crate) fn accept(&mut self, direction: Direction) -> Option<StreamId> {
        loop {
            let index = self.limits.remote(direction).accept()?;
            let id = StreamId::new(self.side.peer(), direction, index);
            // A stream that was dealt with by its id before may be over.
            if self.store.find(id).is_some() {
                return Some(id);
            }
        }
    }

    /// Takes data to send, from the start of `data`, and returns how many bytes were taken: see [`Streams::write_from`].
    pub(crate) fn write(&mut self, id: StreamId, mut data: Bytes) -> Result<usize, WriteError> {
        let whole = data.len();
        self.write_from(id, &mut data)?;
        Ok(whole.saturating_sub(data.len()))
    }

    /// Takes data to send off the front of `data`. If some is left, [`crate::Event::Writable`] follows. The send buffer bounds
    /// it, not flow control.
    pub(crate) fn write_from(&mut self, id: StreamId, data: &mut Bytes) -> Result<(), WriteError> {
        let slot = self.store.find(id).ok_or(WriteError::UnknownStream)?;
        let stream = self.store.at_mut(slot).ok_or(WriteError::UnknownStream)?;
        let send = stream.send.as_mut().ok_or(WriteError::UnknownStream)?;
        send.check_writable()?;
        let room = self.budget.room(send, self.credit.available());
        let len = data.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        self.budget.used = self.budget.used.saturating_add(len as u64);
        self.budget.unsent = self.budget.unsent.saturating_add(len as u64);
        let taken = if len < data.len() {
            self.budget.wait(id, send);
            data.split_to(len)
        } else {
            std::mem::take(data)
        };
        if !taken.is_empty() {
            send.write(taken);
        }
        self.reschedule(slot);
        Ok(())
    }

    /// Has [`crate::Event::Writable`] follow as soon as the stream takes data.
    pub(crate) fn watch_writable(&mut self, id: StreamId) -> Result<(), WriteError> {
        let slot = self.store.find(id).ok_or(WriteError::UnknownStream)?;
        let stream = self.store.at_mut(slot).ok_or(WriteError::UnknownStream)?;
        let send = stream.send.as_mut().ok_or(WriteError::UnknownStream)?;
        send.check_writable()?;
        self.budget.wait(id, send);
        if self.budget.room(send, self.credit.available()) > 0 {
            self.announce_writable(slot);
        } else {
            self.reschedule(slot);
        }
        Ok(())
    }

    /// Bytes that [`Streams::write`] would take now.
    pub(crate) fn write_room(&self, id: StreamId) -> Result<usize, WriteError> {
        let slot = self.store.find(id).ok_or(WriteError::UnknownStream)?;
        let stream = self.store.at(slot).ok_or(WriteError::UnknownStream)?;
        let send = stream.send.as_ref().ok_or(WriteError::UnknownStream)?;
        send.check_writable()?;
        let room = self.budget.room(send, self.credit.available());
        Ok(usize::try_from(room).unwrap_or(usize::MAX))
    }

    /// Bytes written to a stream that the peer has not acknowledged; `None` if there is no such stream, or nothing
    /// more to be acknowledged on it.
    pub(crate) fn buffered_on(&self, id: StreamId) -> Option<u64> {
        let stream = self.store.at(self.store.find(id)?)?;
        stream.send.as_ref().map(|send| send.buffered())
    }

    /// Whether all of a stream has been sent, and waits only to be acknowledged.
    pub(crate) fn is_sent(&self, id: StreamId) -> bool {
        let stream = self.store.find(id).and_then(|slot| self.store.at(slot));
        stream.and_then(|stream| stream.send.as_ref()).is_some_and(|send| send.is_sent())
    }

    /// Has [`crate::Event::StreamDataLost`] told when data of the stream is lost, once.
    pub(crate) fn watch_loss(&mut self, id: StreamId) -> Result<(), UnknownStream> {
        let slot = self.store.find(id).ok_or(UnknownStream)?;
        let send = self.store.at_mut(slot).and_then(|stream| stream.send.as_mut()).ok_or(UnknownStream)?;
        send.loss_watched = true;
        Ok(())
    }

    /// Has the peer learn that there is the stream, although nothing was written.
    pub(crate) fn announce_stream(&mut self, id: StreamId) -> Result<(), WriteError> {
        let slot = self.store.find(id).ok_or(WriteError::UnknownStream)?;
        let stream = self.store.at_mut(slot).ok_or(WriteError::UnknownStream)?;
        stream.send.as_mut().ok_or(WriteError::UnknownStream)?.announce();
        self.reschedule(slot);
        Ok(())
    }

    /// Says that all data was written. [`crate::Event::Finished`] follows when the peer has acknowledged it all.
    pub(crate) fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        let slot = self.store.find(id).ok_or(WriteError::UnknownStream)?;
        let stream = self.store.at_mut(slot).ok_or(WriteError::UnknownStream)?;
        stream.send.as_mut().ok_or(WriteError::UnknownStream)?.finish()?;
        self.reschedule(slot);
        Ok(())
    }

    /// Gives up sending with an application error code below 2^62. Without effect if all is acknowledged
    /// or the stream was reset before.
    pub(crate) fn reset(&mut self, id: StreamId, code: u64) -> Result<(), UnknownStream> {
        let slot = self.store.find(id).ok_or(UnknownStream)?;
        let send = self.store.at_mut(slot).and_then(|stream| stream.send.as_mut()).ok_or(UnknownStream)?;
        let unsent = send.unsent();
        if let Some(freed) = send.reset(code.min(VARINT_MAX)) {
            self.budget.on_given_up(unsent, send);
            self.after_reset(slot, freed);
        }
        Ok(())
    }

    /// Gives up sending with an application error code below 2^62, but still delivers the first
    /// `reliable_size` bytes of what was written (draft-ietf-quic-reliable-stream-reset). Another call can
    /// lower the size but neither raise it nor change the code. Without effect if all is acknowledged or the
    /// stream was reset before.
    pub(crate) fn reset_at(
        &mut self,
        id: StreamId,
        code: u64,
        reliable_size: u64,
    ) -> Result<(), ResetAtError> {
        if !self.settings.peer_reset_at {
            return Err(ResetAtError::Unsupported);
        }
        let slot = self.store.find(id).ok_or(ResetAtError::UnknownStream)?;
        let send = self.store.at_mut(slot).and_then(|stream| stream.send.as_mut());
        let send = send.ok_or(ResetAtError::UnknownStream)?;
        let (code, unsent) = (code.min(VARINT_MAX), send.unsent());
        if let Some(freed) = send.reset_at(code, reliable_size) {
            self.budget.on_given_up(unsent, send);
            self.after_reset_at(slot, freed);
        }
        Ok(())
    }

    /// Tells the peer that the rest of a stream is not wanted, with an application error code below 2^62.
    /// Data on its way is thrown away. Without effect if everything was read.
    pub(crate) fn stop_sending(&mut self, id: StreamId, code: u64) -> Result<(), UnknownStream> {
        let slot = self.store.find(id).ok_or(UnknownStream)?;
        let recv = self.store.at_mut(slot).and_then(|stream| stream.recv.as_mut()).ok_or(UnknownStream)?;
        let (held, pieces) = (recv.held(), recv.pieces());
        if let Some(unread) = recv.stop(code.min(VARINT_MAX)) {
            let (held_now, stop) = (recv.held(), recv.stop_frame().is_some());
            self.on_held(held, held_now);
            self.pieces = self.pieces.saturating_sub(pieces as u32);
            if stop {
                self.owe(slot, output::STOP);
            }
            self.discard(unread);
            self.reap(slot);
        }
        Ok(())
    }

    /// Reads at most `max` bytes. `rtt` is the path's smoothed round-trip time, by which the windows grow.
    pub(crate) fn read(
        &mut self,
        now: Time,
        rtt: Duration,
        id: StreamId,
        max: usize,
    ) -> Result<ReadChunk, ReadError> {
        let slot = self.store.find(id).ok_or(ReadError::UnknownStream)?;
        let stream = self.store.at_mut(slot).ok_or(ReadError::UnknownStream)?;
        let recv = stream.recv.as_mut().ok_or(ReadError::UnknownStream)?;
        let before = recv.held();
        let outcome = recv.read(now, rtt, max);
        let (over, held) = (recv.is_over(), recv.held());
        self.on_held(before, held);
        if over {
            self.reap(slot);
        }
        let outcome = outcome?;
        if let ReadChunk::Data(data) = &outcome.chunk {
            self.on_consumed(now, rtt, data.len() as u64);
        }
        if outcome.announce {
            self.owe(slot, output::MAX_STREAM_DATA);
        }
        Ok(outcome.chunk)
    }

    /// Bytes of any stream are needed no longer: the peer may send as many more on the connection.
    #[inline(always)]
    pub(super) fn on_consumed(&mut self, now: Time, rtt: Duration, bytes: u64) {
        let before = self.window.size();
        if self.window.on_consumed_of_all(now, rtt, bytes, &mut self.share) {
            self.control |= output::MAX_DATA;
        }
        if self.window.size() != before {
            self.on_window_resized();
        }
    }

    /// Sets a stream's urgency (0 first, 7 last; 3 unless set) and whether it takes turns with others of
    /// the same urgency (RFC 9218 section 4).
    pub(crate) fn set_priority(
        &mut self,
        id: StreamId,
        urgency: u8,
        incremental: bool,
    ) -> Result<(), UnknownStream> {
        let slot = self.store.find(id).ok_or(UnknownStream)?;
        let stream = self.store.at_mut(slot).ok_or(UnknownStream)?;
        (stream.rank, stream.incremental) = (Rank::of_urgency(urgency), incremental);
        self.reschedule(slot);
        Ok(())
    }

    /// Has a stream served before all that have an urgency, and in the order in which such streams were written.
    pub(crate) fn put_first(&mut self, id: StreamId) -> Result<(), UnknownStream> {
        let slot = self.store.find(id).ok_or(UnknownStream)?;
        let stream = self.store.at_mut(slot).ok_or(UnknownStream)?;
        (stream.rank, stream.incremental) = (Rank::FIRST, false);
        self.reschedule(slot);
        Ok(())
    }

    /// Whether the peer has permitted all that was written to a stream that [goes first](Streams::put_first), and that
    /// even if `others` that do take the connection's credit before it.
    pub(crate) fn is_permitted(&self, id: StreamId, others: &[StreamId]) -> bool {
        let send = |id| self.store.at(self.store.find(id)?)?.send.as_ref();
        let unsent = |id: &StreamId| send(*id).map_or(0, SendHalf::unsent);
        let before = others.iter().map(unsent).fold(0, u64::saturating_add);
        send(id).is_none_or(|send| {
            send.is_all_permitted() && send.unsent().saturating_add(before) <= self.credit.available()
        })
    }

    /// Sets how much an incremental stream sends beside others of its urgency: in proportion to its weight, 1 to 255
    /// (1 unless set; 0 counts as 1). It holds from the stream's next turn on.
    pub(crate) fn set_weight(&mut self, id: StreamId, weight: u8) -> Result<(), UnknownStream> {
        let slot = self.store.find(id).ok_or(UnknownStream)?;
        let stream = self.store.at_mut(slot).ok_or(UnknownStream)?;
        stream.weight = weight.max(1);
        stream.turn = stream.turn.min(self.scheduler.turn(stream.weight));
        Ok(())
    }

    /// Bytes that should be written to a stream and not be acknowledged, so that neither the network waits for the
    /// application nor memory is held for nothing: four times the congestion window within the bounds of the send
    /// buffer, but no more than the peer's limit on the stream permits.
    pub(crate) fn ideal_buffer(&self, id: StreamId) -> Result<u64, WriteError> {
        let slot = self.store.find(id).ok_or(WriteError::UnknownStream)?;
        let send = self.store.at(slot).and_then(|stream| stream.send.as_ref());
        let send = send.ok_or(WriteError::UnknownStream)?;
        send.check_writable()?;
        Ok(self.budget.limit.min(send.permitted()))
    }

    /// As [`Streams::ideal_buffer`], for all streams together, whatever their limits.
    pub(crate) const fn ideal_buffer_of_all(&self) -> u64 {
        self.budget.limit
    }

    /// Has [`crate::Event::IdealBufferChanged`] told from now on; the application knows this figure.
    pub(crate) fn watch_ideal_buffer(&mut self, known: u64) {
        self.budget.announced = NonZeroU64::new(known.max(1));
    }

    /// How many bytes of a stream come although the peer has reset it.
    pub(crate) fn reliable_size(&self, id: StreamId) -> Option<u64> {
        let slot = self.store.find(id)?;
        self.store.at(slot)?.recv.as_ref()?.reliable_size()
    }

    /// Whether the peer takes RESET_STREAM_AT.
    pub(crate) const fn can_reset_at(&self) -> bool {
        self.settings.peer_reset_at
    }

    /// How many streams each end may open.
    pub(crate) const fn limits(&self, direction: Direction) -> StreamLimits {
        self.limits.of(direction)
    }

    /// Has [`crate::Event::StreamLimitRaised`] and [`crate::Event::StreamsWanted`] told from now on.
    pub(crate) const fn watch_limits(&mut self) {
        self.limits.watch.watch();
    }

    /// Sets how many streams the peer may have open at once. What was permitted remains so.
    pub(crate) fn set_max_streams(&mut self, direction: Direction, streams: u64) {
        if self.limits.remote(direction).set_concurrent(streams) {
            self.control |= output::max_streams_bit(direction);
        }
    }

    /// A stream of the peer's counts against its limit until [`Streams::release_place`], although it be over.
    pub(crate) fn hold_place(&mut self, id: StreamId) -> Result<(), UnknownStream> {
        let is_of_peer = id.initiator() != self.side && self.store.find(id).is_some();
        if is_of_peer {
            self.limits.places.hold(id);
        }
        is_of_peer.then_some(()).ok_or(UnknownStream)
    }

    /// It counts no longer than it lasts.
    pub(crate) fn release_place(&mut self, id: StreamId) {
        if self.limits.places.release(id) {
            self.free_place(id.direction());
        }
    }

    /// Sets how far the windows grow for what the peer sends, of each stream and of the connection.
    pub(crate) fn set_max_windows(&mut self, stream: u64, connection: u64) {
        self.settings.max_stream_window = stream.min(VARINT_MAX);
        self.settings.max_connection_window = connection.min(VARINT_MAX);
        if !self.budget.is_small {
            self.window.set_max(self.settings.max_connection_window);
        }
        self.on_window_resized();
    }

    /// Sets how many bytes may be written and not be acknowledged; `window` is the congestion window.
    pub(crate) fn set_send_buffer(&mut self, bytes: u64, window: u64) {
        self.budget.most = bytes;
        self.on_congestion_window(window);
    }
}
