/* Checks and copies strings from outside the library. */
#pragma once

#include "std.h"

/* Returns true if the bytes are UTF-8 without a NUL, so that a C string can hold them. */
bool plue_text_is_string(const void *bytes, size_t length);

/* Returns true if the bytes are well-formed UTF-8: without overlong forms, surrogates or numbers
 * above U+10FFFF. */
bool plue_text_is_utf8(const char *text, size_t length);

/* Copies bytes and adds a NUL. Returns NULL when out of memory. */
char *plue_text_copy(const void *bytes, size_t length);

/* Copies text as a string; invalid UTF-8, and each NUL, becomes U+FFFD. Returns NULL when out of
 * memory. */
char *plue_text_repair(const void *text, size_t length);
/* Like plue_text_repair(), for the first `most` bytes only. */
char *plue_text_repair_start(const void *text, size_t length, size_t most);

/* Returns the length of the longest prefix of a string that has at most `most` bytes and does not
 * split a character: printf("%.*s", (int)plue_text_prefix(text, 100), text). */
size_t plue_text_prefix(const char *text, size_t most);

/* A reference-counted text that one thread replaces while others read it. It is freed with the last
 * reference. */
struct plue_shared_text {
    atomic_uint references;
    size_t length;
    char bytes[]; /* ends with a NUL */
};

/* Copies the bytes, with one reference. Returns NULL when out of memory. */
struct plue_shared_text *plue_shared_text_new(const void *bytes, size_t length);

/* Both functions accept NULL. */
struct plue_shared_text *plue_shared_text_retain(struct plue_shared_text *text);
void plue_shared_text_release(struct plue_shared_text *text);
