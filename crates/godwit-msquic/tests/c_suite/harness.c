/* Checks, waits and the journal of events. */
#include "suite.h"

#include <errno.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

/* How long a wait goes on without anything being written down. */
enum { LIMIT_SECONDS = 30 };

pthread_mutex_t suite_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;

void fail_at(const char *file, int line, const char *format, ...) {
    va_list arguments;
    const char *name = strrchr(file, '/');
    dprintf(STDERR_FILENO, "%s:%d: ", name ? name + 1 : file, line);
    va_start(arguments, format);
    vdprintf(STDERR_FILENO, format, arguments);
    va_end(arguments);
    dprintf(STDERR_FILENO, "\n");
    _exit(1);
}

void skip_case(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vdprintf(STDERR_FILENO, format, arguments);
    va_end(arguments);
    dprintf(STDERR_FILENO, "\n");
    _exit(77);
}

static const struct {
    QUIC_STATUS status;
    const char *name;
} status_names[] = {
#define STATUS(name) {QUIC_STATUS_##name, #name}
    STATUS(SUCCESS), STATUS(PENDING), STATUS(CONTINUE), STATUS(OUT_OF_MEMORY), STATUS(INVALID_PARAMETER),
    STATUS(INVALID_STATE), STATUS(NOT_SUPPORTED), STATUS(NOT_FOUND), STATUS(BUFFER_TOO_SMALL),
    STATUS(HANDSHAKE_FAILURE), STATUS(ABORTED), STATUS(ADDRESS_IN_USE), STATUS(INVALID_ADDRESS),
    STATUS(CONNECTION_TIMEOUT), STATUS(CONNECTION_IDLE), STATUS(INTERNAL_ERROR), STATUS(CONNECTION_REFUSED),
    STATUS(PROTOCOL_ERROR), STATUS(VER_NEG_ERROR), STATUS(UNREACHABLE), STATUS(TLS_ERROR), STATUS(USER_CANCELED),
    STATUS(ALPN_NEG_FAILURE), STATUS(STREAM_LIMIT_REACHED), STATUS(ALPN_IN_USE), STATUS(ADDRESS_NOT_AVAILABLE),
    STATUS(CLOSE_NOTIFY), STATUS(BAD_CERTIFICATE), STATUS(UNSUPPORTED_CERTIFICATE), STATUS(REVOKED_CERTIFICATE),
    STATUS(EXPIRED_CERTIFICATE), STATUS(UNKNOWN_CERTIFICATE), STATUS(REQUIRED_CERTIFICATE), STATUS(CERT_EXPIRED),
    STATUS(CERT_UNTRUSTED_ROOT), STATUS(CERT_NO_CERT),
#undef STATUS
};

const char *status_name(QUIC_STATUS status) {
    for (size_t i = 0; i < sizeof(status_names) / sizeof(*status_names); i++) {
        if (status_names[i].status == status) return status_names[i].name;
    }
    return "a status without a name";
}

void check_status_at(const char *file, int line, const char *what, QUIC_STATUS expected, QUIC_STATUS actual) {
    if (expected == actual) return;
    fail_at(file, line, "%s: expected %s (%d), came %s (%d)", what, status_name(expected), (int)expected,
            status_name(actual), (int)actual);
}

void check_equal_at(const char *file, int line, const char *what, uint64_t expected, uint64_t actual) {
    if (expected == actual) return;
    fail_at(file, line, "%s: expected %llu (0x%llx), came %llu (0x%llx)", what, (unsigned long long)expected,
            (unsigned long long)expected, (unsigned long long)actual, (unsigned long long)actual);
}

/* The condition counts in time that nobody sets. */
static void prepare(void) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

void lock_suite(void) {
    pthread_once(&prepared, prepare);
    pthread_mutex_lock(&suite_lock);
}

void unlock_suite(void) { pthread_mutex_unlock(&suite_lock); }

void suite_changed(void) { pthread_cond_broadcast(&changed); }

void wait_for_change(const char *file, int line, const char *what) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += LIMIT_SECONDS;
    if (pthread_cond_timedwait(&changed, &suite_lock, &until) == ETIMEDOUT) {
        fail_at(file, line, "nothing happened for %d seconds while waiting for: %s", LIMIT_SECONDS, what);
    }
}

void let_things_happen(unsigned milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    nanosleep(&time, NULL);
}

void journal_add(journal *of, event what) {
    lock_suite();
    if (of->closed) fail_at(__FILE__, __LINE__, "event %u came after the handle was closed", what.type);
    if (of->over) fail_at(__FILE__, __LINE__, "event %u came after the last one", what.type);
    if (of->count == JOURNAL_LENGTH) fail_at(__FILE__, __LINE__, "there are more events than a case expects");
    of->events[of->count++] = what;
    suite_changed();
    unlock_suite();
}

static event *find(journal *of, uint32_t type, unsigned which) {
    for (unsigned i = 0; i < of->count; i++) {
        if (of->events[i].type == type && --which == 0) return &of->events[i];
    }
    return NULL;
}

unsigned count_events(journal *of, uint32_t type) {
    unsigned count = 0;
    lock_suite();
    for (unsigned i = 0; i < of->count; i++) count += of->events[i].type == type;
    unlock_suite();
    return count;
}

int place_of(journal *of, uint32_t type) {
    lock_suite();
    event *found = find(of, type, 1);
    int place = found ? (int)(found - of->events) : -1;
    unlock_suite();
    return place;
}

event wait_event_at(const char *file, int line, journal *of, uint32_t type, unsigned which) {
    char what[64];
    snprintf(what, sizeof(what), "event %u, number %u", type, which);
    lock_suite();
    while (!find(of, type, which)) wait_for_change(file, line, what);
    event found = *find(of, type, which);
    unlock_suite();
    return found;
}

/* What was handed out stands in a list, so that tools that look for lost memory find it in use. */
static struct kept {
    struct kept *next;
    max_align_t memory[];
} *all_kept;

void *keep(size_t size) {
    struct kept *it = calloc(1, sizeof(*it) + size);
    if (!it) fail_at(__FILE__, __LINE__, "no memory");
    lock_suite();
    it->next = all_kept;
    all_kept = it;
    unlock_suite();
    return it->memory;
}
