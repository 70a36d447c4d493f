/* What few programs use: no encryption, partitions, ids for balancers, transport parameters of the program's own. */
#include "suite.h"

#include "relay.h"

#include <unistd.h>

static void prepare_end(stream *it) { it->ends_by_itself = true; }

static void carry_something(pair *it) {
    stream *sender = open_stream(&it->client, QUIC_STREAM_OPEN_FLAG_NONE);
    send_pattern(sender, 0, 20000, 1, QUIC_SEND_FLAG_START | QUIC_SEND_FLAG_FIN);
    CHECK(!WAIT_EVENT(sender, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE).first);
    CHECK_EQUAL(20000, accepted_stream(it->server, 1)->received);
    close_stream(sender);
}

/* ---- Without encryption ---- */

static bool server_without, client_without;

/* A server can only agree: whose client has not asked for it is refused. */
static void switch_off(connection *it) {
    BOOLEAN off = server_without;
    CHECK_STATUS(client_without ? QUIC_STATUS_SUCCESS : QUIC_STATUS_INVALID_STATE,
                 api->SetParam(it->handle, QUIC_PARAM_CONN_DISABLE_1RTT_ENCRYPTION, sizeof(off), &off));
}

static bool does_without(HQUIC handle) {
    BOOLEAN off = 77;
    uint32_t length = sizeof(off);
    CHECK_OK(api->GetParam(handle, QUIC_PARAM_CONN_DISABLE_1RTT_ENCRYPTION, &length, &off));
    CHECK(off <= 1);
    return off;
}

/* It takes both to do without; one alone is encrypted as ever. Both are told what became of it, and so is the network. */
static void encryption_is_switched_off_by_both(const void *row) {
    unsigned sides = *(const unsigned *)row;
    pair_options options = usual_options();
    client_without = sides & 1;
    server_without = sides & 2;
    options.prepare_server = switch_off;
    options.prepare_server_stream = prepare_end;
    pair *it = open_pair(&options);
    relay *through = start_relay(it->port);
    it->port = through->port;
    BOOLEAN off = client_without;
    CHECK_OK(api->SetParam(it->client.handle, QUIC_PARAM_CONN_DISABLE_1RTT_ENCRYPTION, sizeof(off), &off));
    connect_pair(it);
    carry_something(it);
    CHECK_EQUAL(sides == 3, does_without(it->client.handle));
    CHECK_EQUAL(sides == 3, does_without(it->server->handle));
    CHECK_EQUAL(sides == 3, atomic_load(&through->readable) > 0);
    close_pair(it);
}

/* ---- Transport parameters ---- */

static void a_transport_parameter_of_the_program(const void *row) {
    uint16_t length = *(const uint16_t *)row;
    uint8_t *bytes = keep(length + 1);
    QUIC_PRIVATE_TRANSPORT_PARAMETER parameter = {77, length, bytes};
    pair_options options = usual_options();
    options.prepare_server_stream = prepare_end;
    pair *it = open_pair(&options);
    CHECK_OK(api->SetParam(
        it->client.handle, QUIC_PARAM_CONN_TEST_TRANSPORT_PARAMETER, sizeof(parameter), &parameter));
    connect_pair(it);
    carry_something(it);
    close_pair(it);
}

/* ---- Partitions ---- */

static void a_listener_has_a_partition(const void *row) {
    (void)row;
    uint16_t index = 0;
    uint32_t length = sizeof(index);
    HQUIC registration = open_registration();
    listener *it = keep(sizeof(*it));
    CHECK_OK(api->ListenerOpen(registration, on_listener_event, it, &it->handle));
    CHECK_OK(api->SetParam(it->handle, QUIC_PARAM_LISTENER_PARTITION_INDEX, sizeof(index), &index));
    index = 9;
    CHECK_OK(api->GetParam(it->handle, QUIC_PARAM_LISTENER_PARTITION_INDEX, &length, &index));
    CHECK_EQUAL(0, index);
    CHECK_STATUS(QUIC_STATUS_INVALID_PARAMETER,
                 api->SetParam(it->handle, QUIC_PARAM_LISTENER_PARTITION_INDEX, sizeof(index), &index));
    api->ListenerClose(it->handle);
    api->RegistrationClose(registration);
}

/* By the types of a listener's events. */
static pthread_t thread_of[3];

static QUIC_STATUS note_listener_thread(listener *of, QUIC_LISTENER_EVENT *what) {
    (void)of;
    thread_of[what->Type] = pthread_self();
    return HOOK_DEFAULT;
}

static void prepare_partition(HQUIC it) {
    uint16_t first = 0;
    CHECK_OK(api->SetParam(it, QUIC_PARAM_LISTENER_PARTITION_INDEX, sizeof(first), &first));
}

/* It is told its end and of defences where it is told of connections, whoever stops or closes it. */
static void a_listener_in_a_partition_is_told_all_there(const void *row) {
    bool stops = *(const bool *)row;
    BOOLEAN on = TRUE;
    uint16_t none = 0;
    pair_options options = usual_options();
    options.prepare_listener = prepare_partition;
    options.on_listener = note_listener_thread;
    pair *it = connected_pair(&options);
    CHECK_OK(api->SetParam(it->listener.handle, QUIC_PARAM_DOS_MODE_EVENTS, sizeof(on), &on));
    CHECK_OK(api->SetParam(NULL, QUIC_PARAM_GLOBAL_RETRY_MEMORY_PERCENT, sizeof(none), &none));
    WAIT_EVENT(&it->listener, QUIC_LISTENER_EVENT_DOS_MODE_CHANGED);
    if (stops) api->ListenerStop(it->listener.handle);
    if (stops) WAIT_EVENT(&it->listener, QUIC_LISTENER_EVENT_STOP_COMPLETE);
    close_pair(it);
    CHECK_EQUAL(!stops, WAIT_EVENT(&it->listener, QUIC_LISTENER_EVENT_STOP_COMPLETE).first);
    CHECK_EQUAL(1, COUNT_EVENTS(&it->listener, QUIC_LISTENER_EVENT_STOP_COMPLETE));
    for (unsigned i = 1; i < 3; i++) CHECK(pthread_equal(thread_of[0], thread_of[i]));
    CHECK(!pthread_equal(thread_of[0], pthread_self()));
}

/* ---- Ids for balancers ---- */

static const struct cibir_row {
    const char *name;
    uint32_t length;
    uint8_t first;
    QUIC_STATUS expected;
} cibir_rows[] = {
    {"empty", 0, 0, QUIC_STATUS_SUCCESS},
    {"offset_alone", 1, 0, QUIC_STATUS_INVALID_PARAMETER},
    {"short", 2, 0, QUIC_STATUS_SUCCESS},
    {"longest", 7, 0, QUIC_STATUS_SUCCESS},
    {"too_long", 8, 0, QUIC_STATUS_INVALID_PARAMETER},
    {"other_offset", 3, 1, QUIC_STATUS_NOT_SUPPORTED},
};

static void an_id_of_a_connection(const void *row) {
    const struct cibir_row *it = row;
    uint8_t id[8] = {it->first, 1, 2, 3, 4, 5, 6, 7}, on = 1;
    pair_options options = usual_options();
    pair *ends = open_pair(&options);
    CHECK_OK(api->SetParam(ends->client.handle, QUIC_PARAM_CONN_SHARE_UDP_BINDING, sizeof(on), &on));
    CHECK_STATUS(it->expected, api->SetParam(ends->client.handle, QUIC_PARAM_CONN_CIBIR_ID, it->length, id));
    close_pair(ends);
}

/* Both ends have ids of the same length, or neither has one. */
static const struct common_row {
    const char *name;
    uint8_t server, client; /* Bytes of the ids; 0 is none. */
    bool same;
    bool connects;
} common_rows[] = {
    {"server_alone", 3, 0, true, false}, {"client_alone", 0, 3, true, false}, {"lengths_differ", 3, 4, true, false},
    {"bytes_differ", 3, 3, false, true}, {"one_byte", 1, 1, true, true},      {"three_bytes", 3, 3, true, true},
    {"five_bytes", 5, 5, true, true},    {"six_bytes", 6, 6, true, true},
};

static const uint8_t id_of_server[7] = {0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6};
static uint8_t server_length;

static void give_listener_an_id(HQUIC it) {
    if (!server_length) return;
    CHECK_OK(api->SetParam(it, QUIC_PARAM_LISTENER_CIBIR_ID, server_length + 1u, id_of_server));
}

static void ids_are_common(const void *row) {
    const struct common_row *it = row;
    uint8_t id[7] = {0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6}, on = 1;
    if (!it->same) memset(id + 1, 0xd1, 6);
    pair_options options = usual_options();
    server_length = it->server;
    options.prepare_listener = give_listener_an_id;
    options.prepare_server_stream = prepare_end;
    pair *ends = open_pair(&options);
    relay *through = start_relay(ends->port);
    ends->port = through->port;
    CHECK_OK(api->SetParam(ends->client.handle, QUIC_PARAM_CONN_SHARE_UDP_BINDING, sizeof(on), &on));
    if (it->client) {
        CHECK_OK(api->SetParam(ends->client.handle, QUIC_PARAM_CONN_CIBIR_ID, it->client + 1u, id));
    }
    if (!it->connects) {
        CHECK_PENDING(start_client(ends));
        event why = WAIT_EVENT(&ends->client, QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_TRANSPORT);
        CHECK_STATUS(QUIC_STATUS_CONNECTION_REFUSED, why.status);
        CHECK_EQUAL(2, why.code);
        WAIT_EVENT(&ends->client, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    } else {
        connect_pair(ends);
        carry_something(ends);
        connection_id server = id_seen(through, &through->id_of_server);
        connection_id client = id_seen(through, &through->id_of_client);
        CHECK(server.length >= 9 && !memcmp(server.bytes + 2, id_of_server + 1, it->server));
        CHECK(client.length >= 9 && !memcmp(client.bytes + 2, id + 1, it->client));
    }
    close_pair(ends);
}

/* The first thing that is set. */
static void an_id_before_there_are_sockets(const void *row) {
    (void)row;
    uint8_t id[4] = {0, 9, 8, 7}, on = 1;
    connection *it = keep(sizeof(*it));
    HQUIC registration = open_registration();
    CHECK_OK(api->ConnectionOpen(registration, on_connection_event, it, &it->handle));
    CHECK_STATUS(QUIC_STATUS_INVALID_STATE, api->SetParam(it->handle, QUIC_PARAM_CONN_CIBIR_ID, sizeof(id), id));
    CHECK_OK(api->SetParam(it->handle, QUIC_PARAM_CONN_SHARE_UDP_BINDING, sizeof(on), &on));
    CHECK_OK(api->SetParam(it->handle, QUIC_PARAM_CONN_CIBIR_ID, sizeof(id), id));
    api->ConnectionClose(it->handle);
    api->RegistrationClose(registration);
}

static void an_id_of_a_listener_is_read(const void *row) {
    (void)row;
    uint8_t id[4] = {0, 9, 8, 7}, read[8] = {0};
    uint32_t length = sizeof(read);
    pair_options options = usual_options();
    pair *it = open_pair(&options);
    CHECK_OK(api->GetParam(it->listener.handle, QUIC_PARAM_LISTENER_CIBIR_ID, &length, read));
    CHECK_EQUAL(0, length);
    CHECK_OK(api->SetParam(it->listener.handle, QUIC_PARAM_LISTENER_CIBIR_ID, sizeof(id), id));
    length = 2;
    CHECK_STATUS(QUIC_STATUS_BUFFER_TOO_SMALL,
                 api->GetParam(it->listener.handle, QUIC_PARAM_LISTENER_CIBIR_ID, &length, read));
    CHECK_EQUAL(sizeof(id), length);
    CHECK_STATUS(QUIC_STATUS_INVALID_PARAMETER,
                 api->GetParam(it->listener.handle, QUIC_PARAM_LISTENER_CIBIR_ID, &length, NULL));
    CHECK_OK(api->GetParam(it->listener.handle, QUIC_PARAM_LISTENER_CIBIR_ID, &length, read));
    CHECK(!memcmp(id, read, sizeof(id)));
    close_pair(it);
}

/* ---- Marks and padding ---- */

static void marks_packets(const void *row) {
    uint8_t mark = *(const uint8_t *)row;
    pair_options options = usual_options();
    options.prepare_server_stream = prepare_end;
    pair *it = open_pair(&options);
    CHECK_OK(api->SetParam(it->client.handle, QUIC_PARAM_CONN_SEND_DSCP, sizeof(mark), &mark));
    connect_pair(it);
    carry_something(it);
    close_pair(it);
}

/* The DSCP of the first datagram that comes to a socket. */
static unsigned mark_of_first_datagram(int from) {
    uint8_t bytes[2048], control[256];
    struct iovec place = {bytes, sizeof(bytes)};
    struct msghdr message = {.msg_iov = &place, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    CHECK(recvmsg(from, &message, 0) > 0);
    for (struct cmsghdr *it = CMSG_FIRSTHDR(&message); it; it = CMSG_NXTHDR(&message, it)) {
        if (it->cmsg_level == IPPROTO_IP && it->cmsg_type == IP_TOS) return *(uint8_t *)CMSG_DATA(it) >> 2;
    }
    return 255;
}

static void marks_are_on_the_wire(const void *row) {
    uint8_t mark = *(const uint8_t *)row;
    int on = 1, receiver = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    CHECK(!bind(receiver, (struct sockaddr *)&address, sizeof(address)));
    CHECK(!getsockname(receiver, (struct sockaddr *)&address, &length));
    CHECK(!setsockopt(receiver, IPPROTO_IP, IP_RECVTOS, &on, sizeof(on)));
    pair_options options = usual_options();
    pair *it = open_pair(&options);
    it->port = ntohs(address.sin_port);
    CHECK_OK(api->SetParam(it->client.handle, QUIC_PARAM_CONN_SEND_DSCP, sizeof(mark), &mark));
    CHECK_PENDING(start_client(it));
    CHECK_EQUAL(mark, mark_of_first_datagram(receiver));
    close_pair(it);
    close(receiver);
}

static void keeps_alive_with_padding(const void *row) {
    (void)row;
    uint16_t padding = 500;
    QUIC_STATISTICS before, after;
    uint32_t length = sizeof(before);
    pair_options options = usual_options();
    SET(options.client, KeepAliveIntervalMs, 50);
    pair *it = open_pair(&options);
    CHECK_OK(api->SetParam(it->client.handle, QUIC_PARAM_CONN_KEEP_ALIVE_PADDING, sizeof(padding), &padding));
    connect_pair(it);
    CHECK_OK(api->GetParam(it->client.handle, QUIC_PARAM_CONN_STATISTICS, &length, &before));
    do {
        let_things_happen(10);
        CHECK_OK(api->GetParam(it->client.handle, QUIC_PARAM_CONN_STATISTICS, &length, &after));
    } while (after.Send.TotalBytes < before.Send.TotalBytes + 1500);
    close_pair(it);
}

/* ---- Many ---- */

static void many_connections(const void *row) {
    (void)row;
    enum { COUNT = 40 };
    connection *clients[COUNT];
    pair *it = usual_pair();
    QUIC_ADDR address = loopback(it->port);
    for (int i = 0; i < COUNT; i++) {
        clients[i] = another_client(it);
        CHECK_OK(api->SetParam(clients[i]->handle, QUIC_PARAM_CONN_REMOTE_ADDRESS, sizeof(address), &address));
        CHECK_PENDING(api->ConnectionStart(
            clients[i]->handle, it->client_configuration, QUIC_ADDRESS_FAMILY_UNSPEC, "localhost", it->port));
    }
    for (int i = 0; i < COUNT; i++) WAIT_EVENT(clients[i], QUIC_CONNECTION_EVENT_CONNECTED);
    WAIT_UNTIL(it->listener.accepted_count == COUNT + 1);
    for (int i = 0; i < COUNT; i++) close_connection(clients[i]);
    close_pair(it);
}

void declare_rare(void) {
    static const unsigned sides[] = {0, 1, 2, 3};
    static const uint16_t lengths[] = {0, 10, 1000, 2000};
    static const uint8_t marks[] = {0, 10, 46, 63};
    for (size_t i = 0; i < 4; i++) {
        add_case(CASE_ORDINARY, encryption_is_switched_off_by_both, &sides[i], "rare/no_encryption/%u", sides[i]);
        add_case(CASE_ORDINARY, a_transport_parameter_of_the_program, &lengths[i], "rare/transport_parameter/%u",
                 lengths[i]);
        add_case(CASE_ORDINARY, marks_packets, &marks[i], "rare/marks/%u", marks[i]);
        add_case(CASE_ORDINARY, marks_are_on_the_wire, &marks[i], "rare/marks_on_the_wire/%u", marks[i]);
    }
    for (size_t i = 0; i < sizeof(cibir_rows) / sizeof(*cibir_rows); i++) {
        add_case(CASE_ORDINARY, an_id_of_a_connection, &cibir_rows[i], "rare/cibir/%s", cibir_rows[i].name);
    }
    for (size_t i = 0; i < sizeof(common_rows) / sizeof(*common_rows); i++) {
        add_case(CASE_ORDINARY, ids_are_common, &common_rows[i], "rare/cibir_common/%s", common_rows[i].name);
    }
#define ADD(body) add_case(CASE_ORDINARY, body, NULL, "rare/%s", #body)
    ADD(a_listener_has_a_partition);
    static const bool either[] = {false, true};
    for (size_t i = 0; i < 2; i++) {
        add_case(CASE_ORDINARY, a_listener_in_a_partition_is_told_all_there, &either[i],
                 "rare/partition/a_listener_%s", either[i] ? "stops" : "is_closed");
    }
    ADD(an_id_before_there_are_sockets);
    ADD(an_id_of_a_listener_is_read);
    ADD(keeps_alive_with_padding);
    ADD(many_connections);
#undef ADD
}
