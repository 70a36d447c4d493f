/* Work done by the program's own threads, and pools of connections. */
#include "suite.h"

#include <stdatomic.h>
#include <sys/epoll.h>
#include <unistd.h>

static void needs_a_place(const void *row) {
    (void)row;
    QUIC_EXECUTION *execution = NULL;
    HQUIC registration = open_registration();
    int queue = epoll_create1(0);
    QUIC_EXECUTION_CONFIG config = {0, &queue};
    /* Once there is a registration it is decided who works. */
    CHECK_STATUS(QUIC_STATUS_INVALID_STATE, api->ExecutionCreate(0, 0, 1, &config, &execution));
    api->RegistrationClose(registration);
    close(queue);
}

static atomic_bool stop;

typedef struct worker {
    QUIC_EXECUTION *execution;
    int queue;
} worker;

/* What a program does that works by itself: poll, wait as long as was said, complete what is ready. */
static void *work(void *context) {
    worker *it = context;
    while (!atomic_load(&stop)) {
        uint32_t wait = api->ExecutionPoll(it->execution);
        QUIC_CQE events[16];
        int count = epoll_wait(it->queue, events, 16, wait > 20 ? 20 : (int)wait);
        for (int i = 0; i < count; i++) {
            QUIC_SQE *submitted = events[i].data.ptr;
            submitted->Completion(&events[i]);
        }
    }
    return NULL;
}

static void works_on_a_thread_of_the_program(const void *row) {
    (void)row;
    pthread_t thread;
    worker it = {.queue = epoll_create1(0)};
    QUIC_EXECUTION_CONFIG config = {0, &it.queue};
    CHECK_OK(api->ExecutionCreate(QUIC_GLOBAL_EXECUTION_CONFIG_FLAG_NONE, 0, 1, &config, &it.execution));
    CHECK(it.execution);
    CHECK(pthread_create(&thread, NULL, work, &it) == 0);
    pair *ends = usual_pair();
    stream *client = open_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE);
    send_pattern(client, 0, 100000, 1, QUIC_SEND_FLAG_START | QUIC_SEND_FLAG_FIN);
    WAIT_EVENT(accepted_stream(ends->server, 1), QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN);
    api->ConnectionShutdown(ends->client.handle, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 0);
    WAIT_EVENT(&ends->client, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    WAIT_EVENT(ends->server, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    close_stream(client);
    close_pair(ends);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    api->ExecutionDelete(1, &it.execution);
    close(it.queue);
}

/* ---- Pools ---- */

static QUIC_CONNECTION_POOL_CONFIG pool_of(pair *it, uint16_t count, connection *clients) {
    QUIC_ADDR *address = keep(sizeof(*address));
    void **contexts = keep(count * sizeof(void *) + 1);
    *address = loopback(it->port);
    for (uint16_t i = 0; i < count; i++) contexts[i] = &clients[i];
    return (QUIC_CONNECTION_POOL_CONFIG){
        .Registration = it->registration,
        .Configuration = it->client_configuration,
        .Handler = on_connection_event,
        .Context = contexts,
        .ServerName = "localhost",
        .ServerAddress = address,
        .Family = QUIC_ADDRESS_FAMILY_INET,
        .ServerPort = it->port,
        .NumberOfConnections = count,
    };
}

enum pool_fault {
    NO_FAULT, NO_REGISTRATION, NO_CONFIGURATION, NO_HANDLER, NO_NAME, NO_PORT, NO_COUNT, NO_FAMILY,
    NO_CIBIR, NO_CIBIR_LENGTH, NO_CONFIG, NO_PLACE, POOL_FAULTS
};

static const char *const fault_names[POOL_FAULTS] = {
    "none", "registration", "configuration", "handler", "name", "port", "count", "family",
    "cibir", "cibir_length", "config", "place"};

static void pool_is_refused(const void *row) {
    enum pool_fault fault = *(const enum pool_fault *)row;
    HQUIC made[2] = {NULL, NULL};
    uint8_t *ids[2] = {keep(8), keep(8)};
    pair_options options = usual_options();
    pair *it = open_pair(&options);
    connection *clients = keep(2 * sizeof(*clients));
    QUIC_CONNECTION_POOL_CONFIG config = pool_of(it, 2, clients);
    switch (fault) {
    case NO_REGISTRATION: config.Registration = NULL; break;
    case NO_CONFIGURATION: config.Configuration = NULL; break;
    case NO_HANDLER: config.Handler = NULL; break;
    case NO_NAME: config.ServerName = NULL; break;
    case NO_PORT: config.ServerPort = 0; break;
    case NO_COUNT: config.NumberOfConnections = 0; break;
    case NO_FAMILY: config.Family = 77; break;
    case NO_CIBIR: config.CibirIdLength = 4; break;
    case NO_CIBIR_LENGTH: config.CibirIds = ids; break;
    default: break;
    }
    CHECK_STATUS(QUIC_STATUS_INVALID_PARAMETER,
                 api->ConnectionPoolCreate(fault == NO_CONFIG ? NULL : &config, fault == NO_PLACE ? NULL : made));
    close_pair(it);
}

/* Libraries spread a pool over the queues of a network card, and may fail where there is none. */
static void pool_connects(const void *row) {
    uint16_t count = *(const uint16_t *)row;
    HQUIC made[8] = {NULL};
    pair_options options = usual_options();
    pair *it = open_pair(&options);
    connection *clients = keep(count * sizeof(*clients));
    QUIC_CONNECTION_POOL_CONFIG config = pool_of(it, count, clients);
    lock_suite();
    QUIC_STATUS status = api->ConnectionPoolCreate(&config, made);
    for (uint16_t i = 0; i < count; i++) clients[i].handle = made[i];
    unlock_suite();
    if (QUIC_FAILED(status)) {
        close_pair(it);
        skip_case("no pool over loopback: %s", status_name(status));
    }
    for (uint16_t i = 0; i < count; i++) {
        CHECK(made[i]);
        WAIT_EVENT(&clients[i], QUIC_CONNECTION_EVENT_CONNECTED);
    }
    for (uint16_t i = 0; i < count; i++) close_connection(&clients[i]);
    close_pair(it);
}

void declare_executions(void) {
    static const enum pool_fault faults[] = {NO_REGISTRATION, NO_CONFIGURATION, NO_HANDLER, NO_NAME, NO_PORT, NO_COUNT,
                                             NO_FAMILY, NO_CIBIR, NO_CIBIR_LENGTH, NO_CONFIG, NO_PLACE};
    static const uint16_t counts[] = {1, 2, 8};
    add_case(CASE_ORDINARY, needs_a_place, NULL, "executions/too_late");
    add_case(CASE_ORDINARY, works_on_a_thread_of_the_program, NULL, "executions/works_on_a_thread_of_the_program");
    for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
        add_case(CASE_ORDINARY, pool_is_refused, &faults[i], "pools/without/%s", fault_names[faults[i]]);
    }
    for (size_t i = 0; i < 3; i++) add_case(CASE_ORDINARY, pool_connects, &counts[i], "pools/of_%u", counts[i]);
}
