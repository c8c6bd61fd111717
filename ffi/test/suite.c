#include "check.h"
#include "contract.h"
#include "plue.h"

/* The grace periods of aborted tools. The long one is more than any machine needs; the short one is
 * for tools that do not stop. */
enum { LONG_GRACE_MS = 60000, SHORT_GRACE_MS = 300 };

static const char *config;

static void configure(uint32_t grace_ms) {
    plue_shutdown();
    init_with((plue_options_t){
        .config_json = config, .start_timeout_ms = FOREVER_MS, .abort_grace_ms = grace_ms});
}

static void test_list(void) {
    char *json = plue_tool_list();
    /* "tools_obj.put(entry.key_ptr.*, tool_info)": each definition by its tool's name. */
    CHECK(json[0] == '{', "%.100s", json);
    CHECK(contains(json, "\"echo\":{\"name\":\"echo\""), "%.300s", json);
    CHECK(strcmp(plue_get_last_error_json(), "{}") == 0, "%s", plue_get_last_error_json());
    plue_free_json(json);
}

/* Texts that are not UTF-8, or NULL. */
static void test_texts(void) {
    expect_failure(NULL, "{}", "invalid_argument", "tool_name");
    expect_failure("echo", "{\"a\":\"\xff\"}", "invalid_argument", "params_json is not UTF-8");
    expect_failure("ec\xc0\x80ho", "{}", "invalid_argument", "tool_name is not UTF-8");
    plue_tool_context_t context = {"\xed\xa0\x80", NULL, NULL, NULL, NULL};
    expect_failure_with(&context, "echo", "{}", "invalid_argument", "session_id is not UTF-8");
    CHECK(plue_tool_call(NULL, "{}", NULL, NULL) == PLUE_INVALID_ARGUMENT, "NULL");
    CHECK_OK(plue_tool_call("echo", NULL, NULL, NULL));
}

static void count_failure_event(const char *json, void *count) {
    ++*(int *)count;
    CHECK(contains(json, "{\"type\":\"error\",\"tool\":\"\",\"error\":\"invalid_argument\","),
          "%s", json);
}

/* "Send error metadata": also for a call that fails before any tool is called. */
static void test_event_of_failure(void) {
    int count = 0;
    plue_tool_context_t context = {.metadata_callback = count_failure_event, .user_data = &count};
    expect_failure_with(&context, NULL, "{}", "invalid_argument", "");
    CHECK(count == 1, "%d events", count);
}

/* The last error belongs to a thread. */
static void *fail_elsewhere(void *unused) {
    expect_failure("nope", "{}", "unknown_tool", "nope");
    return NULL;
}

static void test_last_error_of_other_thread(void) {
    expect_answer("echo", "{}", "{}");
    on_threads(1, fail_elsewhere, NULL);
    CHECK(strcmp(plue_get_last_error(), "No error") == 0, "%s", plue_get_last_error());
}

static void test_big(int most) {
    for (long size = most; size >= 1000; size /= 40) {
        char params[64];
        snprintf(params, sizeof params, "{\"n\":%ld}", size);
        char *json = plue_tool_execute("big", params, NULL);
        CHECK((long)strlen(json) == size + 2, "%zu bytes instead of %ld", strlen(json), size + 2);
        plue_free_json(json);
    }
    size_t size = (size_t)most / 3;
    char *params = malloc(size + 32);
    memset(params, 'y', size + 6);
    memcpy(params, "{\"s\":\"", 6);
    memcpy(params + 6 + size, "\"}", 3);
    expect_answer("echo", params, params);
    free(params);
}

TEST(too_big) {
    size_t size = 257u << 20;
    char *params = malloc(size + 1);
    memset(params, ' ', size);
    params[size] = '\0';
    expect_failure("echo", params, "invalid_argument", "256 MiB");
    free(params);
}

/* Two calls with large arguments cost the tool process at most four times the size of one. If the
 * first arguments were not freed, the second would exceed that. */
TEST(large_arguments) {
    long size = 32 << 20;
    int process = ask_for_process();
    long before = memory_kb(process, "VmHWM");
    char *params = malloc((size_t)size + 32);
    for (int i = 0; i < 2; i++) {
        memset(params, 'y', (size_t)size + 6);
        memcpy(params, "{\"s\":\"", 6);
        strcpy(params + 6 + size, "\"}");
        char *json = plue_tool_execute("length", params, NULL);
        CHECK(number_in(json, "n") == size, "%.200s", json);
        plue_free_json(json);
    }
    free(params);
    double times = (double)(memory_kb(process, "VmHWM") - before) * 1024 / (double)size;
    printf("large_arguments: %.1f times their size\n", times);
    CHECK(times <= 4, "%.1f times", times);
}

TEST(basic) {
    test_list();
    test_texts();
    test_event_of_failure();
    test_last_error_of_other_thread();
    plue_abort_signal_abort(NULL, NULL);
    plue_abort_signal_release(NULL);
    CHECK(plue_abort_signal_retain(NULL) == NULL && !plue_abort_signal_aborted(NULL), "no signal");
    CHECK(plue_abi_version() == PLUE_ABI_VERSION, "%u", plue_abi_version());
    CHECK(strcmp(plue_get_version(), PLUE_VERSION) == 0, "%s", plue_get_version());
    CHECK(plue_init("{}") == -1, "plue_init() after a call");
    CHECK(contains(plue_get_last_error(), "in use"), "%s", plue_get_last_error());
}

struct stress {
    int calls;
    const char *tool;
    atomic_int threads; /* that have begun */
    atomic_int wrong;
};

static void *run_stress(void *argument) {
    struct stress *stress = argument;
    int thread = atomic_fetch_add(&stress->threads, 1);
    for (int i = 0; i < stress->calls; i++) {
        char params[96];
        snprintf(params, sizeof params, "{\"t\":%d,\"i\":%d,\"s\":\"abc\"}", thread, i);
        char *json = plue_tool_execute(stress->tool, params, NULL);
        if (strcmp(json, params) != 0 && atomic_fetch_add(&stress->wrong, 1) < 3) {
            fprintf(stderr, "got %.200s instead of %s\n", json, params);
        }
        plue_free_json(json);
    }
    return NULL;
}

/* Calls the tool on each of the threads, and checks every answer. */
static void test_stress(int threads, int calls, const char *tool) {
    struct stress stress = {.calls = calls, .tool = tool};
    uint64_t start = now_ns();
    on_threads(threads, run_stress, &stress);
    double ms = ms_since(start);
    CHECK(atomic_load(&stress.wrong) == 0, "%d wrong answers", atomic_load(&stress.wrong));
    printf("stress: %d threads, %d calls of %s each: %.0f calls/s\n", threads, calls, tool,
           threads * (double)calls / ms * 1000);
}

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

static void test_metadata(int events) {
    struct seen seen = {.thread = pthread_self()};
    plue_tool_context_t context = {"S", "M", NULL, see, &seen};
    char params[64];
    char expected[96];
    snprintf(params, sizeof params, "{\"n\":%d}", events);
    snprintf(expected, sizeof expected, "{\"n\":%d,\"session\":\"S\",\"message\":\"M\"}", events);
    expect_answer_with(&context, "progress", params, expected);
    CHECK(seen.count == events, "%d events instead of %d", seen.count, events);
    CHECK(seen.out_of_order == 0, "%d", seen.out_of_order);
    CHECK(seen.on_other_thread == 0, "%d", seen.on_other_thread);

    int nested = 0;
    context.metadata_callback = call_from_callback;
    context.user_data = &nested;
    plue_free_json(plue_tool_execute("progress", "{\"n\":50}", &context));
    CHECK(nested == 50, "%d nested calls", nested);
}

static void release_held(const char *json, void *user_data) {
    expect_answer("release", "{}", "{\"released\":true}");
    (*(int *)user_data)++;
}

/* An event arrives while the tool runs: the tool ends only after the callback has released it. */
TEST(streaming) {
    int events = 0;
    plue_tool_context_t context = {NULL, NULL, NULL, release_held, &events};
    expect_answer_with(&context, "hold", "{}", "{\"held\":true}");
    CHECK(events == 1, "%d events", events);
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
    /* The callback keeps the first event until all others have arrived: the tools side sends them
     * before it answers this call. */
    if (drops->seen == 0) {
        expect_answer("echo", "{}", "{}");
    }
    drops->seen++;
}

/* 16 MiB are about 580,000 small events. */
TEST(dropping) {
    struct drops drops = {0, 0, false};
    plue_tool_context_t context = {NULL, NULL, NULL, count_after_all, &drops};
    plue_free_json(plue_tool_execute("progress", "{\"n\":600000}", &context));
    CHECK(drops.dropped > 0, "%ld seen", drops.seen);
    CHECK(drops.seen + drops.dropped == 600000, "%ld and %ld", drops.seen, drops.dropped);
    CHECK(!drops.more_after, "events after the last");
}

/* A reason in another encoding is still passed on, and a long reason is cut, even if only the
 * replacement characters make it too long. */
static void test_odd_reasons(void) {
    enum { LENGTH = 70000 };
    char *longer = malloc(LENGTH + 1);
    memset(longer, '\xff', LENGTH);
    longer[LENGTH] = '\0';
    const char *reasons[] = {"caf\xe9 closed", longer};
    const char *parts[] = {"caf\xef\xbf\xbd closed", "\xef\xbf\xbd\xef\xbf\xbd"};
    for (int i = 0; i < 2; i++) {
        plue_abort_signal_t *signal = plue_abort_signal_new();
        plue_abort_signal_abort(signal, reasons[i]);
        plue_tool_context_t context = {.abort_signal = signal};
        expect_failure_with(&context, "echo", "{}", "aborted", parts[i]);
        size_t length = strlen(plue_get_last_error());
        CHECK(length < 20 || (length <= 65536 && length > 65530), "%zu bytes", length);
        plue_abort_signal_release(signal);
    }
    free(longer);
}

/* A tool that ignores aborts ends after its caller. */
static void test_deaf(void) {
    struct aborted_call call = call_and_abort("hold", "{\"deaf\":true}", NULL, "grace period");
    /* The clock counts whole milliseconds, so the first one may be almost over. */
    CHECK(call.settled_ms > SHORT_GRACE_MS - 1, "the grace period was %.3f ms", call.settled_ms);
    expect_answer("release", "{}", "{\"released\":true}");
}

/* A tool keeps JavaScript busy until the file is deleted, which happens after both returns. */
static void test_spinning(void) {
    char path[] = "/tmp/plue-spin-XXXXXX";
    int descriptor = mkstemp(path);
    CHECK(descriptor >= 0, "%s", path);
    close(descriptor);
    unlink(path); /* the tool makes it, and the name is not used by others */
    char params[100];
    snprintf(params, sizeof params, "{\"file\":\"%s\"}", path);
    struct aborted_call call = call_and_abort("spin", params, path, "grace period");
    printf("grace: abort() took %.3f ms while JavaScript was busy\n", call.abort_ms);
    unlink(path);
}

struct flood {
    struct aborted_call call;
    long seen;
    long failures;
    long dropped;
    long after_dropped;
};

static void see_flood(const char *json, void *user_data) {
    struct flood *flood = user_data;
    flood->after_dropped += flood->dropped > 0;
    if (contains(json, "\"type\":\"dropped\"")) {
        flood->dropped = number_in(json, "count");
        return;
    }
    if (contains(json, "{\"type\":\"error\",\"tool\":\"hold\",\"error\":\"aborted\"")) {
        flood->failures++;
        return;
    }
    flood->seen++;
    note_begin(json, &flood->call);
    /* When this answer arrives, further events have arrived. */
    expect_answer("echo", "{}", "{}");
    while (!plue_abort_signal_aborted(flood->call.signal)) {
        sleep_us(1000);
    }
    sleep_us(1000 * (SHORT_GRACE_MS + 50));
}

/* If a tool ignores the abort and sends endless events to a slower callback, the call still
 * returns, and the waiting events are dropped. */
static void test_flood(void) {
    struct flood flood = {.call = {.signal = plue_abort_signal_new()}};
    pthread_t thread;
    pthread_create(&thread, NULL, abort_when_begun, &flood.call);
    plue_tool_context_t context = {NULL, NULL, flood.call.signal, see_flood, &flood};
    expect_failure_with(&context, "hold", "{\"deaf\":true,\"flood\":true}", "aborted", "grace period");
    pthread_join(thread, NULL);
    plue_abort_signal_release(flood.call.signal);
    CHECK(flood.after_dropped == 0, "%ld events after the last", flood.after_dropped);
    CHECK(flood.failures == 1, "it was told %ld times that the call failed", flood.failures);
    CHECK(flood.seen == 1 && flood.dropped > 0, "%ld seen, %ld dropped", flood.seen, flood.dropped);
    expect_answer("release", "{}", "{\"released\":true}");
}

/* When its own call is answered, the other call has ended and its further events are waiting. */
static void see_end_and_abort(const char *json, void *user_data) {
    struct flood *flood = user_data;
    if (contains(json, "\"type\":\"dropped\"")) {
        flood->dropped = number_in(json, "count");
        return;
    }
    flood->seen++;
    expect_answer("echo", "{}", "{}");
    plue_abort_signal_abort(flood->call.signal, NULL);
    sleep_us(1000 * (SHORT_GRACE_MS + 50));
}

/* A call that is aborted after the end of its tool keeps its result, and delivers events only
 * during the grace period. */
static void test_late_events(void) {
    struct flood flood = {.call = {.signal = plue_abort_signal_new()}};
    plue_tool_context_t context = {"S", "M", flood.call.signal, see_end_and_abort, &flood};
    expect_answer_with(&context, "progress", "{\"n\":5}",
                       "{\"n\":5,\"session\":\"S\",\"message\":\"M\"}");
    CHECK(flood.seen == 1 && flood.dropped == 4, "%ld seen, %ld dropped", flood.seen, flood.dropped);
    plue_abort_signal_release(flood.call.signal);
}

/* If a tool does not stop, its caller returns after the grace period. */
TEST(grace) {
    configure(SHORT_GRACE_MS);
    /* The start of a runtime is not tested here. */
    expect_answer("echo", "{}", "{}");
    test_deaf();
    test_flood();
    test_late_events();
    test_spinning();
    expect_answer("echo", "{\"after\":1}", "{\"after\":1}");
    configure(LONG_GRACE_MS);
}

TEST(abort) {
    test_odd_reasons();
    /* Each call ends with the result of its tool, the reason, and not with the grace period. */
    for (int i = 0; i < 100; i++) {
        call_and_abort("hold", "{}", NULL, "user pressed stop");
    }
}

struct cancelled_thread {
    struct aborted_call call;
    bool cancels_in_callback;
    atomic_bool has_returned;
};

static void cancel_this_thread(const char *json, void *user_data) {
    struct cancelled_thread *cancelled = user_data;
    if (cancelled->cancels_in_callback) {
        pthread_cancel(pthread_self());
        pthread_testcancel(); /* not here: the library is below this frame */
    }
    note_begin(json, &cancelled->call);
}

static void *call_and_be_cancelled(void *argument) {
    struct cancelled_thread *cancelled = argument;
    plue_tool_context_t context = {NULL, NULL, cancelled->call.signal, cancel_this_thread,
                                   cancelled};
    char *json = plue_tool_execute("hold", "{}", &context);
    bool is_right = is_failure(json, "aborted");
    plue_free_json(json);
    atomic_store(&cancelled->has_returned, is_right);
    pthread_testcancel();
    return NULL;
}

/* A thread that is cancelled within a call ends after the call, and no lock stays taken. */
static void test_cancellation_of_call(bool in_callback) {
    struct cancelled_thread cancelled = {.call = {.signal = plue_abort_signal_new()},
                                         .cancels_in_callback = in_callback};
    pthread_t thread;
    void *result = NULL;
    pthread_create(&thread, NULL, call_and_be_cancelled, &cancelled);
    while (!atomic_load(&cancelled.call.has_begun)) {
        sleep_us(50);
    }
    pthread_cancel(thread);
    expect_answer("echo", "{}", "{}");
    CHECK(!atomic_load(&cancelled.has_returned), "the call returned before it was aborted");
    plue_abort_signal_abort(cancelled.call.signal, NULL);
    pthread_join(thread, &result);
    CHECK(atomic_load(&cancelled.has_returned), "the call did not return");
    CHECK(result == PTHREAD_CANCELED, "the thread was not cancelled");
    plue_abort_signal_release(cancelled.call.signal);
}

/* The functions that wait or write do not change the thread's state. */
static void *ask_for_state(void *unused) {
    int state = -1;
    plue_abort_signal_t *signal = plue_abort_signal_new();
    plue_free_json(plue_tool_list());
    plue_free_json(plue_tool_execute("echo", "{}", NULL));
    plue_abort_signal_abort(signal, NULL);
    plue_abort_signal_release(signal);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    CHECK(state == PTHREAD_CANCEL_ENABLE, "%d", state);
    plue_free_json(plue_tool_list());
    plue_free_json(plue_tool_execute("echo", "{}", NULL));
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    CHECK(state == PTHREAD_CANCEL_DISABLE, "%d", state);
    return unused;
}

TEST(cancellation) {
    test_cancellation_of_call(false);
    test_cancellation_of_call(true);
    on_threads(1, ask_for_state, NULL);
}

static void *run_shared(void *signal) {
    plue_tool_context_t context = {.abort_signal = signal};
    expect_failure_with(&context, "sleep", "{\"ms\":60000}", "aborted", "stop them all");
    return NULL;
}

/* None of many calls, some of which have not been sent yet, waits for the end of the grace
 * period. */
static void test_shared_abort(unsigned rounds) {
    enum { CALLS = 40 };
    for (unsigned round = 0; round < rounds; round++) {
        plue_abort_signal_t *signal = plue_abort_signal_new();
        plue_abort_signal_t *references[CALLS];
        pthread_t threads[CALLS];
        for (int i = 0; i < CALLS; i++) {
            references[i] = plue_abort_signal_retain(signal);
            pthread_create(&threads[i], NULL, run_shared, references[i]);
        }
        sleep_us(round * 10000 / rounds);
        plue_abort_signal_abort(signal, "stop them all");
        plue_abort_signal_release(signal);
        for (int i = 0; i < CALLS; i++) {
            pthread_join(threads[i], NULL);
            plue_abort_signal_release(references[i]);
        }
    }
}

/* A thread that aborts after a while. */
struct aborter {
    plue_abort_signal_t *signal;
    unsigned patience;
};

static void *run_race(void *argument) {
    struct aborter *aborter = argument;
    for (volatile unsigned i = 0; i < aborter->patience; i++) {
    }
    plue_abort_signal_abort(aborter->signal, NULL);
    return NULL;
}

/* Makes a call that is aborted after a while. Returns its answer. */
static char *call_and_race(const char *tool, const char *params, unsigned patience) {
    struct aborter aborter = {.signal = plue_abort_signal_new(), .patience = patience};
    pthread_t thread;
    pthread_create(&thread, NULL, run_race, &aborter);
    plue_tool_context_t context = {.abort_signal = aborter.signal};
    char *json = plue_tool_execute(tool, params, &context);
    pthread_join(thread, NULL);
    plue_abort_signal_release(aborter.signal);
    return json;
}

/* The abort comes at about the time at which the tool ends. */
static void test_abort_race(int rounds) {
    int aborted = 0;
    for (int i = 0; i < rounds; i++) {
        char *json =
            call_and_race(i & 1 ? "echo" : "later", "{\"a\":1}", (unsigned)i * 7919 % 30000);
        bool stopped = is_failure(json, "aborted");
        aborted += stopped;
        CHECK(stopped || strcmp(json, "{\"a\":1}") == 0, "%s", json);
        plue_free_json(json);
    }
    printf("race: %d of %d aborted\n", aborted, rounds);
}

enum { HELD = 8 };

TEST(crash) {
    static const char *const ways[] = {"{\"code\":7}", "{\"signal\":\"SIGKILL\"}", "{\"code\":0}"};
    for (int i = 0; i < 3; i++) {
        struct held_calls calls = {.code = "runtime_crashed", .part = ""};
        hold_calls(&calls, HELD);
        expect_failure("crash", ways[i], "runtime_crashed", "");
        join_held_calls(&calls);
        expect_answer("echo", "{\"x\":1}", "{\"x\":1}");
    }
}

TEST(shutdown) {
    for (int i = 0; i < 3; i++) {
        struct held_calls calls = {.code = "shutdown", .part = ""};
        hold_calls(&calls, HELD);
        plue_shutdown();
        join_held_calls(&calls);
    }
    expect_answer("echo", "{\"again\":1}", "{\"again\":1}");
    configure(LONG_GRACE_MS);
}

/* The memory of a process after many calls. `most_kb`: the maximum growth. */
static void test_leak(int calls, long most_kb) {
    test_stress(8, 2500, "echo");
    long before = memory_kb(getpid(), "VmRSS");
    int descriptors = open_descriptors();
    int threads = running_threads();
    for (int i = 0; i < 5; i++) {
        test_stress(8, calls / 8 / 5, "echo");
    }
    long growth = memory_kb(getpid(), "VmRSS") - before;
    printf("leak: %ld kB of growth over %d calls\n", growth, calls);
    CHECK(growth <= most_kb, "%ld kB", growth);
    CHECK(open_descriptors() == descriptors, "%d descriptors", open_descriptors() - descriptors);
    CHECK(running_threads() == threads, "%d threads", running_threads() - threads);
}

struct soak {
    uint64_t until_ns;
    atomic_uint seed; /* of the next thread */
    atomic_long calls;
    atomic_long aborted;
    atomic_long lost;
};

static bool soak_echo(unsigned *seed, char **json) {
    char params[64];
    snprintf(params, sizeof params, "{\"v\":%u}", *seed);
    *json = plue_tool_execute(*seed & 8 ? "echo" : "later", params, NULL);
    return strcmp(*json, params) == 0;
}

static bool soak_abort(unsigned *seed, char **json) {
    *json = call_and_race("sleep", "{\"ms\":1}", (unsigned)rand_r(seed) % 3000000);
    return is_failure(*json, "aborted") || contains(*json, "slept");
}

static bool soak_big(unsigned *seed, char **json) {
    int size = rand_r(seed) % 200000;
    char params[64];
    snprintf(params, sizeof params, "{\"n\":%d}", size);
    *json = plue_tool_execute("big", params, NULL);
    return strlen(*json) == (size_t)size + 2;
}

static void *run_soak(void *argument) {
    static bool (*const kinds[])(unsigned *, char **) = {
        soak_echo, soak_echo, soak_abort, soak_big,
    };
    struct soak *soak = argument;
    unsigned seed = atomic_fetch_add(&soak->seed, 7919);
    while (now_ns() < soak->until_ns) {
        char *json = NULL;
        bool right = kinds[(unsigned)rand_r(&seed) % 4](&seed, &json);
        bool lost = contains(json, "runtime_gone") || contains(json, "runtime_unavailable") ||
                    contains(json, "runtime_crashed");
        CHECK(right || lost, "%.200s", json);
        atomic_fetch_add(&soak->aborted, is_failure(json, "aborted"));
        atomic_fetch_add(&soak->calls, 1);
        if (!right && lost) {
            atomic_fetch_add(&soak->lost, 1);
            sleep_us(200);
        }
        plue_free_json(json);
    }
    return NULL;
}

static void test_soak(int threads, int seconds) {
    struct soak soak = {.until_ns = now_ns() + (uint64_t)seconds * 1000000000u, .seed = 1};
    on_threads(threads, run_soak, &soak);
    printf("soak: %ld calls, %ld aborted, %ld lost their runtime, %ld kB\n", atomic_load(&soak.calls),
           atomic_load(&soak.aborted), atomic_load(&soak.lost), memory_kb(getpid(), "VmRSS"));
}

static void run_part(const char *part) {
    int first = 0;
    int second = 0;
    char tool[32];
    const struct check_test *plain = check_find(part);
    if (plain != NULL) {
        plain->run();
    } else if (sscanf(part, "stress:%d:%d:%31s", &first, &second, tool) == 3) {
        test_stress(first, second, tool);
    } else if (sscanf(part, "big:%d", &first) == 1) {
        test_big(first);
    } else if (sscanf(part, "metadata:%d", &first) == 1) {
        test_metadata(first);
    } else if (sscanf(part, "shared:%d", &first) == 1) {
        test_shared_abort((unsigned)first);
    } else if (sscanf(part, "race:%d", &first) == 1) {
        test_abort_race(first);
    } else if (sscanf(part, "leak:%d:%d", &first, &second) == 2) {
        test_leak(first, second);
    } else if (strncmp(part, "contract", 8) == 0) {
        suite_contract(part[8] == ':' ? part + 9 : NULL);
    } else if (sscanf(part, "soak:%d:%d", &first, &second) == 2) {
        test_soak(first, second);
    } else {
        CHECK(false, "there is no part %s", part);
    }
}

int suite_run(const char *config_json, int count, char **parts) {
    config = config_json;
    configure(LONG_GRACE_MS);
    for (int i = 0; i < count; i++) {
        int before = check_failures();
        run_part(parts[i]);
        printf("%s: %s\n", parts[i], check_failures() == before ? "ok" : "FAILED");
        fflush(stdout);
    }
    return check_failures();
}
