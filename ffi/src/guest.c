#include "guest.h"

#include "platform.h"
#include "plue_guest.h"

static struct {
    struct plue_peer peer;
    bool attached;
    bool was_attached;
    pthread_t thread;
    struct plue_frame_queue queue;
    void (*wake)(void); /* if NULL, a byte through the socket wakes the runtime */
    int wake_socket;
    bool wake_pending; /* a wake was sent or is due, and the queue is not empty yet */
    bool wake_due;     /* plue_unlock() must wake the runtime */
} guest PLUE_GUARDED = {.wake_socket = -1};

/* The number of threads that run the wake callback, or are about to call it. */
static atomic_int wakers;
/* The socket of a detached runtime. The last thread that uses the socket closes it. */
static atomic_int retired_socket = -1;

struct plue_peer *plue_guest_peer(void) {
    return guest.attached ? &guest.peer : NULL;
}

bool plue_guest_was_attached(void) {
    return guest.was_attached;
}

bool plue_guest_is_this_thread(void) {
    return guest.attached && pthread_equal(pthread_self(), guest.thread);
}

void plue_guest_enqueue(struct plue_frame *frame) {
    plue_frame_queue_push(&guest.queue, frame);
    if (!guest.wake_pending) {
        guest.wake_pending = true;
        guest.wake_due = true;
        atomic_fetch_add(&wakers, 1);
    }
}

struct plue_frame *plue_guest_withdraw(uint64_t call) {
    return plue_frame_queue_withdraw(&guest.queue, call);
}

struct plue_wake plue_guest_take_wake(void) {
    struct plue_wake wake = {.due = guest.wake_due};
    if (wake.due) {
        guest.wake_due = false;
        wake.callback = guest.wake;
        wake.socket = guest.wake_socket;
    }
    return wake;
}

static void finish_wake(void) PLUE_UNLOCKED {
    if (atomic_fetch_sub(&wakers, 1) == 1 && atomic_load(&retired_socket) >= 0) {
        plue_lock();
        int socket = atomic_load(&wakers) == 0 ? atomic_exchange(&retired_socket, -1) : -1;
        plue_unlock();
        if (socket >= 0) {
            close(socket);
        }
    }
}

void plue_guest_wake(const struct plue_wake *wake) {
    if (!wake->due) {
        return;
    }
    PLUE_WITHOUT_CANCELLATION;
    if (wake->callback != NULL) {
        wake->callback();
    } else {
        /* If the socket is full, the byte is not needed: the runtime has bytes to read. */
        plue_send(wake->socket, "", 1);
    }
    finish_wake();
}

void plue_guest_configure(void) {
    struct plue_frame *frames = guest.attached ? plue_peer_configure(&guest.peer) : NULL;
    if (frames != NULL) {
        plue_guest_enqueue(frames);
    }
}

void plue_guest_shutdown(void) {
    guest.was_attached = guest.attached;
    if (!guest.attached) {
        return;
    }
    plue_peer_fail(&guest.peer, "shutdown", "plue_shutdown() was called");
    struct plue_frame *frame = plue_frame_new(PLUE_FRAME_SHUTDOWN, 0, 0, NULL, 0);
    if (frame != NULL) {
        plue_guest_enqueue(frame);
    }
}

static void attach(void (*wake)(void), int wake_socket) PLUE_LOCKED {
    plue_peer_open(&guest.peer);
    plue_frame_queue_init(&guest.queue);
    guest.attached = true;
    guest.was_attached = true;
    guest.thread = pthread_self();
    guest.wake = wake;
    guest.wake_socket = wake_socket;
    /* The runtime drains after it has attached, without a wake, because CONFIG waits for it. */
    guest.wake_pending = true;
    plue_guest_configure();
    plue_change();
}

int plue_guest_attach(void (*wake)(void)) {
    int pair[2] = {-1, -1};
    if (plue_is_forked()) {
        return -1;
    }
    if (wake == NULL && plue_socket_pair(pair) != 0) {
        return -1;
    }
    plue_lock();
    /* A runtime cannot attach while threads run the wake callback of the previous runtime. */
    bool possible = !guest.attached && atomic_load(&wakers) == 0;
    if (possible) {
        attach(wake, pair[0]);
    }
    plue_unlock();
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
    plue_lock();
    if (!guest.attached) {
        plue_unlock();
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
    plue_unlock();
    for (struct plue_frame *frame = taken.first; frame != NULL; frame = frame->next) {
        memcpy(buffer, frame->bytes, frame->length);
        buffer += frame->length;
    }
    plue_frame_free_all(taken.first);
    return answer;
}

/* Needs no lock, because only this thread attaches and detaches. */
static struct plue_peer *peer_of_this_thread(void) PLUE_CHECKED(no_thread_safety_analysis) {
    return guest.attached && !plue_is_forked() ? &guest.peer : NULL;
}

int plue_guest_push(const uint8_t *frames, uint32_t length) {
    size_t at = 0;
    struct plue_wakeups wakeups = {.count = 0};
    struct plue_peer *peer = peer_of_this_thread();
    bool is_right = peer != NULL;
    while (is_right && at < length) {
        struct plue_frame_view view;
        size_t wanted;
        int64_t size = plue_frame_read(frames + at, length - at, &view, &wanted);
        is_right = size > 0 && plue_peer_receive(peer, &view, &wakeups);
        at += is_right ? (size_t)size : 0;
    }
    plue_wakeups_carry_out(&wakeups);
    return is_right ? 0 : -1;
}

void plue_guest_detach(void) {
    struct plue_frame *waiting = NULL;
    bool is_detached = false;
    if (plue_is_forked()) {
        return;
    }
    plue_lock();
    if (guest.attached) {
        guest.attached = false;
        guest.wake = NULL;
        /* This thread closes the socket below, unless another thread is about to write to it. */
        atomic_fetch_add(&wakers, 1);
        atomic_store(&retired_socket, guest.wake_socket);
        guest.wake_socket = -1;
        is_detached = true;
        plue_peer_fail(&guest.peer, "runtime_gone",
                        "The JavaScript runtime detached while the call was running");
        plue_peer_close(&guest.peer);
        waiting = plue_frame_queue_take(&guest.queue);
        plue_change();
    }
    plue_unlock();
    if (is_detached) {
        finish_wake();
    }
    plue_frame_free_all(waiting);
}

int plue_guest_wakers(void) {
    return plue_is_forked() ? 0 : atomic_load(&wakers);
}
