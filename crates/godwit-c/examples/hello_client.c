/*
 * Fetches a URL and prints what comes:
 *
 *     hello_client https://localhost:8443/ roots.pem
 *
 * The second argument, a file of certificates to trust besides the system's, may be left out.
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

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: %s URL [ROOTS]\n", argv[0]);
        return 2;
    }
    godwit_error error = {.size = sizeof error};
    godwit_queue queue = 0;
    check(godwit_queue_create(NULL, &queue, &error), &error);

    godwit_client_options options = {.size = sizeof options};
    options.roots_file = argc > 2 ? argv[2] : NULL;
    godwit_client client = 0;
    check(godwit_client_create(queue, &options, 0, &client, &error), &error);

    godwit_header accept = godwit_header_of("accept", "text/plain");
    godwit_request request = {.size = sizeof request, .url = argv[1], .headers = &accept, .header_count = 1};
    godwit_exchange exchange = 0;
    check(godwit_client_request(client, &request, 1, &exchange, &error), &error);

    int result = 1;
    for (int running = 1; running;) {
        godwit_event event = {.size = sizeof event};
        uint64_t count = 0;
        check(godwit_queue_wait(queue, &event, 1, -1, &count, &error), &error);
        if (count == 0) {
            continue;
        }
        switch (event.kind) {
        case GODWIT_EVENT_RESPONSE:
            printf("status %u over HTTP/%u from %s\n", event.response->status, event.response->protocol / 10,
                   event.response->remote_address);
            break;
        case GODWIT_EVENT_BODY:
            fwrite(event.data, 1, (size_t)event.length, stdout);
            break;
        case GODWIT_EVENT_END:
            godwit_client_shutdown(client, NULL);
            result = 0;
            break;
        case GODWIT_EVENT_FAILED:
            fprintf(stderr, "%s: %s\n", godwit_status_name(event.status), event.error->message);
            running = 0;
            break;
        case GODWIT_EVENT_CLIENT_STOPPED:
            running = 0;
            break;
        default:
            break;
        }
        check(godwit_event_release(&event, &error), &error);
    }
    godwit_close(exchange, NULL);
    godwit_close(client, NULL);
    godwit_close(queue, NULL);
    return result;
}
