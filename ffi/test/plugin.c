/* A plugin with libplue inside, linked statically: it calls a tool that exists and a tool that does
 * not, and leaves the sidecar running. */
#include "check.h"
#include "plue.h"

int plugin_call(void);

__attribute__((visibility("default"))) int plugin_call(void) {
    expect_answer("echo", "{\"a\":1}", "{\"a\":1}");
    expect_failure("nope", "{}", "unknown_tool", "nope");
    return check_verdict("plugin");
}
