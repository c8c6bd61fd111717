/** Shared code of the benchmarks: durations and their summaries. */
#ifndef MEASURE_H
#define MEASURE_H

#include <stddef.h>
#include <stdint.h>

uint64_t now_ns(void);

/* Prints one line of JSON about `count` durations, which took `elapsed_ns` in all. Sorts them. */
void report(const char *name, uint64_t *durations_ns, size_t count, uint64_t elapsed_ns);

#endif
