/* What the program keeps of what it receives: it holds the peer back until it is completed or its stream is over. */
#include "suite.h"

/* How much a stream may have before anything of it is completed. */
enum { WINDOW = 1 << 16 };

static stream_hook receiver_hook;

static void prepare_receiver(stream *it) {
    it->hook = receiver_hook;
    it->mode = RECEIVE_PENDING;
}

typedef struct both {
    pair *ends;
    stream *sender;
    stream *receiver;
} both;

/* Two ends of which the server keeps what it receives, in one receive at a time or in several. */
static pair *connect_keeper(bool several, uint32_t window, stream_hook hook) {
    pair_options options = usual_options();
    SET(options.server, ConnFlowControlWindow, window);
    SET(options.server, StreamMultiReceiveEnabled, several);
    receiver_hook = hook;
    options.prepare_server_stream = prepare_receiver;
    return connected_pair(&options);
}

static both with_stream(pair *ends, unsigned number) {
    both it = {.ends = ends};
    it.sender = start_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_UNIDIRECTIONAL, QUIC_STREAM_START_FLAG_IMMEDIATE);
    it.receiver = accepted_stream(ends->server, number);
    return it;
}

/* Waits until the callback that runs has returned: parameters are read in turn with callbacks. */
static void settle(HQUIC stream) {
    uint16_t priority;
    uint32_t length = sizeof(priority);
    CHECK_OK(api->GetParam(stream, QUIC_PARAM_STREAM_PRIORITY, &length, &priority));
}

static void complete(stream *it, uint64_t length) {
    lock_suite();
    it->pending -= length;
    it->received += length;
    unlock_suite();
    api->StreamReceiveComplete(it->handle, length);
}

/* No more comes than the window although nothing is completed. */
static void no_more_than_the_window_waits(const void *row) {
    bool several = *(const bool *)row;
    both it = with_stream(connect_keeper(several, 16 * WINDOW, NULL), 1);
    send_pattern(it.sender, 0, 10 * WINDOW, 1, QUIC_SEND_FLAG_FIN);
    WAIT_UNTIL(several ? it.receiver->pending >= WINDOW : it.receiver->pending > 0);
    let_things_happen(50);
    lock_suite();
    CHECK(it.receiver->pending <= WINDOW);
    unlock_suite();
    finish_receive(it.receiver);
    CHECK_EQUAL(10 * WINDOW, it.receiver->received);
    close_stream(it.sender);
    close_pair(it.ends);
}

enum { SINGLE_BYTES = 400 };
static const uint8_t *places[SINGLE_BYTES];

static QUIC_STATUS note_places(stream *of, QUIC_STREAM_EVENT *what) {
    if (what->Type != QUIC_STREAM_EVENT_RECEIVE) return HOOK_DEFAULT;
    uint64_t offset = what->RECEIVE.AbsoluteOffset;
    CHECK_EQUAL(of->pending, offset);
    for (uint32_t i = 0; i < what->RECEIVE.BufferCount; i++) {
        const QUIC_BUFFER *buffer = &what->RECEIVE.Buffers[i];
        for (uint32_t j = 0; j < buffer->Length && offset < SINGLE_BYTES; j++) places[offset++] = buffer->Buffer + j;
    }
    return HOOK_DEFAULT;
}

/* Single bytes, of which each is shown, stay where they are until they are completed, in whatever steps. */
static void single_bytes_wait(const void *row) {
    uint64_t part = *(const uint64_t *)row, left = SINGLE_BYTES;
    both it = with_stream(connect_keeper(true, 16 * WINDOW, note_places), 1);
    for (uint64_t i = 0; i < SINGLE_BYTES; i++) {
        send_pattern(it.sender, i, 1, 1, i + 1 == SINGLE_BYTES ? QUIC_SEND_FLAG_FIN : QUIC_SEND_FLAG_NONE);
        WAIT_UNTIL(it.receiver->pending == i + 1);
    }
    settle(it.receiver->handle);
    for (uint64_t step; left; left -= step) {
        CHECK_NO_EVENT(it.receiver, QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN);
        for (uint64_t i = SINGLE_BYTES - left; i < SINGLE_BYTES; i++) CHECK_EQUAL(pattern(i), *places[i]);
        complete(it.receiver, step = part < left ? part : left);
        settle(it.receiver->handle);
    }
    WAIT_EVENT(it.receiver, QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN);
    close_stream(it.sender);
    close_pair(it.ends);
}

enum way_to_end { CLOSED, RECEIVE_ABORTED, AT_ONCE, RESET_BY_PEER, COMPLETED_AFTER_ALL, WAYS_TO_END };

static const char *const way_names[WAYS_TO_END] = {
    "closed", "receive_aborted", "at_once", "reset_by_peer", "completed_after_all"};

static void end_with_something_kept(const both *it, enum way_to_end way) {
    QUIC_STREAM_SHUTDOWN_FLAGS immediate = QUIC_STREAM_SHUTDOWN_FLAG_ABORT | QUIC_STREAM_SHUTDOWN_FLAG_IMMEDIATE;
    HQUIC handle = it->receiver->handle;
    switch (way) {
    case CLOSED: break;
    case AT_ONCE: CHECK_PENDING(api->StreamShutdown(handle, immediate, 1)); break;
    case RESET_BY_PEER:
        CHECK_PENDING(api->StreamShutdown(it->sender->handle, QUIC_STREAM_SHUTDOWN_FLAG_ABORT_SEND, 1));
        WAIT_EVENT(it->receiver, QUIC_STREAM_EVENT_PEER_SEND_ABORTED);
        break;
    default: CHECK_PENDING(api->StreamShutdown(handle, QUIC_STREAM_SHUTDOWN_FLAG_ABORT_RECEIVE, 1));
    }
    /* What is completed after the end does not count twice. */
    if (way == COMPLETED_AFTER_ALL) complete(it->receiver, it->receiver->pending);
    close_stream(it->receiver);
    close_stream(it->sender);
}

static const struct kept_row {
    enum way_to_end way;
    bool several;
} kept_rows[] = {
    {CLOSED, false}, {RECEIVE_ABORTED, false}, {AT_ONCE, false}, {RESET_BY_PEER, false}, {COMPLETED_AFTER_ALL, false},
    {CLOSED, true},  {RECEIVE_ABORTED, true},  {AT_ONCE, true},  {RESET_BY_PEER, true},  {COMPLETED_AFTER_ALL, true},
};

/* Streams end while the program keeps what they brought, more altogether than the connection's window. What comes then on
   another stream comes all the same. */
static void what_streams_kept_comes_back(const void *row) {
    enum { EACH = 20000, STREAMS = 40, SIZE = 1 << 20 };
    const struct kept_row *how = row;
    pair *ends = connect_keeper(how->several, 4 * WINDOW, NULL);
    for (unsigned number = 1; number <= STREAMS; number++) {
        both it = with_stream(ends, number);
        send_pattern(it.sender, 0, EACH, 1, QUIC_SEND_FLAG_NONE);
        WAIT_UNTIL(how->several ? it.receiver->pending == EACH : it.receiver->pending > 0);
        settle(it.receiver->handle);
        end_with_something_kept(&it, how->way);
    }
    both last = with_stream(ends, STREAMS + 1);
    send_pattern(last.sender, 0, SIZE, 1, QUIC_SEND_FLAG_FIN);
    finish_receive(last.receiver);
    CHECK_EQUAL(SIZE, last.receiver->received);
    close_stream(last.sender);
    close_pair(ends);
}

void declare_flow_control(void) {
    static const bool either[] = {false, true};
    static const uint64_t parts[] = {1, 70, SINGLE_BYTES};
    for (size_t i = 0; i < sizeof(either) / sizeof(*either); i++) {
        add_case(CASE_ORDINARY, no_more_than_the_window_waits, &either[i],
                 "flow_control/no_more_than_the_window_waits/%s", either[i] ? "several" : "one");
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        add_case(CASE_ORDINARY, single_bytes_wait, &parts[i], "flow_control/single_bytes_wait/by_%llu",
                 (unsigned long long)parts[i]);
    }
    for (size_t i = 0; i < sizeof(kept_rows) / sizeof(*kept_rows); i++) {
        add_case(CASE_ORDINARY, what_streams_kept_comes_back, &kept_rows[i], "flow_control/%s/%s",
                 way_names[kept_rows[i].way], kept_rows[i].several ? "several" : "one");
    }
}
