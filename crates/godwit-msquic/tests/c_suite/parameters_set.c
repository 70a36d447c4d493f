/*
 * Every parameter that can be set: right and wrong lengths and values, and the states in which it is refused. Rows with
 * a value that is taken read it back, where it can be read.
 */
#include "suite.h"
#include "world.h"

#define OK QUIC_STATUS_SUCCESS
#define WRONG QUIC_STATUS_INVALID_PARAMETER
#define LATE QUIC_STATUS_INVALID_STATE

enum { NO_VALUE = 1, READ_BACK = 2 };

static const struct set_row {
    const char *label;
    uint32_t parameter;
    enum world_kind kind;
    enum world_state state;
    uint32_t length;
    uint64_t value; /* Its first bytes are what is set. */
    QUIC_STATUS expected;
    unsigned traits;
} rows[] = {
#define GLOBAL(name, label, length, value, expected, traits) \
    {#name "/" label, QUIC_PARAM_GLOBAL_##name, OF_NOBODY, FRESH, length, value, expected, traits}
    GLOBAL(RETRY_MEMORY_PERCENT, "none", 2, 0, OK, READ_BACK),
    GLOBAL(RETRY_MEMORY_PERCENT, "all", 2, 65535, OK, READ_BACK),
    GLOBAL(RETRY_MEMORY_PERCENT, "short", 1, 1, WRONG, 0),
    GLOBAL(RETRY_MEMORY_PERCENT, "long", 4, 1, WRONG, 0),
    GLOBAL(LOAD_BALACING_MODE, "disabled", 2, 0, OK, READ_BACK),
    GLOBAL(LOAD_BALACING_MODE, "too_large", 2, 2, WRONG, 0),
    GLOBAL(LOAD_BALACING_MODE, "short", 1, 0, WRONG, 0),
    GLOBAL(LOAD_BALACING_MODE, "long", 4, 0, WRONG, 0),
    GLOBAL(SETTINGS, "no_buffer", sizeof(QUIC_SETTINGS), 0, WRONG, NO_VALUE),
    GLOBAL(GLOBAL_SETTINGS, "no_buffer", sizeof(QUIC_GLOBAL_SETTINGS), 0, WRONG, NO_VALUE),
    GLOBAL(GLOBAL_SETTINGS, "short", 8, 0, WRONG, 0),
    GLOBAL(VERSION_SETTINGS, "no_buffer", sizeof(QUIC_VERSION_SETTINGS), 0, WRONG, NO_VALUE),
    GLOBAL(VERSION_SETTINGS, "short", 8, 0, WRONG, 0),
    GLOBAL(VERSION_NEGOTIATION_ENABLED, "on", 1, 1, OK, READ_BACK),
    GLOBAL(VERSION_NEGOTIATION_ENABLED, "off", 1, 0, OK, READ_BACK),
    GLOBAL(VERSION_NEGOTIATION_ENABLED, "empty", 0, 0, WRONG, 0),
    GLOBAL(VERSION_NEGOTIATION_ENABLED, "no_buffer", 1, 0, WRONG, NO_VALUE),
    GLOBAL(STATELESS_RESET_KEY, "short", 31, 0, WRONG, 0),
    GLOBAL(STATELESS_RESET_KEY, "long", 33, 0, WRONG, 0),
    GLOBAL(STATELESS_RETRY_CONFIG, "short", 8, 0, WRONG, 0),
    GLOBAL(STATELESS_RETRY_CONFIG, "no_buffer", sizeof(QUIC_STATELESS_RETRY_CONFIG), 0, WRONG, NO_VALUE),
    GLOBAL(EXECUTION_CONFIG, "empty", 0, 0, OK, 0),
    GLOBAL(EXECUTION_CONFIG, "short", 4, 0, WRONG, 0),
    GLOBAL(EXECUTION_CONFIG, "no_buffer", 12, 0, WRONG, NO_VALUE),
#define CONFIGURATION(name, label, length, value, expected, traits) \
    {#name "/" label, QUIC_PARAM_CONFIGURATION_##name, OF_CONFIGURATION, FRESH, length, value, expected, traits}
    CONFIGURATION(SETTINGS, "no_buffer_of_configuration", sizeof(QUIC_SETTINGS), 0, WRONG, NO_VALUE),
    CONFIGURATION(SETTINGS, "short_of_configuration", 16, 0, WRONG, 0),
    CONFIGURATION(VERSION_SETTINGS, "no_buffer_of_configuration", sizeof(QUIC_VERSION_SETTINGS), 0, WRONG, NO_VALUE),
    CONFIGURATION(VERSION_SETTINGS, "short_of_configuration", 16, 0, WRONG, 0),
    CONFIGURATION(TICKET_KEYS, "no_buffer", sizeof(QUIC_TICKET_KEY_CONFIG), 0, WRONG, NO_VALUE),
    CONFIGURATION(TICKET_KEYS, "short", sizeof(QUIC_TICKET_KEY_CONFIG) - 1, 0, WRONG, 0),
    CONFIGURATION(VERSION_NEG_ENABLED, "on", 1, 1, OK, READ_BACK),
    CONFIGURATION(VERSION_NEG_ENABLED, "off", 1, 0, OK, READ_BACK),
    CONFIGURATION(VERSION_NEG_ENABLED, "empty", 0, 0, WRONG, 0),
    CONFIGURATION(VERSION_NEG_ENABLED, "no_buffer", 1, 0, WRONG, NO_VALUE),
    CONFIGURATION(SCHANNEL_CREDENTIAL_ATTRIBUTE_W, "elsewhere_only", 8, 0, WRONG, 0),
#define LISTENER(name, label, length, value, expected, traits) \
    {#name "/" label, QUIC_PARAM_##name, OF_LISTENER, FRESH, length, value, expected, traits}
    LISTENER(LISTENER_CIBIR_ID, "empty", 0, 0, OK, 0),
    LISTENER(LISTENER_CIBIR_ID, "offset_alone", 1, 0, WRONG, 0),
    LISTENER(LISTENER_CIBIR_ID, "offset_zero", 3, 0x020100, OK, 0),
    LISTENER(LISTENER_CIBIR_ID, "longest", 7, 0x06050403020100, OK, 0),
    LISTENER(LISTENER_CIBIR_ID, "other_offset", 3, 0x020101, QUIC_STATUS_NOT_SUPPORTED, 0),
    LISTENER(LISTENER_CIBIR_ID, "too_long", 8, 0, WRONG, 0),
    LISTENER(DOS_MODE_EVENTS, "on", 1, 1, OK, READ_BACK),
    LISTENER(DOS_MODE_EVENTS, "off", 1, 0, OK, READ_BACK),
    LISTENER(DOS_MODE_EVENTS, "short", 0, 0, WRONG, 0),
    LISTENER(DOS_MODE_EVENTS, "long", 2, 0, WRONG, 0),
    LISTENER(LISTENER_PARTITION_INDEX, "started", 2, 0, WRONG, 0),
    LISTENER(LISTENER_PARTITION_INDEX, "short", 1, 0, WRONG, 0),
    LISTENER(LISTENER_PARTITION_INDEX, "too_large", 2, 65535, WRONG, 0),
    LISTENER(LISTENER_LOCAL_ADDRESS, "only_read", sizeof(QUIC_ADDR), 0, WRONG, 0),
#define FRESH_CLIENT(name, label, length, value, expected, traits) \
    {#name "/fresh/" label, QUIC_PARAM_CONN_##name, OF_CLIENT, FRESH, length, value, expected, traits}
#define CLIENT(name, label, length, value, expected, traits) \
    {#name "/client/" label, QUIC_PARAM_CONN_##name, OF_CLIENT, CONNECTED, length, value, expected, traits}
#define SERVER(name, label, length, value, expected, traits) \
    {#name "/server/" label, QUIC_PARAM_CONN_##name, OF_SERVER, CONNECTED, length, value, expected, traits}
    FRESH_CLIENT(LOCAL_ADDRESS, "short", 8, 0, WRONG, 0),
    SERVER(LOCAL_ADDRESS, "not_its_own", sizeof(QUIC_ADDR), AF_INET, LATE, 0),
    FRESH_CLIENT(REMOTE_ADDRESS, "short", 8, AF_INET, WRONG, 0),
    FRESH_CLIENT(REMOTE_ADDRESS, "wildcard", sizeof(QUIC_ADDR), AF_INET, WRONG, 0),
    CLIENT(REMOTE_ADDRESS, "late", sizeof(QUIC_ADDR), AF_INET, LATE, 0),
    SERVER(REMOTE_ADDRESS, "late", sizeof(QUIC_ADDR), AF_INET, LATE, 0),
    FRESH_CLIENT(SETTINGS, "no_buffer", sizeof(QUIC_SETTINGS), 0, WRONG, NO_VALUE),
    FRESH_CLIENT(SETTINGS, "short", 8, 0, WRONG, 0),
    FRESH_CLIENT(VERSION_SETTINGS, "no_buffer", sizeof(QUIC_VERSION_SETTINGS), 0, WRONG, NO_VALUE),
    FRESH_CLIENT(VERSION_SETTINGS, "short", 8, 0, WRONG, 0),
    FRESH_CLIENT(SHARE_UDP_BINDING, "on", 1, 1, OK, READ_BACK),
    FRESH_CLIENT(SHARE_UDP_BINDING, "off", 1, 0, OK, READ_BACK),
    FRESH_CLIENT(SHARE_UDP_BINDING, "long", 2, 1, WRONG, 0),
    CLIENT(SHARE_UDP_BINDING, "late", 1, 1, LATE, 0),
    SERVER(SHARE_UDP_BINDING, "not_its_own", 1, 1, LATE, 0),
    FRESH_CLIENT(CLOSE_REASON_PHRASE, "text", 4, 0x657962, OK, READ_BACK),
    FRESH_CLIENT(CLOSE_REASON_PHRASE, "without_end", 4, 0x61616161, WRONG, 0),
    FRESH_CLIENT(CLOSE_REASON_PHRASE, "too_long", 513, 0, WRONG, 0),
    FRESH_CLIENT(STREAM_SCHEDULING_SCHEME, "round_robin", 4, 1, OK, READ_BACK),
    FRESH_CLIENT(STREAM_SCHEDULING_SCHEME, "fifo", 4, 0, OK, READ_BACK),
    FRESH_CLIENT(STREAM_SCHEDULING_SCHEME, "none_such", 4, 2, WRONG, 0),
    FRESH_CLIENT(STREAM_SCHEDULING_SCHEME, "short", 2, 0, WRONG, 0),
    CLIENT(STREAM_SCHEDULING_SCHEME, "round_robin", 4, 1, OK, READ_BACK),
    SERVER(STREAM_SCHEDULING_SCHEME, "round_robin", 4, 1, OK, READ_BACK),
    FRESH_CLIENT(DATAGRAM_RECEIVE_ENABLED, "on", 1, 1, OK, READ_BACK),
    FRESH_CLIENT(DATAGRAM_RECEIVE_ENABLED, "off", 1, 0, OK, READ_BACK),
    FRESH_CLIENT(DATAGRAM_RECEIVE_ENABLED, "long", 4, 1, WRONG, 0),
    CLIENT(DATAGRAM_RECEIVE_ENABLED, "late", 1, 1, LATE, 0),
    SERVER(DATAGRAM_RECEIVE_ENABLED, "late", 1, 1, LATE, 0),
    FRESH_CLIENT(DATAGRAM_SEND_ENABLED, "only_read", 1, 1, WRONG, 0),
    FRESH_CLIENT(DISABLE_1RTT_ENCRYPTION, "on", 1, 1, OK, READ_BACK),
    FRESH_CLIENT(DISABLE_1RTT_ENCRYPTION, "off", 1, 0, OK, READ_BACK),
    FRESH_CLIENT(DISABLE_1RTT_ENCRYPTION, "long", 2, 1, WRONG, 0),
    CLIENT(DISABLE_1RTT_ENCRYPTION, "late", 1, 1, LATE, 0),
    SERVER(DISABLE_1RTT_ENCRYPTION, "late", 1, 1, LATE, 0),
    FRESH_CLIENT(RESUMPTION_TICKET, "empty", 0, 0, WRONG, 0),
    FRESH_CLIENT(RESUMPTION_TICKET, "no_buffer", 100, 0, WRONG, NO_VALUE),
    FRESH_CLIENT(RESUMPTION_TICKET, "nonsense", 100, 0x0123456789abcdefll, WRONG, 0),
    CLIENT(RESUMPTION_TICKET, "late", 100, 0, LATE, 0),
    SERVER(RESUMPTION_TICKET, "not_its_own", 100, 0, LATE, 0),
    FRESH_CLIENT(PEER_CERTIFICATE_VALID, "no_buffer", 1, 0, WRONG, NO_VALUE),
    FRESH_CLIENT(PEER_CERTIFICATE_VALID, "long", 2, 0, WRONG, 0),
    FRESH_CLIENT(LOCAL_INTERFACE, "loopback", 4, 1, OK, 0),
    FRESH_CLIENT(LOCAL_INTERFACE, "short", 2, 1, WRONG, 0),
    CLIENT(LOCAL_INTERFACE, "late", 4, 1, LATE, 0),
    SERVER(LOCAL_INTERFACE, "not_its_own", 4, 1, LATE, 0),
    FRESH_CLIENT(TLS_SECRETS, "short", sizeof(QUIC_TLS_SECRETS) - 1, 0, WRONG, 0),
    FRESH_CLIENT(TLS_SECRETS, "no_buffer", sizeof(QUIC_TLS_SECRETS), 0, WRONG, NO_VALUE),
    FRESH_CLIENT(CIBIR_ID, "not_shared", 3, 0, LATE, 0),
    CLIENT(CIBIR_ID, "late", 3, 0, LATE, 0),
    SERVER(CIBIR_ID, "not_its_own", 3, 0, LATE, 0),
    FRESH_CLIENT(SEND_DSCP, "none", 1, 0, OK, READ_BACK),
    FRESH_CLIENT(SEND_DSCP, "largest", 1, 63, OK, READ_BACK),
    FRESH_CLIENT(SEND_DSCP, "too_large", 1, 64, WRONG, 0),
    FRESH_CLIENT(SEND_DSCP, "long", 2, 1, WRONG, 0),
    FRESH_CLIENT(SEND_DSCP, "no_buffer", 1, 1, WRONG, NO_VALUE),
    CLIENT(SEND_DSCP, "connected", 1, 46, OK, READ_BACK),
    FRESH_CLIENT(CLOSE_ASYNC, "off", 1, 0, OK, READ_BACK),
    FRESH_CLIENT(CLOSE_ASYNC, "long", 2, 1, WRONG, 0),
    FRESH_CLIENT(QUIC_VERSION, "only_read", 4, 1, WRONG, 0),
    FRESH_CLIENT(STATISTICS, "only_read", 8, 0, WRONG, 0),
    FRESH_CLIENT(STATISTICS_V2, "only_read", 8, 0, WRONG, 0),
    FRESH_CLIENT(IDEAL_PROCESSOR, "only_read", 2, 0, WRONG, 0),
    FRESH_CLIENT(MAX_STREAM_IDS, "only_read", 32, 0, WRONG, 0),
    FRESH_CLIENT(FORCE_KEY_UPDATE, "early", 1, 1, LATE, 0),
    CLIENT(FORCE_KEY_UPDATE, "no_buffer", 0, 0, OK, NO_VALUE),
    FRESH_CLIENT(FORCE_CID_UPDATE, "early", 1, 1, LATE, 0),
    FRESH_CLIENT(TEST_TRANSPORT_PARAMETER, "short", 8, 0, WRONG, 0),
    CLIENT(TEST_TRANSPORT_PARAMETER, "late", sizeof(QUIC_PRIVATE_TRANSPORT_PARAMETER), 0, LATE, 0),
    FRESH_CLIENT(KEEP_ALIVE_PADDING, "some", 2, 100, OK, 0),
    FRESH_CLIENT(KEEP_ALIVE_PADDING, "short", 1, 100, WRONG, 0),
    CLIENT(KEEP_ALIVE_PADDING, "some", 2, 100, OK, 0),
#define STREAM(name, label, state, length, value, expected, traits) \
    {#name "/" label, QUIC_PARAM_##name, OF_STREAM, state, length, value, expected, traits}
    STREAM(STREAM_PRIORITY, "fresh", FRESH, 2, 1, OK, READ_BACK),
    STREAM(STREAM_PRIORITY, "started", CONNECTED, 2, 65535, OK, READ_BACK),
    STREAM(STREAM_PRIORITY, "short", FRESH, 1, 1, WRONG, 0),
    STREAM(STREAM_PRIORITY, "long", FRESH, 4, 1, WRONG, 0),
    STREAM(STREAM_PRIORITY, "no_buffer", FRESH, 2, 1, WRONG, NO_VALUE),
    STREAM(STREAM_ID, "only_read", CONNECTED, 8, 0, WRONG, 0),
    STREAM(STREAM_0RTT_LENGTH, "only_read", CONNECTED, 8, 0, WRONG, 0),
    STREAM(STREAM_IDEAL_SEND_BUFFER_SIZE, "only_read", CONNECTED, 8, 0, WRONG, 0),
    STREAM(STREAM_STATISTICS, "only_read", CONNECTED, 8, 0, WRONG, 0),
    STREAM(STREAM_RELIABLE_OFFSET, "not_negotiated", CONNECTED, 8, 1, LATE, 0),
    STREAM(STREAM_RELIABLE_OFFSET, "short", CONNECTED, 4, 1, WRONG, 0),
    STREAM(STREAM_RELIABLE_OFFSET, "no_buffer", CONNECTED, 8, 1, WRONG, NO_VALUE),
    {"none_such/global", 0x0100003f, OF_NOBODY, FRESH, 4, 0, WRONG, 0},
    {"none_such/registration", 0x02000000, OF_REGISTRATION, FRESH, 4, 0, WRONG, 0},
    {"none_such/configuration", 0x0300003f, OF_CONFIGURATION, FRESH, 4, 0, WRONG, 0},
    {"none_such/listener", 0x0400003f, OF_LISTENER, FRESH, 4, 0, WRONG, 0},
    {"none_such/connection", 0x0500003f, OF_CLIENT, FRESH, 4, 0, WRONG, 0},
    {"none_such/tls", 0x0600003f, OF_CLIENT, CONNECTED, 4, 0, QUIC_STATUS_NOT_SUPPORTED, 0},
    {"none_such/stream", 0x0800003f, OF_STREAM, FRESH, 4, 0, WRONG, 0},
    {"none_such/prefix", 0x09000000, OF_CLIENT, FRESH, 4, 0, WRONG, 0},
    {"none_such/zero", 0, OF_CLIENT, FRESH, 4, 0, WRONG, 0},
};

static void answers_as_expected(const void *row) {
    const struct set_row *it = row;
    uint8_t value[1024] = {0}, read[1024] = {0};
    uint32_t length = it->length;
    world *in = open_world(it->state);
    memcpy(value, &it->value, sizeof(it->value));
    if (it->kind == OF_CLIENT && it->parameter == QUIC_PARAM_CONN_FORCE_KEY_UPDATE && it->state == CONNECTED) {
        /* Keys can be changed once the handshake is confirmed, which is soon after both are connected. */
        while (api->SetParam(in->handles[it->kind], it->parameter, 0, NULL) == QUIC_STATUS_INVALID_STATE) {
            let_things_happen(1);
        }
    } else {
        CHECK_STATUS(it->expected, api->SetParam(in->handles[it->kind], it->parameter, it->length,
                                                 it->traits & NO_VALUE ? NULL : value));
    }
    if (it->traits & READ_BACK) {
        CHECK_OK(api->GetParam(in->handles[it->kind], it->parameter, &length, read));
        CHECK_EQUAL(it->length, length);
        CHECK(memcmp(value, read, length) == 0);
    }
    close_world(in);
}

/* ---- What cannot be read, or not yet ---- */

static const struct unreadable {
    const char *label;
    uint32_t parameter;
    enum world_kind kind;
    enum world_state state;
    QUIC_STATUS expected;
} unreadable[] = {
    {"GLOBAL_STATELESS_RESET_KEY", QUIC_PARAM_GLOBAL_STATELESS_RESET_KEY, OF_NOBODY, FRESH, WRONG},
    {"GLOBAL_STATELESS_RETRY_CONFIG", QUIC_PARAM_GLOBAL_STATELESS_RETRY_CONFIG, OF_NOBODY, FRESH,
     QUIC_STATUS_NOT_SUPPORTED},
    {"CONFIGURATION_TICKET_KEYS", QUIC_PARAM_CONFIGURATION_TICKET_KEYS, OF_CONFIGURATION, FRESH, WRONG},
    {"LISTENER_PARTITION_INDEX", QUIC_PARAM_LISTENER_PARTITION_INDEX, OF_LISTENER, FRESH, LATE},
    {"CONN_LOCAL_ADDRESS/fresh", QUIC_PARAM_CONN_LOCAL_ADDRESS, OF_CLIENT, FRESH, LATE},
    {"CONN_REMOTE_ADDRESS/fresh", QUIC_PARAM_CONN_REMOTE_ADDRESS, OF_CLIENT, FRESH, LATE},
    {"CONN_CLOSE_REASON_PHRASE/none", QUIC_PARAM_CONN_CLOSE_REASON_PHRASE, OF_CLIENT, CONNECTED,
     QUIC_STATUS_NOT_FOUND},
    {"CONN_RESUMPTION_TICKET", QUIC_PARAM_CONN_RESUMPTION_TICKET, OF_CLIENT, CONNECTED, WRONG},
    {"CONN_PEER_CERTIFICATE_VALID", QUIC_PARAM_CONN_PEER_CERTIFICATE_VALID, OF_CLIENT, CONNECTED, WRONG},
    {"CONN_LOCAL_INTERFACE", QUIC_PARAM_CONN_LOCAL_INTERFACE, OF_CLIENT, CONNECTED, WRONG},
    {"CONN_TLS_SECRETS", QUIC_PARAM_CONN_TLS_SECRETS, OF_CLIENT, CONNECTED, WRONG},
    {"CONN_CIBIR_ID", QUIC_PARAM_CONN_CIBIR_ID, OF_CLIENT, CONNECTED, WRONG},
    {"CONN_ORIG_DEST_CID/fresh", QUIC_PARAM_CONN_ORIG_DEST_CID, OF_CLIENT, FRESH, LATE},
    {"TLS_HANDSHAKE_INFO/fresh", QUIC_PARAM_TLS_HANDSHAKE_INFO, OF_CLIENT, FRESH, LATE},
    {"TLS_NEGOTIATED_ALPN/fresh", QUIC_PARAM_TLS_NEGOTIATED_ALPN, OF_CLIENT, FRESH, LATE},
    {"CONFIGURATION_SETTINGS/fresh_client", QUIC_PARAM_CONFIGURATION_SETTINGS, OF_CLIENT, FRESH, WRONG},
    {"CONN_FORCE_KEY_UPDATE", QUIC_PARAM_CONN_FORCE_KEY_UPDATE, OF_CLIENT, CONNECTED, WRONG},
    {"CONN_FORCE_CID_UPDATE", QUIC_PARAM_CONN_FORCE_CID_UPDATE, OF_CLIENT, CONNECTED, WRONG},
    {"STREAM_ID/fresh", QUIC_PARAM_STREAM_ID, OF_STREAM, FRESH, LATE},
    {"STREAM_0RTT_LENGTH/open", QUIC_PARAM_STREAM_0RTT_LENGTH, OF_STREAM, CONNECTED, LATE},
    {"STREAM_STATISTICS/fresh", QUIC_PARAM_STREAM_STATISTICS, OF_STREAM, FRESH, LATE},
    {"STREAM_RELIABLE_OFFSET/none", QUIC_PARAM_STREAM_RELIABLE_OFFSET, OF_STREAM, CONNECTED, LATE},
    {"STREAM_RELIABLE_OFFSET_RECV/none", QUIC_PARAM_STREAM_RELIABLE_OFFSET_RECV, OF_STREAM, CONNECTED, LATE},
    {"none_such/global", 0x0100003f, OF_NOBODY, FRESH, WRONG},
    {"none_such/registration", 0x02000000, OF_REGISTRATION, FRESH, WRONG},
    {"none_such/configuration", 0x0300003f, OF_CONFIGURATION, FRESH, WRONG},
    {"none_such/listener", 0x0400003f, OF_LISTENER, FRESH, WRONG},
    {"none_such/connection", 0x0500003f, OF_CLIENT, FRESH, WRONG},
    {"none_such/tls", 0x0600003f, OF_CLIENT, CONNECTED, QUIC_STATUS_NOT_SUPPORTED},
    {"none_such/stream", 0x0800003f, OF_STREAM, FRESH, WRONG},
};

static void is_not_answered(const void *row) {
    const struct unreadable *it = row;
    uint8_t read[1024];
    uint32_t length = sizeof(read);
    world *in = open_world(it->state);
    CHECK_STATUS(it->expected, api->GetParam(in->handles[it->kind], it->parameter, &length, read));
    close_world(in);
}

void declare_parameters_set(void) {
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        add_case(CASE_ORDINARY, answers_as_expected, &rows[i], "set/%s", rows[i].label);
    }
    for (size_t i = 0; i < sizeof(unreadable) / sizeof(*unreadable); i++) {
        add_case(CASE_ORDINARY, is_not_answered, &unreadable[i], "unreadable/%s", unreadable[i].label);
    }
}
