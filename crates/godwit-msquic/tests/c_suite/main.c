/*
 * The suite as a program: finds the cases that were asked for and runs each in a process of its own.
 *
 *     c_suite [--list] [--filter WORDS] [--library PATH] [--certs DIR] [--jobs N] [--trace]
 *
 * A case runs when its name has all the WORDS. For each case there is a line `ok N - NAME` or `not ok N - NAME`, what the
 * case printed follows as comments, and with --trace every event. The program ends with status 0 if all passed, and 2 if it could not begin.
 */
#include "suite.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A case that takes longer than this hangs: waits inside end much earlier. */
enum { LIMIT_SECONDS = 60, MOST_JOBS = 64, SKIPPED = 77 };

const QUIC_API_TABLE *api;
const char *certificates = "certificates";
bool trace;
MsQuicOpenVersionFn open_version;
MsQuicCloseFn close_table;

typedef struct suite_case {
    char name[120];
    enum case_traits traits;
    case_body body;
    const void *row;
} suite_case;

static suite_case *cases;
static size_t case_count, case_capacity;
static const char *library = "libmsquic.so";

typedef struct running {
    pid_t process;
    size_t number;
    FILE *output;
    time_t since;
} running;

static struct {
    size_t passed, failed, skipped;
} totals;

void add_case(enum case_traits traits, case_body body, const void *row, const char *name, ...) {
    if (case_count == case_capacity) {
        case_capacity = case_capacity ? case_capacity * 2 : 1024;
        cases = realloc(cases, case_capacity * sizeof(*cases));
        if (!cases) exit(2);
    }
    suite_case *it = &cases[case_count++];
    va_list arguments;
    va_start(arguments, name);
    vsnprintf(it->name, sizeof(it->name), name, arguments);
    va_end(arguments);
    it->traits = traits;
    it->body = body;
    it->row = row;
}

static bool load_library(void) {
    void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!loaded) {
        fprintf(stderr, "cannot load the library: %s\n", dlerror());
        return false;
    }
    *(void **)&open_version = dlsym(loaded, "MsQuicOpenVersion");
    *(void **)&close_table = dlsym(loaded, "MsQuicClose");
    if (!open_version || !close_table) fprintf(stderr, "%s has no MsQuicOpenVersion or no MsQuicClose\n", library);
    return open_version && close_table;
}

/* The process of one case. */
static void run_case(const suite_case *it) {
    if (!load_library()) _exit(1);
    if (!(it->traits & CASE_UNOPENED)) {
        QUIC_STATUS status = open_version(QUIC_API_VERSION_2, (const void **)&api);
        if (QUIC_FAILED(status)) {
            fprintf(stderr, "MsQuicOpenVersion: %s (%u)\n", status_name(status), status);
            _exit(1);
        }
    }
    it->body(it->row);
    if (api) close_table(api);
    exit(0);
}

static running start_case(size_t number) {
    running it = {.number = number, .output = tmpfile(), .since = time(NULL)};
    if (!it.output) {
        perror("tmpfile");
        exit(2);
    }
    fflush(NULL);
    it.process = fork();
    if (it.process < 0) {
        perror("fork");
        exit(2);
    }
    if (it.process == 0) {
        dup2(fileno(it.output), STDOUT_FILENO);
        dup2(fileno(it.output), STDERR_FILENO);
        run_case(&cases[number]);
    }
    return it;
}

static void print_output(FILE *output) {
    char line[1024];
    rewind(output);
    while (fgets(line, sizeof(line), output)) printf("    # %s%s", line, strchr(line, '\n') ? "" : "\n");
    fclose(output);
}

static void report(running *it, int status) {
    const suite_case *of = &cases[it->number];
    bool aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && of->traits & CASE_MAY_ABORT;
    bool skipped = WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED;
    bool passed = (WIFEXITED(status) && WEXITSTATUS(status) == 0) || aborted;
    totals.passed += passed;
    totals.skipped += skipped;
    totals.failed += !passed && !skipped;
    printf("%s %zu - %s%s\n", passed || skipped ? "ok" : "not ok", it->number + 1, of->name,
           skipped ? " # SKIP" : "");
    if (passed && !trace) {
        fclose(it->output);
        return;
    }
    if (WIFSIGNALED(status)) {
        printf("    # ended by signal %d (%s)%s\n", WTERMSIG(status), strsignal(WTERMSIG(status)),
               WTERMSIG(status) == SIGKILL ? ", as after the limit" : "");
    }
    print_output(it->output);
}

static void end_those_that_hang(running *at_work, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (time(NULL) - at_work[i].since > LIMIT_SECONDS) kill(at_work[i].process, SIGKILL);
    }
}

/* Waits for one of the cases at work, reports it and takes it out. */
static void reap_one(running *at_work, size_t *count) {
    for (;;) {
        for (size_t i = 0; i < *count; i++) {
            int status;
            if (waitpid(at_work[i].process, &status, WNOHANG) == at_work[i].process) {
                report(&at_work[i], status);
                at_work[i] = at_work[--*count];
                return;
            }
        }
        end_those_that_hang(at_work, *count);
        let_things_happen(1);
    }
}

static bool asked_for(const char *name, const char *words) {
    char copy[1024];
    snprintf(copy, sizeof(copy), "%s", words);
    for (char *rest = copy, *word; (word = strtok_r(rest, " ,", &rest));) {
        if (!strstr(name, word)) return false;
    }
    return true;
}

static void run_all(const char *words, size_t jobs) {
    running at_work[MOST_JOBS];
    size_t count = 0;
    for (size_t i = 0; i < case_count; i++) {
        if (!asked_for(cases[i].name, words)) continue;
        if (count == jobs) reap_one(at_work, &count);
        at_work[count++] = start_case(i);
        fflush(stdout);
    }
    while (count) reap_one(at_work, &count);
    printf("# %zu cases: %zu passed, %zu failed, %zu skipped\n", totals.passed + totals.failed + totals.skipped,
           totals.passed, totals.failed, totals.skipped);
}

int main(int count, char **arguments) {
    const char *words = "";
    bool list = false;
    size_t jobs = 1;
    for (int i = 1; i < count; i++) {
        const char *value = i + 1 < count ? arguments[i + 1] : NULL;
        if (!strcmp(arguments[i], "--list")) { list = true; continue; }
        if (!strcmp(arguments[i], "--trace")) { trace = true; continue; }
        if (value && !strcmp(arguments[i], "--filter")) words = value;
        else if (value && !strcmp(arguments[i], "--library")) library = value;
        else if (value && !strcmp(arguments[i], "--certs")) certificates = value;
        else if (value && !strcmp(arguments[i], "--jobs")) jobs = strtoul(value, NULL, 10);
        else {
            fprintf(stderr, "c_suite [--list] [--filter WORDS] [--library PATH] [--certs DIR] [--jobs N] [--trace]\n");
            return 2;
        }
        i++;
    }
    if (jobs < 1 || jobs > MOST_JOBS) jobs = 1;
    declare_all_areas();
    if (list) {
        for (size_t i = 0; i < case_count; i++) {
            if (asked_for(cases[i].name, words)) printf("%s\n", cases[i].name);
        }
        return 0;
    }
    if (access(library, R_OK) != 0) {
        fprintf(stderr, "there is no library %s\n", library);
        return 2;
    }
    run_all(words, jobs);
    return totals.failed || !(totals.passed + totals.skipped) ? 1 : 0;
}
