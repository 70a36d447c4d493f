/* Listeners: start, stop, several by protocol and address, what they are told of a client, what they count. */
#include "suite.h"

#include <unistd.h>

#include <arpa/inet.h>

static listener *open_listener(HQUIC registration, HQUIC configuration) {
    listener *it = keep(sizeof(*it));
    it->configuration = configuration;
    CHECK_OK(api->ListenerOpen(registration, on_listener_event, it, &it->handle));
    return it;
}

static void close_listener(listener *it) {
    api->ListenerClose(it->handle);
    lock_suite();
    it->events.closed = true;
    unlock_suite();
}

static QUIC_STATUS start(listener *it, const char *alpn, uint16_t port) {
    QUIC_BUFFER buffer = alpn_buffer(alpn);
    QUIC_ADDR address = loopback(port);
    return api->ListenerStart(it->handle, &buffer, 1, &address);
}

/* A client that connects to the pair's port, with this configuration. */
static connection *connect_to(pair *it, HQUIC configuration) {
    connection *client = another_client(it);
    QUIC_ADDR address = loopback(it->port);
    CHECK_OK(api->SetParam(client->handle, QUIC_PARAM_CONN_REMOTE_ADDRESS, sizeof(address), &address));
    CHECK_PENDING(api->ConnectionStart(
        client->handle, configuration, QUIC_ADDRESS_FAMILY_UNSPEC, "localhost", it->port));
    return client;
}

static void stops_and_starts_again(const void *row) {
    (void)row;
    pair *it = usual_pair();
    api->ListenerStop(it->listener.handle);
    CHECK(!WAIT_EVENT(&it->listener, QUIC_LISTENER_EVENT_STOP_COMPLETE).first);
    api->ListenerStop(it->listener.handle);
    CHECK_OK(start(&it->listener, "suite", 0));
    CHECK_STATUS(QUIC_STATUS_INVALID_STATE, start(&it->listener, "suite", 0));
    it->port = listener_port(it->listener.handle);
    connection *client = connect_to(it, it->client_configuration);
    WAIT_EVENT(client, QUIC_CONNECTION_EVENT_CONNECTED);
    CHECK_EQUAL(1, COUNT_EVENTS(&it->listener, QUIC_LISTENER_EVENT_STOP_COMPLETE));
    close_connection(client);
    close_pair(it);
}

/* Connections go on when their listener is gone. */
static void connections_outlive_it(const void *row) {
    bool closes = *(const bool *)row;
    pair *it = usual_pair();
    if (closes) {
        api->ListenerClose(it->listener.handle);
        CHECK(WAIT_EVENT(&it->listener, QUIC_LISTENER_EVENT_STOP_COMPLETE).first);
        memset(&it->listener.events, 0, sizeof(it->listener.events));
        CHECK_OK(api->ListenerOpen(it->registration, on_listener_event, &it->listener, &it->listener.handle));
    } else {
        api->ListenerStop(it->listener.handle);
    }
    stream *client = start_stream(&it->client, QUIC_STREAM_OPEN_FLAG_NONE, QUIC_STREAM_START_FLAG_NONE);
    send_pattern(client, 0, 10000, 1, QUIC_SEND_FLAG_FIN);
    WAIT_EVENT(accepted_stream(it->server, 1), QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN);
    close_stream(client);
    close_pair(it);
}

static void a_stopped_listener_accepts_nobody(const void *row) {
    (void)row;
    pair_options options = usual_options();
    SET(options.client, HandshakeIdleTimeoutMs, 500);
    pair *it = open_pair(&options);
    api->ListenerStop(it->listener.handle);
    CHECK_PENDING(start_client(it));
    WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_TRANSPORT);
    WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    CHECK_NO_EVENT(&it->listener, QUIC_LISTENER_EVENT_NEW_CONNECTION);
    close_pair(it);
}

static void protocols_share_an_address(const void *row) {
    (void)row;
    pair *it = usual_pair();
    HQUIC configuration = server_configuration(it->registration, "second", NULL);
    HQUIC client_side = client_configuration(it->registration, "second", NULL);
    listener *second = open_listener(it->registration, configuration);
    CHECK_STATUS(QUIC_STATUS_ALPN_IN_USE, start(second, "suite", it->port));
    CHECK_OK(start(second, "second", it->port));
    connection *client = connect_to(it, client_side);
    CHECK_EQUAL(6, WAIT_EVENT(client, QUIC_CONNECTION_EVENT_CONNECTED).code);
    WAIT_EVENT(second, QUIC_LISTENER_EVENT_NEW_CONNECTION);
    CHECK_EQUAL(1, COUNT_EVENTS(&it->listener, QUIC_LISTENER_EVENT_NEW_CONNECTION));
    close_connection(client);
    close_listener(second);
    close_connection(second->accepted[0]);
    api->ConfigurationClose(client_side);
    api->ConfigurationClose(configuration);
    close_pair(it);
}

/* What a listener has left is another's, connections of before included. */
static void another_has_the_port(const void *row) {
    (void)row;
    pair *it = usual_pair();
    api->ListenerStop(it->listener.handle);
    listener *second = open_listener(it->registration, it->server_configuration);
    CHECK_OK(start(second, "suite", it->port));
    connection *client = connect_to(it, it->client_configuration);
    WAIT_EVENT(client, QUIC_CONNECTION_EVENT_CONNECTED);
    CHECK_EQUAL(1, COUNT_EVENTS(second, QUIC_LISTENER_EVENT_NEW_CONNECTION));
    close_connection(client);
    close_listener(second);
    close_connection(second->accepted[0]);
    close_pair(it);
}

/* Every address and one of them, with the same protocol: who is nearer has the client. With another protocol who has that. */
static void addresses_share_a_port(const void *row) {
    bool narrow_first = *(const bool *)row;
    QUIC_BUFFER alpn[] = {alpn_buffer("suite"), alpn_buffer("second")};
    pair_options options = usual_options();
    pair *it = open_pair(&options);
    HQUIC of_server = server_configuration(it->registration, "second", NULL);
    HQUIC of_client = client_configuration(it->registration, "second", NULL);
    listener *wide = open_listener(it->registration, of_server);
    QUIC_ADDR everywhere = {0};
    everywhere.Ipv4.sin_port = htons(it->port);
    if (narrow_first) {
        CHECK_OK(api->ListenerStart(wide->handle, alpn, 2, &everywhere));
    } else {
        api->ListenerStop(it->listener.handle);
        CHECK_OK(api->ListenerStart(wide->handle, alpn, 2, &everywhere));
        CHECK_OK(start(&it->listener, "suite", it->port));
    }
    connection *near = connect_to(it, it->client_configuration);
    WAIT_EVENT(near, QUIC_CONNECTION_EVENT_CONNECTED);
    CHECK_EQUAL(1, COUNT_EVENTS(&it->listener, QUIC_LISTENER_EVENT_NEW_CONNECTION));
    connection *other = connect_to(it, of_client);
    WAIT_EVENT(other, QUIC_CONNECTION_EVENT_CONNECTED);
    CHECK_EQUAL(1, COUNT_EVENTS(wide, QUIC_LISTENER_EVENT_NEW_CONNECTION));
    close_connection(near);
    close_connection(other);
    close_listener(wide);
    close_connection(wide->accepted[0]);
    api->ConfigurationClose(of_client);
    api->ConfigurationClose(of_server);
    close_pair(it);
}

/* The server's order of protocols counts. */
static void the_first_in_common_is_taken(const void *row) {
    (void)row;
    QUIC_BUFFER of_server[] = {alpn_buffer("one"), alpn_buffer("two"), alpn_buffer("three")};
    QUIC_BUFFER of_client[] = {alpn_buffer("none"), alpn_buffer("three"), alpn_buffer("two")};
    HQUIC registration = open_registration(), server, client;
    QUIC_ADDR address = loopback(0);
    CHECK_OK(api->ConfigurationOpen(registration, of_server, 3, NULL, 0, NULL, &server));
    CHECK_OK(load_server_credential(server, "server", QUIC_CREDENTIAL_FLAG_NONE));
    CHECK_OK(api->ConfigurationOpen(registration, of_client, 3, NULL, 0, NULL, &client));
    QUIC_CREDENTIAL_CONFIG config = {
        .Flags = QUIC_CREDENTIAL_FLAG_CLIENT | QUIC_CREDENTIAL_FLAG_NO_CERTIFICATE_VALIDATION};
    CHECK_OK(api->ConfigurationLoadCredential(client, &config));
    listener *it = open_listener(registration, server);
    CHECK_OK(api->ListenerStart(it->handle, of_server, 3, &address));
    connection *from = keep(sizeof(*from));
    CHECK_OK(api->ConnectionOpen(registration, on_connection_event, from, &from->handle));
    CHECK_PENDING(api->ConnectionStart(
        from->handle, client, QUIC_ADDRESS_FAMILY_INET, "127.0.0.1", listener_port(it->handle)));
    CHECK_EQUAL(3, WAIT_EVENT(from, QUIC_CONNECTION_EVENT_CONNECTED).code);
    WAIT_EVENT(it, QUIC_LISTENER_EVENT_NEW_CONNECTION);
    CHECK(!memcmp(it->negotiated, "two", 3));
    char alpn[16];
    uint32_t length = sizeof(alpn);
    CHECK_OK(api->GetParam(from->handle, QUIC_PARAM_TLS_NEGOTIATED_ALPN, &length, alpn));
    CHECK(length == 3 && !memcmp(alpn, "two", 3));
    close_connection(from);
    close_listener(it);
    close_connection(it->accepted[0]);
    api->ConfigurationClose(client);
    api->ConfigurationClose(server);
    api->RegistrationClose(registration);
}

/* The configuration has the last word, not the listener. */
static void the_configuration_chooses(const void *row) {
    const char *of_configuration = row;
    bool common = !strcmp(of_configuration, "two");
    QUIC_BUFFER both[] = {alpn_buffer("one"), alpn_buffer("two")};
    HQUIC registration = open_registration(), client;
    HQUIC server = server_configuration(registration, of_configuration, NULL);
    QUIC_ADDR address = loopback(0);
    CHECK_OK(api->ConfigurationOpen(registration, both, 2, NULL, 0, NULL, &client));
    QUIC_CREDENTIAL_CONFIG config = {
        .Flags = QUIC_CREDENTIAL_FLAG_CLIENT | QUIC_CREDENTIAL_FLAG_NO_CERTIFICATE_VALIDATION};
    CHECK_OK(api->ConfigurationLoadCredential(client, &config));
    listener *it = open_listener(registration, server);
    CHECK_OK(api->ListenerStart(it->handle, both, 2, &address));
    connection *from = keep(sizeof(*from));
    CHECK_OK(api->ConnectionOpen(registration, on_connection_event, from, &from->handle));
    CHECK_PENDING(api->ConnectionStart(
        from->handle, client, QUIC_ADDRESS_FAMILY_INET, "127.0.0.1", listener_port(it->handle)));
    WAIT_EVENT(it, QUIC_LISTENER_EVENT_NEW_CONNECTION);
    CHECK(!memcmp(it->negotiated, "one", 3));
    WAIT_UNTIL(it->accepted_count);
    connection *ends[] = {from, it->accepted[0]};
    for (int i = 0; i < 2; i++) {
        if (common) {
            char alpn[16];
            uint32_t length = sizeof(alpn);
            CHECK_EQUAL(3, WAIT_EVENT(ends[i], QUIC_CONNECTION_EVENT_CONNECTED).code);
            if (i) continue;
            CHECK_OK(api->GetParam(ends[i]->handle, QUIC_PARAM_TLS_NEGOTIATED_ALPN, &length, alpn));
            CHECK(length == 3 && !memcmp(alpn, "two", 3));
        } else {
            CHECK_STATUS(QUIC_STATUS_ALPN_NEG_FAILURE,
                         WAIT_EVENT(ends[i], QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_TRANSPORT).status);
            CHECK(!WAIT_EVENT(ends[i], QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE).first);
        }
    }
    close_connection(from);
    close_listener(it);
    close_connection(it->accepted[0]);
    api->ConfigurationClose(client);
    api->ConfigurationClose(server);
    api->RegistrationClose(registration);
}

static void is_told_the_name(const void *row) {
    const char *name = row;
    pair_options options = usual_options();
    options.server_name = name;
    pair *it = connected_pair(&options);
    CHECK(!strcmp(name, it->listener.server_name));
    close_pair(it);
}

static QUIC_STATUS look_at_information(listener *of, QUIC_LISTENER_EVENT *what) {
    if (what->Type != QUIC_LISTENER_EVENT_NEW_CONNECTION) return HOOK_DEFAULT;
    const QUIC_NEW_CONNECTION_INFO *info = what->NEW_CONNECTION.Info;
    /* As it is on the wire, the most significant byte first. */
    CHECK_EQUAL(htonl(1), info->QuicVersion);
    CHECK_EQUAL(listener_port(of->handle), port_of(info->LocalAddress));
    CHECK(port_of(info->RemoteAddress) != 0);
    CHECK_EQUAL(5, info->NegotiatedAlpnLength);
    CHECK(!memcmp(info->NegotiatedAlpn, "suite", 5));
    /* A list of names with their lengths. */
    CHECK_EQUAL(6, info->ClientAlpnListLength);
    CHECK(info->ClientAlpnList[0] == 5 && !memcmp(info->ClientAlpnList + 1, "suite", 5));
    /* The message that a client begins with, as TLS has it. */
    CHECK(info->CryptoBufferLength > 40 && info->CryptoBuffer[0] == 1);
    return HOOK_DEFAULT;
}

static void is_told_of_the_client(const void *row) {
    (void)row;
    pair_options options = usual_options();
    options.on_listener = look_at_information;
    close_pair(connected_pair(&options));
}

static void counts_connections(const void *row) {
    (void)row;
    QUIC_LISTENER_STATISTICS counts;
    uint32_t length = sizeof(counts);
    pair *it = usual_pair();
    CHECK_OK(api->GetParam(it->listener.handle, QUIC_PARAM_LISTENER_STATS, &length, &counts));
    CHECK_EQUAL(1, counts.TotalAcceptedConnections);
    CHECK_EQUAL(0, counts.TotalRejectedConnections);
    close_pair(it);
}

static QUIC_STATUS refuse(listener *of, QUIC_LISTENER_EVENT *what) {
    (void)of;
    return what->Type == QUIC_LISTENER_EVENT_NEW_CONNECTION ? QUIC_STATUS_CONNECTION_REFUSED : HOOK_DEFAULT;
}

static void counts_refusals(const void *row) {
    (void)row;
    QUIC_LISTENER_STATISTICS counts;
    uint32_t length = sizeof(counts);
    pair_options options = usual_options();
    options.on_listener = refuse;
    pair *it = open_pair(&options);
    CHECK_PENDING(start_client(it));
    WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    CHECK_OK(api->GetParam(it->listener.handle, QUIC_PARAM_LISTENER_STATS, &length, &counts));
    CHECK_EQUAL(0, counts.TotalAcceptedConnections);
    CHECK_EQUAL(1, counts.TotalRejectedConnections);
    close_pair(it);
}

static QUIC_STATUS configure_later(listener *of, QUIC_LISTENER_EVENT *what) {
    (void)of;
    (void)what;
    return HOOK_DEFAULT;
}

/* A connection gets its configuration when the program has found it: not within the callback. */
static void is_configured_later(const void *row) {
    (void)row;
    pair_options options = usual_options();
    options.on_listener = configure_later;
    pair *it = open_pair(&options);
    it->listener.configuration = NULL;
    CHECK_PENDING(start_client(it));
    connection *server = wait_server(it);
    CHECK_PENDING(api->ConnectionSetConfiguration(server->handle, it->server_configuration));
    WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_CONNECTED);
    WAIT_EVENT(server, QUIC_CONNECTION_EVENT_CONNECTED);
    CHECK_STATUS(QUIC_STATUS_INVALID_STATE,
                 api->ConnectionSetConfiguration(server->handle, it->server_configuration));
    close_pair(it);
}

static void cannot_be_configured_without_credential(const void *row) {
    (void)row;
    pair_options options = usual_options();
    pair *it = open_pair(&options);
    HQUIC bare = open_configuration(it->registration, "suite", NULL);
    it->listener.configuration = NULL;
    CHECK_PENDING(start_client(it));
    connection *server = wait_server(it);
    CHECK_STATUS(QUIC_STATUS_INVALID_PARAMETER, api->ConnectionSetConfiguration(server->handle, bare));
    CHECK_PENDING(api->ConnectionSetConfiguration(server->handle, it->server_configuration));
    WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_CONNECTED);
    api->ConfigurationClose(bare);
    close_pair(it);
}

static void an_address_in_use(const void *row) {
    (void)row;
    HQUIC registration = open_registration();
    listener *it = open_listener(registration, NULL);
    CHECK_STATUS(QUIC_STATUS_ADDRESS_IN_USE, start(it, "suite", dead_port()));
    close_listener(it);
    api->RegistrationClose(registration);
}

static void over_version_6(const void *row) {
    (void)row;
    QUIC_BUFFER alpn = alpn_buffer("suite");
    QUIC_ADDR address = loopback6(0);
    pair_options options = usual_options();
    pair *it = open_pair(&options);
    api->ListenerStop(it->listener.handle);
    if (api->ListenerStart(it->listener.handle, &alpn, 1, &address) != QUIC_STATUS_SUCCESS) {
        skip_case("there is no loopback of IP version 6");
    }
    it->port = listener_port(it->listener.handle);
    CHECK_PENDING(api->ConnectionStart(
        it->client.handle, it->client_configuration, QUIC_ADDRESS_FAMILY_INET6, "::1", it->port));
    WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_CONNECTED);
    WAIT_EVENT(wait_server(it), QUIC_CONNECTION_EVENT_CONNECTED);
    close_pair(it);
}

static void on_every_address(const void *row) {
    (void)row;
    QUIC_BUFFER alpn = alpn_buffer("suite");
    pair_options options = usual_options();
    pair *it = open_pair(&options);
    api->ListenerStop(it->listener.handle);
    CHECK_OK(api->ListenerStart(it->listener.handle, &alpn, 1, NULL));
    it->port = listener_port(it->listener.handle);
    connect_pair(it);
    close_pair(it);
}

static QUIC_STATUS close_the_listener(listener *of, QUIC_LISTENER_EVENT *what) {
    if (what->Type != QUIC_LISTENER_EVENT_STOP_COMPLETE) return HOOK_DEFAULT;
    CHECK(!what->STOP_COMPLETE.AppCloseInProgress);
    api->ListenerClose(of->handle);
    lock_suite();
    of->events.closed = true;
    suite_changed();
    unlock_suite();
    return QUIC_STATUS_SUCCESS;
}

static void closed_in_its_last_event(const void *row) {
    (void)row;
    HQUIC registration = open_registration();
    listener *it = open_listener(registration, NULL);
    it->hook = close_the_listener;
    CHECK_OK(start(it, "suite", 0));
    api->ListenerStop(it->handle);
    WAIT_UNTIL(it->events.closed);
    api->RegistrationClose(registration);
}

static QUIC_STATUS close_when_somebody_comes(listener *of, QUIC_LISTENER_EVENT *what) {
    if (what->Type == QUIC_LISTENER_EVENT_STOP_COMPLETE) {
        CHECK(what->STOP_COMPLETE.AppCloseInProgress);
        return HOOK_DEFAULT;
    }
    if (what->Type != QUIC_LISTENER_EVENT_NEW_CONNECTION) return HOOK_DEFAULT;
    CHECK_NO_EVENT(of, QUIC_LISTENER_EVENT_STOP_COMPLETE);
    api->ListenerClose(of->handle);
    /* Nothing comes behind this: what is the listener's may be given up. */
    CHECK_EQUAL(1, COUNT_EVENTS(of, QUIC_LISTENER_EVENT_STOP_COMPLETE));
    lock_suite();
    of->events.closed = true;
    suite_changed();
    unlock_suite();
    return QUIC_STATUS_CONNECTION_REFUSED;
}

static void closed_when_somebody_comes(const void *row) {
    (void)row;
    pair_options options = usual_options();
    pair *it = open_pair(&options);
    it->listener.hook = close_when_somebody_comes;
    CHECK_PENDING(start_client(it));
    WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    WAIT_UNTIL(it->listener.events.closed);
    lock_suite();
    memset(&it->listener.events, 0, sizeof(it->listener.events));
    unlock_suite();
    it->listener.hook = NULL;
    CHECK_OK(api->ListenerOpen(it->registration, on_listener_event, &it->listener, &it->listener.handle));
    close_pair(it);
}

/* The port stays the library's as long as there are connections, and is had again by who listens there. */
static void a_port_with_connections_is_had_again(const void *row) {
    unsigned times = *(const unsigned *)row;
    pair *it = usual_pair();
    for (unsigned i = 0; i < times; i++) {
        api->ListenerStop(it->listener.handle);
        CHECK_OK(start(&it->listener, "suite", it->port));
        CHECK_EQUAL(it->port, listener_port(it->listener.handle));
        connection *client = connect_to(it, it->client_configuration);
        WAIT_EVENT(client, QUIC_CONNECTION_EVENT_CONNECTED);
        close_connection(client);
    }
    stream *client = start_stream(&it->client, QUIC_STREAM_OPEN_FLAG_NONE, QUIC_STREAM_START_FLAG_NONE);
    send_pattern(client, 0, 10000, 1, QUIC_SEND_FLAG_FIN);
    WAIT_EVENT(accepted_stream(it->server, 1), QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN);
    close_stream(client);
    close_pair(it);
}

/* A port that nobody listens at and no connection uses is free for others. */
static void a_port_is_given_up_with_the_last_connection(const void *row) {
    (void)row;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    pair *it = usual_pair();
    address.sin_port = htons(it->port);
    api->ListenerStop(it->listener.handle);
    int taken = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK(bind(taken, (struct sockaddr *)&address, sizeof(address)) != 0);
    close_pair(it);
    int error = -1;
    for (unsigned i = 0; i < 500 && error; i++) {
        error = bind(taken, (struct sockaddr *)&address, sizeof(address));
        if (error) let_things_happen(10);
    }
    CHECK_EQUAL(0, error);
    close(taken);
}

static void dos_mode_is_told(const void *row) {
    (void)row;
    BOOLEAN on = TRUE;
    uint16_t none = 0, usual = 65;
    pair *it = usual_pair();
    CHECK_OK(api->SetParam(it->listener.handle, QUIC_PARAM_DOS_MODE_EVENTS, sizeof(on), &on));
    /* With no memory for handshakes there is always need. */
    CHECK_OK(api->SetParam(NULL, QUIC_PARAM_GLOBAL_RETRY_MEMORY_PERCENT, sizeof(none), &none));
    CHECK(WAIT_EVENT(&it->listener, QUIC_LISTENER_EVENT_DOS_MODE_CHANGED).first);
    CHECK_OK(api->SetParam(NULL, QUIC_PARAM_GLOBAL_RETRY_MEMORY_PERCENT, sizeof(usual), &usual));
    CHECK(!WAIT_EVENTS(&it->listener, QUIC_LISTENER_EVENT_DOS_MODE_CHANGED, 2).first);
    close_pair(it);
}

static void retry_is_counted(const void *row) {
    (void)row;
    uint16_t none = 0;
    QUIC_STATISTICS statistics;
    uint32_t length = sizeof(statistics);
    CHECK_OK(api->SetParam(NULL, QUIC_PARAM_GLOBAL_RETRY_MEMORY_PERCENT, sizeof(none), &none));
    pair *it = usual_pair();
    CHECK_OK(api->GetParam(it->client.handle, QUIC_PARAM_CONN_STATISTICS, &length, &statistics));
    CHECK(statistics.StatelessRetry);
    CHECK(performance_counter(QUIC_PERF_COUNTER_SEND_STATELESS_RETRY) >= 1);
    close_pair(it);
}

void declare_listeners(void) {
    static const unsigned times[] = {1, 3};
    for (size_t i = 0; i < 2; i++) {
        add_case(CASE_ORDINARY, a_port_with_connections_is_had_again, &times[i], "listeners/had_again/%u", times[i]);
    }
    static const bool both[] = {false, true};
    static const char *const names[] = {"localhost", "a", "with.several.labels.example", "127.0.0.1"};
    for (size_t i = 0; i < 2; i++) {
        add_case(CASE_ORDINARY, connections_outlive_it, &both[i], "listeners/outlived/%s", both[i] ? "close" : "stop");
        add_case(CASE_ORDINARY, addresses_share_a_port, &both[i], "listeners/port/%s-first", both[i] ? "narrow" : "wide");
    }
    /* An address is no name: TLS has no place for it. */
    for (size_t i = 0; i < 3; i++) {
        add_case(CASE_ORDINARY, is_told_the_name, names[i], "listeners/name/%s", names[i]);
    }
    static const char *const chosen[] = {"two", "three"};
    for (size_t i = 0; i < 2; i++) {
        add_case(CASE_ORDINARY, the_configuration_chooses, chosen[i], "listeners/the_configuration_has/%s", chosen[i]);
    }
#define ADD(body) add_case(CASE_ORDINARY, body, NULL, "listeners/%s", #body)
    ADD(stops_and_starts_again);
    ADD(a_stopped_listener_accepts_nobody);
    ADD(protocols_share_an_address);
    ADD(another_has_the_port);
    ADD(the_first_in_common_is_taken);
    ADD(is_told_of_the_client);
    ADD(counts_connections);
    ADD(counts_refusals);
    ADD(is_configured_later);
    ADD(cannot_be_configured_without_credential);
    ADD(an_address_in_use);
    ADD(over_version_6);
    ADD(on_every_address);
    ADD(closed_in_its_last_event);
    ADD(closed_when_somebody_comes);
    ADD(a_port_is_given_up_with_the_last_connection);
    ADD(dos_mode_is_told);
    ADD(retry_is_counted);
#undef ADD
}
