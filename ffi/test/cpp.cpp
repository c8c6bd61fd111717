// plue.hpp against a real sidecar: test/native/cpp.bun.test.ts builds and runs it.
#include <plue.hpp>

#include "contract.h"

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <thread>

extern "C" int check_failures(void);

namespace {

#define CHECK(condition, text)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition,                \
                         std::string(text).c_str());                                               \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

bool contains(const std::string &text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

template <class Function> void expect_error(plue::Status status, const char *part, Function run) {
    try {
        run();
    } catch (const plue::Error &error) {
        CHECK(error.status() == status, error.what());
        CHECK(contains(error.what(), part), error.what());
        return;
    }
    CHECK(false, "it threw nothing");
}

std::string definition(const std::string &name) {
    return "{\"name\":\"host:" + name + R"(","description":"A tool of C++.",)" +
           R"("parameters":{"type":"object"}})";
}

template <class Function> void dispatch_until(Function is_done) {
    while (!is_done()) {
        plue::dispatch();
    }
}

// A submitted call, and its end.
struct Submitted {
    plue::Result result;
    bool is_over = false;

    void call(const std::string &tool, const std::string &params = "{}",
              const plue::CallOptions &options = {}) {
        is_over = false;
        plue::submit(tool, params, options, [this](plue::Result ended) {
            result = std::move(ended);
            is_over = true;
        });
    }
    const plue::Result &wait() {
        dispatch_until([this] { return is_over; });
        return result;
    }
};

// ------------------------------------------------------------------ the cases of contract.txt

std::string text_or(const char *text, const char *otherwise = "") {
    return text == nullptr ? otherwise : text;
}

std::string run_steps(const std::string &steps, plue::Invocation &call, std::string_view params) {
    std::istringstream lines(steps);
    for (std::string kind; lines >> kind;) {
        std::string rest;
        double done = 0;
        double total = 0;
        int status = 0;
        if (kind == "progress") {
            lines >> done >> total;
        } else if (kind == "failure") {
            lines >> status;
        }
        lines.ignore(lines.peek() == ' ');
        std::getline(lines, rest);
        if (kind == "expects") {
            contract_expect(std::string(params).c_str(), rest.c_str());
        } else if (kind == "metadata") {
            call.metadata(rest);
        } else if (kind == "output") {
            call.output(rest);
        } else if (kind == "session") {
            call.metadata("{\"session\":\"" + call.session_id() + "\"}");
        } else if (kind == "progress") {
            call.progress(done, total, rest);
        } else if (kind == "failure") {
            throw plue::Error(static_cast<plue::Status>(status), rest);
        } else {
            return kind == "result" ? rest : std::string(params);
        }
    }
    return "null";
}

void end(const plue::Result &result) {
    const std::string message = result ? "No error" : plue_get_last_error();
    contract_end(static_cast<int>(result.status), result.flags, result.json.c_str(), message.c_str());
}

void submit(const contract_call &call, const std::string &json, const plue::CallOptions &options) {
    bool is_over = false;
    const auto on_done = [&](const plue::Result &result) {
        end(result);
        is_over = true;
    };
    const bool is_resumed = std::string_view(call.operation) == "resume";
    (is_resumed ? plue::submit_resume : plue::submit)(call.name, json, options, on_done);
    dispatch_until([&] { return is_over; });
}

void call_by_binding(const contract_call *call) {
    const std::string_view operation = call->operation;
    const std::string json = text_or(call->json, "{}");
    const plue::AbortSignal signal;
    plue::CallOptions options;
    options.session_id = text_or(call->session_id);
    options.message_id = text_or(call->message_id);
    options.signal = &signal;
    options.on_event = [](std::string_view event) { contract_event(std::string(event).c_str()); };
    if (call->abort_reason != nullptr) {
        signal.abort(call->abort_reason);
    }
    if (operation == "poll" || operation == "cancel") {
        end((operation == "poll" ? plue::poll_task : plue::cancel_task)(call->name));
    } else if (operation == "answer") {
        end(plue::answer_task(call->name, json));
    } else if (operation == "start") {
        end(plue::start_task(call->name, json, options));
    } else if (call->is_submitted) {
        submit(*call, json, options);
    } else {
        end((operation == "call" ? plue::call : plue::resume)(call->name, json, options));
    }
}

void define_by_binding(const char *name, const char *text, const char *steps) {
    const std::string_view operation = name;
    const auto run = [of_tool = std::string(steps)](plue::Invocation &call, std::string_view params) {
        return run_steps(of_tool, call, params);
    };
    plue::Result result;
    try {
        if (operation == "register") {
            plue::register_tool(text, run);
        } else if (operation == "unregister") {
            plue::unregister_tool(text);
        } else if (operation == "question") {
            plue::set_question(run);
        } else {
            plue::clear_question();
        }
    } catch (const plue::Error &error) {
        result = {error.status(), error.what()};
    }
    end(result);
}

void test_contract() {
    const contract_driver driver = {call_by_binding, define_by_binding};
    contract_run(&driver, nullptr);
    CHECK(check_failures() == 0, "the contract");
}

// ------------------------------------------------------------------ what is particular to C++

void test_texts() {
    expect_error(plue::Status::invalid_argument, "NUL", [] { plue::call({"a\0b", 3}); });
    expect_error(plue::Status::invalid_argument, "NUL",
                 [] { plue::submit({"\0", 1}, "{}", {}, [](const plue::Result &) {}); });
}

void test_throwing_callbacks() {
    int count = 0;
    plue::CallOptions options;
    options.on_event = [&](std::string_view) {
        count++;
        throw std::out_of_range("mine");
    };
    try {
        plue::call("progress", "{\"n\":3}", options);
        CHECK(false, "it threw nothing");
    } catch (const std::out_of_range &error) {
        CHECK(count == 1, error.what());
    }
    plue::submit("echo", "{}", {}, [](const plue::Result &) { throw std::out_of_range("mine"); });
    try {
        while (true) {
            plue::dispatch();
        }
    } catch (const std::out_of_range &) {
    }
}

// The function of a tool or question is destroyed after its last use. Its exception ends the call.
void test_tools() {
    const auto counter = std::make_shared<int>(0);
    const auto run = [counter](plue::Invocation &, std::string_view) { return std::string("null"); };
    const auto before = counter.use_count();
    plue::register_tool(definition("add"), run);
    CHECK(counter.use_count() == before + 1, "copies");
    expect_error(plue::Status::invalid_argument, "host:add",
                 [&] { plue::register_tool(definition("add"), run); });
    CHECK(counter.use_count() == before + 1, "a rejected function is not destroyed");
    plue::unregister_tool("host:add");
    plue::set_question(run);
    CHECK(counter.use_count() == before + 1, "copies");
    plue::clear_question();
    CHECK(counter.use_count() == before, "not destroyed");

    plue::register_tool(definition("throws"), [](plue::Invocation &, std::string_view) -> std::string {
        throw std::runtime_error("It broke");
    });
    const plue::Result broken = plue::call("host:throws");
    CHECK(broken.status == plue::Status::threw && contains(broken.json, "It broke"), broken.json);
}

void test_ending_later() {
    std::optional<plue::Invocation> kept;
    plue::register_tool(definition("later"), [&](plue::Invocation &&call, std::string_view params) {
        if (params != "{}") {
            throw plue::Error(plue::Status::denied, "Not later");
        }
        kept.emplace(std::move(call));
    });
    Submitted submitted;
    const auto until_kept = [&] { dispatch_until([&] { return kept.has_value(); }); };
    submitted.call("host:later");
    until_kept();
    std::thread([&] { kept->succeed("{\"later\":true}"); }).join();
    kept->metadata("1"); // after the end: nothing happens
    kept.reset();
    CHECK(submitted.wait().value() == "{\"later\":true}", submitted.result.json);

    submitted.call("host:later");
    until_kept();
    kept.reset();
    CHECK(submitted.wait().status == plue::Status::threw, submitted.result.json);
    CHECK(contains(submitted.result.json, "without a result"), submitted.result.json);

    submitted.call("host:later", "{\"a\":1}");
    CHECK(submitted.wait().status == plue::Status::denied, submitted.result.json);
    CHECK(contains(submitted.result.json, "Not later"), submitted.result.json);

    plue::register_tool(definition("moved"), [&](plue::Invocation &&call, std::string_view) {
        kept.emplace(std::move(call));
        throw std::out_of_range("after the move");
    });
    submitted.call("host:moved");
    try {
        until_kept();
        CHECK(false, "it threw nothing");
    } catch (const std::out_of_range &) {
    }
    kept->succeed();
    kept.reset();
    submitted.wait();
}

void test_on_abort() {
    std::optional<plue::Invocation> kept;
    plue::register_tool(definition("slow"), [&](plue::Invocation &&call, std::string_view) {
        kept.emplace(std::move(call));
        kept->on_abort([&] { kept->fail(plue::Status::aborted, "stopped"); });
    });
    const plue::AbortSignal signal;
    plue::CallOptions options;
    options.signal = &signal;
    Submitted submitted;
    submitted.call("host:slow", "{}", options);
    dispatch_until([&] { return kept.has_value(); });
    signal.abort("enough");
    CHECK(submitted.wait().status == plue::Status::aborted, submitted.result.json);
    CHECK(contains(submitted.result.json, "enough"), submitted.result.json);
    dispatch_until([] { return plue::detail::on_abort.functions.empty(); });
    plue::unregister_tool("host:slow");
}

void test_options() {
    plue::Options options;
    options.config_json = R"({"role":"user","config":{"greet":{"word":"hi"}}})";
    options.abort_grace = std::chrono::milliseconds(500);
    {
        const plue::Library library(options);
        library.start();
        CHECK(plue::call("greet").value() == "{\"word\":\"hi\"}", "the configuration");
        expect_error(plue::Status::invalid_argument, "in use", [] { plue::Library second; });
        plue::Options other;
        other.call_timeout = std::chrono::hours(10000);
        expect_error(plue::Status::invalid_argument, "call_timeout must be",
                     [&] { plue::Library second(other); });
    }
    options.sidecar = {"/nowhere/plue-sidecar"};
    const plue::Library library(options);
    expect_error(plue::Status::runtime_unavailable, "nowhere", [] { plue::tools(); });
}

} // namespace

int main() {
    {
        const plue::Library library;
        test_contract();
        test_texts();
        test_throwing_callbacks();
        test_tools();
        test_ending_later();
        test_on_abort();
    }
    test_options();
    std::puts("ok");
}
