/* The sidecar's thread: starts the process, moves bytes, watches deadlines, and buries the process.
 * It starts the process because Linux sends the parent-death signal when the *thread* that made a
 * child ends, so that thread must live as long as the child. */
#include "sidecar_internal.h"

#include "platform.h"
#include "process.h"
#include "settings.h"
#include "state.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER_SIZE = 64 << 10, MAX_IDLE_BUFFER = 1 << 20, ASK_INTERVAL_MS = 1000 };

/* Why the exchange with the process ended. */
struct ending {
    bool kill; /* it will not go by itself */
    char why[200];
};

void plue_sidecar_poke(struct plue_sidecar *sidecar) {
    ssize_t written;
    do {
        written = write(sidecar->poke[1], "", 1);
    } while (written < 0 && errno == EINTR);
}

/* -------------------------------------------------------------------------------- receiving */

struct input {
    uint8_t *bytes;
    size_t size;
    size_t used;
    bool has_failed; /* FAILED came, and with it a deadline */
};

static bool resize(struct input *input, size_t size) {
    uint8_t *bytes = realloc(input->bytes, size);
    if (bytes == NULL) {
        return false;
    }
    input->bytes = bytes;
    input->size = size;
    return true;
}

/* Acts on the whole frames in the buffer, and makes room for the one that is not all there. */
static bool take_frames(struct plue_sidecar *sidecar, struct input *input, struct ending *ending) {
    size_t at = 0;
    size_t wanted = 0;
    int64_t size = 1;
    struct plue_wakeups wakeups = {0};
    while (size > 0) {
        struct plue_frame_view view;
        size = plue_frame_read(input->bytes + at, input->used - at, &view, &wanted);
        if (size > 0 && !plue_peer_receive(&sidecar->peer, &view, &wakeups)) {
            size = -1;
        }
        input->has_failed |= size > 0 && view.type == PLUE_FRAME_FAILED;
        at += size > 0 ? (size_t)size : 0;
    }
    plue_wakeups_carry_out(&wakeups);
    if (size < 0) {
        snprintf(ending->why, sizeof ending->why, "The tool process broke the protocol");
        ending->kill = true;
        return false;
    }
    memmove(input->bytes, input->bytes + at, input->used - at);
    input->used -= at;
    if (wanted > input->size && !resize(input, wanted)) {
        snprintf(ending->why, sizeof ending->why, "Out of memory for what the tool process sent");
        ending->kill = true;
        return false;
    }
    if (input->used == 0 && input->size > MAX_IDLE_BUFFER) {
        resize(input, BUFFER_SIZE);
    }
    return true;
}

enum reading { READ_SOME, READ_NOTHING, STREAM_ENDED };

/* Reads once, and acts on what came. */
static enum reading receive(struct plue_sidecar *sidecar, struct input *input,
                            struct ending *ending) {
    ssize_t received =
        recv(sidecar->socket, input->bytes + input->used, input->size - input->used, MSG_DONTWAIT);
    if (received < 0 && (errno == EAGAIN || errno == EINTR)) {
        return READ_NOTHING;
    }
    if (received <= 0) {
        snprintf(ending->why, sizeof ending->why, "The tool process ended");
        return STREAM_ENDED;
    }
    input->used += (size_t)received;
    return take_frames(sidecar, input, ending) ? READ_SOME : STREAM_ENDED;
}

/* The process has ended, though the stream may not have: a child of the process can hold the other
 * end of the socket. Takes what it sent before. */
static void receive_rest(struct plue_sidecar *sidecar, struct input *input, struct ending *ending) {
    while (receive(sidecar, input, ending) == READ_SOME) {
    }
    if (!ending->kill) {
        snprintf(ending->why, sizeof ending->why, "The tool process ended");
    }
}

/* -------------------------------------------------------------------------------- deadlines */

/* What the process must have done by when. */
struct deadline {
    uint64_t at_ms; /* 0: nothing */
    uint64_t exit_ms; /* for its own end, after FAILED; 0: it has not sent that */
    bool is_closing; /* it has been asked to end */
    char why[200];  /* what is said if it has not done it */
};

static void update_deadline(struct plue_sidecar *sidecar, struct deadline *deadline) {
    pthread_mutex_lock(&plue_lock);
    unsigned timeout = plue_settings.start_timeout_ms;
    deadline->at_ms = 0;
    deadline->is_closing = sidecar->exit_deadline_ms != 0;
    if (deadline->is_closing) {
        deadline->at_ms = sidecar->exit_deadline_ms;
        snprintf(deadline->why, sizeof deadline->why, "The tool process did not end when asked to");
    } else if (sidecar->peer.state == PLUE_PEER_REFUSED) {
        if (deadline->exit_ms == 0) {
            deadline->exit_ms = plue_now_ms() + plue_settings.abort_grace_ms;
        }
        deadline->at_ms = deadline->exit_ms;
        snprintf(deadline->why, sizeof deadline->why,
                 "The tool process did not end after it had failed");
    } else if (sidecar->peer.state != PLUE_PEER_READY) {
        deadline->at_ms = sidecar->start_deadline_ms;
        snprintf(deadline->why, sizeof deadline->why,
                 "The tool process was not ready within %u ms", timeout);
    } else if (sidecar->peer.pong_due_ms != 0) {
        deadline->at_ms = sidecar->peer.pong_due_ms;
        snprintf(deadline->why, sizeof deadline->why,
                 "The tool process gave no sign of life for %u ms", timeout);
    }
    pthread_mutex_unlock(&plue_lock);
}

/* The milliseconds until the deadline, as poll() wants them, but at most `longest`; 0 when it is
 * over. */
static int time_left(uint64_t deadline, int longest) {
    if (deadline == 0) {
        return longest;
    }
    uint64_t now = plue_now_ms();
    if (now >= deadline) {
        return 0;
    }
    uint64_t most = longest < 0 ? INT_MAX : (uint64_t)longest;
    return (int)(deadline - now < most ? deadline - now : most);
}

static void drain_pokes(struct plue_sidecar *sidecar) {
    char bytes[64];
    while (read(sidecar->poke[0], bytes, sizeof bytes) > 0) {
    }
}

/* Waits until there is something to do: fills in `waits`. Returns false when the deadline has
 * passed. */
static bool wait_for_work(struct plue_sidecar *sidecar, int watch, const struct deadline *deadline,
                          struct pollfd waits[3]) {
    /* Without the outbox's lock, if there is nothing to do: the thread that this answer is for may
     * have it. */
    bool may_be_left = deadline->is_closing || atomic_load(&sidecar->outbox.has_rest);
    bool left = may_be_left && plue_outbox_flush(&sidecar->outbox);
    /* Without a descriptor for the process's end, it is asked now and then. */
    int timeout = time_left(deadline->at_ms, watch >= 0 ? -1 : ASK_INTERVAL_MS);
    if (timeout == 0) {
        return false;
    }
    if (deadline->is_closing && !left) {
        shutdown(sidecar->socket, SHUT_WR);
    }
    waits[0] = (struct pollfd){sidecar->socket, (short)(left ? POLLIN | POLLOUT : POLLIN), 0};
    waits[1] = (struct pollfd){sidecar->poke[0], POLLIN, 0};
    waits[2] = (struct pollfd){watch, POLLIN, 0};
    if (poll(waits, 3, timeout) < 0) {
        waits[0].revents = waits[1].revents = waits[2].revents = 0;
    }
    return true;
}

/* Moves bytes until the stream or the process ends, the process breaks the protocol, or a deadline
 * passes. */
static void exchange(struct plue_sidecar *sidecar, struct ending *ending) {
    struct input input = {.bytes = malloc(BUFFER_SIZE), .size = BUFFER_SIZE};
    struct deadline deadline = {.exit_ms = 0};
    int watch = plue_process_watch(sidecar->process);
    bool open = input.bytes != NULL;
    update_deadline(sidecar, &deadline);
    while (open) {
        struct pollfd waits[3];
        if (!wait_for_work(sidecar, watch, &deadline, waits)) {
            memcpy(ending->why, deadline.why, sizeof ending->why);
            ending->kill = true;
            break;
        }
        if (waits[1].revents != 0) {
            drain_pokes(sidecar);
        }
        if (waits[0].revents & (POLLIN | POLLHUP | POLLERR)) {
            open = receive(sidecar, &input, ending) != STREAM_ENDED;
        }
        bool ended = watch >= 0 ? waits[2].revents != 0 : plue_process_has_ended(sidecar->process);
        if (open && ended) {
            receive_rest(sidecar, &input, ending);
            open = false;
        }
        /* Whoever sets a deadline pokes; one that is set may be met by what was received. */
        if (waits[1].revents != 0 || deadline.at_ms != 0 || input.has_failed) {
            update_deadline(sidecar, &deadline);
        }
    }
    if (watch >= 0) {
        close(watch);
    }
    free(input.bytes);
}

/* ------------------------------------------------------------------------------ the whole life */

static bool start_process(struct plue_sidecar *sidecar, struct ending *ending) {
    sidecar->process =
        plue_process_start(plue_settings.sidecar_argv, plue_settings.sidecar_cwd,
                           sidecar->child_socket, sidecar->start_deadline_ms, ending->why,
                           sizeof ending->why);
    close(sidecar->child_socket);
    sidecar->child_socket = -1;
    if (sidecar->process < 0) {
        return false;
    }
    plue_outbox_open(&sidecar->outbox);
    return true;
}

/* Here and not where the start was asked for, because there plue_lock is held. */
static void bury_predecessor(struct plue_sidecar *sidecar) {
    if (sidecar->predecessor != NULL) {
        pthread_join(sidecar->predecessor->thread, NULL);
        plue_sidecar_unhold(sidecar->predecessor);
        sidecar->predecessor = NULL;
    }
}

void *plue_sidecar_run(void *argument) {
    struct plue_sidecar *sidecar = argument;
    struct ending ending = {.kill = false};
    bury_predecessor(sidecar);
    bool started = start_process(sidecar, &ending);
    if (started) {
        exchange(sidecar, &ending);
    }
    plue_outbox_close(&sidecar->outbox);
    shutdown(sidecar->socket, SHUT_RDWR);
    if (started) {
        plue_process_bury(sidecar->process, ending.kill, ending.why, sizeof ending.why);
    }
    plue_sidecar_ended(sidecar, ending.why);
    return NULL;
}
