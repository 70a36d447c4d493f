/* What connections begin with: versions, bits and addresses that both ends agree on, and what is told before anything is asked. */
#include "suite.h"

#include <unistd.h>

enum { V1 = 1, V2 = 0x6b3343cf, DRAFT_29 = 0xff00001d, OLD = 0xabcd0000, RESERVED = 0x1a2a3a4a };

static QUIC_STATISTICS_V2 statistics_of(connection *it) {
    QUIC_STATISTICS_V2 read;
    uint32_t length = sizeof(read);
    CHECK_OK(api->GetParam(it->handle, QUIC_PARAM_CONN_STATISTICS_V2, &length, &read));
    return read;
}

static uint32_t version_of(connection *it) {
    uint32_t read, length = sizeof(read);
    CHECK_OK(api->GetParam(it->handle, QUIC_PARAM_CONN_QUIC_VERSION, &length, &read));
    return read;
}

/* ---- Versions ---- */

static const struct negotiation_row {
    const char *name;
    uint32_t server[2]; /* What the server takes, the preferred one first. */
    uint32_t client[2]; /* What the client offers; it begins with the first. */
    uint32_t expected;
    bool server_refuses_first;
} negotiation_rows[] = {
    {"both_as_they_are", {V2, V1}, {V2, V1}, V2, false},
    {"the_server_moves", {V2, V1}, {V1, V2}, V2, false},
    {"the_server_knows_one", {V1, V1}, {V2, V1}, V1, true},
    {"begun_with_none", {V1, V2}, {RESERVED, V1}, V1, true},
    {"draft_29", {DRAFT_29, V1}, {DRAFT_29, DRAFT_29}, DRAFT_29, false},
    {"msquic_1", {OLD, V1}, {OLD, OLD}, OLD, false},
};

static void versions_are_negotiated(const void *row) {
    const struct negotiation_row *it = row;
    QUIC_VERSION_SETTINGS server = {it->server, it->server, it->server, 2, 2, 2};
    QUIC_VERSION_SETTINGS client = {it->client, it->client, it->client, 2, 2, 2};
    pair_options options = usual_options();
    CHECK_OK(api->SetParam(NULL, QUIC_PARAM_GLOBAL_VERSION_SETTINGS, sizeof(server), &server));
    pair *ends = open_pair(&options);
    CHECK_OK(api->SetParam(
        ends->client_configuration, QUIC_PARAM_CONFIGURATION_VERSION_SETTINGS, sizeof(client), &client));
    connect_pair(ends);
    CHECK_EQUAL(it->expected, version_of(&ends->client));
    CHECK_EQUAL(it->expected, version_of(ends->server));
    CHECK_EQUAL(it->server_refuses_first, statistics_of(&ends->client).VersionNegotiation);
    stream *sender = open_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_UNIDIRECTIONAL);
    send_pattern(sender, 0, 5000, 1, QUIC_SEND_FLAG_START | QUIC_SEND_FLAG_FIN);
    WAIT_EVENT(sender, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    CHECK_EQUAL(5000, accepted_stream(ends->server, 1)->received);
    close_stream(sender);
    close_pair(ends);
}

/* ---- The QUIC bit (RFC 9287) ---- */

static const struct grease_row {
    const char *name;
    bool server, client;
} grease_rows[] = {{"neither", false, false}, {"server", true, false}, {"client", false, true}, {"both", true, true}};

static void the_bit_is_greased_by_both(const void *row) {
    const struct grease_row *it = row;
    pair_options options = usual_options();
    SET(options.server, GreaseQuicBitEnabled, it->server);
    SET(options.client, GreaseQuicBitEnabled, it->client);
    pair *ends = connected_pair(&options);
    CHECK_EQUAL(it->server && it->client, statistics_of(&ends->client).GreaseBitNegotiated);
    CHECK_EQUAL(it->server && it->client, statistics_of(ends->server).GreaseBitNegotiated);
    close_pair(ends);
}

/* ---- Streams ---- */

/* As long as the server permits none, the client is told of none. */
static void no_streams_are_no_news(const void *row) {
    (void)row;
    pair_options options = usual_options();
    options.server.PeerBidiStreamCount = options.server.PeerUnidiStreamCount = 0;
    pair *ends = connected_pair(&options);
    CHECK_NO_EVENT(&ends->client, QUIC_CONNECTION_EVENT_STREAMS_AVAILABLE);
    QUIC_SETTINGS raised = {.PeerBidiStreamCount = 2};
    raised.IsSet.PeerBidiStreamCount = 1;
    CHECK_OK(api->SetParam(ends->server->handle, QUIC_PARAM_CONN_SETTINGS, sizeof(raised), &raised));
    WAIT_EVENT(&ends->client, QUIC_CONNECTION_EVENT_STREAMS_AVAILABLE);
    close_pair(ends);
}

/* A server hears that a stream is wanted which was started before there was a connection. */
static void streams_are_wanted_from_the_beginning(const void *row) {
    QUIC_STREAM_OPEN_FLAGS flags = *(const QUIC_STREAM_OPEN_FLAGS *)row;
    pair_options options = usual_options();
    options.server.PeerBidiStreamCount = options.server.PeerUnidiStreamCount = 0;
    pair *ends = open_pair(&options);
    stream *blocked = start_stream(&ends->client, flags, QUIC_STREAM_START_FLAG_IMMEDIATE);
    connect_pair(ends);
    bool bidirectional = WAIT_EVENT(ends->server, QUIC_CONNECTION_EVENT_PEER_NEEDS_STREAMS).first;
    CHECK_EQUAL(flags != QUIC_STREAM_OPEN_FLAG_UNIDIRECTIONAL, bidirectional);
    close_stream(blocked);
    close_pair(ends);
}

/* Nor is one wanted that is permitted as soon as the server has said how many there may be. */
static void what_is_permitted_is_not_wanted(const void *row) {
    (void)row;
    pair_options options = usual_options();
    pair *ends = open_pair(&options);
    stream *first = start_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_NONE, QUIC_STREAM_START_FLAG_IMMEDIATE);
    connect_pair(ends);
    accepted_stream(ends->server, 1);
    CHECK_NO_EVENT(ends->server, QUIC_CONNECTION_EVENT_PEER_NEEDS_STREAMS);
    close_stream(first);
    close_pair(ends);
}

static uint64_t first_received;
static bool is_first = true;

static QUIC_STATUS note_first(stream *of, QUIC_STREAM_EVENT *what) {
    if (what->Type == QUIC_STREAM_EVENT_RECEIVE && is_first) {
        is_first = false;
        first_received = of->id;
    }
    return HOOK_DEFAULT;
}

static void prepare_note(stream *it) { it->hook = note_first; }

/* What comes on streams is told in the order in which it came, not in that of the streams. */
static void the_most_urgent_stream_is_heard_first(const void *row) {
    (void)row;
    uint16_t lowest = 0, highest = 0xffff;
    pair_options options = usual_options();
    options.prepare_server_stream = prepare_note;
    pair *ends = open_pair(&options);
    stream *streams[2];
    for (int i = 0; i < 2; i++) {
        streams[i] = open_stream(&ends->client, QUIC_STREAM_OPEN_FLAG_UNIDIRECTIONAL);
        uint16_t *priority = i ? &highest : &lowest;
        CHECK_OK(api->SetParam(streams[i]->handle, QUIC_PARAM_STREAM_PRIORITY, sizeof(*priority), priority));
        send_pattern(streams[i], 0, 100, 1, QUIC_SEND_FLAG_START | QUIC_SEND_FLAG_FIN);
    }
    connect_pair(ends);
    for (int i = 0; i < 2; i++) {
        WAIT_EVENT(streams[i], QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
        close_stream(streams[i]);
    }
    WAIT_UNTIL(!is_first);
    CHECK_EQUAL(6, first_received);
    close_pair(ends);
}

/* ---- Datagrams ---- */

/* A datagram that is not to wait does not wait for the handshake. */
static void datagrams_that_cannot_wait_are_canceled(const void *row) {
    (void)row;
    QUIC_BUFFER buffer = {10, keep(10)};
    int contexts[2];
    pair_options options = usual_options();
    SET(options.server, DatagramReceiveEnabled, 1);
    pair *ends = open_pair(&options);
    CHECK_PENDING(
        api->DatagramSend(ends->client.handle, &buffer, 1, QUIC_SEND_FLAG_CANCEL_ON_BLOCKED, &contexts[0]));
    CHECK_PENDING(api->DatagramSend(ends->client.handle, &buffer, 1, QUIC_SEND_FLAG_NONE, &contexts[1]));
    connect_pair(ends);
    WAIT_EVENT(ends->server, QUIC_CONNECTION_EVENT_DATAGRAM_RECEIVED);
    bool is_canceled = false;
    lock_suite();
    for (unsigned i = 0; i < ends->client.events.count; i++) {
        const event *told = &ends->client.events.events[i];
        if (told->type != QUIC_CONNECTION_EVENT_DATAGRAM_SEND_STATE_CHANGED) continue;
        if (told->pointer == &contexts[0]) is_canceled |= told->code == QUIC_DATAGRAM_SEND_CANCELED;
    }
    unlock_suite();
    CHECK(is_canceled);
    CHECK_EQUAL(1, COUNT_EVENTS(ends->server, QUIC_CONNECTION_EVENT_DATAGRAM_RECEIVED));
    close_pair(ends);
}

/* ---- Addresses ---- */

/* An address of one family leads to none of the other. */
static void families_do_not_mix(const void *row) {
    (void)row;
    QUIC_ADDR local = loopback(0), remote = loopback6(dead_port());
    pair_options options = usual_options();
    pair *ends = open_pair(&options);
    CHECK_OK(api->SetParam(ends->client.handle, QUIC_PARAM_CONN_LOCAL_ADDRESS, sizeof(local), &local));
    CHECK_OK(api->SetParam(ends->client.handle, QUIC_PARAM_CONN_REMOTE_ADDRESS, sizeof(remote), &remote));
    CHECK_PENDING(api->ConnectionStart(ends->client.handle, ends->client_configuration,
                                       QUIC_ADDRESS_FAMILY_UNSPEC, NULL, port_of(&remote)));
    event why = WAIT_EVENT(&ends->client, QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_TRANSPORT);
    CHECK_STATUS(QUIC_STATUS_INVALID_ADDRESS, why.status);
    close_pair(ends);
}

/* A listener may have an address that is not the machine's yet. */
static void a_listener_waits_for_its_address(const void *row) {
    (void)row;
    QUIC_ADDR elsewhere = loopback(0), told;
    uint32_t length = sizeof(told);
    elsewhere.Ipv4.sin_addr.s_addr = htonl(0xc0000207); /* 192.0.2.7 is nobody's (RFC 5737). */
    listener it = {.handle = NULL};
    QUIC_BUFFER alpn = alpn_buffer("suite");
    HQUIC registration = open_registration();
    CHECK_OK(api->ListenerOpen(registration, on_listener_event, &it, &it.handle));
    CHECK_OK(api->ListenerStart(it.handle, &alpn, 1, &elsewhere));
    CHECK_OK(api->GetParam(it.handle, QUIC_PARAM_LISTENER_LOCAL_ADDRESS, &length, &told));
    CHECK_EQUAL(elsewhere.Ipv4.sin_addr.s_addr, told.Ipv4.sin_addr.s_addr);
    api->ListenerClose(it.handle);
    api->RegistrationClose(registration);
}

/* What is good for nothing is dropped at the listener's address, and counted. */
static void what_is_dropped_is_counted(const void *row) {
    (void)row;
    QUIC_LISTENER_STATISTICS counts;
    pair_options options = usual_options();
    pair *ends = open_pair(&options);
    QUIC_ADDR to = loopback(ends->port);
    int socket_of_ours = socket(AF_INET, SOCK_DGRAM, 0);
    uint8_t nonsense[1200] = {0xc0, 0, 0, 0, 1, 3, 1, 2, 3, 0};
    do {
        CHECK(sendto(socket_of_ours, nonsense, sizeof(nonsense), 0, (struct sockaddr *)&to.Ipv4,
                     sizeof(to.Ipv4)) == sizeof(nonsense));
        let_things_happen(1);
        uint32_t length = sizeof(counts);
        CHECK_OK(api->GetParam(ends->listener.handle, QUIC_PARAM_LISTENER_STATS, &length, &counts));
    } while (!counts.BindingRecvDroppedPackets);
    close(socket_of_ours);
    close_pair(ends);
}

void declare_beginnings(void) {
    static const QUIC_STREAM_OPEN_FLAGS directions[] = {
        QUIC_STREAM_OPEN_FLAG_NONE, QUIC_STREAM_OPEN_FLAG_UNIDIRECTIONAL};
    for (size_t i = 0; i < sizeof(negotiation_rows) / sizeof(*negotiation_rows); i++) {
        add_case(CASE_ORDINARY, versions_are_negotiated, &negotiation_rows[i], "beginnings/versions/%s",
                 negotiation_rows[i].name);
    }
    for (size_t i = 0; i < sizeof(grease_rows) / sizeof(*grease_rows); i++) {
        add_case(CASE_ORDINARY, the_bit_is_greased_by_both, &grease_rows[i], "beginnings/grease/%s",
                 grease_rows[i].name);
    }
    for (size_t i = 0; i < 2; i++) {
        add_case(CASE_ORDINARY, streams_are_wanted_from_the_beginning, &directions[i],
                 "beginnings/streams_are_wanted/%u", directions[i]);
    }
    add_case(CASE_ORDINARY, no_streams_are_no_news, NULL, "beginnings/no_streams_are_no_news");
    add_case(CASE_ORDINARY, what_is_permitted_is_not_wanted, NULL, "beginnings/what_is_permitted_is_not_wanted");
    add_case(CASE_ORDINARY, the_most_urgent_stream_is_heard_first, NULL, "beginnings/the_most_urgent_is_first");
    add_case(CASE_ORDINARY, datagrams_that_cannot_wait_are_canceled, NULL, "beginnings/datagrams_cannot_wait");
    add_case(CASE_ORDINARY, families_do_not_mix, NULL, "beginnings/families_do_not_mix");
    add_case(CASE_ORDINARY, a_listener_waits_for_its_address, NULL, "beginnings/a_listener_waits_for_its_address");
    add_case(CASE_ORDINARY, what_is_dropped_is_counted, NULL, "beginnings/what_is_dropped_is_counted");
}
