/* The suite as a host program: suite [--config JSON] part ... */
#include "check.h"
#include "plue.h"

int main(int count, char **arguments) {
    int first = 1;
    const char *config_json = NULL;
    if (count > 2 && strcmp(arguments[1], "--config") == 0) {
        config_json = arguments[2];
        first = 3;
    }
    suite_run(config_json, count - first, arguments + first);
    plue_shutdown();
    return check_verdict("suite");
}
