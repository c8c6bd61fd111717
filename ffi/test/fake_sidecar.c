/* A sidecar written in C: fake_sidecar [manner]. A manner makes it misbehave, for tests. */
#include "fake_tools.h"

#include <signal.h>

enum { SOCKET = 3 };

static void send_all(const uint8_t *bytes, size_t length) {
    while (length > 0) {
        ssize_t written = write(SOCKET, bytes, length);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            _exit(0); /* the host is gone */
        }
        bytes += written;
        length -= (size_t)written;
    }
}

/* Serves until the stream ends. */
static void serve(struct fake_tools *tools) {
    size_t size = 1 << 16;
    size_t used = 0;
    uint8_t *bytes = malloc(size);
    while (!tools->ended) {
        struct pollfd wait = {SOCKET, POLLIN, 0};
        if (poll(&wait, 1, fake_tools_tick(tools)) <= 0) {
            continue;
        }
        ssize_t got = read(SOCKET, bytes + used, size - used);
        if (got <= 0) {
            break;
        }
        used += (size_t)got;
        size_t done = fake_tools_feed(tools, bytes, used);
        memmove(bytes, bytes + done, used - done);
        used -= done;
        if (used == size) {
            size *= 2;
            bytes = realloc(bytes, size);
        }
    }
    fake_tools_clear(tools);
    free(bytes);
}

static void wait_for_host(void) {
    char bytes[4096];
    while (read(SOCKET, bytes, sizeof bytes) > 0) {
    }
}

/* Writes without end: to the standard output, and frames about calls that do not exist. */
static void babble(struct fake_tools *tools) {
    char text[1000];
    memset(text, 'b', sizeof text);
    printf("babble on the standard output\n");
    fflush(stdout);
    for (int i = 0; i < 20000; i++) {
        fake_tools_frame(tools, 17, 0, 1000000000u + (uint64_t)i, text, sizeof text);
        fake_tools_frame(tools, 16, 0, 1000000000u + (uint64_t)i, text, sizeof text);
        fake_tools_frame(tools, 18, 0, 77, text, sizeof text);
    }
}

int main(int count, char **arguments) {
    const char *manner = count > 1 ? arguments[1] : "";
    struct fake_tools tools = {.send = send_all, .version = 2};
    if (strcmp(manner, "exit") == 0) {
        return 5;
    }
    if (strcmp(manner, "garbage") == 0) {
        send_all((const uint8_t *)"GET / HTTP/1.1\r\nHost: example\r\n\r\n", 33);
        wait_for_host();
        return 0;
    }
    if (strcmp(manner, "unknown_frame") == 0) {
        fake_tools_frame(&tools, 99, 0, 0, NULL, 0);
        wait_for_host();
        return 0;
    }
    if (strcmp(manner, "short_result") == 0) {
        fake_tools_frame(&tools, 16, 1, 1, "\xff\xff\xff\xff", 4);
        wait_for_host();
        return 0;
    }
    if (strcmp(manner, "close") == 0) {
        close(SOCKET);
        sleep(60);
        return 0;
    }
    if (strcmp(manner, "grandchild") == 0 && fork() == 0) {
        /* The child holds the socket, and outlives its parent unless the whole group is killed. */
        sleep(60);
        return 0;
    }
    if (strcmp(manner, "silent") == 0) {
        tools.version = 0;
    } else if (strcmp(manner, "old") == 0) {
        tools.version = 9;
    } else if (strcmp(manner, "mute") == 0) {
        tools.is_mute = true;
    } else if (strcmp(manner, "wedged") == 0) {
        tools.is_wedged = true;
    } else if (strcmp(manner, "babble") == 0) {
        babble(&tools);
    }
    tools.sends_half = strcmp(manner, "half") == 0;
    serve(&tools);
    if (strcmp(manner, "stay") == 0) {
        sleep(60);
    }
    return 0;
}
