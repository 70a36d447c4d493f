/* Registrations, configurations, credentials, addresses: what cases are made of. */
#include "suite.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

HQUIC open_registration(void) {
    QUIC_REGISTRATION_CONFIG config = {"c_suite", QUIC_EXECUTION_PROFILE_LOW_LATENCY};
    HQUIC registration = NULL;
    CHECK_OK(api->RegistrationOpen(&config, &registration));
    CHECK(registration);
    return registration;
}

QUIC_BUFFER alpn_buffer(const char *name) { return (QUIC_BUFFER){(uint32_t)strlen(name), (uint8_t *)name}; }

HQUIC open_configuration(HQUIC registration, const char *alpn, const QUIC_SETTINGS *settings) {
    QUIC_BUFFER buffer = alpn_buffer(alpn);
    HQUIC configuration = NULL;
    CHECK_OK(api->ConfigurationOpen(
        registration, &buffer, 1, settings, settings ? sizeof(*settings) : 0, NULL, &configuration));
    CHECK(configuration);
    return configuration;
}

char *certificate_path(const char *name, const char *ending) {
    size_t length = strlen(certificates) + strlen(name) + strlen(ending) + 2;
    char *path = keep(length);
    snprintf(path, length, "%s/%s%s", certificates, name, ending);
    return path;
}

QUIC_STATUS load_server_credential(HQUIC configuration, const char *name, QUIC_CREDENTIAL_FLAGS flags) {
    QUIC_CERTIFICATE_FILE file = {certificate_path(name, ".key"), certificate_path(name, ".pem")};
    QUIC_CREDENTIAL_CONFIG config = {
        .Type = QUIC_CREDENTIAL_TYPE_CERTIFICATE_FILE, .Flags = flags, .CertificateFile = &file};
    return api->ConfigurationLoadCredential(configuration, &config);
}

HQUIC server_configuration(HQUIC registration, const char *alpn, const QUIC_SETTINGS *settings) {
    HQUIC configuration = open_configuration(registration, alpn, settings);
    CHECK_OK(load_server_credential(configuration, "server", QUIC_CREDENTIAL_FLAG_NONE));
    return configuration;
}

HQUIC client_configuration(HQUIC registration, const char *alpn, const QUIC_SETTINGS *settings) {
    HQUIC configuration = open_configuration(registration, alpn, settings);
    QUIC_CREDENTIAL_CONFIG config = {
        .Type = QUIC_CREDENTIAL_TYPE_NONE,
        .Flags = QUIC_CREDENTIAL_FLAG_CLIENT | QUIC_CREDENTIAL_FLAG_NO_CERTIFICATE_VALIDATION};
    CHECK_OK(api->ConfigurationLoadCredential(configuration, &config));
    return configuration;
}

QUIC_ADDR loopback(uint16_t port) {
    QUIC_ADDR address;
    memset(&address, 0, sizeof(address));
    address.Ipv4.sin_family = AF_INET;
    address.Ipv4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.Ipv4.sin_port = htons(port);
    return address;
}

QUIC_ADDR loopback6(uint16_t port) {
    QUIC_ADDR address;
    memset(&address, 0, sizeof(address));
    address.Ipv6.sin6_family = AF_INET6;
    address.Ipv6.sin6_addr = in6addr_loopback;
    address.Ipv6.sin6_port = htons(port);
    return address;
}

/* Both families have the port in the same place. */
uint16_t port_of(const QUIC_ADDR *address) { return ntohs(address->Ipv4.sin_port); }

uint16_t listener_port(HQUIC listener) {
    QUIC_ADDR address;
    uint32_t length = sizeof(address);
    CHECK_OK(api->GetParam(listener, QUIC_PARAM_LISTENER_LOCAL_ADDRESS, &length, &address));
    CHECK(port_of(&address) != 0);
    return port_of(&address);
}

uint16_t dead_port(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    /* The socket stays open, without anybody who reads from it, so that nobody else gets the port. */
    int descriptor = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK(descriptor >= 0 && bind(descriptor, (struct sockaddr *)&address, sizeof(address)) == 0);
    CHECK(getsockname(descriptor, (struct sockaddr *)&address, &length) == 0);
    return ntohs(address.sin_port);
}

int64_t performance_counter(QUIC_PERFORMANCE_COUNTERS which) {
    int64_t counters[QUIC_PERF_COUNTER_MAX] = {0};
    uint32_t length = sizeof(counters);
    CHECK_OK(api->GetParam(NULL, QUIC_PARAM_GLOBAL_PERF_COUNTERS, &length, counters));
    return counters[which];
}
