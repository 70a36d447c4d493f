/* How streams end: aborted by either side, stopped, closed while open, shut down before they start. */
#include "suite.h"

#include "relay.h"

static void prepare_nothing(stream *it) { (void)it; }

/* A stream of the client on which the server has received something. */
typedef struct both {
    pair *ends;
    stream *client;
    stream *server;
} both;

static both open_both(QUIC_STREAM_OPEN_FLAGS flags) {
    both it;
    pair_options options = usual_options();
    options.prepare_server_stream = prepare_nothing;
    it.ends = connected_pair(&options);
    it.client = start_stream(&it.ends->client, flags, QUIC_STREAM_START_FLAG_NONE);
    send_pattern(it.client, 0, 1000, 1, QUIC_SEND_FLAG_NONE);
    it.server = accepted_stream(it.ends->server, 1);
    WAIT_EVENT(it.server, QUIC_STREAM_EVENT_RECEIVE);
    return it;
}

static void close_both(both *it) {
    close_stream(it->client);
    close_pair(it->ends);
}

typedef struct abort_row {
    const char *name;
    QUIC_STREAM_SHUTDOWN_FLAGS flags;
    bool by_server;
    uint64_t code;
} abort_row;

static const abort_row abort_rows[] = {
    {"send_by_client", QUIC_STREAM_SHUTDOWN_FLAG_ABORT_SEND, false, 11},
    {"send_by_server", QUIC_STREAM_SHUTDOWN_FLAG_ABORT_SEND, true, 12},
    {"receive_by_client", QUIC_STREAM_SHUTDOWN_FLAG_ABORT_RECEIVE, false, 13},
    {"receive_by_server", QUIC_STREAM_SHUTDOWN_FLAG_ABORT_RECEIVE, true, 14},
    {"both_by_client", QUIC_STREAM_SHUTDOWN_FLAG_ABORT, false, 15},
    {"both_by_server", QUIC_STREAM_SHUTDOWN_FLAG_ABORT, true, 16},
    {"largest_code", QUIC_STREAM_SHUTDOWN_FLAG_ABORT, false, QUIC_UINT62_MAX},
    {"no_code", QUIC_STREAM_SHUTDOWN_FLAG_ABORT, true, 0},
    {"immediate_by_client", QUIC_STREAM_SHUTDOWN_FLAG_ABORT | QUIC_STREAM_SHUTDOWN_FLAG_IMMEDIATE, false, 17},
    {"immediate_by_server", QUIC_STREAM_SHUTDOWN_FLAG_ABORT | QUIC_STREAM_SHUTDOWN_FLAG_IMMEDIATE, true, 18},
};

static void aborting_is_told(const void *row) {
    const abort_row *it = row;
    both streams = open_both(QUIC_STREAM_OPEN_FLAG_NONE);
    stream *own = it->by_server ? streams.server : streams.client;
    stream *peer = it->by_server ? streams.client : streams.server;
    CHECK_PENDING(api->StreamShutdown(own->handle, it->flags, it->code));
    if (it->flags & QUIC_STREAM_SHUTDOWN_FLAG_ABORT_SEND) {
        CHECK_EQUAL(it->code, WAIT_EVENT(peer, QUIC_STREAM_EVENT_PEER_SEND_ABORTED).code);
        CHECK(!WAIT_EVENT(own, QUIC_STREAM_EVENT_SEND_SHUTDOWN_COMPLETE).first);
    }
    if (it->flags & QUIC_STREAM_SHUTDOWN_FLAG_ABORT_RECEIVE) {
        CHECK_EQUAL(it->code, WAIT_EVENT(peer, QUIC_STREAM_EVENT_PEER_RECEIVE_ABORTED).code);
    }
    if (COUNT_EVENTS(peer, QUIC_STREAM_EVENT_PEER_SEND_ABORTED) && COUNT_EVENTS(peer, QUIC_STREAM_EVENT_PEER_RECEIVE_ABORTED)) {
        CHECK_ORDER(peer, QUIC_STREAM_EVENT_PEER_SEND_ABORTED, QUIC_STREAM_EVENT_PEER_RECEIVE_ABORTED);
    }
    if (it->flags & QUIC_STREAM_SHUTDOWN_FLAG_IMMEDIATE) WAIT_EVENT(own, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    CHECK_NO_EVENT(peer, QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN);
    close_both(&streams);
}

/* When both have ended both directions, the stream is over at both. */
static void aborting_by_both_ends_the_stream(const void *row) {
    bool first_server = *(const bool *)row;
    both streams = open_both(QUIC_STREAM_OPEN_FLAG_NONE);
    stream *first = first_server ? streams.server : streams.client;
    stream *second = first_server ? streams.client : streams.server;
    CHECK_PENDING(api->StreamShutdown(first->handle, QUIC_STREAM_SHUTDOWN_FLAG_ABORT, 5));
    WAIT_EVENT(second, QUIC_STREAM_EVENT_PEER_RECEIVE_ABORTED);
    CHECK_PENDING(api->StreamShutdown(second->handle, QUIC_STREAM_SHUTDOWN_FLAG_ABORT, 6));
    WAIT_EVENT(first, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    WAIT_EVENT(second, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    /* Who has stopped listening is not told what the other did then. */
    CHECK_NO_EVENT(first, QUIC_STREAM_EVENT_PEER_SEND_ABORTED);
    close_both(&streams);
}

static void a_stopped_sender_cannot_send(const void *row) {
    (void)row;
    QUIC_STATUS status;
    both streams = open_both(QUIC_STREAM_OPEN_FLAG_NONE);
    CHECK_PENDING(api->StreamShutdown(streams.server->handle, QUIC_STREAM_SHUTDOWN_FLAG_ABORT_RECEIVE, 21));
    WAIT_EVENT(streams.client, QUIC_STREAM_EVENT_PEER_RECEIVE_ABORTED);
    WAIT_EVENT(streams.client, QUIC_STREAM_EVENT_SEND_SHUTDOWN_COMPLETE);
    try_send(streams.client, 1000, 10, 1, QUIC_SEND_FLAG_NONE, &status);
    CHECK_STATUS(QUIC_STATUS_ABORTED, status);
    close_both(&streams);
}

static void nothing_is_sent_after_the_end(const void *row) {
    (void)row;
    QUIC_STATUS status;
    both streams = open_both(QUIC_STREAM_OPEN_FLAG_NONE);
    send_pattern(streams.client, 1000, 10, 1, QUIC_SEND_FLAG_FIN);
    WAIT_EVENT(streams.client, QUIC_STREAM_EVENT_SEND_SHUTDOWN_COMPLETE);
    try_send(streams.client, 1010, 10, 1, QUIC_SEND_FLAG_NONE, &status);
    CHECK_STATUS(QUIC_STATUS_INVALID_STATE, status);
    close_both(&streams);
}

/* Sending that was given up is over when the peer knows. */
static void an_abort_is_over_when_the_peer_knows(const void *row) {
    (void)row;
    pair_options options = usual_options();
    SET(options.client, InitialRttMs, 30);
    pair *ends = open_pair(&options);
    relay *through = start_relay(ends->port);
    ends->port = through->port;
    connect_pair(ends);
    stream *given_up = open_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_UNIDIRECTIONAL);
    send_pattern(given_up, 0, 10, 1, QUIC_SEND_FLAG_START);
    accepted_stream(ends->server, 1);
    atomic_store(&through->lose_to_server, true);
    CHECK_PENDING(api->StreamShutdown(given_up->handle, QUIC_STREAM_SHUTDOWN_FLAG_ABORT_SEND, 7));
    let_things_happen(100);
    CHECK_NO_EVENT(given_up, QUIC_STREAM_EVENT_SEND_SHUTDOWN_COMPLETE);
    atomic_store(&through->lose_to_server, false);
    CHECK(!WAIT_EVENT(given_up, QUIC_STREAM_EVENT_SEND_SHUTDOWN_COMPLETE).first);
    CHECK_EQUAL(7, WAIT_EVENT(accepted_stream(ends->server, 1), QUIC_STREAM_EVENT_PEER_SEND_ABORTED).code);
    WAIT_EVENT(given_up, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    close_stream(given_up);
    close_pair(ends);
}

static void nothing_is_sent_after_an_abort(const void *row) {
    (void)row;
    QUIC_STATUS status;
    both streams = open_both(QUIC_STREAM_OPEN_FLAG_NONE);
    CHECK_PENDING(api->StreamShutdown(streams.client->handle, QUIC_STREAM_SHUTDOWN_FLAG_ABORT_SEND, 1));
    WAIT_EVENT(streams.client, QUIC_STREAM_EVENT_SEND_SHUTDOWN_COMPLETE);
    try_send(streams.client, 1000, 10, 1, QUIC_SEND_FLAG_NONE, &status);
    CHECK_STATUS(QUIC_STATUS_INVALID_STATE, status);
    close_both(&streams);
}

/* Closing an open stream aborts it with the code 0, and the last event comes within the call. */
static void closing_aborts(const void *row) {
    bool by_server = *(const bool *)row;
    both streams = open_both(QUIC_STREAM_OPEN_FLAG_NONE);
    stream *own = by_server ? streams.server : streams.client;
    stream *peer = by_server ? streams.client : streams.server;
    close_stream(own);
    CHECK(WAIT_EVENT(own, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE).second);
    CHECK_ORDER(own, QUIC_STREAM_EVENT_SEND_SHUTDOWN_COMPLETE, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    CHECK_EQUAL(0, WAIT_EVENT(peer, QUIC_STREAM_EVENT_PEER_SEND_ABORTED).code);
    CHECK_EQUAL(0, WAIT_EVENT(peer, QUIC_STREAM_EVENT_PEER_RECEIVE_ABORTED).code);
    close_both(&streams);
}

static QUIC_STATUS close_when_over(stream *of, QUIC_STREAM_EVENT *what) {
    if (what->Type != QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE) return HOOK_DEFAULT;
    api->StreamClose(of->handle);
    lock_suite();
    of->events.closed = true;
    suite_changed();
    unlock_suite();
    return QUIC_STATUS_SUCCESS;
}

static void close_in_the_last_event(stream *it) {
    it->hook = close_when_over;
    it->ends_by_itself = true;
}

static void streams_are_closed_in_their_last_event(const void *row) {
    (void)row;
    pair_options options = usual_options();
    options.prepare_server_stream = close_in_the_last_event;
    pair *ends = connected_pair(&options);
    stream *client = start_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE, QUIC_STREAM_START_FLAG_NONE);
    client->hook = close_when_over;
    send_pattern(client, 0, 3000, 1, QUIC_SEND_FLAG_FIN);
    stream *server = accepted_stream(ends->server, 1);
    WAIT_UNTIL(client->events.closed && server->events.closed);
    close_pair(ends);
}

/* ---- Closing in other callbacks ---- */

static uint32_t close_in_type;

static QUIC_STATUS close_in_that_event(stream *of, QUIC_STREAM_EVENT *what) {
    if (what->Type != close_in_type || of->user) return HOOK_DEFAULT;
    of->user = of;
    api->StreamClose(of->handle);
    lock_suite();
    of->events.closed = true;
    suite_changed();
    unlock_suite();
    return QUIC_STATUS_SUCCESS;
}

static void prepare_to_close(stream *it) {
    it->hook = close_in_that_event;
    it->ends_by_itself = true;
}

static void is_closed_in_a_callback_of_the_receiver(const void *row) {
    close_in_type = *(const uint32_t *)row;
    pair_options options = usual_options();
    options.prepare_server_stream = prepare_to_close;
    pair *ends = connected_pair(&options);
    stream *client = start_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE, QUIC_STREAM_START_FLAG_NONE);
    send_pattern(client, 0, 1000, 1, QUIC_SEND_FLAG_FIN);
    stream *server = accepted_stream(ends->server, 1);
    WAIT_UNTIL(server->events.closed);
    CHECK(WAIT_EVENT(server, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE).second ||
          close_in_type == QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    close_stream(client);
    close_pair(ends);
}

static void is_closed_in_a_callback_of_the_sender(const void *row) {
    close_in_type = *(const uint32_t *)row;
    pair_options options = usual_options();
    options.prepare_server_stream = close_in_the_last_event;
    pair *ends = connected_pair(&options);
    stream *client = open_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE);
    client->hook = close_in_that_event;
    CHECK_PENDING(api->StreamStart(client->handle, QUIC_STREAM_START_FLAG_IMMEDIATE));
    if (close_in_type != QUIC_STREAM_EVENT_START_COMPLETE) {
        send_pattern(client, 0, 1000, 1, QUIC_SEND_FLAG_FIN);
    }
    WAIT_UNTIL(client->events.closed);
    close_pair(ends);
}

/* ---- Before the start ---- */

static void closed_before_the_start(const void *row) {
    bool connected = *(const bool *)row;
    pair_options options = usual_options();
    pair *ends = connected ? connected_pair(&options) : open_pair(&options);
    stream *it = open_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE);
    close_stream(it);
    CHECK_EQUAL(0, performance_counter(QUIC_PERF_COUNTER_STRM_ACTIVE));
    close_pair(ends);
}

static void what_waits_for_the_start_is_canceled(const void *row) {
    (void)row;
    pair *ends = usual_pair();
    stream *it = open_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE);
    send_record *record = send_pattern(it, 0, 100, 1, QUIC_SEND_FLAG_NONE);
    close_stream(it);
    CHECK(record->completed && record->canceled);
    close_pair(ends);
}

static void shut_down_before_the_start(const void *row) {
    (void)row;
    pair *ends = usual_pair();
    stream *it = open_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE);
    CHECK_PENDING(api->StreamShutdown(it->handle, QUIC_STREAM_SHUTDOWN_FLAG_ABORT, 31));
    CHECK_PENDING(api->StreamStart(it->handle, QUIC_STREAM_START_FLAG_NONE));
    stream *server = accepted_stream(ends->server, 1);
    CHECK_EQUAL(31, WAIT_EVENT(server, QUIC_STREAM_EVENT_PEER_SEND_ABORTED).code);
    close_stream(it);
    close_pair(ends);
}

/* ---- From another thread ---- */

static void *close_elsewhere(void *context) {
    close_stream(context);
    return NULL;
}

static void closed_by_another_thread(const void *row) {
    (void)row;
    pthread_t thread;
    both streams = open_both(QUIC_STREAM_OPEN_FLAG_NONE);
    CHECK(pthread_create(&thread, NULL, close_elsewhere, streams.client) == 0);
    pthread_join(thread, NULL);
    WAIT_EVENT(streams.server, QUIC_STREAM_EVENT_PEER_SEND_ABORTED);
    close_both(&streams);
}

static void unidirectional_ends_have_one_direction(const void *row) {
    (void)row;
    QUIC_STATUS status;
    both streams = open_both(QUIC_STREAM_OPEN_FLAG_UNIDIRECTIONAL);
    try_send(streams.server, 0, 10, 1, QUIC_SEND_FLAG_NONE, &status);
    CHECK_STATUS(QUIC_STATUS_INVALID_STATE, status);
    CHECK_PENDING(api->StreamShutdown(streams.client->handle, QUIC_STREAM_SHUTDOWN_FLAG_ABORT_SEND, 9));
    WAIT_EVENT(streams.server, QUIC_STREAM_EVENT_PEER_SEND_ABORTED);
    WAIT_EVENT(streams.server, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    WAIT_EVENT(streams.client, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    close_both(&streams);
}

void declare_stream_ends(void) {
    static const bool sides[] = {false, true};
    static const uint32_t receiving[] = {QUIC_STREAM_EVENT_RECEIVE, QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN,
                                         QUIC_STREAM_EVENT_SEND_SHUTDOWN_COMPLETE, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE};
    static const uint32_t sending[] = {QUIC_STREAM_EVENT_START_COMPLETE, QUIC_STREAM_EVENT_SEND_COMPLETE,
                                       QUIC_STREAM_EVENT_SEND_SHUTDOWN_COMPLETE, QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN,
                                       QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE};
    for (size_t i = 0; i < sizeof(abort_rows) / sizeof(*abort_rows); i++) {
        add_case(CASE_ORDINARY, aborting_is_told, &abort_rows[i], "stream_ends/abort/%s", abort_rows[i].name);
    }
    for (size_t i = 0; i < 2; i++) {
        const char *side = sides[i] ? "server" : "client";
        add_case(CASE_ORDINARY, aborting_by_both_ends_the_stream, &sides[i], "stream_ends/abort_both/%s_first", side);
        add_case(CASE_ORDINARY, closing_aborts, &sides[i], "stream_ends/close_open/%s", side);
        add_case(CASE_ORDINARY, closed_before_the_start, &sides[i], "stream_ends/close_unstarted/%s",
                 sides[i] ? "connected" : "fresh");
    }
    for (size_t i = 0; i < sizeof(receiving) / sizeof(*receiving); i++) {
        add_case(CASE_ORDINARY, is_closed_in_a_callback_of_the_receiver, &receiving[i],
                 "stream_ends/close_in_callback/receiver_%u", receiving[i]);
    }
    for (size_t i = 0; i < sizeof(sending) / sizeof(*sending); i++) {
        add_case(CASE_ORDINARY, is_closed_in_a_callback_of_the_sender, &sending[i],
                 "stream_ends/close_in_callback/sender_%u", sending[i]);
    }
#define ADD(body) add_case(CASE_ORDINARY, body, NULL, "stream_ends/%s", #body)
    ADD(a_stopped_sender_cannot_send);
    ADD(nothing_is_sent_after_the_end);
    ADD(an_abort_is_over_when_the_peer_knows);
    ADD(nothing_is_sent_after_an_abort);
    ADD(streams_are_closed_in_their_last_event);
    ADD(what_waits_for_the_start_is_canceled);
    ADD(shut_down_before_the_start);
    ADD(closed_by_another_thread);
    ADD(unidirectional_ends_have_one_direction);
#undef ADD
}
