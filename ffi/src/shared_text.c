#include "shared_text.h"

#include <stdlib.h>
#include <string.h>

struct plue_shared_text *plue_shared_text_new(const void *bytes, size_t length) {
    struct plue_shared_text *text = malloc(sizeof *text + length);
    if (text != NULL) {
        atomic_init(&text->references, 1);
        text->length = length;
        memcpy(text->bytes, bytes, length);
    }
    return text;
}

struct plue_shared_text *plue_shared_text_retain(struct plue_shared_text *text) {
    atomic_fetch_add(&text->references, 1);
    return text;
}

void plue_shared_text_release(struct plue_shared_text *text) {
    if (text != NULL && atomic_fetch_sub(&text->references, 1) == 1) {
        free(text);
    }
}
