/* The one lock of the library.
 *
 * plue_lock guards every call, every abort signal, the options, the guest's queue, the state of the
 * sidecar, and the peers. It is held briefly: never while code of the host or of JavaScript runs,
 * never around a system call that can block. The lock of a sidecar's outbox may be taken while
 * plue_lock is held, never the other way round. */
#ifndef PLUE_STATE_H
#define PLUE_STATE_H

#include <pthread.h>
#include <stdbool.h>

extern pthread_mutex_t plue_lock;

/* Broadcast when a peer or the sidecar changes its state, when a call that waits for one of them is
 * aborted, and when a shutdown begins or ends. */
extern pthread_cond_t plue_changed;

/* True while plue_shutdown() is at work. */
extern bool plue_stopping;

/* True in a process made by fork() while the library was at work, where every function fails or does
 * nothing. Read without the lock, which another thread may have held at that moment. */
bool plue_is_forked(void);

/* What a failure says there. */
extern const char plue_forked_message[];

#endif
