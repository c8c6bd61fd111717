/* What the test programs share. */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Counts a failure and prints it, with `...` as for printf(). */
#define CHECK(condition, ...) \
    do { \
        if (!(condition)) { \
            check_failed(__FILE__, __LINE__, #condition, __VA_ARGS__); \
        } \
    } while (0)

#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
void check_failed(const char *file, int line, const char *condition, const char *format, ...);

int check_failures(void);

/* Prints the verdict and returns the exit status. */
int check_verdict(const char *name);

/* A time that is over before any test is: what has it as its limit must end by something else. */
enum { FOREVER_MS = 3600000 };

uint64_t now_ns(void);
double ms_since(uint64_t start_ns);
void sleep_us(unsigned microseconds);

bool contains(const char *text, const char *part);

/* Says whether `json` is a failure with that code. */
bool is_failure(const char *json, const char *code);

/* Calls a tool without a context, and checks the whole answer. */
void expect_answer(const char *tool, const char *params, const char *expected);

/* Calls a tool without a context, and checks the code and that the message has `part`. */
void expect_failure(const char *tool, const char *params, const char *code, const char *part);

/* The value after `"key":` in the JSON, as a number; -1 if there is none. */
long number_in(const char *json, const char *key);

/* Whether the process exists, and is no zombie where that can be told. */
bool is_alive(int process);

/* Sends a signal to that process. -1, where no process was found, would be every process. */
void send_signal(int process, int number);

/* Waits until it does not. */
void await_death(int process);

/* The resident memory of this process in kB, the number of its open descriptors, of its threads; -1
 * where there is no /proc. */
long resident_kb(void);
int open_descriptors(void);
int running_threads(void);

#endif
