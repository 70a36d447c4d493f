/* Certificates: loading, validation by the library and by the program, client authentication. */
#include "suite.h"

#define TRANSPORT QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_TRANSPORT
#define COMPLETE QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE
#define RECEIVED QUIC_CONNECTION_EVENT_PEER_CERTIFICATE_RECEIVED
#define INDICATE QUIC_CREDENTIAL_FLAG_INDICATE_CERTIFICATE_RECEIVED
#define DEFER QUIC_CREDENTIAL_FLAG_DEFER_CERTIFICATE_VALIDATION
#define UNCHECKED QUIC_CREDENTIAL_FLAG_NO_CERTIFICATE_VALIDATION

/* ---- Loading ---- */

static QUIC_STATUS load(QUIC_CREDENTIAL_CONFIG config) {
    HQUIC registration = open_registration();
    HQUIC configuration = open_configuration(registration, "suite", NULL);
    QUIC_STATUS status = api->ConfigurationLoadCredential(configuration, &config);
    api->ConfigurationClose(configuration);
    api->RegistrationClose(registration);
    return status;
}

static QUIC_CREDENTIAL_CONFIG with_file(const char *certificate, const char *key, QUIC_CREDENTIAL_FLAGS flags) {
    QUIC_CERTIFICATE_FILE *file = keep(sizeof(*file));
    if (certificate) file->CertificateFile = certificate_path(certificate, ".pem");
    if (key) file->PrivateKeyFile = certificate_path(key, ".key");
    return (QUIC_CREDENTIAL_CONFIG){
        .Type = QUIC_CREDENTIAL_TYPE_CERTIFICATE_FILE, .Flags = flags, .CertificateFile = file};
}

static QUIC_CREDENTIAL_CONFIG with_protected(const char *password) {
    QUIC_CERTIFICATE_FILE_PROTECTED *file = keep(sizeof(*file));
    file->CertificateFile = certificate_path("protected", ".pem");
    file->PrivateKeyFile = certificate_path("protected", ".key");
    file->PrivateKeyPassword = password;
    return (QUIC_CREDENTIAL_CONFIG){
        .Type = QUIC_CREDENTIAL_TYPE_CERTIFICATE_FILE_PROTECTED, .CertificateFileProtected = file};
}

static QUIC_CREDENTIAL_CONFIG with_pkcs12(const char *name, const char *password) {
    QUIC_CERTIFICATE_PKCS12 *blob = keep(sizeof(*blob));
    uint8_t *bytes = keep(8192);
    FILE *file = fopen(certificate_path(name, ".p12"), "rb");
    CHECK(file);
    blob->Asn1BlobLength = (uint32_t)fread(bytes, 1, 8192, file);
    fclose(file);
    blob->Asn1Blob = bytes;
    blob->PrivateKeyPassword = password;
    return (QUIC_CREDENTIAL_CONFIG){.Type = QUIC_CREDENTIAL_TYPE_CERTIFICATE_PKCS12, .CertificatePkcs12 = blob};
}

static QUIC_CREDENTIAL_CONFIG with_flags(QUIC_CREDENTIAL_TYPE type, QUIC_CREDENTIAL_FLAGS flags) {
    return (QUIC_CREDENTIAL_CONFIG){.Type = type, .Flags = flags};
}

static void takes(const char *name, QUIC_STATUS expected, QUIC_CREDENTIAL_CONFIG config) {
    check_status_at(__FILE__, __LINE__, name, expected, load(config));
}

/* Anything but success: which failure it is depends on the library that reads keys. */
static void refuses(const char *name, QUIC_CREDENTIAL_CONFIG config) {
    if (QUIC_SUCCEEDED(load(config))) fail_at(__FILE__, __LINE__, "%s was taken", name);
}

#define CREDENTIALS(TAKEN, REFUSED) \
    TAKEN(file, with_file("server", "server", 0)) \
    TAKEN(self_signed, with_file("self", "self", 0)) \
    TAKEN(protected_file, with_protected("secret")) \
    TAKEN(pkcs12, with_pkcs12("protected", "secret")) \
    TAKEN(pkcs12_empty_password, with_pkcs12("unprotected", "")) \
    TAKEN(client_without, with_flags(QUIC_CREDENTIAL_TYPE_NONE, QUIC_CREDENTIAL_FLAG_CLIENT)) \
    TAKEN(client_with_file, with_file("client", "client", QUIC_CREDENTIAL_FLAG_CLIENT)) \
    TAKEN(client_unchecked, with_flags(QUIC_CREDENTIAL_TYPE_NONE, QUIC_CREDENTIAL_FLAG_CLIENT | UNCHECKED)) \
    TAKEN(server_that_asks, with_file("server", "server", \
          QUIC_CREDENTIAL_FLAG_REQUIRE_CLIENT_AUTHENTICATION | UNCHECKED)) \
    REFUSED(server_without, with_flags(QUIC_CREDENTIAL_TYPE_NONE, 0)) \
    REFUSED(unknown_type, with_flags(77, QUIC_CREDENTIAL_FLAG_CLIENT)) \
    REFUSED(no_file, with_file("none_such", "server", 0)) \
    REFUSED(no_key_file, with_file("server", "none_such", 0)) \
    REFUSED(another_key, with_file("server", "client", 0)) \
    REFUSED(file_without_name, with_file(NULL, "server", 0)) \
    REFUSED(file_without_key_name, with_file("server", NULL, 0)) \
    REFUSED(file_without_structure, with_flags(QUIC_CREDENTIAL_TYPE_CERTIFICATE_FILE, 0)) \
    REFUSED(protected_wrong_password, with_protected("wrong")) \
    REFUSED(pkcs12_wrong_password, with_pkcs12("protected", "wrong")) \
    REFUSED(pkcs12_without_structure, with_flags(QUIC_CREDENTIAL_TYPE_CERTIFICATE_PKCS12, 0)) \
    REFUSED(hash_store, with_flags(QUIC_CREDENTIAL_TYPE_CERTIFICATE_HASH_STORE, 0)) \
    REFUSED(asynchronous_without_handler, with_flags(QUIC_CREDENTIAL_TYPE_NONE, \
          QUIC_CREDENTIAL_FLAG_CLIENT | QUIC_CREDENTIAL_FLAG_LOAD_ASYNCHRONOUS)) \
    REFUSED(no_cipher_allowed, with_flags(QUIC_CREDENTIAL_TYPE_NONE, \
          QUIC_CREDENTIAL_FLAG_CLIENT | QUIC_CREDENTIAL_FLAG_SET_ALLOWED_CIPHER_SUITES))

#define TAKEN(name, config) \
    static void load_##name(const void *row) { (void)row; takes(#name, QUIC_STATUS_SUCCESS, config); }
#define REFUSED(name, config) \
    static void load_##name(const void *row) { (void)row; refuses(#name, config); }
CREDENTIALS(TAKEN, REFUSED)

static struct {
    HQUIC configuration;
    void *context;
    QUIC_STATUS status;
    bool done;
} loaded;

static void note_loaded(HQUIC configuration, void *context, QUIC_STATUS status) {
    lock_suite();
    CHECK(!loaded.done);
    loaded.configuration = configuration;
    loaded.context = context;
    loaded.status = status;
    loaded.done = true;
    suite_changed();
    unlock_suite();
}

/* The call answers PENDING, and the handler what came of it. */
static void load_asynchronously(const void *row) {
    (void)row;
    QUIC_BUFFER alpn = alpn_buffer("suite");
    HQUIC registration = open_registration(), configuration;
    int marker;
    CHECK_OK(api->ConfigurationOpen(registration, &alpn, 1, NULL, 0, &marker, &configuration));
    QUIC_CREDENTIAL_CONFIG config = with_file("server", "server", QUIC_CREDENTIAL_FLAG_LOAD_ASYNCHRONOUS);
    config.AsyncHandler = note_loaded;
    CHECK_PENDING(api->ConfigurationLoadCredential(configuration, &config));
    WAIT_UNTIL(loaded.done);
    CHECK(loaded.configuration == configuration && loaded.context == &marker);
    CHECK_OK(loaded.status);
    api->ConfigurationClose(configuration);
    api->RegistrationClose(registration);
}

static void load_without_config(const void *row) {
    (void)row;
    HQUIC registration = open_registration();
    HQUIC configuration = open_configuration(registration, "suite", NULL);
    CHECK_STATUS(QUIC_STATUS_INVALID_PARAMETER, api->ConfigurationLoadCredential(configuration, NULL));
    api->ConfigurationClose(configuration);
    api->RegistrationClose(registration);
}

static void served_with(QUIC_CREDENTIAL_CONFIG config) {
    pair_options options = usual_options();
    pair *it = open_pair(&options);
    HQUIC server = open_configuration(it->registration, "suite", &options.server);
    CHECK_OK(api->ConfigurationLoadCredential(server, &config));
    it->listener.configuration = server;
    connect_pair(it);
    api->ConfigurationClose(server);
    close_pair(it);
}

static void serve_protected_file(const void *row) { (void)row; served_with(with_protected("secret")); }
static void serve_pkcs12(const void *row) { (void)row; served_with(with_pkcs12("protected", "secret")); }
static void serve_self_signed(const void *row) { (void)row; served_with(with_file("self", "self", 0)); }

/* ---- The server's certificate, validated ---- */

typedef struct validation_row {
    const char *name;
    const char *certificate;
    const char *authority;
    const char *server_name;
    QUIC_CREDENTIAL_FLAGS flags;
    QUIC_STATUS expected; /* What the client is told; QUIC_STATUS_SUCCESS: it connects. */
} validation_row;

/* An expected failure without a status of its own. */
#define SOME_FAILURE ((QUIC_STATUS)-1)

static const validation_row validation_rows[] = {
    {"trusted", "server", "ca", "localhost", 0, QUIC_STATUS_SUCCESS},
    {"trusted_address", "server", "ca", "127.0.0.1", 0, QUIC_STATUS_SUCCESS},
    {"untrusted", "server", "other", "localhost", 0, QUIC_STATUS_TLS_ALERT(QUIC_TLS_ALERT_CODE_UNKNOWN_CA)},
    {"expired", "expired", "ca", "localhost", 0, QUIC_STATUS_EXPIRED_CERTIFICATE},
    {"self_signed", "self", "ca", "localhost", 0, SOME_FAILURE},
    /* Other libraries for this interface may let another name pass, when they are given an authority; here, names
       are part of what a certificate is for. */
    {"another_name", "elsewhere", "ca", "localhost", 0, SOME_FAILURE},
    {"unchecked_expired", "expired", NULL, "localhost", UNCHECKED, QUIC_STATUS_SUCCESS},
    {"unchecked_self_signed", "self", NULL, "localhost", UNCHECKED, QUIC_STATUS_SUCCESS},
    {"unchecked_another_name", "elsewhere", NULL, "localhost", UNCHECKED, QUIC_STATUS_SUCCESS},
    {"indicated_trusted", "server", "ca", "localhost", INDICATE, QUIC_STATUS_SUCCESS},
    {"indicated_untrusted", "server", "other", "localhost", INDICATE, SOME_FAILURE},
    {"portable", "server", "ca", "localhost", INDICATE | QUIC_CREDENTIAL_FLAG_USE_PORTABLE_CERTIFICATES,
     QUIC_STATUS_SUCCESS},
    {"deferred_trusted", "server", "ca", "localhost", INDICATE | DEFER, QUIC_STATUS_SUCCESS},
    {"deferred_untrusted", "server", "other", "localhost", INDICATE | DEFER, QUIC_STATUS_SUCCESS},
    {"deferred_expired", "expired", "ca", "localhost", INDICATE | DEFER, QUIC_STATUS_SUCCESS},
};

static void is_validated(const void *row) {
    const validation_row *it = row;
    pair_options options = usual_options();
    options.server_certificate = it->certificate;
    options.authority = it->authority;
    options.server_name = it->server_name;
    options.client_flags = it->flags;
    pair *ends = open_pair(&options);
    CHECK_PENDING(start_client(ends));
    if (it->expected == QUIC_STATUS_SUCCESS) {
        WAIT_EVENT(&ends->client, QUIC_CONNECTION_EVENT_CONNECTED);
        CHECK_EQUAL(!!(it->flags & INDICATE), COUNT_EVENTS(&ends->client, RECEIVED));
        if (it->flags & DEFER) {
            /* What would have been said is told with the certificate. */
            bool right = !strcmp(it->name, "deferred_trusted");
            CHECK_EQUAL(right, WAIT_EVENT(&ends->client, RECEIVED).status == QUIC_STATUS_SUCCESS);
        }
    } else {
        event why = WAIT_EVENT(&ends->client, TRANSPORT);
        if (it->expected != SOME_FAILURE) CHECK_STATUS(it->expected, why.status);
        CHECK(!WAIT_EVENT(&ends->client, COMPLETE).first);
        CHECK_NO_EVENT(&ends->client, QUIC_CONNECTION_EVENT_CONNECTED);
        /* The server learns of it by the same alert. */
        CHECK_STATUS(why.status, WAIT_EVENT(wait_server(ends), TRANSPORT).status);
    }
    close_pair(ends);
}

/* ---- Validated by the program ---- */

static QUIC_STATUS verdict;

static QUIC_STATUS judge(connection *of, QUIC_CONNECTION_EVENT *what) {
    (void)of;
    return what->Type == RECEIVED ? verdict : HOOK_DEFAULT;
}

static pair *pair_with_judge(QUIC_STATUS answer) {
    pair_options options = usual_options();
    options.client_flags = INDICATE | UNCHECKED;
    options.on_client = judge;
    verdict = answer;
    pair *it = open_pair(&options);
    CHECK_PENDING(start_client(it));
    WAIT_EVENT(&it->client, RECEIVED);
    return it;
}

static void refused_in_the_callback(const void *row) {
    (void)row;
    pair *it = pair_with_judge(QUIC_STATUS_INVALID_PARAMETER);
    CHECK_STATUS(QUIC_STATUS_BAD_CERTIFICATE, WAIT_EVENT(&it->client, TRANSPORT).status);
    CHECK(!WAIT_EVENT(&it->client, COMPLETE).first);
    close_pair(it);
}

static void accepted_later(const void *row) {
    (void)row;
    pair *it = pair_with_judge(QUIC_STATUS_PENDING);
    let_things_happen(50);
    CHECK_NO_EVENT(&it->client, QUIC_CONNECTION_EVENT_CONNECTED);
    CHECK_PENDING(api->ConnectionCertificateValidationComplete(it->client.handle, TRUE, QUIC_TLS_ALERT_CODE_SUCCESS));
    WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_CONNECTED);
    WAIT_EVENT(wait_server(it), QUIC_CONNECTION_EVENT_CONNECTED);
    close_pair(it);
}

static void refused_later(const void *row) {
    QUIC_TLS_ALERT_CODES alert = *(const QUIC_TLS_ALERT_CODES *)row;
    pair *it = pair_with_judge(QUIC_STATUS_PENDING);
    let_things_happen(50);
    CHECK_PENDING(api->ConnectionCertificateValidationComplete(it->client.handle, FALSE, alert));
    CHECK_STATUS(QUIC_STATUS_TLS_ALERT(alert), WAIT_EVENT(&it->client, TRANSPORT).status);
    CHECK_STATUS(QUIC_STATUS_TLS_ALERT(alert), WAIT_EVENT(wait_server(it), TRANSPORT).status);
    CHECK_NO_EVENT(it->server, QUIC_CONNECTION_EVENT_CONNECTED);
    close_pair(it);
}

/* The server is not connected yet, and is told nothing of the application's. */
static void shut_down_before_a_verdict(const void *row) {
    (void)row;
    pair *it = pair_with_judge(QUIC_STATUS_PENDING);
    connection *server = wait_server(it);
    let_things_happen(50);
    api->ConnectionShutdown(it->client.handle, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 77);
    WAIT_EVENT(&it->client, COMPLETE);
    CHECK_STATUS(QUIC_STATUS_USER_CANCELED, WAIT_EVENT(server, TRANSPORT).status);
    CHECK(!WAIT_EVENT(server, COMPLETE).first);
    CHECK_NO_EVENT(server, QUIC_CONNECTION_EVENT_CONNECTED);
    /* Too late, and no harm. */
    CHECK_PENDING(api->ConnectionCertificateValidationComplete(it->client.handle, TRUE, QUIC_TLS_ALERT_CODE_SUCCESS));
    close_pair(it);
}

/* Without the flag of clients it is a server's, which judges nobody that it has not asked for a certificate. */
static void a_client_with_a_servers_credential(const void *row) {
    bool is_asked = *(const bool *)row;
    pair_options options = usual_options();
    if (is_asked) options.server_flags = QUIC_CREDENTIAL_FLAG_REQUIRE_CLIENT_AUTHENTICATION;
    options.server_authority = "ca";
    pair *it = open_pair(&options);
    HQUIC client = open_configuration(it->registration, "suite", &options.client);
    CHECK_OK(load_server_credential(client, "client", 0));
    QUIC_ADDR address = loopback(it->port);
    CHECK_OK(api->SetParam(it->client.handle, QUIC_PARAM_CONN_REMOTE_ADDRESS, sizeof(address), &address));
    CHECK_PENDING(
        api->ConnectionStart(it->client.handle, client, QUIC_ADDRESS_FAMILY_UNSPEC, "localhost", it->port));
    WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_CONNECTED);
    WAIT_EVENT(wait_server(it), QUIC_CONNECTION_EVENT_CONNECTED);
    api->ConfigurationClose(client);
    close_pair(it);
}

static void judged_by_a_parameter(const void *row) {
    BOOLEAN right = *(const bool *)row;
    pair *it = pair_with_judge(QUIC_STATUS_PENDING);
    CHECK_OK(api->SetParam(it->client.handle, QUIC_PARAM_CONN_PEER_CERTIFICATE_VALID, sizeof(right), &right));
    if (right) WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_CONNECTED);
    else CHECK_STATUS(QUIC_STATUS_BAD_CERTIFICATE, WAIT_EVENT(&it->client, TRANSPORT).status);
    close_pair(it);
}

static void closed_before_a_verdict(const void *row) {
    (void)row;
    close_pair(pair_with_judge(QUIC_STATUS_PENDING));
}

static QUIC_STATUS look_at_portable(connection *of, QUIC_CONNECTION_EVENT *what) {
    (void)of;
    if (what->Type != RECEIVED) return HOOK_DEFAULT;
    /* A buffer with the certificate in DER: a sequence. */
    const QUIC_BUFFER *certificate = what->PEER_CERTIFICATE_RECEIVED.Certificate;
    CHECK(certificate && certificate->Length > 100 && certificate->Buffer[0] == 0x30);
    return HOOK_DEFAULT;
}

static void portable_is_a_buffer(const void *row) {
    (void)row;
    pair_options options = usual_options();
    options.client_flags = INDICATE | UNCHECKED | QUIC_CREDENTIAL_FLAG_USE_PORTABLE_CERTIFICATES;
    options.on_client = look_at_portable;
    close_pair(connected_pair(&options));
}

/* ---- Client authentication ---- */

typedef struct client_row {
    const char *name;
    const char *certificate;
    const char *authority;
    QUIC_CREDENTIAL_FLAGS flags;
    bool accepted;
} client_row;

#define REQUIRE QUIC_CREDENTIAL_FLAG_REQUIRE_CLIENT_AUTHENTICATION
static const client_row client_rows[] = {
    {"trusted", "client", "ca", REQUIRE, true},
    {"trusted_indicated", "client", "ca", REQUIRE | INDICATE, true},
    {"untrusted", "client", "other", REQUIRE, false},
    {"none", NULL, "ca", REQUIRE, false},
    {"deferred", "client", "other", REQUIRE | INDICATE | DEFER, true},
    {"not_asked", "client", NULL, 0, true},
};

static void client_is_authenticated(const void *row) {
    const client_row *it = row;
    pair_options options = usual_options();
    options.server_flags = it->flags;
    options.server_authority = it->authority;
    options.client_certificate = it->certificate;
    pair *ends = open_pair(&options);
    CHECK_PENDING(start_client(ends));
    connection *server = wait_server(ends);
    if (it->accepted) {
        WAIT_EVENT(server, QUIC_CONNECTION_EVENT_CONNECTED);
        CHECK_EQUAL(!!(it->flags & INDICATE), COUNT_EVENTS(server, RECEIVED));
    } else {
        CHECK(WAIT_EVENT(server, TRANSPORT).status != QUIC_STATUS_SUCCESS);
        CHECK_NO_EVENT(server, QUIC_CONNECTION_EVENT_CONNECTED);
        /* The client may have been connected: its part of the handshake was complete. */
        WAIT_EVENT(&ends->client, TRANSPORT);
        if (!it->certificate) {
            CHECK_STATUS(QUIC_STATUS_REQUIRED_CERTIFICATE, WAIT_EVENT(&ends->client, TRANSPORT).status);
        }
    }
    close_pair(ends);
}

void declare_certificates(void) {
    static const QUIC_TLS_ALERT_CODES alerts[] = {
        QUIC_TLS_ALERT_CODE_BAD_CERTIFICATE, QUIC_TLS_ALERT_CODE_UNKNOWN_CA, QUIC_TLS_ALERT_CODE_ACCESS_DENIED,
        QUIC_TLS_ALERT_CODE_CERTIFICATE_EXPIRED, QUIC_TLS_ALERT_CODE_INTERNAL_ERROR};
    static const bool verdicts[] = {false, true};
#define ADD(body) add_case(CASE_ORDINARY, body, NULL, "certificates/%s", #body)
#define ADD_LOAD(name, config) ADD(load_##name);
    CREDENTIALS(ADD_LOAD, ADD_LOAD)
    ADD(load_asynchronously);
    ADD(load_without_config);
    ADD(serve_protected_file);
    ADD(serve_pkcs12);
    ADD(serve_self_signed);
    for (size_t i = 0; i < sizeof(validation_rows) / sizeof(*validation_rows); i++) {
        add_case(CASE_ORDINARY, is_validated, &validation_rows[i], "certificates/validated/%s",
                 validation_rows[i].name);
    }
    ADD(refused_in_the_callback);
    ADD(accepted_later);
    for (size_t i = 0; i < 5; i++) {
        add_case(CASE_ORDINARY, refused_later, &alerts[i], "certificates/refused_later/%u", alerts[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        add_case(CASE_ORDINARY, judged_by_a_parameter, &verdicts[i], "certificates/judged_by_a_parameter/%d",
                 verdicts[i]);
    }
    ADD(shut_down_before_a_verdict);
    for (size_t i = 0; i < 2; i++) {
        add_case(CASE_ORDINARY, a_client_with_a_servers_credential, &verdicts[i],
                 "certificates/a_client_with_a_servers_credential/%s", verdicts[i] ? "asked" : "not_asked");
    }
    ADD(closed_before_a_verdict);
    ADD(portable_is_a_buffer);
    for (size_t i = 0; i < sizeof(client_rows) / sizeof(*client_rows); i++) {
        add_case(CASE_ORDINARY, client_is_authenticated, &client_rows[i], "certificates/client/%s",
                 client_rows[i].name);
    }
#undef ADD
}
