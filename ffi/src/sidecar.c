/* The life of the sidecar: starts, failures and their back-off, shutdown. What its thread does is
 * in sidecar_thread.c. */
#include "sidecar_internal.h"

#include "call.h"
#include "platform.h"
#include "settings.h"
#include "state.h"
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The newest sidecar. Once it has ended it stays here until there is another, whose thread joins its
 * thread. What this points to is always there, because a child of fork() follows it without a lock. */
static struct plue_sidecar *current;

/* What the last start or run ended with, and when the next start may be. */
static struct {
    unsigned in_a_row;
    uint64_t next_start_ms;
    const char *code;
    char *message;
} failure;

enum { MAX_FAILURES = 8, BACKOFF_UNIT_MS = 50 };

static bool is_running(void) {
    return current != NULL && !current->ended;
}

/* ---------------------------------------------------------------------------- references */

static void destroy(struct plue_sidecar *sidecar) {
    plue_peer_close(&sidecar->peer);
    plue_outbox_destroy(&sidecar->outbox);
    int descriptors[] = {sidecar->socket, sidecar->child_socket, sidecar->poke[0],
                         sidecar->poke[1]};
    for (size_t i = 0; i < sizeof descriptors / sizeof *descriptors; i++) {
        if (descriptors[i] >= 0) {
            close(descriptors[i]);
        }
    }
    free(sidecar);
}

bool plue_sidecar_exists(void) {
    return current != NULL;
}

struct plue_sidecar *plue_sidecar_of(uint64_t generation) {
    return is_running() && current->peer.generation == generation ? current : NULL;
}

struct plue_sidecar *plue_sidecar_hold(uint64_t generation) {
    struct plue_sidecar *sidecar = plue_sidecar_of(generation);
    if (sidecar != NULL) {
        atomic_fetch_add(&sidecar->references, 1);
    }
    return sidecar;
}

void plue_sidecar_unhold(struct plue_sidecar *sidecar) {
    if (atomic_fetch_sub(&sidecar->references, 1) == 1) {
        destroy(sidecar);
    }
}

/* -------------------------------------------------------------------------------- starting */

/* Takes `message`, which may be NULL: out of memory. */
static void note_failure(const char *code, char *message) {
    free(failure.message);
    failure.code = code;
    failure.message = message;
    failure.in_a_row += failure.in_a_row < MAX_FAILURES;
    /* The first restart is at once: 0, 200, 400 ... 12800 ms. */
    uint64_t pause = failure.in_a_row <= 1 ? 0 : (uint64_t)BACKOFF_UNIT_MS << failure.in_a_row;
    failure.next_start_ms = plue_now_ms() + pause;
}

static struct plue_outcome last_failure(void) {
    if (failure.message == NULL) {
        return plue_outcome_out_of_memory();
    }
    return plue_outcome_failure(failure.code, failure.message);
}

static struct plue_outcome too_early(uint64_t now) {
    if (failure.message == NULL) {
        return plue_outcome_out_of_memory();
    }
    size_t size = strlen(failure.message) + 64;
    char *text = malloc(size);
    if (text == NULL) {
        return plue_outcome_out_of_memory();
    }
    snprintf(text, size, "%s; the next start is possible in %u ms", failure.message,
             (unsigned)(failure.next_start_ms - now));
    struct plue_outcome outcome = plue_outcome_failure(failure.code, text);
    free(text);
    return outcome;
}

/* NULL: with errno. */
static struct plue_sidecar *make_sidecar(void) {
    struct plue_sidecar *sidecar = calloc(1, sizeof *sidecar);
    if (sidecar == NULL) {
        return NULL;
    }
    int pair[2] = {-1, -1};
    atomic_init(&sidecar->references, 1);
    sidecar->socket = -1;
    sidecar->child_socket = -1;
    sidecar->poke[0] = -1;
    sidecar->poke[1] = -1;
    plue_peer_open(&sidecar->peer);
    bool made = plue_socket_pair(pair) == 0;
    plue_outbox_init(&sidecar->outbox, pair[0]);
    sidecar->socket = pair[0];
    sidecar->child_socket = pair[1];
    if (!made || plue_pipe(sidecar->poke) != 0) {
        int error = errno;
        destroy(sidecar);
        errno = error;
        return NULL;
    }
    return sidecar;
}

static bool start(void) {
    const char *fault = plue_peer_fault();
    if (fault != NULL) {
        note_failure("invalid_argument", plue_text_copy(fault, strlen(fault)));
        return false;
    }
    struct plue_sidecar *sidecar = make_sidecar();
    int error = errno;
    if (sidecar != NULL) {
        struct plue_frame *config = plue_peer_configure(&sidecar->peer);
        sidecar->start_deadline_ms = plue_now_ms() + plue_settings.start_timeout_ms;
        if (config != NULL) {
            /* The thread sends it, once there is a process to read it. */
            plue_outbox_post(&sidecar->outbox, config);
            sidecar->predecessor = current;
            current = sidecar; /* before the thread can let the predecessor go */
            error = plue_thread_start(&sidecar->thread, plue_sidecar_run, sidecar);
            if (error == 0) {
                return true;
            }
            current = sidecar->predecessor;
        } else {
            error = ENOMEM;
        }
        destroy(sidecar);
    }
    char text[200];
    snprintf(text, sizeof text, "Cannot start the tools: %s", strerror(error));
    note_failure("runtime_unavailable", plue_text_copy(text, strlen(text)));
    return false;
}

void plue_sidecar_send(struct plue_sidecar *sidecar, struct plue_frame *frame) {
    if (plue_outbox_post(&sidecar->outbox, frame)) {
        plue_sidecar_poke(sidecar);
    }
}

enum plue_sidecar_state plue_sidecar_ensure(bool *waited, struct plue_peer **peer,
                                            struct plue_outcome *reason) {
    if (is_running() && current->peer.state == PLUE_PEER_REFUSED) {
        *reason = plue_peer_refusal(&current->peer);
        return PLUE_SIDECAR_FAILED;
    }
    if (is_running() && current->peer.state == PLUE_PEER_READY) {
        *peer = &current->peer;
        return PLUE_SIDECAR_READY;
    }
    if (is_running()) {
        *waited = true;
        return PLUE_SIDECAR_STARTING;
    }
    uint64_t now = plue_now_ms();
    if (*waited && failure.in_a_row > 0) {
        *reason = last_failure();
        return PLUE_SIDECAR_FAILED;
    }
    if (failure.in_a_row > 0 && now < failure.next_start_ms) {
        *reason = too_early(now);
        return PLUE_SIDECAR_FAILED;
    }
    if (!start()) {
        *reason = last_failure();
        return PLUE_SIDECAR_FAILED;
    }
    *waited = true;
    return PLUE_SIDECAR_STARTING;
}

/* ------------------------------------------------------------------------------------ ends */

void plue_sidecar_ended(struct plue_sidecar *sidecar, const char *why) {
    struct plue_peer *peer = &sidecar->peer;
    pthread_mutex_lock(&plue_lock);
    bool has_said_why = peer->state == PLUE_PEER_REFUSED && peer->refusal != NULL;
    plue_calls_fail(peer->generation, plue_stopping ? "shutdown" : "runtime_crashed",
                    has_said_why ? peer->refusal : why);
    if (peer->has_answered) {
        failure.in_a_row = 0;
    }
    if (has_said_why) {
        note_failure(peer->refusal_code, plue_text_copy(peer->refusal, strlen(peer->refusal)));
    } else {
        note_failure("runtime_unavailable", plue_text_copy(why, strlen(why)));
    }
    sidecar->ended = true;
    pthread_cond_broadcast(&plue_changed);
    pthread_mutex_unlock(&plue_lock);
}

struct plue_sidecar *plue_sidecar_begin_shutdown(void) {
    if (current == NULL) {
        return NULL;
    }
    plue_calls_fail(current->peer.generation, "shutdown", "plue_shutdown() was called");
    current->exit_deadline_ms = plue_now_ms() + plue_settings.abort_grace_ms;
    struct plue_frame *frame = plue_frame_new(PLUE_FRAME_SHUTDOWN, 0, 0, NULL, 0);
    if (frame != NULL && !current->ended) {
        plue_sidecar_send(current, frame);
    } else {
        plue_frame_free_all(frame);
    }
    plue_sidecar_poke(current);
    return current;
}

void plue_sidecar_join(struct plue_sidecar *sidecar) {
    pthread_join(sidecar->thread, NULL);
}

void plue_sidecar_end_shutdown(void) {
    current = NULL;
    free(failure.message);
    failure.message = NULL;
    failure.in_a_row = 0;
    failure.next_start_ms = 0;
}

void plue_sidecar_ping(struct plue_sidecar *sidecar) {
    if (sidecar->peer.pong_due_ms != 0) {
        return;
    }
    struct plue_frame *frame = plue_frame_new(PLUE_FRAME_PING, 0, 0, NULL, 0);
    if (frame == NULL) {
        return;
    }
    sidecar->peer.pong_due_ms = plue_now_ms() + plue_settings.start_timeout_ms;
    plue_sidecar_send(sidecar, frame);
    plue_sidecar_poke(sidecar); /* it has a deadline to watch now */
}

void plue_sidecar_abandon(void) {
    /* Without the lock: this process has one thread, and no other will ever use the library. */
    if (current != NULL && current->socket >= 0) {
        close(current->socket);
        current->socket = -1;
    }
}
