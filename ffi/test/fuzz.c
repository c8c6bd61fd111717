/* For libFuzzer: what a tools side sends, through both ways in, while a call runs. */
#include "inbox.h"
#include "platform.h"
#include "plue.h"
#include "plue_guest.h"
#include "state.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ignore_event(const char *json, void *unused) {
    (void)unused;
    if (strlen(json) == 0) {
        abort(); /* a host is promised JSON */
    }
}

/* Makes one call after the other. */
static void *call_always(void *unused) {
    plue_tool_context_t context = {.metadata_callback = ignore_event};
    for (;;) {
        char *json = plue_tool_execute("tool", "{}", &context);
        if (strlen(json) == 0) {
            abort();
        }
        plue_free_json(json);
        sched_yield();
    }
    return unused;
}

static void wake(void) {
}

int LLVMFuzzerInitialize(int *count, char ***arguments) {
    (void)count;
    (void)arguments;
    plue_options_t options = {.struct_size = sizeof options, .mode = PLUE_MODE_GUEST};
    pthread_t thread;
    plue_init_with_options(&options);
    return pthread_create(&thread, NULL, call_always, NULL);
}

static void push(enum plue_frame_type type, uint8_t flags, uint64_t id, const char *payload) {
    struct plue_frame *frame = plue_frame_new(type, flags, id, payload, strlen(payload));
    plue_guest_push(frame->bytes, (uint32_t)frame->length);
    plue_frame_free_all(frame);
}

/* Waits for a frame of that type. Returns its id. */
static uint64_t await_frame(enum plue_frame_type type) {
    static uint8_t bytes[4096];
    for (;;) {
        int32_t drained = plue_guest_drain(bytes, sizeof bytes);
        for (size_t at = 0; drained > 0 && at < (size_t)drained;) {
            struct plue_frame_view view;
            size_t wanted;
            at += (size_t)plue_frame_read(bytes + at, (size_t)drained - at, &view, &wanted);
            if (view.type == type) {
                return view.id;
            }
        }
        sched_yield();
    }
}

/* Bytes that were made of the data. */
struct input {
    uint8_t *bytes;
    size_t size;
};

/* Reads the data as frames, so that whole ones are common: for each a type, flags, the length of the
 * payload, and the payload. Half of the ids are that of the call. */
static struct input make_frames(const uint8_t *data, size_t size, uint64_t id) {
    struct input input = {malloc(size * PLUE_FRAME_HEADER + 1), 0};
    for (size_t at = 0; size - at >= 3;) {
        size_t length = data[at + 2] < size - at - 3 ? data[at + 2] : size - at - 3;
        struct plue_frame *frame =
            plue_frame_new((enum plue_frame_type)(PLUE_FRAME_RESULT + data[at] % 7), data[at + 1] & 1,
                           data[at + 1] & 0x80 ? data[at + 1] : id, data + at + 3, length);
        memcpy(input.bytes + input.size, frame->bytes, frame->length);
        input.size += frame->length;
        at += 3 + length;
        plue_frame_free_all(frame);
    }
    return input;
}

static struct input copy(const uint8_t *data, size_t size) {
    struct input input = {malloc(size + 1), size};
    memcpy(input.bytes, data, size);
    return input;
}

/* The same bytes, over a socket. */
static void receive(const uint8_t *bytes, size_t size) {
    static struct plue_inbox inbox;
    struct plue_peer peer;
    int pair[2];
    memset(&inbox, 0, sizeof inbox);
    if (plue_socket_pair(pair) != 0 || plue_inbox_open(&inbox, pair[0]) != 0) {
        abort();
    }
    plue_lock();
    plue_peer_open(&peer);
    plue_unlock();
    plue_inbox_take(&inbox);
    /* In two parts, so that a frame is read in two. */
    size_t first = size > 0 ? bytes[0] % size : 0;
    const size_t parts[2] = {first, size - first};
    for (int i = 0; i < 2; i++) {
        plue_send(pair[1], bytes + (i == 0 ? 0 : first), parts[i]);
        while (!atomic_load(&inbox.has_ended) && plue_inbox_read(&inbox, &peer) == PLUE_READ_SOME) {
        }
    }
    plue_inbox_destroy(&inbox);
    plue_peer_close(&peer);
    close(pair[0]);
    close(pair[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (plue_guest_attach(wake) != 0) {
        return 0;
    }
    uint64_t configuration = await_frame(PLUE_FRAME_CONFIG);
    push(PLUE_FRAME_TOOLS, 0, configuration, "{}");
    push(PLUE_FRAME_HELLO, PLUE_PROTOCOL_VERSION, configuration, "{}");
    uint64_t call = await_frame(PLUE_FRAME_EXEC);
    bool is_raw = size == 0 || data[0] % 4 == 0;
    struct input input = is_raw ? copy(data, size) : make_frames(data + 1, size - 1, call);
    plue_guest_push(input.bytes, (uint32_t)input.size);
    receive(input.bytes, input.size);
    free(input.bytes);
    plue_guest_detach();
    return 0;
}
