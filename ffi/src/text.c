#include "text.h"

#include "platform.h"

/* Skips ASCII eight bytes at a time, because nearly all text is ASCII. */
static size_t skip_ascii(const unsigned char *text, size_t at, size_t length) {
    while (length - at >= 8) {
        uint64_t word;
        memcpy(&word, text + at, sizeof word);
        if (word & UINT64_C(0x8080808080808080)) {
            break;
        }
        at += 8;
    }
    while (at < length && text[at] < 0x80) {
        at++;
    }
    return at;
}

static bool is_continuation(unsigned char byte) {
    return (byte & 0xC0) == 0x80;
}

/* Returns the length of the well-formed sequence of several bytes at `text`, or 0. The bounds of
 * the second byte are those of table 3-7 of the Unicode standard. */
static size_t sequence_length(const unsigned char *text, size_t available) {
    unsigned char first = text[0];
    size_t length;
    unsigned char low = 0x80;
    unsigned char high = 0xBF;
    if (first >= 0xC2 && first <= 0xDF) {
        length = 2;
    } else if (first >= 0xE0 && first <= 0xEF) {
        length = 3;
        low = first == 0xE0 ? 0xA0 : 0x80;
        high = first == 0xED ? 0x9F : 0xBF;
    } else if (first >= 0xF0 && first <= 0xF4) {
        length = 4;
        low = first == 0xF0 ? 0x90 : 0x80;
        high = first == 0xF4 ? 0x8F : 0xBF;
    } else {
        return 0;
    }
    if (available < length || text[1] < low || text[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < length; i++) {
        if (!is_continuation(text[i])) {
            return 0;
        }
    }
    return length;
}

bool plue_text_is_utf8(const char *text, size_t length) {
    const unsigned char *bytes = (const unsigned char *)text;
    size_t at = skip_ascii(bytes, 0, length);
    while (at < length) {
        size_t step = sequence_length(bytes + at, length - at);
        if (step == 0) {
            return false;
        }
        at = skip_ascii(bytes, at + step, length);
    }
    return true;
}

bool plue_text_is_string(const void *bytes, size_t length) {
    return plue_text_is_utf8(bytes, length) && memchr(bytes, '\0', length) == NULL;
}

char *plue_text_copy(const void *bytes, size_t length) {
    char *copy = malloc(length + 1);
    if (copy != NULL) {
        memcpy(copy, bytes, length);
        copy[length] = '\0';
    }
    return copy;
}

char *plue_text_repair(const void *text, size_t length) {
    static const char replacement[] = "\xEF\xBF\xBD";
    const unsigned char *bytes = text;
    if (plue_text_is_string(text, length)) {
        return plue_text_copy(text, length);
    }
    char *copy = malloc(length * (sizeof replacement - 1) + 1);
    if (copy == NULL) {
        return NULL;
    }
    size_t at = 0;
    size_t used = 0;
    while (at < length) {
        size_t step = bytes[at] < 0x80 ? bytes[at] != '\0'
                                       : sequence_length(bytes + at, length - at);
        if (step > 0) {
            memcpy(copy + used, bytes + at, step);
            at += step;
            used += step;
            continue;
        }
        memcpy(copy + used, replacement, sizeof replacement - 1);
        used += sizeof replacement - 1;
        /* Writes one replacement character for all bytes of a truncated character. */
        do {
            at++;
        } while (at < length && is_continuation(bytes[at]));
    }
    copy[used] = '\0';
    return copy;
}

char *plue_text_repair_start(const void *text, size_t length, size_t most) {
    return plue_text_repair(text, length < most ? length : most);
}

size_t plue_text_prefix(const char *text, size_t most) {
    const unsigned char *bytes = (const unsigned char *)text;
    size_t length = strnlen(text, most + 1);
    if (length <= most) {
        return length;
    }
    /* A character has at most three continuation bytes; invalid text may be cut anywhere. */
    size_t end = most;
    while (end > 0 && most - end < 3 && is_continuation(bytes[end])) {
        end--;
    }
    return is_continuation(bytes[end]) ? most : end;
}

struct plue_shared_text *plue_shared_text_new(const void *bytes, size_t length) {
    struct plue_shared_text *text = malloc(sizeof *text + length + 1);
    if (text != NULL) {
        atomic_init(&text->references, 1);
        text->length = length;
        memcpy(text->bytes, bytes, length);
        text->bytes[length] = '\0';
    }
    return text;
}

struct plue_shared_text *plue_shared_text_retain(struct plue_shared_text *text) {
    if (text != NULL) {
        atomic_fetch_add(&text->references, 1);
    }
    return text;
}

void plue_shared_text_release(struct plue_shared_text *text) {
    if (text != NULL && plue_was_last(&text->references)) {
        free(text);
    }
}
