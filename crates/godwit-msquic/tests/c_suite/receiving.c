/* Receiving: buffers of the program's own, receives that wait, that are switched off, that are taken in parts. */
#include "suite.h"

static void prepare_nothing(stream *it) { (void)it; }

typedef struct both {
    pair *ends;
    stream *sender;
    stream *receiver;
} both;

static stream_hook receiver_hook;
static receive_mode receiver_mode;

static void prepare_receiver(stream *it) {
    it->hook = receiver_hook;
    it->mode = receiver_mode;
}

static both open_both(receive_mode mode, stream_hook hook) {
    both it;
    pair_options options = usual_options();
    receiver_hook = hook;
    receiver_mode = mode;
    options.prepare_server_stream = prepare_receiver;
    it.ends = connected_pair(&options);
    it.sender = start_stream(&it.ends->client, QUIC_STREAM_OPEN_FLAG_NONE, QUIC_STREAM_START_FLAG_IMMEDIATE);
    it.receiver = accepted_stream(it.ends->server, 1);
    return it;
}

static void close_both(both *it) {
    close_stream(it->sender);
    close_pair(it->ends);
}

static void nothing_comes_while_switched_off(const void *row) {
    (void)row;
    both it = open_both(RECEIVE_ALL, NULL);
    CHECK_PENDING(api->StreamReceiveSetEnabled(it.receiver->handle, FALSE));
    send_pattern(it.sender, 0, 1000, 1, QUIC_SEND_FLAG_FIN);
    let_things_happen(50);
    CHECK_NO_EVENT(it.receiver, QUIC_STREAM_EVENT_RECEIVE);
    CHECK_PENDING(api->StreamReceiveSetEnabled(it.receiver->handle, TRUE));
    WAIT_EVENT(it.receiver, QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN);
    CHECK_EQUAL(1000, it.receiver->received);
    close_both(&it);
}

static void one_receive_waits_for_its_end(const void *row) {
    (void)row;
    both it = open_both(RECEIVE_PENDING, NULL);
    send_pattern(it.sender, 0, 100, 1, QUIC_SEND_FLAG_NONE);
    WAIT_UNTIL(it.receiver->pending == 100);
    send_pattern(it.sender, 100, 100, 1, QUIC_SEND_FLAG_FIN);
    let_things_happen(50);
    lock_suite();
    CHECK_EQUAL(100, it.receiver->pending);
    unlock_suite();
    finish_receive(it.receiver);
    CHECK_EQUAL(200, it.receiver->received);
    close_both(&it);
}

/* Waits until the callback that runs has returned: parameters are read in turn with callbacks. */
static void settle(HQUIC stream) {
    uint16_t priority;
    uint32_t length = sizeof(priority);
    CHECK_OK(api->GetParam(stream, QUIC_PARAM_STREAM_PRIORITY, &length, &priority));
}

/* What is not completed comes again. */
static void the_rest_comes_again(const void *row) {
    uint64_t part = *(const uint64_t *)row;
    both it = open_both(RECEIVE_PENDING, NULL);
    send_pattern(it.sender, 0, 100, 1, QUIC_SEND_FLAG_NONE);
    WAIT_UNTIL(it.receiver->pending == 100);
    settle(it.receiver->handle);
    lock_suite();
    it.receiver->pending = 0;
    it.receiver->received = part;
    unlock_suite();
    api->StreamReceiveComplete(it.receiver->handle, part);
    CHECK_PENDING(api->StreamReceiveSetEnabled(it.receiver->handle, TRUE));
    WAIT_UNTIL(it.receiver->pending == 100 - part);
    CHECK_PENDING(api->StreamShutdown(it.sender->handle, QUIC_STREAM_SHUTDOWN_FLAG_GRACEFUL, 0));
    finish_receive(it.receiver);
    CHECK_EQUAL(100, it.receiver->received);
    close_both(&it);
}

/* ---- Several receives that wait ---- */

static both open_several(receive_mode mode, stream_hook hook) {
    both it;
    pair_options options = usual_options();
    SET(options.server, StreamMultiReceiveEnabled, 1);
    receiver_hook = hook;
    receiver_mode = mode;
    options.prepare_server_stream = prepare_receiver;
    it.ends = connected_pair(&options);
    it.sender = start_stream(&it.ends->client, QUIC_STREAM_OPEN_FLAG_NONE, QUIC_STREAM_START_FLAG_IMMEDIATE);
    it.receiver = accepted_stream(it.ends->server, 1);
    return it;
}

/* Sends pieces of 100 bytes, each of which comes though none was completed. */
static void have_pieces_wait(both *it, uint64_t count, QUIC_SEND_FLAGS last) {
    for (uint64_t i = 0; i < count; i++) {
        send_pattern(it->sender, i * 100, 100, 1, i + 1 == count ? last : QUIC_SEND_FLAG_NONE);
        WAIT_UNTIL(it->receiver->pending == (i + 1) * 100);
    }
    settle(it->receiver->handle);
}

static void complete(both *it, uint64_t length) {
    lock_suite();
    it->receiver->pending -= length;
    it->receiver->received += length;
    unlock_suite();
    api->StreamReceiveComplete(it->receiver->handle, length);
}

static void many_receives_wait(const void *row) {
    (void)row;
    both it = open_several(RECEIVE_PENDING, NULL);
    have_pieces_wait(&it, 5, QUIC_SEND_FLAG_FIN);
    finish_receive(it.receiver);
    CHECK_EQUAL(500, it.receiver->received);
    close_both(&it);
}

/* How many completions there are does not matter, the bytes count. */
static void many_are_completed_in_parts(const void *row) {
    uint64_t part = *(const uint64_t *)row;
    both it = open_several(RECEIVE_PENDING, NULL);
    have_pieces_wait(&it, 5, QUIC_SEND_FLAG_FIN);
    for (uint64_t done = 0; done < 500; done += part) {
        CHECK_NO_EVENT(it.receiver, QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN);
        complete(&it, part < 500 - done ? part : 500 - done);
        settle(it.receiver->handle);
    }
    WAIT_EVENT(it.receiver, QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN);
    CHECK_EQUAL(1, COUNT_EVENTS(it.receiver, QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN));
    close_both(&it);
}

static void the_end_alone_waits_for_the_rest(const void *row) {
    (void)row;
    both it = open_several(RECEIVE_PENDING, NULL);
    have_pieces_wait(&it, 3, QUIC_SEND_FLAG_NONE);
    CHECK_PENDING(api->StreamShutdown(it.sender->handle, QUIC_STREAM_SHUTDOWN_FLAG_GRACEFUL, 0));
    WAIT_EVENT(it.sender, QUIC_STREAM_EVENT_SEND_SHUTDOWN_COMPLETE);
    complete(&it, 200);
    settle(it.receiver->handle);
    CHECK_NO_EVENT(it.receiver, QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN);
    complete(&it, 100);
    WAIT_EVENT(it.receiver, QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN);
    close_both(&it);
}

static const uint8_t *memory_kept;

static QUIC_STATUS keep_memory(stream *of, QUIC_STREAM_EVENT *what) {
    if (what->Type == QUIC_STREAM_EVENT_RECEIVE && !of->pending && what->RECEIVE.BufferCount) {
        memory_kept = what->RECEIVE.Buffers[0].Buffer;
    }
    return HOOK_DEFAULT;
}

/* The peer gives the stream up: that is told at once, and what the program looks at stays. */
static void aborted_while_many_wait(const void *row) {
    bool several = *(const bool *)row;
    both it = several ? open_several(RECEIVE_PENDING, keep_memory) : open_both(RECEIVE_PENDING, keep_memory);
    have_pieces_wait(&it, several ? 4 : 1, QUIC_SEND_FLAG_NONE);
    CHECK_PENDING(api->StreamShutdown(it.sender->handle, QUIC_STREAM_SHUTDOWN_FLAG_ABORT_SEND, 21));
    CHECK_EQUAL(21, WAIT_EVENT(it.receiver, QUIC_STREAM_EVENT_PEER_SEND_ABORTED).code);
    for (uint64_t i = 0; i < 100; i++) CHECK_EQUAL(pattern(i), memory_kept[i]);
    complete(&it, several ? 400 : 100);
    settle(it.receiver->handle);
    CHECK_EQUAL(1, COUNT_EVENTS(it.receiver, QUIC_STREAM_EVENT_PEER_SEND_ABORTED));
    CHECK_NO_EVENT(it.receiver, QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN);
    close_both(&it);
}

static void given_up_while_many_wait(const void *row) {
    (void)row;
    both it = open_several(RECEIVE_PENDING, keep_memory);
    have_pieces_wait(&it, 4, QUIC_SEND_FLAG_NONE);
    CHECK_PENDING(api->StreamShutdown(it.receiver->handle, QUIC_STREAM_SHUTDOWN_FLAG_ABORT_RECEIVE, 22));
    CHECK_EQUAL(22, WAIT_EVENT(it.sender, QUIC_STREAM_EVENT_PEER_RECEIVE_ABORTED).code);
    for (uint64_t i = 0; i < 100; i++) CHECK_EQUAL(pattern(i), memory_kept[i]);
    complete(&it, 400);
    close_both(&it);
}

static QUIC_STATUS take_half(stream *of, QUIC_STREAM_EVENT *what) {
    if (what->Type != QUIC_STREAM_EVENT_RECEIVE) return HOOK_DEFAULT;
    uint64_t length = what->RECEIVE.TotalBufferLength, taken = length / 2;
    lock_suite();
    CHECK_EQUAL(of->received + of->pending, what->RECEIVE.AbsoluteOffset);
    of->received += taken;
    of->pending += length - taken;
    suite_changed();
    unlock_suite();
    what->RECEIVE.TotalBufferLength = taken;
    return QUIC_STATUS_SUCCESS;
}

/* What is not taken in a callback is to be completed later, and does not come again. */
static void halves_are_completed_later(const void *row) {
    (void)row;
    both it = open_several(RECEIVE_ALL, take_half);
    for (uint64_t i = 0; i < 4; i++) {
        send_pattern(it.sender, i * 100, 100, 1, i == 3 ? QUIC_SEND_FLAG_FIN : QUIC_SEND_FLAG_NONE);
        WAIT_UNTIL(it.receiver->pending + it.receiver->received == (i + 1) * 100);
    }
    settle(it.receiver->handle);
    CHECK_NO_EVENT(it.receiver, QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN);
    complete(&it, it.receiver->pending);
    WAIT_EVENT(it.receiver, QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN);
    close_both(&it);
}

/* The program holds the peer back by completing nothing, and has it go on. */
static void flow_control_waits_for_completions(const void *row) {
    (void)row;
    enum { SIZE = 4 << 20 };
    both it = open_several(RECEIVE_PENDING, NULL);
    send_pattern(it.sender, 0, SIZE, 1, QUIC_SEND_FLAG_FIN);
    WAIT_UNTIL(it.receiver->pending > 0);
    let_things_happen(100);
    lock_suite();
    CHECK(it.receiver->pending < SIZE);
    unlock_suite();
    finish_receive(it.receiver);
    CHECK_EQUAL(SIZE, it.receiver->received);
    close_both(&it);
}

/* ---- Resets ---- */

/* A reset is told although receives are switched off, once, and what came before it is not. */
static void a_reset_is_told_while_switched_off(const void *row) {
    uint64_t unread = *(const uint64_t *)row;
    both it = open_both(RECEIVE_ALL, NULL);
    CHECK_PENDING(api->StreamReceiveSetEnabled(it.receiver->handle, FALSE));
    if (unread) {
        send_record *record = send_pattern(it.sender, 0, unread, 1, QUIC_SEND_FLAG_NONE);
        WAIT_UNTIL(record->completed);
        let_things_happen(30);
    }
    CHECK_PENDING(api->StreamShutdown(it.sender->handle, QUIC_STREAM_SHUTDOWN_FLAG_ABORT_SEND, 23));
    CHECK_EQUAL(23, WAIT_EVENT(it.receiver, QUIC_STREAM_EVENT_PEER_SEND_ABORTED).code);
    CHECK_PENDING(api->StreamReceiveSetEnabled(it.receiver->handle, TRUE));
    settle(it.receiver->handle);
    let_things_happen(20);
    CHECK_EQUAL(1, COUNT_EVENTS(it.receiver, QUIC_STREAM_EVENT_PEER_SEND_ABORTED));
    CHECK_NO_EVENT(it.receiver, QUIC_STREAM_EVENT_RECEIVE);
    close_both(&it);
}

static void closed_with_a_receive_that_waits(const void *row) {
    (void)row;
    both it = open_both(RECEIVE_PENDING, NULL);
    send_pattern(it.sender, 0, 100, 1, QUIC_SEND_FLAG_NONE);
    WAIT_UNTIL(it.receiver->pending == 100);
    close_stream(it.receiver);
    WAIT_EVENT(it.sender, QUIC_STREAM_EVENT_PEER_RECEIVE_ABORTED);
    close_both(&it);
}

/* ---- Buffers of the program's own ---- */

static const struct owned_row {
    const char *name;
    uint32_t lengths[3];
    uint32_t count;
    uint64_t size;
} owned_rows[] = {
    {"exact", {1000}, 1, 1000},
    {"longer", {4096}, 1, 1000},
    {"three", {400, 400, 400}, 3, 1000},
    {"uneven", {1, 998, 100}, 3, 1000},
    {"large", {1 << 20}, 1, 1 << 20},
};

static void fills_buffers_of_the_program(const void *row) {
    const struct owned_row *it = row;
    QUIC_BUFFER *buffers = keep(3 * sizeof(*buffers));
    pair_options options = usual_options();
    options.prepare_server_stream = prepare_nothing;
    pair *ends = connected_pair(&options);
    stream *client = open_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_APP_OWNED_BUFFERS);
    for (uint32_t i = 0; i < it->count; i++) buffers[i] = (QUIC_BUFFER){it->lengths[i], keep(it->lengths[i])};
    CHECK_OK(api->StreamProvideReceiveBuffers(client->handle, it->count, buffers));
    CHECK_PENDING(api->StreamStart(client->handle, QUIC_STREAM_START_FLAG_IMMEDIATE));
    send_pattern(accepted_stream(ends->server, 1), 0, it->size, 1, QUIC_SEND_FLAG_FIN);
    WAIT_EVENT(client, QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN);
    CHECK_EQUAL(it->size, client->received);
    uint64_t offset = 0;
    for (uint32_t i = 0; i < it->count; i++) {
        for (uint32_t j = 0; j < buffers[i].Length && offset < it->size; j++, offset++) {
            CHECK_EQUAL(pattern(offset), buffers[i].Buffer[j]);
        }
    }
    close_stream(client);
    close_pair(ends);
}

static QUIC_STATUS provide_more(stream *of, QUIC_STREAM_EVENT *what) {
    if (what->Type != QUIC_STREAM_EVENT_RECEIVE_BUFFER_NEEDED) return HOOK_DEFAULT;
    uint32_t length = (uint32_t)what->RECEIVE_BUFFER_NEEDED.BufferLengthNeeded;
    QUIC_BUFFER buffer = {length, keep(length)};
    CHECK(length > 0);
    CHECK_OK(api->StreamProvideReceiveBuffers(of->handle, 1, &buffer));
    return QUIC_STATUS_SUCCESS;
}

static void asks_for_more(const void *row) {
    (void)row;
    QUIC_BUFFER buffer = {100, keep(100)};
    pair_options options = usual_options();
    options.prepare_server_stream = prepare_nothing;
    pair *ends = connected_pair(&options);
    stream *client = open_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_APP_OWNED_BUFFERS);
    client->hook = provide_more;
    CHECK_OK(api->StreamProvideReceiveBuffers(client->handle, 1, &buffer));
    CHECK_PENDING(api->StreamStart(client->handle, QUIC_STREAM_START_FLAG_IMMEDIATE));
    send_pattern(accepted_stream(ends->server, 1), 0, 5000, 1, QUIC_SEND_FLAG_FIN);
    WAIT_EVENT(client, QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN);
    CHECK(COUNT_EVENTS(client, QUIC_STREAM_EVENT_RECEIVE_BUFFER_NEEDED) >= 1);
    CHECK_EQUAL(5000, client->received);
    close_stream(client);
    close_pair(ends);
}

/* Who lets the buffers run out ends the connection: what came cannot be put anywhere. */
static void running_out_is_fatal(const void *row) {
    (void)row;
    QUIC_BUFFER buffer = {100, keep(100)};
    pair *ends = usual_pair();
    stream *client = open_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_APP_OWNED_BUFFERS);
    CHECK_OK(api->StreamProvideReceiveBuffers(client->handle, 1, &buffer));
    CHECK_PENDING(api->StreamStart(client->handle, QUIC_STREAM_START_FLAG_IMMEDIATE));
    send_pattern(accepted_stream(ends->server, 1), 0, 300, 1, QUIC_SEND_FLAG_FIN);
    WAIT_EVENT(client, QUIC_STREAM_EVENT_RECEIVE_BUFFER_NEEDED);
    WAIT_EVENT(&ends->client, QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_TRANSPORT);
    WAIT_EVENT(&ends->client, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    close_stream(client);
    close_pair(ends);
}

static QUIC_STATUS provide_when_it_starts(connection *of, QUIC_CONNECTION_EVENT *what) {
    (void)of;
    if (what->Type != QUIC_CONNECTION_EVENT_PEER_STREAM_STARTED) return HOOK_DEFAULT;
    QUIC_BUFFER buffer = {4096, keep(4096)};
    CHECK_OK(api->StreamProvideReceiveBuffers(what->PEER_STREAM_STARTED.Stream, 1, &buffer));
    return HOOK_DEFAULT;
}

static void provided_when_the_peer_starts_a_stream(const void *row) {
    (void)row;
    pair_options options = usual_options();
    options.on_server = provide_when_it_starts;
    pair *ends = connected_pair(&options);
    stream *client = open_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE);
    send_pattern(client, 0, 3000, 1, QUIC_SEND_FLAG_START | QUIC_SEND_FLAG_FIN);
    stream *server = accepted_stream(ends->server, 1);
    WAIT_EVENT(server, QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN);
    CHECK_EQUAL(3000, server->received);
    close_stream(client);
    close_pair(ends);
}

void declare_receiving(void) {
    static const uint64_t parts[] = {0, 1, 50, 99};
    for (size_t i = 0; i < 4; i++) {
        add_case(CASE_ORDINARY, the_rest_comes_again, &parts[i], "receiving/completed_in_part/%llu",
                 (unsigned long long)parts[i]);
    }
    static const uint64_t sizes[] = {1, 99, 100, 250, 500}, unread[] = {0, 1, 1000, 40000};
    static const bool either[] = {false, true};
    for (size_t i = 0; i < 5; i++) {
        add_case(CASE_ORDINARY, many_are_completed_in_parts, &sizes[i], "receiving/several/by_%llu",
                 (unsigned long long)sizes[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        add_case(CASE_ORDINARY, aborted_while_many_wait, &either[i], "receiving/aborted_while_%s",
                 either[i] ? "many_wait" : "one_waits");
    }
    for (size_t i = 0; i < 4; i++) {
        add_case(CASE_ORDINARY, a_reset_is_told_while_switched_off, &unread[i], "receiving/reset_while_switched_off/%llu",
                 (unsigned long long)unread[i]);
    }
    for (size_t i = 0; i < sizeof(owned_rows) / sizeof(*owned_rows); i++) {
        add_case(CASE_ORDINARY, fills_buffers_of_the_program, &owned_rows[i], "receiving/own_buffers/%s",
                 owned_rows[i].name);
    }
#define ADD(body) add_case(CASE_ORDINARY, body, NULL, "receiving/%s", #body)
    ADD(nothing_comes_while_switched_off);
    ADD(one_receive_waits_for_its_end);
    ADD(many_receives_wait);
    ADD(the_end_alone_waits_for_the_rest);
    ADD(given_up_while_many_wait);
    ADD(halves_are_completed_later);
    ADD(flow_control_waits_for_completions);
    ADD(closed_with_a_receive_that_waits);
    ADD(asks_for_more);
    ADD(running_out_is_fatal);
    ADD(provided_when_the_peer_starts_a_stream);
#undef ADD
}
