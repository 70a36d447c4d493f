/* Tickets: sent by the server with data of the program, taken by the client, refused, and 0-RTT. */
#include "suite.h"

#define TICKET QUIC_CONNECTION_EVENT_RESUMPTION_TICKET_RECEIVED

static const char data_of_the_program[] = "what the program wants to know again";

static pair *pair_with_level(QUIC_SERVER_RESUMPTION_LEVEL level) {
    pair_options options = usual_options();
    SET(options.server, ServerResumptionLevel, level);
    return connected_pair(&options);
}

/* The server may send tickets once its handshake is complete: it is, when it is connected. */
static void send_ticket(pair *it, QUIC_SEND_RESUMPTION_FLAGS flags, uint16_t length, const void *data) {
    CHECK_OK(api->ConnectionSendResumptionTicket(it->server->handle, flags, length, data));
    CHECK(WAIT_EVENT(&it->client, TICKET).type == TICKET);
}

static connection *client_with_ticket(pair *it) {
    connection *client = another_client(it);
    QUIC_ADDR address = loopback(it->port);
    CHECK_OK(api->SetParam(client->handle, QUIC_PARAM_CONN_REMOTE_ADDRESS, sizeof(address), &address));
    CHECK_OK(api->SetParam(
        client->handle, QUIC_PARAM_CONN_RESUMPTION_TICKET, it->client.ticket_length, it->client.ticket));
    return client;
}

static void start_again(pair *it, connection *client) {
    CHECK_PENDING(api->ConnectionStart(
        client->handle, it->client_configuration, QUIC_ADDRESS_FAMILY_UNSPEC, "localhost", it->port));
}

static void data_comes_back(const void *row) {
    uint16_t length = *(const uint16_t *)row;
    uint8_t data[1000];
    pair *it = pair_with_level(QUIC_SERVER_RESUME_AND_ZERORTT);
    for (size_t i = 0; i < sizeof(data); i++) data[i] = pattern(i);
    send_ticket(it, QUIC_SEND_RESUMPTION_FLAG_NONE, length, length ? data : NULL);
    connection *client = client_with_ticket(it);
    start_again(it, client);
    CHECK(WAIT_EVENT(client, QUIC_CONNECTION_EVENT_CONNECTED).first);
    connection *server = wait_server_number(it, 2);
    CHECK(WAIT_EVENT(server, QUIC_CONNECTION_EVENT_CONNECTED).first);
    WAIT_EVENT(server, QUIC_CONNECTION_EVENT_RESUMED);
    CHECK_EQUAL(length, server->resumption_length);
    CHECK(!memcmp(data, server->resumption_data, length));
    CHECK_ORDER(server, QUIC_CONNECTION_EVENT_RESUMED, QUIC_CONNECTION_EVENT_CONNECTED);
    close_connection(client);
    close_pair(it);
}

typedef struct ticket_row {
    const char *name;
    QUIC_SERVER_RESUMPTION_LEVEL level;
    QUIC_SEND_RESUMPTION_FLAGS flags;
    uint16_t length;
    bool data;
    QUIC_STATUS expected;
} ticket_row;

static const ticket_row ticket_rows[] = {
    {"not_enabled", QUIC_SERVER_NO_RESUME, 0, 0, false, QUIC_STATUS_INVALID_STATE},
    {"resume_only", QUIC_SERVER_RESUME_ONLY, 0, 0, false, QUIC_STATUS_SUCCESS},
    {"final", QUIC_SERVER_RESUME_AND_ZERORTT, QUIC_SEND_RESUMPTION_FLAG_FINAL, 10, true, QUIC_STATUS_SUCCESS},
    {"longest", QUIC_SERVER_RESUME_AND_ZERORTT, 0, 1000, true, QUIC_STATUS_SUCCESS},
    {"too_long", QUIC_SERVER_RESUME_AND_ZERORTT, 0, 1001, true, QUIC_STATUS_INVALID_PARAMETER},
    {"data_missing", QUIC_SERVER_RESUME_AND_ZERORTT, 0, 10, false, QUIC_STATUS_INVALID_PARAMETER},
    {"no_such_flag", QUIC_SERVER_RESUME_AND_ZERORTT, 2, 0, false, QUIC_STATUS_INVALID_PARAMETER},
};

static void ticket_is_sent(const void *row) {
    const ticket_row *it = row;
    static uint8_t data[1001];
    pair *ends = pair_with_level(it->level);
    CHECK_STATUS(it->expected, api->ConnectionSendResumptionTicket(ends->server->handle, it->flags, it->length,
                                                                   it->data ? data : NULL));
    if (it->expected == QUIC_STATUS_SUCCESS) WAIT_EVENT(&ends->client, TICKET);
    close_pair(ends);
}

static void none_after_the_final_one(const void *row) {
    (void)row;
    pair *it = pair_with_level(QUIC_SERVER_RESUME_AND_ZERORTT);
    send_ticket(it, QUIC_SEND_RESUMPTION_FLAG_FINAL, 0, NULL);
    CHECK_STATUS(QUIC_STATUS_INVALID_STATE,
                 api->ConnectionSendResumptionTicket(it->server->handle, QUIC_SEND_RESUMPTION_FLAG_NONE, 0, NULL));
    close_pair(it);
}

static void several_tickets(const void *row) {
    (void)row;
    pair *it = pair_with_level(QUIC_SERVER_RESUME_AND_ZERORTT);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(api->ConnectionSendResumptionTicket(it->server->handle, QUIC_SEND_RESUMPTION_FLAG_NONE, 0, NULL));
    }
    WAIT_EVENTS(&it->client, TICKET, 3);
    close_pair(it);
}

/* ---- 0-RTT ---- */

static QUIC_STATUS resumption_verdict;

static QUIC_STATUS judge_ticket(connection *of, QUIC_CONNECTION_EVENT *what) {
    if (what->Type != QUIC_CONNECTION_EVENT_RESUMED) return HOOK_DEFAULT;
    CHECK_EQUAL(sizeof(data_of_the_program), of->resumption_length);
    return resumption_verdict;
}

static void prepare_end(stream *it) { it->ends_by_itself = true; }

static pair *pair_for_early_data(void) {
    pair_options options = usual_options();
    SET(options.server, ServerResumptionLevel, QUIC_SERVER_RESUME_AND_ZERORTT);
    options.prepare_server_stream = prepare_end;
    options.on_server = judge_ticket;
    pair *it = connected_pair(&options);
    send_ticket(it, QUIC_SEND_RESUMPTION_FLAG_NONE, sizeof(data_of_the_program), data_of_the_program);
    return it;
}

/* What a client sends at once that comes back as the `which`-th. */
static void send_at_once(pair *it, unsigned which, bool accepted) {
    uint64_t early = 77;
    uint32_t length = sizeof(early);
    connection *client = client_with_ticket(it);
    stream *sender = open_stream(client, QUIC_STREAM_OPEN_FLAG_0_RTT);
    send_pattern(sender, 0, 500, 1, QUIC_SEND_FLAG_START | QUIC_SEND_FLAG_FIN | QUIC_SEND_FLAG_ALLOW_0_RTT);
    start_again(it, client);
    CHECK_EQUAL(accepted, WAIT_EVENT(client, QUIC_CONNECTION_EVENT_CONNECTED).first);
    stream *receiver = accepted_stream(wait_server_number(it, which + 1), 1);
    WAIT_EVENT(receiver, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    WAIT_EVENT(sender, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    /* Refused or not, the data arrives once. */
    CHECK_EQUAL(500, receiver->received);
    CHECK_EQUAL(accepted ? QUIC_RECEIVE_FLAG_0_RTT : 0,
                WAIT_EVENT(receiver, QUIC_STREAM_EVENT_RECEIVE).status & QUIC_RECEIVE_FLAG_0_RTT);
    CHECK_OK(api->GetParam(sender->handle, QUIC_PARAM_STREAM_0RTT_LENGTH, &length, &early));
    CHECK_EQUAL(accepted ? 500 : 0, early);
    close_stream(sender);
    close_connection(client);
}

static void early_data(const void *row) {
    bool accepted = *(const bool *)row;
    resumption_verdict = accepted ? QUIC_STATUS_SUCCESS : QUIC_STATUS_ABORTED;
    pair *it = pair_for_early_data();
    send_at_once(it, 1, accepted);
    close_pair(it);
}

/* One ticket is good for as many connections as the client likes. */
static void early_data_with_the_same_ticket(const void *row) {
    (void)row;
    resumption_verdict = QUIC_STATUS_SUCCESS;
    pair *it = pair_for_early_data();
    for (unsigned which = 1; which <= 3; which++) send_at_once(it, which, true);
    close_pair(it);
}

static QUIC_STATUS later_ticket(connection *of, QUIC_CONNECTION_EVENT *what) {
    (void)of;
    return what->Type == QUIC_CONNECTION_EVENT_RESUMED ? QUIC_STATUS_PENDING : HOOK_DEFAULT;
}

static void ticket_is_judged_later(const void *row) {
    bool accepted = *(const bool *)row;
    pair_options options = usual_options();
    SET(options.server, ServerResumptionLevel, QUIC_SERVER_RESUME_AND_ZERORTT);
    options.on_server = later_ticket;
    pair *it = connected_pair(&options);
    send_ticket(it, QUIC_SEND_RESUMPTION_FLAG_NONE, sizeof(data_of_the_program), data_of_the_program);
    connection *client = client_with_ticket(it);
    start_again(it, client);
    connection *server = wait_server_number(it, 2);
    WAIT_EVENT(server, QUIC_CONNECTION_EVENT_RESUMED);
    CHECK_PENDING(api->ConnectionResumptionTicketValidationComplete(server->handle, accepted));
    CHECK_EQUAL(accepted, WAIT_EVENT(client, QUIC_CONNECTION_EVENT_CONNECTED).first);
    WAIT_EVENT(server, QUIC_CONNECTION_EVENT_CONNECTED);
    CHECK_STATUS(QUIC_STATUS_INVALID_STATE,
                 api->ConnectionResumptionTicketValidationComplete(server->handle, accepted));
    close_connection(client);
    close_pair(it);
}

/* The server has not said yet whether it wants the session when the client leaves. */
static void client_leaves_before_a_verdict(const void *row) {
    bool accepted = *(const bool *)row;
    pair_options options = usual_options();
    SET(options.server, ServerResumptionLevel, QUIC_SERVER_RESUME_ONLY);
    options.on_server = later_ticket;
    pair *it = connected_pair(&options);
    send_ticket(it, QUIC_SEND_RESUMPTION_FLAG_NONE, sizeof(data_of_the_program), data_of_the_program);
    connection *client = client_with_ticket(it);
    start_again(it, client);
    connection *server = wait_server_number(it, 2);
    WAIT_EVENT(server, QUIC_CONNECTION_EVENT_RESUMED);
    api->ConnectionShutdown(client->handle, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 77);
    CHECK_STATUS(QUIC_STATUS_USER_CANCELED,
                 WAIT_EVENT(server, QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_TRANSPORT).status);
    CHECK(!WAIT_EVENT(server, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE).first);
    CHECK_PENDING(api->ConnectionResumptionTicketValidationComplete(server->handle, accepted));
    close_connection(client);
    close_pair(it);
}

/* A ticket of a server that has other keys now is worth nothing, and no harm. */
static void ticket_of_another_server(const void *row) {
    (void)row;
    pair *it = pair_with_level(QUIC_SERVER_RESUME_AND_ZERORTT);
    QUIC_TICKET_KEY_CONFIG keys = {.MaterialLength = 64};
    send_ticket(it, QUIC_SEND_RESUMPTION_FLAG_NONE, 0, NULL);
    memset(keys.Id, 7, sizeof(keys.Id));
    memset(keys.Material, 9, sizeof(keys.Material));
    CHECK_OK(api->SetParam(it->server_configuration, QUIC_PARAM_CONFIGURATION_TICKET_KEYS, sizeof(keys), &keys));
    connection *client = client_with_ticket(it);
    start_again(it, client);
    CHECK(!WAIT_EVENT(client, QUIC_CONNECTION_EVENT_CONNECTED).first);
    close_connection(client);
    close_pair(it);
}

/* Servers with the same keys take one another's tickets. */
static void ticket_keys_are_shared(const void *row) {
    (void)row;
    pair_options options = usual_options();
    QUIC_TICKET_KEY_CONFIG keys[2] = {{.MaterialLength = 64}, {.MaterialLength = 64}};
    SET(options.server, ServerResumptionLevel, QUIC_SERVER_RESUME_AND_ZERORTT);
    memset(keys[1].Id, 1, sizeof(keys[1].Id));
    memset(keys[1].Material, 2, sizeof(keys[1].Material));
    memset(keys[0].Material, 3, sizeof(keys[0].Material));
    pair *it = open_pair(&options);
    CHECK_OK(api->SetParam(it->server_configuration, QUIC_PARAM_CONFIGURATION_TICKET_KEYS, sizeof(keys), keys));
    connect_pair(it);
    send_ticket(it, QUIC_SEND_RESUMPTION_FLAG_NONE, 0, NULL);
    HQUIC another = server_configuration(it->registration, "suite", &options.server);
    CHECK_OK(api->SetParam(another, QUIC_PARAM_CONFIGURATION_TICKET_KEYS, sizeof(keys), keys));
    lock_suite();
    it->listener.configuration = another;
    unlock_suite();
    connection *client = client_with_ticket(it);
    start_again(it, client);
    CHECK(WAIT_EVENT(client, QUIC_CONNECTION_EVENT_CONNECTED).first);
    close_connection(client);
    api->ConfigurationClose(another);
    close_pair(it);
}

static void statistics_tell_of_it(const void *row) {
    (void)row;
    QUIC_STATISTICS_V2 statistics;
    uint32_t length = sizeof(statistics);
    pair *it = pair_with_level(QUIC_SERVER_RESUME_AND_ZERORTT);
    CHECK_OK(api->GetParam(it->client.handle, QUIC_PARAM_CONN_STATISTICS_V2, &length, &statistics));
    CHECK(!statistics.ResumptionSucceeded);
    send_ticket(it, QUIC_SEND_RESUMPTION_FLAG_NONE, 0, NULL);
    connection *client = client_with_ticket(it);
    start_again(it, client);
    WAIT_EVENT(client, QUIC_CONNECTION_EVENT_CONNECTED);
    CHECK_OK(api->GetParam(client->handle, QUIC_PARAM_CONN_STATISTICS_V2, &length, &statistics));
    CHECK(statistics.ResumptionSucceeded);
    CHECK(performance_counter(QUIC_PERF_COUNTER_CONN_RESUMED) >= 1);
    close_connection(client);
    close_pair(it);
}

void declare_resumption(void) {
    static const uint16_t lengths[] = {0, 1, 100, 1000};
    static const bool verdicts[] = {false, true};
    for (size_t i = 0; i < 4; i++) {
        add_case(CASE_ORDINARY, data_comes_back, &lengths[i], "resumption/data_%u", lengths[i]);
    }
    for (size_t i = 0; i < sizeof(ticket_rows) / sizeof(*ticket_rows); i++) {
        add_case(CASE_ORDINARY, ticket_is_sent, &ticket_rows[i], "resumption/ticket/%s", ticket_rows[i].name);
    }
    for (size_t i = 0; i < 2; i++) {
        const char *verdict = verdicts[i] ? "accepted" : "refused";
        add_case(CASE_ORDINARY, early_data, &verdicts[i], "resumption/0rtt/%s", verdict);
        add_case(CASE_ORDINARY, ticket_is_judged_later, &verdicts[i], "resumption/later/%s", verdict);
        add_case(CASE_ORDINARY, client_leaves_before_a_verdict, &verdicts[i], "resumption/too_late/%s", verdict);
    }
#define ADD(body) add_case(CASE_ORDINARY, body, NULL, "resumption/%s", #body)
    ADD(early_data_with_the_same_ticket);
    ADD(none_after_the_final_one);
    ADD(several_tickets);
    ADD(ticket_of_another_server);
    ADD(ticket_keys_are_shared);
    ADD(statistics_tell_of_it);
#undef ADD
}
