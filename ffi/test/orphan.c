/* A host that dies: orphan [FILE]. Prints the sidecar's process number, then kills itself, while the
 * sidecar is idle, or busy for as long as the file is there. Who started it looks whether the sidecar
 * is gone. */
#include "check.h"
#include "plue.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static void *keep_busy(void *file) {
    char params[300];
    snprintf(params, sizeof params, "{\"file\":\"%s\"}", (const char *)file);
    plue_free_json(plue_tool_execute("spin", params, NULL));
    return NULL;
}

int main(int count, char **arguments) {
    char *json = plue_tool_execute("pid", "{}", NULL);
    printf("%ld\n", number_in(json, "pid"));
    fflush(stdout);
    plue_free_json(json);
    if (count > 1) {
        pthread_t thread;
        pthread_create(&thread, NULL, keep_busy, arguments[1]);
        while (access(arguments[1], F_OK) != 0) {
            sleep_us(1000);
        }
    }
    kill(getpid(), SIGKILL);
    return 1;
}
