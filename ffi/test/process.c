/* How the sidecar's process is started and seen out: process FAKE_SIDECAR test ...
 *
 * It is linked statically, so that it can put itself in the place of a system call. */
#include "check.h"
#include "plue.h"
#include "plue_guest.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* Reads what a process has as its descriptor; "" where there is no /proc. */
static void read_descriptor(const char *process, int descriptor, char *target) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%s/fd/%d", process, descriptor);
    ssize_t length = readlink(path, target, LINK_SIZE - 1);
    target[length < 0 ? 0 : length] = '\0';
}

/* Calls a tool while those of the descriptors 0 to 2 are closed whose bits are set. Nothing is
 * printed in between. */
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

static void test_no_stdio(void) {
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
static void test_fork(void) {
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

/* A constructor of the program's own, as a global object of C++ has one. */
__attribute__((constructor)) static void call_early(void) {
    if (getenv("PLUE_TEST_EARLY") != NULL) {
        early_answer = plue_tool_execute("echo", "{\"a\":1}", NULL);
        early_failure = plue_tool_execute("nope", "{}", NULL);
        early_last_error = strdup(plue_get_last_error_json());
        plue_shutdown();
    }
}

static void test_early(void) {
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

/* In the place of the system's: a file system that does not answer holds the caller up. */
int execve(const char *path, char *const argv[], char *const envp[]) {
    while (never_exec) {
        pause();
    }
    return (int)syscall(SYS_execve, path, argv, envp);
}

static void test_never_exec(void) {
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

/* In the place of the system's: holds a start up just before there is a process. */
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

/* A child that another thread makes in the middle of a start, and that lives on, has nothing of it. */
static void test_fork_in_start(void) {
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

/* In the place of the system's: a process that hangs in a system call does not end. */
int kill(pid_t process, int number) {
    return never_kill ? 0 : (int)syscall(SYS_kill, process, number);
}

/* The same: the guardian gets the order to end it this way. */
int shutdown(int socket, int how) {
    return never_kill ? 0 : (int)syscall(SYS_shutdown, socket, how);
}

static void test_unkillable(void) {
    init("close", FOREVER_MS);
    never_kill = true;
    expect_failure("echo", "{}", "runtime_unavailable", "(the system does not end process ");
    plue_shutdown();
    never_kill = false;
    const char *number = strstr(plue_get_last_error(), "end process ");
    pid_t process = number == NULL ? 0 : (pid_t)strtol(number + strlen("end process "), NULL, 10);
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

/* A tool that stops the guardian saves no process that it has started. */
static void test_stopped_guardian(void) {
    init("", FOREVER_MS);
    char *json = plue_tool_execute("start", "{\"detached\":true}", NULL);
    send_signal(parent_of(ask_for_process()), SIGSTOP);
    plue_shutdown();
    CHECK(!is_alive((int)number_in(json, "pid")), "%s", json);
    plue_free_json(json);
}

static atomic_bool is_endless;

/* In the place of the system's: a child of the sidecar that is left sends without end. */
ssize_t recv(int socket, void *bytes, size_t length, int flags) {
    static const uint8_t pong[] = {12, 0, 0, 0, 21, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    if (!atomic_load(&is_endless)) {
        return recvfrom(socket, bytes, length, flags, NULL, NULL);
    }
    memcpy(bytes, pong, sizeof pong);
    return sizeof pong;
}

static void test_endless_child(void) {
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
static void test_no_child(void) {
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

/* A host with much memory: it is not copied, and no page of it is protected and faulted in again. */
static void test_large_host(void) {
    const size_t size = (size_t)512 << 20;
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

/* The host is in a folder with a `plue-sidecar` and a folder `sub`, or with a module `loud.ts`, and
 * goes elsewhere before the sidecar is started, or before it says what that is. */
static void go_away(void) {
    CHECK(chdir("/") == 0, "errno %d", errno);
}

static void expect_echo(void) {
    expect_answer("echo", "{}", "{}");
    plue_shutdown();
}

static void test_default_program(void) {
    go_away();
    init_with((plue_options_t){.mode = PLUE_MODE_SIDECAR});
    expect_echo();
}

static void expect_lack(plue_options_t options, const char *part) {
    init_with(options);
    expect_failure("echo", "{}", "runtime_unavailable", part);
    plue_shutdown();
}

/* Says what is missing, and not that the program is. */
static void test_no_folder(void) {
    const char *argv[] = {"./plue-sidecar", NULL};
    expect_lack((plue_options_t){.sidecar_argv = argv, .sidecar_cwd = "/no/such/folder"},
                "tools in \"/no/such/folder\" (sidecar_cwd): No such file or directory");
    const char *none[] = {"./no-sidecar", NULL};
    expect_lack((plue_options_t){.sidecar_argv = none, .sidecar_cwd = "sub"},
                "/no-sidecar\": No such file or directory");
}

/* PATH begins with a folder in which `sub` is a folder. */
static void test_no_file(void) {
    const char *folder[] = {"sub", NULL};
    expect_lack((plue_options_t){.sidecar_argv = folder}, "\"sub\": there is no such program in PATH");
}

static void test_few_descriptors(void) {
    for (rlim_t most = 9; most <= 10; most++) {
        struct rlimit limit = {most, 20};
        CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0, "errno %d", errno);
        const char *argv[] = {"./plue-sidecar", NULL};
        expect_lack((plue_options_t){.sidecar_argv = argv}, "Too many open files; libplue needs 16 free descriptors");
    }
}

/* A struct of a version that ends in the middle of a field has the fields before it. */
static void test_half_a_field(void) {
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
static void test_hostile_environment(void) {
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

/* The output of a sidecar that is never ready is the reason. */
static void test_last_words(void) {
    const char *argv[] = {"/bin/sh", "-c", "printf 'a NUL: \\0 the reason' >&2; exit 3", NULL};
    expect_lack((plue_options_t){.sidecar_argv = argv},
                "The tool process ended (exit status 3): a NUL:   the reason");
}

/* The folder of this one has settings for the sidecar's runtime. */
static void test_hostile_folder(void) {
    init_with((plue_options_t){.mode = PLUE_MODE_SIDECAR});
    expect_answer("variable", "{\"name\":\"PLUE_TEST_EVIL\"}", "\"\"");
    expect_answer("variable", "{\"name\":\"a package\"}", "\"it is not installed\"");
    expect_answer("variable", "{\"name\":\"a worker\"}", "\"by the paths of the module\"");
    char here[PATH_MAX];
    char expected[PATH_MAX + 2];
    CHECK(getcwd(here, sizeof here) != NULL, "there is no folder");
    snprintf(expected, sizeof expected, "\"%s\"", here);
    expect_answer("variable", "{\"name\":\"the folder\"}", expected);
}

/* The folder of this one has a name that is not UTF-8, or may not be entered by now. */
static void test_odd_folder(void) {
    init_with((plue_options_t){.mode = PLUE_MODE_SIDECAR});
    expect_answer("variable", "{\"name\":\"PLUE_TEST_EVIL\"}", "\"\"");
}

/* A host whose folder was removed has tools all the same. */
static void test_folder_gone(void) {
    init("", FOREVER_MS);
    expect_answer("folder", "{}", "\"/\"");
}

/* This one runs with the rights of another user than its caller's: nothing that the caller chose
 * reaches the sidecar. */
static void test_no_environment(void) {
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

/* The environment of this one has no sidecar anywhere. */
static void test_no_program(void) {
    init_with((plue_options_t){.mode = PLUE_MODE_SIDECAR});
    expect_failure("echo", "{}", "runtime_unavailable",
                   "it is neither beside libplue (where that is linked statically: beside the program), "
                   "nor where \"make install\" puts it, nor in PATH; put it or plue-sidecar.js "
                   "there, or name it in PLUE_SIDECAR; \"bun build --compile my-sidecar.ts "
                   "--outfile plue-sidecar\" makes one");
}

static void test_relative_program(void) {
    const char *argv[] = {"./plue-sidecar", NULL};
    init_with((plue_options_t){.sidecar_argv = argv, .sidecar_cwd = "sub"});
    go_away();
    expect_echo();
}

static void test_relative_path_variable(void) {
    const char *argv[] = {"plue-sidecar", NULL};
    init_with((plue_options_t){.sidecar_argv = argv, .sidecar_cwd = "sub"});
    expect_echo();
}

static void test_relative_module(void) {
    init_with((plue_options_t){.tools_module = "loud.ts", .sidecar_cwd = "/"});
    go_away();
    expect_answer("shout", "{}", "\"quiet\"");
}

static void test_relative_module_variable(void) {
    go_away();
    init_with((plue_options_t){.sidecar_cwd = "/"});
    expect_answer("shout", "{}", "\"quiet\"");
}

static void close_all(void) {
    for (int descriptor = STDERR_FILENO + 1; descriptor < 256; descriptor++) {
        close(descriptor);
    }
}

static const char closed[] = "The host closed a descriptor of libplue";

/* Before a call, while the library's thread waits, and during one, while the caller does. */
static void test_closed_descriptors(void) {
    init("", FOREVER_MS);
    for (int during = 0; during < 2; during++) {
        int process = ask_for_process();
        struct held_calls calls = {.code = "runtime_crashed", .part = closed};
        hold_calls(&calls, during);
        close_all();
        if (during) {
            /* The caller that waits in poll() does not notice: the next call does. */
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

/* A sidecar is seen out, whichever descriptor the host has closed. */
static void expect_end(int status, const char *json, void *begun) {
    CHECK(status == PLUE_RUNTIME_CRASHED || status == PLUE_SHUTDOWN, "%s", json);
    CHECK(!contains(json, "does not end"), "%s", json);
    *(int *)begun = 0;
}

/* Closes that descriptor, counted among the descriptors of a start. Returns false if there are fewer. */
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
        send_signal(process, SIGKILL);
    } else {
        plue_shutdown();
    }
    while (begun != 0) {
        plue_events_dispatch(-1);
    }
    plue_shutdown();
    return is_there;
}

static void test_closed_descriptor(void) {
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

static const struct check_test tests[] = {
    {"no_stdio", test_no_stdio},
    {"fork", test_fork},
    {"early", test_early},
    {"closed_descriptors", test_closed_descriptors},
    {"closed_descriptor", test_closed_descriptor},
    {"default_program", test_default_program},
    {"no_program", test_no_program},
    {"no_folder", test_no_folder},
    {"no_file", test_no_file},
    {"few_descriptors", test_few_descriptors},
    {"half_a_field", test_half_a_field},
    {"no_environment", test_no_environment},
    {"hostile_folder", test_hostile_folder},
    {"odd_folder", test_odd_folder},
    {"last_words", test_last_words},
    {"folder_gone", test_folder_gone},
    {"relative_program", test_relative_program},
    {"relative_path_variable", test_relative_path_variable},
    {"relative_module", test_relative_module},
    {"relative_module_variable", test_relative_module_variable},
#if defined(__linux__)
    {"never_exec", test_never_exec},
    {"fork_in_start", test_fork_in_start},
    {"unkillable", test_unkillable},
    {"stopped_guardian", test_stopped_guardian},
    {"endless_child", test_endless_child},
    {"no_child", test_no_child},
    {"large_host", test_large_host},
    {"hostile_environment", test_hostile_environment},
#endif
};

int main(int count, char **arguments) {
    return check_with_sidecar("process", tests, sizeof tests / sizeof *tests, count, arguments);
}
