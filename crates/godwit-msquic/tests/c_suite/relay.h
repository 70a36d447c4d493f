/* A relay of UDP datagrams on loopback between clients and a server, which loses what a case tells it to lose, and
 * looks at connection ids. */
#ifndef RELAY_H
#define RELAY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

typedef struct connection_id {
    uint8_t length; /* 255 if none was seen. */
    uint8_t bytes[20];
} connection_id;

typedef struct relay {
    uint16_t port;              /* Where clients send to. */
    uint16_t server;
    atomic_bool lose_to_server; /* Everything in this direction is lost. */
    atomic_bool lose_to_client;
    atomic_uint lose_next;      /* So many of the next ones to the server are lost. */
    atomic_bool move;           /* The next datagram to the server comes from another port. */
    atomic_uint passed;
    atomic_uint lost;
    atomic_uint readable; /* Datagrams with the beginning of a stream in them, to be read by anybody. */
    pthread_mutex_t guard;
    connection_id id_of_client; /* The Source Connection IDs of the newest long headers. */
    connection_id id_of_server;
    connection_id id_of_retry;  /* That of a Retry packet. */
} relay;

/* Starts a thread that relays until the process ends. */
relay *start_relay(uint16_t server);

/* One of the ids that it has seen. */
connection_id id_seen(relay *it, const connection_id *which);

#endif
