// A host in C++17: host_cpp [tool [params_json]]. It stops the tool after 30 seconds.
#include <plue.h>

#include <condition_variable>
#include <iostream>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

// Strings and signals free themselves.
struct FreeJson {
    void operator()(char *json) const { plue_free_json(json); }
};
struct ReleaseSignal {
    void operator()(plue_abort_signal_t *signal) const { plue_abort_signal_release(signal); }
};
using Json = std::unique_ptr<char, FreeJson>;
using AbortSignal = std::unique_ptr<plue_abort_signal_t, ReleaseSignal>;

// Calls a tool. Throws what plue_get_last_error() says.
std::string execute(const std::string &tool, const std::string &params,
                    const plue_tool_context_t &context) {
    const Json json(plue_tool_execute(tool.c_str(), params.c_str(), &context));
    if (std::string(plue_get_last_error_json()) != "{}") {
        throw std::runtime_error(plue_get_last_error());
    }
    return json.get();
}

// Aborts a signal after a while, unless it goes away before.
class Timeout {
  public:
    Timeout(plue_abort_signal_t *signal, std::chrono::seconds span)
        : thread_([this, signal, span] {
              std::unique_lock lock(mutex_);
              if (!over_.wait_for(lock, span, [this] { return is_over_; })) {
                  plue_abort_signal_abort(signal, "the host's timeout");
              }
          }) {}
    ~Timeout() {
        {
            const std::lock_guard lock(mutex_);
            is_over_ = true;
        }
        over_.notify_one();
        thread_.join();
    }
    Timeout(const Timeout &) = delete;
    Timeout &operator=(const Timeout &) = delete;

  private:
    std::mutex mutex_;
    std::condition_variable over_;
    bool is_over_ = false;
    std::thread thread_;
};

} // namespace

int main(int count, char **arguments) {
    const std::string tool = count > 1 ? arguments[1] : "echo";
    const std::string params = count > 2 ? arguments[2] : "{}";
    int status = 0;
    {
        const Json list(plue_tool_list());
        std::cout << "tools: " << std::string(list.get()).substr(0, 70) << "...\n";
        const AbortSignal signal(plue_abort_signal_new());
        const Timeout timeout(signal.get(), std::chrono::seconds(30));
        const auto print = [](const char *json, void *) { std::cerr << "event: " << json << '\n'; };
        const plue_tool_context_t context = {"session-1", "message-1", signal.get(), print, nullptr};
        try {
            const std::string result = execute(tool, params, context);
            std::cout << "result: " << result << '\n';
        } catch (const std::exception &error) {
            std::cout << "failure: " << error.what() << '\n';
            status = 1;
        }
    }
    plue_shutdown();
    return status;
}
