#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

void report(const char *name, uint64_t *durations_ns, size_t count, uint64_t elapsed_ns) {
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += (double)durations_ns[i];
    }
    qsort(durations_ns, count, sizeof *durations_ns, compare);
    printf("{\"name\":\"%s\",\"rounds\":%zu,\"meanUs\":%.2f,\"p50Us\":%.2f,\"p99Us\":%.2f,"
           "\"perSecond\":%.0f}\n",
           name, count, sum / (double)count / 1e3, (double)durations_ns[count / 2] / 1e3,
           (double)durations_ns[count * 99 / 100] / 1e3,
           (double)count / ((double)elapsed_ns / 1e9));
    fflush(stdout);
}
