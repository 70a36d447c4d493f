/* What becomes of connections when datagrams are lost or come from elsewhere. */
#include "suite.h"

#include "relay.h"

#define TRANSPORT QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_TRANSPORT

static void prepare_end(stream *it) { it->ends_by_itself = true; }

static pair *pair_over(relay **through, pair_options options) {
    SET(options.client, InitialRttMs, 30);
    options.prepare_server_stream = prepare_end;
    pair *it = open_pair(&options);
    *through = start_relay(it->port);
    it->port = (*through)->port;
    return it;
}

static void exchange(pair *it, uint64_t size) {
    stream *sender = open_stream(&it->client, QUIC_STREAM_OPEN_FLAG_NONE);
    send_pattern(sender, 0, size, 1, QUIC_SEND_FLAG_START | QUIC_SEND_FLAG_FIN);
    WAIT_EVENT(sender, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    CHECK_EQUAL(size, accepted_stream(it->server, 1)->received);
    close_stream(sender);
}

static void send_a_little(pair *it) {
    stream *sender = open_stream(&it->client, QUIC_STREAM_OPEN_FLAG_NONE);
    send_pattern(sender, 0, 10, 1, QUIC_SEND_FLAG_START | QUIC_SEND_FLAG_FIN);
    WAIT_EVENT(sender, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    close_stream(sender);
}

static void handshakes_survive(const void *row) {
    unsigned lost = *(const unsigned *)row;
    relay *through;
    pair *it = pair_over(&through, usual_options());
    atomic_store(&through->lose_next, lost);
    connect_pair(it);
    CHECK(atomic_load(&through->lost) >= lost);
    exchange(it, 1000);
    close_pair(it);
}

static void data_survives(const void *row) {
    (void)row;
    relay *through;
    QUIC_STATISTICS_V2 statistics;
    uint32_t length = sizeof(statistics);
    pair *it = pair_over(&through, usual_options());
    connect_pair(it);
    atomic_store(&through->lose_next, 3);
    exchange(it, 200000);
    CHECK_OK(api->GetParam(it->client.handle, QUIC_PARAM_CONN_STATISTICS_V2, &length, &statistics));
    CHECK(statistics.SendSuspectedLostPackets > 0);
    close_pair(it);
}

/* Who has sent and hears nothing gives up after DisconnectTimeoutMs. */
static void silence_ends_a_connection(const void *row) {
    (void)row;
    relay *through;
    pair_options options = usual_options();
    SET(options.client, DisconnectTimeoutMs, 500);
    pair *it = pair_over(&through, options);
    connect_pair(it);
    atomic_store(&through->lose_to_server, true);
    atomic_store(&through->lose_to_client, true);
    stream *sender = open_stream(&it->client, QUIC_STREAM_OPEN_FLAG_NONE);
    send_pattern(sender, 0, 1000, 1, QUIC_SEND_FLAG_START | QUIC_SEND_FLAG_FIN);
    event why = WAIT_EVENT(&it->client, TRANSPORT);
    CHECK_STATUS(QUIC_STATUS_CONNECTION_TIMEOUT, why.status);
    event last = WAIT_EVENT(sender, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    CHECK(last.first && !last.third);
    CHECK_STATUS(QUIC_STATUS_CONNECTION_TIMEOUT, last.status);
    WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    close_stream(sender);
    close_pair(it);
}

/* A client behind a router that gives it another port goes on, and the server is told. */
static void another_port_is_noticed(const void *row) {
    (void)row;
    relay *through;
    pair *it = pair_over(&through, usual_options());
    connect_pair(it);
    /* Not before the handshake is confirmed, which the keys' update tells. */
    while (api->SetParam(it->client.handle, QUIC_PARAM_CONN_FORCE_KEY_UPDATE, 0, NULL) != QUIC_STATUS_SUCCESS) {
        let_things_happen(1);
    }
    atomic_store(&through->move, true);
    exchange(it, 20000);
    WAIT_EVENT(it->server, QUIC_CONNECTION_EVENT_PEER_ADDRESS_CHANGED);
    CHECK_NO_EVENT(&it->client, TRANSPORT);
    close_pair(it);
}

static QUIC_STATUS give_a_code(stream *of, QUIC_STREAM_EVENT *what) {
    (void)of;
    if (what->Type != QUIC_STREAM_EVENT_CANCEL_ON_LOSS) return HOOK_DEFAULT;
    what->CANCEL_ON_LOSS.ErrorCode = 99;
    return QUIC_STATUS_SUCCESS;
}

/* A send that is worth nothing when late ends its stream, with the code that the program gives. */
static void a_send_is_canceled_on_loss(const void *row) {
    (void)row;
    relay *through;
    pair *it = pair_over(&through, usual_options());
    connect_pair(it);
    stream *sender = start_stream(&it->client, QUIC_STREAM_OPEN_FLAG_NONE, QUIC_STREAM_START_FLAG_IMMEDIATE);
    stream *receiver = accepted_stream(it->server, 1);
    sender->hook = give_a_code;
    atomic_store(&through->lose_to_server, true);
    send_pattern(sender, 0, 500, 1, QUIC_SEND_FLAG_CANCEL_ON_LOSS);
    let_things_happen(50);
    atomic_store(&through->lose_to_server, false);
    WAIT_EVENT(sender, QUIC_STREAM_EVENT_CANCEL_ON_LOSS);
    CHECK_EQUAL(99, WAIT_EVENT(receiver, QUIC_STREAM_EVENT_PEER_SEND_ABORTED).code);
    close_stream(sender);
    close_pair(it);
}

static bool has_state(connection *of, uint64_t state) {
    for (unsigned i = 0; i < of->events.count; i++) {
        const event *it = &of->events.events[i];
        if (it->type == QUIC_CONNECTION_EVENT_DATAGRAM_SEND_STATE_CHANGED && it->code == state) return true;
    }
    return false;
}

static void a_lost_datagram_is_told(const void *row) {
    (void)row;
    relay *through;
    QUIC_BUFFER *buffer = keep(sizeof(*buffer));
    *buffer = (QUIC_BUFFER){100, keep(100)};
    pair_options options = usual_options();
    SET(options.server, DatagramReceiveEnabled, 1);
    pair *it = pair_over(&through, options);
    connect_pair(it);
    atomic_store(&through->lose_to_server, true);
    CHECK_PENDING(api->DatagramSend(it->client.handle, buffer, 1, QUIC_SEND_FLAG_NONE, buffer));
    WAIT_UNTIL(has_state(&it->client, QUIC_DATAGRAM_SEND_SENT));
    let_things_happen(50);
    atomic_store(&through->lose_to_server, false);
    exchange(it, 50000);
    WAIT_UNTIL(has_state(&it->client, QUIC_DATAGRAM_SEND_LOST_SUSPECT));
    /* It may still be acknowledged: that it is not is known later, when other packets have been for a while. */
    for (unsigned i = 0; i < 200 && !has_state(&it->client, QUIC_DATAGRAM_SEND_LOST_DISCARDED); i++) {
        send_a_little(it);
        let_things_happen(20);
    }
    WAIT_UNTIL(has_state(&it->client, QUIC_DATAGRAM_SEND_LOST_DISCARDED));
    CHECK_NO_EVENT(it->server, QUIC_CONNECTION_EVENT_DATAGRAM_RECEIVED);
    close_pair(it);
}

typedef struct flagged {
    QUIC_BUFFER buffer;
    unsigned state; /* The last one that was told, plus one. */
} flagged;

static QUIC_STATUS note_states(connection *of, QUIC_CONNECTION_EVENT *what) {
    (void)of;
    if (what->Type != QUIC_CONNECTION_EVENT_DATAGRAM_SEND_STATE_CHANGED) return HOOK_DEFAULT;
    flagged *it = what->DATAGRAM_SEND_STATE_CHANGED.ClientContext;
    lock_suite();
    it->state = what->DATAGRAM_SEND_STATE_CHANGED.State + 1;
    suite_changed();
    unlock_suite();
    return QUIC_STATUS_SUCCESS;
}

static flagged *send_flagged(pair *it, QUIC_SEND_FLAGS flags) {
    flagged *datagram = keep(sizeof(*datagram));
    datagram->buffer = (QUIC_BUFFER){1000, keep(1000)};
    CHECK_PENDING(api->DatagramSend(it->client.handle, &datagram->buffer, 1, flags, datagram));
    return datagram;
}

/* What is worth nothing later is canceled when the network takes nothing more; the rest waits. */
static void a_blocked_datagram_is_canceled(const void *row) {
    bool flag = *(const bool *)row;
    relay *through;
    pair_options options = usual_options();
    SET(options.server, DatagramReceiveEnabled, 1);
    options.on_client = note_states;
    pair *it = pair_over(&through, options);
    connect_pair(it);
    flagged *passes = send_flagged(it, flag ? QUIC_SEND_FLAG_CANCEL_ON_BLOCKED : QUIC_SEND_FLAG_NONE);
    WAIT_UNTIL(passes->state == QUIC_DATAGRAM_SEND_ACKNOWLEDGED + 1);
    atomic_store(&through->lose_to_server, true);
    for (int i = 0; i < 100; i++) send_flagged(it, QUIC_SEND_FLAG_NONE);
    flagged *last = send_flagged(it, flag ? QUIC_SEND_FLAG_CANCEL_ON_BLOCKED : QUIC_SEND_FLAG_NONE);
    if (flag) {
        WAIT_UNTIL(last->state == QUIC_DATAGRAM_SEND_CANCELED + 1);
    } else {
        let_things_happen(50);
        lock_suite();
        CHECK_EQUAL(0, last->state);
        unlock_suite();
    }
    close_pair(it);
}

void declare_losses(void) {
    static const bool either[] = {false, true};
    for (size_t i = 0; i < 2; i++) {
        add_case(CASE_ORDINARY, a_blocked_datagram_is_canceled, &either[i], "losses/blocked_datagram_%s",
                 either[i] ? "is_canceled" : "waits");
    }
    static const unsigned counts[] = {0, 1, 2, 3};
    for (size_t i = 0; i < 4; i++) {
        add_case(CASE_ORDINARY, handshakes_survive, &counts[i], "losses/handshake_%u", counts[i]);
    }
#define ADD(body) add_case(CASE_ORDINARY, body, NULL, "losses/%s", #body)
    ADD(data_survives);
    ADD(silence_ends_a_connection);
    ADD(another_port_is_noticed);
    ADD(a_send_is_canceled_on_loss);
    ADD(a_lost_datagram_is_told);
#undef ADD
}
