/* How connections end, and fail to begin: by either side, silently, by limits, refused, closed in callbacks. */
#include "suite.h"

#define TRANSPORT QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_TRANSPORT
#define PEER QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_PEER
#define COMPLETE QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE

/* ---- Refused or not reached ---- */

/* The client fails before it is connected: the status and the code that it is told. */
static void client_fails(pair *it, QUIC_STATUS status, uint64_t code) {
    CHECK_PENDING(start_client(it));
    event why = WAIT_EVENT(&it->client, TRANSPORT);
    CHECK_STATUS(status, why.status);
    CHECK_EQUAL(code, why.code);
    event last = WAIT_EVENT(&it->client, COMPLETE);
    CHECK(!last.first && !last.third);
    CHECK_NO_EVENT(&it->client, QUIC_CONNECTION_EVENT_CONNECTED);
    CHECK_ORDER(&it->client, TRANSPORT, COMPLETE);
}

static void no_protocol_in_common(const void *row) {
    (void)row;
    pair_options options = usual_options();
    options.client_alpn = "another";
    pair *it = open_pair(&options);
    client_fails(it, QUIC_STATUS_ALPN_NEG_FAILURE, 0x178);
    CHECK_NO_EVENT(&it->listener, QUIC_LISTENER_EVENT_NEW_CONNECTION);
    close_pair(it);
}

static QUIC_STATUS refusal;

static QUIC_STATUS refuse(listener *of, QUIC_LISTENER_EVENT *what) {
    (void)of;
    return what->Type == QUIC_LISTENER_EVENT_NEW_CONNECTION ? refusal : HOOK_DEFAULT;
}

/* Whatever the listener's callback fails with, the client is refused. */
static void refused_by_the_listener(const void *row) {
    refusal = *(const QUIC_STATUS *)row;
    pair_options options = usual_options();
    options.on_listener = refuse;
    pair *it = open_pair(&options);
    client_fails(it, QUIC_STATUS_CONNECTION_REFUSED, 2);
    close_pair(it);
}

static QUIC_STATUS shut_down_new(listener *of, QUIC_LISTENER_EVENT *what) {
    if (what->Type != QUIC_LISTENER_EVENT_NEW_CONNECTION) return HOOK_DEFAULT;
    connection *accepted = keep(sizeof(*accepted));
    accepted->handle = what->NEW_CONNECTION.Connection;
    accepted->server = true;
    api->SetCallbackHandler(accepted->handle, (void *)on_connection_event, accepted);
    api->ConnectionShutdown(accepted->handle, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 11);
    lock_suite();
    of->accepted[of->accepted_count++] = accepted;
    suite_changed();
    unlock_suite();
    return QUIC_STATUS_SUCCESS;
}

/* Codes of applications are not told before the handshake is complete, only that there was one. */
static void shut_down_before_it_has_a_configuration(const void *row) {
    (void)row;
    pair_options options = usual_options();
    options.on_listener = shut_down_new;
    pair *it = open_pair(&options);
    CHECK_PENDING(start_client(it));
    CHECK_STATUS(QUIC_STATUS_USER_CANCELED, WAIT_EVENT(&it->client, TRANSPORT).status);
    CHECK(!WAIT_EVENT(&it->client, COMPLETE).first);
    close_pair(it);
}

static void nobody_answers(const void *row) {
    (void)row;
    pair_options options = usual_options();
    SET(options.client, HandshakeIdleTimeoutMs, 500);
    pair *it = open_pair(&options);
    it->port = dead_port();
    client_fails(it, QUIC_STATUS_CONNECTION_IDLE, 1);
    close_pair(it);
}

static void nobody_is_there(const void *row) {
    (void)row;
    pair_options options = usual_options();
    pair *it = open_pair(&options);
    it->port = 1;
    client_fails(it, QUIC_STATUS_UNREACHABLE, 1);
    close_pair(it);
}

static void name_without_address(const void *row) {
    (void)row;
    pair_options options = usual_options();
    pair *it = open_pair(&options);
    CHECK_PENDING(api->ConnectionStart(
        it->client.handle, it->client_configuration, QUIC_ADDRESS_FAMILY_INET, "no such name .invalid", it->port));
    WAIT_EVENT(&it->client, TRANSPORT);
    WAIT_EVENT(&it->client, COMPLETE);
    close_pair(it);
}

/* ---- Ended by one of them ---- */

typedef struct end_row {
    const char *name;
    uint64_t code;
    bool by_server;
} end_row;

static const end_row end_rows[] = {
    {"client_0", 0, false},      {"client_1", 1, false},
    {"client_2^32", 1ull << 32, false}, {"client_largest", QUIC_UINT62_MAX, false},
    {"server_0", 0, true},       {"server_1", 1, true},
    {"server_2^32", 1ull << 32, true},  {"server_largest", QUIC_UINT62_MAX, true},
};

static void shut_down_with_code(const void *row) {
    const end_row *it = row;
    pair *ends = usual_pair();
    connection *own = it->by_server ? ends->server : &ends->client;
    connection *peer = it->by_server ? &ends->client : ends->server;
    api->ConnectionShutdown(own->handle, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, it->code);
    CHECK_EQUAL(it->code, WAIT_EVENT(peer, PEER).code);
    event last = WAIT_EVENT(own, COMPLETE);
    CHECK(last.first && last.second && !last.third);
    last = WAIT_EVENT(peer, COMPLETE);
    CHECK(last.first && !last.second && !last.third);
    CHECK_NO_EVENT(own, PEER);
    CHECK_NO_EVENT(own, TRANSPORT);
    CHECK_NO_EVENT(peer, TRANSPORT);
    close_pair(ends);
}

static void a_code_out_of_range_does_nothing(const void *row) {
    (void)row;
    pair *it = usual_pair();
    api->ConnectionShutdown(it->client.handle, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, QUIC_UINT62_MAX + 1);
    api->RegistrationShutdown(it->registration, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, QUIC_UINT62_MAX + 1);
    let_things_happen(50);
    CHECK_NO_EVENT(&it->client, COMPLETE);
    CHECK_NO_EVENT(it->server, COMPLETE);
    close_pair(it);
}

static void the_first_shutdown_counts(const void *row) {
    (void)row;
    pair *it = usual_pair();
    api->ConnectionShutdown(it->client.handle, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 3);
    WAIT_EVENT(&it->client, COMPLETE);
    api->ConnectionShutdown(it->client.handle, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 4);
    CHECK_EQUAL(3, WAIT_EVENT(it->server, PEER).code);
    CHECK_EQUAL(1, COUNT_EVENTS(&it->client, COMPLETE));
    close_pair(it);
}

static void silently(const void *row) {
    bool by_server = *(const bool *)row;
    pair *it = usual_pair();
    connection *own = by_server ? it->server : &it->client, *peer = by_server ? &it->client : it->server;
    api->ConnectionShutdown(own->handle, QUIC_CONNECTION_SHUTDOWN_FLAG_SILENT, 9);
    CHECK(WAIT_EVENT(own, COMPLETE).first);
    let_things_happen(100);
    /* Not from the other end, that is: a library may answer what still comes with a stateless reset. */
    CHECK_NO_EVENT(peer, PEER);
    close_pair(it);
}

static void idle(const void *row) {
    bool by_server = *(const bool *)row;
    pair_options options = usual_options();
    QUIC_SETTINGS *settings = by_server ? &options.server : &options.client;
    settings->IdleTimeoutMs = 300;
    pair *it = connected_pair(&options);
    /* Both know the shorter of the two limits. */
    CHECK_STATUS(QUIC_STATUS_CONNECTION_IDLE, WAIT_EVENT(&it->client, TRANSPORT).status);
    CHECK_STATUS(QUIC_STATUS_CONNECTION_IDLE, WAIT_EVENT(it->server, TRANSPORT).status);
    CHECK(WAIT_EVENT(&it->client, COMPLETE).first);
    CHECK(WAIT_EVENT(it->server, COMPLETE).first);
    close_pair(it);
}

static void kept_alive(const void *row) {
    (void)row;
    pair_options options = usual_options();
    options.client.IdleTimeoutMs = 2000;
    SET(options.client, KeepAliveIntervalMs, 200);
    pair *it = connected_pair(&options);
    let_things_happen(3000);
    CHECK_NO_EVENT(&it->client, COMPLETE);
    CHECK_NO_EVENT(it->server, COMPLETE);
    close_pair(it);
}

/* ---- Streams of a connection that ends ---- */

static void streams_end_with_it(const void *row) {
    bool by_server = *(const bool *)row;
    pair *it = usual_pair();
    connection *own = by_server ? it->server : &it->client;
    stream *client = start_stream(&it->client, QUIC_STREAM_OPEN_FLAG_NONE, QUIC_STREAM_START_FLAG_IMMEDIATE);
    stream *server = accepted_stream(it->server, 1);
    WAIT_EVENT(client, QUIC_STREAM_EVENT_START_COMPLETE);
    api->ConnectionShutdown(own->handle, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 66);
    stream *const streams[] = {client, server};
    for (int i = 0; i < 2; i++) {
        event last = WAIT_EVENT(streams[i], QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
        CHECK(last.first && !last.second);
        CHECK_EQUAL(i == by_server ? 0 : 1, last.third);
        CHECK_EQUAL(66, last.code);
        CHECK(!WAIT_EVENT(streams[i], QUIC_STREAM_EVENT_SEND_SHUTDOWN_COMPLETE).first);
        CHECK_NO_EVENT(streams[i], QUIC_STREAM_EVENT_PEER_SEND_ABORTED);
        CHECK_NO_EVENT(streams[i], QUIC_STREAM_EVENT_PEER_RECEIVE_ABORTED);
    }
    WAIT_EVENT(&it->client, COMPLETE);
    WAIT_EVENT(it->server, COMPLETE);
    close_stream(client);
    close_pair(it);
}

static QUIC_STATUS never_complete(stream *of, QUIC_STREAM_EVENT *what) {
    (void)of;
    return what->Type == QUIC_STREAM_EVENT_RECEIVE ? QUIC_STATUS_PENDING : HOOK_DEFAULT;
}

static void prepare_never_complete(stream *it) { it->hook = never_complete; }

/* Sends that wait for the peer are canceled, each before its stream ends (endpoints.c checks it). */
static void blocked_sends_are_canceled(const void *row) {
    bool closes = *(const bool *)row;
    pair_options options = usual_options();
    options.prepare_server_stream = prepare_never_complete;
    options.client.SendBufferingEnabled = 0;
    pair *it = connected_pair(&options);
    stream *client = start_stream(&it->client, QUIC_STREAM_OPEN_FLAG_NONE, QUIC_STREAM_START_FLAG_NONE);
    send_record *first = send_pattern(client, 0, 1 << 20, 1, QUIC_SEND_FLAG_NONE);
    send_record *second = send_pattern(client, 1 << 20, 1 << 20, 4, QUIC_SEND_FLAG_FIN);
    WAIT_EVENT(accepted_stream(it->server, 1), QUIC_STREAM_EVENT_RECEIVE);
    if (closes) close_connection(&it->client);
    else api->ConnectionShutdown(it->client.handle, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 1);
    WAIT_UNTIL(first->completed && second->completed);
    CHECK(first->canceled && second->canceled);
    WAIT_EVENT(client, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    close_stream(client);
    close_pair(it);
}

/* ---- Closed in callbacks ---- */

static uint32_t close_in_type;

static QUIC_STATUS close_in_that_event(connection *of, QUIC_CONNECTION_EVENT *what) {
    if (what->Type != close_in_type || of->user) return HOOK_DEFAULT;
    of->user = of;
    api->ConnectionClose(of->handle);
    lock_suite();
    of->events.closed = true;
    suite_changed();
    unlock_suite();
    return QUIC_STATUS_SUCCESS;
}

static void closed_in_a_callback(const void *row) {
    close_in_type = *(const uint32_t *)row;
    pair_options options = usual_options();
    options.on_client = close_in_that_event;
    pair *it = open_pair(&options);
    CHECK_PENDING(start_client(it));
    if (close_in_type == PEER || close_in_type == COMPLETE) {
        WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_CONNECTED);
        WAIT_EVENT(wait_server(it), QUIC_CONNECTION_EVENT_CONNECTED);
        api->ConnectionShutdown(it->server->handle, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 2);
    }
    WAIT_UNTIL(it->client.events.closed);
    WAIT_EVENT(&it->client, COMPLETE);
    close_pair(it);
}

static void server_closed_in_a_callback(const void *row) {
    close_in_type = *(const uint32_t *)row;
    pair_options options = usual_options();
    options.on_server = close_in_that_event;
    pair *it = open_pair(&options);
    CHECK_PENDING(start_client(it));
    WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_CONNECTED);
    wait_server(it);
    if (close_in_type != QUIC_CONNECTION_EVENT_CONNECTED) {
        api->ConnectionShutdown(it->client.handle, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 2);
    }
    WAIT_UNTIL(it->server->events.closed);
    close_pair(it);
}

/* ---- Before and between ---- */

static void shut_down_before_the_start(const void *row) {
    (void)row;
    pair_options options = usual_options();
    pair *it = open_pair(&options);
    api->ConnectionShutdown(it->client.handle, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 1);
    event last = WAIT_EVENT(&it->client, COMPLETE);
    CHECK(!last.first && !last.third);
    CHECK_STATUS(QUIC_STATUS_INVALID_STATE,
                 api->ConnectionStart(it->client.handle, it->client_configuration, QUIC_ADDRESS_FAMILY_INET,
                                      "localhost", it->port));
    close_pair(it);
}

static void started_twice(const void *row) {
    (void)row;
    pair *it = usual_pair();
    CHECK_STATUS(QUIC_STATUS_INVALID_STATE,
                 api->ConnectionStart(it->client.handle, it->client_configuration, QUIC_ADDRESS_FAMILY_INET,
                                      "localhost", it->port));
    CHECK_STATUS(QUIC_STATUS_INVALID_PARAMETER,
                 api->ConnectionStart(it->server->handle, it->client_configuration, QUIC_ADDRESS_FAMILY_INET,
                                      "localhost", it->port));
    close_pair(it);
}

static void closed_while_it_starts(const void *row) {
    (void)row;
    pair_options options = usual_options();
    pair *it = open_pair(&options);
    CHECK_PENDING(start_client(it));
    close_connection(&it->client);
    close_pair(it);
}

static void shut_down_while_it_starts(const void *row) {
    (void)row;
    pair_options options = usual_options();
    pair *it = open_pair(&options);
    CHECK_PENDING(start_client(it));
    api->ConnectionShutdown(it->client.handle, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 1);
    WAIT_EVENT(&it->client, COMPLETE);
    close_pair(it);
}

static void closed_without_waiting(const void *row) {
    (void)row;
    BOOLEAN on = TRUE;
    pair *it = usual_pair();
    CHECK_OK(api->SetParam(it->client.handle, QUIC_PARAM_CONN_CLOSE_ASYNC, sizeof(on), &on));
    api->ConnectionClose(it->client.handle);
    /* The last event comes when it comes: the object has to be there until then. */
    CHECK(WAIT_EVENT(&it->client, COMPLETE).third);
    lock_suite();
    it->client.events.closed = true;
    unlock_suite();
    close_pair(it);
}

static void *close_elsewhere(void *context) {
    close_connection(context);
    return NULL;
}

static void both_closed_by_other_threads(const void *row) {
    (void)row;
    pthread_t threads[2];
    pair *it = usual_pair();
    CHECK(pthread_create(&threads[0], NULL, close_elsewhere, &it->client) == 0);
    CHECK(pthread_create(&threads[1], NULL, close_elsewhere, it->server) == 0);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    close_pair(it);
}

void declare_connection_ends(void) {
    static const bool sides[] = {false, true};
    static const uint32_t client_types[] = {QUIC_CONNECTION_EVENT_STREAMS_AVAILABLE, QUIC_CONNECTION_EVENT_CONNECTED,
                                            PEER, COMPLETE};
    static const uint32_t server_types[] = {QUIC_CONNECTION_EVENT_CONNECTED, PEER, COMPLETE};
    static const QUIC_STATUS refusals[] = {QUIC_STATUS_CONNECTION_REFUSED, QUIC_STATUS_USER_CANCELED,
                                           QUIC_STATUS_OUT_OF_MEMORY, QUIC_STATUS_ABORTED,
                                           QUIC_STATUS_INTERNAL_ERROR};
    for (size_t i = 0; i < sizeof(end_rows) / sizeof(*end_rows); i++) {
        add_case(CASE_ORDINARY, shut_down_with_code, &end_rows[i], "connection_ends/code/%s", end_rows[i].name);
    }
    for (size_t i = 0; i < 5; i++) {
        add_case(CASE_ORDINARY, refused_by_the_listener, &refusals[i], "connection_ends/refused/%s",
                 status_name(refusals[i]));
    }
    for (size_t i = 0; i < 2; i++) {
        const char *side = sides[i] ? "server" : "client";
        add_case(CASE_ORDINARY, silently, &sides[i], "connection_ends/silently/%s", side);
        add_case(CASE_ORDINARY, idle, &sides[i], "connection_ends/idle/%s", side);
        add_case(CASE_ORDINARY, streams_end_with_it, &sides[i], "connection_ends/streams/%s", side);
        add_case(CASE_ORDINARY, blocked_sends_are_canceled, &sides[i], "connection_ends/blocked_sends/%s",
                 sides[i] ? "close" : "shutdown");
    }
    for (size_t i = 0; i < 4; i++) {
        add_case(CASE_ORDINARY, closed_in_a_callback, &client_types[i], "connection_ends/close_in_callback/client_%u",
                 client_types[i]);
    }
    for (size_t i = 0; i < 3; i++) {
        add_case(CASE_ORDINARY, server_closed_in_a_callback, &server_types[i],
                 "connection_ends/close_in_callback/server_%u", server_types[i]);
    }
#define ADD(body) add_case(CASE_ORDINARY, body, NULL, "connection_ends/%s", #body)
    ADD(no_protocol_in_common);
    ADD(shut_down_before_it_has_a_configuration);
    ADD(nobody_answers);
    ADD(nobody_is_there);
    ADD(name_without_address);
    ADD(a_code_out_of_range_does_nothing);
    ADD(the_first_shutdown_counts);
    ADD(kept_alive);
    ADD(shut_down_before_the_start);
    ADD(started_twice);
    ADD(closed_while_it_starts);
    ADD(shut_down_while_it_starts);
    ADD(closed_without_waiting);
    ADD(both_closed_by_other_threads);
#undef ADD
}
