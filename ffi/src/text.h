/* Strings that come from outside. */
#ifndef PLUE_TEXT_H
#define PLUE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Says whether the bytes are well-formed UTF-8: no overlong forms, surrogates or numbers above
 * U+10FFFF. */
bool plue_text_is_utf8(const char *text, size_t length);

/* Copies bytes and adds a NUL. NULL when out of memory. */
char *plue_text_copy(const void *bytes, size_t length);

#endif
