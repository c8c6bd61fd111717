// plue.hpp against a real sidecar: test/native/cpp.bun.test.ts builds and runs it.
#include <plue.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>

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

void test_calls() {
    CHECK(contains(plue::tools(), "\"echo\""), plue::tools());
    CHECK(plue::call("echo", "{\"a\":1}").value() == "{\"a\":1}", "echo");
    const plue::Result failed = plue::call("nope");
    CHECK(!failed && failed.status == plue::Status::unknown_tool, failed.json);
    expect_error(plue::Status::unknown_tool, "nope", [] { plue::call("nope").value(); });
    expect_error(plue::Status::invalid_argument, "NUL", [] { plue::call({"a\0b", 3}); });
    expect_error(plue::Status::invalid_argument, "NUL", [] {
        plue::CallOptions options;
        options.session_id = {"a\0b", 3};
        plue::call("echo", "{}", options);
    });
}

void test_events() {
    int count = 0;
    plue::CallOptions options;
    options.session_id = "S";
    options.on_event = [&](std::string_view json) {
        CHECK(json == "{\"i\":" + std::to_string(count) + "}", json);
        count++;
        plue::call("progress", "{\"n\":1}").value();
    };
    const plue::Result result = plue::call("progress", "{\"n\":3}", options);
    CHECK(contains(result.value(), "\"session\":\"S\"") && count == 3, result.json);

    count = 0;
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
}

void test_abort() {
    const plue::AbortSignal signal;
    std::thread other;
    plue::CallOptions options;
    options.signal = &signal;
    options.on_event = [&](std::string_view json) {
        if (json == "{\"i\":0}") {
            other = std::thread([copy = signal] { copy.abort("enough"); });
        }
    };
    const plue::Result result = plue::call("hold", "{}", options);
    other.join();
    CHECK(result.status == plue::Status::aborted && contains(result.json, "enough"), result.json);
    CHECK(signal.aborted(), "not aborted");
}

void test_submit() {
    int done = 0;
    int events = 0;
    plue::CallOptions options;
    options.on_event = [&](std::string_view) { events++; };
    for (int i = 0; i < 100; i++) {
        plue::submit("progress", "{\"n\":2}", options, [&](const plue::Result &result) {
            CHECK(result, result.json);
            done++;
        });
    }
    while (done < 100) {
        plue::dispatch();
    }
    CHECK(events == 200, std::to_string(events));
    CHECK(plue::events_fd() >= 0, "no descriptor");
    CHECK(plue::dispatch(std::chrono::milliseconds(0)) == 0, "something is left");

    plue::submit("echo", "{}", {}, [](const plue::Result &) { throw std::out_of_range("mine"); });
    try {
        while (true) {
            plue::dispatch();
        }
    } catch (const std::out_of_range &) {
    }
    expect_error(plue::Status::invalid_argument, "NUL",
                 [] { plue::submit({"\0", 1}, "{}", {}, [](const plue::Result &) {}); });
}

void test_tools() {
    const auto counter = std::make_shared<int>(0);
    plue::register_tool(definition("add"), [counter](plue::Invocation &call, std::string_view params) {
        ++*counter;
        call.metadata("{\"session\":\"" + call.session_id() + call.message_id() + "\"}");
        call.progress(1, 2, "half");
        call.output("\"part\"");
        CHECK(!call.signal().aborted(), "aborted");
        return std::string(params);
    });
    CHECK(counter.use_count() == 2, "copies");
    std::string events;
    plue::CallOptions options;
    options.session_id = "S";
    options.on_event = [&](std::string_view json) { events += json; };
    CHECK(plue::call("host:add", "{\"a\":1}", options).value() == "{\"a\":1}", "the result");
    CHECK(contains(events, "{\"session\":\"S\"}") && contains(events, "half") &&
              contains(events, "\"part\""),
          events);
    expect_error(plue::Status::invalid_argument, "host:add", [&] {
        plue::register_tool(definition("add"), [counter](plue::Invocation &, std::string_view) {
            return std::string("null");
        });
    });
    CHECK(counter.use_count() == 2, "what was refused is not destroyed");
    plue::unregister_tool("host:add");
    CHECK(counter.use_count() == 1, "not destroyed");
    expect_error(plue::Status::unknown_tool, "no such tool", [] { plue::unregister_tool("host:add"); });

    plue::register_tool(definition("throws"), [](plue::Invocation &, std::string_view params) {
        if (params == "{}") {
            throw plue::Error(plue::Status::denied, "Not yours");
        }
        throw std::runtime_error("It broke");
        return std::string();
    });
    const plue::Result denied = plue::call("host:throws");
    CHECK(denied.status == plue::Status::denied && contains(denied.json, "Not yours"), denied.json);
    const plue::Result broken = plue::call("host:throws", "{\"a\":1}");
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
    plue::Result last;
    bool is_over = false;
    const auto call_it = [&](const std::string &params) {
        is_over = false;
        plue::submit("host:later", params, {}, [&](plue::Result result) {
            last = std::move(result);
            is_over = true;
        });
    };
    const auto until_kept = [&] {
        while (!kept) {
            plue::dispatch();
        }
    };
    const auto until_over = [&] {
        while (!is_over) {
            plue::dispatch();
        }
    };
    call_it("{}");
    until_kept();
    std::thread([&] { kept->succeed("{\"later\":true}"); }).join();
    kept->metadata("1"); // after the end: nothing happens
    kept.reset();
    until_over();
    CHECK(last.value() == "{\"later\":true}", last.json);

    call_it("{}");
    until_kept();
    kept.reset();
    until_over();
    CHECK(last.status == plue::Status::threw && contains(last.json, "without a result"), last.json);

    call_it("{\"a\":1}");
    until_over();
    CHECK(last.status == plue::Status::denied && contains(last.json, "Not later"), last.json);
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
    plue::Result last;
    bool is_over = false;
    plue::submit("host:slow", "{}", options, [&](plue::Result result) {
        last = std::move(result);
        is_over = true;
    });
    while (!kept) {
        plue::dispatch();
    }
    signal.abort("enough");
    bool was_told = false;
    while (!is_over || !was_told) {
        plue::dispatch();
        was_told = plue::detail::on_abort.functions.empty();
    }
    CHECK(last.status == plue::Status::aborted && contains(last.json, "enough"), last.json);
    plue::unregister_tool("host:slow");
}

// The value of a key.
std::string value_in(const std::string &json, const std::string &key) {
    const std::string start = "\"" + key + "\":\"";
    const auto at = json.find(start);
    CHECK(at != std::string::npos, json);
    const auto from = at + start.size();
    return json.substr(from, json.find('"', from) - from);
}

void test_questions() {
    const auto counter = std::make_shared<int>(0);
    plue::set_question([counter](plue::Invocation &, std::string_view question) {
        CHECK(question.find("Really?") != question.npos, question);
        ++*counter;
        return std::string(R"({"action":"decline"})");
    });
    CHECK(plue::call("confirm").value() == "\"decline\"" && *counter == 1, "the answer");
    plue::set_question([](plue::Invocation &, std::string_view) -> std::string {
        throw plue::Error(plue::Status::unavailable, "Nobody is there");
    });
    CHECK(counter.use_count() == 1, "what was replaced is not destroyed");
    plue::Result asked = plue::call("confirm");
    CHECK(asked.status == plue::Status::input_required, asked.json);
    plue::clear_question();
    const std::string accepted = R"({"sure":{"action":"accept"}})";
    CHECK(plue::resume(value_in(asked.json, "ticket"), accepted).value() == "\"accept\"", "resumed");

    asked = plue::call("confirm");
    bool is_over = false;
    plue::submit_resume(value_in(asked.json, "ticket"), accepted, {}, [&](plue::Result result) {
        CHECK(result.value() == "\"accept\"", result.json);
        is_over = true;
    });
    while (!is_over) {
        plue::dispatch();
    }
}

void test_tasks() {
    const auto await = [](const std::string &id) {
        plue::Result state;
        do {
            state = plue::poll_task(id);
        } while (contains(state.value(), R"("status":"working")"));
        return state.json;
    };
    std::string id = value_in(plue::start_task("echo", "{\"a\":1}").value(), "id");
    CHECK(contains(await(id), R"("content":{"a":1})"), await(id));
    id = value_in(plue::start_task("confirm").value(), "id");
    CHECK(contains(await(id), "input_required"), await(id));
    plue::answer_task(id, R"({"sure":{"action":"accept"}})").value();
    CHECK(contains(await(id), R"("content":"accept")"), await(id));
    id = value_in(plue::start_task("sleep", R"({"ms":3600000})").value(), "id");
    CHECK(contains(plue::cancel_task(id).value(), "cancelled"), "cancelled");
    CHECK(plue::poll_task("none").status == plue::Status::unknown_task, "no task");
}

void test_leaving() {
    const auto word = std::make_shared<std::string>("left");
    plue::register_tool(definition("leaving"), [word](plue::Invocation &&call, std::string_view) {
        plue::unregister_tool("host:leaving");
        call.succeed("true");
        CHECK(*word == "left", *word); // what it captured is there until it returns
    });
    CHECK(plue::call("host:leaving").value() == "true", "leaving");
    CHECK(word.use_count() == 1, "not destroyed");
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
        { const plue::Library equal(options); }
        CHECK(plue::call("greet").status == plue::Status::ok, "another library has ended it");
        plue::Options other;
        other.call_timeout = std::chrono::hours(10000);
        expect_error(plue::Status::invalid_argument, "call_timeout must be",
                     [&] { plue::Library second(other); });
    }
    options.call_timeout = std::chrono::milliseconds(50);
    {
        const plue::Library library(options);
        CHECK(plue::call("hold").status == plue::Status::timeout, "no timeout");
    }
    options.sidecar = {"/nowhere/plue-sidecar"};
    const plue::Library library(options);
    expect_error(plue::Status::runtime_unavailable, "nowhere", [] { plue::tools(); });
}

} // namespace

void test_blocks() {
    plue::register_tool(R"({"name":"host:photo","description":"Takes a photo.","blocks":true})",
                        [](plue::Invocation &, std::string_view) {
                            return plue::call("look_alike").value();
                        });
    for (const auto &[tool, has_blocks] :
         {std::pair("draw", true), std::pair("host:photo", true), std::pair("look_alike", false)}) {
        plue::Result result = plue::call(tool);
        CHECK(result.has_blocks() == has_blocks && contains(result.value(), "dot.gif"), result.json);
        result.flags = -1;
        plue::submit(tool, "{}", {}, [&](plue::Result last) { result = std::move(last); });
        while (result.flags < 0) {
            plue::dispatch();
        }
        CHECK(result.has_blocks() == has_blocks && contains(result.value(), "dot.gif"), result.json);
    }
    plue::unregister_tool("host:photo");
}

// A tool that this program is to run.
void test_client() {
    plue::set_question([](plue::Invocation &, std::string_view question) {
        CHECK(contains(std::string(question), R"("kind":"client")"), std::string(question));
        return std::string(R"({"action":"accept","content":{"at":4}})");
    });
    CHECK(plue::call("locate").value() == R"({"at":4})", "its result");
    plue::clear_question();
}

int main() {
    {
        const plue::Library library;
        test_calls();
        test_events();
        test_abort();
        test_submit();
        test_tools();
        test_ending_later();
        test_on_abort();
        test_leaving();
        test_questions();
        test_blocks();
        test_client();
        test_tasks();
    }
    test_options();
    std::puts("ok");
}
