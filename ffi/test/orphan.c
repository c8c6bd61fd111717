/* A host that dies: orphan [spin]. Prints the sidecar's process number, then kills itself, while
 * the sidecar is idle or busy. Who started it looks whether the sidecar is gone. */
#include "check.h"
#include "plue.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void count(const char *json, void *user_data) {
    (void)json;
    (void)user_data;
}

static void *keep_busy(void *unused) {
    plue_tool_context_t context = {NULL, NULL, NULL, count, NULL};
    plue_free_json(plue_tool_execute("spin", "{\"ms\":8000}", &context));
    return unused;
}

int main(int arguments, char **values) {
    char *json = plue_tool_execute("pid", "{}", NULL);
    printf("%ld\n", number_in(json, "pid"));
    fflush(stdout);
    plue_free_json(json);
    if (arguments > 1 && strcmp(values[1], "spin") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, keep_busy, NULL);
        sleep_us(200000); /* long enough for the tool to have begun */
    }
    kill(getpid(), SIGKILL);
    return 1;
}
