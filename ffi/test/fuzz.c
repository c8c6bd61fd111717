/* For libFuzzer: all frames of a tools side, received from a guest and from a sidecar, while a
 * call, a submitted call, a tool of the host and questions run. */
#include "inbox.h"
#include "platform.h"
#include "plue.h"
#include "plue_guest.h"
#include "state.h"

#include <sched.h>
#include <sys/socket.h>

int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_event(const char *json, void *unused) {
    if (*json == '\0') {
        abort(); /* a host is promised JSON */
    }
}

static void check_end(int status, const char *json, void *unused) {
    check_event(json, unused);
}

/* Invocations that end later, on another thread. */
static _Atomic(plue_invocation_t *) kept;

static void ignore_abort(plue_invocation_t *invocation, void *unused) {
}

/* Runs a tool of the host, or answers a question: succeeds, fails, or ends the invocation later. */
static void run_tool(plue_invocation_t *invocation, const char *params_json, void *unused) {
    static atomic_uint count;
    unsigned number = atomic_fetch_add(&count, 1);
    check_event(params_json, unused);
    plue_invocation_metadata(invocation, "{}");
    plue_invocation_progress(invocation, 1, 2, NULL);
    plue_invocation_on_abort(invocation, ignore_abort, NULL);
    if (number % 3 == 0) {
        invocation = atomic_exchange(&kept, invocation);
    }
    if (invocation != NULL && number % 2 == 0) {
        plue_invocation_succeed(invocation, "{}");
    } else if (invocation != NULL) {
        plue_invocation_fail(invocation, PLUE_DENIED, "\xff no");
    }
}

static void *call_always(void *unused) {
    plue_tool_context_t context = {.metadata_callback = check_event};
    for (;;) {
        char *json = plue_tool_execute("tool", "{}", &context);
        check_event(json, NULL);
        plue_free_json(json);
        sched_yield();
    }
    return unused;
}

static void *dispatch_always(void *unused) {
    for (;;) {
        plue_events_dispatch(1);
        plue_invocation_t *invocation = atomic_exchange(&kept, NULL);
        if (invocation != NULL) {
            plue_invocation_succeed(invocation, "1");
        }
    }
    return unused;
}

static void ignore_change(void *unused) {
}

static void check_line(const char *line, void *unused) {
    (void)strlen(line);
}

static void wake(void) {
}

int LLVMFuzzerInitialize(int *count, char ***arguments) {
    plue_options_t options = {
        .struct_size = sizeof options, .mode = PLUE_MODE_GUEST, .start_timeout_ms = 50};
    pthread_t thread;
    plue_init_with_options(&options);
    plue_set_question(run_tool, NULL, NULL);
    plue_set_list_changed(ignore_change, NULL);
    plue_set_log(check_line, NULL);
    pthread_create(&thread, NULL, dispatch_always, NULL);
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
        usleep(20);
    }
}

/* The bytes that are made from the data. */
struct input {
    uint8_t *bytes;
    size_t size;
};

/* The parts of a frame: four bytes of the data, and the payload after them. */
enum { OF_CALL = 1, OF_CONFIGURATION = 2, OF_QUESTION = 4, FOR_CALL = 8, WITH_MESSAGE = 16 };

/* Writes the payload of a well-formed INVOKE: of the question's function, or of the tool with the number
 * in the data. Returns its length. */
static size_t write_invoke(uint8_t *payload, uint8_t choice, uint64_t call) {
    const uint64_t numbers[2] = {choice & OF_QUESTION ? 0 : choice >> 5, choice & FOR_CALL ? call : 0};
    const uint32_t lengths[3] = {2, UINT32_MAX, choice & WITH_MESSAGE ? 1 : UINT32_MAX};
    memcpy(payload, numbers, 16);
    memcpy(payload + 16, lengths, 12);
    memcpy(payload + 28, "{}m", 3);
    return choice & WITH_MESSAGE ? 31 : 30;
}

/* Turns the data into frames of all types and flags, most of which are complete. */
static struct input make_frames(const uint8_t *data, size_t size, uint64_t call,
                                uint64_t configuration) {
    enum { TYPES = PLUE_FRAME_LOG - PLUE_FRAME_RESULT + 2, HEAD = 4, LARGEST = 256 + 32 };
    struct input input = {malloc((size / HEAD + 1) * (PLUE_FRAME_HEADER + LARGEST)), 0};
    for (size_t at = 0; size - at >= HEAD;) {
        uint8_t payload[LARGEST];
        int type = PLUE_FRAME_RESULT + data[at] % TYPES; /* one more than there are */
        uint8_t flags = data[at + 1];
        uint8_t choice = data[at + 3];
        size_t length = data[at + 2] < size - at - HEAD ? data[at + 2] : size - at - HEAD;
        memcpy(payload, data + at + HEAD, length);
        at += HEAD + length;
        uint64_t id = choice & OF_CALL            ? call
                      : choice & OF_CONFIGURATION ? configuration
                                                  : choice >> 2;
        if (type == PLUE_FRAME_INVOKE && (choice & 3) != 3) {
            length = write_invoke(payload, choice, call);
            id = flags % 4; /* that CANCEL meets it is common */
        } else if (type == PLUE_FRAME_RESULT && (flags & PLUE_RESULT_FAILED) && length > 4) {
            const uint32_t message = length > 6;
            memcpy(payload, &message, choice & OF_CONFIGURATION ? sizeof message : 0);
        }
        struct plue_frame *frame =
            plue_frame_new((enum plue_frame_type)type, flags, id, payload, length);
        memcpy(input.bytes + input.size, frame->bytes, frame->length);
        input.size += frame->length;
        plue_frame_free_all(frame);
    }
    return input;
}

static struct input copy(const uint8_t *data, size_t size) {
    struct input input = {malloc(size + 1), size};
    memcpy(input.bytes, data, size);
    return input;
}

/* Receives the same bytes over a socket. */
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
    /* The bytes are sent in two parts, so that a frame is split. */
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
    plue_tool_context_t context = {.metadata_callback = check_event};
    plue_tool_submit("tool", "{}", size % 2 == 0 ? NULL : &context, check_end, NULL);
    bool is_raw = size == 0 || data[0] % 5 == 0;
    struct input input =
        is_raw ? copy(data, size) : make_frames(data + 1, size - 1, call, configuration);
    plue_guest_push(input.bytes, (uint32_t)input.size);
    receive(input.bytes, input.size);
    free(input.bytes);
    plue_guest_detach();
    return 0;
}

#ifndef PLUE_LIBFUZZER
/* Without libFuzzer: fuzz [runs [seed]], with random bytes. */
int main(int count, char **arguments) {
    int runs = count > 1 ? atoi(arguments[1]) : 1000;
    unsigned seed = count > 2 ? (unsigned)atoi(arguments[2]) : 1;
    LLVMFuzzerInitialize(&count, &arguments);
    for (int i = 0; i < runs; i++) {
        uint8_t data[600];
        size_t size = (size_t)rand_r(&seed) % sizeof data;
        for (size_t at = 0; at < size; at++) {
            data[at] = (uint8_t)(rand_r(&seed) >> 8);
        }
        LLVMFuzzerTestOneInput(data, size);
    }
    printf("fuzz: ok\n");
    return 0;
}
#endif
