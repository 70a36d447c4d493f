/*
 * Godwit in a loop of one's own: epoll waits for the queue's descriptor, and for a timer that has nothing to do with it.
 *
 *     own_loop https://localhost:8443/ roots.pem
 *
 * Ten requests are under way at a time, told apart by their tags.
 */
#define _GNU_SOURCE
#include "godwit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { REQUESTS = 10 };

static godwit_error error = {.size = sizeof error};
static uint64_t received[REQUESTS];
static int left = REQUESTS;

static void check(godwit_status status) {
    if (status != GODWIT_OK) {
        fprintf(stderr, "%s: %s\n", godwit_status_name(status), error.message);
        exit(1);
    }
}

static void watch(int loop, int descriptor) {
    struct epoll_event event = {.events = EPOLLIN, .data = {.fd = descriptor}};
    if (epoll_ctl(loop, EPOLL_CTL_ADD, descriptor, &event) != 0) {
        perror("epoll_ctl");
        exit(1);
    }
}

/* Takes what there is, and does not wait. */
static void take(godwit_queue queue) {
    godwit_event events[8] = {{.size = sizeof events[0]}};
    uint64_t count = 0;
    check(godwit_queue_wait(queue, events, 8, 0, &count, &error));
    for (uint64_t i = 0; i < count; i++) {
        godwit_event *event = &events[i];
        if (event->kind == GODWIT_EVENT_BODY) {
            received[event->tag] += event->length;
        }
        if (event->kind == GODWIT_EVENT_FAILED) {
            fprintf(stderr, "request %u: %s\n", (unsigned)event->tag, event->error->message);
            exit(1);
        }
        if (event->kind == GODWIT_EVENT_END) {
            printf("request %u has %u bytes\n", (unsigned)event->tag, (unsigned)received[event->tag]);
            godwit_close(event->handle, NULL);
            left--;
        }
        check(godwit_event_release(event, &error));
    }
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: %s URL [ROOTS]\n", argv[0]);
        return 2;
    }
    godwit_queue queue = 0;
    check(godwit_queue_create(NULL, &queue, &error));
    godwit_client_options options = {.size = sizeof options};
    options.roots_file = argc > 2 ? argv[2] : NULL;
    godwit_client client = 0;
    check(godwit_client_create(queue, &options, 0, &client, &error));

    int32_t descriptor = -1;
    check(godwit_queue_descriptor(queue, &descriptor, &error));
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    struct itimerspec every = {{0, 10000000}, {0, 10000000}};
    timerfd_settime(timer, 0, &every, NULL);
    int loop = epoll_create1(EPOLL_CLOEXEC);
    watch(loop, descriptor);
    watch(loop, timer);

    for (uint64_t tag = 0; tag < REQUESTS; tag++) {
        godwit_request request = {.size = sizeof request, .url = argv[1]};
        godwit_exchange exchange = 0;
        check(godwit_client_request(client, &request, tag, &exchange, &error));
    }
    while (left > 0) {
        struct epoll_event ready[2];
        int count = epoll_wait(loop, ready, 2, -1);
        for (int i = 0; i < count; i++) {
            if (ready[i].data.fd == descriptor) {
                take(queue);
            } else {
                uint64_t ticks;
                if (read(timer, &ticks, sizeof ticks) != sizeof ticks) {
                    return 1;
                }
            }
        }
    }
    close(timer);
    close(loop);
    godwit_close(client, NULL);
    godwit_close(queue, NULL);
    return 0;
}
