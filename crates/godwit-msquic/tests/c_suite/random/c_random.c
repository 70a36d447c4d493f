/*
 * A caller without sense: several threads call functions of the table at random, with right and wrong handles, closed ones
 * among them, and callbacks call some more. What has to hold for all programs is checked:
 *
 * - nothing crashes and nothing hangs: the program ends,
 * - every connection and stream that is closed has had its last event, if it ever had one, and none after the close,
 * - every send that was accepted is completed, once.
 *
 *     c_random --library PATH --certs DIR [--seconds N] [--seed N] [--threads N] [--no-stale]
 *
 * The seed is printed. What threads do is decided by it; how they meet is not. Closed handles are used again unless
 * --no-stale forbids it: a library may answer with an error or leave such calls alone.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "msquic.h"

enum { SLOTS = 24, STALE = 64, MOST_THREADS = 16, SEND_LENGTH = 3000, HANG_SECONDS = 60 };

static const QUIC_API_TABLE *api;
static HQUIC registration, server_configuration, client_configuration;
static uint16_t port;
static bool use_stale = true;
static atomic_bool stop;
static atomic_ulong calls, sends_accepted, sends_completed, connections_opened, streams_opened;

/* What stands behind a handle. It is never freed: events after the close are to be seen. */
typedef struct object {
    HQUIC handle;
    bool connection;
    atomic_uint events;
    atomic_bool over;
    atomic_bool closed;
    struct object *next;
    struct object *later;
} object;

/* Handles that are open, from which threads take one to use it. Who has taken it may close it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static object *connections[SLOTS], *streams[SLOTS];
/* What has come in callbacks, where nothing of others may be closed to make place. */
static object *arrived;
static HQUIC stale[STALE];
static unsigned stale_count;

typedef struct pending_send {
    atomic_bool completed;
    QUIC_BUFFER buffer;
    uint8_t bytes[SEND_LENGTH];
} pending_send;

__attribute__((noreturn)) static void fail(const char *what) {
    fprintf(stderr, "c_random: %s\n", what);
    abort();
}

/* ---- Chance ---- */

static _Thread_local uint64_t chance;

static uint64_t next_random(void) {
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return chance;
}

static uint32_t below(uint32_t bound) { return (uint32_t)(next_random() >> 20) % bound; }

/* ---- Objects ---- */

static object *new_object(HQUIC handle, bool connection) {
    object *it = calloc(1, sizeof(*it));
    static object *all;
    if (!it) fail("no memory");
    it->handle = handle;
    it->connection = connection;
    pthread_mutex_lock(&lock);
    it->next = all; /* Kept in sight of tools that look for lost memory. */
    all = it;
    pthread_mutex_unlock(&lock);
    return it;
}

static void remember_stale(HQUIC handle) {
    pthread_mutex_lock(&lock);
    stale[stale_count++ % STALE] = handle;
    pthread_mutex_unlock(&lock);
}

static void close_object(object *it) {
    if (it->connection) api->ConnectionClose(it->handle);
    else api->StreamClose(it->handle);
    if (atomic_load(&it->events) && !atomic_load(&it->over)) fail("a handle was closed without its last event");
    atomic_store(&it->closed, true);
    remember_stale(it->handle);
}

/* Puts an object into a free place, or closes what is there. */
static void put(object **slots, object *it) {
    pthread_mutex_lock(&lock);
    uint32_t place = below(SLOTS);
    object *before = slots[place];
    slots[place] = it;
    pthread_mutex_unlock(&lock);
    if (before) close_object(before);
}

static void arrive(object *it) {
    pthread_mutex_lock(&lock);
    it->later = arrived;
    arrived = it;
    pthread_mutex_unlock(&lock);
}

static bool put_arrived(void) {
    pthread_mutex_lock(&lock);
    object *it = arrived;
    if (it) arrived = it->later;
    pthread_mutex_unlock(&lock);
    if (it) put(it->connection ? connections : streams, it);
    return it != NULL;
}

static object *take(object **slots) {
    pthread_mutex_lock(&lock);
    uint32_t place = below(SLOTS);
    object *it = slots[place];
    slots[place] = NULL;
    pthread_mutex_unlock(&lock);
    return it;
}

/* ---- Callbacks ---- */

static void note(object *it, bool last) {
    if (atomic_load(&it->closed)) fail("an event came after the close");
    if (atomic_load(&it->over)) fail("an event came after the last one");
    atomic_fetch_add(&it->events, 1);
    if (last) atomic_store(&it->over, true);
}

static QUIC_STATUS on_stream(HQUIC handle, void *context, QUIC_STREAM_EVENT *what) {
    object *it = context;
    note(it, what->Type == QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    if (what->Type == QUIC_STREAM_EVENT_SEND_COMPLETE) {
        pending_send *sent = what->SEND_COMPLETE.ClientContext;
        if (atomic_exchange(&sent->completed, true)) fail("a send was completed twice");
        atomic_fetch_add(&sends_completed, 1);
        free(sent);
    } else if (what->Type == QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN) {
        api->StreamShutdown(handle, QUIC_STREAM_SHUTDOWN_FLAG_GRACEFUL, 0);
    } else if (what->Type == QUIC_STREAM_EVENT_RECEIVE && what->RECEIVE.TotalBufferLength % 7 == 3) {
        what->RECEIVE.TotalBufferLength /= 2;
        api->StreamReceiveSetEnabled(handle, TRUE);
    }
    return QUIC_STATUS_SUCCESS;
}

static QUIC_STATUS on_connection(HQUIC handle, void *context, QUIC_CONNECTION_EVENT *what) {
    object *it = context;
    (void)handle;
    note(it, what->Type == QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    if (what->Type != QUIC_CONNECTION_EVENT_PEER_STREAM_STARTED) return QUIC_STATUS_SUCCESS;
    object *accepted = new_object(what->PEER_STREAM_STARTED.Stream, false);
    api->SetCallbackHandler(accepted->handle, (void *)on_stream, accepted);
    atomic_fetch_add(&streams_opened, 1);
    arrive(accepted);
    return QUIC_STATUS_SUCCESS;
}

static QUIC_STATUS on_listener(HQUIC handle, void *context, QUIC_LISTENER_EVENT *what) {
    (void)handle;
    (void)context;
    if (what->Type != QUIC_LISTENER_EVENT_NEW_CONNECTION) return QUIC_STATUS_SUCCESS;
    if (below(16) == 0) return QUIC_STATUS_CONNECTION_REFUSED;
    object *accepted = new_object(what->NEW_CONNECTION.Connection, true);
    api->SetCallbackHandler(accepted->handle, (void *)on_connection, accepted);
    api->ConnectionSetConfiguration(accepted->handle, server_configuration);
    atomic_fetch_add(&connections_opened, 1);
    arrive(accepted);
    return QUIC_STATUS_SUCCESS;
}

/* ---- Calls ---- */

static void open_connection(void) {
    object *it = new_object(NULL, true);
    QUIC_ADDR address = {.Ipv4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
    if (QUIC_FAILED(api->ConnectionOpen(registration, on_connection, it, &it->handle))) return;
    atomic_fetch_add(&connections_opened, 1);
    address.Ipv4.sin_port = htons(port);
    api->SetParam(it->handle, QUIC_PARAM_CONN_REMOTE_ADDRESS, sizeof(address), &address);
    if (below(8)) {
        api->ConnectionStart(it->handle, client_configuration, QUIC_ADDRESS_FAMILY_UNSPEC, "localhost", port);
    }
    put(connections, it);
}

static void open_stream(object *on) {
    object *it = new_object(NULL, false);
    if (QUIC_FAILED(api->StreamOpen(on->handle, below(2) ? QUIC_STREAM_OPEN_FLAG_UNIDIRECTIONAL : 0, on_stream, it,
                                    &it->handle))) {
        return;
    }
    atomic_fetch_add(&streams_opened, 1);
    if (below(4)) api->StreamStart(it->handle, below(32));
    put(streams, it);
}

static void send_on(object *it) {
    static const QUIC_SEND_FLAGS flags[] = {0, QUIC_SEND_FLAG_FIN, QUIC_SEND_FLAG_START, QUIC_SEND_FLAG_DELAY_SEND,
                                            QUIC_SEND_FLAG_ALLOW_0_RTT, QUIC_SEND_FLAG_START | QUIC_SEND_FLAG_FIN};
    pending_send *sent = calloc(1, sizeof(*sent));
    if (!sent) fail("no memory");
    sent->buffer = (QUIC_BUFFER){below(SEND_LENGTH), sent->bytes};
    if (QUIC_SUCCEEDED(api->StreamSend(it->handle, &sent->buffer, 1, flags[below(6)], sent))) {
        atomic_fetch_add(&sends_accepted, 1);
    } else {
        free(sent);
    }
}

static void use_connection(object *it) {
    uint8_t bytes[600];
    uint32_t length = below(sizeof(bytes));
    switch (below(9)) {
    case 0: api->ConnectionShutdown(it->handle, below(2), below(100)); break;
    case 1: api->GetParam(it->handle, QUIC_PARAM_PREFIX_CONNECTION | below(0x21), &length, bytes); break;
    case 2: api->GetParam(it->handle, QUIC_PARAM_PREFIX_TLS | below(3), &length, bytes); break;
    case 3: api->ConnectionSendResumptionTicket(it->handle, below(3), 0, NULL); break;
    case 4: api->SetParam(it->handle, QUIC_PARAM_CONN_SEND_DSCP, 1, bytes); break;
    default: open_stream(it); break;
    }
}

static void use_stream(object *it) {
    uint8_t bytes[64];
    uint32_t length = below(sizeof(bytes));
    switch (below(8)) {
    case 0: api->StreamShutdown(it->handle, below(32), below(100)); break;
    case 1: api->StreamStart(it->handle, below(32)); break;
    case 2: api->StreamReceiveSetEnabled(it->handle, below(4) != 0); break;
    case 3: api->GetParam(it->handle, QUIC_PARAM_PREFIX_STREAM | below(7), &length, bytes); break;
    default: send_on(it); break;
    }
}

/* Functions with handles that are none, of another kind, or closed. */
static void misuse(HQUIC it) {
    HQUIC made = NULL;
    QUIC_BUFFER buffer = {4, (uint8_t *)"text"};
    switch (below(12)) {
    case 0: api->StreamClose(it); break;
    case 1: api->StreamShutdown(it, QUIC_STREAM_SHUTDOWN_FLAG_ABORT, 0); break;
    case 2: api->StreamStart(it, 0); break;
    case 3: api->StreamReceiveSetEnabled(it, TRUE); break;
    case 4: api->ListenerStart(it, &buffer, 1, NULL); break;
    case 5: api->ConfigurationLoadCredential(it, NULL); break;
    case 6: api->ListenerOpen(it, NULL, NULL, &made); break;
    case 7: api->ConnectionSetConfiguration(it, it); break;
    case 8: api->ConnectionExportKeyingMaterial(it, NULL, NULL); break;
    case 9: api->StreamSend(it, NULL, 1, 0, NULL); break;
    case 10: api->DatagramSend(it, NULL, 0, 0, NULL); break;
    default: api->GetParam(it, QUIC_PARAM_LISTENER_STATS, NULL, NULL); break;
    }
}

static HQUIC wrong_handle(void) {
    if (use_stale && below(2)) {
        pthread_mutex_lock(&lock);
        HQUIC it = stale[below(STALE)];
        pthread_mutex_unlock(&lock);
        return it;
    }
    return below(2) ? NULL : server_configuration;
}

static void one_call(void) {
    uint32_t kind = below(20);
    object *it;
    if (kind < 1) {
        open_connection();
    } else if (kind < 8) {
        if (!(it = take(connections))) return;
        if (below(12) == 0) close_object(it);
        else use_connection(it), put(connections, it);
    } else if (kind < 17) {
        if (!(it = take(streams))) return;
        if (below(8) == 0) close_object(it);
        else use_stream(it), put(streams, it);
    } else {
        misuse(wrong_handle());
    }
}

static void *call_at_random(void *seed) {
    chance = *(const uint64_t *)seed;
    while (!atomic_load(&stop)) {
        while (put_arrived()) {}
        one_call();
        atomic_fetch_add(&calls, 1);
    }
    return NULL;
}

/* ---- Start and end ---- */

static HQUIC configure(const char *folder, bool server) {
    char certificate[4096], key[4096];
    QUIC_BUFFER alpn = {6, (uint8_t *)"random"};
    QUIC_SETTINGS settings = {.IsSetFlags = 0};
    HQUIC made = NULL;
    snprintf(certificate, sizeof(certificate), "%s/server.pem", folder);
    snprintf(key, sizeof(key), "%s/server.key", folder);
    QUIC_CERTIFICATE_FILE file = {key, certificate};
    QUIC_CREDENTIAL_CONFIG config = {.Type = QUIC_CREDENTIAL_TYPE_CERTIFICATE_FILE, .CertificateFile = &file};
    if (!server) {
        config = (QUIC_CREDENTIAL_CONFIG){
            .Flags = QUIC_CREDENTIAL_FLAG_CLIENT | QUIC_CREDENTIAL_FLAG_NO_CERTIFICATE_VALIDATION};
    }
    settings.PeerBidiStreamCount = settings.PeerUnidiStreamCount = 8;
    settings.IsSet.PeerBidiStreamCount = settings.IsSet.PeerUnidiStreamCount = 1;
    settings.ServerResumptionLevel = QUIC_SERVER_RESUME_AND_ZERORTT;
    settings.IsSet.ServerResumptionLevel = 1;
    settings.IdleTimeoutMs = settings.DisconnectTimeoutMs = 2000;
    settings.IsSet.IdleTimeoutMs = settings.IsSet.DisconnectTimeoutMs = 1;
    if (QUIC_FAILED(api->ConfigurationOpen(registration, &alpn, 1, &settings, sizeof(settings), NULL, &made)) ||
        QUIC_FAILED(api->ConfigurationLoadCredential(made, &config))) {
        fail("there is no configuration");
    }
    return made;
}

static HQUIC listen_somewhere(void) {
    QUIC_ADDR address = {.Ipv4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
    QUIC_BUFFER alpn = {6, (uint8_t *)"random"};
    uint32_t length = sizeof(address);
    HQUIC listener = NULL;
    if (QUIC_FAILED(api->ListenerOpen(registration, on_listener, NULL, &listener)) ||
        QUIC_FAILED(api->ListenerStart(listener, &alpn, 1, &address)) ||
        QUIC_FAILED(api->GetParam(listener, QUIC_PARAM_LISTENER_LOCAL_ADDRESS, &length, &address))) {
        fail("nobody listens");
    }
    port = ntohs(address.Ipv4.sin_port);
    return listener;
}

/* Until the listener and the connections are gone, more can come: what has come is closed in several turns. */
static void close_all(HQUIC listener) {
    api->ListenerClose(listener);
    for (int round = 0; round < 3; round++) {
        while (put_arrived()) {}
        for (int i = 0; i < SLOTS; i++) {
            pthread_mutex_lock(&lock);
            object *connection = connections[i];
            connections[i] = NULL;
            pthread_mutex_unlock(&lock);
            if (connection) close_object(connection);
        }
        for (int i = 0; i < SLOTS; i++) {
            pthread_mutex_lock(&lock);
            object *stream = streams[i];
            streams[i] = NULL;
            pthread_mutex_unlock(&lock);
            if (stream) close_object(stream);
        }
    }
    api->ConfigurationClose(client_configuration);
    api->ConfigurationClose(server_configuration);
    api->RegistrationClose(registration);
    if (atomic_load(&sends_accepted) != atomic_load(&sends_completed)) fail("sends were not completed");
}

static void run(unsigned seconds, uint64_t seed, unsigned threads, const char *folder) {
    pthread_t started[MOST_THREADS];
    uint64_t seeds[MOST_THREADS];
    chance = seed;
    if (QUIC_FAILED(api->RegistrationOpen(NULL, &registration))) fail("there is no registration");
    server_configuration = configure(folder, true);
    client_configuration = configure(folder, false);
    HQUIC listener = listen_somewhere();
    for (unsigned i = 0; i < threads; i++) {
        seeds[i] = next_random() | 1;
        if (pthread_create(&started[i], NULL, call_at_random, &seeds[i]) != 0) fail("there are no threads");
    }
    sleep(seconds);
    atomic_store(&stop, true);
    /* If a call or the end hangs, the alarm's signal ends the program. */
    alarm(HANG_SECONDS);
    for (unsigned i = 0; i < threads; i++) pthread_join(started[i], NULL);
    close_all(listener);
    alarm(0);
}

int main(int count, char **arguments) {
    const char *library = "libmsquic.so", *folder = ".";
    unsigned seconds = 5, threads = 4;
    uint64_t seed = (uint64_t)time(NULL) * 2654435761u + (uint64_t)getpid();
    for (int i = 1; i < count; i++) {
        const char *value = i + 1 < count ? arguments[i + 1] : NULL;
        if (!strcmp(arguments[i], "--no-stale")) { use_stale = false; continue; }
        if (value && !strcmp(arguments[i], "--library")) library = value;
        else if (value && !strcmp(arguments[i], "--certs")) folder = value;
        else if (value && !strcmp(arguments[i], "--seconds")) seconds = (unsigned)strtoul(value, NULL, 10);
        else if (value && !strcmp(arguments[i], "--seed")) seed = strtoull(value, NULL, 10);
        else if (value && !strcmp(arguments[i], "--threads")) threads = (unsigned)strtoul(value, NULL, 10);
        else return fprintf(stderr, "c_random: no option %s\n", arguments[i]), 2;
        i++;
    }
    if (threads < 1 || threads > MOST_THREADS) threads = 4;
    printf("seed %llu\n", (unsigned long long)(seed |= 1));
    fflush(stdout);
    void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!loaded) return fprintf(stderr, "%s\n", dlerror()), 2;
    MsQuicOpenVersionFn open_version;
    MsQuicCloseFn close_table;
    *(void **)&open_version = dlsym(loaded, "MsQuicOpenVersion");
    *(void **)&close_table = dlsym(loaded, "MsQuicClose");
    if (!open_version || QUIC_FAILED(open_version(QUIC_API_VERSION_2, (const void **)&api))) fail("no table");
    run(seconds, seed, threads, folder);
    close_table(api);
    printf("%lu calls, %lu connections, %lu streams, %lu sends\n", atomic_load(&calls),
           atomic_load(&connections_opened), atomic_load(&streams_opened), atomic_load(&sends_completed));
    return 0;
}
