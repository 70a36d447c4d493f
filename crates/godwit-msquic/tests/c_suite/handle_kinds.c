/*
 * Every function with a handle, called with none and with one of each kind. A wrong one is answered with
 * INVALID_PARAMETER, or left alone where a function answers nothing, and does no harm to the object that it is of.
 */
#include "suite.h"

enum kind { NONE, REGISTRATION, CONFIGURATION, LISTENER, CONNECTION, STREAM, KINDS };

static const char *const kind_names[KINDS] = {
    "no_handle", "a_registration", "a_configuration", "a_listener", "a_connection", "a_stream"};

#define OF(kind) (1u << (kind))

static HQUIC handles[KINDS];
static listener the_listener;
static connection the_connection;
static stream *the_stream;
static HQUIC made;

static void open_one_of_each(void) {
    handles[REGISTRATION] = open_registration();
    handles[CONFIGURATION] = client_configuration(handles[REGISTRATION], "suite", NULL);
    CHECK_OK(api->ListenerOpen(handles[REGISTRATION], on_listener_event, &the_listener, &handles[LISTENER]));
    the_listener.handle = handles[LISTENER];
    CHECK_OK(api->ConnectionOpen(
        handles[REGISTRATION], on_connection_event, &the_connection, &handles[CONNECTION]));
    the_connection.handle = handles[CONNECTION];
    the_stream = open_stream(&the_connection, QUIC_STREAM_OPEN_FLAG_NONE);
    handles[STREAM] = the_stream->handle;
}

/* Each object still answers what it is asked. */
static void check_all_are_whole(void) {
    QUIC_SETTINGS settings;
    QUIC_ADDR address;
    uint16_t priority;
    uint32_t length = sizeof(settings);
    CHECK_OK(api->GetParam(handles[CONFIGURATION], QUIC_PARAM_CONFIGURATION_SETTINGS, &length, &settings));
    length = sizeof(address);
    CHECK_OK(api->GetParam(handles[LISTENER], QUIC_PARAM_LISTENER_LOCAL_ADDRESS, &length, &address));
    length = sizeof(settings);
    CHECK_OK(api->GetParam(handles[CONNECTION], QUIC_PARAM_CONN_SETTINGS, &length, &settings));
    length = sizeof(priority);
    CHECK_OK(api->GetParam(handles[STREAM], QUIC_PARAM_STREAM_PRIORITY, &length, &priority));
}

static void close_one_of_each(void) {
    close_stream(the_stream);
    close_connection(&the_connection);
    api->ListenerClose(handles[LISTENER]);
    api->ConfigurationClose(handles[CONFIGURATION]);
    api->RegistrationClose(handles[REGISTRATION]);
}

/* ---- Functions that answer with a status ---- */

static QUIC_BUFFER one_buffer(void) { return alpn_buffer("suite"); }

static QUIC_STATUS configuration_open(HQUIC it) {
    QUIC_BUFFER alpn = one_buffer();
    return api->ConfigurationOpen(it, &alpn, 1, NULL, 0, NULL, &made);
}
static QUIC_STATUS configuration_load_credential(HQUIC it) {
    QUIC_CREDENTIAL_CONFIG config = {.Type = QUIC_CREDENTIAL_TYPE_NONE, .Flags = QUIC_CREDENTIAL_FLAG_CLIENT};
    return api->ConfigurationLoadCredential(it, &config);
}
static QUIC_STATUS listener_open(HQUIC it) { return api->ListenerOpen(it, on_listener_event, NULL, &made); }
static QUIC_STATUS listener_start(HQUIC it) {
    QUIC_BUFFER alpn = one_buffer();
    QUIC_ADDR address = loopback(0);
    return api->ListenerStart(it, &alpn, 1, &address);
}
static QUIC_STATUS connection_open(HQUIC it) { return api->ConnectionOpen(it, on_connection_event, NULL, &made); }
static QUIC_STATUS connection_open_in_partition(HQUIC it) {
    return api->ConnectionOpenInPartition(it, 0, on_connection_event, NULL, &made);
}
static QUIC_STATUS connection_start(HQUIC it) {
    return api->ConnectionStart(it, handles[CONFIGURATION], QUIC_ADDRESS_FAMILY_INET, "localhost", 4433);
}
static QUIC_STATUS connection_start_with_configuration(HQUIC it) {
    return api->ConnectionStart(handles[CONNECTION], it, QUIC_ADDRESS_FAMILY_INET, "localhost", 4433);
}
static QUIC_STATUS connection_set_configuration(HQUIC it) {
    return api->ConnectionSetConfiguration(it, handles[CONFIGURATION]);
}
static QUIC_STATUS connection_set_this_configuration(HQUIC it) {
    return api->ConnectionSetConfiguration(handles[CONNECTION], it);
}
static QUIC_STATUS connection_send_resumption_ticket(HQUIC it) {
    return api->ConnectionSendResumptionTicket(it, QUIC_SEND_RESUMPTION_FLAG_NONE, 0, NULL);
}
static QUIC_STATUS connection_ticket_validation_complete(HQUIC it) {
    return api->ConnectionResumptionTicketValidationComplete(it, TRUE);
}
static QUIC_STATUS connection_certificate_validation_complete(HQUIC it) {
    return api->ConnectionCertificateValidationComplete(it, TRUE, QUIC_TLS_ALERT_CODE_SUCCESS);
}
static QUIC_STATUS connection_export_keying_material(HQUIC it) {
    uint8_t output[16];
    QUIC_KEYING_MATERIAL_CONFIG config = {"label", 0, NULL, sizeof(output)};
    return api->ConnectionExportKeyingMaterial(it, &config, output);
}
static QUIC_STATUS stream_open(HQUIC it) {
    return api->StreamOpen(it, QUIC_STREAM_OPEN_FLAG_NONE, on_stream_event, NULL, &made);
}
static QUIC_STATUS stream_start(HQUIC it) { return api->StreamStart(it, QUIC_STREAM_START_FLAG_NONE); }
static QUIC_STATUS stream_shutdown(HQUIC it) {
    return api->StreamShutdown(it, QUIC_STREAM_SHUTDOWN_FLAG_ABORT, 1);
}
static QUIC_STATUS stream_send(HQUIC it) {
    QUIC_BUFFER buffer = one_buffer();
    return api->StreamSend(it, &buffer, 1, QUIC_SEND_FLAG_NONE, NULL);
}
static QUIC_STATUS stream_receive_set_enabled(HQUIC it) { return api->StreamReceiveSetEnabled(it, TRUE); }
static QUIC_STATUS stream_provide_receive_buffers(HQUIC it) {
    QUIC_BUFFER buffer = one_buffer();
    return api->StreamProvideReceiveBuffers(it, 1, &buffer);
}
static QUIC_STATUS datagram_send(HQUIC it) {
    QUIC_BUFFER buffer = one_buffer();
    return api->DatagramSend(it, &buffer, 1, QUIC_SEND_FLAG_NONE, NULL);
}

/* A function, and the kinds that it takes. */
static const struct answering {
    const char *name;
    QUIC_STATUS (*call)(HQUIC it);
    unsigned right;
} answering[] = {
    {"ConfigurationOpen", configuration_open, OF(REGISTRATION)},
    {"ConfigurationLoadCredential", configuration_load_credential, OF(CONFIGURATION)},
    {"ListenerOpen", listener_open, OF(REGISTRATION)},
    {"ListenerStart", listener_start, OF(LISTENER)},
    {"ConnectionOpen", connection_open, OF(REGISTRATION)},
    {"ConnectionOpenInPartition", connection_open_in_partition, OF(REGISTRATION)},
    {"ConnectionStart", connection_start, OF(CONNECTION) | OF(STREAM)},
    {"ConnectionStart_configuration", connection_start_with_configuration, OF(CONFIGURATION)},
    /* The one connection here is a client's, which is given no configuration this way. */
    {"ConnectionSetConfiguration", connection_set_configuration, 0},
    {"ConnectionSetConfiguration_configuration", connection_set_this_configuration, 0},
    {"ConnectionSendResumptionTicket", connection_send_resumption_ticket, 0},
    {"ConnectionResumptionTicketValidationComplete", connection_ticket_validation_complete, 0},
    {"ConnectionCertificateValidationComplete", connection_certificate_validation_complete,
     OF(CONNECTION) | OF(STREAM)},
    {"ConnectionExportKeyingMaterial", connection_export_keying_material, OF(CONNECTION)},
    {"StreamOpen", stream_open, OF(CONNECTION) | OF(STREAM)},
    {"StreamStart", stream_start, OF(STREAM)},
    {"StreamShutdown", stream_shutdown, OF(STREAM)},
    {"StreamSend", stream_send, OF(STREAM)},
    {"StreamReceiveSetEnabled", stream_receive_set_enabled, OF(STREAM)},
    {"StreamProvideReceiveBuffers", stream_provide_receive_buffers, OF(STREAM)},
    {"DatagramSend", datagram_send, OF(CONNECTION)},
};

typedef struct wrong_kind {
    size_t function;
    enum kind kind;
} wrong_kind;

static void answers_invalid_parameter(const void *row) {
    const wrong_kind *it = row;
    open_one_of_each();
    CHECK_STATUS(QUIC_STATUS_INVALID_PARAMETER, answering[it->function].call(handles[it->kind]));
    check_all_are_whole();
    close_one_of_each();
}

/* ---- Functions that answer nothing ---- */

static void never_called(void *context) {
    (void)context;
    fail_at(__FILE__, __LINE__, "a registration was closed that is none");
}
static void registration_close(HQUIC it) { api->RegistrationClose(it); }
static void registration_close2(HQUIC it) { api->RegistrationClose2(it, never_called, NULL); }
static void registration_shutdown(HQUIC it) {
    api->RegistrationShutdown(it, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 0);
}
static void configuration_close(HQUIC it) { api->ConfigurationClose(it); }
static void listener_close(HQUIC it) { api->ListenerClose(it); }
static void listener_stop(HQUIC it) { api->ListenerStop(it); }
static void connection_close(HQUIC it) { api->ConnectionClose(it); }
static void connection_shutdown(HQUIC it) {
    api->ConnectionShutdown(it, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 0);
}
static void stream_close(HQUIC it) { api->StreamClose(it); }
static void stream_receive_complete(HQUIC it) { api->StreamReceiveComplete(it, 0); }

static const struct silent {
    const char *name;
    void (*call)(HQUIC it);
    unsigned right;
} silent[] = {
    {"RegistrationClose", registration_close, OF(REGISTRATION)},
    {"RegistrationClose2", registration_close2, OF(REGISTRATION)},
    {"RegistrationShutdown", registration_shutdown, OF(REGISTRATION)},
    {"ConfigurationClose", configuration_close, OF(CONFIGURATION)},
    {"ListenerClose", listener_close, OF(LISTENER)},
    {"ListenerStop", listener_stop, OF(LISTENER)},
    {"ConnectionClose", connection_close, OF(CONNECTION)},
    {"ConnectionShutdown", connection_shutdown, OF(CONNECTION) | OF(STREAM)},
    {"StreamClose", stream_close, OF(STREAM)},
    {"StreamReceiveComplete", stream_receive_complete, OF(STREAM)},
};

static void leaves_it_alone(const void *row) {
    const wrong_kind *it = row;
    open_one_of_each();
    silent[it->function].call(handles[it->kind]);
    check_all_are_whole();
    close_one_of_each();
}

/* ---- Closed handles ---- */

/*
 * MsQuic leaves it undefined what becomes of calls with a handle that was closed. Here they are answered like a wrong
 * handle, or end the program in an orderly way (SIGABRT), before any memory is touched that is somebody else's.
 */
static void a_closed_handle_is_wrong(const void *row) {
    const wrong_kind *it = row;
    open_one_of_each();
    close_one_of_each();
    CHECK_STATUS(QUIC_STATUS_INVALID_PARAMETER, answering[it->function].call(handles[it->kind]));
}

static void a_closed_handle_is_left_alone(const void *row) {
    const wrong_kind *it = row;
    open_one_of_each();
    close_one_of_each();
    silent[it->function].call(handles[it->kind]);
    CHECK(api->GetContext(handles[it->kind]) == NULL);
}

static void a_closed_handle_has_no_parameters(const void *row) {
    static const uint32_t parameters[KINDS] = {
        [REGISTRATION] = QUIC_PARAM_PREFIX_REGISTRATION, [CONFIGURATION] = QUIC_PARAM_CONFIGURATION_SETTINGS,
        [LISTENER] = QUIC_PARAM_LISTENER_STATS, [CONNECTION] = QUIC_PARAM_CONN_SETTINGS,
        [STREAM] = QUIC_PARAM_STREAM_PRIORITY};
    enum kind kind = *(const enum kind *)row;
    uint8_t read[256];
    uint32_t length = sizeof(read);
    open_one_of_each();
    close_one_of_each();
    CHECK_STATUS(QUIC_STATUS_INVALID_PARAMETER, api->GetParam(handles[kind], parameters[kind], &length, read));
    CHECK_STATUS(QUIC_STATUS_INVALID_PARAMETER, api->SetParam(handles[kind], parameters[kind], 2, read));
}

static void declare_closed_handles(void) {
    static wrong_kind rows[128];
    size_t count = 0;
    for (size_t i = 0; i < sizeof(answering) / sizeof(*answering); i++) {
        for (enum kind kind = REGISTRATION; kind < KINDS; kind++) {
            if (!(answering[i].right & OF(kind))) continue;
            rows[count] = (wrong_kind){i, kind};
            add_case(CASE_MAY_ABORT, a_closed_handle_is_wrong, &rows[count++], "handles/%s/closed/%s",
                     answering[i].name, kind_names[kind]);
        }
    }
    for (size_t i = 0; i < sizeof(silent) / sizeof(*silent); i++) {
        for (enum kind kind = REGISTRATION; kind < KINDS; kind++) {
            if (!(silent[i].right & OF(kind))) continue;
            rows[count] = (wrong_kind){i, kind};
            add_case(CASE_MAY_ABORT, a_closed_handle_is_left_alone, &rows[count++], "handles/%s/closed/%s",
                     silent[i].name, kind_names[kind]);
        }
    }
}

/* ---- What every handle has ---- */

static void keeps_a_context(const void *row) {
    HQUIC it;
    int marker;
    open_one_of_each();
    it = handles[*(const enum kind *)row];
    void *before = api->GetContext(it);
    api->SetContext(it, &marker);
    CHECK(api->GetContext(it) == &marker);
    api->SetContext(it, NULL);
    CHECK(api->GetContext(it) == NULL);
    api->SetContext(it, before);
    close_one_of_each();
}

static void has_no_context_without_handle(const void *row) {
    (void)row;
    CHECK(api->GetContext(NULL) == NULL);
    api->SetContext(NULL, &api);
    CHECK(api->GetContext(NULL) == NULL);
}

static void takes_another_handler_and_context(const void *row) {
    enum kind kind = *(const enum kind *)row;
    void *const handlers[KINDS] = {
        [LISTENER] = (void *)on_listener_event,
        [CONNECTION] = (void *)on_connection_event,
        [STREAM] = (void *)on_stream_event,
    };
    open_one_of_each();
    void *before = api->GetContext(handles[kind]);
    api->SetCallbackHandler(handles[kind], handlers[kind], &made);
    /* Registrations and configurations have no callbacks: nothing changes. */
    CHECK(api->GetContext(handles[kind]) == (handlers[kind] ? (void *)&made : before));
    if (handlers[kind]) api->SetCallbackHandler(handles[kind], handlers[kind], before);
    close_one_of_each();
}

static void takes_no_handler_without_handle(const void *row) {
    (void)row;
    api->SetCallbackHandler(NULL, (void *)on_stream_event, NULL);
}

static void declare_wrong_kinds(void) {
    static wrong_kind rows[512];
    size_t count = 0;
    for (size_t i = 0; i < sizeof(answering) / sizeof(*answering); i++) {
        for (enum kind kind = NONE; kind < KINDS; kind++) {
            if (answering[i].right & OF(kind)) continue;
            rows[count] = (wrong_kind){i, kind};
            add_case(CASE_ORDINARY, answers_invalid_parameter, &rows[count++], "handles/%s/%s", answering[i].name,
                     kind_names[kind]);
        }
    }
    for (size_t i = 0; i < sizeof(silent) / sizeof(*silent); i++) {
        for (enum kind kind = NONE; kind < KINDS; kind++) {
            if (silent[i].right & OF(kind)) continue;
            rows[count] = (wrong_kind){i, kind};
            add_case(CASE_ORDINARY, leaves_it_alone, &rows[count++], "handles/%s/%s", silent[i].name,
                     kind_names[kind]);
        }
    }
}

void declare_handle_kinds(void) {
    static const enum kind kinds[] = {REGISTRATION, CONFIGURATION, LISTENER, CONNECTION, STREAM};
    declare_wrong_kinds();
    declare_closed_handles();
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        add_case(CASE_ORDINARY, keeps_a_context, &kinds[i], "handles/SetContext/%s", kind_names[kinds[i]]);
        add_case(CASE_ORDINARY, takes_another_handler_and_context, &kinds[i], "handles/SetCallbackHandler/%s",
                 kind_names[kinds[i]]);
        add_case(CASE_MAY_ABORT, a_closed_handle_has_no_parameters, &kinds[i], "handles/parameters/closed/%s",
                 kind_names[kinds[i]]);
    }
    add_case(CASE_ORDINARY, has_no_context_without_handle, NULL, "handles/SetContext/no_handle");
    add_case(CASE_ORDINARY, takes_no_handler_without_handle, NULL, "handles/SetCallbackHandler/no_handle");
}
