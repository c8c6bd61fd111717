#include "inbox.h"

#include "call.h"
#include "platform.h"

#include <sys/socket.h>

const char plue_closed_by_host[] = "The host closed a descriptor of libplue";

int plue_inbox_open(struct plue_inbox *inbox, int socket) {
    inbox->socket = socket;
    return plue_socket_pair(inbox->wake);
}

void plue_inbox_destroy(struct plue_inbox *inbox) {
    plue_close(&inbox->wake[0]);
    plue_close(&inbox->wake[1]);
    free(inbox->large);
}

bool plue_inbox_take(struct plue_inbox *inbox) {
    unsigned expected = 0;
    bool is_mine = atomic_compare_exchange_strong(&inbox->is_taken, &expected, 1);
    plue_order_acquire(&inbox->is_taken);
    return is_mine;
}

void plue_inbox_give_back(struct plue_inbox *inbox) {
    plue_order_release(&inbox->is_taken);
    atomic_store(&inbox->is_taken, 0);
    if (atomic_load(&inbox->is_closed)) {
        plue_unpark(&inbox->is_taken);
    }
}

void plue_inbox_wake(struct plue_inbox *inbox) {
    plue_send(inbox->wake[1], "", 1);
}

void plue_inbox_close(struct plue_inbox *inbox) {
    atomic_store(&inbox->is_closed, true);
    while (!plue_inbox_take(inbox)) {
        plue_inbox_wake(inbox);
        plue_park(&inbox->is_taken, 1, PLUE_NEVER_MS);
    }
}

static enum plue_reading end(struct plue_inbox *inbox, const char *fault) {
    inbox->fault = fault;
    atomic_store(&inbox->has_ended, true);
    return PLUE_READ_END;
}

static bool act(struct plue_inbox *inbox, struct plue_peer *peer, struct plue_frame_view *view,
                struct plue_wakeups *wakeups) {
    if (view->type == PLUE_FRAME_FAILED) {
        atomic_store(&inbox->has_failed, true);
    }
    return plue_peer_receive(peer, view, wakeups);
}

/* Begins to read the payload of a large frame into memory that the frame's receiver will own. */
static bool begin_large(struct plue_inbox *inbox, const struct plue_frame_view *header, size_t at) {
    inbox->large = malloc(header->length + 1);
    if (inbox->large == NULL) {
        return false;
    }
    inbox->header = *header;
    inbox->large_used = inbox->used - at - PLUE_FRAME_HEADER;
    memcpy(inbox->large, inbox->bytes + at + PLUE_FRAME_HEADER, inbox->large_used);
    inbox->used = 0;
    return true;
}

static bool act_on_large(struct plue_inbox *inbox, struct plue_peer *peer,
                         struct plue_wakeups *wakeups) {
    struct plue_frame_view view = inbox->header;
    view.payload = inbox->large;
    view.own = inbox->large;
    inbox->large = NULL;
    bool is_right = act(inbox, peer, &view, wakeups);
    free(view.own);
    return is_right;
}

/* Handles the complete frames in the buffer. Returns the error, or NULL. */
static const char *take_frames(struct plue_inbox *inbox, struct plue_peer *peer,
                               struct plue_wakeups *wakeups) {
    static const char broken[] = "The tool process broke the protocol";
    size_t at = 0;
    for (;;) {
        struct plue_frame_view view;
        size_t wanted = 0;
        int64_t size = plue_frame_read(inbox->bytes + at, inbox->used - at, &view, &wanted);
        if (size < 0 || (size > 0 && !act(inbox, peer, &view, wakeups))) {
            return broken;
        }
        if (size > 0) {
            at += (size_t)size;
        } else if (wanted > PLUE_INBOX_SIZE && inbox->used - at >= PLUE_FRAME_HEADER) {
            return begin_large(inbox, &view, at)
                       ? NULL
                       : "Out of memory for what the tool process sent";
        } else {
            break;
        }
    }
    if (at > 0) {
        memmove(inbox->bytes, inbox->bytes + at, inbox->used - at);
        inbox->used -= at;
    }
    return NULL;
}

/* Adds the number of received bytes, and handles the complete frames. */
static const char *take(struct plue_inbox *inbox, struct plue_peer *peer, size_t received,
                        struct plue_wakeups *wakeups) {
    if (inbox->large == NULL) {
        inbox->used += received;
        return take_frames(inbox, peer, wakeups);
    }
    inbox->large_used += received;
    bool is_whole = inbox->large_used == inbox->header.length;
    return is_whole && !act_on_large(inbox, peer, wakeups) ? "The tool process broke the protocol"
                                                           : NULL;
}

enum plue_reading plue_inbox_read(struct plue_inbox *inbox, struct plue_peer *peer) {
    bool is_large = inbox->large != NULL;
    uint8_t *to = is_large ? inbox->large + inbox->large_used : inbox->bytes + inbox->used;
    size_t room = is_large ? inbox->header.length - inbox->large_used
                           : PLUE_INBOX_SIZE - inbox->used;
    ssize_t received = recv(inbox->socket, to, room, MSG_DONTWAIT);
    if (received < 0 && (errno == EAGAIN || errno == EINTR)) {
        return PLUE_READ_NOTHING;
    }
    if (received <= 0) {
        return end(inbox, received < 0 && errno == EBADF ? plue_closed_by_host : NULL);
    }
    struct plue_wakeups wakeups = {.count = 0};
    const char *fault = take(inbox, peer, (size_t)received, &wakeups);
    plue_wakeups_carry_out(&wakeups);
    return fault == NULL ? PLUE_READ_SOME : end(inbox, fault);
}

static void drain(int descriptor) {
    char bytes[64];
    while (read(descriptor, bytes, sizeof bytes) > 0) {
    }
}

/* True if callers must not read any more. After FAILED, the sidecar's thread watches a deadline. */
static bool is_closed_to_callers(struct plue_inbox *inbox) {
    return atomic_load(&inbox->is_closed) || atomic_load(&inbox->has_ended) ||
           atomic_load(&inbox->has_failed);
}

bool plue_inbox_lead(struct plue_inbox *inbox, struct plue_peer *peer, const atomic_uint *word,
                     unsigned value, uint64_t at_ms) {
    if (is_closed_to_callers(inbox) || !plue_inbox_take(inbox)) {
        return false;
    }
    while (atomic_load(word) == value && !is_closed_to_callers(inbox)) {
        struct pollfd waits[2] = {{inbox->socket, POLLIN, 0}, {inbox->wake[0], POLLIN, 0}};
        int timeout = plue_ms_until(at_ms);
        if (timeout == 0) {
            break;
        }
        if (poll(waits, 2, timeout) <= 0) {
            continue;
        }
        if (waits[1].revents & POLLNVAL) {
            end(inbox, plue_closed_by_host);
        } else if (waits[1].revents != 0) {
            drain(inbox->wake[0]);
        }
        if (waits[0].revents != 0) {
            plue_inbox_read(inbox, peer);
        }
    }
    plue_inbox_give_back(inbox);
    return true;
}
