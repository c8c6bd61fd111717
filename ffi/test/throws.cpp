// A host that throws out of the metadata callback, which plue.h forbids.
#include "plue.h"

#include <stdexcept>

static void throw_out(const char *, void *) {
    throw std::runtime_error("out of a callback");
}

int main() {
    plue_tool_context_t context = {nullptr, nullptr, nullptr, throw_out, nullptr};
    try {
        plue_free_json(plue_tool_execute("progress", "{\"n\":1}", &context));
    } catch (const std::exception &) {
        return 3; // it went through the library, which keeps a call whose frame is gone
    }
    return 4;
}
