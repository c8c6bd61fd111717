/* Frames that arrive over a socket. One thread at a time reads: the sidecar's thread, or a caller
 * that waits for its answer, so that the caller need not be woken. */
#pragma once

#include "frame.h"
#include "peer.h"

enum { PLUE_INBOX_SIZE = 64 << 10 };

enum plue_reading { PLUE_READ_SOME, PLUE_READ_NOTHING, PLUE_READ_END };

struct plue_inbox {
    int socket;
    int wake[2];           /* a socket pair that wakes the reading caller */
    atomic_uint is_taken;  /* true while a thread reads */
    atomic_bool is_closed; /* callers must not read any more */
    atomic_bool has_ended;  /* the stream has ended, or a frame was malformed */
    atomic_bool has_failed; /* a FAILED frame has arrived */

    /* The other fields are used only by the reading thread. */
    const char *fault;             /* the error; NULL if the process closed the stream */
    struct plue_frame_view header; /* the header of a frame that is larger than the buffer */
    uint8_t *large;                /* the payload of that frame, with space for a NUL; or NULL */
    size_t large_used;
    size_t used;
    uint8_t bytes[PLUE_INBOX_SIZE];
};

/* Opens a zeroed inbox. Returns 0, or -1 with errno; the inbox then owns nothing. */
int plue_inbox_open(struct plue_inbox *inbox, int socket);
/* Frees the inbox's memory and descriptors, but not the socket. */
void plue_inbox_destroy(struct plue_inbox *inbox);

/* The error message if the host has closed a descriptor of the library. */
extern const char plue_closed_by_host[];

/* Makes this thread the reader. Returns false if another thread reads. */
bool plue_inbox_take(struct plue_inbox *inbox);
void plue_inbox_give_back(struct plue_inbox *inbox);

/* Makes this thread the only reader from now on. A caller that reads is stopped. */
void plue_inbox_close(struct plue_inbox *inbox);

/* Reads once, without waiting, and handles the received frames. */
enum plue_reading plue_inbox_read(struct plue_inbox *inbox, struct plue_peer *peer);

void plue_inbox_wake(struct plue_inbox *inbox);

/* Reads for all callers, until the word differs from `value`, `at_ms` has passed, or callers must
 * not read any more. Returns false if another thread reads. */
bool plue_inbox_lead(struct plue_inbox *inbox, struct plue_peer *peer, const atomic_uint *word,
                     unsigned value, uint64_t at_ms);
