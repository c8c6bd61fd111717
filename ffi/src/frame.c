#include "frame.h"

#include "platform.h"
#include "text.h"

static const uint32_t null_string = 0xFFFFFFFF;

static void write_u32(uint8_t *bytes, uint32_t value) {
    bytes[0] = (uint8_t)value;
    bytes[1] = (uint8_t)(value >> 8);
    bytes[2] = (uint8_t)(value >> 16);
    bytes[3] = (uint8_t)(value >> 24);
}

static void write_u64(uint8_t *bytes, uint64_t value) {
    write_u32(bytes, (uint32_t)value);
    write_u32(bytes + 4, (uint32_t)(value >> 32));
}

uint32_t plue_read_u32(const uint8_t *bytes) {
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

uint64_t plue_read_u64(const uint8_t *bytes) {
    return plue_read_u32(bytes) | (uint64_t)plue_read_u32(bytes + 4) << 32;
}

static void write_header(uint8_t *bytes, enum plue_frame_type type, uint8_t flags, uint64_t id,
                         size_t length) {
    write_u32(bytes, (uint32_t)(length - 4));
    bytes[4] = (uint8_t)type;
    bytes[5] = flags;
    bytes[6] = 0;
    bytes[7] = 0;
    write_u64(bytes + 8, id);
}

/* Allocates a frame of `size` bytes, without initialising the bytes. */
static struct plue_frame *allocate(size_t size) {
    struct plue_frame *frame = malloc(sizeof *frame + size);
    if (frame != NULL) {
        frame->next = NULL;
        frame->backlog = NULL;
        frame->length = size;
        frame->sent = 0;
    }
    return frame;
}

struct plue_backlog *plue_backlog_new(void) {
    struct plue_backlog *backlog = calloc(1, sizeof *backlog);
    if (backlog != NULL) {
        atomic_init(&backlog->references, 1);
    }
    return backlog;
}

void plue_backlog_release(struct plue_backlog *backlog) {
    if (backlog != NULL && plue_was_last(&backlog->references)) {
        free(backlog);
    }
}

bool plue_backlog_add(struct plue_backlog *backlog, struct plue_frame *frame, size_t most) {
    size_t before = atomic_fetch_add(&backlog->size, frame->length);
    if (before > 0 && before + frame->length > most) {
        atomic_fetch_sub(&backlog->size, frame->length);
        return false;
    }
    atomic_fetch_add(&backlog->references, 1);
    frame->backlog = backlog;
    return true;
}

static struct plue_frame *frame_of_length(enum plue_frame_type type, uint8_t flags, uint64_t id,
                                          size_t length) {
    struct plue_frame *frame = allocate(length);
    if (frame != NULL) {
        write_header(frame->bytes, type, flags, id, length);
    }
    return frame;
}

struct plue_frame *plue_frame_new(enum plue_frame_type type, uint8_t flags, uint64_t id,
                                  const void *payload, size_t length) {
    struct plue_frame *frame = frame_of_length(type, flags, id, PLUE_FRAME_HEADER + length);
    if (frame != NULL && length > 0) {
        memcpy(frame->bytes + PLUE_FRAME_HEADER, payload, length);
    }
    return frame;
}

size_t plue_frame_strings_size(const char *const *strings, size_t count) {
    size_t size = 4 * count;
    for (size_t i = 0; i < count; i++) {
        if (strings[i] != NULL) {
            size += strlen(strings[i]);
        }
    }
    return size;
}

struct plue_frame *plue_frame_of(enum plue_frame_type type, uint8_t flags, uint64_t id,
                                 const uint64_t *numbers, size_t number_count,
                                 const char *const *strings, size_t count) {
    size_t before = sizeof *numbers * number_count;
    size_t size = PLUE_FRAME_HEADER + before + plue_frame_strings_size(strings, count);
    struct plue_frame *frame = frame_of_length(type, flags, id, size);
    if (frame == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < number_count; i++) {
        write_u64(frame->bytes + PLUE_FRAME_HEADER + sizeof *numbers * i, numbers[i]);
    }
    uint8_t *lengths = frame->bytes + PLUE_FRAME_HEADER + before;
    uint8_t *text = lengths + 4 * count;
    for (size_t i = 0; i < count; i++) {
        if (strings[i] == NULL) {
            write_u32(lengths + 4 * i, null_string);
            continue;
        }
        size_t length = strlen(strings[i]);
        write_u32(lengths + 4 * i, (uint32_t)length);
        memcpy(text, strings[i], length);
        text += length;
    }
    return frame;
}

void plue_frame_set_id(struct plue_frame *frame, uint64_t id) {
    write_u64(frame->bytes + 8, id);
}

int64_t plue_frame_read(const uint8_t *bytes, size_t available, struct plue_frame_view *view,
                        size_t *wanted) {
    *wanted = PLUE_FRAME_HEADER;
    if (available < 4) {
        return 0;
    }
    size_t size = (size_t)plue_read_u32(bytes) + 4;
    if (size < PLUE_FRAME_HEADER || size > PLUE_FRAME_MAX) {
        return -1;
    }
    *wanted = size;
    if (available < PLUE_FRAME_HEADER) {
        return 0;
    }
    *view = (struct plue_frame_view){
        .type = bytes[4],
        .flags = bytes[5],
        .id = plue_read_u64(bytes + 8),
        .payload = bytes + PLUE_FRAME_HEADER,
        .length = size - PLUE_FRAME_HEADER,
    };
    return available < size ? 0 : (int64_t)size;
}

bool plue_frame_read_strings(const uint8_t *bytes, size_t length, struct plue_text_view *strings,
                             size_t count) {
    if (length < 4 * count) {
        return false;
    }
    const uint8_t *text = bytes + 4 * count;
    size_t left = length - 4 * count;
    for (size_t i = 0; i < count; i++) {
        uint32_t size = plue_read_u32(bytes + 4 * i);
        strings[i] = (struct plue_text_view){NULL, 0};
        if (size == null_string) {
            continue;
        }
        if (size > left || !plue_text_is_string(text, size)) {
            return false;
        }
        strings[i] = (struct plue_text_view){text, size};
        text += size;
        left -= size;
    }
    return left == 0;
}

void plue_frame_queue_init(struct plue_frame_queue *queue) {
    queue->first = NULL;
    queue->end = &queue->first;
}

void plue_frame_queue_push(struct plue_frame_queue *queue, struct plue_frame *first) {
    *queue->end = first;
    while (*queue->end != NULL) {
        queue->end = &(*queue->end)->next;
    }
}

struct plue_frame *plue_frame_queue_pop(struct plue_frame_queue *queue) {
    struct plue_frame *frame = queue->first;
    queue->first = frame->next;
    if (queue->first == NULL) {
        queue->end = &queue->first;
    }
    frame->next = NULL;
    return frame;
}

void plue_frame_queue_put_back(struct plue_frame_queue *queue, struct plue_frame *frame) {
    frame->next = queue->first;
    queue->first = frame;
    if (frame->next == NULL) {
        queue->end = &frame->next;
    }
}

struct plue_frame *plue_frame_queue_withdraw(struct plue_frame_queue *queue, uint64_t call) {
    for (struct plue_frame **at = &queue->first; *at != NULL; at = &(*at)->next) {
        struct plue_frame *frame = *at;
        if (frame->bytes[4] == PLUE_FRAME_EXEC && frame->sent == 0 &&
            plue_read_u64(frame->bytes + 8) == call) {
            *at = frame->next;
            queue->end = frame->next == NULL ? at : queue->end;
            frame->next = NULL;
            return frame;
        }
    }
    return NULL;
}

struct plue_frame *plue_frame_queue_take(struct plue_frame_queue *queue) {
    struct plue_frame *first = queue->first;
    plue_frame_queue_init(queue);
    return first;
}

void plue_frame_free_all(struct plue_frame *first) {
    while (first != NULL) {
        struct plue_frame *next = first->next;
        if (first->backlog != NULL) {
            atomic_fetch_sub(&first->backlog->size, first->length);
            plue_backlog_release(first->backlog);
        }
        free(first);
        first = next;
    }
}
