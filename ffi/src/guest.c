#include "guest.h"

#include "call.h"
#include "cancellation.h"
#include "platform.h"
#include "plue_guest.h"
#include "state.h"

#include <string.h>
#include <unistd.h>

static struct {
    struct plue_peer peer;
    bool attached;
    bool was_attached;
    pthread_t thread;
    struct plue_frame_queue queue;
    void (*wake)(void); /* NULL: by a byte through the socket */
    int wake_socket;
    int retired_socket; /* of a runtime that detached while a thread was still about to wake it */
    bool wake_pending;  /* it was woken and has not emptied the queue yet */
    int wakers;
} guest = {.wake_socket = -1, .retired_socket = -1};

struct plue_peer *plue_guest_peer(void) {
    return guest.attached ? &guest.peer : NULL;
}

bool plue_guest_was_attached(void) {
    return guest.was_attached;
}

bool plue_guest_is_this_thread(void) {
    return guest.attached && pthread_equal(pthread_self(), guest.thread);
}

void plue_guest_enqueue(struct plue_frame *frame, struct plue_wake *wake) {
    plue_frame_queue_push(&guest.queue, frame);
    if (guest.wake_pending) {
        return;
    }
    guest.wake_pending = true;
    guest.wakers++;
    *wake = (struct plue_wake){.due = true, .callback = guest.wake, .socket = guest.wake_socket};
}

/* What a wake does once the foreign code has run. plue_lock is held. */
static void finish_wake(void) {
    guest.wakers--;
    if (guest.wakers == 0 && guest.retired_socket >= 0) {
        close(guest.retired_socket);
        guest.retired_socket = -1;
    }
}

static void carry_out(const struct plue_wake *wake) {
    if (wake->callback != NULL) {
        wake->callback();
    } else {
        /* A full socket is as good: then the runtime has bytes to read. */
        plue_send(wake->socket, "", 1);
    }
}

void plue_guest_wake(struct plue_wake *wake) {
    if (!wake->due) {
        return;
    }
    int cancellation = plue_cancellation_off();
    carry_out(wake);
    wake->due = false;
    pthread_mutex_lock(&plue_lock);
    finish_wake();
    pthread_mutex_unlock(&plue_lock);
    plue_cancellation_restore(cancellation);
}

void plue_guest_wake_and_relock(struct plue_wake *wake) {
    if (!wake->due) {
        return;
    }
    pthread_mutex_unlock(&plue_lock);
    carry_out(wake);
    wake->due = false;
    pthread_mutex_lock(&plue_lock);
    finish_wake();
}

void plue_guest_configure(struct plue_wake *wake) {
    if (!guest.attached) {
        return;
    }
    struct plue_frame *frame = plue_peer_configure(&guest.peer);
    if (frame != NULL) {
        plue_guest_enqueue(frame, wake);
    }
}

void plue_guest_shutdown(struct plue_wake *wake) {
    guest.was_attached = guest.attached;
    if (!guest.attached) {
        return;
    }
    plue_calls_fail(guest.peer.generation, "shutdown", "plue_shutdown() was called");
    struct plue_frame *frame = plue_frame_new(PLUE_FRAME_SHUTDOWN, 0, 0, NULL, 0);
    if (frame != NULL) {
        plue_guest_enqueue(frame, wake);
    }
}

/* ------------------------------------------------------------------------------- the seam */

static void attach(void (*wake)(void), int wake_socket) {
    plue_peer_open(&guest.peer);
    plue_frame_queue_init(&guest.queue);
    guest.attached = true;
    guest.was_attached = true;
    guest.thread = pthread_self();
    guest.wake = wake;
    guest.wake_socket = wake_socket;
    /* The runtime drains without being asked for the first time, because CONFIG waits for it. */
    guest.wake_pending = true;
    struct plue_wake none = {0};
    plue_guest_configure(&none);
    pthread_cond_broadcast(&plue_changed);
}

int plue_guest_attach(void (*wake)(void)) {
    int pair[2] = {-1, -1};
    if (plue_is_forked()) {
        return -1;
    }
    if (wake == NULL && plue_socket_pair(pair) != 0) {
        return -1;
    }
    pthread_mutex_lock(&plue_lock);
    /* Not while threads are on their way into the last runtime's wake. */
    bool possible = !guest.attached && guest.wakers == 0;
    if (possible) {
        attach(wake, pair[0]);
    }
    pthread_mutex_unlock(&plue_lock);
    if (possible) {
        return wake == NULL ? pair[1] : 0;
    }
    if (wake == NULL) {
        close(pair[0]);
        close(pair[1]);
    }
    return -1;
}

int32_t plue_guest_drain(uint8_t *buffer, uint32_t capacity) {
    struct plue_frame_queue taken;
    plue_frame_queue_init(&taken);
    uint32_t used = 0;
    int32_t answer;
    if (plue_is_forked()) {
        return 0;
    }
    pthread_mutex_lock(&plue_lock);
    if (!guest.attached) {
        pthread_mutex_unlock(&plue_lock);
        return 0;
    }
    while (guest.queue.first != NULL && guest.queue.first->length <= capacity - used) {
        struct plue_frame *frame = plue_frame_queue_pop(&guest.queue);
        used += (uint32_t)frame->length;
        plue_frame_queue_push(&taken, frame);
    }
    if (guest.queue.first == NULL) {
        guest.wake_pending = false;
        answer = (int32_t)used;
    } else {
        answer = used > 0 ? (int32_t)used : -(int32_t)guest.queue.first->length;
    }
    pthread_mutex_unlock(&plue_lock);
    for (struct plue_frame *frame = taken.first; frame != NULL; frame = frame->next) {
        memcpy(buffer, frame->bytes, frame->length);
        buffer += frame->length;
    }
    plue_frame_free_all(taken.first);
    return answer;
}

int plue_guest_push(const uint8_t *frames, uint32_t length) {
    size_t at = 0;
    struct plue_wakeups wakeups = {0};
    bool is_right = guest.attached && !plue_is_forked();
    while (is_right && at < length) {
        struct plue_frame_view view;
        size_t wanted;
        int64_t size = plue_frame_read(frames + at, length - at, &view, &wanted);
        is_right = size > 0 && plue_peer_receive(&guest.peer, &view, &wakeups);
        at += is_right ? (size_t)size : 0;
    }
    plue_wakeups_carry_out(&wakeups);
    return is_right ? 0 : -1;
}

void plue_guest_detach(void) {
    struct plue_frame *waiting = NULL;
    if (plue_is_forked()) {
        return;
    }
    pthread_mutex_lock(&plue_lock);
    if (guest.attached) {
        guest.attached = false;
        guest.wake = NULL;
        guest.retired_socket = guest.wake_socket;
        guest.wake_socket = -1;
        plue_calls_fail(guest.peer.generation, "runtime_gone",
                        "The JavaScript runtime detached while the call was running");
        plue_peer_close(&guest.peer);
        waiting = plue_frame_queue_take(&guest.queue);
        /* Closes the socket unless a thread is still about to write to it. */
        guest.wakers++;
        finish_wake();
        pthread_cond_broadcast(&plue_changed);
    }
    pthread_mutex_unlock(&plue_lock);
    plue_frame_free_all(waiting);
}

int plue_guest_wakers(void) {
    if (plue_is_forked()) {
        return 0;
    }
    pthread_mutex_lock(&plue_lock);
    int wakers = guest.wakers;
    pthread_mutex_unlock(&plue_lock);
    return wakers;
}
