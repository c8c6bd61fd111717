/* Unusual hosts and misbehaving sidecars: edge FAKE_SIDECAR test ... */
#include "check.h"
#include "plue.h"
#include "plue_guest.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

enum { GRACE_MS = 300 };

static void init(const char *manner) {
    init_manner(manner, (plue_options_t){.abort_grace_ms = GRACE_MS});
}

/* Sets a time limit for the start that a busy machine may exceed. */
static void init_impatient(const char *manner, uint32_t start_timeout_ms, uint32_t call_timeout_ms) {
    init_manner(manner, (plue_options_t){.start_timeout_ms = start_timeout_ms,
                                         .abort_grace_ms = GRACE_MS,
                                         .call_timeout_ms = call_timeout_ms});
}

static pid_t sidecar_process(void) {
    pid_t process = ask_for_process();
    CHECK(process > 0, "%s", plue_get_last_error());
    return process;
}

/* Has the sidecar start a process. */
static pid_t start_process(const char *params) {
    char *json = plue_tool_execute("start", params, NULL);
    pid_t process = (pid_t)number_in(json, "pid");
    CHECK(process > 0 && is_alive(process), "%s", json);
    plue_free_json(json);
    return process;
}

/* Starts a process that leaves the group of the sidecar; libplue ends it on Linux. 0 elsewhere. */
static pid_t start_orphan(void) {
#if defined(__linux__)
    return start_process("{\"detached\":true}");
#else
    return 0;
#endif
}

static void await_orphan(pid_t orphan) {
    if (orphan > 0) {
        await_death(orphan);
    }
}

static atomic_int done_calls;

static void count_done(int status, const char *json, void *wanted) {
    CHECK(status == *(const int *)wanted, "%s", json);
    atomic_fetch_add(&done_calls, 1);
}

/* On a busy machine the time can be over before the program begins. Then the test allows more. */
static void test_silent_start(void) {
    char part[64];
    bool has_begun = false;
    for (uint32_t timeout_ms = 400; !has_begun; timeout_ms *= 2) {
        init_impatient("silent", timeout_ms, 0);
        char *json = plue_tool_list();
        has_begun = !contains(json, "did not begin");
        snprintf(part, sizeof part, "not ready within %u ms", (unsigned)timeout_ms);
        CHECK(is_failure(json, "runtime_unavailable"), "%s", json);
        CHECK(!has_begun || contains(json, part), "%s", json);
        plue_free_json(json);
        plue_shutdown();
    }
}

/* A failed start has a message with the reason. */
TEST(bad_starts) {
    static const char *const starts[][2] = {
        {"exit", "(exit status 5)"},
        {"garbage", "broke the protocol"},
        {"unknown_frame", "broke the protocol"},
        {"short_result", "broke the protocol"},
        {"close", "(killed by signal 9)"},
        {"old", "version 9 of the protocol, this library version 2"},
    };
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        init(starts[i][0]);
        expect_failure("echo", "{}", "runtime_unavailable", starts[i][1]);
        plue_shutdown();
    }
    test_silent_start();
}

static void expect_bad_program(const char *program, const char *part) {
    const char *argv[] = {program, NULL};
    init_with((plue_options_t){.sidecar_argv = argv});
    expect_failure("echo", "{}", "runtime_unavailable", part);
    plue_shutdown();
}

/* The message names a program that cannot be run, and the reason. */
TEST(bad_programs) {
    expect_bad_program("/nonexistent/plue-sidecar", "No such file or directory");
    expect_bad_program("no-such-program-anywhere", "there is no such program");
    expect_bad_program("/dev/null", "Permission denied");
    expect_bad_program("false", "(exit status 1)");
    /* After 99 bytes of at most 100 follows a character of two bytes, which must not be split. */
    char path[220] = "/";
    memset(path + 1, 'p', 98);
    for (size_t at = 99; at < 200; at += 2) {
        memcpy(path + at, "\xc3\xa9", 3);
    }
    expect_bad_program(path, "pp\": No such file or directory");
    /* A name in another encoding. */
    expect_bad_program("/nowhere/caf\xe9", "Cannot start \"/nowhere/caf\xef\xbf\xbd\": ");
}

/* Frames about calls that do not exist, and output, do not disturb a host. */
TEST(babble) {
    init("babble");
    expect_answer("echo", "{\"a\":1}", "{\"a\":1}");
    char *json = plue_tool_list();
    CHECK(contains(json, "\"echo\":{\"name\":\"echo\""), "%s", json);
    plue_free_json(json);
}

/* Invalid frames fail all running calls, and the next call works. */
TEST(garble) {
    struct held_calls calls = {.code = "runtime_crashed", .part = "broke the protocol"};
    init("");
    pid_t process = sidecar_process();
    hold_calls(&calls, 8);
    expect_failure("garble", "{}", "runtime_crashed", "broke the protocol");
    join_held_calls(&calls);
    expect_answer("echo", "{}", "{}");
    CHECK(!is_alive(process), "it lives");
}

/* A text that is empty, has a NUL or is not UTF-8 breaks the protocol. Only a message is repaired,
 * because it is for people. */
TEST(bad_text) {
    static const char *const kinds[] = {"empty", "bytes", "nul", "event", "list", "failure"};
    init("");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char params[40];
        snprintf(params, sizeof params, "{\"%s\":true}", kinds[i]);
        expect_failure("misanswer", params, "runtime_crashed", "broke the protocol");
        expect_answer("echo", "{}", "{}");
    }
    expect_failure("misanswer", "{\"message\":true}", "threw", "a\xef\xbf\xbd" "b\xef\xbf\xbd");
}

/* A sidecar that reports a failure during a call, and does not end, is killed, and the call fails
 * with the reason. Repeated, because either the caller or the sidecar's thread reads the report. */
TEST(failed_later) {
    init_manner("", (plue_options_t){.abort_grace_ms = 10});
    for (int i = 0; i < 50; i++) {
        pid_t process = sidecar_process();
        expect_failure("give_up", "{}", "runtime_crashed", "The list is too large");
        CHECK(!is_alive(process), "it lives");
        expect_answer("echo", "{}", "{}");
    }
}

/* A child of the sidecar holds its socket. The crash is still noticed, and the processes that the
 * sidecar has started are ended: on Linux, even processes that have left its process group. */
TEST(grandchild) {
    init("grandchild");
    pid_t child = start_process("{}");
    pid_t orphan = start_orphan();
    expect_failure("crash", "{\"code\":3}", "runtime_crashed", "(exit status 3)");
    await_death(child);
    await_orphan(orphan);
}

/* A sidecar that does not end after SHUTDOWN is killed. */
TEST(stay) {
    init("stay");
    pid_t process = sidecar_process();
    uint64_t start = now_ns();
    plue_shutdown();
    CHECK(!is_alive(process), "it lives");
    CHECK(ms_since(start) > 299, "it was given %.3f ms", ms_since(start));
}

/* The tools reject config_json: every call fails with the reason. */
TEST(refused) {
    init_manner("", (plue_options_t){.config_json = "{\"nonsense\":true}"});
    expect_failure("echo", "{}", "invalid_argument", "unknown field \"nonsense\"");
    char *json = plue_tool_list();
    CHECK(is_failure(json, "invalid_argument"), "%s", json);
    plue_free_json(json);
    plue_shutdown();
    init("");
    expect_answer("echo", "{}", "{}");
}

/* A name in $PLUE_TOOLS that is not UTF-8 fails calls only if no option names the tools. */
TEST(bad_environment) {
    setenv("PLUE_TOOLS", "tools-\xff.ts", 1);
    init("");
    expect_failure("echo", "{}", "invalid_argument", "PLUE_TOOLS is not UTF-8");
    plue_shutdown();
    init_manner("", (plue_options_t){.tools_module = "tools.ts"});
    expect_answer("echo", "{}", "{}");
    plue_shutdown();
    unsetenv("PLUE_TOOLS");
}

/* Failed starts are followed by pauses, except before the first restart. */
TEST(backoff) {
    init("exit");
    expect_failure("echo", "{}", "runtime_unavailable", "(exit status 5)");
    expect_failure("echo", "{}", "runtime_unavailable", "(exit status 5)");
    for (int i = 0; i < 8 && !contains(plue_get_last_error(), "the next start"); i++) {
        plue_free_json(plue_tool_execute("echo", "{}", NULL));
    }
    CHECK(contains(plue_get_last_error(), "the next start is possible in"), "%s",
          plue_get_last_error());
    while (contains(plue_get_last_error(), "the next start")) {
        sleep_us(1000);
        plue_free_json(plue_tool_execute("echo", "{}", NULL));
    }
    CHECK(contains(plue_get_last_error(), "(exit status 5)"), "%s", plue_get_last_error());
}

static void *list_in_vain(void *unused) {
    char *json = plue_tool_list();
    CHECK(is_failure(json, "runtime_unavailable"), "%s", json);
    plue_free_json(json);
    return unused;
}

/* A thread that dispatches sleeps while a submitted call waits for the second start of a sidecar. */
TEST(slow_restart) {
    int unavailable = PLUE_RUNTIME_UNAVAILABLE;
    int dispatches = 0;
    pthread_t thread;
    init_impatient("silent", 300, 0);
    CHECK_OK(plue_tool_submit("echo", "{}", NULL, count_done, &unavailable));
    list_in_vain(NULL);
    pthread_create(&thread, NULL, list_in_vain, NULL);
    sleep_us(50000);
    while (atomic_load(&done_calls) == 0) {
        plue_events_dispatch(-1);
        dispatches++;
    }
    atomic_store(&done_calls, 0);
    pthread_join(thread, NULL);
    CHECK(dispatches < 10, "%d dispatches", dispatches);
}

/* A host may ignore SIGCHLD. */
TEST(sigchld_ignored) {
    signal(SIGCHLD, SIG_IGN);
    init("");
    for (int i = 0; i < 3; i++) {
        pid_t orphan = start_orphan();
        expect_failure("crash", "{\"code\":1}", "runtime_crashed", "The tool process ended");
        await_orphan(orphan);
        expect_answer("echo", "{}", "{}");
    }
    plue_shutdown();
    CHECK(waitpid(-1, NULL, 0) < 0, "a child is left");
    signal(SIGCHLD, SIG_DFL);
}

/* A host may call wait() for any child, including children of the library. */
TEST(thief) {
    init("");
    pid_t process = sidecar_process();
    send_signal(process, SIGKILL);
    int status;
    waitpid(-1, &status, 0);
    char *json = plue_tool_execute("echo", "{\"a\":2}", NULL);
    /* The call may have been sent to the killed sidecar. */
    if (is_failure(json, "runtime_crashed")) {
        plue_free_json(json);
        json = plue_tool_execute("echo", "{\"a\":2}", NULL);
    }
    CHECK(strcmp(json, "{\"a\":2}") == 0, "%s", json);
    plue_free_json(json);
}

/* The sidecar has the descriptors 0 to 3, and inherits no other. */
TEST(inherited) {
    int others[5];
    for (int i = 0; i < 5; i++) {
        others[i] = open("/dev/null", O_RDONLY);
    }
    init("");
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/fd", (long)sidecar_process());
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        CHECK(atoi(entry->d_name) <= 3, "descriptor %s", entry->d_name);
    }
    if (folder != NULL) {
        closedir(folder);
    }
    plue_shutdown();
    for (int i = 0; i < 5; i++) {
        close(others[i]);
    }
}

/* Starts and ends leave no descriptor and no thread behind. */
TEST(start_stop) {
    init("");
    expect_answer("echo", "{}", "{}");
    plue_shutdown();
    int descriptors = open_descriptors();
    int threads = running_threads();
    for (int i = 0; i < 100; i++) {
        init("");
        expect_answer("echo", "{}", "{}");
        plue_shutdown();
    }
    CHECK(open_descriptors() == descriptors, "%d more", open_descriptors() - descriptors);
    CHECK(running_threads() == threads, "%d more", running_threads() - threads);
}

/* Many first calls start one sidecar. */
TEST(start_race) {
    for (int round = 0; round < 8; round++) {
        init("");
        on_threads(16, call_echo, NULL);
        plue_shutdown();
    }
}

static atomic_int shutdowns;

static void *call_always(void *unused) {
    while (atomic_load(&shutdowns) < 2) {
        char *json = plue_tool_execute("echo", "{}", NULL);
        CHECK(strcmp(json, "{}") == 0 || is_failure(json, "shutdown") ||
                  is_failure(json, "runtime_unavailable"),
              "%s", json);
        plue_free_json(json);
    }
    return unused;
}

static void *shut_down_often(void *unused) {
    for (int i = 0; i < 10; i++) {
        plue_shutdown();
        sleep_us(2000);
    }
    atomic_fetch_add(&shutdowns, 1);
    return unused;
}

/* Two threads may call plue_shutdown() while others call tools. */
TEST(shutdown_race) {
    pthread_t stoppers[2];
    setenv("PLUE_SIDECAR", fake_sidecar, 1);
    atomic_store(&shutdowns, 0);
    for (int i = 0; i < 2; i++) {
        pthread_create(&stoppers[i], NULL, shut_down_often, NULL);
    }
    on_threads(8, call_always, NULL);
    for (int i = 0; i < 2; i++) {
        pthread_join(stoppers[i], NULL);
    }
    plue_shutdown();
    unsetenv("PLUE_SIDECAR");
}

static atomic_int wakes;

static void count_wake(void) {
    atomic_fetch_add(&wakes, 1);
}

static void *shut_down_once(void *unused) {
    plue_shutdown();
    return unused;
}

static void drain_all(void) {
    uint8_t bytes[4096];
    while (plue_guest_drain(bytes, sizeof bytes) > 0) {
    }
}

/* A shutdown notifies both the guest and the sidecar of a process, and wakes the guest each time,
 * even if the guest drains in between. */
TEST(both_hostings) {
    const char *argv[] = {fake_sidecar, "stay", NULL};
    init_with((plue_options_t){.sidecar_argv = argv, .abort_grace_ms = FOREVER_MS});
    pid_t process = sidecar_process();
    CHECK(plue_guest_attach(count_wake) == 0, "the runtime is not attached");
    drain_all();
    pthread_t thread;
    pthread_create(&thread, NULL, shut_down_once, NULL);
    while (atomic_load(&wakes) == 0) {
        sleep_us(100);
    }
    CHECK(is_alive(process), "the runtime is told when the sidecar has ended");
    drain_all();
    send_signal(process, SIGKILL);
    pthread_join(thread, NULL);
    CHECK(atomic_load(&wakes) == 2, "%d wakes: SHUTDOWN and CONFIG", atomic_load(&wakes));
    drain_all();
    CHECK(plue_guest_wakers() == 0, "%d threads are about to wake", plue_guest_wakers());
    plue_guest_detach();
    CHECK(plue_guest_attach(count_wake) == 0, "it cannot attach again");
    plue_guest_detach();
}

static void *restart_often(void *is_over) {
    for (int i = 0; i < 20; i++) {
        expect_failure("crash", "{\"code\":0}", "runtime_crashed", "");
        expect_answer("echo", "{}", "{}");
    }
    atomic_store((atomic_bool *)is_over, true);
    return NULL;
}

/* A host may fork while one sidecar replaces another: calls in the child fail. */
TEST(fork_race) {
    atomic_bool is_over = false;
    pthread_t thread;
    init("");
    expect_answer("echo", "{}", "{}");
    pthread_create(&thread, NULL, restart_often, &is_over);
    while (!atomic_load(&is_over)) {
        pid_t child = fork();
        if (child == 0) {
            char *json = plue_tool_execute("echo", "{}", NULL);
            _exit(is_failure(json, "runtime_unavailable") ? 0 : 1);
        }
        int status = -1;
        waitpid(child, &status, 0);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", status);
    }
    pthread_join(thread, NULL);
}

/* Starts a sidecar with a short time to respond. That is also its time to start, which a busy
 * machine may need to be longer. Returns that time. */
static uint32_t start_impatiently(const char *manner, uint32_t call_timeout_ms) {
    uint32_t timeout_ms = 2000;
    init_impatient(manner, timeout_ms, call_timeout_ms);
    while (ask_for_process() < 0) {
        plue_shutdown();
        timeout_ms *= 2;
        init_impatient(manner, timeout_ms, call_timeout_ms);
    }
    return timeout_ms;
}

/* The sidecar is killed, because it does not respond, and another one is started. */
static void expect_to_be_given_up(const char *tool, uint32_t timeout_ms, pid_t process) {
    char part[64];
    snprintf(part, sizeof part, "did not respond for %u ms", (unsigned)timeout_ms);
    expect_failure(tool, "{}", "runtime_crashed", part);
    CHECK(!is_alive(process), "it lives");
    pid_t other = ask_for_process();
    while (other < 0) {
        sleep_us(10000); /* it did not start in time, or must not yet start again */
        other = ask_for_process();
    }
    CHECK(other != process, "it is the same");
}

/* A call that waits for the start of a sidecar can be aborted. */
TEST(abort_of_start) {
    init("silent");
    call_and_abort("echo", "{}", "/", "user pressed stop"); /* immediately */
}

/* A sidecar whose thread is busy for ever is killed after an abort, and another one started. */
TEST(wedge) {
    uint32_t timeout_ms = start_impatiently("wedged", 0);
    pid_t process = sidecar_process();
    call_and_abort("hold", "{}", NULL, "grace period");
    expect_to_be_given_up("echo", timeout_ms, process);
}

/* A tool that merely ignores its signal does not end its sidecar, even when the time to respond is
 * over. */
TEST(no_wedge) {
    uint32_t timeout_ms = start_impatiently("", 0);
    pid_t process = sidecar_process();
    call_and_abort("hold", "{\"deaf\":true}", NULL, "grace period");
    uint64_t start = now_ns();
    while (ms_since(start) < timeout_ms + 100) {
        CHECK(sidecar_process() == process, "another sidecar");
        sleep_us(10000);
    }
}

/* Endless events delay neither the end of an aborted call nor the PING to its sidecar, which never
 * responds here. */
TEST(flood) {
    uint32_t timeout_ms = start_impatiently("mute", 0);
    pid_t process = sidecar_process();
    call_and_abort("hold", "{\"deaf\":true,\"flood\":true}", NULL, "grace period");
    expect_to_be_given_up("hold", timeout_ms, process);
}

/* A call that exceeds its time limit is ended, and its tool is aborted. Other calls continue. */
TEST(call_timeout) {
    start_impatiently("", 200);
    pid_t process = sidecar_process();
    uint64_t start = now_ns();
    expect_failure("hold", "{}", "timeout", "longer than 200 ms");
    CHECK(ms_since(start) > 199, "it was given %.3f ms", ms_since(start));
    expect_answer("echo", "{}", "{}");
    CHECK(sidecar_process() == process, "it is another sidecar");
}

/* A sidecar that is stopped, even in the middle of a frame, is noticed and killed. */
TEST(stopped) {
    static const char *const manners[] = {"", "half"};
    for (int i = 0; i < 2; i++) {
        start_impatiently(manners[i], 200);
        pid_t process = sidecar_process();
        if (i == 0) {
            send_signal(process, SIGSTOP);
        }
        expect_failure("echo", "{}", "timeout", "longer than 200 ms");
        await_death(process);
        plue_shutdown();
    }
}

/* Makes the second descriptor the standard error, and sets the options. Returns the old one. */
static int divert_stderr(const int pair[2]) {
    int kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 20);
    dup2(pair[1], STDERR_FILENO);
    init("");
    return kept;
}

/* Prints to a pipe, or to a terminal, which counts as writable if it can take one byte. */
static void print_unread(bool is_terminal, bool logs_first) {
    static const char *const printers[] = {"log", "shout", "log"};
    int pair[2] = {-1, -1};
    if (is_terminal) {
        pair[0] = posix_openpt(O_RDWR | O_NOCTTY);
        CHECK(grantpt(pair[0]) == 0 && unlockpt(pair[0]) == 0, "errno %d", errno);
        pair[1] = open(ptsname(pair[0]), O_RDWR | O_NOCTTY);
    } else {
        CHECK(pipe(pair) == 0, "no pipe");
    }
    int kept = divert_stderr(pair);
    int failures = 0; /* to be printed where somebody reads */
    for (int i = logs_first ? 0 : 1; i < 3; i++) {
        char *json = plue_tool_execute(printers[i], "{\"bytes\":500000}", NULL);
        failures += !contains(json, "ed\":true");
        plue_free_json(json);
    }
    char *crash = plue_tool_execute("crash", "{\"code\":4}", NULL);
    plue_shutdown();
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(pair[0]);
    close(pair[1]);
    CHECK(failures == 0, "%d calls failed", failures);
    /* The output of tools may be meant for one caller alone. */
    CHECK(contains(crash, "(exit status 4)\"}"), "%s", crash);
    plue_free_json(crash);
}

/* A tool does not wait for a reader of the host's standard error, and its output is not in the message
 * about a crash. */
TEST(unread_output) {
    print_unread(false, false);
    print_unread(true, false);
    print_unread(true, true);
}

/* No output to a file is dropped, however fast a tool prints. */
TEST(output_to_file) {
    FILE *file = tmpfile();
    int kept = divert_stderr((const int[]){-1, fileno(file)});
    expect_answer("shout", "{\"bytes\":4000000}", "{\"shouted\":true}");
    plue_shutdown();
    dup2(kept, STDERR_FILENO);
    close(kept);
    fseek(file, 0, SEEK_END);
    CHECK(ftell(file) == 4000000 + (long)strlen("\nthe last line\n"), "%ld bytes", ftell(file));
    fclose(file);
}

/* Output within the bound arrives unchanged, and dropped lines are counted. */
TEST(dropped_output) {
    enum { PRINTED = 1000000 };
    int pair[2];
    CHECK(pipe(pair) == 0, "no pipe");
    int kept = divert_stderr(pair);
    close(pair[1]);
    char *json = plue_tool_execute("shout", "{\"bytes\":1000000}", NULL);
    /* The tool has printed all of its output, which is read from here on. */
    dup2(kept, STDERR_FILENO);
    close(kept);
    static char text[PRINTED + 1000];
    long expected = PRINTED + (long)strlen("\nthe last line\n");
    long total = 0;
    for (size_t used = 0; total < expected;) {
        ssize_t got = read(pair[0], text + used, sizeof text - 1 - used);
        used += got > 0 ? (size_t)got : 0;
        total = (long)used;
        for (const char *note = text; (note = strstr(note, "plue: ")) != NULL; note++) {
            const char *end = strchr(note, '\n');
            total += end == NULL ? 0 : strtol(note + strlen("plue: "), NULL, 10) - (end + 1 - note);
        }
    }
    CHECK(total == expected && contains(text, "were dropped here\n"), "%ld bytes", total);
    CHECK(contains(json, "shouted"), "%s", json);
    plue_free_json(json);
    plue_shutdown();
    close(pair[0]);
}

static void expect_bad_options(plue_options_t options, const char *part) {
    options.struct_size = sizeof options;
    CHECK(plue_init_with_options(&options) == -1, "%s", part);
    CHECK(contains(plue_get_last_error(), part), "%s", plue_get_last_error());
    CHECK(is_failure(plue_get_last_error_json(), "invalid_argument"), "%s",
          plue_get_last_error_json());
}

/* The total size of the arguments of running calls is bounded. */
TEST(bytes_in_flight) {
    init_manner("", (plue_options_t){.max_bytes_in_flight = 1000});
    int aborted = PLUE_ABORTED;
    char params[700];
    snprintf(params, sizeof params, "{\"a\":\"%0600d\"}", 0);
    char larger[1100];
    snprintf(larger, sizeof larger, "{\"a\":\"%01000d\"}", 0);
    expect_failure("echo", larger, "invalid_argument", "max_bytes_in_flight is 1000");
    expect_answer("echo", params, params);

    plue_abort_signal_t *signal = plue_abort_signal_new();
    plue_tool_context_t context = {.abort_signal = signal};
    CHECK_OK(plue_tool_submit("hold", params, &context, count_done, &aborted));
    expect_failure("echo", params, "overloaded", "max_bytes_in_flight is 1000");
    CHECK(plue_tool_submit("echo", params, NULL, count_done, &aborted) == PLUE_OVERLOADED, "%s",
          plue_get_last_error());
    expect_answer("echo", "{}", "{}");
    plue_abort_signal_abort(signal, "enough");
    while (atomic_load(&done_calls) == 0) {
        plue_events_dispatch(-1);
    }
    expect_answer("echo", params, params);
    plue_abort_signal_release(signal);
}

/* Calls that are aborted while the tools start, or that time out before a stopped sidecar has read
 * them. The end of a call takes the same time, however many calls there are. */
static void end_crowd(const char *manner, bool aborts) {
    enum { CROWD = 60000 };
    static plue_abort_signal_t *signals[CROWD];
    int status = aborts ? PLUE_ABORTED : PLUE_TIMEOUT;
    init_manner(manner, (plue_options_t){.abort_grace_ms = 1, .call_timeout_ms = 2000});
    if (!aborts) {
        send_signal(sidecar_process(), SIGSTOP);
    }
    for (int i = 0; i < CROWD; i++) {
        plue_tool_context_t context = {.abort_signal = signals[i] = plue_abort_signal_new()};
        CHECK_OK(plue_tool_submit("hold", "{}", &context, count_done, &status));
    }
    for (int i = 0; i < CROWD; i++) {
        plue_abort_signal_abort(aborts ? signals[i] : NULL, "enough");
        plue_abort_signal_release(signals[i]);
    }
    while (atomic_load(&done_calls) < CROWD) {
        plue_events_dispatch(-1);
    }
    atomic_store(&done_calls, 0);
    plue_shutdown();
}

TEST(crowds) {
    end_crowd("silent", true);
    end_crowd("", false);
}

static void note_message(int status, const char *json, void *messages) {
    CHECK(status == PLUE_ABORTED, "%s", json);
    strncat(messages, json, 99);
}

/* A call that ends before it was sent frees its arguments, and its tool does not run. */
TEST(withdrawn_call) {
    enum { LARGE = 4 << 20 }; /* more than the socket takes */
    char *params = malloc(LARGE);
    char messages[200] = "";
    init_manner("", (plue_options_t){.abort_grace_ms = 1});
    pid_t process = sidecar_process();
    memset(params, 'x', LARGE);
    memcpy(params, "{\"a\":\"", 6);
    memcpy(params + LARGE - 3, "\"}", 3);
    plue_abort_signal_t *signal = plue_abort_signal_new();
    plue_tool_context_t context = {.abort_signal = signal};
    send_signal(process, SIGSTOP);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(plue_tool_submit("hold", params, &context, note_message, messages));
    }
    plue_abort_signal_abort(signal, "enough");
    while (!contains(messages, "grace period") || !contains(messages, "\"message\":\"enough\"")) {
        plue_events_dispatch(-1);
    }
    send_signal(process, SIGCONT);
    expect_answer("echo", "{}", "{}");
    plue_abort_signal_release(signal);
    free(params);
}

/* Options are checked. Options of older and newer callers are read. */
TEST(options) {
    const char *nothing[] = {NULL};
    const char *no_name[] = {"", NULL};
    plue_options_t zero = {.struct_size = 0};
    CHECK(plue_init_with_options(NULL) == -1 && plue_init_with_options(&zero) == -1, "no options");
    CHECK(contains(plue_get_last_error(), "struct_size"), "%s", plue_get_last_error());
    expect_bad_options((plue_options_t){.mode = 7}, "mode");
    expect_bad_options((plue_options_t){.sidecar_argv = nothing}, "sidecar_argv is empty");
    expect_bad_options((plue_options_t){.sidecar_argv = no_name}, "sidecar_argv is empty");
    expect_bad_options((plue_options_t){.sidecar_cwd = ""}, "sidecar_cwd is empty");
    expect_bad_options((plue_options_t){.config_json = "\xff"}, "UTF-8");

    /* A caller that was compiled with a version that has fewer, or more, fields. */
    struct {
        plue_options_t options;
        char more[64];
    } later;
    memset(&later, 0xFF, sizeof later);
    memset(&later.options, 0, sizeof later.options);
    later.options.struct_size = sizeof later;
    CHECK_OK(plue_init_with_options(&later.options));
    CHECK_OK(plue_init(NULL)); /* a second one with equal options */
    CHECK(plue_init("{}") == -1, "a second plue_init() with others");
    plue_shutdown();
    CHECK(plue_init("{}") == -1, "the first plue_init() is forgotten");
    plue_shutdown();
    const char *argv[] = {"sidecar", "a", NULL};
    const char *same[] = {"sidecar", "a", NULL};
    plue_options_t options = {.struct_size = sizeof options, .sidecar_argv = argv};
    CHECK_OK(plue_init_with_options(&options));
    options.sidecar_argv = same;
    CHECK_OK(plue_init_with_options(&options));
    options.call_timeout_ms = 1;
    CHECK(plue_init_with_options(&options) == -1, "another timeout");
    plue_shutdown();
}

/* The last of several plue_shutdown() ends the tools, and the programs that tools have started. */
TEST(two_users) {
    init("");
    pid_t process = sidecar_process();
    pid_t child = start_process("{}");
    init("");
    plue_shutdown();
    CHECK(sidecar_process() == process, "the tools were ended for all");
    plue_shutdown();
    CHECK(!is_alive(process), "it lives");
    await_death(child);
    plue_shutdown(); /* one too many does nothing */
    init("");
    CHECK(sidecar_process() > 0, "%s", plue_get_last_error());
}

int main(int count, char **arguments) {
    return check_with_sidecar("edge", count, arguments);
}
