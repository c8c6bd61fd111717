#include "output.h"

#include "events.h"
#include "platform.h"
#include "text.h"

enum {
    MAX_READS = 5, /* the content of a full pipe and its end; then other work */
    MAX_WRITES = 17, /* all waiting bytes, and the line about dropped bytes */
    LINES_SAID = 8,
    BYTES_SAID = 900,
};

int plue_output_open(struct plue_output *output) {
    int pair[2];
    output->from = -1;
    output->to = -1;
    if (plue_pipe(pair) != 0) {
        return -1;
    }
    output->from = pair[0];
    output->to = plue_open_standard_error();
    return pair[1];
}

void plue_output_close(struct plue_output *output) {
    plue_close(&output->from);
    plue_close(&output->to);
}

/* Stores the last bytes of the output. */
static void keep(struct plue_output *output, const char *bytes, size_t length) {
    if (length > PLUE_OUTPUT_KEPT) {
        bytes += length - PLUE_OUTPUT_KEPT;
        length = PLUE_OUTPUT_KEPT;
    }
    size_t room = PLUE_OUTPUT_KEPT - output->kept;
    if (length > room) {
        size_t surplus = length - room;
        memmove(output->last, output->last + surplus, output->kept - surplus);
        output->kept -= surplus;
    }
    for (size_t i = 0; i < length; i++) {
        /* The text is later used as a string. */
        output->last[output->kept++] = bytes[i] == '\0' ? ' ' : bytes[i];
    }
}

static void enqueue(struct plue_output *output, const char *bytes, size_t length) {
    size_t room = PLUE_OUTPUT_WAITING - output->waiting;
    size_t fitting = output->to < 0 ? 0 : length < room ? length : room;
    memcpy(output->bytes + output->waiting, bytes, fitting);
    output->waiting += fitting;
    output->dropped += output->to < 0 ? 0 : length - fitting;
}

/* Passes the current line to the host, or prints it if the host has removed its callback. */
static void log_line(struct plue_output *output) {
    if (!plue_events_log(output->line, output->line_length)) {
        enqueue(output, output->line, output->line_length);
        enqueue(output, "\n", 1);
    }
    output->line_length = 0;
}

/* Passes the output to the host line by line. Returns false without a callback. */
static bool log_bytes(struct plue_output *output, const char *bytes, size_t length) {
    if (!plue_events_take_log()) {
        if (output->line_length > 0) {
            enqueue(output, output->line, output->line_length);
            output->line_length = 0;
        }
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == '\n' || output->line_length == PLUE_OUTPUT_LINE) {
            log_line(output);
        }
        if (bytes[i] != '\n') {
            output->line[output->line_length++] = bytes[i];
        }
    }
    return true;
}

void plue_output_read(struct plue_output *output) {
    char bytes[16 << 10];
    ssize_t length;
    for (int reads = 0; reads < MAX_READS && output->from >= 0; reads++) {
        plue_output_write(output); /* makes space, so that fewer bytes are dropped */
        length = read(output->from, bytes, sizeof bytes);
        if (length > 0) {
            keep(output, bytes, (size_t)length);
            if (!log_bytes(output, bytes, (size_t)length)) {
                enqueue(output, bytes, (size_t)length);
            }
            if ((size_t)length < sizeof bytes) {
                return;
            }
        } else if (length == 0 || (errno != EINTR && errno != EAGAIN)) {
            if (output->line_length > 0) {
                log_line(output);
            }
            plue_close(&output->from);
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

bool plue_output_is_waiting(const struct plue_output *output) {
    return output->to >= 0 && (output->waiting > 0 || output->dropped > 0);
}

void plue_output_write(struct plue_output *output) {
    struct pollfd wait = {output->to, POLLOUT, 0};
    for (int i = 0; i < MAX_WRITES && plue_output_is_waiting(output) && poll(&wait, 1, 0) > 0; i++) {
        if (output->waiting == 0) {
            output->waiting = (size_t)snprintf(
                output->bytes, sizeof output->bytes,
                "plue: %" PRIu64 " bytes of the tools' output were dropped here\n", output->dropped);
            output->dropped = 0;
        }
        ssize_t written = plue_write_error(output->to, output->bytes, output->waiting);
        if (written < 0 && errno != EINTR && errno != EAGAIN) {
            plue_close(&output->to);
            output->waiting = 0;
        } else if (written > 0) {
            output->waiting -= (size_t)written;
            memmove(output->bytes, output->bytes + written, output->waiting);
        }
    }
}

void plue_output_append_last(const struct plue_output *output, char *text, size_t size) {
    const char *end = output->last + output->kept;
    while (end > output->last && (end[-1] == '\n' || end[-1] == ' ')) {
        end--;
    }
    const char *start = end;
    for (int lines = 0; start > output->last && end - start < BYTES_SAID; start--) {
        lines += start[-1] == '\n';
        if (lines == LINES_SAID) {
            break;
        }
    }
    size_t length = strlen(text);
    if (start < end) {
        snprintf(text + length, size - length, ": %.*s", (int)(end - start), start);
    }
}
