/* The callbacks: they write down every event, do what an ordinary program would, and check what holds for all programs. */
#include "suite.h"

/* With --trace, every event as it comes. */
static void trace_event(const char *whose, const void *which, const event *what) {
    if (!trace) return;
    fprintf(stderr, "%s %p event %u status %d code %llu flags %d%d%d\n", whose, which, what->type,
            (int)what->status, (unsigned long long)what->code, what->first, what->second, what->third);
}

/* Events of one type that would fill a journal without saying more than the first of them. */
static void journal_first_of_many(journal *of, event what) {
    lock_suite();
    bool repeated = of->count && !of->over && !of->closed && of->events[of->count - 1].type == what.type;
    suite_changed();
    unlock_suite();
    if (!repeated) journal_add(of, what);
}

static void journal_last(journal *of, event what) {
    journal_add(of, what);
    lock_suite();
    of->over = true;
    suite_changed();
    unlock_suite();
}

/* ---- Listeners ---- */

static void remember_name(listener *of, const QUIC_NEW_CONNECTION_INFO *info) {
    CHECK(info->ServerNameLength == 0 || info->ServerName);
    CHECK(info->NegotiatedAlpnLength > 0 && info->NegotiatedAlpn);
    lock_suite();
    snprintf(of->server_name, sizeof(of->server_name), "%.*s", (int)info->ServerNameLength,
             info->ServerNameLength ? info->ServerName : "");
    memcpy(of->negotiated, info->NegotiatedAlpn, info->NegotiatedAlpnLength);
    of->negotiated[info->NegotiatedAlpnLength] = 0;
    unlock_suite();
}

static QUIC_STATUS accept_connection(listener *of, HQUIC handle) {
    connection *accepted = keep(sizeof(*accepted));
    accepted->handle = handle;
    accepted->server = true;
    api->SetCallbackHandler(handle, (void *)on_connection_event, accepted);
    if (of->prepare_connection) of->prepare_connection(accepted);
    lock_suite();
    CHECK(of->accepted_count < sizeof(of->accepted) / sizeof(*of->accepted));
    of->accepted[of->accepted_count++] = accepted;
    suite_changed();
    unlock_suite();
    return of->configuration ? api->ConnectionSetConfiguration(handle, of->configuration) : QUIC_STATUS_SUCCESS;
}

QUIC_STATUS on_listener_event(HQUIC handle, void *context, QUIC_LISTENER_EVENT *what) {
    listener *of = context;
    event note = {.type = what->Type};
    CHECK(of->handle == handle || !of->handle);
    switch (what->Type) {
    case QUIC_LISTENER_EVENT_NEW_CONNECTION:
        remember_name(of, what->NEW_CONNECTION.Info);
        note.pointer = what->NEW_CONNECTION.Connection;
        break;
    case QUIC_LISTENER_EVENT_STOP_COMPLETE:
        note.first = what->STOP_COMPLETE.AppCloseInProgress;
        break;
    case QUIC_LISTENER_EVENT_DOS_MODE_CHANGED:
        note.first = what->DOS_MODE_CHANGED.DosModeEnabled;
        break;
    default:
        fail_at(__FILE__, __LINE__, "a listener has no event %u", what->Type);
    }
    trace_event("listener", of, &note);
    journal_add(&of->events, note);
    if (of->hook) {
        QUIC_STATUS answer = of->hook(of, what);
        if (answer != HOOK_DEFAULT) return answer;
    }
    if (what->Type != QUIC_LISTENER_EVENT_NEW_CONNECTION) return QUIC_STATUS_SUCCESS;
    return accept_connection(of, what->NEW_CONNECTION.Connection);
}

/* ---- Connections ---- */

static void accept_stream(connection *of, QUIC_CONNECTION_EVENT *what) {
    stream *accepted = keep(sizeof(*accepted));
    uint32_t length = sizeof(accepted->id);
    accepted->handle = what->PEER_STREAM_STARTED.Stream;
    accepted->of = of;
    api->SetCallbackHandler(accepted->handle, (void *)on_stream_event, accepted);
    CHECK_OK(api->GetParam(accepted->handle, QUIC_PARAM_STREAM_ID, &length, &accepted->id));
    if (of->prepare_stream) of->prepare_stream(accepted);
    lock_suite();
    CHECK(of->accepted_count < sizeof(of->accepted) / sizeof(*of->accepted));
    of->accepted[of->accepted_count++] = accepted;
    suite_changed();
    unlock_suite();
}

static void copy_ticket(connection *of, const QUIC_CONNECTION_EVENT *what) {
    lock_suite();
    if (what->Type == QUIC_CONNECTION_EVENT_RESUMPTION_TICKET_RECEIVED) {
        of->ticket_length = what->RESUMPTION_TICKET_RECEIVED.ResumptionTicketLength;
        CHECK(of->ticket_length <= sizeof(of->ticket));
        memcpy(of->ticket, what->RESUMPTION_TICKET_RECEIVED.ResumptionTicket, of->ticket_length);
    } else {
        of->resumption_length = what->RESUMED.ResumptionStateLength;
        CHECK(of->resumption_length <= sizeof(of->resumption_data));
        if (of->resumption_length) memcpy(of->resumption_data, what->RESUMED.ResumptionState, of->resumption_length);
    }
    unlock_suite();
}

static event note_shutdown(const QUIC_CONNECTION_EVENT *what) {
    event note = {.type = what->Type};
    if (what->Type == QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_TRANSPORT) {
        note.status = what->SHUTDOWN_INITIATED_BY_TRANSPORT.Status;
        note.code = what->SHUTDOWN_INITIATED_BY_TRANSPORT.ErrorCode;
    } else if (what->Type == QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_PEER) {
        note.code = what->SHUTDOWN_INITIATED_BY_PEER.ErrorCode;
    } else {
        note.first = what->SHUTDOWN_COMPLETE.HandshakeCompleted;
        note.second = what->SHUTDOWN_COMPLETE.PeerAcknowledgedShutdown;
        note.third = what->SHUTDOWN_COMPLETE.AppCloseInProgress;
    }
    return note;
}

static event note_datagram(connection *of, const QUIC_CONNECTION_EVENT *what) {
    event note = {.type = what->Type};
    if (what->Type == QUIC_CONNECTION_EVENT_DATAGRAM_STATE_CHANGED) {
        note.first = what->DATAGRAM_STATE_CHANGED.SendEnabled;
        note.code = what->DATAGRAM_STATE_CHANGED.MaxSendLength;
    } else if (what->Type == QUIC_CONNECTION_EVENT_DATAGRAM_SEND_STATE_CHANGED) {
        note.code = what->DATAGRAM_SEND_STATE_CHANGED.State;
        note.pointer = what->DATAGRAM_SEND_STATE_CHANGED.ClientContext;
    } else {
        note.code = what->DATAGRAM_RECEIVED.Buffer->Length;
        lock_suite();
        CHECK(note.code <= sizeof(of->datagram));
        of->datagram_length = (uint32_t)note.code;
        if (note.code) memcpy(of->datagram, what->DATAGRAM_RECEIVED.Buffer->Buffer, note.code);
        unlock_suite();
    }
    return note;
}

static event note_connection_event(connection *of, QUIC_CONNECTION_EVENT *what) {
    event note = {.type = what->Type};
    switch (what->Type) {
    case QUIC_CONNECTION_EVENT_CONNECTED:
        note.first = what->CONNECTED.SessionResumed;
        note.code = what->CONNECTED.NegotiatedAlpnLength;
        CHECK(what->CONNECTED.NegotiatedAlpn);
        break;
    case QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_TRANSPORT:
    case QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_PEER:
    case QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE: return note_shutdown(what);
    case QUIC_CONNECTION_EVENT_LOCAL_ADDRESS_CHANGED:
        note.code = port_of(what->LOCAL_ADDRESS_CHANGED.Address);
        break;
    case QUIC_CONNECTION_EVENT_PEER_ADDRESS_CHANGED: note.code = port_of(what->PEER_ADDRESS_CHANGED.Address); break;
    case QUIC_CONNECTION_EVENT_PEER_STREAM_STARTED:
        note.code = what->PEER_STREAM_STARTED.Flags;
        note.pointer = what->PEER_STREAM_STARTED.Stream;
        break;
    case QUIC_CONNECTION_EVENT_STREAMS_AVAILABLE:
        note.code = what->STREAMS_AVAILABLE.BidirectionalCount;
        note.status = what->STREAMS_AVAILABLE.UnidirectionalCount;
        break;
    case QUIC_CONNECTION_EVENT_PEER_NEEDS_STREAMS: note.first = what->PEER_NEEDS_STREAMS.Bidirectional; break;
    case QUIC_CONNECTION_EVENT_DATAGRAM_STATE_CHANGED:
    case QUIC_CONNECTION_EVENT_DATAGRAM_SEND_STATE_CHANGED:
    case QUIC_CONNECTION_EVENT_DATAGRAM_RECEIVED: return note_datagram(of, what);
    case QUIC_CONNECTION_EVENT_RESUMED:
    case QUIC_CONNECTION_EVENT_RESUMPTION_TICKET_RECEIVED: copy_ticket(of, what); break;
    case QUIC_CONNECTION_EVENT_PEER_CERTIFICATE_RECEIVED:
        note.status = what->PEER_CERTIFICATE_RECEIVED.DeferredStatus;
        note.code = what->PEER_CERTIFICATE_RECEIVED.DeferredErrorFlags;
        note.pointer = what->PEER_CERTIFICATE_RECEIVED.Certificate;
        break;
    case QUIC_CONNECTION_EVENT_RELIABLE_RESET_NEGOTIATED:
        note.first = what->RELIABLE_RESET_NEGOTIATED.IsNegotiated;
        break;
    case QUIC_CONNECTION_EVENT_ONE_WAY_DELAY_NEGOTIATED:
        note.first = what->ONE_WAY_DELAY_NEGOTIATED.SendNegotiated;
        note.second = what->ONE_WAY_DELAY_NEGOTIATED.ReceiveNegotiated;
        break;
    case QUIC_CONNECTION_EVENT_IDEAL_PROCESSOR_CHANGED:
    case QUIC_CONNECTION_EVENT_NETWORK_STATISTICS: break;
    default: fail_at(__FILE__, __LINE__, "a connection has no event %u", what->Type);
    }
    return note;
}

QUIC_STATUS on_connection_event(HQUIC handle, void *context, QUIC_CONNECTION_EVENT *what) {
    connection *of = context;
    CHECK(of->handle == handle);
    event note = note_connection_event(of, what);
    trace_event(of->server ? "server" : "client", of, &note);
    if (what->Type == QUIC_CONNECTION_EVENT_PEER_STREAM_STARTED && !of->hook) accept_stream(of, what);
    if (what->Type == QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE) journal_last(&of->events, note);
    else if (what->Type == QUIC_CONNECTION_EVENT_NETWORK_STATISTICS) journal_first_of_many(&of->events, note);
    else journal_add(&of->events, note);
    if (!of->hook) return QUIC_STATUS_SUCCESS;
    QUIC_STATUS answer = of->hook(of, what);
    if (answer != HOOK_DEFAULT) return answer;
    if (what->Type == QUIC_CONNECTION_EVENT_PEER_STREAM_STARTED) accept_stream(of, what);
    return QUIC_STATUS_SUCCESS;
}

/* ---- Streams ---- */

static void check_pattern(const stream *of, const QUIC_STREAM_EVENT *what) {
    uint64_t offset = what->RECEIVE.AbsoluteOffset, total = 0;
    if (offset != of->received + of->pending) {
        fail_at(__FILE__, __LINE__, "data at offset %llu, after %llu bytes", (unsigned long long)offset,
                (unsigned long long)(of->received + of->pending));
    }
    for (uint32_t i = 0; i < what->RECEIVE.BufferCount; i++) {
        const QUIC_BUFFER *buffer = &what->RECEIVE.Buffers[i];
        for (uint32_t j = 0; j < buffer->Length; j++, offset++) {
            if (buffer->Buffer[j] != pattern(offset)) {
                fail_at(__FILE__, __LINE__, "a wrong byte at offset %llu", (unsigned long long)offset);
            }
        }
        total += buffer->Length;
    }
    CHECK_EQUAL(total, what->RECEIVE.TotalBufferLength);
}

static void send_echo(stream *of, const QUIC_STREAM_EVENT *what) {
    bool end = what->RECEIVE.Flags & QUIC_RECEIVE_FLAG_FIN;
    QUIC_STATUS status;
    try_send(of, what->RECEIVE.AbsoluteOffset, what->RECEIVE.TotalBufferLength, 1,
             end ? QUIC_SEND_FLAG_FIN : QUIC_SEND_FLAG_NONE, &status);
}

static void took(stream *of, uint64_t length, uint64_t pending, bool wants_enable) {
    lock_suite();
    of->received += length;
    of->pending += pending;
    of->wants_enable |= wants_enable;
    suite_changed();
    unlock_suite();
}

static QUIC_STATUS receive(stream *of, QUIC_STREAM_EVENT *what) {
    uint64_t total = what->RECEIVE.TotalBufferLength, half = total / 2 + total % 2;
    check_pattern(of, what);
    if (of->echo) send_echo(of, what);
    switch (of->mode) {
    case RECEIVE_PENDING:
        took(of, 0, total, total == 0);
        return total ? QUIC_STATUS_PENDING : QUIC_STATUS_SUCCESS;
    case RECEIVE_CONTINUE:
        what->RECEIVE.TotalBufferLength = half;
        took(of, half, 0, false);
        return QUIC_STATUS_CONTINUE;
    case RECEIVE_PARTIAL:
        what->RECEIVE.TotalBufferLength = half;
        took(of, half, 0, half < total);
        return QUIC_STATUS_SUCCESS;
    case RECEIVE_INLINE:
        took(of, total, 0, false);
        if (total == 0) return QUIC_STATUS_SUCCESS;
        api->StreamReceiveComplete(of->handle, total);
        return QUIC_STATUS_PENDING;
    case RECEIVE_ALL: break;
    }
    took(of, total, 0, false);
    return QUIC_STATUS_SUCCESS;
}

static void complete_send(QUIC_STREAM_EVENT *what) {
    send_record *record = what->SEND_COMPLETE.ClientContext;
    lock_suite();
    if (record->completed) fail_at(__FILE__, __LINE__, "a send was completed twice");
    record->completed = true;
    record->canceled = what->SEND_COMPLETE.Canceled;
    CHECK(record->of->sends > 0);
    record->of->sends--;
    suite_changed();
    unlock_suite();
}

static event note_stream_event(const QUIC_STREAM_EVENT *what) {
    event note = {.type = what->Type};
    switch (what->Type) {
    case QUIC_STREAM_EVENT_START_COMPLETE:
        note.status = what->START_COMPLETE.Status;
        note.code = what->START_COMPLETE.ID;
        note.first = what->START_COMPLETE.PeerAccepted;
        break;
    case QUIC_STREAM_EVENT_RECEIVE:
        note.code = what->RECEIVE.TotalBufferLength;
        note.status = what->RECEIVE.Flags;
        break;
    case QUIC_STREAM_EVENT_SEND_COMPLETE:
        note.first = what->SEND_COMPLETE.Canceled;
        note.pointer = what->SEND_COMPLETE.ClientContext;
        break;
    case QUIC_STREAM_EVENT_PEER_SEND_ABORTED: note.code = what->PEER_SEND_ABORTED.ErrorCode; break;
    case QUIC_STREAM_EVENT_PEER_RECEIVE_ABORTED: note.code = what->PEER_RECEIVE_ABORTED.ErrorCode; break;
    case QUIC_STREAM_EVENT_SEND_SHUTDOWN_COMPLETE: note.first = what->SEND_SHUTDOWN_COMPLETE.Graceful; break;
    case QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE:
        note.first = what->SHUTDOWN_COMPLETE.ConnectionShutdown;
        note.second = what->SHUTDOWN_COMPLETE.AppCloseInProgress;
        note.third = what->SHUTDOWN_COMPLETE.ConnectionClosedRemotely;
        note.code = what->SHUTDOWN_COMPLETE.ConnectionErrorCode;
        note.status = what->SHUTDOWN_COMPLETE.ConnectionCloseStatus;
        break;
    case QUIC_STREAM_EVENT_IDEAL_SEND_BUFFER_SIZE: note.code = what->IDEAL_SEND_BUFFER_SIZE.ByteCount; break;
    case QUIC_STREAM_EVENT_CANCEL_ON_LOSS:
    case QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN:
    case QUIC_STREAM_EVENT_PEER_ACCEPTED: break;
    case QUIC_STREAM_EVENT_RECEIVE_BUFFER_NEEDED:
        note.code = what->RECEIVE_BUFFER_NEEDED.BufferLengthNeeded;
        break;
    default: fail_at(__FILE__, __LINE__, "a stream has no event %u", what->Type);
    }
    return note;
}

static void peer_ended(stream *of) {
    QUIC_STATUS status;
    lock_suite();
    of->finished = true;
    suite_changed();
    unlock_suite();
    if (of->respond) try_send(of, 0, of->response, 1, QUIC_SEND_FLAG_FIN, &status);
    if (of->ends_by_itself) api->StreamShutdown(of->handle, QUIC_STREAM_SHUTDOWN_FLAG_GRACEFUL, 0);
}

static void stream_over(stream *of, event note) {
    lock_suite();
    if (of->sends) fail_at(__FILE__, __LINE__, "the stream has ended before %u of its sends", of->sends);
    unlock_suite();
    journal_last(&of->events, note);
}

QUIC_STATUS on_stream_event(HQUIC handle, void *context, QUIC_STREAM_EVENT *what) {
    stream *of = context;
    CHECK(of->handle == handle);
    event note = note_stream_event(what);
    trace_event(of->of && of->of->server ? "server stream" : "client stream", of, &note);
    if (what->Type == QUIC_STREAM_EVENT_SEND_COMPLETE) complete_send(what);
    if (what->Type == QUIC_STREAM_EVENT_START_COMPLETE) of->id = what->START_COMPLETE.ID;
    if (what->Type == QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE) stream_over(of, note);
    else if (what->Type == QUIC_STREAM_EVENT_RECEIVE) journal_first_of_many(&of->events, note);
    else if (what->Type == QUIC_STREAM_EVENT_IDEAL_SEND_BUFFER_SIZE) journal_first_of_many(&of->events, note);
    else journal_add(&of->events, note);
    if (of->hook) {
        QUIC_STATUS answer = of->hook(of, what);
        if (answer != HOOK_DEFAULT) return answer;
    }
    if (what->Type == QUIC_STREAM_EVENT_RECEIVE) return receive(of, what);
    if (what->Type == QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN) peer_ended(of);
    if (what->Type == QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE && of->closes_itself) {
        api->StreamClose(of->handle);
        lock_suite();
        of->events.closed = true;
        unlock_suite();
    }
    return QUIC_STATUS_SUCCESS;
}
