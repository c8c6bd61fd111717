/** The system's duration of a round trip, without plue: raw condvar|socketpair ROUNDS */
#include "measure.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ------------------------------------------------ two threads, a mutex, and a condition each */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER;
static pthread_cond_t answered = PTHREAD_COND_INITIALIZER;
static bool is_asked;
static bool is_answered;

static void *answer_by_condition(void *rounds) {
    for (size_t i = 0; i < *(size_t *)rounds; i++) {
        pthread_mutex_lock(&lock);
        while (!is_asked) {
            pthread_cond_wait(&asked, &lock);
        }
        is_asked = false;
        is_answered = true;
        pthread_cond_signal(&answered);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void ask_by_condition(void) {
    pthread_mutex_lock(&lock);
    is_asked = true;
    is_answered = false;
    pthread_cond_signal(&asked);
    while (!is_answered) {
        pthread_cond_wait(&answered, &lock);
    }
    pthread_mutex_unlock(&lock);
}

/* --------------------------------------------------------- two processes, 64 bytes each way */

enum { MESSAGE = 64 };
static int pair[2];

static void answer_by_socket(void) {
    char bytes[MESSAGE];
    while (read(pair[1], bytes, sizeof bytes) == MESSAGE) {
        if (write(pair[1], bytes, sizeof bytes) != MESSAGE) {
            break;
        }
    }
    _exit(0);
}

static void ask_by_socket(void) {
    char bytes[MESSAGE] = {0};
    if (write(pair[0], bytes, sizeof bytes) != MESSAGE || read(pair[0], bytes, sizeof bytes) < 0) {
        abort();
    }
}

/* ------------------------------------------------------------------------------------------- */

static void measure(const char *name, void (*ask)(void), size_t rounds) {
    uint64_t *durations = malloc(rounds * sizeof *durations);
    uint64_t start = now_ns();
    for (size_t i = 0; i < rounds; i++) {
        uint64_t before = now_ns();
        ask();
        durations[i] = now_ns() - before;
    }
    report(name, durations, rounds, now_ns() - start);
    free(durations);
}

int main(int count, char **arguments) {
    size_t rounds = count > 2 ? (size_t)atol(arguments[2]) : 50000;
    if (count > 1 && strcmp(arguments[1], "condvar") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, answer_by_condition, &rounds);
        measure("condvar", ask_by_condition, rounds);
        pthread_join(thread, NULL);
        return 0;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
        return 1;
    }
    pid_t child = fork();
    if (child == 0) {
        close(pair[0]);
        answer_by_socket();
    }
    close(pair[1]);
    measure("socketpair", ask_by_socket, rounds);
    close(pair[0]);
    waitpid(child, NULL, 0);
    return 0;
}
