#include "platform.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

uint64_t plue_now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void plue_condition_init(pthread_cond_t *condition) {
#if defined(__APPLE__)
    pthread_cond_init(condition, NULL);
#else
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
#endif
}

void plue_condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t at_ms) {
#if defined(__APPLE__)
    /* macOS has no other clock for conditions, but it can wait for a span of time. */
    uint64_t now = plue_now_ms();
    uint64_t span = at_ms > now ? at_ms - now : 0;
    struct timespec relative = {(time_t)(span / 1000), (long)(span % 1000) * 1000000};
    pthread_cond_timedwait_relative_np(condition, mutex, &relative);
#else
    struct timespec absolute = {(time_t)(at_ms / 1000), (long)(at_ms % 1000) * 1000000};
    pthread_cond_timedwait(condition, mutex, &absolute);
#endif
}

#if defined(__APPLE__)
static void set_flags(int descriptor) {
    fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    fcntl(descriptor, F_SETFL, O_NONBLOCK);
}
#endif

const char *plue_environment(const char *name) {
#if defined(__APPLE__)
    return issetugid() ? NULL : getenv(name);
#else
    return secure_getenv(name);
#endif
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

/* Moves both above 0 to 2, which a daemon has closed: what reads its input or prints there would
 * meet the library's. Returns 0, or -1 with both closed and errno. */
static int move_above_stdio(int pair[2]) {
    for (int i = 0; i < 2; i++) {
        pair[i] = plue_move_descriptor(pair[i], STDERR_FILENO + 1);
    }
    if (pair[0] >= 0 && pair[1] >= 0) {
        return 0;
    }
    int error = errno;
    for (int i = 0; i < 2; i++) {
        if (pair[i] >= 0) {
            close(pair[i]);
        }
        pair[i] = -1;
    }
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

int plue_thread_start(pthread_t *thread, void *(*run)(void *), void *argument) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}
