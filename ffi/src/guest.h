/* The runtime that has attached itself in this process, and the frames that wait for it. */
#pragma once

#include "frame.h"
#include "peer.h"
#include "state.h"

/* NULL while no runtime is attached. */
struct plue_peer *plue_guest_peer(void) PLUE_LOCKED;

/* Returns true if a runtime has been attached since the last plue_shutdown(). */
bool plue_guest_was_attached(void) PLUE_LOCKED;

bool plue_guest_is_this_thread(void) PLUE_LOCKED;

/* Appends a frame and the frames linked to it. The runtime is woken when the lock is released. */
void plue_guest_enqueue(struct plue_frame *frame) PLUE_LOCKED;

/* Removes the frame of a call from the queue. Returns NULL if the runtime has already taken it. */
struct plue_frame *plue_guest_withdraw(uint64_t call) PLUE_LOCKED;

/* Sends the current options to the runtime, if there is one. */
void plue_guest_configure(void) PLUE_LOCKED;

/* Fails the running calls, and has the runtime abort their tools. */
void plue_guest_shutdown(void) PLUE_LOCKED;

/* A wake that is due. plue_unlock() calls it after the lock was released, because it runs foreign
 * code. */
struct plue_wake {
    bool due;
    void (*callback)(void); /* if NULL, a byte through the socket wakes the runtime */
    int socket;
};
struct plue_wake plue_guest_take_wake(void) PLUE_LOCKED;
void plue_guest_wake(const struct plue_wake *wake);
