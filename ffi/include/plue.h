/* plue.h - the C interface of the plue tool registry, ABI 1.
 *
 * Tools are written in TypeScript and run by a JavaScript runtime. This library lists and calls
 * them from C, and from every language that can call C. There are two ways to host the runtime; the
 * code of a host is the same for both:
 *
 *   SIDECAR  Your program owns the process. libplue starts the tools as a child process and talks
 *            to it over a private socket. A tool that crashes is an error in your program.
 *   GUEST    Bun, Deno or Node owns the process, loads your program as a shared library, and
 *            attaches itself to libplue.
 *
 *     #include <plue.h>
 *     #include <stdio.h>
 *
 *     int main(void) {
 *         char *json;
 *         int status = plue_tool_call("echo", "{\"message\":\"hello\"}", NULL, &json);
 *         printf("%s: %s\n", status == PLUE_OK ? "result" : "failure", json);
 *         plue_free_json(json);
 *         plue_shutdown();
 *         return status == PLUE_OK ? 0 : 1;
 *     }
 *
 * PART 1 has what most hosts need: list, call, abort, start and stop. PART 2 has calls without a
 * thread each, tools of your program, questions, tasks, and notices.
 *
 * THREADS    Every function may be called from any thread at any time, unless its comment says
 *            otherwise. pthread_cancel() does not end a thread inside the library or a callback: it
 *            takes effect after the function has returned. To return earlier, also abort the call.
 * FORK       A process made by fork() before the first call, or after plue_shutdown(), can use the
 *            library like any other. A child made in between cannot, before exec(): calls and
 *            plue_init() fail with `runtime_unavailable`, plue_abort_signal_new() and ..._retain()
 *            return NULL, and functions without a result do nothing.
 * STRINGS    UTF-8, terminated by NUL. Arguments are borrowed for the duration of the call.
 * OWNERSHIP  A `char *` that is returned is yours and never NULL: free it with plue_free_json(). A
 *            `const char *` that is returned belongs to the library.
 * RESULTS    A success is the tool's result as JSON. A failure is
 *            {"error":"<code>","message":"<text>"}, with "issues":[...] for some codes, and with
 *            "repaired":[...] if the arguments were repaired. A result may have a key "error" of its
 *            own: compare the returned status, or plue_get_last_error_json(), which is "{}" after a
 *            success.
 * BLOCKS     A result of texts, images, audio and files is
 *            {"content":[...],"structuredContent":...,"metadata":{...}}. It has PLUE_RESULT_BLOCKS in
 *            plue_get_last_result_flags(); a result without that flag is a value. "content" has the
 *            blocks of MCP, with bytes in base64:
 *              {"type":"text","text":"..."}
 *              {"type":"image"|"audio","data":"<base64>","mimeType":"image/png"}
 *              {"type":"resource","resource":{"uri":"...","mimeType":"...","text":"..."}}, or "blob"
 *                with base64 instead of "text"
 *              {"type":"resource_link","uri":"...","name":"..."}
 *            "structuredContent", if present, is the same result as a value that fits `returns`.
 *            "metadata", if present, is for the program and not for a model.
 * VERSIONS   An ABI version only ever gains functions, and plue_options_t only ever grows at its end.
 *            A host that uses dlopen() compares plue_abi_version() first, and finds by dlsym() which
 *            functions there are.
 */
#ifndef PLUE_H
#define PLUE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define PLUE_API __attribute__((visibility("default")))
#else
#define PLUE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define PLUE_ABI_VERSION 1u
#define PLUE_VERSION "0.1.0"

/* ==================================================================== PART 1: what hosts need */

/* Outcomes. In JSON, a code is the same name in lower case: "unknown_tool". A later version may add
 * codes. ANY CALL, in the comments below, means all codes up to PLUE_OUT_OF_MEMORY. */
enum {
    PLUE_OK = 0,

    /* From the dispatcher of the tools. */
    PLUE_UNKNOWN_TOOL = 1,       /* no such tool, or none that this host may see */
    PLUE_UNAVAILABLE = 2,        /* the tool cannot be used now */
    PLUE_DENIED = 3,             /* a policy or a person refused the call */
    PLUE_NOT_EXECUTABLE = 4,     /* the tool is a definition only */
    PLUE_INVALID_ARGUMENTS = 5,  /* the parameters do not fit the schema, or exceed 1 MiB (*) */
    PLUE_INVALID_RESULT = 6,     /* the result does not fit the schema */
    PLUE_APPROVAL_REQUIRED = 7,  /* the call needs an approval, and nobody can give it */
    PLUE_ABORTED = 8,            /* the abort signal was aborted */
    PLUE_TIMEOUT = 9,            /* the tool's timeout, or call_timeout_ms, is over */
    PLUE_TRANSACTION_FAILED = 10,
    PLUE_OUTPUT_TOO_LARGE = 11,  /* the result exceeds 1 MiB (*) */
    PLUE_OVERLOADED = 12,        /* too many calls at once; try again later */
    PLUE_THREW = 13,             /* the tool failed */
    PLUE_INPUT_REQUIRED = 14,    /* the tool has questions; continue by the ticket: part 2 */
    PLUE_INPUT_UNAVAILABLE = 15, /* the tool has questions, and there are no tickets */
    PLUE_TICKET_REFUSED = 16,    /* the ticket is used up, expired or not valid */

    /* From this library. */
    PLUE_INVALID_ARGUMENT = 64,    /* NULL, not UTF-8, more than 256 MiB, or a bad config_json */
    PLUE_WOULD_DEADLOCK = 65,      /* called on the JavaScript thread itself (guest) */
    PLUE_RUNTIME_UNAVAILABLE = 66, /* no runtime is attached, or the sidecar cannot start now */
    PLUE_RUNTIME_GONE = 67,        /* the guest runtime detached during the call */
    PLUE_RUNTIME_CRASHED = 68,     /* the sidecar ended during the call */
    PLUE_SHUTDOWN = 69,            /* plue_shutdown() was called during the call */
    PLUE_OUT_OF_MEMORY = 70,

    PLUE_UNKNOWN_TASK = 71, /* no task with that id, or not a task of this program */
    PLUE_OTHER = 127        /* a code that this version does not have */

    /* (*) The module of tools sets other limits:
     *     export const dispatch = { maxArgumentBytes, maxOutputBytes }; */
};

/* -------------------------------------------------------------------------------- list and call */

/* Stops calls: see "abort signals" below. */
typedef struct plue_abort_signal plue_abort_signal_t;

/* The optional data of one call. Each field may be zero. The layout is frozen: five pointers. */
typedef struct {
    const char *session_id;            /* passed to the tool; may be NULL */
    const char *message_id;            /* passed to the tool; may be NULL */
    plue_abort_signal_t *abort_signal; /* stops the call; may be NULL */
    /* Called for each event of the running tool, with `user_data`, on the thread of
     * plue_tool_execute() and before it returns, in the order of the events; may be NULL. No lock is
     * held: it may call the library. `metadata_json` is valid during the callback, which must return
     * (no longjmp(), no exception).
     *
     * The tool's ctx.metadata(x) arrives as x, progress and streamed output as
     * {"type":"progress"|"output",...}. A failed call ends with
     * {"type":"error","tool":"<tool_name>","error":"<code>","message":"<text>"}, with "issues" for
     * some codes; a success with repaired arguments with
     * {"type":"repaired","repaired":[{"path":"/n","message":"..."}]}. At most 16 MiB wait for a slow
     * callback, and an aborted call waits for none after its grace period; dropped events are counted
     * in a last {"type":"dropped","count":n}. */
    void (*metadata_callback)(const char *metadata_json, void *user_data);
    void *user_data;
} plue_tool_context_t;

/* Returns the tools that this process may call: a JSON object of definitions by name, in the order of
 * the names (by bytes). A definition has `name`, `description`, `parameters`, `returns` (if the tool
 * declares it) and more. A tool may be named "error": compare plue_get_last_error_json(). Costs no
 * round trip, because the tools push each new list.
 * Codes: PLUE_INVALID_ARGUMENT (config_json), PLUE_WOULD_DEADLOCK, PLUE_RUNTIME_UNAVAILABLE,
 * PLUE_SHUTDOWN, PLUE_OUT_OF_MEMORY. */
PLUE_API char *plue_tool_list(void);

/* Calls a tool, and blocks the calling thread until the tool has ended, the call was aborted, or
 * the runtime is lost. `params_json` NULL is "{}"; `context` NULL is a zeroed one. Returns the
 * result or the failure. Codes: ANY CALL. */
PLUE_API char *plue_tool_execute(const char *tool_name, const char *params_json,
                                 const plue_tool_context_t *context);

/* Like plue_tool_execute(), but returns the status (PLUE_OK or another PLUE_...), and sets `*json`
 * (yours; never NULL) to the result or the failure. `json` may be NULL. For hosts whose tasks
 * change threads. Codes: ANY CALL. */
PLUE_API int plue_tool_call(const char *tool_name, const char *params_json,
                            const plue_tool_context_t *context, char **json);

/* Frees a string that this library returned. NULL is allowed. */
PLUE_API void plue_free_json(char *json);

/* -------------------------------------------------------------------------------- abort signals */

/* An abort signal stops any number of calls. It works once, and is counted by references. The tool's
 * own signal is aborted immediately. A call whose tool does not stop within the grace period returns
 * `aborted`; the tool keeps running, and its result is discarded. A metadata callback that runs at that
 * time is waited for. */

/* Returns a signal with one reference, or NULL when out of memory. */
PLUE_API plue_abort_signal_t *plue_abort_signal_new(void);
/* Adds a reference and returns `signal`; NULL for NULL. */
PLUE_API plue_abort_signal_t *plue_abort_signal_retain(plue_abort_signal_t *signal);
/* Drops a reference. A running call has its own, which an extra release does not take: the signal
 * may be released, and still be aborted, during a call. NULL is allowed. */
PLUE_API void plue_abort_signal_release(plue_abort_signal_t *signal);
/* Aborts the running calls with this signal, and every later one. Never waits for a lock, a thread
 * or a socket; takes one or two microseconds per call, whose thread it wakes. The first reason
 * counts; it may be NULL, is cut to 64 KiB, and bytes that are not UTF-8 are replaced. Must not be
 * called in a signal handler: README.md shows how Ctrl-C aborts a call. */
PLUE_API void plue_abort_signal_abort(plue_abort_signal_t *signal, const char *reason);
/* Returns 1 after plue_abort_signal_abort(), else 0. Takes nanoseconds. */
PLUE_API int plue_abort_signal_aborted(const plue_abort_signal_t *signal);

/* ------------------------------------------------------------------------------- start and stop */

enum {
    PLUE_MODE_AUTO = 0, /* guest once a runtime has attached itself, else sidecar */
    PLUE_MODE_GUEST = 1,
    PLUE_MODE_SIDECAR = 2
};

/* Options. A field that is zero has its default, which is at the end of its comment. A relative
 * path is resolved against the working directory during plue_init_with_options(); a relative path
 * in the environment, against the working directory in which the library was loaded. */
typedef struct {
    size_t struct_size;       /* sizeof(plue_options_t) */
    int mode;                 /* PLUE_MODE_...; PLUE_MODE_AUTO */
    const char *tools_module; /* the TypeScript module that exports the registry; $PLUE_TOOLS */
    /* Selects the tools of this process ("role", "scopes", "context", ...) and configures them
     * ("config", by id). An unknown field is an error. "{}" */
    const char *config_json;
    /* The program that runs the tools, and its arguments, up to a NULL. Default: $PLUE_SIDECAR (a
     * program, or a script *.js); else "plue-sidecar" beside libplue or where `make install` put it;
     * else "plue-sidecar.js" there, run by "bun" or "node". A statically linked library is beside the
     * program or plugin that contains it. */
    const char *const *sidecar_argv;
    const char *sidecar_cwd;   /* the working directory of the sidecar; that of this process */
    uint32_t start_timeout_ms; /* the time until the tools must be ready; 10000 */
    uint32_t abort_grace_ms;   /* the time for which an aborted call waits for its tool; 1000 */
    /* The maximum time of a call, counted from when its tool is called; no limit. A call that takes
     * longer fails with `timeout` and its tool is aborted. A sidecar that then does not respond
     * within start_timeout_ms is killed. */
    uint32_t call_timeout_ms;
    /* The maximum size of the arguments of all calls in flight, in bytes; 268435456 (256 MiB). A
     * call that would exceed it fails with `overloaded`. The same limit applies to calls of this
     * program's tools that have not begun. */
    size_t max_bytes_in_flight;
} plue_options_t;

/* Sets the options. Does not start the runtime: the first list or call starts it, with default
 * options if this function was not called. Returns 0; or -1 if an option is bad or the library is
 * in use with other options. Several parts of a program may call it with equal options. The tools
 * check config_json when they start: if it is bad, every call fails with `invalid_argument`. Codes
 * (plue_get_last_error_json()): PLUE_INVALID_ARGUMENT, PLUE_RUNTIME_UNAVAILABLE (after fork()),
 * PLUE_OUT_OF_MEMORY. */
PLUE_API int plue_init(const char *config_json);
PLUE_API int plue_init_with_options(const plue_options_t *options);

/* Starts the tools and waits until they are ready. Optional: without it the first call does so.
 * Codes: as plue_tool_list(). */
PLUE_API int plue_start(void);

/* Fails every running call with `shutdown`, ends the sidecar, joins the library's threads and
 * forgets the options. After n successful plue_init() calls, only the n-th plue_shutdown() does so.
 * A later call starts the tools again. Not allowed in metadata callbacks, nor in atexit() handlers
 * of a guest. */
PLUE_API void plue_shutdown(void);

/* -------------------------------------------------------------- errors, result flags and versions */

/* Returns the error message of this thread's last call of a function that can fail (functions for
 * invocations and abort signals cannot), or "No error" after a success. In a plue_done_t, returns
 * the message of the ended call. Valid until this thread's next such call. */
PLUE_API const char *plue_get_last_error(void);
/* The same failure as JSON, with its code and details; "{}" after a success. */
PLUE_API const char *plue_get_last_error_json(void);

/* Properties of a result besides its JSON. A later version may add flags. */
enum {
    PLUE_RESULT_BLOCKS = 1,    /* it is blocks: see the top of this file */
    PLUE_RESULT_TRUNCATED = 2, /* it was cut to the limit of the tools, and ends with a note */
    PLUE_RESULT_REPLAYED = 4,  /* it is the result of an earlier call */
    PLUE_RESULT_REPAIRED = 8   /* the arguments were repaired first: {"type":"repaired",...} */
};

/* Returns the PLUE_RESULT_... flags of this thread's last call; 0 for a plain value and a failure.
 * In a plue_done_t, returns the flags of the ended call. Read them before this thread's next call
 * of a function that can fail; hosts whose tasks change threads use plue_tool_submit(). */
PLUE_API int plue_get_last_result_flags(void);

/* The version of the ABI that this library implements: PLUE_ABI_VERSION of its own header. */
PLUE_API uint32_t plue_abi_version(void);
/* The version of the package: PLUE_VERSION of its own header. */
PLUE_API const char *plue_get_version(void);

/* ============================================================================= PART 2: and more */

/* ------------------------------------------------------------ calls without a thread, and events */

/* Receives the end of a call. `json`, the result or the failure, is valid until this returns. */
typedef void (*plue_done_t)(int status, const char *json, void *user_data);

/* Begins a call and returns immediately, even while the tools start or on the JavaScript thread. Then
 * plue_events_dispatch() calls the context's metadata_callback, and at the end `on_done`, once. The
 * context and its strings are borrowed until this returns; the call keeps a reference to the abort
 * signal. If this fails, `on_done` is not called.
 * Codes: PLUE_INVALID_ARGUMENT, PLUE_RUNTIME_UNAVAILABLE (after fork()), PLUE_SHUTDOWN, PLUE_OVERLOADED,
 * PLUE_OUT_OF_MEMORY; in `on_done`: ANY CALL. */
PLUE_API int plue_tool_submit(const char *tool_name, const char *params_json,
                              const plue_tool_context_t *context, plue_done_t on_done,
                              void *user_data);

/* Events wait until plue_events_dispatch() is called, which calls back on its own thread with no lock
 * held: the ends and the metadata of submitted calls, calls of tools of this program, changes of the
 * list, log lines. A callback may call every function of this library except plue_shutdown(). */

/* Returns a descriptor that is readable while an event waits; for poll(), epoll, kqueue, asyncio,
 * libuv, GLib or CFFileDescriptor. Do not read or close it. Returns -1 if no descriptor is left.
 * Codes: PLUE_RUNTIME_UNAVAILABLE. */
PLUE_API int plue_events_fd(void);

/* Calls back for the events that wait. If no event waits, waits up to `timeout_ms` milliseconds for
 * one; -1: without a limit. Several threads may call this concurrently, and share the events.
 * Returns the number of callbacks, or -1. Codes: PLUE_RUNTIME_UNAVAILABLE (after fork()). */
PLUE_API int plue_events_dispatch(int timeout_ms);

/* ------------------------------------------------------------------------- tools of this program */

/* One call of a tool that this program registered. It lives until plue_invocation_succeed() or
 * plue_invocation_fail() ends it, once, from any thread. */
typedef struct plue_invocation plue_invocation_t;

/* Runs a tool. `params_json` fits the tool's schema, and is valid until this returns. This may return
 * before the invocation ends. It runs inside plue_tool_execute() or plue_tool_call() of this program, on
 * their thread; and otherwise (submitted, called over HTTP or MCP, or by another tool) in
 * plue_events_dispatch(). */
typedef void (*plue_execute_t)(plue_invocation_t *invocation, const char *params_json,
                               void *user_data);

/* Registers a tool that this program runs, in the same registry as the tools in TypeScript: it is listed,
 * filtered, checked, exported and called like them. `definition_json` is an object with `name` and
 * `description`, and optionally "namespace", "title", "version", "parameters", "returns", "category",
 * "risk", "tags", "annotations", "examples", "deprecated", "requiresApproval", "timeoutMs", "idempotent",
 * "aliases", "roles", "scopes", "blocks". Without "parameters" the tool takes none. With "blocks":true
 * every result is blocks, as at the top of this file. Starts the runtime, and waits until it has the
 * tool; a restarted sidecar gets it again.
 * `destroy` may be NULL. It is called once: when the tool is unregistered, its last invocation has ended
 * and `execute` has returned; or if this fails.
 * Codes: as plue_tool_list(), with PLUE_INVALID_ARGUMENT also for a bad definition and a duplicate name;
 * PLUE_RUNTIME_GONE, PLUE_RUNTIME_CRASHED. */
PLUE_API int plue_register_tool(const char *definition_json, plue_execute_t execute,
                                void (*destroy)(void *user_data), void *user_data);

/* Unregisters a tool of this program by its id ("namespace:name" or "name"). Running invocations
 * continue. plue_shutdown() unregisters all. The tool stays registered after PLUE_OVERLOADED,
 * PLUE_WOULD_DEADLOCK and PLUE_OUT_OF_MEMORY. Codes: these, PLUE_INVALID_ARGUMENT,
 * PLUE_UNKNOWN_TOOL, PLUE_TIMEOUT, PLUE_RUNTIME_UNAVAILABLE (after fork()). */
PLUE_API int plue_unregister_tool(const char *tool_id);

/* Ends an invocation with a result as JSON. NULL is "null". */
PLUE_API void plue_invocation_succeed(plue_invocation_t *invocation, const char *json);
/* Ends an invocation with a failure: a code up to PLUE_THREW (any other becomes PLUE_THREW), and a
 * message for the model. */
PLUE_API void plue_invocation_fail(plue_invocation_t *invocation, int status, const char *message);

/* Sends metadata, streamed output (both JSON) or progress (`total` 0: unknown; `message` may be NULL)
 * of a running invocation. Never waits: if more than 16 MiB wait for the runtime, the invocation fails with
 * PLUE_OUTPUT_TOO_LARGE, and its signal is aborted. */
PLUE_API void plue_invocation_metadata(plue_invocation_t *invocation, const char *json);
PLUE_API void plue_invocation_output(plue_invocation_t *invocation, const char *json);
PLUE_API void plue_invocation_progress(plue_invocation_t *invocation, double done, double total,
                                       const char *message);

/* The ids of the call, valid until the invocation ends; may be NULL. */
PLUE_API const char *plue_invocation_session_id(const plue_invocation_t *invocation);
PLUE_API const char *plue_invocation_message_id(const plue_invocation_t *invocation);

/* Returns a signal that is aborted with the call: by its caller, its timeout, or the end of the runtime.
 * Valid until the invocation ends. Pass it to the calls that the tool makes. An aborted invocation must
 * still be ended. */
PLUE_API plue_abort_signal_t *plue_invocation_signal(const plue_invocation_t *invocation);
/* Sets a callback that plue_events_dispatch() calls if the call is aborted before the invocation ends;
 * also if it is aborted already. */
PLUE_API void plue_invocation_on_abort(plue_invocation_t *invocation,
                                       void (*callback)(plue_invocation_t *invocation,
                                                        void *user_data),
                                       void *user_data);

/* ------------------------------------------------------------------------------------ questions */

/* A tool may ask for a value, an approval, a visit to a URL, or its own result if its caller runs it.
 *   - With plue_set_question() this program answers while the tool waits.
 *   - Otherwise the call fails with PLUE_INPUT_REQUIRED and
 *     {"error":"input_required","message":"...","questions":[...],"ticket":"..."}. plue_tool_resume()
 *     continues it, now or in another process. This needs the option `tickets` of the dispatcher:
 *     without it, the call fails with PLUE_INPUT_UNAVAILABLE. */

/* Sets the function that answers the questions of later calls; NULL: none. `ask` runs like a tool of
 * this program, on the thread of the call or in plue_events_dispatch(). Its parameters are the question:
 * {"key":"sure","kind":"input"|"approval"|"authorization"|"client","message":"...","tool":"..."}, with
 * "schema", "url", "arguments" or "issues" for some kinds. It ends the invocation with an answer:
 * {"action":"accept","content":...}, {"action":"decline"} or {"action":"cancel"}; or with
 * plue_invocation_fail(), which leaves the question to a ticket. Content that does not fit "schema" is
 * asked for again, with "issues". For the kind "client" this program runs "tool" with "arguments", and
 * the content is the tool's result, at most 64 KiB; without "accept" the call is `denied`. The
 * invocation's signal is aborted when the question is void. Questions in progress keep their function;
 * `destroy`, which may be NULL, is called once when the last of them has ended, and also if this fails.
 * Codes: PLUE_RUNTIME_UNAVAILABLE (after fork()), PLUE_OUT_OF_MEMORY. */
PLUE_API int plue_set_question(plue_execute_t ask, void (*destroy)(void *user_data),
                               void *user_data);

/* Continues a call by its ticket. The option `tickets` of the tools decides whether a ticket is
 * valid once or for a while. `answers_json` is an object of answers, as above, by the question's
 * key. Codes: ANY CALL. */
PLUE_API int plue_tool_resume(const char *ticket, const char *answers_json,
                              const plue_tool_context_t *context, char **json);
/* Continues a call in the same way as plue_tool_submit() begins one. */
PLUE_API int plue_tool_submit_resume(const char *ticket, const char *answers_json,
                                     const plue_tool_context_t *context, plue_done_t on_done,
                                     void *user_data);

/* ---------------------------------------------------------------------------------------- tasks */

/* A task is a call that outlives the function that started it. The module of tools must export `tasks`:
 *     export const tasks = callTasks({ store });       from "@plue/tools/calls"
 * A task is {"id":"...","status":"working"|"input_required"|"completed"|"failed"|"cancelled",
 * "tool":"...","pollMs":n,...}, with "progress", "questions", or, at its end, a "result":
 * {"ok":true,"content":...}, with "blocks":true for blocks, or
 * {"ok":false,"error":{"code":"...","message":"..."}}. These functions wait for this answer, not for the
 * end of the task.
 * Codes of all four: ANY CALL, and PLUE_UNKNOWN_TASK. */

/* Starts a task. Its events are discarded; an abort signal aborts only the start. */
PLUE_API int plue_tool_start(const char *tool_name, const char *params_json,
                             const plue_tool_context_t *context, char **task_json);
/* Returns the task's current state. */
PLUE_API int plue_tool_poll(const char *task_id, char **task_json);
/* Cancels the task, unless it has ended. */
PLUE_API int plue_tool_cancel(const char *task_id, char **task_json);
/* Continues the task with answers to its questions, as plue_tool_resume() does. */
PLUE_API int plue_tool_answer(const char *task_id, const char *answers_json,
                              const plue_tool_context_t *context, char **task_json);

/* -------------------------------------------------------------------------------------- notices */

/* Both functions replace a callback, and wait until the old callback has returned; it is not called
 * again. They do not wait if they are called inside the old callback, or if that callback waits to
 * replace the calling one. Do not hold a lock that the old callback waits for. */

/* Sets the callback for changes of plue_tool_list(), called by plue_events_dispatch() once for any number
 * of changes. NULL: none. */
PLUE_API void plue_set_list_changed(void (*callback)(void *user_data), void *user_data);

/* Sets the callback for log lines, called by plue_events_dispatch(): the output of a sidecar's
 * tools, and messages of the library. NULL: all lines go to the standard error, even waiting
 * lines. The same happens at the end of plue_shutdown(). At most 1 MiB waits; a separate line counts
 * the dropped lines. */
PLUE_API void plue_set_log(void (*callback)(const char *line, void *user_data), void *user_data);

#ifdef __cplusplus
}
#endif
#endif
