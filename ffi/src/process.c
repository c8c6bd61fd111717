#include "process.h"

#include "platform.h"
#include "program.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
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
    pid_t parent;
};

/* What the child writes if the program cannot be run. */
struct report {
    int error;
    bool is_of_folder; /* the working directory is at fault */
};

/* The descriptors of a start, of which there is one at a time. The lock is held while they are opened
 * and closed, and across every fork(): a child that another thread makes would hold the report open,
 * as if the program had not begun. */
static pthread_mutex_t descriptors_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    int socket;
    int report; /* gets a report; closed without one when the program runs */
    int report_end;
} descriptors = {-1, -1, -1};
/* This thread's next child is the one that they are for. */
static _Thread_local bool makes_sidecar;

static void close_descriptor(int *descriptor) {
    if (*descriptor >= 0) {
        close(*descriptor);
    }
    *descriptor = -1;
}

/* Opens them, above those that the child overwrites. Returns 0 or an errno. */
static int open_descriptors(int socket) {
    int error = 0;
    int report[2];
    pthread_mutex_lock(&descriptors_lock);
    descriptors.socket = plue_copy_descriptor(socket, FIRST_FREE_DESCRIPTOR);
    if (descriptors.socket < 0 || plue_pipe(report) != 0) {
        error = errno;
    } else {
        descriptors.report_end = report[0];
        descriptors.report = plue_move_descriptor(report[1], FIRST_FREE_DESCRIPTOR);
        error = descriptors.report < 0 ? errno : 0;
    }
    pthread_mutex_unlock(&descriptors_lock);
    return error;
}

static void close_those_of_child(void) {
    pthread_mutex_lock(&descriptors_lock);
    close_descriptor(&descriptors.socket);
    close_descriptor(&descriptors.report);
    pthread_mutex_unlock(&descriptors_lock);
}

static void close_report_end(void) {
    pthread_mutex_lock(&descriptors_lock);
    close_descriptor(&descriptors.report_end);
    pthread_mutex_unlock(&descriptors_lock);
}

void plue_process_before_fork(void) {
    pthread_mutex_lock(&descriptors_lock);
}

void plue_process_after_fork_in_parent(void) {
    pthread_mutex_unlock(&descriptors_lock);
}

void plue_process_after_fork_in_child(void) {
    if (!makes_sidecar) {
        close_descriptor(&descriptors.socket);
        close_descriptor(&descriptors.report);
        close_descriptor(&descriptors.report_end);
    }
    pthread_mutex_unlock(&descriptors_lock);
}

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
static bool arrange_descriptors(void) {
    int nothing = open("/dev/null", O_RDWR);
    if (nothing < 0) {
        return false;
    }
    if (fcntl(STDERR_FILENO, F_GETFD) < 0) {
        dup2(nothing, STDERR_FILENO);
    }
    dup2(nothing, STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    dup2(descriptors.socket, SOCKET_IN_CHILD);
    /* The runtimes expect what a shell would give them. */
    fcntl(SOCKET_IN_CHILD, F_SETFL, fcntl(SOCKET_IN_CHILD, F_GETFL) & ~O_NONBLOCK);
    dup2(descriptors.report, REPORT_IN_CHILD);
    fcntl(REPORT_IN_CHILD, F_SETFD, FD_CLOEXEC);
    close_from(REPORT_IN_CHILD + 1);
    return true;
}

static _Noreturn void run_child(const struct launch *launch) {
    int reporting = descriptors.report;
    struct report report = {0, false};
    setpgid(0, 0);
    die_with_parent(launch->parent);
    reset_signals();
    if (arrange_descriptors()) {
        reporting = REPORT_IN_CHILD;
        report.is_of_folder =
            launch->working_directory != NULL && chdir(launch->working_directory) != 0;
        if (!report.is_of_folder) {
            execve(launch->program->path, launch->program->argv, environ);
        }
    }
    report.error = errno;
    ssize_t written = write(reporting, &report, sizeof report);
    (void)written;
    _exit(127);
}

/* Reads what the child reports. Its error is 0 when the program runs, else an errno, or NOT_IN_TIME:
 * a file system that does not answer holds the child up. */
static struct report read_report(uint64_t deadline_ms) {
    struct report report = {NOT_IN_TIME, false};
    struct pollfd wait = {descriptors.report_end, POLLIN, 0};
    int ready = 0;
    while (ready <= 0) {
        uint64_t now = plue_now_ms();
        if (now >= deadline_ms) {
            return report;
        }
        uint64_t left = deadline_ms - now;
        ready = poll(&wait, 1, left < INT_MAX ? (int)left : INT_MAX);
    }
    if (read(descriptors.report_end, &report, sizeof report) != sizeof report) {
        report.error = 0;
    }
    return report;
}

/* Makes the process, or reports why there is none. */
static struct report launch_process(const struct launch *launch, int socket, uint64_t deadline_ms,
                                    pid_t *process) {
    struct report report = {open_descriptors(socket), false};
    *process = -1;
    if (report.error == 0) {
        makes_sidecar = true;
        *process = fork();
        report.error = *process < 0 ? errno : 0;
        if (*process == 0) {
            run_child(launch);
        }
        makes_sidecar = false;
    }
    close_those_of_child();
    if (*process > 0) {
        report = read_report(deadline_ms);
    }
    close_report_end();
    if (*process > 0 && report.error != 0) {
        char how[64] = "";
        plue_process_bury(*process, true, how, sizeof how);
    }
    return report;
}

/* Says why the tools cannot be started; a long name is cut between two characters. */
static void explain(const char *where, const char *name, const char *reason, char *why,
                    size_t why_size) {
    snprintf(why, why_size, "Cannot start %s\"%.*s\"%s: %.*s", where,
             (int)plue_text_prefix(name, 100), name, *where == '\0' ? "" : " (sidecar_cwd)",
             (int)plue_text_prefix(reason, 160), reason);
}

pid_t plue_process_start(char *const *argv, const char *working_directory, int socket,
                         uint64_t deadline_ms, char *why, size_t why_size) {
    struct plue_program program;
    if (!plue_program_find(argv, &program)) {
        explain("", program.argv[0], program.lack, why, why_size);
        return -1;
    }
    const struct launch launch = {
        .program = &program,
        .working_directory = working_directory,
        .parent = getpid(),
    };
    pid_t process = -1;
    struct report report = launch_process(&launch, socket, deadline_ms, &process);
    if (report.error == 0) {
        return process;
    }
    const char *reason = report.error == NOT_IN_TIME ? "it did not begin within the time to start"
                                                     : strerror(report.error);
    if (report.is_of_folder) {
        explain("the tools in ", working_directory, reason, why, why_size);
    } else {
        explain("", program.argv[0], reason, why, why_size);
    }
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
