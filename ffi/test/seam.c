/* Hosts whose runtime is this test, which acts at the worst possible moment. */
#include "abort.h"
#include "call.h"
#include "check.h"
#include "events.h"
#include "frame.h"
#include "guest.h"
#include "output.h"
#include "platform.h"
#include "plue.h"
#include "plue_guest.h"
#include "run.h"
#include "state.h"
#include "text.h"

#include <fcntl.h>

#if defined(__linux__)
#include <sys/epoll.h>
#endif

static void do_nothing(void) {
}

static bool try_to_push(enum plue_frame_type type, uint8_t flags, uint64_t id, const void *payload,
                        size_t length) {
    struct plue_frame *frame = plue_frame_new(type, flags, id, payload, length);
    bool is_pushed = plue_guest_push(frame->bytes, (uint32_t)frame->length) == 0;
    plue_frame_free_all(frame);
    return is_pushed;
}

static void push(enum plue_frame_type type, uint8_t flags, uint64_t id, const void *payload,
                 size_t length) {
    CHECK(try_to_push(type, flags, id, payload, length), "type %d", type);
}

/* Waits for a frame of that type, and drops those before it. Its payload is valid until the next. */
static struct plue_frame_view await_frame(enum plue_frame_type type) {
    static uint8_t bytes[4096];
    for (;;) {
        struct plue_frame_view view;
        size_t wanted;
        int32_t size = plue_guest_drain(bytes, PLUE_FRAME_HEADER); /* one at a time */
        size = size < 0 && -size <= (int32_t)sizeof bytes ? plue_guest_drain(bytes, (uint32_t)-size)
                                                          : size;
        if (size < 0) {
            uint8_t *large = malloc((size_t)-size); /* of no interest */
            plue_guest_drain(large, (uint32_t)-size);
            free(large);
        } else if (size > 0 && plue_frame_read(bytes, (size_t)size, &view, &wanted) > 0 &&
                   view.type == type) {
            return view;
        }
        sleep_us(20);
    }
}

/* Makes this thread a runtime that offers the tools. Returns the configuration's id. */
static uint64_t attach(const char *list, size_t size) {
    CHECK(plue_guest_attach(do_nothing) == 0, "no attachment");
    uint64_t configuration = await_frame(PLUE_FRAME_CONFIG).id;
    push(PLUE_FRAME_TOOLS, 0, configuration, list, size);
    push(PLUE_FRAME_HELLO, PLUE_PROTOCOL_VERSION, configuration, "{}", 2);
    return configuration;
}

enum { LIST_SIZE = 1 << 20 };

static atomic_bool stop_listing;

static void *list_always(void *count) {
    while (!atomic_load(&stop_listing)) {
        char *json = plue_tool_list();
        /* The result must belong to one list only. */
        CHECK(strlen(json) == LIST_SIZE && json[1] == json[LIST_SIZE - 2], "%.100s", json);
        plue_free_json(json);
        atomic_fetch_add((atomic_int *)count, 1);
    }
    return NULL;
}

/* A list is copied without the lock, so another thread nearly always finds the lock free. The list
 * is replaced meanwhile. */
TEST(listing) {
    enum { LISTS = 20 };
    char *list = malloc(LIST_SIZE);
    memset(list, ' ', LIST_SIZE);
    list[0] = '{';
    list[LIST_SIZE - 1] = '}';
    uint64_t configuration = attach(list, LIST_SIZE);
    pthread_t thread;
    atomic_int count = 0;
    int tries = 0;
    int busy = 0;
    atomic_store(&stop_listing, false);
    pthread_create(&thread, NULL, list_always, &count);
    while (atomic_load(&count) < LISTS || tries < 100) {
        sleep_us(100);
        tries++;
        if (!plue_try_lock()) {
            /* Other processes may delay the thread that has the lock, but only once. */
            busy++;
            plue_lock();
        }
        plue_unlock();
        if (tries % 100 == 0) {
            memset(list + 1, tries % 200 == 0 ? ' ' : '\t', LIST_SIZE - 2);
            push(PLUE_FRAME_TOOLS, 0, configuration, list, LIST_SIZE);
        }
    }
    atomic_store(&stop_listing, true);
    pthread_join(thread, NULL);
    CHECK(busy * 10 < tries, "the lock was taken %d of %d times", busy, tries);
    free(list);
}

static atomic_int destroyed;

static void note_destroyed(void *unused) {
    atomic_fetch_add(&destroyed, 1);
}

static void *register_tool(void *execute) {
    int status = plue_register_tool("{\"name\":\"tool\"}", *(plue_execute_t *)execute,
                                    note_destroyed, NULL);
    CHECK(status == PLUE_OK, "%s", plue_get_last_error());
    return NULL;
}

/* Attaches, and registers a tool, which has the number 1 in a new library. Returns its number. */
static uint64_t attach_with_tool(plue_execute_t execute) {
    pthread_t thread;
    attach("{}", 2);
    pthread_create(&thread, NULL, register_tool, &execute);
    struct plue_frame_view view = await_frame(PLUE_FRAME_REGISTER);
    uint64_t number = plue_read_u64(view.payload);
    push(PLUE_FRAME_RESULT, 0, view.id, "\"tool\"", 6);
    pthread_join(thread, NULL);
    return number;
}

/* Invokes the tool with parameters of that size. Returns false if the library rejects it. */
static bool try_to_invoke(uint64_t id, uint64_t tool, size_t size) {
    const uint64_t numbers[2] = {tool, 0};
    const uint32_t lengths[3] = {(uint32_t)size, UINT32_MAX, UINT32_MAX};
    uint8_t *payload = malloc(16 + 12 + size);
    memcpy(payload, numbers, 16);
    memcpy(payload + 16, lengths, 12);
    memset(payload + 28, ' ', size);
    bool is_pushed = try_to_push(PLUE_FRAME_INVOKE, 0, id, payload, 28 + size);
    free(payload);
    return is_pushed;
}

static void invoke(uint64_t id, uint64_t tool, size_t size) {
    CHECK(try_to_invoke(id, tool, size), "tool %d", (int)tool);
}

/* Waits for the failure of an invocation. */
static void expect_refusal(uint64_t id, int status, const char *part) {
    struct plue_frame_view view;
    do {
        view = await_frame(PLUE_FRAME_YIELD);
    } while (view.flags != 1);
    char text[200] = "";
    memcpy(text, view.payload + 20, view.length - 20 < sizeof text ? view.length - 20 : 0);
    CHECK(view.id == id && plue_read_u64(view.payload) == (uint64_t)status && contains(text, part),
          "%d: %s", (int)view.id, text);
}

enum { MIB = 1 << 20 };

/* Streams until it is stopped. */
static void stream(plue_invocation_t *invocation, const char *params, void *unused) {
    char *text = calloc(1, MIB);
    memset(text, ' ', MIB - 1);
    int sent = 0;
    while (sent < 1000 && !plue_abort_signal_aborted(plue_invocation_signal(invocation))) {
        plue_invocation_output(invocation, text);
        sent++;
    }
    CHECK(sent == 16, "%d MiB", sent);
    plue_invocation_metadata(invocation, text);
    plue_invocation_succeed(invocation, "1"); /* it has failed */
    free(text);
}

/* The unread output of a host tool is bounded: the tool fails, and is aborted. */
TEST(stream) {
    int before = atomic_load(&destroyed);
    uint64_t tool = attach_with_tool(stream);
    invoke(1, tool, 2);
    CHECK(plue_events_dispatch(0) == 1, "not run");
    expect_refusal(1, PLUE_OUTPUT_TOO_LARGE, "more than 16 MiB wait");
    CHECK(plue_guest_drain(NULL, 0) == 0, "an answer after the failure");
    plue_guest_detach();
    plue_shutdown();
    CHECK(atomic_load(&destroyed) == before + 1, "not destroyed");
}

static void succeed(plue_invocation_t *invocation, const char *params, void *unused) {
    plue_invocation_succeed(invocation, "1");
}

/* The size of undispatched invocations is bounded, except for a single invocation. */
TEST(waiting_invocations) {
    init_with((plue_options_t){.max_bytes_in_flight = MIB});
    uint64_t tool = attach_with_tool(succeed);
    for (int round = 0; round < 2; round++) {
        invoke(1, tool, 2 * MIB);
        invoke(2, tool, 2);
        expect_refusal(2, PLUE_OVERLOADED, "max_bytes_in_flight wait for plue_events_dispatch()");
        CHECK(plue_events_dispatch(0) == 1, "not run");
    }
}

/* A runtime that invokes tools and does not read the failures breaks the protocol. */
TEST(unread_refusals) {
    enum { NO_TOOL = 99, MOST = 1000000, FEW = 1000 };
    uint64_t id = 1;
    attach("{}", 2);
    while (id < MOST && try_to_invoke(id, NO_TOOL, 2)) {
        id++;
    }
    CHECK(id > FEW && id < MOST, "%d", (int)id);
    plue_guest_detach();
    attach("{}", 2); /* the next runtime has read all of its own */
    for (id = 1; id < FEW; id++) {
        invoke(id, NO_TOOL, 2);
    }
}

/* The length of a reason is bounded, because every call gets a copy. */
TEST(long_reason) {
    char *reason = malloc(MIB);
    memset(reason, 'r', MIB);
    uint64_t configuration = attach("{}", 2);
    push(PLUE_FRAME_FAILED, 0, configuration, reason, MIB);
    CHECK(plue_start() == PLUE_RUNTIME_UNAVAILABLE, "started");
    CHECK(strlen(plue_get_last_error()) == 64 << 10, "%zu bytes", strlen(plue_get_last_error()));
    free(reason);
}

static void *fail_to_register(void *unused) {
    int status = plue_register_tool("{\"name\":\"tool\"}", succeed, note_destroyed, NULL);
    CHECK(status == PLUE_RUNTIME_GONE, "%s", plue_get_last_error());
    return unused;
}

/* When a runtime ends during a registration, the next runtime may get the tool before the
 * registration has failed. It then has to remove the tool. */
TEST(registration_race) {
    uint8_t frames[4096];
    bool is_offered = false;
    while (!is_offered) {
        pthread_t thread;
        attach("{}", 2);
        pthread_create(&thread, NULL, fail_to_register, NULL);
        uint64_t number = plue_read_u64(await_frame(PLUE_FRAME_REGISTER).payload);
        plue_guest_detach();
        plue_guest_attach(do_nothing);
        is_offered = plue_guest_drain(frames, sizeof frames) > 0 && frames[4] == PLUE_FRAME_REGISTER;
        pthread_join(thread, NULL);
        CHECK(!is_offered || plue_read_u64(await_frame(PLUE_FRAME_UNREGISTER).payload) == number,
              "another tool");
        plue_guest_detach();
    }
}

/* A removal that cannot be sent, as on the runtime's own thread, leaves the tool registered. */
TEST(refused_removal) {
    uint64_t tool = attach_with_tool(succeed);
    int before = atomic_load(&destroyed);
    for (int round = 0; round < 2; round++) {
        int status = plue_unregister_tool("tool");
        CHECK(status == PLUE_WOULD_DEADLOCK, "%d: %s", status, plue_get_last_error());
        CHECK(atomic_load(&destroyed) == before, "destroyed");
        invoke(1, tool, 2);
        CHECK(plue_events_dispatch(0) == 1, "not run");
    }
}

static atomic_int freed;

static void note_freed(struct plue_due *due) {
    atomic_fetch_add(&freed, 1);
}

/* Ends a source on another thread while the source is being reported. */
static void *end_due(void *due) {
    plue_lock();
    CHECK(!plue_events_end(due), "freed while it is told");
    plue_unlock();
    return NULL;
}

static void tell_while_it_ends(struct plue_due *due, int *told) {
    on_threads(1, end_due, due);
    ++*told;
}

/* An invocation that ends while a thread reports it is freed, once. */
TEST(end_while_told) {
    struct plue_due due = {.tell = tell_while_it_ends, .free = note_freed};
    plue_lock();
    plue_events_add(&due);
    plue_unlock();
    CHECK(plue_events_dispatch(0) == 1 && atomic_load(&freed) == 1, "%d", atomic_load(&freed));
    CHECK(plue_events_dispatch(0) == 0 && atomic_load(&freed) == 1, "%d", atomic_load(&freed));
}

struct submitted {
    atomic_int events;
    atomic_bool goes_on;
    atomic_bool is_over;
};

/* The first event waits until another thread has the lock. */
static void count_event(const char *json, void *user_data) {
    struct submitted *call = user_data;
    atomic_fetch_add(&call->events, 1);
    while (!atomic_load(&call->goes_on)) {
        sleep_us(20);
    }
}

static void note_end(int status, const char *json, void *user_data) {
    CHECK(status == PLUE_OK, "%s", json);
    atomic_store(&((struct submitted *)user_data)->is_over, true);
}

static void *dispatch_until_over(void *user_data) {
    struct submitted *call = user_data;
    while (!atomic_load(&call->is_over)) {
        plue_events_dispatch(-1);
    }
    return NULL;
}

/* An event directly before the end of a submitted call is not lost, even if the dispatching thread
 * has just found no event and is about to take the lock. */
TEST(last_event) {
    struct submitted submitted = {0};
    plue_tool_context_t context = {.metadata_callback = count_event, .user_data = &submitted};
    struct plue_wakeups wakeups = {.count = 0};
    pthread_t thread;
    attach("{}", 2);
    plue_tool_submit("tool", "{}", &context, note_end, &submitted);
    uint64_t id = await_frame(PLUE_FRAME_EXEC).id;
    push(PLUE_FRAME_META, 0, id, "{}", 2);
    pthread_create(&thread, NULL, dispatch_until_over, &submitted);
    while (atomic_load(&submitted.events) == 0) {
        sleep_us(20);
    }
    plue_lock();
    atomic_store(&submitted.goes_on, true);
    sleep_us(20000);
    struct plue_call *call = plue_call_find(plue_guest_peer()->generation, id);
    plue_call_add_event(call, plue_event_new("{}", 2), &wakeups);
    plue_call_finish(call, (struct plue_outcome){.json = plue_text_copy("{}", 2)}, &wakeups);
    plue_unlock();
    pthread_join(thread, NULL);
    CHECK(atomic_load(&submitted.events) == 2, "%d events", atomic_load(&submitted.events));
}

static uint64_t streaming_id;

static void stream_on(const char *json, void *events) {
    if (++*(int *)events < 20000) {
        push(PLUE_FRAME_META, 0, streaming_id, "{}", 2);
    }
}

/* A dispatch returns even if a tool streams faster than the callback works, or many events wait. */
TEST(endless_stream) {
    struct submitted submitted = {0};
    int events = 0;
    plue_tool_context_t context = {.metadata_callback = stream_on, .user_data = &events};
    attach("{}", 2);
    plue_tool_submit("tool", "{}", &context, note_end, &submitted);
    streaming_id = await_frame(PLUE_FRAME_EXEC).id;
    for (int i = 0; i < 1000; i++) {
        push(PLUE_FRAME_META, 0, streaming_id, "{}", 2);
    }
    CHECK(plue_events_dispatch(0) == events, "there were %d callbacks", events);
    CHECK(events > 0 && events < 1000, "%d events", events);
    push(PLUE_FRAME_RESULT, 0, streaming_id, "{}", 2);
    dispatch_until_over(&submitted);
    CHECK(events >= 1000, "%d events", events);
}

static atomic_bool has_run;

static void succeed_once(plue_invocation_t *invocation, const char *params, void *unused) {
    atomic_store(&has_run, true);
    plue_invocation_succeed(invocation, "1");
}

static void stream_until_run(const char *json, void *unused) {
    for (int i = 0; i < 2 && !atomic_load(&has_run); i++) {
        push(PLUE_FRAME_META, 0, streaming_id, "{}", 2);
    }
}

static void *call_streaming(void *unused) {
    const plue_tool_context_t context = {.metadata_callback = stream_until_run};
    expect_answer_with(&context, "tool", "{}", "{}");
    return unused;
}

/* A tool of the host runs even if the call that waits for it always has further events. */
TEST(tool_beside_stream) {
    static const char *const strings[] = {"{}", NULL, NULL};
    uint64_t numbers[2] = {attach_with_tool(succeed_once)};
    pthread_t thread;
    pthread_create(&thread, NULL, call_streaming, NULL);
    numbers[1] = streaming_id = await_frame(PLUE_FRAME_EXEC).id;
    struct plue_frame *frame = plue_frame_of(PLUE_FRAME_INVOKE, 0, 1, numbers, 2, strings, 3);
    push(PLUE_FRAME_META, 0, streaming_id, "{}", 2);
    CHECK(plue_guest_push(frame->bytes, (uint32_t)frame->length) == 0, "not invoked");
    plue_frame_free_all(frame);
    await_frame(PLUE_FRAME_YIELD);
    push(PLUE_FRAME_RESULT, 0, streaming_id, "{}", 2);
    pthread_join(thread, NULL);
}

/* A submitted call that has not begun cannot time out. */
TEST(abort_before_begin) {
    static const plue_tool_context_t none;
    struct plue_call call = {.signal = plue_abort_signal_new()};
    plue_abort_signal_abort(call.signal, "stop");
    CHECK(!plue_call_attend(&call, &none) && atomic_load(&call.news) == 0, "given up");
    plue_abort_signal_release(call.signal);
}

static atomic_int in_callbacks;
static atomic_int left_callbacks;

/* Waits until both callbacks have begun. */
static void await_both(void) {
    atomic_fetch_add(&in_callbacks, 1);
    while (atomic_load(&in_callbacks) < 2) {
        sleep_us(20);
    }
}

static void stop_log(void *unused) {
    await_both();
    plue_set_log(NULL, NULL);
    atomic_fetch_add(&left_callbacks, 1);
}

static void stop_notices(const char *line, void *unused) {
    await_both();
    plue_set_list_changed(NULL, NULL);
    atomic_fetch_add(&left_callbacks, 1);
}

static void *dispatch_until_left(void *unused) {
    while (atomic_load(&left_callbacks) < 2) {
        plue_events_dispatch(1);
    }
    return unused;
}

/* Two callbacks that replace each other at the same time do not wait for each other. */
TEST(mutual_replacement) {
    pthread_t threads[2];
    uint64_t configuration = attach("{}", 2);
    plue_set_list_changed(stop_log, NULL);
    plue_set_log(stop_notices, NULL);
    pthread_create(&threads[0], NULL, dispatch_until_left, NULL);
    pthread_create(&threads[1], NULL, dispatch_until_left, NULL);
    push(PLUE_FRAME_TOOLS, 0, configuration, "{}", 2);
    push(PLUE_FRAME_LOG, 0, 0, "a line", 6);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    CHECK(atomic_load(&in_callbacks) == 2, "%d callbacks", atomic_load(&in_callbacks));
}

/* Logs a line in a host whose standard error has lost its reader. */
static void log_to_nobody(void) {
    int pair[2];
    if (pipe(pair) != 0 || dup2(pair[1], STDERR_FILENO) < 0) {
        _exit(1);
    }
    close(pair[0]);
    close(pair[1]);
    attach("{}", 2);
    push(PLUE_FRAME_LOG, 0, 0, "a line", 6);
}

TEST(broken_stderr) {
    in_child(log_to_nobody);
}

#if defined(__linux__)

/* If a tool prints faster than a host takes the log, the thread reads at most one full pipe before
 * its other work. */
TEST(bounded_reads) {
    static struct plue_output output;
    static char bytes[256 << 10];
    int printed = plue_output_open(&output);
    fcntl(printed, F_SETPIPE_SZ, sizeof bytes);
    CHECK(write(printed, bytes, sizeof bytes) == sizeof bytes, "it is not full");
    plue_close(&output.to);
    plue_output_read(&output);
    CHECK(read(output.from, bytes, 1) == 1, "all is read");
    plue_output_close(&output);
    close(printed);
}

static void submit_another(int status, const char *json, void *left) {
    CHECK(status == PLUE_RUNTIME_UNAVAILABLE, "%s", json);
    if (--*(int *)left > 0) {
        plue_tool_submit("tool", "{}", NULL, submit_another, left);
    }
}

/* An edge-triggered loop is notified of events that a dispatch leaves. */
TEST(edge_triggered) {
    init_with((plue_options_t){.mode = PLUE_MODE_GUEST});
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    int loop = epoll_create1(0);
    int left = 100;
    epoll_ctl(loop, EPOLL_CTL_ADD, plue_events_fd(), &event);
    plue_tool_submit("tool", "{}", NULL, submit_another, &left);
    while (left > 0) {
        CHECK(epoll_wait(loop, &event, 1, -1) == 1, "no event");
        plue_events_dispatch(0);
    }
    close(loop);
}

#endif

int main(int count, char **arguments) {
    return check_run("seam", arguments + 1);
}
