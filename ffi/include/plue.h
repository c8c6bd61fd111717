/* plue.h - the C interface of the plue tool registry, ABI 1.
 *
 * Tools are written in TypeScript and run by a JavaScript runtime; this library lists and calls
 * them from C and from everything that can call C. There are two ways to host the runtime, and
 * the code of a host is the same for both:
 *
 *   SIDECAR  Your program owns the process. libplue starts the tools as a child process and talks
 *            to it over a private socket. A crash of a tool is an error, never a crash of yours.
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
 * Most hosts need no more than plue_tool_list(), plue_tool_execute() or plue_tool_call(),
 * plue_free_json(), the abort signals, plue_init() and plue_shutdown().
 *
 * THREADS    Every function may be called from any thread at any time, unless its comment says
 *            otherwise. A thread is not cancelled inside the library, nor in a callback of its
 *            call: pthread_cancel() takes effect after the return, so abort the call as well.
 * FORK       A process made by fork() before the first call, or after plue_shutdown(), can use the
 *            library like any other. In one made in between, and until it calls exec(),
 *            plue_tool_list(), plue_tool_execute() and plue_init...() fail with runtime_unavailable,
 *            plue_abort_signal_new() and ..._retain() return NULL, and the others that act do nothing.
 * STRINGS    UTF-8, terminated by NUL. Arguments are borrowed for the duration of the call.
 * OWNERSHIP  Every `char *` that is returned is yours: give it to plue_free_json(), never to free().
 *            None is ever NULL. A `const char *` that is returned belongs to the library.
 * RESULTS    A success is the tool's result as JSON. A failure is
 *            {"error":"<code>","message":"<text>"}, for some codes with "issues":[...], and with
 *            "repaired":[...] where the arguments were repaired. A tool may well return an object
 *            with a key "error"; plue_get_last_error_json() is "{}" exactly when the call of this
 *            thread succeeded.
 * BLOCKS     A result of texts, images, audio and files is
 *            {"content":[...],"structuredContent":...,"metadata":{...}}, and has PLUE_RESULT_BLOCKS
 *            in plue_get_last_result_flags(): a result without that flag is a value, whatever it
 *            looks like. "content" has the blocks of MCP, with bytes in base64:
 *              {"type":"text","text":"..."}
 *              {"type":"image"|"audio","data":"<base64>","mimeType":"image/png"}
 *              {"type":"resource","resource":{"uri":"...","mimeType":"...","text":"..."}}, or "blob"
 *                with base64 in place of "text"
 *              {"type":"resource_link","uri":"...","name":"..."}
 *            "structuredContent", where there is one, is the same as a value, and fits `returns`.
 *            "metadata", where there is some, is for the program, and not for a model.
 * CODES      From the dispatcher: unknown_tool unavailable denied not_executable invalid_arguments
 *            invalid_result approval_required input_required input_unavailable ticket_refused
 *            aborted timeout transaction_failed output_too_large overloaded threw. From this
 *            library:
 *   invalid_argument     a NULL name, text that is not UTF-8, more than 256 MiB of arguments, or a
 *                        config_json that the tools refuse. The dispatcher takes and gives 1 MiB
 *                        by default (invalid_arguments, output_too_large), until the module of
 *                        tools says otherwise:
 *                        export const dispatch = { maxArgumentBytes, maxOutputBytes };
 *   would_deadlock       called on the JavaScript thread itself (guest mode)
 *   runtime_unavailable  no runtime is attached, or the sidecar cannot be started now
 *   runtime_gone         the guest runtime detached while the call was running
 *   runtime_crashed      the sidecar ended while the call was running
 *   shutdown             plue_shutdown() was called while the call was running
 *   out_of_memory
 *   unknown_task         there is no task of that id, or it is not this program's
 * VERSIONS   Functions are only ever added to an ABI version, and plue_options_t only ever grows at
 *            its end. Whoever loads the library with dlopen() compares plue_abi_version() first.
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

/* ------------------------------------------------------------------------------------- calls */

/* Stops calls: see below. */
typedef struct plue_abort_signal plue_abort_signal_t;

/* What goes with one call. All of it may be zero. Frozen: five pointers, in ABI 1 and after. */
typedef struct {
    const char *session_id; /* NULL, or handed to the tool */
    const char *message_id; /* NULL, or handed to the tool */
    plue_abort_signal_t *abort_signal; /* NULL, or what stops the call */
    /* NULL, or called for each event of the running tool, with `user_data`: only while
     * plue_tool_execute() runs, on the thread that called it, in the order in which the tool sent
     * them, all of them before it returns. No lock of the library is held: the callback may call
     * into the library. `metadata_json` is valid during the callback. The callback must return
     * (no longjmp, no exception).
     *
     * What a tool sends with ctx.metadata(x) arrives as x. Progress and streamed output arrive as
     * {"type":"progress"|"output",...}. A call that fails tells so with
     * {"type":"error","tool":"<tool_name>","error":"<code>","message":"<text>"}, for some codes with
     * "issues":[...]; one that succeeds with repaired arguments tells how they were repaired with
     * {"type":"repaired","repaired":[{"path":"/n","message":"..."}]}. Events that wait for a slow
     * callback are bounded to 16 MiB per call, and an aborted call waits for none when its grace period
     * is over; what is dropped is counted in one last {"type":"dropped","count":n}. */
    void (*metadata_callback)(const char *metadata_json, void *user_data);
    void *user_data;
} plue_tool_context_t;

/* Lists the tools that this process may call: a JSON object with the definition of each by its name,
 * in the order of the names (by their bytes). A definition has `name`, `description`, `parameters`,
 * `returns` (if the tool says what it returns) and more. Any name may be a tool's, "error" too: a
 * failure is told by plue_get_last_error_json(). Costs no round trip: the tools side pushes each new
 * list. */
PLUE_API char *plue_tool_list(void);

/* Calls one tool, and blocks the calling thread until the tool has ended, the call was aborted, or
 * the runtime is lost. `params_json` NULL means "{}"; `context` NULL means a zeroed one. */
PLUE_API char *plue_tool_execute(const char *tool_name, const char *params_json,
                                 const plue_tool_context_t *context);

/* How a call ended: the numbers of the codes at the top. A later version may have more. */
enum {
    PLUE_OK = 0,
    PLUE_UNKNOWN_TOOL = 1,
    PLUE_UNAVAILABLE = 2,
    PLUE_DENIED = 3,
    PLUE_NOT_EXECUTABLE = 4,
    PLUE_INVALID_ARGUMENTS = 5,
    PLUE_INVALID_RESULT = 6,
    PLUE_APPROVAL_REQUIRED = 7,
    PLUE_ABORTED = 8,
    PLUE_TIMEOUT = 9,
    PLUE_TRANSACTION_FAILED = 10,
    PLUE_OUTPUT_TOO_LARGE = 11,
    PLUE_OVERLOADED = 12,
    PLUE_THREW = 13,
    PLUE_INPUT_REQUIRED = 14,
    PLUE_INPUT_UNAVAILABLE = 15,
    PLUE_TICKET_REFUSED = 16,
    PLUE_INVALID_ARGUMENT = 64,
    PLUE_WOULD_DEADLOCK = 65,
    PLUE_RUNTIME_UNAVAILABLE = 66,
    PLUE_RUNTIME_GONE = 67,
    PLUE_RUNTIME_CRASHED = 68,
    PLUE_SHUTDOWN = 69,
    PLUE_OUT_OF_MEMORY = 70,
    PLUE_UNKNOWN_TASK = 71,
    PLUE_OTHER = 127 /* a code that this version does not know */
};

/* What there is to know of a result besides its JSON. A later version may have more. */
enum {
    PLUE_RESULT_BLOCKS = 1,    /* it is blocks: see the top of this file */
    PLUE_RESULT_TRUNCATED = 2, /* it was cut to the limit of the tools, and says so at its end */
    PLUE_RESULT_REPLAYED = 4,  /* it is that of an earlier call */
    PLUE_RESULT_REPAIRED = 8   /* the arguments were repaired first; {"type":"repaired",...} says how */
};

/* Returns the PLUE_RESULT_... of this thread's last call: 0 for a plain value, and for a call that
 * failed. In a plue_done_t it is about the call that is told of. Ask before this thread calls another
 * function of the library that can fail: a host whose tasks change threads uses plue_tool_submit(). */
PLUE_API int plue_get_last_result_flags(void);

/* plue_tool_execute() with the answer to "did it succeed" as its value, for hosts whose tasks change
 * threads. Returns PLUE_OK or another PLUE_...; `*json` (yours; never NULL) is the result or the
 * failure. `json` may be NULL. */
PLUE_API int plue_tool_call(const char *tool_name, const char *params_json,
                            const plue_tool_context_t *context, char **json);

/* Is told how a call ended. `json` is the result or the failure, and valid until this returns. */
typedef void (*plue_done_t)(int status, const char *json, void *user_data);

/* Begins a call and returns at once, also while the tools start, and also on the JavaScript thread.
 * `on_done` is called once, by plue_events_dispatch(); so is the context's metadata_callback, before
 * it. The context itself, and its strings, are borrowed until this returns; an abort signal in it is
 * kept by the call. Returns PLUE_OK; or another PLUE_..., and then `on_done` is not called. */
PLUE_API int plue_tool_submit(const char *tool_name, const char *params_json,
                              const plue_tool_context_t *context, plue_done_t on_done,
                              void *user_data);

/* Frees a string that this library returned. NULL is fine. */
PLUE_API void plue_free_json(char *json);
PLUE_API void plue_free_string(char *string);

/* ------------------------------------------------------------------------------ abort signals */

/* Stops calls. One-shot, counted by references, and shared by as many calls as you like. The tool
 * is told at once. A call whose tool does not stop within the grace period returns `aborted` all
 * the same; the tool then goes on by itself, and its result is thrown away. A metadata callback that
 * runs at that time is waited for. */

/* Returns a signal with one reference, or NULL when out of memory. */
PLUE_API plue_abort_signal_t *plue_abort_signal_new(void);
/* Adds a reference and returns `signal`; NULL for NULL. */
PLUE_API plue_abort_signal_t *plue_abort_signal_retain(plue_abort_signal_t *signal);
/* Gives a reference back. A running call holds its own: the signal may be released, and still be
 * aborted, while a call carries it; one release too many takes nothing from the call. NULL is fine. */
PLUE_API void plue_abort_signal_release(plue_abort_signal_t *signal);
/* Aborts the running calls that carry the signal, and every later one. Never waits: not for a lock,
 * a thread or a socket. Takes a microsecond or two for each of those calls, which it wakes. The first
 * reason wins; it may be NULL, is cut to 64 KiB, and what is not UTF-8 in it is replaced. Not for
 * handlers of the system's signals: README.md says how Ctrl-C aborts a call. */
PLUE_API void plue_abort_signal_abort(plue_abort_signal_t *signal, const char *reason);
/* Returns 1 after plue_abort_signal_abort(), else 0. Takes nanoseconds. */
PLUE_API int plue_abort_signal_aborted(const plue_abort_signal_t *signal);

/* --------------------------------------------------------------------------------------- events */

/* What the library has to tell waits until plue_events_dispatch() is called, and is told on the thread
 * that calls it, with no lock held: the ends and the metadata of submitted calls, calls of the
 * tools that this program registered, changes of the list, log lines. A callback may call every
 * function of this library but plue_shutdown(). */

/* A descriptor that is readable while something waits; for poll(), epoll, kqueue, asyncio, libuv,
 * GLib or CFFileDescriptor. Only wait for it: the library reads it, and never closes it. -1: there is
 * no descriptor left, with plue_get_last_error() set. */
PLUE_API int plue_events_fd(void);

/* Tells what waits. Where nothing does, waits for it: `timeout_ms` milliseconds, 0 not at all, -1 for
 * as long as it takes. Several threads may do this at once: then they share the work. Returns how
 * many callbacks were called; -1 with plue_get_last_error() set. */
PLUE_API int plue_events_dispatch(int timeout_ms);

/* ----------------------------------------------------------------------- tools of this program */

/* One call of a tool that this program registered. Ended by plue_invocation_succeed() or
 * plue_invocation_fail(), from any thread, once; gone then. */
typedef struct plue_invocation plue_invocation_t;

/* Runs a tool. `params_json` fits the tool's schema, and is valid until this returns. It may return
 * before the invocation is ended. It runs on the thread that called the tool, inside
 * plue_tool_execute() or plue_tool_call(), and otherwise (submitted, by a model over HTTP or MCP, by
 * another tool) in plue_events_dispatch(). */
typedef void (*plue_execute_t)(plue_invocation_t *invocation, const char *params_json,
                               void *user_data);

/* Registers a tool that this program runs. It is in the same registry as those in TypeScript: listed,
 * filtered, checked, exported and called like them. `definition_json` is an object with `name` and
 * `description`, and what else plue_tool_list() shows: "namespace", "title", "version",
 * "parameters", "returns", "category", "risk", "tags", "annotations", "examples", "deprecated",
 * "requiresApproval", "timeoutMs", "idempotent"; and "aliases", "roles", "scopes", "blocks". Without
 * "parameters" the tool takes none: a call with any is refused. With "blocks":true every result of the
 * tool is blocks, as at the top of this file. Starts the runtime, and waits until it has taken the
 * tool. A sidecar that is started again gets it again.
 * `destroy` may be NULL; it is called once, when the tool is gone, its last invocation has ended and
 * `execute` has returned, and also if this fails. Returns PLUE_OK; PLUE_INVALID_ARGUMENT for a bad
 * definition or a name that is taken; or another PLUE_...; with plue_get_last_error() set. */
PLUE_API int plue_register_tool(const char *definition_json, plue_execute_t execute,
                                void (*destroy)(void *user_data), void *user_data);

/* Takes back a tool that this program registered, by its id ("namespace:name" or "name"). Running
 * invocations go on. plue_shutdown() takes back all. Returns PLUE_OK, PLUE_UNKNOWN_TOOL, or
 * another PLUE_... */
PLUE_API int plue_unregister_tool(const char *tool_id);

/* Ends an invocation with a result, as JSON. NULL is "null". */
PLUE_API void plue_invocation_succeed(plue_invocation_t *invocation, const char *json);
/* Ends an invocation with a failure: PLUE_DENIED, PLUE_TIMEOUT, ... of the codes up to PLUE_THREW
 * (any other is PLUE_THREW), and a message for the model. */
PLUE_API void plue_invocation_fail(plue_invocation_t *invocation, int status, const char *message);

/* Sends metadata, streamed output (both JSON) or progress (`total` 0: unknown; `message` may be
 * NULL) while it runs. */
PLUE_API void plue_invocation_metadata(plue_invocation_t *invocation, const char *json);
PLUE_API void plue_invocation_output(plue_invocation_t *invocation, const char *json);
PLUE_API void plue_invocation_progress(plue_invocation_t *invocation, double done, double total,
                                       const char *message);

/* The ids of the call, valid until the invocation is ended; may be NULL. */
PLUE_API const char *plue_invocation_session_id(const plue_invocation_t *invocation);
PLUE_API const char *plue_invocation_message_id(const plue_invocation_t *invocation);

/* A signal that is aborted when the call is: by its caller, its timeout, or the end of the runtime.
 * Valid until the invocation is ended, and to be carried by the calls that the tool makes. The
 * invocation must be ended all the same. */
PLUE_API plue_abort_signal_t *plue_invocation_signal(const plue_invocation_t *invocation);
/* Has `callback` called by plue_events_dispatch() if the call is aborted before the invocation is
 * ended; also if it was aborted before this. */
PLUE_API void plue_invocation_on_abort(plue_invocation_t *invocation,
                                       void (*callback)(plue_invocation_t *invocation,
                                                        void *user_data),
                                       void *user_data);

/* ---------------------------------------------------------------------------------- questions */

/* A tool may ask before it goes on: for a value, an approval, a visit to a URL, or for its own result
 * if its caller is to run it. Then
 *   - plue_set_question() answers at once, while the tool waits; or
 *   - the call fails with PLUE_INPUT_REQUIRED, and
 *     {"error":"input_required","message":"...","questions":[...],"ticket":"..."}. plue_tool_resume()
 *     continues it, now or in another process. This needs the option `tickets` of the dispatcher:
 *     without it, the call fails with PLUE_INPUT_UNAVAILABLE. */

/* Answers the questions of the calls that begin after this. `ask` is run like a tool of this program,
 * on the thread that waits for the call or in plue_events_dispatch(), with the question as its
 * parameters: {"key":"sure","kind":"input"|"approval"|"authorization"|"client","message":"...",
 * "tool":"..."}, with "schema", "url", "arguments" or "issues" where there are some. The invocation is
 * ended with an answer, {"action":"accept","content":...}, {"action":"decline"} or
 * {"action":"cancel"}; or with plue_invocation_fail(), which leaves the question to a ticket. Content
 * that does not fit "schema" is asked for again, with "issues". The kind "client" has this program run
 * "tool" with "arguments": the content of the answer is the tool's result, of at most 64 KiB; without
 * "accept" the call is `denied`. The invocation's signal is aborted when the question is void. NULL:
 * nobody is asked. A question that is under way goes on when `ask` is replaced; `destroy`, which may be
 * NULL, is called once, when the last of them has ended, and also if this fails. Returns PLUE_OK; or
 * another PLUE_..., with plue_get_last_error() set. */
PLUE_API int plue_set_question(plue_execute_t ask, void (*destroy)(void *user_data),
                               void *user_data);

/* Continues a call by its ticket, which is good once or for a while, as the tools were set up.
 * `answers_json` is an object with an answer, as above, by each question's key. */
PLUE_API int plue_tool_resume(const char *ticket, const char *answers_json,
                              const plue_tool_context_t *context, char **json);
/* The same as plue_tool_submit() does it. */
PLUE_API int plue_tool_submit_resume(const char *ticket, const char *answers_json,
                                     const plue_tool_context_t *context, plue_done_t on_done,
                                     void *user_data);

/* -------------------------------------------------------------------------------------- tasks */

/* A task is a call with a life of its own. It needs `tasks` in what the module of tools exports:
 *     export const tasks = callTasks({ store });       of "@plue/tools/calls"
 * and is told of as {"id":"...","status":"working"|"input_required"|"completed"|"failed"|"cancelled",
 * "tool":"...","pollMs":n,...}, with "progress", "questions", or, at its end, a "result" of
 * {"ok":true,"content":...}, with "blocks":true if that is blocks, or
 * {"ok":false,"error":{"code":"...","message":"..."}}. A task that these tools do not know is
 * PLUE_UNKNOWN_TASK. These functions wait for the answer, not for the task. */

/* Starts a task, and tells of it. Its events go nowhere; an abort signal aborts the start only. */
PLUE_API int plue_tool_start(const char *tool_name, const char *params_json,
                             const plue_tool_context_t *context, char **task_json);
/* Tells how far it is. */
PLUE_API int plue_tool_poll(const char *task_id, char **task_json);
/* Cancels it, unless it has ended, and tells how it is then. */
PLUE_API int plue_tool_cancel(const char *task_id, char **task_json);
/* Answers its questions, as plue_tool_resume() does, and tells how it is then. */
PLUE_API int plue_tool_answer(const char *task_id, const char *answers_json,
                              const plue_tool_context_t *context, char **task_json);

/* ------------------------------------------------------------------------------------ notices */

/* Both functions below replace a callback. Once they have returned, the old one is not begun any more,
 * and it has ended, unless they were called in it: do not hold a lock for which it waits. */

/* Is called by plue_events_dispatch() when plue_tool_list() has changed: once for any number of
 * changes. NULL: nobody is told. */
PLUE_API void plue_set_list_changed(void (*callback)(void *user_data), void *user_data);

/* Is called by plue_events_dispatch() with each line that would have gone to the standard error: what
 * the tools of a sidecar print, and what the library has to say. NULL: it goes there, and so does what
 * waits then, or at the end of plue_shutdown(). At most 1 MiB waits; what is dropped is counted in a
 * line of its own. */
PLUE_API void plue_set_log(void (*callback)(const char *line, void *user_data), void *user_data);

/* ---------------------------------------------------------------------------------- lifecycle */

enum {
    PLUE_MODE_AUTO = 0, /* guest once a runtime has attached itself, else sidecar */
    PLUE_MODE_GUEST = 1,
    PLUE_MODE_SIDECAR = 2
};

/* Fields that are zero have the default that is named. A relative path is seen from the folder where
 * plue_init_with_options() is called; one in the environment, from where the library was loaded. */
typedef struct {
    size_t struct_size;       /* sizeof(plue_options_t) */
    int mode;                 /* PLUE_MODE_...; PLUE_MODE_AUTO */
    const char *tools_module; /* the TypeScript module that exports the registry; $PLUE_TOOLS */
    /* Which tools this process sees: "role", "scopes", "context" (what is available) and others; and
     * how tools are configured: "config", by id. NULL is "{}". An unknown field is an error. */
    const char *config_json;
    /* The program that runs the tools, and its arguments, up to a NULL. Default: $PLUE_SIDECAR (a
     * program, or a script *.js), else "plue-sidecar" beside libplue or where `make install` put it,
     * else the "plue-sidecar.js" there; scripts are run by "bun" or "node". Beside libplue is beside the
     * program or plugin that it is linked into, if it is linked statically. */
    const char *const *sidecar_argv;
    const char *sidecar_cwd;   /* the working directory of the sidecar; that of this process */
    uint32_t start_timeout_ms; /* how long the tools may take to be ready; 10000 */
    uint32_t abort_grace_ms;   /* how long an aborted call waits for its tool; 1000 */
    /* How long a call may take, from when its tool is asked; no limit. A call that takes longer fails
     * with `timeout`, its tool is aborted, and a sidecar that then gives no sign of life within
     * start_timeout_ms is killed. */
    uint32_t call_timeout_ms;
} plue_options_t;

/* Sets what the tools are started with. Starts nothing: the first plue_tool_list() or
 * plue_tool_execute() does, and with defaults if plue_init() was not called. Returns 0, or -1 with
 * plue_get_last_error() set: when the library is in use with other options, or an option is bad. Parts
 * of a program that know nothing of each other may each call it, with equal options. What
 * config_json says is judged by the tools, when they start: a bad one makes every call fail with
 * `invalid_argument`. */
PLUE_API int plue_init(const char *config_json);
PLUE_API int plue_init_with_options(const plue_options_t *options);

/* Starts the tools, and waits until they are ready. Returns PLUE_OK or another PLUE_..., with
 * plue_get_last_error() set. Optional: it takes the start out of the first call. */
PLUE_API int plue_start(void);

/* Fails every running call with `shutdown`, ends the sidecar, joins the library's threads and
 * forgets the options. Where plue_init() has succeeded n times, the n-th plue_shutdown() does so, and
 * those before it nothing. A later call starts again from zero. Not from a metadata callback, and
 * not from an atexit() handler of a guest. */
PLUE_API void plue_shutdown(void);

/* ------------------------------------------------------------------------ errors and versions */

/* The message of the failure of this thread's last function that can fail (not one of invocations or
 * abort signals), or "No error" if that succeeded; in a plue_done_t, of the call that is told of. Valid
 * until this thread's next such call. */
PLUE_API const char *plue_get_last_error(void);
/* The same failure as JSON, with its code and details; "{}" if there was none. */
PLUE_API const char *plue_get_last_error_json(void);

/* The version of the ABI that this library implements: PLUE_ABI_VERSION of its own header. */
PLUE_API uint32_t plue_abi_version(void);
/* Returns 1 if this library has the functions of that name, else 0: "call", "submit", "events",
 * "register_tool", "list_changed", "log", "questions", "tasks", "start", "result_flags". For hosts that
 * load it with dlopen(). */
PLUE_API int plue_feature(const char *name);
/* The version of the package: PLUE_VERSION of its own header. */
PLUE_API const char *plue_get_version(void);

#ifdef __cplusplus
}
#endif
#endif
