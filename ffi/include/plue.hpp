// plue.hpp - plue.h for C++17: strings, signals and functions that free themselves.
//
// JSON stays text, so a program can use any library of JSON. A failure is thrown as a plue::Error,
// or returned as a plue::Result. No exception crosses C: an exception of a callback is rethrown by
// the function of this header that runs the callback, and an exception of a tool ends its call.
#ifndef PLUE_HPP
#define PLUE_HPP

#include "plue.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace plue {

/// How a call ended.
enum class Status : int {
    ok = PLUE_OK,
    unknown_tool = PLUE_UNKNOWN_TOOL,
    unavailable = PLUE_UNAVAILABLE,
    denied = PLUE_DENIED,
    not_executable = PLUE_NOT_EXECUTABLE,
    invalid_arguments = PLUE_INVALID_ARGUMENTS,
    invalid_result = PLUE_INVALID_RESULT,
    approval_required = PLUE_APPROVAL_REQUIRED,
    aborted = PLUE_ABORTED,
    timeout = PLUE_TIMEOUT,
    transaction_failed = PLUE_TRANSACTION_FAILED,
    output_too_large = PLUE_OUTPUT_TOO_LARGE,
    overloaded = PLUE_OVERLOADED,
    threw = PLUE_THREW,
    input_required = PLUE_INPUT_REQUIRED,
    input_unavailable = PLUE_INPUT_UNAVAILABLE,
    ticket_refused = PLUE_TICKET_REFUSED,
    invalid_argument = PLUE_INVALID_ARGUMENT,
    would_deadlock = PLUE_WOULD_DEADLOCK,
    runtime_unavailable = PLUE_RUNTIME_UNAVAILABLE,
    runtime_gone = PLUE_RUNTIME_GONE,
    runtime_crashed = PLUE_RUNTIME_CRASHED,
    shutdown = PLUE_SHUTDOWN,
    out_of_memory = PLUE_OUT_OF_MEMORY,
    unknown_task = PLUE_UNKNOWN_TASK,
    other = PLUE_OTHER
};

/// A failure. `what()` is its JSON, or the message that a tool of this program throws.
class Error : public std::runtime_error {
  public:
    Error(Status status, const std::string &text) : std::runtime_error(text), status_(status) {}
    Status status() const noexcept { return status_; }

  private:
    Status status_;
};

/// The end of a call.
struct Result {
    Status status = Status::ok;
    std::string json; ///< the tool's result, or the failure
    int flags = 0;    ///< PLUE_RESULT_... of plue.h

    explicit operator bool() const noexcept { return status == Status::ok; }
    /// Whether the result is texts, images, audio and files, in the form that plue.h shows.
    bool has_blocks() const noexcept { return (flags & PLUE_RESULT_BLOCKS) != 0; }
    /// The tool's result. Throws an Error if the call failed.
    const std::string &value() const & {
        check();
        return json;
    }
    std::string value() && {
        check();
        return std::move(json);
    }

  private:
    void check() const {
        if (status != Status::ok) {
            throw Error(status, json);
        }
    }
};

/// Stops the calls that carry the signal, from any thread. Copies are the same signal.
class AbortSignal {
  public:
    AbortSignal() : signal_(plue_abort_signal_new()) {
        if (signal_ == nullptr) {
            throw std::bad_alloc();
        }
    }
    /// Shares a signal of plue.h, by a reference of its own.
    explicit AbortSignal(plue_abort_signal_t *signal) : signal_(plue_abort_signal_retain(signal)) {}
    AbortSignal(const AbortSignal &other) : AbortSignal(other.signal_) {}
    AbortSignal(AbortSignal &&other) noexcept : signal_(std::exchange(other.signal_, nullptr)) {}
    AbortSignal &operator=(AbortSignal other) noexcept {
        std::swap(signal_, other.signal_);
        return *this;
    }
    ~AbortSignal() { plue_abort_signal_release(signal_); }

    /// Aborts the running calls and all later ones. Never waits. The first reason wins.
    void abort(const std::string &reason = "") const noexcept {
        plue_abort_signal_abort(signal_, reason.empty() ? nullptr : reason.c_str());
    }
    bool aborted() const noexcept { return plue_abort_signal_aborted(signal_) != 0; }
    plue_abort_signal_t *get() const noexcept { return signal_; }

  private:
    plue_abort_signal_t *signal_;
};

using EventCallback = std::function<void(std::string_view json)>;

/// The optional data of a call.
struct CallOptions {
    std::string session_id;
    std::string message_id;
    const AbortSignal *signal = nullptr;
    EventCallback on_event; ///< is called with each event of the running tool
};

namespace detail {

struct FreeJson {
    void operator()(char *json) const noexcept { plue_free_json(json); }
};
using Json = std::unique_ptr<char, FreeJson>;

// The first exception of the callbacks in the innermost function of this header on this thread.
inline thread_local std::exception_ptr *thrown = nullptr;

// Catches exceptions of callbacks. finish() rethrows the first one.
class Catcher {
  public:
    Catcher() noexcept : outer_(std::exchange(thrown, &first_)) {}
    ~Catcher() { thrown = outer_; }
    Catcher(const Catcher &) = delete;
    Catcher &operator=(const Catcher &) = delete;
    void finish() const {
        if (first_) {
            std::rethrow_exception(first_);
        }
    }

  private:
    std::exception_ptr first_;
    std::exception_ptr *outer_;
};

// Runs a callback of C. Without a function of this header around it, an exception ends the program.
template <class Function> void guard(Function run) noexcept {
    if (thrown == nullptr) {
        run();
        return;
    }
    try {
        run();
    } catch (...) {
        if (!*thrown) {
            *thrown = std::current_exception();
        }
    }
}

inline const char *or_null(const std::string &text) noexcept {
    return text.empty() ? nullptr : text.c_str();
}

// Rejects a string with a NUL, because C would read only the part before the NUL.
inline const char *c_string(const std::string &text) {
    if (text.find('\0') != std::string::npos) {
        throw Error(Status::invalid_argument, "Cannot pass a string to libplue: it has a NUL");
    }
    return text.c_str();
}

inline plue_tool_context_t context_of(const CallOptions &options,
                                      void (*on_event)(const char *, void *), void *user_data) {
    c_string(options.session_id);
    c_string(options.message_id);
    plue_tool_context_t context = {};
    context.session_id = or_null(options.session_id);
    context.message_id = or_null(options.message_id);
    context.abort_signal = options.signal == nullptr ? nullptr : options.signal->get();
    context.metadata_callback = options.on_event ? on_event : nullptr;
    context.user_data = user_data;
    return context;
}

inline void check(int status) {
    if (status != PLUE_OK) {
        throw Error(static_cast<Status>(status), plue_get_last_error_json());
    }
}

} // namespace detail

/// Lists the tools that this process may call, as JSON: their definitions by their names.
inline std::string tools() {
    const detail::Json json(plue_tool_list());
    const std::string failure = plue_get_last_error_json();
    if (failure != "{}") {
        detail::check(plue_start()); // has the status
        throw Error(Status::other, failure);
    }
    return json.get();
}

namespace detail {

// A function of plue.h that waits for an answer, and a function that does not wait.
using Wait = int (*)(const char *, const char *, const plue_tool_context_t *, char **);
using Submit = int (*)(const char *, const char *, const plue_tool_context_t *, plue_done_t, void *);

inline Result wait(Wait function, const std::string &name, const std::string &json_text,
                   const CallOptions &options) {
    struct Events {
        const EventCallback &tell;
        bool is_over;
    } events = {options.on_event, false};
    const auto on_event = [](const char *json, void *user_data) {
        auto &of_call = *static_cast<Events *>(user_data);
        if (of_call.is_over) {
            return;
        }
        of_call.is_over = true; // unless this returns
        guard([&] {
            of_call.tell(json);
            of_call.is_over = false;
        });
    };
    const auto context = context_of(options, on_event, &events);
    const char *first = c_string(name);
    const char *second = c_string(json_text);
    const Catcher catcher;
    char *json = nullptr;
    const int status = function(first, second, &context, &json);
    const int flags = plue_get_last_result_flags();
    const Json owned(json);
    catcher.finish();
    return {static_cast<Status>(status), json, flags};
}

template <int (*function)(const char *, char **)> Result wait_for_task(const std::string &id) {
    const auto of_task = [](const char *task, const char *, const plue_tool_context_t *,
                            char **json) { return function(task, json); };
    return wait(of_task, id, "", {});
}

inline void submit(Submit function, const std::string &name, const std::string &json_text,
                   CallOptions options, std::function<void(Result)> on_done) {
    struct Pending {
        EventCallback on_event;
        std::function<void(Result)> on_done;
    };
    auto pending = std::make_unique<Pending>(Pending{options.on_event, std::move(on_done)});
    const auto on_event = [](const char *json, void *user_data) {
        guard([&] { static_cast<Pending *>(user_data)->on_event(json); });
    };
    const auto end = [](int status, const char *json, void *user_data) {
        const std::unique_ptr<Pending> own(static_cast<Pending *>(user_data));
        const int flags = plue_get_last_result_flags();
        guard([&] { own->on_done({static_cast<Status>(status), json, flags}); });
    };
    const auto context = context_of(options, on_event, pending.get());
    check(function(c_string(name), c_string(json_text), &context, end, pending.get()));
    pending.release(); // on_done has it now
}

} // namespace detail

/// Calls a tool, and waits for its end. Then rethrows an exception of `on_event`.
inline Result call(const std::string &tool, const std::string &params_json = "{}",
                   const CallOptions &options = {}) {
    return detail::wait(plue_tool_call, tool, params_json, options);
}

/// Continues a call that ended with `input_required`, by the "ticket" in its failure.
/// `answers_json` has the answers by the questions' keys: {"sure":{"action":"accept"}}.
inline Result resume(const std::string &ticket, const std::string &answers_json,
                     const CallOptions &options = {}) {
    return detail::wait(plue_tool_resume, ticket, answers_json, options);
}

/// Begins a call, and returns immediately. dispatch() calls `on_event` for each event, and then
/// `on_done` with the Result. If the call cannot begin, throws an Error and calls neither.
inline void submit(const std::string &tool, const std::string &params_json, CallOptions options,
                   std::function<void(Result)> on_done) {
    detail::submit(plue_tool_submit, tool, params_json, std::move(options), std::move(on_done));
}

/// Continues a call like resume(), but returns immediately like submit().
inline void submit_resume(const std::string &ticket, const std::string &answers_json,
                          CallOptions options, std::function<void(Result)> on_done) {
    detail::submit(plue_tool_submit_resume, ticket, answers_json, std::move(options),
                   std::move(on_done));
}

/// Starts a task. This function and those below return the task's state at that time, as the JSON
/// that plue.h describes. They do not wait for the end of the task.
inline Result start_task(const std::string &tool, const std::string &params_json = "{}",
                         const CallOptions &options = {}) {
    return detail::wait(plue_tool_start, tool, params_json, options);
}
/// Answers the questions of a task, with answers in the format of resume().
inline Result answer_task(const std::string &id, const std::string &answers_json) {
    return detail::wait(plue_tool_answer, id, answers_json, {});
}
inline Result poll_task(const std::string &id) { return detail::wait_for_task<plue_tool_poll>(id); }
/// Cancels a task, unless it has ended.
inline Result cancel_task(const std::string &id) {
    return detail::wait_for_task<plue_tool_cancel>(id);
}

/// A descriptor that is readable while an event waits for dispatch().
inline int events_fd() {
    const int descriptor = plue_events_fd();
    detail::check(descriptor < 0 ? PLUE_OTHER : PLUE_OK);
    return descriptor;
}

/// Calls the callbacks of the waiting events on this thread. If no event waits, waits for one; a
/// negative `timeout` has no limit. Returns their number, or rethrows their first exception.
inline int dispatch(std::chrono::milliseconds timeout = std::chrono::milliseconds(-1)) {
    const detail::Catcher catcher;
    const auto longest = std::chrono::milliseconds(std::numeric_limits<int>::max());
    const int count = plue_events_dispatch(
        timeout.count() < 0 ? -1 : static_cast<int>(std::min(timeout, longest).count()));
    catcher.finish();
    detail::check(count < 0 ? PLUE_OTHER : PLUE_OK);
    return count;
}

namespace detail {

// The abort callbacks of the invocations that have not ended. An invocation may end on any thread.
struct OnAbort {
    std::mutex lock;
    std::map<plue_invocation_t *, std::shared_ptr<std::function<void()>>> functions;

    void keep(plue_invocation_t *invocation, std::function<void()> run) {
        const std::lock_guard<std::mutex> hold(lock);
        functions[invocation] = std::make_shared<std::function<void()>>(std::move(run));
    }
    std::shared_ptr<std::function<void()>> take(plue_invocation_t *invocation) {
        const std::lock_guard<std::mutex> hold(lock);
        const auto found = functions.find(invocation);
        if (found == functions.end()) {
            return nullptr;
        }
        auto function = std::move(found->second);
        functions.erase(found);
        return function;
    }
};
inline OnAbort on_abort;

} // namespace detail

/// One call of a tool of this program. Any thread may end it. The destructor fails an open call.
class Invocation {
  public:
    explicit Invocation(plue_invocation_t *invocation) noexcept : invocation_(invocation) {}
    Invocation(Invocation &&other) noexcept
        : invocation_(std::exchange(other.invocation_, nullptr)) {}
    Invocation &operator=(Invocation &&other) noexcept {
        std::swap(invocation_, other.invocation_);
        return *this;
    }
    ~Invocation() { fail(Status::threw, "The tool ended without a result"); }

    /// False after the end, and after it was moved.
    explicit operator bool() const noexcept { return invocation_ != nullptr; }

    // These functions have no effect after the end.
    void succeed(const std::string &json = "null") noexcept {
        if (auto *ended = take()) {
            plue_invocation_succeed(ended, json.c_str());
        }
    }
    void fail(Status status, const std::string &message) noexcept {
        if (auto *ended = take()) {
            plue_invocation_fail(ended, static_cast<int>(status), message.c_str());
        }
    }
    /// Fails the call with the current exception. For use within `catch`.
    void fail_with_current_exception() noexcept {
        try {
            throw;
        } catch (const Error &error) {
            fail(error.status(), error.what());
        } catch (const std::exception &error) {
            fail(Status::threw, error.what());
        } catch (...) {
            fail(Status::threw, "The tool threw something other than a std::exception");
        }
    }

    void metadata(const std::string &json) noexcept {
        if (invocation_ != nullptr) {
            plue_invocation_metadata(invocation_, json.c_str());
        }
    }
    void output(const std::string &json) noexcept {
        if (invocation_ != nullptr) {
            plue_invocation_output(invocation_, json.c_str());
        }
    }
    /// Reports progress. A `total` of 0 means unknown.
    void progress(double done, double total = 0, const std::string &message = "") noexcept {
        if (invocation_ != nullptr) {
            plue_invocation_progress(invocation_, done, total, detail::or_null(message));
        }
    }

    // These functions must not be called after the end.
    std::string session_id() const { return or_empty(plue_invocation_session_id(invocation_)); }
    std::string message_id() const { return or_empty(plue_invocation_message_id(invocation_)); }
    /// A signal that is aborted with the call. It may be stored, and passed to calls of the tool.
    AbortSignal signal() const { return AbortSignal(plue_invocation_signal(invocation_)); }
    /// Sets a callback that dispatch() calls once if the call is, or was, aborted before its end.
    /// The invocation must still be ended. Another thread may end it during the callback.
    void on_abort(std::function<void()> run) {
        const auto told = [](plue_invocation_t *invocation, void *) {
            if (const auto kept = detail::on_abort.take(invocation)) {
                detail::guard([&] { (*kept)(); });
            }
        };
        detail::on_abort.keep(invocation_, std::move(run));
        plue_invocation_on_abort(invocation_, told, nullptr);
    }

  private:
    plue_invocation_t *take() noexcept {
        if (invocation_ != nullptr) {
            detail::on_abort.take(invocation_);
        }
        return std::exchange(invocation_, nullptr);
    }
    static std::string or_empty(const char *text) { return text == nullptr ? "" : text; }
    plue_invocation_t *invocation_;
};

namespace detail {

// Runs a function of the program for an invocation.
template <class Function>
void execute(Function &run, plue_invocation_t *pointer, const char *json) noexcept {
    Invocation invocation(pointer);
    try {
        if constexpr (std::is_invocable_r_v<std::string, Function &, Invocation &,
                                            std::string_view>) {
            const std::string result = run(invocation, json);
            invocation.succeed(result);
        } else {
            run(std::move(invocation), json);
        }
    } catch (...) {
        if (!invocation && thrown != nullptr && !*thrown) {
            *thrown = std::current_exception();
        }
        invocation.fail_with_current_exception();
    }
}

// Adapts a function of the program to C: `run` calls it, and `destroy` frees it.
template <class Function> struct Owned {
    static void run(plue_invocation_t *invocation, const char *json, void *user_data) {
        execute(*static_cast<Function *>(user_data), invocation, json);
    }
    static void destroy(void *user_data) { delete static_cast<Function *>(user_data); }
};

} // namespace detail

/// Registers a tool that this program runs. `run` is called with the Invocation and the JSON of the
/// parameters. If `run` takes `Invocation &` and returns a string, the string is the result. If it
/// takes `Invocation &&`, it moves the invocation and ends it later. An exception of `run` ends the
/// call: an Error with its status, any other with `threw`. An exception after the end or the move
/// is rethrown by dispatch() or call(). Throws an Error for a bad definition.
///
///     plue::register_tool(definition, [](plue::Invocation &invocation, std::string_view params) {
///         return "{\"sum\":5}";
///     });
template <class Function> void register_tool(const std::string &definition_json, Function run) {
    const char *definition = detail::c_string(definition_json);
    using Owned = detail::Owned<Function>;
    // libplue destroys the function, even if the registration fails.
    detail::check(plue_register_tool(definition, Owned::run, Owned::destroy,
                                     new Function(std::move(run))));
}

/// Sets the function that answers the questions of tools. `run` is called as by register_tool(),
/// with a question as its JSON, and returns {"action":"accept","content":...}, {"action":"decline"}
/// or {"action":"cancel"}. An exception leaves the question to a ticket.
template <class Function> void set_question(Function run) {
    using Owned = detail::Owned<Function>;
    detail::check(plue_set_question(Owned::run, Owned::destroy, new Function(std::move(run))));
}

/// Removes the function that answers questions.
inline void clear_question() { detail::check(plue_set_question(nullptr, nullptr, nullptr)); }

/// Unregisters a tool of this program, by its id. Running invocations continue.
inline void unregister_tool(const std::string &tool_id) {
    detail::check(plue_unregister_tool(detail::c_string(tool_id)));
}

namespace detail {
/// Converts a time for C, where 0 means the default.
inline uint32_t time_of(std::chrono::milliseconds time, const char *option) {
    if (time.count() < 0 || time.count() > std::numeric_limits<uint32_t>::max()) {
        throw Error(Status::invalid_argument, std::string("Cannot initialise: ") + option +
                                                  " must be 0 to 4294967295 milliseconds");
    }
    return static_cast<uint32_t>(time.count());
}
} // namespace detail

/// How the tools are started. Omitted fields have the defaults of plue_options_t.
struct Options {
    std::string tools_module;
    std::string config_json;
    std::vector<std::string> sidecar;
    std::string sidecar_cwd;
    std::chrono::milliseconds start_timeout{0};
    std::chrono::milliseconds abort_grace{0};
    std::chrono::milliseconds call_timeout{0};
    std::size_t max_bytes_in_flight = 0; ///< of the arguments of running calls; 0: 256 MiB
    int mode = PLUE_MODE_AUTO;
};

/// Holds the library until the end of the scope. Objects need equal options; the last shuts down.
class Library {
  public:
    explicit Library(const Options &options = {}) {
        std::vector<const char *> words;
        for (const std::string &word : options.sidecar) {
            words.push_back(detail::c_string(word));
        }
        words.push_back(nullptr);
        plue_options_t given = {};
        given.struct_size = sizeof given;
        given.mode = options.mode;
        for (const std::string *text :
             {&options.tools_module, &options.config_json, &options.sidecar_cwd}) {
            detail::c_string(*text);
        }
        given.tools_module = detail::or_null(options.tools_module);
        given.config_json = detail::or_null(options.config_json);
        given.sidecar_argv = options.sidecar.empty() ? nullptr : words.data();
        given.sidecar_cwd = detail::or_null(options.sidecar_cwd);
        given.start_timeout_ms = detail::time_of(options.start_timeout, "start_timeout");
        given.abort_grace_ms = detail::time_of(options.abort_grace, "abort_grace");
        given.call_timeout_ms = detail::time_of(options.call_timeout, "call_timeout");
        given.max_bytes_in_flight = options.max_bytes_in_flight;
        detail::check(plue_init_with_options(&given) == 0 ? PLUE_OK : PLUE_INVALID_ARGUMENT);
    }
    ~Library() { plue_shutdown(); }
    Library(const Library &) = delete;
    Library &operator=(const Library &) = delete;

    /// Starts the tools, and waits until they are ready. Optional.
    void start() const { detail::check(plue_start()); }
};

} // namespace plue

#endif
