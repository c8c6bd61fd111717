/* The frames of PROTOCOL.md: how they are built and read. */
#pragma once

#include "std.h"

enum {
    PLUE_PROTOCOL_VERSION = 2,
    PLUE_FRAME_HEADER = 16,
    PLUE_FRAME_MAX = 256 << 20,
    PLUE_EXEC_OVERHEAD = PLUE_FRAME_HEADER + 8, /* before the strings of a call */
};

enum plue_frame_type {
    PLUE_FRAME_EXEC = 1,
    PLUE_FRAME_ABORT = 2,
    PLUE_FRAME_SHUTDOWN = 3,
    PLUE_FRAME_CONFIG = 4,
    PLUE_FRAME_PING = 5,
    PLUE_FRAME_REGISTER = 6,
    PLUE_FRAME_UNREGISTER = 7,
    PLUE_FRAME_YIELD = 8,
    PLUE_FRAME_RESULT = 16,
    PLUE_FRAME_META = 17,
    PLUE_FRAME_TOOLS = 18,
    PLUE_FRAME_HELLO = 19,
    PLUE_FRAME_FAILED = 20,
    PLUE_FRAME_PONG = 21,
    PLUE_FRAME_INVOKE = 22,
    PLUE_FRAME_CANCEL = 23,
    PLUE_FRAME_LOG = 24,
};

enum {
    PLUE_EXEC_WANTS_METADATA = 1,
    PLUE_EXEC_ANSWERS_QUESTIONS = 2,
    PLUE_EXEC_OPERATION_SHIFT = 2,
    PLUE_ABORT_OF_SIGNAL = 1,
    PLUE_REGISTER_WANTS_ANSWER = 1,
    PLUE_RESULT_FAILED = 1,
    PLUE_RESULT_STATUS_SHIFT = 1,
    PLUE_FAILED_BY_CONFIGURATION = 1,
};

/* Counts the waiting bytes of a sender's frames. Lives as long as the sender and the last frame. */
struct plue_backlog {
    atomic_size_t size;
    atomic_uint references;
};

/* A frame to send. */
struct plue_frame {
    struct plue_frame *next;
    struct plue_backlog *backlog; /* NULL for a frame that is not counted */
    size_t length;
    size_t sent;
    uint8_t bytes[];
};

/* Frames in order. Initialise with plue_frame_queue_init(). */
struct plue_frame_queue {
    struct plue_frame *first;
    struct plue_frame **end;
};

/* A received frame; `payload` points into the buffer of received bytes, or is `own`. */
struct plue_frame_view {
    uint8_t type;
    uint8_t flags;
    uint64_t id;
    const uint8_t *payload;
    size_t length;
    uint8_t *own; /* the payload on the heap, with space for a NUL, for the receiver; or NULL */
};

/* Returns NULL when out of memory. */
struct plue_frame *plue_frame_new(enum plue_frame_type type, uint8_t flags, uint64_t id,
                                  const void *payload, size_t length);

/* Returns the size in bytes of a block of `count` strings. */
size_t plue_frame_strings_size(const char *const *strings, size_t count);

/* Makes a frame with numbers, followed by a block of strings, some of which may be NULL. Returns
 * NULL when out of memory. The frame of a call gets its id when it is sent. */
struct plue_frame *plue_frame_of(enum plue_frame_type type, uint8_t flags, uint64_t id,
                                 const uint64_t *numbers, size_t number_count,
                                 const char *const *strings, size_t count);

struct plue_backlog *plue_backlog_new(void); /* NULL when out of memory */
void plue_backlog_release(struct plue_backlog *backlog);
/* Counts the frame until it is freed. Returns false if frames wait and their limit is exceeded. */
bool plue_backlog_add(struct plue_backlog *backlog, struct plue_frame *frame, size_t most);

void plue_frame_set_id(struct plue_frame *frame, uint64_t id);

/* Reads the frame at `bytes`. Returns its size, or -1 if it is malformed. Returns 0 if it is
 * incomplete: `*wanted` is then the number of bytes that it needs, and `*view` has the fields of
 * the header if the header is complete. */
int64_t plue_frame_read(const uint8_t *bytes, size_t available, struct plue_frame_view *view,
                        size_t *wanted);

uint32_t plue_read_u32(const uint8_t *bytes);
uint64_t plue_read_u64(const uint8_t *bytes);

/* A string in a frame; `bytes` is NULL for NULL. */
struct plue_text_view {
    const uint8_t *bytes;
    size_t length;
};

/* Reads a block of strings without NUL bytes. Returns false if it is malformed. */
bool plue_frame_read_strings(const uint8_t *bytes, size_t length, struct plue_text_view *strings,
                             size_t count);

void plue_frame_queue_init(struct plue_frame_queue *queue);
/* Appends a frame and the frames linked to it. */
void plue_frame_queue_push(struct plue_frame_queue *queue, struct plue_frame *first);
/* Removes the first frame from the queue, which must not be empty, and returns it. */
struct plue_frame *plue_frame_queue_pop(struct plue_frame_queue *queue);
void plue_frame_queue_put_back(struct plue_frame_queue *queue, struct plue_frame *frame);
/* Removes the call's frame, unless a part of it was sent. Returns NULL if there is none. */
struct plue_frame *plue_frame_queue_withdraw(struct plue_frame_queue *queue, uint64_t call);
struct plue_frame *plue_frame_queue_take(struct plue_frame_queue *queue);
/* Frees a frame and the frames linked to it. */
void plue_frame_free_all(struct plue_frame *first);
