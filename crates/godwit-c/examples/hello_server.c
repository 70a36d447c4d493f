/*
 * Greets whoever asks, over HTTP/3, HTTP/2 and HTTP/1.1 on one port:
 *
 *     hello_server 127.0.0.1:8443 chain.pem key.pem [REQUESTS]
 *
 * With a number of requests it ends in good order when so many were answered.
 */
#include "godwit.h"

#include <stdio.h>
#include <stdlib.h>

static void check(godwit_status status, const godwit_error *error) {
    if (status != GODWIT_OK) {
        fprintf(stderr, "%s: %s\n", godwit_status_name(status), error->message);
        exit(1);
    }
}

static void answer(const godwit_event *event) {
    char text[512];
    int length = snprintf(text, sizeof text, "hello, you asked for %.400s\n", event->request->path);
    godwit_header type = godwit_header_of("content-type", "text/plain");
    godwit_response_options response = {.size = sizeof response, .status = 200, .body_mode = GODWIT_BODY_WHOLE};
    response.headers = &type;
    response.header_count = 1;
    response.body = text;
    response.body_length = (uint64_t)length;
    /* It fails if the client is gone; then GODWIT_EVENT_FAILED comes. */
    godwit_exchange_respond(event->handle, &response, NULL);
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: %s ADDRESS CHAIN KEY [REQUESTS]\n", argv[0]);
        return 2;
    }
    long left = argc > 4 ? atol(argv[4]) : -1;
    godwit_error error = {.size = sizeof error};
    godwit_queue queue = 0;
    check(godwit_queue_create(NULL, &queue, &error), &error);

    const char *addresses[] = {argv[1]};
    godwit_server_options options = {.size = sizeof options, .addresses = addresses, .address_count = 1};
    options.certificate_file = argv[2];
    options.key_file = argv[3];
    godwit_server server = 0;
    check(godwit_server_create(queue, &options, 0, &server, &error), &error);

    godwit_address address = {.size = sizeof address};
    uint64_t addresses_there = 0;
    check(godwit_server_addresses(server, &address, 1, &addresses_there, &error), &error);
    printf("listening at %s\n", address.text);
    fflush(stdout);

    for (int running = 1; running;) {
        godwit_event events[16] = {{.size = sizeof events[0]}};
        uint64_t count = 0;
        check(godwit_queue_wait(queue, events, 16, -1, &count, &error), &error);
        for (uint64_t i = 0; i < count; i++) {
            godwit_event *event = &events[i];
            switch (event->kind) {
            case GODWIT_EVENT_REQUEST:
                printf("%s %s over HTTP/%u\n", event->request->method, event->request->path,
                       event->request->protocol / 10);
                fflush(stdout);
                answer(event);
                break;
            case GODWIT_EVENT_FINISHED:
            case GODWIT_EVENT_FAILED:
                godwit_close(event->handle, NULL);
                if (left > 0 && --left == 0) {
                    check(godwit_server_shutdown(server, 2000, &error), &error);
                }
                break;
            case GODWIT_EVENT_SERVER_STOPPED:
                running = 0;
                break;
            default:
                break;
            }
            check(godwit_event_release(event, &error), &error);
        }
    }
    godwit_close(server, NULL);
    godwit_close(queue, NULL);
    return 0;
}
