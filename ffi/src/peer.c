#include "peer.h"

#include "events.h"
#include "invocation.h"
#include "platform.h"
#include "program.h"
#include "settings.h"

static uint64_t last_generation PLUE_GUARDED;

void plue_peer_open(struct plue_peer *peer) {
    *peer = (struct plue_peer){.generation = ++last_generation};
}

static void forget_tools(struct plue_peer *peer) PLUE_LOCKED {
    free(peer->refusal);
    plue_shared_text_release(peer->tools);
    peer->refusal = NULL;
    peer->refusal_code = NULL;
    peer->tools = NULL;
}

/* Returns NULL unless the environment names the tools. */
static const char *module_of_environment(void) PLUE_LOCKED {
    return plue_settings.tools_module == NULL ? plue_environment("PLUE_TOOLS") : NULL;
}

const char *plue_peer_fault(void) {
    const char *module = module_of_environment();
    bool is_right = module == NULL || plue_text_is_utf8(module, strlen(module));
    return is_right ? NULL : "The environment variable PLUE_TOOLS is not UTF-8";
}

bool plue_peer_find_module(char **module) {
    const char *named = plue_settings.tools_module;
    const char *given = plue_peer_fault() == NULL ? module_of_environment() : NULL;
    *module = NULL;
    if (given != NULL) {
        *module = plue_path_of_module(plue_image_start_folder(), given);
    } else if (named != NULL) {
        *module = plue_text_copy(named, strlen(named));
    }
    return *module != NULL || (given == NULL && named == NULL);
}

struct plue_frame *plue_peer_configure(struct plue_peer *peer) {
    forget_tools(peer);
    peer->state = PLUE_PEER_WAITING;
    peer->configuration++;
    char *module;
    if (!plue_peer_find_module(&module)) {
        return NULL;
    }
    const char *strings[] = {module, plue_settings.config_json};
    struct plue_frame *frame = plue_frame_of(
        PLUE_FRAME_CONFIG, PLUE_PROTOCOL_VERSION, peer->configuration, NULL, 0, strings, 2);
    free(module);
    if (frame == NULL) {
        return NULL;
    }
    struct plue_frame *frames = plue_host_tools_frames(peer->generation);
    struct plue_frame **end = &frames;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = frame;
    return frames;
}

void plue_peer_close(struct plue_peer *peer) PLUE_CHECKED(no_thread_safety_analysis) {
    forget_tools(peer);
}

void plue_peer_fail(const struct plue_peer *peer, const char *code, const char *message) {
    plue_calls_fail(peer->generation, code, message);
    plue_invocations_abort(peer->generation);
}

enum plue_readiness plue_peer_readiness(const struct plue_peer *peer, struct plue_outcome *failure) {
    switch (peer->state) {
    case PLUE_PEER_READY:
        return PLUE_RUNTIME_IS_READY;
    case PLUE_PEER_REFUSED:
        *failure = peer->refusal == NULL ? plue_outcome_out_of_memory()
                                         : plue_outcome_failure(peer->refusal_code, peer->refusal);
        return PLUE_RUNTIME_HAS_FAILED;
    default:
        return PLUE_RUNTIME_IS_STARTING;
    }
}

/* Stores the reason with which every call fails, and owns it; NULL means out of memory. */
static void refuse(struct plue_peer *peer, const char *code, char *reason) PLUE_LOCKED {
    free(peer->refusal);
    peer->refusal = reason;
    peer->refusal_code = code;
    peer->state = PLUE_PEER_REFUSED;
    plue_change();
}

/* Returns true if the bytes can be passed to a host as JSON. libplue does not parse JSON; it only
 * checks that the string is complete UTF-8. */
static bool may_be_json(const uint8_t *bytes, size_t length) {
    return length > 0 && plue_text_is_string(bytes, length);
}

/* Returns the JSON as a string; a large payload is not copied. NULL when out of memory. */
static char *take_json(struct plue_frame_view *view, const uint8_t *json, size_t length) {
    if (view->own == NULL || json != view->own) {
        return plue_text_copy(json, length);
    }
    char *own = (char *)view->own;
    own[length] = '\0';
    view->own = NULL;
    return own;
}

/* Longer texts are cut. Every later call fails with a refusal. The JSON of a failure is not cut. */
enum { MAX_REFUSAL = 64 << 10, MAX_MESSAGE = 1 << 20 };

/* Splits the payload of a RESULT. Returns false when it is malformed. */
static bool read_outcome(struct plue_frame_view *view, struct plue_outcome *outcome) {
    const uint8_t *json = view->payload;
    size_t length = view->length;
    const uint8_t *message = NULL;
    size_t message_length = 0;
    *outcome = (struct plue_outcome){.status = PLUE_OK};
    int said = view->flags >> PLUE_RESULT_STATUS_SHIFT;
    if (!(view->flags & PLUE_RESULT_FAILED)) {
        outcome->flags = said;
    } else {
        if (length < 4 || plue_read_u32(json) > length - 4) {
            return false;
        }
        outcome->status = said == PLUE_OK ? PLUE_OTHER : said;
        message = json + 4;
        message_length = plue_read_u32(json);
        json += 4 + message_length;
        length -= 4 + message_length;
    }
    if (!may_be_json(json, length)) {
        return false;
    }
    if (message != NULL) {
        outcome->message = plue_text_repair_start(message, message_length, MAX_MESSAGE);
    }
    outcome->json = take_json(view, json, length);
    if (outcome->json == NULL || (message != NULL && outcome->message == NULL)) {
        plue_outcome_free(*outcome);
        *outcome = plue_outcome_out_of_memory();
    }
    return true;
}

static bool receive_result(struct plue_peer *peer, struct plue_frame_view *view,
                           struct plue_wakeups *wakeups) PLUE_UNLOCKED {
    struct plue_outcome outcome;
    if (!read_outcome(view, &outcome)) {
        return false;
    }
    plue_lock();
    peer->has_answered = true;
    struct plue_call *call = plue_call_find(peer->generation, view->id);
    if (call != NULL) {
        plue_call_finish(call, outcome, wakeups);
    }
    plue_unlock();
    if (call == NULL) {
        plue_outcome_free(outcome);
    }
    return true;
}

static bool receive_event(struct plue_peer *peer, const struct plue_frame_view *view,
                          struct plue_wakeups *wakeups) PLUE_UNLOCKED {
    if (!may_be_json(view->payload, view->length)) {
        return false;
    }
    /* Copied before the lock is taken. If there is no memory, the event counts as dropped. */
    struct plue_event *event = plue_event_new(view->payload, view->length);
    plue_lock();
    struct plue_call *call = plue_call_find(peer->generation, view->id);
    bool kept = call != NULL && plue_call_add_event(call, event, wakeups);
    plue_unlock();
    if (!kept) {
        free(event);
    }
    return true;
}

static bool receive_tools(struct plue_peer *peer,
                          const struct plue_frame_view *view) PLUE_UNLOCKED {
    if (!may_be_json(view->payload, view->length)) {
        return false;
    }
    struct plue_shared_text *tools = plue_shared_text_new(view->payload, view->length);
    if (tools == NULL) {
        return true; /* the previous list stays */
    }
    plue_lock();
    if (view->id == peer->configuration) {
        struct plue_shared_text *old = peer->tools;
        peer->tools = tools;
        tools = old;
        plue_events_list_changed();
    }
    plue_unlock();
    plue_shared_text_release(tools);
    return true;
}

static bool receive_hello(struct plue_peer *peer,
                          const struct plue_frame_view *view) PLUE_UNLOCKED {
    bool right = view->flags == PLUE_PROTOCOL_VERSION;
    char text[100];
    snprintf(text, sizeof text,
             "The tools speak version %d of the protocol, this library version %d",
             view->flags, PLUE_PROTOCOL_VERSION);
    plue_lock();
    if (view->id == peer->configuration && peer->state == PLUE_PEER_WAITING) {
        if (!right) {
            refuse(peer, "runtime_unavailable", plue_text_copy(text, strlen(text)));
        } else if (peer->tools == NULL) {
            right = false; /* HELLO must follow TOOLS */
        } else {
            peer->state = PLUE_PEER_READY;
            plue_change();
        }
    }
    plue_unlock();
    return right;
}

static void receive_failed(struct plue_peer *peer,
                          const struct plue_frame_view *view) PLUE_UNLOCKED {
    bool by_configuration = view->flags & PLUE_FAILED_BY_CONFIGURATION;
    char *reason = plue_text_repair_start(view->payload, view->length, MAX_REFUSAL);
    plue_lock();
    if (view->id == peer->configuration) {
        refuse(peer, by_configuration ? "invalid_argument" : "runtime_unavailable", reason);
        reason = NULL;
    }
    plue_unlock();
    free(reason);
}

static void receive_log(const struct plue_frame_view *view) PLUE_UNLOCKED {
    if (!plue_events_log((const char *)view->payload, view->length)) {
        char line[PLUE_PRINTED_LINE];
        int length = snprintf(line, sizeof line, "plue: %.*s", (int)view->length,
                              (const char *)view->payload);
        plue_print_line(line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
    }
}

static void receive_pong(struct plue_peer *peer) PLUE_UNLOCKED {
    plue_lock();
    peer->pong_due_ms = 0;
    plue_unlock();
}

bool plue_peer_receive(struct plue_peer *peer, struct plue_frame_view *view,
                       struct plue_wakeups *wakeups) {
    switch (view->type) {
    case PLUE_FRAME_RESULT:
        return receive_result(peer, view, wakeups);
    case PLUE_FRAME_META:
        return receive_event(peer, view, wakeups);
    case PLUE_FRAME_TOOLS:
        return receive_tools(peer, view);
    case PLUE_FRAME_HELLO:
        return receive_hello(peer, view);
    case PLUE_FRAME_FAILED:
        receive_failed(peer, view);
        return true;
    case PLUE_FRAME_INVOKE:
        return plue_invocation_receive(peer->generation, view, wakeups);
    case PLUE_FRAME_CANCEL:
        return plue_invocation_cancel(peer->generation, view);
    case PLUE_FRAME_LOG:
        receive_log(view);
        return true;
    case PLUE_FRAME_PONG:
        receive_pong(peer);
        return true;
    default:
        return false;
    }
}
