/* A host that ends without plue_shutdown(): orphan WAY [FILE]. Prints the process numbers of the
 * sidecar and of the processes that its tools have started, one of them detached. Then it ends in
 * the named way, while the sidecar is idle, or busy as long as the file exists. A way that begins
 * with "drop-" first drops the rights of root. The test then checks that they have ended. */
#include "check.h"
#include "plue.h"

#include <signal.h>

static void *keep_busy(void *file) {
    char params[300];
    snprintf(params, sizeof params, "{\"file\":\"%s\"}", (const char *)file);
    plue_free_json(plue_tool_execute("spin", params, NULL));
    return NULL;
}

static long ask(const char *tool, const char *params) {
    char *json = plue_tool_execute(tool, params, NULL);
    long process = number_in(json, "pid");
    printf("%ld\n", process);
    fflush(stdout);
    plue_free_json(json);
    return process;
}

int main(int count, char **arguments) {
    const char *way = count > 1 ? arguments[1] : "";
    long sidecar = ask("pid", "{}");
    ask("start", "{}");
    ask("start", "{\"detached\":true}");
    if (count > 2) {
        pthread_t thread;
        pthread_create(&thread, NULL, keep_busy, arguments[2]);
        while (access(arguments[2], F_OK) != 0) {
            sleep_us(1000);
        }
    }
    if (strncmp(way, "drop-", 5) == 0) {
        if (setgid(65534) != 0 || setuid(65534) != 0) {
            return 2;
        }
        way += 5;
    }
    if (strcmp(way, "kill") == 0) {
        kill(getpid(), SIGKILL);
    } else if (strcmp(way, "exit") == 0) {
        exit(0);
    } else if (strcmp(way, "_exit") == 0) {
        _exit(0);
    } else if (strcmp(way, "crash") == 0) {
        abort();
    } else if (strcmp(way, "shutdown") == 0) {
        plue_shutdown();
        return 0;
    } else if (strcmp(way, "exec") == 0) {
        /* The next program runs until the sidecar has ended. */
        char command[100];
        snprintf(command, sizeof command, "while kill -0 %ld 2>/dev/null; do sleep 0.01; done",
                 sidecar);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    }
    return 1;
}
