/* The start and end of the sidecar's process: process FAKE_SIDECAR test ..., or process host word...
 *
 * This program is linked statically, so that its own functions can replace system calls. */
#include "check.h"
#include "plue.h"
#include "plue_guest.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#if defined(__linux__)
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

static void init(const char *manner, uint32_t start_timeout_ms) {
    init_manner(manner, (plue_options_t){.start_timeout_ms = start_timeout_ms});
}

static bool is_open(int descriptor) {
    return fcntl(descriptor, F_GETFD) >= 0;
}

enum { LINK_SIZE = 256 };

/* Reads the file behind a descriptor of a process; "" on systems without /proc. */
static void read_descriptor(const char *process, int descriptor, char *target) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%s/fd/%d", process, descriptor);
    ssize_t length = readlink(path, target, LINK_SIZE - 1);
    target[length < 0 ? 0 : length] = '\0';
}

/* Calls a tool while some of the descriptors 0 to 2 are closed, by the bits of `closed`. Nothing is
 * printed meanwhile. */
static void call_without(unsigned closed) {
    char targets[3][LINK_SIZE];
    int kept[3];
    bool used[3];
    for (int i = 0; i < 3; i++) {
        kept[i] = fcntl(i, F_DUPFD_CLOEXEC, 20);
        if (closed & 1u << i) {
            close(i);
        }
    }
    init("", FOREVER_MS);
    int number = ask_for_process();
    char process[32];
    snprintf(process, sizeof process, "%d", number);
    for (int i = 0; i < 3; i++) {
        used[i] = (closed & 1u << i) != 0 && is_open(i);
        read_descriptor(process, i, targets[i]);
    }
    plue_shutdown();
    int guest = plue_guest_attach(NULL);
    plue_guest_detach();
    close(guest);
    for (int i = 0; i < 3; i++) {
        dup2(kept[i], i);
        close(kept[i]);
    }
    CHECK(number > 0, "closed %u: there is no sidecar", closed);
    CHECK(guest > STDERR_FILENO, "closed %u: the guest got descriptor %d", closed, guest);
    for (int i = 0; i < 3; i++) {
        CHECK(!used[i], "closed %u: the library took descriptor %d", closed, i);
#if defined(__linux__)
        const char *wanted = i == STDIN_FILENO ? "/dev/null" : "pipe:";
        CHECK(strncmp(targets[i], wanted, strlen(wanted)) == 0,
              "closed %u: the sidecar's descriptor %d is %s", closed, i, targets[i]);
#endif
    }
}

TEST(no_stdio) {
    for (unsigned closed = 0; closed < 8; closed++) {
        call_without(closed);
    }
}

static void call_and_shut_down(void) {
    expect_answer("echo", "{}", "{}");
    plue_shutdown();
}

static void call_in_child(void) {
    in_child(call_and_shut_down);
}

static void expect_forked(void) {
    expect_failure("echo", "{}", "runtime_unavailable",
                   "call plue_shutdown() before fork(), or exec()");
    CHECK(plue_init("{}") == -1, "it was initialised");
    plue_shutdown();
}

static void abort_a_call(void) {
    plue_abort_signal_t *signal = plue_abort_signal_new();
    plue_tool_context_t context = {.abort_signal = signal};
    plue_abort_signal_abort(signal, "stop");
    expect_failure_with(&context, "echo", "{}", "aborted", "stop");
    plue_abort_signal_release(signal);
    call_and_shut_down();
}

/* A fork before the tools are started, or after they have ended, loses nothing. */
TEST(fork) {
    init("", FOREVER_MS);
    in_child(call_in_child);
    in_child(abort_a_call);
    expect_answer("echo", "{}", "{}");
    in_child(expect_forked);
    expect_answer("echo", "{}", "{}");
    plue_shutdown();
    init("", FOREVER_MS);
    in_child(call_and_shut_down);
    call_and_shut_down();
    int guest = plue_guest_attach(NULL);
    in_child(expect_forked);
    plue_guest_detach();
    close(guest);
    in_child(plue_shutdown);
}

static char *early_answer;
static char *early_failure;
static char *early_last_error;

/* A constructor of the program, like the constructor of a global object in C++. */
__attribute__((constructor)) static void call_early(void) {
    if (getenv("PLUE_TEST_EARLY") != NULL) {
        early_answer = plue_tool_execute("echo", "{\"a\":1}", NULL);
        early_failure = plue_tool_execute("nope", "{}", NULL);
        early_last_error = strdup(plue_get_last_error_json());
        plue_shutdown();
    }
}

TEST(early) {
    CHECK(early_answer != NULL && strcmp(early_answer, "{\"a\":1}") == 0, "%s", early_answer);
    CHECK(is_failure(early_failure, "unknown_tool"), "%s", early_failure);
    CHECK(strcmp(early_last_error, early_failure) == 0, "%s", early_last_error);
    plue_free_json(early_answer);
    plue_free_json(early_failure);
    free(early_last_error);
    expect_failure("nope", "{}", "unknown_tool", "nope");
}

#if defined(__linux__)

static bool never_exec;

/* Replaces the system's function: a file system that does not answer blocks the caller. */
int execve(const char *path, char *const argv[], char *const envp[]) {
    while (never_exec) {
        pause();
    }
    return (int)syscall(SYS_execve, path, argv, envp);
}

TEST(never_exec) {
    never_exec = true;
    init("", 200);
    expect_failure("echo", "{}", "runtime_unavailable", "did not begin within the time to start");
    plue_shutdown();
    CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "its process is still there");
    never_exec = false;
    init("", FOREVER_MS);
    expect_answer("echo", "{}", "{}");
}

static atomic_bool holds_starts;
static atomic_bool is_held;

/* Replaces the system's function: blocks a start just before it makes a process. */
int clone(int (*run)(void *), void *stack, int flags, void *argument, ...) {
    while (atomic_load(&holds_starts)) {
        atomic_store(&is_held, true);
        sleep_us(1000);
    }
    int (*real)(int (*)(void *), void *, int, void *, ...);
    void *symbol = dlsym(RTLD_NEXT, "clone");
    memcpy(&real, &symbol, sizeof real);
    return real(run, stack, flags, argument);
}

/* A child that another thread makes during a start, and that lives on, does not delay the start. */
TEST(fork_in_start) {
    atomic_store(&holds_starts, true);
    init("", FOREVER_MS);
    pthread_t caller;
    pthread_create(&caller, NULL, call_echo, NULL);
    while (!atomic_load(&is_held)) {
        sleep_us(1000);
    }
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(1);
    }
    atomic_store(&holds_starts, false);
    pthread_join(caller, NULL);
    send_signal(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static bool never_kill;

/* Replaces the system's function: a process that hangs in a system call does not end. */
int kill(pid_t process, int number) {
    return never_kill ? 0 : (int)syscall(SYS_kill, process, number);
}

/* Replaces the system's function, whose call makes the guardian end the sidecar. */
int shutdown(int socket, int how) {
    return never_kill ? 0 : (int)syscall(SYS_shutdown, socket, how);
}

TEST(unkillable) {
    init("close", FOREVER_MS);
    never_kill = true;
    expect_failure("echo", "{}", "runtime_unavailable", "(killed, but not ended: process ");
    plue_shutdown();
    never_kill = false;
    const char *number = strstr(plue_get_last_error(), "not ended: process ");
    pid_t process = number == NULL ? 0 : (pid_t)strtol(number + strlen("not ended: process "), NULL, 10);
    send_signal(process, SIGKILL);
    await_death(process);
}

static pid_t parent_of(pid_t process) {
    char path[64];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)process);
    FILE *file = fopen(path, "r");
    CHECK(file != NULL && fscanf(file, "%*d %*s %*c %d", &parent) == 1, "%s", path);
    fclose(file);
    return parent;
}

/* If a tool stops the guardian, the processes of the tool are still killed. */
TEST(stopped_guardian) {
    init("", FOREVER_MS);
    char *json = plue_tool_execute("start", "{\"detached\":true}", NULL);
    send_signal(parent_of(ask_for_process()), SIGSTOP);
    plue_shutdown();
    CHECK(!is_alive((int)number_in(json, "pid")), "%s", json);
    plue_free_json(json);
}

static atomic_bool is_endless;

/* Replaces the system's function: a remaining child of the sidecar sends without end. */
ssize_t recv(int socket, void *bytes, size_t length, int flags) {
    static const uint8_t pong[] = {12, 0, 0, 0, 21, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    if (!atomic_load(&is_endless)) {
        return recvfrom(socket, bytes, length, flags, NULL, NULL);
    }
    memcpy(bytes, pong, sizeof pong);
    return sizeof pong;
}

TEST(endless_child) {
    struct held_calls calls = {.code = "runtime_crashed", .part = "killed by signal 9"};
    init("", FOREVER_MS);
    int process = ask_for_process();
    hold_calls(&calls, 1);
    atomic_store(&is_endless, true);
    send_signal(process, SIGKILL);
    join_held_calls(&calls);
    atomic_store(&is_endless, false);
}

static void note_child_signal(int number) {
    CHECK(false, "the host was told of a child that is not its own");
}

/* The host sees none of the library's processes: neither by SIGCHLD nor by wait(). */
TEST(no_child) {
    signal(SIGCHLD, note_child_signal);
    init("", FOREVER_MS);
    expect_answer("echo", "{}", "{}");
    CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "there is a child");
    expect_failure("crash", "{}", "runtime_crashed", "(exit status 0)");
    plue_shutdown();
    signal(SIGCHLD, SIG_DFL);
}

static long faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

/* The memory of a large host is not copied, and no page of it is protected and faulted in again. */
TEST(large_host) {
    const size_t size = (size_t)128 << 20;
    char *memory = malloc(size);
    CHECK(memory != NULL, "no memory");
    memset(memory, 1, size);
    init("", FOREVER_MS);
    uint64_t start = now_ns();
    expect_answer("echo", "{}", "{}");
    printf("large_host: the first call took %.1f ms\n", ms_since(start));
    long before = faults();
    for (size_t at = 0; at < size; at += 4096) {
        memory[at]++;
    }
    CHECK(faults() - before < 1000, "%ld page faults", faults() - before);
    plue_shutdown();
    free(memory);
}

#endif

static void expect_lack(plue_options_t options, const char *part) {
    init_with(options);
    expect_failure("echo", "{}", "runtime_unavailable", part);
    plue_shutdown();
}

TEST(few_descriptors) {
    for (rlim_t most = 9; most <= 10; most++) {
        struct rlimit limit = {most, 20};
        CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0, "errno %d", errno);
        const char *argv[] = {"./plue-sidecar", NULL};
        expect_lack((plue_options_t){.sidecar_argv = argv}, "Too many open files; libplue needs 16 free descriptors");
    }
}

/* A struct whose size ends in the middle of a field has only the fields before it. */
TEST(half_a_field) {
    plue_options_t options;
    memset(&options, 0xff, sizeof options);
    options.mode = PLUE_MODE_SIDECAR;
    options.tools_module = NULL;
    options.config_json = "{}";
    for (size_t size = offsetof(plue_options_t, sidecar_argv);
         size < offsetof(plue_options_t, sidecar_argv) + sizeof options.sidecar_argv; size++) {
        options.struct_size = size;
        CHECK(plue_init_with_options(&options) == 0, "%zu: %s", size, plue_get_last_error());
        plue_shutdown();
    }
}

/* Variables that make the runtime run another program are not passed on to the sidecar, nor is the
 * channel between Node and a host that Node has started. */
TEST(hostile_environment) {
    static const char *const names[] = {"BUN_BE_BUN",     "BUN_OPTIONS",     "NODE_OPTIONS", "OPENSSL_CONF",
                                        "NODE_UNIQUE_ID", "NODE_CHANNEL_FD", "NODE_CHANNEL_SERIALIZATION_MODE"};
    enum { NAMES = sizeof names / sizeof *names };
    for (int i = 0; i < NAMES; i++) {
        setenv(names[i], "1", 1);
    }
    setenv("PLUE_TEST_HARMLESS", "handed on", 1);
    init("", FOREVER_MS);
    for (int i = 0; i < NAMES; i++) {
        char parameters[100];
        snprintf(parameters, sizeof parameters, "{\"name\":\"%s\"}", names[i]);
        expect_answer("variable", parameters, "\"\"");
    }
    expect_answer("variable", "{\"name\":\"PLUE_TEST_HARMLESS\"}", "\"handed on\"");
}

/* A host that runs with the rights of another user than its caller passes no choice of the caller
 * to the sidecar. */
TEST(no_environment) {
    CHECK(getenv("PLUE_SIDECAR") != NULL && geteuid() != getuid(), "it is not that kind of host");
    CHECK(getenv("PLUE_TEST_EVIL") != NULL, "the caller chose nothing");
    init("", FOREVER_MS);
    expect_answer("variable", "{\"name\":\"PLUE_TEST_EVIL\"}", "\"\"");
    expect_answer("variable", "{\"name\":\"HOME\"}", "\"/\"");
    expect_answer("variable", "{\"name\":\"PATH\"}", "\"/usr/local/bin:/usr/bin:/bin\"");
    expect_answer("folder", "{}", "\"/\"");
    plue_shutdown();
    expect_lack((plue_options_t){.mode = PLUE_MODE_SIDECAR}, "it is neither beside libplue");
    const char *argv[] = {"sh", NULL};
    expect_lack((plue_options_t){.sidecar_argv = argv}, "there is no such program in PATH");
}

static void close_all(void) {
    for (int descriptor = STDERR_FILENO + 1; descriptor < 256; descriptor++) {
        close(descriptor);
    }
}

static const char closed[] = "The host closed a descriptor of libplue";

/* Closed before a call, while the library's thread waits, and during one, while its caller does. */
TEST(closed_descriptors) {
    init("", FOREVER_MS);
    for (int during = 0; during < 2; during++) {
        int process = ask_for_process();
        struct held_calls calls = {.code = "runtime_crashed", .part = closed};
        hold_calls(&calls, during);
        close_all();
        if (during) {
            /* A caller that waits in poll() does not notice the closing, but the next call does. */
            plue_free_json(plue_tool_execute("echo", "{}", NULL));
        } else {
            expect_failure("echo", "{}", "runtime_crashed", closed);
        }
        join_held_calls(&calls);
        await_death(process);
        expect_answer("echo", "{\"a\":1}", "{\"a\":1}");
    }
}

static void note_begun(const char *json, void *begun) {
    ++*(int *)begun;
}

/* A sidecar ends properly, whichever descriptor the host has closed. */
static void expect_end(int status, const char *json, void *begun) {
    CHECK(status == PLUE_RUNTIME_CRASHED || status == PLUE_SHUTDOWN, "%s", json);
    CHECK(!contains(json, "does not end"), "%s", json);
    *(int *)begun = 0;
}

/* Closes the descriptor with this index that a start has opened. Returns false after the last. */
static bool close_one(int index, bool is_killed) {
    enum { MOST = 1024 };
    bool was_open[MOST];
    int begun = 0;
    for (int i = 0; i < MOST; i++) {
        was_open[i] = is_open(i);
    }
    int process = ask_for_process();
    plue_tool_context_t context = {.metadata_callback = note_begun, .user_data = &begun};
    CHECK(plue_tool_submit("hold", "{}", &context, expect_end, &begun) == PLUE_OK, "hold");
    while (begun == 0) {
        plue_events_dispatch(-1);
    }
    int descriptor = 0;
    for (int left = index; descriptor < MOST && left >= 0; descriptor++) {
        left -= !was_open[descriptor] && is_open(descriptor);
    }
    bool is_there = descriptor < MOST;
    if (is_there) {
        close(descriptor - 1);
    }
    if (is_killed) {
        kill(process, SIGKILL); /* libplue may have ended the process already. */
    } else {
        plue_shutdown();
    }
    while (begun != 0) {
        plue_events_dispatch(-1);
    }
    plue_shutdown();
    return is_there;
}

TEST(closed_descriptor) {
    int count = 0;
    CHECK(plue_events_fd() >= 0, "%s", plue_get_last_error());
    for (bool is_there = true; is_there; count++) {
        init("", FOREVER_MS);
        close_one(count, true);
        init("", FOREVER_MS);
        is_there = close_one(count, false);
    }
    CHECK(count > 5, "%d descriptors", count);
}

/* A host by words: first its options ("argv=PROGRAM" and its arguments, "cwd=", "tools="); "init"
 * sets them, and "go=FOLDER" changes the folder. Then "call=TOOL [PARAMS]", and the expected
 * outcome: "result=", or "failure=" with a part of the message. */
static void act(char **words) {
    const char *argv[8] = {NULL};
    plue_options_t options = {.mode = PLUE_MODE_SIDECAR, .start_timeout_ms = FOREVER_MS};
    char *json = NULL;
    size_t count = 0;
    for (; *words != NULL; words++) {
        char *value = *words + strcspn(*words, "=");
        value += *value == '=';
        if (strncmp(*words, "argv=", 5) == 0) {
            options.sidecar_argv = argv;
            argv[count++] = value;
        } else if (strncmp(*words, "cwd=", 4) == 0) {
            options.sidecar_cwd = value;
        } else if (strncmp(*words, "tools=", 6) == 0) {
            options.tools_module = value;
        } else if (strcmp(*words, "init") == 0) {
            init_with(options);
        } else if (strncmp(*words, "go=", 3) == 0) {
            CHECK(chdir(value) == 0, "errno %d", errno);
        } else if (strncmp(*words, "call=", 5) == 0) {
            char *params = strchr(value, ' ');
            value[strcspn(value, " ")] = '\0';
            plue_free_json(json);
            json = plue_tool_execute(value, params == NULL ? NULL : params + 1, NULL);
        } else if (strncmp(*words, "result=", 7) == 0) {
            CHECK(json != NULL && strcmp(json, value) == 0, "%s instead of %s", json, value);
        } else {
            CHECK(strncmp(*words, "failure=", 8) == 0 && is_failure(json, "runtime_unavailable"), "%s", json);
            CHECK(contains(plue_get_last_error(), value), "%s in %s", value, plue_get_last_error());
        }
    }
    plue_free_json(json);
    plue_shutdown();
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "host") == 0) {
        act(arguments + 2);
        return check_verdict("host");
    }
    return check_with_sidecar("process", count, arguments);
}
