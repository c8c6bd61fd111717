/* The suite with a "JavaScript runtime" written in C attached, which detaches and attaches again
 * while calls run. For the sanitizers: fake_guest callback|socket CALLS part ...; CALLS is the
 * number of calls that each of 8 threads makes meanwhile. */
#include "check.h"
#include "fake_tools.h"
#include "plue.h"
#include "plue_guest.h"

#include <sched.h>

enum orders { SERVE, CYCLE, STOP };
static atomic_int order = SERVE;
static atomic_int cycles;
static atomic_bool attached;
static int wake_pipe[2];
static bool by_socket;
static int calls_while_cycling;

static void wake(void) {
    if (write(wake_pipe[1], "", 1) != 1) {
        abort();
    }
}

static void push(const uint8_t *frame, size_t length) {
    if (plue_guest_push(frame, (uint32_t)length) != 0) {
        abort();
    }
}

/* Drains all frames into a buffer that is too small at first. */
static void drain(struct fake_tools *tools, uint8_t **buffer, uint32_t *size) {
    for (;;) {
        int32_t length = plue_guest_drain(*buffer, *size);
        if (length == 0) {
            return;
        }
        if (length < 0) {
            *size = (uint32_t)-length;
            *buffer = realloc(*buffer, *size);
            continue;
        }
        fake_tools_feed(tools, *buffer, (size_t)length);
    }
}

/* One attachment, until it is stopped or has run enough calls. */
static void attach_and_serve(void) {
    struct fake_tools tools = {.send = push, .version = 2};
    uint32_t size = 20;
    uint8_t *buffer = malloc(size);
    int wakes = plue_guest_attach(by_socket ? NULL : wake);
    if (wakes < 0) {
        abort();
    }
    CHECK(plue_guest_attach(wake) == -1, "a second runtime attached");
    wakes = by_socket ? wakes : wake_pipe[0];
    drain(&tools, &buffer, &size);
    char *here = plue_tool_execute("echo", "{}", NULL);
    CHECK(is_failure(here, "would_deadlock"), "%s", here);
    plue_free_json(here);
    here = plue_tool_list();
    CHECK(here[0] == '{' && !is_failure(here, "would_deadlock"), "%s", here);
    plue_free_json(here);
    uint8_t malformed[16] = {11, 0, 0, 0, 21};
    CHECK(plue_guest_push(malformed, 16) == -1, "a frame that is too short");
    uint8_t unknown[16] = {12, 0, 0, 0, 99};
    CHECK(plue_guest_push(unknown, 16) == -1, "a frame of no known type");
    atomic_store(&attached, true);
    while (atomic_load(&order) != STOP && !(atomic_load(&order) == CYCLE && tools.calls > 100)) {
        int timeout = fake_tools_tick(&tools);
        struct pollfd wait = {wakes, POLLIN, 0};
        char bytes[64];
        if (poll(&wait, 1, timeout < 0 || timeout > 20 ? 20 : timeout) > 0 &&
            read(wakes, bytes, sizeof bytes) < 0) {
            abort();
        }
        drain(&tools, &buffer, &size);
    }
    plue_guest_detach();
    atomic_store(&attached, false);
    while (plue_guest_wakers() > 0) {
        sched_yield();
    }
    if (by_socket) {
        close(wakes);
    }
    uint8_t late[16] = {12, 0, 0, 0, 21};
    CHECK(plue_guest_push(late, 16) == -1, "a push after the detachment");
    CHECK(plue_guest_drain(late, 16) == 0, "a drain after the detachment");
    fake_tools_clear(&tools);
    free(buffer);
    atomic_fetch_add(&cycles, 1);
}

static void *run_runtime(void *unused) {
    while (atomic_load(&order) != STOP) {
        attach_and_serve();
    }
    return unused;
}

static void *call_while_cycling(void *unused) {
    for (int i = 0; i < calls_while_cycling; i++) {
        char params[64];
        snprintf(params, sizeof params, "{\"i\":%d}", i);
        char *json = plue_tool_execute("echo", params, NULL);
        bool lost = is_failure(json, "runtime_gone") || is_failure(json, "runtime_unavailable");
        CHECK(lost || strcmp(json, params) == 0, "%s", json);
        plue_free_json(json);
        if (lost) {
            sleep_us(50);
        }
    }
    return unused;
}

static void test_cycling(void) {
    pthread_t threads[8];
    atomic_store(&order, CYCLE);
    for (int i = 0; i < 8; i++) {
        pthread_create(&threads[i], NULL, call_while_cycling, NULL);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("the runtime was attached %d times\n", atomic_load(&cycles));
}

/* After a change of the options, the runtime lists its tools again. */
static void test_options(void) {
    plue_shutdown();
    CHECK_OK(plue_init("{\"nonsense\":1}"));
    expect_failure("echo", "{}", "invalid_argument", "nonsense");
    char *json = plue_tool_list();
    CHECK(is_failure(json, "invalid_argument"), "%s", json);
    plue_free_json(json);
    plue_shutdown();
    expect_answer("echo", "{}", "{}");
    /* This guest needs no module, so a wrong name of a module has no effect. */
    plue_shutdown();
    setenv("PLUE_TOOLS", "\xff", 1);
    CHECK_OK(plue_init("{}"));
    expect_answer("echo", "{}", "{}");
    unsetenv("PLUE_TOOLS");
}

int main(int count, char **arguments) {
    if (count < 3 || pipe(wake_pipe) != 0) {
        fprintf(stderr, "usage: fake_guest callback|socket CALLS part ...\n");
        return 2;
    }
    by_socket = strcmp(arguments[1], "socket") == 0;
    calls_while_cycling = atoi(arguments[2]);
    pthread_t runtime;
    pthread_create(&runtime, NULL, run_runtime, NULL);
    while (!atomic_load(&attached)) {
        sleep_us(100);
    }
    suite_run(NULL, count - 3, arguments + 3);
    test_options();
    test_cycling();
    atomic_store(&order, STOP);
    pthread_join(runtime, NULL);
    /* A sidecar does not take over silently. */
    expect_failure("echo", "{}", "runtime_unavailable", "No JavaScript runtime");
    plue_shutdown();
    close(wake_pipe[0]);
    close(wake_pipe[1]);
    return check_verdict("fake_guest");
}
