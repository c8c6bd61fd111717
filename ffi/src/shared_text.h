/* A text that threads read while another one replaces it. It is counted, and freed with the last
 * reference. It may be large: none of this needs a lock, but for whoever finds the text and is to
 * retain it before it is replaced. */
#ifndef PLUE_SHARED_TEXT_H
#define PLUE_SHARED_TEXT_H

#include <stdatomic.h>
#include <stddef.h>

struct plue_shared_text {
    atomic_size_t references;
    size_t length;
    char bytes[];
};

/* Copies the bytes, with one reference. NULL when out of memory. */
struct plue_shared_text *plue_shared_text_new(const void *bytes, size_t length);

struct plue_shared_text *plue_shared_text_retain(struct plue_shared_text *text);

/* NULL is fine. */
void plue_shared_text_release(struct plue_shared_text *text);

#endif
