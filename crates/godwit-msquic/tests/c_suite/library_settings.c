/* What is set for the whole library: versions, load balancing, retry, reset keys, where work is done. */
#include "suite.h"

#include "relay.h"

#include <arpa/inet.h>

#define WRONG QUIC_STATUS_INVALID_PARAMETER

/* ---- Versions ---- */

enum { VERSION_1 = 1, VERSION_2 = 0x6b3343cf, NO_VERSION = 0x12345678, RESERVED_VERSION = 0x0a1a2a3a };

static const struct version_row {
    const char *name;
    uint32_t versions[2];
    uint32_t count;
    QUIC_STATUS expected;
} version_rows[] = {
    {"none", {0}, 0, QUIC_STATUS_SUCCESS},
    {"version_1", {VERSION_1}, 1, QUIC_STATUS_SUCCESS},
    {"version_2", {VERSION_2}, 1, QUIC_STATUS_SUCCESS},
    {"both", {VERSION_2, VERSION_1}, 2, QUIC_STATUS_SUCCESS},
    {"reserved", {RESERVED_VERSION, VERSION_1}, 2, QUIC_STATUS_SUCCESS},
    {"unknown", {NO_VERSION}, 1, WRONG},
    {"unknown_second", {VERSION_1, NO_VERSION}, 2, WRONG},
};

static void check_versions(HQUIC handle, uint32_t parameter, const struct version_row *it) {
    QUIC_VERSION_SETTINGS wanted = {it->versions, it->versions, it->versions, it->count, it->count, it->count};
    union {
        QUIC_VERSION_SETTINGS settings;
        uint8_t bytes[256];
    } read;
    uint32_t length = sizeof(read), needed = sizeof(QUIC_VERSION_SETTINGS) + 3 * it->count * sizeof(uint32_t);
    CHECK_STATUS(it->expected, api->SetParam(handle, parameter, sizeof(wanted), &wanted));
    if (it->expected != QUIC_STATUS_SUCCESS) return;
    CHECK_OK(api->GetParam(handle, parameter, &length, &read));
    CHECK_EQUAL(needed, length);
    CHECK_EQUAL(it->count, read.settings.AcceptableVersionsLength);
    CHECK_EQUAL(it->count, read.settings.OfferedVersionsLength);
    CHECK_EQUAL(it->count, read.settings.FullyDeployedVersionsLength);
    for (uint32_t i = 0; i < it->count; i++) {
        /* They are set as numbers and read as they are on the wire, the most significant byte first. */
        uint32_t on_wire = htonl(it->versions[i]);
        CHECK_EQUAL(on_wire, read.settings.AcceptableVersions[i]);
        CHECK_EQUAL(on_wire, read.settings.OfferedVersions[i]);
        CHECK_EQUAL(on_wire, read.settings.FullyDeployedVersions[i]);
    }
    if (it->count == 0) return;
    length = needed - 1;
    CHECK_STATUS(QUIC_STATUS_BUFFER_TOO_SMALL, api->GetParam(handle, parameter, &length, &read));
    CHECK_EQUAL(needed, length);
}

static void versions_of_all(const void *row) { check_versions(NULL, QUIC_PARAM_GLOBAL_VERSION_SETTINGS, row); }

static void versions_of_a_configuration(const void *row) {
    HQUIC registration = open_registration();
    HQUIC configuration = open_configuration(registration, "suite", NULL);
    check_versions(configuration, QUIC_PARAM_CONFIGURATION_VERSION_SETTINGS, row);
    api->ConfigurationClose(configuration);
    api->RegistrationClose(registration);
}

static void versions_of_a_connection(const void *row) {
    connection client = {.handle = NULL};
    HQUIC registration = open_registration();
    CHECK_OK(api->ConnectionOpen(registration, on_connection_event, &client, &client.handle));
    check_versions(client.handle, QUIC_PARAM_CONN_VERSION_SETTINGS, row);
    close_connection(&client);
    api->RegistrationClose(registration);
}

/* The client begins with what it offers first. */
static void the_first_offered_version_is_spoken(const void *row) {
    uint32_t version = *(const uint32_t *)row, read;
    uint32_t length = sizeof(read);
    QUIC_VERSION_SETTINGS wanted = {&version, &version, &version, 1, 1, 1};
    pair_options options = usual_options();
    pair *it = open_pair(&options);
    CHECK_OK(api->SetParam(
        it->client_configuration, QUIC_PARAM_CONFIGURATION_VERSION_SETTINGS, sizeof(wanted), &wanted));
    connect_pair(it);
    CHECK_OK(api->GetParam(it->client.handle, QUIC_PARAM_CONN_QUIC_VERSION, &length, &read));
    CHECK_EQUAL(version, read);
    CHECK_OK(api->GetParam(it->server->handle, QUIC_PARAM_CONN_QUIC_VERSION, &length, &read));
    CHECK_EQUAL(version, read);
    close_pair(it);
}

/* Versions are listed as they are on the wire, the most significant byte first. */
static void versions_are_listed(const void *row) {
    (void)row;
    uint32_t versions[256], length = sizeof(versions);
    bool found = false;
    CHECK_OK(api->GetParam(NULL, QUIC_PARAM_GLOBAL_SUPPORTED_VERSIONS, &length, versions));
    for (uint32_t i = 0; i < length / 4; i++) found |= versions[i] == 0x01000000;
    CHECK(found);
}

/* ---- Load balancing ---- */

static const struct balancing_row {
    const char *name;
    uint16_t mode;
    uint32_t size;
    QUIC_STATUS expected;
} balancing_rows[] = {
    {"disabled", QUIC_LOAD_BALANCING_DISABLED, sizeof(QUIC_GLOBAL_SETTINGS), QUIC_STATUS_SUCCESS},
    {"by_address", QUIC_LOAD_BALANCING_SERVER_ID_IP, sizeof(QUIC_GLOBAL_SETTINGS), QUIC_STATUS_SUCCESS},
    {"fixed", QUIC_LOAD_BALANCING_SERVER_ID_FIXED, sizeof(QUIC_GLOBAL_SETTINGS), QUIC_STATUS_SUCCESS},
    {"none_such", QUIC_LOAD_BALANCING_COUNT, sizeof(QUIC_GLOBAL_SETTINGS), WRONG},
    {"older_program", QUIC_LOAD_BALANCING_SERVER_ID_IP,
     QUIC_STRUCT_SIZE_THRU_FIELD(QUIC_GLOBAL_SETTINGS, LoadBalancingMode), QUIC_STATUS_SUCCESS},
    {"short", QUIC_LOAD_BALANCING_DISABLED,
     QUIC_STRUCT_SIZE_THRU_FIELD(QUIC_GLOBAL_SETTINGS, LoadBalancingMode) - 1, WRONG},
};

static void balances(const void *row) {
    const struct balancing_row *it = row;
    QUIC_GLOBAL_SETTINGS wanted = {.LoadBalancingMode = it->mode, .FixedServerID = 0x01020304}, read;
    uint32_t length = sizeof(read);
    wanted.IsSet.LoadBalancingMode = 1;
    wanted.IsSet.FixedServerID = 1;
    CHECK_STATUS(it->expected, api->SetParam(NULL, QUIC_PARAM_GLOBAL_GLOBAL_SETTINGS, it->size, &wanted));
    if (it->expected != QUIC_STATUS_SUCCESS) return;
    CHECK_OK(api->GetParam(NULL, QUIC_PARAM_GLOBAL_GLOBAL_SETTINGS, &length, &read));
    CHECK_EQUAL(it->mode, read.LoadBalancingMode);
    CHECK_EQUAL(it->size == sizeof(wanted) ? 0x01020304 : 0, read.FixedServerID);
    close_pair(usual_pair());
}

/* Where a balancer looks for the server's number: behind one byte that is random, in the id of every server's connection. */
static const struct shown_row {
    const char *name;
    uint16_t mode;
    uint8_t number[4];
} shown_rows[] = {
    {"by_address", QUIC_LOAD_BALANCING_SERVER_ID_IP, {127, 0, 0, 1}},
    {"fixed", QUIC_LOAD_BALANCING_SERVER_ID_FIXED, {4, 3, 2, 1}},
};

static void ids_show_the_server(const void *row) {
    const struct shown_row *it = row;
    QUIC_GLOBAL_SETTINGS wanted = {.LoadBalancingMode = it->mode, .FixedServerID = 0x01020304};
    wanted.IsSet.LoadBalancingMode = 1;
    wanted.IsSet.FixedServerID = 1;
    CHECK_OK(api->SetParam(NULL, QUIC_PARAM_GLOBAL_GLOBAL_SETTINGS, sizeof(wanted), &wanted));
    pair_options options = usual_options();
    pair *ends = open_pair(&options);
    relay *through = start_relay(ends->port);
    ends->port = through->port;
    connect_pair(ends);
    connection_id id = id_seen(through, &through->id_of_server);
    CHECK_EQUAL(14, id.length);
    CHECK(!memcmp(id.bytes + 1, it->number, 4));
    /* Packets find their way by such ids. */
    stream *sender = open_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE);
    send_pattern(sender, 0, 100000, 1, QUIC_SEND_FLAG_START | QUIC_SEND_FLAG_FIN);
    stream *receiver = accepted_stream(ends->server, 1);
    WAIT_UNTIL(receiver->received == 100000);
    close_stream(sender);
    close_pair(ends);
}

static void without_balancing_ids_show_nothing(const void *row) {
    (void)row;
    pair_options options = usual_options();
    pair *ends = open_pair(&options);
    relay *through = start_relay(ends->port);
    ends->port = through->port;
    connect_pair(ends);
    connection_id id = id_seen(through, &through->id_of_server);
    CHECK(id.length >= 8 && id.length < 14);
    CHECK(memcmp(id.bytes + 1, shown_rows[0].number, 4));
    close_pair(ends);
}

static void balancing_is_fixed_once_in_use(const void *row) {
    (void)row;
    uint16_t mode = QUIC_LOAD_BALANCING_SERVER_ID_IP;
    pair *it = usual_pair();
    CHECK_STATUS(QUIC_STATUS_INVALID_STATE,
                 api->SetParam(NULL, QUIC_PARAM_GLOBAL_LOAD_BALACING_MODE, sizeof(mode), &mode));
    mode = QUIC_LOAD_BALANCING_DISABLED;
    CHECK_OK(api->SetParam(NULL, QUIC_PARAM_GLOBAL_LOAD_BALACING_MODE, sizeof(mode), &mode));
    close_pair(it);
}

/* ---- Retry and reset ---- */

static const struct retry_row {
    const char *name;
    QUIC_AEAD_ALGORITHM_TYPE algorithm;
    uint32_t rotation;
    uint32_t length;
    bool secret;
    QUIC_STATUS expected;
} retry_rows[] = {
    {"aes128", QUIC_AEAD_ALGORITHM_AES_128_GCM, 30000, 16, true, QUIC_STATUS_SUCCESS},
    {"aes256", QUIC_AEAD_ALGORITHM_AES_256_GCM, 30000, 32, true, QUIC_STATUS_SUCCESS},
    {"wrong_length", QUIC_AEAD_ALGORITHM_AES_256_GCM, 30000, 16, true, WRONG},
    {"no_rotation", QUIC_AEAD_ALGORITHM_AES_256_GCM, 0, 32, true, WRONG},
    {"no_secret", QUIC_AEAD_ALGORITHM_AES_256_GCM, 30000, 32, false, WRONG},
    {"no_such_algorithm", 7, 30000, 32, true, WRONG},
};

static void retry_is_configured(const void *row) {
    const struct retry_row *it = row;
    uint8_t secret[32] = {1, 2, 3};
    uint16_t none = 0;
    QUIC_STATELESS_RETRY_CONFIG config = {it->algorithm, it->rotation, it->length, it->secret ? secret : NULL};
    HQUIC registration = open_registration();
    CHECK_STATUS(it->expected,
                 api->SetParam(NULL, QUIC_PARAM_GLOBAL_STATELESS_RETRY_CONFIG, sizeof(config), &config));
    if (it->expected == QUIC_STATUS_SUCCESS) {
        CHECK_OK(api->SetParam(NULL, QUIC_PARAM_GLOBAL_RETRY_MEMORY_PERCENT, sizeof(none), &none));
        close_pair(usual_pair());
        CHECK(performance_counter(QUIC_PERF_COUNTER_SEND_STATELESS_RETRY) >= 1);
    }
    api->RegistrationClose(registration);
}

/* The key is for partitions, which are made with the first registration. */
static void reset_key(const void *row) {
    bool in_use = *(const bool *)row;
    uint8_t key[QUIC_STATELESS_RESET_KEY_LENGTH] = {9};
    HQUIC registration = in_use ? open_registration() : NULL;
    CHECK_STATUS(in_use ? QUIC_STATUS_SUCCESS : QUIC_STATUS_INVALID_STATE,
                 api->SetParam(NULL, QUIC_PARAM_GLOBAL_STATELESS_RESET_KEY, sizeof(key), key));
    if (in_use) api->RegistrationClose(registration);
}

static void library_is_in_use(const void *row) {
    (void)row;
    BOOLEAN in_use = 7;
    uint32_t length = sizeof(in_use);
    CHECK_OK(api->GetParam(NULL, QUIC_PARAM_GLOBAL_IN_USE, &length, &in_use));
    CHECK(!in_use);
    pair *it = usual_pair();
    CHECK_OK(api->GetParam(NULL, QUIC_PARAM_GLOBAL_IN_USE, &length, &in_use));
    CHECK(in_use);
    close_pair(it);
}

static void has_a_version(const void *row) {
    (void)row;
    uint32_t version[4], length = sizeof(version);
    char hash[128];
    CHECK_OK(api->GetParam(NULL, QUIC_PARAM_GLOBAL_LIBRARY_VERSION, &length, version));
    CHECK_EQUAL(2, version[0]);
    length = sizeof(hash);
    CHECK_OK(api->GetParam(NULL, QUIC_PARAM_GLOBAL_LIBRARY_GIT_HASH, &length, hash));
    CHECK(length == strlen(hash) + 1);
}

/* ---- Where work is done ---- */

static const struct execution_row {
    const char *name;
    uint32_t processors;
    uint16_t processor;
    uint32_t size;
    QUIC_STATUS expected;
} execution_rows[] = {
    {"no_processors", 0, 0, QUIC_GLOBAL_EXECUTION_CONFIG_MIN_SIZE, QUIC_STATUS_SUCCESS},
    {"one_processor", 1, 0, QUIC_GLOBAL_EXECUTION_CONFIG_MIN_SIZE + 2, QUIC_STATUS_SUCCESS},
    {"no_such_processor", 1, 65535, QUIC_GLOBAL_EXECUTION_CONFIG_MIN_SIZE + 2, WRONG},
    {"short_list", 1, 0, QUIC_GLOBAL_EXECUTION_CONFIG_MIN_SIZE, WRONG},
};

static void execution_is_configured(const void *row) {
    const struct execution_row *it = row;
    QUIC_GLOBAL_EXECUTION_CONFIG config = {.ProcessorCount = it->processors, .ProcessorList = {it->processor}}, read;
    uint32_t length = sizeof(read);
    CHECK_STATUS(it->expected, api->SetParam(NULL, QUIC_PARAM_GLOBAL_EXECUTION_CONFIG, it->size, &config));
    CHECK_OK(api->GetParam(NULL, QUIC_PARAM_GLOBAL_EXECUTION_CONFIG, &length, &read));
    CHECK_EQUAL(it->expected == QUIC_STATUS_SUCCESS ? it->size : 0, length);
    close_pair(usual_pair());
}

static void in_a_partition(const void *row) {
    (void)row;
    HQUIC registration = open_registration();
    connection *client = keep(sizeof(*client));
    CHECK_OK(api->ConnectionOpenInPartition(registration, 0, on_connection_event, client, &client->handle));
    close_connection(client);
    api->RegistrationClose(registration);
}

static void set_reset_key(uint8_t first) {
    uint8_t key[QUIC_STATELESS_RESET_KEY_LENGTH] = {first};
    CHECK_OK(api->SetParam(NULL, QUIC_PARAM_GLOBAL_STATELESS_RESET_KEY, sizeof(key), key));
}

/* Who knows nothing of a connection tells so, with a token that follows from the key: of another key, it tells nothing. */
static void resets_follow_from_the_key(const void *row) {
    bool same = *(const bool *)row;
    pair_options options = usual_options();
    SET(options.client, DisconnectTimeoutMs, 3000);
    SET(options.server, DatagramReceiveEnabled, true);
    pair *it = open_pair(&options);
    set_reset_key(1);
    connect_pair(it);
    set_reset_key(same ? 1 : 2);
    close_connection(it->server);
    /* Packets long enough to be answered by a reset; the server may still take some of them. */
    QUIC_BUFFER buffer = {1000, keep(1000)};
    while (!COUNT_EVENTS(&it->client, QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_TRANSPORT)) {
        api->DatagramSend(it->client.handle, &buffer, 1, QUIC_SEND_FLAG_NONE, NULL);
        let_things_happen(10);
    }
    event why = WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_TRANSPORT);
    CHECK_STATUS(same ? QUIC_STATUS_ABORTED : QUIC_STATUS_CONNECTION_TIMEOUT, why.status);
    close_connection(&it->client);
    lock_suite();
    it->listener.accepted_count = 0;
    unlock_suite();
    close_pair(it);
}

/* Every client has to come again with a token, whose keys follow from the secret. */
static void tokens_follow_from_the_secret(const void *row) {
    (void)row;
    uint8_t secret[32] = {3};
    uint16_t none = 0;
    uint32_t length;
    QUIC_STATISTICS_V2 statistics;
    QUIC_STATELESS_RETRY_CONFIG config = {QUIC_AEAD_ALGORITHM_AES_256_GCM, 30000, sizeof(secret), secret};
    CHECK_OK(api->SetParam(NULL, QUIC_PARAM_GLOBAL_STATELESS_RETRY_CONFIG, sizeof(config), &config));
    CHECK_OK(api->SetParam(NULL, QUIC_PARAM_GLOBAL_RETRY_MEMORY_PERCENT, sizeof(none), &none));
    for (int i = 0; i < 3; i++) {
        pair *it = usual_pair();
        length = sizeof(statistics);
        CHECK_OK(api->GetParam(it->client.handle, QUIC_PARAM_CONN_STATISTICS_V2, &length, &statistics));
        CHECK(statistics.StatelessRetry);
        close_pair(it);
        secret[1]++;
        CHECK_OK(api->SetParam(NULL, QUIC_PARAM_GLOBAL_STATELESS_RETRY_CONFIG, sizeof(config), &config));
    }
}

void declare_library_settings(void) {
    static const uint32_t spoken[] = {VERSION_1, VERSION_2};
    static const bool both[] = {false, true};
    for (size_t i = 0; i < sizeof(version_rows) / sizeof(*version_rows); i++) {
        const struct version_row *it = &version_rows[i];
        add_case(CASE_ORDINARY, versions_of_all, it, "library/versions/global/%s", it->name);
        add_case(CASE_ORDINARY, versions_of_a_configuration, it, "library/versions/configuration/%s", it->name);
        add_case(CASE_ORDINARY, versions_of_a_connection, it, "library/versions/connection/%s", it->name);
    }
    for (size_t i = 0; i < 2; i++) {
        add_case(CASE_ORDINARY, the_first_offered_version_is_spoken, &spoken[i], "library/versions/spoken/%x",
                 spoken[i]);
        add_case(CASE_ORDINARY, reset_key, &both[i], "library/reset_key/%s", both[i] ? "in_use" : "early");
    }
    for (size_t i = 0; i < sizeof(balancing_rows) / sizeof(*balancing_rows); i++) {
        add_case(CASE_ORDINARY, balances, &balancing_rows[i], "library/balancing/%s", balancing_rows[i].name);
    }
    for (size_t i = 0; i < sizeof(shown_rows) / sizeof(*shown_rows); i++) {
        add_case(CASE_ORDINARY, ids_show_the_server, &shown_rows[i], "library/balancing_ids/%s", shown_rows[i].name);
    }
    static const bool either[] = {false, true};
    for (size_t i = 0; i < 2; i++) {
        add_case(CASE_ORDINARY, resets_follow_from_the_key, &either[i], "library/resets_of_%s_key",
                 either[i] ? "the_same" : "another");
    }
    add_case(CASE_ORDINARY, tokens_follow_from_the_secret, NULL, "library/tokens_follow_from_the_secret");
    for (size_t i = 0; i < sizeof(retry_rows) / sizeof(*retry_rows); i++) {
        add_case(CASE_ORDINARY, retry_is_configured, &retry_rows[i], "library/retry/%s", retry_rows[i].name);
    }
    for (size_t i = 0; i < sizeof(execution_rows) / sizeof(*execution_rows); i++) {
        add_case(CASE_ORDINARY, execution_is_configured, &execution_rows[i], "library/execution/%s",
                 execution_rows[i].name);
    }
#define ADD(body) add_case(CASE_ORDINARY, body, NULL, "library/%s", #body)
    ADD(versions_are_listed);
    ADD(balancing_is_fixed_once_in_use);
    ADD(without_balancing_ids_show_nothing);
    ADD(library_is_in_use);
    ADD(has_a_version);
    ADD(in_a_partition);
#undef ADD
}
