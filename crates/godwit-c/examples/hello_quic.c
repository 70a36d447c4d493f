/*
 * QUIC without HTTP: a server that sends back what it gets, and a client that asks it, moves to another address, asks again,
 * and tells what was counted:
 *
 *     hello_quic chain.pem key.pem
 *
 * Both are in one program and share a queue; tags tell which of them an event is for.
 */
#include "godwit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SERVER = 1, CLIENT = 2 };

static godwit_error error = {.size = sizeof error};
static godwit_connection connection;
static int asked;

static void check(godwit_status status) {
    if (status != GODWIT_OK) {
        fprintf(stderr, "%s: %s\n", godwit_status_name(status), error.message);
        exit(1);
    }
}

static void ask(const char *text) {
    godwit_stream stream = 0;
    check(godwit_connection_open(connection, 0, CLIENT, &stream, &error));
    check(godwit_stream_send(stream, text, strlen(text), GODWIT_SEND_END, 0, &error));
    asked++;
}

/* The server sends everything back on the stream that it came on. */
static void serve(const godwit_event *event) {
    if (event->kind == GODWIT_EVENT_RECEIVED) {
        uint32_t flags = event->flags & GODWIT_EVENT_FLAG_END ? GODWIT_SEND_END : 0;
        godwit_stream_send(event->handle, event->data, event->length, flags, 0, NULL);
    }
    if (event->kind == GODWIT_EVENT_STREAM_FINISHED || event->kind == GODWIT_EVENT_CONNECTION_CLOSED) {
        godwit_close(event->handle, NULL);
    }
    if (event->kind == GODWIT_EVENT_DATAGRAM) {
        godwit_connection_send_datagram(event->handle, event->data, event->length, 0, 0, NULL);
    }
}

static void tell_statistics(void) {
    godwit_statistics statistics = {.size = sizeof statistics};
    check(godwit_connection_statistics(connection, &statistics, &error));
    printf("%u datagrams sent, %u received, %u streams opened\n", (unsigned)statistics.udp_datagrams_sent,
           (unsigned)statistics.udp_datagrams_received, (unsigned)statistics.streams_opened);
}

/* 0 when all is done. */
static int use(const godwit_event *event) {
    switch (event->kind) {
    case GODWIT_EVENT_CONNECTED:
        printf("connected to %s with %s\n", event->connection->remote_address, event->connection->alpn);
        ask("hello over QUIC\n");
        break;
    case GODWIT_EVENT_RECEIVED:
        fwrite(event->data, 1, (size_t)event->length, stdout);
        if ((event->flags & GODWIT_EVENT_FLAG_END) == 0) {
            break;
        }
        godwit_close(event->handle, NULL);
        if (asked == 1) {
            check(godwit_connection_migrate(connection, "127.0.0.2:0", &error));
        } else {
            check(godwit_connection_send_datagram(connection, "datagram", 8, 0, 0, &error));
        }
        break;
    case GODWIT_EVENT_PATH:
        if (event->path->state == GODWIT_PATH_ACTIVE && asked == 1) {
            printf("moved to %s\n", event->path->local_address);
            ask("hello from elsewhere\n");
        }
        break;
    case GODWIT_EVENT_DATAGRAM:
        printf("a %s came back\n", (const char *)"datagram");
        tell_statistics();
        check(godwit_connection_shutdown(connection, 7, "done", &error));
        break;
    case GODWIT_EVENT_CONNECTION_CLOSED:
        printf("closed: %s\n", event->error->message);
        return 0;
    default:
        break;
    }
    return 1;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: %s CHAIN KEY\n", argv[0]);
        return 2;
    }
    godwit_queue queue = 0;
    check(godwit_queue_create(NULL, &queue, &error));

    const char *alpn[] = {"echo"};
    godwit_transport_options transport = {.size = sizeof transport, .flags = GODWIT_TRANSPORT_DATAGRAMS};
    godwit_endpoint_options options = {.size = sizeof options, .address = "127.0.0.1:0"};
    options.certificate_file = argv[1];
    options.key_file = argv[2];
    options.alpn = alpn;
    options.alpn_count = 1;
    options.transport = &transport;
    godwit_endpoint server = 0;
    check(godwit_endpoint_create(queue, &options, SERVER, &server, &error));
    godwit_address address = {.size = sizeof address};
    check(godwit_endpoint_address(server, &address, &error));

    /* Bound to all addresses, so that connections can move among them. */
    godwit_endpoint_options client_options = {.size = sizeof client_options, .address = "0.0.0.0:0"};
    godwit_endpoint client = 0;
    check(godwit_endpoint_create(queue, &client_options, CLIENT, &client, &error));
    godwit_connect_options connect = {.size = sizeof connect, .address = address.text, .server_name = "localhost"};
    connect.alpn = alpn;
    connect.alpn_count = 1;
    connect.roots_file = argv[1];
    connect.flags = GODWIT_CONNECT_ONLY_ROOTS_FILE;
    connect.transport = &transport;
    check(godwit_endpoint_connect(client, &connect, CLIENT, &connection, &error));

    for (int running = 1; running;) {
        godwit_event events[16] = {{.size = sizeof events[0]}};
        uint64_t count = 0;
        check(godwit_queue_wait(queue, events, 16, -1, &count, &error));
        for (uint64_t i = 0; i < count; i++) {
            if (events[i].tag == SERVER) {
                serve(&events[i]);
            } else if (!use(&events[i])) {
                running = 0;
            }
            check(godwit_event_release(&events[i], &error));
        }
    }
    godwit_close(connection, NULL);
    godwit_close(client, NULL);
    godwit_close(server, NULL);
    godwit_close(queue, NULL);
    return 0;
}
