/* A relay of UDP datagrams on loopback between clients and a server, which loses what a case tells it to lose. */
#ifndef RELAY_H
#define RELAY_H

#include <stdatomic.h>

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
} relay;

/* Starts a thread that relays until the process ends. */
relay *start_relay(uint16_t server);

#endif
