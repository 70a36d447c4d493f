/* What the functions say to arguments other than their handle: missing, too long, out of range, contradictory. */
#include "suite.h"

#define WRONG QUIC_STATUS_INVALID_PARAMETER

/* A registration, a configuration of a client without credential, and a fresh connection, listener and stream. */
static struct {
    HQUIC registration, configuration, listener;
    connection client;
    stream *stream;
} given;

static void prepare(void) {
    given.registration = open_registration();
    given.configuration = open_configuration(given.registration, "suite", NULL);
    CHECK_OK(api->ListenerOpen(given.registration, on_listener_event, keep(sizeof(listener)), &given.listener));
    CHECK_OK(api->ConnectionOpen(given.registration, on_connection_event, &given.client, &given.client.handle));
    given.stream = open_stream(&given.client, QUIC_STREAM_OPEN_FLAG_NONE);
}

static void clean_up(void) {
    close_stream(given.stream);
    close_connection(&given.client);
    api->ListenerClose(given.listener);
    api->ConfigurationClose(given.configuration);
    api->RegistrationClose(given.registration);
}

static void load_client(void) {
    QUIC_CREDENTIAL_CONFIG config = {.Type = QUIC_CREDENTIAL_TYPE_NONE, .Flags = QUIC_CREDENTIAL_FLAG_CLIENT};
    CHECK_OK(api->ConfigurationLoadCredential(given.configuration, &config));
}

/* ---- Opening ---- */

static QUIC_STATUS registration_without_place(void) { return api->RegistrationOpen(NULL, NULL); }
static QUIC_STATUS registration_with_name(size_t length) {
    char *name = memset(keep(length + 1), 'n', length);
    QUIC_REGISTRATION_CONFIG config = {name, QUIC_EXECUTION_PROFILE_LOW_LATENCY};
    HQUIC registration = NULL;
    QUIC_STATUS status = api->RegistrationOpen(&config, &registration);
    if (QUIC_SUCCEEDED(status)) api->RegistrationClose(registration);
    return status;
}
static QUIC_STATUS registration_with_longest_name(void) { return registration_with_name(254); }
static QUIC_STATUS registration_with_too_long_name(void) { return registration_with_name(255); }
static QUIC_STATUS registration_without_config(void) {
    HQUIC registration = NULL;
    QUIC_STATUS status = api->RegistrationOpen(NULL, &registration);
    if (QUIC_SUCCEEDED(status)) api->RegistrationClose(registration);
    return status;
}
static QUIC_STATUS registration_without_name(void) {
    QUIC_REGISTRATION_CONFIG config = {NULL, QUIC_EXECUTION_PROFILE_TYPE_MAX_THROUGHPUT};
    HQUIC registration = NULL;
    QUIC_STATUS status = api->RegistrationOpen(&config, &registration);
    if (QUIC_SUCCEEDED(status)) api->RegistrationClose(registration);
    return status;
}

static QUIC_STATUS open_with(const QUIC_BUFFER *alpn, uint32_t count, bool place) {
    HQUIC configuration = NULL;
    QUIC_STATUS status = api->ConfigurationOpen(
        given.registration, alpn, count, NULL, 0, NULL, place ? &configuration : NULL);
    if (QUIC_SUCCEEDED(status)) api->ConfigurationClose(configuration);
    return status;
}
static QUIC_STATUS start_with(const QUIC_BUFFER *alpn, uint32_t count, bool place) {
    (void)place;
    QUIC_ADDR address = loopback(0);
    return api->ListenerStart(given.listener, alpn, count, &address);
}

/* Lists of protocols are the same for configurations and listeners. */
static QUIC_STATUS alpn_with(
    QUIC_STATUS (*use)(const QUIC_BUFFER *, uint32_t, bool), uint32_t length, uint32_t count) {
    QUIC_BUFFER *buffers = keep(count * sizeof(*buffers) + 1);
    for (uint32_t i = 0; i < count; i++) buffers[i] = (QUIC_BUFFER){length, memset(keep(256), 'a', 256)};
    return use(buffers, count, true);
}
#define ALPN(name, use) \
    static QUIC_STATUS name##_alpn_missing(void) { return use(NULL, 1, true); } \
    static QUIC_STATUS name##_alpn_none(void) { return alpn_with(use, 1, 0); } \
    static QUIC_STATUS name##_alpn_empty(void) { return alpn_with(use, 0, 1); } \
    static QUIC_STATUS name##_alpn_longest(void) { return alpn_with(use, 255, 1); } \
    static QUIC_STATUS name##_alpn_too_long(void) { return alpn_with(use, 256, 1); } \
    static QUIC_STATUS name##_alpn_most(void) { return alpn_with(use, 254, 257); } \
    static QUIC_STATUS name##_alpn_too_many(void) { return alpn_with(use, 255, 257); }
ALPN(configuration, open_with)
ALPN(listener, start_with)
static QUIC_STATUS configuration_without_place(void) {
    QUIC_BUFFER alpn = alpn_buffer("suite");
    return open_with(&alpn, 1, false);
}

static HQUIC place;
static QUIC_STATUS listener_without_handler(void) {
    return api->ListenerOpen(given.registration, NULL, NULL, &place);
}
static QUIC_STATUS listener_without_place(void) {
    return api->ListenerOpen(given.registration, on_listener_event, NULL, NULL);
}
static QUIC_STATUS listener_address_of_no_family(void) {
    QUIC_BUFFER alpn = alpn_buffer("suite");
    QUIC_ADDR address = loopback(0);
    address.Ip.sa_family = 77;
    return api->ListenerStart(given.listener, &alpn, 1, &address);
}
static QUIC_STATUS listener_without_address(void) {
    QUIC_BUFFER alpn = alpn_buffer("suite");
    return api->ListenerStart(given.listener, &alpn, 1, NULL);
}
static QUIC_STATUS listener_twice(void) {
    QUIC_BUFFER alpn = alpn_buffer("suite");
    QUIC_ADDR address = loopback(0);
    CHECK_OK(api->ListenerStart(given.listener, &alpn, 1, &address));
    return api->ListenerStart(given.listener, &alpn, 1, &address);
}
static QUIC_STATUS connection_without_handler(void) {
    return api->ConnectionOpen(given.registration, NULL, NULL, &place);
}
static QUIC_STATUS connection_without_place(void) {
    return api->ConnectionOpen(given.registration, on_connection_event, NULL, NULL);
}
static QUIC_STATUS connection_in_no_partition(void) {
    return api->ConnectionOpenInPartition(given.registration, UINT16_MAX, on_connection_event, NULL, &place);
}
static QUIC_STATUS stream_without_handler(void) {
    return api->StreamOpen(given.client.handle, QUIC_STREAM_OPEN_FLAG_NONE, NULL, NULL, &place);
}
static QUIC_STATUS stream_without_place(void) {
    return api->StreamOpen(given.client.handle, QUIC_STREAM_OPEN_FLAG_NONE, on_stream_event, NULL, NULL);
}

/* ---- Starting a connection ---- */

static QUIC_STATUS start(HQUIC configuration, QUIC_ADDRESS_FAMILY family, const char *name, uint16_t port) {
    return api->ConnectionStart(given.client.handle, configuration, family, name, port);
}
static QUIC_STATUS start_without_credential(void) { return start(given.configuration, AF_INET, "localhost", 4433); }
static QUIC_STATUS start_without_port(void) { return start(given.configuration, AF_INET, "localhost", 0); }
static QUIC_STATUS start_in_no_family(void) { return start(given.configuration, 77, "localhost", 4433); }
static QUIC_STATUS start_without_name(void) {
    load_client();
    return start(given.configuration, AF_INET, NULL, 4433);
}
static QUIC_STATUS start_with_too_long_name(void) {
    char *name = memset(keep(65538), 'n', 65536);
    load_client();
    return start(given.configuration, AF_INET, name, 4433);
}
static QUIC_STATUS start_without_configuration(void) { return start(NULL, AF_INET, "localhost", 4433); }

/* ---- Connections ---- */

static QUIC_STATUS alert_out_of_range(void) {
    return api->ConnectionCertificateValidationComplete(given.client.handle, FALSE, 256);
}
static QUIC_STATUS ticket_of_a_client(void) {
    return api->ConnectionSendResumptionTicket(given.client.handle, QUIC_SEND_RESUMPTION_FLAG_NONE, 0, NULL);
}
static QUIC_STATUS keying_material_with(QUIC_KEYING_MATERIAL_CONFIG config, bool output) {
    uint8_t material[64];
    return api->ConnectionExportKeyingMaterial(given.client.handle, &config, output ? material : NULL);
}
static QUIC_STATUS keying_material_without_config(void) {
    uint8_t material[64];
    return api->ConnectionExportKeyingMaterial(given.client.handle, NULL, material);
}
static QUIC_STATUS keying_material_without_label(void) {
    return keying_material_with((QUIC_KEYING_MATERIAL_CONFIG){NULL, 0, NULL, 32}, true);
}
static QUIC_STATUS keying_material_without_output(void) {
    return keying_material_with((QUIC_KEYING_MATERIAL_CONFIG){"label", 0, NULL, 32}, false);
}
static QUIC_STATUS keying_material_of_no_length(void) {
    return keying_material_with((QUIC_KEYING_MATERIAL_CONFIG){"label", 0, NULL, 0}, true);
}
static QUIC_STATUS keying_material_without_context(void) {
    return keying_material_with((QUIC_KEYING_MATERIAL_CONFIG){"label", 3, NULL, 32}, true);
}
static QUIC_STATUS keying_material_too_early(void) {
    return keying_material_with((QUIC_KEYING_MATERIAL_CONFIG){"label", 0, NULL, 32}, true);
}
static QUIC_STATUS datagram_without_buffers(void) {
    return api->DatagramSend(given.client.handle, NULL, 1, QUIC_SEND_FLAG_NONE, NULL);
}
static QUIC_STATUS datagram_of_no_buffers(void) {
    QUIC_BUFFER buffer = alpn_buffer("suite");
    return api->DatagramSend(given.client.handle, &buffer, 0, QUIC_SEND_FLAG_NONE, NULL);
}
static QUIC_STATUS datagram_too_long(void) {
    QUIC_BUFFER buffer = {65536, keep(65536)};
    return api->DatagramSend(given.client.handle, &buffer, 1, QUIC_SEND_FLAG_NONE, NULL);
}
/* As long as nobody knows whether the peer takes datagrams, they wait; this one is canceled by the close. */
static QUIC_STATUS datagram_early(void) {
    QUIC_BUFFER *buffer = keep(sizeof(*buffer));
    *buffer = alpn_buffer("suite");
    return api->DatagramSend(given.client.handle, buffer, 1, QUIC_SEND_FLAG_NONE, NULL);
}

/* ---- Streams ---- */

static QUIC_STATUS shut_down(QUIC_STREAM_SHUTDOWN_FLAGS flags, uint64_t code) {
    return api->StreamShutdown(given.stream->handle, flags, code);
}
#define SHUTDOWN(name, flags, code) \
    static QUIC_STATUS name(void) { return shut_down(flags, code); }
SHUTDOWN(shutdown_without_flags, 0, 0)
SHUTDOWN(shutdown_code_too_large, QUIC_STREAM_SHUTDOWN_FLAG_ABORT, QUIC_UINT62_MAX + 1)
SHUTDOWN(shutdown_graceful_and_abort_send, 1 | 2, 0)
SHUTDOWN(shutdown_graceful_and_abort_receive, 1 | 4, 0)
SHUTDOWN(shutdown_graceful_and_abort, 1 | 6, 0)
SHUTDOWN(shutdown_graceful_and_immediate, 1 | 8, 0)
SHUTDOWN(shutdown_immediate_alone, 8, 0)
SHUTDOWN(shutdown_immediate_and_abort_send, 8 | 2, 0)
SHUTDOWN(shutdown_immediate_and_abort_receive, 8 | 4, 0)
SHUTDOWN(shutdown_largest_code, QUIC_STREAM_SHUTDOWN_FLAG_ABORT, QUIC_UINT62_MAX)
SHUTDOWN(shutdown_graceful, QUIC_STREAM_SHUTDOWN_FLAG_GRACEFUL, 0)
SHUTDOWN(shutdown_abort_send, QUIC_STREAM_SHUTDOWN_FLAG_ABORT_SEND, 1)
SHUTDOWN(shutdown_abort_receive, QUIC_STREAM_SHUTDOWN_FLAG_ABORT_RECEIVE, 1)

static QUIC_STATUS send_without_buffers(void) {
    return api->StreamSend(given.stream->handle, NULL, 1, QUIC_SEND_FLAG_NONE, NULL);
}
static QUIC_STATUS send_more_than_four_gigabytes(void) {
    QUIC_BUFFER buffers[2] = {{UINT32_MAX, keep(1)}, {1, keep(1)}};
    return api->StreamSend(given.stream->handle, buffers, 2, QUIC_SEND_FLAG_NONE, NULL);
}
static QUIC_STATUS provide_without_buffers(void) {
    return api->StreamProvideReceiveBuffers(given.stream->handle, 1, NULL);
}
static QUIC_STATUS provide_no_buffers(void) {
    QUIC_BUFFER buffer = alpn_buffer("suite");
    return api->StreamProvideReceiveBuffers(given.stream->handle, 0, &buffer);
}
static QUIC_STATUS provide_an_empty_buffer(void) {
    QUIC_BUFFER buffers[2] = {{4, keep(4)}, {0, keep(4)}};
    return api->StreamProvideReceiveBuffers(given.stream->handle, 2, buffers);
}
static QUIC_STATUS provide_to_an_ordinary_stream(void) {
    QUIC_BUFFER buffer = {4, keep(4)};
    return api->StreamProvideReceiveBuffers(given.stream->handle, 1, &buffer);
}
static QUIC_STATUS receive_enabled(void) { return api->StreamReceiveSetEnabled(given.stream->handle, TRUE); }
static QUIC_STATUS receive_disabled(void) { return api->StreamReceiveSetEnabled(given.stream->handle, FALSE); }

static const struct argument_row {
    const char *name;
    QUIC_STATUS (*call)(void);
    QUIC_STATUS expected;
} rows[] = {
#define ROW(name, expected) {#name, name, expected},
    ROW(registration_without_place, WRONG)
    ROW(registration_with_longest_name, QUIC_STATUS_SUCCESS)
    ROW(registration_with_too_long_name, WRONG)
    ROW(registration_without_config, QUIC_STATUS_SUCCESS)
    ROW(registration_without_name, QUIC_STATUS_SUCCESS)
#define ALPN_ROWS(of) \
    ROW(of##_alpn_missing, WRONG) \
    ROW(of##_alpn_none, WRONG) \
    ROW(of##_alpn_empty, WRONG) \
    ROW(of##_alpn_longest, QUIC_STATUS_SUCCESS) \
    ROW(of##_alpn_too_long, WRONG) \
    ROW(of##_alpn_most, QUIC_STATUS_SUCCESS) \
    ROW(of##_alpn_too_many, WRONG)
    ALPN_ROWS(configuration)
    ALPN_ROWS(listener)
    ROW(configuration_without_place, WRONG)
    ROW(listener_without_handler, WRONG)
    ROW(listener_without_place, WRONG)
    ROW(listener_address_of_no_family, WRONG)
    ROW(listener_without_address, QUIC_STATUS_SUCCESS)
    ROW(listener_twice, QUIC_STATUS_INVALID_STATE)
    ROW(connection_without_handler, WRONG)
    ROW(connection_without_place, WRONG)
    ROW(connection_in_no_partition, WRONG)
    ROW(stream_without_handler, WRONG)
    ROW(stream_without_place, WRONG)
    ROW(start_without_credential, WRONG)
    ROW(start_without_port, WRONG)
    ROW(start_in_no_family, WRONG)
    ROW(start_without_name, WRONG)
    ROW(start_with_too_long_name, WRONG)
    ROW(start_without_configuration, WRONG)
    ROW(alert_out_of_range, WRONG)
    ROW(ticket_of_a_client, WRONG)
    ROW(keying_material_without_config, WRONG)
    ROW(keying_material_without_label, WRONG)
    ROW(keying_material_without_output, WRONG)
    ROW(keying_material_of_no_length, WRONG)
    ROW(keying_material_without_context, WRONG)
    ROW(keying_material_too_early, QUIC_STATUS_INVALID_STATE)
    ROW(datagram_without_buffers, WRONG)
    ROW(datagram_of_no_buffers, WRONG)
    ROW(datagram_too_long, WRONG)
    ROW(datagram_early, QUIC_STATUS_PENDING)
    ROW(shutdown_without_flags, WRONG)
    ROW(shutdown_code_too_large, WRONG)
    ROW(shutdown_graceful_and_abort_send, WRONG)
    ROW(shutdown_graceful_and_abort_receive, WRONG)
    ROW(shutdown_graceful_and_abort, WRONG)
    ROW(shutdown_graceful_and_immediate, WRONG)
    ROW(shutdown_immediate_alone, WRONG)
    ROW(shutdown_immediate_and_abort_send, WRONG)
    ROW(shutdown_immediate_and_abort_receive, WRONG)
    ROW(shutdown_largest_code, QUIC_STATUS_PENDING)
    ROW(shutdown_graceful, QUIC_STATUS_PENDING)
    ROW(shutdown_abort_send, QUIC_STATUS_PENDING)
    ROW(shutdown_abort_receive, QUIC_STATUS_PENDING)
    ROW(send_without_buffers, WRONG)
    ROW(send_more_than_four_gigabytes, WRONG)
    ROW(provide_without_buffers, WRONG)
    ROW(provide_no_buffers, WRONG)
    ROW(provide_an_empty_buffer, WRONG)
    ROW(provide_to_an_ordinary_stream, QUIC_STATUS_INVALID_STATE)
    ROW(receive_enabled, QUIC_STATUS_PENDING)
    ROW(receive_disabled, QUIC_STATUS_PENDING)
};

static void answers_as_expected(const void *row) {
    const struct argument_row *it = row;
    prepare();
    check_status_at(__FILE__, __LINE__, it->name, it->expected, it->call());
    clean_up();
}

/* ---- Opening the library ---- */

static void version_is_known(const void *row) {
    uint32_t version = *(const uint32_t *)row;
    const void *table = NULL;
    CHECK_STATUS(version == 2 ? QUIC_STATUS_SUCCESS : QUIC_STATUS_NOT_SUPPORTED, open_version(version, &table));
    if (version == 2) close_table(table);
    else CHECK(!table);
}

static void version_needs_a_place(const void *row) {
    (void)row;
    CHECK_STATUS(WRONG, open_version(2, NULL));
}

/* The table is there until the last who opened it closes it. */
static void library_is_opened_often(const void *row) {
    (void)row;
    const QUIC_API_TABLE *first = NULL, *second = NULL;
    CHECK_OK(open_version(2, (const void **)&first));
    CHECK_OK(open_version(2, (const void **)&second));
    close_table(first);
    HQUIC registration = NULL;
    CHECK_OK(second->RegistrationOpen(NULL, &registration));
    second->RegistrationClose(registration);
    close_table(second);
    CHECK_OK(open_version(2, (const void **)&first));
    CHECK_OK(first->RegistrationOpen(NULL, &registration));
    first->RegistrationClose(registration);
    close_table(first);
}

static void closing_no_table(const void *row) {
    (void)row;
    close_table(NULL);
}

static void table_is_full(const void *row) {
    (void)row;
    void *const *slots = (void *const *)api;
    for (size_t i = 0; i < sizeof(*api) / sizeof(void *); i++) CHECK(slots[i]);
}

void declare_arguments(void) {
    static const uint32_t versions[] = {0, 1, 2, 3, UINT32_MAX};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        add_case(CASE_ORDINARY, answers_as_expected, &rows[i], "arguments/%s", rows[i].name);
    }
    for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
        add_case(CASE_UNOPENED, version_is_known, &versions[i], "library/version_%u", versions[i]);
    }
    add_case(CASE_UNOPENED, version_needs_a_place, NULL, "library/no_place");
    add_case(CASE_UNOPENED, library_is_opened_often, NULL, "library/opened_often");
    add_case(CASE_UNOPENED, closing_no_table, NULL, "library/close_nothing");
    add_case(CASE_ORDINARY, table_is_full, NULL, "library/table_is_full");
}
