// A host in C++17: host [tool [params_json]]. It stops the tool after 30 seconds.
#include <plue.hpp>

#include <future>
#include <iostream>

int main(int count, char **arguments) {
    const std::string tool = count > 1 ? arguments[1] : "echo";
    const std::string params = count > 2 ? arguments[2] : "{}";
    const plue::Library library;
    try {
        std::cout << "tools: " << plue::tools().substr(0, 70) << "...\n";

        const plue::AbortSignal signal;
        plue::CallOptions options;
        options.session_id = "session-1";
        options.signal = &signal;
        options.on_event = [](std::string_view json) { std::cerr << "event: " << json << '\n'; };
        auto call = std::async(std::launch::async, plue::call, tool, params, options);
        if (call.wait_for(std::chrono::seconds(30)) == std::future_status::timeout) {
            signal.abort("the host's timeout");
        }
        const std::string result = call.get().value();
        std::cout << "result: " << result << '\n';
    } catch (const std::exception &error) {
        std::cout << "failure: " << error.what() << '\n';
        return 1;
    }
}
