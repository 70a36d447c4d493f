/*
 * What the cases of the suite share: how a case is declared, how it checks and waits, and objects that stand behind the
 * handles of a library for MsQuic's interface and write down every event.
 *
 * Every case runs in a process of its own, which loads the library, so that a crash takes one case down. The first check
 * that fails ends its process. Waits end when what they wait for has come; their limit is generous and there only so
 * that a case that hangs is reported.
 *
 * Rules that hold for all programs are checked for all cases, in the callbacks (see endpoints.c): no event after the last
 * one, none after a handle was closed, every send completed once and before its stream ends.
 */
#ifndef SUITE_H
#define SUITE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "msquic.h"
#include "msquicp.h"

/* The library's function table, open while a case runs, and the folder of certificates. */
extern const QUIC_API_TABLE *api;
extern const char *certificates;
/* Whether events are printed as they come. */
extern bool trace;

/* Opens the library once more, as another part of a program would. */
extern MsQuicOpenVersionFn open_version;
extern MsQuicCloseFn close_table;

/* ---- Cases ---- */

typedef void (*case_body)(const void *row);

enum case_traits {
    CASE_ORDINARY = 0,
    CASE_MAY_ABORT = 1,  /* A library may end the process with SIGABRT instead of answering. */
    CASE_UNOPENED = 2,   /* The case opens the library by itself. */
};

/* Declares a case that calls `body(row)`. */
__attribute__((format(printf, 4, 5)))
void add_case(enum case_traits traits, case_body body, const void *row, const char *name, ...);

#define CASE(body) add_case(CASE_ORDINARY, body, NULL, "%s", #body)

/* ---- Checks ---- */

__attribute__((noreturn, format(printf, 3, 4)))
void fail_at(const char *file, int line, const char *format, ...);

/* Ends the case as one that cannot run here, which is no failure. */
__attribute__((noreturn, format(printf, 1, 2)))
void skip_case(const char *format, ...);

const char *status_name(QUIC_STATUS status);
void check_status_at(const char *file, int line, const char *what, QUIC_STATUS expected, QUIC_STATUS actual);
void check_equal_at(const char *file, int line, const char *what, uint64_t expected, uint64_t actual);

#define CHECK(condition) ((condition) ? (void)0 : fail_at(__FILE__, __LINE__, "not so: %s", #condition))
#define CHECK_EQUAL(expected, actual) \
    check_equal_at(__FILE__, __LINE__, #actual, (uint64_t)(expected), (uint64_t)(actual))
#define CHECK_STATUS(expected, call) check_status_at(__FILE__, __LINE__, #call, (expected), (call))
#define CHECK_OK(call) CHECK_STATUS(QUIC_STATUS_SUCCESS, call)
#define CHECK_PENDING(call) CHECK_STATUS(QUIC_STATUS_PENDING, call)

/* ---- Waits ---- */

/* Guards everything that callbacks write down. */
extern pthread_mutex_t suite_lock;

void lock_suite(void);
void unlock_suite(void);
/* Something was written down: those who wait look again. Called with the lock held. */
void suite_changed(void);
/* Waits for a change; fails when nothing that is waited for comes for a very long time. Called with the lock held. */
void wait_for_change(const char *file, int line, const char *what);

#define WAIT_UNTIL(condition) \
    do { \
        lock_suite(); \
        while (!(condition)) wait_for_change(__FILE__, __LINE__, #condition); \
        unlock_suite(); \
    } while (0)

/* Lets time pass in which something wrong could happen. Nothing may depend on how long it is. */
void let_things_happen(unsigned milliseconds);

/* ---- Events ---- */

typedef struct event {
    uint32_t type;
    QUIC_STATUS status;
    uint64_t code;     /* An error code, an id or a length. */
    bool first;        /* The first flag of the event. */
    bool second;
    bool third;
    void *pointer;
} event;

enum { JOURNAL_LENGTH = 1024 };

typedef struct journal {
    event events[JOURNAL_LENGTH];
    unsigned count;
    bool over;   /* The last event has come. */
    bool closed; /* The handle was closed. */
} journal;

void journal_add(journal *of, event what);
/* How many events of a type there are; call without the lock. */
unsigned count_events(journal *of, uint32_t type);
/* Waits for the first event of a type and returns it. */
event wait_event_at(const char *file, int line, journal *of, uint32_t type, unsigned which);
/* The place of the first event of a type, -1 where there is none. */
int place_of(journal *of, uint32_t type);

#define WAIT_EVENT(object, type) wait_event_at(__FILE__, __LINE__, &(object)->events, (type), 1)
#define WAIT_EVENTS(object, type, count) wait_event_at(__FILE__, __LINE__, &(object)->events, (type), (count))
#define COUNT_EVENTS(object, type) count_events(&(object)->events, (type))
#define CHECK_NO_EVENT(object, type) CHECK_EQUAL(0, COUNT_EVENTS(object, type))
#define CHECK_ORDER(object, earlier, later) \
    CHECK(place_of(&(object)->events, earlier) >= 0 && \
          place_of(&(object)->events, earlier) < place_of(&(object)->events, later))

/* Memory that lives until the process ends. */
void *keep(size_t size);

#include "endpoints.h"
#include "areas.h"

#endif
