#include "check.h"

#include "plue_guest.h"

#include <dirent.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <time.h>

static atomic_int failures;

void check_failed(const char *file, int line, const char *condition, const char *format, ...) {
    atomic_fetch_add(&failures, 1);
    fprintf(stderr, "FAILED %s:%d: %s: ", file, line, condition);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

int check_failures(void) {
    return atomic_load(&failures);
}

int check_verdict(const char *name) {
    int count = check_failures();
    printf(count == 0 ? "%s: ok\n" : "%s: %d FAILED\n", name, count);
    fflush(stdout);
    return count != 0;
}

static struct check_test *tests;

void check_add(struct check_test *test) {
    struct check_test **end = &tests;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = test;
}

const struct check_test *check_find(const char *name) {
    const struct check_test *test = tests;
    while (test != NULL && strcmp(test->name, name) != 0) {
        test = test->next;
    }
    return test;
}

static void run_test(const struct check_test *test) {
    int before = check_failures();
    uint64_t start = now_ns();
    test->run();
    plue_guest_detach();
    plue_shutdown();
    printf("%s: %s (%.0f ms)\n", test->name, check_failures() == before ? "ok" : "FAILED",
           ms_since(start));
    fflush(stdout);
}

int check_run(const char *program, char **names) {
    for (const struct check_test *test = tests; *names == NULL && test != NULL; test = test->next) {
        run_test(test);
    }
    for (char **name = names; *name != NULL; name++) {
        const struct check_test *test = check_find(*name);
        CHECK(test != NULL, "there is no test %s", *name);
        if (test != NULL) {
            run_test(test);
        }
    }
    return check_verdict(program);
}

const char *fake_sidecar;

int check_with_sidecar(const char *program, int count, char **arguments) {
    fake_sidecar = count > 1 ? arguments[1] : "";
    return check_run(program, arguments + (count > 1 ? 2 : 1));
}

void init_with(plue_options_t options) {
    options.struct_size = sizeof options;
    CHECK(plue_init_with_options(&options) == 0, "%s", plue_get_last_error());
}

void init_manner(const char *manner, plue_options_t options) {
    const char *argv[] = {fake_sidecar, manner, NULL};
    options.mode = PLUE_MODE_SIDECAR;
    options.sidecar_argv = argv;
    options.start_timeout_ms = options.start_timeout_ms == 0 ? FOREVER_MS : options.start_timeout_ms;
    init_with(options);
}

int ask_for_process(void) {
    char *json = plue_tool_execute("pid", "{}", NULL);
    int process = (int)number_in(json, "pid");
    plue_free_json(json);
    return process;
}

void in_child(void (*check)(void)) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(60); /* one that takes a lock which nobody has waits for ever */
        check();
        _exit(check_failures() > 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
}

void on_threads(int count, void *(*run)(void *), void *argument) {
    pthread_t *threads = calloc((size_t)count, sizeof *threads);
    for (int i = 0; i < count; i++) {
        pthread_create(&threads[i], NULL, run, argument);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    free(threads);
}

uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

double ms_since(uint64_t start_ns) {
    return (double)(now_ns() - start_ns) / 1e6;
}

void sleep_us(unsigned microseconds) {
    struct timespec span = {microseconds / 1000000, (long)(microseconds % 1000000) * 1000};
    nanosleep(&span, NULL);
}

bool contains(const char *text, const char *part) {
    return strstr(text, part) != NULL;
}

bool is_failure(const char *json, const char *code) {
    static const char head[] = "{\"error\":\"";
    size_t length = strlen(code);
    return strncmp(json, head, sizeof head - 1) == 0 &&
           strncmp(json + sizeof head - 1, code, length) == 0 && json[sizeof head - 1 + length] == '"';
}

void expect_answer(const char *tool, const char *params, const char *expected) {
    expect_answer_with(NULL, tool, params, expected);
}

void expect_answer_with(const plue_tool_context_t *context, const char *tool, const char *params,
                        const char *expected) {
    char *json = plue_tool_execute(tool, params, context);
    CHECK(strcmp(json, expected) == 0, "%s(%s) gave %.200s", tool, params, json);
    CHECK(strcmp(plue_get_last_error(), "No error") == 0, "%s", plue_get_last_error());
    CHECK(strcmp(plue_get_last_error_json(), "{}") == 0, "%s", plue_get_last_error_json());
    plue_free_json(json);
}

void *call_echo(void *unused) {
    expect_answer("echo", "{\"r\":1}", "{\"r\":1}");
    return unused;
}

void expect_failure(const char *tool, const char *params, const char *code, const char *part) {
    expect_failure_with(NULL, tool, params, code, part);
}

void expect_failure_with(const plue_tool_context_t *context, const char *tool, const char *params,
                         const char *code, const char *part) {
    char *json = plue_tool_execute(tool, params, context);
    CHECK(is_failure(json, code), "expected %s, got %.200s", code, json);
    CHECK(contains(plue_get_last_error(), part), "expected \"%s\" in \"%s\"", part,
          plue_get_last_error());
    CHECK(strcmp(plue_get_last_error_json(), json) == 0, "%s", plue_get_last_error_json());
    plue_free_json(json);
}

void note_begin(const char *json, void *call) {
    atomic_store(&((struct aborted_call *)call)->has_begun, true);
}

void *abort_when_begun(void *argument) {
    struct aborted_call *call = argument;
    while (call->file == NULL ? !atomic_load(&call->has_begun) : access(call->file, F_OK) != 0) {
        sleep_us(50);
    }
    call->aborted_ns = now_ns();
    plue_abort_signal_abort(call->signal, "user pressed stop");
    call->abort_ms = ms_since(call->aborted_ns);
    return NULL;
}

struct aborted_call call_and_abort(const char *tool, const char *params, const char *file,
                                   const char *part) {
    struct aborted_call call = {.signal = plue_abort_signal_new(), .file = file};
    pthread_t thread;
    pthread_create(&thread, NULL, abort_when_begun, &call);
    plue_tool_context_t context = {NULL, NULL, call.signal, note_begin, &call};
    expect_failure_with(&context, tool, params, "aborted", part);
    uint64_t end = now_ns();
    pthread_join(thread, NULL);
    call.settled_ms = (double)(end - call.aborted_ns) / 1e6;
    plue_abort_signal_release(call.signal);
    return call;
}

static void count_event(const char *json, void *user_data) {
    struct held_calls *calls = user_data;
    bool has_failed = contains(json, "{\"type\":\"error\",\"tool\":\"hold\",");
    atomic_fetch_add(has_failed ? &calls->failures : &calls->begun, 1);
}

static void *hold(void *argument) {
    struct held_calls *calls = argument;
    plue_tool_context_t context = {NULL, NULL, calls->signal, count_event, calls};
    expect_failure_with(&context, "hold", "{}", calls->code, calls->part);
    return NULL;
}

void hold_calls(struct held_calls *calls, int count) {
    calls->count = count;
    for (int i = 0; i < count; i++) {
        pthread_create(&calls->threads[i], NULL, hold, calls);
    }
    while (atomic_load(&calls->begun) < count) {
        sleep_us(100);
    }
}

void join_held_calls(struct held_calls *calls) {
    for (int i = 0; i < calls->count; i++) {
        pthread_join(calls->threads[i], NULL);
    }
    /* If the tools side has aborted the calls, it sends these events. */
    CHECK(calls->signal != NULL || atomic_load(&calls->failures) == calls->count,
          "%d of %d callbacks were notified", atomic_load(&calls->failures), calls->count);
}

long number_in(const char *json, const char *key) {
    char pattern[64];
    snprintf(pattern, sizeof pattern, "\"%s\":", key);
    const char *at = strstr(json, pattern);
    return at == NULL ? -1 : strtol(at + strlen(pattern), NULL, 10);
}

long memory_kb(int process, const char *figure) {
    char line[100];
    snprintf(line, sizeof line, "/proc/%d/status", process);
    FILE *status = fopen(line, "r");
    long kb = -1;
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
        size_t length = strlen(figure);
        if (strncmp(line, figure, length) == 0 && line[length] == ':') {
            kb = strtol(line + length + 1, NULL, 10);
        }
    }
    if (status != NULL) {
        fclose(status);
    }
    return kb;
}

bool is_alive(int process) {
    char path[64];
    char text[300] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        size_t length = fread(text, 1, sizeof text - 1, file);
        text[length] = '\0';
        fclose(file);
    }
    const char *state = strrchr(text, ')');
    bool is_zombie = state != NULL && state[1] == ' ' && (state[2] == 'Z' || state[2] == 'X');
    return process > 0 && !is_zombie && kill(process, 0) == 0;
}

void send_signal(int process, int number) {
    bool is_one = process > 1;
    CHECK(is_one && kill(process, number) == 0, "there is no process %d to send a signal to", process);
}

void await_death(int process) {
    uint64_t start = now_ns();
    while (is_alive(process) && ms_since(start) < 30000) {
        sleep_us(1000);
    }
    CHECK(process > 0 && !is_alive(process), "process %d lives on", process);
}

/* A joined thread is listed until the system has removed it. */
static bool is_ending(const char *thread) {
    enum { PF_EXITING = 4 }; /* of Linux, in the seventh field after the name */
    char path[64];
    unsigned flags = PF_EXITING;
    snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", thread);
    FILE *file = fopen(path, "r");
    if (file != NULL && fscanf(file, "%*[^)]) %*c %*d %*d %*d %*d %*d %u", &flags) != 1) {
        flags = PF_EXITING;
    }
    if (file != NULL) {
        fclose(file);
    }
    return (flags & PF_EXITING) != 0;
}

/* Counts the entries of a folder, except the hidden and the skipped ones. */
static int count_entries(const char *folder, bool (*is_skipped)(const char *name)) {
    DIR *stream = opendir(folder);
    if (stream == NULL) {
        return -1;
    }
    int count = 0;
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        count += entry->d_name[0] != '.' && !(is_skipped != NULL && is_skipped(entry->d_name));
    }
    closedir(stream);
    return count;
}

int open_descriptors(void) {
    return count_entries("/proc/self/fd", NULL);
}

int running_threads(void) {
    return count_entries("/proc/self/task", is_ending);
}
