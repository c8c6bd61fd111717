/* Frames on their way into a socket that never blocks.
 *
 * Any thread may post. No thread waits for the socket or for another writing thread: the lock
 * guards only the list, and is not held during a system call or while a frame is freed. One thread
 * writes at a time, at most a portion. The thread that polls the socket writes the rest. */
#pragma once

#include "frame.h"

/* The maximum number of bytes that a thread writes at a time. */
enum { PLUE_OUTBOX_PORTION = 128 << 10 };

struct plue_outbox {
    int socket;
    pthread_mutex_t lock;
    /* Guarded by the lock. */
    struct plue_frame_queue queue; /* excludes the frame that is being written */
    bool is_open;                  /* the other end reads the socket */
    bool is_closed;
    bool is_writing;
    /* True if there are frames that no thread writes at present. Read without the lock. */
    atomic_bool has_rest;
};

/* Initialises an outbox, which stores the posted frames until it is opened. */
void plue_outbox_init(struct plue_outbox *outbox, int socket);
void plue_outbox_open(struct plue_outbox *outbox);

/* Takes ownership of the frame and the frames linked to it, and writes them if no frame waits before
 * them. Returns true if the polling thread must be woken to write the rest. */
bool plue_outbox_post(struct plue_outbox *outbox, struct plue_frame *frame);

/* Removes the frame of a call from the queue. Returns NULL if a part of it was written. */
struct plue_frame *plue_outbox_withdraw(struct plue_outbox *outbox, uint64_t call);

/* Writes a part of the waiting frames. Returns true if frames still wait, or are being written. */
bool plue_outbox_flush(struct plue_outbox *outbox);

/* Frees the waiting frames, and every frame that is posted later. */
void plue_outbox_close(struct plue_outbox *outbox);

/* Closes the outbox, which no other thread may use any more. The socket stays open. */
void plue_outbox_destroy(struct plue_outbox *outbox);
