/* The common functions of the test programs. */
#pragma once

#include "plue.h"
#include "std.h"

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

__attribute__((visibility("default"))) int check_failures(void);

/* Checks that a call of a function returned PLUE_OK. */
#define CHECK_OK(call) CHECK((call) == PLUE_OK, "%s", plue_get_last_error())

/* Prints the verdict and returns the exit status. */
int check_verdict(const char *name);

/* A test, which is found by its name. */
struct check_test {
    const char *name;
    void (*run)(void);
    struct check_test *next;
};
void check_add(struct check_test *test);
const struct check_test *check_find(const char *name);

/* Defines a test: TEST(start_race) { ... } */
#define TEST(name) \
    static void test_##name(void); \
    __attribute__((constructor)) static void add_##name(void) { \
        static struct check_test test = {#name, test_##name, NULL}; \
        check_add(&test); \
    } \
    static void test_##name(void)

/* Runs the tests with the names, or all if there are none, and detaches and shuts down after each. Returns
 * check_verdict(). */
int check_run(const char *program, char **names);

/* The main function of a program that is run as: program FAKE_SIDECAR test ... */
extern const char *fake_sidecar;
int check_with_sidecar(const char *program, int count, char **arguments);

/* The host suite for both hostings and every runtime. Runs the named parts, such as "basic",
 * "abort" or "stress:8:20000:echo". Returns the number of failures. `config_json` may be NULL. */
int suite_run(const char *config_json, int count, char **parts);

/* Sets the options, which must be valid. Fills in `struct_size`. */
void init_with(plue_options_t options);

/* Sets the options for the sidecar in C with that manner. By default, it may start late. */
void init_manner(const char *manner, plue_options_t options);

/* -1: there is no sidecar. */
int ask_for_process(void);

/* Runs a check in a child of fork(), as daemon() does. */
void in_child(void (*check)(void));

/* Runs a function on a number of threads, and waits for them. */
void on_threads(int count, void *(*run)(void *), void *argument);

/* A limit that is longer than any test. */
enum { FOREVER_MS = 3600000 };

uint64_t now_ns(void);
double ms_since(uint64_t start_ns);
void sleep_us(unsigned microseconds);

bool contains(const char *text, const char *part);

bool is_failure(const char *json, const char *code);

/* Calls a tool, and checks the whole answer. */
void expect_answer(const char *tool, const char *params, const char *expected);
void expect_answer_with(const plue_tool_context_t *context, const char *tool, const char *params,
                        const char *expected);

/* For on_threads(). */
void *call_echo(void *unused);

/* Calls a tool, and checks the code and that the message has `part`. */
void expect_failure(const char *tool, const char *params, const char *code, const char *part);
void expect_failure_with(const plue_tool_context_t *context, const char *tool, const char *params,
                         const char *code, const char *part);

/* A call that another thread aborts once its tool has begun. */
struct aborted_call {
    plue_abort_signal_t *signal;
    const char *file; /* that exists once the tool has begun; NULL: it sends an event */
    atomic_bool has_begun;
    uint64_t aborted_ns;
    double abort_ms;   /* the duration of plue_abort_signal_abort() */
    double settled_ms; /* from then to the return of the call */
};

/* Makes such a call, which must fail with a message that has `part`. */
struct aborted_call call_and_abort(const char *tool, const char *params, const char *file,
                                   const char *part);

/* The thread and the callback for events of an aborted call, which is the argument. */
void *abort_when_begun(void *call);
void note_begin(const char *json, void *call);

/* Calls on separate threads that the tool "hold" holds. */
struct held_calls {
    const char *code; /* with which each must fail, with a message that has `part` */
    const char *part;
    plue_abort_signal_t *signal; /* may be NULL */
    atomic_int begun;
    atomic_int failures; /* that their callbacks were notified of */
    int count;
    pthread_t threads[80];
};
void hold_calls(struct held_calls *calls, int count);
void join_held_calls(struct held_calls *calls);

/* The value after `"key":` in the JSON, as a number; -1 if there is none. */
long number_in(const char *json, const char *key);

/* True if the process exists, and is not a zombie if the system shows that. */
bool is_alive(int process);

void send_signal(int process, int number);

void await_death(int process);

/* These return a figure of a process's memory, such as "VmRSS", the number of this process's open
 * descriptors, and the number of its threads; -1 on systems without /proc. */
long memory_kb(int process, const char *figure);
int open_descriptors(void);
int running_threads(void);
