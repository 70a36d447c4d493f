/* Work done by the program's own threads, and pools of connections. */
#include "suite.h"

#include <fcntl.h>
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

static void make_executions(worker *workers, uint32_t count) {
    QUIC_EXECUTION_CONFIG configs[4];
    QUIC_EXECUTION *made[4] = {NULL};
    for (uint32_t i = 0; i < count; i++) {
        workers[i].queue = epoll_create1(0);
        configs[i] = (QUIC_EXECUTION_CONFIG){0, &workers[i].queue};
    }
    CHECK_OK(api->ExecutionCreate(QUIC_GLOBAL_EXECUTION_CONFIG_FLAG_NONE, 0, count, configs, made));
    for (uint32_t i = 0; i < count; i++) {
        CHECK(made[i]);
        workers[i].execution = made[i];
    }
}

static void delete_executions(worker *workers, uint32_t count) {
    QUIC_EXECUTION *made[4];
    for (uint32_t i = 0; i < count; i++) made[i] = workers[i].execution;
    api->ExecutionDelete(count, made);
    for (uint32_t i = 0; i < count; i++) close(workers[i].queue);
}

static void exchange_and_close(unsigned streams) {
    pair *ends = usual_pair();
    for (unsigned i = 1; i <= streams; i++) {
        stream *client = open_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE);
        send_pattern(client, 0, 100000, 1, QUIC_SEND_FLAG_START | QUIC_SEND_FLAG_FIN);
        stream *server = accepted_stream(ends->server, i);
        WAIT_EVENT(server, QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN);
        CHECK_EQUAL(100000, server->received);
        close_stream(client);
    }
    api->ConnectionShutdown(ends->client.handle, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 0);
    WAIT_EVENT(&ends->client, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    WAIT_EVENT(ends->server, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    close_pair(ends);
}

static void works_on_threads_of_the_program(const void *row) {
    uint32_t count = *(const uint32_t *)row;
    pthread_t threads[4];
    worker workers[4] = {{0}};
    make_executions(workers, count);
    for (uint32_t i = 0; i < count; i++) CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    exchange_and_close(3);
    atomic_store(&stop, true);
    for (uint32_t i = 0; i < count; i++) pthread_join(threads[i], NULL);
    delete_executions(workers, count);
}

static void prepare_partition(HQUIC it) {
    uint16_t second = 1, none = 2;
    CHECK_STATUS(QUIC_STATUS_INVALID_PARAMETER,
                 api->SetParam(it, QUIC_PARAM_LISTENER_PARTITION_INDEX, sizeof(none), &none));
    CHECK_OK(api->SetParam(it, QUIC_PARAM_LISTENER_PARTITION_INDEX, sizeof(second), &second));
}

/* A connection whose ends both are in one partition goes on although nobody works for the other. */
static void a_partition_works_alone(const void *row) {
    (void)row;
    pthread_t threads[2];
    worker workers[2] = {{0}};
    make_executions(workers, 2);
    CHECK(pthread_create(&threads[1], NULL, work, &workers[1]) == 0);
    pair_options options = usual_options();
    options.prepare_listener = prepare_partition;
    pair *ends = open_pair(&options);
    connection *client = keep(sizeof(*client));
    QUIC_ADDR address = loopback(ends->port);
    CHECK_OK(api->ConnectionOpenInPartition(ends->registration, 1, on_connection_event, client, &client->handle));
    CHECK_OK(api->SetParam(client->handle, QUIC_PARAM_CONN_REMOTE_ADDRESS, sizeof(address), &address));
    CHECK_PENDING(api->ConnectionStart(
        client->handle, ends->client_configuration, QUIC_ADDRESS_FAMILY_UNSPEC, "localhost", ends->port));
    WAIT_EVENT(client, QUIC_CONNECTION_EVENT_CONNECTED);
    connection *server = wait_server(ends);
    WAIT_EVENT(server, QUIC_CONNECTION_EVENT_CONNECTED);
    stream *sender = open_stream(client, QUIC_STREAM_OPEN_FLAG_NONE);
    send_pattern(sender, 0, 1000, 1, QUIC_SEND_FLAG_START | QUIC_SEND_FLAG_FIN);
    WAIT_EVENT(accepted_stream(server, 1), QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN);
    CHECK_EQUAL(1000, accepted_stream(server, 1)->received);
    /* The rest ends with both. */
    CHECK(pthread_create(&threads[0], NULL, work, &workers[0]) == 0);
    close_stream(sender);
    close_connection(client);
    close_pair(ends);
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    delete_executions(workers, 2);
}

/* Two of them, which have one thread. */
static void *work_for_both(void *context) {
    worker *workers = context;
    while (!atomic_load(&stop)) {
        for (int i = 0; i < 2; i++) {
            api->ExecutionPoll(workers[i].execution);
            QUIC_CQE events[16];
            int count = epoll_wait(workers[i].queue, events, 16, 1);
            for (int j = 0; j < count; j++) ((QUIC_SQE *)events[j].data.ptr)->Completion(&events[j]);
        }
    }
    return NULL;
}

static void one_thread_works_for_both(const void *row) {
    (void)row;
    pthread_t thread;
    worker workers[2] = {{0}};
    make_executions(workers, 2);
    CHECK(pthread_create(&thread, NULL, work_for_both, workers) == 0);
    exchange_and_close(2);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    delete_executions(workers, 2);
}

/* With nothing to do, there is nothing to wait for, and nothing in the queue. */
static void waits_when_there_is_nothing(const void *row) {
    (void)row;
    QUIC_CQE one;
    worker it = {0};
    make_executions(&it, 1);
    uint32_t wait = api->ExecutionPoll(it.execution);
    for (int i = 0; i < 100 && wait != UINT32_MAX; i++) {
        if (epoll_wait(it.queue, &one, 1, 1) == 1) ((QUIC_SQE *)one.data.ptr)->Completion(&one);
        wait = api->ExecutionPoll(it.execution);
    }
    CHECK_EQUAL(UINT32_MAX, wait);
    CHECK_EQUAL(0, epoll_wait(it.queue, &one, 1, 0));
    delete_executions(&it, 1);
}

/* They can be made anew as long as no registration is open. */
static void can_be_replaced(const void *row) {
    (void)row;
    pthread_t thread;
    worker first = {0}, second = {0};
    make_executions(&first, 1);
    make_executions(&second, 1);
    CHECK(pthread_create(&thread, NULL, work, &second) == 0);
    exchange_and_close(1);
    QUIC_EXECUTION_CONFIG config = {0, &second.queue};
    QUIC_EXECUTION *made = NULL;
    HQUIC registration = open_registration();
    CHECK_STATUS(QUIC_STATUS_INVALID_STATE, api->ExecutionCreate(0, 0, 1, &config, &made));
    api->RegistrationClose(registration);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    worker third = {0};
    make_executions(&third, 1);
    delete_executions(&third, 1);
    close(first.queue);
    close(second.queue);
}

/* Whoever opens the library again has threads of the library's, or makes others. */
static void the_next_has_others(const void *row) {
    bool own_threads = *(const bool *)row;
    worker it = {0};
    pthread_t thread;
    make_executions(&it, 1);
    CHECK(pthread_create(&thread, NULL, work, &it) == 0);
    exchange_and_close(1);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    delete_executions(&it, 1);
    close_table(api);
    CHECK_OK(open_version(QUIC_API_VERSION_2, (const void **)&api));
    if (!own_threads) {
        exchange_and_close(1);
        return;
    }
    atomic_store(&stop, false);
    make_executions(&it, 1);
    CHECK(pthread_create(&thread, NULL, work, &it) == 0);
    exchange_and_close(1);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    delete_executions(&it, 1);
}

/* Who opens the library again has other workers. What was closed at the first stands for nothing there. */
static void use_other_workers(worker *it, bool before, bool after) {
    if (before) delete_executions(it, 1);
    close_table(api);
    CHECK_OK(open_version(QUIC_API_VERSION_2, (const void **)&api));
    if (after) make_executions(it, 1);
}

typedef struct change {
    bool before, after;
} change;

static const change changes[] = {{true, true}, {false, true}, {true, false}, {false, false}};

static void closed_handles_stand_for_nothing(const void *row) {
    const change *own = row;
    worker it = {0};
    if (own->before) make_executions(&it, 1);
    connection *first = keep(sizeof(*first)), *second = keep(sizeof(*second));
    HQUIC registration = open_registration();
    CHECK_OK(api->ConnectionOpen(registration, on_connection_event, first, &first->handle));
    HQUIC closed = first->handle;
    api->ConnectionClose(closed);
    api->RegistrationClose(registration);
    use_other_workers(&it, own->before, own->after);
    registration = open_registration();
    CHECK_OK(api->ConnectionOpen(registration, on_connection_event, second, &second->handle));
    CHECK(second->handle != closed);
    CHECK(api->GetContext(closed) == NULL);
    api->ConnectionClose(second->handle);
    api->RegistrationClose(registration);
    use_other_workers(&it, own->after, false);
}

static void on_closed(void *context) {
    atomic_store((atomic_bool *)context, true);
}

/* What is open in a registration whose handle is closed already is not taken away with the threads. */
static void open_connections_keep_their_workers(const void *row) {
    bool closes_library = *(const bool *)row;
    atomic_bool closed = false;
    worker it = {0};
    make_executions(&it, 1);
    connection *client = keep(sizeof(*client));
    HQUIC registration = open_registration();
    CHECK_OK(api->ConnectionOpen(registration, on_connection_event, client, &client->handle));
    api->RegistrationClose2(registration, on_closed, &closed);
    delete_executions(&it, 1);
    if (closes_library) {
        close_table(api);
        CHECK_OK(open_version(QUIC_API_VERSION_2, (const void **)&api));
    }
    CHECK(api->GetContext(client->handle) == client);
    CHECK(!atomic_load(&closed));
    api->ConnectionClose(client->handle);
    for (int i = 0; i < 1000 && !atomic_load(&closed); i++) usleep(10000);
    CHECK(atomic_load(&closed));
    api->ExecutionDelete(1, &it.execution);
}

/* A listener's port is free once the threads are taken away, though a connection has only just ended. */
static void ports_are_given_up(const void *row) {
    (void)row;
    worker it = {0};
    pthread_t thread;
    make_executions(&it, 1);
    CHECK(pthread_create(&thread, NULL, work, &it) == 0);
    pair *ends = usual_pair();
    uint16_t port = ends->port;
    api->ConnectionShutdown(ends->client.handle, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 0);
    WAIT_EVENT(&ends->client, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    WAIT_EVENT(ends->server, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    close_pair(ends);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    delete_executions(&it, 1);
    QUIC_ADDR address = loopback(port);
    int other = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(other >= 0);
    CHECK_EQUAL(0, bind(other, (struct sockaddr *)&address.Ipv4, sizeof(address.Ipv4)));
    close(other);
}

static QUIC_STATUS takes_no_notice(HQUIC handle, void *context, QUIC_CONNECTION_EVENT *what) {
    (void)handle, (void)context, (void)what;
    return QUIC_STATUS_SUCCESS;
}

static void *open_again_and_again(void *context) {
    (void)context;
    while (!atomic_load(&stop)) {
        HQUIC registration = open_registration(), made = NULL;
        CHECK_OK(api->ConnectionOpen(registration, takes_no_notice, NULL, &made));
        api->ConnectionClose(made);
        api->RegistrationClose(registration);
        usleep(10);
    }
    return NULL;
}

static atomic_bool stop_polling;

static void *poll_again_and_again(void *context) {
    _Atomic(QUIC_EXECUTION *) *polled = context;
    while (!atomic_load(&stop_polling)) {
        if (atomic_load(polled)) api->ExecutionPoll(atomic_load(polled));
        sched_yield();
    }
    return NULL;
}

/* Who opens a registration while another thread takes workers away, or closes the library, has workers nevertheless. */
static void opening_meets_taking_away(const void *row) {
    (void)row;
    pthread_t opening, polling;
    _Atomic(QUIC_EXECUTION *) polled = NULL;
    CHECK(pthread_create(&polling, NULL, poll_again_and_again, &polled) == 0);
    CHECK(pthread_create(&opening, NULL, open_again_and_again, NULL) == 0);
    for (int i = 0; i < 300; i++) {
        int queue = epoll_create1(EPOLL_CLOEXEC);
        QUIC_EXECUTION_CONFIG config = {0, &queue};
        QUIC_EXECUTION *execution = NULL;
        if (QUIC_SUCCEEDED(api->ExecutionCreate(QUIC_GLOBAL_EXECUTION_CONFIG_FLAG_NONE, 0, 1, &config, &execution))) {
            atomic_store(&polled, execution);
            usleep(100);
            api->ExecutionDelete(1, &execution);
        }
        close(queue);
        const QUIC_API_TABLE *same = NULL;
        close_table(api);
        CHECK_OK(open_version(QUIC_API_VERSION_2, (const void **)&same));
        CHECK(same == api);
    }
    atomic_store(&stop, true);
    pthread_join(opening, NULL);
    atomic_store(&stop_polling, true);
    pthread_join(polling, NULL);
}

static unsigned open_descriptors(void) {
    unsigned count = 0;
    for (int i = 0; i < 1024; i++) count += fcntl(i, F_GETFD) != -1;
    return count;
}

/* Threads that come and go leave no descriptors behind. */
static void nothing_stays_open(const void *row) {
    (void)row;
    worker it = {0};
    unsigned before = 0;
    for (int i = 0; i < 5; i++) {
        make_executions(&it, 1);
        HQUIC registration = open_registration(), made = NULL;
        CHECK_OK(api->ConnectionOpen(registration, takes_no_notice, NULL, &made));
        api->ExecutionPoll(it.execution);
        api->ConnectionClose(made);
        api->RegistrationClose(registration);
        use_other_workers(&it, true, false);
        if (i == 0) before = open_descriptors();
    }
    CHECK_EQUAL(before, open_descriptors());
}

static HQUIC chain[3];
static atomic_uint ended;

/* Each closes the next, of which every other belongs to the same worker. */
static QUIC_STATUS closes_the_next(HQUIC handle, void *context, QUIC_CONNECTION_EVENT *what) {
    (void)handle;
    size_t number = (size_t)((HQUIC *)context - chain);
    if (what->Type == QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE) {
        if (number + 1 < 3) api->ConnectionClose(chain[number + 1]);
        atomic_fetch_add(&ended, 1);
    }
    return QUIC_STATUS_SUCCESS;
}

/* One thread has two workers: a callback of one's closes what the other has, and a callback of that what the first has. */
static void callbacks_close_at_each_other(const void *row) {
    (void)row;
    pthread_t thread;
    worker workers[2] = {{0}};
    make_executions(workers, 2);
    pair_options options = usual_options();
    pair *it = open_pair(&options);
    for (size_t i = 0; i < 3; i++) {
        CHECK_OK(api->ConnectionOpen(it->registration, closes_the_next, &chain[i], &chain[i]));
        QUIC_STATUS status = api->ConnectionStart(chain[i], it->client_configuration, QUIC_ADDRESS_FAMILY_INET, "127.0.0.1", it->port);
        CHECK_STATUS(QUIC_STATUS_PENDING, status);
    }
    CHECK(pthread_create(&thread, NULL, work_for_both, workers) == 0);
    api->ConnectionShutdown(chain[0], QUIC_CONNECTION_SHUTDOWN_FLAG_SILENT, 0);
    while (atomic_load(&ended) < 3) usleep(1000);
    api->ConnectionClose(chain[0]);
    close_pair(it);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    delete_executions(workers, 2);
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

/* Pools are spread over the queues of a network card, and there are none without one that tells of them. */
static void pool_needs_a_card(const void *row) {
    uint16_t count = *(const uint16_t *)row;
    int marker;
    HQUIC made[8];
    for (uint16_t i = 0; i < 8; i++) made[i] = (HQUIC)&marker;
    pair_options options = usual_options();
    pair *it = open_pair(&options);
    connection *clients = keep(count * sizeof(*clients));
    QUIC_CONNECTION_POOL_CONFIG config = pool_of(it, count, clients);
    CHECK_STATUS(QUIC_STATUS_NOT_SUPPORTED, api->ConnectionPoolCreate(&config, made));
    for (uint16_t i = 0; i < 8; i++) CHECK(i < count ? !made[i] : made[i] == (HQUIC)&marker);
    let_things_happen(20);
    for (uint16_t i = 0; i < count; i++) CHECK(!clients[i].events.count);
    close_pair(it);
}

void declare_executions(void) {
    static const enum pool_fault faults[] = {NO_REGISTRATION, NO_CONFIGURATION, NO_HANDLER, NO_NAME, NO_PORT, NO_COUNT,
                                             NO_FAMILY, NO_CIBIR, NO_CIBIR_LENGTH, NO_CONFIG, NO_PLACE};
    static const uint16_t counts[] = {1, 2, 8};
    add_case(CASE_ORDINARY, needs_a_place, NULL, "executions/too_late");
    static const uint32_t threads[] = {1, 2, 4};
    static const bool either[] = {false, true};
    for (size_t i = 0; i < 3; i++) {
        add_case(CASE_ORDINARY, works_on_threads_of_the_program, &threads[i], "executions/works_on_%u_threads", threads[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        add_case(CASE_ORDINARY, the_next_has_others, &either[i], "executions/the_next_has_%s",
                 either[i] ? "others" : "threads_of_the_library");
    }
    for (size_t i = 0; i < 4; i++) {
        add_case(CASE_ORDINARY, closed_handles_stand_for_nothing, &changes[i], "executions/closed_handles/%s_then_%s",
                 changes[i].before ? "own" : "library", changes[i].after ? "own" : "library");
    }
    for (size_t i = 0; i < 2; i++) {
        add_case(CASE_ORDINARY, open_connections_keep_their_workers, &either[i], "executions/open_connections_outlast/%s",
                 either[i] ? "library" : "threads");
    }
    add_case(CASE_ORDINARY, ports_are_given_up, NULL, "executions/ports_are_given_up");
    add_case(CASE_ORDINARY, opening_meets_taking_away, NULL, "executions/opening_meets_taking_away");
    add_case(CASE_ORDINARY, nothing_stays_open, NULL, "executions/nothing_stays_open");
    add_case(CASE_ORDINARY, callbacks_close_at_each_other, NULL, "executions/callbacks_close_at_each_other");
    add_case(CASE_ORDINARY, one_thread_works_for_both, NULL, "executions/one_thread_works_for_both");
    add_case(CASE_ORDINARY, a_partition_works_alone, NULL, "executions/a_partition_works_alone");
    add_case(CASE_ORDINARY, waits_when_there_is_nothing, NULL, "executions/waits_when_there_is_nothing");
    add_case(CASE_ORDINARY, can_be_replaced, NULL, "executions/can_be_replaced");
    for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
        add_case(CASE_ORDINARY, pool_is_refused, &faults[i], "pools/without/%s", fault_names[faults[i]]);
    }
    for (size_t i = 0; i < 3; i++) add_case(CASE_ORDINARY, pool_needs_a_card, &counts[i], "pools/of_%u", counts[i]);
}
