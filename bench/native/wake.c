/* The raw wake of a JavaScript thread: a thread calls back, and waits until JavaScript has called
 * wake_answer(). The lower bound of guest mode. */
#include "measure.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int wake_start(void (*wake)(void), int rounds);
EXPORT void wake_answer(void);
EXPORT int wake_status(void);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool is_answered;
static atomic_int status = -1;
static void (*wake_javascript)(void);
static size_t wanted_rounds;

void wake_answer(void) {
    pthread_mutex_lock(&lock);
    is_answered = true;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void *run(void *unused) {
    uint64_t *durations = malloc(wanted_rounds * sizeof *durations);
    uint64_t start = now_ns();
    for (size_t i = 0; i < wanted_rounds; i++) {
        uint64_t before = now_ns();
        is_answered = false;
        wake_javascript();
        pthread_mutex_lock(&lock);
        while (!is_answered) {
            pthread_cond_wait(&changed, &lock);
        }
        pthread_mutex_unlock(&lock);
        durations[i] = now_ns() - before;
    }
    report("wake", durations, wanted_rounds, now_ns() - start);
    free(durations);
    atomic_store(&status, 0);
    return unused;
}

int wake_start(void (*wake)(void), int rounds) {
    wake_javascript = wake;
    wanted_rounds = (size_t)rounds;
    pthread_t thread;
    return pthread_create(&thread, NULL, run, NULL) == 0 ? pthread_detach(thread) : -1;
}

int wake_status(void) {
    return atomic_load(&status);
}
