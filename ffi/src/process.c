#include "process.h"

#include "platform.h"
#include "program.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

extern char **environ;

enum {
    SOCKET_IN_CHILD = 3,
    REPORT_IN_CHILD = 4,
    FIRST_FREE_DESCRIPTOR = 10, /* above all that the child gives a fixed number */
    PATIENCE_MS = 200,          /* for a process whose socket is closed */
    LAST_PATIENCE_MS = 2000,    /* for one that was killed: the system may hold on to it */
    NOT_IN_TIME = -1,           /* where else there is an errno */
};

/* --------------------------------------------------------------------------------- starting */

/* What the child needs. Made before fork(), after which it must not allocate. */
struct launch {
    const struct plue_program *program;
    const char *working_directory;
    int socket;
    int report; /* gets errno if the program cannot be run; closed if it can */
    pid_t parent;
};

/* Everything below, up to the end of run_child(), runs between fork() and exec(): only calls that
 * are safe in a signal handler. */

static void reset_signals(void) {
    for (int number = 1; number < NSIG; number++) {
        signal(number, SIG_DFL);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void die_with_parent(pid_t parent) {
#if defined(__linux__)
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(1); /* it died before prctl() */
    }
#else
    (void)parent;
#endif
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

/* 0 is empty; 1 and 2 are the host's standard error, or nothing if it has none. Returns false with
 * errno when there is no /dev/null. */
static bool arrange_descriptors(const struct launch *launch) {
    int nothing = open("/dev/null", O_RDWR);
    if (nothing < 0) {
        return false;
    }
    if (fcntl(STDERR_FILENO, F_GETFD) < 0) {
        dup2(nothing, STDERR_FILENO);
    }
    dup2(nothing, STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    dup2(launch->socket, SOCKET_IN_CHILD);
    /* The runtimes expect what a shell would give them. */
    fcntl(SOCKET_IN_CHILD, F_SETFL, fcntl(SOCKET_IN_CHILD, F_GETFL) & ~O_NONBLOCK);
    dup2(launch->report, REPORT_IN_CHILD);
    fcntl(REPORT_IN_CHILD, F_SETFD, FD_CLOEXEC);
    close_from(REPORT_IN_CHILD + 1);
    return true;
}

static _Noreturn void run_child(const struct launch *launch) {
    int report = launch->report;
    setpgid(0, 0);
    die_with_parent(launch->parent);
    reset_signals();
    if (arrange_descriptors(launch)) {
        report = REPORT_IN_CHILD;
        if (launch->working_directory == NULL || chdir(launch->working_directory) == 0) {
            execve(launch->program->path, launch->program->argv, environ);
        }
    }
    int error = errno;
    ssize_t written = write(report, &error, sizeof error);
    (void)written;
    _exit(127);
}

/* Reads what the child reports. Returns 0 when the program runs, an errno, or NOT_IN_TIME: a file
 * system that does not answer holds the child up. */
static int read_report(int report, uint64_t deadline_ms) {
    struct pollfd wait = {report, POLLIN, 0};
    int ready = 0;
    while (ready <= 0) {
        uint64_t now = plue_now_ms();
        if (now >= deadline_ms) {
            return NOT_IN_TIME;
        }
        uint64_t left = deadline_ms - now;
        ready = poll(&wait, 1, left < INT_MAX ? (int)left : INT_MAX);
    }
    int error = 0;
    ssize_t size = read(report, &error, sizeof error);
    return size == sizeof error ? error : 0;
}

/* Returns 0 and the process, or why there is none: an errno, or NOT_IN_TIME. */
static int launch_process(struct launch *launch, uint64_t deadline_ms, pid_t *process) {
    int report[2];
    if (plue_pipe(report) != 0) {
        return errno;
    }
    /* Above those that the child overwrites. */
    launch->report = plue_move_descriptor(report[1], FIRST_FREE_DESCRIPTOR);
    launch->socket = fcntl(launch->socket, F_DUPFD_CLOEXEC, FIRST_FREE_DESCRIPTOR);
    *process = -1;
    if (launch->report >= 0 && launch->socket >= 0) {
        *process = fork();
    }
    if (*process == 0) {
        run_child(launch);
    }
    int error = *process < 0 ? errno : 0;
    close(launch->report);
    close(launch->socket);
    if (*process > 0) {
        error = read_report(report[0], deadline_ms);
    }
    close(report[0]);
    if (*process > 0 && error != 0) {
        char how[64] = "";
        plue_process_bury(*process, true, how, sizeof how);
    }
    return error;
}

/* Says why a program cannot be started; a long name is cut between two characters. */
static void explain(const char *program, const char *reason, char *why, size_t why_size) {
    snprintf(why, why_size, "Cannot start \"%.*s\": %.*s", (int)plue_text_prefix(program, 100),
             program, (int)plue_text_prefix(reason, 80), reason);
}

pid_t plue_process_start(char *const *argv, const char *working_directory, int socket,
                         uint64_t deadline_ms, char *why, size_t why_size) {
    struct plue_program program;
    if (!plue_program_find(argv, &program)) {
        explain(program.argv[0], program.lack, why, why_size);
        return -1;
    }
    struct launch launch = {
        .program = &program,
        .working_directory = working_directory,
        .socket = socket,
        .parent = getpid(),
    };
    pid_t process = -1;
    int error = launch_process(&launch, deadline_ms, &process);
    if (error == 0) {
        return process;
    }
    const char *reason =
        error == NOT_IN_TIME ? "it did not begin within the time to start" : strerror(error);
    explain(program.argv[0], reason, why, why_size);
    return -1;
}

/* ----------------------------------------------------------------------------------- burying */

/* Says whether the process has ended, and leaves it a zombie, so that its number is not reused
 * before its group has been killed. `*lost`: somebody else has waited for it. */
static bool has_ended(pid_t process, bool *lost) {
    siginfo_t info;
    memset(&info, 0, sizeof info);
    *lost = waitid(P_PID, (id_t)process, &info, WEXITED | WNOWAIT | WNOHANG) < 0 && errno == ECHILD;
    return *lost || info.si_pid == process;
}

bool plue_process_has_ended(pid_t process) {
    bool lost;
    return has_ended(process, &lost);
}

int plue_process_watch(pid_t process) {
#if defined(__linux__) && defined(SYS_pidfd_open)
    int watch = (int)syscall(SYS_pidfd_open, process, 0);
    return plue_move_descriptor(watch, STDERR_FILENO + 1);
#else
    (void)process;
    return -1;
#endif
}

static void append(char *why, size_t size, const char *text, int number) {
    size_t length = strlen(why);
    snprintf(why + length, size - length, " (%s %d)", text, number);
}

/* The process by itself as well: it may not have got as far as to have a group of its own. */
static void kill_group(pid_t process) {
    kill(-process, SIGKILL);
    kill(process, SIGKILL);
}

void plue_process_bury(pid_t process, bool kill_now, char *why, size_t why_size) {
    bool lost = false;
    uint64_t limit = plue_now_ms() + (kill_now ? 0 : PATIENCE_MS);
    bool killed = false;
    while (!has_ended(process, &lost)) {
        if (plue_now_ms() >= limit) {
            if (killed) {
                append(why, why_size, "the system does not end process", (int)process);
                return;
            }
            kill_group(process);
            killed = true;
            limit = plue_now_ms() + LAST_PATIENCE_MS;
        }
        struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
    }
    /* The group's number belongs to it for as long as it has a member. Where somebody else has
     * waited for the process (as the system does where SIGCHLD is ignored) and no member is left,
     * the number has been free for a moment only, and the system gives such a number out last. */
    kill(-process, SIGKILL);
    int status = 0;
    if (lost || waitpid(process, &status, 0) != process) {
        return;
    }
    if (WIFSIGNALED(status)) {
        append(why, why_size, "killed by signal", WTERMSIG(status));
    } else if (WIFEXITED(status)) {
        append(why, why_size, "exit status", WEXITSTATUS(status));
    }
}
