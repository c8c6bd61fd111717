/* The lock of the library, and its state as a whole.
 *
 * The lock guards every call, the options, the guest's queue, the state of the sidecar, and the
 * peers. The lock is never held while code of the host or of JavaScript runs, or during a system
 * call that can block. The lock of a sidecar's outbox may be taken while this lock is held, never
 * the other way round. clang checks the use of the lock (-Wthread-safety). */
#pragma once

#include "outcome.h"

#if defined(__clang__)
#define PLUE_CHECKED(attribute) __attribute__((attribute))
#else
#define PLUE_CHECKED(attribute)
#endif

struct PLUE_CHECKED(capability("mutex")) plue_mutex {
    pthread_mutex_t mutex;
};

extern struct plue_mutex plue_mutex;

/* PLUE_GUARDED data is used, and PLUE_LOCKED functions are called, with the lock held. */
#define PLUE_GUARDED PLUE_CHECKED(guarded_by(plue_mutex))
#define PLUE_LOCKED PLUE_CHECKED(requires_capability(plue_mutex))
/* PLUE_UNLOCKED functions take the lock themselves. */
#define PLUE_UNLOCKED PLUE_CHECKED(locks_excluded(plue_mutex))

void plue_lock(void) PLUE_CHECKED(acquire_capability(plue_mutex));
bool plue_try_lock(void) PLUE_CHECKED(try_acquire_capability(true, plue_mutex));

/* Releases the lock, and does the work that became due while it was held: wakes the guest, and
 * notifies the calls of aborted signals. */
void plue_unlock(void) PLUE_CHECKED(release_capability(plue_mutex));

void plue_unlock_only(void) PLUE_CHECKED(release_capability(plue_mutex));

/* Wakes the threads in plue_wait_for_change(). Call it when a peer, the sidecar or a shutdown has
 * changed its state, or when a call that waits for one of these is aborted. */
void plue_change(void) PLUE_LOCKED;

/* Waits for plue_change(), at most until `at_ms`. The lock is released while this waits. */
void plue_wait_for_change(uint64_t at_ms) PLUE_LOCKED;

/* True while plue_shutdown() runs. */
extern bool plue_stopping PLUE_GUARDED;

/* Returns true if fork() made this process while the library was in use: every function then fails,
 * or does nothing. Read without the lock, which another thread may have held at the fork. */
bool plue_is_forked(void);

void plue_set_forked(void);
struct plue_outcome plue_forked_failure(void);

/* The functions of higher files that lower files call, described in their headers. Each file
 * includes and calls only lower files, so library.c, the highest one, fills this table. */
struct plue_frame;
struct plue_sidecar;
struct plue_above {
    void (*unlock_and_catch_up)(void);
    bool (*is_behind)(void);
    void (*changed)(void);
    void (*configured)(void);
    uint64_t (*expire)(uint64_t now_ms);
    void (*send)(uint64_t generation, struct plue_frame *frame);
    struct plue_outcome (*run)(struct plue_frame *frame);
    void (*wake_leader)(struct plue_sidecar *sidecar);
};
extern const struct plue_above plue_above;
