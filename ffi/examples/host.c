/* A host in C: host_c [tool [params_json]]
 *
 *   PLUE_TOOLS=examples/workspace/mod.ts build/examples/host_c echo '{"message":"hello"}'
 */
#include <plue.h>

#include <stdio.h>
#include <string.h>

static void print_event(const char *metadata_json, void *user_data) {
    fprintf((FILE *)user_data, "event: %s\n", metadata_json);
}

int main(int count, char **arguments) {
    const char *tool = count > 1 ? arguments[1] : "echo";
    const char *params = count > 2 ? arguments[2] : "{}";
    if (plue_abi_version() != PLUE_ABI_VERSION || plue_init("{\"maxRisk\":\"medium\"}") != 0) {
        fprintf(stderr, "%s\n", plue_get_last_error());
        return 1;
    }

    char *list = plue_tool_list();
    printf("tools: %.70s...\n", list);
    plue_free_json(list);

    /* Any thread may call plue_abort_signal_abort(stop, "reason") while the tool runs. */
    plue_abort_signal_t *stop = plue_abort_signal_new();
    plue_tool_context_t context = {"session-1", "message-1", stop, print_event, stderr};
    char *result = plue_tool_execute(tool, params, &context);
    int failed = strcmp(plue_get_last_error_json(), "{}") != 0;
    printf("%s: %s\n", failed ? "failure" : "result", result);
    plue_free_json(result);
    plue_abort_signal_release(stop);

    plue_shutdown();
    return failed;
}
