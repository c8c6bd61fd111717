/* The suite as a host program: suite [--config JSON] part ... */
#include "check.h"
#include "plue.h"
#include "suite.h"

#include <string.h>

int main(int count, char **arguments) {
    int first = 1;
    if (count > 2 && strcmp(arguments[1], "--config") == 0) {
        CHECK(plue_init(arguments[2]) == 0, "%s", plue_get_last_error());
        first = 3;
    }
    suite_run(count - first, arguments + first);
    plue_shutdown();
    return check_verdict("suite");
}
