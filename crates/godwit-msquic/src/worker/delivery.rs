//! Telling the application what there is to tell: on the worker's own thread, with the shard free, one thing at a time.
//!
//! What is told is made ready under the lock, told without it, and what the callback has answered is taken in under the lock
//! again, together with making the next thing ready.

use super::news::{ConnectionNews, News, StreamNews};
use super::pool::Worker;
use super::state::{State, TurnOf};
use crate::abi::{
    Address, AddressChanged, ApplicationErrorCode, Boolean, Buffer, Connected, ConnectionCallbackHandler,
    ConnectionEvent, ConnectionShutdownComplete, DatagramReceived, DatagramSendStateChanged,
    DatagramStateChanged, Handle, IdealSendBufferSize, ListenerEvent, NewConnection, NewConnectionInfo,
    OneWayDelayNegotiated, PeerNeedsStreams, PeerStreamStarted, Receive, ReceiveBufferNeeded, ReceiveFlags,
    ReliableResetNegotiated, Resumed, ResumptionTicketReceived, SendComplete, SendShutdownComplete,
    ShutdownInitiatedByPeer, ShutdownInitiatedByTransport, StartComplete, Status, StreamCallbackHandler,
    StreamEvent, StreamEventType, StreamOpenFlags, StreamShutdownComplete, StreamShutdownFlags,
    StreamsAvailable, TlsAlertCode, UINT62_MAX,
};
use crate::connection::{Offer, TlsUse, shared_sockets};
use crate::context::Context;
use crate::credential::PeerCertificate;
use crate::listener::close_unused_bindings;
use crate::parameters::network_statistics;
use crate::stream::Shown;
use bytes::Bytes;
use godwit_base::slab::Key;
use godwit_engine::ShardCx;
use godwit_transport::Direction;
use std::collections::VecDeque;
use std::ptr::null;

/// What is told between two looks at the network, at most.
const MOST_AT_ONCE: usize = 256;

/// Something to tell, with all that belongs to it.
enum Call {
    Listener(Box<Offer>, Handle),
    Connection { key: Key, handle: Handle, handler: ConnectionCallbackHandler, context: Context, what: Told },
    Stream { key: Key, handle: Handle, handler: StreamCallbackHandler, context: Context, what: ToldStream },
}

/// What a connection is told, that has more to it than an event can hold.
enum Told {
    Event(ConnectionEvent),
    Connected(bool, Bytes),
    Address(bool, Address),
    Datagram(Bytes),
    Resumed(Bytes),
    Ticket(Bytes),
    Certificate(Box<PeerCertificate>),
    StreamStarted(Key, Handle, StreamOpenFlags),
}

enum ToldStream {
    Event(StreamEvent),
    Receive(Shown),
}

/// What has been answered, to be taken in.
enum Answer {
    None,
    Listener(Box<Offer>, Status),
    Certificate(Key, Status, TlsAlertCode),
    Connected(Key),
    Resumed(Key, Status),
    StreamStarted(Key, StreamOpenFlags, Status),
    Received(Key, VecDeque<Bytes>, (Status, u64)),
    MemoryWanted(Key),
    CanceledOnLoss(Key, u64),
}

/// Tells what there is to tell, up to a fair share. True if anything was told.
pub(super) fn deliver(worker: &Worker) -> bool {
    let (mut unused, mut some_are_over, mut change) = (Vec::new(), false, None);
    let (mut some_wait, mut errands) = (false, Vec::new());
    let any = deliver_some(worker, TurnOf::All, MOST_AT_ONCE, |cx, state| {
        state.departed.clear();
        state.rotate_secrets(cx);
        some_are_over = std::mem::take(&mut state.some_are_over);
        unused = std::mem::take(&mut state.unused_sockets);
        change = state.look_at_defence(cx);
        some_wait = state.waiting.on_delivered();
        errands = std::mem::take(&mut state.errands);
    });
    unused.into_iter().for_each(|socket| shared_sockets::leave(worker, socket));
    if some_are_over {
        close_unused_bindings();
    }
    super::defence::note(change);
    let any = any || some_wait || !errands.is_empty();
    errands.into_iter().for_each(|errand| errand());
    any
}

/// Tells one connection or stream all there is for it.
pub(crate) fn deliver_all(worker: &Worker, whose: TurnOf) {
    deliver_some(worker, whose, usize::MAX, |_, _| {});
}

/// Tells up to `most` things, and calls `look` behind the last one, in the same visit. True if there was any.
fn deliver_some(
    worker: &Worker,
    whose: TurnOf,
    most: usize,
    mut look: impl FnMut(&mut ShardCx<'_>, &mut State),
) -> bool {
    let mut answer = Answer::None;
    let mut told = 0;
    // Memory for the list of what is received.
    let mut buffers = Vec::new();
    loop {
        let mut next = None;
        let answered = std::mem::replace(&mut answer, Answer::None);
        worker.visit_inside(|cx, state| {
            state.take_in(cx, answered);
            if matches!(whose, TurnOf::All) {
                // No callback is under way.
                state.departed.clear();
            }
            if told == 0 && !matches!(whose, TurnOf::Stream(_)) {
                state.take_received_tickets();
                state.end_expired(cx);
            }
            next = if told < most { state.next_call(cx, whose) } else { None };
            if next.is_none() {
                look(cx, state);
            }
        });
        let Some(call) = next else { return told > 0 };
        answer = call.make(&mut buffers);
        told = told.saturating_add(1);
    }
}

impl Call {
    /// Calls the application.
    fn make(self, buffers: &mut Vec<Buffer>) -> Answer {
        match self {
            Call::Listener(offer, connection) => {
                let status = tell_listener(&offer, connection);
                Answer::Listener(offer, status)
            }
            Call::Connection { key, handle, handler, context, what } => {
                tell_connection(key, handle, handler, context, what)
            }
            Call::Stream { key, handle, handler, context, what } => {
                let Some(handler) = handler else { return Answer::None };
                let tell = |event: &mut StreamEvent| {
                    // SAFETY: the application has given this function for this kind of handle. What the event points to lives
                    // until it returns.
                    unsafe { handler(handle, context.pointer(), event) }
                };
                match what {
                    ToldStream::Event(event) => tell_stream(key, event, tell),
                    ToldStream::Receive(shown) => show(key, shown, buffers, tell),
                }
            }
        }
    }
}

fn tell_stream(key: Key, mut event: StreamEvent, tell: impl FnOnce(&mut StreamEvent) -> Status) -> Answer {
    tell(&mut event);
    if let Some(canceled) = event.as_cancel_on_loss() {
        return Answer::CanceledOnLoss(key, canceled.error_code);
    }
    let wants_memory = event.kind() == StreamEventType::RECEIVE_BUFFER_NEEDED;
    if wants_memory { Answer::MemoryWanted(key) } else { Answer::None }
}

fn show(
    key: Key,
    shown: Shown,
    buffers: &mut Vec<Buffer>,
    tell: impl FnOnce(&mut StreamEvent) -> Status,
) -> Answer {
    buffers.clear();
    buffers.extend(shown.pieces.iter().map(buffer_of));
    let mut event = StreamEvent::receive(Receive {
        absolute_offset: shown.offset,
        total_buffer_length: shown.bytes,
        buffers: buffers.as_ptr(),
        buffer_count: u32::try_from(buffers.len()).unwrap_or(u32::MAX),
        flags: shown.flags,
    });
    let status = tell(&mut event);
    let taken = event.as_receive().map_or(0, |receive| receive.total_buffer_length);
    Answer::Received(key, shown.pieces, (status, taken))
}

fn buffer_of(bytes: &Bytes) -> Buffer {
    Buffer { length: u32::try_from(bytes.len()).unwrap_or(u32::MAX), buffer: bytes.as_ptr().cast_mut() }
}

fn tell_listener(offer: &Offer, connection: Handle) -> Status {
    let info = NewConnectionInfo {
        quic_version: offer.version.to_be(),
        local_address: &raw const offer.local,
        remote_address: &raw const offer.remote,
        crypto_buffer_length: u32::try_from(offer.client_hello.len()).unwrap_or(0),
        client_alpn_list_length: u16::try_from(offer.alpn_list.len()).unwrap_or(0),
        server_name_length: u16::try_from(offer.server_name.len()).unwrap_or(0),
        negotiated_alpn_length: u8::try_from(offer.alpn.len()).unwrap_or(0),
        crypto_buffer: offer.client_hello.as_ptr(),
        client_alpn_list: offer.alpn_list.as_ptr(),
        negotiated_alpn: offer.alpn.as_ptr(),
        server_name: if offer.server_name.is_empty() { null() } else { offer.server_name.as_ptr().cast() },
    };
    let mut event = ListenerEvent::new_connection(NewConnection { info: &raw const info, connection });
    offer.listener.call(&mut event)
}

fn tell_connection(
    key: Key,
    handle: Handle,
    handler: ConnectionCallbackHandler,
    context: Context,
    what: Told,
) -> Answer {
    let Some(handler) = handler else { return Answer::None };
    let call = |mut event: ConnectionEvent| {
        // SAFETY: the application has given this function for this kind of handle. What the event points to lives until it
        // returns.
        let status = unsafe { handler(handle, context.pointer(), &raw mut event) };
        (status, event)
    };
    let (resumed, datagram);
    let address;
    let mut what = what;
    if let Told::Certificate(shown) = &mut what {
        let alert = shown.alert_of_refusal();
        let (status, _) = shown.tell(|shown| call(ConnectionEvent::peer_certificate_received(shown)));
        return Answer::Certificate(key, status, alert);
    }
    let event = match &what {
        Told::Certificate(_) => return Answer::None,
        Told::Event(event) => *event,
        Told::Connected(resumed, alpn) => ConnectionEvent::connected(Connected {
            session_resumed: (*resumed).into(),
            negotiated_alpn_length: u8::try_from(alpn.len()).unwrap_or(0),
            negotiated_alpn: alpn.as_ptr(),
        }),
        Told::Address(is_peer, changed) => {
            address = *changed;
            let changed = AddressChanged { address: &raw const address };
            if *is_peer {
                ConnectionEvent::peer_address_changed(changed)
            } else {
                ConnectionEvent::local_address_changed(changed)
            }
        }
        Told::Datagram(bytes) => {
            datagram = buffer_of(bytes);
            let flags = ReceiveFlags::NONE;
            ConnectionEvent::datagram_received(DatagramReceived { buffer: &raw const datagram, flags })
        }
        Told::Resumed(data) => {
            resumed = data;
            ConnectionEvent::resumed(Resumed {
                resumption_state_length: u16::try_from(resumed.len()).unwrap_or(0),
                resumption_state: resumed.as_ptr(),
            })
        }
        Told::Ticket(ticket) => ConnectionEvent::resumption_ticket_received(ResumptionTicketReceived {
            resumption_ticket_length: u32::try_from(ticket.len()).unwrap_or(0),
            resumption_ticket: ticket.as_ptr(),
        }),
        Told::StreamStarted(_, stream, flags) => {
            ConnectionEvent::peer_stream_started(PeerStreamStarted { stream: *stream, flags: *flags })
        }
    };
    let (status, event) = call(event);
    match what {
        Told::Connected(..) => Answer::Connected(key),
        Told::Resumed(_) => Answer::Resumed(key, status),
        Told::StreamStarted(stream, ..) => {
            let flags = event.as_peer_stream_started().map_or(StreamOpenFlags::NONE, |it| it.flags);
            Answer::StreamStarted(stream, flags, status)
        }
        _ => Answer::None,
    }
}

impl State {
    fn take_in(&mut self, cx: &mut ShardCx<'_>, answer: Answer) {
        match answer {
            Answer::None => {}
            Answer::Listener(offer, status) => self.on_offered(cx, &offer, status),
            // What is said about it later, there is a function for.
            Answer::Certificate(_, Status::PENDING, _) => {}
            Answer::Certificate(key, status, alert) => {
                self.approve(cx, key, alert.alert().filter(|_| status.failed()));
            }
            Answer::Connected(key) => self.limit_tls(key, TlsUse::Over),
            Answer::Resumed(key, status) => self.on_resumed_told(cx, key, status),
            Answer::StreamStarted(stream, flags, status) => self.on_stream_shown(cx, stream, flags, status),
            Answer::MemoryWanted(key) => self.on_memory_wanted(cx, key),
            Answer::Received(key, pieces, taken) => self.on_shown(cx, key, pieces, taken),
            Answer::CanceledOnLoss(key, code) => {
                self.shut_stream_down(cx, key, StreamShutdownFlags::ABORT, code.min(UINT62_MAX));
            }
        }
    }

    /// Makes the next thing ready that there is to tell.
    fn next_call(&mut self, cx: &mut ShardCx<'_>, whose: TurnOf) -> Option<Call> {
        loop {
            self.take_given_back();
            let call = match self.next_news(whose)? {
                News::Incoming(key) => self.offer_call(cx, key),
                News::Connection(key, news) => self.connection_call(cx, key, news),
                News::Stream(_, key, news) => self.stream_call(cx, key, news),
            };
            if call.is_some() {
                return call;
            }
        }
    }

    fn offer_call(&mut self, cx: &mut ShardCx<'_>, key: godwit_transport::IncomingKey) -> Option<Call> {
        let offer = self.offer(cx, key)?;
        let handle = self.connection_handle(offer.connection);
        if let Some(connection) = self.connections.get_mut(offer.connection) {
            connection.is_owned = true;
        }
        Some(Call::Listener(Box::new(offer), handle))
    }

    fn connection_call(&mut self, cx: &mut ShardCx<'_>, key: Key, news: ConnectionNews) -> Option<Call> {
        use ConnectionNews as N;
        let what = match news {
            N::HandleClosed => {
                self.forget_connection(key);
                return None;
            }
            N::CaughtUp(opening) => {
                self.waiting.add(opening);
                return None;
            }
            N::Connected { resumed, alpn } => {
                self.limit_tls(key, TlsUse::InCallback);
                Told::Connected(resumed, alpn)
            }
            N::ShutdownByTransport { status, code } => {
                Told::Event(ConnectionEvent::shutdown_initiated_by_transport(ShutdownInitiatedByTransport {
                    status,
                    error_code: code,
                }))
            }
            N::ShutdownByPeer { code } => {
                Told::Event(ConnectionEvent::shutdown_initiated_by_peer(ShutdownInitiatedByPeer {
                    error_code: code,
                }))
            }
            N::ShutdownComplete => {
                let connection = self.connections.get(key)?;
                // What was done about the end in the callbacks that told of it counts.
                let acknowledged = connection.is_acknowledged || !connection.is_open_anywhere();
                let event = ConnectionShutdownComplete::default()
                    .with_handshake_completed(connection.is_connected)
                    .with_peer_acknowledged_shutdown(acknowledged)
                    .with_app_close_in_progress(connection.closing.is_some());
                Told::Event(ConnectionEvent::shutdown_complete(event))
            }
            N::LocalAddressChanged => Told::Address(false, self.connections.get(key)?.local?.into()),
            N::PeerAddressChanged => Told::Address(true, self.connections.get(key)?.remote?.into()),
            N::PeerStreamStarted(stream) => {
                let handle = self.stream_handle(stream);
                let shown = self.streams.get_mut(stream)?;
                (shown.is_owned, shown.is_being_shown) = (true, true);
                Told::StreamStarted(stream, handle, self.flags_of_peer_stream(cx, stream))
            }
            N::StreamsAvailable => {
                let (bidirectional_count, unidirectional_count) = self.streams_available(cx, key)?;
                let available = StreamsAvailable { bidirectional_count, unidirectional_count };
                Told::Event(ConnectionEvent::streams_available(available))
            }
            N::PeerNeedsStreams { bidirectional } => {
                Told::Event(ConnectionEvent::peer_needs_streams(PeerNeedsStreams {
                    bidirectional: bidirectional.into(),
                }))
            }
            N::DatagramStateChanged { enabled, max } => {
                Told::Event(ConnectionEvent::datagram_state_changed(DatagramStateChanged {
                    send_enabled: enabled.into(),
                    max_send_length: max,
                }))
            }
            N::DatagramsReceived => {
                let conn = self.connections.get(key)?.key?;
                let datagram = cx.endpoint_mut().with(conn, |it| it.read_datagram())??;
                // There may be another one behind it.
                self.tell_connection(key, N::DatagramsReceived);
                Told::Datagram(datagram)
            }
            N::DatagramSendState { context, state } => {
                Told::Event(ConnectionEvent::datagram_send_state_changed(DatagramSendStateChanged {
                    client_context: context.pointer(),
                    state,
                }))
            }
            N::Resumed { data } => Told::Resumed(data),
            N::TicketReceived { ticket } => Told::Ticket(ticket),
            N::PeerCertificate => Told::Certificate(Box::new(self.peer_certificate(cx, key)?)),
            N::OneWayDelayNegotiated { sends, receives } => {
                Told::Event(ConnectionEvent::one_way_delay_negotiated(OneWayDelayNegotiated {
                    send_negotiated: sends.into(),
                    receive_negotiated: receives.into(),
                }))
            }
            N::NetworkStatistics => {
                let connection = self.connections.get(key)?;
                let transport = connection.key.and_then(|conn| cx.endpoint().connection(conn));
                Told::Event(ConnectionEvent::network_statistics(network_statistics(connection, transport)))
            }
            N::ReliableResetNegotiated { negotiated } => {
                Told::Event(ConnectionEvent::reliable_reset_negotiated(ReliableResetNegotiated {
                    is_negotiated: negotiated.into(),
                }))
            }
        };
        let connection = self.connections.get(key).filter(|connection| connection.is_owned)?;
        let (handler, context) = (connection.handler, connection.context);
        Some(Call::Connection { key, handle: self.connection_handle(key), handler, context, what })
    }

    fn flags_of_peer_stream(&self, cx: &ShardCx<'_>, stream: Key) -> StreamOpenFlags {
        let direction = self.streams.get(stream).map(|stream| stream.direction);
        let direction = match direction {
            Some(Direction::Unidirectional) => StreamOpenFlags::UNIDIRECTIONAL,
            _ => StreamOpenFlags::NONE,
        };
        let early = if self.is_early(cx, stream) { StreamOpenFlags::ZERO_RTT } else { StreamOpenFlags::NONE };
        direction.union(early)
    }

    fn stream_call(&mut self, cx: &mut ShardCx<'_>, key: Key, news: StreamNews) -> Option<Call> {
        use StreamNews as N;
        let what = match news {
            N::HandleClosed => {
                self.forget_stream(key);
                return None;
            }
            N::Receive => ToldStream::Receive(self.show(cx, key)?),
            N::StartComplete { status, id, accepted } => ToldStream::Event(StreamEvent::start_complete(
                StartComplete { status, id, flags: 0 }.with_peer_accepted(accepted),
            )),
            N::PeerAccepted => ToldStream::Event(StreamEvent::peer_accepted()),
            N::SendComplete { canceled, context, .. } => {
                let (canceled, client_context) = (Boolean::from(canceled), context.pointer());
                ToldStream::Event(StreamEvent::send_complete(SendComplete { canceled, client_context }))
            }
            N::PeerSendShutdown => ToldStream::Event(StreamEvent::peer_send_shutdown()),
            N::PeerSendAborted { code } => {
                ToldStream::Event(StreamEvent::peer_send_aborted(ApplicationErrorCode { error_code: code }))
            }
            N::PeerReceiveAborted { code } => {
                ToldStream::Event(StreamEvent::peer_receive_aborted(ApplicationErrorCode {
                    error_code: code,
                }))
            }
            N::CanceledOnLoss => {
                ToldStream::Event(StreamEvent::cancel_on_loss(ApplicationErrorCode { error_code: 0 }))
            }
            N::SendShutdownComplete { graceful } => {
                let graceful = graceful.into();
                ToldStream::Event(StreamEvent::send_shutdown_complete(SendShutdownComplete { graceful }))
            }
            N::ShutdownComplete => ToldStream::Event(self.stream_shutdown_complete(key)?),
            N::ReceiveBufferNeeded(buffer_length_needed) => {
                ToldStream::Event(StreamEvent::receive_buffer_needed(ReceiveBufferNeeded {
                    buffer_length_needed,
                }))
            }
            N::IdealSendBufferSize(byte_count) => {
                ToldStream::Event(StreamEvent::ideal_send_buffer_size(IdealSendBufferSize { byte_count }))
            }
        };
        let stream = self.streams.get(key).filter(|stream| stream.is_owned)?;
        let (handler, context) = (stream.handler, stream.context);
        if handler.is_none() && matches!(what, ToldStream::Event(_)) {
            // There is nobody to tell it.
            return None;
        }
        Some(Call::Stream { key, handle: self.stream_handle(key), handler, context, what })
    }

    fn stream_shutdown_complete(&self, key: Key) -> Option<StreamEvent> {
        let stream = self.streams.get(key)?;
        let connection = self.connections.get(stream.connection)?;
        let event = StreamShutdownComplete {
            connection_shutdown: (!connection.is_open()).into(),
            flags: 0,
            connection_error_code: connection.close_code,
            connection_close_status: connection.close_status,
        };
        Some(StreamEvent::shutdown_complete(
            event
                .with_app_close_in_progress(stream.is_closed)
                .with_connection_shutdown_by_app(connection.closed_by_application)
                .with_connection_closed_remotely(connection.closed_remotely),
        ))
    }
}
