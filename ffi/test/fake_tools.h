/* A tools side written in C, so that the sanitizers and valgrind see both ends. It has the tools of
 * README.md, and one thread. */
#pragma once

#include "std.h"

struct fake_tools {
    void (*send)(const uint8_t *frame, size_t length);
    struct fake_call *sleeping; /* those that are held, too */
    uint64_t calls; /* how many EXEC frames came */
    bool is_mute;   /* it answers no PING */
    bool is_wedged; /* its tool "hold" never gives its thread back */
    bool sends_half; /* it answers "echo" with half a frame */
    int ended;      /* a SHUTDOWN frame came */
    uint64_t configuration; /* the newest one's number */
    int version;    /* what HELLO claims; 0: there is no HELLO */
};

/* Acts on whole frames. Returns how many bytes were consumed. */
size_t fake_tools_feed(struct fake_tools *tools, const uint8_t *bytes, size_t length);

/* Ends the sleeps that are over. Returns the milliseconds until the next one is, or -1. */
int fake_tools_tick(struct fake_tools *tools);

/* Forgets all that sleeps. */
void fake_tools_clear(struct fake_tools *tools);

/* Sends one frame. */
void fake_tools_frame(struct fake_tools *tools, int type, int flags, uint64_t id,
                      const void *payload, size_t length);
