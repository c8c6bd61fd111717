/* host CONFIG [TOOL PARAMS]...: lists the tools and calls them, one line each, as a script sees it. */
#include "plue.h"

#include <stdio.h>

static void on_metadata(const char *json, void *user_data) {
    (void)user_data;
    printf("metadata %s\n", json);
}

int main(int count, char **arguments) {
    plue_options_t options = {
        .struct_size = sizeof options,
        .config_json = count > 1 ? arguments[1] : NULL,
        .start_timeout_ms = 3600000, /* the tests decide how long it may take */
    };
    if (plue_init_with_options(&options) != 0) {
        printf("init %s\n", plue_get_last_error());
    }
    char *list = plue_tool_list();
    printf("tools %s\n", list);
    plue_free_json(list);
    plue_tool_context_t context = {.session_id = "session", .metadata_callback = on_metadata};
    for (int i = 2; i + 1 < count; i += 2) {
        char *result = plue_tool_execute(arguments[i], arguments[i + 1], &context);
        printf("%s %s\n", arguments[i], result);
        plue_free_json(result);
    }
    plue_shutdown();
    return 0;
}
