//! Shutting streams down, and what there is to tell until nothing is left of one.

use super::Start;
use super::sending::Ending;
use crate::abi::StreamShutdownFlags;
use crate::worker::{Gate, State, StreamNews};
use godwit_base::slab::Key;
use godwit_engine::ShardCx;
use std::sync::Arc;

impl State {
    /// Shuts one or both directions down, as the flags say, which go together.
    pub(crate) fn shut_stream_down(
        &mut self,
        cx: &mut ShardCx<'_>,
        key: Key,
        flags: StreamShutdownFlags,
        code: u64,
    ) {
        let Some(stream) = self.streams.get_mut(key) else { return };
        if flags.contains(StreamShutdownFlags::GRACEFUL) {
            stream.sending.want_finish();
            self.pump(cx, key);
        }
        if flags.contains(StreamShutdownFlags::ABORT_SEND) {
            self.abort_sending(cx, key, code);
        }
        if flags.contains(StreamShutdownFlags::ABORT_RECEIVE) {
            self.abort_receiving(cx, key, code);
        }
        if flags.contains(StreamShutdownFlags::IMMEDIATE)
            && let Some(stream) = self.streams.get_mut(key)
        {
            stream.sending.end(Ending::Aborted);
            stream.sending.awaits_peer = false;
            stream.receiving.end();
            stream.ends_at_once = true;
        }
        self.release_received(cx, key);
        self.take_given_back();
        self.settle_stream(key);
    }

    fn abort_sending(&mut self, cx: &mut ShardCx<'_>, key: Key, code: u64) {
        let Some(stream) = self.streams.get_mut(key).filter(|stream| !stream.sending.is_over()) else {
            return;
        };
        // Who gives it up once more, or does not want a part of it to arrive, gives up all.
        let leaves_part = !stream.sending.is_ending() && stream.reliable_offset.is_some();
        stream.sending.leaves_part = false;
        stream.sending.end(Ending::Aborted);
        stream.abort_codes.send = Some(code);
        stream.abort_codes.leaves_part = leaves_part;
        self.say_shutdown(cx, key);
    }

    fn abort_receiving(&mut self, cx: &mut ShardCx<'_>, key: Key, code: u64) {
        let Some(stream) = self.streams.get_mut(key).filter(|stream| !stream.receiving.is_over()) else {
            return;
        };
        stream.receiving.end();
        stream.abort_codes.receive = Some(code);
        self.say_shutdown(cx, key);
    }

    /// Tells the transport what has been given up, if it knows the stream.
    pub(super) fn say_shutdown(&mut self, cx: &mut ShardCx<'_>, key: Key) {
        let Some(stream) = self.streams.get_mut(key).filter(|stream| stream.start == Start::Open) else {
            return;
        };
        let conn = self.connections.get(stream.connection).and_then(|connection| connection.key);
        let Some((conn, id)) = conn.zip(stream.id) else { return };
        let codes = std::mem::take(&mut stream.abort_codes);
        if codes.is_empty() {
            return;
        }
        let reliable = stream.reliable_offset.filter(|offset| codes.leaves_part && *offset > 0);
        // What is over already need not be given up.
        let is_reset = cx.endpoint_mut().with(conn, |transport| {
            let _ = codes.receive.map(|code| transport.stop_sending(id, code));
            let code = codes.send?;
            let leaves_part = reliable.is_some_and(|offset| transport.reset_at(id, code, offset).is_ok());
            (leaves_part || transport.reset(id, code).is_ok()).then_some(leaves_part)
        });
        let is_reset = is_reset.flatten().filter(|_| !stream.ends_at_once);
        stream.sending.awaits_peer |= is_reset.is_some();
        // What comes back by now is of no use to the peer, what comes back later has arrived.
        self.take_given_back();
        if let Some(stream) = self.streams.get_mut(key).filter(|_| is_reset == Some(true)) {
            stream.sending.leaves_part = true;
        }
    }

    /// The peer does not read on: it hears a reset, as the standard wants it (RFC 9000 section 3.5), which the transport has
    /// sent. Of a stream that was given up the application is told only if the peer was to get a part of it, which it does not
    /// want now.
    pub(crate) fn on_stopped_by_peer(&mut self, cx: &mut ShardCx<'_>, key: Key, code: u64) {
        self.tell_reset_first(cx, key);
        let Some(stream) = self.streams.get_mut(key).filter(|stream| stream.sending.can_be_stopped()) else {
            return;
        };
        stream.sending.is_stopped = true;
        stream.sending.leaves_part = false;
        stream.sending.awaits_peer = true;
        stream.sending.end(Ending::Aborted);
        self.tell_stream(key, StreamNews::PeerReceiveAborted { code });
        self.take_given_back();
        self.settle_stream(key);
    }

    /// The peer has acknowledged everything, the end included.
    pub(crate) fn on_finished(&mut self, key: Key) {
        if let Some(stream) = self.streams.get_mut(key) {
            stream.sending.end(Ending::Graceful);
            stream.sending.awaits_peer = false;
            self.take_given_back();
            self.settle_stream(key);
        }
    }

    /// The peer knows that nothing more is sent.
    pub(crate) fn on_reset_acknowledged(&mut self, key: Key) {
        if let Some(stream) = self.streams.get_mut(key) {
            stream.sending.awaits_peer = false;
            self.settle_stream(key);
        }
    }

    /// The connection has ended, and the stream with it.
    pub(crate) fn end_stream(&mut self, cx: &mut ShardCx<'_>, key: Key) {
        self.want_nothing_reliable(key);
        self.abort_sending(cx, key, 0);
        if let Some(stream) = self.streams.get_mut(key) {
            stream.sending.awaits_peer = false;
            stream.receiving.end();
            stream.ends_at_once = stream.start != Start::No;
        }
        self.take_given_back();
        self.settle_stream(key);
    }

    /// Whatever was to arrive although the stream is given up need not: what is lent comes back at once.
    fn want_nothing_reliable(&mut self, key: Key) {
        if let Some(stream) = self.streams.get_mut(key) {
            stream.reliable_offset = None;
        }
    }

    /// Tells what has come to be known of a stream's end.
    pub(crate) fn settle_stream(&mut self, key: Key) {
        let Some(stream) = self.streams.get_mut(key) else { return };
        let is_waiting = stream.start == Start::No && !stream.is_closed && !stream.ends_at_once;
        while let Some(news) =
            self.streams.get_mut(key).and_then(|stream| stream.sending.next_news(is_waiting))
        {
            self.tell_stream(key, news);
        }
        let Some(stream) = self.streams.get_mut(key).filter(|_| !is_waiting) else { return };
        if stream.sending.is_over() && stream.receiving.is_over() && !stream.is_complete {
            self.tell_stream(key, StreamNews::ShutdownComplete);
            if let Some(stream) = self.streams.get_mut(key) {
                stream.is_complete = true;
            }
        }
    }

    /// The application closes the handle. True if there is something that is to be told before the close returns: where another
    /// thread does that, `gate` opens when it is done. Else nothing is left of the stream.
    pub(crate) fn close_stream(&mut self, cx: &mut ShardCx<'_>, key: Key, gate: Option<Arc<Gate>>) -> bool {
        let Some(stream) = self.streams.get_mut(key).filter(|stream| !stream.is_closed) else { return false };
        stream.is_closed = true;
        let is_waited_for = gate.is_some();
        stream.closing = gate;
        let was_started = stream.start != Start::No;
        self.want_nothing_reliable(key);
        let Some(stream) = self.streams.get_mut(key) else { return false };
        if !stream.is_complete && was_started {
            let flags = StreamShutdownFlags::ABORT.union(StreamShutdownFlags::IMMEDIATE);
            self.shut_stream_down(cx, key, flags, 0);
        } else if !stream.is_complete {
            stream.sending.end(Ending::Aborted);
            stream.receiving.end();
            self.take_given_back();
            self.settle_stream(key);
        }
        if !is_waited_for && !self.has_news_for_stream(key) {
            self.forget_stream(key);
            return false;
        }
        self.tell_stream(key, StreamNews::HandleClosed);
        true
    }
}
