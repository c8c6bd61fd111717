/* The queue of what is told to the host on the threads that call plue_events_dispatch(). */
#include "events.h"

#include "outcome.h"
#include "platform.h"
#include "plue.h"
#include "submit.h"
#include "text.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct plue_due *first_waiting PLUE_GUARDED;
static struct plue_due **waiting_end PLUE_GUARDED = &first_waiting;
static size_t waiting PLUE_GUARDED;

/* When plue_submissions_expire() is to be called. */
static uint64_t next_expiry_ms PLUE_GUARDED = PLUE_NEVER_MS;

/* The descriptor of plue_events_fd(); -1 until a host asks for it, or waits. It lives as long as the
 * process, because a host's loop watches it. */
static int alarm_descriptor PLUE_GUARDED = -1;

/* ---------------------------------------------------------------------------------- the queue */

/* What the alarm is set to. */
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

static void begin_to_tell(struct plue_due *due) PLUE_LOCKED {
    due->is_waiting = false;
    due->is_being_told = true;
    due->has_more = false;
}

static void end_to_tell(struct plue_due *due) PLUE_LOCKED {
    due->is_being_told = false;
    if (due->has_more) {
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
        begin_to_tell(due);
    }
    return due;
}

bool plue_events_tell(struct plue_due *due, int *told) {
    plue_lock();
    begin_to_tell(due);
    plue_unlock();
    bool is_there = due->tell(due, told);
    if (is_there) {
        plue_lock();
        end_to_tell(due);
        plue_unlock();
    }
    return is_there;
}

/* Tells what waits now. What comes meanwhile is left for the next time, so that a host's loop gets
 * its turn. Returns how often the host was called. */
static int tell_all(void) PLUE_UNLOCKED {
    int told = 0;
    plue_lock();
    if (next_expiry_ms != PLUE_NEVER_MS && plue_now_ms() >= next_expiry_ms) {
        next_expiry_ms = plue_submissions_expire(plue_now_ms());
    }
    for (size_t left = waiting; left > 0; left--) {
        struct plue_due *due = take_due();
        if (due == NULL) {
            break; /* another thread was quicker */
        }
        plue_unlock();
        bool is_there = due->tell(due, &told);
        plue_lock();
        if (is_there) {
            end_to_tell(due);
        }
    }
    set_alarm();
    plue_unlock();
    return told;
}

/* ------------------------------------------------------------------------------ the host's side */

static int fail_events(struct plue_outcome outcome) {
    plue_free_json(plue_outcome_answer(outcome));
    return -1;
}

/* The descriptor, or -1 with errno. */
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

static struct plue_outcome no_descriptor(int error) {
    return plue_outcome_failure("runtime_unavailable", strerror(error));
}

int plue_events_fd(void) {
    if (plue_is_forked()) {
        return fail_events(plue_outcome_failure("runtime_unavailable", plue_forked_message));
    }
    int descriptor = open_alarm();
    if (descriptor < 0) {
        return fail_events(no_descriptor(errno));
    }
    plue_outcome_clear();
    return descriptor;
}

/* Waits until something waits to be told. Returns false with errno. */
static bool wait_for_events(int timeout_ms) PLUE_UNLOCKED {
    struct pollfd descriptor = {.fd = open_alarm(), .events = POLLIN};
    if (descriptor.fd < 0) {
        return false;
    }
    uint64_t until = plue_now_ms() + (uint64_t)timeout_ms;
    int ready;
    do {
        uint64_t now = plue_now_ms();
        int left = timeout_ms < 0 ? -1 : until > now ? (int)(until - now) : 0;
        ready = poll(&descriptor, 1, left);
    } while (ready < 0 && errno == EINTR);
    return ready >= 0;
}

int plue_events_dispatch(int timeout_ms) {
    if (plue_is_forked()) {
        return fail_events(plue_outcome_failure("runtime_unavailable", plue_forked_message));
    }
    int cancellation = plue_cancellation_off();
    int told = tell_all();
    if (told == 0 && timeout_ms != 0) {
        if (wait_for_events(timeout_ms)) {
            told = tell_all();
        } else {
            told = fail_events(no_descriptor(errno));
        }
    }
    if (told >= 0) {
        plue_outcome_clear();
    }
    plue_cancellation_restore(cancellation);
    return told;
}

/* ------------------------------------------------------------------------- the list, and the log */

static struct {
    struct plue_due due;
    void (*callback)(void *user_data);
    void *user_data;
} list_watch PLUE_GUARDED;

static bool tell_list_changed(struct plue_due *due, int *told) PLUE_UNLOCKED {
    (void)due;
    plue_lock();
    void (*callback)(void *) = list_watch.callback;
    void *user_data = list_watch.user_data;
    plue_unlock();
    if (callback != NULL) {
        callback(user_data);
        ++*told;
    }
    return true;
}

void plue_events_list_changed(void) {
    if (list_watch.callback != NULL) {
        plue_events_add(&list_watch.due);
    }
}

void plue_set_list_changed(void (*callback)(void *user_data), void *user_data) {
    if (plue_is_forked()) {
        return;
    }
    plue_lock();
    list_watch.due.tell = tell_list_changed;
    list_watch.callback = callback;
    list_watch.user_data = user_data;
    plue_unlock();
}

/* A line that waits. */
struct line {
    struct line *next;
    char text[];
};

/* Lines that wait for a host that does not dispatch are bounded; the newest are dropped. */
enum { MAX_LINES_SIZE = 1 << 20 };

static struct {
    struct plue_due due;
    void (*callback)(const char *text, void *user_data);
    void *user_data;
    struct line *first;
    struct line **end;
    size_t size;
    size_t dropped;
} log_watch PLUE_GUARDED = {.end = &log_watch.first};

static bool tell_lines(struct plue_due *due, int *told) PLUE_UNLOCKED {
    (void)due;
    plue_lock();
    struct line *lines = log_watch.first;
    void (*callback)(const char *, void *) = log_watch.callback;
    void *user_data = log_watch.user_data;
    size_t dropped = log_watch.dropped;
    log_watch.first = NULL;
    log_watch.end = &log_watch.first;
    log_watch.size = 0;
    log_watch.dropped = 0;
    plue_unlock();
    while (lines != NULL) {
        struct line *line = lines;
        lines = line->next;
        if (callback != NULL) {
            callback(line->text, user_data);
            ++*told;
        }
        free(line);
    }
    if (dropped > 0 && callback != NULL) {
        char text[80];
        snprintf(text, sizeof text, "plue: %zu lines of the log were dropped", dropped);
        callback(text, user_data);
        ++*told;
    }
    return true;
}

/* Whether the host takes the log: asked without the lock for each piece of what tools print. */
static atomic_bool takes_log;

bool plue_events_take_log(void) {
    return atomic_load(&takes_log);
}

static void add_line(struct line *line, size_t size) PLUE_LOCKED {
    *log_watch.end = line;
    log_watch.end = &line->next;
    log_watch.size += size;
    plue_events_add(&log_watch.due);
}

bool plue_events_log(const char *text, size_t length) {
    if (!plue_events_take_log()) {
        return false;
    }
    char *repaired = plue_text_repair(text, length);
    size_t size = repaired == NULL ? 0 : sizeof(struct line) + strlen(repaired) + 1;
    struct line *line = repaired == NULL ? NULL : malloc(size);
    if (line != NULL) {
        line->next = NULL;
        memcpy(line->text, repaired, strlen(repaired) + 1);
    }
    free(repaired);
    plue_lock();
    bool fits = line != NULL && log_watch.size + size <= MAX_LINES_SIZE;
    if (fits) {
        add_line(line, size);
    } else {
        log_watch.dropped++;
        plue_events_add(&log_watch.due);
    }
    plue_unlock();
    if (!fits) {
        free(line);
    }
    return true;
}

void plue_set_log(void (*callback)(const char *text, void *user_data), void *user_data) {
    if (plue_is_forked()) {
        return;
    }
    plue_lock();
    log_watch.due.tell = tell_lines;
    log_watch.callback = callback;
    log_watch.user_data = user_data;
    atomic_store(&takes_log, callback != NULL);
    plue_unlock();
}
