/* What is done and told before other work, and what comes behind all that was asked for before. */
#include "suite.h"

enum { OTHERS = 8 };

/* The streams in the order in which they were told that they have begun, and that a send is complete. */
static stream *started[OTHERS + 4], *completed[OTHERS + 4];
static unsigned started_count, completed_count;
static bool all_asked;

/* The first one that begins keeps the thread that tells of it, until everything was asked for. */
static QUIC_STATUS note_order(stream *of, QUIC_STREAM_EVENT *what) {
    bool is_start = what->Type == QUIC_STREAM_EVENT_START_COMPLETE;
    if (!is_start && what->Type != QUIC_STREAM_EVENT_SEND_COMPLETE) return HOOK_DEFAULT;
    lock_suite();
    if (is_start) started[started_count++] = of;
    else completed[completed_count++] = of;
    suite_changed();
    bool is_first = is_start && started_count == 1;
    unlock_suite();
    if (is_first) WAIT_UNTIL(all_asked);
    return HOOK_DEFAULT;
}

static stream *noted_stream(connection *on) {
    stream *it = open_stream(on, QUIC_STREAM_OPEN_FLAG_UNIDIRECTIONAL);
    it->hook = note_order;
    return it;
}

/* Starts a stream whose event keeps the thread of its connection. */
static stream *keep_busy(connection *which) {
    stream *it = noted_stream(which);
    CHECK_PENDING(api->StreamStart(it->handle, QUIC_STREAM_START_FLAG_IMMEDIATE));
    WAIT_UNTIL(started_count == 1);
    return it;
}

static void let_go(void) {
    lock_suite();
    all_asked = true;
    suite_changed();
    unlock_suite();
}

static void start_and_send(stream *it, bool is_urgent) {
    CHECK_PENDING(api->StreamStart(it->handle, is_urgent ? QUIC_STREAM_START_FLAG_PRIORITY_WORK : QUIC_STREAM_START_FLAG_NONE));
    send_pattern(it, 0, 100, 1, QUIC_SEND_FLAG_FIN | (is_urgent ? QUIC_SEND_FLAG_PRIORITY_WORK : QUIC_SEND_FLAG_NONE));
}

static pair *roomy_pair(void) {
    pair_options options = usual_options();
    options.server.PeerUnidiStreamCount = 2 * OTHERS;
    return connected_pair(&options);
}

/* What is urgent is told before what was asked for earlier; of a send that is not, only the beginning is. */
static void urgent_work_is_told_first(const void *row) {
    bool sends_urgently = *(const bool *)row;
    pair *ends = roomy_pair();
    stream *others[OTHERS], *busy = keep_busy(&ends->client);
    for (unsigned i = 0; i < OTHERS; i++) start_and_send(others[i] = noted_stream(&ends->client), false);
    stream *urgent = noted_stream(&ends->client);
    CHECK_PENDING(api->StreamStart(urgent->handle, QUIC_STREAM_START_FLAG_PRIORITY_WORK));
    send_pattern(urgent, 0, 100, 1, QUIC_SEND_FLAG_FIN | (sends_urgently ? QUIC_SEND_FLAG_PRIORITY_WORK : 0));
    let_go();
    WAIT_UNTIL(completed_count == OTHERS + 1);
    CHECK(started[0] == busy && started[1] == urgent);
    for (unsigned i = 0; i < OTHERS; i++) CHECK(started[i + 2] == others[i]);
    CHECK(sends_urgently ? completed[0] == urgent : completed[0] == others[0]);
    close_stream(busy);
    close_stream(urgent);
    for (unsigned i = 0; i < OTHERS; i++) close_stream(others[i]);
    close_pair(ends);
}

/* Of connections that have one thread, those with urgent work come first, and of those the one that is told something. The
   others have not been started: what they send is complete when it was copied. */
static void connections_with_urgent_work_come_first(const void *row) {
    (void)row;
    pair_options options = usual_options();
    options.profile = QUIC_EXECUTION_PROFILE_TYPE_SCAVENGER;
    pair *ends = connected_pair(&options);
    connection *later[4];
    stream *on_later[4], *busy = keep_busy(&ends->client);
    for (unsigned i = 0; i < 4; i++) on_later[i] = noted_stream(later[i] = another_client(ends));
    for (unsigned i = 0; i < 4; i++) start_and_send(on_later[i], i % 2 == 1);
    send_pattern(busy, 0, 100, 1, QUIC_SEND_FLAG_FIN | QUIC_SEND_FLAG_PRIORITY_WORK);
    let_go();
    WAIT_UNTIL(completed_count == 5);
    stream *const order[] = {busy, on_later[1], on_later[3], on_later[0], on_later[2]};
    for (unsigned i = 0; i < 5; i++) CHECK(started[i] == order[i] && completed[i] == order[i]);
    close_stream(busy);
    for (unsigned i = 0; i < 4; i++) close_stream(on_later[i]);
    for (unsigned i = 0; i < 4; i++) close_connection(later[i]);
    close_pair(ends);
}

/* Statistics come behind all that was asked for before. */
static void statistics_come_behind_what_was_asked_for(const void *row) {
    uint32_t parameter = *(const uint32_t *)row;
    uint8_t statistics[512];
    uint32_t length = sizeof(statistics);
    pair *ends = roomy_pair();
    stream *others[OTHERS], *busy = keep_busy(&ends->client);
    for (unsigned i = 0; i < OTHERS; i++) start_and_send(others[i] = noted_stream(&ends->client), false);
    let_go();
    CHECK_OK(api->GetParam(others[0]->handle, parameter, &length, statistics));
    lock_suite();
    CHECK_EQUAL(OTHERS + 1, started_count);
    unlock_suite();
    length = sizeof(statistics);
    CHECK_OK(api->GetParam(ends->client.handle, parameter | QUIC_PARAM_HIGH_PRIORITY, &length, statistics));
    close_stream(busy);
    for (unsigned i = 0; i < OTHERS; i++) close_stream(others[i]);
    close_pair(ends);
}

static pthread_t thread_of[2][3];
static unsigned connected[2];

static QUIC_STATUS note_thread(connection *of, QUIC_CONNECTION_EVENT *what) {
    if (what->Type != QUIC_CONNECTION_EVENT_CONNECTED) return HOOK_DEFAULT;
    lock_suite();
    thread_of[of->server][connected[of->server]++] = pthread_self();
    suite_changed();
    unlock_suite();
    return HOOK_DEFAULT;
}

/* One thread does all work that nobody waits for. */
static void connections_of_a_scavenger_have_one_thread(const void *row) {
    (void)row;
    pair_options options = usual_options();
    options.profile = QUIC_EXECUTION_PROFILE_TYPE_SCAVENGER;
    options.on_client = options.on_server = note_thread;
    pair *ends = connected_pair(&options);
    connection *others[2];
    for (unsigned i = 0; i < 2; i++) {
        others[i] = another_client(ends);
        others[i]->hook = note_thread;
        CHECK_PENDING(api->ConnectionStart(others[i]->handle, ends->client_configuration, QUIC_ADDRESS_FAMILY_INET,
                                           "127.0.0.1", ends->port));
        WAIT_UNTIL(connected[false] == i + 2 && connected[true] == i + 2);
    }
    for (unsigned i = 0; i < 6; i++) CHECK(pthread_equal(thread_of[0][0], thread_of[i / 3][i % 3]));
    for (unsigned i = 0; i < 2; i++) close_connection(others[i]);
    close_pair(ends);
}

void declare_priorities(void) {
    static const bool either[] = {false, true};
    static const uint32_t parameters[] = {QUIC_PARAM_CONN_STATISTICS, QUIC_PARAM_CONN_STATISTICS_V2,
                                          QUIC_PARAM_CONN_STATISTICS_V2_PLAT};
    for (size_t i = 0; i < 2; i++) {
        add_case(CASE_ORDINARY, urgent_work_is_told_first, &either[i], "priorities/start%s", either[i] ? "_and_send" : "");
    }
    for (size_t i = 0; i < 3; i++) {
        add_case(CASE_ORDINARY, statistics_come_behind_what_was_asked_for, &parameters[i], "priorities/statistics/%x",
                 parameters[i]);
    }
    add_case(CASE_ORDINARY, connections_with_urgent_work_come_first, NULL, "priorities/connections");
    add_case(CASE_ORDINARY, connections_of_a_scavenger_have_one_thread, NULL, "priorities/one_thread");
}
