/* Strings that come from outside. */
#ifndef PLUE_TEXT_H
#define PLUE_TEXT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Says whether the bytes are UTF-8 that a C string can hold: there is no NUL in them. */
bool plue_text_is_string(const void *bytes, size_t length);

/* Says whether the bytes are well-formed UTF-8: no overlong forms, surrogates or numbers above
 * U+10FFFF. */
bool plue_text_is_utf8(const char *text, size_t length);

/* Copies bytes and adds a NUL. NULL when out of memory. */
char *plue_text_copy(const void *bytes, size_t length);

/* Copies text as a string; what is not UTF-8 in it, and each NUL, becomes U+FFFD. NULL when out of
 * memory. */
char *plue_text_repair(const void *text, size_t length);

/* The length of the longest beginning of a string that has at most `most` bytes and cuts no
 * character in two: printf("%.*s", (int)plue_text_prefix(text, 100), text). */
size_t plue_text_prefix(const char *text, size_t most);

/* A text that threads read while another one replaces it: it is counted, and freed with the last
 * reference. */
struct plue_shared_text {
    atomic_uint references;
    size_t length;
    char bytes[]; /* and a NUL */
};

/* Copies the bytes, with one reference. NULL when out of memory. */
struct plue_shared_text *plue_shared_text_new(const void *bytes, size_t length);

/* NULL is fine for both. */
struct plue_shared_text *plue_shared_text_retain(struct plue_shared_text *text);
void plue_shared_text_release(struct plue_shared_text *text);

#endif
