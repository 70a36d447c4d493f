//! Receiving on a stream.
//!
//! What has come is shown to the application where the transport has it, several pieces at a time, and is let go of as far
//! as the application has taken it. Until then it holds the peer back (RFC 9000 section 4.2), whether more is shown meanwhile or
//! not: a slow application holds no more of a stream than its window.

use super::Start;
use super::receiving::{Showing, Shown};
use crate::abi::{Buffer, ReceiveFlags, Status};
use crate::connection::End;
use crate::worker::{State, StreamNews};
use bytes::Bytes;
use godwit_base::slab::Key;
use godwit_engine::ShardCx;
use godwit_transport::{ReadChunk, ReadError};
use std::collections::VecDeque;

/// The transport's code for data that there is no room for (RFC 9000 section 20.1).
const FLOW_CONTROL_ERROR: u64 = 0x3;

impl State {
    /// Something has come, or the application wants to be shown what has: that is told if it may be now.
    pub(crate) fn tell_receive(&mut self, key: Key) {
        let Some(stream) = self.streams.get(key).filter(|stream| stream.start == Start::Open) else { return };
        if stream.receiving.may_show() && stream.receiving.has_something() {
            self.tell_stream(key, StreamNews::Receive);
        }
    }

    /// The transport says that there is something to read.
    pub(crate) fn on_readable(&mut self, key: Key) {
        if let Some(stream) = self.streams.get_mut(key) {
            stream.receiving.readable = true;
            self.tell_receive(key);
        }
    }

    /// The peer may have given up a stream of which the application wants to be shown nothing at present: that is told all the
    /// same, and what it keeps is let go of.
    pub(crate) fn hear_reset(&mut self, cx: &mut ShardCx<'_>, key: Key) {
        if self.streams.get(key).is_some_and(|stream| !stream.receiving.may_show()) {
            self.take_reset(cx, key);
        }
    }

    /// Something else of the peer's is about to be told: if it has given up the stream before, and the application has been shown
    /// all there was, that comes first.
    pub(super) fn tell_reset_first(&mut self, cx: &mut ShardCx<'_>, key: Key) {
        let Some(stream) = self.streams.get_mut(key) else { return };
        let receiving = &mut stream.receiving;
        if receiving.may_show() && receiving.unshown_bytes() == 0 {
            match receiving.reset.take() {
                Some(error) => self.on_read_error(cx, key, error),
                None => self.take_reset(cx, key),
            }
        }
    }

    /// If the peer has given up a stream, and the transport has nothing that goes before that, it is told now.
    fn take_reset(&mut self, cx: &mut ShardCx<'_>, key: Key) {
        let now = cx.now();
        let Some(stream) = self.streams.get_mut(key).filter(|stream| !stream.receiving.is_over) else {
            return;
        };
        let conn = self.connections.get(stream.connection).and_then(|connection| connection.key);
        let Some((conn, id)) = conn.zip(stream.open_id()) else { return };
        let Some(transport) = cx.endpoint_mut().connection_mut(conn) else { return };
        // The transport forgets it when the reset has been read.
        stream.receiving.reliable = transport.reliable_size(id).or(stream.receiving.reliable);
        // Where there are bytes, or the end, there is no reset that goes before them.
        let is_empty = transport.readable(id).is_some_and(|there| there.len == 0 && !there.ends);
        if is_empty && let Err(error) = transport.read(now, id, 1) {
            cx.endpoint_mut().touch(conn);
            self.on_read_error(cx, key, error);
        }
    }

    /// What is to be shown now, if anything is. What the peer has given up is told instead.
    pub(crate) fn show(&mut self, cx: &mut ShardCx<'_>, key: Key) -> Option<Shown> {
        // The transport forgets it when all has been read.
        let is_early = self.shows_early(cx, key);
        let stream = self.streams.get_mut(key).filter(|stream| stream.receiving.may_show())?;
        let conn = self.connections.get(stream.connection)?.key?;
        let (id, receiving) = (stream.open_id()?, &mut stream.receiving);
        if let Some(transport) = cx.endpoint_mut().connection_mut(conn).filter(|_| receiving.readable) {
            let mut changed = false;
            receiving.reliable = transport.reliable_size(id).or(receiving.reliable);
            while receiving.readable && receiving.has_room_for_pieces() {
                let room = receiving.room();
                if room == 0 && transport.readable(id).is_some_and(|there| there.len > 0) {
                    break;
                }
                // Where there is no room, there are no bytes either, but perhaps the end.
                let read = transport.read_held(id, room.max(1));
                changed |= !matches!(read, Ok(ReadChunk::Blocked));
                match read {
                    Ok(ReadChunk::Data(piece)) => receiving.hold(piece),
                    Ok(ReadChunk::Finished) => (receiving.fin, receiving.readable) = (true, false),
                    Ok(ReadChunk::Blocked) => receiving.readable = false,
                    Err(error) => {
                        receiving.readable = false;
                        receiving.reset = Some(error);
                    }
                }
            }
            if changed {
                cx.endpoint_mut().touch(conn);
            }
        }
        let receiving = &mut self.streams.get_mut(key)?.receiving;
        let is_all_shown = receiving.unshown_bytes() == 0;
        if let Some(error) = receiving.reset.take_if(|_| is_all_shown) {
            self.on_read_error(cx, key, error);
            return None;
        }
        if receiving.unshown_bytes() == 0 && !receiving.has_only_end() {
            let lacks_room = receiving.own.is_some() && receiving.readable && receiving.room() == 0;
            let transport = cx.endpoint().connection(conn).filter(|_| lacks_room);
            let waiting = transport.and_then(|transport| transport.readable(id)).map_or(0, |there| there.len);
            if waiting > 0 {
                self.tell_stream(key, StreamNews::ReceiveBufferNeeded(waiting));
            }
            return None;
        }
        Some(receiving.show(if is_early { ReceiveFlags::ZERO_RTT } else { ReceiveFlags::NONE }))
    }

    /// Whether some of what is to be shown next has come in 0-RTT packets: of a stream that began with them what comes first,
    /// and all that comes before the handshake is complete.
    fn shows_early(&self, cx: &ShardCx<'_>, key: Key) -> bool {
        let Some(stream) = self.streams.get(key) else { return false };
        let connection = self.connections.get(stream.connection);
        let may_be = stream.receiving.is_at_start() || connection.is_some_and(|it| !it.is_connected);
        may_be && self.is_early(cx, key)
    }

    fn on_read_error(&mut self, cx: &mut ShardCx<'_>, key: Key, error: ReadError) {
        let Some(stream) = self.streams.get_mut(key).filter(|stream| !stream.receiving.is_over) else {
            return;
        };
        if let ReadError::Reset(code) = error {
            stream.receiving.end();
            self.release_received(cx, key);
            self.tell_stream(key, StreamNews::PeerSendAborted { code });
        }
        self.settle_stream(key);
    }

    /// The callback has returned that was shown `pieces`, and has left `total` as what it has taken.
    pub(crate) fn on_shown(
        &mut self,
        cx: &mut ShardCx<'_>,
        key: Key,
        pieces: VecDeque<Bytes>,
        (status, total): (Status, u64),
    ) {
        let Some(stream) = self.streams.get_mut(key) else { return };
        let receiving = &mut stream.receiving;
        receiving.take_back(pieces);
        let Showing::InCallback { taken, enabled } = receiving.showing else { return };
        let shown = receiving.held_bytes;
        receiving.showing = Showing::No;
        let was_taken = taken.unwrap_or(0);
        if receiving.shows_several() {
            let of_callback = if status == Status::PENDING { 0 } else { total };
            if status != Status::PENDING || was_taken > 0 {
                self.complete_some(cx, key, was_taken.saturating_add(of_callback));
            } else {
                self.tell_receive(key);
            }
        } else {
            self.on_one_shown(cx, key, status, (taken, total), shown);
        }
        if let Some(enabled) = enabled {
            self.set_receive_enabled(key, enabled);
        }
    }

    /// As [`State::on_shown`], of a stream that shows one thing at a time.
    fn on_one_shown(
        &mut self,
        cx: &mut ShardCx<'_>,
        key: Key,
        status: Status,
        (taken, total): (Option<u64>, u64),
        shown: u64,
    ) {
        let Some(stream) = self.streams.get_mut(key) else { return };
        let (receiving, was_taken) = (&mut stream.receiving, taken.unwrap_or(0));
        match status {
            Status::PENDING if taken.is_none() => {
                receiving.showing = Showing::Kept { bytes: shown };
            }
            Status::PENDING => self.complete_receive(cx, key, was_taken, shown),
            Status::CONTINUE => {
                receiving.take(was_taken.saturating_add(total));
                receiving.is_enabled = true;
                self.after_receive(cx, key);
            }
            // Callbacks are not to fail; whatever else they return means the same.
            _ => self.complete_receive(cx, key, was_taken.saturating_add(total), shown),
        }
    }

    /// The application provides memory to receive into.
    ///
    /// # Errors
    /// [`Status::INVALID_STATE`] if it is not to do that for this stream.
    ///
    /// # Safety
    /// The memory is there, and nobody else uses it until what is received into it has been taken, or the stream is closed.
    pub(crate) unsafe fn provide_memory(&mut self, key: Key, buffers: &[Buffer]) -> Result<(), Status> {
        let stream = self.streams.get_mut(key).ok_or(Status::INVALID_PARAMETER)?;
        if stream.is_being_shown {
            stream.receiving.receive_into_own();
        }
        let own = stream.receiving.own.as_mut().ok_or(Status::INVALID_STATE)?;
        for buffer in buffers {
            // SAFETY: the caller promises it.
            unsafe { own.provide(buffer.buffer, buffer.length as usize) };
        }
        self.tell_receive(key);
        Ok(())
    }

    /// The application has been told that there is no room for what has come. If it has provided none, the connection cannot
    /// go on.
    pub(crate) fn on_memory_wanted(&mut self, cx: &mut ShardCx<'_>, key: Key) {
        let Some(stream) = self.streams.get(key).filter(|stream| !stream.receiving.is_over) else { return };
        if stream.receiving.room() == 0 {
            let end = End::Transport { status: Status::INTERNAL_ERROR, code: FLOW_CONTROL_ERROR };
            self.end(cx, stream.connection, &end);
        } else {
            self.tell_receive(key);
        }
    }

    /// The application says that it has taken what it kept.
    pub(crate) fn receive_complete(&mut self, cx: &mut ShardCx<'_>, key: Key, bytes: u64) {
        let Some(stream) = self.streams.get_mut(key) else { return };
        let several = stream.receiving.shows_several();
        match &mut stream.receiving.showing {
            Showing::No if several => self.complete_some(cx, key, bytes),
            Showing::No => {}
            Showing::InCallback { taken, .. } => {
                *taken = Some(taken.unwrap_or(0).saturating_add(bytes));
            }
            Showing::Kept { bytes: shown } => {
                let shown = *shown;
                stream.receiving.showing = Showing::No;
                self.complete_receive(cx, key, bytes, shown);
            }
        }
    }

    /// Of what was shown, so much was taken. If that is not all, the application has to ask for the rest.
    fn complete_receive(&mut self, cx: &mut ShardCx<'_>, key: Key, taken: u64, shown: u64) {
        let Some(stream) = self.streams.get_mut(key) else { return };
        stream.receiving.take(taken);
        stream.receiving.is_enabled = taken >= shown;
        self.after_receive(cx, key);
    }

    /// The application has taken so much of all it was shown. Having taken everything, it wants to be shown more.
    fn complete_some(&mut self, cx: &mut ShardCx<'_>, key: Key, taken: u64) {
        let Some(stream) = self.streams.get_mut(key) else { return };
        stream.receiving.take(taken);
        stream.receiving.is_enabled |= stream.receiving.has_taken_all_shown();
        self.after_receive(cx, key);
    }

    fn after_receive(&mut self, cx: &mut ShardCx<'_>, key: Key) {
        self.release_received(cx, key);
        let Some(stream) = self.streams.get_mut(key) else { return };
        let receiving = &mut stream.receiving;
        if receiving.is_over {
            return;
        }
        if receiving.fin && receiving.held_bytes == 0 {
            receiving.end();
            self.tell_stream(key, StreamNews::PeerSendShutdown);
            self.settle_stream(key);
        } else {
            self.tell_receive(key);
        }
    }

    /// The peer may send as much more as is needed no longer of what it has sent: because it was taken, or because the stream
    /// is over, where the connection's window still waits for it.
    pub(super) fn release_received(&mut self, cx: &mut ShardCx<'_>, key: Key) {
        let now = cx.now();
        let Some(stream) = self.streams.get_mut(key) else { return };
        let bytes = stream.receiving.release();
        let conn = self.connections.get(stream.connection).and_then(|connection| connection.key);
        let Some((conn, id)) = conn.zip(stream.id).filter(|_| bytes > 0) else { return };
        cx.endpoint_mut().with(conn, |transport| transport.release_held(now, id, bytes));
    }

    /// Whether the application wants to be shown what comes.
    pub(crate) fn set_receive_enabled(&mut self, key: Key, enabled: bool) {
        let Some(stream) = self.streams.get_mut(key) else { return };
        if let Showing::InCallback { enabled: after, .. } = &mut stream.receiving.showing {
            *after = Some(enabled);
            return;
        }
        let was_enabled = std::mem::replace(&mut stream.receiving.is_enabled, enabled);
        if enabled && !was_enabled {
            self.tell_receive(key);
        }
    }
}
