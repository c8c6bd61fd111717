#include "fake_tools.h"

#include "frame.h"
#include "plue.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>

enum { EVENTS_OF_A_FLOOD = 100 }; /* in each millisecond */

struct fake_call {
    struct fake_call *next;
    uint64_t id;
    uint64_t signal;
    uint64_t until_ms; /* HELD: until it is released */
    bool is_deaf;
    bool is_flooding;
    char answer[200];
};

static const uint64_t HELD = UINT64_MAX;

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void fake_tools_frame(struct fake_tools *tools, int type, int flags, uint64_t id,
                      const void *payload, size_t length) {
    struct plue_frame *frame =
        plue_frame_new((enum plue_frame_type)type, (uint8_t)flags, id, payload, length);
    tools->send(frame->bytes, frame->length);
    plue_frame_free_all(frame);
}

static void succeed(struct fake_tools *tools, uint64_t id, const char *json) {
    fake_tools_frame(tools, PLUE_FRAME_RESULT, 0, id, json, strlen(json));
}

static void fail(struct fake_tools *tools, uint64_t id, int status, const char *code,
                 const char *message) {
    uint8_t payload[1000];
    const uint32_t length = (uint32_t)strlen(message);
    memcpy(payload, &length, 4);
    memcpy(payload + 4, message, length);
    int json = snprintf((char *)payload + 4 + length, sizeof payload - 4 - length,
                        "{\"error\":\"%s\",\"message\":\"%s\"}", code, message);
    fake_tools_frame(tools, PLUE_FRAME_RESULT, 1 | status << 1, id, payload, 4 + length + (size_t)json);
}

struct request {
    uint64_t id;
    uint64_t signal;
    bool wants_metadata;
    char *name;
    char *params;
    char *session;
    char *message;
};

static long number(const char *json, const char *key) {
    char pattern[32];
    snprintf(pattern, sizeof pattern, "\"%s\":", key);
    const char *at = strstr(json, pattern);
    return at == NULL ? 0 : strtol(at + strlen(pattern), NULL, 10);
}

static struct fake_call *sleep_until(struct fake_tools *tools, const struct request *request,
                                     uint64_t until_ms, const char *answer) {
    struct fake_call *call = calloc(1, sizeof *call);
    call->id = request->id;
    call->signal = request->signal;
    call->until_ms = until_ms;
    snprintf(call->answer, sizeof call->answer, "%s", answer);
    call->next = tools->sleeping;
    tools->sleeping = call;
    return call;
}

static void hold(struct fake_tools *tools, const struct request *request) {
    struct fake_call *call = sleep_until(tools, request, HELD, "{\"held\":true}");
    call->is_deaf = strstr(request->params, "\"deaf\":true") != NULL;
    call->is_flooding =
        request->wants_metadata && strstr(request->params, "\"flood\":true") != NULL;
    if (request->wants_metadata) {
        fake_tools_frame(tools, PLUE_FRAME_META, 0, request->id, "{\"i\":0}", 7);
    }
    while (tools->is_wedged) {
        pause();
    }
}

static void release(struct fake_tools *tools, uint64_t id) {
    struct fake_call *held = tools->sleeping;
    struct fake_call **others = &tools->sleeping;
    tools->sleeping = NULL;
    while (held != NULL) {
        struct fake_call *next = held->next;
        if (held->until_ms == HELD) {
            succeed(tools, held->id, held->answer);
            free(held);
        } else {
            *others = held;
            others = &held->next;
            held->next = NULL;
        }
        held = next;
    }
    succeed(tools, id, "{\"released\":true}");
}

/* Creates a file, and spins until the file is deleted; a minute at most. */
static void spin(const char *params) {
    char path[200];
    if (sscanf(params, "{\"file\":\"%199[^\"]", path) != 1) {
        abort();
    }
    close(open(path, O_CREAT | O_WRONLY, 0600));
    uint64_t limit = now_ms() + 60000;
    while (access(path, F_OK) == 0 && now_ms() < limit) {
    }
}

/* Prints the number of bytes, a hundred at a time, and then a line. */
static void shout(const char *params) {
    char line[100];
    memset(line, 's', sizeof line);
    line[sizeof line - 1] = '\n';
    for (long left = number(params, "bytes"); left > 0; left -= (long)sizeof line) {
        fwrite(line, 1, sizeof line, stdout);
    }
    puts("\nthe last line");
    fflush(stdout);
}

static void crash(const char *params) {
    if (strstr(params, "SIGKILL") != NULL) {
        raise(SIGKILL);
    }
    _exit((int)number(params, "code"));
}

/* Starts a process that lasts a minute; a detached one has a group and a parent of its own. */
static void start_process(struct fake_tools *tools, uint64_t id, const char *params) {
    bool is_detached = strstr(params, "\"detached\":true") != NULL;
    int numbers[2];
    char json[40];
    pid_t number = 0;
    if (pipe(numbers) != 0) {
        abort();
    }
    pid_t child = fork();
    if (child == 0 && is_detached && (setsid() < 0 || fork() > 0)) {
        _exit(0); /* the process below is an orphan now */
    }
    if (child == 0) {
        number = getpid();
        ssize_t written = write(numbers[1], &number, sizeof number);
        (void)written;
        sleep(60);
        _exit(0);
    }
    while (read(numbers[0], &number, sizeof number) != sizeof number) {
    }
    close(numbers[0]);
    close(numbers[1]);
    snprintf(json, sizeof json, "{\"pid\":%ld}", (long)number);
    succeed(tools, id, json);
}

/* A variable of the environment; "" if it is not set. */
static void send_variable(struct fake_tools *tools, uint64_t id, const char *params) {
    char name[64];
    char json[1000];
    const char *value = sscanf(params, "{\"name\":\"%63[^\"]", name) == 1 ? getenv(name) : NULL;
    snprintf(json, sizeof json, "\"%s\"", value == NULL ? "" : value);
    succeed(tools, id, json);
}

static void send_big(struct fake_tools *tools, uint64_t id, size_t size) {
    char *json = malloc(size + 3);
    memset(json, 'x', size + 2);
    json[0] = '"';
    json[size + 1] = '"';
    json[size + 2] = '\0';
    succeed(tools, id, json);
    free(json);
}

/* Invalid frames of a tools side. */
static void misanswer(struct fake_tools *tools, uint64_t id, const char *params) {
    static const char message[] = "\x04\0\0\0a\0b\xff{\"error\":\"threw\"}";
    if (strstr(params, "message") != NULL) {
        fake_tools_frame(tools, PLUE_FRAME_RESULT, 1, id, message, sizeof message - 1);
    } else if (strstr(params, "failure") != NULL) {
        fake_tools_frame(tools, PLUE_FRAME_RESULT, 1, id, message, 8);
    } else if (strstr(params, "event") != NULL) {
        fake_tools_frame(tools, PLUE_FRAME_META, 0, id, "\"\xff\"", 3);
    } else if (strstr(params, "list") != NULL) {
        fake_tools_frame(tools, PLUE_FRAME_TOOLS, 0, tools->configuration, "{\0}", 3);
    } else if (strstr(params, "bytes") != NULL) {
        fake_tools_frame(tools, PLUE_FRAME_RESULT, 0, id, "\"caf\xe9\"", 6);
    } else if (strstr(params, "nul") != NULL) {
        fake_tools_frame(tools, PLUE_FRAME_RESULT, 0, id, "\"a\0b\"", 5);
    } else {
        fake_tools_frame(tools, PLUE_FRAME_RESULT, 0, id, NULL, 0);
    }
}

static void progress(struct fake_tools *tools, const struct request *request) {
    long events = number(request->params, "n");
    char json[200];
    for (long i = 0; i < events && request->wants_metadata; i++) {
        int length = snprintf(json, sizeof json, "{\"i\":%ld}", i);
        fake_tools_frame(tools, PLUE_FRAME_META, 0, request->id, json, (size_t)length);
    }
    snprintf(json, sizeof json, "{\"n\":%ld,\"session\":\"%s\",\"message\":\"%s\"}", events,
             request->session, request->message);
    succeed(tools, request->id, json);
}

static void run_tool(struct fake_tools *tools, const struct request *request) {
    const char *name = request->name;
    const char *params = request->params;
    uint64_t id = request->id;
    char json[100];
    if (strstr(params, "{bad") != NULL) {
        fail(tools, id, PLUE_INVALID_ARGUMENTS, "invalid_arguments", "The arguments are not JSON");
    } else if (strcmp(name, "echo") == 0 && tools->sends_half) {
        static const uint8_t half[] = {100, 0, 0, 0, PLUE_FRAME_RESULT, 0};
        tools->send(half, sizeof half);
    } else if (strcmp(name, "echo") == 0) {
        succeed(tools, id, params);
    } else if (strcmp(name, "later") == 0) {
        sleep_until(tools, request, now_ms(), params);
    } else if (strcmp(name, "sleep") == 0) {
        snprintf(json, sizeof json, "{\"slept\":%ld}", number(params, "ms"));
        sleep_until(tools, request, now_ms() + (uint64_t)number(params, "ms"), json);
    } else if (strcmp(name, "hold") == 0) {
        hold(tools, request);
    } else if (strcmp(name, "release") == 0) {
        release(tools, id);
    } else if (strcmp(name, "spin") == 0) {
        spin(params);
        succeed(tools, id, "{\"spun\":true}");
    } else if (strcmp(name, "progress") == 0) {
        progress(tools, request);
    } else if (strcmp(name, "big") == 0) {
        send_big(tools, id, (size_t)number(params, "n"));
    } else if (strcmp(name, "fail") == 0) {
        fail(tools, id, PLUE_THREW, "threw", "boom");
    } else if (strcmp(name, "garble") == 0) {
        static const uint8_t garbage[] = "HTTP/1.1 200 OK\r\n\r\n";
        tools->send(garbage, sizeof garbage - 1);
    } else if (strcmp(name, "misanswer") == 0) {
        misanswer(tools, id, params);
    } else if (strcmp(name, "give_up") == 0) {
        static const char reason[] = "The list is too large";
        fake_tools_frame(tools, PLUE_FRAME_FAILED, 0, tools->configuration, reason, sizeof reason - 1);
    } else if (strcmp(name, "crash") == 0) {
        crash(params);
    } else if (strcmp(name, "pid") == 0) {
        snprintf(json, sizeof json, "{\"pid\":%ld}", (long)getpid());
        succeed(tools, id, json);
    } else if (strcmp(name, "start") == 0) {
        start_process(tools, id, params);
    } else if (strcmp(name, "variable") == 0) {
        send_variable(tools, id, params);
    } else if (strcmp(name, "folder") == 0) {
        char folder[80];
        snprintf(json, sizeof json, "\"%s\"", getcwd(folder, sizeof folder));
        succeed(tools, id, json);
    } else if (strcmp(name, "shout") == 0) {
        shout(params);
        succeed(tools, id, "{\"shouted\":true}");
    } else if (strcmp(name, "log") == 0) {
        char line[1000];
        memset(line, 'l', sizeof line);
        for (long left = number(params, "bytes"); left > 0; left -= (long)sizeof line) {
            fake_tools_frame(tools, PLUE_FRAME_LOG, 0, 0, line, sizeof line);
        }
        succeed(tools, id, "{\"logged\":true}");
    } else if (strcmp(name, "error_key") == 0) {
        succeed(tools, id, "{\"error\":\"not one\"}");
    } else {
        char message[300];
        snprintf(message, sizeof message, "There is no tool %.200s", name);
        fail(tools, id, PLUE_UNKNOWN_TOOL, "unknown_tool", message);
    }
}

/* Copies the strings of a frame, `at` bytes from its beginning. A NULL string becomes "", or "{}" if it is
 * the second one. */
static void copy_strings(const struct plue_frame_view *frame, size_t at, char **strings, size_t count) {
    struct plue_text_view texts[4];
    if (!plue_frame_read_strings(frame->payload + at, frame->length - at, texts, count)) {
        abort();
    }
    for (size_t i = 0; i < count; i++) {
        strings[i] = texts[i].bytes == NULL
                         ? strdup(i == 1 ? "{}" : "")
                         : strndup((const char *)texts[i].bytes, texts[i].length);
    }
}

static void free_strings(char **strings, size_t count) {
    for (size_t i = 0; i < count; i++) {
        free(strings[i]);
    }
}

static void execute(struct fake_tools *tools, const struct plue_frame_view *frame) {
    char *strings[4];
    copy_strings(frame, 8, strings, 4);
    const struct request request = {frame->id,  plue_read_u64(frame->payload),
                                    frame->flags & 1, strings[0],
                                    strings[1], strings[2],
                                    strings[3]};
    tools->calls++;
    run_tool(tools, &request);
    free_strings(strings, 4);
}

static void configure(struct fake_tools *tools, const struct plue_frame_view *frame) {
    static const char list[] = "{\"echo\":{\"name\":\"echo\"},\"pid\":{\"name\":\"pid\"}}";
    static const char hello[] = "{\"protocol\":2,\"runtime\":\"C\"}";
    static const char reason[] = "config_json has an unknown field \"nonsense\"";
    uint64_t id = frame->id;
    char *strings[2];
    copy_strings(frame, 0, strings, 2);
    tools->configuration = id;
    if (strstr(strings[1], "nonsense") != NULL) {
        fake_tools_frame(tools, PLUE_FRAME_FAILED, 1, id, reason, sizeof reason - 1);
        tools->ended = 1;
    } else if (tools->version != 0) {
        fake_tools_frame(tools, PLUE_FRAME_TOOLS, 0, id, list, sizeof list - 1);
        fake_tools_frame(tools, PLUE_FRAME_HELLO, tools->version, id, hello, sizeof hello - 1);
    }
    free_strings(strings, 2);
}

/* Ends the sleep of the call with the id, or the sleeps of all calls with that signal. */
static void end_sleeps(struct fake_tools *tools, bool is_of_signal, uint64_t id,
                       const char *reason) {
    struct fake_call **at = &tools->sleeping;
    while (*at != NULL) {
        struct fake_call *call = *at;
        if (call->is_deaf || (is_of_signal ? call->signal : call->id) != id) {
            at = &call->next;
            continue;
        }
        *at = call->next;
        fail(tools, call->id, PLUE_ABORTED, "aborted", reason);
        free(call);
    }
}

static void act(struct fake_tools *tools, const struct plue_frame_view *frame) {
    char reason[200];
    switch (frame->type) {
    case PLUE_FRAME_EXEC:
        execute(tools, frame);
        break;
    case PLUE_FRAME_ABORT:
        snprintf(reason, sizeof reason, "%.*s", (int)frame->length, (const char *)frame->payload);
        end_sleeps(tools, frame->flags & PLUE_ABORT_OF_SIGNAL, frame->id, reason);
        break;
    case PLUE_FRAME_CONFIG:
        configure(tools, frame);
        break;
    case PLUE_FRAME_PING:
        if (!tools->is_mute) {
            fake_tools_frame(tools, PLUE_FRAME_PONG, 0, frame->id, NULL, 0);
        }
        break;
    case PLUE_FRAME_SHUTDOWN:
        fake_tools_clear(tools);
        tools->ended = 1;
        break;
    default:
        abort();
    }
}

size_t fake_tools_feed(struct fake_tools *tools, const uint8_t *bytes, size_t length) {
    struct plue_frame_view frame;
    size_t wanted;
    size_t at = 0;
    int64_t size;
    while ((size = plue_frame_read(bytes + at, length - at, &frame, &wanted)) > 0) {
        act(tools, &frame);
        at += (size_t)size;
    }
    return at;
}

int fake_tools_tick(struct fake_tools *tools) {
    int64_t next = -1;
    uint64_t now = now_ms();
    struct fake_call **at = &tools->sleeping;
    while (*at != NULL) {
        struct fake_call *call = *at;
        for (int i = 0; i < EVENTS_OF_A_FLOOD && call->is_flooding; i++) {
            fake_tools_frame(tools, PLUE_FRAME_META, 0, call->id, "{\"flood\":true}", 14);
            next = 1;
        }
        if (call->until_ms > now) {
            int64_t left = (int64_t)(call->until_ms - now);
            if (call->until_ms != HELD && (next < 0 || left < next)) {
                next = left;
            }
            at = &call->next;
            continue;
        }
        *at = call->next;
        succeed(tools, call->id, call->answer);
        free(call);
    }
    return (int)next;
}

void fake_tools_clear(struct fake_tools *tools) {
    while (tools->sleeping != NULL) {
        struct fake_call *next = tools->sleeping->next;
        free(tools->sleeping);
        tools->sleeping = next;
    }
}
