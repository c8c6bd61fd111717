/* The runtime that has attached itself in this process, and the frames that wait for it.
 * plue_lock is held for all of it, but for plue_guest_wake(). */
#ifndef PLUE_GUEST_INTERNAL_H
#define PLUE_GUEST_INTERNAL_H

#include "frame.h"
#include "peer.h"

#include <stdbool.h>

/* A wake that is due. It is carried out without the lock, because it runs foreign code. Each one must
 * be: whoever gives the lock up carries out what is due before another frame is added with the same
 * wake, since by then the runtime may have to be woken again. */
struct plue_wake {
    bool due;
    void (*callback)(void);
    int socket;
};

/* NULL while no runtime is attached. */
struct plue_peer *plue_guest_peer(void);

/* Says whether one has been attached since the last plue_shutdown(). */
bool plue_guest_was_attached(void);

/* Says whether the calling thread is the one that runs JavaScript. */
bool plue_guest_is_this_thread(void);

/* Adds a frame to those that wait. `wake` gets due if the runtime must be woken. */
void plue_guest_enqueue(struct plue_frame *frame, struct plue_wake *wake);

/* Sends the runtime, if there is one, the options that hold now. */
void plue_guest_configure(struct plue_wake *wake);

/* Fails the running calls, and has the runtime abort their tools. */
void plue_guest_shutdown(struct plue_wake *wake);

/* Carries the wake out, if it is due. Called without the lock. */
void plue_guest_wake(struct plue_wake *wake);

/* The same, called and left with the lock held; it is given up in between. */
void plue_guest_wake_and_relock(struct plue_wake *wake);

#endif
