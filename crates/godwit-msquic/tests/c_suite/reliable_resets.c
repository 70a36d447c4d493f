/* Resets that leave a part: what was sent before arrives. */
#include "suite.h"

#include "relay.h"

static void prepare_nothing(stream *it) { (void)it; }

static pair_options reliable_options(void) {
    pair_options options = usual_options();
    SET(options.client, ReliableResetEnabled, 1);
    SET(options.server, ReliableResetEnabled, 1);
    options.prepare_server_stream = prepare_nothing;
    return options;
}

static pair *connected_ends(void) {
    pair_options options = reliable_options();
    return connected_pair(&options);
}

static void make_reliable(stream *it, uint64_t part) {
    CHECK_OK(api->SetParam(it->handle, QUIC_PARAM_STREAM_RELIABLE_OFFSET, sizeof(part), &part));
}

static void a_part_arrives_before_the_reset(const void *row) {
    uint64_t part = *(const uint64_t *)row, read = 0;
    uint32_t length = sizeof(read);
    pair *ends = connected_ends();
    stream *client = start_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE, QUIC_STREAM_START_FLAG_NONE);
    send_record *record = send_pattern(client, 0, 1000, 1, QUIC_SEND_FLAG_NONE);
    WAIT_UNTIL(record->completed);
    make_reliable(client, part);
    CHECK_OK(api->GetParam(client->handle, QUIC_PARAM_STREAM_RELIABLE_OFFSET, &length, &read));
    CHECK_EQUAL(part, read);
    CHECK_PENDING(api->StreamShutdown(client->handle, QUIC_STREAM_SHUTDOWN_FLAG_ABORT_SEND, 33));
    stream *server = accepted_stream(ends->server, 1);
    CHECK_EQUAL(33, WAIT_EVENT(server, QUIC_STREAM_EVENT_PEER_SEND_ABORTED).code);
    CHECK(server->received >= part);
    CHECK_OK(api->GetParam(server->handle, QUIC_PARAM_STREAM_RELIABLE_OFFSET_RECV, &length, &read));
    CHECK_EQUAL(part, read);
    close_stream(client);
    close_pair(ends);
}

static void no_more_than_was_sent_can_be_reliable(const void *row) {
    (void)row;
    uint64_t part = 1001;
    pair *ends = connected_ends();
    stream *client = start_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE, QUIC_STREAM_START_FLAG_NONE);
    send_record *record = send_pattern(client, 0, 1000, 1, QUIC_SEND_FLAG_NONE);
    WAIT_UNTIL(record->completed);
    CHECK_STATUS(QUIC_STATUS_INVALID_STATE,
                 api->SetParam(client->handle, QUIC_PARAM_STREAM_RELIABLE_OFFSET, sizeof(part), &part));
    close_stream(client);
    close_pair(ends);
}

/* Who gives up both directions at once has its peer told so in this order, whether a part arrives or not. */
static void the_reset_is_told_before_the_stop(const void *row) {
    (void)row;
    pair *ends = connected_ends();
    stream *client = start_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE, QUIC_STREAM_START_FLAG_NONE);
    send_pattern(client, 0, 1, 1, QUIC_SEND_FLAG_NONE);
    stream *server = accepted_stream(ends->server, 1);
    WAIT_UNTIL(server->received == 1);
    make_reliable(client, 1);
    CHECK_PENDING(api->StreamShutdown(client->handle, QUIC_STREAM_SHUTDOWN_FLAG_ABORT, 34));
    WAIT_EVENT(server, QUIC_STREAM_EVENT_PEER_SEND_ABORTED);
    WAIT_EVENT(server, QUIC_STREAM_EVENT_PEER_RECEIVE_ABORTED);
    CHECK_ORDER(server, QUIC_STREAM_EVENT_PEER_SEND_ABORTED, QUIC_STREAM_EVENT_PEER_RECEIVE_ABORTED);
    WAIT_EVENT(server, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    close_stream(client);
    close_pair(ends);
}

/* ---- While the part is on its way ---- */

/* A stream of the client that was given up but for all that was sent on it, of which the last 1000 bytes are lost. */
typedef struct on_its_way {
    pair *ends;
    relay *through;
    stream *client;
    stream *server;
    send_record *lost;
} on_its_way;

static on_its_way open_on_its_way(void) {
    on_its_way it;
    pair_options options = reliable_options();
    SET(options.client, InitialRttMs, 30);
    SET(options.client, SendBufferingEnabled, 0);
    it.ends = open_pair(&options);
    it.through = start_relay(it.ends->port);
    it.ends->port = it.through->port;
    connect_pair(it.ends);
    it.client = start_stream(&it.ends->client, QUIC_STREAM_OPEN_FLAG_NONE, QUIC_STREAM_START_FLAG_NONE);
    send_record *first = send_pattern(it.client, 0, 10, 1, QUIC_SEND_FLAG_NONE);
    it.server = accepted_stream(it.ends->server, 1);
    WAIT_UNTIL(first->completed);
    atomic_store(&it.through->lose_to_server, true);
    it.lost = send_pattern(it.client, 10, 1000, 1, QUIC_SEND_FLAG_NONE);
    make_reliable(it.client, 1010);
    CHECK_PENDING(api->StreamShutdown(it.client->handle, QUIC_STREAM_SHUTDOWN_FLAG_ABORT_SEND, 33));
    return it;
}

static void close_on_its_way(on_its_way *it) {
    close_stream(it->client);
    close_pair(it->ends);
}

static void what_arrives_is_not_canceled(const void *row) {
    (void)row;
    on_its_way it = open_on_its_way();
    CHECK(!it.lost->completed);
    atomic_store(&it.through->lose_to_server, false);
    CHECK(!WAIT_EVENT(it.client, QUIC_STREAM_EVENT_SEND_SHUTDOWN_COMPLETE).first);
    CHECK(it.lost->completed && !it.lost->canceled);
    WAIT_UNTIL(it.server->received == 1010);
    close_on_its_way(&it);
}

static void who_does_not_want_the_part_is_heard(const void *row) {
    (void)row;
    on_its_way it = open_on_its_way();
    CHECK_PENDING(api->StreamShutdown(it.server->handle, QUIC_STREAM_SHUTDOWN_FLAG_ABORT_RECEIVE, 21));
    CHECK_EQUAL(21, WAIT_EVENT(it.client, QUIC_STREAM_EVENT_PEER_RECEIVE_ABORTED).code);
    WAIT_UNTIL(it.lost->completed);
    CHECK(it.lost->canceled);
    atomic_store(&it.through->lose_to_server, false);
    CHECK(!WAIT_EVENT(it.client, QUIC_STREAM_EVENT_SEND_SHUTDOWN_COMPLETE).first);
    CHECK_ORDER(it.client, QUIC_STREAM_EVENT_PEER_RECEIVE_ABORTED, QUIC_STREAM_EVENT_SEND_SHUTDOWN_COMPLETE);
    CHECK_EQUAL(1, COUNT_EVENTS(it.client, QUIC_STREAM_EVENT_PEER_RECEIVE_ABORTED));
    close_on_its_way(&it);
}

static void given_up_once_more_nothing_arrives(const void *row) {
    (void)row;
    on_its_way it = open_on_its_way();
    CHECK_PENDING(api->StreamShutdown(it.client->handle, QUIC_STREAM_SHUTDOWN_FLAG_ABORT_SEND, 33));
    WAIT_UNTIL(it.lost->completed);
    CHECK(it.lost->canceled);
    atomic_store(&it.through->lose_to_server, false);
    CHECK(!WAIT_EVENT(it.client, QUIC_STREAM_EVENT_SEND_SHUTDOWN_COMPLETE).first);
    CHECK_EQUAL(33, WAIT_EVENT(it.server, QUIC_STREAM_EVENT_PEER_SEND_ABORTED).code);
    close_on_its_way(&it);
}

void declare_reliable_resets(void) {
    static const uint64_t parts[] = {1, 500, 900};
    for (size_t i = 0; i < 3; i++) {
        add_case(CASE_ORDINARY, a_part_arrives_before_the_reset, &parts[i], "reliable_resets/part/%llu",
                 (unsigned long long)parts[i]);
    }
#define ADD(body) add_case(CASE_ORDINARY, body, NULL, "reliable_resets/%s", #body)
    ADD(no_more_than_was_sent_can_be_reliable);
    ADD(the_reset_is_told_before_the_stop);
    ADD(what_arrives_is_not_canceled);
    ADD(who_does_not_want_the_part_is_heard);
    ADD(given_up_once_more_nothing_arrives);
#undef ADD
}
