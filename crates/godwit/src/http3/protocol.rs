//! The state of an HTTP/3 connection, under the shard's lock: it takes in what happens to the QUIC
//! connection and wakes those who wait for what follows.
//!
//! Invariants: a stream is in `streams` as long as one of its halves exists; whoever finds nothing to do has
//! put down a waker in the same access; once `end` is set nothing but what had arrived is given out. Tasks
//! are woken after the lock is released, and nothing of the application is dropped under it.

use super::connection_watch::ConnectionWatch;
use super::error::Error;
use super::io::Io;
use super::stream::{Left, Piece, Stream};
use super::stream_queue::StreamQueue;
use super::tunnels::Tunnels;
use crate::error::{ConnectionError, EndReason};
use crate::handler::raw::{RawCx, RawHandler, StreamNews};
use crate::handler::register;
use godwit_base::Time;
use godwit_http3::{BodyRead, Config, Connection, ErrorCode, Event, RequestMap, Transport as _};
use godwit_wire::{Direction, Side, StreamId};
use http::Request;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

/// Bytes of a body taken at once.
pub(super) const READ_AT_ONCE: usize = 256 << 10;

/// A request that has arrived at a server.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) id: StreamId,
    pub(super) request: Request<()>,
    /// There is no body to read.
    pub(super) end: bool,
    /// Its stream was opened by a 0-RTT packet.
    pub(super) early: bool,
    /// Where the client has shown to receive, if it had when this or an earlier request arrived.
    pub(super) remote: Option<SocketAddr>,
}

/// An HTTP/3 connection.
#[derive(Debug)]
pub(super) struct Protocol {
    pub(super) side: Side,
    pub(super) h3: Connection,
    pub(super) streams: RequestMap<Stream>,
    pub(super) queue: StreamQueue,
    pub(super) tunnels: Tunnels,
    /// Streams of WebTransport sessions that get handles, or have been given up.
    pub(super) session_streams: StreamNews,
    /// Requests that wait for the peer's settings.
    pub(super) unsettled: Vec<Waker>,
    /// Why the connection is over, if it is.
    pub(super) end: Option<Error>,
    /// To be woken when the access is over.
    pub(super) wakes: Vec<Waker>,
    /// The server said that it takes no more requests.
    pub(super) going_away: bool,
    pub(super) serving: Serving,
    pub(super) watch: ConnectionWatch,
    /// What the QUIC connection has been told that is held here, in bytes.
    told_held: u64,
    /// Empty: room for the request streams that one event brings.
    pub(super) accepted: Vec<StreamId>,
}

/// What only a server needs.
#[derive(Debug, Default)]
pub(super) struct Serving {
    arrivals: VecDeque<Arrival>,
    /// The task that waits for them.
    driver: Option<Waker>,
    /// Requests of which nothing or only a part of the headers has come, and since when. Some may be gone.
    headless: VecDeque<(StreamId, Time)>,
    /// Responses that the client has not acknowledged to their end.
    unacknowledged: RequestMap<()>,
    /// Responses whose delivery somebody wants to know of: at most one for each request.
    watched: RequestMap<Watched>,
    draining: bool,
    /// The client's address, when it was last looked at and known to be its own (RFC 9000 section 9.3).
    remote: Option<SocketAddr>,
}

/// A response whose delivery somebody wants to know of.
#[derive(Debug, Default)]
struct Watched {
    waker: Option<Waker>,
    /// Whether it was delivered, once that is settled.
    outcome: Arc<OnceLock<bool>>,
    /// To be set if it is given up because the client takes too little.
    too_slow: Option<Arc<AtomicBool>>,
}

/// Headless requests noted before those that are gone are taken out.
const HEADLESS_SWEEP: usize = 2048;

impl Protocol {
    pub(super) fn new(side: Side, config: Config) -> Self {
        Protocol {
            side,
            h3: Connection::new(side, config),
            streams: RequestMap::default(),
            queue: StreamQueue::default(),
            tunnels: Tunnels::default(),
            session_streams: StreamNews::default(),
            unsettled: Vec::new(),
            end: None,
            wakes: Vec::new(),
            going_away: false,
            serving: Serving::default(),
            watch: ConnectionWatch::default(),
            told_held: 0,
            accepted: Vec::new(),
        }
    }

    /// What is to be done after anything that changed something.
    pub(super) fn settle(&mut self, cx: &mut RawCx<'_, '_>, mut accepted: Vec<StreamId>) {
        while let Some(event) = self.h3.poll_event() {
            match event {
                Event::Request { id, request, end } => {
                    let connection = cx.connection();
                    let early = connection.as_ref().is_some_and(|connection| connection.is_early(id));
                    // What comes from a new address may have been sent there by anybody, until that has answered.
                    let proved = connection.filter(|connection| connection.is_peer_validated());
                    let remote = proved.map(|connection| connection.remote()).or(self.serving.remote);
                    self.serving.remote = remote;
                    self.on_request(Arrival { id, request, end, early, remote });
                }
                Event::Settings => {
                    self.keep_settings(cx);
                    self.on_http3(Event::Settings);
                }
                event => self.on_http3(event),
            }
        }
        self.tell_held(cx);
        accepted.drain(..).for_each(|id| self.note_headless(id, cx.now()));
        self.accepted = accepted;
        // Heads under way do not count: they have a time limit of their own.
        let idle = self.streams.is_empty()
            && self.serving.arrivals.is_empty()
            && self.serving.unacknowledged.is_empty();
        self.watch.on_idle(idle, cx.now());
        if self.serving.draining && self.is_drained() {
            self.wakes.extend(self.serving.driver.take());
        }
        self.wakes.drain(..).for_each(|waker| cx.wake(waker));
        if !self.session_streams.is_empty() {
            let news = cx.streams.get_or_insert_default();
            news.adopted.append(&mut self.session_streams.adopted);
            news.given_up.append(&mut self.session_streams.given_up);
        }
    }

    /// Has what is held here count with what the QUIC connection holds.
    fn tell_held(&mut self, cx: &mut RawCx<'_, '_>) {
        let held = self.h3.held();
        if held != self.told_held
            && let Some(connection) = cx.connection()
        {
            connection.set_held_by_application(held);
            self.told_held = held;
        }
    }

    /// The connection is over; the first reason counts.
    pub(super) fn end(&mut self, error: Error) {
        self.h3.on_closed();
        self.end.get_or_insert(error);
        self.wakes.extend(self.streams.values_mut().flat_map(Stream::wakers));
        self.wakes.append(&mut self.unsettled);
        self.wakes.extend(self.queue.everyone());
        self.wakes.extend(self.tunnels.everyone());
        self.wakes.extend(self.serving.driver.take());
        self.wakes.extend(self.serving.watched.values_mut().filter_map(|watched| watched.waker.take()));
    }

    /// An exchange is over before its time.
    pub(super) fn fail(&mut self, id: StreamId, error: Error) {
        self.on_response_over(id, false);
        if let Some(stream) = self.streams.get_mut(id) {
            stream.failure.get_or_insert(error);
            self.wakes.extend(stream.wakers());
        }
    }

    /// Gives up an exchange in both directions, with this code for the peer.
    pub(super) fn abandon(&mut self, io: &mut Io<'_>, id: StreamId, code: ErrorCode, error: Error) {
        self.h3.reset(io, id, code);
        self.fail(id, error);
    }

    /// Waits for the peer's settings; false if they are known.
    pub(super) fn wait_for_settings(&mut self, waker: &Waker) -> bool {
        if self.h3.peer_settings().is_some() {
            return false;
        }
        if !self.unsettled.iter().any(|known| known.will_wake(waker)) {
            self.unsettled.push(waker.clone());
        }
        true
    }

    /// One half of an exchange is gone. What is returned is to be dropped outside of the lock: it may hold an
    /// error of the application.
    pub(super) fn release(&mut self, id: StreamId) -> Option<Box<Stream>> {
        let stream = self.streams.get_mut(id)?;
        stream.halves = stream.halves.saturating_sub(1);
        if stream.halves > 0 {
            return None;
        }
        self.wakes.extend(stream.wakers());
        self.streams.remove(id)
    }

    /// Why nothing follows on this stream, if so.
    pub(super) fn failure(&self, id: StreamId) -> Option<Error> {
        self.streams.get(id).and_then(|stream| stream.failure.clone()).or_else(|| self.end.clone())
    }

    /// The next requests, or the end of the connection.
    pub(super) fn poll_arrivals(
        &mut self,
        cx: &Context<'_>,
        into: &mut VecDeque<Arrival>,
    ) -> Poll<Result<(), Error>> {
        if let Some(error) = &self.end {
            return Poll::Ready(Err(error.clone()));
        }
        if self.serving.arrivals.is_empty() {
            self.wakes.extend(register(&mut self.serving.driver, cx.waker()));
            return Poll::Pending;
        }
        into.append(&mut self.serving.arrivals);
        Poll::Ready(Ok(()))
    }

    /// Since when the oldest request has been without its headers.
    pub(super) fn oldest_headless(&mut self) -> Option<Time> {
        while let Some((id, since)) = self.serving.headless.front() {
            if self.h3.has_request(*id) {
                return Some(*since);
            }
            self.serving.headless.pop_front();
        }
        None
    }

    /// Gives up requests that have been without their headers since `latest` or before.
    pub(super) fn drop_headless(&mut self, io: &mut Io<'_>, latest: Time) {
        while let Some((id, _)) = self.serving.headless.pop_front_if(|(_, since)| *since <= latest) {
            self.h3.reset(io, id, ErrorCode::H3_REQUEST_REJECTED);
        }
    }

    /// Begins to keep for [`Protocol::poll_delivered`] what becomes of a response.
    pub(super) fn watch_delivery(
        &mut self,
        id: StreamId,
        too_slow: Option<Arc<AtomicBool>>,
    ) -> Arc<OnceLock<bool>> {
        let given_up =
            self.streams.get(id).is_some_and(|stream| stream.failure.is_some() || stream.stopped.is_some());
        let outcome = Arc::new(OnceLock::new());
        if !self.serving.unacknowledged.contains(id) {
            let _ = outcome.set(!given_up);
        }
        let watched = Watched { waker: None, outcome: Arc::clone(&outcome), too_slow };
        self.serving.watched.insert(id, watched);
        outcome
    }

    /// Whether the client has acknowledged all of a response that is watched; ready when that is settled.
    pub(super) fn poll_delivered(&mut self, cx: &Context<'_>, id: StreamId) -> Poll<bool> {
        let Some(watched) = self.serving.watched.get_mut(id) else { return Poll::Ready(false) };
        match watched.outcome.get() {
            Some(delivered) => Poll::Ready(*delivered),
            None if self.end.is_some() => Poll::Ready(false),
            None => {
                self.wakes.extend(register(&mut watched.waker, cx.waker()));
                Poll::Pending
            }
        }
    }

    /// Nobody wants to know any more. What is returned is to be dropped outside of the lock.
    pub(super) fn forget_delivery(&mut self, id: StreamId) -> Option<Waker> {
        self.serving.watched.remove(id)?.waker
    }

    /// A response was delivered, or never will be.
    fn on_response_over(&mut self, id: StreamId, delivered: bool) {
        if self.serving.unacknowledged.remove(id).is_none() {
            return;
        }
        if let Some(watched) = self.serving.watched.get_mut(id) {
            let _ = watched.outcome.set(delivered);
            self.wakes.extend(watched.waker.take());
        }
    }

    /// Responses that were written to their end and are not acknowledged to it.
    pub(super) fn written_to_the_end(&self) -> Vec<StreamId> {
        self.serving.unacknowledged.ids().filter(|id| !self.streams.contains(*id)).collect()
    }

    /// Gives up what is left of a response that was written to its end.
    pub(super) fn give_up_response(&mut self, io: &mut Io<'_>, id: StreamId, code: ErrorCode) {
        io.reset(id, code.value());
        if let Some(too_slow) = self.serving.watched.get(id).and_then(|watched| watched.too_slow.as_ref()) {
            too_slow.store(true, Ordering::Relaxed);
        }
        self.on_response_over(id, false);
    }

    /// Tells the client to send no new requests. Those that are on their way are still taken.
    pub(super) fn announce_drain(&mut self, io: &mut Io<'_>) {
        const LARGEST: u64 = (1 << 62) - 4;
        // It fails only if the connection is over.
        let _ = self.h3.goaway(io, LARGEST);
    }

    /// Takes no new requests from now on.
    pub(super) fn drain(&mut self, io: &mut Io<'_>) {
        self.serving.draining = true;
        // It fails only if the connection is over.
        let _ = self.h3.shutdown(io);
    }

    /// Ready once every request is answered and every answer has been acknowledged.
    pub(super) fn poll_drained(&mut self, cx: &Context<'_>, io: &Io<'_>) -> Poll<()> {
        let over: Vec<_> = self.serving.unacknowledged.ids().filter(|id| !io.is_sending(*id)).collect();
        over.into_iter().for_each(|id| drop(self.serving.unacknowledged.remove(id)));
        if self.end.is_some() || self.is_drained() {
            return Poll::Ready(());
        }
        self.wakes.extend(register(&mut self.serving.driver, cx.waker()));
        Poll::Pending
    }

    fn is_drained(&self) -> bool {
        self.streams.is_empty()
            && self.serving.arrivals.is_empty()
            && self.h3.open_requests() == 0
            && self.serving.unacknowledged.is_empty()
    }

    fn note_headless(&mut self, id: StreamId, now: Time) {
        if self.streams.contains(id) || !self.h3.has_request(id) {
            return;
        }
        if self.serving.headless.len() >= HEADLESS_SWEEP {
            self.serving.headless.retain(|(id, _)| self.h3.has_request(*id));
        }
        if self.serving.headless.is_empty() {
            // The driver has to keep an eye on the time.
            self.wakes.extend(self.serving.driver.take());
        }
        self.serving.headless.push_back((id, now));
    }

    fn on_http3(&mut self, event: Event) {
        match event {
            Event::Settings => self.wakes.append(&mut self.unsettled),
            Event::Informational { id, response } => {
                if let Some(stream) = self.streams.get_mut(id)
                    && let Some(informational) = &mut stream.informational
                {
                    informational.push_back(response);
                    self.wakes.extend(stream.reader.take());
                }
            }
            Event::Response { id, response, end } => {
                if let Some(stream) = self.streams.get_mut(id) {
                    stream.response = Some((response, end));
                    self.wakes.extend(stream.reader.take());
                }
            }
            Event::DataReadable { id } => {
                self.wakes.extend(self.streams.get_mut(id).and_then(|stream| stream.reader.take()));
            }
            Event::Writable { id } => {
                self.wakes.extend(self.streams.get_mut(id).and_then(|stream| stream.writer.take()));
            }
            Event::Reset { id, code, local } => self.fail(id, Error::reset(code, local)),
            Event::StopSending { id, code } => {
                self.on_response_over(id, false);
                if let Some(stream) = self.streams.get_mut(id) {
                    stream.stopped = Some(code);
                    self.wakes.extend(stream.writer.take());
                }
            }
            Event::DatagramsReadable { id } => self.wakes.extend(self.tunnels.on_datagrams(id)),
            Event::SessionStream { id, direction } => {
                self.wakes.extend(self.tunnels.on_stream(id, direction));
            }
            Event::TunnelClosed { id, streams } => {
                self.session_streams.given_up.extend(streams);
                self.wakes.extend(self.tunnels.close(id));
            }
            Event::GoAway { .. } => {
                self.going_away = true;
                self.wakes.extend(self.queue.everyone());
            }
            Event::Closed { error } => self.end(Error::protocol(error)),
            _ => {}
        }
    }

    fn on_request(&mut self, arrival: Arrival) {
        let id = arrival.id;
        if let Ok(at) = self.serving.headless.binary_search_by_key(&id, |(id, _)| *id) {
            self.serving.headless.remove(at);
        }
        self.streams.insert(id, Stream::new(if arrival.end { 1 } else { 2 }));
        self.serving.unacknowledged.insert(id, ());
        self.serving.arrivals.push_back(arrival);
        self.wakes.extend(self.serving.driver.take());
    }

    /// The peer, or time, has ended the connection. What has arrived for a client can still be read.
    fn on_transport_closed(&mut self, io: &mut Io<'_>, error: Error) {
        if self.side == Side::Client && self.end.is_none() {
            let ids: Vec<_> = self.streams.ids().collect();
            ids.iter().for_each(|id| self.h3.on_readable(io, *id));
            while let Some(event) = self.h3.poll_event() {
                self.on_http3(event);
            }
            ids.iter().for_each(|id| self.collect_left(io, *id));
        }
        if self.side == Side::Server && error.code() == Some(ErrorCode::H3_NO_ERROR) {
            self.take_for_delivered(io);
        }
        self.end(error);
    }

    /// A client that ends the connection in good order waits for nothing any more (RFC 9114 section 5.2): it has what has
    /// been sent, though its last acknowledgements may be missing.
    fn take_for_delivered(&mut self, io: &Io<'_>) {
        let sent: Vec<_> = self.serving.unacknowledged.ids().filter(|id| io.is_sent(*id)).collect();
        sent.into_iter().for_each(|id| self.on_response_over(id, true));
    }

    fn collect_left(&mut self, io: &mut Io<'_>, id: StreamId) {
        let Some(stream) = self.streams.get_mut(id).filter(|stream| stream.failure.is_none()) else {
            return;
        };
        let mut left = Left::default();
        loop {
            match self.h3.read_body(io, id, READ_AT_ONCE) {
                Ok(BodyRead::Data(data)) => left.pieces.push_back(Piece::Data(data)),
                Ok(BodyRead::Trailers(trailers)) => left.pieces.push_back(Piece::Trailers(trailers)),
                Ok(BodyRead::End) => {
                    left.complete = true;
                    break;
                }
                Ok(BodyRead::Blocked) | Err(_) => break,
            }
        }
        stream.left = Some(left);
    }

    fn on_transport(&mut self, io: &mut Io<'_>, event: &godwit_transport::Event) {
        use godwit_transport::Event as Transport;
        match event {
            Transport::StreamOpened { direction } => self.h3.on_stream_opened(io, *direction),
            Transport::StreamsAvailable { direction } => {
                self.h3.on_streams_available(io, *direction);
                if *direction == Direction::Bidirectional {
                    self.wakes.extend(self.queue.first());
                }
                self.wakes.extend(self.tunnels.on_streams_available(*direction));
            }
            Transport::Readable { id } => self.h3.on_readable(io, *id),
            Transport::Writable { id } => {
                self.h3.on_writable(io, *id);
                // Who waits for room has offered nothing yet.
                self.wakes.extend(self.streams.get_mut(*id).and_then(|stream| stream.writer.take()));
            }
            Transport::DatagramsReadable => self.h3.on_datagrams_readable(io),
            Transport::Finished { id } => self.on_response_over(*id, true),
            Transport::Stopped { id, code } => {
                self.on_response_over(*id, false);
                self.h3.on_stopped(io, *id, *code);
            }
            Transport::Closed { reason } => {
                let reason = ConnectionError::new(EndReason::Transport(reason.clone()), None, true);
                self.on_transport_closed(io, Error::connection(reason));
            }
            _ => {}
        }
    }
}

impl RawHandler for Protocol {
    fn on_event(&mut self, cx: &mut RawCx<'_, '_>, event: &godwit_transport::Event) {
        let now = cx.now();
        self.check_early_data(cx.connection().as_deref());
        let mut io = Io::new(cx.connection(), now, &mut self.accepted);
        self.on_transport(&mut io, event);
        let accepted = io.accepted;
        self.settle(cx, accepted);
    }

    fn on_stopped(&mut self, cx: &mut RawCx<'_, '_>) {
        self.end(Error::endpoint_stopped());
        let accepted = std::mem::take(&mut self.accepted);
        self.settle(cx, accepted);
    }
}
