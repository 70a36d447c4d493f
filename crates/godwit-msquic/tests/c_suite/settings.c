/*
 * Every setting: its default, values that are taken and read back, the values next to its bounds that are refused, that
 * nothing changes without its IsSet bit, and the sizes of QUIC_SETTINGS that programs of different age have.
 */
#include "suite.h"

/* Values that a setting does not have, in place of a bound. */
#define NO_BOUND UINT64_MAX

/*
 * Name, default, two values that are taken, two that are refused. The windows of single kinds of streams have no
 * default of their own: they are what StreamRecvWindowDefault is.
 */
#define ALL_SETTINGS(S) \
    S(MaxBytesPerKey, 274877906944ull, 0, 274877906944ull, 274877906945ull, UINT64_MAX - 1) \
    S(HandshakeIdleTimeoutMs, 10000, 0, QUIC_UINT62_MAX, QUIC_UINT62_MAX + 1, UINT64_MAX - 1) \
    S(IdleTimeoutMs, 30000, 0, QUIC_UINT62_MAX, QUIC_UINT62_MAX + 1, UINT64_MAX - 1) \
    S(MtuDiscoverySearchCompleteTimeoutUs, 600000000, 0, UINT64_MAX - 1, NO_BOUND, NO_BOUND) \
    S(TlsClientMaxSendBuffer, 4096, 0, UINT32_MAX, NO_BOUND, NO_BOUND) \
    S(TlsServerMaxSendBuffer, 8192, 0, UINT32_MAX, NO_BOUND, NO_BOUND) \
    S(StreamRecvWindowDefault, 65536, 1, 0x80000000ull, 0, 65537) \
    S(StreamRecvBufferDefault, 4096, 4096, UINT32_MAX, 4095, 0) \
    S(ConnFlowControlWindow, 16777216, 0, UINT32_MAX, NO_BOUND, NO_BOUND) \
    S(MaxWorkerQueueDelayUs, 250000, 0, UINT32_MAX, NO_BOUND, NO_BOUND) \
    S(MaxStatelessOperations, 16, 0, UINT32_MAX, NO_BOUND, NO_BOUND) \
    S(InitialWindowPackets, 10, 1, UINT32_MAX, NO_BOUND, NO_BOUND) \
    S(SendIdleTimeoutMs, 1000, 0, UINT32_MAX, NO_BOUND, NO_BOUND) \
    S(InitialRttMs, 333, 1, UINT32_MAX, 0, NO_BOUND) \
    S(MaxAckDelayMs, 25, 0, 16383, 16384, UINT32_MAX) \
    S(DisconnectTimeoutMs, 16000, 1, 600000, 0, 600001) \
    S(KeepAliveIntervalMs, 0, 1, UINT32_MAX, NO_BOUND, NO_BOUND) \
    S(CongestionControlAlgorithm, 0, 0, 1, NO_BOUND, NO_BOUND) \
    S(PeerBidiStreamCount, 0, 1, UINT16_MAX, NO_BOUND, NO_BOUND) \
    S(PeerUnidiStreamCount, 0, 1, UINT16_MAX, NO_BOUND, NO_BOUND) \
    S(MaxBindingStatelessOperations, 100, 0, UINT16_MAX, NO_BOUND, NO_BOUND) \
    S(StatelessOperationExpirationMs, 100, 0, UINT16_MAX, NO_BOUND, NO_BOUND) \
    S(MinimumMtu, 1288, 1300, 1500, NO_BOUND, NO_BOUND) \
    S(MaximumMtu, 1500, 1400, 1500, NO_BOUND, NO_BOUND) \
    S(SendBufferingEnabled, 1, 0, 1, NO_BOUND, NO_BOUND) \
    S(PacingEnabled, 1, 0, 1, NO_BOUND, NO_BOUND) \
    S(MigrationEnabled, 1, 0, 1, NO_BOUND, NO_BOUND) \
    S(DatagramReceiveEnabled, 0, 0, 1, NO_BOUND, NO_BOUND) \
    S(ServerResumptionLevel, 0, 1, 2, 3, NO_BOUND) \
    S(MaxOperationsPerDrain, 16, 1, 255, 0, NO_BOUND) \
    S(MtuDiscoveryMissingProbeCount, 3, 0, 255, NO_BOUND, NO_BOUND) \
    S(DestCidUpdateIdleTimeoutMs, 20000, 0, UINT32_MAX, NO_BOUND, NO_BOUND) \
    S(GreaseQuicBitEnabled, 0, 0, 1, NO_BOUND, NO_BOUND) \
    S(EcnEnabled, 0, 0, 1, NO_BOUND, NO_BOUND) \
    S(EncryptionOffloadAllowed, 0, 0, 1, NO_BOUND, NO_BOUND) \
    S(ReliableResetEnabled, 0, 0, 1, NO_BOUND, NO_BOUND) \
    S(OneWayDelayEnabled, 0, 0, 1, NO_BOUND, NO_BOUND) \
    S(NetStatsEventEnabled, 0, 0, 1, NO_BOUND, NO_BOUND) \
    S(StreamMultiReceiveEnabled, 0, 0, 1, NO_BOUND, NO_BOUND) \
    S(StreamRecvWindowBidiLocalDefault, 65536, 1, 0x80000000ull, 0, 3) \
    S(StreamRecvWindowBidiRemoteDefault, 65536, 1, 0x80000000ull, 0, 12) \
    S(StreamRecvWindowUnidiDefault, 65536, 1, 0x80000000ull, 0, 65535)

typedef struct setting {
    const char *name;
    void (*put)(QUIC_SETTINGS *into, uint64_t value);
    uint64_t (*read)(const QUIC_SETTINGS *from);
    bool (*is_set)(const QUIC_SETTINGS *from);
    uint64_t usual;
    uint64_t good[2];
    uint64_t bad[2];
} setting;

#define ACCESSORS(name, usual, good, better, bad, worse) \
    static void put_##name(QUIC_SETTINGS *into, uint64_t value) { \
        into->name = value; \
        into->IsSet.name = 1; \
    } \
    static uint64_t read_##name(const QUIC_SETTINGS *from) { return from->name; } \
    static bool is_set_##name(const QUIC_SETTINGS *from) { return from->IsSet.name; }
ALL_SETTINGS(ACCESSORS)

#define ROW(name, usual, good, better, bad, worse) \
    {#name, put_##name, read_##name, is_set_##name, usual, {good, better}, {bad, worse}},
static const setting settings[] = {ALL_SETTINGS(ROW)};
enum { SETTINGS = sizeof(settings) / sizeof(*settings) };

typedef struct use {
    const setting *of;
    uint64_t value;
} use;

static QUIC_SETTINGS settings_of(HQUIC handle, uint32_t parameter) {
    QUIC_SETTINGS read;
    uint32_t length = sizeof(read);
    CHECK_OK(api->GetParam(handle, parameter, &length, &read));
    CHECK_EQUAL(sizeof(read), length);
    return read;
}

static void has_its_default(const void *row) {
    const setting *it = row;
    QUIC_SETTINGS read = settings_of(NULL, QUIC_PARAM_GLOBAL_SETTINGS);
    CHECK_EQUAL(it->usual, it->read(&read));
    CHECK(!it->is_set(&read));
}

static void is_taken_by_a_configuration(const void *row) {
    const use *it = row;
    QUIC_SETTINGS wanted = {.IsSetFlags = 0};
    it->of->put(&wanted, it->value);
    HQUIC registration = open_registration();
    HQUIC configuration = open_configuration(registration, "suite", &wanted);
    QUIC_SETTINGS read = settings_of(configuration, QUIC_PARAM_CONFIGURATION_SETTINGS);
    CHECK_EQUAL(it->value, it->of->read(&read));
    CHECK(it->of->is_set(&read));
    api->ConfigurationClose(configuration);
    api->RegistrationClose(registration);
}

static void is_taken_everywhere(const void *row) {
    const use *it = row;
    QUIC_SETTINGS wanted = {.IsSetFlags = 0}, read;
    it->of->put(&wanted, it->value);
    CHECK_OK(api->SetParam(NULL, QUIC_PARAM_GLOBAL_SETTINGS, sizeof(wanted), &wanted));
    read = settings_of(NULL, QUIC_PARAM_GLOBAL_SETTINGS);
    CHECK_EQUAL(it->value, it->of->read(&read));
    /* What is set for all is what a configuration has that says nothing. */
    HQUIC registration = open_registration();
    HQUIC configuration = open_configuration(registration, "suite", NULL);
    read = settings_of(configuration, QUIC_PARAM_CONFIGURATION_SETTINGS);
    CHECK_EQUAL(it->value, it->of->read(&read));
    api->ConfigurationClose(configuration);
    api->RegistrationClose(registration);
}

static void is_taken_by_a_connection(const void *row) {
    const use *it = row;
    QUIC_SETTINGS wanted = {.IsSetFlags = 0};
    connection client = {.handle = NULL};
    it->of->put(&wanted, it->value);
    HQUIC registration = open_registration();
    CHECK_OK(api->ConnectionOpen(registration, on_connection_event, &client, &client.handle));
    CHECK_OK(api->SetParam(client.handle, QUIC_PARAM_CONN_SETTINGS, sizeof(wanted), &wanted));
    QUIC_SETTINGS read = settings_of(client.handle, QUIC_PARAM_CONN_SETTINGS);
    CHECK_EQUAL(it->value, it->of->read(&read));
    close_connection(&client);
    api->RegistrationClose(registration);
}

static void is_refused(const void *row) {
    const use *it = row;
    QUIC_SETTINGS wanted = {.IsSetFlags = 0}, before, after;
    QUIC_BUFFER alpn = alpn_buffer("suite");
    HQUIC registration = open_registration(), configuration = NULL;
    it->of->put(&wanted, it->value);
    CHECK_STATUS(QUIC_STATUS_INVALID_PARAMETER,
                 api->ConfigurationOpen(registration, &alpn, 1, &wanted, sizeof(wanted), NULL, &configuration));
    configuration = open_configuration(registration, "suite", NULL);
    before = settings_of(configuration, QUIC_PARAM_CONFIGURATION_SETTINGS);
    CHECK_STATUS(QUIC_STATUS_INVALID_PARAMETER,
                 api->SetParam(configuration, QUIC_PARAM_CONFIGURATION_SETTINGS, sizeof(wanted), &wanted));
    after = settings_of(configuration, QUIC_PARAM_CONFIGURATION_SETTINGS);
    CHECK_EQUAL(it->of->read(&before), it->of->read(&after));
    CHECK_STATUS(QUIC_STATUS_INVALID_PARAMETER,
                 api->SetParam(NULL, QUIC_PARAM_GLOBAL_SETTINGS, sizeof(wanted), &wanted));
    api->ConfigurationClose(configuration);
    api->RegistrationClose(registration);
}

/* A value without its IsSet bit is not looked at. Another setting has its bit, so that there is something to apply. */
static void is_left_without_its_bit(const void *row) {
    const setting *it = row;
    QUIC_SETTINGS wanted = {.IsSetFlags = 0}, read;
    it->put(&wanted, it->bad[0] != NO_BOUND ? it->bad[0] : it->good[0]);
    wanted.IsSetFlags = 0;
    if (!strcmp(it->name, "KeepAliveIntervalMs")) SET(wanted, PeerBidiStreamCount, 1);
    else SET(wanted, KeepAliveIntervalMs, 5000);
    HQUIC registration = open_registration();
    HQUIC configuration = open_configuration(registration, "suite", &wanted);
    read = settings_of(configuration, QUIC_PARAM_CONFIGURATION_SETTINGS);
    CHECK_EQUAL(it->usual, it->read(&read));
    CHECK(!it->is_set(&read));
    api->ConfigurationClose(configuration);
    api->RegistrationClose(registration);
}

/* ---- Sizes ---- */

#define SIZE_THROUGH(field) ((uint32_t)QUIC_STRUCT_SIZE_THRU_FIELD(QUIC_SETTINGS, field))

/* The shortest settings are those of a program that was built before DestCidUpdateIdleTimeoutMs was there. */
static const struct settings_size {
    uint32_t size;
    QUIC_STATUS expected;
} sizes[] = {
    {0, QUIC_STATUS_INVALID_PARAMETER},
    {1, QUIC_STATUS_INVALID_PARAMETER},
    {8, QUIC_STATUS_INVALID_PARAMETER},
    {SIZE_THROUGH(MtuDiscoveryMissingProbeCount) - 1, QUIC_STATUS_INVALID_PARAMETER},
    {SIZE_THROUGH(MtuDiscoveryMissingProbeCount), QUIC_STATUS_SUCCESS},
    {SIZE_THROUGH(DestCidUpdateIdleTimeoutMs), QUIC_STATUS_SUCCESS},
    {SIZE_THROUGH(Flags), QUIC_STATUS_SUCCESS},
    {SIZE_THROUGH(StreamRecvWindowBidiLocalDefault), QUIC_STATUS_SUCCESS},
    {SIZE_THROUGH(StreamRecvWindowBidiRemoteDefault), QUIC_STATUS_SUCCESS},
    {sizeof(QUIC_SETTINGS), QUIC_STATUS_SUCCESS},
};

static void size_for_opening(const void *row) {
    const struct settings_size *it = row;
    QUIC_SETTINGS wanted = {.IsSetFlags = 0};
    QUIC_BUFFER alpn = alpn_buffer("suite");
    HQUIC registration = open_registration(), configuration = NULL;
    SET(wanted, IdleTimeoutMs, 1234);
    SET(wanted, StreamRecvWindowUnidiDefault, 1024);
    CHECK_STATUS(it->expected,
                 api->ConfigurationOpen(registration, &alpn, 1, &wanted, it->size, NULL, &configuration));
    if (it->expected == QUIC_STATUS_SUCCESS) {
        QUIC_SETTINGS read = settings_of(configuration, QUIC_PARAM_CONFIGURATION_SETTINGS);
        CHECK_EQUAL(1234, read.IdleTimeoutMs);
        /* What stands behind the size is not read. */
        CHECK_EQUAL(it->size == sizeof(wanted) ? 1024 : 65536, read.StreamRecvWindowUnidiDefault);
        api->ConfigurationClose(configuration);
    }
    api->RegistrationClose(registration);
}

static void size_for_setting(const void *row) {
    const struct settings_size *it = row;
    QUIC_SETTINGS wanted = {.IsSetFlags = 0};
    SET(wanted, IdleTimeoutMs, 4321);
    CHECK_STATUS(it->expected, api->SetParam(NULL, QUIC_PARAM_GLOBAL_SETTINGS, it->size, &wanted));
}

static void size_for_reading(const void *row) {
    const struct settings_size *it = row;
    union {
        QUIC_SETTINGS settings;
        uint8_t bytes[sizeof(QUIC_SETTINGS)];
    } read;
    uint32_t length = it->size;
    memset(&read, 0xa5, sizeof(read));
    if (it->expected == QUIC_STATUS_SUCCESS) {
        CHECK_OK(api->GetParam(NULL, QUIC_PARAM_GLOBAL_SETTINGS, &length, &read));
        CHECK_EQUAL(it->size, length);
        CHECK_EQUAL(30000, read.settings.IdleTimeoutMs);
    } else {
        CHECK_STATUS(QUIC_STATUS_BUFFER_TOO_SMALL, api->GetParam(NULL, QUIC_PARAM_GLOBAL_SETTINGS, &length, &read));
        CHECK_EQUAL(it->size ? SIZE_THROUGH(MtuDiscoveryMissingProbeCount) : sizeof(QUIC_SETTINGS), length);
    }
    /* Nothing is written behind the length. */
    for (size_t i = it->size; i < sizeof(read); i++) CHECK_EQUAL(0xa5, read.bytes[i]);
}

static void longer_settings_are_taken(const void *row) {
    (void)row;
    struct {
        QUIC_SETTINGS settings;
        uint64_t behind[4];
    } wanted = {.behind = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    uint32_t length = sizeof(wanted);
    SET(wanted.settings, IdleTimeoutMs, 777);
    CHECK_OK(api->SetParam(NULL, QUIC_PARAM_GLOBAL_SETTINGS, sizeof(wanted), &wanted));
    CHECK_OK(api->GetParam(NULL, QUIC_PARAM_GLOBAL_SETTINGS, &length, &wanted));
    CHECK_EQUAL(sizeof(QUIC_SETTINGS), length);
    CHECK_EQUAL(777, wanted.settings.IdleTimeoutMs);
}

/* Without any IsSet bit, neither the settings nor their size are looked at. */
static void no_bits_and_no_size(const void *row) {
    (void)row;
    QUIC_SETTINGS wanted = {.IsSetFlags = 0};
    QUIC_BUFFER alpn = alpn_buffer("suite");
    HQUIC registration = open_registration(), configuration = NULL;
    CHECK_OK(api->ConfigurationOpen(registration, &alpn, 1, &wanted, 0, NULL, &configuration));
    api->ConfigurationClose(configuration);
    api->RegistrationClose(registration);
}

/* ---- Settings that belong together ---- */

static void window_of_a_kind_of_streams_goes_before(const void *row) {
    (void)row;
    QUIC_SETTINGS wanted = {.IsSetFlags = 0};
    SET(wanted, StreamRecvWindowDefault, 1 << 20);
    SET(wanted, StreamRecvWindowBidiRemoteDefault, 1 << 18);
    HQUIC registration = open_registration();
    HQUIC configuration = open_configuration(registration, "suite", &wanted);
    QUIC_SETTINGS read = settings_of(configuration, QUIC_PARAM_CONFIGURATION_SETTINGS);
    CHECK_EQUAL(1 << 20, read.StreamRecvWindowDefault);
    CHECK_EQUAL(1 << 18, read.StreamRecvWindowBidiRemoteDefault);
    api->ConfigurationClose(configuration);
    api->RegistrationClose(registration);
}

static const struct mtu_row {
    const char *name;
    uint16_t minimum, maximum;
    QUIC_STATUS expected;
    uint16_t read_minimum, read_maximum;
} mtu_rows[] = {
    {"both", 1300, 1400, QUIC_STATUS_SUCCESS, 1300, 1400},
    {"equal", 1400, 1400, QUIC_STATUS_SUCCESS, 1400, 1400},
    {"reversed", 1400, 1300, QUIC_STATUS_INVALID_PARAMETER, 0, 0},
    {"too_small_is_raised", 100, 1400, QUIC_STATUS_SUCCESS, 1248, 1400},
    {"too_large_is_lowered", 1300, 65535, QUIC_STATUS_SUCCESS, 1300, 1500},
    {"both_too_small", 1, 2, QUIC_STATUS_SUCCESS, 1248, 1248},
};

static void mtu_pair(const void *row) {
    const struct mtu_row *it = row;
    QUIC_SETTINGS wanted = {.IsSetFlags = 0};
    QUIC_BUFFER alpn = alpn_buffer("suite");
    HQUIC registration = open_registration(), configuration = NULL;
    SET(wanted, MinimumMtu, it->minimum);
    SET(wanted, MaximumMtu, it->maximum);
    CHECK_STATUS(it->expected,
                 api->ConfigurationOpen(registration, &alpn, 1, &wanted, sizeof(wanted), NULL, &configuration));
    if (it->expected == QUIC_STATUS_SUCCESS) {
        QUIC_SETTINGS read = settings_of(configuration, QUIC_PARAM_CONFIGURATION_SETTINGS);
        CHECK_EQUAL(it->read_minimum, read.MinimumMtu);
        CHECK_EQUAL(it->read_maximum, read.MaximumMtu);
        api->ConfigurationClose(configuration);
    }
    api->RegistrationClose(registration);
}

/* The packets of a connection that has started have the size that they have, and the marks. */
static void connected_takes_no_such_setting(const void *row) {
    const use *it = row;
    QUIC_SETTINGS wanted = {.IsSetFlags = 0};
    pair *ends = usual_pair();
    it->of->put(&wanted, it->value);
    CHECK_STATUS(QUIC_STATUS_INVALID_PARAMETER,
                 api->SetParam(ends->client.handle, QUIC_PARAM_CONN_SETTINGS, sizeof(wanted), &wanted));
    close_pair(ends);
}

static void connected_takes_other_settings(const void *row) {
    (void)row;
    QUIC_SETTINGS wanted = {.IsSetFlags = 0};
    pair *it = usual_pair();
    SET(wanted, KeepAliveIntervalMs, 1000);
    SET(wanted, PeerBidiStreamCount, 20);
    CHECK_OK(api->SetParam(it->client.handle, QUIC_PARAM_CONN_SETTINGS, sizeof(wanted), &wanted));
    QUIC_SETTINGS read = settings_of(it->client.handle, QUIC_PARAM_CONN_SETTINGS);
    CHECK_EQUAL(1000, read.KeepAliveIntervalMs);
    CHECK_EQUAL(20, read.PeerBidiStreamCount);
    /* The server is allowed ten more streams, and told so. */
    CHECK_EQUAL(20, WAIT_EVENT(it->server, QUIC_CONNECTION_EVENT_STREAMS_AVAILABLE).code);
    close_pair(it);
}

static void declare_values(const setting *it) {
    static use uses[SETTINGS * 4 + 8];
    static size_t count;
    add_case(CASE_ORDINARY, has_its_default, it, "settings/%s/default", it->name);
    add_case(CASE_ORDINARY, is_left_without_its_bit, it, "settings/%s/without_bit", it->name);
    for (int i = 0; i < 2; i++) {
        uses[count] = (use){it, it->good[i]};
        add_case(CASE_ORDINARY, is_taken_by_a_configuration, &uses[count], "settings/%s/configuration_%d", it->name, i);
        add_case(CASE_ORDINARY, is_taken_everywhere, &uses[count], "settings/%s/global_%d", it->name, i);
        add_case(CASE_ORDINARY, is_taken_by_a_connection, &uses[count], "settings/%s/connection_%d", it->name, i);
        count++;
        if (it->bad[i] == NO_BOUND) continue;
        uses[count] = (use){it, it->bad[i]};
        add_case(CASE_ORDINARY, is_refused, &uses[count], "settings/%s/refused_%d", it->name, i);
        count++;
    }
    bool fixed = !strcmp(it->name, "MinimumMtu") || !strcmp(it->name, "MaximumMtu") || !strcmp(it->name, "EcnEnabled");
    if (fixed) {
        uses[count] = (use){it, it->good[1]};
        add_case(CASE_ORDINARY, connected_takes_no_such_setting, &uses[count++], "settings/%s/connected", it->name);
    }
}

void declare_settings(void) {
    for (size_t i = 0; i < SETTINGS; i++) declare_values(&settings[i]);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        add_case(CASE_ORDINARY, size_for_opening, &sizes[i], "settings/size/open_%u", sizes[i].size);
        add_case(CASE_ORDINARY, size_for_setting, &sizes[i], "settings/size/set_%u", sizes[i].size);
        add_case(CASE_ORDINARY, size_for_reading, &sizes[i], "settings/size/get_%u", sizes[i].size);
    }
    for (size_t i = 0; i < sizeof(mtu_rows) / sizeof(*mtu_rows); i++) {
        add_case(CASE_ORDINARY, mtu_pair, &mtu_rows[i], "settings/mtu/%s", mtu_rows[i].name);
    }
    add_case(CASE_ORDINARY, longer_settings_are_taken, NULL, "settings/size/longer");
    add_case(CASE_ORDINARY, no_bits_and_no_size, NULL, "settings/size/no_bits");
    add_case(CASE_ORDINARY, window_of_a_kind_of_streams_goes_before, NULL, "settings/windows");
    add_case(CASE_ORDINARY, connected_takes_other_settings, NULL, "settings/connected_takes_other_settings");
}
