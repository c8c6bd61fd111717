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
 *            {"error":"<code>","message":"<text>"}, for some codes with "issues":[...].
 *            A tool may well return an object with a key "error"; plue_get_last_error_json() is
 *            "{}" exactly when the call of this thread succeeded.
 * CODES      From the dispatcher: unknown_tool unavailable denied not_executable invalid_arguments
 *            invalid_result approval_required aborted timeout transaction_failed output_too_large
 *            overloaded threw. From this library:
 *   invalid_argument     a NULL name, text that is not UTF-8, more than 256 MiB of arguments, or a
 *                        config_json that the tools refuse. The dispatcher takes and gives 1 MiB by default (invalid_arguments,
 *                        output_too_large), until the module of tools says otherwise:
 *                        export const dispatch = { maxArgumentBytes, maxOutputBytes };
 *   would_deadlock       called on the JavaScript thread itself (guest mode)
 *   runtime_unavailable  no runtime is attached, or the sidecar cannot be started now
 *   runtime_gone         the guest runtime detached while the call was running
 *   runtime_crashed      the sidecar ended while the call was running
 *   shutdown             plue_shutdown() was called while the call was running
 *   out_of_memory
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

/* What goes with one call. All of it may be zero. Frozen: five pointers, in ABI 1 and after. */
typedef struct {
    const char *session_id; /* NULL, or handed to the tool */
    const char *message_id; /* NULL, or handed to the tool */
    void *abort_signal;     /* NULL, or a plue_abort_signal_t * */
    /* NULL, or called for each event of the running tool, with `user_data`: only while
     * plue_tool_execute() runs, on the thread that called it, in the order in which the tool sent
     * them, all of them before it returns. No lock of the library is held: the callback may call
     * into the library. `metadata_json` is valid during the callback. The callback must return
     * (no longjmp, no exception).
     *
     * What a tool sends with ctx.metadata(x) arrives as x. Progress and streamed output arrive as
     * {"type":"progress"|"output",...}. A call that fails tells so with
     * {"type":"error","tool":"<tool_name>","error":"<code>","message":"<text>"}, for some codes with
     * "issues":[...]. Events that wait for a slow callback are bounded to 16 MiB per call, and an
     * aborted call waits for none when its grace period is over; what is dropped is counted in one
     * last {"type":"dropped","count":n}. */
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

/* Frees a string that this library returned. NULL is fine. */
PLUE_API void plue_free_json(char *json);
PLUE_API void plue_free_string(char *string);

/* ------------------------------------------------------------------------------ abort signals */

/* Stops calls. One-shot, counted by references, and shared by as many calls as you like. The tool
 * is told at once. A call whose tool does not stop within the grace period returns `aborted` all
 * the same; the tool then goes on by itself, and its result is thrown away. A metadata callback that
 * runs at that time is waited for. */
typedef struct plue_abort_signal plue_abort_signal_t;

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
    /* The program that runs the tools, and its arguments, up to a NULL. Default: $PLUE_SIDECAR, else
     * "plue-sidecar" beside libplue or where `make install` put it, else "bun", or "node", with the
     * "plue-sidecar.js" there. Beside libplue is beside the program or plugin that it is linked into,
     * if it is linked statically. */
    const char *const *sidecar_argv;
    const char *sidecar_cwd;   /* the working directory of the sidecar; that of this process */
    uint32_t start_timeout_ms; /* how long the tools may take to be ready; 10000 */
    uint32_t abort_grace_ms;   /* how long an aborted call waits for its tool; 1000 */
} plue_options_t;

/* Sets what the tools are started with. Starts nothing: the first plue_tool_list() or
 * plue_tool_execute() does, and with defaults if plue_init() was not called. Returns 0, or -1 with
 * plue_get_last_error() set: when the library is in use already, or an option is bad. What
 * config_json says is judged by the tools, when they start: a bad one makes every call fail with
 * `invalid_argument`. */
PLUE_API int plue_init(const char *config_json);
PLUE_API int plue_init_with_options(const plue_options_t *options);

/* Fails every running call with `shutdown`, ends the sidecar, joins the library's threads and
 * forgets the options. A later call starts again from zero. Not from a metadata callback, and
 * not from an atexit() handler of a guest. */
PLUE_API void plue_shutdown(void);

/* ------------------------------------------------------------------------ errors and versions */

/* The message of the failure of this thread's last plue_tool_list(), plue_tool_execute() or
 * plue_init...(), or "No error" if that succeeded. Valid until this thread's next such call. */
PLUE_API const char *plue_get_last_error(void);
/* The same failure as JSON, with its code and details; "{}" if there was none. */
PLUE_API const char *plue_get_last_error_json(void);

/* The version of the ABI that this library implements: PLUE_ABI_VERSION of its own header. */
PLUE_API uint32_t plue_abi_version(void);
/* The version of the package: PLUE_VERSION of its own header. */
PLUE_API const char *plue_get_version(void);

#ifdef __cplusplus
}
#endif
#endif
