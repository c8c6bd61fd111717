#include "suite.h"

#include "check.h"
#include "plue.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------ basic */

static void test_list(void) {
    char *json = plue_tool_list();
    CHECK(json[0] == '[', "%.100s", json);
    CHECK(contains(json, "\"name\":\"echo\""), "%.300s", json);
    plue_free_json(json);
    plue_free_string(NULL);
}

static void test_answers(void) {
    expect_answer("echo", "{\"a\":\"\\u0000 \xc3\xa9 \xf0\x9f\x98\x80\"}",
                  "{\"a\":\"\\u0000 \xc3\xa9 \xf0\x9f\x98\x80\"}");
    expect_answer("echo", NULL, "{}");
    expect_answer("later", "{\"a\":1}", "{\"a\":1}");
    /* A result with a key "error" is a success: expect_answer() looks at plue_get_last_error(). */
    expect_answer("error_key", "{}", "{\"error\":\"not one\"}");
}

static void test_failures(void) {
    expect_failure("nope", "{}", "unknown_tool", "nope");
    expect_failure("echo", "{bad", "invalid_arguments", "");
    expect_failure("fail", "{}", "threw", "boom");
    expect_failure(NULL, "{}", "invalid_argument", "tool_name");
    expect_failure("echo", "{\"a\":\"\xff\"}", "invalid_argument", "params_json is not UTF-8");
    expect_failure("ec\xc0\x80ho", "{}", "invalid_argument", "tool_name is not UTF-8");
    plue_tool_context_t context = {"\xed\xa0\x80", NULL, NULL, NULL, NULL};
    char *json = plue_tool_execute("echo", "{}", &context);
    CHECK(contains(json, "session_id is not UTF-8"), "%s", json);
    plue_free_json(json);
}

/* The last error belongs to a thread. */
static void *fail_elsewhere(void *unused) {
    (void)unused;
    expect_failure("nope", "{}", "unknown_tool", "nope");
    return NULL;
}

static void test_last_error_of_other_thread(void) {
    expect_answer("echo", "{}", "{}");
    pthread_t thread;
    pthread_create(&thread, NULL, fail_elsewhere, NULL);
    pthread_join(thread, NULL);
    CHECK(strcmp(plue_get_last_error(), "No error") == 0, "%s", plue_get_last_error());
}

static void test_bogus_signals(void) {
    int not_a_signal[16] = {0};
    void *pointers[] = {not_a_signal, (void *)16, (void *)UINTPTR_MAX};
    for (size_t i = 0; i < 3; i++) {
        plue_tool_context_t context = {NULL, NULL, pointers[i], NULL, NULL};
        char *json = plue_tool_execute("echo", "{}", &context);
        CHECK(is_failure(json, "invalid_argument"), "%s", json);
        plue_free_json(json);
        plue_abort_signal_abort(pointers[i], "x");
        plue_abort_signal_release(pointers[i]);
        CHECK(plue_abort_signal_retain(pointers[i]) == NULL, "signal %zu", i);
        CHECK(plue_abort_signal_aborted(pointers[i]) == 0, "signal %zu", i);
    }
    plue_abort_signal_abort(NULL, NULL);
    plue_abort_signal_release(NULL);
}

static void test_big(void) {
    for (long size = 1000; size <= 64000000; size *= 40) {
        char params[64];
        snprintf(params, sizeof params, "{\"n\":%ld}", size);
        char *json = plue_tool_execute("big", params, NULL);
        CHECK((long)strlen(json) == size + 2, "%zu bytes instead of %ld", strlen(json), size + 2);
        plue_free_json(json);
    }
    size_t size = 20000000;
    char *params = malloc(size + 32);
    memset(params, 'y', size + 6);
    memcpy(params, "{\"s\":\"", 6);
    memcpy(params + 6 + size, "\"}", 3);
    char *json = plue_tool_execute("echo", params, NULL);
    CHECK(strcmp(json, params) == 0, "%zu bytes", strlen(json));
    plue_free_json(json);
    free(params);
}

static void test_too_big(void) {
    size_t size = 300u << 20;
    char *params = malloc(size + 1);
    memset(params, ' ', size);
    params[size] = '\0';
    expect_failure("echo", params, "invalid_argument", "256 MiB");
    free(params);
}

static void test_basic(void) {
    test_list();
    test_answers();
    test_failures();
    test_last_error_of_other_thread();
    test_bogus_signals();
    CHECK(plue_abi_version() == PLUE_ABI_VERSION, "%u", plue_abi_version());
    CHECK(strcmp(plue_get_version(), PLUE_VERSION) == 0, "%s", plue_get_version());
    CHECK(plue_init("{}") == -1, "plue_init() after a call");
    CHECK(contains(plue_get_last_error(), "in use"), "%s", plue_get_last_error());
}

/* ----------------------------------------------------------------------------------- stress */

struct stress {
    int id;
    int calls;
    const char *tool;
    atomic_int *wrong;
};

static void *run_stress(void *argument) {
    struct stress *stress = argument;
    for (int i = 0; i < stress->calls; i++) {
        char params[96];
        snprintf(params, sizeof params, "{\"t\":%d,\"i\":%d,\"s\":\"abc\"}", stress->id, i);
        char *json = plue_tool_execute(stress->tool, params, NULL);
        if (strcmp(json, params) != 0 && atomic_fetch_add(stress->wrong, 1) < 3) {
            fprintf(stderr, "got %.200s instead of %s\n", json, params);
        }
        plue_free_json(json);
    }
    return NULL;
}

void suite_stress(int threads, int calls, const char *tool) {
    enum { MOST = 256 };
    struct stress stresses[MOST];
    pthread_t ids[MOST];
    atomic_int wrong = 0;
    threads = threads < MOST ? threads : MOST;
    uint64_t start = now_ns();
    for (int i = 0; i < threads; i++) {
        stresses[i] = (struct stress){i, calls, tool, &wrong};
        pthread_create(&ids[i], NULL, run_stress, &stresses[i]);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
    }
    double ms = ms_since(start);
    CHECK(atomic_load(&wrong) == 0, "%d wrong answers", atomic_load(&wrong));
    printf("stress: %d threads, %d calls of %s each: %.0f calls/s\n", threads, calls, tool,
           threads * (double)calls / ms * 1000);
}

/* --------------------------------------------------------------------------------- metadata */

struct seen {
    pthread_t thread;
    int count;
    int out_of_order;
    int on_other_thread;
};

static void see(const char *json, void *user_data) {
    struct seen *seen = user_data;
    seen->out_of_order += number_in(json, "i") != seen->count;
    seen->on_other_thread += !pthread_equal(pthread_self(), seen->thread);
    seen->count++;
}

static void call_from_callback(const char *json, void *user_data) {
    char *answer = plue_tool_execute("echo", json, NULL);
    if (strcmp(answer, json) == 0) {
        (*(int *)user_data)++;
    }
    plue_free_json(answer);
}

void suite_metadata(int events) {
    struct seen seen = {.thread = pthread_self()};
    plue_tool_context_t context = {"S", "M", NULL, see, &seen};
    char params[64];
    char expected[96];
    snprintf(params, sizeof params, "{\"n\":%d}", events);
    snprintf(expected, sizeof expected, "{\"n\":%d,\"session\":\"S\",\"message\":\"M\"}", events);
    char *json = plue_tool_execute("progress", params, &context);
    CHECK(strcmp(json, expected) == 0, "%s", json);
    CHECK(seen.count == events, "%d events instead of %d", seen.count, events);
    CHECK(seen.out_of_order == 0, "%d", seen.out_of_order);
    CHECK(seen.on_other_thread == 0, "%d", seen.on_other_thread);
    plue_free_json(json);

    int nested = 0;
    context.metadata_callback = call_from_callback;
    context.user_data = &nested;
    json = plue_tool_execute("progress", "{\"n\":50}", &context);
    CHECK(nested == 50, "%d nested calls", nested);
    plue_free_json(json);
}

/* The tool waits between events: they must not all come at the end. */
static void note_time(const char *json, void *user_data) {
    (void)json;
    uint64_t *times = user_data;
    times[0] = times[0] == 0 ? now_ns() : times[0];
    times[1] = now_ns();
}

static void test_streaming(void) {
    uint64_t times[2] = {0, 0};
    plue_tool_context_t context = {NULL, NULL, NULL, note_time, times};
    char *json = plue_tool_execute("progress", "{\"n\":5,\"ms\":20}", &context);
    double span = (double)(times[1] - times[0]) / 1e6;
    CHECK(span > 40, "five events within %.1f ms", span);
    plue_free_json(json);
}

struct drops {
    long seen;
    long dropped;
    bool more_after;
};

static void count_after_all(const char *json, void *user_data) {
    struct drops *drops = user_data;
    drops->more_after |= drops->dropped > 0;
    if (contains(json, "\"type\":\"dropped\"")) {
        drops->dropped = number_in(json, "count");
        return;
    }
    /* The first event is held up until all others have come: the tools side sent them before it
     * answered this. */
    if (drops->seen == 0) {
        expect_answer("echo", "{}", "{}");
    }
    drops->seen++;
}

/* 16 MiB are about 250 000 small events with what the library needs for each. */
static void test_dropping(void) {
    struct drops drops = {0, 0, false};
    plue_tool_context_t context = {NULL, NULL, NULL, count_after_all, &drops};
    char *json = plue_tool_execute("progress", "{\"n\":600000}", &context);
    CHECK(drops.dropped > 0, "%ld seen", drops.seen);
    CHECK(drops.seen + drops.dropped == 600000, "%ld and %ld", drops.seen, drops.dropped);
    CHECK(!drops.more_after, "events after the last");
    plue_free_json(json);
}

/* ------------------------------------------------------------------------------------ abort */

struct aborter {
    plue_abort_signal_t *signal;
    unsigned after_us;
    uint64_t created_ns;
    double started_ms; /* how long the system took to let the thread run */
    uint64_t at_ns;
    double took_ms;
};

static void *run_aborter(void *argument) {
    struct aborter *aborter = argument;
    aborter->started_ms = ms_since(aborter->created_ns);
    sleep_us(aborter->after_us);
    aborter->at_ns = now_ns();
    plue_abort_signal_abort(aborter->signal, "user pressed stop");
    aborter->took_ms = ms_since(aborter->at_ns);
    return NULL;
}

/* How long things took, in milliseconds. */
struct times {
    double abort;   /* the function that aborts */
    double settled; /* from its call to the return of the tool's call */
    double started; /* of a thread: what a machine that is busy with other things takes for a wake */
};

/* Calls a tool that is aborted after a while. */
static struct times call_and_abort(const char *tool, const char *params, unsigned after_us,
                                   const char *part) {
    struct aborter aborter = {
        .signal = plue_abort_signal_new(), .after_us = after_us, .created_ns = now_ns()};
    pthread_t thread;
    pthread_create(&thread, NULL, run_aborter, &aborter);
    plue_tool_context_t context = {NULL, NULL, aborter.signal, NULL, NULL};
    char *json = plue_tool_execute(tool, params, &context);
    uint64_t end = now_ns();
    pthread_join(thread, NULL);
    CHECK(is_failure(json, "aborted") && contains(json, part), "%s", json);
    plue_free_json(json);
    plue_abort_signal_release(aborter.signal);
    return (struct times){
        .abort = aborter.took_ms,
        .settled = (double)(end - aborter.at_ns) / 1e6,
        .started = aborter.started_ms,
    };
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Between abort() and the return there are four wakes of threads. On a machine that is busy with
 * other things they take what they take, so the bound is not on them. */
static void test_abort_latency(void) {
    enum { ROUNDS = 200, LATE = ROUNDS * 99 / 100 };
    double settled[ROUNDS];
    double started[ROUNDS];
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct times times = call_and_abort("sleep", "{\"ms\":60000}", 500 + i * 37 % 3000,
                                            "user pressed stop");
        settled[i] = times.settled;
        started[i] = times.started;
    }
    qsort(settled, ROUNDS, sizeof *settled, compare_doubles);
    qsort(started, ROUNDS, sizeof *started, compare_doubles);
    printf("abort: abort() to return: p50 %.3f ms, p99 %.3f ms; to start a thread: p99 %.3f ms\n",
           settled[ROUNDS / 2], settled[LATE], started[LATE]);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
    CHECK(settled[LATE] < 20 + 4 * started[LATE], "p99 is %.3f ms", settled[LATE]);
    CHECK(settled[ROUNDS / 2] < 20, "p50 is %.3f ms", settled[ROUNDS / 2]);
#endif
}

static void test_aborted_before(void) {
    plue_abort_signal_t *signal = plue_abort_signal_new();
    CHECK(!plue_abort_signal_aborted(signal), "new signal");
    plue_abort_signal_abort(signal, "first");
    plue_abort_signal_abort(signal, "second");
    CHECK(plue_abort_signal_aborted(signal), "aborted signal");
    plue_tool_context_t context = {NULL, NULL, signal, NULL, NULL};
    char *json = plue_tool_execute("sleep", "{\"ms\":60000}", &context);
    CHECK(is_failure(json, "aborted") && contains(json, "first"), "%s", json);
    plue_free_json(json);
    plue_abort_signal_release(signal);
}

/* A tool that does not stop, or cannot: its caller returns after the grace period of 1000 ms. */
static void test_grace(void) {
    enum { ATTEMPTS = 3 };
    double deaf = call_and_abort("deaf", "{\"ms\":2500}", 5000, "grace").settled;
    CHECK(deaf > 900 && deaf < 2400, "%.0f ms", deaf);
    double abort_ms = 5;
    /* Again if the system took the processor away in the middle of it. */
    for (int i = 0; i < ATTEMPTS && abort_ms >= 5; i++) {
        struct times spin = call_and_abort("spin", "{\"ms\":2000}", 20000, "grace");
        CHECK(spin.settled > 900 && spin.settled < 1900, "%.0f ms", spin.settled);
        abort_ms = spin.abort;
    }
    CHECK(abort_ms < 5, "abort() took %.1f ms while JavaScript was busy", abort_ms);
    expect_answer("echo", "{\"after\":1}", "{\"after\":1}");
}

static void test_abort(void) {
    test_aborted_before();
    test_abort_latency();
}

static void *run_shared(void *signal) {
    plue_tool_context_t context = {NULL, NULL, signal, NULL, NULL};
    char *json = plue_tool_execute("sleep", "{\"ms\":60000}", &context);
    CHECK(is_failure(json, "aborted"), "%s", json);
    plue_free_json(json);
    return NULL;
}

void suite_shared_abort(void) {
    enum { CALLS = 16 };
    for (unsigned round = 0; round < 20; round++) {
        plue_abort_signal_t *signal = plue_abort_signal_new();
        plue_abort_signal_t *references[CALLS];
        pthread_t threads[CALLS];
        for (int i = 0; i < CALLS; i++) {
            references[i] = plue_abort_signal_retain(signal);
            pthread_create(&threads[i], NULL, run_shared, references[i]);
        }
        sleep_us(round * 500);
        plue_abort_signal_abort(signal, "all");
        plue_abort_signal_release(signal);
        for (int i = 0; i < CALLS; i++) {
            pthread_join(threads[i], NULL);
            plue_abort_signal_release(references[i]);
        }
    }
}

static void *run_race(void *argument) {
    struct aborter *aborter = argument;
    for (volatile unsigned i = 0; i < aborter->after_us; i++) {
    }
    plue_abort_signal_abort(aborter->signal, NULL);
    return NULL;
}

/* The abort comes at about the time at which the tool ends. */
void suite_abort_race(int rounds) {
    int aborted = 0;
    for (int i = 0; i < rounds; i++) {
        struct aborter aborter = {.signal = plue_abort_signal_new(),
                                  .after_us = (unsigned)i * 7919 % 30000};
        pthread_t thread;
        pthread_create(&thread, NULL, run_race, &aborter);
        plue_tool_context_t context = {NULL, NULL, aborter.signal, NULL, NULL};
        char *json = plue_tool_execute(i & 1 ? "echo" : "later", "{\"a\":1}", &context);
        bool stopped = is_failure(json, "aborted");
        aborted += stopped;
        CHECK(stopped || strcmp(json, "{\"a\":1}") == 0, "%s", json);
        plue_free_json(json);
        pthread_join(thread, NULL);
        plue_abort_signal_release(aborter.signal);
    }
    printf("race: %d of %d aborted\n", aborted, rounds);
}

/* ------------------------------------------------------------- crashes and shutdown (sidecar) */

struct sleeper {
    const char *code;
    atomic_int *begun;
};

static void count_begun(const char *json, void *user_data) {
    if (number_in(json, "i") == 0) {
        atomic_fetch_add((atomic_int *)user_data, 1);
    }
}

/* A call that has surely reached its tool (it has sent an event), and then lasts. */
static void *run_sleeper(void *argument) {
    struct sleeper *sleeper = argument;
    plue_tool_context_t context = {NULL, NULL, NULL, count_begun, sleeper->begun};
    char *json = plue_tool_execute("progress", "{\"n\":2,\"ms\":60000}", &context);
    CHECK(is_failure(json, sleeper->code), "%s", json);
    plue_free_json(json);
    return NULL;
}

enum { SLEEPERS = 8 };

static void start_sleepers(pthread_t *threads, struct sleeper *sleeper) {
    for (int i = 0; i < SLEEPERS; i++) {
        pthread_create(&threads[i], NULL, run_sleeper, sleeper);
    }
    while (atomic_load(sleeper->begun) < SLEEPERS) {
        sleep_us(500);
    }
}

static void join_sleepers(pthread_t *threads) {
    for (int i = 0; i < SLEEPERS; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void test_crash(void) {
    static const char *const ways[] = {"{\"code\":7}", "{\"signal\":\"SIGKILL\"}", "{\"code\":0}"};
    for (int i = 0; i < 3; i++) {
        pthread_t threads[SLEEPERS];
        atomic_int begun = 0;
        struct sleeper sleeper = {"runtime_crashed", &begun};
        start_sleepers(threads, &sleeper);
        uint64_t start = now_ns();
        expect_failure("crash", ways[i], "runtime_crashed", "");
        join_sleepers(threads);
        double failed = ms_since(start);
        start = now_ns();
        expect_answer("echo", "{\"x\":1}", "{\"x\":1}");
        double recovered = ms_since(start);
        printf("crash: all calls failed after %.1f ms, the next answered after %.1f ms\n", failed,
               recovered);
        CHECK(recovered < 2000, "%.1f ms", recovered);
    }
}

static void test_shutdown(void) {
    for (int i = 0; i < 5; i++) {
        pthread_t threads[SLEEPERS];
        atomic_int begun = 0;
        struct sleeper sleeper = {"shutdown", &begun};
        start_sleepers(threads, &sleeper);
        uint64_t start = now_ns();
        plue_shutdown();
        join_sleepers(threads);
        printf("shutdown: %.1f ms with %d running calls\n", ms_since(start), SLEEPERS);
    }
    expect_answer("echo", "{\"again\":1}", "{\"again\":1}");
}

/* ------------------------------------------------------------------------------ long running */

/* What a process keeps after many calls. `most_kb`: how much it may grow. */
static void test_leak(int calls, long most_kb) {
    suite_stress(8, 2500, "echo");
    long before = resident_kb();
    int descriptors = open_descriptors();
    int threads = running_threads();
    for (int i = 0; i < 5; i++) {
        suite_stress(8, calls / 8 / 5, "echo");
    }
    long growth = resident_kb() - before;
    printf("leak: %ld kB of growth over %d calls\n", growth, calls);
    CHECK(growth <= most_kb, "%ld kB", growth);
    CHECK(open_descriptors() == descriptors, "%d descriptors", open_descriptors() - descriptors);
    CHECK(running_threads() == threads, "%d threads", running_threads() - threads);
}

struct soak {
    unsigned seed;
    uint64_t until_ns;
    long calls;
    long aborted;
    long lost;
};

static void ignore_event(const char *json, void *user_data) {
    (void)json;
    (*(int *)user_data)++;
}

static bool soak_echo(struct soak *soak, char **json) {
    char params[64];
    snprintf(params, sizeof params, "{\"v\":%u}", soak->seed);
    *json = plue_tool_execute(soak->seed & 8 ? "echo" : "later", params, NULL);
    return strcmp(*json, params) == 0;
}

static bool soak_progress(struct soak *soak, char **json) {
    int count = 0;
    int events = rand_r(&soak->seed) % 40;
    char params[64];
    snprintf(params, sizeof params, "{\"n\":%d}", events);
    plue_tool_context_t context = {"S", "M", NULL, ignore_event, &count};
    *json = plue_tool_execute("progress", params, &context);
    return contains(*json, "\"session\":\"S\"") && count == events;
}

static bool soak_abort(struct soak *soak, char **json) {
    struct aborter aborter = {.signal = plue_abort_signal_new(),
                              .after_us = (unsigned)rand_r(&soak->seed) % 1500,
                              .created_ns = now_ns()};
    pthread_t thread;
    pthread_create(&thread, NULL, run_aborter, &aborter);
    plue_tool_context_t context = {NULL, NULL, aborter.signal, NULL, NULL};
    *json = plue_tool_execute("sleep", "{\"ms\":1}", &context);
    pthread_join(thread, NULL);
    plue_abort_signal_release(aborter.signal);
    bool aborted = is_failure(*json, "aborted");
    soak->aborted += aborted;
    return aborted || contains(*json, "slept");
}

static bool soak_big(struct soak *soak, char **json) {
    int size = rand_r(&soak->seed) % 200000;
    char params[64];
    snprintf(params, sizeof params, "{\"n\":%d}", size);
    *json = plue_tool_execute("big", params, NULL);
    return strlen(*json) == (size_t)size + 2;
}

static void *run_soak(void *argument) {
    static bool (*const kinds[])(struct soak *, char **) = {
        soak_echo, soak_echo, soak_echo, soak_progress, soak_progress, soak_abort, soak_big,
    };
    struct soak *soak = argument;
    while (now_ns() < soak->until_ns) {
        char *json = NULL;
        bool right = kinds[(unsigned)rand_r(&soak->seed) % 7](soak, &json);
        bool lost = contains(json, "runtime_gone") || contains(json, "runtime_unavailable") ||
                    contains(json, "runtime_crashed");
        CHECK(right || lost, "%.200s", json);
        if (!right && lost) {
            soak->lost++;
            sleep_us(200);
        }
        plue_free_json(json);
        soak->calls++;
    }
    return NULL;
}

static void test_soak(int threads, int seconds) {
    enum { MOST = 64 };
    struct soak soaks[MOST];
    pthread_t ids[MOST];
    uint64_t until = now_ns() + (uint64_t)seconds * 1000000000u;
    threads = threads < MOST ? threads : MOST;
    for (int i = 0; i < threads; i++) {
        soaks[i] = (struct soak){(unsigned)i * 7919 + 1, until, 0, 0, 0};
        pthread_create(&ids[i], NULL, run_soak, &soaks[i]);
    }
    struct soak total = {0};
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        total.calls += soaks[i].calls;
        total.aborted += soaks[i].aborted;
        total.lost += soaks[i].lost;
    }
    printf("soak: %ld calls, %ld aborted, %ld lost their runtime, %ld kB\n", total.calls,
           total.aborted, total.lost, resident_kb());
}

/* ------------------------------------------------------------------------------- the parts */

static const struct {
    const char *name;
    void (*run)(void);
} plain_parts[] = {
    {"basic", test_basic},         {"big", test_big},       {"too_big", test_too_big},
    {"streaming", test_streaming}, {"abort", test_abort},   {"grace", test_grace},
    {"shared", suite_shared_abort}, {"crash", test_crash},  {"shutdown", test_shutdown},
    {"dropping", test_dropping},
};

static void run_part(const char *part) {
    int first = 0;
    int second = 0;
    char tool[32];
    for (size_t i = 0; i < sizeof plain_parts / sizeof *plain_parts; i++) {
        if (strcmp(part, plain_parts[i].name) == 0) {
            plain_parts[i].run();
            return;
        }
    }
    if (sscanf(part, "stress:%d:%d:%31s", &first, &second, tool) == 3) {
        suite_stress(first, second, tool);
    } else if (sscanf(part, "metadata:%d", &first) == 1) {
        suite_metadata(first);
    } else if (sscanf(part, "race:%d", &first) == 1) {
        suite_abort_race(first);
    } else if (sscanf(part, "leak:%d:%d", &first, &second) == 2) {
        test_leak(first, second);
    } else if (sscanf(part, "soak:%d:%d", &first, &second) == 2) {
        test_soak(first, second);
    } else {
        CHECK(false, "there is no part %s", part);
    }
}

int suite_run(int count, char **parts) {
    for (int i = 0; i < count; i++) {
        int before = check_failures();
        run_part(parts[i]);
        printf("%s: %s\n", parts[i], check_failures() == before ? "ok" : "FAILED");
        fflush(stdout);
    }
    return check_failures();
}
