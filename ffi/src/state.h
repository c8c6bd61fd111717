/* The one lock of the library, and what the whole of it is doing.
 *
 * The lock guards every call, the options, the guest's queue, the state of the sidecar, and the
 * peers. It is held briefly: never while code of the host or of JavaScript runs, never around a
 * system call that can block. The lock of a sidecar's outbox may be taken while it is held, never
 * the other way round. clang checks who holds it (-Wthread-safety). */
#ifndef PLUE_STATE_H
#define PLUE_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#if defined(__clang__)
#define PLUE_CHECKED(attribute) __attribute__((attribute))
#else
#define PLUE_CHECKED(attribute)
#endif

struct PLUE_CHECKED(capability("mutex")) plue_mutex {
    pthread_mutex_t mutex;
};

extern struct plue_mutex plue_mutex;

/* Of data: it is used with the lock held. Of a function: it is called with the lock held. */
#define PLUE_GUARDED PLUE_CHECKED(guarded_by(plue_mutex))
#define PLUE_LOCKED PLUE_CHECKED(requires_capability(plue_mutex))
/* Of a function: it takes the lock by itself. */
#define PLUE_UNLOCKED PLUE_CHECKED(locks_excluded(plue_mutex))

void plue_lock(void) PLUE_CHECKED(acquire_capability(plue_mutex));
bool plue_try_lock(void) PLUE_CHECKED(try_acquire_capability(true, plue_mutex));

/* Gives the lock back, and then does what became due while it was held: wakes the guest, and tells
 * the calls of aborted signals. */
void plue_unlock(void) PLUE_CHECKED(release_capability(plue_mutex));

/* Tells the threads in plue_wait_for_change() that a peer, the sidecar or a shutdown has changed its
 * state, or that a call which waits for one of them is aborted. */
void plue_change(void) PLUE_LOCKED;

/* Waits for plue_change(), until `at_ms` at the latest. The lock is given up meanwhile. */
void plue_wait_for_change(uint64_t at_ms) PLUE_LOCKED;

/* Whether plue_shutdown() is at work. */
extern bool plue_stopping PLUE_GUARDED;

/* Whether this process was made by fork() while the library was at work: every function fails there,
 * or does nothing. Read without the lock, which another thread may have held at that moment. */
bool plue_is_forked(void);

/* What a failure says there. */
extern const char plue_forked_message[];

#endif
