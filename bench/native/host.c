/* A host that measures calls: host ORDERS, or as a library, bench_start(ORDERS). The orders are
 * separated by spaces: warm:CALLS, calls:THREADS:EACH, abort:ROUNDS, memory:CALLS. */
#include "measure.h"
#include "plue.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

PLUE_API int bench_start(const char *orders);
PLUE_API int bench_status(void);

static atomic_int status = -1;
static atomic_int failures;

/* ------------------------------------------------------------------------------------ calls */

struct caller {
    int id;
    size_t calls;
    uint64_t *durations;
};

static void *call_often(void *argument) {
    struct caller *caller = argument;
    char params[64];
    for (size_t i = 0; i < caller->calls; i++) {
        snprintf(params, sizeof params, "{\"thread\":%d,\"i\":%zu}", caller->id, i);
        uint64_t before = now_ns();
        char *json = plue_tool_execute("echo", params, NULL);
        caller->durations[i] = now_ns() - before;
        if (strcmp(json, params) != 0 && atomic_fetch_add(&failures, 1) == 0) {
            fprintf(stderr, "got %s\n", json);
        }
        plue_free_json(json);
    }
    return NULL;
}

static void measure_calls(const char *name, int threads, size_t calls) {
    pthread_t ids[64];
    struct caller callers[64];
    uint64_t *durations = malloc((size_t)threads * calls * sizeof *durations);
    uint64_t start = now_ns();
    for (int i = 0; i < threads; i++) {
        callers[i] = (struct caller){i, calls, durations + (size_t)i * calls};
        pthread_create(&ids[i], NULL, call_often, &callers[i]);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
    }
    report(name, durations, (size_t)threads * calls, now_ns() - start);
    free(durations);
}

/* ----------------------------------------------------------------------------------- aborts */

struct aborter {
    plue_abort_signal_t *signal;
    uint64_t at_ns;
};

static void *abort_soon(void *argument) {
    struct aborter *aborter = argument;
    struct timespec pause = {0, 2000000};
    nanosleep(&pause, NULL);
    aborter->at_ns = now_ns();
    plue_abort_signal_abort(aborter->signal, "stop");
    return NULL;
}

/** From abort() to the return of the call, through the tool, which stops immediately. */
static void measure_aborts(size_t rounds) {
    uint64_t *durations = malloc(rounds * sizeof *durations);
    uint64_t start = now_ns();
    for (size_t i = 0; i < rounds; i++) {
        struct aborter aborter = {plue_abort_signal_new(), 0};
        plue_tool_context_t context = {NULL, NULL, aborter.signal, NULL, NULL};
        pthread_t thread;
        pthread_create(&thread, NULL, abort_soon, &aborter);
        char *json = plue_tool_execute("sleep", "{\"ms\":60000}", &context);
        uint64_t end = now_ns();
        pthread_join(thread, NULL);
        durations[i] = end - aborter.at_ns;
        failures += strstr(json, "\"aborted\"") == NULL;
        plue_free_json(json);
        plue_abort_signal_release(aborter.signal);
    }
    report("abort", durations, rounds, now_ns() - start);
    free(durations);
}

/* ----------------------------------------------------------------------------------- memory */

static long resident_kb(void) {
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long kb = -1;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "VmRSS:", 6) == 0) {
            kb = atol(line + 6);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kb;
}

/** The growth of the host's process over many calls, after as many to warm up. */
static void measure_memory(size_t calls) {
    uint64_t unused;
    struct caller caller = {0, 1, &unused};
    long before = 0;
    for (size_t i = 0; i < 2 * calls; i++) {
        before = i == calls ? resident_kb() : before;
        call_often(&caller);
    }
    printf("{\"name\":\"memory\",\"calls\":%zu,\"grownKb\":%ld}\n", calls, resident_kb() - before);
    fflush(stdout);
}

/* ------------------------------------------------------------------------------------------- */

static void obey(const char *order) {
    int threads = 0;
    size_t count = 0;
    if (sscanf(order, "calls:%d:%zu", &threads, &count) == 2 && threads > 0 && threads <= 64) {
        char name[32];
        snprintf(name, sizeof name, "calls:%d", threads);
        measure_calls(name, threads, count);
    } else if (sscanf(order, "warm:%zu", &count) == 1) {
        measure_calls("warm", 1, count);
    } else if (sscanf(order, "abort:%zu", &count) == 1) {
        measure_aborts(count);
    } else if (sscanf(order, "memory:%zu", &count) == 1) {
        measure_memory(count);
    } else {
        fprintf(stderr, "no such order: %s\n", order);
        failures++;
    }
}

static char orders_buffer[1000];

static void *obey_all(void *unused) {
    char *rest = NULL;
    for (char *order = strtok_r(orders_buffer, " ", &rest); order != NULL;
         order = strtok_r(NULL, " ", &rest)) {
        obey(order);
    }
    atomic_store(&status, atomic_load(&failures) != 0);
    return unused;
}

int bench_start(const char *orders) {
    snprintf(orders_buffer, sizeof orders_buffer, "%s", orders);
    pthread_t thread;
    return pthread_create(&thread, NULL, obey_all, NULL) == 0 ? pthread_detach(thread) : -1;
}

int bench_status(void) {
    return atomic_load(&status);
}

int main(int count, char **arguments) {
    snprintf(orders_buffer, sizeof orders_buffer, "%s", count > 1 ? arguments[1] : "");
    obey_all(NULL);
    plue_shutdown();
    return bench_status();
}
