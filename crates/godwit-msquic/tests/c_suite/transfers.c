/* Data in either direction: sizes, cuts into buffers, where the end stands, buffered or not, and how it is received. */
#include "suite.h"

typedef struct transfer {
    uint64_t size;
    uint32_t buffers;
    receive_mode mode;
    bool from_server;   /* The server opens the stream. */
    bool unidirectional;
    bool unbuffered;    /* SendBufferingEnabled is off. */
    bool end_apart;     /* The end goes by StreamShutdown, after the data. */
    bool multi_receive;
} transfer;

static receive_mode accepted_mode;

static void prepare_receiver(stream *it) {
    it->mode = accepted_mode;
    it->ends_by_itself = true;
}

/* A unidirectional stream has no direction back that could be ended. */
static void prepare_only_receiver(stream *it) { it->mode = accepted_mode; }

static pair *pair_for(const transfer *it) {
    pair_options options = usual_options();
    accepted_mode = it->mode;
    options.prepare_server_stream = options.prepare_client_stream =
        it->unidirectional ? prepare_only_receiver : prepare_receiver;
    options.server.SendBufferingEnabled = options.client.SendBufferingEnabled = !it->unbuffered;
    if (it->multi_receive) {
        SET(options.client, StreamMultiReceiveEnabled, 1);
        SET(options.server, StreamMultiReceiveEnabled, 1);
    }
    return connected_pair(&options);
}

static void check_ends(const transfer *it, stream *sender, stream *receiver) {
    CHECK_EQUAL(it->size, receiver->received);
    CHECK(WAIT_EVENT(sender, QUIC_STREAM_EVENT_SEND_SHUTDOWN_COMPLETE).first);
    event over = WAIT_EVENT(sender, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    CHECK(!over.first && !over.second);
    WAIT_EVENT(receiver, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    CHECK_ORDER(sender, QUIC_STREAM_EVENT_START_COMPLETE, QUIC_STREAM_EVENT_SEND_COMPLETE);
    CHECK_ORDER(sender, QUIC_STREAM_EVENT_SEND_COMPLETE, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    CHECK_ORDER(sender, QUIC_STREAM_EVENT_SEND_SHUTDOWN_COMPLETE, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    CHECK_ORDER(receiver, QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    if (it->size) CHECK_ORDER(receiver, QUIC_STREAM_EVENT_RECEIVE, QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN);
    CHECK_NO_EVENT(receiver, QUIC_STREAM_EVENT_PEER_SEND_ABORTED);
    CHECK_NO_EVENT(sender, QUIC_STREAM_EVENT_PEER_RECEIVE_ABORTED);
}

static void goes_over(const void *row) {
    const transfer *it = row;
    pair *ends = pair_for(it);
    connection *from = it->from_server ? ends->server : &ends->client;
    connection *to = it->from_server ? &ends->client : ends->server;
    stream *sender = open_stream(
        from, it->unidirectional ? QUIC_STREAM_OPEN_FLAG_UNIDIRECTIONAL : QUIC_STREAM_OPEN_FLAG_NONE);
    send_record *record = send_pattern(
        sender, 0, it->size, it->buffers,
        it->end_apart ? QUIC_SEND_FLAG_START : QUIC_SEND_FLAG_START | QUIC_SEND_FLAG_FIN);
    if (it->end_apart) {
        CHECK_PENDING(api->StreamShutdown(sender->handle, QUIC_STREAM_SHUTDOWN_FLAG_GRACEFUL, 0));
    }
    stream *receiver = accepted_stream(to, 1);
    finish_receive(receiver);
    check_ends(it, sender, receiver);
    CHECK(record->completed && !record->canceled);
    close_stream(sender);
    close_pair(ends);
}

/* ---- Both directions at once, many streams, many sends ---- */

static void prepare_echo(stream *it) { it->echo = true; }

static void comes_back(const void *row) {
    const transfer *it = row;
    pair_options options = usual_options();
    options.prepare_server_stream = prepare_echo;
    options.client.SendBufferingEnabled = options.server.SendBufferingEnabled = !it->unbuffered;
    pair *ends = connected_pair(&options);
    stream *sender = start_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE, QUIC_STREAM_START_FLAG_NONE);
    send_pattern(sender, 0, it->size, it->buffers, QUIC_SEND_FLAG_FIN);
    WAIT_EVENT(sender, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    CHECK_EQUAL(it->size, sender->received);
    CHECK_EQUAL(it->size, accepted_stream(ends->server, 1)->received);
    close_stream(sender);
    close_pair(ends);
}

static void many_sends(const void *row) {
    unsigned count = *(const unsigned *)row;
    uint64_t offset = 0;
    pair_options options = usual_options();
    options.prepare_server_stream = prepare_receiver;
    accepted_mode = RECEIVE_ALL;
    pair *ends = connected_pair(&options);
    stream *sender = start_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE, QUIC_STREAM_START_FLAG_NONE);
    for (unsigned i = 0; i < count; i++) {
        uint64_t length = i % 97 * 11 + 1;
        send_pattern(sender, offset, length, 1 + i % 3, i + 1 == count ? QUIC_SEND_FLAG_FIN : QUIC_SEND_FLAG_NONE);
        offset += length;
    }
    WAIT_EVENT(sender, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    CHECK_EQUAL(offset, accepted_stream(ends->server, 1)->received);
    CHECK_EQUAL(count, COUNT_EVENTS(sender, QUIC_STREAM_EVENT_SEND_COMPLETE));
    close_stream(sender);
    close_pair(ends);
}

static void many_streams(const void *row) {
    unsigned count = *(const unsigned *)row;
    stream *senders[200];
    pair_options options = usual_options();
    options.prepare_server_stream = prepare_echo;
    pair *ends = connected_pair(&options);
    for (unsigned i = 0; i < count; i++) {
        senders[i] = open_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE);
        send_pattern(senders[i], 0, 5000, 1, QUIC_SEND_FLAG_START | QUIC_SEND_FLAG_FIN);
    }
    for (unsigned i = 0; i < count; i++) {
        WAIT_EVENT(senders[i], QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
        CHECK_EQUAL(5000, senders[i]->received);
        CHECK_EQUAL(i * 4, senders[i]->id);
        close_stream(senders[i]);
    }
    close_pair(ends);
}

static const uint64_t sizes[] = {0, 1, 1024, 65536, 1 << 20, 16 << 20};
static const char *const size_names[] = {"0", "1", "1K", "64K", "1M", "16M"};
static const char *const mode_names[] = {"all", "pending", "continue", "partial", "inline"};

static transfer *new_row(transfer row) { return memcpy(keep(sizeof(row)), &row, sizeof(row)); }

static void declare_modes(size_t size, receive_mode mode) {
    for (int from_server = 0; from_server < 2; from_server++) {
        const char *from = from_server ? "server" : "client";
        transfer row = {.size = sizes[size], .buffers = 1, .mode = mode, .from_server = from_server};
        add_case(CASE_ORDINARY, goes_over, new_row(row), "transfer/%s/%s/bidirectional/%s", from, size_names[size],
                 mode_names[mode]);
        row.unidirectional = true;
        add_case(CASE_ORDINARY, goes_over, new_row(row), "transfer/%s/%s/unidirectional/%s", from, size_names[size],
                 mode_names[mode]);
    }
}

static void declare_shapes(size_t size) {
    static const uint32_t buffers[] = {2, 3, 17, 100};
    transfer row = {.size = sizes[size], .buffers = 1};
    row.end_apart = true;
    add_case(CASE_ORDINARY, goes_over, new_row(row), "transfer/end_apart/%s", size_names[size]);
    row.unbuffered = true;
    add_case(CASE_ORDINARY, goes_over, new_row(row), "transfer/end_apart_unbuffered/%s", size_names[size]);
    row.end_apart = false;
    add_case(CASE_ORDINARY, goes_over, new_row(row), "transfer/unbuffered/%s", size_names[size]);
    add_case(CASE_ORDINARY, comes_back, new_row(row), "transfer/echo_unbuffered/%s", size_names[size]);
    row.unbuffered = false;
    add_case(CASE_ORDINARY, comes_back, new_row(row), "transfer/echo/%s", size_names[size]);
    row.multi_receive = true;
    row.mode = RECEIVE_PENDING;
    add_case(CASE_ORDINARY, goes_over, new_row(row), "transfer/multi_receive/%s", size_names[size]);
    row = (transfer){.size = sizes[size]};
    for (size_t i = 0; i < sizeof(buffers) / sizeof(*buffers); i++) {
        row.buffers = buffers[i];
        add_case(CASE_ORDINARY, goes_over, new_row(row), "transfer/buffers_%u/%s", buffers[i], size_names[size]);
    }
    if (size == 0) {
        row.buffers = 0;
        add_case(CASE_ORDINARY, goes_over, new_row(row), "transfer/buffers_0/0");
    }
}

void declare_transfers(void) {
    static const unsigned counts[] = {2, 10, 100, 900}, streams[] = {10, 50, 150};
    for (size_t size = 0; size < sizeof(sizes) / sizeof(*sizes); size++) {
        for (receive_mode mode = RECEIVE_ALL; mode <= RECEIVE_INLINE; mode++) declare_modes(size, mode);
        declare_shapes(size);
    }
    for (size_t i = 0; i < 4; i++) {
        add_case(CASE_ORDINARY, many_sends, &counts[i], "transfer/sends_%u", counts[i]);
    }
    for (size_t i = 0; i < 3; i++) {
        add_case(CASE_ORDINARY, many_streams, &streams[i], "transfer/streams_%u", streams[i]);
    }
}
