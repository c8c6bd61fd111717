#include "platform.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#else
#include <sys/event.h>
#endif

uint64_t plue_now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int plue_ms_until(uint64_t at_ms) {
    if (at_ms == PLUE_NEVER_MS) {
        return -1;
    }
    uint64_t now = plue_now_ms();
    if (now >= at_ms) {
        return 0;
    }
    return at_ms - now < INT_MAX ? (int)(at_ms - now) : INT_MAX;
}

#if defined(__linux__)

/* Present in a process with ThreadSanitizer, whether or not this library is compiled with it. */
extern void __tsan_init(void) __attribute__((weak));
extern void __tsan_acquire(void *address) __attribute__((weak));
extern void __tsan_release(void *address) __attribute__((weak));

static bool is_in_valgrind;

/* Runs when the library is loaded. Valgrind loads its own library earlier. */
__attribute__((constructor(101))) static void look_for_valgrind(void) {
    const char *preloaded = getenv("LD_PRELOAD");
    is_in_valgrind = preloaded != NULL && strstr(preloaded, "/vgpreload_") != NULL;
}

#endif

bool plue_is_observed(void) {
#if defined(__linux__)
    return is_in_valgrind || __tsan_init != NULL;
#else
    return false;
#endif
}

#if defined(__linux__) && !defined(__SANITIZE_THREAD__)
#define ORDERS_FOR_TSAN
#endif

void plue_order_release(const void *address) {
    (void)address;
#if defined(ORDERS_FOR_TSAN)
    if (__tsan_release != NULL) {
        __tsan_release((void *)(uintptr_t)address);
    }
#endif
}

void plue_order_acquire(const void *address) {
    (void)address;
#if defined(ORDERS_FOR_TSAN)
    if (__tsan_acquire != NULL) {
        __tsan_acquire((void *)(uintptr_t)address);
    }
#endif
}

bool plue_was_last(atomic_uint *references) {
    plue_order_release(references);
    bool was_last = atomic_fetch_sub(references, 1) == 1;
    if (was_last) {
        plue_order_acquire(references);
    }
    return was_last;
}

#if defined(__linux__) && !defined(PLUE_PORTABLE)
#define HAS_FUTEX
#endif

/* Several words share a condition, which is chosen by their addresses. A word cannot contain its
 * own condition, because the word may be freed before its thread is woken. */
enum { SPOTS = 64 };
static struct spot {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
} spots[SPOTS];
static pthread_once_t spots_made = PTHREAD_ONCE_INIT;

static void make_spots(void) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
#if !defined(__APPLE__)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
#endif
    for (int i = 0; i < SPOTS; i++) {
        pthread_mutex_init(&spots[i].mutex, NULL);
        pthread_cond_init(&spots[i].condition, &attributes);
    }
    pthread_condattr_destroy(&attributes);
}

static struct spot *spot_of(const atomic_uint *word) {
    pthread_once(&spots_made, make_spots);
    return &spots[((uintptr_t)word >> 4 ^ (uintptr_t)word >> 12) % SPOTS];
}

static void wait_until(struct spot *spot, uint64_t at_ms) {
#if defined(__APPLE__)
    /* Conditions on macOS cannot wait until a time of this clock, so this waits for a duration. */
    uint64_t now = plue_now_ms();
    uint64_t span = at_ms > now ? at_ms - now : 0;
    struct timespec relative = {(time_t)(span / 1000), (long)(span % 1000) * 1000000};
    pthread_cond_timedwait_relative_np(&spot->condition, &spot->mutex, &relative);
#else
    struct timespec absolute = {(time_t)(at_ms / 1000), (long)(at_ms % 1000) * 1000000};
    pthread_cond_timedwait(&spot->condition, &spot->mutex, &absolute);
#endif
}

void plue_park(atomic_uint *word, unsigned value, uint64_t at_ms) {
#if defined(HAS_FUTEX)
    if (!plue_is_observed()) {
        struct timespec at = {(time_t)(at_ms / 1000), (long)(at_ms % 1000) * 1000000};
        syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value,
                at_ms == PLUE_NEVER_MS ? NULL : &at, NULL, FUTEX_BITSET_MATCH_ANY);
        return;
    }
#endif
    struct spot *spot = spot_of(word);
    pthread_mutex_lock(&spot->mutex);
    if (atomic_load(word) != value) {
        /* The word changed before this thread locked the mutex. */
    } else if (at_ms == PLUE_NEVER_MS) {
        pthread_cond_wait(&spot->condition, &spot->mutex);
    } else {
        wait_until(spot, at_ms);
    }
    pthread_mutex_unlock(&spot->mutex);
}

void plue_unpark(const atomic_uint *word) {
#if defined(HAS_FUTEX)
    /* Valgrind reports the address of a freed word as an error. */
    if (!plue_is_observed()) {
        syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
        return;
    }
#endif
    struct spot *spot = spot_of(word);
    pthread_mutex_lock(&spot->mutex);
    pthread_mutex_unlock(&spot->mutex);
    pthread_cond_broadcast(&spot->condition);
}

int plue_cancellation_off(void) {
    int state = PTHREAD_CANCEL_ENABLE;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    return state;
}

void plue_cancellation_restore(const int *state) {
    int ignored;
    pthread_setcancelstate(*state, &ignored);
}

#if defined(__APPLE__)
static void set_flags(int descriptor) {
    fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    fcntl(descriptor, F_SETFL, O_NONBLOCK);
}
#endif

bool plue_has_more_rights(void) {
#if defined(__linux__)
    return getauxval(AT_SECURE) != 0;
#elif defined(__APPLE__) || defined(__FreeBSD__)
    return issetugid();
#else
    return getuid() != geteuid() || getgid() != getegid();
#endif
}

const char *plue_environment(const char *name) {
    return plue_has_more_rights() ? NULL : getenv(name);
}

void plue_close(int *descriptor) {
    if (*descriptor >= 0) {
        close(*descriptor);
    }
    *descriptor = -1;
}

int plue_copy_descriptor(int descriptor, int least) {
    int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, least);
    if (copy < 0 && errno == EINVAL) {
        errno = EMFILE; /* this process may not have so many */
    }
    return copy;
}

int plue_move_descriptor(int descriptor, int least) {
    if (descriptor < 0 || descriptor >= least) {
        return descriptor;
    }
    int moved = plue_copy_descriptor(descriptor, least);
    int error = errno;
    close(descriptor);
    errno = error;
    return moved;
}

/* Moves both descriptors above 2. A daemon has closed 0 to 2, and code that reads standard input or
 * prints would use the library's descriptors. Returns 0; or -1 with errno, and both closed. */
static int move_above_stdio(int pair[2]) {
    for (int i = 0; i < 2; i++) {
        pair[i] = plue_move_descriptor(pair[i], STDERR_FILENO + 1);
    }
    if (pair[0] >= 0 && pair[1] >= 0) {
        return 0;
    }
    int error = errno;
    plue_close(&pair[0]);
    plue_close(&pair[1]);
    errno = error;
    return -1;
}

int plue_socket_pair(int pair[2]) {
#if defined(__APPLE__)
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
        return -1;
    }
    for (int i = 0; i < 2; i++) {
        int yes = 1;
        set_flags(pair[i]);
        setsockopt(pair[i], SOL_SOCKET, SO_NOSIGPIPE, &yes, sizeof yes);
    }
#else
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
        return -1;
    }
#endif
    return move_above_stdio(pair);
}

int plue_pipe(int pair[2]) {
#if defined(__APPLE__)
    if (pipe(pair) != 0) {
        return -1;
    }
    set_flags(pair[0]);
    set_flags(pair[1]);
#else
    if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) != 0) {
        return -1;
    }
#endif
    return move_above_stdio(pair);
}

/* On Linux a timer with a time in the past is readable immediately, and setting it again makes it
 * unreadable, so nothing has to be read from it. */
#if defined(__linux__)

static int make_alarm(void) {
    return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
}

void plue_alarm_set(int alarm, uint64_t at_ms) {
    struct itimerspec time = {.it_value = {(time_t)(at_ms / 1000), (long)(at_ms % 1000) * 1000000}};
    timerfd_settime(alarm, TFD_TIMER_ABSTIME, &time, NULL);
}

#else

static int make_alarm(void) {
    int alarm = kqueue();
    if (alarm >= 0) {
        fcntl(alarm, F_SETFD, FD_CLOEXEC);
    }
    return alarm;
}

void plue_alarm_set(int alarm, uint64_t at_ms) {
    struct kevent event;
    /* Removes the previous time; fails if there was none. */
    EV_SET(&event, 1, EVFILT_TIMER, EV_DELETE, 0, 0, NULL);
    kevent(alarm, &event, 1, NULL, 0, NULL);
    if (at_ms != PLUE_NEVER_MS) {
        uint64_t now = plue_now_ms();
        EV_SET(&event, 1, EVFILT_TIMER, EV_ADD | EV_ONESHOT, 0,
               (intptr_t)(at_ms > now ? at_ms - now : 0), NULL);
        kevent(alarm, &event, 1, NULL, 0, NULL);
    }
}

#endif

int plue_alarm_new(void) {
    return plue_move_descriptor(make_alarm(), STDERR_FILENO + 1);
}

void plue_alarm_renew(int alarm) {
    int fresh = make_alarm();
    if (fresh >= 0 && fresh != alarm) {
        dup2(fresh, alarm);
        fcntl(alarm, F_SETFD, FD_CLOEXEC);
        close(fresh);
    }
}

ssize_t plue_send(int socket, const void *bytes, size_t length) {
#if defined(__APPLE__)
    const int flags = MSG_DONTWAIT;
#else
    const int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
#endif
    ssize_t sent;
    do {
        sent = send(socket, bytes, length, flags);
    } while (sent < 0 && errno == EINTR);
    return sent;
}

int plue_open_standard_error(void) {
    const int flags = O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
#if defined(__linux__)
    struct stat about;
    bool may_wait = fstat(STDERR_FILENO, &about) == 0 &&
                    (S_ISFIFO(about.st_mode) || isatty(STDERR_FILENO));
    int own = may_wait ? open("/proc/self/fd/2", flags) : -1;
#else
    char name[PATH_MAX];
    int own = ttyname_r(STDERR_FILENO, name, sizeof name) == 0 ? open(name, flags) : -1;
#endif
    return own < 0 ? plue_copy_descriptor(STDERR_FILENO, STDERR_FILENO + 1)
                   : plue_move_descriptor(own, STDERR_FILENO + 1);
}

ssize_t plue_write_error(int descriptor, const void *bytes, size_t length) {
    sigset_t pipe;
    sigset_t pending;
    sigset_t before;
    /* poll() reports a pipe as writable if it takes 4,096 bytes, and a terminal if it takes one. */
    size_t most = !(fcntl(descriptor, F_GETFL) & O_NONBLOCK) && isatty(descriptor) ? 1 : 4096;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    ssize_t written = write(descriptor, bytes, length < most ? length : most);
    int error = errno;
    if (written < 0 && error == EPIPE && !sigismember(&pending, SIGPIPE)) {
#if defined(__APPLE__)
        int number;
        sigpending(&pending); /* not where it is ignored */
        if (sigismember(&pending, SIGPIPE)) {
            sigwait(&pipe, &number);
        }
#else
        static const struct timespec now;
        sigtimedwait(&pipe, NULL, &now);
#endif
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return written;
}

void plue_print_line(const char *text, size_t length) {
    struct pollfd wait = {plue_open_standard_error(), POLLOUT, 0};
    char line[PLUE_PRINTED_LINE + 1];
    size_t kept = length < PLUE_PRINTED_LINE ? length : PLUE_PRINTED_LINE;
    memcpy(line, text, kept);
    line[kept] = '\n';
    ssize_t written = 1;
    for (size_t done = 0; done <= kept && written > 0; done += (size_t)written) {
        bool is_writable = poll(&wait, 1, 0) > 0 && (wait.revents & POLLOUT);
        written = is_writable ? plue_write_error(wait.fd, line + done, kept + 1 - done) : 0;
    }
    plue_close(&wait.fd);
}

const char *plue_error_text(int error) {
    return error == EMFILE ? "Too many open files; libplue needs 16 free descriptors, close some or "
                             "raise the limit (ulimit -n)"
                           : strerror(error);
}

int plue_thread_start(pthread_t *thread, void *(*run)(void *), void *argument) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}
