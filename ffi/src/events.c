/* The queue of events for the host, delivered on the threads that call plue_events_dispatch(). */
#include "events.h"

#include "outcome.h"
#include "platform.h"
#include "plue.h"
#include "text.h"

static struct plue_due *first_waiting PLUE_GUARDED;
static struct plue_due **waiting_end PLUE_GUARDED = &first_waiting;
static size_t waiting PLUE_GUARDED;

/* The time at which plue_above.expire() is due. */
static uint64_t next_expiry_ms PLUE_GUARDED = PLUE_NEVER_MS;

/* The descriptor of plue_events_fd(); -1 until a host requests it, or waits for events. It is never
 * closed, because a host's loop watches it. */
static int alarm_descriptor PLUE_GUARDED = -1;

/* The time of the alarm. */
static uint64_t alarm_ms PLUE_GUARDED = PLUE_NEVER_MS;

static void set_alarm(void) PLUE_LOCKED {
    static const uint64_t now = 1;
    uint64_t at_ms = first_waiting != NULL ? now : next_expiry_ms;
    if (alarm_descriptor >= 0 && at_ms != alarm_ms) {
        alarm_ms = at_ms;
        plue_alarm_set(alarm_descriptor, at_ms);
    }
}

void plue_events_add(struct plue_due *due) {
    if (due->is_being_told) {
        due->has_more = true;
        return;
    }
    if (due->is_waiting) {
        return;
    }
    bool was_empty = first_waiting == NULL;
    due->is_waiting = true;
    due->next = NULL;
    *waiting_end = due;
    waiting_end = &due->next;
    waiting++;
    if (was_empty) {
        set_alarm();
    }
}

void plue_events_expect(uint64_t at_ms) {
    if (at_ms == PLUE_NEVER_MS || (next_expiry_ms != PLUE_NEVER_MS && next_expiry_ms <= at_ms)) {
        return;
    }
    next_expiry_ms = at_ms;
    if (first_waiting == NULL) {
        set_alarm();
    }
}

bool plue_events_are_waiting(void) {
    return first_waiting != NULL;
}

void plue_events_after_fork(void) {
    if (alarm_descriptor >= 0) {
        plue_alarm_renew(alarm_descriptor);
        alarm_ms = PLUE_NEVER_MS;
        set_alarm();
    }
}

bool plue_events_end(struct plue_due *due) {
    due->is_over = true;
    return !due->is_waiting && !due->is_being_told;
}

/* The lock is released during the callback. */
static void tell(struct plue_due *due, int *told) PLUE_LOCKED {
    due->is_waiting = false;
    due->is_being_told = true;
    due->has_more = false;
    plue_unlock();
    due->tell(due, told);
    plue_lock();
    due->is_being_told = false;
    if (due->is_over) {
        plue_unlock();
        due->free(due);
        plue_lock();
    } else if (due->has_more) {
        plue_events_add(due);
    }
}

static struct plue_due *take_due(void) PLUE_LOCKED {
    struct plue_due *due = first_waiting;
    if (due != NULL) {
        first_waiting = due->next;
        if (first_waiting == NULL) {
            waiting_end = &first_waiting;
        }
        waiting--;
    }
    return due;
}

void plue_events_tell(struct plue_due *due, int *told) {
    plue_lock();
    tell(due, told);
    plue_unlock();
}

/* Reports the events that wait now. Later events wait for the next call, so that a host's loop can
 * do other work. Returns the number of callbacks. */
static int tell_all(void) PLUE_UNLOCKED {
    int told = 0;
    plue_lock();
    if (next_expiry_ms != PLUE_NEVER_MS && plue_now_ms() >= next_expiry_ms) {
        next_expiry_ms = plue_above.expire(plue_now_ms());
    }
    for (size_t left = waiting; left > 0; left--) {
        struct plue_due *due = take_due();
        if (due == NULL) {
            break; /* another thread took the events */
        }
        tell(due, &told);
    }
    if (first_waiting != NULL) {
        alarm_ms = PLUE_NEVER_MS; /* set again, because EPOLLET reports only changes */
    }
    set_alarm();
    plue_unlock();
    return told;
}

/* Returns the descriptor, or -1 with errno. */
static int open_alarm(void) PLUE_UNLOCKED {
    plue_lock();
    if (alarm_descriptor < 0) {
        alarm_descriptor = plue_alarm_new();
        set_alarm();
    }
    int descriptor = alarm_descriptor;
    plue_unlock();
    return descriptor;
}

static int fail_without_descriptor(void) {
    return plue_outcome_fail(plue_outcome_failure("runtime_unavailable", plue_error_text(errno)));
}

int plue_events_fd(void) {
    if (plue_is_forked()) {
        return plue_outcome_fail(plue_forked_failure());
    }
    int descriptor = open_alarm();
    if (descriptor < 0) {
        return fail_without_descriptor();
    }
    plue_outcome_clear();
    return descriptor;
}

/* Waits for an event to report. Returns false with errno. */
static bool wait_for_events(int timeout_ms) PLUE_UNLOCKED {
    struct pollfd descriptor = {.fd = open_alarm(), .events = POLLIN};
    if (descriptor.fd < 0) {
        return false;
    }
    uint64_t until = timeout_ms < 0 ? PLUE_NEVER_MS : plue_now_ms() + (uint64_t)timeout_ms;
    int ready;
    do {
        ready = poll(&descriptor, 1, plue_ms_until(until));
    } while (ready < 0 && errno == EINTR);
    return ready >= 0;
}

int plue_events_dispatch(int timeout_ms) {
    PLUE_WITHOUT_CANCELLATION;
    if (plue_is_forked()) {
        return plue_outcome_fail(plue_forked_failure());
    }
    int told = tell_all();
    if (told == 0 && timeout_ms != 0) {
        if (!wait_for_events(timeout_ms)) {
            return fail_without_descriptor();
        }
        told = tell_all();
    }
    plue_outcome_clear();
    return told;
}

/* A callback that the host has set. */
struct watch {
    struct plue_due due;
    void (*changed)(void *user_data);
    void (*line)(const char *text, void *user_data);
    void *user_data;
    bool is_called;  /* the thread in `due.tell` is in the callback */
    bool is_awaited; /* another thread waits for the end of the callback */
    bool is_stuck;   /* the callback waits for the end of the other watch's callback */
    unsigned calls;
    pthread_t caller;
};

/* Calls the current callback, with the text if the callback takes log lines. The lock is released
 * during the callback. Returns false if no callback is set. */
static bool call_watch(struct watch *watch, const char *text) PLUE_LOCKED {
    void (*changed)(void *) = watch->changed;
    void (*line)(const char *, void *) = watch->line;
    void *user_data = watch->user_data;
    if (changed == NULL && line == NULL) {
        return false;
    }
    watch->is_called = true;
    watch->calls++;
    watch->caller = pthread_self();
    plue_unlock();
    if (line != NULL) {
        line(text, user_data);
    } else {
        changed(user_data);
    }
    plue_lock();
    watch->is_called = false;
    if (watch->is_awaited) {
        watch->is_awaited = false;
        plue_change();
    }
    return true;
}

static bool is_called_here(const struct watch *watch) PLUE_LOCKED {
    return watch->is_called && pthread_equal(watch->caller, pthread_self());
}

/* Waits until no other thread is in the replaced callback. If two callbacks replace each other at
 * the same time, the second call does not wait, because that would be a deadlock. */
static void await_watch(struct watch *watch, struct watch *other) PLUE_LOCKED {
    unsigned call = watch->calls;
    bool is_here = is_called_here(watch);
    bool is_in_other = is_called_here(other);
    other->is_stuck = other->is_stuck || is_in_other;
    while (watch->is_called && watch->calls == call && !is_here &&
           !(is_in_other && watch->is_stuck)) {
        watch->is_awaited = true;
        plue_wait_for_change(PLUE_NEVER_MS);
    }
    other->is_stuck = other->is_stuck && !is_in_other;
}

static void tell_list_changed(struct plue_due *due, int *told) PLUE_UNLOCKED;
static struct watch list_watch PLUE_GUARDED = {.due = {.tell = tell_list_changed}};
static void tell_lines(struct plue_due *due, int *told) PLUE_UNLOCKED;
static struct watch log_watch PLUE_GUARDED = {.due = {.tell = tell_lines}};

static void tell_list_changed(struct plue_due *due, int *told) PLUE_UNLOCKED {
    (void)due;
    plue_lock();
    *told += call_watch(&list_watch, NULL);
    plue_unlock();
}

void plue_events_list_changed(void) {
    if (list_watch.changed != NULL) {
        plue_events_add(&list_watch.due);
    }
}

void plue_set_list_changed(void (*callback)(void *user_data), void *user_data) {
    if (plue_is_forked()) {
        return;
    }
    plue_lock();
    list_watch.changed = callback;
    list_watch.user_data = user_data;
    await_watch(&list_watch, &log_watch);
    plue_unlock();
}

/* A line that waits. */
struct line {
    struct line *next;
    size_t size;
    char text[];
};

/* Lines that wait for a host that does not dispatch are bounded; the newest are dropped. */
enum { MAX_LINES_SIZE = 1 << 20 };

static struct {
    struct line *first;
    struct line **end;
    size_t size;
    size_t dropped;
} lines PLUE_GUARDED = {.end = &lines.first};

/* Removes and returns the waiting lines, and a line with the number of dropped lines. */
static struct line *take_lines(void) PLUE_LOCKED {
    enum { SIZE = 80 };
    struct line *note = lines.dropped == 0 ? NULL : calloc(1, sizeof *note + SIZE);
    if (note != NULL) {
        snprintf(note->text, SIZE, "plue: %zu lines of the log were dropped", lines.dropped);
        lines.dropped = 0;
    }
    *lines.end = note;
    struct line *taken = lines.first;
    lines.first = NULL;
    lines.end = &lines.first;
    lines.size = 0;
    return taken;
}

static void print_lines(struct line *line) PLUE_UNLOCKED {
    while (line != NULL) {
        struct line *next = line->next;
        plue_print_line(line->text, strlen(line->text));
        free(line);
        line = next;
    }
}

static void tell_lines(struct plue_due *due, int *told) PLUE_UNLOCKED {
    (void)due;
    plue_lock();
    struct line *line = take_lines();
    while (line != NULL && call_watch(&log_watch, line->text)) {
        struct line *next = line->next;
        ++*told;
        free(line);
        line = next;
    }
    plue_unlock();
    print_lines(line); /* the host removed its callback meanwhile */
}

void plue_events_print_log(void) {
    plue_lock();
    struct line *line = take_lines();
    plue_unlock();
    print_lines(line);
}

/* True if the host has a callback for log lines. Read without the lock for each piece of output. */
static atomic_bool takes_log;

bool plue_events_take_log(void) {
    return atomic_load(&takes_log);
}

static void add_line(struct line *line) PLUE_LOCKED {
    *lines.end = line;
    lines.end = &line->next;
    lines.size += line->size;
}

bool plue_events_log(const char *text, size_t length) {
    if (!plue_events_take_log()) {
        return false;
    }
    char *repaired = plue_text_repair_start(text, length, MAX_LINES_SIZE); /* a longer line is dropped */
    size_t size = repaired == NULL ? 0 : sizeof(struct line) + strlen(repaired) + 1;
    struct line *line = repaired == NULL ? NULL : malloc(size);
    if (line != NULL) {
        line->next = NULL;
        line->size = size;
        memcpy(line->text, repaired, strlen(repaired) + 1);
    }
    free(repaired);
    plue_lock();
    bool is_taken = log_watch.line != NULL;
    bool fits = line != NULL && lines.size + size <= MAX_LINES_SIZE;
    if (is_taken && fits) {
        add_line(line);
        line = NULL;
    } else if (is_taken) {
        lines.dropped++;
    }
    if (is_taken) {
        plue_events_add(&log_watch.due);
    }
    plue_unlock();
    free(line);
    return is_taken;
}

void plue_set_log(void (*callback)(const char *text, void *user_data), void *user_data) {
    if (plue_is_forked()) {
        return;
    }
    plue_lock();
    log_watch.line = callback;
    log_watch.user_data = user_data;
    atomic_store(&takes_log, callback != NULL);
    await_watch(&log_watch, &list_watch);
    plue_unlock();
    if (callback == NULL) {
        plue_events_print_log();
    }
}
