/* Frames on their way into a socket that never blocks.
 *
 * Any thread posts, and none waits for the socket or for another thread that writes to it: the lock
 * guards the list alone, and is not held around a system call or while a frame is freed. One thread
 * writes at a time, and a portion at most; what is left is for the thread that polls the socket. */
#ifndef PLUE_OUTBOX_H
#define PLUE_OUTBOX_H

#include "frame.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* The maximum size of one write, for the thread itself and for others. */
enum { PLUE_OUTBOX_PORTION = 128 << 10 };

struct plue_outbox {
    int socket;
    pthread_mutex_t lock;
    /* Guarded by the lock. */
    struct plue_frame_queue queue; /* without the frame that is being written */
    bool is_open;                  /* somebody reads at the other end */
    bool is_closed;
    bool is_writing;
    /* There are frames that no thread is at. Read without the lock. */
    atomic_bool has_rest;
};

/* An outbox that keeps what is posted until it is opened. */
void plue_outbox_init(struct plue_outbox *outbox, int socket);
void plue_outbox_open(struct plue_outbox *outbox);

/* Takes the frame and those linked to it, and writes them if none waits before. Returns whether the polling thread is to
 * be woken, because something is left. */
bool plue_outbox_post(struct plue_outbox *outbox, struct plue_frame *frame);

/* Takes out the frame of a call of which nothing was written. NULL: something was. */
struct plue_frame *plue_outbox_withdraw(struct plue_outbox *outbox, uint64_t call);

/* Writes a part of the rest. Returns whether something still is, or is being written. */
bool plue_outbox_flush(struct plue_outbox *outbox);

/* Frees what was not written, and whatever is posted later. */
void plue_outbox_close(struct plue_outbox *outbox);

/* Closes, once no other thread uses it. The socket stays. */
void plue_outbox_destroy(struct plue_outbox *outbox);

#endif
