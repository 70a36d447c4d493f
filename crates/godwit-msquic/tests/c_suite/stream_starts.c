/* How streams start: flags, limits, before the connection does, ids, counts of what is allowed. */
#include "suite.h"

enum { IMMEDIATE = QUIC_STREAM_START_FLAG_IMMEDIATE };

static pair *pair_with_limit(uint16_t limit) {
    pair_options options = usual_options();
    options.server.PeerBidiStreamCount = limit;
    options.server.PeerUnidiStreamCount = limit;
    return connected_pair(&options);
}

typedef struct start_row {
    const char *name;
    QUIC_STREAM_START_FLAGS flags;
    uint16_t limit;
    QUIC_STATUS expected;
    bool accepted;
    bool over;
} start_row;

static const start_row start_rows[] = {
    {"none", 0, 1, QUIC_STATUS_SUCCESS, true, false},
    {"immediate", IMMEDIATE, 1, QUIC_STATUS_SUCCESS, true, false},
    {"priority_work", QUIC_STREAM_START_FLAG_PRIORITY_WORK, 1, QUIC_STATUS_SUCCESS, true, false},
    {"indicate_peer_accept", QUIC_STREAM_START_FLAG_INDICATE_PEER_ACCEPT, 1, QUIC_STATUS_SUCCESS, true, false},
    {"fail_blocked_free", QUIC_STREAM_START_FLAG_FAIL_BLOCKED, 1, QUIC_STATUS_SUCCESS, true, false},
    {"blocked", 0, 0, QUIC_STATUS_SUCCESS, false, false},
    {"blocked_immediate", IMMEDIATE, 0, QUIC_STATUS_SUCCESS, false, false},
    {"fail_blocked", QUIC_STREAM_START_FLAG_FAIL_BLOCKED, 0, QUIC_STATUS_STREAM_LIMIT_REACHED, false, false},
    {"fail_blocked_shutdown", QUIC_STREAM_START_FLAG_FAIL_BLOCKED | QUIC_STREAM_START_FLAG_SHUTDOWN_ON_FAIL, 0,
     QUIC_STATUS_STREAM_LIMIT_REACHED, false, true},
    {"all_flags_free", 0x1f, 1, QUIC_STATUS_SUCCESS, true, false},
    {"all_flags_blocked", 0x1f, 0, QUIC_STATUS_STREAM_LIMIT_REACHED, false, true},
};

static void starts_with_flags(const void *row) {
    const start_row *it = row;
    pair *ends = pair_with_limit(it->limit);
    stream *client = open_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE);
    CHECK_PENDING(api->StreamStart(client->handle, it->flags));
    event started = WAIT_EVENT(client, QUIC_STREAM_EVENT_START_COMPLETE);
    CHECK_STATUS(it->expected, started.status);
    CHECK_EQUAL(it->accepted, started.first);
    if (it->expected == QUIC_STATUS_SUCCESS) {
        CHECK_EQUAL(0, started.code);
        CHECK_STATUS(QUIC_STATUS_INVALID_STATE, api->StreamStart(client->handle, it->flags));
    }
    if (it->accepted && it->flags & IMMEDIATE) accepted_stream(ends->server, 1);
    if (it->over) {
        WAIT_EVENT(client, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
        CHECK_ORDER(client, QUIC_STREAM_EVENT_START_COMPLETE, QUIC_STREAM_EVENT_SEND_SHUTDOWN_COMPLETE);
    } else {
        CHECK_NO_EVENT(client, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    }
    close_stream(client);
    close_pair(ends);
}

/* Without IMMEDIATE and data there is nothing to say about a stream. */
static void a_silent_start_is_not_seen(const void *row) {
    (void)row;
    pair *ends = usual_pair();
    stream *first = start_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE, QUIC_STREAM_START_FLAG_NONE);
    stream *second = start_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_UNIDIRECTIONAL, IMMEDIATE);
    stream *seen = accepted_stream(ends->server, 1);
    CHECK_EQUAL(2, seen->id);
    WAIT_EVENT(ends->server, QUIC_CONNECTION_EVENT_PEER_STREAM_STARTED);
    CHECK_EQUAL(1, COUNT_EVENTS(ends->server, QUIC_CONNECTION_EVENT_PEER_STREAM_STARTED));
    close_stream(first);
    close_stream(second);
    close_pair(ends);
}

static void a_blocked_stream_starts_when_another_has_ended(const void *row) {
    (void)row;
    pair *ends = pair_with_limit(1);
    stream *first = start_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE, IMMEDIATE);
    stream *blocked = start_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE,
                                   IMMEDIATE | QUIC_STREAM_START_FLAG_INDICATE_PEER_ACCEPT);
    CHECK(!WAIT_EVENT(blocked, QUIC_STREAM_EVENT_START_COMPLETE).first);
    CHECK(WAIT_EVENT(ends->server, QUIC_CONNECTION_EVENT_PEER_NEEDS_STREAMS).first);
    CHECK_NO_EVENT(blocked, QUIC_STREAM_EVENT_PEER_ACCEPTED);
    CHECK_PENDING(api->StreamShutdown(first->handle, QUIC_STREAM_SHUTDOWN_FLAG_ABORT, 0));
    CHECK_PENDING(api->StreamShutdown(
        accepted_stream(ends->server, 1)->handle, QUIC_STREAM_SHUTDOWN_FLAG_ABORT, 0));
    WAIT_EVENT(blocked, QUIC_STREAM_EVENT_PEER_ACCEPTED);
    CHECK_EQUAL(4, accepted_stream(ends->server, 2)->id);
    close_stream(first);
    close_stream(blocked);
    close_pair(ends);
}

static void a_blocked_stream_starts_when_more_are_allowed(const void *row) {
    QUIC_STREAM_OPEN_FLAGS flags = *(const QUIC_STREAM_OPEN_FLAGS *)row;
    QUIC_SETTINGS more = {.IsSetFlags = 0};
    pair *ends = pair_with_limit(0);
    stream *blocked =
        start_stream(&ends->client, flags, IMMEDIATE | QUIC_STREAM_START_FLAG_INDICATE_PEER_ACCEPT);
    CHECK_EQUAL(!(flags & QUIC_STREAM_OPEN_FLAG_UNIDIRECTIONAL),
                WAIT_EVENT(ends->server, QUIC_CONNECTION_EVENT_PEER_NEEDS_STREAMS).first);
    SET(more, PeerBidiStreamCount, 2);
    SET(more, PeerUnidiStreamCount, 2);
    CHECK_OK(api->SetParam(ends->server->handle, QUIC_PARAM_CONN_SETTINGS, sizeof(more), &more));
    WAIT_EVENT(blocked, QUIC_STREAM_EVENT_PEER_ACCEPTED);
    CHECK_EQUAL(blocked->id, accepted_stream(ends->server, 1)->id);
    close_stream(blocked);
    close_pair(ends);
}

/* The peer is asked again for each stream that is started in vain. */
static void each_blocked_stream_is_wanted(const void *row) {
    (void)row;
    stream *blocked[3];
    pair *ends = pair_with_limit(0);
    for (unsigned i = 0; i < 3; i++) {
        blocked[i] = start_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE, IMMEDIATE);
        WAIT_EVENTS(ends->server, QUIC_CONNECTION_EVENT_PEER_NEEDS_STREAMS, i + 1);
    }
    for (unsigned i = 0; i < 3; i++) close_stream(blocked[i]);
    close_pair(ends);
}

static void streams_have_the_ids_of_their_kind(const void *row) {
    (void)row;
    pair *ends = usual_pair();
    connection *const openers[] = {&ends->client, ends->server};
    for (unsigned kind = 0; kind < 4; kind++) {
        QUIC_STREAM_OPEN_FLAGS flags =
            kind & 2 ? QUIC_STREAM_OPEN_FLAG_UNIDIRECTIONAL : QUIC_STREAM_OPEN_FLAG_NONE;
        for (unsigned i = 0; i < 3; i++) {
            stream *it = start_stream(openers[kind & 1], flags, IMMEDIATE);
            CHECK_EQUAL(kind + 4 * i, WAIT_EVENT(it, QUIC_STREAM_EVENT_START_COMPLETE).code);
            stream *peer = accepted_stream(kind & 1 ? &ends->client : ends->server, (kind / 2) * 3 + i + 1);
            CHECK_EQUAL(kind + 4 * i, peer->id);
            close_stream(it);
        }
        event seen = WAIT_EVENTS(kind & 1 ? &ends->client : ends->server, QUIC_CONNECTION_EVENT_PEER_STREAM_STARTED,
                                 (kind / 2) * 3 + 1);
        CHECK_EQUAL(flags, seen.code);
    }
    close_pair(ends);
}

static void before_the_connection_starts(const void *row) {
    bool sends = *(const bool *)row;
    pair_options options = usual_options();
    pair *ends = open_pair(&options);
    stream *it = open_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE);
    if (sends) {
        send_pattern(it, 0, 2000, 2, QUIC_SEND_FLAG_START | QUIC_SEND_FLAG_FIN);
    } else {
        CHECK_PENDING(api->StreamStart(it->handle, IMMEDIATE));
    }
    CHECK_OK(WAIT_EVENT(it, QUIC_STREAM_EVENT_START_COMPLETE).status);
    connect_pair(ends);
    stream *server = accepted_stream(ends->server, 1);
    if (sends) {
        WAIT_EVENT(server, QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN);
        CHECK_EQUAL(2000, server->received);
    }
    close_stream(it);
    close_pair(ends);
}

static void after_the_own_shutdown(const void *row) {
    (void)row;
    HQUIC made;
    pair *ends = usual_pair();
    stream *opened = open_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE);
    api->ConnectionShutdown(ends->client.handle, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 1);
    WAIT_EVENT(&ends->client, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    CHECK_STATUS(QUIC_STATUS_INVALID_STATE,
                 api->StreamOpen(ends->client.handle, QUIC_STREAM_OPEN_FLAG_NONE, on_stream_event, NULL, &made));
    close_stream(opened);
    close_pair(ends);
}

static void after_the_shutdown_of_the_peer(const void *row) {
    (void)row;
    HQUIC made;
    pair *ends = usual_pair();
    stream *opened = open_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE);
    api->ConnectionShutdown(ends->server->handle, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 1);
    WAIT_EVENT(&ends->client, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    CHECK_STATUS(QUIC_STATUS_ABORTED,
                 api->StreamOpen(ends->client.handle, QUIC_STREAM_OPEN_FLAG_NONE, on_stream_event, NULL, &made));
    CHECK_STATUS(QUIC_STATUS_ABORTED, api->StreamStart(opened->handle, QUIC_STREAM_START_FLAG_NONE));
    close_stream(opened);
    close_pair(ends);
}

static void a_stream_stands_for_its_connection(const void *row) {
    (void)row;
    pair *ends = usual_pair();
    stream *first = open_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE);
    stream *second = keep(sizeof(*second));
    second->of = &ends->client;
    CHECK_OK(api->StreamOpen(first->handle, QUIC_STREAM_OPEN_FLAG_NONE, on_stream_event, second, &second->handle));
    CHECK_PENDING(api->StreamStart(second->handle, IMMEDIATE));
    accepted_stream(ends->server, 1);
    api->ConnectionShutdown(first->handle, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 55);
    CHECK_EQUAL(55, WAIT_EVENT(ends->server, QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_PEER).code);
    close_stream(first);
    close_stream(second);
    close_pair(ends);
}

static void counts_of_streams_are_told(const void *row) {
    (void)row;
    uint16_t count;
    uint64_t ids[4];
    uint32_t length = sizeof(count);
    pair *ends = pair_with_limit(7);
    CHECK_EQUAL(7, WAIT_EVENT(&ends->client, QUIC_CONNECTION_EVENT_STREAMS_AVAILABLE).code);
    CHECK_OK(api->GetParam(ends->client.handle, QUIC_PARAM_CONN_LOCAL_BIDI_STREAM_COUNT, &length, &count));
    CHECK_EQUAL(7, count);
    stream *it = start_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE, IMMEDIATE);
    WAIT_EVENT(it, QUIC_STREAM_EVENT_START_COMPLETE);
    CHECK_OK(api->GetParam(ends->client.handle, QUIC_PARAM_CONN_LOCAL_BIDI_STREAM_COUNT, &length, &count));
    CHECK_EQUAL(6, count);
    CHECK_OK(api->GetParam(ends->client.handle, QUIC_PARAM_CONN_LOCAL_UNIDI_STREAM_COUNT, &length, &count));
    CHECK_EQUAL(7, count);
    length = sizeof(ids);
    /* Client and server, bidirectional; client and server, unidirectional. */
    CHECK_OK(api->GetParam(ends->client.handle, QUIC_PARAM_CONN_MAX_STREAM_IDS, &length, ids));
    CHECK_EQUAL(7 * 4, ids[0]);
    CHECK_EQUAL(10 * 4 + 1, ids[1]);
    CHECK_EQUAL(7 * 4 + 2, ids[2]);
    CHECK_EQUAL(10 * 4 + 3, ids[3]);
    close_stream(it);
    close_pair(ends);
}

/* A stream that delays its place for others keeps it until it is closed. */
static QUIC_STATUS delay_updates(connection *of, QUIC_CONNECTION_EVENT *what) {
    (void)of;
    if (what->Type == QUIC_CONNECTION_EVENT_PEER_STREAM_STARTED) {
        what->PEER_STREAM_STARTED.Flags |= QUIC_STREAM_OPEN_FLAG_DELAY_ID_FC_UPDATES;
    }
    return HOOK_DEFAULT;
}

static void prepare_to_end(stream *it) { it->ends_by_itself = true; }

static void a_place_is_free_when_the_stream_is_closed(const void *row) {
    (void)row;
    pair_options options = usual_options();
    options.server.PeerBidiStreamCount = 1;
    options.on_server = delay_updates;
    options.prepare_server_stream = prepare_to_end;
    pair *ends = connected_pair(&options);
    stream *first = open_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE);
    send_pattern(first, 0, 100, 1, QUIC_SEND_FLAG_START | QUIC_SEND_FLAG_FIN);
    stream *server = accepted_stream(ends->server, 1);
    WAIT_EVENT(first, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    WAIT_EVENT(server, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    stream *second = start_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE, IMMEDIATE);
    let_things_happen(50);
    CHECK_EQUAL(1, COUNT_EVENTS(ends->server, QUIC_CONNECTION_EVENT_PEER_STREAM_STARTED));
    close_stream(server);
    accepted_stream(ends->server, 2);
    close_stream(first);
    close_stream(second);
    close_pair(ends);
}

void declare_stream_starts(void) {
    static const bool both[] = {false, true};
    static const QUIC_STREAM_OPEN_FLAGS kinds[] = {QUIC_STREAM_OPEN_FLAG_NONE, QUIC_STREAM_OPEN_FLAG_UNIDIRECTIONAL};
    for (size_t i = 0; i < sizeof(start_rows) / sizeof(*start_rows); i++) {
        add_case(CASE_ORDINARY, starts_with_flags, &start_rows[i], "stream_starts/flags/%s", start_rows[i].name);
    }
    for (size_t i = 0; i < 2; i++) {
        add_case(CASE_ORDINARY, before_the_connection_starts, &both[i], "stream_starts/early/%s",
                 both[i] ? "with_data" : "immediate");
        add_case(CASE_ORDINARY, a_blocked_stream_starts_when_more_are_allowed, &kinds[i],
                 "stream_starts/more_allowed/%u", kinds[i]);
    }
#define ADD(body) add_case(CASE_ORDINARY, body, NULL, "stream_starts/%s", #body)
    ADD(a_silent_start_is_not_seen);
    ADD(a_blocked_stream_starts_when_another_has_ended);
    ADD(each_blocked_stream_is_wanted);
    ADD(streams_have_the_ids_of_their_kind);
    ADD(after_the_own_shutdown);
    ADD(after_the_shutdown_of_the_peer);
    ADD(a_stream_stands_for_its_connection);
    ADD(counts_of_streams_are_told);
    ADD(a_place_is_free_when_the_stream_is_closed);
#undef ADD
}
