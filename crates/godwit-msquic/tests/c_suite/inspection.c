/* What can be asked of connections: TLS, keying material, secrets, statistics of all ages, counters, versions, paths. */
#include "suite.h"

#include <arpa/inet.h>

/* ---- TLS ---- */

static const struct cipher_row {
    const char *name;
    QUIC_ALLOWED_CIPHER_SUITE_FLAGS allowed;
    QUIC_HANDSHAKE_INFO expected;
} cipher_rows[] = {
    {"aes128", QUIC_ALLOWED_CIPHER_SUITE_AES_128_GCM_SHA256,
     {.CipherAlgorithm = QUIC_CIPHER_ALGORITHM_AES_128, .CipherStrength = 128, .Hash = QUIC_HASH_ALGORITHM_SHA_256,
      .CipherSuite = QUIC_CIPHER_SUITE_TLS_AES_128_GCM_SHA256}},
    {"aes256", QUIC_ALLOWED_CIPHER_SUITE_AES_256_GCM_SHA384,
     {.CipherAlgorithm = QUIC_CIPHER_ALGORITHM_AES_256, .CipherStrength = 256, .Hash = QUIC_HASH_ALGORITHM_SHA_384,
      .CipherSuite = QUIC_CIPHER_SUITE_TLS_AES_256_GCM_SHA384}},
    {"chacha20", QUIC_ALLOWED_CIPHER_SUITE_CHACHA20_POLY1305_SHA256,
     {.CipherAlgorithm = QUIC_CIPHER_ALGORITHM_CHACHA20, .CipherStrength = 256, .Hash = QUIC_HASH_ALGORITHM_SHA_256,
      .CipherSuite = QUIC_CIPHER_SUITE_TLS_CHACHA20_POLY1305_SHA256}},
};

static void cipher_is_told(const void *row) {
    const struct cipher_row *it = row;
    pair_options options = usual_options();
    options.ciphers = it->allowed;
    SET(options.server, ServerResumptionLevel, QUIC_SERVER_RESUME_ONLY);
    pair *ends = connected_pair(&options);
    HQUIC const handles[] = {ends->client.handle, ends->server->handle};
    for (int i = 0; i < 2; i++) {
        QUIC_HANDSHAKE_INFO info;
        uint32_t length = sizeof(info);
        CHECK_OK(api->GetParam(handles[i], QUIC_PARAM_TLS_HANDSHAKE_INFO, &length, &info));
        CHECK_EQUAL(QUIC_TLS_PROTOCOL_1_3, info.TlsProtocolVersion);
        CHECK_EQUAL(it->expected.CipherSuite, info.CipherSuite);
        CHECK_EQUAL(it->expected.CipherAlgorithm, info.CipherAlgorithm);
        CHECK_EQUAL(it->expected.CipherStrength, info.CipherStrength);
        CHECK_EQUAL(it->expected.Hash, info.Hash);
        CHECK_EQUAL(0, info.KeyExchangeAlgorithm);
        CHECK_EQUAL(0, info.KeyExchangeStrength);
        /* Not every library for TLS tells the group. */
        CHECK(info.TlsGroup == QUIC_TLS_GROUP_UNKNOWN || info.TlsGroup >= QUIC_TLS_GROUP_SECP256R1);
    }
    close_pair(ends);
}

static QUIC_STATUS look_at_handshake(connection *of, QUIC_CONNECTION_EVENT *what) {
    QUIC_HANDSHAKE_INFO info;
    uint32_t length = sizeof(info);
    if (what->Type == QUIC_CONNECTION_EVENT_CONNECTED) {
        CHECK_OK(api->GetParam(of->handle, QUIC_PARAM_TLS_HANDSHAKE_INFO, &length, &info));
    }
    return HOOK_DEFAULT;
}

/* A server that will send no tickets has no use for it when it is connected; a client keeps it. */
static void tls_stays_as_long_as_it_is_of_use(const void *row) {
    bool resumes = *(const bool *)row;
    QUIC_HANDSHAKE_INFO info;
    uint32_t length = sizeof(info);
    uint8_t material[16];
    QUIC_KEYING_MATERIAL_CONFIG config = {"label", 0, NULL, sizeof(material)};
    pair_options options = usual_options();
    options.on_server = options.on_client = look_at_handshake;
    if (resumes) SET(options.server, ServerResumptionLevel, QUIC_SERVER_RESUME_ONLY);
    pair *it = connected_pair(&options);
    let_things_happen(50);
    CHECK_OK(api->GetParam(it->client.handle, QUIC_PARAM_TLS_HANDSHAKE_INFO, &length, &info));
    HQUIC server = it->server->handle;
    QUIC_STATUS expected = resumes ? QUIC_STATUS_SUCCESS : QUIC_STATUS_INVALID_STATE;
    CHECK_STATUS(expected, api->GetParam(server, QUIC_PARAM_TLS_HANDSHAKE_INFO, &length, &info));
    CHECK_STATUS(expected, api->ConnectionExportKeyingMaterial(server, &config, material));
    CHECK_STATUS(resumes ? QUIC_STATUS_NOT_SUPPORTED : QUIC_STATUS_INVALID_PARAMETER,
                 api->SetParam(server, QUIC_PARAM_TLS_HANDSHAKE_INFO, sizeof(info), &info));
    close_pair(it);
}

/* Nobody has answered, and nobody will. */
static void a_client_has_begun_when_it_is_started(const void *row) {
    (void)row;
    uint32_t version = 0, length = sizeof(version), id_length = 20;
    uint8_t id[20];
    QUIC_HANDSHAKE_INFO info = {0};
    pair_options options = usual_options();
    pair *it = open_pair(&options);
    HQUIC client = it->client.handle;
    CHECK_PENDING(api->ConnectionStart(
        client, it->client_configuration, QUIC_ADDRESS_FAMILY_INET, "localhost", dead_port()));
    CHECK_OK(api->GetParam(client, QUIC_PARAM_CONN_QUIC_VERSION, &length, &version));
    CHECK_EQUAL(1, version);
    CHECK_OK(api->GetParam(client, QUIC_PARAM_CONN_ORIG_DEST_CID, &id_length, id));
    CHECK(id_length >= 8);
    CHECK_STATUS(QUIC_STATUS_NOT_SUPPORTED,
                 api->SetParam(client, QUIC_PARAM_TLS_HANDSHAKE_INFO, sizeof(info), &info));
    close_pair(it);
}

/* The structure of a program that was built before the group was there. */
static void handshake_of_older_programs(const void *row) {
    (void)row;
    QUIC_HANDSHAKE_INFO info;
    uint32_t length = offsetof(QUIC_HANDSHAKE_INFO, CipherSuite) + sizeof(info.CipherSuite);
    pair *it = usual_pair();
    memset(&info, 0xa5, sizeof(info));
    CHECK_OK(api->GetParam(it->client.handle, QUIC_PARAM_TLS_HANDSHAKE_INFO, &length, &info));
    CHECK(info.CipherSuite != 0);
    CHECK_EQUAL(0xa5a5a5a5, info.TlsGroup);
    close_pair(it);
}

static void keying_material(HQUIC from, const char *label, const char *context, uint8_t *into, uint32_t length) {
    QUIC_KEYING_MATERIAL_CONFIG config = {label, context ? (uint32_t)strlen(context) : 0, (const uint8_t *)context,
                                          length};
    CHECK_OK(api->ConnectionExportKeyingMaterial(from, &config, into));
}

/* Both ends have the same, and another for each label and context. */
static void keying_material_is_common(const void *row) {
    uint32_t length = *(const uint32_t *)row;
    uint8_t *of_client = keep(length), *of_server = keep(length), *other = keep(length);
    pair_options options = usual_options();
    /* A server that sends no tickets may forget what it has of TLS when the handshake is over. */
    SET(options.server, ServerResumptionLevel, QUIC_SERVER_RESUME_ONLY);
    pair *it = connected_pair(&options);
    keying_material(it->client.handle, "EXPORTER-suite", "context", of_client, length);
    keying_material(it->server->handle, "EXPORTER-suite", "context", of_server, length);
    CHECK(!memcmp(of_client, of_server, length));
    keying_material(it->client.handle, "EXPORTER-other", "context", other, length);
    CHECK(length < 8 || memcmp(of_client, other, length));
    keying_material(it->client.handle, "EXPORTER-suite", "text", other, length);
    CHECK(length < 8 || memcmp(of_client, other, length));
    keying_material(it->client.handle, "EXPORTER-suite", NULL, of_client, length);
    keying_material(it->server->handle, "EXPORTER-suite", NULL, of_server, length);
    CHECK(!memcmp(of_client, of_server, length));
    close_pair(it);
}

static QUIC_TLS_SECRETS server_secrets;

static void ask_for_secrets(connection *it) {
    CHECK_OK(api->SetParam(it->handle, QUIC_PARAM_CONN_TLS_SECRETS, sizeof(server_secrets), &server_secrets));
}

static void secrets_are_written(const void *row) {
    (void)row;
    static QUIC_TLS_SECRETS secrets;
    pair_options options = usual_options();
    options.prepare_server = ask_for_secrets;
    pair *it = open_pair(&options);
    memset(&secrets, 0xff, sizeof(secrets));
    CHECK_OK(api->SetParam(it->client.handle, QUIC_PARAM_CONN_TLS_SECRETS, sizeof(secrets), &secrets));
    CHECK_EQUAL(0, secrets.SecretLength);
    connect_pair(it);
    CHECK(secrets.SecretLength == 32 || secrets.SecretLength == 48);
    CHECK(secrets.IsSet.ClientRandom && !secrets.IsSet.ClientEarlyTrafficSecret);
    CHECK(secrets.IsSet.ClientHandshakeTrafficSecret && secrets.IsSet.ServerHandshakeTrafficSecret);
    CHECK(secrets.IsSet.ClientTrafficSecret0 && secrets.IsSet.ServerTrafficSecret0);
    CHECK(!memcmp(secrets.ClientRandom, server_secrets.ClientRandom, 32));
    CHECK(!memcmp(secrets.ServerTrafficSecret0, server_secrets.ServerTrafficSecret0, secrets.SecretLength));
    CHECK(!memcmp(secrets.ClientTrafficSecret0, server_secrets.ClientTrafficSecret0, secrets.SecretLength));
    CHECK(memcmp(secrets.ClientTrafficSecret0, secrets.ServerTrafficSecret0, secrets.SecretLength));
    close_pair(it);
}

/* ---- Statistics ---- */

static void prepare_end(stream *it) { it->ends_by_itself = true; }

static pair *pair_that_has_sent(uint64_t size) {
    pair_options options = usual_options();
    options.prepare_server_stream = prepare_end;
    pair *it = connected_pair(&options);
    stream *sender = open_stream(&it->client, QUIC_STREAM_OPEN_FLAG_NONE);
    send_pattern(sender, 0, size, 1, QUIC_SEND_FLAG_START | QUIC_SEND_FLAG_FIN);
    WAIT_EVENT(sender, QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE);
    close_stream(sender);
    return it;
}

static void statistics_count(const void *row) {
    uint32_t parameter = *(const uint32_t *)row;
    QUIC_STATISTICS client, server;
    uint32_t length = sizeof(client);
    pair *it = pair_that_has_sent(100000);
    CHECK_OK(api->GetParam(it->client.handle, parameter, &length, &client));
    CHECK_OK(api->GetParam(it->server->handle, parameter, &length, &server));
    CHECK(client.Send.TotalStreamBytes >= 100000 && client.Send.TotalBytes > 100000);
    CHECK(server.Recv.TotalStreamBytes >= 100000);
    CHECK(client.Send.TotalPackets >= client.Send.RetransmittablePackets);
    CHECK(client.Send.TotalPackets > 50 && server.Recv.TotalPackets > 50);
    CHECK(client.Send.PathMtu >= 1248 && client.Send.PathMtu <= 1500);
    CHECK(client.Rtt > 0 && client.MinRtt <= client.MaxRtt);
    CHECK(client.Timing.Start && client.Timing.InitialFlightEnd >= client.Timing.Start);
    CHECK(client.Timing.HandshakeFlightEnd >= client.Timing.InitialFlightEnd);
    CHECK(client.Handshake.ClientFlight1Bytes > 100 && client.Handshake.ServerFlight1Bytes > 100);
    CHECK_EQUAL(0, client.Recv.DecryptionFailures);
    CHECK(!client.StatelessRetry && !client.VersionNegotiation);
    CHECK_EQUAL(0, client.Misc.KeyUpdateCount);
    close_pair(it);
}

#define SIZE_THROUGH(field) ((uint32_t)QUIC_STRUCT_SIZE_THRU_FIELD(QUIC_STATISTICS_V2, field))

static const struct v2_row {
    uint32_t length;
    QUIC_STATUS expected;
    uint32_t written;
} v2_rows[] = {
    {0, QUIC_STATUS_BUFFER_TOO_SMALL, sizeof(QUIC_STATISTICS_V2)},
    {1, QUIC_STATUS_BUFFER_TOO_SMALL, QUIC_STATISTICS_V2_SIZE_1},
    {QUIC_STATISTICS_V2_SIZE_1 - 1, QUIC_STATUS_BUFFER_TOO_SMALL, QUIC_STATISTICS_V2_SIZE_1},
    {QUIC_STATISTICS_V2_SIZE_1, QUIC_STATUS_SUCCESS, QUIC_STATISTICS_V2_SIZE_1},
    {QUIC_STATISTICS_V2_SIZE_2, QUIC_STATUS_SUCCESS, QUIC_STATISTICS_V2_SIZE_2},
    {QUIC_STATISTICS_V2_SIZE_3, QUIC_STATUS_SUCCESS, QUIC_STATISTICS_V2_SIZE_3},
    {QUIC_STATISTICS_V2_SIZE_4, QUIC_STATUS_SUCCESS, QUIC_STATISTICS_V2_SIZE_4},
    {QUIC_STATISTICS_V2_SIZE_5, QUIC_STATUS_SUCCESS, QUIC_STATISTICS_V2_SIZE_5},
    {sizeof(QUIC_STATISTICS_V2) + 64, QUIC_STATUS_SUCCESS, QUIC_STATISTICS_V2_SIZE_5},
};

static void statistics_of_an_age(const void *row) {
    const struct v2_row *it = row;
    uint8_t read[sizeof(QUIC_STATISTICS_V2) + 64];
    uint32_t length = it->length;
    pair *ends = usual_pair();
    memset(read, 0xa5, sizeof(read));
    CHECK_STATUS(it->expected, api->GetParam(ends->client.handle, QUIC_PARAM_CONN_STATISTICS_V2, &length, read));
    CHECK_EQUAL(it->written, length);
    for (size_t i = it->length; i < sizeof(read); i++) CHECK_EQUAL(0xa5, read[i]);
    close_pair(ends);
}

static void statistics_v2_count(const void *row) {
    (void)row;
    QUIC_STATISTICS_V2 client;
    uint32_t length = sizeof(client);
    pair *it = pair_that_has_sent(50000);
    CHECK_OK(api->GetParam(it->client.handle, QUIC_PARAM_CONN_STATISTICS_V2, &length, &client));
    CHECK(client.SendTotalStreamBytes >= 50000 && client.SendCongestionWindow > 0);
    CHECK(client.SendPathMtu >= 1248 && client.Rtt > 0 && client.RecvValidAckFrames > 0);
    CHECK_EQUAL(0, client.DestCidUpdateCount);
    close_pair(it);
}

static void sizes_of_statistics(const void *row) {
    uint32_t room = *(const uint32_t *)row;
    static const uint32_t known[] = {QUIC_STATISTICS_V2_SIZE_1, QUIC_STATISTICS_V2_SIZE_2, QUIC_STATISTICS_V2_SIZE_3,
                                     QUIC_STATISTICS_V2_SIZE_4, QUIC_STATISTICS_V2_SIZE_5};
    uint32_t read[10], length = room;
    QUIC_STATUS status = api->GetParam(NULL, QUIC_PARAM_GLOBAL_STATISTICS_V2_SIZES, &length, read);
    if (room < 4) {
        CHECK_STATUS(QUIC_STATUS_BUFFER_TOO_SMALL, status);
        CHECK_EQUAL(sizeof(known), length);
        return;
    }
    CHECK_OK(status);
    CHECK_EQUAL(room / 4 < 5 ? room / 4 * 4 : sizeof(known), length);
    CHECK(!memcmp(read, known, length));
}

static void counters_of_room(const void *row) {
    uint32_t room = *(const uint32_t *)row;
    int64_t read[QUIC_PERF_COUNTER_MAX + 4];
    uint32_t length = room, all = QUIC_PERF_COUNTER_MAX * 8;
    QUIC_STATUS status = api->GetParam(NULL, QUIC_PARAM_GLOBAL_PERF_COUNTERS, &length, read);
    CHECK_STATUS(room < 8 ? QUIC_STATUS_BUFFER_TOO_SMALL : QUIC_STATUS_SUCCESS, status);
    CHECK_EQUAL(room < 8 || room > all ? all : room / 8 * 8, length);
}

static void counters_count(const void *row) {
    (void)row;
    pair *it = pair_that_has_sent(10000);
    CHECK_EQUAL(2, performance_counter(QUIC_PERF_COUNTER_CONN_CREATED));
    CHECK_EQUAL(2, performance_counter(QUIC_PERF_COUNTER_CONN_ACTIVE));
    CHECK_EQUAL(2, performance_counter(QUIC_PERF_COUNTER_CONN_CONNECTED));
    CHECK_EQUAL(0, performance_counter(QUIC_PERF_COUNTER_CONN_HANDSHAKE_FAIL));
    CHECK_EQUAL(0, performance_counter(QUIC_PERF_COUNTER_CONN_NO_ALPN));
    CHECK(performance_counter(QUIC_PERF_COUNTER_APP_SEND_BYTES) >= 10000);
    CHECK(performance_counter(QUIC_PERF_COUNTER_APP_RECV_BYTES) >= 10000);
    CHECK(performance_counter(QUIC_PERF_COUNTER_UDP_SEND_BYTES) >= 10000);
    CHECK(performance_counter(QUIC_PERF_COUNTER_UDP_RECV_BYTES) >= 10000);
    close_pair(it);
}

static void a_protocol_that_nobody_has_is_counted(const void *row) {
    (void)row;
    pair_options options = usual_options();
    options.client_alpn = "another";
    pair *it = open_pair(&options);
    CHECK_PENDING(start_client(it));
    WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    CHECK_EQUAL(1, performance_counter(QUIC_PERF_COUNTER_CONN_NO_ALPN));
    close_pair(it);
}

/* ---- Keys, ids and paths ---- */

/* These are refused until the handshake is confirmed, which comes soon after both are connected. */
static void force(HQUIC it, uint32_t parameter) {
    QUIC_STATUS status;
    while ((status = api->SetParam(it, parameter, 0, NULL)) == QUIC_STATUS_INVALID_STATE) let_things_happen(1);
    CHECK_OK(status);
}

static void exchange(pair *it, unsigned which) {
    stream *sender = open_stream(&it->client, QUIC_STREAM_OPEN_FLAG_NONE);
    send_pattern(sender, 0, 5000, 1, QUIC_SEND_FLAG_START | QUIC_SEND_FLAG_FIN);
    WAIT_EVENT(accepted_stream(it->server, which), QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN);
    close_stream(sender);
}

static void keys_are_updated(const void *row) {
    bool by_server = *(const bool *)row;
    QUIC_STATISTICS_V2 statistics;
    uint32_t length = sizeof(statistics);
    pair *it = usual_pair();
    HQUIC who = by_server ? it->server->handle : it->client.handle;
    force(who, QUIC_PARAM_CONN_FORCE_KEY_UPDATE);
    exchange(it, 1);
    force(who, QUIC_PARAM_CONN_FORCE_KEY_UPDATE);
    exchange(it, 2);
    CHECK_OK(api->GetParam(who, QUIC_PARAM_CONN_STATISTICS_V2, &length, &statistics));
    CHECK_EQUAL(2, statistics.KeyUpdateCount);
    CHECK_EQUAL(0, statistics.RecvDecryptionFailures);
    close_pair(it);
}

static void keys_are_updated_by_bytes(const void *row) {
    (void)row;
    QUIC_STATISTICS_V2 statistics;
    uint32_t length = sizeof(statistics);
    pair_options options = usual_options();
    SET(options.client, MaxBytesPerKey, 10000);
    pair *it = connected_pair(&options);
    for (unsigned i = 1; i <= 8; i++) exchange(it, i);
    CHECK_OK(api->GetParam(it->client.handle, QUIC_PARAM_CONN_STATISTICS_V2, &length, &statistics));
    CHECK(statistics.KeyUpdateCount >= 1);
    close_pair(it);
}

static void ids_are_updated(const void *row) {
    (void)row;
    QUIC_STATISTICS_V2 statistics;
    uint32_t length = sizeof(statistics);
    pair *it = usual_pair();
    force(it->client.handle, QUIC_PARAM_CONN_FORCE_CID_UPDATE);
    exchange(it, 1);
    CHECK_OK(api->GetParam(it->client.handle, QUIC_PARAM_CONN_STATISTICS_V2, &length, &statistics));
    CHECK_EQUAL(1, statistics.DestCidUpdateCount);
    close_pair(it);
}

static uint32_t id_updates_of(HQUIC it) {
    QUIC_STATISTICS_V2 statistics;
    uint32_t length = sizeof(statistics);
    CHECK_OK(api->GetParam(it, QUIC_PARAM_CONN_STATISTICS_V2, &length, &statistics));
    return statistics.DestCidUpdateCount;
}

/* What ends a silence goes to another id, also if that was only asked for when connected, and not if it was forbidden. */
static void ids_are_updated_after_silence(const void *row) {
    bool when_connected = *(const bool *)row;
    enum { SILENCE = 100 };
    pair_options options = usual_options();
    SET(options.client, DestCidUpdateIdleTimeoutMs, when_connected ? 0 : SILENCE);
    SET(options.server, DestCidUpdateIdleTimeoutMs, 0);
    pair *it = connected_pair(&options);
    unsigned exchanges = 0;
    if (when_connected) {
        let_things_happen(3 * SILENCE);
        exchange(it, ++exchanges);
        CHECK_EQUAL(0, id_updates_of(it->client.handle));
        QUIC_SETTINGS wanted = {.IsSetFlags = 0};
        SET(wanted, DestCidUpdateIdleTimeoutMs, SILENCE);
        CHECK_OK(api->SetParam(it->client.handle, QUIC_PARAM_CONN_SETTINGS, sizeof(wanted), &wanted));
    }
    /* The ids may come late, or an answer, which a silence begins with. */
    while (id_updates_of(it->client.handle) == 0) {
        let_things_happen(3 * SILENCE);
        exchange(it, ++exchanges);
    }
    CHECK_EQUAL(0, id_updates_of(it->server->handle));
    close_pair(it);
}

static void moves_to_another_port(const void *row) {
    (void)row;
    QUIC_ADDR address;
    uint32_t length = sizeof(address);
    QUIC_STATUS status;
    pair *it = usual_pair();
    CHECK_OK(api->GetParam(it->client.handle, QUIC_PARAM_CONN_LOCAL_ADDRESS, &length, &address));
    uint16_t before = port_of(&address);
    address = loopback(0);
    while ((status = api->SetParam(it->client.handle, QUIC_PARAM_CONN_LOCAL_ADDRESS, sizeof(address), &address)) ==
           QUIC_STATUS_INVALID_STATE) {
        let_things_happen(1);
    }
    CHECK_OK(status);
    CHECK_OK(api->GetParam(it->client.handle, QUIC_PARAM_CONN_LOCAL_ADDRESS, &length, &address));
    CHECK(port_of(&address) != before && port_of(&address) != 0);
    exchange(it, 1);
    CHECK_EQUAL(port_of(&address), WAIT_EVENT(it->server, QUIC_CONNECTION_EVENT_PEER_ADDRESS_CHANGED).code);
    CHECK_OK(api->GetParam(it->server->handle, QUIC_PARAM_CONN_REMOTE_ADDRESS, &length, &address));
    CHECK(port_of(&address) != before);
    close_pair(it);
}

static void starts_from_a_chosen_address(const void *row) {
    (void)row;
    QUIC_ADDR address = loopback(0);
    uint32_t length = sizeof(address);
    pair_options options = usual_options();
    pair *it = open_pair(&options);
    CHECK_OK(api->SetParam(it->client.handle, QUIC_PARAM_CONN_LOCAL_ADDRESS, sizeof(address), &address));
    connect_pair(it);
    CHECK_OK(api->GetParam(it->client.handle, QUIC_PARAM_CONN_LOCAL_ADDRESS, &length, &address));
    CHECK_EQUAL(INADDR_LOOPBACK, ntohl(address.Ipv4.sin_addr.s_addr));
    uint16_t port = port_of(&address);
    CHECK_OK(api->GetParam(it->server->handle, QUIC_PARAM_CONN_REMOTE_ADDRESS, &length, &address));
    CHECK_EQUAL(port, port_of(&address));
    close_pair(it);
}

static connection *join_client(pair *it, const QUIC_ADDR *local) {
    uint8_t on = 1;
    QUIC_ADDR address = loopback(it->port);
    connection *client = another_client(it);
    CHECK_OK(api->SetParam(client->handle, QUIC_PARAM_CONN_SHARE_UDP_BINDING, sizeof(on), &on));
    CHECK_OK(api->SetParam(client->handle, QUIC_PARAM_CONN_LOCAL_ADDRESS, sizeof(*local), local));
    CHECK_OK(api->SetParam(client->handle, QUIC_PARAM_CONN_REMOTE_ADDRESS, sizeof(address), &address));
    CHECK_PENDING(api->ConnectionStart(
        client->handle, it->client_configuration, QUIC_ADDRESS_FAMILY_UNSPEC, "localhost", it->port));
    return client;
}

/* Whatever threads the connections are of, and whether the first one has named an address or not. */
static void a_socket_is_shared(const void *row) {
    bool names_address = *(const bool *)row;
    uint8_t on = 1;
    QUIC_ADDR address = loopback(0), first, other;
    uint32_t length = sizeof(address);
    connection *clients[5];
    pair_options options = usual_options();
    pair *it = open_pair(&options);
    CHECK_OK(api->SetParam(it->client.handle, QUIC_PARAM_CONN_SHARE_UDP_BINDING, sizeof(on), &on));
    if (names_address) {
        CHECK_OK(api->SetParam(it->client.handle, QUIC_PARAM_CONN_LOCAL_ADDRESS, sizeof(address), &address));
    }
    connect_pair(it);
    CHECK_OK(api->GetParam(it->client.handle, QUIC_PARAM_CONN_LOCAL_ADDRESS, &length, &first));
    for (unsigned i = 0; i < 5; i++) clients[i] = join_client(it, &first);
    for (unsigned i = 0; i < 5; i++) {
        WAIT_EVENT(clients[i], QUIC_CONNECTION_EVENT_CONNECTED);
        CHECK_OK(api->GetParam(clients[i]->handle, QUIC_PARAM_CONN_LOCAL_ADDRESS, &length, &other));
        CHECK_EQUAL(port_of(&first), port_of(&other));
    }
    for (unsigned i = 0; i < 5; i++) close_connection(clients[i]);
    close_pair(it);
}

/* ---- Negotiated extensions ---- */

static const struct extension_row {
    const char *name;
    bool client, server;
} extension_rows[] = {{"neither", false, false}, {"client", true, false}, {"server", false, true}, {"both", true, true}};

static void reliable_reset_is_negotiated(const void *row) {
    const struct extension_row *it = row;
    pair_options options = usual_options();
    SET(options.client, ReliableResetEnabled, it->client);
    SET(options.server, ReliableResetEnabled, it->server);
    pair *ends = connected_pair(&options);
    CHECK_EQUAL(it->client, COUNT_EVENTS(&ends->client, QUIC_CONNECTION_EVENT_RELIABLE_RESET_NEGOTIATED));
    if (it->client) {
        CHECK_EQUAL(it->server, WAIT_EVENT(&ends->client, QUIC_CONNECTION_EVENT_RELIABLE_RESET_NEGOTIATED).first);
    }
    close_pair(ends);
}

static void one_way_delay_is_negotiated(const void *row) {
    const struct extension_row *it = row;
    pair_options options = usual_options();
    SET(options.client, OneWayDelayEnabled, it->client);
    SET(options.server, OneWayDelayEnabled, it->server);
    pair *ends = connected_pair(&options);
    CHECK_EQUAL(it->client, COUNT_EVENTS(&ends->client, QUIC_CONNECTION_EVENT_ONE_WAY_DELAY_NEGOTIATED));
    if (it->client) {
        event told = WAIT_EVENT(&ends->client, QUIC_CONNECTION_EVENT_ONE_WAY_DELAY_NEGOTIATED);
        CHECK_EQUAL(it->server, told.first);
        CHECK_EQUAL(it->server, told.second);
    }
    close_pair(ends);
}

static void network_statistics_are_told(const void *row) {
    (void)row;
    QUIC_NETWORK_STATISTICS statistics;
    uint32_t length = sizeof(statistics);
    pair_options options = usual_options();
    SET(options.client, NetStatsEventEnabled, 1);
    pair *it = connected_pair(&options);
    WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_NETWORK_STATISTICS);
    CHECK_NO_EVENT(it->server, QUIC_CONNECTION_EVENT_NETWORK_STATISTICS);
    CHECK_OK(api->GetParam(it->client.handle, QUIC_PARAM_CONN_NETWORK_STATISTICS, &length, &statistics));
    CHECK(statistics.CongestionWindow > 0 && statistics.SmoothedRTT > 0);
    close_pair(it);
}

void declare_inspection(void) {
    static const uint32_t lengths[] = {1, 16, 32, 64, 255}, rooms[] = {0, 3, 4, 7, 8, 16, 20, 40};
    static const uint32_t counter_rooms[] = {0, 7, 8, 9, 80, 35 * 8, 35 * 8 + 8};
    static const uint32_t parameters[] = {QUIC_PARAM_CONN_STATISTICS, QUIC_PARAM_CONN_STATISTICS_PLAT};
    static const bool sides[] = {false, true};
    for (size_t i = 0; i < 3; i++) {
        add_case(CASE_ORDINARY, cipher_is_told, &cipher_rows[i], "inspection/cipher/%s", cipher_rows[i].name);
    }
    for (size_t i = 0; i < 5; i++) {
        add_case(CASE_ORDINARY, keying_material_is_common, &lengths[i], "inspection/keying_material/%u", lengths[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        add_case(CASE_ORDINARY, statistics_count, &parameters[i], "inspection/statistics/%x", parameters[i]);
        add_case(CASE_ORDINARY, keys_are_updated, &sides[i], "inspection/key_update/%s", sides[i] ? "server" : "client");
        add_case(CASE_ORDINARY, ids_are_updated_after_silence, &sides[i], "inspection/ids_after_silence/%s",
                 sides[i] ? "set_when_connected" : "set_before");
    }
    for (size_t i = 0; i < sizeof(v2_rows) / sizeof(*v2_rows); i++) {
        add_case(CASE_ORDINARY, statistics_of_an_age, &v2_rows[i], "inspection/statistics_v2/%u", v2_rows[i].length);
    }
    for (size_t i = 0; i < 8; i++) {
        add_case(CASE_ORDINARY, sizes_of_statistics, &rooms[i], "inspection/statistics_sizes/%u", rooms[i]);
    }
    for (size_t i = 0; i < 7; i++) {
        add_case(CASE_ORDINARY, counters_of_room, &counter_rooms[i], "inspection/counters/%u", counter_rooms[i]);
    }
    for (size_t i = 0; i < 4; i++) {
        add_case(CASE_ORDINARY, reliable_reset_is_negotiated, &extension_rows[i], "inspection/reliable_reset/%s",
                 extension_rows[i].name);
        add_case(CASE_ORDINARY, one_way_delay_is_negotiated, &extension_rows[i], "inspection/one_way_delay/%s",
                 extension_rows[i].name);
    }
#define ADD(body) add_case(CASE_ORDINARY, body, NULL, "inspection/%s", #body)
    ADD(handshake_of_older_programs);
    ADD(a_client_has_begun_when_it_is_started);
    ADD(secrets_are_written);
    ADD(statistics_v2_count);
    ADD(counters_count);
    ADD(a_protocol_that_nobody_has_is_counted);
    ADD(keys_are_updated_by_bytes);
    ADD(ids_are_updated);
    ADD(moves_to_another_port);
    ADD(starts_from_a_chosen_address);
    static const bool either[] = {false, true};
    for (size_t i = 0; i < 2; i++) {
        add_case(CASE_ORDINARY, tls_stays_as_long_as_it_is_of_use, &either[i], "inspection/tls_of_a_server/%s",
                 either[i] ? "that_resumes" : "that_resumes_nothing");
        add_case(CASE_ORDINARY, a_socket_is_shared, &either[i], "inspection/a_socket_is_shared/%s",
                 either[i] ? "of_a_named_address" : "of_any_address");
    }
    ADD(network_statistics_are_told);
#undef ADD
}
