/* plue_guest.h - the PRIVATE seam between libplue and a JavaScript runtime in the same process.
 *
 * Not for hosts, and not part of the ABI that plue.h promises. PROTOCOL.md specifies the frames.
 * All functions but plue_guest_wakers() are called on the JavaScript thread. None of them blocks.
 */
#ifndef PLUE_GUEST_H
#define PLUE_GUEST_H

#include "plue.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Attaches the runtime of the calling thread.
 *
 * With `wake`: it is called, from any thread and with no lock held, when frames are waiting; not
 * again before plue_guest_drain() has taken the last of them. With NULL: a byte is written to a
 * socket instead. The caller receives, and owns, the descriptor to read the byte from. Returns 0 or
 * the descriptor; -1 when a runtime is attached already or no descriptor is left. A CONFIG frame is
 * waiting when this returns: call plue_guest_drain() without waiting for a wake. */
PLUE_API int plue_guest_attach(void (*wake)(void));

/* Moves as many whole frames as fit to `buffer`. Returns the number of bytes, or 0 when there is no
 * frame. If `buffer` is too small for the first frame, returns the negated size of that frame. */
PLUE_API int32_t plue_guest_drain(uint8_t *buffer, uint32_t capacity);

/* Takes one or more whole frames. Returns 0; or -1 at the first malformed frame, after the frames
 * before it have been handled. */
PLUE_API int plue_guest_push(const uint8_t *frames, uint32_t length);

/* Fails all running calls with `runtime_gone` and forgets `wake`. Free the data of `wake` only
 * after plue_guest_wakers() has returned 0; until then call it again later, without blocking. */
PLUE_API void plue_guest_detach(void);

/* The number of threads inside `wake` or about to call it. */
PLUE_API int plue_guest_wakers(void);

#ifdef __cplusplus
}
#endif
#endif
