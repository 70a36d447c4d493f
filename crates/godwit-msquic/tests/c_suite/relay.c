#include "suite.h"

#include "relay.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

static int socket_on_loopback(uint16_t *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int descriptor = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK(descriptor >= 0 && bind(descriptor, (struct sockaddr *)&address, sizeof(address)) == 0);
    CHECK(getsockname(descriptor, (struct sockaddr *)&address, &length) == 0);
    *port = ntohs(address.sin_port);
    return descriptor;
}

typedef struct ends {
    relay *of;
    int clients;
    int server;
    struct sockaddr_in client; /* Who has sent last: a relay has one client. */
} ends;

static bool is_lost(relay *it, bool to_server) {
    if (!to_server) return atomic_load(&it->lose_to_client);
    unsigned next = atomic_load(&it->lose_next);
    if (next) {
        atomic_store(&it->lose_next, next - 1);
        return true;
    }
    return atomic_load(&it->lose_to_server);
}

/* Bytes of the pattern that no ciphertext has by chance. */
enum { BEGINNING = 32 };

static bool is_readable(const uint8_t *datagram, size_t size) {
    for (size_t at = 0; at + BEGINNING <= size; at++) {
        size_t same = 0;
        while (same < BEGINNING && datagram[at + same] == pattern(same)) same++;
        if (same == BEGINNING) return true;
    }
    return false;
}

/* Notes the Source Connection ID of a long header (RFC 8999 section 5.1), the first in the datagram. */
static void look_at(relay *it, bool to_server, const uint8_t *datagram, size_t size) {
    if (size < 7 || !(datagram[0] & 0x80)) return;
    size_t at = 6 + (size_t)datagram[5];
    if (at >= size || datagram[at] > 20 || at + 1 + datagram[at] > size) return;
    connection_id seen = {.length = datagram[at]};
    memcpy(seen.bytes, datagram + at + 1, seen.length);
    bool is_retry = (datagram[0] & 0x30) == 0x30;
    pthread_mutex_lock(&it->guard);
    *(to_server ? &it->id_of_client : is_retry ? &it->id_of_retry : &it->id_of_server) = seen;
    pthread_mutex_unlock(&it->guard);
}

connection_id id_seen(relay *it, const connection_id *which) {
    pthread_mutex_lock(&it->guard);
    connection_id seen = *which;
    pthread_mutex_unlock(&it->guard);
    return seen;
}

static void pass(ends *it, bool to_server) {
    uint8_t datagram[65536];
    struct sockaddr_in from, to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(from);
    ssize_t size = recvfrom(to_server ? it->clients : it->server, datagram, sizeof(datagram), 0,
                            (struct sockaddr *)&from, &length);
    if (size < 0) return;
    if (to_server) it->client = from;
    if (is_readable(datagram, (size_t)size)) atomic_fetch_add(&it->of->readable, 1);
    look_at(it->of, to_server, datagram, (size_t)size);
    if (is_lost(it->of, to_server)) {
        atomic_fetch_add(&it->of->lost, 1);
        return;
    }
    if (to_server && atomic_exchange(&it->of->move, false)) {
        uint16_t port;
        close(it->server);
        it->server = socket_on_loopback(&port);
    }
    to.sin_port = htons(it->of->server);
    if (!to_server) to = it->client;
    sendto(to_server ? it->server : it->clients, datagram, (size_t)size, 0, (struct sockaddr *)&to, sizeof(to));
    atomic_fetch_add(&it->of->passed, 1);
}

static void *relay_all(void *context) {
    ends *it = context;
    for (;;) {
        struct pollfd waiting[2] = {{.fd = it->clients, .events = POLLIN}, {.fd = it->server, .events = POLLIN}};
        if (poll(waiting, 2, -1) <= 0) continue;
        if (waiting[1].revents) pass(it, false);
        if (waiting[0].revents) pass(it, true);
    }
    return NULL;
}

relay *start_relay(uint16_t server) {
    pthread_t thread;
    uint16_t port;
    relay *it = keep(sizeof(*it));
    ends *sides = keep(sizeof(*sides));
    it->server = server;
    pthread_mutex_init(&it->guard, NULL);
    it->id_of_client.length = it->id_of_server.length = it->id_of_retry.length = 255;
    sides->of = it;
    sides->clients = socket_on_loopback(&it->port);
    sides->server = socket_on_loopback(&port);
    CHECK(pthread_create(&thread, NULL, relay_all, sides) == 0);
    pthread_detach(thread);
    return it;
}
