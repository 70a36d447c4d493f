/* Calls from within callbacks, send flags, and what is rarely used: schedules, priorities, no encryption. */
#include "suite.h"

static void prepare_end(stream *it) { it->ends_by_itself = true; }

/* ---- From within callbacks ---- */

static QUIC_STATUS ask_within(connection *of, QUIC_CONNECTION_EVENT *what) {
    QUIC_STATISTICS_V2 statistics;
    QUIC_ADDR address;
    uint16_t priority = 3;
    uint32_t length = sizeof(statistics), scheme = QUIC_STREAM_SCHEDULING_SCHEME_ROUND_ROBIN;
    if (what->Type != QUIC_CONNECTION_EVENT_CONNECTED) return HOOK_DEFAULT;
    CHECK_OK(api->GetParam(of->handle, QUIC_PARAM_CONN_STATISTICS_V2, &length, &statistics));
    length = sizeof(address);
    CHECK_OK(api->GetParam(of->handle, QUIC_PARAM_CONN_REMOTE_ADDRESS, &length, &address));
    CHECK_OK(api->SetParam(of->handle, QUIC_PARAM_CONN_STREAM_SCHEDULING_SCHEME, sizeof(scheme), &scheme));
    stream *opened = open_stream(of, QUIC_STREAM_OPEN_FLAG_NONE);
    CHECK_OK(api->SetParam(opened->handle, QUIC_PARAM_STREAM_PRIORITY, sizeof(priority), &priority));
    send_pattern(opened, 0, 4000, 2, QUIC_SEND_FLAG_START | QUIC_SEND_FLAG_FIN);
    lock_suite();
    of->user = opened;
    suite_changed();
    unlock_suite();
    return HOOK_DEFAULT;
}

static void a_stream_is_opened_when_connected(const void *row) {
    (void)row;
    pair_options options = usual_options();
    options.on_client = ask_within;
    options.prepare_server_stream = prepare_end;
    pair *it = connected_pair(&options);
    WAIT_UNTIL(it->client.user);
    stream *opened = it->client.user;
    WAIT_EVENT(opened, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    CHECK_EQUAL(4000, accepted_stream(it->server, 1)->received);
    close_stream(opened);
    close_pair(it);
}

/* On the thread of the connection, an INLINE shutdown is done when the call returns. */
static QUIC_STATUS shut_down_inline(stream *of, QUIC_STREAM_EVENT *what) {
    if (what->Type != QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN) return HOOK_DEFAULT;
    CHECK_STATUS(QUIC_STATUS_SUCCESS,
                 api->StreamShutdown(of->handle, QUIC_STREAM_SHUTDOWN_FLAG_GRACEFUL | QUIC_STREAM_SHUTDOWN_FLAG_INLINE,
                                     0));
    return QUIC_STATUS_SUCCESS;
}

static void prepare_inline(stream *it) { it->hook = shut_down_inline; }

static void a_stream_is_shut_down_inline(const void *row) {
    (void)row;
    pair_options options = usual_options();
    options.prepare_server_stream = prepare_inline;
    pair *it = connected_pair(&options);
    stream *sender = open_stream(&it->client, QUIC_STREAM_OPEN_FLAG_NONE);
    send_pattern(sender, 0, 100, 1, QUIC_SEND_FLAG_START | QUIC_SEND_FLAG_FIN);
    WAIT_EVENT(sender, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    close_stream(sender);
    close_pair(it);
}

static QUIC_STATUS shut_the_connection_down(stream *of, QUIC_STREAM_EVENT *what) {
    if (what->Type == QUIC_STREAM_EVENT_RECEIVE) {
        api->ConnectionShutdown(of->of->handle, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 44);
    }
    return HOOK_DEFAULT;
}

static void prepare_shutdown(stream *it) { it->hook = shut_the_connection_down; }

static void the_connection_is_shut_down_while_receiving(const void *row) {
    (void)row;
    pair_options options = usual_options();
    options.prepare_server_stream = prepare_shutdown;
    pair *it = connected_pair(&options);
    stream *sender = open_stream(&it->client, QUIC_STREAM_OPEN_FLAG_NONE);
    send_pattern(sender, 0, 100, 1, QUIC_SEND_FLAG_START);
    CHECK_EQUAL(44, WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_PEER).code);
    WAIT_EVENT(sender, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    close_stream(sender);
    close_pair(it);
}

static QUIC_STATUS refuse_streams(connection *of, QUIC_CONNECTION_EVENT *what) {
    (void)of;
    return what->Type == QUIC_CONNECTION_EVENT_PEER_STREAM_STARTED ? QUIC_STATUS_ABORTED : HOOK_DEFAULT;
}

/* A stream that the program does not want is taken back and told off. */
static void a_stream_of_the_peer_is_refused(const void *row) {
    (void)row;
    pair_options options = usual_options();
    options.on_server = refuse_streams;
    pair *it = connected_pair(&options);
    stream *sender = start_stream(&it->client, QUIC_STREAM_OPEN_FLAG_NONE, QUIC_STREAM_START_FLAG_IMMEDIATE);
    WAIT_EVENT(sender, QUIC_STREAM_EVENT_PEER_RECEIVE_ABORTED);
    close_stream(sender);
    close_pair(it);
}

/* ---- Send flags ---- */

static void is_sent_with_flags(const void *row) {
    QUIC_SEND_FLAGS flags = *(const QUIC_SEND_FLAGS *)row;
    pair_options options = usual_options();
    options.prepare_server_stream = prepare_end;
    pair *it = connected_pair(&options);
    stream *sender = start_stream(&it->client, QUIC_STREAM_OPEN_FLAG_NONE, QUIC_STREAM_START_FLAG_NONE);
    send_pattern(sender, 0, 700, 1, flags);
    send_pattern(sender, 700, 700, 1, flags | QUIC_SEND_FLAG_FIN);
    WAIT_EVENT(sender, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    CHECK_EQUAL(1400, accepted_stream(it->server, 1)->received);
    close_stream(sender);
    close_pair(it);
}

/* What waits because of DELAY_SEND goes with what does not. */
static void delayed_sends_go_with_the_next(const void *row) {
    (void)row;
    pair *it = usual_pair();
    stream *sender = start_stream(&it->client, QUIC_STREAM_OPEN_FLAG_NONE, QUIC_STREAM_START_FLAG_NONE);
    send_pattern(sender, 0, 100, 1, QUIC_SEND_FLAG_DELAY_SEND);
    send_pattern(sender, 100, 100, 1, QUIC_SEND_FLAG_NONE);
    stream *receiver = accepted_stream(it->server, 1);
    WAIT_UNTIL(receiver->received == 200);
    close_stream(sender);
    close_pair(it);
}

/* ---- Schedules ---- */

static void all_schedules_carry_everything(const void *row) {
    uint32_t scheme = *(const uint32_t *)row;
    stream *senders[5];
    pair_options options = usual_options();
    options.prepare_server_stream = prepare_end;
    pair *it = connected_pair(&options);
    CHECK_OK(api->SetParam(
        it->client.handle, QUIC_PARAM_CONN_STREAM_SCHEDULING_SCHEME, sizeof(scheme), &scheme));
    for (uint16_t i = 0; i < 5; i++) {
        uint16_t priority = (uint16_t)(i * 1000);
        senders[i] = open_stream(&it->client, QUIC_STREAM_OPEN_FLAG_NONE);
        CHECK_OK(api->SetParam(senders[i]->handle, QUIC_PARAM_STREAM_PRIORITY, sizeof(priority), &priority));
        send_pattern(senders[i], 0, 100000, 1, QUIC_SEND_FLAG_START | QUIC_SEND_FLAG_FIN);
    }
    for (int i = 0; i < 5; i++) {
        WAIT_EVENT(senders[i], QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
        close_stream(senders[i]);
    }
    close_pair(it);
}

static void every_controller_carries_everything(const void *row) {
    pair_options options = usual_options();
    SET(options.client, CongestionControlAlgorithm, *(const uint16_t *)row);
    options.prepare_server_stream = prepare_end;
    pair *it = connected_pair(&options);
    stream *sender = open_stream(&it->client, QUIC_STREAM_OPEN_FLAG_NONE);
    send_pattern(sender, 0, 1 << 20, 1, QUIC_SEND_FLAG_START | QUIC_SEND_FLAG_FIN);
    WAIT_EVENT(sender, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    close_stream(sender);
    close_pair(it);
}

/* ---- Settings at work ---- */

static void set_windows(QUIC_SETTINGS *it) {
    SET(*it, StreamRecvWindowDefault, 4096);
    SET(*it, ConnFlowControlWindow, 8192);
}
static void set_migration(QUIC_SETTINGS *it) { SET(*it, MigrationEnabled, 0); }
static void set_ecn(QUIC_SETTINGS *it) { SET(*it, EcnEnabled, 1); }
static void set_grease(QUIC_SETTINGS *it) { SET(*it, GreaseQuicBitEnabled, 1); }
static void set_no_pacing(QUIC_SETTINGS *it) { SET(*it, PacingEnabled, 0); }
static void set_hystart(QUIC_SETTINGS *it) { SET(*it, HyStartEnabled, 1); }
static void set_small_mtu(QUIC_SETTINGS *it) {
    SET(*it, MinimumMtu, 1248);
    SET(*it, MaximumMtu, 1248);
}
static void set_large_mtu(QUIC_SETTINGS *it) { SET(*it, MinimumMtu, 1500); }
static void set_large_first_window(QUIC_SETTINGS *it) { SET(*it, InitialWindowPackets, 1000); }
static void set_short_ack_delay(QUIC_SETTINGS *it) { SET(*it, MaxAckDelayMs, 1); }
static void set_small_drain(QUIC_SETTINGS *it) { SET(*it, MaxOperationsPerDrain, 1); }

static const struct work_row {
    const char *name;
    void (*set)(QUIC_SETTINGS *it);
} work_rows[] = {
    {"windows", set_windows}, {"migration", set_migration}, {"ecn", set_ecn}, {"grease", set_grease},
    {"no_pacing", set_no_pacing}, {"hystart", set_hystart}, {"small_mtu", set_small_mtu},
    {"large_mtu", set_large_mtu}, {"large_first_window", set_large_first_window},
    {"short_ack_delay", set_short_ack_delay}, {"small_drain", set_small_drain},
};

static void works_with_the_setting(const void *row) {
    const struct work_row *it = row;
    pair_options options = usual_options();
    it->set(&options.client);
    it->set(&options.server);
    options.prepare_server_stream = prepare_end;
    pair *ends = connected_pair(&options);
    stream *sender = open_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE);
    send_pattern(sender, 0, 300000, 1, QUIC_SEND_FLAG_START | QUIC_SEND_FLAG_FIN);
    WAIT_EVENT(sender, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    CHECK_EQUAL(300000, accepted_stream(ends->server, 1)->received);
    close_stream(sender);
    close_pair(ends);
}

void declare_callbacks(void) {
    static const QUIC_SEND_FLAGS flags[] = {
        QUIC_SEND_FLAG_NONE, QUIC_SEND_FLAG_ALLOW_0_RTT, QUIC_SEND_FLAG_DGRAM_PRIORITY, QUIC_SEND_FLAG_CANCEL_ON_LOSS,
        QUIC_SEND_FLAG_PRIORITY_WORK, QUIC_SEND_FLAG_CANCEL_ON_BLOCKED, QUIC_SEND_FLAG_DELAY_SEND};
    static const uint32_t schemes[] = {QUIC_STREAM_SCHEDULING_SCHEME_FIFO, QUIC_STREAM_SCHEDULING_SCHEME_ROUND_ROBIN};
    static const uint16_t controllers[] = {QUIC_CONGESTION_CONTROL_ALGORITHM_CUBIC,
                                           QUIC_CONGESTION_CONTROL_ALGORITHM_BBR};
    for (size_t i = 0; i < 7; i++) {
        add_case(CASE_ORDINARY, is_sent_with_flags, &flags[i], "callbacks/send_flags/%u", flags[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        add_case(CASE_ORDINARY, all_schedules_carry_everything, &schemes[i], "callbacks/schedule/%u", schemes[i]);
        add_case(CASE_ORDINARY, every_controller_carries_everything, &controllers[i], "callbacks/controller/%u",
                 controllers[i]);
    }
    for (size_t i = 0; i < sizeof(work_rows) / sizeof(*work_rows); i++) {
        add_case(CASE_ORDINARY, works_with_the_setting, &work_rows[i], "callbacks/setting_at_work/%s",
                 work_rows[i].name);
    }
#define ADD(body) add_case(CASE_ORDINARY, body, NULL, "callbacks/%s", #body)
    ADD(a_stream_is_opened_when_connected);
    ADD(a_stream_is_shut_down_inline);
    ADD(the_connection_is_shut_down_while_receiving);
    ADD(a_stream_of_the_peer_is_refused);
    ADD(delayed_sends_go_with_the_next);
#undef ADD
}
