/* What is left when handles are closed, refused or fought over. */
#include "suite.h"

static QUIC_STATUS shut_down_and_refuse(listener *of, QUIC_LISTENER_EVENT *what) {
    (void)of;
    if (what->Type != QUIC_LISTENER_EVENT_NEW_CONNECTION) return HOOK_DEFAULT;
    api->ConnectionShutdown(what->NEW_CONNECTION.Connection, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 11);
    return QUIC_STATUS_CONNECTION_REFUSED;
}

/* A connection that is shut down and then refused leaves nothing that its registration would wait for. */
static void refused_after_its_shutdown(const void *row) {
    (void)row;
    pair_options options = usual_options();
    options.on_listener = shut_down_and_refuse;
    pair *it = open_pair(&options);
    CHECK_PENDING(start_client(it));
    WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    close_pair(it);
}

static QUIC_STATUS shut_down_when_connected(connection *of, QUIC_CONNECTION_EVENT *what) {
    if (what->Type != QUIC_CONNECTION_EVENT_CONNECTED) return HOOK_DEFAULT;
    api->ConnectionShutdown(of->handle, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 12);
    return HOOK_DEFAULT;
}

/* Who closes as soon as it is connected says what it has received: both ends have something to tell of the network. */
static void closed_as_soon_as_connected(const void *row) {
    (void)row;
    pair_options options = usual_options();
    SET(options.client, NetStatsEventEnabled, 1);
    SET(options.server, NetStatsEventEnabled, 1);
    options.on_client = shut_down_when_connected;
    pair *it = open_pair(&options);
    CHECK_PENDING(start_client(it));
    WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    connection *server = wait_server(it);
    CHECK_EQUAL(12, WAIT_EVENT(server, QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_PEER).code);
    WAIT_EVENT(server, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    CHECK(COUNT_EVENTS(&it->client, QUIC_CONNECTION_EVENT_NETWORK_STATISTICS));
    CHECK(COUNT_EVENTS(server, QUIC_CONNECTION_EVENT_NETWORK_STATISTICS));
    close_pair(it);
}

/* A part of what was sent is to arrive although the stream is given up: not at the cost of memory that was given back. */
static void memory_comes_back_at_a_close(const void *row) {
    (void)row;
    pair_options options = usual_options();
    SET(options.server, SendBufferingEnabled, 0);
    SET(options.client, SendBufferingEnabled, 0);
    SET(options.server, ReliableResetEnabled, 1);
    SET(options.client, ReliableResetEnabled, 1);
    pair *it = connected_pair(&options);
    stream *from = start_stream(&it->client, QUIC_STREAM_OPEN_FLAG_NONE, QUIC_STREAM_START_FLAG_NONE);
    QUIC_STATUS status;
    send_record *record = try_send(from, 0, 100000, 1, QUIC_SEND_FLAG_NONE, &status);
    CHECK_STATUS(QUIC_STATUS_PENDING, status);
    uint64_t offset = 100000;
    CHECK_OK(api->SetParam(from->handle, QUIC_PARAM_STREAM_RELIABLE_OFFSET, sizeof(offset), &offset));
    api->StreamClose(from->handle);
    lock_suite();
    CHECK(record->completed);
    CHECK(from->events.over);
    unlock_suite();
    close_pair(it);
}

static QUIC_STATUS take_a_part(stream *of, QUIC_STREAM_EVENT *what) {
    if (what->Type != QUIC_STREAM_EVENT_RECEIVE) return HOOK_DEFAULT;
    what->RECEIVE.TotalBufferLength = 10;
    of->received += 10;
    return QUIC_STATUS_SUCCESS;
}

static QUIC_STATUS keep_all(stream *of, QUIC_STREAM_EVENT *what) {
    if (what->Type != QUIC_STREAM_EVENT_RECEIVE) return HOOK_DEFAULT;
    of->pending = what->RECEIVE.TotalBufferLength;
    return QUIC_STATUS_PENDING;
}

static void prepare_a_part(stream *it) { it->hook = take_a_part; }
static void prepare_all(stream *it) { it->hook = keep_all; }

typedef struct paused_row {
    const char *name;
    void (*prepare)(stream *it);
} paused_row;

static const paused_row paused_rows[] = {{"after_a_part", prepare_a_part}, {"while_kept", prepare_all}};

/* That the peer has given up is told also to who wants to be shown nothing at present. */
static void a_reset_is_told_all_the_same(const void *row) {
    const paused_row *it = row;
    pair_options options = usual_options();
    options.prepare_server_stream = it->prepare;
    pair *ends = connected_pair(&options);
    stream *from = start_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE, QUIC_STREAM_START_FLAG_NONE);
    /* So few bytes come in one packet. */
    send_pattern(from, 0, 100, 1, QUIC_SEND_FLAG_NONE);
    stream *to = accepted_stream(ends->server, 1);
    WAIT_EVENT(to, QUIC_STREAM_EVENT_RECEIVE);
    CHECK_PENDING(api->StreamShutdown(from->handle, QUIC_STREAM_SHUTDOWN_FLAG_ABORT, 7));
    CHECK_EQUAL(7, WAIT_EVENT(to, QUIC_STREAM_EVENT_PEER_SEND_ABORTED).code);
    close_stream(from);
    close_stream(to);
    close_pair(ends);
}

typedef struct start_at_once {
    pair *ends;
    HQUIC connection;
    QUIC_STATUS status;
} start_at_once;

static void *start(void *context) {
    start_at_once *it = context;
    it->status = api->ConnectionStart(it->connection, it->ends->client_configuration, QUIC_ADDRESS_FAMILY_UNSPEC,
                                      "127.0.0.1", it->ends->port);
    return NULL;
}

/* Of two threads that start the same connection, one does. */
static void is_started_once(const void *row) {
    (void)row;
    pair *ends = usual_pair();
    for (int i = 0; i < 20; i++) {
        connection *it = another_client(ends);
        start_at_once both[2] = {{ends, it->handle, 0}, {ends, it->handle, 0}};
        pthread_t threads[2];
        for (int k = 0; k < 2; k++) CHECK(!pthread_create(&threads[k], NULL, start, &both[k]));
        for (int k = 0; k < 2; k++) CHECK(!pthread_join(threads[k], NULL));
        CHECK((both[0].status == QUIC_STATUS_PENDING) != (both[1].status == QUIC_STATUS_PENDING));
        close_connection(it);
    }
    close_pair(ends);
}

static unsigned closed_by_themselves;

static QUIC_STATUS close_in_the_last_event(HQUIC stream, void *context, QUIC_STREAM_EVENT *what) {
    (void)context;
    if (what->Type != QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE) return QUIC_STATUS_SUCCESS;
    api->StreamClose(stream);
    lock_suite();
    closed_by_themselves++;
    suite_changed();
    unlock_suite();
    return QUIC_STATUS_SUCCESS;
}

static unsigned started_by_the_peer;

static QUIC_STATUS take_streams(connection *of, QUIC_CONNECTION_EVENT *what) {
    (void)of;
    if (what->Type != QUIC_CONNECTION_EVENT_PEER_STREAM_STARTED) return HOOK_DEFAULT;
    api->SetCallbackHandler(what->PEER_STREAM_STARTED.Stream, (void *)close_in_the_last_event, NULL);
    lock_suite();
    started_by_the_peer++;
    suite_changed();
    unlock_suite();
    return QUIC_STATUS_SUCCESS;
}

/* With their connection, many streams end at once, each of which is closed in its last event. */
static void many_streams_close_themselves(const void *row) {
    unsigned count = *(const unsigned *)row;
    pair_options options = usual_options();
    SET(options.server, PeerUnidiStreamCount, (uint16_t)count);
    options.on_server = take_streams;
    pair *it = connected_pair(&options);
    for (unsigned i = 0; i < count; i++) {
        HQUIC opened;
        CHECK_OK(api->StreamOpen(it->client.handle, QUIC_STREAM_OPEN_FLAG_UNIDIRECTIONAL, close_in_the_last_event, NULL, &opened));
        CHECK_PENDING(api->StreamStart(opened, QUIC_STREAM_START_FLAG_IMMEDIATE));
    }
    WAIT_UNTIL(started_by_the_peer == count);
    api->ConnectionShutdown(it->client.handle, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 1);
    WAIT_UNTIL(closed_by_themselves == 2 * count);
    close_pair(it);
}

void declare_closing(void) {
    static const unsigned counts[] = {1, 100, 900};
    for (size_t i = 0; i < 3; i++) {
        add_case(CASE_ORDINARY, many_streams_close_themselves, &counts[i], "closing/streams_close_themselves/%u", counts[i]);
    }
    for (size_t i = 0; i < sizeof(paused_rows) / sizeof(*paused_rows); i++) {
        add_case(CASE_ORDINARY, a_reset_is_told_all_the_same, &paused_rows[i], "closing/reset_is_told/%s",
                 paused_rows[i].name);
    }
#define ADD(body) add_case(CASE_ORDINARY, body, NULL, "closing/%s", #body)
    ADD(refused_after_its_shutdown);
    ADD(closed_as_soon_as_connected);
    ADD(memory_comes_back_at_a_close);
    ADD(is_started_once);
#undef ADD
}
