/* Functions that the library does not export. */
#include "abort.h"
#include "check.h"
#include "frame.h"
#include "outbox.h"
#include "outcome.h"
#include "platform.h"
#include "plue.h"
#include "plue_guest.h"
#include "program.h"
#include "state.h"
#include "text.h"

#include <sys/socket.h>

TEST(bad_utf8) {
    static const char *const bad[] = {
        "\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2 ", "\xe0\x9f\xbf", "\xe1\x80",
        "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
        "\xff", "\xfe", "12345678\xff", "1234567\xff", "\xf0\x9f\x98", "\xe2\x82 ",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(!plue_text_is_utf8(bad[i], strlen(bad[i])), "bad %zu", i);
    }
}

/* Every code point, and every surrogate. */
TEST(utf8_exhaustively) {
    for (uint32_t point = 0x80; point <= 0x10FFFF; point++) {
        char text[4];
        size_t length = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
        text[0] = (char)(0xF00 >> length | point >> 6 * (length - 1));
        for (size_t i = 1; i < length; i++) {
            text[i] = (char)(0x80 | (point >> 6 * (length - 1 - i) & 0x3F));
        }
        bool surrogate = point >= 0xD800 && point <= 0xDFFF;
        CHECK(plue_text_is_utf8(text, length) == !surrogate, "U+%04X", point);
        CHECK(!plue_text_is_utf8(text, length - 1), "U+%04X cut short", point);
    }
}

TEST(repair) {
    static const char *const pairs[][2] = {
        {"", ""},
        {"plain", "plain"},
        {"caf\xc3\xa9 \xf0\x9f\x98\x80", "caf\xc3\xa9 \xf0\x9f\x98\x80"},
        {"\xff", "\xef\xbf\xbd"},
        {"a\xffz", "a\xef\xbf\xbdz"},
        /* A character that is cut short, at the end and before another, is one replacement. */
        {"a\xf0\x9f\x98", "a\xef\xbf\xbd"},
        {"\xe2\x82z", "\xef\xbf\xbdz"},
        {"\xc3\xc3\xa9", "\xef\xbf\xbd\xc3\xa9"},
        {"caf\xe9", "caf\xef\xbf\xbd"},
        {"\xed\xa0\x80.", "\xef\xbf\xbd."},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char *repaired = plue_text_repair(pairs[i][0], strlen(pairs[i][0]));
        CHECK(strcmp(repaired, pairs[i][1]) == 0, "%zu: %s", i, repaired);
        free(repaired);
    }
    char *without_nul = plue_text_repair("a\0b\0", 4);
    CHECK(strcmp(without_nul, "a\xef\xbf\xbd" "b\xef\xbf\xbd") == 0, "%s", without_nul);
    free(without_nul);
    CHECK(plue_text_is_string("ab", 2) && plue_text_is_string("", 0), "text");
    CHECK(!plue_text_is_string("a\0b", 3) && !plue_text_is_string("a\xff", 2), "no text");
    /* For all pairs of bytes, the copy is UTF-8, and equals the pair if that is UTF-8. */
    for (int first = 1; first < 256; first++) {
        for (int second = 0; second < 256; second++) {
            const char text[] = {(char)first, (char)second, '\0'};
            char *repaired = plue_text_repair(text, strlen(text));
            bool was_right = plue_text_is_utf8(text, strlen(text));
            CHECK(plue_text_is_utf8(repaired, strlen(repaired)), "%02x %02x", first, second);
            CHECK((strcmp(repaired, text) == 0) == was_right, "%02x %02x", first, second);
            free(repaired);
        }
    }
}

TEST(prefix) {
    /* One byte, then two, three and four: 1 + 2 + 3 + 4. */
    static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80";
    static const size_t expected[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10, 10};
    for (size_t most = 0; most < sizeof expected / sizeof *expected; most++) {
        size_t length = plue_text_prefix(text, most);
        CHECK(length == expected[most], "%zu of %zu", length, most);
    }
    /* Invalid UTF-8 is cut where it must be. */
    CHECK(plue_text_prefix("\x80\x80\x80\x80\x80\x80", 5) == 5, "continuation bytes alone");
    CHECK(plue_text_prefix("\x80\x80", 1) == 1, "two continuation bytes");
    CHECK(plue_text_prefix("", 0) == 0, "nothing");
}

TEST(frames) {
    static const char *const strings[4] = {"t", "{}", NULL, ""};
    const uint64_t signal = UINT64_C(0x1122334455667788);
    struct plue_frame *frame = plue_frame_of(PLUE_FRAME_EXEC, 1, 0, &signal, 1, strings, 4);
    static const uint8_t expected[] = {
        39, 0, 0, 0, 1, 1, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22,
        0x11, 1, 0, 0, 0, 2, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 't', '{', '}',
    };
    plue_frame_set_id(frame, 3);
    CHECK(frame->length == sizeof expected, "%zu", frame->length);
    CHECK(memcmp(frame->bytes, expected, sizeof expected) == 0, "bytes");

    struct plue_frame_view view;
    size_t wanted;
    for (size_t length = 0; length < sizeof expected; length++) {
        CHECK(plue_frame_read(frame->bytes, length, &view, &wanted) == 0, "%zu", length);
        CHECK(wanted == (length < 4 ? 16 : sizeof expected), "%zu wanted", wanted);
    }
    CHECK(plue_frame_read(frame->bytes, sizeof expected, &view, &wanted) == sizeof expected, "all");
    CHECK(view.type == PLUE_FRAME_EXEC && view.flags == 1, "%d %d", view.type, view.flags);
    CHECK(view.id == 3 && view.length == 27, "%zu", view.length);
    plue_frame_free_all(frame);
}

TEST(malformed_frames) {
    struct plue_frame_view view;
    size_t wanted;
    static const uint8_t longest[4] = {0xFC, 0xFF, 0xFF, 0x0F};
    static const uint8_t malformed[][4] = {{11, 0, 0, 0}, {0xFD, 0xFF, 0xFF, 0x0F}, {0xFF, 0xFF, 0xFF, 0xFF}};
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        CHECK(plue_frame_read(malformed[i], 4, &view, &wanted) == -1, "%zu", i);
    }
    CHECK(plue_frame_read(longest, 4, &view, &wanted) == 0, "256 MiB");
    CHECK(wanted == PLUE_FRAME_MAX, "%zu", wanted);
}

/* Reads until the socket is empty. Returns the number of bytes. */
static size_t read_all(int socket, uint8_t *bytes, size_t size) {
    size_t used = 0;
    ssize_t got;
    while ((got = read(socket, bytes + used, size - used)) > 0) {
        used += (size_t)got;
    }
    return used;
}

static struct plue_frame *numbered_frame(uint64_t id, size_t length) {
    uint8_t *payload = malloc(length + 1);
    for (size_t i = 0; i < length; i++) {
        payload[i] = (uint8_t)(id * 31 + i * 7);
    }
    struct plue_frame *frame = plue_frame_new(PLUE_FRAME_EXEC, 0, id, payload, length);
    free(payload);
    return frame;
}

/* The thread that posts a large frame writes a portion, and the polling thread writes the rest. No
 * other thread writes a part of it. */
TEST(outbox) {
    enum { LARGE = 1 << 20 };
    struct plue_outbox outbox;
    int pair[2];
    size_t size = LARGE + 1024;
    uint8_t *bytes = malloc(size);
    CHECK(plue_socket_pair(pair) == 0, "no socket");
    plue_outbox_init(&outbox, pair[0]);
    struct plue_frame *small = numbered_frame(1, 10);
    CHECK(!plue_outbox_post(&outbox, small), "nobody polls yet");
    CHECK(atomic_load(&outbox.has_rest) && read_all(pair[1], bytes, size) == 0, "it is not open");
    plue_outbox_open(&outbox);
    CHECK(!plue_outbox_flush(&outbox) && !atomic_load(&outbox.has_rest), "something is left");
    CHECK(read_all(pair[1], bytes, size) == 26, "one small frame");

    struct plue_frame *large = numbered_frame(2, LARGE - PLUE_FRAME_HEADER);
    uint8_t *expected = malloc(size);
    memcpy(expected, large->bytes, LARGE);
    CHECK(plue_outbox_post(&outbox, large), "a thread must go on");
    small = numbered_frame(3, 10);
    memcpy(expected + LARGE, small->bytes, 26);
    CHECK(!plue_outbox_post(&outbox, small), "that thread is at it already");
    size_t used = read_all(pair[1], bytes, size);
    CHECK(used == PLUE_OUTBOX_PORTION, "%zu bytes", used);
    bool is_left = true;
    while (is_left) {
        is_left = plue_outbox_flush(&outbox);
        size_t portion = read_all(pair[1], bytes + used, size - used);
        CHECK(portion > 0 && portion <= PLUE_OUTBOX_PORTION, "%zu bytes", portion);
        used += portion;
    }
    CHECK(used == LARGE + 26 && memcmp(bytes, expected, used) == 0, "%zu bytes", used);

    CHECK(plue_outbox_post(&outbox, numbered_frame(4, LARGE)), "something is left");
    plue_outbox_close(&outbox);
    CHECK(!plue_outbox_post(&outbox, numbered_frame(5, 10)), "it is closed");
    plue_outbox_destroy(&outbox);
    close(pair[0]);
    close(pair[1]);
    free(bytes);
    free(expected);
}

enum { POSTERS = 4, POSTS = 300 };

static size_t length_of(uint64_t id) {
    return id % 100 == 0 ? 300000 : id * 7919 % 2000;
}

struct poster {
    struct plue_outbox *outbox;
    uint64_t number;
    int poke;
};

static void *post_often(void *argument) {
    struct poster *poster = argument;
    for (uint64_t i = 0; i < POSTS; i++) {
        uint64_t id = poster->number * POSTS + i;
        if (plue_outbox_post(poster->outbox, numbered_frame(id, length_of(id)))) {
            CHECK(write(poster->poke, "", 1) == 1, "a poke");
        }
    }
    return NULL;
}

/* Works like a sidecar's thread, until it is stopped. */
static void *poll_socket(void *argument) {
    struct poster *polling = argument;
    bool is_left = false;
    for (;;) {
        struct pollfd waits[2] = {{polling->outbox->socket, (short)(is_left ? POLLOUT : 0), 0},
                                  {polling->poke, POLLIN, 0}};
        poll(waits, 2, -1);
        char byte = 0;
        if (waits[1].revents != 0 && read(polling->poke, &byte, 1) == 1 && byte == 'x') {
            return NULL;
        }
        is_left = atomic_load(&polling->outbox->has_rest) && plue_outbox_flush(polling->outbox);
    }
}

/* Reads one of the posted frames, and checks every byte. */
static uint64_t take_numbered_frame(int socket, uint8_t *bytes) {
    size_t used = 0;
    size_t wanted = PLUE_FRAME_HEADER;
    struct plue_frame_view view;
    while (plue_frame_read(bytes, used, &view, &wanted) == 0) {
        struct pollfd wait = {socket, POLLIN, 0};
        poll(&wait, 1, -1);
        ssize_t got = read(socket, bytes + used, wanted - used);
        used += got > 0 ? (size_t)got : 0;
    }
    struct plue_frame *expected = numbered_frame(view.id, length_of(view.id));
    CHECK(used == expected->length && memcmp(bytes, expected->bytes, used) == 0, "frame %u",
          (unsigned)view.id);
    plue_frame_free_all(expected);
    return view.id;
}

/* Frames of many threads arrive complete, and the frames of each thread in order. */
TEST(crowded_outbox) {
    struct plue_outbox outbox;
    int pair[2];
    int poke[2];
    CHECK(plue_socket_pair(pair) == 0 && pipe(poke) == 0, "no descriptors");
    plue_outbox_init(&outbox, pair[0]);
    plue_outbox_open(&outbox);
    pthread_t polling;
    pthread_t threads[POSTERS];
    struct poster posters[POSTERS];
    struct poster poller = {&outbox, 0, poke[0]};
    pthread_create(&polling, NULL, poll_socket, &poller);
    for (int i = 0; i < POSTERS; i++) {
        posters[i] = (struct poster){&outbox, (uint64_t)i, poke[1]};
        pthread_create(&threads[i], NULL, post_often, &posters[i]);
    }
    uint8_t *bytes = malloc(400000);
    uint64_t next[POSTERS] = {0};
    for (int i = 0; i < POSTERS * POSTS; i++) {
        uint64_t id = take_numbered_frame(pair[1], bytes);
        CHECK(id % POSTS == next[id / POSTS]++, "frame %u", (unsigned)id);
    }
    for (int i = 0; i < POSTERS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK(write(poke[1], "x", 1) == 1, "the end");
    pthread_join(polling, NULL);
    plue_outbox_destroy(&outbox);
    int descriptors[] = {pair[0], pair[1], poke[0], poke[1]};
    for (int i = 0; i < 4; i++) {
        close(descriptors[i]);
    }
    free(bytes);
}

TEST(failures) {
    struct plue_outcome outcome = plue_outcome_failure("code", "a \"b\" \\ \n\x01 \xc3\xa9");
    CHECK(strcmp(outcome.json, "{\"error\":\"code\",\"message\":\"a \\\"b\\\" \\\\ \\u000a\\u0001 "
                               "\xc3\xa9\"}") == 0,
          "%s", outcome.json);
    char *json = plue_outcome_answer(outcome);
    CHECK(strcmp(plue_get_last_error_json(), json) == 0, "%s", plue_get_last_error_json());
    plue_free_json(json);
    /* The outcome for a lack of memory is never freed. */
    json = plue_outcome_answer(plue_outcome_out_of_memory());
    CHECK(is_failure(json, "out_of_memory"), "%s", json);
    plue_free_json(json);
    CHECK(strcmp(plue_get_last_error(), "Out of memory") == 0, "%s", plue_get_last_error());
    plue_outcome_clear();
    CHECK(strcmp(plue_get_last_error(), "No error") == 0, "%s", plue_get_last_error());
    /* A message is UTF-8 as text and in JSON, whatever bytes it was made from. */
    json = plue_outcome_answer(plue_outcome_failure("code", "no caf\xe9 \xf0\x9f\x98"));
    CHECK(strcmp(json, "{\"error\":\"code\",\"message\":\"no caf\xef\xbf\xbd \xef\xbf\xbd\"}") == 0, "%s",
          json);
    CHECK(strcmp(plue_get_last_error(), "no caf\xef\xbf\xbd \xef\xbf\xbd") == 0, "%s",
          plue_get_last_error());
    plue_free_json(json);
    plue_outcome_clear();
}

static void expect_event(struct plue_outcome failure, const char *tool_name, const char *expected) {
    char *event = plue_outcome_event(&failure, tool_name);
    CHECK(strcmp(event, expected) == 0, "%s", event);
    free(event);
    plue_outcome_free(failure);
}

/* ".type = "error", .tool = tool_name, .error = @errorName(err)" */
TEST(error_events) {
    expect_event(plue_outcome_failure("code", "a \"b\""), "chain:status",
                 "{\"type\":\"error\",\"tool\":\"chain:status\",\"error\":\"code\","
                 "\"message\":\"a \\\"b\\\"\"}");
    expect_event(plue_outcome_failure("code", ""), "\"\\\n\xff",
                 "{\"type\":\"error\",\"tool\":\"\\\"\\\\\\u000a\xef\xbf\xbd\","
                 "\"error\":\"code\",\"message\":\"\"}");
    expect_event(plue_outcome_out_of_memory(), NULL,
                 "{\"type\":\"error\",\"tool\":\"\",\"error\":\"out_of_memory\","
                 "\"message\":\"Out of memory\"}");
}

/* The reference of a call keeps a signal, however often the host releases it. */
TEST(signal_references) {
    plue_abort_signal_t *signal = plue_abort_signal_new();
    CHECK(plue_abort_signal_retain(signal) == signal, "another signal");
    plue_abort_carry(signal);
    for (int i = 0; i < 5; i++) {
        plue_abort_signal_release(signal);
    }
    CHECK(!plue_abort_is_aborted(signal), "it is aborted");
    plue_abort_signal_abort(signal, "first");
    plue_abort_signal_abort(signal, "second");
    CHECK(plue_abort_is_aborted(signal), "it is not aborted");
    CHECK(strcmp(plue_abort_reason(signal), "first") == 0, "%s", plue_abort_reason(signal));
    plue_abort_drop(signal);
    CHECK(!plue_abort_is_aborted(NULL) && plue_abort_id(NULL) == 0, "no signal is one");
}

static atomic_bool is_watched; /* what is sent */
static pthread_t watched;
static atomic_int sends;

static void *take_lock(void *unused) {
    plue_lock();
    plue_unlock();
    return unused;
}

/* Replaces the system's function. If another thread could not take the lock while a frame is sent,
 * this would never end. A single byte only wakes a thread. */
ssize_t send(int socket, const void *bytes, size_t length, int flags) {
    if (length > 1 && atomic_load(&is_watched) && pthread_equal(pthread_self(), watched)) {
        on_threads(1, take_lock, NULL);
        atomic_fetch_add(&sends, 1);
    }
    return sendto(socket, bytes, length, flags, NULL, 0);
}

/* One frame, sent without the lock, aborts all calls of a signal. Uses the sidecar in C. */
TEST(crowd_of_signal) {
    init_with((plue_options_t){.start_timeout_ms = FOREVER_MS, .abort_grace_ms = FOREVER_MS});
    struct held_calls calls = {
        .code = "aborted", .part = "all of you", .signal = plue_abort_signal_new()};
    hold_calls(&calls, 70);
    watched = pthread_self();
    atomic_store(&is_watched, true);
    plue_abort_signal_abort(calls.signal, "all of you");
    atomic_store(&is_watched, false);
    join_held_calls(&calls);
    CHECK(atomic_load(&sends) == 1, "%d sends", atomic_load(&sends));
    plue_abort_signal_release(calls.signal);
    plue_shutdown();
}

static void *use_signal(void *unused) {
    plue_abort_signal_t *signal = plue_abort_signal_new();
    plue_abort_signal_release(plue_abort_signal_retain(signal));
    CHECK(!plue_abort_signal_aborted(signal), "a new signal");
    plue_abort_signal_abort(signal, "stop");
    CHECK(plue_abort_signal_aborted(signal), "an aborted signal");
    plue_tool_context_t context = {.abort_signal = signal};
    expect_failure_with(&context, "echo", "{}", "aborted", "stop");
    plue_abort_signal_release(signal);
    return unused;
}

/* No function of a signal waits for the lock: otherwise this test would never end. */
TEST(signals_without_lock) {
    plue_lock();
    on_threads(1, use_signal, NULL);
    plue_unlock();
}

static void expect_forked(char *json) {
    CHECK(is_failure(json, "runtime_unavailable") && contains(json, "fork()"), "%s", json);
    CHECK(strcmp(plue_get_last_error_json(), json) == 0, "%s", plue_get_last_error_json());
    plue_free_json(json);
}

static plue_abort_signal_t *signal_of_parent;

/* Every function, in a process made by fork() while another thread had the lock. */
static void use_after_fork(void) {
    plue_abort_signal_t *signal = signal_of_parent;
    plue_options_t options = {.struct_size = sizeof options};
    uint8_t bytes[16] = {12, 0, 0, 0, 21};
    expect_forked(plue_tool_list());
    expect_forked(plue_tool_execute("echo", "{}", NULL));
    CHECK(plue_init("{}") == -1 && plue_init_with_options(&options) == -1, "plue_init()");
    CHECK(contains(plue_get_last_error(), "fork()"), "%s", plue_get_last_error());
    CHECK(plue_abort_signal_new() == NULL, "a new signal");
    CHECK(plue_abort_signal_retain(signal) == NULL, "a retained signal");
    plue_abort_signal_abort(signal, "stop");
    CHECK(plue_abort_signal_aborted(signal) == 0, "an aborted signal");
    plue_abort_signal_release(signal);
    plue_shutdown();
    CHECK(plue_abi_version() == PLUE_ABI_VERSION, "%u", plue_abi_version());
    CHECK(strcmp(plue_get_version(), PLUE_VERSION) == 0, "%s", plue_get_version());
    CHECK(plue_guest_attach(NULL) == -1, "an attachment");
    CHECK(plue_guest_drain(bytes, sizeof bytes) == 0, "a frame");
    CHECK(plue_guest_push(bytes, sizeof bytes) == -1, "a push");
    CHECK(plue_guest_wakers() == 0, "wakers");
    plue_guest_detach();
}

TEST(fork) {
    signal_of_parent = plue_abort_signal_new();
    plue_lock();
    in_child(use_after_fork);
    plue_unlock();
    CHECK(!plue_abort_signal_aborted(signal_of_parent), "in its parent");
    plue_abort_signal_release(signal_of_parent);
}

/* A percent sign in the URL of a module is an escape only before two hexadecimal digits. This is
 * the last test, because it changes the environment. */
TEST(escapes_in_url) {
    static const char *const ends[] = {"%63onfig.json", "config.json%0", "config.json%", "config.json% 0"};
    static struct plue_program program;
    char folder[] = "/tmp/plue-units-XXXXXX";
    char url[100];
    CHECK(mkdtemp(folder) != NULL && chdir(folder) == 0, "there is no folder");
    fclose(fopen("tsconfig.json", "w"));
    setenv("PLUE_SIDECAR", "plue-sidecar.js", 1);
    setenv("PATH", "/none", 1); /* without a runtime, the options are those of Bun */
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(url, sizeof url, "file://%s/ts%s", folder, ends[i]);
        plue_program_find(NULL, url, &program);
        CHECK(contains(program.tsconfig, "/tsconfig.json") == (i == 0), "%s: %s", url, program.tsconfig);
    }
    unlink("tsconfig.json");
    rmdir(folder);
}

int main(int count, char **arguments) {
    return check_run("units", arguments + 1);
}
