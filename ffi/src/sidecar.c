/* The lifecycle of the sidecar: starts, failures and their back-off, its thread, and shutdown. */
#include "sidecar.h"

#include "call.h"
#include "inbox.h"
#include "outbox.h"
#include "output.h"
#include "platform.h"
#include "process.h"
#include "settings.h"
#include "text.h"

#include <sys/socket.h>

/* The interval at which the sidecar's thread checks that callers still read the socket. */
enum { LOOK_INTERVAL_MS = 20 };
/* The maximum time to write the rest of the tools' output after the process has ended. */
enum { LAST_OUTPUT_MS = 100 };

struct plue_sidecar {
    struct plue_peer peer;
    bool ended PLUE_GUARDED;                /* the sidecar's thread is about to return */
    uint64_t exit_deadline_ms PLUE_GUARDED; /* the time by which the process must end; 0: none */

    atomic_uint references; /* `current` holds one */

    /* These fields are set before the thread starts, or used only by the sidecar's thread. */
    uint64_t start_deadline_ms;       /* for the answer to CONFIG */
    struct plue_sidecar *predecessor; /* an ended sidecar, whose thread this thread joins; or NULL */
    pthread_t thread;
    int socket;
    int child_socket; /* the other end of `socket`, until the process has inherited it */
    int child_output; /* the write end of the output pipe, until then */
    int poke[2];      /* wakes the thread; a socket pair, because a pipe could raise SIGPIPE */
    pthread_mutex_t process_lock; /* keeps `process` alive during poke() */
    struct plue_process *process;
    struct plue_output output;

    struct plue_outbox outbox; /* writes to the socket; has its own lock */
    struct plue_inbox inbox;   /* reads from the socket */
};

/* The newest sidecar. An ended sidecar stays here until the next one, whose thread joins the old
 * thread. The pointer is always valid, because a child of fork() follows it without the lock. */
static struct plue_sidecar *current PLUE_GUARDED;

/* The failure of the last start or run, and the earliest time of the next start. */
static struct {
    unsigned in_a_row;
    uint64_t next_start_ms;
    const char *code;
    char *message;
} failure PLUE_GUARDED;

enum { MAX_FAILURES = 8, BACKOFF_UNIT_MS = 50 };

static bool is_running(void) PLUE_LOCKED {
    return current != NULL && !current->ended;
}

static void destroy(struct plue_sidecar *sidecar) {
    plue_peer_close(&sidecar->peer);
    plue_outbox_destroy(&sidecar->outbox);
    plue_inbox_destroy(&sidecar->inbox);
    plue_output_close(&sidecar->output);
    plue_close(&sidecar->socket);
    plue_close(&sidecar->child_socket);
    plue_close(&sidecar->child_output);
    plue_close(&sidecar->poke[0]);
    plue_close(&sidecar->poke[1]);
    pthread_mutex_destroy(&sidecar->process_lock);
    free(sidecar);
}

bool plue_sidecar_exists(void) {
    return current != NULL;
}

static struct plue_sidecar *sidecar_of(uint64_t generation) PLUE_LOCKED {
    return is_running() && current->peer.generation == generation ? current : NULL;
}

struct plue_sidecar *plue_sidecar_hold(uint64_t generation) {
    struct plue_sidecar *sidecar = sidecar_of(generation);
    if (sidecar != NULL) {
        atomic_fetch_add(&sidecar->references, 1);
    }
    return sidecar;
}

void plue_sidecar_unhold(struct plue_sidecar *sidecar) {
    if (plue_was_last(&sidecar->references)) {
        destroy(sidecar);
    }
}

/* Wakes the thread, so that it checks the deadlines and the frames to send. */
static void poke(struct plue_sidecar *sidecar) {
    if (plue_send(sidecar->poke[1], "", 1) < 0 && errno != EAGAIN) {
        /* The host has closed the socket. The thread also wakes when the process ends. */
        pthread_mutex_lock(&sidecar->process_lock);
        if (sidecar->process != NULL) {
            plue_process_kill(sidecar->process);
        }
        pthread_mutex_unlock(&sidecar->process_lock);
    }
}

static void note_failure(const char *code, const char *message) PLUE_LOCKED {
    free(failure.message);
    failure.code = code;
    failure.message = plue_text_copy(message, strlen(message)); /* NULL when out of memory */
    failure.in_a_row += failure.in_a_row < MAX_FAILURES;
    /* The delays of restarts: 0, 200, 400 ... 12800 ms. */
    uint64_t pause = failure.in_a_row <= 1 ? 0 : (uint64_t)BACKOFF_UNIT_MS << failure.in_a_row;
    failure.next_start_ms = plue_now_ms() + pause;
}

static struct plue_outcome last_failure(void) PLUE_LOCKED {
    if (failure.message == NULL) {
        return plue_outcome_out_of_memory();
    }
    return plue_outcome_failure(failure.code, failure.message);
}

static struct plue_outcome too_early(uint64_t now) PLUE_LOCKED {
    if (failure.message == NULL) {
        return plue_outcome_out_of_memory();
    }
    return plue_outcome_failure_of(failure.code, "%s; the next start is possible in %u ms",
                                   failure.message, (unsigned)(failure.next_start_ms - now));
}

/* The reason why the exchange with the process ended. */
struct ending {
    bool kill; /* the process will not end by itself */
    char why[1200];
};

bool plue_sidecar_lead(struct plue_sidecar *sidecar, const atomic_uint *word, unsigned value,
                       uint64_t at_ms) {
    struct plue_inbox *inbox = &sidecar->inbox;
    if (!plue_inbox_lead(inbox, &sidecar->peer, word, value, at_ms)) {
        return false;
    }
    /* Two references belong to this call and to `current`, the others to other calls. */
    bool is_for_others = atomic_load(&sidecar->references) > 2;
    bool is_read = !is_for_others || plue_calls_hand_over(sidecar->peer.generation, word);
    if (!is_read || atomic_load(&inbox->has_ended) || atomic_load(&inbox->has_failed)) {
        poke(sidecar); /* the sidecar's thread reads the answers of submitted calls */
    }
    return true;
}

void plue_sidecar_wake_leader(struct plue_sidecar *sidecar) {
    plue_inbox_wake(&sidecar->inbox);
}

/* A deadline of the process. */
struct deadline {
    uint64_t at_ms;   /* 0 without a deadline */
    uint64_t exit_ms; /* the deadline for the end after FAILED; 0 before FAILED */
    bool is_closing;  /* SHUTDOWN was sent */
    char why[100];    /* the error if the deadline passes */
};

static void update_deadline(struct plue_sidecar *sidecar, struct deadline *deadline) {
    plue_lock();
    unsigned timeout = plue_settings.start_timeout_ms;
    deadline->at_ms = 0;
    deadline->is_closing = sidecar->exit_deadline_ms != 0;
    if (deadline->is_closing) {
        deadline->at_ms = sidecar->exit_deadline_ms;
        snprintf(deadline->why, sizeof deadline->why, "The tool process did not end on request");
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
                 "The tool process did not respond for %u ms", timeout);
    }
    plue_unlock();
}

static void drain_pokes(struct plue_sidecar *sidecar) {
    char bytes[64];
    while (read(sidecar->poke[0], bytes, sizeof bytes) > 0) {
    }
}

/* The descriptors that the thread waits for. */
enum { SOCKET, POKE, NEWS, PRINTED, STANDARD_ERROR, WAITS };

/* Waits until there is work, and fills in `waits`. Returns false when the deadline has passed. If
 * `callers_read`, callers read the socket. */
static bool wait_for_work(struct plue_sidecar *sidecar, const struct deadline *deadline,
                          bool callers_read, struct pollfd waits[WAITS]) {
    /* Does not take the outbox's lock if there is nothing to write: the thread that waits for this
     * answer may hold it. */
    bool may_be_left = deadline->is_closing || atomic_load(&sidecar->outbox.has_rest);
    bool left = may_be_left && plue_outbox_flush(&sidecar->outbox);
    int timeout = plue_ms_until(deadline->at_ms);
    if (timeout == 0) {
        return false;
    }
    if (callers_read && (timeout < 0 || timeout > LOOK_INTERVAL_MS)) {
        timeout = LOOK_INTERVAL_MS;
    }
    if (deadline->is_closing && !left) {
        shutdown(sidecar->socket, SHUT_WR);
    }
    short events = (short)((callers_read ? 0 : POLLIN) | (left ? POLLOUT : 0));
    bool prints = plue_output_is_waiting(&sidecar->output);
    waits[SOCKET] = (struct pollfd){sidecar->socket, events, 0};
    waits[POKE] = (struct pollfd){sidecar->poke[0], POLLIN, 0};
    waits[NEWS] = (struct pollfd){plue_process_news(sidecar->process), POLLIN, 0};
    waits[PRINTED] = (struct pollfd){sidecar->output.from, POLLIN, 0};
    waits[STANDARD_ERROR] = (struct pollfd){prints ? sidecar->output.to : -1, POLLOUT, 0};
    if (poll(waits, WAITS, timeout) < 0) {
        for (int i = 0; i < WAITS; i++) {
            waits[i].revents = 0;
        }
    }
    return true;
}

/* Returns true if the host closed one of the descriptors, or the other end of `poke`. */
static bool is_closed_by_host(const struct pollfd waits[WAITS]) {
    bool is_closed = (waits[POKE].revents & POLLHUP) != 0;
    for (int i = 0; i < STANDARD_ERROR; i++) {
        is_closed = is_closed || (waits[i].revents & POLLNVAL) != 0;
    }
    return is_closed;
}

/* Reads from the socket. Returns true instead if the thread of a caller is already reading. */
static bool receive(struct plue_sidecar *sidecar) {
    struct plue_inbox *inbox = &sidecar->inbox;
    if (!plue_inbox_take(inbox)) {
        return true;
    }
    plue_inbox_read(inbox, &sidecar->peer);
    plue_inbox_give_back(inbox);
    return false;
}

/* The process has ended, but its children can hold the other end of the socket, and send without
 * end. Reads what the process itself sent, which is at most a full socket buffer. */
static void receive_rest(struct plue_sidecar *sidecar) {
    enum { MOST_READS = 1000 };
    int reads = 0;
    while (reads < MOST_READS &&
           plue_inbox_read(&sidecar->inbox, &sidecar->peer) == PLUE_READ_SOME) {
        reads++;
    }
}

static bool is_read_by_caller(struct plue_sidecar *sidecar) {
    return atomic_load(&sidecar->inbox.is_taken) != 0;
}

/* Moves bytes until the stream or the process ends, the process breaks the protocol, or a deadline
 * passes. */
static void exchange(struct plue_sidecar *sidecar, struct ending *ending) {
    struct plue_inbox *inbox = &sidecar->inbox;
    struct deadline deadline = {.exit_ms = 0};
    bool callers_read = false;
    bool has_ended = false;
    bool is_closed = false;
    update_deadline(sidecar, &deadline);
    while (!has_ended && !is_closed && !atomic_load(&inbox->has_ended)) {
        struct pollfd waits[WAITS];
        if (!wait_for_work(sidecar, &deadline, callers_read, waits)) {
            update_deadline(sidecar, &deadline); /* a caller may have read the awaited frame */
            if (plue_ms_until(deadline.at_ms) != 0) {
                continue;
            }
            memcpy(ending->why, deadline.why, sizeof deadline.why);
            ending->kill = true;
            break;
        }
        is_closed = is_closed_by_host(waits);
        if (waits[POKE].revents != 0) {
            drain_pokes(sidecar);
        }
        if (waits[PRINTED].revents != 0) {
            plue_output_read(&sidecar->output);
        }
        if (waits[STANDARD_ERROR].revents != 0) {
            plue_output_write(&sidecar->output);
        }
        if (waits[SOCKET].revents & (POLLIN | POLLHUP | POLLERR)) {
            callers_read = receive(sidecar);
        } else if (callers_read) {
            callers_read = is_read_by_caller(sidecar);
        }
        has_ended = waits[NEWS].revents != 0 && plue_process_has_ended(sidecar->process);
        /* Setting a deadline pokes this thread. A received frame may be the awaited one. */
        if (waits[POKE].revents != 0 || deadline.at_ms != 0 || atomic_load(&inbox->has_failed)) {
            update_deadline(sidecar, &deadline);
        }
    }
    if (is_closed) {
        plue_process_kill(sidecar->process); /* also wakes the reading caller */
    }
    plue_inbox_close(inbox);
    if (has_ended) {
        receive_rest(sidecar);
    }
    if (!ending->kill) {
        const char *fault = is_closed ? plue_closed_by_host : inbox->fault;
        ending->kill = fault != NULL;
        snprintf(ending->why, sizeof ending->why, "%s",
                 fault == NULL ? "The tool process ended" : fault);
    }
}

/* Stores the end of the process, and fails its calls. */
static void note_end(struct plue_sidecar *sidecar, const char *why) {
    struct plue_peer *peer = &sidecar->peer;
    plue_lock();
    bool has_said_why = peer->state == PLUE_PEER_REFUSED && peer->refusal != NULL;
    plue_peer_fail(peer, plue_stopping ? "shutdown" : "runtime_crashed",
                    has_said_why ? peer->refusal : why);
    if (peer->has_answered) {
        failure.in_a_row = 0;
    }
    note_failure(has_said_why ? peer->refusal_code : "runtime_unavailable",
                 has_said_why ? peer->refusal : why);
    sidecar->ended = true;
    plue_change();
    plue_unlock();
}

static void set_process(struct plue_sidecar *sidecar, struct plue_process *process) {
    pthread_mutex_lock(&sidecar->process_lock);
    sidecar->process = process;
    pthread_mutex_unlock(&sidecar->process_lock);
}

/* Needs no lock: plue_shutdown() waits for this thread before it resets the options. */
static bool start_process(struct plue_sidecar *sidecar,
                          struct ending *ending) PLUE_CHECKED(no_thread_safety_analysis) {
    char *module;
    plue_peer_find_module(&module); /* without memory, the process has no tsconfig option */
    const struct plue_launch launch = {
        .argv = plue_settings.sidecar_argv,
        .working_directory = plue_settings.sidecar_cwd,
        .module = module,
        .socket = sidecar->child_socket,
        .output = sidecar->child_output,
    };
    struct plue_process *process = plue_process_start(&launch, sidecar->start_deadline_ms,
                                                      ending->why, sizeof ending->why);
    free(module);
    set_process(sidecar, process);
    plue_close(&sidecar->child_socket);
    plue_close(&sidecar->child_output);
    if (process == NULL) {
        return false;
    }
    plue_outbox_open(&sidecar->outbox);
    return true;
}

/* Prints the waiting output, as long as the standard error takes it. */
static void print_rest(struct plue_output *output) {
    uint64_t limit = plue_now_ms() + LAST_OUTPUT_MS;
    while (plue_output_is_waiting(output) && plue_ms_until(limit) != 0) {
        struct pollfd wait = {output->to, POLLOUT, 0};
        if (poll(&wait, 1, plue_ms_until(limit)) <= 0) {
            return;
        }
        plue_output_write(output);
    }
}

/* Runs on the sidecar's thread, because the thread that requested the start holds the lock. */
static void bury_predecessor(struct plue_sidecar *sidecar) {
    if (sidecar->predecessor != NULL) {
        pthread_join(sidecar->predecessor->thread, NULL);
        plue_sidecar_unhold(sidecar->predecessor);
        sidecar->predecessor = NULL;
    }
}

/* Appends the last output of a process that was never ready. Later output may belong to any call,
 * and goes to the log only, because this message goes to all calls. */
static void append_last_output(struct plue_sidecar *sidecar, struct ending *ending) {
    plue_lock();
    bool was_ready = sidecar->peer.state == PLUE_PEER_READY;
    plue_unlock();
    if (!was_ready) {
        plue_output_append_last(&sidecar->output, ending->why, sizeof ending->why);
    }
}

/* Called for a new sidecar, and after the host has closed descriptors of the library. They are not
 * closed here, because their numbers may have been reused. */
static void forget_descriptors(struct plue_sidecar *sidecar) {
    sidecar->socket = -1;
    sidecar->poke[0] = -1;
    sidecar->poke[1] = -1;
    sidecar->inbox.socket = -1;
    sidecar->inbox.wake[0] = -1;
    sidecar->inbox.wake[1] = -1;
    sidecar->output.from = -1;
    sidecar->output.to = -1;
}

/* The thread: it starts the process, moves bytes, watches deadlines, and waits for the end. */
static void *run_thread(void *argument) {
    struct plue_sidecar *sidecar = argument;
    struct ending ending = {.kill = false};
    bury_predecessor(sidecar);
    bool started = start_process(sidecar, &ending);
    if (started) {
        exchange(sidecar, &ending);
    }
    plue_outbox_close(&sidecar->outbox);
    if (strcmp(ending.why, plue_closed_by_host) == 0) {
        plue_process_forget_descriptors(sidecar->process);
        forget_descriptors(sidecar);
    }
    shutdown(sidecar->socket, SHUT_RDWR);
    if (started) {
        struct plue_process *process = sidecar->process;
        set_process(sidecar, NULL);
        plue_process_bury(process, ending.kill, ending.why, sizeof ending.why);
        plue_output_read(&sidecar->output);
        append_last_output(sidecar, &ending);
    }
    note_end(sidecar, ending.why);
    print_rest(&sidecar->output);
    return NULL;
}

/* Returns NULL with errno on failure. */
static struct plue_sidecar *make_sidecar(void) PLUE_LOCKED {
    struct plue_sidecar *sidecar = calloc(1, sizeof *sidecar);
    if (sidecar == NULL) {
        return NULL;
    }
    int pair[2] = {-1, -1};
    atomic_init(&sidecar->references, 1);
    pthread_mutex_init(&sidecar->process_lock, NULL);
    forget_descriptors(sidecar);
    sidecar->child_socket = -1;
    plue_peer_open(&sidecar->peer);
    bool made = plue_socket_pair(pair) == 0;
    plue_outbox_init(&sidecar->outbox, pair[0]);
    sidecar->socket = pair[0];
    sidecar->child_socket = pair[1];
    sidecar->child_output = made ? plue_output_open(&sidecar->output) : -1;
    made = sidecar->child_output >= 0 && plue_socket_pair(sidecar->poke) == 0 &&
           plue_inbox_open(&sidecar->inbox, pair[0]) == 0;
    if (!made) {
        int error = errno;
        destroy(sidecar);
        errno = error;
        return NULL;
    }
    return sidecar;
}

static bool start(void) PLUE_LOCKED {
    const char *fault = plue_peer_fault();
    if (fault != NULL) {
        note_failure("invalid_argument", fault);
        return false;
    }
    struct plue_sidecar *sidecar = make_sidecar();
    int error = errno;
    if (sidecar != NULL) {
        struct plue_frame *config = plue_peer_configure(&sidecar->peer);
        sidecar->start_deadline_ms = plue_now_ms() + plue_settings.start_timeout_ms;
        if (config != NULL) {
            plue_outbox_post(&sidecar->outbox, config); /* sent when the process has started */
            sidecar->predecessor = current;
            current = sidecar; /* before the thread releases the predecessor */
            error = plue_thread_start(&sidecar->thread, run_thread, sidecar);
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
    snprintf(text, sizeof text, "Cannot start the tools: %s", plue_error_text(error));
    note_failure("runtime_unavailable", text);
    return false;
}

void plue_sidecar_send(struct plue_sidecar *sidecar, struct plue_frame *frame) {
    if (plue_outbox_post(&sidecar->outbox, frame)) {
        poke(sidecar);
    }
}

struct plue_frame *plue_sidecar_withdraw(struct plue_sidecar *sidecar, uint64_t call) {
    return plue_outbox_withdraw(&sidecar->outbox, call);
}

enum plue_readiness plue_sidecar_ensure(bool *waited, struct plue_peer **peer,
                                        struct plue_outcome *reason) {
    if (is_running() && current->peer.state != PLUE_PEER_WAITING) {
        *peer = &current->peer;
        return plue_peer_readiness(&current->peer, reason);
    }
    uint64_t now = plue_now_ms();
    bool has_failed = !is_running() && failure.in_a_row > 0;
    if (has_failed && !*waited && now < failure.next_start_ms) {
        *reason = too_early(now);
        return PLUE_RUNTIME_HAS_FAILED;
    }
    if ((has_failed && *waited) || (!is_running() && !start())) {
        *reason = last_failure();
        return PLUE_RUNTIME_HAS_FAILED;
    }
    *waited = true;
    return PLUE_RUNTIME_IS_STARTING;
}

struct plue_sidecar *plue_sidecar_begin_shutdown(void) {
    if (current == NULL) {
        return NULL;
    }
    plue_peer_fail(&current->peer, "shutdown", "plue_shutdown() was called");
    current->exit_deadline_ms = plue_now_ms() + plue_settings.abort_grace_ms;
    struct plue_frame *frame = plue_frame_new(PLUE_FRAME_SHUTDOWN, 0, 0, NULL, 0);
    if (frame != NULL && !current->ended) {
        plue_sidecar_send(current, frame);
    } else {
        plue_frame_free_all(frame);
    }
    poke(current);
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

void plue_sidecar_suspect(uint64_t generation) {
    struct plue_sidecar *sidecar = sidecar_of(generation);
    if (sidecar == NULL || sidecar->peer.pong_due_ms != 0) {
        return;
    }
    struct plue_frame *frame = plue_frame_new(PLUE_FRAME_PING, 0, 0, NULL, 0);
    if (frame == NULL) {
        return;
    }
    sidecar->peer.pong_due_ms = plue_now_ms() + plue_settings.start_timeout_ms;
    plue_sidecar_send(sidecar, frame);
    poke(sidecar); /* the thread has a new deadline */
}

void plue_sidecar_abandon(void) PLUE_CHECKED(no_thread_safety_analysis) {
    /* Needs no lock: the child has one thread, and will never use the library. */
    if (current != NULL) {
        plue_close(&current->socket);
    }
}
