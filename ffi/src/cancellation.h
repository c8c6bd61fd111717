/* pthread_cancel() must not end a thread inside the library: its call lives on that thread's stack,
 * and it may hold plue_lock. So cancellation is off in each function that waits or writes, also
 * while it runs a callback, and a cancellation that was asked for happens after its return. */
#ifndef PLUE_CANCELLATION_H
#define PLUE_CANCELLATION_H

/* Returns what to restore. */
int plue_cancellation_off(void);
void plue_cancellation_restore(int state);

#endif
