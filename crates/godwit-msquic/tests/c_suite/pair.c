/* Two ends over loopback, from the registration to the check that nothing is left. */
#include "suite.h"

pair_options usual_options(void) {
    pair_options options = {
        .server_alpn = "suite",
        .client_alpn = "suite",
        .server_certificate = "server",
        .server_name = "localhost",
    };
    SET(options.server, PeerBidiStreamCount, 10);
    SET(options.server, PeerUnidiStreamCount, 10);
    SET(options.client, PeerBidiStreamCount, 10);
    SET(options.client, PeerUnidiStreamCount, 10);
    SET(options.server, IdleTimeoutMs, 120000);
    SET(options.client, IdleTimeoutMs, 120000);
    SET(options.server, SendBufferingEnabled, 1);
    SET(options.client, SendBufferingEnabled, 1);
    return options;
}

static void load_pair_server(pair *it) {
    const pair_options *options = it->options;
    const char *name = options->server_certificate;
    QUIC_CERTIFICATE_FILE file = {certificate_path(name, ".key"), certificate_path(name, ".pem")};
    QUIC_CREDENTIAL_CONFIG config = {
        .Type = QUIC_CREDENTIAL_TYPE_CERTIFICATE_FILE, .Flags = options->server_flags, .CertificateFile = &file};
    if (options->server_authority) {
        config.Flags |= QUIC_CREDENTIAL_FLAG_SET_CA_CERTIFICATE_FILE;
        config.CaCertificateFile = certificate_path(options->server_authority, ".pem");
    }
    CHECK_OK(api->ConfigurationLoadCredential(it->server_configuration, &config));
}

static void load_pair_client(pair *it) {
    const pair_options *options = it->options;
    QUIC_CERTIFICATE_FILE file;
    QUIC_CREDENTIAL_CONFIG config = {.Type = QUIC_CREDENTIAL_TYPE_NONE};
    config.Flags = QUIC_CREDENTIAL_FLAG_CLIENT |
        (options->client_flags || options->authority ? options->client_flags
                                                     : QUIC_CREDENTIAL_FLAG_NO_CERTIFICATE_VALIDATION);
    if (options->authority) {
        config.Flags |= QUIC_CREDENTIAL_FLAG_SET_CA_CERTIFICATE_FILE;
        config.CaCertificateFile = certificate_path(options->authority, ".pem");
    }
    if (options->ciphers) {
        config.Flags |= QUIC_CREDENTIAL_FLAG_SET_ALLOWED_CIPHER_SUITES;
        config.AllowedCipherSuites = options->ciphers;
    }
    if (options->client_certificate) {
        file.PrivateKeyFile = certificate_path(options->client_certificate, ".key");
        file.CertificateFile = certificate_path(options->client_certificate, ".pem");
        config.Type = QUIC_CREDENTIAL_TYPE_CERTIFICATE_FILE;
        config.CertificateFile = &file;
    }
    CHECK_OK(api->ConfigurationLoadCredential(it->client_configuration, &config));
}

/* The pair whose listener accepts; a process has one. */
static const pair_options *accepting;

static void prepare_accepted(connection *accepted) {
    accepted->hook = accepting->on_server;
    accepted->user = accepting->user;
    accepted->prepare_stream = accepting->prepare_server_stream;
    if (accepting->prepare_server) accepting->prepare_server(accepted);
}

static void open_client(pair *it, connection *client) {
    client->hook = it->options->on_client;
    client->user = it->options->user;
    client->prepare_stream = it->options->prepare_client_stream;
    CHECK_OK(api->ConnectionOpen(it->registration, on_connection_event, client, &client->handle));
}

pair *open_pair(const pair_options *options) {
    pair *it = keep(sizeof(*it));
    it->options = memcpy(keep(sizeof(*options)), options, sizeof(*options));
    QUIC_REGISTRATION_CONFIG config = {"c_suite", options->profile};
    CHECK_OK(api->RegistrationOpen(&config, &it->registration));
    it->server_configuration = open_configuration(it->registration, options->server_alpn, &options->server);
    it->client_configuration = open_configuration(it->registration, options->client_alpn, &options->client);
    load_pair_server(it);
    load_pair_client(it);
    accepting = it->options;
    it->listener.configuration = it->server_configuration;
    it->listener.hook = options->on_listener;
    it->listener.user = options->user;
    it->listener.prepare_connection = prepare_accepted;
    QUIC_ADDR address = loopback(0);
    QUIC_BUFFER alpn = alpn_buffer(options->server_alpn);
    CHECK_OK(api->ListenerOpen(it->registration, on_listener_event, &it->listener, &it->listener.handle));
    if (options->prepare_listener) options->prepare_listener(it->listener.handle);
    CHECK_OK(api->ListenerStart(it->listener.handle, &alpn, 1, &address));
    it->port = listener_port(it->listener.handle);
    open_client(it, &it->client);
    return it;
}

static QUIC_STATUS start_connection(pair *it, connection *client) {
    QUIC_ADDR address = loopback(it->port);
    CHECK_OK(api->SetParam(client->handle, QUIC_PARAM_CONN_REMOTE_ADDRESS, sizeof(address), &address));
    return api->ConnectionStart(client->handle, it->client_configuration, QUIC_ADDRESS_FAMILY_UNSPEC,
                                it->options->server_name, it->port);
}

QUIC_STATUS start_client(pair *it) { return start_connection(it, &it->client); }

connection *wait_server_number(pair *it, unsigned which) {
    WAIT_UNTIL(it->listener.accepted_count >= which);
    return it->listener.accepted[which - 1];
}

connection *wait_server(pair *it) { return it->server = wait_server_number(it, 1); }

void connect_pair(pair *it) {
    CHECK_PENDING(start_client(it));
    WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_CONNECTED);
    WAIT_EVENT(wait_server(it), QUIC_CONNECTION_EVENT_CONNECTED);
}

pair *connected_pair(const pair_options *options) {
    pair *it = open_pair(options);
    connect_pair(it);
    return it;
}

pair *usual_pair(void) {
    pair_options options = usual_options();
    return connected_pair(&options);
}

connection *another_client(pair *it) {
    connection *client = keep(sizeof(*client));
    open_client(it, client);
    return client;
}

/* Streams can come until the connection is closed: theirs is the second turn. */
static void close_accepted_streams(connection *it) {
    lock_suite();
    unsigned count = it->accepted_count;
    unlock_suite();
    for (unsigned i = 0; i < count; i++) close_stream(it->accepted[i]);
}

void close_connection(connection *it) {
    lock_suite();
    bool closed = it->events.closed || !it->handle;
    unlock_suite();
    if (closed) return;
    api->ConnectionClose(it->handle);
    lock_suite();
    it->events.closed = true;
    CHECK(it->events.over || !it->events.count || !it->server);
    unlock_suite();
    close_accepted_streams(it);
}

void close_pair(pair *it) {
    close_connection(&it->client);
    api->ListenerClose(it->listener.handle);
    lock_suite();
    it->listener.events.closed = true;
    unsigned count = it->listener.accepted_count;
    unlock_suite();
    for (unsigned i = 0; i < count; i++) close_connection(it->listener.accepted[i]);
    api->ConfigurationClose(it->client_configuration);
    api->ConfigurationClose(it->server_configuration);
    api->RegistrationClose(it->registration);
    CHECK_EQUAL(0, performance_counter(QUIC_PERF_COUNTER_CONN_ACTIVE));
    CHECK_EQUAL(0, performance_counter(QUIC_PERF_COUNTER_STRM_ACTIVE));
}
