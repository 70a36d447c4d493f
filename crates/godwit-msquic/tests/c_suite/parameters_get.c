/*
 * Every parameter that can be read: with the right length, with none, one byte short, longer, without a buffer, from
 * handles of the wrong kind, and from those that stand for another (a stream answers for its connection). What can only
 * be read cannot be set.
 */
#include "suite.h"
#include "world.h"

#define OF(kind) (1u << (kind))

/* A length that the library tells. */
#define ASKED 0u

enum traits {
    PLAIN = 0,
    SETTABLE = 1,       /* It can also be set; parameters_set.c does. */
    GROWING = 2,        /* A part of it can be read: short lengths are other cases. */
    LENGTH_AS_GIVEN = 4, /* The length is left as it was when there is more room than needed. */
    QUIET = 8,          /* Without room and buffer it is the buffer that is missed. */
};

static const struct parameter {
    const char *name;
    uint32_t parameter;
    uint32_t length;
    enum world_kind kind;
    enum world_state state;
    unsigned also;      /* Kinds that answer for it, other than `kind`. */
    unsigned traits;
} parameters[] = {
#define ALL_CONNECTIONS (OF(OF_CLIENT) | OF(OF_SERVER) | OF(OF_STREAM))
#define GLOBAL(name, length, traits) \
    {"GLOBAL_" #name, QUIC_PARAM_GLOBAL_##name, length, OF_NOBODY, FRESH, 0, traits}
    GLOBAL(RETRY_MEMORY_PERCENT, 2, SETTABLE),
    GLOBAL(SUPPORTED_VERSIONS, ASKED, PLAIN),
    GLOBAL(LOAD_BALACING_MODE, 2, SETTABLE),
    GLOBAL(PERF_COUNTERS, 8 * QUIC_PERF_COUNTER_MAX, GROWING),
    GLOBAL(LIBRARY_VERSION, 16, PLAIN),
    GLOBAL(SETTINGS, sizeof(QUIC_SETTINGS), SETTABLE | GROWING),
    GLOBAL(GLOBAL_SETTINGS, sizeof(QUIC_GLOBAL_SETTINGS), SETTABLE | GROWING),
    GLOBAL(VERSION_SETTINGS, sizeof(QUIC_VERSION_SETTINGS), SETTABLE),
    GLOBAL(LIBRARY_GIT_HASH, ASKED, PLAIN),
    GLOBAL(TLS_PROVIDER, 4, PLAIN),
    GLOBAL(STATISTICS_V2_SIZES, 20, GROWING),
    GLOBAL(VERSION_NEGOTIATION_ENABLED, 1, SETTABLE),
    GLOBAL(IN_USE, 1, PLAIN),
    GLOBAL(DATAPATH_FEATURES, 4, PLAIN),
#define CONFIGURATION(name, length, traits) \
    {#name, QUIC_PARAM_##name, length, OF_CONFIGURATION, CONNECTED, ALL_CONNECTIONS, traits}
    CONFIGURATION(CONFIGURATION_SETTINGS, sizeof(QUIC_SETTINGS), SETTABLE | GROWING),
    CONFIGURATION(CONFIGURATION_VERSION_SETTINGS, sizeof(QUIC_VERSION_SETTINGS), SETTABLE),
    CONFIGURATION(CONFIGURATION_VERSION_NEG_ENABLED, 1, SETTABLE),
#define LISTENER(name, length, traits) {#name, QUIC_PARAM_##name, length, OF_LISTENER, FRESH, 0, traits}
    LISTENER(LISTENER_LOCAL_ADDRESS, sizeof(QUIC_ADDR), PLAIN),
    LISTENER(LISTENER_STATS, sizeof(QUIC_LISTENER_STATISTICS), PLAIN),
    LISTENER(DOS_MODE_EVENTS, 1, SETTABLE),
#define CONNECTION(name, length, traits) \
    {"CONN_" #name, QUIC_PARAM_CONN_##name, length, OF_CLIENT, CONNECTED, ALL_CONNECTIONS, traits}
    CONNECTION(QUIC_VERSION, 4, PLAIN),
    CONNECTION(LOCAL_ADDRESS, sizeof(QUIC_ADDR), SETTABLE),
    CONNECTION(REMOTE_ADDRESS, sizeof(QUIC_ADDR), SETTABLE),
    CONNECTION(IDEAL_PROCESSOR, 2, PLAIN),
    CONNECTION(SETTINGS, sizeof(QUIC_SETTINGS), SETTABLE | GROWING),
    CONNECTION(STATISTICS, sizeof(QUIC_STATISTICS), PLAIN),
    CONNECTION(STATISTICS_PLAT, sizeof(QUIC_STATISTICS), PLAIN),
    CONNECTION(SHARE_UDP_BINDING, 1, SETTABLE),
    CONNECTION(LOCAL_BIDI_STREAM_COUNT, 2, PLAIN),
    CONNECTION(LOCAL_UNIDI_STREAM_COUNT, 2, PLAIN),
    CONNECTION(MAX_STREAM_IDS, 32, PLAIN),
    CONNECTION(STREAM_SCHEDULING_SCHEME, 4, SETTABLE),
    CONNECTION(DATAGRAM_RECEIVE_ENABLED, 1, SETTABLE),
    CONNECTION(DATAGRAM_SEND_ENABLED, 1, PLAIN),
    CONNECTION(DISABLE_1RTT_ENCRYPTION, 1, SETTABLE),
    CONNECTION(VERSION_SETTINGS, sizeof(QUIC_VERSION_SETTINGS), SETTABLE),
    CONNECTION(STATISTICS_V2, QUIC_STATISTICS_V2_SIZE_5, GROWING),
    CONNECTION(STATISTICS_V2_PLAT, QUIC_STATISTICS_V2_SIZE_5, GROWING),
    CONNECTION(ORIG_DEST_CID, 8, PLAIN),
    CONNECTION(SEND_DSCP, 1, SETTABLE),
    CONNECTION(CLOSE_ASYNC, 1, SETTABLE),
    CONNECTION(NETWORK_STATISTICS, sizeof(QUIC_NETWORK_STATISTICS), LENGTH_AS_GIVEN),
    {"TLS_HANDSHAKE_INFO", QUIC_PARAM_TLS_HANDSHAKE_INFO, sizeof(QUIC_HANDSHAKE_INFO), OF_CLIENT, CONNECTED,
     ALL_CONNECTIONS, GROWING | LENGTH_AS_GIVEN},
    {"TLS_NEGOTIATED_ALPN", QUIC_PARAM_TLS_NEGOTIATED_ALPN, 5, OF_CLIENT, CONNECTED, ALL_CONNECTIONS, QUIET},
#define STREAM(name, length, traits) {#name, QUIC_PARAM_##name, length, OF_STREAM, CONNECTED, 0, traits}
    STREAM(STREAM_ID, 8, PLAIN),
    STREAM(STREAM_IDEAL_SEND_BUFFER_SIZE, 8, PLAIN),
    STREAM(STREAM_PRIORITY, 2, SETTABLE),
    STREAM(STREAM_STATISTICS, sizeof(QUIC_STREAM_STATISTICS), PLAIN),
};

typedef struct question {
    const struct parameter *of;
    enum world_kind kind;
} question;

static uint8_t answer[4096];

/* The length that is right, by the table or by asking. */
static uint32_t right_length(const question *it, const world *in) {
    uint32_t length = 0;
    if (it->of->length != ASKED) return it->of->length;
    CHECK_STATUS(QUIC_STATUS_BUFFER_TOO_SMALL,
                 api->GetParam(in->handles[it->kind], it->of->parameter, &length, NULL));
    CHECK(length > 0 && length < sizeof(answer));
    return length;
}

static void check_nothing_behind(uint32_t length) {
    for (size_t i = length; i < sizeof(answer); i++) CHECK_EQUAL(0x5a, answer[i]);
}

static void answers(const void *row) {
    const question *it = row;
    world *in = open_world(it->of->state);
    uint32_t right = right_length(it, in), length = right;
    memset(answer, 0x5a, sizeof(answer));
    CHECK_OK(api->GetParam(in->handles[it->kind], it->of->parameter, &length, answer));
    CHECK_EQUAL(right, length);
    check_nothing_behind(length);
    close_world(in);
}

static void answers_before_others(const void *row) {
    const question *it = row;
    world *in = open_world(it->of->state);
    uint32_t right = right_length(it, in), length = right;
    CHECK_OK(api->GetParam(
        in->handles[it->kind], it->of->parameter | QUIC_PARAM_HIGH_PRIORITY, &length, answer));
    CHECK_EQUAL(right, length);
    close_world(in);
}

static void tells_its_length(const void *row) {
    const question *it = row;
    world *in = open_world(it->of->state);
    uint32_t right = right_length(it, in), length = 0;
    if (it->of->traits & QUIET) {
        CHECK_STATUS(QUIC_STATUS_INVALID_PARAMETER,
                     api->GetParam(in->handles[it->kind], it->of->parameter, &length, NULL));
    } else {
        CHECK_STATUS(QUIC_STATUS_BUFFER_TOO_SMALL,
                     api->GetParam(in->handles[it->kind], it->of->parameter, &length, NULL));
        CHECK_EQUAL(right, length);
    }
    close_world(in);
}

static void refuses_a_short_buffer(const void *row) {
    const question *it = row;
    world *in = open_world(it->of->state);
    uint32_t right = right_length(it, in), length = right - 1;
    memset(answer, 0x5a, sizeof(answer));
    CHECK_STATUS(QUIC_STATUS_BUFFER_TOO_SMALL,
                 api->GetParam(in->handles[it->kind], it->of->parameter, &length, answer));
    CHECK_EQUAL(right, length);
    check_nothing_behind(0);
    close_world(in);
}

static void says_how_much_of_a_long_buffer(const void *row) {
    const question *it = row;
    world *in = open_world(it->of->state);
    uint32_t right = right_length(it, in), length = sizeof(answer);
    memset(answer, 0x5a, sizeof(answer));
    CHECK_OK(api->GetParam(in->handles[it->kind], it->of->parameter, &length, answer));
    CHECK(length == right || (it->of->traits & LENGTH_AS_GIVEN && length == sizeof(answer)));
    if (!(it->of->traits & LENGTH_AS_GIVEN)) check_nothing_behind(right);
    close_world(in);
}

static void needs_a_buffer(const void *row) {
    const question *it = row;
    world *in = open_world(it->of->state);
    uint32_t length = right_length(it, in);
    CHECK_STATUS(QUIC_STATUS_INVALID_PARAMETER,
                 api->GetParam(in->handles[it->kind], it->of->parameter, &length, NULL));
    close_world(in);
}

static void needs_a_length(const void *row) {
    const question *it = row;
    world *in = open_world(it->of->state);
    CHECK_STATUS(QUIC_STATUS_INVALID_PARAMETER,
                 api->GetParam(in->handles[it->kind], it->of->parameter, NULL, answer));
    close_world(in);
}

static void is_nothing_of(const void *row) {
    const question *it = row;
    world *in = open_world(it->of->state == FRESH && it->kind != OF_SERVER ? FRESH : CONNECTED);
    uint32_t length = sizeof(answer);
    CHECK_STATUS(QUIC_STATUS_INVALID_PARAMETER,
                 api->GetParam(in->handles[it->kind], it->of->parameter, &length, answer));
    CHECK_STATUS(QUIC_STATUS_INVALID_PARAMETER,
                 api->SetParam(in->handles[it->kind], it->of->parameter, sizeof(uint16_t), answer));
    close_world(in);
}

static void cannot_be_set(const void *row) {
    const question *it = row;
    world *in = open_world(it->of->state);
    bool of_tls = (it->of->parameter & 0x3f000000) == QUIC_PARAM_PREFIX_TLS;
    CHECK_STATUS(of_tls ? QUIC_STATUS_NOT_SUPPORTED : QUIC_STATUS_INVALID_PARAMETER,
                 api->SetParam(in->handles[it->kind], it->of->parameter, it->of->length ? it->of->length : 4, answer));
    close_world(in);
}

static void declare_kinds(const struct parameter *it) {
    static question rows[1024];
    static size_t count;
    for (enum world_kind kind = OF_NOBODY; kind < WORLD_KINDS; kind++) {
        if (kind == it->kind) continue;
        rows[count] = (question){it, kind};
        if (it->also & OF(kind)) {
            add_case(CASE_ORDINARY, answers, &rows[count], "get/%s/by_%s", it->name, world_kind_names[kind]);
        } else {
            add_case(CASE_ORDINARY, is_nothing_of, &rows[count], "get/%s/not_of_%s", it->name,
                     world_kind_names[kind]);
        }
        count++;
    }
}

void declare_parameters_get(void) {
    static question rows[sizeof(parameters) / sizeof(*parameters)];
    for (size_t i = 0; i < sizeof(parameters) / sizeof(*parameters); i++) {
        const struct parameter *it = &parameters[i];
        rows[i] = (question){it, it->kind};
#define ADD(body, label) add_case(CASE_ORDINARY, body, &rows[i], "get/%s/" label, it->name)
        ADD(answers, "right_length");
        ADD(answers_before_others, "high_priority");
        ADD(needs_a_buffer, "no_buffer");
        ADD(needs_a_length, "no_length");
        ADD(says_how_much_of_a_long_buffer, "long_buffer");
        if (!(it->traits & GROWING)) {
            ADD(tells_its_length, "no_room");
            if (it->length != 1) ADD(refuses_a_short_buffer, "one_byte_short");
        }
        if (!(it->traits & SETTABLE)) ADD(cannot_be_set, "set");
#undef ADD
        declare_kinds(it);
    }
}
