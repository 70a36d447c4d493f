/* Registrations: their ends, what they wait for, and configurations that outlive what was made with them. */
#include "suite.h"

static void shutdown_ends_everything(const void *row) {
    bool silent = *(const bool *)row;
    HQUIC made;
    pair *it = usual_pair();
    api->RegistrationShutdown(
        it->registration, silent ? QUIC_CONNECTION_SHUTDOWN_FLAG_SILENT : QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 77);
    CHECK(WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE).first);
    CHECK(WAIT_EVENT(it->server, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE).first);
    CHECK(!WAIT_EVENT(&it->listener, QUIC_LISTENER_EVENT_STOP_COMPLETE).first);
    CHECK_STATUS(QUIC_STATUS_INVALID_STATE, api->ConnectionOpen(it->registration, on_connection_event, NULL, &made));
    CHECK_STATUS(QUIC_STATUS_INVALID_STATE, api->ListenerOpen(it->registration, on_listener_event, NULL, &made));
    close_pair(it);
}

enum { MANY = 12 };

static stream *tell_much(connection *it) {
    stream *from = start_stream(it, QUIC_STREAM_OPEN_FLAG_UNIDIRECTIONAL, QUIC_STREAM_START_FLAG_NONE);
    send_pattern(from, 0, 1000000, 1, QUIC_SEND_FLAG_NONE);
    return from;
}

/* Connections that hear of the shutdown later than their peers are shut down all the same: no end is told that another one
 * knows nothing of it any more. */
static void shutdown_comes_before_what_follows_from_it(const void *row) {
    (void)row;
    connection *ends[2 * MANY];
    stream *streams[2 * MANY];
    pair *it = usual_pair();
    for (unsigned i = 0; i < MANY; i++) {
        connection *client = ends[i] = i ? another_client(it) : &it->client;
        if (i) {
            CHECK_PENDING(api->ConnectionStart(client->handle, it->client_configuration, QUIC_ADDRESS_FAMILY_UNSPEC,
                                               "127.0.0.1", it->port));
        }
        WAIT_EVENT(client, QUIC_CONNECTION_EVENT_CONNECTED);
        WAIT_EVENT(ends[MANY + i] = wait_server_number(it, i + 1), QUIC_CONNECTION_EVENT_CONNECTED);
    }
    for (unsigned i = 0; i < 2 * MANY; i++) streams[i] = tell_much(ends[i]);
    api->RegistrationShutdown(it->registration, QUIC_CONNECTION_SHUTDOWN_FLAG_SILENT, 1);
    for (unsigned i = 0; i < 2 * MANY; i++) {
        WAIT_EVENT(ends[i], QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
        CHECK_NO_EVENT(ends[i], QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_TRANSPORT);
    }
    for (unsigned i = 0; i < 2 * MANY; i++) close_stream(streams[i]);
    for (unsigned i = 1; i < MANY; i++) close_connection(ends[i]);
    close_pair(it);
}

static void shutdown_reaches_other_registrations(const void *row) {
    (void)row;
    pair *it = usual_pair();
    HQUIC registration = open_registration();
    HQUIC configuration = client_configuration(registration, "suite", NULL);
    connection *client = keep(sizeof(*client));
    QUIC_ADDR address = loopback(it->port);
    CHECK_OK(api->ConnectionOpen(registration, on_connection_event, client, &client->handle));
    CHECK_OK(api->SetParam(client->handle, QUIC_PARAM_CONN_REMOTE_ADDRESS, sizeof(address), &address));
    CHECK_PENDING(api->ConnectionStart(
        client->handle, configuration, QUIC_ADDRESS_FAMILY_UNSPEC, "localhost", it->port));
    WAIT_EVENT(client, QUIC_CONNECTION_EVENT_CONNECTED);
    connection *server = wait_server_number(it, 2);
    WAIT_EVENT(server, QUIC_CONNECTION_EVENT_CONNECTED);
    api->RegistrationShutdown(registration, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 13);
    CHECK_EQUAL(13, WAIT_EVENT(server, QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_PEER).code);
    WAIT_EVENT(client, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    /* The other registration's connections go on. */
    CHECK_NO_EVENT(it->server, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    close_connection(client);
    api->ConfigurationClose(configuration);
    api->RegistrationClose(registration);
    close_pair(it);
}

/* A connection that is not started has nothing to shut down: it is told as soon as it is. */
static void shutdown_waits_for_the_start(const void *row) {
    (void)row;
    QUIC_STATISTICS_V2 statistics;
    uint32_t length = sizeof(statistics);
    pair_options options = usual_options();
    pair *it = open_pair(&options);
    api->RegistrationShutdown(it->registration, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 5);
    CHECK_OK(api->GetParam(it->client.handle, QUIC_PARAM_CONN_STATISTICS_V2, &length, &statistics));
    CHECK_NO_EVENT(&it->client, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    CHECK_PENDING(start_client(it));
    CHECK(!WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE).first);
    close_pair(it);
}

static void shutdown_twice(const void *row) {
    (void)row;
    HQUIC registration = open_registration();
    api->RegistrationShutdown(registration, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 1);
    api->RegistrationShutdown(registration, QUIC_CONNECTION_SHUTDOWN_FLAG_SILENT, 2);
    api->RegistrationClose(registration);
}

typedef struct closing {
    HQUIC registration;
    bool done;
} closing;

static void *close_registration(void *context) {
    closing *it = context;
    api->RegistrationClose(it->registration);
    lock_suite();
    it->done = true;
    suite_changed();
    unlock_suite();
    return NULL;
}

static void note_closed(void *context) {
    closing *it = context;
    lock_suite();
    CHECK(!it->done);
    it->done = true;
    suite_changed();
    unlock_suite();
}

static QUIC_STATUS unused_listener(HQUIC registration, HQUIC *made) {
    return api->ListenerOpen(registration, on_listener_event, keep(sizeof(listener)), made);
}

static connection waiting_connection;
static QUIC_STATUS unused_connection(HQUIC registration, HQUIC *made) {
    QUIC_STATUS status = api->ConnectionOpen(registration, on_connection_event, &waiting_connection, made);
    waiting_connection.handle = *made;
    return status;
}

static QUIC_STATUS unused_configuration(HQUIC registration, HQUIC *made) {
    QUIC_BUFFER alpn = alpn_buffer("suite");
    return api->ConfigurationOpen(registration, &alpn, 1, NULL, 0, NULL, made);
}

static void close_listener(HQUIC it) { api->ListenerClose(it); }
static void close_that_connection(HQUIC it) { api->ConnectionClose(it); }
static void close_configuration(HQUIC it) { api->ConfigurationClose(it); }

/* Closing a registration waits until what belongs to it is closed. */
static const struct holder {
    const char *name;
    QUIC_STATUS (*open)(HQUIC registration, HQUIC *made);
    void (*close)(HQUIC it);
} holders[] = {
    {"listener", unused_listener, close_listener},
    {"connection", unused_connection, close_that_connection},
    {"configuration", unused_configuration, close_configuration},
};

static void close_waits(const void *row) {
    const struct holder *it = row;
    pthread_t thread;
    HQUIC made = NULL;
    closing state = {.registration = open_registration()};
    CHECK_OK(it->open(state.registration, &made));
    CHECK(pthread_create(&thread, NULL, close_registration, &state) == 0);
    let_things_happen(50);
    lock_suite();
    CHECK(!state.done);
    unlock_suite();
    it->close(made);
    pthread_join(thread, NULL);
    CHECK(state.done);
}

static void close2_does_not_wait(const void *row) {
    const struct holder *it = row;
    HQUIC made = NULL;
    closing *state = keep(sizeof(*state));
    state->registration = open_registration();
    CHECK_OK(it->open(state->registration, &made));
    api->RegistrationClose2(state->registration, note_closed, state);
    lock_suite();
    CHECK(!state->done);
    unlock_suite();
    it->close(made);
    WAIT_UNTIL(state->done);
}

static void close2_of_an_empty_registration(const void *row) {
    (void)row;
    closing *state = keep(sizeof(*state));
    state->registration = open_registration();
    api->RegistrationClose2(state->registration, note_closed, state);
    WAIT_UNTIL(state->done);
}

static void many_registrations(const void *row) {
    (void)row;
    HQUIC registrations[20];
    for (int i = 0; i < 20; i++) registrations[i] = open_registration();
    for (int i = 0; i < 20; i++) api->RegistrationClose(registrations[i]);
}

static void every_profile(const void *row) {
    pair_options options = usual_options();
    options.profile = *(const QUIC_EXECUTION_PROFILE *)row;
    close_pair(connected_pair(&options));
}

/* A configuration is needed only until it is used. */
static void configuration_closed_while_in_use(const void *row) {
    (void)row;
    pair_options options = usual_options();
    pair *it = open_pair(&options);
    CHECK_PENDING(start_client(it));
    api->ConfigurationClose(it->client_configuration);
    WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_CONNECTED);
    WAIT_EVENT(wait_server(it), QUIC_CONNECTION_EVENT_CONNECTED);
    it->client_configuration = client_configuration(it->registration, "suite", NULL);
    close_pair(it);
}

void declare_registrations(void) {
    static const bool silent[] = {false, true};
    static const QUIC_EXECUTION_PROFILE profiles[] = {0, 1, 2, 3};
    for (size_t i = 0; i < 2; i++) {
        add_case(CASE_ORDINARY, shutdown_ends_everything, &silent[i], "registrations/shutdown/%s",
                 silent[i] ? "silent" : "told");
    }
    for (size_t i = 0; i < sizeof(holders) / sizeof(*holders); i++) {
        add_case(CASE_ORDINARY, close_waits, &holders[i], "registrations/close_waits/%s", holders[i].name);
        add_case(CASE_ORDINARY, close2_does_not_wait, &holders[i], "registrations/close2/%s", holders[i].name);
    }
    for (size_t i = 0; i < 4; i++) {
        add_case(CASE_ORDINARY, every_profile, &profiles[i], "registrations/profile_%u", profiles[i]);
    }
#define ADD(body) add_case(CASE_ORDINARY, body, NULL, "registrations/%s", #body)
    ADD(shutdown_comes_before_what_follows_from_it);
    ADD(shutdown_reaches_other_registrations);
    ADD(shutdown_twice);
    ADD(shutdown_waits_for_the_start);
    ADD(close2_of_an_empty_registration);
    ADD(many_registrations);
    ADD(configuration_closed_while_in_use);
#undef ADD
}
