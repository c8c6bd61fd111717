#include "process.h"

#include "platform.h"
#include "program.h"
#include "text.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#if defined(__linux__)
#include <sys/syscall.h>
#endif
#if defined(__linux__) && !defined(PLUE_PORTABLE)
#define HAS_GUARDIAN
#define IS_GUARDIAN true
#define ANY_CHILD __WALL /* includes children that send no SIGCHLD */
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#else
#define ANY_CHILD 0
#define IS_GUARDIAN false
#endif

enum {
    SOCKET_IN_CHILD = 3,
    REPORT_IN_CHILD = 4,
    FIRST_FREE_DESCRIPTOR = 10, /* above the fixed numbers in the child */
    PATIENCE_MS = 200,          /* for the end of a process whose socket is closed */
    LAST_PATIENCE_MS = 2000,    /* for the end of a killed process in a system call */
    UNKNOWN = -1,               /* instead of an exit status */
};

/* A report to the host. The first report states whether the program runs. */
enum kind {
    FAILED = 1,        /* `value` is an errno */
    FAILED_FOLDER = 2, /* `value` is the errno of chdir() */
    STARTED = 3,       /* `value` is the sidecar's pid */
    ENDED = 4,         /* `value` is the sidecar's exit status */
    GONE = 5,          /* this process's child has ended; `value` is its exit status */
};

struct report {
    int kind;
    int value;
};

struct plue_process {
    atomic_uint references; /* held by the sidecar's thread and by the keeper thread */
    pthread_t keeper;
    int news; /* the socket of reports; shutting it down ends the guardian */

    /* The data of the child, allocated before the fork because the child must not allocate. */
    struct plue_launch launch;
    struct plue_program program;
    char **environment;
    int reports;
    pid_t host;

    pthread_mutex_t lock; /* guards `child`: after waitpid(), the pid may be reused */
    pid_t child;

    /* The other fields are used only by the sidecar's thread. */
    pid_t sidecar;
    bool has_ended;
    bool is_gone;
    int status;
};

static void release(struct plue_process *process) {
    if (!plue_was_last(&process->references)) {
        return;
    }
    plue_close(&process->news);
    plue_close(&process->reports);
    pthread_mutex_destroy(&process->lock);
    free(process->environment);
    free(process);
}

static void write_report(int descriptor, enum kind kind, int value) {
    const struct report report = {(int)kind, value};
    ssize_t written = write(descriptor, &report, sizeof report);
    (void)written; /* ignored: without a reader, the host has ended */
}

/* Environment variables that the sidecar does not inherit: they would make the runtime run another
 * program instead of the sidecar or before it, or name a channel to this process's own parent. */
static const char *const dropped[] = {
    "BUN_BE_BUN=",
    "BUN_OPTIONS=",
    "BUN_INSPECT=",
    "BUN_INSPECT_CONNECT_TO=",
    "BUN_INSPECT_NOTIFY=",
    "BUN_INSPECT_PRELOAD=",
    "NODE_CHANNEL_FD=",
    "NODE_CHANNEL_SERIALIZATION_MODE=",
    "NODE_OPTIONS=",
    "NODE_UNIQUE_ID=",
    "OPENSSL_CONF", /* and OPENSSL_CONF_INCLUDE: Node loads libraries named there */
    "LD_PRELOAD=",
    "LD_AUDIT=",
    "DYLD_INSERT_LIBRARIES=",
};

static bool is_dropped(const char *variable) {
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++) {
        if (strncmp(variable, dropped[i], strlen(dropped[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* The sidecar's environment: this process's variables without the dropped ones. A process with more
 * rights than its caller passes on no variable that the caller chose. NULL when out of memory. */
static char **make_environment(void) {
    static char path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
    static char home[] = "HOME=/";
    static char *const safe[] = {path, home, NULL};
    extern char **environ;
    char *const *from = plue_has_more_rights() ? safe : environ;
    size_t count = 0;
    while (from != NULL && from[count] != NULL) {
        count++;
    }
    char **environment = calloc(count + 1, sizeof *environment);
    size_t used = 0;
    for (size_t i = 0; environment != NULL && i < count; i++) {
        if (!is_dropped(from[i])) {
            environment[used++] = from[i];
        }
    }
    return environment;
}

/* The functions up to run_keeper() run in a child that shares memory with this process: they call
 * only async-signal-safe functions, and write only to their own variables. */

/* Gives a signal its default action. */
static void reset_signal(int number) {
#if defined(__linux__)
    /* Uses the system call: a replacement of signal() in the host, such as a sanitizer's, would
     * record in the shared memory that the host's handlers were removed. */
    static const unsigned long nothing[32];
    syscall(SYS_rt_sigaction, number, nothing, NULL, (size_t)(NSIG / 8));
#else
    signal(number, SIG_DFL);
#endif
}

static void reset_signals(void) {
    for (int number = 1; number < NSIG; number++) {
        reset_signal(number);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void close_from(int first) {
#if defined(__linux__) && defined(SYS_close_range)
    if (syscall(SYS_close_range, first, ~0U, 0) == 0) {
        return;
    }
#endif
    long limit = sysconf(_SC_OPEN_MAX);
    for (int descriptor = first; descriptor < (limit < 0 ? 1024 : limit); descriptor++) {
        close(descriptor);
    }
}

static void make_blocking(int descriptor) {
    /* A shell gives its programs blocking descriptors, and the runtimes expect them. */
    fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
}

/* Arranges the descriptors: 0 is empty, 1 and 2 are the output, followed by the socket and the
 * socket of reports. Returns false with errno. */
static bool arrange_descriptors(const struct plue_process *process) {
    /* All descriptors are first moved above the numbers that dup2() overwrites. */
    int nothing = plue_move_descriptor(open("/dev/null", O_RDWR), FIRST_FREE_DESCRIPTOR);
    int output = plue_copy_descriptor(process->launch.output, FIRST_FREE_DESCRIPTOR);
    int socket = plue_copy_descriptor(process->launch.socket, FIRST_FREE_DESCRIPTOR);
    int reports = plue_copy_descriptor(process->reports, FIRST_FREE_DESCRIPTOR);
    if (nothing < 0 || output < 0 || socket < 0 || reports < 0) {
        return false;
    }
    dup2(nothing, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    dup2(socket, SOCKET_IN_CHILD);
    dup2(reports, REPORT_IN_CHILD);
    make_blocking(STDOUT_FILENO);
    make_blocking(SOCKET_IN_CHILD);
    fcntl(REPORT_IN_CHILD, F_SETFD, FD_CLOEXEC);
    close_from(REPORT_IN_CHILD + 1);
    return true;
}

static _Noreturn void run_sidecar(const struct plue_process *process) {
    enum kind kind = FAILED;
    const char *folder = process->launch.working_directory;
    reset_signals();
    if (folder != NULL && chdir(folder) != 0) {
        kind = FAILED_FOLDER;
    } else {
        execve(process->program.path, process->program.argv, process->environment);
    }
    write_report(REPORT_IN_CHILD, kind, errno);
    _exit(127);
}

#if defined(HAS_GUARDIAN)

/* Starts the sidecar as a child of the guardian, which waits until the sidecar runs its program. */
static pid_t start_sidecar(const struct plue_process *process) {
    pid_t guardian = getpid();
    pid_t sidecar = vfork();
    if (sidecar == 0) {
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != guardian) {
            _exit(1); /* it ended before prctl() */
        }
        run_sidecar(process);
    }
    return sidecar;
}

/* Kills the children of this process. Returns false if the system does not list them. */
static bool kill_children(void) {
    char text[4096];
    int list = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    ssize_t length = list < 0 ? -1 : read(list, text, sizeof text);
    if (list >= 0) {
        close(list);
    }
    pid_t number = 0;
    for (ssize_t i = 0; i < length; i++) {
        if (text[i] >= '0' && text[i] <= '9') {
            number = 10 * number + (text[i] - '0');
        } else if (number > 0) {
            kill(number, SIGKILL);
            number = 0;
        }
    }
    return length >= 0;
}

/* Kills the sidecar and everything that it started. Processes that lose their parent become
 * children of this process, and are killed in the next round. */
static void kill_all(pid_t sidecar) {
    uint64_t limit = plue_now_ms() + LAST_PATIENCE_MS;
    bool has_sidecar = true;
    kill(-sidecar, SIGKILL);
    kill(sidecar, SIGKILL);
    while (plue_now_ms() < limit) {
        bool is_listed = kill_children();
        pid_t ended;
        int status;
        while ((ended = waitpid(-1, &status, WNOHANG)) > 0) {
            if (ended == sidecar) {
                has_sidecar = false;
                write_report(REPORT_IN_CHILD, ENDED, status);
            }
        }
        if (ended < 0 || (!is_listed && !has_sidecar)) {
            return;
        }
        const struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
    }
}

/* Waits for the end of the sidecar, or of the host: `signals` is readable on SIGTERM, or the other
 * end of the socket of reports is closed or shut down. If a host has dropped privileges, the system
 * sends this process no parent-death signal. The sidecar stays a zombie, so that its number is not
 * reused before its group has been killed. */
static void watch(pid_t sidecar, int signals) {
    struct pollfd waits[] = {{signals, POLLIN, 0}, {REPORT_IN_CHILD, POLLIN, 0}};
    struct signalfd_siginfo signal = {.ssi_signo = 0};
    do {
        siginfo_t info = {.si_pid = 0};
        while (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT | WNOHANG) == 0 && info.si_pid > 0) {
            if (info.si_pid == sidecar) {
                return;
            }
            waitpid(info.si_pid, NULL, 0);
            info.si_pid = 0;
        }
        poll(waits, 2, -1);
        while (signal.ssi_signo != SIGTERM && read(signals, &signal, sizeof signal) > 0) {
        }
    } while (signal.ssi_signo != SIGTERM && waits[1].revents == 0);
}

/* The main function of the guardian. All signals are blocked. */
static int guard(void *argument) {
    const struct plue_process *process = argument;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGTERM);
    reset_signal(SIGCHLD); /* if it is ignored, waitpid() returns no status */
    setpgid(0, 0);
    /* Uses the system call: in AddressSanitizer, prctl() takes a lock, which another thread may
     * have held at the fork(). */
    syscall(SYS_prctl, PR_SET_NAME, "plue-guardian", 0, 0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    /* Sent when the thread that made this process ends: the host ends or calls exec(). */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != process->host) {
        _exit(1); /* it ended before prctl() */
    }
    if (!arrange_descriptors(process)) {
        write_report(process->reports, FAILED, errno);
        _exit(1);
    }
    int news = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    pid_t sidecar = news < 0 ? -1 : start_sidecar(process);
    if (sidecar < 0) {
        write_report(REPORT_IN_CHILD, FAILED, errno);
        _exit(1);
    }
    /* If the program could not be run, FAILED has already been written. */
    write_report(REPORT_IN_CHILD, STARTED, sidecar);
    for (int descriptor = 0; descriptor <= SOCKET_IN_CHILD; descriptor++) {
        close(descriptor); /* each end must notice when the other one closes */
    }
    int ignored = chdir("/");
    (void)ignored;
    watch(sidecar, news);
    kill_all(sidecar);
    _exit(0);
}

enum { STACK_SIZE = 64 << 10 };

/* Returns NULL with errno. */
static char *make_stack(void) {
    void *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    return stack == MAP_FAILED ? NULL : stack;
}

static void free_stack(char *stack) {
    if (stack != NULL) {
        munmap(stack, STACK_SIZE);
    }
}

/* Returns true if the guardian may share this process's memory. */
static bool can_share_memory(void) {
#if defined(PLUE_NO_SHARED_MEMORY)
    return false;
#else
    return !plue_is_observed();
#endif
}

/* Makes the guardian. It shares this process's memory, and the thread-local variables of the
 * calling thread, which therefore waits until the guardian has ended. The host's SIGCHLD and wait()
 * do not report this child. If the guardian cannot share memory, it is a copy of the process. */
static pid_t make_child(struct plue_process *process, char *stack) {
    pid_t child = can_share_memory() ? clone(guard, stack + STACK_SIZE, CLONE_VM, process) : -1;
    if (child < 0) {
        child = fork();
    }
    if (child == 0) {
        guard(process);
    }
    return child;
}

/* Ends the guardian, and so the sidecar. A guardian that waits for the sidecar to run its program
 * reacts only to SIGKILL; the sidecar is then killed by the parent-death signal. */
static void kill_child(const struct plue_process *process) {
    bool is_told = shutdown(process->news, SHUT_WR) == 0;
    kill(process->child, SIGCONT); /* a tool may have stopped the guardian */
    if (process->sidecar <= 0) {
        kill(process->child, SIGKILL);
    } else if (!is_told) {
        kill(process->child, SIGTERM); /* the host has closed the socket */
    }
}

#else

/* This kind of child needs no stack. */
static char *make_stack(void) {
    static char none;
    return &none;
}

static void free_stack(char *stack) {
    (void)stack;
}

/* Makes the sidecar. The calling thread waits until the sidecar runs its program. */
static pid_t make_child(struct plue_process *process, char *stack) {
    (void)stack;
#if defined(__APPLE__)
/* On some versions posix_spawn() cannot change the working directory. */
#pragma clang diagnostic ignored "-Wdeprecated-declarations"
#endif
    pid_t child = vfork();
    if (child == 0) {
        setpgid(0, 0);
        if (!arrange_descriptors(process)) {
            write_report(process->reports, FAILED, errno);
            _exit(127);
        }
        run_sidecar(process);
    }
    if (child > 0) {
        write_report(process->reports, STARTED, child);
    }
    return child;
}

/* Kills the process as well as its group: it may not have created the group yet. */
static void kill_child(const struct plue_process *process) {
    kill(-process->child, SIGKILL);
    kill(process->child, SIGKILL);
}

#endif

/* Waits for the child's end. Returns its status. Returns UNKNOWN if other code has waited for it,
 * or if it was a guardian, which has reported the sidecar's status. */
static int await_child(struct plue_process *process) {
    siginfo_t info;
    int status = 0;
    while (waitid(P_PID, (id_t)process->child, &info, WEXITED | WNOWAIT | ANY_CHILD) < 0 &&
           errno == EINTR) {
    }
    pthread_mutex_lock(&process->lock);
#if !defined(HAS_GUARDIAN)
    /* The number of the group is not reused as long as the group has a member. */
    kill(-process->child, SIGKILL);
#endif
    if (waitpid(process->child, &status, ANY_CHILD) < 0 || (IS_GUARDIAN && WIFEXITED(status))) {
        status = UNKNOWN;
    }
    process->child = -1;
    pthread_mutex_unlock(&process->lock);
    return status;
}

/* The main function of the keeper thread, which makes the child and lives as long as the child:
 * Linux sends the parent-death signal when the *thread* that made a child ends. */
static void *run_keeper(void *argument) {
    struct plue_process *process = argument;
    int status = UNKNOWN;
    char *stack = make_stack();
    pid_t child = stack == NULL ? -1 : make_child(process, stack);
    if (child < 0) {
        write_report(process->reports, FAILED, errno);
    } else {
        pthread_mutex_lock(&process->lock);
        process->child = child;
        pthread_mutex_unlock(&process->lock);
        status = await_child(process);
    }
    free_stack(stack);
    pthread_mutex_lock(&process->lock);
    write_report(process->reports, GONE, status);
    pthread_mutex_unlock(&process->lock);
    release(process);
    return NULL;
}

void plue_process_kill(struct plue_process *process) {
    pthread_mutex_lock(&process->lock);
    if (process->child > 0) {
        kill_child(process);
    }
    pthread_mutex_unlock(&process->lock);
}

/* Returns NULL with errno. */
static struct plue_process *make_process(const struct plue_launch *launch) {
    struct plue_process *process = calloc(1, sizeof *process);
    int pair[2];
    if (process == NULL) {
        return NULL;
    }
    atomic_init(&process->references, 1);
    pthread_mutex_init(&process->lock, NULL);
    process->launch = *launch;
    process->host = getpid();
    process->child = -1;
    process->news = -1;
    process->reports = -1;
    process->environment = make_environment();
    if (process->environment == NULL || plue_socket_pair(pair) != 0) {
        int error = process->environment == NULL ? ENOMEM : errno;
        release(process);
        errno = error;
        return NULL;
    }
    process->news = pair[0];
    process->reports = pair[1];
    return process;
}

/* Reads a report, if one has arrived. The stream ends after the last report. */
static bool read_report(struct plue_process *process, struct report *report) {
    ssize_t length = read(process->news, report, sizeof *report);
    if (length == 0) {
        pthread_mutex_lock(&process->lock); /* plue_process_kill() uses it */
        plue_close(&process->news);
        pthread_mutex_unlock(&process->lock);
    }
    return length == sizeof *report;
}

/* Waits for the child's end without the socket of reports. Returns false after `at_ms`. */
static bool has_no_child(struct plue_process *process, uint64_t at_ms) {
    bool is_gone = false;
    while (!is_gone && plue_now_ms() < at_ms) {
        poll(NULL, 0, 1);
        pthread_mutex_lock(&process->lock);
        is_gone = process->child < 0;
        pthread_mutex_unlock(&process->lock);
    }
    if (is_gone) {
        process->is_gone = true;
        process->status = process->has_ended ? process->status : UNKNOWN;
    }
    return is_gone;
}

/* Waits for a report until `at_ms`. Returns false if no report has arrived by then. */
static bool await_report(struct plue_process *process, uint64_t at_ms) {
    struct pollfd wait = {process->news, POLLIN, 0};
    int left = plue_ms_until(at_ms);
    if (process->news < 0) {
        return has_no_child(process, at_ms);
    }
    if (left > 0) {
        poll(&wait, 1, left);
    }
    return left > 0;
}

/* Writes the reason why the tools cannot be started; a long name is cut between two characters. */
static void explain(const char *where, const char *name, const char *reason, char *why,
                    size_t why_size) {
    snprintf(why, why_size, "Cannot start %s\"%.*s\"%s: %.*s", where,
             (int)plue_text_prefix(name, 100), name, *where == '\0' ? "" : " (sidecar_cwd)",
             (int)plue_text_prefix(reason, 400), reason);
}

/* Waits until the program runs. On failure, returns false and writes the reason to `why`. */
static bool await_start(struct plue_process *process, uint64_t deadline_ms, char *why,
                        size_t why_size) {
    const char *name = process->program.argv[0];
    struct report report;
    while (!read_report(process, &report)) {
        if (process->is_gone || !await_report(process, deadline_ms)) {
            explain("", name, "it did not begin within the time to start", why, why_size);
            return false;
        }
    }
    switch (report.kind) {
    case STARTED:
        process->sidecar = report.value;
        return true;
    case FAILED_FOLDER:
        explain("the tools in ", process->launch.working_directory, plue_error_text(report.value), why,
                why_size);
        return false;
    case FAILED:
        explain("", name, plue_error_text(report.value), why, why_size);
        return false;
    default:
        explain("", name, "its guardian was killed", why, why_size);
        return false;
    }
}

struct plue_process *plue_process_start(const struct plue_launch *launch, uint64_t deadline_ms,
                                        char *why, size_t why_size) {
    struct plue_process *process = make_process(launch);
    if (process == NULL) {
        explain("", "the tools", plue_error_text(errno), why, why_size);
        return NULL;
    }
    if (!plue_program_find(launch->argv, launch->module, &process->program)) {
        explain("", process->program.argv[0], process->program.lack, why, why_size);
        release(process);
        return NULL;
    }
    char here[PATH_MAX];
    plue_path_current(here);
    if (launch->working_directory == NULL && (*here == '\0' || plue_has_more_rights())) {
        /* The working directory was removed, or a caller with fewer rights chose it. */
        process->launch.working_directory = "/";
    }
    atomic_fetch_add(&process->references, 1);
    int error = plue_thread_start(&process->keeper, run_keeper, process);
    if (error != 0) {
        explain("", process->program.argv[0], plue_error_text(error), why, why_size);
        release(process);
        release(process);
        return NULL;
    }
    if (await_start(process, deadline_ms, why, why_size)) {
        return process;
    }
    char how[100] = "";
    plue_process_bury(process, true, how, sizeof how);
    return NULL;
}

void plue_process_forget_descriptors(struct plue_process *process) {
    pthread_mutex_lock(&process->lock);
    process->news = -1;
    process->reports = -1;
    pthread_mutex_unlock(&process->lock);
}

int plue_process_news(const struct plue_process *process) {
    return process->news;
}

bool plue_process_has_ended(struct plue_process *process) {
    struct report report;
    while (read_report(process, &report)) {
        if (report.kind == ENDED) {
            process->has_ended = true;
            process->status = report.value;
        } else if (report.kind == GONE) {
            process->is_gone = true;
            process->status = process->has_ended ? process->status : report.value;
        }
    }
    return process->has_ended || process->is_gone;
}

static void append(char *why, size_t size, const char *text, int number) {
    size_t length = strlen(why);
    snprintf(why + length, size - length, " (%s %d)", text, number);
}

void plue_process_bury(struct plue_process *process, bool kill_now, char *why, size_t why_size) {
    uint64_t limit = plue_now_ms() + (kill_now ? 0 : PATIENCE_MS);
    bool is_killed = false;
    plue_process_has_ended(process);
    while (!process->is_gone) {
        if (await_report(process, limit)) {
            plue_process_has_ended(process);
        } else if (!is_killed) {
            plue_process_kill(process);
            is_killed = true;
            limit = plue_now_ms() + LAST_PATIENCE_MS + PATIENCE_MS;
        } else {
            append(why, why_size, "killed, but not ended: process", (int)process->sidecar);
            pthread_detach(process->keeper);
            release(process);
            return;
        }
    }
    pthread_join(process->keeper, NULL);
    if (process->status == UNKNOWN) {
        /* The status is unknown. */
    } else if (WIFSIGNALED(process->status)) {
        append(why, why_size, "killed by signal", WTERMSIG(process->status));
    } else if (WIFEXITED(process->status)) {
        append(why, why_size, "exit status", WEXITSTATUS(process->status));
    }
    release(process);
}
