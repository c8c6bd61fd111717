#include "outbox.h"

#include "platform.h"

void plue_outbox_init(struct plue_outbox *outbox, int socket) {
    outbox->socket = socket;
    pthread_mutex_init(&outbox->lock, NULL);
    plue_frame_queue_init(&outbox->queue);
    outbox->is_open = false;
    outbox->is_closed = false;
    outbox->is_writing = false;
    atomic_init(&outbox->has_rest, false);
}

void plue_outbox_open(struct plue_outbox *outbox) {
    pthread_mutex_lock(&outbox->lock);
    outbox->is_open = true;
    pthread_mutex_unlock(&outbox->lock);
}

/* Writes up to `most` bytes of the front frame, with the lock released. Returns the number of
 * written bytes. After a partial write the socket is full or broken; the reader notices a broken
 * one. */
static size_t write_front(struct plue_outbox *outbox, size_t most, bool *is_full) {
    struct plue_frame *frame = plue_frame_queue_pop(&outbox->queue);
    pthread_mutex_unlock(&outbox->lock);
    size_t left = frame->length - frame->sent;
    size_t wanted = left < most ? left : most;
    ssize_t result = plue_send(outbox->socket, frame->bytes + frame->sent, wanted);
    size_t sent = result < 0 ? 0 : (size_t)result;
    frame->sent += sent;
    *is_full = sent < wanted;
    bool is_done = sent == left;
    if (is_done) {
        plue_frame_free_all(frame); /* without the lock, because freeing a large frame is slow */
    }
    pthread_mutex_lock(&outbox->lock);
    if (!is_done) {
        plue_frame_queue_put_back(&outbox->queue, frame);
    }
    return sent;
}

/* Writes a portion. The lock is released during each write. */
static void write_portion(struct plue_outbox *outbox) {
    size_t portion = PLUE_OUTBOX_PORTION;
    bool is_full = false;
    outbox->is_writing = true;
    while (outbox->queue.first != NULL && portion > 0 && !is_full && !outbox->is_closed) {
        portion -= write_front(outbox, portion, &is_full);
    }
    outbox->is_writing = false;
    atomic_store(&outbox->has_rest, outbox->queue.first != NULL);
}

bool plue_outbox_post(struct plue_outbox *outbox, struct plue_frame *frame) {
    bool is_left = false;
    struct plue_frame *refused = NULL;
    pthread_mutex_lock(&outbox->lock);
    plue_frame_queue_push(&outbox->queue, frame);
    if (!outbox->is_open) {
        atomic_store(&outbox->has_rest, true);
    } else if (!outbox->is_writing && outbox->queue.first == frame && !outbox->is_closed) {
        /* If frames wait before this one, the polling thread writes them all. If a frame is being
         * written, its thread continues with this one. */
        write_portion(outbox);
        is_left = outbox->queue.first != NULL;
    }
    if (outbox->is_closed) {
        refused = plue_frame_queue_take(&outbox->queue);
        is_left = false;
    }
    pthread_mutex_unlock(&outbox->lock);
    plue_frame_free_all(refused);
    return is_left;
}

bool plue_outbox_flush(struct plue_outbox *outbox) {
    pthread_mutex_lock(&outbox->lock);
    if (!outbox->is_writing) {
        write_portion(outbox);
    }
    bool is_left = outbox->is_writing || outbox->queue.first != NULL;
    pthread_mutex_unlock(&outbox->lock);
    return is_left;
}

struct plue_frame *plue_outbox_withdraw(struct plue_outbox *outbox, uint64_t call) {
    pthread_mutex_lock(&outbox->lock);
    struct plue_frame *frame = plue_frame_queue_withdraw(&outbox->queue, call);
    pthread_mutex_unlock(&outbox->lock);
    return frame;
}

void plue_outbox_close(struct plue_outbox *outbox) {
    pthread_mutex_lock(&outbox->lock);
    outbox->is_closed = true;
    struct plue_frame *frames = plue_frame_queue_take(&outbox->queue);
    pthread_mutex_unlock(&outbox->lock);
    plue_frame_free_all(frames);
}

void plue_outbox_destroy(struct plue_outbox *outbox) {
    plue_outbox_close(outbox);
    pthread_mutex_destroy(&outbox->lock);
}
