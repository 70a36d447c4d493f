/* Datagrams: negotiation, sizes, the states of a send, what becomes of those that wait. */
#include "suite.h"

#define STATE QUIC_CONNECTION_EVENT_DATAGRAM_STATE_CHANGED
#define SENT QUIC_CONNECTION_EVENT_DATAGRAM_SEND_STATE_CHANGED
#define RECEIVED QUIC_CONNECTION_EVENT_DATAGRAM_RECEIVED

static pair *pair_with(bool server, bool client) {
    pair_options options = usual_options();
    SET(options.server, DatagramReceiveEnabled, server);
    SET(options.client, DatagramReceiveEnabled, client);
    return connected_pair(&options);
}

/* A buffer of the pattern that stays. */
static QUIC_BUFFER *datagram(uint32_t length, uint32_t count) {
    QUIC_BUFFER *buffers = keep(count * sizeof(*buffers));
    uint64_t offset = 0;
    for (uint32_t i = 0; i < count; i++) {
        buffers[i].Length = length / count + (i < length % count);
        buffers[i].Buffer = keep(buffers[i].Length + 1);
        for (uint32_t j = 0; j < buffers[i].Length; j++) buffers[i].Buffer[j] = pattern(offset++);
    }
    return buffers;
}

/* Whether a send has come to a state from which it does not move. */
static bool is_final(connection *of, void *context) {
    for (unsigned i = 0; i < of->events.count; i++) {
        const event *it = &of->events.events[i];
        if (it->type == SENT && it->pointer == context && QUIC_DATAGRAM_SEND_STATE_IS_FINAL(it->code)) return true;
    }
    return false;
}

static uint64_t final_state(connection *of, void *context) {
    WAIT_UNTIL(is_final(of, context));
    for (unsigned i = 0; i < of->events.count; i++) {
        const event *it = &of->events.events[i];
        if (it->type == SENT && it->pointer == context && QUIC_DATAGRAM_SEND_STATE_IS_FINAL(it->code)) return it->code;
    }
    return 0;
}

typedef struct size_row {
    uint32_t length;
    uint32_t count;
    bool by_server;
    QUIC_SEND_FLAGS flags;
} size_row;

static void goes_over(const void *row) {
    const size_row *it = row;
    pair *ends = pair_with(true, true);
    connection *from = it->by_server ? ends->server : &ends->client;
    connection *to = it->by_server ? &ends->client : ends->server;
    QUIC_BUFFER *buffers = datagram(it->length, it->count);
    while (!COUNT_EVENTS(from, STATE)) let_things_happen(1);
    CHECK_PENDING(api->DatagramSend(from->handle, buffers, it->count, it->flags, buffers));
    CHECK_EQUAL(it->length, WAIT_EVENT(to, RECEIVED).code);
    for (uint32_t i = 0; i < it->length; i++) CHECK_EQUAL(pattern(i), to->datagram[i]);
    CHECK_EQUAL(QUIC_DATAGRAM_SEND_SENT, WAIT_EVENT(from, SENT).code);
    CHECK_EQUAL(QUIC_DATAGRAM_SEND_ACKNOWLEDGED, final_state(from, buffers));
    close_pair(ends);
}

typedef struct enabled_row {
    const char *name;
    bool server, client;
} enabled_row;

static const enabled_row enabled_rows[] = {
    {"neither", false, false}, {"server", true, false}, {"client", false, true}, {"both", true, true}};

/* An end may send what the other takes. */
static void is_negotiated(const void *row) {
    const enabled_row *it = row;
    BOOLEAN enabled;
    uint32_t length = sizeof(enabled);
    QUIC_BUFFER *buffer = datagram(10, 1);
    pair *ends = pair_with(it->server, it->client);
    CHECK_OK(api->GetParam(ends->client.handle, QUIC_PARAM_CONN_DATAGRAM_SEND_ENABLED, &length, &enabled));
    CHECK_EQUAL(it->server, enabled);
    CHECK_OK(api->GetParam(ends->server->handle, QUIC_PARAM_CONN_DATAGRAM_SEND_ENABLED, &length, &enabled));
    CHECK_EQUAL(it->client, enabled);
    CHECK_OK(api->GetParam(ends->client.handle, QUIC_PARAM_CONN_DATAGRAM_RECEIVE_ENABLED, &length, &enabled));
    CHECK_EQUAL(it->client, enabled);
    CHECK_EQUAL(it->server, WAIT_EVENT(&ends->client, STATE).first);
    CHECK_STATUS(it->server ? QUIC_STATUS_PENDING : QUIC_STATUS_INVALID_STATE,
                 api->DatagramSend(ends->client.handle, buffer, 1, QUIC_SEND_FLAG_NONE, buffer));
    if (it->server) final_state(&ends->client, buffer);
    close_pair(ends);
}

/* MaxSendLength is what a datagram can have, and not a byte more. */
static void has_a_largest_size(const void *row) {
    (void)row;
    pair *it = pair_with(true, true);
    uint64_t most = WAIT_EVENT(&it->client, STATE).code;
    CHECK(most > 1000 && most < 1500);
    QUIC_BUFFER *fits = datagram((uint32_t)most, 1), *too_long = datagram(2000, 1);
    CHECK_PENDING(api->DatagramSend(it->client.handle, fits, 1, QUIC_SEND_FLAG_NONE, fits));
    CHECK_STATUS(QUIC_STATUS_INVALID_PARAMETER,
                 api->DatagramSend(it->client.handle, too_long, 1, QUIC_SEND_FLAG_NONE, too_long));
    CHECK_EQUAL(QUIC_DATAGRAM_SEND_ACKNOWLEDGED, final_state(&it->client, fits));
    CHECK_EQUAL(most, WAIT_EVENT(it->server, RECEIVED).code);
    close_pair(it);
}

static void waits_for_the_start(const void *row) {
    (void)row;
    pair_options options = usual_options();
    SET(options.server, DatagramReceiveEnabled, 1);
    pair *it = open_pair(&options);
    QUIC_BUFFER *buffer = datagram(20, 1);
    CHECK_PENDING(api->DatagramSend(it->client.handle, buffer, 1, QUIC_SEND_FLAG_NONE, buffer));
    connect_pair(it);
    CHECK_EQUAL(20, WAIT_EVENT(it->server, RECEIVED).code);
    CHECK_EQUAL(QUIC_DATAGRAM_SEND_ACKNOWLEDGED, final_state(&it->client, buffer));
    close_pair(it);
}

static void is_canceled_where_nobody_takes_it(const void *row) {
    (void)row;
    pair_options options = usual_options();
    pair *it = open_pair(&options);
    QUIC_BUFFER *buffer = datagram(20, 1);
    CHECK_PENDING(api->DatagramSend(it->client.handle, buffer, 1, QUIC_SEND_FLAG_NONE, buffer));
    connect_pair(it);
    CHECK_EQUAL(QUIC_DATAGRAM_SEND_CANCELED, final_state(&it->client, buffer));
    close_pair(it);
}

/* Every send comes to a final state, before the last event of the connection. */
static void those_that_wait_end_with_the_connection(const void *row) {
    bool closes = *(const bool *)row;
    QUIC_BUFFER *buffers[50];
    pair *it = pair_with(true, true);
    for (int i = 0; i < 50; i++) {
        buffers[i] = datagram(500, 1);
        CHECK_PENDING(api->DatagramSend(it->client.handle, buffers[i], 1, QUIC_SEND_FLAG_NONE, buffers[i]));
    }
    if (closes) close_connection(&it->client);
    else api->ConnectionShutdown(it->client.handle, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 0);
    WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    lock_suite();
    for (int i = 0; i < 50; i++) CHECK(is_final(&it->client, buffers[i]));
    unlock_suite();
    close_pair(it);
}

static void none_after_the_shutdown(const void *row) {
    (void)row;
    pair *it = pair_with(true, true);
    QUIC_BUFFER *buffer = datagram(20, 1);
    api->ConnectionShutdown(it->client.handle, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 0);
    WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    CHECK_STATUS(QUIC_STATUS_INVALID_STATE,
                 api->DatagramSend(it->client.handle, buffer, 1, QUIC_SEND_FLAG_NONE, buffer));
    close_pair(it);
}

static void many(const void *row) {
    (void)row;
    enum { COUNT = 200 };
    QUIC_BUFFER *buffers[COUNT];
    pair *it = pair_with(true, true);
    for (int i = 0; i < COUNT; i++) {
        buffers[i] = datagram(100, 2);
        CHECK_PENDING(api->DatagramSend(it->client.handle, buffers[i], 2, QUIC_SEND_FLAG_NONE, buffers[i]));
    }
    for (int i = 0; i < COUNT; i++) final_state(&it->client, buffers[i]);
    close_pair(it);
}

void declare_datagrams(void) {
    static const size_row sizes[] = {
        {0, 1, false, 0}, {1, 1, false, 0}, {100, 1, false, 0}, {1000, 1, false, 0}, {0, 1, true, 0},
        {1000, 1, true, 0}, {1000, 3, false, 0}, {7, 7, true, 0}, {100, 1, false, QUIC_SEND_FLAG_DGRAM_PRIORITY},
        {100, 1, false, QUIC_SEND_FLAG_PRIORITY_WORK}, {100, 1, false, QUIC_SEND_FLAG_DELAY_SEND},
    };
    static const bool both[] = {false, true};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        add_case(CASE_ORDINARY, goes_over, &sizes[i], "datagrams/%u_bytes_of_%u/%s/flags_%u", sizes[i].length,
                 sizes[i].count, sizes[i].by_server ? "server" : "client", sizes[i].flags);
    }
    for (size_t i = 0; i < 4; i++) {
        add_case(CASE_ORDINARY, is_negotiated, &enabled_rows[i], "datagrams/negotiated/%s", enabled_rows[i].name);
    }
    for (size_t i = 0; i < 2; i++) {
        add_case(CASE_ORDINARY, those_that_wait_end_with_the_connection, &both[i], "datagrams/wait/%s",
                 both[i] ? "close" : "shutdown");
    }
#define ADD(body) add_case(CASE_ORDINARY, body, NULL, "datagrams/%s", #body)
    ADD(has_a_largest_size);
    ADD(waits_for_the_start);
    ADD(is_canceled_where_nobody_takes_it);
    ADD(none_after_the_shutdown);
    ADD(many);
#undef ADD
}
